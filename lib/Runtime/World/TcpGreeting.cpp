//===- TcpGreeting.cpp - who is at the other end? -------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "World/TcpGreeting.h"

#include "World/Sha256.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdprt;

static const std::string plainMagic = "fsdprt01", secretMagic = "fsdprts1";
static constexpr size_t magicBytes = 8, nonceBytes = 32, proofBytes = 32;

/// Rank 0's answer to a wrong proof, in the place of its own.
static const std::string wrongProof(proofBytes, '\0');

static Status invalid(std::string why) {
  return {FSDPRT_INVALID_ARGUMENT, std::move(why)};
}

std::string fsdprt::bytesOf(const Greeting &greeting) {
  return std::string(reinterpret_cast<const char *>(&greeting),
                     sizeof(greeting));
}

/// 32 bytes that nobody can foretell; "" if the system has none.
static std::string makeNonce() {
  std::string nonce(nonceBytes, '\0');
  return getentropy(&nonce[0], nonceBytes) == 0 ? nonce : std::string();
}

static std::string proofOf(bool rankZero, const std::string &secret,
                           const std::string &nonces) {
  return hmacSha256(secret,
                    (rankZero ? "fsdprt rank 0" : "fsdprt rank") + nonces);
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

Caller::Caller(Socket socket, const std::string &secret,
               Clock::time_point deadline)
    : connection(std::move(socket)), from(otherEnd(connection)), secret(secret),
      end(deadline) {}

size_t Caller::wanted() const {
  switch (stage) {
  case Magic:
    return magicBytes;
  case Nonce:
    return nonceBytes;
  case Proof:
    return proofBytes;
  case Greet:
    return sizeof(Greeting) - magicBytes;
  }
  return 0;
}

void Caller::say(const std::string &bytes) {
  // A connection that has just been made takes a hundred bytes.
  size_t at = 0;
  if (why.empty() &&
      (sendSome(connection, bytes, at) != Moved::Some || at != bytes.size()))
    why = "it takes no answer";
}

bool Caller::step(Greeting &greeting) {
  while (why.empty()) {
    switch (receiveSome(connection, in, wanted() - in.size())) {
    case Moved::NotNow:
      return false;
    case Moved::Closed:
      why = "it has been closed before it said who it is";
      return false;
    case Moved::Failed:
      why = std::strerror(errno);
      return false;
    case Moved::Some:
      break;
    }
    if (in.size() < wanted())
      continue;
    if (stage == Greet) {
      in.insert(0, plainMagic);
      std::memcpy(&greeting, in.data(), sizeof(greeting));
      return true;
    }
    advance();
    in.clear();
  }
  return false;
}

/// What a stage has brought is in `in`.
void Caller::advance() {
  const std::string &expected = secret.empty() ? plainMagic : secretMagic;
  switch (stage) {
  case Magic:
    // A connection that has proved who it is greets as others do.
    if (in == plainMagic && (secret.empty() || !nonces.empty())) {
      stage = Greet;
      return;
    }
    if (in == expected && nonces.empty()) {
      stage = Nonce;
      return;
    }
    if (nonces.empty() && (in == plainMagic || in == secretMagic)) {
      // The rest of what it has sent is read, because the answer would be lost
      // with a connection that is closed before.
      std::string rest;
      (void)receiveSome(connection, rest, 64);
      say(expected);
      why = secret.empty() ? "it has a secret, rank 0 has none"
                           : "it has no secret, rank 0 has one";
      return;
    }
    why = "it does not begin as a rank does";
    return;
  case Nonce: {
    std::string mine = makeNonce();
    if (mine.empty()) {
      why = "the system gives no random bytes";
      return;
    }
    nonces = in + mine;
    stage = Proof;
    say(secretMagic + mine);
    return;
  }
  case Proof:
    if (!equalInConstantTime(in, proofOf(false, secret, nonces))) {
      say(wrongProof);
      why = "it does not know the secret";
      return;
    }
    stage = Magic;
    say(proofOf(true, secret, nonces));
    return;
  case Greet:
    return;
  }
}

//===----------------------------------------------------------------------===//
// The other ranks
//===----------------------------------------------------------------------===//

static Status checkMagic(const std::string &got, const std::string &expected,
                         const std::string &where) {
  if (got == expected)
    return {};
  if (got == secretMagic)
    return invalid("rank 0 at " + where +
                   " asks for the secret of the run, this rank has none: "
                   "expected FSDPRT_SECRET or FSDPRT_SECRET_FILE on all ranks");
  if (got == plainMagic)
    return invalid("rank 0 at " + where +
                   " has no secret, this rank has one: expected FSDPRT_SECRET "
                   "or FSDPRT_SECRET_FILE on all ranks");
  return invalid(where + " is no rank 0 of ours, but another program");
}

Status fsdprt::greetRankZero(const Socket &socket, const std::string &where,
                             const std::string &secret, const Greeting &mine,
                             Clock::time_point deadline, std::string &why) {
  std::string got;
  // Success, for another attempt.
  auto noAnswer = [&] {
    why = "no answer";
    return Status();
  };
  why.clear();
  if (isConnectedToItself(socket)) {
    why = "nobody listens";
    return {};
  }
  if (!secret.empty()) {
    std::string nonces = makeNonce();
    if (nonces.empty())
      return invalid("the system gives no random bytes");
    if (!sendAll(socket, secretMagic + nonces, deadline) ||
        !receiveAll(socket, got, magicBytes, deadline))
      return noAnswer();
    if (Status status = checkMagic(got, secretMagic, where); status.failed())
      return status;
    if (!receiveAll(socket, got, nonceBytes, deadline))
      return noAnswer();
    nonces += got;
    if (!sendAll(socket, proofOf(false, secret, nonces), deadline))
      return noAnswer();
    if (!receiveAll(socket, got, proofBytes, deadline))
      return noAnswer();
    if (got == wrongProof)
      return invalid("rank 0 at " + where +
                     " has another secret than this rank");
    if (!equalInConstantTime(got, proofOf(true, secret, nonces)))
      return invalid(where +
                     " is no rank 0 of ours: it does not know the secret");
  }
  Greeting theirs;
  if (!sendAll(socket, bytesOf(mine), deadline) ||
      !receiveAll(socket, got, magicBytes, deadline))
    return noAnswer();
  if (Status status = checkMagic(got, plainMagic, where); status.failed())
    return status;
  std::string rest;
  if (!receiveAll(socket, rest, sizeof(theirs) - magicBytes, deadline))
    return noAnswer();
  std::memcpy(&theirs, (got + rest).data(), sizeof(theirs));
  const std::string me = "rank " + std::to_string(mine.rank);
  if (theirs.version != mine.version)
    return invalid("rank 0 has ABI version " + std::to_string(theirs.version) +
                   ", " + me + " has " + std::to_string(mine.version));
  if (theirs.ranks != mine.ranks)
    return invalid("rank 0 is of a world of " + std::to_string(theirs.ranks) +
                   " ranks, " + me + " of " + std::to_string(mine.ranks));
  if (theirs.rank == RankIsTaken)
    return invalid("two processes are " + me + ", expected one");
  if (theirs.rank != 0)
    return invalid("rank 0 does not know " + me);
  return {};
}

std::string fsdprt::compareWorlds(const Greeting &greeting,
                                  int64_t worldRanks) {
  std::string who = "rank " + std::to_string(greeting.rank);
  if (greeting.version != FSDPRT_ABI_VERSION)
    return who + " has ABI version " + std::to_string(greeting.version) +
           ", rank 0 has " + std::to_string(FSDPRT_ABI_VERSION);
  if (greeting.ranks != worldRanks)
    return who + " is of a world of " + std::to_string(greeting.ranks) +
           " ranks, rank 0 of " + std::to_string(worldRanks);
  if (greeting.rank < 1 || greeting.rank >= worldRanks)
    return "it says that it is " + who + ", expected 1 to " +
           std::to_string(worldRanks - 1);
  return {};
}

//===----------------------------------------------------------------------===//
// The secret
//===----------------------------------------------------------------------===//

static Status readSecret(const std::string &path, std::string &secret) {
  auto wrong = [&](const std::string &why) {
    return invalid("FSDPRT_SECRET_FILE: " + path + ": " + why);
  };
  int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    return wrong(std::strerror(errno));
  struct stat info = {};
  char buffer[4097];
  ssize_t got = -1;
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
    got = ::read(fd, buffer, sizeof(buffer));
  ::close(fd);
  if (!S_ISREG(info.st_mode))
    return wrong("expected a file");
  if (info.st_mode & (S_IRWXG | S_IRWXO))
    return wrong("others may read or write it, expected mode 0600");
  if (got < 0 || got == sizeof(buffer))
    return wrong("expected at most 4096 bytes");
  secret.assign(buffer, got);
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r'))
    secret.pop_back();
  return secret.empty() ? wrong("it is empty, expected a secret") : Status();
}

Status fsdprt::findSecret(std::string &secret) {
  secret.clear();
  const char *text = std::getenv("FSDPRT_SECRET");
  const char *file = std::getenv("FSDPRT_SECRET_FILE");
  if (text && file)
    return invalid("FSDPRT_SECRET and FSDPRT_SECRET_FILE are set, expected at "
                   "most one of them");
  if (file)
    return readSecret(file, secret);
  if (!text)
    return {};
  secret = text;
  return secret.empty() ? invalid("FSDPRT_SECRET is empty, expected a secret")
                        : Status();
}

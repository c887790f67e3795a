//===- TcpGreeting.h - who is at the other end? -----------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a connection begins. Both sides say what they are, the one that has
// connected first:
//
//   "fsdprt01"  int64 version  int64 ranks  int64 rank
//
// Rank 0 answers with rank 0, or with one of the refusals below. In a run that
// has a secret both sides first prove that they know it:
//
//   to rank 0     "fsdprts1", 32 random bytes A
//   from rank 0   "fsdprts1", 32 random bytes B
//   to rank 0     HMAC-SHA256(secret, "fsdprt rank" A B)
//   from rank 0   HMAC-SHA256(secret, "fsdprt rank 0" A B)
//
// Rank 0 answers a wrong proof with 32 zeros. A connection that is only closed
// says nothing about secrets: rank 0 has lost patience, or has ended.
//
// A side that expects the other one of the two beginnings says so by its own
// eight bytes, and closes.
//
// Rank 0 serves many connections at a time, most of which may be strangers. It
// reads no byte before it is needed, so that one of them costs little memory,
// and gives each a bounded time in all, not per byte.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_WORLD_TCPGREETING_H
#define FSDP_LIB_RUNTIME_WORLD_TCPGREETING_H

#include "World/Tcp.h"

namespace fsdprt {

struct Greeting {
  char magic[8] = {'f', 's', 'd', 'p', 'r', 't', '0', '1'};
  int64_t version = FSDPRT_ABI_VERSION;
  int64_t ranks = 0;
  int64_t rank = 0; ///< of who greets
};

std::string bytesOf(const Greeting &greeting);

/// In the place of rank 0's rank.
enum Refusal : int64_t { RankIsTaken = -1, NoSuchRank = -2 };

/// Rank 0's side of a connection that has not said yet who it is.
class Caller {
public:
  Caller(Socket socket, const std::string &secret, Clock::time_point deadline);

  /// Reads and writes what is possible now. True once `greeting` is there.
  bool step(Greeting &greeting);

  /// Why the connection is of no use, "" if it may be.
  const std::string &trouble() const { return why; }

  Clock::time_point deadline() const { return end; }
  const Socket &socket() const { return connection; }
  const std::string &name() const { return from; }

  /// Sends what is short enough to be sent at once.
  void say(const std::string &bytes);

  /// The connection, after its greeting.
  Socket release() { return std::move(connection); }

private:
  enum Stage { Magic, Nonce, Proof, Greet };

  size_t wanted() const; ///< bytes of this stage
  void advance();

  Socket connection;
  const std::string from;
  const std::string &secret;
  const Clock::time_point end;
  Stage stage = Magic;
  std::string in, nonces, why;
};

/// The other ranks' side: greets rank 0 at `where`. Success with `why` set
/// means that nobody has answered, who may do so another time.
Status greetRankZero(const Socket &socket, const std::string &where,
                     const std::string &secret, const Greeting &mine,
                     Clock::time_point deadline, std::string &why);

/// What is wrong with the greeting of another rank, "" if nothing is.
std::string compareWorlds(const Greeting &greeting, int64_t worldRanks);

/// The secret of the run: FSDPRT_SECRET, or the content of the file that
/// FSDPRT_SECRET_FILE names; "" if neither is set.
Status findSecret(std::string &secret);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_WORLD_TCPGREETING_H

//===- ChannelFile.cpp - small messages as files --------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For hosts that share a folder and no port. Rank 0 makes the folder PATH.run,
// which nobody else can enter, and which finds a path that another run uses or
// has left. In it rank r has the file rank.r while it is there, and message
// number n from rank f to rank t is the file t.f.n; it gets that name when it
// is complete, and its receiver removes it.
//
// The folder around it may be one that others can write to. So no name is
// followed where a link could be, and what is not ours is refused.
//
//===----------------------------------------------------------------------===//

#include "World/Channels.h"

#include "Support/Guard.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace fsdprt;

namespace {

/// A message of ours is a part of 4 MiB at most; see Watch.
constexpr off_t largestMessage = off_t(8) << 20;

/// A file or a folder that closes itself.
class Descriptor {
public:
  explicit Descriptor(int fd = -1) : fd(fd) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() { reset(); }
  void reset(int other = -1) {
    if (fd >= 0)
      ::close(fd);
    fd = other;
  }
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }

private:
  int fd;
};

class FileChannel final : public Channel {
public:
  FileChannel(const std::string &path, int64_t rank, int64_t ranks)
      : folder(path + ".run"), myRank(rank), worldRanks(ranks), sent(ranks),
        received(ranks) {}
  ~FileChannel() override {
    (void)guarded([this] {
      leave();
      return Status();
    });
  }

  Status open();
  int64_t rank() const override { return myRank; }
  int64_t ranks() const override { return worldRanks; }
  Status send(int64_t to, const std::string &message) override;
  bool receive(int64_t &from, std::string &message) override;
  Status status() override {
    std::lock_guard<std::mutex> lock(mutex);
    return lost;
  }
  void close() override {}
  void leave() override;

private:
  struct Waiting {
    int64_t to;
    std::string message;
  };

  Status enter();
  void flush();
  Status write(int64_t to, const std::string &message);
  bool read(int64_t from, std::string &message);
  Status failure(const std::string &name, const std::string &why) const {
    return {FSDPRT_ABORTED, folder + "/" + name + ": " + why};
  }
  static std::string nameOfRank(int64_t rank) {
    return "rank." + std::to_string(rank);
  }
  static std::string nameOf(int64_t to, int64_t from, int64_t number) {
    return std::to_string(to) + "." + std::to_string(from) + "." +
           std::to_string(number);
  }
  bool isHere(int64_t rank) const {
    struct stat info;
    return ::fstatat(entered.get(), nameOfRank(rank).c_str(), &info,
                     AT_SYMLINK_NOFOLLOW) == 0;
  }

  const std::string folder;
  const int64_t myRank, worldRanks;
  std::mutex mutex;
  Descriptor entered; ///< the folder
  uid_t owner = 0;    ///< of the folder and of all in it
  bool left = false;
  Status lost;
  std::vector<Waiting> waiting;        ///< for the folder
  std::vector<int64_t> sent, received; ///< by rank
};

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

Status FileChannel::open() {
  if (myRank == 0 && ::mkdir(folder.c_str(), 0700))
    return {FSDPRT_INVALID_ARGUMENT,
            folder + ": " + std::strerror(errno) +
                (errno == EEXIST
                     ? ": expected a path that no run has used before"
                     : "")};
  return enter();
}

/// Goes into the folder, if rank 0 has made it.
Status FileChannel::enter() {
  if (entered || left)
    return {};
  auto refuse = [&](const std::string &name, const std::string &why) {
    entered.reset();
    return Status{FSDPRT_INVALID_ARGUMENT, name + ": " + why};
  };
  entered.reset(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!entered && errno == ENOENT)
    return {};
  struct stat info = {}, mine = {};
  if (!entered || ::fstat(entered.get(), &info))
    return refuse(folder, errno == ELOOP || errno == ENOTDIR
                              ? "expected a folder that rank 0 has made, found "
                                "a link or a file"
                              : std::strerror(errno));
  if (info.st_mode & (S_IWGRP | S_IWOTH))
    return refuse(folder, "others can write to it, expected a folder that "
                          "rank 0 has made");
  // Some file systems show one user by another name, but always by the same.
  Descriptor mark(::openat(entered.get(), nameOfRank(myRank).c_str(),
                           O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
                           0600));
  if (!mark)
    return refuse(folder + "/" + nameOfRank(myRank),
                  std::string(std::strerror(errno)) +
                      (errno == EEXIST ? ": expected one process of each rank, "
                                         "and a path that no run has used "
                                         "before"
                                       : ""));
  if (::fstat(mark.get(), &mine) || mine.st_uid != info.st_uid) {
    ::unlinkat(entered.get(), nameOfRank(myRank).c_str(), 0);
    return refuse(folder, "it belongs to user " + std::to_string(info.st_uid) +
                              ", expected a folder that rank 0 has made");
  }
  owner = info.st_uid;
  return {};
}

/// Removes what nobody will read any more, and the folder if nobody is left in
/// it.
void FileChannel::leave() {
  std::lock_guard<std::mutex> lock(mutex);
  if (left)
    return;
  left = true;
  if (!entered)
    return;
  // The order counts: who sees the mark leaves its messages to this rank.
  ::unlinkat(entered.get(), nameOfRank(myRank).c_str(), 0);
  if (DIR *list = ::fdopendir(::dup(entered.get()))) {
    while (const dirent *entry = ::readdir(list)) {
      long long to, from, number;
      if (std::sscanf(entry->d_name, "%lld.%lld.%lld", &to, &from, &number) ==
              3 &&
          (to == myRank || (from == myRank && !isHere(to))))
        ::unlinkat(entered.get(), entry->d_name, 0);
    }
    ::closedir(list);
  }
  ::rmdir(folder.c_str());
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

Status FileChannel::write(int64_t to, const std::string &message) {
  std::string name = nameOf(to, myRank, sent[to]);
  std::string draft = name + ".draft";
  std::FILE *file = nullptr;
  int fd = ::openat(entered.get(), draft.c_str(),
                    O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd >= 0)
    file = ::fdopen(fd, "wb");
  bool good = file && std::fwrite(message.data(), 1, message.size(), file) ==
                          message.size();
  if (file)
    good &= std::fclose(file) == 0;
  if (!good ||
      ::renameat(entered.get(), draft.c_str(), entered.get(), name.c_str()))
    return failure(name, std::strerror(errno));
  ++sent[to];
  return {};
}

/// Sends what has waited for the folder. With the lock.
void FileChannel::flush() {
  if (!entered && !lost.failed())
    lost = enter();
  if (!entered)
    return;
  for (const Waiting &message : waiting)
    if (Status status = write(message.to, message.message);
        status.failed() && !lost.failed())
      lost = status;
  waiting.clear();
}

Status FileChannel::send(int64_t to, const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (left)
    return {};
  flush();
  if (entered)
    return write(to, message);
  waiting.push_back({to, message});
  return lost;
}

/// The next message of rank `from`, if it has come. With the lock.
bool FileChannel::read(int64_t from, std::string &message) {
  std::string name = nameOf(myRank, from, received[from]);
  Descriptor file(::openat(entered.get(), name.c_str(),
                           O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT)
    return false;
  std::string why;
  struct stat info = {};
  if (!file || ::fstat(file.get(), &info))
    why = errno == ELOOP ? "it is a link" : std::strerror(errno);
  else if (!S_ISREG(info.st_mode) || info.st_nlink != 1 ||
           info.st_uid != owner || info.st_size > largestMessage)
    why = "it is not what a rank has written";
  message.assign(why.empty() ? info.st_size : 0, '\0');
  for (size_t at = 0; at < message.size();) {
    ssize_t got = ::read(file.get(), &message[at], message.size() - at);
    if (got == 0 || (got < 0 && errno != EINTR)) {
      why = got == 0 ? "it is truncated" : std::strerror(errno);
      break;
    }
    at += std::max<ssize_t>(got, 0);
  }
  if (!why.empty()) {
    if (!lost.failed())
      lost = failure(name, why);
    return false;
  }
  ::unlinkat(entered.get(), name.c_str(), 0);
  ++received[from];
  return true;
}

bool FileChannel::receive(int64_t &from, std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (left)
    return false;
  flush();
  for (from = 0; from < worldRanks && entered && !lost.failed(); ++from)
    if (from != myRank && read(from, message))
      return true;
  return false;
}

class SelfChannel final : public Channel {
public:
  int64_t rank() const override { return 0; }
  int64_t ranks() const override { return 1; }
  Status send(int64_t, const std::string &) override { return {}; }
  bool receive(int64_t &, std::string &) override { return false; }
  void close() override {}
};

} // namespace

Status fsdprt::createFileChannel(const std::string &path, int64_t rank,
                                 int64_t ranks,
                                 std::unique_ptr<Channel> &channel) {
  auto result = std::make_unique<FileChannel>(path, rank, ranks);
  if (Status status = result->open(); status.failed())
    return status;
  channel = std::move(result);
  return {};
}

std::unique_ptr<Channel> fsdprt::createSelfChannel() {
  return std::make_unique<SelfChannel>();
}

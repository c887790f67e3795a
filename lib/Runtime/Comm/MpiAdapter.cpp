//===- MpiAdapter.cpp - Mpi.h on top of an MPI implementation -------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library libfsdprt_mpi. Two duplicates of MPI_COMM_WORLD keep data and
// messages apart from each other and from the program's own traffic.
//
// Two threads call MPI: the rank's, and the one that answers other ranks. Where
// MPI_THREAD_MULTIPLE is not to be had, a lock serialises them; every call
// below returns at once, so that the lock is never held for long.
//
// There is no communicator per group of ranks. Creating one blocks until all
// members have come, with no deadline and no way out; and the pairwise exchange
// that the runtime does itself (CommMpi.cpp) moves as few bytes as the best
// collective would.
//
//===----------------------------------------------------------------------===//

#include "Comm/Mpi.h"

// The C++ bindings of old would need a library of their own.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

using namespace fsdprt;

namespace {

std::mutex mutex;
constexpr int messageTag = 1;

/// MPI counts with int; longer transfers are cut, on both ends alike.
constexpr int64_t largestTransfer = int64_t(1) << 30;

std::string describeError(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int size = 0;
  MPI_Error_string(code, text, &size);
  return std::string(text, size);
}

class MpiBatch final : public Mpi::Batch {
public:
  explicit MpiBatch(MPI_Comm comm) : comm(comm) {}
  ~MpiBatch() override { cancel(); }

  void send(int64_t to, int tag, const void *data, int64_t bytes) override {
    cut(bytes, false, [&](int64_t begin, int size, MPI_Request *request) {
      return MPI_Isend(static_cast<const char *>(data) + begin, size, MPI_BYTE,
                       static_cast<int>(to), tag, comm, request);
    });
  }

  void receive(int64_t from, int tag, void *data, int64_t bytes) override {
    cut(bytes, true, [&](int64_t begin, int size, MPI_Request *request) {
      return MPI_Irecv(static_cast<char *>(data) + begin, size, MPI_BYTE,
                       static_cast<int>(from), tag, comm, request);
    });
  }

  bool done() override {
    if (!message.empty())
      return true;
    std::lock_guard<std::mutex> lock(mutex);
    int all = 0;
    check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all,
                      MPI_STATUSES_IGNORE));
    if (all) {
      requests.clear();
      receives.clear();
    }
    return all || !message.empty();
  }

  const std::string &error() const override { return message; }

  void cancel() override {
    std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i] == MPI_REQUEST_NULL)
        continue;
      // Only a receive can be cancelled for certain.
      if (!receives[i]) {
        MPI_Request_free(&requests[i]);
        continue;
      }
      MPI_Cancel(&requests[i]);
      MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    requests.clear();
    receives.clear();
  }

private:
  template <typename Start>
  void cut(int64_t bytes, bool receive, Start start) {
    std::lock_guard<std::mutex> lock(mutex);
    for (int64_t begin = 0; begin < bytes && message.empty();
         begin += largestTransfer) {
      // Nothing may fail once MPI has the request.
      requests.push_back(MPI_REQUEST_NULL);
      receives.resize(requests.size(), receive);
      int64_t size = std::min(bytes - begin, largestTransfer);
      check(start(begin, static_cast<int>(size), &requests.back()));
    }
  }

  void check(int code) {
    if (code != MPI_SUCCESS && message.empty())
      message = describeError(code);
  }

  const MPI_Comm comm;
  std::vector<MPI_Request> requests;
  std::vector<bool> receives; ///< of each request
  std::string message;
};

class MpiWorld final : public Mpi {
public:
  /// Returns what went wrong, "" if nothing did.
  std::string open();

  std::unique_ptr<Batch> batch() override {
    return std::make_unique<MpiBatch>(data);
  }
  std::string sendMessage(int64_t to, const std::string &message) override;
  bool receiveMessage(int64_t &from, std::string &message) override;
  void flushMessages() override;

private:
  struct Outgoing {
    std::string message;
    MPI_Request request;
  };

  /// Forgets what has been sent. With the lock.
  void tidy();

  MPI_Comm data = MPI_COMM_NULL, messages = MPI_COMM_NULL;
  std::list<Outgoing> outgoing;
};

std::string MpiWorld::open() {
  int initialized = 0, finalized = 0, level = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized)
    return "MPI has been finalised";
  if (!initialized) {
    if (int code =
            MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level))
      return describeError(code);
    std::atexit([] {
      int finalized = 0;
      MPI_Finalized(&finalized);
      if (!finalized)
        MPI_Finalize();
    });
  }
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED)
    return "MPI was initialised with thread level " + std::to_string(level) +
           ", expected MPI_THREAD_SERIALIZED or more";
  MPI_Comm node;
  int number = 0, size = 0, local = 0;
  for (MPI_Comm *comm : {&data, &messages}) {
    if (int code = MPI_Comm_dup(MPI_COMM_WORLD, comm))
      return describeError(code);
    MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
  }
  if (int code = MPI_Comm_split_type(data, MPI_COMM_TYPE_SHARED, 0,
                                     MPI_INFO_NULL, &node))
    return describeError(code);
  MPI_Comm_rank(node, &local);
  MPI_Comm_free(&node);
  MPI_Comm_rank(data, &number);
  MPI_Comm_size(data, &size);
  rank = number;
  ranks = size;
  localRank = local;
  return {};
}

void MpiWorld::tidy() {
  for (auto it = outgoing.begin(); it != outgoing.end();) {
    int sent = 0;
    MPI_Test(&it->request, &sent, MPI_STATUS_IGNORE);
    it = sent ? outgoing.erase(it) : std::next(it);
  }
}

std::string MpiWorld::sendMessage(int64_t to, const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  tidy();
  if (message.size() > static_cast<size_t>(largestTransfer))
    return "a message of " + std::to_string(message.size()) + " bytes";
  Outgoing &entry = outgoing.emplace_back(Outgoing{message, MPI_REQUEST_NULL});
  int code = MPI_Isend(
      entry.message.data(), static_cast<int>(entry.message.size()), MPI_BYTE,
      static_cast<int>(to), messageTag, messages, &entry.request);
  return code == MPI_SUCCESS ? std::string() : describeError(code);
}

bool MpiWorld::receiveMessage(int64_t &from, std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  tidy();
  int there = 0, bytes = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, messageTag, messages, &there, &status) ||
      !there)
    return false;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  message.resize(bytes);
  from = status.MPI_SOURCE;
  return MPI_Recv(&message[0], bytes, MPI_BYTE, status.MPI_SOURCE, messageTag,
                  messages, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

void MpiWorld::flushMessages() {
  while (true) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      tidy();
      if (outgoing.empty())
        return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

} // namespace

extern "C" __attribute__((visibility("default"))) Mpi *
fsdprtCreateMpi(int32_t version, std::string *message) {
  if (version != mpiInterfaceVersion) {
    *message = "libfsdprt_mpi has interface version " +
               std::to_string(mpiInterfaceVersion) + ", libfsdprt expects " +
               std::to_string(version);
    return nullptr;
  }
  auto world = std::make_unique<MpiWorld>();
  *message = world->open();
  return message->empty() ? world.release() : nullptr;
}

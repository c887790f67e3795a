//===- FakeNccl.cpp - NCCL's functions over files -------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank says what it brings to a meeting in a file, which appears when it is
// complete; the meeting takes place when every member's file is there. Sums are
// formed from the last rank to the first: an order that is not the reference's.
//
//===----------------------------------------------------------------------===//

#include "FakeState.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <type_traits>

using namespace fsdprt;
using namespace fsdprt::nccl;
using fake::FakeStream;
using fake::state;

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

struct FakeComm {
  std::string folder;
  int ranks = 0, rank = 0;
  int meetings = 0;
  bool blocking = false;
  bool shares = false; ///< its resources with its splits
  std::shared_ptr<int> outstanding = std::make_shared<int>(0); ///< collectives
  bool ready = false; ///< all members have initialised theirs
  std::shared_ptr<bool> over = std::make_shared<bool>(false);
  std::vector<double> multipliers;
  int operators = 0, registrations = 0; ///< alive
  // A split that is under way.
  Comm *child = nullptr;
  bool childBlocks = false;
  int colour = 0, key = 0, splitMeeting = 0;
};

FakeComm &of(Comm comm) { return *reinterpret_cast<FakeComm *>(comm); }

std::string fileOf(const FakeComm &comm, int meeting, int rank) {
  return comm.folder + "/" + std::to_string(meeting) + "." +
         std::to_string(rank);
}

void bring(const FakeComm &comm, int meeting, const void *data, size_t bytes) {
  std::string name = fileOf(comm, meeting, comm.rank), draft = name + ".draft";
  std::FILE *file = std::fopen(draft.c_str(), "wb");
  if (!file)
    return; // the meeting never takes place
  std::fwrite(data, 1, bytes, file);
  std::fclose(file);
  std::rename(draft.c_str(), name.c_str());
}

/// What every member has brought, nothing if somebody is missing.
std::optional<std::vector<std::string>> meet(const FakeComm &comm,
                                             int meeting) {
  std::vector<std::string> all;
  for (int rank = 0; rank < comm.ranks; ++rank) {
    std::FILE *file = std::fopen(fileOf(comm, meeting, rank).c_str(), "rb");
    if (!file)
      return std::nullopt;
    std::string data;
    char buffer[1 << 14];
    for (size_t got; (got = std::fread(buffer, 1, sizeof(buffer), file));)
      data.append(buffer, got);
    std::fclose(file);
    all.push_back(std::move(data));
  }
  return all;
}

/// Finishes what waits for the other members of `comm`.
void advance(FakeComm &comm) {
  if (!comm.ready)
    comm.ready = meet(comm, 0).has_value();
  if (!comm.child)
    return;
  auto all = meet(comm, comm.splitMeeting);
  if (!all)
    return;
  std::vector<std::pair<int, int>> members; // key, rank
  for (int rank = 0; rank < comm.ranks; ++rank) {
    int brought[2];
    std::memcpy(brought, (*all)[rank].data(), sizeof(brought));
    if (brought[0] == comm.colour)
      members.push_back({brought[1], rank});
  }
  std::sort(members.begin(), members.end());
  auto *child = new FakeComm();
  ++state().live["communicators"];
  child->ranks = static_cast<int>(members.size());
  child->rank =
      static_cast<int>(std::find(members.begin(), members.end(),
                                 std::pair<int, int>(comm.key, comm.rank)) -
                       members.begin());
  child->folder = comm.folder + "/" + std::to_string(comm.splitMeeting) + "of" +
                  std::to_string(comm.colour);
  std::filesystem::create_directories(child->folder);
  child->ready = true;
  child->blocking = comm.childBlocks;
  if (comm.shares)
    child->outstanding = comm.outstanding;
  bring(*child, child->meetings++, "", 0);
  *comm.child = reinterpret_cast<Comm>(child);
  comm.child = nullptr;
}

size_t sizeOf(DataType dtype) {
  return dtype == uint8 ? 1 : dtype == float32 ? 4 : dtype == float64 ? 8 : 2;
}

const char *nameOf(DataType dtype) {
  return dtype == uint8     ? "bytes"
         : dtype == float16 ? "f16"
         : dtype == float32 ? "f32"
         : dtype == float64 ? "f64"
                            : "bf16";
}

float loadBF16(uint16_t bits) {
  uint32_t word = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

/// Neither zero, subnormal, infinite nor NaN.
double loadNormalF16(uint16_t bits) {
  double value = std::ldexp(1024 + (bits & 0x3FF), (bits >> 10 & 0x1F) - 25);
  return bits >> 15 ? -value : value;
}

uint16_t storeBF16(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return static_cast<uint16_t>((word + 0x7FFF + (word >> 16 & 1)) >> 16);
}

template <typename T>
void sum(const std::vector<std::string> &all, size_t offset, size_t count,
         double multiplier, void *result) {
  for (size_t i = 0; i < count; ++i) {
    T total = 0;
    for (size_t rank = all.size(); rank-- > 0;) {
      T value;
      std::memcpy(&value, &all[rank][(offset + i) * sizeof(T)], sizeof(T));
      total += static_cast<T>(value * static_cast<T>(multiplier));
    }
    std::memcpy(static_cast<char *>(result) + i * sizeof(T), &total, sizeof(T));
  }
}

void sumBF16(const std::vector<std::string> &all, size_t offset, size_t count,
             double multiplier, void *result) {
  auto round = [](float value) { return loadBF16(storeBF16(value)); };
  for (size_t i = 0; i < count; ++i) {
    float total = 0;
    for (size_t rank = all.size(); rank-- > 0;) {
      uint16_t bits;
      std::memcpy(&bits, &all[rank][(offset + i) * 2], 2);
      total = round(total + round(loadBF16(bits) *
                                  round(static_cast<float>(multiplier))));
    }
    uint16_t bits = storeBF16(total);
    std::memcpy(static_cast<char *>(result) + i * 2, &bits, 2);
  }
}

/// f16 has no arithmetic here: nobody may believe in its sums.
Result reduce(const std::vector<std::string> &all, DataType dtype,
              size_t offset, size_t count, double multiplier, void *result) {
  if (dtype == float32)
    sum<float>(all, offset, count, multiplier, result);
  else if (dtype == float64)
    sum<double>(all, offset, count, multiplier, result);
  else if (dtype == bfloat16)
    sumBF16(all, offset, count, multiplier, result);
  else
    std::memset(result, 0xFF, count * sizeOf(dtype));
  return success;
}

bool aligned(const void *data) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

/// Groups of calls that this thread has begun.
thread_local int openGroups = 0;

enum class Kind { AllGather, ReduceScatter, AllReduce };

Result collective(Kind kind, const char *name, const void *send, void *receive,
                  size_t count, DataType dtype, RedOp op, Comm handle,
                  cuda::Stream handleOfStream) {
  FakeComm &comm = of(handle);
  auto *stream = reinterpret_cast<FakeStream *>(handleOfStream);
  const size_t row = count * sizeOf(dtype);
  double multiplier = op == avg ? 1.0 / comm.ranks : 1;
  std::string line =
      std::string(name) + " " + std::to_string(count) + " x " + nameOf(dtype);
  if (kind != Kind::AllGather) {
    line += op == avg ? " avg" : op == nccl::sum ? " sum" : " premul ";
    if (op > avg) {
      multiplier = comm.multipliers[op - avg - 1];
      char text[40];
      std::snprintf(text, sizeof(text), "%.9g", multiplier);
      line += text;
    }
  }
  line += " of " + std::to_string(comm.ranks);
  const char *own = static_cast<char *>(receive) + comm.rank * row;
  if (kind == Kind::AllGather ? send == own : send == receive)
    line += " in place";
  if (!aligned(send) || !aligned(receive) ||
      (kind != Kind::AllReduce && row % 16 != 0))
    line += " misaligned";
  if (openGroups > 0)
    line += " grouped";
  state().note(stream, line);

  // Of a large program one may only want to know what it calls. Then ranks meet
  // with the sizes of their data, and receive nothing.
  static const bool moves = !std::getenv("FSDP_FAKE_NO_DATA");
  const int meeting = comm.meetings++;
  const size_t sent = kind == Kind::ReduceScatter ? row * comm.ranks : row;
  auto brought = std::make_shared<bool>(false);
  auto work = [=, here = comm] {
    if (*here.over)
      return true;
    if (!*brought)
      bring(here, meeting, moves ? send : &sent, moves ? sent : sizeof(sent));
    *brought = true;
    auto all = meet(here, meeting);
    if (!all)
      return false;
    // Ranks that do not mean the same wait for ever, as with the real one.
    for (const std::string &data : *all)
      if (moves ? data.size() != sent
                : std::memcmp(data.data(), &sent, sizeof(sent)) != 0)
        return false;
    if (!moves)
      return true;
    if (kind == Kind::AllGather)
      for (int rank = 0; rank < here.ranks; ++rank)
        std::memcpy(static_cast<char *>(receive) + rank * row,
                    (*all)[rank].data(), row);
    else
      reduce(*all, dtype, kind == Kind::ReduceScatter ? here.rank * count : 0,
             count, multiplier, receive);
    return true;
  };
  ++*comm.outstanding;
  stream->work.push_back([work, outstanding = comm.outstanding] {
    if (!work())
      return false;
    --*outstanding;
    return true;
  });
  if (comm.blocking)
    return success;
  // What recent versions do: a thread makes the call, and is asked for its end.
  ++state().called["thread of a collective"];
  return inProgress;
}

/// A call on a blocking communicator that never returns by itself.
bool hangs(const char *function, Comm comm) {
  std::shared_ptr<bool> over;
  {
    Lock lock(state().mutex);
    if (state().hanging != function || !of(comm).blocking)
      return false;
    over = of(comm).over;
  }
  while (true) {
    {
      Lock lock(state().mutex);
      if (*over)
        return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void destroy(Comm comm) {
  FakeComm *over = &of(comm);
  *over->over = true;
  // NCCL frees with a communicator what belongs to it.
  state().live["operators"] -= over->operators;
  state().live["registrations"] -= over->registrations;
  // The last one to go removes the folder, which nobody reads any more.
  bring(*over, -1, "", 0);
  std::error_code ignored;
  if (meet(*over, -1))
    std::filesystem::remove_all(over->folder, ignored);
  delete over;
  --state().live["communicators"];
  state().pump();
}

} // namespace

void fake::State::removeFolders() {
  std::error_code ignored;
  for (const std::string &folder : folders)
    std::filesystem::remove_all(folder, ignored);
  folders.clear();
}

extern "C" {

Result ncclGetVersion(int *version) {
  const char *text = std::getenv("FSDP_FAKE_NCCL_VERSION");
  *version = text ? std::atoi(text) : 22809;
  return success;
}

const char *ncclGetErrorString(Result result) {
  return result == remoteError ? "remote process exited or there was a network "
                                 "error"
                               : "some error";
}

const char *ncclGetLastError(Comm) { return "the fake says so"; }

Result ncclGetUniqueId(UniqueId *id) {
  FAULT(ncclGetUniqueId);
  std::string path = std::filesystem::temp_directory_path() / "fsdpfake-XXXXXX";
  if (!mkdtemp(path.data()) || path.size() >= sizeof(id->bytes))
    return 2; // system error
  std::strcpy(id->bytes, path.c_str());
  state().folders.push_back(path);
  return success;
}

Result ncclCommInitRankConfig(Comm *comm, int ranks, UniqueId id, int rank,
                              Config *config) {
  Lock lock(state().mutex);
  int code = state().fault("ncclCommInitRankConfig");
  if (code && code != inProgress)
    return code;
  if (config->magic != 0xcafebeef || config->blocking != 0)
    return 4; // invalid argument
  const bool shares = config->splitShare == 1;
  auto *made = new FakeComm();
  ++state().live["communicators"];
  made->folder = id.bytes;
  made->ranks = ranks;
  made->rank = rank;
  made->shares = shares;
  if (code != inProgress)
    bring(*made, made->meetings, "", 0);
  ++made->meetings;
  *comm = reinterpret_cast<Comm>(made);
  return inProgress;
}

Result ncclCommSplit(Comm comm, int colour, int key, Comm *result,
                     Config *config) {
  FAULT(ncclCommSplit);
  FakeComm &parent = of(comm);
  // "There should not be any outstanding NCCL operations on the comm", and what
  // shares resources with it counts too.
  if (*parent.outstanding)
    return 5; // invalid usage
  parent.childBlocks = config->blocking == 1;
  parent.child = result;
  parent.colour = colour;
  parent.key = key;
  parent.splitMeeting = parent.meetings++;
  int brought[2] = {colour, key};
  bring(parent, parent.splitMeeting, brought, sizeof(brought));
  return inProgress;
}

Result ncclCommGetAsyncError(Comm comm, Result *error) {
  FAULT(ncclCommGetAsyncError);
  advance(of(comm));
  *error = state().asyncError                            ? state().asyncError
           : of(comm).ready && of(comm).child == nullptr ? success
                                                         : inProgress;
  return success;
}

Result ncclCommFinalize(Comm comm) {
  if (hangs("ncclCommFinalize", comm))
    return 6; // remote error
  FAULT(ncclCommFinalize);
  return success;
}

Result ncclCommDestroy(Comm comm) {
  FAULT(ncclCommDestroy);
  destroy(comm);
  return success;
}

Result ncclCommAbort(Comm comm) {
  FAULT(ncclCommAbort);
  destroy(comm);
  return success;
}

Result ncclGroupStart() {
  FAULT(ncclGroupStart);
  ++openGroups;
  return success;
}

Result ncclGroupEnd() {
  if (openGroups == 0)
    return 5; // invalid usage
  --openGroups;
  FAULT(ncclGroupEnd);
  return success;
}

Result ncclRedOpCreatePreMulSum(RedOp *op, void *scalar, DataType dtype,
                                int residence, Comm comm) {
  FAULT(ncclRedOpCreatePreMulSum);
  if (residence != scalarHostImmediate)
    return 4;
  double value = 0;
  if (dtype == float64) {
    std::memcpy(&value, scalar, 8);
  } else if (dtype == float32) {
    float single;
    std::memcpy(&single, scalar, 4);
    value = single;
  } else if (dtype == bfloat16) {
    uint16_t bits;
    std::memcpy(&bits, scalar, 2);
    value = loadBF16(bits);
  } else if (dtype == float16) {
    uint16_t bits;
    std::memcpy(&bits, scalar, 2);
    value = loadNormalF16(bits);
  } else {
    return 4;
  }
  of(comm).multipliers.push_back(value);
  *op = avg + static_cast<int>(of(comm).multipliers.size());
  ++of(comm).operators;
  ++state().live["operators"];
  return success;
}

Result ncclRedOpDestroy(RedOp, Comm comm) {
  Lock lock(state().mutex);
  --of(comm).operators;
  --state().live["operators"];
  return success;
}

Result ncclAllGather(const void *send, void *receive, size_t count,
                     DataType dtype, Comm comm, cuda::Stream stream) {
  FAULT(ncclAllGather);
  return collective(Kind::AllGather, "ncclAllGather", send, receive, count,
                    dtype, nccl::sum, comm, stream);
}

Result ncclReduceScatter(const void *send, void *receive, size_t count,
                         DataType dtype, RedOp op, Comm comm,
                         cuda::Stream stream) {
  FAULT(ncclReduceScatter);
  return collective(Kind::ReduceScatter, "ncclReduceScatter", send, receive,
                    count, dtype, op, comm, stream);
}

Result ncclAllReduce(const void *send, void *receive, size_t count,
                     DataType dtype, RedOp op, Comm comm, cuda::Stream stream) {
  if (hangs("ncclAllReduce", comm))
    return 6; // remote error
  FAULT(ncclAllReduce);
  return collective(Kind::AllReduce, "ncclAllReduce", send, receive, count,
                    dtype, op, comm, stream);
}

Result ncclMemAlloc(void **data, size_t bytes) {
  UNSAFE(ncclMemAlloc);
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::memset(*data, 0, bytes);
  state().buffers[reinterpret_cast<uintptr_t>(*data)] = bytes;
  ++state().live["blocks"];
  return success;
}

Result ncclMemFree(void *data) {
  Lock lock(state().mutex);
  state().buffers.erase(reinterpret_cast<uintptr_t>(data));
  std::free(data);
  --state().live["blocks"];
  return success;
}

Result ncclCommRegister(Comm comm, void *data, size_t, void **handle) {
  FAULT(ncclCommRegister);
  ++of(comm).registrations;
  ++state().live["registrations"];
  *handle = data;
  return success;
}

Result ncclCommDeregister(Comm comm, void *) {
  Lock lock(state().mutex);
  --of(comm).registrations;
  --state().live["registrations"];
  return success;
}

} // extern "C"

#define FSDPRT_NCCL(result, name, parameters)                                  \
  static_assert(std::is_same_v<decltype(&::name), decltype(Api::name)>, #name);
#include "Comm/NcclFunctions.def"

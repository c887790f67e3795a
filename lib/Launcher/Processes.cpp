//===- Processes.cpp - ranks that are processes, after a run --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Processes.h"

#include "Elements.h"

#include <map>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Error Processes::exchange(const std::string &what, const void *send,
                          int64_t bytes, void *receive) const {
  if (fsdprtExchange(context, what.c_str(), send, bytes, receive,
                     timeoutSeconds))
    return llvm::createStringError(fsdprtMessage(context));
  return Error::success();
}

Error Processes::collect(const std::string &what, int64_t from,
                         const void *send, int64_t bytes, void *receive) const {
  if (fsdprtCollect(context, what.c_str(), from, send, bytes, receive,
                    timeoutSeconds))
    return llvm::createStringError(fsdprtMessage(context));
  return Error::success();
}

Error Processes::maximum(std::vector<double> &values) const {
  std::vector<double> all(values.size() * ranks);
  if (Error error = exchange("the exchange of measurements", values.data(),
                             values.size() * sizeof(double), all.data()))
    return error;
  for (size_t i = 0; i < all.size(); ++i)
    values[i % values.size()] = std::max(values[i % values.size()], all[i]);
  return Error::success();
}

Expected<std::vector<std::string>> Processes::gather(const std::string &what,
                                                     StringRef mine) const {
  int64_t size = mine.size();
  std::vector<int64_t> sizes(ranks);
  if (Error error =
          exchange("sizes of " + what, &size, sizeof(size), sizes.data()))
    return error;
  std::vector<std::string> texts;
  for (int64_t from = 0; from < ranks; ++from) {
    std::string text(rank == 0 ? sizes[from] : 0, ' ');
    if (Error error = collect(what + " of rank " + std::to_string(from), from,
                              mine.data(), sizes[from], text.data()))
      return error;
    if (rank == 0)
      texts.push_back(std::move(text));
  }
  return texts;
}

Expected<Processes::AllResults>
Processes::results(const EntrySignature &entry,
                   const ResultBuffer &buffer) const {
  const size_t count = entry.results.size();
  std::vector<uint64_t> mine(count), all(count * ranks);
  for (size_t i = 0; i < count; ++i)
    mine[i] = fnv1a64(buffer(rank, i), entry.results[i].type.bytes());
  if (Error error = exchange("the exchange of checksums", mine.data(),
                             count * sizeof(uint64_t), all.data()))
    return error;

  AllResults results;
  results.buffers.assign(count, std::vector<const void *>(ranks));
  for (size_t i = 0; i < count; ++i) {
    const int64_t bytes = entry.results[i].type.bytes();
    std::map<uint64_t, int64_t> firstWith; // checksum to rank
    for (int64_t from = 0; from < ranks; ++from) {
      auto [first, isNew] = firstWith.try_emplace(all[from * count + i], from);
      if (!isNew) {
        results.buffers[i][from] = results.buffers[i][first->second];
        continue;
      }
      if (from == 0) {
        results.buffers[i][0] = rank == 0 ? buffer(0, i) : nullptr;
        continue;
      }
      void *received = nullptr;
      if (rank == 0) {
        results.received.push_back(std::make_unique<char[]>(bytes));
        received = results.received.back().get();
      }
      results.buffers[i][from] = received;
      if (Error error = collect("result '" + entry.results[i].name +
                                    "' of rank " + std::to_string(from),
                                from, rank == from ? buffer(rank, i) : nullptr,
                                bytes, received))
        return error;
    }
  }
  return results;
}

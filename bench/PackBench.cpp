//===- PackBench.cpp - speed of a compiled pack against memcpy ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the entries of an artefact (bench/pack.mlir) beside a memcpy of the
// packed size, on one thread, over buffers that were touched before. The rate
// of each is (bytes read + bytes written) / time; scripts/bench forms the
// ratios.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Runtime/Runtime.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string &message) {
  std::fprintf(stderr, "pack-bench: %s\n", message.c_str());
  std::exit(1);
}

/// Bytes of `tensor<6144x2048xbf16>`.
int64_t bytesOf(llvm::StringRef type) {
  if (!type.consume_front("tensor<") || !type.consume_back(">"))
    fail("the manifest has the type '" + type.str() + "', expected a tensor");
  int64_t bytes = type.ends_with("64")   ? 8
                  : type.ends_with("32") ? 4
                  : type.ends_with("16") ? 2
                                         : 1;
  while (type.contains('x')) {
    auto [size, rest] = type.split('x');
    int64_t elements;
    if (size.getAsInteger(10, elements))
      break;
    bytes *= elements;
    type = rest;
  }
  return bytes;
}

/// A buffer whose pages exist: each byte has been written.
using Buffer = std::unique_ptr<char, void (*)(void *)>;
Buffer touched(int64_t bytes) {
  auto *data =
      static_cast<char *>(std::aligned_alloc(128, (bytes + 127) / 128 * 128));
  if (!data)
    fail("out of memory");
  // Finite in every dtype: no pattern here is slower than another.
  std::memset(data, 0x3f, bytes);
  return Buffer(data, std::free);
}

/// An entry with its buffers. They are shared between entries where they have
/// the same size, as a program would reuse them.
struct Entry {
  std::string name;
  fsdprtEntry function;
  std::vector<void *> arguments, results;
  int64_t readBytes = 0, writtenBytes = 0;
};

struct Program {
  std::vector<Entry> entries;
  std::vector<Buffer> buffers;
  fsdprtContext *context = nullptr;
  int64_t packedBytes = 0;

  void load(const char *path);
  void allocate(const llvm::json::Array *tensors, std::vector<void *> &pointers,
                int64_t &total);
};

void Program::allocate(const llvm::json::Array *tensors,
                       std::vector<void *> &pointers, int64_t &total) {
  if (!tensors)
    fail("the manifest's entry has no tensors");
  for (const llvm::json::Value &tensor : *tensors) {
    int64_t bytes =
        bytesOf(tensor.getAsObject()->getString("type").value_or("nothing"));
    buffers.push_back(touched(bytes));
    pointers.push_back(buffers.back().get());
    total += bytes;
  }
}

void Program::load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail(dlerror());
  auto *abi =
      static_cast<const int32_t *>(dlsym(library, FSDPRT_ARTEFACT_ABI_SYMBOL));
  auto *manifest = static_cast<const char *>(
      dlsym(library, FSDPRT_ARTEFACT_MANIFEST_SYMBOL));
  if (!abi || !manifest || *abi != fsdprtAbiVersion())
    fail(std::string(path) + " is not an artefact of this ABI version");
  llvm::json::Value json = llvm::cantFail(llvm::json::parse(manifest));
  for (const llvm::json::Value &value :
       *json.getAsObject()->getArray("entries")) {
    const llvm::json::Object &object = *value.getAsObject();
    Entry entry;
    entry.name = object.getString("name")->str();
    std::string symbol = FSDPRT_ARTEFACT_ENTRY_PREFIX + entry.name;
    entry.function =
        reinterpret_cast<fsdprtEntry>(dlsym(library, symbol.c_str()));
    if (!entry.function)
      fail("the artefact has no entry '" + entry.name + "'");
    allocate(object.getArray("args"), entry.arguments, entry.readBytes);
    allocate(object.getArray("results"), entry.results, entry.writtenBytes);
    packedBytes = std::max(packedBytes, entry.writtenBytes);
    entries.push_back(std::move(entry));
  }
  // No entry communicates, so a world of one rank will do.
  const int64_t gridShape[] = {1};
  fsdprtOptions options = {};
  options.gridShape = gridShape;
  options.gridAxes = 1;
  char message[256];
  if (fsdprtCreateLocal(&options, &context, message, sizeof(message)) ||
      fsdprtStart(context, "bench"))
    fail(message);
}

void runEntry(benchmark::State &state, Program &program, const Entry &entry) {
  for (auto _ : state)
    if (fsdprtRun(program.context, entry.function, entry.arguments.data(),
                  entry.results.data())) {
      state.SkipWithError(fsdprtMessage(program.context));
      break;
    }
  state.SetBytesProcessed(state.iterations() *
                          (entry.readBytes + entry.writtenBytes));
}

void runCopy(benchmark::State &state, char *to, const char *from,
             int64_t bytes) {
  for (auto _ : state) {
    std::memcpy(to, from, bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 2 * bytes);
}

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (argc != 2)
    fail("usage: pack-bench [--benchmark_...] ARTEFACT");
  Program program;
  program.load(argv[1]);
  Buffer from = touched(program.packedBytes), to = touched(program.packedBytes);
  benchmark::RegisterBenchmark("copy", [&](benchmark::State &state) {
    runCopy(state, to.get(), from.get(), program.packedBytes);
  })->Unit(benchmark::kMillisecond);
  for (const Entry &entry : program.entries)
    benchmark::RegisterBenchmark(
        entry.name.c_str(),
        [&](benchmark::State &state) { runEntry(state, program, entry); })
        ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
  fsdprtDestroy(program.context);
  return 0;
}

//===- DeviceCuda.cpp - buffers and kernels of an NVIDIA GPU --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything happens on one stream. So a buffer may be freed, and its memory
// used again, while the kernel that reads it has not even begun; nothing waits
// but finish and the copies.
//
// A module is loaded when its first kernel is launched, once per device. After
// that a launch asks the driver for nothing and allocates nothing: it can be
// captured in a graph. The launch that loads cannot, and says so.
//
//===----------------------------------------------------------------------===//

#include "Device/DeviceCuda.h"

#include <chrono>
#include <thread>

using namespace fsdprt;

Status DeviceCuda::failure(const char *call, cuda::Result result) const {
  if (result == cuda::errorOutOfMemory)
    return {FSDPRT_OUT_OF_MEMORY, api->describe(call, result)};
  return {FSDPRT_DEVICE_ERROR, name + ": " + api->describe(call, result)};
}

/// Returns from the function with the failure of a call of the driver.
#define TRY(function, ...)                                                     \
  if (cuda::Result result = api->function(__VA_ARGS__))                        \
  return failure(#function, result)

//===----------------------------------------------------------------------===//
// Open and close
//===----------------------------------------------------------------------===//

Status DeviceCuda::create(const cuda::Api &api, int64_t ordinal,
                          cuda::Stream stream, Log log,
                          std::unique_ptr<DeviceCuda> &device) {
  std::unique_ptr<DeviceCuda> result(
      new DeviceCuda(api, stream, std::move(log)));
  if (Status status = result->open(ordinal); status.failed())
    return status;
  device = std::move(result);
  return {};
}

Status DeviceCuda::open(int64_t ordinal) {
  name = "device " + std::to_string(ordinal);
  int count = 0, major = 0, minor = 0, pools = 0;
  TRY(cuDeviceGetCount, &count);
  if (ordinal < 0 || ordinal >= count)
    return {FSDPRT_INVALID_ARGUMENT,
            "there is no cuda device " + std::to_string(ordinal) +
                ", expected one of the " + std::to_string(count) +
                " that this process can see"};
  TRY(cuDeviceGet, &number, static_cast<int>(ordinal));
  char product[128] = "";
  TRY(cuDeviceGetName, product, sizeof(product), number);
  TRY(cuDeviceGetAttribute, &major, cuda::attributeCapabilityMajor, number);
  TRY(cuDeviceGetAttribute, &minor, cuda::attributeCapabilityMinor, number);
  TRY(cuDeviceGetAttribute, &pools, cuda::attributeMemoryPools, number);
  name += " (" + std::string(product) + ", sm_" + std::to_string(major) +
          std::to_string(minor) + ")";
  if (!pools)
    return {FSDPRT_INVALID_ARGUMENT,
            name + " cannot allocate in the order of a stream"};
  TRY(cuDevicePrimaryCtxRetain, &context, number);
  Scope scope(*this);
  if (ownsStream)
    TRY(cuStreamCreate, &stream, cuda::streamNonBlocking);
  TRY(cuEventCreate, &done, cuda::eventDisableTiming);
  // Memory that has been freed stays with the pool: a step allocates what the
  // one before did. The process' default pool is left as others want it.
  cuda::PoolProperties properties = {};
  properties.allocation = cuda::allocationPinned;
  properties.location = {cuda::locationDevice, number};
  uint64_t everything = UINT64_MAX;
  TRY(cuMemPoolCreate, &pool, &properties);
  TRY(cuMemPoolSetAttribute, pool, cuda::poolReleaseThreshold, &everything);
  return {};
}

DeviceCuda::~DeviceCuda() {
  if (!context)
    return;
  {
    Scope scope(*this);
    for (auto &[bytes, image] : images)
      api->cuLibraryUnload(image->library);
    if (done)
      api->cuEventDestroy(done);
    // What a caller's stream has still to free goes with the pool then.
    if (pool)
      api->cuMemPoolDestroy(pool);
    if (stream && ownsStream)
      api->cuStreamDestroy(stream);
  }
  api->cuDevicePrimaryCtxRelease(number);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Below this a copy inside the communication library costs nothing.
static constexpr int64_t leastBlock = 1 << 20;

/// Blocks of the source come in whole units, so that sizes that differ by a
/// little share them.
static constexpr int64_t blockUnit = 2 << 20;

void DeviceCuda::setSource(Source from) { source = std::move(from); }

void DeviceCuda::dropSource() {
  Scope scope(*this);
  for (auto block = blocks.begin(); block != blocks.end();) {
    auto next = std::next(block);
    if (!block->second.used) {
      source.give(block->first);
      blocks.erase(block);
    }
    block = next;
  }
}

Status DeviceCuda::takeBlock(int64_t bytes, void *&data) {
  bytes = (bytes + blockUnit - 1) / blockUnit * blockUnit;
  for (auto &[address, block] : blocks)
    if (!block.used && block.bytes == bytes) {
      block.used = true;
      data = address;
      return {};
    }
  RelaxedCapture relaxed(*api);
  data = source.take(bytes);
  if (!data && !blocks.empty()) {
    if (Status status = dropUnused(); status.failed())
      return status;
    data = source.take(bytes);
  }
  if (data)
    blocks.insert({data, {bytes, true}});
  return {};
}

/// Gives blocks that nobody uses back, once no work uses them.
Status DeviceCuda::dropUnused() {
  if (Status status = finish([] { return Status(); }); status.failed())
    return status;
  dropSource();
  return {};
}

void *DeviceCuda::blockOf(const void *data, int64_t &bytes) const {
  auto next = blocks.upper_bound(const_cast<void *>(data));
  if (next == blocks.begin())
    return nullptr;
  auto [base, block] = *std::prev(next);
  bytes = block.bytes;
  return static_cast<const char *>(data) < static_cast<char *>(base) + bytes
             ? base
             : nullptr;
}

Status DeviceCuda::allocate(int64_t bytes, void *&data) {
  Scope scope(*this);
  if (source.take && bytes >= leastBlock && !isCapturing()) {
    if (Status status = takeBlock(bytes, data); status.failed() || data)
      return status;
    // There may be some another time, when other buffers are gone.
    if (!saidNoBlock)
      log(name + ": no memory from the communication library for " +
          std::to_string(bytes) + " bytes, this buffer will be copied");
    saidNoBlock = true;
  }
  cuda::Address address = 0;
  size_t size = bytes > 0 ? bytes : 1;
  cuda::Result result =
      api->cuMemAllocFromPoolAsync(&address, size, pool, stream);
  if (result == cuda::errorOutOfMemory && !blocks.empty() && !isCapturing()) {
    if (Status status = dropUnused(); status.failed())
      return status;
    result = api->cuMemAllocFromPoolAsync(&address, size, pool, stream);
  }
  if (result)
    return failure("cuMemAllocFromPoolAsync", result);
  data = reinterpret_cast<void *>(address);
  return {};
}

void DeviceCuda::free(void *data) {
  auto block = blocks.find(data);
  if (block != blocks.end()) {
    block->second.used = false;
    return;
  }
  Scope scope(*this);
  api->cuMemFreeAsync(reinterpret_cast<cuda::Address>(data), stream);
}

Status DeviceCuda::copy(void *to, const void *from, int64_t bytes) {
  Scope scope(*this);
  TRY(cuMemcpyDtoDAsync, reinterpret_cast<cuda::Address>(to),
      reinterpret_cast<cuda::Address>(from), bytes, stream);
  return {};
}

Status DeviceCuda::upload(const void *host, int64_t bytes, void *&data) {
  // What a graph allocates is the graph's.
  if (isCapturing())
    return {FSDPRT_INVALID_ARGUMENT,
            name + " does not have it yet, and a graph is being captured: "
                   "expected that the entry has run before"};
  if (Status status = allocate(bytes, data); status.failed())
    return status;
  if (bytes == 0)
    return {};
  Scope scope(*this);
  if (cuda::Result result = api->cuMemcpyHtoDAsync(
          reinterpret_cast<cuda::Address>(data), host, bytes, stream)) {
    free(data);
    return failure("cuMemcpyHtoDAsync", result);
  }
  return {};
}

Status DeviceCuda::copyIn(void *data, const void *host, int64_t bytes) {
  Scope scope(*this);
  TRY(cuMemcpyHtoDAsync, reinterpret_cast<cuda::Address>(data), host, bytes,
      stream);
  return finish([] { return Status(); });
}

Status DeviceCuda::copyOut(void *host, const void *data, int64_t bytes) {
  Scope scope(*this);
  TRY(cuMemcpyDtoHAsync, host, reinterpret_cast<cuda::Address>(data), bytes,
      stream);
  return finish([] { return Status(); });
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

bool DeviceCuda::isCapturing() const {
  int status = 0;
  return api->cuStreamIsCapturing(stream, &status) == cuda::success &&
         status != 0;
}

Status DeviceCuda::requireDriver(int version) {
  if (api->version >= version)
    return {};
  return {FSDPRT_DEVICE_ERROR,
          "the artefact needs a driver of CUDA " +
              cuda::describeVersion(version) + " or newer, but that of " +
              name + " is of CUDA " + cuda::describeVersion(api->version)};
}

Status DeviceCuda::findKernel(const Launch &launch, cuda::Function &function) {
  auto known = functions.find({launch.image, launch.kernel});
  if (known != functions.end()) {
    function = known->second;
    return {};
  }
  const std::string what = "kernel '" + launch.kernel + "': ";
  if (isCapturing())
    return {FSDPRT_INVALID_ARGUMENT,
            what + "not loaded yet while a graph is captured, expected an "
                   "entry that has run once before"};
  RelaxedCapture relaxed(*api);
  if (Status status = loadKernel(launch, function); status.failed()) {
    status.message = what + status.message;
    return status;
  }
  functions.insert({{launch.image, launch.kernel}, function});
  return {};
}

Status DeviceCuda::loadKernel(const Launch &launch, cuda::Function &function) {
  std::unique_ptr<Image> &image = images[launch.image];
  const bool isNew = !image;
  if (isNew)
    image = std::make_unique<Image>();
  // Whichever of the calls it is that compiles.
  auto loadFailure = [&](const char *call, cuda::Result result) {
    Status status = failure(call, result);
    if (result == cuda::errorNoBinaryForGpu)
      status.message += "; the artefact was compiled for other chips";
    if (*image->log)
      status.message += "; " + std::string(image->log);
    return status;
  };
  if (isNew)
    if (cuda::Result result = api->cuLibraryLoadData(
            &image->library, launch.image, image->options, image->values, 2,
            nullptr, nullptr, 0)) {
      Status status = loadFailure("cuLibraryLoadData", result);
      images.erase(launch.image);
      return status;
    }
  cuda::Kernel kernel = nullptr;
  if (cuda::Result result = api->cuLibraryGetKernel(&kernel, image->library,
                                                    launch.kernel.c_str()))
    return loadFailure("cuLibraryGetKernel", result);
  // Loads what the driver has been too lazy for, so that no launch has to.
  if (cuda::Result result = api->cuKernelGetFunction(&function, kernel))
    return loadFailure("cuKernelGetFunction", result);
  // The driver copies as many bytes as the kernel declares, whatever there is.
  if (!api->cuKernelGetParamInfo)
    return {};
  const int64_t expected[] = {launch.addressBytes, sizeof(void *)};
  for (size_t i = 0; i < 2; ++i) {
    size_t offset = 0, size = 0;
    cuda::Result result = api->cuKernelGetParamInfo(kernel, i, &offset, &size);
    // Of some images the driver cannot tell.
    if (result && result != cuda::errorInvalidValue)
      break;
    if (result || static_cast<int64_t>(size) != expected[i])
      return {FSDPRT_INVALID_ARGUMENT,
              "parameter " + std::to_string(i) +
                  (result ? " is missing"
                          : " has " + std::to_string(size) + " bytes") +
                  ", expected " + std::to_string(expected[i]) + " bytes"};
  }
  return {};
}

Status DeviceCuda::launch(const Launch &launch) {
  Scope scope(*this);
  cuda::Function function = nullptr;
  if (Status status = findKernel(launch, function); status.failed())
    return status;
  cuda::LaunchConfig config = {};
  config.gridX = static_cast<unsigned>(launch.blocksX);
  config.gridY = static_cast<unsigned>(launch.blocksY);
  config.gridZ = 1;
  config.blockX = static_cast<unsigned>(launch.threads);
  config.blockY = config.blockZ = 1;
  config.stream = stream;
  void *bucket = launch.bucket;
  void *parameters[] = {const_cast<void *>(launch.addresses), &bucket};
  if (cuda::Result result =
          api->cuLaunchKernelEx(&config, function, parameters, nullptr)) {
    Status status = failure("cuLaunchKernelEx", result);
    status.message =
        "launch of kernel '" + launch.kernel + "': " + status.message;
    return status;
  }
  return {};
}

Status DeviceCuda::finish(const std::function<Status()> &check) {
  using Clock = std::chrono::steady_clock;
  Scope scope(*this);
  // Whoever records a graph asks for nothing to be done now.
  if (isCapturing())
    return {};
  RelaxedCapture relaxed(*api); // of others
  TRY(cuEventRecord, done, stream);
  const Clock::time_point begin = Clock::now();
  while (true) {
    cuda::Result result = api->cuEventQuery(done);
    // Work that has been aborted is done too: ask in any case.
    if (result == cuda::success)
      return check();
    if (result != cuda::errorNotReady)
      return failure("cuEventQuery", result);
    if (Status status = check(); status.failed())
      return status;
    // Short work is not worth a sleep, long work not worth a processor.
    if (Clock::now() - begin > std::chrono::milliseconds(2))
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    else
      std::this_thread::yield();
  }
}

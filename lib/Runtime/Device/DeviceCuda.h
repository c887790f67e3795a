//===- DeviceCuda.h - buffers and kernels of an NVIDIA GPU ------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_DEVICE_DEVICECUDA_H
#define FSDP_LIB_RUNTIME_DEVICE_DEVICECUDA_H

#include "Device/Cuda.h"
#include "Device/Device.h"

#include <map>
#include <unordered_map>

namespace fsdprt {

/// One GPU and one stream, on which everything that a rank asks for happens in
/// order.
class DeviceCuda final : public Device {
public:
  /// Makes the context of GPU `ordinal` current, as long as it lives. Every
  /// function of the driver needs one, on whatever thread.
  class Scope {
  public:
    explicit Scope(const DeviceCuda &device) : api(*device.api) {
      api.cuCtxPushCurrent(device.context);
    }
    ~Scope() {
      cuda::Context popped;
      api.cuCtxPopCurrent(&popped);
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    const cuda::Api &api;
  };

  /// Lets this thread ask the driver for things that have nothing to do with
  /// any stream (events, modules, memory) while another thread, or the caller
  /// on this one, records a graph. In the mode that threads start with, such a
  /// call fails and breaks a recording in the global mode, which is the usual
  /// one.
  class RelaxedCapture {
  public:
    explicit RelaxedCapture(const cuda::Api &api) : api(api) {
      api.cuThreadExchangeStreamCaptureMode(&mode);
    }
    ~RelaxedCapture() { api.cuThreadExchangeStreamCaptureMode(&mode); }
    RelaxedCapture(const RelaxedCapture &) = delete;
    RelaxedCapture &operator=(const RelaxedCapture &) = delete;

  private:
    const cuda::Api &api;
    int mode = cuda::captureModeRelaxed;
  };

  /// Where large buffers come from instead of the driver: from a library that
  /// can send them without a copy. They are kept when they are freed, for the
  /// next one of their size. `take` returns null when it cannot: then blocks
  /// that are free are given back, and it is asked again.
  struct Source {
    std::function<void *(int64_t bytes)> take;
    std::function<void(void *data)> give;
  };

  /// On the caller's `stream`, or on one of its own if that is null.
  static Status create(const cuda::Api &api, int64_t ordinal,
                       cuda::Stream stream, Log log,
                       std::unique_ptr<DeviceCuda> &device);
  ~DeviceCuda() override;

  Status allocate(int64_t bytes, void *&data) override;
  void free(void *data) override;
  Status requireDriver(int version) override;
  Status launch(const Launch &launch) override;
  Status copy(void *to, const void *from, int64_t bytes) override;
  Status upload(const void *host, int64_t bytes, void *&data) override;
  Status copyIn(void *data, const void *host, int64_t bytes) override;
  Status copyOut(void *host, const void *data, int64_t bytes) override;
  Status finish(const std::function<Status()> &check) override;

  const cuda::Api &driver() const { return *api; }
  cuda::Stream getStream() const { return stream; }

  /// True while a graph is recorded instead of work being done.
  bool isCapturing() const;

  void setSource(Source source);

  /// Gives back what the source has given, but for buffers in use.
  void dropSource();

  /// The block of the source that `data` points into, null if there is none.
  void *blockOf(const void *data, int64_t &bytes) const;

private:
  DeviceCuda(const cuda::Api &api, cuda::Stream stream, Log log)
      : api(&api), log(std::move(log)), ownsStream(!stream), stream(stream) {}
  Status open(int64_t ordinal);
  Status failure(const char *call, cuda::Result result) const;
  Status findKernel(const Launch &launch, cuda::Function &function);
  Status loadKernel(const Launch &launch, cuda::Function &function);
  Status takeBlock(int64_t bytes, void *&data);
  Status dropUnused();

  struct Block {
    int64_t bytes;
    bool used;
  };

  /// A module. The driver may compile it as late as when its first kernel is
  /// asked for, and writes what it has to say into the log even then.
  struct Image {
    cuda::Library library = nullptr;
    char log[2048] = "";
    int options[2] = {cuda::jitErrorLog, cuda::jitErrorLogBytes};
    void *values[2] = {log, reinterpret_cast<void *>(sizeof(log))};
  };

  const cuda::Api *const api;
  const Log log;
  std::string name; ///< "device 0 (NVIDIA H100, sm_90)"
  cuda::DeviceNumber number = -1;
  cuda::Context context = nullptr;
  const bool ownsStream;
  cuda::Stream stream;
  cuda::MemoryPool pool = nullptr;
  cuda::Event done = nullptr; ///< for finish
  /// By their bytes. An image does not move, the driver knows where it is.
  std::unordered_map<const void *, std::unique_ptr<Image>> images;
  std::map<std::pair<const void *, std::string>, cuda::Function> functions;
  Source source;
  bool saidNoBlock = false;
  std::map<void *, Block> blocks; ///< of the source
};

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_DEVICE_DEVICECUDA_H

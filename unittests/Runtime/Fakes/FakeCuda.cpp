//===- FakeCuda.cpp - the driver's functions on the host ------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeState.h"
#include "Interpreter.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <unistd.h>

using namespace fsdprt;
using namespace fsdprt::cuda;
using fake::FakeStream;
using fake::state;

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

fake::State &fake::state() {
  static State instance;
  return instance;
}

extern "C" fake::Control *fsdpFakeControl() { return &state(); }

using Lock = std::lock_guard<std::recursive_mutex>;

void fake::State::reset() {
  Lock lock(mutex);
  removeFolders();
  rangeText.clear();
  records.clear();
  faults.clear();
  called.clear();
  kernels.clear();
  asyncError = 0;
  broken = 0;
  nextStream = 0;
  capturing = foreignCapture = false;
  broke.clear();
  hanging.clear();
}

std::string fake::State::record(int stream) {
  Lock lock(mutex);
  return records[stream];
}

void fake::State::fail(const char *function, int call, int code) {
  Lock lock(mutex);
  faults[function] = {call, code};
  called[function] = 0;
}

int fake::State::calls(const char *function) {
  Lock lock(mutex);
  return called[function];
}

void fake::State::setAsyncError(int code) {
  Lock lock(mutex);
  asyncError = code;
}

void fake::State::setKernel(const char *name, KernelBody body) {
  Lock lock(mutex);
  kernels[name] = body;
}

void fake::State::setCapturing(bool now) {
  Lock lock(mutex);
  capturing = now;
}

void fake::State::setForeignCapture(bool now) {
  Lock lock(mutex);
  foreignCapture = now;
}

std::string fake::State::brokeCapture() {
  Lock lock(mutex);
  return broke;
}

void fake::State::hang(const char *function) {
  Lock lock(mutex);
  hanging = function;
}

std::string fake::State::ranges() {
  Lock lock(mutex);
  return rangeText;
}

std::string fake::State::alive() {
  Lock lock(mutex);
  std::string text;
  for (auto &[kind, count] : live)
    if (count != 0)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
  return text;
}

void fake::State::note(const FakeStream *stream, const std::string &line) {
  records[stream->number] += line + "\n";
  const char *path = std::getenv("FSDP_FAKE_RECORD");
  if (!path)
    return;
  std::string name = path + std::to_string(getpid());
  if (std::FILE *file = std::fopen(name.c_str(), "a")) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

int fake::State::fault(const std::string &function) {
  ++called[function];
  auto it = faults.find(function);
  if (it == faults.end() || --it->second.first != 0)
    return 0;
  int code = it->second.second;
  faults.erase(it);
  return code;
}

static thread_local int captureMode = 0; // global, as threads start

int fake::State::unsafe(const std::string &function) {
  if (int code = fault(function))
    return code;
  if (!foreignCapture || captureMode == captureModeRelaxed)
    return 0;
  broke += (broke.empty() ? "" : " ") + function;
  return errorCaptureUnsupported;
}

void fake::State::pump() {
  for (bool progress = true; progress;) {
    progress = false;
    for (FakeStream *stream : streams)
      while (!stream->work.empty() && stream->work.front()()) {
        stream->work.pop_front();
        progress = true;
      }
  }
}

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

namespace {

struct FakeEvent {
  bool reached = true;
};

/// "fake: name=48,8 name=..." lists kernels with the sizes of their parameters,
/// PTX says them itself, and what a binary holds nobody here can tell.
struct FakeLibrary {
  std::shared_ptr<const std::string> text = std::make_shared<std::string>();
  bool binary = false;
  char *log = nullptr; ///< the caller's, for as long as the library is loaded
  size_t logBytes = 0;
};

struct FakeKernel {
  std::string name;
  std::vector<size_t> sizes; ///< none: not known
  std::shared_ptr<const std::string> text;
  FakeLibrary *library = nullptr; ///< until it is compiled
};

FakeStream *of(Stream stream) { return reinterpret_cast<FakeStream *>(stream); }

template <typename T>
T parse(const std::string &text, size_t at) {
  return static_cast<T>(std::strtoull(text.c_str() + at, nullptr, 10));
}

/// Reads the parameters of an .entry of PTX: `.param .align 8 .b8 x[48]` is an
/// array of bytes, anything else one word.
std::vector<size_t> sizesInPtx(const std::string &text, size_t begin) {
  std::vector<size_t> sizes;
  std::string list = text.substr(begin, text.find(')', begin) - begin);
  for (size_t at = 0; (at = list.find(".param", at)) != std::string::npos;) {
    size_t end = std::min(list.find(".param", at + 6), list.size());
    size_t bracket = list.find('[', at);
    sizes.push_back(bracket < end ? parse<size_t>(list, bracket + 1) : 8);
    at = end;
  }
  return sizes;
}

/// The version of PTX in tenths, 0 of what is none.
int versionOfPtx(const std::string &text) {
  const std::string word = ".version ";
  size_t at = text.find(word);
  if (at == std::string::npos)
    return 0;
  int major = parse<int>(text, at += word.size());
  return 10 * major + parse<int>(text, text.find('.', at) + 1);
}

/// The first CUDA whose driver compiles a version of PTX: 8.0 came with 12.0,
/// 8.6 with 12.7, 9.0 with 13.0.
int cudaOfPtx(int version) {
  return (version / 10 + 4) * 1000 +
         (version % 10 + (version >= 86 && version < 90)) * 10;
}

/// True if a kernel has more parameters than its version of PTX allows.
bool hasTooManyParameters(const std::string &text) {
  const size_t most = versionOfPtx(text) < 81 ? 4352 : 32764;
  for (size_t at = 0; (at = text.find(".entry ", at)) != std::string::npos;
       ++at) {
    size_t sum = 0;
    for (size_t size : sizesInPtx(text, at))
      sum += size;
    if (sum > most)
      return true;
  }
  return false;
}

/// Work for the interpreter; a kernel that does wrong breaks the device.
void interpret(const fake::InterpretedLaunch &launch) {
  std::string problem = fake::Interpreter::get()->run(launch, state().buffers);
  if (problem.empty())
    return;
  std::fprintf(stderr, "fake GPU: kernel '%s': %s\n", launch.kernel.c_str(),
               problem.c_str());
  state().broken = 719; // CUDA_ERROR_LAUNCH_FAILED
}

int versionOf(const char *variable, int usual) {
  const char *text = std::getenv(variable);
  return text ? std::atoi(text) : usual;
}

int cudaVersion() { return versionOf("FSDP_FAKE_CUDA_VERSION", 13000); }

constexpr Result errorInvalidPtx = 218;
constexpr Result errorUnsupportedPtx = 222;

} // namespace

extern "C" {

Result cuInit(unsigned) {
  FAULT(cuInit);
  return success;
}

Result cuDriverGetVersion(int *version) {
  *version = cudaVersion();
  return success;
}

Result cuGetErrorName(Result error, const char **text) {
  *text = error == errorOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == errorNoBinaryForGpu ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : error == errorInvalidPtx     ? "CUDA_ERROR_INVALID_PTX"
          : error == errorUnsupportedPtx ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
          : error == errorNotFound       ? "CUDA_ERROR_NOT_FOUND"
                                         : nullptr;
  return success;
}

Result cuGetErrorString(Result error, const char **text) {
  *text = error == errorOutOfMemory ? "out of memory" : nullptr;
  return success;
}

Result cuDeviceGetCount(int *count) {
  *count = versionOf("FSDP_FAKE_DEVICES", 8);
  return success;
}

Result cuDeviceGet(DeviceNumber *device, int ordinal) {
  *device = ordinal;
  return success;
}

Result cuDeviceGetName(char *name, int size, DeviceNumber) {
  std::snprintf(name, size, "Fake GPU");
  return success;
}

Result cuDeviceGetAttribute(int *value, int attribute, DeviceNumber) {
  *value = attribute == attributeCapabilityMajor ? 9
           : attribute == attributeMemoryPools   ? 1
                                                 : 0;
  return success;
}

Result cuDevicePrimaryCtxRetain(Context *context, DeviceNumber device) {
  FAULT(cuDevicePrimaryCtxRetain);
  ++state().live["contexts"];
  *context = reinterpret_cast<Context>(intptr_t(device) + 1);
  return success;
}

Result cuDevicePrimaryCtxRelease_v2(DeviceNumber) {
  Lock lock(state().mutex);
  --state().live["contexts"];
  return success;
}

static thread_local int contextDepth = 0;

Result cuCtxPushCurrent_v2(Context) {
  ++contextDepth;
  return success;
}

Result cuCtxPopCurrent_v2(Context *context) {
  --contextDepth;
  *context = nullptr;
  return success;
}

Result cuStreamCreate(Stream *stream, unsigned) {
  FAULT(cuStreamCreate);
  auto *made = new FakeStream();
  made->number = state().nextStream++;
  state().streams.push_back(made);
  ++state().live["streams"];
  *stream = reinterpret_cast<Stream>(made);
  return contextDepth > 0 ? success : 201; // no context is current
}

Result cuStreamDestroy_v2(Stream stream) {
  Lock lock(state().mutex);
  state().pump();
  auto &streams = state().streams;
  for (size_t i = 0; i < streams.size(); ++i)
    if (streams[i] == of(stream))
      streams.erase(streams.begin() + i--);
  delete of(stream);
  --state().live["streams"];
  return success;
}

Result cuStreamIsCapturing(Stream, int *status) {
  Lock lock(state().mutex);
  *status = state().capturing;
  return success;
}

Result cuThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(*mode, captureMode);
  return success;
}

Result cuEventCreate(Event *event, unsigned) {
  FAULT(cuEventCreate);
  ++state().live["events"];
  *event = reinterpret_cast<Event>(new FakeEvent());
  return success;
}

Result cuEventRecord(Event event, Stream stream) {
  FAULT(cuEventRecord);
  if (state().capturing)
    return errorCaptureUnsupported;
  auto *recorded = reinterpret_cast<FakeEvent *>(event);
  recorded->reached = false;
  of(stream)->work.push_back([recorded] { return recorded->reached = true; });
  return success;
}

Result cuEventQuery(Event event) {
  UNSAFE(cuEventQuery);
  state().pump();
  if (state().broken)
    return state().broken;
  return reinterpret_cast<FakeEvent *>(event)->reached ? success
                                                       : errorNotReady;
}

Result cuEventDestroy_v2(Event event) {
  Lock lock(state().mutex);
  state().pump();
  delete reinterpret_cast<FakeEvent *>(event);
  --state().live["events"];
  return success;
}

Result cuMemAllocFromPoolAsync(Address *address, size_t bytes, MemoryPool pool,
                               Stream stream) {
  FAULT(cuMemAllocFromPoolAsync);
  if (!pool)
    return errorInvalidValue;
  state().note(of(stream), "alloc " + std::to_string(bytes));
  void *data = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  // Where kernels really run, nothing may live on memory that happens to be 0.
  std::memset(data, fake::Interpreter::get() ? 0xA5 : 0,
              (bytes + 511) / 512 * 512);
  state().buffers[reinterpret_cast<uintptr_t>(data)] = bytes;
  ++state().live["buffers"];
  *address = reinterpret_cast<Address>(data);
  return success;
}

Result cuMemFreeAsync(Address address, Stream stream) {
  Lock lock(state().mutex);
  state().note(of(stream), "free");
  of(stream)->work.push_back([address] {
    state().buffers.erase(address);
    std::free(reinterpret_cast<void *>(address));
    --state().live["buffers"];
    return true;
  });
  state().pump();
  return success;
}

Result cuMemPoolCreate(MemoryPool *pool, const PoolProperties *properties) {
  UNSAFE(cuMemPoolCreate);
  if (properties->allocation != allocationPinned ||
      properties->location.type != locationDevice || properties->maxBytes)
    return errorInvalidValue;
  ++state().live["pools"];
  *pool = reinterpret_cast<MemoryPool>(intptr_t(properties->location.id) + 1);
  return success;
}

Result cuMemPoolDestroy(MemoryPool) {
  Lock lock(state().mutex);
  --state().live["pools"];
  return success;
}

/// There is no other attribute in use, and on no pool but our own.
Result cuMemPoolSetAttribute(MemoryPool pool, int attribute, void *) {
  return pool && attribute == poolReleaseThreshold ? success
                                                   : errorInvalidValue;
}

Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes,
                            Stream stream) {
  FAULT(cuMemcpyHtoDAsync_v2);
  state().note(of(stream), "copy in " + std::to_string(bytes));
  of(stream)->work.push_back([=] {
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    return true;
  });
  return success;
}

Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes,
                            Stream stream) {
  FAULT(cuMemcpyDtoDAsync_v2);
  state().note(of(stream), "copy " + std::to_string(bytes));
  of(stream)->work.push_back([=] {
    std::memcpy(reinterpret_cast<void *>(to),
                reinterpret_cast<const void *>(from), bytes);
    return true;
  });
  return success;
}

Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes,
                            Stream stream) {
  FAULT(cuMemcpyDtoHAsync_v2);
  state().note(of(stream), "copy out " + std::to_string(bytes));
  of(stream)->work.push_back([=] {
    std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
    return true;
  });
  return success;
}

Result cuLibraryLoadData(Library *library, const void *code, int *options,
                         void **values, unsigned count, int *, void **,
                         unsigned) {
  UNSAFE(cuLibraryLoadData);
  const char *text = static_cast<const char *>(code);
  // An ELF file, or the magic number of a fat binary.
  bool binary = std::memcmp(text, "\177ELF", 4) == 0 ||
                static_cast<unsigned char>(*text) == 0x50;
  if (!binary && cudaOfPtx(versionOfPtx(text)) > cudaVersion())
    return errorUnsupportedPtx;
  if (!binary && hasTooManyParameters(text))
    return errorInvalidPtx;
  auto *made = new FakeLibrary();
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == jitErrorLog)
      made->log = static_cast<char *>(values[i]);
    if (options[i] == jitErrorLogBytes)
      made->logBytes = reinterpret_cast<size_t>(values[i]);
  }
  made->binary = binary;
  if (!binary)
    made->text = std::make_shared<std::string>(text);
  ++state().live["libraries"];
  *library = reinterpret_cast<Library>(made);
  return success;
}

Result cuLibraryUnload(Library library) {
  Lock lock(state().mutex);
  delete reinterpret_cast<FakeLibrary *>(library);
  --state().live["libraries"];
  return success;
}

Result cuLibraryGetKernel(Kernel *kernel, Library library, const char *name) {
  FAULT(cuLibraryGetKernel);
  const auto &from = *reinterpret_cast<FakeLibrary *>(library);
  // Kernels live as long as the fake: there are few.
  static std::deque<FakeKernel> kernels;
  const std::string &text = *from.text;
  FakeKernel made = {
      name, {}, from.text, reinterpret_cast<FakeLibrary *>(library)};
  if (text.rfind("fake:", 0) == 0) {
    std::string key = " " + std::string(name) + "=";
    size_t at = text.find(key);
    if (at == std::string::npos)
      return errorNotFound;
    at += key.size();
    made.sizes = {parse<size_t>(text, at),
                  parse<size_t>(text, text.find(',', at) + 1)};
  } else if (!from.binary) {
    size_t at = text.find(".entry " + std::string(name) + "(");
    if (at == std::string::npos)
      return errorNotFound;
    made.sizes = sizesInPtx(text, at);
  }
  kernels.push_back(std::move(made));
  *kernel = reinterpret_cast<Kernel>(&kernels.back());
  return success;
}

/// Compiles, as a driver that loads lazily does: as late as this.
Result cuKernelGetFunction(Function *function, Kernel kernel) {
  Lock lock(state().mutex);
  auto &of = *reinterpret_cast<FakeKernel *>(kernel);
  if (int code = state().unsafe("cuKernelGetFunction")) {
    if (of.library->log)
      std::snprintf(of.library->log, of.library->logBytes,
                    "fatal: the fake compiles no %s", of.name.c_str());
    return code;
  }
  *function = reinterpret_cast<Function>(kernel);
  return success;
}

Result cuKernelGetParamInfo(Kernel kernel, size_t index, size_t *offset,
                            size_t *size) {
  const auto &of = *reinterpret_cast<FakeKernel *>(kernel);
  if (of.sizes.empty())
    return 801; // not supported
  if (index >= of.sizes.size())
    return 1; // invalid value
  *offset = 0;
  *size = of.sizes[index];
  return success;
}

Result cuLaunchKernelEx(const LaunchConfig *config, Function function,
                        void **parameters, void **) {
  FAULT(cuLaunchKernelEx);
  const auto &kernel = *reinterpret_cast<FakeKernel *>(function);
  size_t bytes = kernel.sizes.empty() ? 0 : kernel.sizes[0];
  state().note(of(config->stream),
               "launch " + kernel.name + " " + std::to_string(config->gridX) +
                   "x" + std::to_string(config->gridY) + " blocks of " +
                   std::to_string(config->blockX) + ", " +
                   std::to_string(bytes) + " bytes of addresses");
  // As the real one: the parameters are read now.
  const char *at = static_cast<const char *>(parameters[0]);
  std::vector<char> addresses(at, at + bytes);
  void *bucket = *static_cast<void **>(parameters[1]);
  auto &work = of(config->stream)->work;
  auto body = state().kernels.find(kernel.name);
  if (body != state().kernels.end()) {
    work.push_back([addresses, bucket, run = body->second] {
      run(addresses.data(), bucket);
      return true;
    });
  } else if (fake::Interpreter::get()) {
    fake::InterpretedLaunch launch = {kernel.text,    kernel.name,
                                      config->gridX,  config->gridY,
                                      config->blockX, {}};
    launch.parameters.resize(bytes / 8);
    std::memcpy(launch.parameters.data(), at, bytes / 8 * 8);
    launch.parameters.push_back(reinterpret_cast<uintptr_t>(bucket));
    work.push_back([launch] {
      interpret(launch);
      return true;
    });
    if (!state().capturing)
      state().pump();
  }
  return success;
}

} // extern "C"

// The fake has the functions that the runtime looks for, with their types.
#define FSDPRT_CUDA(name, symbol, parameters)                                  \
  static_assert(std::is_same_v<decltype(&::symbol), decltype(Api::name)>,      \
                #symbol);
#include "Device/CudaFunctions.def"

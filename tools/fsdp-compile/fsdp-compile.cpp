//===- fsdp-compile.cpp - from IR to a library that runs ------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   fsdp-compile step.mlir --target=cpu -o step.so
//
// fsdp-optimize, fsdp-to-cpu, LLVM, and the linker. The same input gives the
// same bytes, wherever it is compiled.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Support/Interrupt.h"
#include "fsdp/Support/OutOfMemory.h"
#include "fsdp/Support/OutputFile.h"
#include "fsdp/Support/Version.h"
#include "fsdp/Target/Header.h"
#include "fsdp/Target/MachineCode.h"
#include "fsdp/Target/Undefined.h"

#include "fsdp/Codegen/GpuChip.h"
#include "fsdp/Dialect/Fsdp.h"
#include "fsdp/Pipelines/Pipelines.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mlir::fsdp;
namespace cl = llvm::cl;

namespace {
enum class Target { Cpu, Cuda };

/// The command line.
struct Options {
  cl::OptionCategory category{"fsdp-compile options"};
  cl::opt<std::string> input{cl::Positional, cl::init("-"),
                             cl::desc("<input .mlir file>"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("file"),
                              cl::desc("file to write"), cl::cat(category)};
  cl::opt<Target> target{
      "target", cl::desc("machine that the artefact is for"),
      cl::init(Target::Cpu),
      cl::values(clEnumValN(Target::Cpu, "cpu", "x86-64"),
                 clEnumValN(Target::Cuda, "cuda", "x86-64 and a GPU")),
      cl::cat(category)};
  cl::opt<std::string> cpu{
      "cpu", cl::value_desc("name"), cl::init("x86-64-v3"),
      cl::desc("x86-64 level or processor (default x86-64-v3)"),
      cl::cat(category)};
  cl::opt<std::string> chip{"chip", cl::value_desc("name"), cl::init("sm_90"),
                            cl::desc("GPU, with --target=cuda (default sm_90)"),
                            cl::cat(category)};
  cl::opt<bool> emulate{"emulate",
                        cl::desc("run the GPU's kernels on the host, with "
                                 "--target=cuda"),
                        cl::cat(category)};
  cl::opt<OptLevel> optLevel{
      "opt-level", cl::desc("level of fsdp-optimize"),
      cl::init(OptLevel::Packed),
      cl::values(clEnumValN(OptLevel::Explicit, "0", "to stage explicit"),
                 clEnumValN(OptLevel::Packed, "2", "to stage packed")),
      cl::cat(category)};
  cl::opt<CodegenLevel> codegenLevel{
      "codegen-level",
      cl::desc("how much LLVM optimises the host's code; no bit of a result "
               "depends on it"),
      cl::init(CodegenLevel::Full),
      cl::values(clEnumValN(CodegenLevel::None, "0",
                            "nothing: compiles in a fraction of the time"),
                 clEnumValN(CodegenLevel::Full, "2", "default")),
      cl::cat(category)};
  cl::opt<std::string> optimize{"optimize", cl::value_desc("k=v ..."),
                                cl::desc("options of fsdp-optimize"),
                                cl::cat(category)};
  cl::opt<bool> noVerifyCollectives{
      "no-verify-collectives",
      cl::desc("do not prove that all ranks issue the same collectives"),
      cl::cat(category)};
  cl::opt<bool> object{"c", cl::desc("write an object file, do not link"),
                       cl::cat(category)};
  cl::opt<std::string> header{"header", cl::value_desc("file"),
                              cl::desc("write a C header with the entries"),
                              cl::cat(category)};
};
} // namespace

static int fail(const Twine &message) {
  llvm::WithColor::error(llvm::errs(), "fsdp-compile") << message << "\n";
  return 1;
}

/// True if a unit op is left to expand.
static bool hasDeclaredOps(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isa<UnitOpInterface>(op) ? WalkResult::interrupt()
                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Adds what follows from the target. The CPU's collectives read and write
/// buckets of their own, so a bucket of a whole layer would be most of the
/// memory at the peak; smaller ones take no longer.
static void addDefaults(FsdpOptimizeOptions &optimize, const Options &options) {
  constexpr int64_t kMaxBytes = int64_t(256) << 20;
  if (options.target == Target::Cpu && optimize.policy.empty() &&
      optimize.maxBytes.empty() && optimize.maxElements.empty())
    optimize.maxBytes = ArrayRef(kMaxBytes);
}

/// The CUDA toolkit, if its assembler and bundler are there: where PATH, the
/// usual variables or the usual folder say.
static std::string findToolkit() {
  SmallVector<std::string> folders;
  for (const char *variable : {"CUDA_ROOT", "CUDA_HOME", "CUDA_PATH"})
    if (const char *value = std::getenv(variable))
      folders.push_back(std::string(value) + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  SmallVector<StringRef> paths(folders.begin(), folders.end());
  llvm::ErrorOr<std::string> ptxas = llvm::sys::findProgramByName("ptxas");
  if (!ptxas)
    ptxas = llvm::sys::findProgramByName("ptxas", paths);
  if (!ptxas)
    return {};
  StringRef bin = llvm::sys::path::parent_path(*ptxas);
  if (!llvm::sys::findProgramByName("fatbinary", {bin}))
    return {};
  return llvm::sys::path::parent_path(bin).str();
}

/// From what was written to the LLVM dialect.
static LogicalResult lower(ModuleOp module, const Options &options,
                           const FsdpOptimizeOptions &optimize) {
  PassManager optimizer(module.getContext());
  // Level 0 of explicit IR is that IR, once the dtypes are written.
  if (options.optLevel != OptLevel::Explicit || hasDeclaredOps(module)) {
    buildFsdpOptimizePipeline(optimizer, optimize);
  } else {
    optimizer.addPass(createResolvePrecisionPass());
    if (optimize.verifyCollectives)
      optimizer.addPass(createVerifyCollectivesPass());
  }
  if (failed(optimizer.run(module)))
    return failure();
  // From here on the program is ours, and large: to verify it after each of
  // thirty passes takes half of their time. fsdp-opt does.
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  if (options.target == Target::Cuda && !options.emulate) {
    FsdpToCudaOptions toCuda;
    toCuda.chip = options.chip.getValue();
    std::string toolkit = findToolkit();
    toCuda.toolkit = toolkit;
    toCuda.format = toolkit.empty() ? "isa" : "fatbin";
    if (toolkit.empty())
      llvm::WithColor::remark(llvm::errs(), "fsdp-compile")
          << "no ptxas: the artefact holds PTX alone\n";
    buildFsdpToCudaPipeline(manager, toCuda);
  } else {
    FsdpToCpuOptions toCpu;
    toCpu.emulate = options.emulate.getValue();
    buildFsdpToCpuPipeline(manager, toCpu);
  }
  return failure(failed(manager.run(module)) || failed(verify(module)));
}

/// The bytes of the artefact, or of the object that it is made of.
static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
createArtefact(ModuleOp module, const Options &options, StringRef toolPath) {
  addNamesForC(module);
  auto object = createObject(module, options.cpu, options.codegenLevel);
  if (!object)
    return object.takeError();
  if (options.object)
    return std::make_unique<llvm::SmallVectorMemoryBuffer>(
        std::move(*object), /*RequiresNullTerminator=*/false);
  // The runtime is beside the tools, in the build folder as after the
  // installation.
  SmallString<128> libraries(
      llvm::sys::path::parent_path(llvm::sys::path::parent_path(toolPath)));
  llvm::sys::path::append(libraries, "lib");
  return linkArtefact(*object, libraries, options.output);
}

/// Writes the artefact and its header, both or none.
static llvm::Error write(ModuleOp module, const Options &options,
                         StringRef toolPath) {
  SmallVector<OutputFile, 0> files;
  auto add = [&](StringRef path, StringRef bytes, unsigned mode) {
    auto file = OutputFile::create(path, mode);
    if (!file)
      return file.takeError();
    files.push_back(std::move(*file));
    return files.back().write(0, bytes.data(), bytes.size());
  };
  if (!options.header.empty())
    if (llvm::Error error =
            add(options.header, createHeader(module, options.header), 0666))
      return error;
  auto artefact = createArtefact(module, options, toolPath);
  if (!artefact)
    return artefact.takeError();
  if (llvm::Error error = add(options.output, (*artefact)->getBuffer(),
                              options.object ? 0666 : 0777))
    return error;
  return publish(files);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  handleInterrupts("fsdp-compile");
  installOutOfMemoryHandler("fsdp-compile");
  Options options;
  cl::HideUnrelatedOptions(options.category);
  setVersionPrinter("fsdp-compile");
  cl::ParseCommandLineOptions(
      argc, argv, "fsdp-compile: from IR to a library that fsdp-run runs\n");

  if (!GpuChip::lookup(options.chip))
    return fail("--chip: expected one of " + GpuChip::listNames() +
                ", but it is '" + options.chip + "'");
  if (options.target == Target::Cpu &&
      (options.emulate || options.chip.getNumOccurrences()))
    return fail(Twine(options.emulate ? "--emulate" : "--chip") +
                " needs --target=cuda");
  if (options.output.empty())
    return fail("no output file, expected -o");
  FsdpOptimizeOptions optimize;
  optimize.optLevel = options.optLevel.getValue();
  if (failed(optimize.parseFromString(options.optimize, llvm::errs())))
    return fail("--optimize: expected options of fsdp-optimize, but it is '" +
                options.optimize + "'");
  if (optimize.optLevel != options.optLevel)
    return fail("--optimize: the level is --opt-level's");

  addDefaults(optimize, options);

  if (options.noVerifyCollectives)
    optimize.verifyCollectives = false;
  if (!optimize.verifyCollectives)
    llvm::WithColor::warning(llvm::errs(), "fsdp-compile")
        << "not proved: that all ranks issue the same collectives in the same "
           "order; a run in which they do not ends in an error\n";

  DialectRegistry registry;
  // A program may have ops of any dialect of upstream.
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerFsdpPipelineDialects(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false); // an op may be a whole module
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  std::string message;
  auto file = openInputFile(options.input, &message);
  if (!file)
    return fail(message);
  sources.AddNewSourceBuffer(std::move(file), {});
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module || failed(lower(*module, options, optimize)) ||
      (!options.object && failed(checkSymbolsAreDefined(*module))))
    return 1; // it has been said why
  std::string toolPath = llvm::sys::fs::getMainExecutable(
      argv[0], reinterpret_cast<void *>(&hasDeclaredOps));
  if (llvm::Error error = write(*module, options, toolPath))
    return fail(llvm::toString(std::move(error)));
  return 0;
}

//===- MachineCode.cpp - from the LLVM dialect to bytes -------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing here asks the machine it runs on: the triple is fixed, the processor
// an option with a fixed default, and no name of a file or folder goes into the
// code. So equal input gives equal bytes.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Target/MachineCode.h"

#include "fsdp/Support/OutputFile.h"

#include "fsdp/Runtime/Runtime.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using mlir::fsdp::CodegenLevel;

static constexpr const char *kTriple = "x86_64-unknown-linux-gnu";

/// The code generator for `cpu`.
static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createMachine(StringRef cpu, CodegenLevel level) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  llvm::Triple triple(kTriple);
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return createStringError("no code generator for x86-64: " + message);
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      target->createMCSubtargetInfo(triple, "", ""));
  if (!subtarget || !subtarget->isCPUStringValid(cpu))
    return createStringError("unknown cpu '" + cpu +
                             "', expected an x86-64 level or processor such "
                             "as x86-64-v3");
  llvm::TargetOptions options;
  // A multiplication and an addition round twice unless the program fuses them.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu, "", options, llvm::Reloc::PIC_, std::nullopt,
      level == CodegenLevel::Full ? llvm::CodeGenOptLevel::Default
                                  : llvm::CodeGenOptLevel::None));
  if (!machine)
    return createStringError("no code generator for cpu '" + cpu + "'");
  return machine;
}

/// True for what an artefact exports; all else may be inlined and dropped.
static bool isExported(const llvm::GlobalValue &value) {
  return value.getName() == FSDPRT_ARTEFACT_ABI_SYMBOL ||
         value.getName() == FSDPRT_ARTEFACT_MANIFEST_SYMBOL ||
         value.getName().starts_with(FSDPRT_ARTEFACT_ENTRY_PREFIX);
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine,
                     CodegenLevel level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  // Without this one, functions that are not to be optimised would be.
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::OptNoneInstrumentation optNone(/*DebugLogging=*/false);
  optNone.registerCallbacks(callbacks);
  llvm::PassBuilder builder(&machine, llvm::PipelineTuningOptions(),
                            std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  auto pipeline =
      level == CodegenLevel::Full
          ? builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
          : builder.buildO0DefaultPipeline(llvm::OptimizationLevel::O0);
  pipeline.run(module, modules);
}

llvm::Expected<SmallVector<char, 0>>
mlir::fsdp::createObject(ModuleOp module, StringRef cpu, CodegenLevel level) {
  auto machine = createMachine(cpu, level);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  // The name would be a symbol of the object.
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, context, "fsdp");
  if (!llvmModule)
    return createStringError("the module has no translation to LLVM IR");
  llvmModule->setSourceFileName("fsdp");
  llvmModule->setTargetTriple(llvm::Triple(kTriple));
  llvmModule->setDataLayout((*machine)->createDataLayout());
  llvm::internalizeModule(*llvmModule, isExported);
  optimize(*llvmModule, **machine, level);

  SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                      llvm::CodeGenFileType::ObjectFile))
    return createStringError("cpu '" + cpu + "' has no object files");
  passes.run(*llvmModule);
  return object;
}

namespace {
/// A file for the linker; gone at the end, and after an interrupt too.
struct TemporaryFile {
  Error create(StringRef suffix) {
    if (std::error_code code =
            llvm::sys::fs::createTemporaryFile("fsdp-compile", suffix, path))
      return createStringError(code, "cannot make a temporary file: " +
                                         code.message());
    llvm::sys::RemoveFileOnSignal(path);
    return Error::success();
  }
  ~TemporaryFile() {
    if (path.empty())
      return;
    (void)llvm::sys::fs::remove(path);
    llvm::sys::DontRemoveFileOnSignal(path);
  }

  SmallString<128> path;
};
} // namespace

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
mlir::fsdp::linkArtefact(ArrayRef<char> object, StringRef libraryDir,
                         StringRef path) {
  auto compiler = llvm::sys::findProgramByName("cc");
  if (!compiler)
    return createStringError("no C compiler 'cc' in PATH, which links the "
                             "artefact; -c writes an object file without one");
  SmallString<128> runtime(libraryDir);
  llvm::sys::path::append(runtime, "libfsdprt.so");
  if (!llvm::sys::fs::exists(runtime))
    return createStringError("the runtime '" + runtime.str() +
                             "' does not exist");
  // The linker's words go into the error.
  TemporaryFile objectFile, library, log;
  for (auto [file, suffix] :
       {std::pair(&objectFile, "o"), std::pair(&library, "so"),
        std::pair(&log, "log")})
    if (Error error = file->create(suffix))
      return error;
  if (Error error = writeFile(objectFile.path, {object.data(), object.size()}))
    return error;
  // The runtime is found by its name where the artefact is loaded, so no folder
  // is written into it. What nothing defines is refused now and not then.
  std::optional<StringRef> redirects[] = {std::nullopt, log.path.str(),
                                          log.path.str()};
  StringRef arguments[] = {
      *compiler,         "-shared",        "-s", "-Wl,-z,defs",
      "-Wl,--as-needed", "-Wl,-Bsymbolic", "-o", library.path,
      objectFile.path,   runtime,          "-lm"};
  std::string message;
  if (llvm::sys::ExecuteAndWait(*compiler, arguments, std::nullopt, redirects,
                                0, 0, &message) == 0) {
    auto bytes = llvm::MemoryBuffer::getFile(library.path, /*IsText=*/false,
                                             /*RequiresNullTerminator=*/false);
    if (bytes)
      return std::move(*bytes);
    message = bytes.getError().message();
  }
  auto words = llvm::MemoryBuffer::getFile(log.path);
  if (words)
    message += (*words)->getBuffer().rtrim();
  return createStringError("cannot link '" + path + "': " + message);
}

//===- Pipelines.h - which passes run, and in which order -*- C++ -*- -----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_PIPELINES_H
#define FSDP_PIPELINES_PIPELINES_H

#include "fsdp/Transforms/Passes.h"

#include "mlir/Pass/PassOptions.h"

namespace mlir::fsdp {

/// How much fsdp-optimize does.
enum class OptLevel {
  Explicit = 0, ///< the naive form, which defines the bits
  Packed = 2    ///< the same bits with the fewest collectives and temporaries
};

/// Options of `fsdp-optimize`: its own level, and those of its passes under
/// their own names.
struct FsdpOptimizeOptions : PassPipelineOptions<FsdpOptimizeOptions> {
  Option<OptLevel> optLevel{
      *this, "opt-level", llvm::cl::desc("how far to go"),
      llvm::cl::init(OptLevel::Packed),
      llvm::cl::values(clEnumValN(OptLevel::Explicit, "0", "to stage explicit"),
                       clEnumValN(OptLevel::Packed, "2", "to stage packed"))};

  // Of fsdp-resolve-precision.
  Option<Profile> profile{
      *this, "profile",
      llvm::cl::desc("profile of units for which the IR has none"),
      llvm::cl::init(Profile::PerParam),
      llvm::cl::values(
          clEnumValN(Profile::PerParam, "per_param", "any dtype per parameter"),
          clEnumValN(Profile::Stable, "stable", "one policy per unit"),
          clEnumValN(Profile::GradDtype, "grad_dtype",
                     "one reduce dtype per unit, promoted"))};

  // Of fsdp-expand-units.
  Option<Unused> unused{
      *this, "unused",
      llvm::cl::desc("trainable parameters that a reduce_grads does not name"),
      llvm::cl::init(Unused::Skip),
      llvm::cl::values(
          clEnumValN(Unused::Skip, "skip", "take part in nothing"),
          clEnumValN(Unused::Zero, "zero", "are reduced as zero"))};
  Option<Accumulate> accumulate{
      *this, "accumulate",
      llvm::cl::desc("dtype of the running sum of a 16-bit reduction"),
      llvm::cl::init(Accumulate::Wire),
      llvm::cl::values(
          clEnumValN(Accumulate::Wire, "wire", "the reduce dtype"),
          clEnumValN(Accumulate::F32, "f32", "f32, rounded once at the end"))};
  Option<Average> average{
      *this, "average",
      llvm::cl::desc("whether a mean divides the terms or their sum"),
      llvm::cl::init(Average::Before),
      llvm::cl::values(
          clEnumValN(Average::Before, "before", "the terms, as NCCL does"),
          clEnumValN(Average::After, "after", "the sum, as Gloo does"))};
  Option<int64_t> align{
      *this, "align",
      llvm::cl::desc("alignment in bytes of a bucket's segments and rows"),
      llvm::cl::init(kDefaultAlign)};

  // Of fsdp-form-buckets.
  Option<std::string> scope{*this, "scope",
                            llvm::cl::desc("what may share a bucket"),
                            llvm::cl::init("unit")};
  ListOption<int64_t> maxBytes{
      *this, "max-bytes",
      llvm::cl::desc(
          "largest packed tensor in bytes, for each bucket in turn")};
  ListOption<int64_t> maxElements{
      *this, "max-elements",
      llvm::cl::desc("the same in elements, for policies that count these")};
  Option<std::string> gather{
      *this, "gather",
      llvm::cl::desc("gathers of several dtypes: bytes or per-dtype"),
      llvm::cl::init("")};
  Option<std::string> order{
      *this, "order",
      llvm::cl::desc("order of members: registration or execution"),
      llvm::cl::init("")};
  Option<std::string> policy{*this, "policy",
                             llvm::cl::desc("rules of another system"),
                             llvm::cl::init("")};

  // Whether fsdp-verify-collectives runs.
  Option<bool> verifyCollectives{
      *this, "verify-collectives",
      llvm::cl::desc("prove that all ranks issue the same collectives; on "
                     "unless it is false"),
      llvm::cl::init(true)};
};

/// From a module at stage declared, explicit or packed, or with functions at
/// several of them, to explicit or packed.
void buildFsdpOptimizePipeline(OpPassManager &manager,
                               const FsdpOptimizeOptions &options);

/// Options of `fsdp-to-cpu`.
struct FsdpToCpuOptions : PassPipelineOptions<FsdpToCpuOptions> {
  Option<bool> emulate{
      *this, "emulate",
      llvm::cl::desc("run the GPU's kernels on the host, thread by thread"),
      llvm::cl::init(false)};
};

/// From a module at stage explicit or packed, with ordinary ops around ours, to
/// the LLVM dialect for the CPU.
void buildFsdpToCpuPipeline(OpPassManager &manager,
                            const FsdpToCpuOptions &options);

/// Options of `fsdp-to-cuda`.
struct FsdpToCudaOptions : PassPipelineOptions<FsdpToCudaOptions> {
  Option<std::string> chip{*this, "chip", llvm::cl::desc("chip to compile for"),
                           llvm::cl::init("sm_90")};
  Option<std::string> features{
      *this, "features",
      llvm::cl::desc("version of PTX, +ptx80 or later; by default the oldest "
                     "one that knows the chip and has room for the kernels' "
                     "parameters"),
      llvm::cl::init("")};
  Option<std::string> format{
      *this, "format",
      llvm::cl::desc("isa: PTX; bin: machine code; fatbin: both; the last two "
                     "need the toolkit"),
      llvm::cl::init("isa")};
  Option<std::string> toolkit{*this, "toolkit",
                              llvm::cl::desc("path of the CUDA toolkit"),
                              llvm::cl::init("")};
};

/// From a module at stage packed, in which nothing but our ops touches tensors,
/// to the LLVM dialect for the host, with the kernels' image as a constant.
void buildFsdpToCudaPipeline(OpPassManager &manager,
                             const FsdpToCudaOptions &options);

/// Registers the pipelines under their names.
void registerFsdpPipelines();

/// Registers the dialects, interfaces and extensions that the pipelines need,
/// and no others. A program with ops of other dialects, and a tool that takes
/// any program, register those beside.
void registerFsdpPipelineDialects(DialectRegistry &registry);

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_PIPELINES_H

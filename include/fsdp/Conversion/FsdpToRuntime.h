//===- FsdpToRuntime.h - collectives and buffers become calls --*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// convert-fsdp-to-runtime for other compilers. A pass of another compiler does
//
//   RuntimeLowering lowering(module, options);
//   RewritePatternSet patterns(context);
//   populateFsdpToRuntimePatterns(patterns, lowering);
//   patterns.add<MyCollectiveLowering>(context, lowering);
//   if (failed(lowering.run(std::move(patterns))))
//     signalPassFailure();
//
// and a dialect that has ConvertFsdpToRuntimeDialectInterface needs no such
// pass: convert-fsdp-to-runtime, and so our pipelines, ask it.
//
// No type is converted here, so there is no type converter: a memref stays one,
// and stands for a pointer where its address is all that is used.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CONVERSION_FSDPTORUNTIME_H
#define FSDP_CONVERSION_FSDPTORUNTIME_H

#include "fsdp/Codegen/RuntimeCalls.h"
#include "fsdp/Conversion/Passes.h"

#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"

#include <memory>

namespace mlir::fsdp {

/// What the patterns of one lowering of one module share: the functions that
/// reach the runtime, and the calls that are made. It must outlive the
/// patterns.
class RuntimeLowering {
public:
  explicit RuntimeLowering(ModuleOp module,
                           const FsdpToRuntimePassOptions &options = {});
  ~RuntimeLowering();

  /// Says that ops of that name become calls of the runtime, so that the
  /// functions around them need a context. Known beforehand: whatever works on
  /// a bucket, and what has a pattern of ours. `name` must live as long as
  /// this.
  void addRuntimeOp(StringRef name);

  /// Refuses what no pattern will lower, with one error at the first such op
  /// and before anything changes; then applies the patterns to each op once, in
  /// the order of the text, and to the ops that they make; then removes units,
  /// buckets and grids. An op on a bucket that is left is an error as well.
  LogicalResult run(RewritePatternSet &&patterns);

  /// The steps of run() for a driver of one's own, which stands between them.
  /// threadContext() gives functions their context and their status; `patterns`
  /// are only looked at.
  LogicalResult threadContext(const FrozenRewritePatternSet &patterns);
  LogicalResult finish();

  /// For patterns. The runtime's context, an `!llvm.ptr`, where `op` is; null
  /// if none reaches it, and then the pattern must not match.
  Value getContext(Operation *op);
  /// The address of 8 bytes for what a call returns; the next call may use
  /// them.
  Value getSlot(Operation *op);
  /// Calls of the runtime; no status has to be looked at,
  /// fsdp-propagate-status does.
  RuntimeCalls &getCalls();
  /// Issues one collective in place of `op`, which has a context. `sent` and
  /// `received` are dense memrefs of what `record` says: its count is in
  /// elements of the bucket's wire dtype, of one rank's part.
  void createCollective(ImplicitLocOpBuilder &builder, Operation *op,
                        const CollectiveRecord &record, Value sent,
                        Value received);

  struct State; ///< of our own patterns

private:
  friend void populateFsdpToRuntimePatterns(RewritePatternSet &patterns,
                                            RuntimeLowering &lowering);
  std::unique_ptr<State> state;
};

/// Adds the patterns for collectives of a kind that the runtime has, buffers,
/// the rank's number, launches, calls and returns. Plain rewrite patterns,
/// which match only between threadContext() and finish().
void populateFsdpToRuntimePatterns(RewritePatternSet &patterns,
                                   RuntimeLowering &lowering);

/// By which a dialect adds its patterns to those of convert-fsdp-to-runtime. A
/// collective of kind `Other` needs one for itself. fsdp-verify-lowered lets
/// the ops of such a dialect into the pipelines, for the CPU.
class ConvertFsdpToRuntimeDialectInterface
    : public DialectInterface::Base<ConvertFsdpToRuntimeDialectInterface> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(
      ConvertFsdpToRuntimeDialectInterface)
  explicit ConvertFsdpToRuntimeDialectInterface(Dialect *dialect)
      : Base(dialect) {}

  virtual void
  populateFsdpToRuntimePatterns(RewritePatternSet &patterns,
                                RuntimeLowering &lowering) const = 0;
};

} // namespace mlir::fsdp

#endif // FSDP_CONVERSION_FSDPTORUNTIME_H

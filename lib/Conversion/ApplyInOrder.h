//===- ApplyInOrder.h - each op once, in the order of the text -*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver of the passes here. Upstream's three are not used, although the
// patterns work with them:
//
// - a conversion keeps every op that it replaces until it ends, and makes no
//   use of its types here, as none is converted. An entry has tens of thousands
//   of ops, and the order in which constants and functions are made must not
//   depend on the order of blocks;
// - the greedy driver folds and erases what it meets, and begins at the end;
// - a conversion and walkAndApplyPatterns both skip blocks that nothing
//   reaches, but a return in such a block needs a status like any other.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CONVERSION_APPLYINORDER_H
#define FSDP_LIB_CONVERSION_APPLYINORDER_H

#include "mlir/Rewrite/FrozenRewritePatternSet.h"

namespace mlir::fsdp {

/// Applies `patterns` once to each op in `root`, in post-order, which for ops
/// without regions is that of the text, and right after an op to those that
/// its pattern has made. An op without a pattern stays.
void applyInOrder(Operation *root, const FrozenRewritePatternSet &patterns);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CONVERSION_APPLYINORDER_H

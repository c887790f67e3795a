//===- TileBuilder.h - the address arithmetic of tiles -*- C++ -*- --------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the bodies for all targets share: how a tile's record and a row become
// addresses and counts. The bodies differ in how they walk the elements.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_TILEBUILDER_H
#define FSDP_CODEGEN_TILEBUILDER_H

#include "fsdp/Codegen/TileFunction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {

/// A tile in one row. Counts of elements are i32, places in a member i64.
struct TileValues {
  Value pair;       ///< index of the pair of dtypes
  Value several;    ///< i1: the tile holds several runs
  Value real;       ///< elements of the tile without the gap
  Value count;      ///< elements of the tile, the gap included
  Value inner;      ///< elements of a run, padding included
  Value runLength;  ///< of these, elements that lie in this tile
  Value valid;      ///< of these, elements that are not padding
  Value line;       ///< distance of two runs in the member
  Value start;      ///< the tile's first element in the member
  Value member;     ///< which member
  Value vectorLog;  ///< log2 of the vector that never crosses a run
  Value reciprocal; ///< 2^28 / (inner / vector) rounded up; 0 for one run
  Value offset;     ///< bytes from the row's start
};

/// Short names for the ops that addresses are made of, and the parts of a body.
class TileBuilder {
protected:
  TileBuilder(OpBuilder &builder, Location loc, unsigned addressSpace);

  //===--- arithmetic; both operands have one integer type ---------------===//
  Value constant(Type type, int64_t value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  }
  Value constant32(int64_t value) { return constant(i32, value); }
  Value constant64(int64_t value) { return constant(i64, value); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  Value mul(Value x, int64_t y) {
    return y == 1 ? x : mul(x, constant(x.getType(), y));
  }
  Value shiftRight(Value x, Value y) { return arith::ShRUIOp::create(b, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value least(Value x, Value y) { return arith::MinSIOp::create(b, x, y); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  }
  Value less(Value x, Value y) {
    return compare(arith::CmpIPredicate::slt, x, y);
  }
  Value atMost(Value x, Value y) {
    return compare(arith::CmpIPredicate::sle, x, y);
  }
  Value equal(Value x, Value y) {
    return compare(arith::CmpIPredicate::eq, x, y);
  }
  Value widen(Value x) { return arith::ExtUIOp::create(b, i64, x); }
  Value narrow(Value x) { return arith::TruncIOp::create(b, i32, x); }
  /// Bits [from, from + count) of an i32.
  Value bits(Value word, int64_t from, int64_t count);

  //===--- memory and control --------------------------------------------===//
  /// `base` moved by `bytes` (i64).
  Value offset(Value base, Value bytes);
  void loop(Value from, Value to, int64_t step, function_ref<void(Value)> body);
  void when(Value condition, function_ref<void()> then,
            function_ref<void()> otherwise = nullptr);

  //===--- the parts -----------------------------------------------------===//
  /// The record of tile `tile` of the table at `tiles`, for row `row` (both
  /// i64). Code for tables without tiles of several runs is simpler.
  TileValues readRecord(Value tiles, Value tile, Value row,
                        bool hasSeveralRuns = true);
  /// Runs `body` for the tile's pair of dtypes.
  void forPair(const TileValues &tile, ArrayRef<DtypePair> pairs,
               function_ref<void(DtypePair)> body);

  ImplicitLocOpBuilder b;
  Type i1, i32, i64;
  Type pointer; ///< to data, in the target's address space
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_TILEBUILDER_H

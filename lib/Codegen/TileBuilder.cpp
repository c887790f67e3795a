//===- TileBuilder.cpp - the address arithmetic of tiles ------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/TileBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fsdp;

TileBuilder::TileBuilder(OpBuilder &builder, Location loc,
                         unsigned addressSpace)
    : b(loc, builder), i1(b.getI1Type()), i32(b.getI32Type()),
      i64(b.getI64Type()),
      pointer(LLVM::LLVMPointerType::get(b.getContext(), addressSpace)) {}

Value TileBuilder::bits(Value word, int64_t from, int64_t count) {
  Value shifted = from ? shiftRight(word, constant32(from)) : word;
  return both(shifted, constant32((int64_t(1) << count) - 1));
}

Value TileBuilder::offset(Value base, Value bytes) {
  return LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

void TileBuilder::loop(Value from, Value to, int64_t step,
                       function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, from, to, constant(from.getType(), step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void TileBuilder::when(Value condition, function_ref<void()> then,
                       function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(b, condition, static_cast<bool>(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
  if (!otherwise)
    return;
  b.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

TileValues TileBuilder::readRecord(Value tiles, Value tile, Value row,
                                   bool hasSeveralRuns) {
  // Two loads of 16 bytes, of a constant that no kernel writes.
  Value record = offset(tiles, mul(tile, kTileWords * 4));
  SmallVector<Value> words;
  auto half = VectorType::get({kTileWords / 2}, i32);
  for (int64_t i = 0; i < 2; ++i) {
    Value at = i ? offset(record, constant64(16)) : record;
    Value loaded = LLVM::LoadOp::create(
        b, half, at, /*alignment=*/16, /*isVolatile=*/false,
        /*isNonTemporal=*/false, /*isInvariant=*/true);
    for (int64_t word = 0; word < kTileWords / 2; ++word)
      words.push_back(vector::ExtractOp::create(b, loaded, word));
  }

  TileValues values;
  values.member = bits(words[0], 0, 16);
  values.pair = bits(words[0], 16, 4);
  values.vectorLog = bits(words[0], 20, 4);
  values.several = hasSeveralRuns
                       ? compare(arith::CmpIPredicate::ne,
                                 bits(words[0], 24, 1), constant32(0))
                       : constant(i1, 0);
  Value zero = constant32(0);
  Value first = select(values.several, zero, words[1]);
  values.count = words[3];
  values.real = select(values.several, words[1], words[3]);
  values.inner = words[4];
  values.runLength = select(values.several, values.inner, values.count);
  values.reciprocal = select(values.several, words[6], zero);
  values.offset = widen(words[2]);
  // A line may be longer than 32 bits, a rank's share of it never is.
  Value high = arith::ShLIOp::create(
      b, widen(select(values.several, zero, words[6])), constant64(32));
  values.line = either(widen(words[5]), high);
  // Of a run, rank `row` holds the elements from row * inner on; what lies
  // beyond the line is padding.
  Value column = add(mul(row, widen(values.inner)), widen(first));
  Value most = least(values.runLength, sub(values.inner, first));
  Value valid = least(sub(values.line, column), widen(most));
  values.valid = narrow(arith::MaxSIOp::create(b, valid, constant64(0)));
  values.start = add(mul(widen(words[7]), values.line), column);
  return values;
}

void TileBuilder::forPair(const TileValues &tile, ArrayRef<DtypePair> pairs,
                          function_ref<void(DtypePair)> body) {
  if (pairs.size() == 1)
    return body(pairs.front());
  SmallVector<int64_t> cases =
      llvm::to_vector(llvm::seq<int64_t>(1, pairs.size()));
  Value pair = arith::IndexCastUIOp::create(b, b.getIndexType(), tile.pair);
  auto branch =
      scf::IndexSwitchOp::create(b, TypeRange(), pair, cases, cases.size());
  // The default region comes first: it is the pair that no case names.
  for (auto [region, value] : llvm::zip_equal(branch->getRegions(), pairs)) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    body(value);
    scf::YieldOp::create(b);
  }
}

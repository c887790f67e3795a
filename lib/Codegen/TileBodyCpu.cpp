//===- TileBodyCpu.cpp - a tile plan walked by the CPU --------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For the CPU a tile is one contiguous vector loop per run: 16 elements at a
// time where a value is converted, 64 bytes where it is only copied, then the
// rest one by one, then zeros for the padding.
//
//   for row, for tile:                         (or the other way round)
//     for run of the tile:
//       for the run's valid elements: bucket[...] = cast(member[...])
//       zeros up to the run's end              (when packing)
//     zeros in the gap                         (when packing)
//
// Rows are the outer loop for tiles of one run: the bucket is then written or
// read in order. For strided parameters the tiles are outside, because the rows
// of a tile are neighbours in the parameter's memory.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/TileBodyCpu.h"

#include "Float/CastBodies.h"
#include "fsdp/Codegen/TileBuilder.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Elements of a vector that is converted, and bytes of one that is copied.
static constexpr int64_t kCastVector = 16;
static constexpr int64_t kCopyBytes = 64;

namespace {
/// The bodies of CastBodies.h, which LLVM turns into vector code.
struct CpuArithmetic final : FloatArithmetic {
  Value cast(OpBuilder &builder, Location loc, Value value,
             Type dtype) const override {
    return getElementTypeOrSelf(value.getType()) == dtype
               ? value
               : buildCast(builder, loc, value, dtype);
  }
  Value divide(OpBuilder &builder, Location loc, Value value,
               double divisor) const override {
    return buildDivide(builder, loc, value, divisor);
  }
  Value add(OpBuilder &builder, Location loc, Value lhs,
            Value rhs) const override {
    return buildAdd(builder, loc, lhs, rhs);
  }
};

class CpuTileBuilder : TileBuilder {
public:
  CpuTileBuilder(const TileFunction &function, OpBuilder &builder, Location loc)
      : TileBuilder(builder, loc, /*addressSpace=*/0), function(function) {}

  LLVM::LLVMFuncOp build();

private:
  /// Where a run, or a tile, starts.
  struct Place {
    Value member;
    Value old; ///< the existing shard, if the function adds
    Value bucket;
  };

  void copyRuns(const TileValues &tile, const Place &place, DtypePair pair);
  void copyRun(const TileValues &tile, const Place &place, DtypePair pair);
  void copyElements(DtypePair pair, const Place &place, Value index,
                    int64_t width);
  /// `width` elements: a vector, or a scalar if it is one.
  static Type shaped(Type element, int64_t width);
  /// Loads `width` elements of `dtype` at `index` behind `base`. Elements are
  /// loaded and stored as integers: LLVM merges stores of branches, and a bf16
  /// that it carries from one to the other becomes a call.
  Value load(Type dtype, Value base, Value index, int64_t width);
  /// Element `index` (i32) of an array of pointers.
  Value loadPointer(Value array, Value index) {
    return LLVM::LoadOp::create(b, pointer,
                                offset(array, mul(widen(index), 8)));
  }
  /// Writes zero to elements [from, to) (i64) behind `base`, if there are any.
  void zero(Value base, Value from, Value to, int64_t elementBytes);

  const TileFunction &function;
};
} // namespace

void CpuTileBuilder::zero(Value base, Value from, Value to,
                          int64_t elementBytes) {
  when(less(from, to), [&] {
    Value byte = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
    LLVM::MemsetOp::create(b, offset(base, mul(from, elementBytes)), byte,
                           mul(sub(to, from), elementBytes),
                           /*isVolatile=*/false);
  });
}

Type CpuTileBuilder::shaped(Type element, int64_t width) {
  return width == 1 ? element : VectorType::get({width}, element);
}

Value CpuTileBuilder::load(Type dtype, Value base, Value index, int64_t width) {
  int64_t bytes = getDtypeBytes(dtype);
  Value bits =
      LLVM::LoadOp::create(b, shaped(b.getIntegerType(8 * bytes), width),
                           offset(base, mul(index, bytes)), /*alignment=*/1);
  Type type = shaped(dtype, width);
  return type == bits.getType() ? bits
                                : arith::BitcastOp::create(b, type, bits);
}

void CpuTileBuilder::copyElements(DtypePair pair, const Place &place,
                                  Value index, int64_t width) {
  Type to = function.getTarget(pair);
  Value source = function.packs ? place.member : place.bucket;
  Value target = function.packs ? place.bucket : place.member;
  int64_t bytes = getDtypeBytes(to);
  Value value = load(function.getSource(pair), source, index, width);
  if (!pair.isCopy()) {
    Value old = function.adds ? load(to, place.old, index, width) : Value();
    value = function.convert(CpuArithmetic(), b, b.getLoc(), value, to, old);
    Type bits = shaped(b.getIntegerType(8 * bytes), width);
    value = arith::BitcastOp::create(b, bits, value);
  }
  LLVM::StoreOp::create(b, value, offset(target, mul(index, bytes)),
                        /*alignment=*/1);
}

/// The valid elements of one run, then zeros up to the run's end.
void CpuTileBuilder::copyRun(const TileValues &tile, const Place &place,
                             DtypePair pair) {
  int64_t wireBytes = getDtypeBytes(pair.wire);
  int64_t width = pair.isCopy() ? kCopyBytes / wireBytes : kCastVector;
  Value valid = widen(tile.valid);
  Value vectorEnd = both(valid, constant64(-width));
  loop(constant64(0), vectorEnd, width,
       [&](Value index) { copyElements(pair, place, index, width); });
  loop(vectorEnd, valid, 1,
       [&](Value index) { copyElements(pair, place, index, /*width=*/1); });
  if (function.packs)
    zero(place.bucket, valid, widen(tile.runLength), wireBytes);
}

void CpuTileBuilder::copyRuns(const TileValues &tile, const Place &place,
                              DtypePair pair) {
  int64_t memberBytes = getDtypeBytes(pair.member);
  int64_t wireBytes = getDtypeBytes(pair.wire);
  Value runLength = widen(tile.runLength);
  // One division per tile, none per element.
  Value runs =
      select(tile.several, arith::DivUIOp::create(b, tile.real, tile.inner),
             constant32(1));
  runs = widen(runs);
  loop(constant64(0), runs, 1, [&](Value run) {
    Value memberOffset = mul(mul(run, tile.line), memberBytes);
    Place ofRun;
    ofRun.member = offset(place.member, memberOffset);
    if (function.adds)
      ofRun.old = offset(place.old, memberOffset);
    ofRun.bucket = offset(place.bucket, mul(mul(run, runLength), wireBytes));
    copyRun(tile, ofRun, pair);
  });
  if (function.packs)
    zero(place.bucket, mul(runs, runLength), widen(tile.count), wireBytes);
}

LLVM::LLVMFuncOp CpuTileBuilder::build() {
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(b.getContext()),
      {pointer, pointer, pointer, pointer, i64, i64, i64, i64, i1});
  auto func = LLVM::LLVMFuncOp::create(b, function.getName(), type,
                                       LLVM::Linkage::Internal);
  func.setNoInline(true); // many callers, one body
  // Keeps LLVM from turning the loop that copies a tile into a call of memcpy:
  // on 16 KB at a time that ran at a quarter of the speed (bench/).
  func.setPassthroughAttr(
      b.getArrayAttr(ArrayRef<Attribute>{b.getStringAttr("no-builtins")}));
  OpBuilder::InsertionGuard guard(b);
  Block *entry = func.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  Value members = func.getArgument(0), old = func.getArgument(1);
  Value bucket = func.getArgument(2), tiles = func.getArgument(3);
  Value numTiles = func.getArgument(4), rows = func.getArgument(5);
  Value rowBytes = func.getArgument(6), granule = func.getArgument(7);
  Value rowsOutside = func.getArgument(8);
  // No member, old shard or table overlaps the bucket.
  func.setArgAttr(2, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());

  auto copyTile = [&](Value row, Value index) {
    TileValues tile = readRecord(tiles, index, row);
    Place place;
    Value memberPointer = loadPointer(members, tile.member);
    Value oldPointer;
    if (function.adds)
      oldPointer = loadPointer(old, tile.member);
    Value inRow = add(mul(row, rowBytes), mul(tile.offset, granule));
    place.bucket = offset(bucket, inRow);
    forPair(tile, function.pairs, [&](DtypePair pair) {
      Value start = mul(tile.start, getDtypeBytes(pair.member));
      Place ofPair = place;
      ofPair.member = offset(memberPointer, start);
      if (function.adds)
        ofPair.old = offset(oldPointer, start);
      copyRuns(tile, ofPair, pair);
    });
  };
  Value zeroIndex = constant64(0);
  loop(zeroIndex, select(rowsOutside, rows, numTiles), 1, [&](Value outside) {
    loop(zeroIndex, select(rowsOutside, numTiles, rows), 1, [&](Value inside) {
      copyTile(/*row=*/select(rowsOutside, outside, inside),
               /*index=*/select(rowsOutside, inside, outside));
    });
  });
  LLVM::ReturnOp::create(b, ValueRange());
  return func;
}

LLVM::LLVMFuncOp mlir::fsdp::buildTileFunction(const TileFunction &function,
                                               OpBuilder &builder,
                                               Location loc) {
  return CpuTileBuilder(function, builder, loc).build();
}

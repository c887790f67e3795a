//===- TileBody.cpp - the code that walks a tile plan ---------------------===//
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

#include "TileBody.h"

#include "CastBodies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Elements of a vector that is converted, and bytes of one that is copied.
static constexpr int64_t kCastVector = 16;
static constexpr int64_t kCopyBytes = 64;

std::string TileFunction::getName() const {
  std::string name;
  llvm::raw_string_ostream os(name);
  os << (packs ? "fsdp_pack" : "fsdp_unpack");
  for (const DtypePair &pair : pairs) {
    Type from = packs ? pair.member : pair.wire;
    Type to = packs ? pair.wire : pair.member;
    os << '_' << from << '_' << to;
  }
  if (divide) // the bits, so that no two divisors share a name
    os << "_divide_" << llvm::utohexstr(llvm::bit_cast<uint64_t>(*divide));
  if (adds)
    os << "_add";
  return name;
}

namespace {
/// The fields of a tile's record and what follows from them and the row, as
/// i64 values; pointers as they are for this tile and row.
struct TileValues {
  Value pair;
  Value runs;      ///< runs in this tile
  Value runLength; ///< elements of a run in the bucket
  Value valid;     ///< of these, elements that are not padding
  Value count;     ///< elements of the tile, the gap included
  Value line;      ///< distance of two runs in the member, in elements
  Value start;     ///< first element in the member
  Value member;    ///< pointer to the member
  Value old;       ///< pointer to the existing shard
  Value bucket;    ///< pointer to the tile in its row
};

class BodyBuilder {
public:
  BodyBuilder(const TileFunction &function, OpBuilder &builder, Location loc)
      : function(function), b(loc, builder) {
    pointer = LLVM::LLVMPointerType::get(b.getContext());
  }

  LLVM::LLVMFuncOp build();

private:
  //===--- small arithmetic on i64 ----------------------------------------===//
  Value constant(int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  Value mul(Value x, int64_t y) { return mul(x, constant(y)); }
  Value least(Value x, Value y) { return arith::MinSIOp::create(b, x, y); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Value lessThan(Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  }
  Value bits(Value word, int64_t from, int64_t count) {
    Value shifted = arith::ShRUIOp::create(b, word, constant(from));
    return arith::AndIOp::create(b, shifted,
                                 constant((int64_t(1) << count) - 1));
  }
  /// `base` moved by `bytes`.
  Value offset(Value base, Value bytes) {
    return LLVM::GEPOp::create(b, pointer, b.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{bytes});
  }
  /// Element `index` of an array of pointers.
  Value loadPointer(Value array, Value index) {
    return LLVM::LoadOp::create(b, pointer, offset(array, mul(index, 8)));
  }
  void loop(Value from, Value to, int64_t step,
            function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(b, from, to, constant(step));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }
  void when(Value condition, function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }
  void zero(Value at, Value bytes) {
    Value byte = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
    LLVM::MemsetOp::create(b, at, byte, bytes, /*isVolatile=*/false);
  }

  //===--- the parts of the body ------------------------------------------===//
  TileValues readRecord(Value tile, Value row);
  void copyTile(const TileValues &tile);
  void copyRuns(const TileValues &tile, DtypePair pair);
  void copyRun(const TileValues &tile, DtypePair pair, Value member, Value old,
               Value bucket);
  void copyElements(DtypePair pair, Value member, Value old, Value bucket,
                    Value index, int64_t width);
  /// Loads `width` elements of `dtype` at `index` behind `base`.
  Value load(Type dtype, Value base, Value index, int64_t width);

  bool isCopy(DtypePair pair) const {
    return pair.member == pair.wire && !function.divide && !function.adds;
  }

  const TileFunction &function;
  ImplicitLocOpBuilder b;
  Type pointer;
  // The function's arguments.
  Value members, oldShards, bucketRows, tiles, rowBytes, granule;
};
} // namespace

TileValues BodyBuilder::readRecord(Value tile, Value row) {
  Value record = offset(tiles, mul(tile, kTileWords * 4));
  SmallVector<Value> words;
  for (int64_t i = 0; i < kTileWords; ++i) {
    Value word = LLVM::LoadOp::create(b, b.getI32Type(),
                                      offset(record, constant(4 * i)));
    words.push_back(arith::ExtUIOp::create(b, b.getI64Type(), word));
  }
  Value several = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                        bits(words[0], 24, 1), constant(0));
  Value count = words[3], inner = words[4];
  Value high = arith::ShLIOp::create(b, words[6], constant(32));
  Value line =
      select(several, words[5], arith::OrIOp::create(b, words[5], high));
  Value first = select(several, constant(0), words[1]);

  TileValues values;
  values.pair = bits(words[0], 16, 4);
  values.runs =
      select(several, arith::DivUIOp::create(b, words[1], inner), constant(1));
  values.runLength = select(several, inner, count);
  values.count = count;
  values.line = line;
  // Of a run, rank `row` holds elements from row * inner on; what lies beyond
  // the line is padding.
  Value column = add(mul(row, inner), first);
  Value valid =
      least(sub(line, column), least(values.runLength, sub(inner, first)));
  values.valid = arith::MaxSIOp::create(b, valid, constant(0));
  values.start = add(mul(words[7], line), column);
  Value member = bits(words[0], 0, 16);
  values.member = loadPointer(members, member);
  if (function.adds)
    values.old = loadPointer(oldShards, member);
  values.bucket =
      offset(bucketRows, add(mul(row, rowBytes), mul(words[2], granule)));
  return values;
}

Value BodyBuilder::load(Type dtype, Value base, Value index, int64_t width) {
  Value at = offset(base, mul(index, getDtypeBytes(dtype)));
  Type type = width == 1 ? dtype : VectorType::get({width}, dtype);
  return LLVM::LoadOp::create(b, type, at, /*alignment=*/1);
}

void BodyBuilder::copyElements(DtypePair pair, Value member, Value old,
                               Value bucket, Value index, int64_t width) {
  Type from = function.packs ? pair.member : pair.wire;
  Type to = function.packs ? pair.wire : pair.member;
  Value source = function.packs ? member : bucket;
  Value target = function.packs ? bucket : member;
  int64_t bytes = getDtypeBytes(to);
  Value value;
  if (isCopy(pair)) {
    // As integers: a NaN's payload is none of our business.
    value = load(b.getIntegerType(8 * bytes), source, index, width);
  } else {
    value = load(from, source, index, width);
    if (function.packs && from != to)
      value = buildCast(b, b.getLoc(), value, to);
    if (function.divide)
      value = buildDivide(b, b.getLoc(), value, *function.divide);
    if (!function.packs && from != to)
      value = buildCast(b, b.getLoc(), value, to);
    if (function.adds)
      value = buildAdd(b, b.getLoc(), load(to, old, index, width), value);
  }
  LLVM::StoreOp::create(b, value, offset(target, mul(index, bytes)),
                        /*alignment=*/1);
}

/// The valid elements of one run, then zeros up to the run's end.
void BodyBuilder::copyRun(const TileValues &tile, DtypePair pair, Value member,
                          Value old, Value bucket) {
  int64_t wireBytes = getDtypeBytes(pair.wire);
  int64_t width = isCopy(pair) ? kCopyBytes / wireBytes : kCastVector;
  Value vectorEnd = arith::AndIOp::create(b, tile.valid, constant(-width));
  loop(constant(0), vectorEnd, width, [&](Value index) {
    copyElements(pair, member, old, bucket, index, width);
  });
  loop(vectorEnd, tile.valid, 1, [&](Value index) {
    copyElements(pair, member, old, bucket, index, /*width=*/1);
  });
  if (!function.packs)
    return;
  when(lessThan(tile.valid, tile.runLength), [&] {
    zero(offset(bucket, mul(tile.valid, wireBytes)),
         mul(sub(tile.runLength, tile.valid), wireBytes));
  });
}

void BodyBuilder::copyRuns(const TileValues &tile, DtypePair pair) {
  int64_t memberBytes = getDtypeBytes(pair.member);
  int64_t wireBytes = getDtypeBytes(pair.wire);
  loop(constant(0), tile.runs, 1, [&](Value run) {
    Value start = add(tile.start, mul(run, tile.line));
    Value memberOffset = mul(start, memberBytes);
    Value member = offset(tile.member, memberOffset);
    Value old = function.adds ? offset(tile.old, memberOffset) : Value();
    Value bucket =
        offset(tile.bucket, mul(mul(run, tile.runLength), wireBytes));
    copyRun(tile, pair, member, old, bucket);
  });
  if (!function.packs)
    return;
  Value used = mul(tile.runs, tile.runLength);
  when(lessThan(used, tile.count), [&] {
    zero(offset(tile.bucket, mul(used, wireBytes)),
         mul(sub(tile.count, used), wireBytes));
  });
}

/// The body for the tile's pair of dtypes.
void BodyBuilder::copyTile(const TileValues &tile) {
  if (function.pairs.size() == 1)
    return copyRuns(tile, function.pairs.front());
  SmallVector<int64_t> cases =
      llvm::to_vector(llvm::seq<int64_t>(1, function.pairs.size()));
  Value pair = arith::IndexCastOp::create(b, b.getIndexType(), tile.pair);
  auto branch =
      scf::IndexSwitchOp::create(b, TypeRange(), pair, cases, cases.size());
  for (auto [index, region] : llvm::enumerate(branch->getRegions())) {
    // The default region comes first: it is the pair that no case names.
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    copyRuns(tile, function.pairs[index]);
    scf::YieldOp::create(b);
  }
}

LLVM::LLVMFuncOp BodyBuilder::build() {
  Type i64 = b.getI64Type(), i1 = b.getI1Type();
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
  members = func.getArgument(0);
  oldShards = func.getArgument(1);
  bucketRows = func.getArgument(2);
  tiles = func.getArgument(3);
  Value numTiles = func.getArgument(4), rows = func.getArgument(5);
  rowBytes = func.getArgument(6);
  granule = func.getArgument(7);
  Value rowsOutside = func.getArgument(8);
  // No member, old shard or table overlaps the bucket.
  func.setArgAttr(2, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());

  Value zeroIndex = constant(0);
  loop(zeroIndex, select(rowsOutside, rows, numTiles), 1, [&](Value outside) {
    loop(zeroIndex, select(rowsOutside, numTiles, rows), 1, [&](Value inside) {
      Value row = select(rowsOutside, outside, inside);
      Value tile = select(rowsOutside, inside, outside);
      copyTile(readRecord(tile, row));
    });
  });
  LLVM::ReturnOp::create(b, ValueRange());
  return func;
}

LLVM::LLVMFuncOp TileFunction::build(OpBuilder &builder, Location loc) const {
  return BodyBuilder(*this, builder, loc).build();
}

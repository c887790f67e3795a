//===- TileBodyGpu.cpp - the kernel that walks a tile plan ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block of 256 threads per tile and row, not persistent. A thread handles
// vectors of 16 bytes on the side that is written, so that a warp's stores are
// whole sectors, and issues all its loads before it uses the first one. Which
// of four classes a block takes is decided at run time by values that are the
// same in the whole block, so any caller's pointer is safe; no class touches a
// byte outside the tensors.
//
//   F  full     aligned, 4096 valid elements of one run: no predicate at all
//   V  vector   aligned, at least one vector: loads at indices that are always
//               legal, predicated stores, zeros for the padding; the elements
//               of a last partial vector by single threads
//   Z  zero     nothing valid: zeros only, the source is never touched
//   S  scalar   everything else: one element per thread and step
//
// The same ops run on the CPU, thread by thread, when the kernel is emulated.
// There a predicated store is a branch, and casts are KernelArithmetic's.
//
//===----------------------------------------------------------------------===//

#include "TileBodyGpu.h"

#include "KernelArithmetic.h"
#include "TileBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Bytes of a vector on the side that is written.
static constexpr int64_t kVectorBytes = 16;
/// Vectors of a thread that are loaded before the first is used.
static constexpr int64_t kBatch = 4;

namespace {
/// What a pair of dtypes means in the direction of the copy.
struct Copy {
  Type from, to, wire;
  int64_t fromBytes, toBytes, wireBytes;
  bool isPlain;   ///< neither cast nor division nor addition
  int64_t vector; ///< elements of a vector; 0 if only single elements go
};

/// Where a tile lies in memory, for the pair of dtypes at hand.
struct Place {
  Value source, target;
  Value old;          ///< the existing shard, if the function adds
  Value isAligned;    ///< i1: all of them fit vectors
  Value zerosAligned; ///< i1: the bucket's side fits vectors
};

/// Elements of a tile that lie in one run.
struct Elements {
  Value isValid;
  Value inMember; ///< i64, from the tile's start; 0 if not valid
};

class GpuTileBuilder : TileBuilder {
public:
  GpuTileBuilder(const TileKernel &kernel, OpBuilder &builder, Location loc)
      : TileBuilder(builder, loc, kKernelAddressSpace), kernel(kernel),
        function(kernel.function), plan(kernel.plan),
        arithmetic(kernel.emulate) {}

  LLVM::LLVMFuncOp build(LLVM::GlobalOp table, int64_t numMembers);

private:
  void buildBody(Value tileIndex, Value row);
  Copy describe(DtypePair dtypes) const;
  Place locate(const TileValues &tile, const Copy &copy, Value row);
  void buildClasses(const TileValues &tile, const Copy &copy, Value row);
  void buildFull(const Copy &copy, const Place &place);
  void buildVector(const TileValues &tile, const Copy &copy,
                   const Place &place);
  void buildScalar(const TileValues &tile, const Copy &copy,
                   const Place &place);
  void buildZero(const TileValues &tile, const Copy &copy, const Place &place);

  Elements find(const TileValues &tile, Value index, int64_t width,
                Value realEnd);
  void copyElement(const Copy &copy, const Place &place, Value index,
                   Value inMember);
  void zeroElement(const Copy &copy, const Place &place, Value index);

  /// Entry `index` (i32) of the addresses, as i64.
  Value address(Value index);
  SmallVector<Value> loadWords(Value base, int64_t bytes);
  Value load(Type dtype, Value base, Value index, bool isBucket);
  void store(Value value, Value base, Value index, bool isBucket);
  void storeWords(Value words, Value at);
  void storeWordsIf(Value condition, Value words, Value at);
  int64_t alignment(int64_t bytes, bool isBucket) const {
    return isBucket ? std::min(bytes, plan.granule) : bytes;
  }

  Value convertWords(const Copy &copy, ArrayRef<Value> words,
                     ArrayRef<Value> old);
  Value convert(const Copy &copy, Value value, Value old);
  Value zeroWords() {
    auto type = VectorType::get({kVectorBytes / 4}, i32);
    return arith::ConstantOp::create(b, b.getZeroAttr(type));
  }

  const TileKernel &kernel;
  const TileFunction &function;
  const TilePlan &plan;
  const KernelArithmetic arithmetic;
  Value addresses, bucket, tiles;
  Value thread; ///< i32
  int64_t numMembers = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value GpuTileBuilder::address(Value index) {
  Value at = LLVM::GEPOp::create(b, addresses.getType(), i64, addresses,
                                 ArrayRef<LLVM::GEPArg>{index});
  return LLVM::LoadOp::create(b, i64, at);
}

/// `bytes` bytes as vectors of at most four words.
SmallVector<Value> GpuTileBuilder::loadWords(Value base, int64_t bytes) {
  SmallVector<Value> words;
  for (int64_t at = 0; at < bytes; at += kVectorBytes) {
    int64_t part = std::min(bytes - at, kVectorBytes);
    words.push_back(LLVM::LoadOp::create(
        b, VectorType::get({part / 4}, i32),
        at ? offset(base, constant64(at)) : base, /*alignment=*/part));
  }
  return words;
}

/// Element `index` (i64) behind `base`. In a dense byte bucket elements start
/// at any byte; on the members' side they are aligned as their dtype asks.
Value GpuTileBuilder::load(Type dtype, Value base, Value index, bool isBucket) {
  int64_t bytes = getDtypeBytes(dtype);
  return LLVM::LoadOp::create(b, dtype, offset(base, mul(index, bytes)),
                              alignment(bytes, isBucket));
}

void GpuTileBuilder::store(Value value, Value base, Value index,
                           bool isBucket) {
  int64_t bytes = getDtypeBytes(value.getType());
  LLVM::StoreOp::create(b, value, offset(base, mul(index, bytes)),
                        alignment(bytes, isBucket));
}

void GpuTileBuilder::storeWords(Value words, Value at) {
  LLVM::StoreOp::create(b, words, at, /*alignment=*/kVectorBytes);
}

/// With a branch LLVM would sink the loads into it, and the batch of loads
/// would be lost; so the store itself is predicated.
void GpuTileBuilder::storeWordsIf(Value condition, Value words, Value at) {
  if (kernel.emulate)
    return when(condition, [&] { storeWords(words, at); });
  SmallVector<Value> operands = {at};
  for (int64_t i = 0; i < kVectorBytes / 4; ++i)
    operands.push_back(vector::ExtractOp::create(b, words, i));
  NVVM::InlinePtxOp::create(
      b, TypeRange(), /*readOnlyArgs=*/operands, /*readWriteArgs=*/ValueRange(),
      "st.global.v4.b32 [{$r0}], { {$r1}, {$r2}, {$r3}, {$r4} };", condition);
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

/// A scalar or vector of `from` as one of `to`: cast and division in the op's
/// order, then the addition.
Value GpuTileBuilder::convert(const Copy &copy, Value value, Value old) {
  Location loc = b.getLoc();
  if (function.packs)
    value = arithmetic.cast(b, loc, value, copy.to);
  if (function.divide)
    value = arithmetic.divide(b, loc, value, *function.divide);
  if (!function.packs)
    value = arithmetic.cast(b, loc, value, copy.to);
  return old ? arithmetic.add(b, loc, old, value) : value;
}

/// The words of one vector, converted to the 16 bytes that are stored.
Value GpuTileBuilder::convertWords(const Copy &copy, ArrayRef<Value> words,
                                   ArrayRef<Value> old) {
  if (copy.isPlain)
    return words.front();
  auto bitcast = [&](Value value, Type element) -> Value {
    auto type = cast<VectorType>(value.getType());
    int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
    return vector::BitCastOp::create(
        b, VectorType::get({bits / element.getIntOrFloatBitWidth()}, element),
        value);
  };
  Value oldVector = old.empty() ? Value() : bitcast(old.front(), copy.to);
  if (words.size() == 1)
    return bitcast(convert(copy, bitcast(words.front(), copy.from), oldVector),
                   i32);
  // Narrowing: two loads become the halves of one store.
  SmallVector<Value> halves;
  for (auto [index, part] : llvm::enumerate(words)) {
    Value oldHalf;
    if (oldVector) {
      int64_t size = copy.vector / 2;
      oldHalf = vector::ExtractStridedSliceOp::create(
          b, oldVector, ArrayRef<int64_t>(index * size),
          ArrayRef<int64_t>(size), ArrayRef<int64_t>(1));
    }
    halves.push_back(
        bitcast(convert(copy, bitcast(part, copy.from), oldHalf), i32));
  }
  return vector::ShuffleOp::create(b, halves[0], halves[1],
                                   ArrayRef<int64_t>{0, 1, 2, 3});
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Copy GpuTileBuilder::describe(DtypePair dtypes) const {
  Copy copy;
  copy.from = function.packs ? dtypes.member : dtypes.wire;
  copy.to = function.packs ? dtypes.wire : dtypes.member;
  copy.wire = dtypes.wire;
  copy.isPlain =
      dtypes.member == dtypes.wire && !function.divide && !function.adds;
  copy.fromBytes = getDtypeBytes(copy.from);
  copy.toBytes = getDtypeBytes(copy.to);
  copy.wireBytes = getDtypeBytes(copy.wire);
  // f64 is computed with one element at a time.
  bool isF64 = copy.from.isF64() || copy.to.isF64();
  copy.vector = copy.isPlain || !isF64 ? kVectorBytes / copy.toBytes : 0;
  if (copy.isPlain) // bits, of which an integer has as many
    copy.from = copy.to = copy.wire =
        IntegerType::get(b.getContext(), 8 * copy.toBytes);
  return copy;
}

Place GpuTileBuilder::locate(const TileValues &tile, const Copy &copy,
                             Value row) {
  int64_t memberBytes = function.packs ? copy.fromBytes : copy.toBytes;
  Value start = mul(tile.start, memberBytes);
  Value inRow = add(mul(row, plan.rowBytes), mul(tile.offset, plan.granule));
  Value bucketAddress = add(LLVM::PtrToIntOp::create(b, i64, bucket), inRow);
  Value memberAddress = add(address(tile.member), start);
  auto toPointer = [&](Value integer) {
    return LLVM::IntToPtrOp::create(b, pointer, integer);
  };
  // The low bits that a vector needs to be zero. One vector of the source may
  // be half as long as one of the target, or twice, and is then loaded in two.
  auto lowBits = [&](Value integer, int64_t elementBytes) {
    int64_t bytes = std::min(copy.vector * elementBytes, kVectorBytes);
    return both(integer, constant64(std::max<int64_t>(bytes, 1) - 1));
  };
  Value bucketBits = lowBits(bucketAddress, copy.wireBytes);
  Value low = either(bucketBits, lowBits(memberAddress, memberBytes));

  Place place;
  Value inBucket = offset(bucket, inRow);
  place.source = function.packs ? toPointer(memberAddress) : inBucket;
  place.target = function.packs ? inBucket : toPointer(memberAddress);
  if (function.adds) {
    Value oldAddress =
        add(address(add(tile.member, constant32(numMembers))), start);
    low = either(low, lowBits(oldAddress, memberBytes));
    place.old = toPointer(oldAddress);
  }
  place.isAligned = equal(low, constant64(0));
  place.zerosAligned =
      equal(both(bucketAddress, constant64(kVectorBytes - 1)), constant64(0));
  return place;
}

/// Elements [index, index + width) of the tile, which lie in one run if they
/// are fewer than the record's vector: valid if all of them are real, that is
/// before `realEnd` in the tile and not padding.
Elements GpuTileBuilder::find(const TileValues &tile, Value index,
                              int64_t width, Value realEnd) {
  // The run without a division; 0 if the tile has one run. The product of a
  // place below 4096 and 2^24 needs 64 bits.
  Value vectorIndex = shiftRight(index, tile.vectorLog);
  Value product = mul(widen(vectorIndex), widen(tile.reciprocal));
  Value run = narrow(shiftRight(product, constant64(24)));
  Value column = sub(index, mul(run, tile.inner));
  Value end = constant32(width);
  Elements elements;
  elements.isValid = both(atMost(add(index, end), realEnd),
                          atMost(add(column, end), tile.valid));
  Value inMember = add(mul(widen(run), tile.line), widen(column));
  elements.inMember = select(elements.isValid, inMember, constant64(0));
  return elements;
}

//===----------------------------------------------------------------------===//
// The classes
//===----------------------------------------------------------------------===//

void GpuTileBuilder::buildFull(const Copy &copy, const Place &place) {
  int64_t steps = kTileElements / kThreads / copy.vector;
  int64_t fromBytes = copy.vector * copy.fromBytes;
  Value index = widen(thread);
  Value source = offset(place.source, mul(index, fromBytes));
  Value target = offset(place.target, mul(index, kVectorBytes));
  Value old =
      function.adds ? offset(place.old, mul(index, kVectorBytes)) : Value();
  auto at = [&](Value base, int64_t step, int64_t bytes) {
    return step ? offset(base, constant64(step * kThreads * bytes)) : base;
  };
  for (int64_t first = 0; first < steps; first += kBatch) {
    int64_t last = std::min(first + kBatch, steps);
    SmallVector<SmallVector<Value>> loaded, loadedOld;
    for (int64_t step = first; step < last; ++step) {
      loaded.push_back(loadWords(at(source, step, fromBytes), fromBytes));
      loadedOld.emplace_back();
      if (old)
        loadedOld.back() = loadWords(at(old, step, kVectorBytes), kVectorBytes);
    }
    for (int64_t step = first; step < last; ++step)
      storeWords(
          convertWords(copy, loaded[step - first], loadedOld[step - first]),
          at(target, step, kVectorBytes));
  }
}

/// Elements are loaded and stored as integers: LLVM merges stores of branches,
/// and on the CPU a bf16 that it carries from one to the other becomes a call.
void GpuTileBuilder::copyElement(const Copy &copy, const Place &place,
                                 Value index, Value inMember) {
  Value inBucket = widen(index);
  Value from = function.packs ? inMember : inBucket;
  Value to = function.packs ? inBucket : inMember;
  auto loadFloat = [&](Type dtype, Value base, Value at, bool isBucket) {
    Value bits = load(b.getIntegerType(dtype.getIntOrFloatBitWidth()), base, at,
                      isBucket);
    return arith::BitcastOp::create(b, dtype, bits).getResult();
  };
  Value value;
  if (copy.isPlain) {
    value = load(copy.from, place.source, from, !function.packs);
  } else {
    Value old =
        function.adds ? loadFloat(copy.to, place.old, to, false) : Value();
    value = convert(
        copy, loadFloat(copy.from, place.source, from, !function.packs), old);
    value =
        arith::BitcastOp::create(b, b.getIntegerType(8 * copy.toBytes), value);
  }
  store(value, place.target, to, function.packs);
}

void GpuTileBuilder::zeroElement(const Copy &copy, const Place &place,
                                 Value index) {
  Value zero = constant(b.getIntegerType(8 * copy.toBytes), 0);
  store(zero, place.target, widen(index), /*isBucket=*/true);
}

void GpuTileBuilder::buildVector(const TileValues &tile, const Copy &copy,
                                 const Place &place) {
  int64_t steps = kTileElements / kThreads / copy.vector;
  int64_t fromBytes = copy.vector * copy.fromBytes;
  // With one run, real elements end where padding begins.
  Value realEnd = select(tile.several, tile.real, tile.valid);
  for (int64_t first = 0; first < steps; first += kBatch) {
    int64_t last = std::min(first + kBatch, steps);
    struct Step {
      Value index, isStored, to;
      Elements elements;
      SmallVector<Value> words, old;
    };
    SmallVector<Step> batch;
    for (int64_t number = first; number < last; ++number) {
      Step step;
      step.index = mul(add(thread, constant32(number * kThreads)), copy.vector);
      step.elements = find(tile, step.index, copy.vector, realEnd);
      // Element 0 of the tile is valid in this class, so clamped loads are
      // legal.
      Value inBucket =
          function.packs
              ? widen(step.index)
              : select(step.elements.isValid, widen(step.index), constant64(0));
      Value from = function.packs ? step.elements.inMember : inBucket;
      step.to = function.packs ? inBucket : step.elements.inMember;
      step.words =
          loadWords(offset(place.source, mul(from, copy.fromBytes)), fromBytes);
      if (function.adds)
        step.old = loadWords(offset(place.old, mul(step.to, copy.toBytes)),
                             kVectorBytes);
      step.isStored = step.elements.isValid;
      if (function.packs) {
        // Padding and gap get zeros; not a vector that is valid in part, which
        // single threads write, nor one that ends behind the tile.
        Value isZero = either(tile.several, atMost(tile.valid, step.index));
        Value fits =
            atMost(add(step.index, constant32(copy.vector)), tile.count);
        step.isStored = both(fits, either(step.isStored, isZero));
      }
      batch.push_back(step);
    }
    for (Step &step : batch) {
      Value words = convertWords(copy, step.words, step.old);
      if (function.packs)
        words = select(step.elements.isValid, words, zeroWords());
      storeWordsIf(step.isStored, words,
                   offset(place.target, mul(step.to, copy.toBytes)));
    }
  }

  // What vectors leave out: elements of the vector in which padding begins, if
  // it begins inside of one, and the last elements of a tile whose length is no
  // multiple of a vector. Thread t takes the t-th element of either.
  Value mask = constant32(-copy.vector);
  when(less(thread, constant32(copy.vector)), [&] {
    Value isPartial = both(
        compare(arith::CmpIPredicate::ne, both(tile.valid, mask), tile.valid),
        equal(tile.several, constant(i1, 0)));
    Value begin = both(tile.valid, mask);
    Value index = add(begin, thread);
    when(both(isPartial, less(index, tile.count)), [&] {
      when(
          less(index, tile.valid),
          [&] { copyElement(copy, place, index, widen(index)); },
          function.packs ? llvm::function_ref<void()>(
                               [&] { zeroElement(copy, place, index); })
                         : nullptr);
    });
    if (!function.packs)
      return;
    Value rest = add(both(tile.count, mask), thread);
    Value isRest = both(less(rest, tile.count), atMost(realEnd, rest));
    when(isRest, [&] { zeroElement(copy, place, rest); });
  });
}

void GpuTileBuilder::buildScalar(const TileValues &tile, const Copy &copy,
                                 const Place &place) {
  Value realEnd = select(tile.several, tile.real, tile.valid);
  loop(thread, tile.count, kThreads, [&](Value index) {
    Elements element = find(tile, index, 1, realEnd);
    auto copyIt = [&] { copyElement(copy, place, index, element.inMember); };
    if (function.packs)
      when(element.isValid, copyIt, [&] { zeroElement(copy, place, index); });
    else
      when(element.isValid, copyIt);
  });
}

void GpuTileBuilder::buildZero(const TileValues &tile, const Copy &copy,
                               const Place &place) {
  int64_t vector = kVectorBytes / copy.wireBytes;
  Value end = both(tile.count, constant32(-vector));
  loop(mul(thread, vector), end, kThreads * vector, [&](Value index) {
    storeWords(zeroWords(),
               offset(place.target, mul(widen(index), copy.wireBytes)));
  });
  loop(add(end, thread), tile.count, kThreads,
       [&](Value index) { zeroElement(copy, place, index); });
}

void GpuTileBuilder::buildClasses(const TileValues &tile, const Copy &copy,
                                  Value row) {
  Place place = locate(tile, copy, row);
  auto scalar = [&] { buildScalar(tile, copy, place); };
  auto zeroOrScalar = [&] {
    if (!function.packs)
      return scalar();
    Value isZero = both(place.zerosAligned, equal(tile.valid, constant32(0)));
    when(isZero, [&] { buildZero(tile, copy, place); }, scalar);
  };
  if (copy.vector == 0)
    return zeroOrScalar();
  Value oneRun = equal(tile.several, constant(i1, 0));
  Value isFull = both(both(place.isAligned, oneRun),
                      equal(tile.valid, constant32(kTileElements)));
  // A vector must not cross a run, and one must be valid for clamped loads.
  Value vectorLog = constant32(llvm::Log2_64(copy.vector));
  Value isVector =
      both(both(place.isAligned, atMost(constant32(copy.vector), tile.valid)),
           either(oneRun, both(atMost(vectorLog, tile.vectorLog),
                               atMost(constant32(1), tile.real))));
  when(
      isFull, [&] { buildFull(copy, place); },
      [&] {
        when(isVector, [&] { buildVector(tile, copy, place); }, zeroOrScalar);
      });
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void GpuTileBuilder::buildBody(Value tileIndex, Value row) {
  TileValues tile = readRecord(tiles, tileIndex, row);
  forPair(tile, function.pairs,
          [&](DtypePair pair) { buildClasses(tile, describe(pair), row); });
}

LLVM::LLVMFuncOp GpuTileBuilder::build(LLVM::GlobalOp table, int64_t members) {
  numMembers = members;
  MLIRContext *context = b.getContext();
  auto generic = LLVM::LLVMPointerType::get(context);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                          {generic, pointer});
  auto func = LLVM::LLVMFuncOp::create(
      b, kernel.name, type,
      kernel.emulate ? LLVM::Linkage::Internal : LLVM::Linkage::External);
  func.setArgAttr(1, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(func.addEntryBlock(b));
  addresses = func.getArgument(0);
  bucket = func.getArgument(1);

  if (kernel.emulate) {
    tiles = LLVM::AddressOfOp::create(b, table);
    Value zero = constant64(0);
    loop(zero, constant64(plan.rows), 1, [&](Value row) {
      loop(zero, constant64(plan.tiles.size()), 1, [&](Value tile) {
        loop(constant32(0), constant32(kThreads), 1, [&](Value index) {
          thread = index;
          buildBody(tile, row);
        });
      });
    });
  } else {
    auto array = LLVM::LLVMArrayType::get(i64, kernel.numAddresses(members));
    func.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(),
                    TypeAttr::get(array));
    func.setArgAttr(0, LLVM::LLVMDialect::getAlignAttrName(),
                    b.getI64IntegerAttr(8));
    func.setArgAttr(0, NVVM::NVVMDialect::getGridConstantAttrName(),
                    b.getUnitAttr());
    func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
    func->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
    func->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                  b.getDenseI32ArrayAttr({int32_t(kThreads), 1, 1}));
    Value block = NVVM::BlockIdXOp::create(b, i32);
    Value row = NVVM::BlockIdYOp::create(b, i32);
    thread = NVVM::ThreadIdXOp::create(b, i32);
    // Harmless unless the launch asks to overlap with the kernel before.
    if (kernel.waits)
      NVVM::GriddepcontrolOp::create(
          b, NVVM::GridDepActionKindAttr::get(context,
                                              NVVM::GridDepActionKind::wait));
    tiles = LLVM::AddressOfOp::create(b, table);
    buildBody(widen(block), widen(row));
  }
  LLVM::ReturnOp::create(b, ValueRange());
  return func;
}

LLVM::LLVMFuncOp TileKernel::build(OpBuilder &builder, Location loc,
                                   LLVM::GlobalOp table,
                                   int64_t numMembers) const {
  return GpuTileBuilder(*this, builder, loc).build(table, numMembers);
}

//===- TileBodyGpu.cpp - the kernel that walks a tile plan ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block of 256 threads per tile and row, not persistent. A thread handles
// vectors of 16 bytes on the side whose elements are wider, so that a warp's
// loads and stores are whole sectors, and issues the loads of a batch before it
// uses the first one. Which of five classes a block takes is decided at run
// time by values that are the same in the whole block, so any caller's pointer
// is safe; no class touches a byte outside the tensors. The classes stand in
// one file because they share those values, and the choice between them.
//
//   F  full     aligned, 4096 valid elements of one run: no predicate at all
//   V  vector   aligned, at least one vector: loads at indices that are always
//               legal, predicated stores, zeros for the padding; the elements
//               of a last partial vector by single threads
//   Z  zero     nothing valid: zeros only, the source is never touched
//   U  unequal  one run whose sides start at different places in a vector: the
//               two aligned vectors that a vector lies in, shifted together;
//               elements at both ends by single threads
//   S  scalar   everything else: one element per thread and step, several steps
//               at a time; where a side is not even aligned to its elements,
//               which a device would not load or store, byte by byte
//
// The same ops run on the CPU, thread by thread, when the kernel is emulated.
// There a predicated store is a branch, and casts are KernelArithmetic's.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/TileBodyGpu.h"

#include "fsdp/Codegen/GpuBuilder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Registers of a thread: with more, an SM would not hold all of its 2048
/// threads. Loads in flight, and so the speed, are proportional to their
/// number. Unpacking into several runs, whose places are computed one by one,
/// code for more than two pairs of dtypes, and divisions of 16 bits in f64
/// would spill; six blocks, 1536 threads, then have enough in flight.
static constexpr int64_t kRegisters = 32;
static constexpr int64_t kMoreRegisters = 40;
static constexpr size_t kFewPairs = 2;
/// Vectors of a thread that are loaded before the first is used, at the most,
/// and bytes: half of its registers, or a quarter in class V, where others hold
/// places and counts; half of that where a division works with f64.
static constexpr int64_t kBatch = 4;
static constexpr int64_t kBatchBytes = 64;
static constexpr int64_t kSmallBatchBytes = 32;
/// Bytes of a batch of class U that are loaded, each as part of two vectors.
static constexpr int64_t kUnequalBatchBytes = 16;
/// Elements of a batch of class S.
static constexpr int64_t kScalarBatch = 4;
/// Vectors that a tile of class U has at the least.
static constexpr int64_t kUnequalVectors = 4;

namespace {
/// What a pair of dtypes means in the direction of the copy.
struct Copy {
  Type from, to, wire;
  int64_t fromBytes, toBytes, wireBytes;
  bool isPlain;         ///< bits are copied as they are
  int64_t tileElements; ///< of a full tile
  /// Elements of a vector; 0 if only single elements go.
  int64_t vector = 0;
  int64_t loadBytes() const { return vector * fromBytes; }
  int64_t storeBytes() const { return vector * toBytes; }
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
  Value inMember; ///< i32, from the tile's start; 0 if not valid
};

/// One vector of a thread.
struct Step {
  Value isValid, isStored;
  Value target;
  Value words;
  Value old; ///< the existing shard's, if the function adds
};

class GpuTileBuilder : GpuBuilder {
public:
  GpuTileBuilder(const TileKernel &kernel, OpBuilder &builder, Location loc)
      : GpuBuilder(builder, loc, kernel.emulate), kernel(kernel),
        function(kernel.function), plan(kernel.plan) {}

  LLVM::LLVMFuncOp build(LLVM::GlobalOp table, int64_t numMembers);

private:
  bool hasSeveralRuns() const;
  int64_t numRegisters() const;
  void buildBody(Value tileIndex, Value row);
  Copy describe(DtypePair dtypes) const;
  Place locate(const TileValues &tile, const Copy &copy, Value row);
  int64_t stepsOfBatch(const Copy &copy, int64_t batchBytes) const;
  void buildClasses(const TileValues &tile, const Copy &copy, Value row);
  void buildFull(const Copy &copy, const Place &place);
  Step loadStep(const TileValues &tile, const Copy &copy, const Place &place,
                int64_t number);
  void storeStep(const Copy &copy, const Step &step);
  void buildVector(const TileValues &tile, const Copy &copy,
                   const Place &place);
  void buildVectorThatAdds(const TileValues &tile, const Copy &copy,
                           const Place &place);
  void buildPartialVectors(const TileValues &tile, const Copy &copy,
                           const Place &place);
  Value isUnequal(const TileValues &tile, const Copy &copy, const Place &place);
  void buildUnequal(const TileValues &tile, const Copy &copy,
                    const Place &place);
  SmallVector<Value> shiftWords(SmallVector<Value> loaded, Value skipped,
                                Value shift);
  void buildScalar(const TileValues &tile, const Copy &copy,
                   const Place &place);
  void buildScalarBatches(const TileValues &tile, const Copy &copy,
                          const Place &place);
  void buildZeroElements(const TileValues &tile, const Copy &copy,
                         const Place &place);
  void buildZero(const TileValues &tile, const Copy &copy, const Place &place);

  Elements find(const TileValues &tile, Value index, int64_t width,
                Value realEnd);
  /// Where the tile's real elements end; with one run, where padding begins.
  Value realEnd(const TileValues &tile) {
    return select(tile.several, tile.real, tile.valid);
  }
  Value loadElement(const Copy &copy, const Place &place, Value from, Value to,
                    Access access);
  void copyElement(const Copy &copy, const Place &place, Value index,
                   Value inMember, Access access);
  void zeroElement(const Copy &copy, const Place &place, Value index,
                   Access access);
  void buildScalar(const TileValues &tile, const Copy &copy, const Place &place,
                   Access access);

  void storeWordsIf(Value condition, Value words, Value at);
  void storeIf(Value condition, Value value, Value base, Value index);
  Value convertWords(const Copy &copy, Value words, Value old);
  Value convert(const Copy &copy, Value value, Value old) {
    return function.convert(arithmetic, b, b.getLoc(), value, copy.to, old);
  }
  const TileKernel &kernel;
  const TileFunction &function;
  const TilePlan &plan;
  Value bucket, tiles;
  int64_t numMembers = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// With a branch LLVM would sink the loads into it, and the batch of loads
/// would be lost; so the store itself is predicated.
void GpuTileBuilder::storeWordsIf(Value condition, Value words, Value at) {
  if (emulate)
    return when(condition, [&] { storeWords(words, at); });
  SmallVector<Value> operands = {at};
  for (int64_t i = 0; i < numWords(words); ++i)
    operands.push_back(vector::ExtractOp::create(b, words, i));
  StringRef code =
      numWords(words) == 2
          ? "st.global.v2.b32 [{$r0}], { {$r1}, {$r2} };"
          : "st.global.v4.b32 [{$r0}], { {$r1}, {$r2}, {$r3}, {$r4} };";
  NVVM::InlinePtxOp::create(b, TypeRange(), /*readOnlyArgs=*/operands,
                            /*readWriteArgs=*/ValueRange(), code, condition);
}

/// The same with `value`, an integer, as element `index` (i32) after `base`.
void GpuTileBuilder::storeIf(Value condition, Value value, Value base,
                             Value index) {
  if (emulate)
    return when(condition, [&] { store(value, base, index, Access::Whole); });
  unsigned bits = value.getType().getIntOrFloatBitWidth();
  Value at = elementAt(base, index, bits / 8);
  if (bits == 8) // no register is so short
    value = arith::ExtUIOp::create(b, b.getI16Type(), value);
  std::string code = "st.global.b" + std::to_string(bits) + " [{$r0}], {$r1};";
  NVVM::InlinePtxOp::create(b, TypeRange(),
                            /*readOnlyArgs=*/ValueRange{at, value},
                            /*readWriteArgs=*/ValueRange(), code, condition);
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

/// The words of one vector, converted to those that are stored.
Value GpuTileBuilder::convertWords(const Copy &copy, Value words, Value old) {
  if (copy.isPlain)
    return words;
  auto bitcast = [&](Value value, Type element) -> Value {
    auto type = cast<VectorType>(value.getType());
    int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
    return vector::BitCastOp::create(
        b, VectorType::get({bits / element.getIntOrFloatBitWidth()}, element),
        value);
  };
  return bitcast(convert(copy, bitcast(words, copy.from),
                         old ? bitcast(old, copy.to) : Value()),
                 i32);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Copy GpuTileBuilder::describe(DtypePair dtypes) const {
  Copy copy;
  copy.from = function.getSource(dtypes);
  copy.to = function.getTarget(dtypes);
  copy.wire = dtypes.wire;
  copy.isPlain = dtypes.isCopy();
  copy.tileElements = dtypes.tileElements();
  copy.fromBytes = getDtypeBytes(copy.from);
  copy.toBytes = getDtypeBytes(copy.to);
  copy.wireBytes = getDtypeBytes(copy.wire);
  // f64 is computed with one element at a time.
  bool isF64 = copy.from.isF64() || copy.to.isF64();
  if (copy.isPlain || !isF64)
    copy.vector = kVectorBytes / std::max(copy.fromBytes, copy.toBytes);
  return copy;
}

Place GpuTileBuilder::locate(const TileValues &tile, const Copy &copy,
                             Value row) {
  int64_t memberBytes = function.packs ? copy.fromBytes : copy.toBytes;
  Value start = mul(tile.start, memberBytes);
  Value inRow = add(mul(row, plan.rowBytes), mul(tile.offset, plan.granule));
  Value memberAddress = add(word(tile.member), start);
  Place place;
  Value inBucket = offset(bucket, inRow);
  Value inMember = toPointer(memberAddress);
  place.source = function.packs ? inMember : inBucket;
  place.target = function.packs ? inBucket : inMember;
  auto vectorBits = [&](Value pointer, int64_t elementBytes) {
    return lowBits(pointer, std::max<int64_t>(copy.vector * elementBytes, 1));
  };
  Value low = either(vectorBits(place.source, copy.fromBytes),
                     vectorBits(place.target, copy.toBytes));
  if (function.adds) {
    Value oldAddress =
        add(word(add(tile.member, constant32(numMembers))), start);
    place.old = toPointer(oldAddress);
    low = either(low, vectorBits(place.old, copy.toBytes));
  }
  place.isAligned = equal(low, constant64(0));
  place.zerosAligned = equal(lowBits(inBucket, kVectorBytes), constant64(0));
  return place;
}

/// Elements [index, index + width) of the tile, which lie in one run if they
/// are fewer than the record's vector: valid if all of them are real, that is
/// before `realEnd` in the tile and not padding.
Elements GpuTileBuilder::find(const TileValues &tile, Value index,
                              int64_t width, Value realEnd) {
  // The run without a division; 0 if the tile has one run. The product of a
  // place in the tile and 2^28 needs 64 bits.
  Value vectorIndex = shiftRight(index, tile.vectorLog);
  Value product = mul(widen(vectorIndex), widen(tile.reciprocal));
  Value run = narrow(shiftRight(product, constant64(kReciprocalLog)));
  Value column = sub(index, mul(run, tile.inner));
  // A line is at most `inner` for every row, so that the runs of a tile lie
  // within 32 KB for every row, of which there are at most kMaxRows: less than
  // 2^31 bytes.
  Value end = constant32(width);
  Elements elements;
  elements.isValid = both(atMost(add(index, end), realEnd),
                          atMost(add(column, end), tile.valid));
  Value inMember = add(mul(run, narrow(tile.line)), column);
  elements.inMember = select(elements.isValid, inMember, constant32(0));
  return elements;
}

//===----------------------------------------------------------------------===//
// The classes
//===----------------------------------------------------------------------===//

/// Steps whose loads come before the first store.
int64_t GpuTileBuilder::stepsOfBatch(const Copy &copy,
                                     int64_t batchBytes) const {
  if (function.divide && arithmetic.dividesInF64(copy.wire, *function.divide))
    batchBytes /= 2;
  int64_t bytes = copy.loadBytes() + (function.adds ? copy.storeBytes() : 0);
  return std::clamp<int64_t>(batchBytes / bytes, 1, kBatch);
}

void GpuTileBuilder::buildFull(const Copy &copy, const Place &place) {
  int64_t steps = copy.tileElements / kThreads / copy.vector;
  int64_t loadBytes = copy.loadBytes(), storeBytes = copy.storeBytes();
  Value source = elementAt(place.source, thread, loadBytes);
  Value target = elementAt(place.target, thread, storeBytes);
  Value old =
      function.adds ? elementAt(place.old, thread, storeBytes) : Value();
  auto at = [&](Value base, int64_t step, int64_t bytes) {
    return step ? offset(base, constant64(step * kThreads * bytes)) : base;
  };
  int64_t batchSize = stepsOfBatch(copy, kBatchBytes);
  for (int64_t first = 0; first < steps; first += batchSize) {
    int64_t last = std::min(first + batchSize, steps);
    SmallVector<std::pair<Value, Value>> loaded;
    for (int64_t step = first; step < last; ++step) {
      Value words = loadWords(at(source, step, loadBytes), loadBytes);
      Value oldWords =
          old ? loadWords(at(old, step, storeBytes), storeBytes) : Value();
      loaded.emplace_back(words, oldWords);
    }
    for (int64_t step = first; step < last; ++step) {
      auto [words, oldWords] = loaded[step - first];
      storeWords(convertWords(copy, words, oldWords),
                 at(target, step, storeBytes));
    }
  }
}

/// Element `from` of the source as the bits that element `to` of the target
/// gets. Elements are loaded and stored as integers: LLVM merges stores of
/// branches, and on the CPU a bf16 that it carries from one to the other
/// becomes a call.
Value GpuTileBuilder::loadElement(const Copy &copy, const Place &place,
                                  Value from, Value to, Access access) {
  if (copy.isPlain)
    return load(copy.from, place.source, from, access);
  auto loadFloat = [&](Type dtype, Value base, Value at) {
    Value bits =
        load(b.getIntegerType(dtype.getIntOrFloatBitWidth()), base, at, access);
    return arith::BitcastOp::create(b, dtype, bits).getResult();
  };
  Value old = function.adds ? loadFloat(copy.to, place.old, to) : Value();
  Value value = convert(copy, loadFloat(copy.from, place.source, from), old);
  value =
      arith::BitcastOp::create(b, b.getIntegerType(8 * copy.toBytes), value);
  return access == Access::Bytes ? asInteger(value) : value;
}

void GpuTileBuilder::copyElement(const Copy &copy, const Place &place,
                                 Value index, Value inMember, Access access) {
  Value from = function.packs ? inMember : index;
  Value to = function.packs ? index : inMember;
  store(loadElement(copy, place, from, to, access), place.target, to, access);
}

void GpuTileBuilder::zeroElement(const Copy &copy, const Place &place,
                                 Value index, Access access) {
  Value zero = constant(b.getIntegerType(8 * copy.toBytes), 0);
  store(zero, place.target, index, access);
}

/// The vector of step `number`, loaded, and where it goes.
Step GpuTileBuilder::loadStep(const TileValues &tile, const Copy &copy,
                              const Place &place, int64_t number) {
  // The side that is contiguous needs no place of its own per step.
  Value firstIndex = mul(thread, copy.vector);
  int64_t distance = number * kThreads * copy.vector;
  Value index = add(firstIndex, constant32(distance));
  Elements elements = find(tile, index, copy.vector, realEnd(tile));
  Value isValid = elements.isValid, inMember = elements.inMember;

  Step step;
  step.isValid = step.isStored = isValid;
  // Element 0 of the tile is valid in this class, so clamped loads are legal.
  Value from =
      function.packs ? inMember : select(isValid, index, constant32(0));
  step.words = loadWords(elementAt(place.source, from, copy.fromBytes),
                         copy.loadBytes());
  if (function.adds)
    step.old = loadWords(elementAt(place.old, inMember, copy.toBytes),
                         copy.storeBytes());
  if (!function.packs) {
    step.target = elementAt(place.target, inMember, copy.toBytes);
    return step;
  }
  step.target = offset(elementAt(place.target, firstIndex, copy.toBytes),
                       constant64(distance * copy.toBytes));
  // Padding and gap get zeros; not a vector that is valid in part, which single
  // threads write, nor one that ends behind the tile.
  Value isZero = either(tile.several, atMost(tile.valid, index));
  Value fits = atMost(add(index, constant32(copy.vector)), tile.count);
  step.isStored = both(fits, either(isValid, isZero));
  return step;
}

void GpuTileBuilder::storeStep(const Copy &copy, const Step &step) {
  Value words = convertWords(copy, step.words, step.old);
  if (function.packs)
    words = select(step.isValid, words, zeroWords(copy.storeBytes()));
  storeWordsIf(step.isStored, words, step.target);
}

void GpuTileBuilder::buildVector(const TileValues &tile, const Copy &copy,
                                 const Place &place) {
  int64_t steps = copy.tileElements / kThreads / copy.vector;
  int64_t batchSize = stepsOfBatch(copy, kSmallBatchBytes);
  for (int64_t first = 0; first < steps; first += batchSize) {
    int64_t last = std::min(first + batchSize, steps);
    SmallVector<Step> batch;
    for (int64_t number = first; number < last; ++number)
      batch.push_back(loadStep(tile, copy, place, number));
    for (const Step &step : batch)
      storeStep(copy, step);
  }
  buildPartialVectors(tile, copy, place);
}

/// The same where the existing shards may be the results. A clamped load could
/// then read what another thread has written, so what is not valid is branched
/// around; only the ends of shards are in this class.
void GpuTileBuilder::buildVectorThatAdds(const TileValues &tile,
                                         const Copy &copy, const Place &place) {
  int64_t steps = copy.tileElements / kThreads / copy.vector;
  for (int64_t number = 0; number < steps; ++number) {
    Value index = add(mul(thread, copy.vector),
                      constant32(number * kThreads * copy.vector));
    when(find(tile, index, copy.vector, realEnd(tile)).isValid,
         [&] { storeStep(copy, loadStep(tile, copy, place, number)); });
  }
  buildPartialVectors(tile, copy, place);
}

/// What vectors leave out: elements of the vector in which padding begins, if
/// it begins inside of one, and the last elements of a tile whose length is no
/// multiple of a vector. Thread t takes the t-th element of either.
void GpuTileBuilder::buildPartialVectors(const TileValues &tile,
                                         const Copy &copy, const Place &place) {
  Value mask = constant32(-copy.vector);
  when(less(thread, constant32(copy.vector)), [&] {
    Value begin = both(tile.valid, mask);
    Value isPartial = both(compare(arith::CmpIPredicate::ne, begin, tile.valid),
                           equal(tile.several, constant(i1, 0)));
    Value index = add(begin, thread);
    when(both(isPartial, less(index, tile.count)), [&] {
      auto copyIt = [&] {
        copyElement(copy, place, index, index, Access::Whole);
      };
      auto zeroIt = [&] { zeroElement(copy, place, index, Access::Whole); };
      if (function.packs)
        when(less(index, tile.valid), copyIt, zeroIt);
      else
        when(less(index, tile.valid), copyIt);
    });
    if (!function.packs)
      return;
    // Both may be the same vector.
    Value written =
        select(isPartial, add(begin, constant32(copy.vector)), realEnd(tile));
    Value rest = add(both(tile.count, mask), thread);
    Value isRest = both(less(rest, tile.count), atMost(written, rest));
    when(isRest, [&] { zeroElement(copy, place, rest, Access::Whole); });
  });
}

void GpuTileBuilder::buildScalar(const TileValues &tile, const Copy &copy,
                                 const Place &place, Access access) {
  loop(thread, tile.count, kThreads, [&](Value index) {
    Elements element = find(tile, index, 1, realEnd(tile));
    auto copyIt = [&] {
      copyElement(copy, place, index, element.inMember, access);
    };
    if (function.packs)
      when(element.isValid, copyIt,
           [&] { zeroElement(copy, place, index, access); });
    else
      when(element.isValid, copyIt);
  });
}

/// Batches of elements, all of which are loaded before the first is stored.
/// What is not valid reads the tile's first element, which must be.
void GpuTileBuilder::buildScalarBatches(const TileValues &tile,
                                        const Copy &copy, const Place &place) {
  bool isLarge =
      copy.fromBytes == 8 || copy.toBytes == 8 ||
      (function.divide && arithmetic.dividesInF64(copy.wire, *function.divide));
  int64_t steps = isLarge ? kScalarBatch / 2 : kScalarBatch;
  Value end = function.packs ? tile.count : realEnd(tile);
  loop(thread, end, kThreads * steps, [&](Value first) {
    SmallVector<std::pair<Elements, Value>> batch;
    for (int64_t step = 0; step < steps; ++step) {
      Value index = add(first, constant32(step * kThreads));
      Elements element = find(tile, index, 1, realEnd(tile));
      Value from = function.packs
                       ? element.inMember
                       : select(element.isValid, index, constant32(0));
      batch.emplace_back(element, loadElement(copy, place, from, /*to=*/Value(),
                                              Access::Whole));
    }
    for (int64_t step = 0; step < steps; ++step) {
      auto [element, value] = batch[step];
      Value index = add(first, constant32(step * kThreads));
      if (function.packs) {
        value = select(element.isValid, value, constant(value.getType(), 0));
        // The loop ends before the first one would.
        if (step == 0)
          store(value, place.target, index, Access::Whole);
        else
          storeIf(less(index, tile.count), value, place.target, index);
      } else {
        storeIf(element.isValid, value, place.target, element.inMember);
      }
    }
  });
}

void GpuTileBuilder::buildZeroElements(const TileValues &tile, const Copy &copy,
                                       const Place &place) {
  loop(thread, tile.count, kThreads,
       [&](Value index) { zeroElement(copy, place, index, Access::Whole); });
}

/// Elements of a dense byte bucket start at any byte, and so may the buffers.
void GpuTileBuilder::buildScalar(const TileValues &tile, const Copy &copy,
                                 const Place &place) {
  auto buildWhole = [&] {
    // An existing shard may be the result, so that a clamped load could read
    // what another thread has written.
    if (function.adds)
      return buildScalar(tile, copy, place, Access::Whole);
    Value isFirstValid = both(atMost(constant32(1), tile.valid),
                              atMost(constant32(1), realEnd(tile)));
    auto batches = [&] { buildScalarBatches(tile, copy, place); };
    if (function.packs)
      when(isFirstValid, batches,
           [&] { buildZeroElements(tile, copy, place); });
    else
      when(isFirstValid, batches);
  };
  if (copy.fromBytes == 1 && copy.toBytes == 1)
    return buildWhole();
  Value low = either(lowBits(place.source, copy.fromBytes),
                     lowBits(place.target, copy.toBytes));
  if (function.adds)
    low = either(low, lowBits(place.old, copy.toBytes));
  when(equal(low, constant64(0)), buildWhole,
       [&] { buildScalar(tile, copy, place, Access::Bytes); });
}

//===----------------------------------------------------------------------===//
// Class U
//===----------------------------------------------------------------------===//

/// One run of some length, every side aligned to its elements; of what is
/// added, both sides in the same place of a vector.
Value GpuTileBuilder::isUnequal(const TileValues &tile, const Copy &copy,
                                const Place &place) {
  Value low = either(lowBits(place.source, copy.fromBytes),
                     lowBits(place.target, copy.toBytes));
  if (function.adds) {
    auto inVector = [&](Value at) { return lowBits(at, copy.storeBytes()); };
    low = either(low, sub(inVector(place.target), inVector(place.old)));
  }
  Value least = constant32(kUnequalVectors * copy.vector);
  return both(both(equal(low, constant64(0)), atMost(least, tile.valid)),
              equal(tile.several, constant(i1, 0)));
}

/// The words of a vector that starts `shift` bits (i32, below 32) after word
/// `skipped` (i32) of `loaded`, which is two vectors.
SmallVector<Value> GpuTileBuilder::shiftWords(SmallVector<Value> loaded,
                                              Value skipped, Value shift) {
  for (int64_t by = loaded.size() / 4; by >= 1; by /= 2) {
    Value skips = compare(arith::CmpIPredicate::ne,
                          both(skipped, constant32(by)), constant32(0));
    for (size_t i = 0; i + by < loaded.size(); ++i)
      loaded[i] = select(skips, loaded[i + by], loaded[i]);
    loaded.pop_back_n(by);
  }
  SmallVector<Value> words;
  for (size_t i = 0; i + 1 < loaded.size(); ++i)
    words.push_back(
        LLVM::FshrOp::create(b, i32, loaded[i + 1], loaded[i], shift));
  return words;
}

void GpuTileBuilder::buildUnequal(const TileValues &tile, const Copy &copy,
                                  const Place &place) {
  int64_t loadBytes = copy.loadBytes(), storeBytes = copy.storeBytes();
  auto log2 = [&](int64_t value) { return constant32(llvm::Log2_64(value)); };
  auto modulo = [&](Value value, int64_t by) {
    return both(value, constant32(by - 1));
  };
  auto inVector = [&](Value at, int64_t bytes) {
    return narrow(lowBits(at, bytes));
  };
  // The first vector whose target is aligned; the next one if its first aligned
  // load would begin before the tile.
  Value toTarget =
      sub(constant32(storeBytes), inVector(place.target, storeBytes));
  Value head = shiftRight(modulo(toTarget, storeBytes), log2(copy.toBytes));
  Value headBytes = mul(head, copy.fromBytes);
  Value misaligned =
      modulo(add(inVector(place.source, loadBytes), headBytes), loadBytes);
  head = select(less(headBytes, misaligned), add(head, constant32(copy.vector)),
                head);
  // No second load where the first has all: it could end after the tile.
  Value second = select(equal(misaligned, constant32(0)), constant32(0),
                        constant32(loadBytes));
  // As many vectors as have both loads inside of what is valid.
  Value bytes = mul(sub(tile.valid, head), copy.fromBytes);
  Value vectors = add(shiftRight(sub(add(bytes, misaligned),
                                     add(second, constant32(loadBytes))),
                                 log2(loadBytes)),
                      constant32(1));
  Value skipped = shiftRight(misaligned, constant32(2));
  Value shift = mul(modulo(misaligned, 4), 8);
  Value source = offset(elementAt(place.source, head, copy.fromBytes),
                        sub(constant64(0), widen(misaligned)));
  Value target = elementAt(place.target, head, copy.toBytes);
  Value old =
      function.adds ? elementAt(place.old, head, copy.toBytes) : Value();

  struct Loaded {
    Value number, isVector;
    SmallVector<Value> words;
  };
  auto loadVector = [&](Value number, Value isVector, Value at) {
    Value first = elementAt(source, at, loadBytes);
    Loaded loaded = {number, isVector, {}};
    for (Value place : {first, offset(first, widen(second))}) {
      Value words = loadWords(place, loadBytes);
      for (int64_t i = 0; i < loadBytes / 4; ++i)
        loaded.words.push_back(vector::ExtractOp::create(b, words, i));
    }
    return loaded;
  };
  auto convertVector = [&](const Loaded &loaded, Value old) {
    SmallVector<Value> words = shiftWords(loaded.words, skipped, shift);
    auto type = VectorType::get({loadBytes / 4}, i32);
    return convertWords(copy, vector::FromElementsOp::create(b, type, words),
                        old);
  };
  int64_t steps = copy.tileElements / kThreads / copy.vector;
  if (function.adds) {
    // The results may be the existing shards.
    loop(thread, vectors, kThreads, [&](Value number) {
      Value words = loadWords(elementAt(old, number, storeBytes), storeBytes);
      Loaded loaded = loadVector(number, Value(), number);
      storeWords(convertVector(loaded, words),
                 elementAt(target, number, storeBytes));
    });
  } else {
    int64_t batchSize = kUnequalBatchBytes / loadBytes;
    for (int64_t first = 0; first < steps; first += batchSize) {
      SmallVector<Loaded> batch;
      for (int64_t step = first; step < std::min(first + batchSize, steps);
           ++step) {
        Value number = add(thread, constant32(step * kThreads));
        Value isVector = less(number, vectors);
        batch.push_back(loadVector(number, isVector,
                                   select(isVector, number, constant32(0))));
      }
      for (const Loaded &loaded : batch)
        storeWordsIf(loaded.isVector, convertVector(loaded, Value()),
                     elementAt(target, loaded.number, storeBytes));
    }
  }

  // Elements before and after the vectors, and the padding.
  Value written = mul(vectors, copy.vector);
  Value end = sub(function.packs ? tile.count : tile.valid, written);
  loop(thread, end, kThreads, [&](Value number) {
    Value index = select(less(number, head), number, add(number, written));
    auto copyIt = [&] {
      copyElement(copy, place, index, index, Access::Whole);
    };
    if (function.packs)
      when(less(index, tile.valid), copyIt,
           [&] { zeroElement(copy, place, index, Access::Whole); });
    else
      copyIt();
  });
}

void GpuTileBuilder::buildZero(const TileValues &tile, const Copy &copy,
                               const Place &place) {
  int64_t vector = kVectorBytes / copy.wireBytes;
  Value end = both(tile.count, constant32(-vector));
  loop(mul(thread, vector), end, kThreads * vector, [&](Value index) {
    storeWords(zeroWords(kVectorBytes),
               elementAt(place.target, index, copy.wireBytes));
  });
  loop(add(end, thread), tile.count, kThreads,
       [&](Value index) { zeroElement(copy, place, index, Access::Whole); });
}

void GpuTileBuilder::buildClasses(const TileValues &tile, const Copy &copy,
                                  Value row) {
  Place place = locate(tile, copy, row);
  auto scalar = [&] {
    if (copy.vector == 0)
      return buildScalar(tile, copy, place);
    when(
        isUnequal(tile, copy, place), [&] { buildUnequal(tile, copy, place); },
        [&] { buildScalar(tile, copy, place); });
  };
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
                      equal(tile.valid, constant32(copy.tileElements)));
  // A vector must not cross a run, and one must be valid for clamped loads.
  Value vectorLog = constant32(llvm::Log2_64(copy.vector));
  Value isVector =
      both(both(place.isAligned, atMost(constant32(copy.vector), tile.valid)),
           either(oneRun, both(atMost(vectorLog, tile.vectorLog),
                               atMost(constant32(1), tile.real))));
  when(
      isFull, [&] { buildFull(copy, place); },
      [&] {
        when(
            isVector,
            [&] {
              if (function.adds)
                buildVectorThatAdds(tile, copy, place);
              else
                buildVector(tile, copy, place);
            },
            zeroOrScalar);
      });
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

bool GpuTileBuilder::hasSeveralRuns() const {
  return llvm::any_of(plan.tiles,
                      [](const Tile &tile) { return tile.severalRuns; });
}

int64_t GpuTileBuilder::numRegisters() const {
  // Of 16 bits only those that f32 does not divide right.
  bool dividesInF64 =
      function.divide && llvm::any_of(function.pairs, [&](DtypePair pair) {
        return getDtypeBytes(pair.wire) == 2 && !pair.isCopy() &&
               arithmetic.dividesInF64(pair.wire, *function.divide);
      });
  bool needsMore = (!function.packs && hasSeveralRuns()) ||
                   function.pairs.size() > kFewPairs || dividesInF64;
  return needsMore ? kMoreRegisters : kRegisters;
}

void GpuTileBuilder::buildBody(Value tileIndex, Value row) {
  TileValues tile = readRecord(tiles, tileIndex, row, hasSeveralRuns());
  forPair(tile, function.pairs,
          [&](DtypePair pair) { buildClasses(tile, describe(pair), row); });
}

LLVM::LLVMFuncOp GpuTileBuilder::build(LLVM::GlobalOp table, int64_t members) {
  numMembers = members;
  Frame frame = {kernel.name, kernel.numAddresses(members), kernel.waits,
                 numRegisters(), kernel.rowsFirst()};
  return buildKernel(
      frame,
      [&]() -> std::pair<Value, Value> {
        return {constant64(plan.tiles.size()), constant64(plan.rows)};
      },
      [&](Value tile, Value row) {
        bucket = operand;
        tiles = LLVM::AddressOfOp::create(b, table);
        buildBody(tile, row);
      });
}

LLVM::LLVMFuncOp TileKernel::build(OpBuilder &builder, Location loc,
                                   LLVM::GlobalOp table,
                                   int64_t numMembers) const {
  return GpuTileBuilder(*this, builder, loc).build(table, numMembers);
}

//===- ElementwiseKernel.cpp - kernels of elementwise ops -----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of 256 threads per tile. Where all buffers are dense a tile is a
// piece of all of them, and the block takes one of two classes, by values that
// are the same in the whole block:
//
//   F  full     aligned, as many elements as a tile has: vectors of 16 bytes of
//               the widest elements, all loads of a thread before its stores
//   S  scalar   the end of a buffer, or what is not aligned: one element per
//               thread and step; byte by byte where elements start anywhere
//
// Strided buffers, which broadcasts, transposes and slices lead to, are class S
// with a place that is computed from the element's number: extents and strides
// are constants of the code, so no division is left of that.
//
// The body is built from the op's own ops, on vectors or scalars, with the
// casts and roundings of KernelArithmetic; a fast-math flag changes nothing.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/ElementwiseKernel.h"

#include "Float/FloatExpansion.h"
#include "fsdp/Codegen/GpuBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Bytes that a thread loads before it computes, of all buffers together, and
/// vectors of each buffer at the most.
static constexpr int64_t kLoadBytes = 64;
static constexpr int64_t kMaxSteps = 4;
/// Elements of a thread in a strided kernel.
static constexpr int64_t kStridedElements = 4;

using Operand = Elementwise::Operand;

/// Bytes of an element in memory.
static int64_t bytesOf(Type dtype) {
  return std::max<int64_t>(dtype.getIntOrFloatBitWidth() / 8, 1);
}

/// The number that `operand` always is, null if it is none.
static arith::ConstantOp getConstant(const Operand &operand) {
  Operation *op = operand.value.getDefiningOp();
  return operand.isNumber() ? dyn_cast_or_null<arith::ConstantOp>(op)
                            : arith::ConstantOp();
}

namespace {
/// How a linear kernel cuts its buffers.
struct Cut {
  int64_t vector = kVectorBytes; ///< elements
  int64_t steps = 1;             ///< vectors of a thread
  int64_t tile() const { return kThreads * vector * steps; }

  explicit Cut(const Elementwise &loops) {
    int64_t readBytes = 0;
    for (const Operand &operand : loops.operands) {
      if (operand.isNumber() || operand.isUniform())
        continue;
      int64_t bytes = bytesOf(operand.dtype);
      vector = std::min(vector, kVectorBytes / bytes);
      if (operand.isRead)
        readBytes += bytes;
    }
    steps = std::clamp<int64_t>(
        kLoadBytes / std::max<int64_t>(readBytes * vector, 1), 1, kMaxSteps);
  }
};

class ElementwiseBuilder : GpuBuilder {
public:
  ElementwiseBuilder(const ElementwiseKernel &kernel, OpBuilder &builder,
                     Location loc)
      : GpuBuilder(builder, loc, kernel.emulate), kernel(kernel),
        loops(kernel.loops), cut(kernel.loops) {}

  LLVM::LLVMFuncOp build();

private:
  /// Values of one element, or of one vector, by the place of the operand.
  using Values = SmallVector<Value>;

  void buildLinear(Value block);
  void buildStrided(Value block);
  void buildFull(const Values &bases);
  void buildElement(const Values &bases, Access access,
                    function_ref<Value(size_t)> at);
  void buildScalar(const Values &bases, Value count, Access access);
  void buildStrided(const Values &bases, Value block, Access access);
  void byAccess(const Values &bases, function_ref<void(Access)> body);

  Value loadElement(const Operand &operand, Value at, Access access);
  void storeElement(const Operand &operand, Value value, Value at,
                    Access access);
  Value loadVector(const Operand &operand, Value at);
  /// Values of the operands that are the same for all elements.
  Values loadUniform(const Values &bases, Access access, int64_t width);
  /// The op's results for these operands.
  Values compute(const Values &values, int64_t width);

  Type storedType(Type dtype) { return b.getIntegerType(8 * bytesOf(dtype)); }
  Type shaped(Type dtype, int64_t width) {
    return width == 1 ? dtype : VectorType::get({width}, dtype);
  }
  /// As a body has it: a float that is only moved as an integer.
  Type computedType(Type dtype) {
    return isa<FloatType>(dtype) && !isFloatDtype(dtype) ? storedType(dtype)
                                                         : dtype;
  }
  Value cloneConstant(arith::ConstantOp op);
  /// As in memory, and back: floats as integers, i1 as a byte.
  Value fromStored(Value bits, Type dtype);
  Value toStored(Value value, Type dtype);
  Value splat(Value value, int64_t width) {
    return width == 1
               ? value
               : vector::BroadcastOp::create(
                     b, VectorType::get({width}, value.getType()), value);
  }
  bool isSame(const Operand &operand) {
    return operand.isNumber() || operand.isUniform();
  }
  /// The pointers of all buffers, null for numbers.
  Values getBases();
  Value wordOf(unsigned operand);
  /// A stride that is not known here.
  Value strideOf(unsigned operand, unsigned loop);

  const ElementwiseKernel &kernel;
  const Elementwise &loops;
  const Cut cut;
  /// What was built of the body, for expandFloats.
  SmallVector<Operation *> arithmeticOps;
};
} // namespace

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value ElementwiseBuilder::fromStored(Value bits, Type dtype) {
  Type type = bits.getType();
  auto like = [&](Type element) -> Type {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(element)) : element;
  };
  if (dtype.isInteger(1)) {
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bits, zero);
  }
  if (!isFloatDtype(dtype))
    return bits; // an integer, or a float that is only moved
  return arith::BitcastOp::create(b, like(dtype), bits);
}

Value ElementwiseBuilder::toStored(Value value, Type dtype) {
  Type bits = storedType(dtype);
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    bits = vector.clone(bits);
  if (dtype.isInteger(1))
    return arith::ExtUIOp::create(b, bits, value);
  return value.getType() == bits ? value
                                 : arith::BitcastOp::create(b, bits, value);
}

Value ElementwiseBuilder::cloneConstant(arith::ConstantOp op) {
  TypedAttr value = op.getValue();
  if (Type type = computedType(value.getType()); type != value.getType())
    value = b.getIntegerAttr(
        type, cast<FloatAttr>(value).getValue().bitcastToAPInt());
  return arith::ConstantOp::create(b, value);
}

Value ElementwiseBuilder::loadElement(const Operand &operand, Value at,
                                      Access access) {
  Value bits = LLVM::LoadOp::create(
      b, storedType(operand.dtype), at,
      access == Access::Whole ? bytesOf(operand.dtype) : 1);
  return fromStored(bits, operand.dtype);
}

void ElementwiseBuilder::storeElement(const Operand &operand, Value value,
                                      Value at, Access access) {
  Value bits = toStored(value, operand.dtype);
  int64_t bytes = bytesOf(operand.dtype);
  if (access == Access::Bytes || bytes == 1)
    bits = asInteger(bits);
  LLVM::StoreOp::create(b, bits, at, access == Access::Whole ? bytes : 1);
}

/// Loaded as words where it has some, for which there are vector loads.
Value ElementwiseBuilder::loadVector(const Operand &operand, Value at) {
  int64_t bytes = cut.vector * bytesOf(operand.dtype);
  Type stored = storedType(operand.dtype);
  Value bits;
  if (bytes % 4 == 0) {
    bits = loadWords(at, bytes);
  } else {
    auto whole = VectorType::get({1}, b.getIntegerType(8 * bytes));
    bits = LLVM::LoadOp::create(b, whole, at, /*alignment=*/bytes);
  }
  auto elements = VectorType::get({cut.vector}, stored);
  if (bits.getType() != elements)
    bits = vector::BitCastOp::create(b, elements, bits);
  return fromStored(bits, operand.dtype);
}

ElementwiseBuilder::Values ElementwiseBuilder::loadUniform(const Values &bases,
                                                           Access access,
                                                           int64_t width) {
  Values values(loops.operands.size());
  for (auto [index, operand] : llvm::enumerate(loops.operands)) {
    if (operand.isNumber()) {
      if (arith::ConstantOp constant = getConstant(operand)) {
        values[index] = splat(cloneConstant(constant), width);
        continue;
      }
      Value bits = wordOf(index);
      unsigned count = operand.dtype.getIntOrFloatBitWidth();
      if (count < 64)
        bits = arith::TruncIOp::create(b, b.getIntegerType(count), bits);
      if (isa<FloatType>(operand.dtype))
        bits = arith::BitcastOp::create(b, operand.dtype, bits);
      values[index] = splat(bits, width);
    } else if (operand.isUniform() && operand.isRead) {
      values[index] = splat(loadElement(operand, bases[index], access), width);
    }
  }
  return values;
}

/// Clones the body for `width` elements.
ElementwiseBuilder::Values ElementwiseBuilder::compute(const Values &values,
                                                       int64_t width) {
  linalg::GenericOp op = loops.op;
  IRMapping mapping;
  size_t numArguments = op.getBody()->getNumArguments();
  for (auto [index, value] : llvm::enumerate(values)) {
    if (!value)
      continue;
    if (index < numArguments)
      mapping.map(op.getBody()->getArgument(index), value);
    else // the body uses it from outside
      mapping.map(loops.operands[index].value, value);
  }
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (inner.use_empty())
      continue;
    if (auto constant = dyn_cast<arith::ConstantOp>(inner)) {
      mapping.map(constant.getResult(), splat(cloneConstant(constant), width));
      continue;
    }
    // Flags of the dialect's fast mathematics are left out.
    NamedAttrList attributes(inner.getAttrs());
    attributes.erase("fastmath");
    attributes.erase("overflowFlags");
    attributes.erase("isExact");
    SmallVector<Value> operands;
    for (Value operand : inner.getOperands())
      operands.push_back(mapping.lookup(operand));
    SmallVector<Type> types;
    for (Type type : inner.getResultTypes())
      types.push_back(shaped(computedType(type), width));
    OpBuilder &builder = b;
    Operation *made =
        builder.create(inner.getLoc(), inner.getName().getIdentifier(),
                       operands, types, attributes);
    mapping.map(inner.getResults(), made->getResults());
    arithmeticOps.push_back(made);
  }
  Values results;
  for (Value result : op.getBody()->getTerminator()->getOperands())
    results.push_back(mapping.lookup(result));
  return results;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Value ElementwiseBuilder::wordOf(unsigned operand) {
  SmallVector<unsigned> words = kernel.getWords();
  return word(constant32(llvm::find(words, operand) - words.begin()));
}

Value ElementwiseBuilder::strideOf(unsigned operand, unsigned loop) {
  auto strides = kernel.getStrideWords();
  size_t place =
      llvm::find(strides, std::make_pair(operand, loop)) - strides.begin();
  return word(constant32(kernel.getWords().size() + place));
}

ElementwiseBuilder::Values ElementwiseBuilder::getBases() {
  Values bases(loops.operands.size());
  for (auto [index, operand] : llvm::enumerate(loops.operands))
    if (!operand.isNumber())
      bases[index] = toPointer(wordOf(index));
  return bases;
}

/// Builds `body` for elements that are aligned, and for others.
void ElementwiseBuilder::byAccess(const Values &bases,
                                  function_ref<void(Access)> body) {
  Value low;
  for (auto [base, operand] : llvm::zip_equal(bases, loops.operands)) {
    int64_t bytes = bytesOf(operand.dtype);
    if (!base || bytes == 1)
      continue;
    Value bits = lowBits(base, bytes);
    low = low ? either(low, bits) : bits;
  }
  if (!low)
    return body(Access::Whole);
  when(
      equal(low, constant64(0)), [&] { body(Access::Whole); },
      [&] { body(Access::Bytes); });
}

//===----------------------------------------------------------------------===//
// Dense buffers
//===----------------------------------------------------------------------===//

void ElementwiseBuilder::buildFull(const Values &bases) {
  Values same = loadUniform(bases, Access::Whole, cut.vector);
  auto at = [&](size_t index, int64_t step) {
    int64_t bytes = cut.vector * bytesOf(loops.operands[index].dtype);
    Value first = elementAt(bases[index], thread, bytes);
    return step ? offset(first, constant64(step * kThreads * bytes)) : first;
  };
  SmallVector<Values> loaded(cut.steps, same);
  for (int64_t step = 0; step < cut.steps; ++step)
    for (auto [index, operand] : llvm::enumerate(loops.operands))
      if (!isSame(operand) && operand.isRead)
        loaded[step][index] = loadVector(operand, at(index, step));
  for (int64_t step = 0; step < cut.steps; ++step) {
    Values results = compute(loaded[step], cut.vector);
    size_t next = 0;
    for (auto [index, operand] : llvm::enumerate(loops.operands)) {
      if (!operand.isWritten)
        continue;
      Value bits = toStored(results[next++], operand.dtype);
      int64_t bytes = cut.vector * bytesOf(operand.dtype);
      Type type = VectorType::get({bytes / 4}, i32);
      if (bytes % 4 != 0)
        type = VectorType::get({1}, b.getIntegerType(8 * bytes));
      if (bits.getType() != type)
        bits = vector::BitCastOp::create(b, type, bits);
      LLVM::StoreOp::create(b, bits, at(index, step), /*alignment=*/bytes);
    }
  }
}

/// Computes one element, whose place in the buffer of an operand is `at`.
void ElementwiseBuilder::buildElement(const Values &bases, Access access,
                                      function_ref<Value(size_t)> at) {
  Values values = loadUniform(bases, access, /*width=*/1);
  for (auto [index, operand] : llvm::enumerate(loops.operands))
    if (!isSame(operand) && operand.isRead)
      values[index] = loadElement(operand, at(index), access);
  Values results = compute(values, /*width=*/1);
  size_t next = 0;
  for (auto [index, operand] : llvm::enumerate(loops.operands))
    if (operand.isWritten)
      storeElement(operand, results[next++], at(index), access);
}

void ElementwiseBuilder::buildScalar(const Values &bases, Value count,
                                     Access access) {
  loop(thread, count, kThreads, [&](Value element) {
    buildElement(bases, access, [&](size_t index) {
      return elementAt(bases[index], element,
                       bytesOf(loops.operands[index].dtype));
    });
  });
}

void ElementwiseBuilder::buildLinear(Value block) {
  Value begin = mul(block, cut.tile());
  Value total = word(constant32(kernel.getWords().size()));
  Value count = narrow(least(sub(total, begin), constant64(cut.tile())));
  Values bases = getBases();
  Value low = constant64(0);
  for (auto [index, operand] : llvm::enumerate(loops.operands)) {
    if (operand.isNumber())
      continue;
    int64_t bytes = bytesOf(operand.dtype);
    if (!operand.isUniform()) {
      bases[index] = offset(bases[index], mul(begin, bytes));
      bytes *= cut.vector;
    }
    low = either(low, lowBits(bases[index], bytes));
  }
  Value isFull =
      both(equal(low, constant64(0)), equal(count, constant32(cut.tile())));
  when(
      isFull, [&] { buildFull(bases); },
      [&] {
        byAccess(bases,
                 [&](Access access) { buildScalar(bases, count, access); });
      });
}

//===----------------------------------------------------------------------===//
// Strided buffers
//===----------------------------------------------------------------------===//

void ElementwiseBuilder::buildStrided(const Values &bases, Value block,
                                      Access access) {
  const int64_t tile = kThreads * kStridedElements;
  Value begin = mul(block, tile);
  Value count = narrow(
      least(sub(constant64(loops.numElements()), begin), constant64(tile)));
  loop(thread, count, kThreads, [&](Value inTile) {
    // The element's number, taken apart from the innermost loop outwards.
    Value number = add(begin, widen(inTile));
    SmallVector<Value> indices(loops.extents.size());
    for (size_t level = loops.extents.size() - 1; level > 0; --level) {
      Value extent = constant64(loops.extents[level]);
      indices[level] = arith::RemUIOp::create(b, number, extent);
      number = arith::DivUIOp::create(b, number, extent);
    }
    indices[0] = number;
    buildElement(bases, access, [&](size_t index) {
      const Operand &operand = loops.operands[index];
      Value place = constant64(0);
      for (auto [loop, stride] : llvm::enumerate(operand.strides))
        if (ShapedType::isDynamic(stride))
          place = add(place, mul(indices[loop], strideOf(index, loop)));
        else if (stride != 0)
          place = add(place, mul(indices[loop], stride));
      return offset(bases[index], mul(place, bytesOf(operand.dtype)));
    });
  });
}

void ElementwiseBuilder::buildStrided(Value block) {
  Values bases = getBases();
  byAccess(bases, [&](Access access) { buildStrided(bases, block, access); });
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LLVM::LLVMFuncOp ElementwiseBuilder::build() {
  bool isLinear = loops.isLinear();
  int64_t numWords = kernel.getWords().size() + kernel.getStrideWords().size() +
                     (isLinear ? 1 : 0);
  std::string name = kernel.getName();
  Frame frame = {name, std::max<int64_t>(numWords, 1), kernel.waits,
                 /*registers=*/std::nullopt, /*rowsFirst=*/false};
  LLVM::LLVMFuncOp func = buildKernel(
      frame,
      [&]() -> std::pair<Value, Value> {
        Value one = constant64(1);
        if (!isLinear)
          return {constant64(kernel.numBlocks()), one};
        Value total = word(constant32(numWords - 1));
        Value tile = constant64(cut.tile());
        Value last = sub(add(total, tile), one);
        return {arith::DivUIOp::create(b, last, tile), one};
      },
      [&](Value block, Value) {
        if (isLinear)
          buildLinear(block);
        else
          buildStrided(block);
      });
  auto cast = [&](OpBuilder &builder, Location loc, Value value, Type dtype) {
    return arithmetic.cast(builder, loc, value, dtype);
  };
  auto isNative = [](Type, Type) { return false; };
  for (Operation *op : arithmeticOps)
    expandFloats(op, {cast, isNative});
  return func;
}

LLVM::LLVMFuncOp ElementwiseKernel::build(OpBuilder &builder,
                                          Location loc) const {
  return ElementwiseBuilder(*this, builder, loc).build();
}

int64_t ElementwiseKernel::numBlocks() const {
  int64_t tile =
      loops.isLinear() ? Cut(loops).tile() : kThreads * kStridedElements;
  return llvm::divideCeil(loops.numElements(), tile);
}

SmallVector<unsigned> ElementwiseKernel::getWords() const {
  SmallVector<unsigned> words;
  for (auto [index, operand] : llvm::enumerate(loops.operands))
    if (!getConstant(operand))
      words.push_back(index);
  return words;
}

SmallVector<std::pair<unsigned, unsigned>>
ElementwiseKernel::getStrideWords() const {
  SmallVector<std::pair<unsigned, unsigned>> words;
  for (auto [index, operand] : llvm::enumerate(loops.operands))
    for (auto [loop, stride] : llvm::enumerate(operand.strides))
      if (ShapedType::isDynamic(stride))
        words.emplace_back(index, loop);
  return words;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string ElementwiseKernel::getKey() const {
  std::string key;
  llvm::raw_string_ostream os(key);
  bool isLinear = loops.isLinear();
  linalg::GenericOp op = loops.op;
  if (!isLinear)
    llvm::interleave(loops.extents, os, "x");
  DenseMap<Value, size_t> numbers;
  for (auto [index, operand] : llvm::enumerate(loops.operands)) {
    os << '|' << operand.dtype << (operand.isRead ? "r" : "")
       << (operand.isWritten ? "w" : "");
    if (arith::ConstantOp constant = getConstant(operand))
      os << '=' << constant.getValue();
    else if (operand.isNumber())
      os << "number";
    else if (isLinear)
      os << (operand.isUniform() ? "uniform" : "dense");
    else
      llvm::interleave(operand.strides, os, ",");
    // The same value twice is two words.
    if (index >= op.getBody()->getNumArguments())
      numbers.try_emplace(operand.value, numbers.size());
    else
      numbers.try_emplace(op.getBody()->getArgument(index), numbers.size());
  }
  for (Operation &inner : *op.getBody()) {
    os << ';' << inner.getName() << inner.getAttrDictionary();
    for (Value operand : inner.getOperands())
      os << ' ' << numbers.lookup(operand);
    for (Value result : inner.getResults()) {
      os << "->" << result.getType();
      numbers.try_emplace(result, numbers.size());
    }
  }
  return key;
}

std::string ElementwiseKernel::getName() const {
  constexpr size_t most = 48;
  std::string name;
  llvm::raw_string_ostream os(name);
  linalg::GenericOp op = loops.op;
  os << "elementwise";
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (inner.use_empty() || isa<arith::ConstantOp>(inner))
      continue;
    StringRef what = inner.getName().stripDialect();
    if (name.size() + what.size() >= most)
      break;
    os << '_' << what;
  }
  bool readsBuffer = llvm::any_of(loops.operands, [](const Operand &operand) {
    return operand.isRead && !operand.isNumber();
  });
  if (name == "elementwise")
    os << (readsBuffer ? "_copy" : "_fill");
  for (const Operand &operand : loops.operands)
    if (operand.isWritten)
      os << '_' << operand.dtype;
  return name;
}

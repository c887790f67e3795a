//===- SplitFunctions.cpp - long blocks become functions of bounded size --===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   func.func @f(%context: !llvm.ptr) -> (i32 {fsdp.status}) {
//     ... ; a thousand ops
//     %s = call @fsdprtFree(%context, %data)
//     ... ; a thousand more
//   }
// becomes
//   func.func @f(%context: !llvm.ptr) -> (i32 {fsdp.status}) {
//     %frame = llvm.alloca ...
//     llvm.store %context, %frame
//     %s = call @f_part(%frame) : (!llvm.ptr) -> i32
//     %t = call @f_part_0(%frame) : (!llvm.ptr) -> i32
//     ...
//   }
//
// What one part computes and another one needs goes through the frame. LLVM
// needs more than linear time for a function, above all to allocate registers;
// with parts of bounded size, the time is linear in their number. Constants are
// not passed but repeated.
//
// Works from the innermost blocks outwards, and on what is left of a block
// again until that is short enough.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"
#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SPLITFUNCTIONSPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// True for what is repeated where it is used.
static bool isRepeated(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() || isa<LLVM::AddressOfOp>(op);
}

namespace {
/// Splits the blocks of one function.
class Splitter {
public:
  Splitter(func::FuncOp function, DenseSet<StringAttr> &withStatus,
           SymbolTable &symbols, int64_t limit)
      : function(function), withStatus(withStatus), symbols(symbols),
        limit(limit), typeConverter(function.getContext()),
        layout(DataLayout::closest(function)),
        pointer(LLVM::LLVMPointerType::get(function.getContext())) {}

  void run();

private:
  /// Ops that stand one after the other in a block, and their function.
  struct Part {
    SmallVector<Operation *> ops;
    func::FuncOp function;
    Value frame; ///< the function's argument
  };

  void countOps();
  int64_t getSize(Operation *op) const;
  bool canMove(Operation *op) const;
  bool split(Block *block);
  SmallVector<Part, 0> findParts(Block *block);
  void createFunction(Part &part);
  void sinkAllocas(MutableArrayRef<Part> parts);
  void connect(MutableArrayRef<Part> parts);
  void takeOperands(Part &part);
  void giveResults(Part &part);
  Part *findPart(Operation *op) const;
  Value getFrame();
  int64_t getSlot(Value value);
  void store(Value value, Value base);
  Value load(ImplicitLocOpBuilder &b, Value value, Value base);
  Value getAddress(ImplicitLocOpBuilder &b, Value base, int64_t slot);

  func::FuncOp function;
  DenseSet<StringAttr> &withStatus; ///< functions, the parts too
  SymbolTable &symbols;
  const int64_t limit;
  LLVMTypeConverter typeConverter;
  DataLayout layout;
  Type pointer;
  /// The parts' frame: where each value is, and how many bytes all take.
  LLVM::AllocaOp frame;
  DenseMap<Value, int64_t> slots;
  int64_t frameBytes = 0;
  /// Values that are stored already, and for the ops that do it which one.
  llvm::SetVector<Value> passed;
  DenseSet<Value> stored;
  DenseMap<Operation *, Value> stores;
  /// Loads for ops that stay where they are.
  DenseSet<Operation *> pinned;
  /// Ops that an op holds, itself included; one if it is not here.
  DenseMap<Operation *, int64_t> sizes;
  /// The parts by their bodies.
  DenseMap<Region *, Part *> bodies;
};
} // namespace

void Splitter::countOps() {
  function.walk([&](Operation *op) {
    int64_t &size = sizes[op];
    size += 1;
    int64_t own = size; // the reference may move
    if (op != function)
      sizes[op->getParentOp()] += own;
  });
}

int64_t Splitter::getSize(Operation *op) const {
  auto it = sizes.find(op);
  return it == sizes.end() ? 1 : it->second;
}

/// True if `op` may run in another function.
bool Splitter::canMove(Operation *op) const {
  if (op->hasTrait<OpTrait::IsTerminator>() || pinned.contains(op) ||
      isa<LLVM::AllocaOp, memref::AllocaOp>(op))
    return false;
  return llvm::all_of(op->getResultTypes(), [&](Type type) {
    return typeConverter.convertType(type) != Type();
  });
}

SmallVector<Splitter::Part, 0> Splitter::findParts(Block *block) {
  SmallVector<Part, 0> parts;
  int64_t size = 0;
  bool isOpen = false;
  DenseSet<Operation *> inLast; ///< the ops of the open part
  for (Operation &op : *block) {
    if (isRepeated(&op))
      continue;
    if (auto it = stores.find(&op); it != stores.end()) {
      // Goes where the value is.
      Operation *source = it->second.getDefiningOp();
      if (isOpen && source && inLast.contains(source))
        parts.back().ops.push_back(&op);
      continue;
    }
    if (!canMove(&op)) {
      isOpen = false;
      continue;
    }
    if (!isOpen || size >= limit) {
      parts.emplace_back();
      inLast.clear();
      size = 0;
      isOpen = true;
    }
    parts.back().ops.push_back(&op);
    inLast.insert(&op);
    size += getSize(&op);
  }
  // A call is not worth it for a few ops between others that have to stay.
  llvm::erase_if(parts, [](const Part &part) { return part.ops.size() < 4; });
  return parts;
}

void Splitter::createFunction(Part &part) {
  bool hasStatus = false, hasRegions = false;
  for (Operation *op : part.ops) {
    hasRegions |= op->getNumRegions() != 0;
    op->walk([&](func::CallOp call) {
      hasStatus |= withStatus.contains(call.getCalleeAttr().getAttr());
    });
  }
  MLIRContext *context = function.getContext();
  Location loc = part.ops.front()->getLoc();
  auto i32 = IntegerType::get(context, 32);
  auto type = FunctionType::get(context, pointer,
                                hasStatus ? TypeRange(i32) : TypeRange());
  OpBuilder builder(context);
  part.function = func::FuncOp::create(
      builder, loc, (function.getSymName() + "_part").str(), type);
  part.function.setPrivate();
  // Inlined, the parts would be the function that they are parts of. What is
  // neither a loop nor a branch are calls, and operands for them: there is
  // nothing to optimise.
  SmallVector<StringRef> attributes{"noinline"};
  if (!hasRegions)
    attributes.push_back("optnone");
  part.function->setAttr("passthrough", builder.getStrArrayAttr(attributes));
  if (hasStatus)
    part.function.setResultAttr(0, FsdpDialect::getStatusAttrName(),
                                builder.getUnitAttr());
  symbols.insert(part.function, std::next(Block::iterator(function)));
  if (hasStatus)
    withStatus.insert(part.function.getSymNameAttr());
  Block *body = part.function.addEntryBlock();
  part.frame = body->getArgument(0);

  ImplicitLocOpBuilder call(loc, part.ops.front());
  func::CallOp::create(call, part.function, getFrame());
  for (Operation *op : part.ops)
    op->moveBefore(body, body->end());
  ImplicitLocOpBuilder b(loc, context);
  b.setInsertionPointToEnd(body);
  SmallVector<Value> status;
  if (hasStatus)
    status.push_back(arith::ConstantOp::create(b, b.getI32IntegerAttr(0)));
  func::ReturnOp::create(b, status);
}

Value Splitter::getFrame() {
  if (!frame) {
    ImplicitLocOpBuilder b(function.getLoc(), function.getContext());
    b.setInsertionPointToStart(&function.getBody().front());
    Value bytes = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
    frame = LLVM::AllocaOp::create(b, pointer, b.getI8Type(), bytes,
                                   /*alignment=*/64);
  }
  return frame;
}

int64_t Splitter::getSlot(Value value) {
  auto [it, isNew] = slots.try_emplace(value, 0);
  if (isNew) {
    Type type = typeConverter.convertType(value.getType());
    frameBytes = llvm::alignTo(frameBytes, layout.getTypeABIAlignment(type));
    it->second = frameBytes;
    frameBytes += layout.getTypeSize(type).getFixedValue();
  }
  return it->second;
}

Value Splitter::getAddress(ImplicitLocOpBuilder &b, Value base, int64_t slot) {
  return LLVM::GEPOp::create(
      b, pointer, b.getI8Type(), base,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(slot)});
}

static Value cast(ImplicitLocOpBuilder &b, Type type, Value value) {
  if (value.getType() == type)
    return value;
  return UnrealizedConversionCastOp::create(b, type, value).getResult(0);
}

/// Stores `value` behind its definition.
void Splitter::store(Value value, Value base) {
  if (!stored.insert(value).second)
    return;
  ImplicitLocOpBuilder b(value.getLoc(), function.getContext());
  b.setInsertionPointAfterValue(value);
  // The frame itself comes first in a function.
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getOwner() == frame->getBlock())
    b.setInsertionPointAfter(frame);
  Value converted = cast(b, typeConverter.convertType(value.getType()), value);
  Value address = getAddress(b, base, getSlot(value));
  Operation *last = LLVM::StoreOp::create(b, converted, address);
  for (Operation *op :
       {converted.getDefiningOp(), address.getDefiningOp(), last})
    if (op && op != value.getDefiningOp())
      stores[op] = value;
}

Value Splitter::load(ImplicitLocOpBuilder &b, Value value, Value base) {
  Value loaded =
      LLVM::LoadOp::create(b, typeConverter.convertType(value.getType()),
                           getAddress(b, base, getSlot(value)));
  return cast(b, value.getType(), loaded);
}

Splitter::Part *Splitter::findPart(Operation *op) const {
  auto around = op->getParentOfType<func::FuncOp>();
  return bodies.lookup(&around.getBody());
}

/// Memory that only one part uses is in that part's own frame.
void Splitter::sinkAllocas(MutableArrayRef<Part> parts) {
  llvm::SetVector<LLVM::AllocaOp> allocas;
  for (Part &part : parts)
    part.function.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (auto alloca = operand.getDefiningOp<LLVM::AllocaOp>();
            alloca && alloca != frame &&
            matchPattern(alloca.getArraySize(), m_Constant()))
          allocas.insert(alloca);
    });
  for (LLVM::AllocaOp alloca : allocas) {
    Part *only = findPart(*alloca->user_begin());
    if (!only || llvm::any_of(alloca->getUsers(), [&](Operation *user) {
          return findPart(user) != only;
        }))
      continue;
    Block *body = &only->function.getBody().front();
    alloca->moveBefore(body, body->begin());
  }
}

/// Replaces what the ops of `part` take from outside.
void Splitter::takeOperands(Part &part) {
  Region *body = &part.function.getBody();
  DenseMap<Value, Value> inside;
  // Constants and loads are added on the way.
  SmallVector<Operation *> ops(
      llvm::make_pointer_range(body->front().getOperations()));
  for (Operation *top : ops)
    top->walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands()) {
        Value value = operand.get();
        if (body->isAncestor(value.getParentRegion()))
          continue;
        if (value == frame.getResult()) {
          operand.set(part.frame);
          continue;
        }
        Value &known = inside[value];
        if (!known) {
          ImplicitLocOpBuilder b(top->getLoc(), top);
          Operation *source = value.getDefiningOp();
          if (source && isRepeated(source)) {
            known = b.clone(*source)->getResult(
                mlir::cast<OpResult>(value).getResultNumber());
          } else {
            known = load(b, value, part.frame);
            passed.insert(value);
          }
        }
        operand.set(known);
      }
    });
}

/// Replaces what the ops of `part` compute where it is used outside.
void Splitter::giveResults(Part &part) {
  Region *body = &part.function.getBody();
  for (Operation &op : body->front().without_terminator())
    for (OpResult result : op.getResults())
      for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
        Operation *user = use.getOwner();
        if (body->isAncestor(user->getParentRegion()))
          continue;
        ImplicitLocOpBuilder b(user->getLoc(), user);
        Operation *before = user->getPrevNode();
        use.set(load(b, result, getFrame()));
        passed.insert(result);
        if (!canMove(user))
          for (Operation *added = user->getPrevNode(); added != before;
               added = added->getPrevNode())
            pinned.insert(added);
      }
}

/// Lets values reach the parts through the frame.
void Splitter::connect(MutableArrayRef<Part> parts) {
  bodies.clear();
  for (Part &part : parts)
    bodies[&part.function.getBody()] = &part;
  sinkAllocas(parts);
  for (Part &part : parts)
    takeOperands(part);
  for (Part &part : parts)
    giveResults(part);
  for (Value value : passed.takeVector()) {
    Operation *source = value.getDefiningOp();
    Part *part = source ? findPart(source) : nullptr;
    store(value, part ? part->frame : getFrame());
  }
}

bool Splitter::split(Block *block) {
  int64_t size = 0;
  for (Operation &op : *block)
    size += getSize(&op);
  if (size <= 2 * limit)
    return false;
  SmallVector<Part, 0> parts = findParts(block);
  if (parts.size() < 2)
    return false;
  for (Part &part : parts)
    createFunction(part);
  connect(parts);
  for (Operation &op : llvm::make_early_inc_range(*block))
    if (isRepeated(&op) && op.use_empty())
      op.erase();
  return true;
}

void Splitter::run() {
  countOps();
  SmallVector<Block *> blocks;
  function.walk([&](Block *block) { blocks.push_back(block); });
  for (Block *block : blocks)
    while (split(block)) {
    }
  if (!frame)
    return;
  // Its size is known now.
  OpBuilder builder(frame);
  auto bytes = frame.getArraySize().getDefiningOp<arith::ConstantOp>();
  bytes.setValueAttr(builder.getI64IntegerAttr(frameBytes));
}

namespace {
struct SplitFunctionsPass
    : fsdp::impl::SplitFunctionsPassBase<SplitFunctionsPass> {
  using Base::Base;
  void runOnOperation() override {
    DenseSet<StringAttr> withStatus;
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      unsigned results = function.getNumResults();
      if (results != 0 &&
          function.getResultAttr(results - 1, FsdpDialect::getStatusAttrName()))
        withStatus.insert(function.getSymNameAttr());
      if (!function.isExternal())
        functions.push_back(function);
    }
    SymbolTable symbols(getOperation());
    for (func::FuncOp function : functions)
      Splitter(function, withStatus, symbols, maxOps).run();
  }
};
} // namespace

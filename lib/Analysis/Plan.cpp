//===- Plan.cpp - what a module will communicate and move -----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One walk over the module collects the buckets in the order in which their
// collectives are issued, and counts ops. Values and buffers are the same to
// it: both are shaped types, and a buffer is made by the op that writes it.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// The hash
//===----------------------------------------------------------------------===//

namespace {
/// FNV-1a, 64 bits, over a byte string in which every part tells its length.
class Hasher {
public:
  void add(uint64_t value) {
    for (unsigned byte = 0; byte < 8; ++byte)
      addByte(value >> (8 * byte));
  }
  void add(StringRef text) {
    add(static_cast<uint64_t>(text.size()));
    for (unsigned char byte : text)
      addByte(byte);
  }
  void add(ArrayRef<int64_t> values) {
    add(static_cast<uint64_t>(values.size()));
    for (int64_t value : values)
      add(static_cast<uint64_t>(value));
  }
  void add(Type type) {
    std::string text;
    if (type)
      llvm::raw_string_ostream(text) << type;
    add(StringRef(text));
  }
  void add(std::optional<ReduceOp> reduction) {
    add(reduction ? stringifyReduceOp(*reduction) : StringRef());
  }
  void add(std::optional<double> number) {
    add(static_cast<uint64_t>(number.has_value()));
    if (number)
      add(llvm::bit_cast<uint64_t>(*number));
  }
  uint64_t get() const { return state; }

private:
  void addByte(uint64_t byte) {
    state = (state ^ (byte & 0xff)) * 0x100000001b3u;
  }
  uint64_t state = 0xcbf29ce484222325u;
};
} // namespace

/// Takes over the first number that is given.
static void setOnce(std::optional<double> &entry, FloatAttr number) {
  if (!entry && number)
    entry = number.getValueAsDouble();
}

/// Adds one collective. Gradients of other dtypes or other casts around the
/// local ops make no difference to the other ranks, and are left out.
static void addToHash(Hasher &hasher, CollectiveOpInterface collective,
                      const BucketPlan &bucket,
                      SymbolTableCollection &symbolTables) {
  bool isOther = collective.getCollectiveKind() == CollectiveKind::Other;
  OperationName name = collective->getName();
  hasher.add(isOther ? name.getStringRef() : name.stripDialect());
  hasher.add(stringifyBucketKind(bucket.kind));
  hasher.add(ArrayRef(bucket.shardAxes));
  hasher.add(ArrayRef(bucket.replicateAxes));
  hasher.add(StringRef(bucket.name));
  hasher.add(static_cast<uint64_t>(bucket.members.size()));
  for (const MemberPlan &member : bucket.members) {
    hasher.add(StringRef(member.param));
    hasher.add(static_cast<uint64_t>(member.offsetBytes));
    hasher.add(member.dtype);
  }
  hasher.add(bucket.wire);
  hasher.add(static_cast<uint64_t>(bucket.rowElements));
  hasher.add(bucket.reduceScatter);
  hasher.add(bucket.allReduce);
  hasher.add(bucket.premul);
  hasher.add(bucket.divide);
  hasher.add(bucket.splitDivide);
  hasher.add(bucket.accumulate);
  if (!isOther)
    return;
  // Of our own collectives, the name and the bucket say this.
  BucketOp symbol = lookupBucket(collective, symbolTables);
  UnitGroup group = ResolvedBucket::get(symbol, symbolTables)->group;
  hasher.add(ArrayRef<int64_t>(collective.getGroupAxes(group)));
  std::optional<CollectiveReduction> reduction =
      collective.getCollectiveReduction();
  hasher.add(static_cast<uint64_t>(reduction.has_value()));
  if (!reduction)
    return;
  hasher.add(std::optional<ReduceOp>(reduction->op));
  std::optional<double> multiplier;
  setOnce(multiplier, reduction->multiplier);
  hasher.add(multiplier);
  hasher.add(reduction->accumulate ? reduction->accumulate.getValue() : Type());
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// Adds without passing the largest number: a tensor may have 2^62 elements.
static void addBytes(int64_t &sum, int64_t bytes) {
  sum = addSizes(sum, bytes);
}

/// As many bytes as `type` would have with elements of `dtype`.
static int64_t getBytes(Type type, Type dtype) {
  return getTensorBytes(
      RankedTensorType::get(cast<ShapedType>(type).getShape(), dtype));
}

static int64_t getBytes(Value value) {
  return getTensorBytes(cast<ShapedType>(value.getType()));
}

static bool isLocalOp(Operation *op) { return isa<LocalOpInterface>(op); }

/// True for a widening or narrowing of a whole tensor or buffer, also where it
/// has become a loop over elements.
static bool isCast(Operation *op) {
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return isa<ShapedType>(op->getOperand(0).getType()) &&
           isFloatDtype(getElementTypeOrSelf(op->getOperand(0).getType())) &&
           isFloatDtype(getElementTypeOrSelf(op->getResult(0).getType()));
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getInputs().size() != 1 ||
      generic.getOutputs().size() != 1)
    return false;
  auto ops = generic.getBody()->without_terminator();
  return !ops.empty() && llvm::all_of(ops, [](Operation &inner) {
    return isa<arith::ExtFOp, arith::TruncFOp>(inner);
  });
}

static Value getCastInput(Operation *cast) { return cast->getOperand(0); }
static Value getCastOutput(Operation *cast) {
  return cast->getNumResults() == 1 ? Value(cast->getResult(0))
                                    : cast->getOperand(1);
}

namespace {
/// Who makes and who reads a tensor or buffer.
struct Uses {
  SmallVector<Operation *, 2> makers, readers;
};
} // namespace

static Uses getUses(Value value) {
  Uses uses;
  bool isBuffer = isa<BaseMemRefType>(value.getType());
  if (!isBuffer) {
    // What a block argument holds comes from elsewhere: null is its maker.
    uses.makers.push_back(value.getDefiningOp());
    llvm::append_range(uses.readers, value.getUsers());
    return uses;
  }
  // A buffer of someone else may be read and written anywhere.
  if (!value.getDefiningOp<memref::AllocOp>())
    uses.makers.push_back(nullptr);
  for (Operation *user : value.getUsers()) {
    if (isa<memref::DeallocOp>(user))
      continue;
    auto local = dyn_cast<BucketUserOpInterface>(user);
    bool isWritten = local
                         ? llvm::is_contained(local.getOutputOperands(), value)
                         : isCast(user) && getCastOutput(user) == value;
    (isWritten ? uses.makers : uses.readers).push_back(user);
  }
  return uses;
}

/// True if only casts make `value` and only local ops read it, or the reverse.
static bool isTemporary(Value value) {
  Uses uses = getUses(value);
  auto all = [](ArrayRef<Operation *> ops, bool (*holds)(Operation *)) {
    return !ops.empty() &&
           llvm::all_of(ops, [&](Operation *op) { return op && holds(op); });
  };
  return (all(uses.makers, isCast) && all(uses.readers, isLocalOp)) ||
         (all(uses.makers, isLocalOp) && all(uses.readers, isCast));
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {
class PlanBuilder {
public:
  PlanBuilder(SymbolTableCollection &symbolTables)
      : symbolTables(symbolTables) {}

  LogicalResult run(ModuleOp module);
  Plan plan;

private:
  unsigned getBucket(BucketUserOpInterface op);
  void addBucketUser(BucketUserOpInterface op);
  void addCollective(CollectiveOpInterface op, BucketPlan &bucket);
  void addLocalOp(LocalOpInterface op, BucketPlan &bucket);
  void addCasts(Value value);

  SymbolTableCollection &symbolTables;
  DenseMap<Operation *, unsigned> buckets; ///< index of each bucket
  SmallVector<Operation *, 0> bucketUnits; ///< of each bucket
  DenseSet<Operation *> seenCasts;
  DenseSet<Value> seenValues;
};
} // namespace

/// The index of the op's bucket, which is described when it is first met.
unsigned PlanBuilder::getBucket(BucketUserOpInterface op) {
  BucketOp bucket = lookupBucket(op, symbolTables);
  auto [entry, isNew] = buckets.try_emplace(bucket, plan.buckets.size());
  if (!isNew)
    return entry->second;
  // Cannot fail: a verified op has a valid bucket.
  ResolvedBucket resolved = *ResolvedBucket::get(bucket, symbolTables);
  BucketPlan &result = plan.buckets.emplace_back();
  UnitOp unit = resolved.members.front().param.getUnit();
  bucketUnits.push_back(unit);
  result.name = bucket.getSymName().str();
  result.unit = unit.getSymName().str();
  result.kind = bucket.getKind();
  result.wire = bucket.getWire();
  result.align = bucket.getAlignment();
  result.group = bucket.getGroup();
  result.shardAxes = resolved.group.shardAxes;
  result.replicateAxes = resolved.group.replicateAxes;
  result.rowBytes = resolved.layout.rowBytes;
  result.rowElements = resolved.layout.rowElements();
  result.packedBytes = resolved.layout.packedBytes();
  result.paddingBytes = result.packedBytes;
  for (BucketMember &member : resolved.members) {
    result.members.push_back({member.param.getSymName().str(),
                              member.segment.offset, member.segment.elements,
                              member.wire, Type(), Type()});
    result.paddingBytes -= getBytes(member.param.getFullType(), member.wire);
  }
  return entry->second;
}

void PlanBuilder::addCollective(CollectiveOpInterface op, BucketPlan &bucket) {
  std::optional<CollectiveReduction> reduction = op.getCollectiveReduction();
  switch (op.getCollectiveKind()) {
  case CollectiveKind::AllGather:
    ++plan.allGathers;
    return;
  case CollectiveKind::ReduceScatter:
    ++plan.reduceScatters;
    if (bucket.reduceScatter)
      return;
    bucket.reduceScatter = reduction->op;
    setOnce(bucket.premul, reduction->multiplier);
    if (reduction->accumulate)
      bucket.accumulate = reduction->accumulate.getValue();
    return;
  case CollectiveKind::AllReduce:
    ++plan.allReduces;
    if (!bucket.allReduce)
      bucket.allReduce = reduction->op;
    return;
  case CollectiveKind::Other:
    ++plan.otherCollectives;
    return;
  }
  llvm_unreachable("unknown kind of collective");
}

/// Counts the casts that lead to `value`, or that it leads to.
void PlanBuilder::addCasts(Value value) {
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seenValues.insert(next).second)
      continue;
    if (isTemporary(next))
      addBytes(plan.bytesTemporaries, getBytes(next));
    Uses uses = getUses(next);
    for (Operation *op : llvm::concat<Operation *>(uses.makers, uses.readers)) {
      if (!op || !isCast(op) || !seenCasts.insert(op).second)
        continue;
      addBytes(plan.bytesRead, getBytes(getCastInput(op)));
      addBytes(plan.bytesWritten, getBytes(getCastOutput(op)));
      // Between f16 and bf16 there are two casts in a row.
      worklist.push_back(getCastInput(op));
      worklist.push_back(getCastOutput(op));
    }
  }
}

void PlanBuilder::addLocalOp(LocalOpInterface op, BucketPlan &bucket) {
  ++plan.launches;
  bool isPack = op.packs();
  setOnce(isPack ? bucket.divide : bucket.splitDivide, op.getDivideAttr());
  int64_t memberBytes = 0;
  for (auto [value, member] :
       llvm::zip_equal(op.getMemberValues(), bucket.members)) {
    addBytes(memberBytes, getBytes(value));
    Type &dtype = isPack ? member.from : member.to;
    if (!dtype)
      dtype = getElementTypeOrSelf(value.getType());
    addCasts(value);
  }
  if (isPack) { // writes gaps and padding too
    addBytes(plan.bytesRead, memberBytes);
    addBytes(plan.bytesWritten, op.getBucketValue().second == BucketForm::Packed
                                    ? bucket.packedBytes
                                    : bucket.rowBytes);
    return;
  }
  addBytes(plan.bytesWritten, memberBytes);
  // Of the bucket only what belongs to a member is read.
  for (auto [value, member] :
       llvm::zip_equal(op.getMemberValues(), bucket.members))
    addBytes(plan.bytesRead, getBytes(value.getType(), member.dtype));
  for (Value old : op.getAdd())
    addBytes(plan.bytesRead, getBytes(old));
}

void PlanBuilder::addBucketUser(BucketUserOpInterface op) {
  BucketPlan &bucket = plan.buckets[getBucket(op)];
  if (auto local = dyn_cast<LocalOpInterface>(op.getOperation()))
    addLocalOp(local, bucket);
  else if (auto collective = dyn_cast<CollectiveOpInterface>(op.getOperation()))
    addCollective(collective, bucket);
}

LogicalResult PlanBuilder::run(ModuleOp module) {
  SmallVector<BucketUserOpInterface, 0> users;
  // The collectives in order, with their buckets.
  SmallVector<std::pair<CollectiveOpInterface, unsigned>, 0> issued;
  DenseMap<Operation *, unsigned> units;
  WalkResult walked =
      module.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
        if (isa<UnitOpInterface>(op))
          return op->emitOpError(
              "has no plan yet: run fsdp-expand-units first");
        if (auto unit = dyn_cast<UnitOp>(op)) {
          units[unit] = plan.units.size();
          plan.units.push_back({unit.getSymName().str(), {}});
        }
        auto user = dyn_cast<BucketUserOpInterface>(op);
        if (!user)
          return WalkResult::advance();
        users.push_back(user);
        if (auto collective = dyn_cast<CollectiveOpInterface>(op))
          issued.push_back({collective, getBucket(user)});
        return WalkResult::advance();
      });
  if (walked.wasInterrupted())
    return failure();
  for (BucketUserOpInterface user : users)
    addBucketUser(user);

  for (auto [index, unit] : llvm::enumerate(bucketUnits))
    plan.units[units.lookup(unit)].buckets.push_back(index);
  Hasher hasher;
  for (auto [collective, index] : issued)
    addToHash(hasher, collective, plan.buckets[index], symbolTables);
  plan.hash = hasher.get();
  return success();
}

FailureOr<Plan> Plan::get(ModuleOp module, SymbolTableCollection &symbolTables,
                          ArrayRef<Decision> decisions) {
  PlanBuilder builder(symbolTables);
  if (failed(builder.run(module)))
    return failure();
  builder.plan.decisions.append(decisions.begin(), decisions.end());
  return std::move(builder.plan);
}

std::string Plan::getHashText() const {
  return llvm::utohexstr(hash, /*LowerCase=*/true, /*Width=*/16);
}

int64_t Plan::getPaddingBytes() const {
  int64_t sum = 0;
  for (const BucketPlan &bucket : buckets)
    addBytes(sum, bucket.paddingBytes);
  return sum;
}

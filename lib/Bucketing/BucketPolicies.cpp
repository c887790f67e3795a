//===- BucketPolicies.cpp - our rules for buckets, and other systems' -----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A policy is the rule by which one system decides which parameters share a
// collective, in which order, and in which order the collectives go out. How
// the system lays them out, and when it launches what, is another matter.
// docs/BucketingRules.md has the rules in words, and vectors for each.
//
//===----------------------------------------------------------------------===//

#include "BuiltinBucketPolicies.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;
using namespace mlir::fsdp;

using Answer = BucketFormer::Answer;

namespace {
/// What the policies below do with the options.
class BuiltinPolicy : public BucketPolicy {
public:
  explicit BuiltinPolicy(const BucketPolicyOptions &options)
      : perDtype(options.gather == "per-dtype"),
        limits(options.maxBytes.empty() ? options.maxElements
                                        : options.maxBytes) {}

  bool isGatherPerDtype() const override { return perDtype; }

protected:
  /// The limit for bucket `index`; the last one given holds for all others.
  int64_t getLimit(unsigned index, int64_t otherwise) const {
    if (limits.empty())
      return otherwise;
    return limits[std::min<size_t>(index, limits.size() - 1)];
  }

private:
  bool perDtype;
  SmallVector<int64_t> limits;
};

/// For systems that walk the program as it stands.
class ProgramOrderPolicy : public BuiltinPolicy {
public:
  using BuiltinPolicy::BuiltinPolicy;
  MemberOrder getMemberOrder(BucketKind) const override {
    return MemberOrder::Walk;
  }
  void sortWalk(ArrayRef<BucketItem>,
                MutableArrayRef<unsigned>) const override {}
};

//===----------------------------------------------------------------------===//
// Our own rules
//===----------------------------------------------------------------------===//

/// First fit, in the order of declaration or of the program, up to a hard limit
/// on the packed tensor.
class FirstFit final : public BuiltinPolicy {
public:
  explicit FirstFit(const BucketPolicyOptions &options)
      : BuiltinPolicy(options), byExecution(options.order == "execution") {}

  MemberOrder getMemberOrder(BucketKind) const override {
    return byExecution ? MemberOrder::Walk : MemberOrder::Registration;
  }
  IssueOrder getIssueOrder() const override { return IssueOrder::FirstMembers; }
  void sortWalk(ArrayRef<BucketItem> items,
                MutableArrayRef<unsigned> walk) const override {
    if (!byExecution)
      return BucketPolicy::sortWalk(items, walk);
    // With scope=unit, what cannot merge should not be neighbours either.
    auto getUnitOp = [&](unsigned item) {
      return items[item].key.unitOp.value_or(0);
    };
    llvm::stable_sort(walk, [&](unsigned lhs, unsigned rhs) {
      return getUnitOp(lhs) < getUnitOp(rhs);
    });
  }
  std::optional<SizeLimit> exceeds(const BucketSize &size) const override {
    int64_t limit = getLimit(size.index, std::numeric_limits<int64_t>::max());
    if (size.packedBytes <= limit)
      return std::nullopt;
    return SizeLimit{"bytes", size.packedBytes, limit};
  }

private:
  bool byExecution;
};

//===----------------------------------------------------------------------===//
// torch-fsdp2
//===----------------------------------------------------------------------===//

/// One group per unit: one all-gather, whatever the dtypes, and one
/// reduce-scatter per reduce dtype, without a limit. Its layout is dense.
class TorchFsdp2 final : public BuiltinPolicy {
public:
  using BuiltinPolicy::BuiltinPolicy;
  IssueOrder getIssueOrder() const override { return IssueOrder::FirstMembers; }
  std::optional<int64_t> getAlignment() const override { return 1; }
};

//===----------------------------------------------------------------------===//
// inductor
//===----------------------------------------------------------------------===//

/// Neighbours of one key are a run, which any other key of the same kind ends.
/// In a run first fit; who depends on a member is skipped for good. The limit
/// follows the number of buckets formed, and is read once per run.
class Inductor final : public ProgramOrderPolicy {
public:
  using ProgramOrderPolicy::ProgramOrderPolicy;

  void form(BucketFormer &former) const override {
    struct Run {
      std::optional<unsigned> key, bucket;
      int64_t limit = 0;
      unsigned formed = 0; ///< buckets of more than one item, over all runs
    };
    DenseMap<std::pair<Block *, unsigned>, Run> runs;
    auto close = [&](Run &run) {
      if (run.bucket && former.getSize(*run.bucket).items > 1)
        ++run.formed;
      run.bucket.reset();
    };
    for (unsigned item : former.getWalk()) {
      const BucketKey &key = former.getItem(item).key;
      Run &run = runs[{key.block, static_cast<unsigned>(key.kind)}];
      if (run.key != former.getKey(item)) {
        close(run);
        run.key = former.getKey(item);
        run.limit = getLimit(run.formed, kDefaultLimit);
      }
      if (run.bucket) {
        Answer answer = former.check(*run.bucket, item);
        if (answer == Answer::Waits)
          continue;
        int64_t bytes = getBytes(former.getSizeWith(run.bucket, item));
        if (answer == Answer::Joins && bytes <= run.limit) {
          former.add(*run.bucket, item);
          continue;
        }
        if (answer == Answer::Joins)
          former.refuse(item, Refusal::SizeLimit, {"bytes", bytes, run.limit});
        close(run);
      }
      run.bucket = former.open(item);
      int64_t bytes = getBytes(former.getSize(*run.bucket));
      if (bytes > run.limit)
        former.refuse(item, Refusal::Oversize, {"bytes", bytes, run.limit});
    }
  }

private:
  static constexpr int64_t kDefaultLimit = int64_t(2000) << 20;
  static int64_t getBytes(const BucketSize &size) {
    return std::max(size.inputBytes, size.outputBytes);
  }
};

//===----------------------------------------------------------------------===//
// xla
//===----------------------------------------------------------------------===//

/// Takes the first item that is left and others of its key in program order,
/// until one does not fit or depends on one taken; then starts again. An item
/// above the limit is taken out for good.
class Xla final : public ProgramOrderPolicy {
public:
  using ProgramOrderPolicy::ProgramOrderPolicy;

  void form(BucketFormer &former) const override {
    struct Left {
      SmallVector<unsigned, 0> items;
      size_t next = 0;
    };
    DenseMap<unsigned, Left> leftOf;                // by key
    std::set<std::pair<unsigned, unsigned>> firsts; // first item left, key
    for (unsigned item : former.getWalk()) {
      Left &left = leftOf[former.getKey(item)];
      if (left.items.empty())
        firsts.insert({item, former.getKey(item)});
      left.items.push_back(item);
    }
    while (!firsts.empty()) {
      unsigned key = firsts.begin()->second;
      firsts.erase(firsts.begin());
      Left &left = leftOf[key];
      combine(former, left.items, left.next);
      if (left.next < left.items.size())
        firsts.insert({left.items[left.next], key});
    }
  }

private:
  static constexpr int64_t kDefaultLimit = (30 << 20) + 7;
  static constexpr unsigned kMaxItems = 256;

  /// Forms one bucket of `items` from `next` on, which ends at the item where
  /// it stopped.
  void combine(BucketFormer &former, ArrayRef<unsigned> items,
               size_t &next) const {
    std::optional<unsigned> bucket;
    for (; next < items.size(); ++next) {
      unsigned item = items[next];
      BucketSize alone = former.getSizeWith(std::nullopt, item);
      unsigned index = bucket ? former.getSize(*bucket).index : alone.index;
      int64_t limit = getLimit(index, kDefaultLimit);
      if (alone.outputBytes > limit) {
        former.refuse(item, Refusal::Oversize,
                      {"bytes", alone.outputBytes, limit});
        continue;
      }
      if (!bucket) {
        bucket = former.open(item);
        continue;
      }
      if (former.check(*bucket, item) != Answer::Joins)
        return;
      BucketSize size = former.getSizeWith(bucket, item);
      bool isTooLarge = size.outputBytes > limit;
      if (isTooLarge || size.items > kMaxItems) {
        former.refuse(item, Refusal::SizeLimit,
                      isTooLarge ? SizeLimit{"bytes", size.outputBytes, limit}
                                 : SizeLimit{"items", size.items, kMaxItems});
        return;
      }
      former.add(*bucket, item);
    }
  }
};

//===----------------------------------------------------------------------===//
// deepspeed
//===----------------------------------------------------------------------===//

/// ZeRO-3, counted in elements. Reductions: one bucket per dtype, flushed
/// before it would pass the limit or where the group changes; members lie as
/// declared. Gathers: a fetch takes parameters in the order of execution until
/// the limit is reached or passed, and becomes one gather per group and dtype.
class DeepSpeed final : public ProgramOrderPolicy {
public:
  using ProgramOrderPolicy::ProgramOrderPolicy;

  MemberOrder getMemberOrder(BucketKind kind) const override {
    return kind == BucketKind::gather ? MemberOrder::Walk
                                      : MemberOrder::Declaration;
  }
  IssueOrder getIssueOrder() const override {
    return IssueOrder::ClosingIfPossible;
  }
  void form(BucketFormer &former) const override {
    llvm::MapVector<Block *, Fetch> fetches;
    llvm::MapVector<std::pair<Block *, Type>, unsigned> reductions;
    for (unsigned item : former.getWalk())
      if (former.getItem(item).key.kind == BucketKind::gather)
        gather(former, item, fetches[former.getItem(item).key.block]);
      else
        reduce(former, item, reductions);
    for (auto &[block, fetch] : fetches)
      finish(former, fetch);
    // What is left is flushed by the name of the dtype.
    auto left = reductions.takeVector();
    llvm::stable_sort(left, [](const auto &lhs, const auto &rhs) {
      return getName(lhs.first.second) < getName(rhs.first.second);
    });
    for (auto [unused, bucket] : left)
      former.close(bucket);
  }

private:
  static constexpr int64_t kFetchLimit = 50'000'000;
  static constexpr int64_t kReduceLimit = 500'000'000;

  /// The parameters that are fetched together.
  struct Fetch {
    struct Gather {
      unsigned group; ///< number of its group of ranks, as they came
      std::string dtype;
      unsigned bucket;
      unsigned firstItem;
    };
    llvm::MapVector<unsigned, Gather> gathers; ///< by key
    int64_t elements = 0;
    std::optional<SizeLimit> reached; ///< of the one before
  };

  static std::string getName(Type type) {
    std::string name;
    llvm::raw_string_ostream stream(name);
    stream << type;
    return name;
  }

  /// Closes the gathers of a fetch: group by group, in each by dtype.
  static void finish(BucketFormer &former, Fetch &fetch) {
    auto gathers = fetch.gathers.takeVector();
    llvm::stable_sort(gathers, [](const auto &lhs, const auto &rhs) {
      return std::tie(lhs.second.group, lhs.second.dtype) <
             std::tie(rhs.second.group, rhs.second.dtype);
    });
    for (auto &[unused, gather] : gathers)
      former.close(gather.bucket);
    fetch.elements = 0;
  }

  void gather(BucketFormer &former, unsigned item, Fetch &fetch) const {
    unsigned key = former.getKey(item);
    auto found = fetch.gathers.find(key);
    if (found != fetch.gathers.end() &&
        former.check(found->second.bucket, item) != Answer::Joins) {
      finish(former, fetch);
      fetch.reached.reset();
      found = fetch.gathers.end();
    }
    if (found != fetch.gathers.end()) {
      former.add(found->second.bucket, item);
    } else {
      if (fetch.reached)
        former.refuse(item, Refusal::SizeLimit, *fetch.reached);
      unsigned group = fetch.gathers.size();
      for (const auto &[unused, other] : fetch.gathers)
        if (isSameGroup(former.getItem(item), former.getItem(other.firstItem)))
          group = std::min(group, other.group);
      fetch.gathers.insert(
          {key,
           {group, getName(former.getItem(item).getCommonDtype()),
            former.open(item), item}});
    }
    fetch.elements =
        addSizes(fetch.elements, former.getItem(item).getElements());
    int64_t limit = getLimit(0, kFetchLimit);
    if (fetch.elements < limit)
      return;
    fetch.reached = SizeLimit{"elements", fetch.elements, limit};
    finish(former, fetch);
  }

  static bool isSameGroup(const BucketItem &lhs, const BucketItem &rhs) {
    return lhs.key.grid == rhs.key.grid &&
           lhs.key.shardAxes == rhs.key.shardAxes &&
           lhs.key.replicateAxes == rhs.key.replicateAxes;
  }

  void reduce(BucketFormer &former, unsigned item,
              llvm::MapVector<std::pair<Block *, Type>, unsigned> &open) const {
    const BucketItem &reduction = former.getItem(item);
    auto [entry, isNew] =
        open.try_emplace({reduction.key.block, reduction.getCommonDtype()}, 0);
    unsigned &bucket = entry->second;
    int64_t limit = getLimit(0, kReduceLimit);
    if (!isNew) {
      if (former.isOfKey(bucket, item) &&
          former.check(bucket, item) == Answer::Joins) {
        BucketSize size = former.getSizeWith(bucket, item);
        if (size.elements <= limit)
          return former.add(bucket, item);
        former.refuse(item, Refusal::SizeLimit,
                      {"elements", size.elements, limit});
      }
      former.close(bucket);
    }
    bucket = former.open(item);
    if (reduction.getElements() > limit)
      former.refuse(item, Refusal::Oversize,
                    {"elements", reduction.getElements(), limit});
  }
};

//===----------------------------------------------------------------------===//
// megatron
//===----------------------------------------------------------------------===//

/// Walks the parameters in reverse, counts elements and closes a bucket once it
/// has reached the limit, which the last parameter may pass.
class Megatron final : public BuiltinPolicy {
public:
  using BuiltinPolicy::BuiltinPolicy;

  /// Storage dtype, everything of 8 bits and less as bytes, and grad dtype. The
  /// experts' group of ranks is in the key anyway.
  Attribute getKey(const BucketItem &item) const override {
    MLIRContext *context = item.collective->getContext();
    llvm::SmallSetVector<Attribute, 2> parts;
    for (const ItemMember &member : item.members) {
      ParamOp param = member.param;
      Type storage = param.getStorageType();
      if (getDtypeBytes(storage) == 1)
        storage = IntegerType::get(context, 8);
      Type grad = param.getGradType();
      parts.insert(ArrayAttr::get(
          context, {TypeAttr::get(storage),
                    TypeAttr::get(grad ? grad : NoneType::get(context))}));
    }
    return ArrayAttr::get(context, parts.getArrayRef());
  }
  Refusal getKeyRefusal() const override { return Refusal::OtherDtype; }

  MemberOrder getMemberOrder(BucketKind) const override {
    return MemberOrder::Walk;
  }
  IssueOrder getIssueOrder() const override {
    return IssueOrder::ClosingIfPossible;
  }
  /// By reverse declaration. What is gathered or reduced a second time comes
  /// after all that is for the first time.
  void sortWalk(ArrayRef<BucketItem> items,
                MutableArrayRef<unsigned> walk) const override {
    using Use = std::tuple<Operation *, Block *, unsigned>;
    DenseMap<Use, unsigned> counts;
    SmallVector<std::pair<unsigned, int64_t>, 0> ranks;
    for (const BucketItem &item : items) {
      const ItemMember &first = item.members.front();
      ParamOp param = first.param;
      unsigned turn = counts[{param.getOperation(), item.key.block,
                              static_cast<unsigned>(item.key.kind)}]++;
      ranks.push_back({turn, -int64_t(first.position)});
    }
    llvm::stable_sort(walk, [&](unsigned lhs, unsigned rhs) {
      return ranks[lhs] < ranks[rhs];
    });
  }
  std::optional<SizeLimit> fills(const BucketSize &size) const override {
    int64_t ranks = size.ranks * size.replicas;
    int64_t limit =
        getLimit(size.index, std::max<int64_t>(40'000'000, 1'000'000 * ranks));
    if (size.elements < limit)
      return std::nullopt;
    return SizeLimit{"elements", size.elements, limit};
  }
};

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// Which options go with a policy. Lists of values begin with the default; an
/// empty one: that is the policy's own business.
struct Accepted {
  StringRef name; ///< empty: our own rules
  bool isGlobal;
  bool bytes, elements; ///< what its limit counts
  ArrayRef<StringRef> gather, order;
};
} // namespace

/// Fills in the defaults of options that were not given. Fails after an error
/// at one that does not go with the policy: no request is dropped silently.
static LogicalResult
resolveOptions(BucketPolicyOptions &options, const Accepted &accepted,
               function_ref<InFlightDiagnostic()> emitError) {
  std::string policy = accepted.name.empty()
                           ? "the default policy"
                           : "policy '" + accepted.name.str() + "'";
  auto resolve = [&](StringRef option, StringRef &value,
                     ArrayRef<StringRef> values) -> LogicalResult {
    if (value.empty() && !values.empty())
      value = values.front();
    if (value.empty() || llvm::is_contained(values, value))
      return success();
    if (values.empty())
      return emitError() << "option " << option << " does not go with "
                         << policy << ", which has an order of its own";
    return emitError() << "option " << option << " is '" << value
                       << "', expected " << llvm::join(values, " or ")
                       << " with " << policy;
  };
  auto refuseLimits = [&](StringRef option) -> LogicalResult {
    return emitError() << "option " << option << " does not go with " << policy
                       << ", which "
                       << (accepted.elements ? "counts elements"
                           : accepted.bytes  ? "counts bytes"
                                             : "has no limit");
  };
  if (options.isGlobal && !accepted.isGlobal)
    return emitError() << "option scope is 'global', expected unit with "
                       << policy;
  if (!options.maxBytes.empty() && !accepted.bytes)
    return refuseLimits("max-bytes");
  if (!options.maxElements.empty() && !accepted.elements)
    return refuseLimits("max-elements");
  return success(
      succeeded(resolve("gather", options.gather, accepted.gather)) &&
      succeeded(resolve("order", options.order, accepted.order)));
}

template <typename PolicyT>
static void add(BucketPolicyFactories &factories, const Accepted &accepted) {
  factories[accepted.name.str()] =
      [accepted](BucketPolicyOptions options,
                 auto emitError) -> std::unique_ptr<BucketPolicy> {
    if (failed(resolveOptions(options, accepted, emitError)))
      return nullptr;
    return std::make_unique<PolicyT>(options);
  };
}

void mlir::fsdp::addBuiltinBucketPolicies(BucketPolicyFactories &factories) {
  static const StringRef mixed[] = {"bytes", "per-dtype"};
  static const StringRef separate[] = {"per-dtype", "bytes"};
  static const StringRef declared[] = {"registration", "execution"};
  static const StringRef executed[] = {"execution"};
  add<FirstFit>(factories, {"", true, /*bytes=*/true, false, mixed, declared});
  add<TorchFsdp2>(factories, {"torch-fsdp2", false, false, false,
                              ArrayRef(mixed).take_front(),
                              ArrayRef(declared).take_front()});
  // Both mix dtypes in a gather where asked to.
  add<Inductor>(factories,
                {"inductor", true, /*bytes=*/true, false, separate, executed});
  add<Xla>(factories, {"xla", true, /*bytes=*/true, false, separate, executed});
  add<DeepSpeed>(factories, {"deepspeed",
                             true,
                             false,
                             /*elements=*/true,
                             ArrayRef(separate).take_front(),
                             {}});
  add<Megatron>(factories,
                {"megatron", true, false, /*elements=*/true, mixed, {}});
}

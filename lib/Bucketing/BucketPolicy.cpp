//===- BucketPolicy.cpp - which buckets merge: rules to choose ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What policies inherit, and the register of their names.
//
//===----------------------------------------------------------------------===//

#include "BuiltinBucketPolicies.h"

#include "llvm/ADT/StringExtras.h"

#include <map>
#include <mutex>

using namespace mlir;
using namespace mlir::fsdp;

void BucketPolicy::sortWalk(ArrayRef<BucketItem> items,
                            MutableArrayRef<unsigned> walk) const {
  SmallVector<unsigned, 0> positions;
  for (const BucketItem &item : items)
    positions.push_back(
        llvm::min_element(item.members, [](const ItemMember &lhs,
                                           const ItemMember &rhs) {
          return lhs.position < rhs.position;
        })->position);
  llvm::stable_sort(walk, [&](unsigned lhs, unsigned rhs) {
    return std::make_pair(items[lhs].origin, positions[lhs]) <
           std::make_pair(items[rhs].origin, positions[rhs]);
  });
}

void BucketPolicy::form(BucketFormer &former) const {
  struct Open {
    std::optional<unsigned> bucket;
    std::optional<SizeLimit> reached; ///< why the last one was closed
  };
  DenseMap<unsigned, Open> openOf; // by key
  auto close = [&](Open &open) {
    former.close(*open.bucket);
    open.bucket.reset();
  };
  // False if `item` has to wait for the next round.
  auto offer = [&](unsigned item) {
    Open &open = openOf[former.getKey(item)];
    if (open.bucket) {
      BucketFormer::Answer answer = former.check(*open.bucket, item);
      if (answer == BucketFormer::Answer::Waits)
        return false;
      std::optional<SizeLimit> limit;
      if (answer == BucketFormer::Answer::Joins)
        limit = exceeds(former.getSizeWith(open.bucket, item));
      if (limit)
        former.refuse(item, Refusal::SizeLimit, *limit);
      if (limit || answer == BucketFormer::Answer::Full)
        close(open);
      else
        former.add(*open.bucket, item);
    } else if (open.reached) {
      former.refuse(item, Refusal::SizeLimit, *open.reached);
    }
    open.reached.reset();
    bool isAlone = false;
    if (!open.bucket) {
      std::optional<SizeLimit> limit =
          exceeds(former.getSizeWith(std::nullopt, item));
      open.bucket = former.open(item);
      isAlone = limit.has_value();
      if (isAlone)
        former.refuse(item, Refusal::Oversize, *limit);
    }
    open.reached = fills(former.getSize(*open.bucket));
    if (isAlone || open.reached)
      close(open);
    return true;
  };

  SmallVector<unsigned, 0> round(former.getWalk());
  while (!round.empty()) {
    SmallVector<unsigned, 0> again;
    for (unsigned item : round)
      if (!offer(item))
        again.push_back(item);
    // Closing all lets the first item that is left open a bucket of its own, so
    // that every round takes some in.
    for (unsigned item : again)
      if (Open &open = openOf[former.getKey(item)]; open.bucket)
        close(open);
    round = std::move(again);
  }
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

namespace {
/// Sorted, so that a message lists names in one order.
struct Registry {
  Registry() { addBuiltinBucketPolicies(factories); }
  std::mutex mutex;
  BucketPolicyFactories factories;
};
} // namespace

static Registry &getRegistry() {
  static Registry registry;
  return registry;
}

void mlir::fsdp::registerBucketPolicy(StringRef name,
                                      BucketPolicyFactory factory) {
  Registry &registry = getRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.factories[name.str()] = std::move(factory);
}

std::unique_ptr<BucketPolicy>
mlir::fsdp::createBucketPolicy(StringRef name,
                               const BucketPolicyOptions &options,
                               function_ref<InFlightDiagnostic()> emitError) {
  Registry &registry = getRegistry();
  BucketPolicyFactory factory;
  {
    std::lock_guard<std::mutex> lock(registry.mutex);
    auto found = registry.factories.find(name.str());
    if (found == registry.factories.end()) {
      SmallVector<StringRef> names;
      for (auto &[known, unused] : registry.factories)
        if (!known.empty())
          names.push_back(known);
      emitError() << "unknown policy '" << name << "', expected "
                  << llvm::join(names, " or ");
      return nullptr;
    }
    factory = found->second;
  }
  return factory(options, emitError);
}

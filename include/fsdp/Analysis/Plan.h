//===- Plan.h - what a module will communicate and move -*- C++ -*- -------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan of a module at stage explicit, packed or buffered: its buckets with
// their layouts and reductions, how many collectives and launches there are,
// and how many bytes they move. `fsdp-print-plan` prints it, the compiler puts
// the buckets and the hash into the artefact, and the runtime compares the
// hashes of all ranks before the first collective.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_PLAN_H
#define FSDP_ANALYSIS_PLAN_H

#include "fsdp/Analysis/Decisions.h"
#include "fsdp/Dialect/Fsdp.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <string>

namespace mlir::fsdp {

/// One parameter of a bucket.
struct MemberPlan {
  std::string param;
  int64_t offsetBytes; ///< in a row
  int64_t elements;    ///< per rank, padding included
  Type dtype;          ///< on the wire
  Type from;           ///< what the packing op reads; null if there is none
  Type to;             ///< what the unpacking op makes; null if there is none
};

struct BucketPlan {
  std::string name;
  std::string unit; ///< of its first member
  BucketKind kind;
  Type wire; ///< `i8` is bytes
  int64_t align;
  std::optional<int64_t> group;
  SmallVector<int64_t> shardAxes, replicateAxes;
  SmallVector<MemberPlan, 0> members;
  int64_t rowBytes;
  int64_t rowElements; ///< of the wire dtype
  int64_t packedBytes; ///< all rows
  /// Bytes of all rows that hold no element of a parameter: gaps for alignment,
  /// and what the last ranks lack.
  int64_t paddingBytes;

  // Of a reduction; as the first op says where a bucket is used several times.
  std::optional<ReduceOp> reduceScatter, allReduce;
  std::optional<double> premul, divide, splitDivide;
  Type accumulate; ///< null: the wire
};

struct UnitPlan {
  std::string name;
  SmallVector<unsigned> buckets; ///< indices, in the order of issue
};

struct Plan {
  SmallVector<UnitPlan, 0> units;     ///< in the order of declaration
  SmallVector<BucketPlan, 0> buckets; ///< in the order of issue
  /// Numbers of ops; a launch is a local op. Other collectives are those of
  /// other dialects.
  int64_t allGathers = 0, reduceScatters = 0, allReduces = 0,
          otherCollectives = 0, launches = 0;
  /// What local ops, and casts in front of or behind them, read and write on
  /// one rank; every op counts once, whatever loop it is in.
  int64_t bytesRead = 0, bytesWritten = 0;
  /// Bytes of the tensors that only a cast makes and only local ops read, or
  /// the reverse: what folding the casts would save.
  int64_t bytesTemporaries = 0;
  SmallVector<Decision, 0> decisions;
  /// Over everything in which ranks must agree, in the order of issue.
  uint64_t hash = 0;

  /// 16 hexadecimal digits.
  std::string getHashText() const;
  int64_t getPaddingBytes() const;

  /// The plan of `module`; fails after an error if it is at stage declared.
  static FailureOr<Plan> get(ModuleOp module,
                             SymbolTableCollection &symbolTables,
                             ArrayRef<Decision> decisions = {});
};

llvm::json::Object toJSON(const BucketPlan &bucket);
llvm::json::Object toJSON(const Plan &plan);
/// Writes JSON that toJSON made, keys in the order in which people read them.
void writeJSON(const llvm::json::Value &value, raw_ostream &os);

/// Prints `plan` for people.
void printText(const Plan &plan, raw_ostream &os);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_PLAN_H

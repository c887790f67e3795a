//===- PlanText.cpp - the plan as JSON and as text ------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One description of the plan as JSON objects serves all who write it: reports,
// the manifest of an artefact, `fsdp-print-plan`. The text is for people alone.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Plan.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::fsdp;

static std::string getDtypeName(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::string getWireName(const BucketPlan &bucket) {
  return bucket.wire.isInteger(8) ? "bytes" : getDtypeName(bucket.wire);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static llvm::json::Value dtypeOrNull(Type type) {
  if (!type)
    return nullptr;
  return getDtypeName(type);
}

static llvm::json::Value keywordOrNull(std::optional<ReduceOp> reduction) {
  if (!reduction)
    return nullptr;
  return stringifyReduceOp(*reduction);
}

llvm::json::Object mlir::fsdp::toJSON(const BucketPlan &bucket) {
  llvm::json::Array members;
  for (const MemberPlan &member : bucket.members)
    members.push_back(llvm::json::Object{
        {"param", member.param},
        {"offset_bytes", member.offsetBytes},
        {"elements", member.elements},
        {"dtype", dtypeOrNull(member.dtype)},
        {"from", dtypeOrNull(member.from)},
        {"to", dtypeOrNull(member.to)},
    });
  return llvm::json::Object{
      {"name", bucket.name},
      {"kind", stringifyBucketKind(bucket.kind)},
      {"wire", getWireName(bucket)},
      {"align", bucket.align},
      {"group", bucket.group},
      {"members", std::move(members)},
      {"row_bytes", bucket.rowBytes},
      {"row_elements", bucket.rowElements},
      {"packed_bytes", bucket.packedBytes},
      {"padding_bytes", bucket.paddingBytes},
      {"reduce_scatter", keywordOrNull(bucket.reduceScatter)},
      {"premul", bucket.premul},
      {"all_reduce", keywordOrNull(bucket.allReduce)},
      {"divide", bucket.divide},
      {"split_divide", bucket.splitDivide},
      {"accumulate", dtypeOrNull(bucket.accumulate)},
  };
}

llvm::json::Object mlir::fsdp::toJSON(const Plan &plan) {
  llvm::json::Array units;
  for (const UnitPlan &unit : plan.units) {
    llvm::json::Array buckets;
    for (unsigned index : unit.buckets)
      buckets.push_back(toJSON(plan.buckets[index]));
    units.push_back(llvm::json::Object{{"name", unit.name},
                                       {"buckets", std::move(buckets)}});
  }
  llvm::json::Array decisions;
  for (const Decision &decision : plan.decisions)
    decisions.push_back(llvm::json::Object{
        {"pass", decision.pass},
        {"outcome", decision.outcome},
        {"reason", decision.reason},
        {"items", llvm::json::Array(decision.items)},
    });
  llvm::json::Object counts{
      {"all_gather", plan.allGathers},
      {"reduce_scatter", plan.reduceScatters},
      {"all_reduce", plan.allReduces},
      {"launches", plan.launches},
  };
  if (plan.otherCollectives)
    counts["other_collective"] = plan.otherCollectives;
  return llvm::json::Object{
      {"version", 1},
      {"units", std::move(units)},
      {"counts", std::move(counts)},
      {"bytes",
       llvm::json::Object{
           {"read", plan.bytesRead},
           {"written", plan.bytesWritten},
           {"temporaries", plan.bytesTemporaries},
       }},
      {"decisions", std::move(decisions)},
      {"plan_hash", plan.getHashText()},
  };
}

/// The place of `key` in an object. Objects have no order of their own.
static size_t getRank(StringRef key) {
  static constexpr StringLiteral order[] = {
      // A plan, a unit, a decision.
      "version", "units", "counts", "bytes", "decisions", "plan_hash", "pass",
      "outcome", "reason", "items",
      // Counts and bytes.
      "all_gather", "read", "written", "temporaries",
      // A bucket and its members; reduce_scatter and all_reduce are counts too.
      "name", "buckets", "kind", "wire", "align", "group", "members", "param",
      "offset_bytes", "elements", "dtype", "from", "to", "row_bytes",
      "row_elements", "packed_bytes", "padding_bytes", "reduce_scatter",
      "premul", "all_reduce", "other_collective", "divide", "split_divide",
      "accumulate", "launches"};
  return llvm::find(order, key) - std::begin(order);
}

static void write(const llvm::json::Value &value, llvm::json::OStream &json) {
  if (const llvm::json::Array *array = value.getAsArray())
    return json.array([&] {
      for (const llvm::json::Value &element : *array)
        write(element, json);
    });
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return json.value(value);
  SmallVector<const llvm::json::Object::value_type *> entries;
  for (const auto &entry : *object)
    entries.push_back(&entry);
  llvm::sort(entries, [](const auto *lhs, const auto *rhs) {
    StringRef left = lhs->first, right = rhs->first;
    return std::make_pair(getRank(left), left) <
           std::make_pair(getRank(right), right);
  });
  json.object([&] {
    for (const auto *entry : entries) {
      json.attributeBegin(entry->first);
      write(entry->second, json);
      json.attributeEnd();
    }
  });
}

void mlir::fsdp::writeJSON(const llvm::json::Value &value, raw_ostream &os) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  write(value, json);
  json.flush();
  os << '\n';
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {
/// Rows of cells, printed with columns as wide as they need to be.
class Table {
public:
  void add(std::vector<std::string> row) {
    if (widths.size() < row.size())
      widths.resize(row.size());
    for (auto [width, cell] : llvm::zip_first(widths, row))
      width = std::max(width, cell.size());
    rows.push_back(std::move(row));
  }

  /// Numbers stand on the right, names on the left.
  void print(raw_ostream &os, StringRef indent, StringRef alignment) const {
    for (const std::vector<std::string> &row : rows) {
      std::string line = indent.str();
      llvm::raw_string_ostream stream(line);
      for (auto [index, cell] : llvm::enumerate(row)) {
        unsigned width = widths[index];
        stream << (index ? "  " : "");
        if (alignment[index] == 'r')
          stream << llvm::right_justify(cell, width);
        else
          stream << llvm::left_justify(cell, width);
      }
      os << StringRef(line).rtrim() << '\n';
    }
  }

private:
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> widths;
};
} // namespace

/// "12,345,678".
static std::string withCommas(int64_t number) {
  std::string text = std::to_string(number);
  for (int64_t place = static_cast<int64_t>(text.size()) - 3; place > 0;
       place -= 3)
    text.insert(place, ",");
  return text;
}

static std::string describeReduction(const BucketPlan &bucket) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto number = [&](StringRef name, std::optional<double> value) {
    if (value)
      os << ' ' << name << ' ' << llvm::format("%g", *value);
  };
  os << "chunk_cat";
  number("divide", bucket.divide);
  if (bucket.reduceScatter) {
    os << ", reduce_scatter " << stringifyReduceOp(*bucket.reduceScatter);
    if (bucket.premul)
      os << ' ' << llvm::format("%g", *bucket.premul);
  }
  if (bucket.allReduce)
    os << ", all_reduce " << stringifyReduceOp(*bucket.allReduce);
  if (bucket.accumulate)
    os << " accumulate " << bucket.accumulate;
  os << ", split";
  number("divide", bucket.splitDivide);
  return text;
}

static void printBucket(const BucketPlan &bucket, raw_ostream &os) {
  os << "  " << stringifyBucketKind(bucket.kind) << " " << bucket.name << " in "
     << getWireName(bucket) << ", " << bucket.members.size()
     << (bucket.members.size() == 1 ? " member" : " members") << ", align "
     << bucket.align;
  if (bucket.group)
    os << ", group " << *bucket.group;
  os << '\n';
  if (bucket.kind == BucketKind::reduce)
    os << "    " << describeReduction(bucket) << '\n';
  os << "    row " << withCommas(bucket.rowBytes) << " bytes, packed "
     << withCommas(bucket.packedBytes) << " bytes, "
     << withCommas(bucket.paddingBytes) << " of them padding\n";
  Table table;
  table.add({"parameter", "offset", "elements", "from", "wire", "to"});
  auto name = [](Type type) { return type ? getDtypeName(type) : "-"; };
  for (const MemberPlan &member : bucket.members)
    table.add({member.param, withCommas(member.offsetBytes),
               withCommas(member.elements), name(member.from),
               name(member.dtype), name(member.to)});
  table.print(os, "    ", "lrrlll");
}

void mlir::fsdp::printText(const Plan &plan, raw_ostream &os) {
  for (const UnitPlan &unit : plan.units) {
    os << "unit " << unit.name;
    if (unit.buckets.empty())
      os << ": no buckets";
    os << '\n';
    for (unsigned index : unit.buckets)
      printBucket(plan.buckets[index], os);
    os << '\n';
  }
  os << "total\n";
  Table table;
  auto line = [&](StringRef what, int64_t number) {
    table.add({what.str(), withCommas(number)});
  };
  line("all-gathers", plan.allGathers);
  line("reduce-scatters", plan.reduceScatters);
  line("all-reduces", plan.allReduces);
  if (plan.otherCollectives)
    line("other collectives", plan.otherCollectives);
  line("launches", plan.launches);
  line("bytes read", plan.bytesRead);
  line("bytes written", plan.bytesWritten);
  line("bytes of temporaries", plan.bytesTemporaries);
  line("bytes of padding", plan.getPaddingBytes());
  table.print(os, "  ", "lr");
  os << "  plan hash " << plan.getHashText() << '\n';
}

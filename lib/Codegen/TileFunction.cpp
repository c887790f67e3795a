//===- TileFunction.cpp - what walks a tile plan
//---------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/TileFunction.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string TileFunction::getName() const {
  std::string name;
  llvm::raw_string_ostream os(name);
  os << (packs ? "fsdp_pack" : "fsdp_unpack");
  for (const DtypePair &pair : pairs)
    os << '_' << getSource(pair) << '_' << getTarget(pair);
  if (divide) // the bits, so that no two divisors share a name
    os << "_divide_" << llvm::utohexstr(llvm::bit_cast<uint64_t>(*divide));
  if (adds)
    os << "_add";
  return name;
}

Value TileFunction::convert(const FloatArithmetic &arithmetic,
                            OpBuilder &builder, Location loc, Value value,
                            Type to, Value old) const {
  if (packs)
    value = arithmetic.cast(builder, loc, value, to);
  if (divide)
    value = arithmetic.divide(builder, loc, value, *divide);
  if (!packs)
    value = arithmetic.cast(builder, loc, value, to);
  return old ? arithmetic.add(builder, loc, old, value) : value;
}

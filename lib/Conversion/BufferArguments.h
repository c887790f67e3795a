//===- BufferArguments.h - buffers are passed in tables ---------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a function that reaches the runtime takes its arguments. A unit may have
// tens of thousands of parameters, and a code generator needs more than linear
// time for as many arguments. So
//
//   func.func @f(%a: memref<4xf32>, %n: index, %b: memref<8xf32>)
// becomes
//   func.func @f(%context: !llvm.ptr, %buffers: !llvm.ptr, %n: index)
//
// where `buffers` points to the addresses of a and b. An entry, which a
// launcher calls, has all of its arguments in one table and its results in
// another:
//
//   func.func @fsdprt_entry_f(%context: !llvm.ptr, %arguments: !llvm.ptr,
//                             %results: !llvm.ptr)
//
// An address is loaded where it is used, so no value lives through the
// function.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CONVERSION_BUFFERARGUMENTS_H
#define FSDP_LIB_CONVERSION_BUFFERARGUMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {

class BufferArguments {
public:
  /// For `function` as it is before it takes a context. With `isEntry`, the
  /// first `inputs` arguments are a launcher's arguments, the others its
  /// results.
  BufferArguments(func::FuncOp function, bool isEntry, size_t inputs);

  /// True if an entry can have these arguments.
  static bool canBeEntry(func::FuncOp function, size_t inputs);

  /// Gives the function its new arguments, of which the first is the context,
  /// and a status as its last result.
  void rewrite();

  /// The operands of a call in `caller`, whose context is its first argument,
  /// for what were the operands `values`.
  SmallVector<Value> createOperands(ImplicitLocOpBuilder &b,
                                    func::FuncOp caller, ValueRange values);

private:
  struct Place {
    int table; ///< -1: by value
    unsigned index;
  };

  func::FuncOp function;
  unsigned numTables;
  SmallVector<Place> places;
};

/// A memref of static shape, row major and dense, over the memory at `data`.
/// Takes part in nothing but pointers until `expandDescriptors`.
Value createDenseBuffer(ImplicitLocOpBuilder &b, MemRefType type, Value data);

/// Once everything in `function` is lowered: addresses of what
/// `createDenseBuffer` has made are the pointers that it was made of, and what
/// else uses it gets a descriptor.
void expandDescriptors(func::FuncOp function);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CONVERSION_BUFFERARGUMENTS_H

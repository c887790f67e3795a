//===- RuntimeCalls.h - calls of the runtime's functions --------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code calls the functions of RuntimeFunctions.def. Their types come
// from their C declarations, so no signature is written twice.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_RUNTIMECALLS_H
#define FSDP_CODEGEN_RUNTIMECALLS_H

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {

/// One value per function of RuntimeFunctions.def, with its name.
enum class RuntimeFunction {
#define FSDPRT_CALL(name, parameters) name,
#include "fsdp/Runtime/RuntimeFunctions.def"
};

/// An fsdprtCollective as it becomes a constant; see there.
struct CollectiveRecord {
  BucketOp bucket; ///< its wire is the dtype
  int32_t kind = 0;
  SmallVector<int64_t> axes; ///< of the grid, each below 2^31
  int64_t count = 0;         ///< elements of one member's row
  int32_t reduction = 0;
  double multiplier = 0;
  bool accumulate = false;
};

/// Builds calls of the runtime in one module, and declares what is called.
class RuntimeCalls {
public:
  explicit RuntimeCalls(ModuleOp module);

  /// Calls `function` and returns its status, an i32. The operands must be of
  /// the C parameters' types: `!llvm.ptr`, i32, i64 or f64.
  Value call(ImplicitLocOpBuilder &builder, RuntimeFunction function,
             ValueRange operands);

  /// A pointer to the zero-terminated name of `named`, a bucket or a kernel.
  Value name(ImplicitLocOpBuilder &builder, Operation *named);

  /// A pointer to the constant that holds `record`; equal ones are one.
  Value collective(ImplicitLocOpBuilder &builder,
                   const CollectiveRecord &record);

  /// The address and the size in bytes of the image that holds the module's
  /// kernels; fsdp-embed-kernels defines both.
  std::pair<Value, Value> kernelImage(ImplicitLocOpBuilder &builder);

  /// The least version of the driver that the image needs, an i32.
  Value kernelDriver(ImplicitLocOpBuilder &builder);

private:
  StringAttr nameSymbol(ImplicitLocOpBuilder &builder, Operation *named);
  StringAttr axesSymbol(ImplicitLocOpBuilder &builder, ArrayRef<int64_t> axes);

  ModuleOp module;
  SymbolTable symbols;
  DenseMap<int, func::FuncOp> declarations;
  DenseMap<Operation *, StringAttr> names;
  DenseMap<Attribute, StringAttr> axesLists; ///< by the list
  DenseMap<Attribute, StringAttr> records;   ///< by all that is in one
};

/// Symbols of the image that holds the kernels: its bytes, their number, and
/// the least version of the driver that it needs.
inline constexpr StringLiteral kKernelImageSymbol = "fsdp_kernel_image";
inline constexpr StringLiteral kKernelImageBytesSymbol =
    "fsdp_kernel_image_bytes";
inline constexpr StringLiteral kKernelDriverSymbol = "fsdp_kernel_driver";

/// Whether the elements of `buffer` follow each other in memory, as many as its
/// type says.
bool isContiguousBuffer(Value buffer);
/// A pointer to the first element of `buffer`, a memref.
Value createPointer(ImplicitLocOpBuilder &builder, Value buffer);

/// An array of `count` words of 64 bits in the frame of `function`, so that a
/// loop around its use does not grow the stack.
Value createFrameArray(ImplicitLocOpBuilder &builder,
                       FunctionOpInterface function, int64_t count);
/// Such an array of `addresses`, which are pointers or i64; null for none.
Value createAddressArray(ImplicitLocOpBuilder &builder,
                         FunctionOpInterface function, ValueRange addresses);

/// The fsdprtDtype of a bucket's wire type.
int32_t getRuntimeDtype(BucketOp bucket);
/// The fsdprtReduction of a collective's keyword.
int32_t getRuntimeReduction(ReduceOp reduction);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_RUNTIMECALLS_H

//===- GpuBuilder.h - what all kernels are made of -*- C++ -*- ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The frame of a kernel, and its accesses to memory. A kernel has two
// parameters: an array of 64-bit words by value, which are addresses for the
// most part, and one more address. Emulated, it is a function of the host with
// the same parameters, the array by address, that runs all blocks and threads
// one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_GPUBUILDER_H
#define FSDP_CODEGEN_GPUBUILDER_H

#include "fsdp/Codegen/KernelArithmetic.h"
#include "fsdp/Codegen/TileBuilder.h"

namespace mlir::fsdp {

/// Threads of a block.
inline constexpr int64_t kThreads = 256;
/// Rows of a grid.
inline constexpr int64_t kMaxRows = 65535;
/// Words of a kernel's first parameter at the most, if its PTX has room for
/// them.
inline constexpr int64_t kMaxAddresses = 4090;
/// Bytes of the parameters of a kernel with so many words.
inline constexpr int64_t getParameterBytes(int64_t numWords) {
  return 8 * numWords + 8;
}
/// Where a kernel's data and table are: global memory.
inline constexpr unsigned kKernelAddressSpace = 1;
/// Bytes of a vector on the side whose elements are widest.
inline constexpr int64_t kVectorBytes = 16;

/// How single elements are loaded and stored.
enum class Access {
  Whole, ///< every side is aligned to its elements
  Bytes, ///< elements start anywhere
};

class GpuBuilder : protected TileBuilder {
protected:
  GpuBuilder(OpBuilder &builder, Location loc, bool emulate)
      : TileBuilder(builder, loc, kKernelAddressSpace), emulate(emulate),
        arithmetic(emulate) {}

  /// What a kernel needs beside its body.
  struct Frame {
    StringRef name;
    int64_t numWords;
    bool waits; ///< for the kernel in front of it
    /// Registers of a thread at the most; none: the assembler chooses.
    std::optional<int64_t> registers;
    /// The grid is (rows, columns) and not (columns, rows), as in its launch.
    bool rowsFirst = false;
  };

  /// Creates the kernel at the insertion point. `body` builds what one thread
  /// does, with `words`, `operand` and `thread` set, in block (x, y), i64. It
  /// is called once. `blocks` gives the grid's extents, i64, to a kernel that
  /// is emulated.
  LLVM::LLVMFuncOp buildKernel(const Frame &frame,
                               function_ref<std::pair<Value, Value>()> blocks,
                               function_ref<void(Value x, Value y)> body);

  /// Word `index` (i32) of the first parameter, i64.
  Value word(Value index);
  Value toPointer(Value address) {
    return LLVM::IntToPtrOp::create(b, pointer, address);
  }
  /// `bytes` bytes, a multiple of 4, as a vector of 32-bit words.
  Value loadWords(Value at, int64_t bytes);
  void storeWords(Value words, Value at);
  /// Element `index` (i32) behind `base`.
  Value load(Type dtype, Value base, Value index, Access access);
  void store(Value value, Value base, Value index, Access access);
  /// `value`, an integer, after a move that ptxas does not look through, if it
  /// is a kernel for a GPU. Those of CUDA 12.1 to 13.0 take a store of the low
  /// byte of what a floating-point instruction has written for a conversion of
  /// that number to an integer, and store its low byte. The move costs no
  /// register, and later ones drop it.
  Value asInteger(Value value);
  /// i64: 0 if `place` is aligned to `bytes`, a power of two.
  Value lowBits(Value place, int64_t bytes) {
    Value address = LLVM::PtrToIntOp::create(b, i64, place);
    return both(address, constant64(bytes - 1));
  }
  /// The place of element `index` (i32) behind `base`. Offsets inside of a tile
  /// have 32 bits: one register, of which a thread has few.
  Value elementAt(Value base, Value index, int64_t bytes) {
    return offset(base, widen(mul(index, bytes)));
  }
  Value zeroWords(int64_t bytes) {
    auto type = VectorType::get({bytes / 4}, i32);
    return arith::ConstantOp::create(b, b.getZeroAttr(type));
  }
  static int64_t numWords(Value words) {
    return cast<VectorType>(words.getType()).getNumElements();
  }

  const bool emulate;
  const KernelArithmetic arithmetic;
  Value words;   ///< the first parameter
  Value operand; ///< the second one
  Value thread;  ///< i32
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_GPUBUILDER_H

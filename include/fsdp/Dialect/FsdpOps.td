//===- FsdpOps.td - units, buckets, local ops and collectives -*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_OPS
#define FSDP_OPS

include "fsdp/Dialect/FsdpOpBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"

/// Every op says at which stages it may occur.
class Fsdp_Op<string mnemonic, list<Trait> traits = []>
    : Op<Fsdp_Dialect, mnemonic, traits # [StagedOpInterface]>;

defvar Fsdp_SymbolUser = DeclareOpInterfaceMethods<SymbolUserOpInterface>;

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

def Fsdp_UnitOp : Fsdp_Op<"unit", [
    Symbol, SymbolTable, IsolatedFromAbove, NoTerminator, SingleBlock,
    NoRegionArguments, HasOnlyGraphRegion, Fsdp_SymbolUser]> {
  let summary = "parameters that are gathered and reduced together";
  let description = [{
    Declares the parameters of one unit, in the order in which they lie in
    buckets, and what they have in common: the grid, the axes, the precision of
    parameters that do not say their own, and the reduction of gradients.

    Without `shard_axes` and `replicate_axes`, all axes are shard axes. An axis
    that is named in neither list forms groups of its own.

    The reduced gradient is the sum over all ranks of the shard and replicate
    groups, divided once: for `avg` (the default) by `divide_factor`, or by the
    number of ranks where there is none; for `sum` by `divide_factor`, if any.

    ```mlir
    shard.grid @hsdp(shape = 2x4)
    fsdp.unit @layer1 on @hsdp precision <param = bf16, reduce = f32>
        shard_axes [1] replicate_axes [0] reduction avg divide_factor 3.0 {
      fsdp.param @norm : tensor<10xf32> precision <param = f32>
      fsdp.param @wq : tensor<8x3xf32>
    }
    ```

    **Constraints**
    - (C1) `grid` names an op with `DeviceGridOpInterface` whose sizes are static
      and positive;
    - (C2) the axes are in range, none is named twice or in both lists;
    - (C3) the entries of `precision` are f16, bf16, f32 or f64;
    - (C4) `divide_factor` is positive and finite;
    - (C5) the body holds `fsdp.param` ops, at least one, and nothing else;
    - (C6) the name is UTF-8 without zero bytes;
    - (C7) `reduction` is `sum` or `avg`.
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,                           /*C6*/
    FlatSymbolRefAttr:$grid,                            /*C1*/
    OptionalAttr<Fsdp_PrecisionAttr>:$precision,        /*C3*/
    OptionalAttr<DenseI64ArrayAttr>:$shard_axes,        /*C2*/
    OptionalAttr<DenseI64ArrayAttr>:$replicate_axes,    /*C2*/
    OptionalAttr<Fsdp_ReduceOp>:$reduction,             /*C7*/
    OptionalAttr<F64Attr>:$divide_factor);              /*C4*/
  let regions = (region SizedRegion<1>:$body);          /*C5*/
  let assemblyFormat = [{
    $sym_name `on` $grid
    (`precision` $precision^)? (`shard_axes` $shard_axes^)?
    (`replicate_axes` $replicate_axes^)? (`reduction` $reduction^)?
    (`divide_factor` $divide_factor^)?
    attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::fsdp::StageRange, 2> getStages() {
      return {{::mlir::fsdp::Stage::Declared, ::mlir::fsdp::Stage::Buffered,
               "", ""}};
    }
    ::std::string describeSubject() {
      return ("unit '" + getSymName() + "'").str();
    }
    auto getParams() { return getBody().getOps<::mlir::fsdp::ParamOp>(); }
    /// The grid and groups of this unit; fails silently where the unit would
    /// not verify.
    ::mlir::FailureOr<::mlir::fsdp::UnitGroup>
    getGroup(::mlir::SymbolTableCollection &symbolTable);
    /// What gradients become, `avg` if the unit does not say.
    ::mlir::fsdp::ReduceOp getEffectiveReduction() {
      return getReduction().value_or(::mlir::fsdp::ReduceOp::avg);
    }
  }];
  let hasRegionVerifier = 1;
}

def Fsdp_ParamOp : Fsdp_Op<"param", [Symbol, HasParent<"UnitOp">]> {
  let summary = "a parameter of a unit";
  let description = [{
    Declares a parameter by its full type, whose element type is the storage
    dtype. The shard type has `shard_dim` (0 if absent) replaced by
    `ceil(size / W)`.

    Storage that is not floating-point is *opaque*: it is gathered as it is and
    never cast, so such a parameter is frozen. A frozen parameter is gathered but
    has no gradient.

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
      fsdp.param @norm : tensor<10xf32> precision <param = f32>
      fsdp.param @wv : tensor<3x8xf32> shard_dim 1
      fsdp.param @table : tensor<16x2xbf16> frozen
    }
    ```

    **Constraints**
    - (C1) the type is static and of rank 1 or more;
    - (C2) its element type is f16, bf16, f32, f64, or opaque: i8, i16, i32, i64,
      ui8, ui16, ui32, ui64, f8E4M3FN, f8E5M2, f8E8M0FNU, f6E2M3FN, f6E3M2FN or
      f4E2M1FN;
    - (C3) `shard_dim` is a dimension of the type;
    - (C4) a parameter of opaque storage is frozen;
    - (C5) the entries of `precision` are f16, bf16, f32 or f64; with opaque
      storage `param` may be the storage type;
    - (C6) the number of elements fits 62 bits;
    - (C7) rows of elements of 4 and 6 bits, which are packed, are whole bytes, of
      the full tensor and of a shard;
    - (C8) the name is UTF-8 without zero bytes.
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,                           /*C8*/
    TypeAttrOf<AnyRankedTensor>:$type,                  /*C1, C2, C6, C7*/
    OptionalAttr<I64Attr>:$shard_dim,                   /*C3*/
    OptionalAttr<Fsdp_PrecisionAttr>:$precision,        /*C5*/
    UnitAttr:$frozen);                                  /*C4*/
  let assemblyFormat = [{
    $sym_name `:` $type
    (`shard_dim` $shard_dim^)? (`precision` $precision^)? (`frozen` $frozen^)?
    attr-dict
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::fsdp::StageRange, 2> getStages() {
      return {{::mlir::fsdp::Stage::Declared, ::mlir::fsdp::Stage::Buffered,
               "", ""}};
    }
    ::std::string describeSubject() {
      return ("parameter '" + getSymName() + "'").str();
    }
    ::mlir::RankedTensorType getFullType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
    ::mlir::fsdp::UnitOp getUnit();
    ::mlir::Type getStorageType() { return getFullType().getElementType(); }
    /// True for storage that is never cast (integers, float8).
    bool isOpaque();
    int64_t getShardDimension() { return getShardDim().value_or(0); }

    /// P, the dtype of compute and of the all-gather: the parameter's own
    /// entry, the unit's, or the storage dtype. No profile changes it.
    ::mlir::Type getParamType();
    /// G, the dtype in which the reduced shard is kept; null if opaque. No
    /// profile changes it.
    ::mlir::Type getGradType();
    /// R, the dtype of the reduction, once `fsdp-resolve-precision` has written
    /// it on the parameter; null before and if opaque.
    ::mlir::Type getReduceType();

    /// The layout over `ranks` ranks; empty only where the op does not verify.
    ::std::optional<::mlir::fsdp::ParamLayout> getLayout(int64_t ranks);
    /// The shard's type over `ranks` ranks, of the storage dtype unless another
    /// one is given.
    ::mlir::RankedTensorType getShardType(int64_t ranks,
                                          ::mlir::Type elementType = {});
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Unit ops (stage declared)
//===----------------------------------------------------------------------===//

class Fsdp_UnitUserOp<string mnemonic> : Fsdp_Op<mnemonic, [
    DeclareOpInterfaceMethods<UnitOpInterface>, Fsdp_SymbolUser,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::fsdp::StageRange, 2> getStages() {
      return {{::mlir::fsdp::Stage::Declared, ::mlir::fsdp::Stage::Declared, "",
               "fsdp-expand-units should have replaced it"}};
    }
    ::std::string describeSubject() {
      return ("unit '" + getUnit() + "'").str();
    }
  }];
}

def Fsdp_UnshardOp : Fsdp_UnitUserOp<"unshard"> {
  let summary = "make the full tensors of a unit's parameters";
  let description = [{
    Takes this rank's shard of every parameter of the unit, in order, and gives
    the full tensors in their param dtypes. Two `unshard` of one unit are two
    gathers.

    On 2 ranks, with parameters `a` of 3 elements and `b` of 2, and `0` for padding:

    ```
              before               after
      rank 0  [a0 a1]  [b0]        [a0 a1 a2]  [b0 b1]
      rank 1  [a2  0]  [b1]        [a0 a1 a2]  [b0 b1]
    ```

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @layer0 on @dp precision <param = bf16> {
      fsdp.param @wq : tensor<8x3xf32>
      fsdp.param @wv : tensor<3x8xf32> shard_dim 1
    }
    func.func @forward(%q: tensor<2x3xf32>, %v: tensor<3x2xf32>)
        -> (tensor<8x3xbf16>, tensor<3x8xbf16>) {
      %w:2 = fsdp.unshard @layer0(%q, %v) : (tensor<2x3xf32>, tensor<3x2xf32>)
          -> (tensor<8x3xbf16>, tensor<3x8xbf16>)
      return %w#0, %w#1 : tensor<8x3xbf16>, tensor<3x8xbf16>
    }
    ```

    **Constraints**
    - (C1) `unit` names a unit;
    - (C2) there is one operand and one result per parameter;
    - (C3) operand `i` has the shard type of parameter `i`;
    - (C4) result `i` has its full shape and param dtype.
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit,                 /*C1*/
                       Variadic<AnyRankedTensor>:$shards);      /*C2, C3*/
  let results = (outs Variadic<AnyRankedTensor>:$full);         /*C2, C4*/
  let assemblyFormat = [{
    $unit `(` $shards `)` attr-dict `:` functional-type($shards, results)
  }];
}

def Fsdp_ReduceGradsOp : Fsdp_UnitUserOp<"reduce_grads"> {
  let summary = "reduce full gradients to shards";
  let description = [{
    Takes the full gradients of the named parameters of the unit, as this rank
    computed them, and gives this rank's shards of the reduced gradients, in their
    grad dtypes. Parameters that are not named take part in nothing. The gradients
    may have any floating-point dtypes.

    On 2 ranks, with gradients `a` of 3 elements and `b` of 2 on rank 0, `c` and `d` of
    the same parameters on rank 1, and reduction `sum`:

    ```
              before                   after
      rank 0  [a0 a1 a2]  [b0 b1]      [a0+c0 a1+c1]  [b0+d0]
      rank 1  [c0 c1 c2]  [d0 d1]      [a2+c2     0]  [b1+d1]
    ```

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
      fsdp.param @norm : tensor<10xf32> precision <param = f32>
      fsdp.param @wq : tensor<8x3xf32>
      fsdp.param @unused : tensor<3xf32>
    }
    func.func @backward(%gn: tensor<10xf32>, %gq: tensor<8x3xbf16>)
        -> (tensor<3xf32>, tensor<2x3xf32>) {
      %s:2 = fsdp.reduce_grads @layer0[@norm, @wq](%gn, %gq)
          : (tensor<10xf32>, tensor<8x3xbf16>) -> (tensor<3xf32>, tensor<2x3xf32>)
      return %s#0, %s#1 : tensor<3xf32>, tensor<2x3xf32>
    }
    ```

    **Constraints**
    - (C1) `unit` names a unit, and `params` are parameters of it;
    - (C2) none is named twice, none is frozen;
    - (C3) there is one operand and one result per parameter;
    - (C4) operand `i` has the full shape of parameter `i` and a floating-point
      dtype;
    - (C5) result `i` has its shard type in its grad dtype.
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit,                 /*C1*/
                       SymbolRefArrayAttr:$params,              /*C1, C2*/
                       Variadic<AnyRankedTensor>:$gradients);   /*C3, C4*/
  let results = (outs Variadic<AnyRankedTensor>:$shards);       /*C3, C5*/
  let assemblyFormat = [{
    custom<UnitParamRefs>($unit, $params) `(` $gradients `)` attr-dict
    `:` functional-type($gradients, results)
  }];
}

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

def Fsdp_BucketOp : Fsdp_Op<"bucket", [Symbol, Fsdp_SymbolUser]> {
  let summary = "a communication buffer";
  let description = [{
    An ordered list of parameters that travel together, the wire dtype in which
    they do, and how they are laid out: segments and rows start at multiples of
    `align` bytes (128 if absent). The wire type is a floating-point type, or
    `bytes`: then each member keeps its own param dtype and the packed tensor is
    of `i8`. `group` is the number of the unit op from which the bucket was
    expanded; merging within a unit op looks at it.

    The symbol's name appears in reports and messages and means nothing.

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
      fsdp.param @norm : tensor<10xf32> precision <param = f32>
      fsdp.param @wq : tensor<8x3xf32>
    }
    fsdp.bucket @layer0_gather gather @layer0[@norm, @wq] : bytes
    fsdp.bucket @layer0_reduce_f32 reduce @layer0[@norm, @wq] : f32 align 1 group 0
    ```

    **Constraints**
    - (C1) there is at least one member, none is named twice, all exist;
    - (C2) the members' units have one grid, and the same shard axes and replicate
      axes;
    - (C3) `wire` is f16, bf16, f32 or f64; a gather may have `bytes`;
    - (C4) members of a reduction are not frozen; an opaque member needs `bytes`;
    - (C5) `align` is a power of two from 1 to 4096;
    - (C6) the packed tensor's size in bytes fits 62 bits;
    - (C7) the name is UTF-8 without zero bytes.
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,                           /*C7*/
    Fsdp_BucketKind:$kind,
    SymbolRefArrayAttr:$members,                        /*C1, C2, C4*/
    TypeAttr:$wire,                                     /*C3; i8 is `bytes`*/
    OptionalAttr<I64Attr>:$align,                       /*C5*/
    OptionalAttr<I64Attr>:$group);
  let assemblyFormat = [{
    $sym_name $kind custom<ParamRefs>($members) `:` custom<WireType>($wire)
    (`align` $align^)? (`group` $group^)? attr-dict
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::fsdp::StageRange, 2> getStages() {
      return {::mlir::fsdp::getBucketStages()};
    }
    ::std::string describeSubject() {
      return ("bucket '" + getSymName() + "'").str();
    }
    bool isGather() { return getKind() == ::mlir::fsdp::BucketKind::gather; }
    /// True if each member travels in its own param dtype.
    bool isBytes() { return getWire().isSignlessInteger(8); }
    /// A bucket is private to its symbol table, so that it dies with its last
    /// user.
    ::mlir::SymbolTable::Visibility getVisibility() {
      return ::mlir::SymbolTable::Visibility::Private;
    }
    int64_t getAlignment() { return getAlign().value_or(::mlir::fsdp::kDefaultAlign); }
  }];
}

//===----------------------------------------------------------------------===//
// Local ops and collectives
//===----------------------------------------------------------------------===//

def Fsdp_ConcatOp : Fsdp_LocalOp<Fsdp_Dialect, "concat", "gather",
    [AttrSizedOperandSegments]> {
  let summary = "pack shards into this rank's flat shard";
  let description = [{
    Copies the shard of every member to its segment, padding included, and writes
    zero to the gaps. A shard of another dtype than the member's wire dtype is
    cast on the way, rounded once to nearest even. `split(concat(x...)) = x...`.

    On 2 ranks, with members `a` of 3 elements and `b` of 2, rows without gaps, and `0` for padding:

    ```
              before               after
      rank 0  [a0 a1]  [b0]        [a0 a1 b0]
      rank 1  [a2  0]  [b1]        [a2  0 b1]
    ```

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @layer0 on @dp precision <param = bf16> {
      fsdp.param @norm : tensor<10xf32> precision <param = f32>
      fsdp.param @wq : tensor<8x3xf32>
    }
    fsdp.bucket @layer0_gather gather @layer0[@norm, @wq] : bytes
    func.func @pack(%n: tensor<3xf32>, %q: tensor<2x3xf32>) -> tensor<256xi8> {
      %f = fsdp.concat %n, %q into @layer0_gather
          : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<256xi8>
      return %f : tensor<256xi8>
    }
    ```

    **Constraints**
    - (C1) `bucket` names a `gather` bucket with one member per operand;
    - (C2) operand `i` has the shard shape of member `i`; its dtype is
      floating-point, or the storage dtype of an opaque member;
    - (C3) the result or output is the flat shard of the bucket.
  }];
  let arguments = (ins Variadic<Fsdp_Tensor>:$inputs,           /*C2*/
                       FlatSymbolRefAttr:$bucket,               /*C1*/
                       Optional<Fsdp_Tensor>:$output);          /*C3*/
  let results = (outs Optional<Fsdp_Tensor>:$flat);             /*C3*/
  let assemblyFormat = [{
    $inputs `into` $bucket (`outs` `(` $output^ `:` type($output) `)`)?
    attr-dict `:` functional-type($inputs, results)
  }];
  let builders = [
    /// The value form. The result's type is the bucket's.
    OpBuilder<(ins "const ::mlir::fsdp::ResolvedBucket &":$bucket,
                   "::mlir::ValueRange":$inputs)>,
  ];
}

def Fsdp_ChunkCatOp : Fsdp_LocalOp<Fsdp_Dialect, "chunk_cat", "reduce",
    [AttrSizedOperandSegments]> {
  let summary = "pack full gradients into a bucket, one row per rank";
  let description = [{
    Row `r` of the result is rank `r`'s share of every operand, in the order of
    the bucket's members; padding and gaps are +0. An operand of another dtype
    than the wire is cast on the way, rounded once to nearest even; then `divide`
    divides, in the wire dtype. Up to these roundings,
    `unchunk(chunk_cat(x...)) = x...`.

    On 2 ranks, with members `a` of 3 elements and `b` of 2, rows without gaps, and `0` for padding:

    ```
              before                    after
      rank 0  [a0 a1 a2]  [b0 b1]       [a0 a1 b0]   row 0
                                        [a2  0 b1]   row 1
      rank 1  the same, of its own gradients
    ```

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
      fsdp.param @norm : tensor<10xf32> precision <param = f32>
      fsdp.param @wq : tensor<8x3xf32>
    }
    fsdp.bucket @layer0_reduce_f32 reduce @layer0[@norm, @wq] : f32
    func.func @pack(%gn: tensor<10xf32>, %gq: tensor<8x3xbf16>) -> tensor<4x64xf32> {
      %b = fsdp.chunk_cat %gn, %gq into @layer0_reduce_f32
          : (tensor<10xf32>, tensor<8x3xbf16>) -> tensor<4x64xf32>
      return %b : tensor<4x64xf32>
    }
    ```

    **Constraints**
    - (C1) `bucket` names a `reduce` bucket with one member per operand;
    - (C2) operand `i` has the shape of member `i` and a floating-point dtype;
    - (C3) the result or output is the packed tensor of the bucket;
    - (C4) `divide` is positive and finite.
  }];
  let arguments = (ins Variadic<Fsdp_Tensor>:$inputs,           /*C2*/
                       FlatSymbolRefAttr:$bucket,               /*C1*/
                       OptionalAttr<F64Attr>:$divide,           /*C4*/
                       Optional<Fsdp_Tensor>:$output);          /*C3*/
  let results = (outs Optional<Fsdp_Tensor>:$packed);           /*C3*/
  let assemblyFormat = [{
    $inputs `into` $bucket (`divide` $divide^)?
    (`outs` `(` $output^ `:` type($output) `)`)?
    attr-dict `:` functional-type($inputs, results)
  }];
  let hasVerifier = 1;
  let builders = [
    /// The value form. The result's type is the bucket's.
    OpBuilder<(ins "const ::mlir::fsdp::ResolvedBucket &":$bucket,
                   "::mlir::ValueRange":$inputs,
                   CArg<"::mlir::FloatAttr", "{}">:$divide)>,
  ];
}

def Fsdp_UnchunkOp : Fsdp_LocalOp<Fsdp_Dialect, "unchunk", "gather"> {
  let summary = "unpack a gathered bucket into full tensors";
  let description = [{
    Puts every member together from the ranks' rows; padding is dropped and never
    read. A result of another dtype than the member's wire dtype is cast on the
    way, rounded once to nearest even.

    On 2 ranks, with members `a` of 3 elements and `b` of 2, rows without gaps, and `0` for padding:

    ```
              before                    after
      rank 0  [a0 a1 b0]   row 0        [a0 a1 a2]  [b0 b1]
              [a2  0 b1]   row 1
      rank 1  the same                  the same
    ```

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @layer0 on @dp precision <param = bf16> {
      fsdp.param @norm : tensor<10xf32> precision <param = f32>
      fsdp.param @wq : tensor<8x3xf32>
    }
    fsdp.bucket @layer0_gather gather @layer0[@norm, @wq] : bytes
    func.func @unpack(%g: tensor<4x256xi8>) -> (tensor<10xf32>, tensor<8x3xbf16>) {
      %w:2 = fsdp.unchunk %g of @layer0_gather
          : (tensor<4x256xi8>) -> (tensor<10xf32>, tensor<8x3xbf16>)
      return %w#0, %w#1 : tensor<10xf32>, tensor<8x3xbf16>
    }
    ```

    **Constraints**
    - (C1) `bucket` names a `gather` bucket with one member per result or output;
    - (C2) the operand is the packed tensor of the bucket;
    - (C3) result or output `i` has the shape of member `i`; its dtype is
      floating-point, or the storage dtype of an opaque member.
  }];
  let arguments = (ins Fsdp_Tensor:$packed,                     /*C2*/
                       FlatSymbolRefAttr:$bucket,               /*C1*/
                       Variadic<Fsdp_Tensor>:$outputs);         /*C3*/
  let results = (outs Variadic<Fsdp_Tensor>:$full);             /*C3*/
  let assemblyFormat = [{
    $packed `of` $bucket (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    attr-dict `:` functional-type($packed, results)
  }];
  let builders = [
    /// The value form. Without `types`, the results are in the wire dtypes.
    OpBuilder<(ins "const ::mlir::fsdp::ResolvedBucket &":$bucket,
                   "::mlir::Value":$packed,
                   CArg<"::mlir::TypeRange", "{}">:$types)>,
  ];
}

def Fsdp_SplitOp : Fsdp_LocalOp<Fsdp_Dialect, "split", "reduce",
    [AttrSizedOperandSegments]> {
  let summary = "unpack a flat shard into the members' shards";
  let description = [{
    Copies every segment, padding included, to the shard of its member. `divide`
    divides in the wire dtype; then a result of another dtype is cast, rounded
    once to nearest even; then `add` adds an existing shard in the result's dtype.

    On 2 ranks, with members `a` of 3 elements and `b` of 2, rows without gaps, and `0` for padding:

    ```
              before               after
      rank 0  [a0 a1 b0]           [a0 a1]  [b0]
      rank 1  [a2  0 b1]           [a2  0]  [b1]
    ```

    ```mlir
    shard.grid @dp(shape = 2)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<4x3xf32>
    }
    fsdp.bucket @b reduce @u[@w] : f32 align 1
    func.func @unpack(%a: tensor<6xf32>, %old: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %s = fsdp.split %a of @b divide 1.5 add(%old : tensor<2x3xf32>)
          : (tensor<6xf32>) -> tensor<2x3xf32>
      return %s : tensor<2x3xf32>
    }
    ```

    **Constraints**
    - (C1) `bucket` names a `reduce` bucket with one member per result or output;
    - (C2) the operand is the flat shard of the bucket;
    - (C3) result or output `i` has the shard shape of member `i` and a
      floating-point dtype;
    - (C4) `divide` is positive and finite;
    - (C5) `add` is absent or has one operand per member, of the type of result or
      output `i`.
  }];
  let arguments = (ins Fsdp_Tensor:$flat,                       /*C2*/
                       FlatSymbolRefAttr:$bucket,               /*C1*/
                       OptionalAttr<F64Attr>:$divide,           /*C4*/
                       Variadic<Fsdp_Tensor>:$add,              /*C5*/
                       Variadic<Fsdp_Tensor>:$outputs);         /*C3*/
  let results = (outs Variadic<Fsdp_Tensor>:$shards);           /*C3*/
  let assemblyFormat = [{
    $flat `of` $bucket (`divide` $divide^)?
    (`add` `(` $add^ `:` type($add) `)`)?
    (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    attr-dict `:` functional-type($flat, results)
  }];
  let hasVerifier = 1;
  let builders = [
    /// The value form. Without `types`, the results are in the wire dtypes.
    OpBuilder<(ins "const ::mlir::fsdp::ResolvedBucket &":$bucket,
                   "::mlir::Value":$flat,
                   CArg<"::mlir::FloatAttr", "{}">:$divide,
                   CArg<"::mlir::ValueRange", "{}">:$add,
                   CArg<"::mlir::TypeRange", "{}">:$types)>,
  ];
}

def Fsdp_AllGatherOp : Fsdp_CollectiveOp<Fsdp_Dialect, "all_gather", "gather"> {
  let summary = "give every rank of the shard group all flat shards";
  let description = [{
    Row `r` of the result is the flat shard of rank `r` of the shard group. In the
    buffer form the input may be this rank's own row of the output.

    On 2 ranks, with members `a` of 3 elements and `b` of 2, rows without gaps, and `0` for padding:

    ```
              before               after
      rank 0  [a0 a1 b0]           [a0 a1 b0]   row 0
                                   [a2  0 b1]   row 1
      rank 1  [a2  0 b1]           the same
    ```

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32>
    }
    fsdp.bucket @b gather @u[@w] : f32
    func.func @gather(%f: tensor<32xf32>) -> tensor<4x32xf32> {
      %g = fsdp.all_gather %f of @b : (tensor<32xf32>) -> tensor<4x32xf32>
      return %g : tensor<4x32xf32>
    }
    ```

    **Constraints**
    - (C1) `bucket` names a `gather` bucket;
    - (C2) the operand is its flat shard, the result or output its packed tensor.
  }];
  let arguments = (ins Fsdp_Tensor:$flat,                       /*C2*/
                       FlatSymbolRefAttr:$bucket,               /*C1*/
                       Optional<Fsdp_Tensor>:$output);          /*C2*/
  let results = (outs Optional<Fsdp_Tensor>:$packed);           /*C2*/
  let assemblyFormat = [{
    $flat `of` $bucket (`outs` `(` $output^ `:` type($output) `)`)?
    attr-dict `:` functional-type($flat, results)
  }];
  let builders = [
    /// The value form. The result's type is the bucket's.
    OpBuilder<(ins "const ::mlir::fsdp::ResolvedBucket &":$bucket,
                   "::mlir::Value":$flat)>,
  ];
}

class Fsdp_ReducingOp<string mnemonic>
    : Fsdp_CollectiveOp<Fsdp_Dialect, mnemonic, "reduce", [
        DeclareOpInterfaceMethods<CollectiveOpInterface,
                                  ["getCollectiveReduction"]>]> {
  let hasVerifier = 1;
  dag reduction = (ins
    Fsdp_ReduceOp:$reduction,
    OptionalAttr<F64Attr>:$multiplier,                          /*C3*/
    OptionalAttr<TypeAttr>:$accumulate);                        /*C4*/
  let builders = [
    /// The value form. The result's type is the bucket's.
    OpBuilder<(ins "const ::mlir::fsdp::ResolvedBucket &":$bucket,
                   "::mlir::Value":$value,
                   "const ::mlir::fsdp::CollectiveReduction &":$reduction)>,
  ];
}

def Fsdp_ReduceScatterOp : Fsdp_ReducingOp<"reduce_scatter"> {
  let summary = "reduce a bucket's rows over the shard group";
  let description = [{
    Rank `r` of the shard group gets the reduction of all members' row `r`, in the
    wire dtype, in the order of the ranks: `sum` adds; `avg` first multiplies by
    1/W rounded to the wire dtype; `premul` first multiplies by the constant
    written. Every addition rounds to the wire dtype, unless `accumulate f32` asks
    for one rounding at the end.

    With `sum` on 2 ranks: members `a` of 3 elements and `b` of 2 on rank 0, `c` and `d`
    of the same parameters on rank 1, rows without gaps, and `0` for padding:

    ```
              before                    after
      rank 0  [a0 a1 b0]   row 0        [a0+c0 a1+c1 b0+d0]
              [a2  0 b1]   row 1
      rank 1  [c0 c1 d0]   row 0        [a2+c2     0 b1+d1]
              [c2  0 d1]   row 1
    ```

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32>
    }
    fsdp.bucket @b reduce @u[@w] : bf16
    func.func @reduce(%b: tensor<4x64xbf16>) -> tensor<64xbf16> {
      %r = fsdp.reduce_scatter premul 0.25 accumulate f32 %b of @b
          : (tensor<4x64xbf16>) -> tensor<64xbf16>
      return %r : tensor<64xbf16>
    }
    ```

    **Constraints**
    - (C1) `bucket` names a `reduce` bucket;
    - (C2) the operand is its packed tensor, the result or output its flat shard;
    - (C3) `premul` has a multiplier, positive and finite; the others have none;
    - (C4) `accumulate` is f32.
  }];
  let arguments = !con(reduction, (ins
    Fsdp_Tensor:$packed,                                        /*C2*/
    FlatSymbolRefAttr:$bucket,                                  /*C1*/
    Optional<Fsdp_Tensor>:$output));                            /*C2*/
  let results = (outs Optional<Fsdp_Tensor>:$flat);             /*C2*/
  let assemblyFormat = [{
    custom<ReduceOp>($reduction, $multiplier) (`accumulate` $accumulate^)?
    $packed `of` $bucket (`outs` `(` $output^ `:` type($output) `)`)?
    attr-dict `:` functional-type($packed, results)
  }];
}

def Fsdp_AllReduceOp : Fsdp_ReducingOp<"all_reduce"> {
  let summary = "reduce flat shards over the replicate group";
  let description = [{
    Every rank of the replicate group gets the reduction of all members' flat
    shards, with the rules of `reduce_scatter` and `avg` by 1/H. All get the same
    bits.

    With `sum` on the 2 ranks of a replicate group, each with the second shard of what
    its own shard group has reduced:

    ```
              before               after
      rank 0  [a2  0 b1]           [a2+c2     0 b1+d1]
      rank 1  [c2  0 d1]           [a2+c2     0 b1+d1]
    ```

    ```mlir
    shard.grid @hsdp(shape = 2x4)
    fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
      fsdp.param @w : tensor<8x3xf32>
    }
    fsdp.bucket @b reduce @u[@w] : f32
    func.func @reduce(%r: tensor<32xf32>) -> tensor<32xf32> {
      %a = fsdp.all_reduce avg %r of @b : (tensor<32xf32>) -> tensor<32xf32>
      return %a : tensor<32xf32>
    }
    ```

    **Constraints**
    - (C1) `bucket` names a `reduce` bucket;
    - (C2) the operand and the result or output are its flat shard;
    - (C3) `premul` has a multiplier, positive and finite; the others have none;
    - (C4) `accumulate` is f32.
  }];
  let arguments = !con(reduction, (ins
    Fsdp_Tensor:$flat,                                          /*C2*/
    FlatSymbolRefAttr:$bucket,                                  /*C1*/
    Optional<Fsdp_Tensor>:$output));                            /*C2*/
  let results = (outs Optional<Fsdp_Tensor>:$reduced);          /*C2*/
  let assemblyFormat = [{
    custom<ReduceOp>($reduction, $multiplier) (`accumulate` $accumulate^)?
    $flat `of` $bucket (`outs` `(` $output^ `:` type($output) `)`)?
    attr-dict `:` functional-type($flat, results)
  }];
}

#endif // FSDP_OPS

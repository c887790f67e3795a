//===- NewCollective.td - a collective of another dialect -*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NEW_COLLECTIVE
#define NEW_COLLECTIVE

include "fsdp/Dialect/FsdpOpBase.td"

def Test_Dialect : Dialect {
  let name = "test";
  let cppNamespace = "::test";
}

def Test_BroadcastRowsOp : Fsdp_CollectiveOp<Test_Dialect, "broadcast_rows", "gather"> {
  let summary = "give every replica the packed rows of the first one";
  let arguments = (ins Fsdp_Tensor:$packed,
                       FlatSymbolRefAttr:$bucket,
                       Optional<Fsdp_Tensor>:$output);
  let results = (outs Optional<Fsdp_Tensor>:$rows);
  let assemblyFormat = [{
    $packed `of` $bucket (`outs` `(` $output^ `:` type($output) `)`)?
    attr-dict `:` functional-type($packed, results)
  }];
}

def Test_BareReduceOp : Fsdp_CollectiveOp<Test_Dialect, "bare_reduce", "reduce"> {
  let summary = "an all-reduce that does not say how it reduces, which is wrong";
  let arguments = (ins Fsdp_Tensor:$flat,
                       FlatSymbolRefAttr:$bucket,
                       Optional<Fsdp_Tensor>:$output);
  let results = (outs Optional<Fsdp_Tensor>:$reduced);
  let assemblyFormat = [{
    $flat `of` $bucket (`outs` `(` $output^ `:` type($output) `)`)?
    attr-dict `:` functional-type($flat, results)
  }];
}

#endif // NEW_COLLECTIVE

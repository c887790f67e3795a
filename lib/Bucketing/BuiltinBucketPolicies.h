//===- BuiltinBucketPolicies.h - the policies of this project -*- C++ -*- -===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_BUCKETING_BUILTINBUCKETPOLICIES_H
#define FSDP_LIB_BUCKETING_BUILTINBUCKETPOLICIES_H

#include "fsdp/Bucketing/BucketPolicy.h"

#include <map>
#include <string>

namespace mlir::fsdp {

using BucketPolicyFactories = std::map<std::string, BucketPolicyFactory>;

/// Adds the policies of BucketPolicies.cpp.
void addBuiltinBucketPolicies(BucketPolicyFactories &factories);

} // namespace mlir::fsdp

#endif // FSDP_LIB_BUCKETING_BUILTINBUCKETPOLICIES_H

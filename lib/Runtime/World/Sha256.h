//===- Sha256.h - SHA-256 and HMAC ------------------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For the proof that a connection knows the secret of a run. The runtime is
// linked to no library of cryptography, and this is all that it needs of one.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_WORLD_SHA256_H
#define FSDP_LIB_RUNTIME_WORLD_SHA256_H

#include <string>

namespace fsdprt {

/// The 32 bytes of FIPS 180-4's SHA-256.
std::string sha256(const std::string &data);

/// The 32 bytes of RFC 2104's HMAC with SHA-256.
std::string hmacSha256(const std::string &key, const std::string &data);

/// Whether two strings of one size are equal, in a time that does not tell
/// where they differ.
bool equalInConstantTime(const std::string &a, const std::string &b);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_WORLD_SHA256_H

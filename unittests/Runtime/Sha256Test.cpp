//===- Sha256Test.cpp - SHA-256 and HMAC against published vectors --------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "World/Sha256.h"

#include "gtest/gtest.h"

using namespace fsdprt;

static std::string hex(const std::string &bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// FIPS 180-2, appendix B, and the empty message.
TEST(Sha256, Fips) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb924"
                             "27ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223"
                                "b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnop"
                       "nopq")),
            "248d6a61d20638b8e5c026930c3e6039"
            "a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67"
            "f1809a48a497200e046d39ccc7112cd0");
}

// Each size around the end of a block is padded in its own way; this is the
// digest of the digests of 0 to 200 zeros, as Python's hashlib has it.
TEST(Sha256, EverySize) {
  std::string all;
  for (size_t size = 0; size <= 200; ++size)
    all += sha256(std::string(size, '\0'));
  EXPECT_EQ(hex(sha256(all)), "b9c4ebeeb7d1825824131cf7b7d28469"
                              "cca4f9166473bf51bb519365ae27eccd");
}

// RFC 4231, section 4; the key of the last two is longer than a block.
TEST(Sha256, Rfc4231) {
  EXPECT_EQ(hex(hmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b"
            "881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c7"
            "5a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmacSha256(std::string(20, '\xaa'), std::string(50, '\xdd'))),
            "773ea91e36800e46854db8ebd09181a7"
            "2959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hex(hmacSha256(std::string(131, '\xaa'),
                           "Test Using Larger Than Block-Size Key - Hash Key "
                           "First")),
            "60e431591ee0b67f0d8a26aacbf5b77f"
            "8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(
      hex(hmacSha256(
          std::string(131, '\xaa'),
          "This is a test using a larger than block-size key and a larger "
          "than block-size data. The key needs to be hashed before being "
          "used by the HMAC algorithm.")),
      "9b09ffa71b942fcb27635fbcd5b0e944"
      "bfdc63644f0713938a7f51535c3a35e2");
}

TEST(Sha256, Comparison) {
  EXPECT_TRUE(equalInConstantTime("", ""));
  EXPECT_TRUE(equalInConstantTime("same", "same"));
  EXPECT_FALSE(equalInConstantTime("same", "sane"));
  EXPECT_FALSE(equalInConstantTime("same", "same\xff"));
}

//===- BucketPolicyTest.cpp - policies of another compiler ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a compiler that links the libraries does: registers a policy of a few
// lines and asks for it by name.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Bucketing/BucketPolicy.h"
#include "fsdp/Dialect/Fsdp.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// Two items per bucket.
struct Pairs : BucketPolicy {
  std::optional<SizeLimit> fills(const BucketSize &size) const override {
    if (size.items < 2)
      return std::nullopt;
    return SizeLimit{"items", size.items, 2};
  }
};

/// Parameters of one rank share a bucket: an own key.
struct ByRank : BucketPolicy {
  Attribute getKey(const BucketItem &item) const override {
    ParamOp param = item.members.front().param;
    return Builder(param.getContext())
        .getI64IntegerAttr(param.getFullType().getRank());
  }
};

/// Wants everything in one bucket, whatever the BucketFormer answers.
struct Greedy : BucketPolicy {
  void form(BucketFormer &former) const override {
    std::optional<unsigned> bucket;
    for (unsigned item : former.getWalk())
      if (!bucket)
        bucket = former.open(item);
      else if (former.isOfKey(*bucket, item) &&
               former.check(*bucket, item) == BucketFormer::Answer::Joins)
        former.add(*bucket, item);
  }
};

/// Closes a bucket of 40 elements or more.
struct CloseAfterReaching : BucketPolicy {
  std::optional<SizeLimit> fills(const BucketSize &size) const override {
    if (size.elements < 40)
      return std::nullopt;
    return SizeLimit{"elements", size.elements, 40};
  }
};

/// Backwards; an item joins where that saves time. With T(n) = (40 + n) /
/// speed, 1.2 * max(T(a), T(b)) > T(a + b).
struct WhereItPays : BucketPolicy {
  void sortWalk(ArrayRef<BucketItem>,
                MutableArrayRef<unsigned> walk) const override {
    std::reverse(walk.begin(), walk.end());
  }
  void form(BucketFormer &former) const override {
    std::optional<unsigned> bucket;
    for (unsigned item : former.getWalk())
      if (bucket && pays(former, *bucket, item) &&
          former.isOfKey(*bucket, item) &&
          former.check(*bucket, item) == BucketFormer::Answer::Joins)
        former.add(*bucket, item);
      else
        bucket = former.open(item);
  }
  static bool pays(BucketFormer &former, unsigned bucket, unsigned item) {
    double a = former.getSize(bucket).elements;
    double b = former.getSizeWith(std::nullopt, item).elements;
    return 1.2 * (40 + std::max(a, b)) > 40 + a + b;
  }
};

class BucketPolicyTest : public ::testing::Test {
protected:
  BucketPolicyTest() {
    DialectRegistry registry;
    registry.insert<FsdpDialect, func::FuncDialect, shard::ShardDialect>();
    registerShardGridExternalModel(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.allowUnregisteredDialects();
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
  }

  /// Four gathers, of a 1-d, a 2-d, a 1-d and a 1-d parameter. The last one's
  /// shard is made from what the first one gathers.
  static constexpr StringRef source = R"mlir(
    shard.grid @dp(shape = 2)
    fsdp.unit @u on @dp {
      fsdp.param @a : tensor<4xf32>
      fsdp.param @b : tensor<4x1xf32>
      fsdp.param @c : tensor<4xf32>
      fsdp.param @d : tensor<4xf32>
    }
    fsdp.bucket @a gather @u[@a] : f32
    fsdp.bucket @b gather @u[@b] : f32
    fsdp.bucket @c gather @u[@c] : f32
    fsdp.bucket @d gather @u[@d] : f32
    func.func @f(%a: tensor<2xf32>, %b: tensor<2x1xf32>)
        -> (tensor<4xf32>, tensor<4x1xf32>, tensor<4xf32>, tensor<4xf32>) {
      %fa = fsdp.concat %a into @a : (tensor<2xf32>) -> tensor<32xf32>
      %ga = fsdp.all_gather %fa of @a : (tensor<32xf32>) -> tensor<2x32xf32>
      %wa = fsdp.unchunk %ga of @a : (tensor<2x32xf32>) -> tensor<4xf32>
      %fb = fsdp.concat %b into @b : (tensor<2x1xf32>) -> tensor<32xf32>
      %gb = fsdp.all_gather %fb of @b : (tensor<32xf32>) -> tensor<2x32xf32>
      %wb = fsdp.unchunk %gb of @b : (tensor<2x32xf32>) -> tensor<4x1xf32>
      %fc = fsdp.concat %a into @c : (tensor<2xf32>) -> tensor<32xf32>
      %gc = fsdp.all_gather %fc of @c : (tensor<32xf32>) -> tensor<2x32xf32>
      %wc = fsdp.unchunk %gc of @c : (tensor<2x32xf32>) -> tensor<4xf32>
      %d = "test.use"(%wa) : (tensor<4xf32>) -> tensor<2xf32>
      %fd = fsdp.concat %d into @d : (tensor<2xf32>) -> tensor<32xf32>
      %gd = fsdp.all_gather %fd of @d : (tensor<32xf32>) -> tensor<2x32xf32>
      %wd = fsdp.unchunk %gd of @d : (tensor<2x32xf32>) -> tensor<4xf32>
      return %wa, %wb, %wc, %wd
        : tensor<4xf32>, tensor<4x1xf32>, tensor<4xf32>, tensor<4xf32>
    })mlir";

  /// The buckets after the pass, in order: "a,c b d". Empty if it failed.
  std::string form(StringRef policy, StringRef program = source) {
    auto module = parseSourceString<ModuleOp>(program, &context);
    FormBucketsPassOptions options;
    options.policy = policy.str();
    PassManager manager(&context);
    manager.addPass(createFormBucketsPass(options));
    if (failed(manager.run(*module)))
      return "";
    std::string text;
    module->walk([&](BucketOp bucket) {
      text += text.empty() ? "" : " ";
      StringRef separator;
      for (auto member : bucket.getMembers().getAsRange<SymbolRefAttr>()) {
        text += separator.str() + member.getLeafReference().str();
        separator = ",";
      }
    });
    return text;
  }

  /// Gathers of one unit in this order; that of n elements is called pn.
  static std::string gathers(ArrayRef<int> sizes) {
    std::string params, buckets, body;
    for (int size : sizes) {
      std::string n = std::to_string(size),
                  row = std::to_string((size + 1) / 2);
      params += "fsdp.param @p" + n + " : tensor<" + n + "xf32>\n";
      buckets +=
          "fsdp.bucket @b" + n + " gather @u[@p" + n + "] : f32 align 1\n";
      body += "%s" + n + " = \"test.shard\"() : () -> tensor<" + row +
              "xf32>\n%f" + n + " = fsdp.concat %s" + n + " into @b" + n +
              " : (tensor<" + row + "xf32>) -> tensor<" + row + "xf32>\n%g" +
              n + " = fsdp.all_gather %f" + n + " of @b" + n + " : (tensor<" +
              row + "xf32>) -> tensor<2x" + row + "xf32>\n%w" + n +
              " = fsdp.unchunk %g" + n + " of @b" + n + " : (tensor<2x" + row +
              "xf32>) -> tensor<" + n + "xf32>\n";
    }
    return "shard.grid @dp(shape = 2)\nfsdp.unit @u on @dp {\n" + params +
           "}\n" + buckets + "func.func @f() {\n" + body + "return\n}\n";
  }

  MLIRContext context;
  std::string message;
};

template <typename PolicyT>
void registerAs(StringRef name) {
  registerBucketPolicy(name, [](const BucketPolicyOptions &, auto) {
    return std::make_unique<PolicyT>();
  });
}

TEST_F(BucketPolicyTest, DefaultPolicy) { EXPECT_EQ(form(""), "a,b,c d"); }

TEST_F(BucketPolicyTest, SizeHook) {
  registerAs<Pairs>("pairs");
  EXPECT_EQ(form("pairs"), "a,b c,d");
}

TEST_F(BucketPolicyTest, KeyHook) {
  registerAs<ByRank>("by-rank");
  EXPECT_EQ(form("by-rank"), "a,c b d");
}

TEST_F(BucketPolicyTest, OwnKeyIsTheReason) {
  registerAs<ByRank>("by-rank");
  remark::RemarkCategories categories;
  categories.missed = "fsdp";
  ASSERT_TRUE(succeeded(remark::enableOptimizationRemarks(
      context, nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(),
      categories, /*printAsEmitRemarks=*/true)));
  EXPECT_EQ(form("by-rank"), "a,c b d");
  EXPECT_NE(message.find("Reason=other-key, names=\"a,b\""), std::string::npos)
      << message;
}

// Two rules of other systems for which there is no policy: DeepCompile's, and
// the one by which Megatron-FSDP splits parameters outside units.
TEST_F(BucketPolicyTest, WhereItPays) {
  registerAs<WhereItPays>("where-it-pays");
  EXPECT_EQ(form("where-it-pays", gathers({30, 10, 80, 2, 5})),
            "p30 p10,p80,p2,p5");
}

TEST_F(BucketPolicyTest, CloseAfterReaching) {
  registerAs<CloseAfterReaching>("close-after-reaching");
  EXPECT_EQ(form("close-after-reaching", gathers({30, 20, 5, 50, 1})),
            "p30,p20 p5,p50 p1");
}

TEST_F(BucketPolicyTest, OwnWalkCannotBreakDependencies) {
  registerAs<Greedy>("greedy");
  EXPECT_EQ(form("greedy"), "a,b,c d");
}

TEST_F(BucketPolicyTest, LaterFactoryReplaces) {
  registerAs<Pairs>("mine");
  registerAs<Greedy>("mine");
  EXPECT_EQ(form("mine"), "a,b,c d");
}

TEST_F(BucketPolicyTest, FactoryRefusesOptions) {
  registerBucketPolicy("strict",
                       [](const BucketPolicyOptions &options,
                          auto emitError) -> std::unique_ptr<BucketPolicy> {
                         if (options.maxBytes.empty()) {
                           emitError() << "policy 'strict' needs a limit";
                           return nullptr;
                         }
                         return std::make_unique<Greedy>();
                       });
  EXPECT_EQ(form("strict"), "");
  EXPECT_EQ(message, "fsdp-form-buckets: policy 'strict' needs a limit");
}

TEST_F(BucketPolicyTest, UnknownNameListsKnownOnes) {
  registerAs<Pairs>("pairs");
  EXPECT_EQ(form("nccl"), "");
  EXPECT_NE(message.find("unknown policy 'nccl', expected "),
            std::string::npos);
  EXPECT_NE(message.find(" or pairs"), std::string::npos);
}

} // namespace

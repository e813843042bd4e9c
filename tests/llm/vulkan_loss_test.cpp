// A Vulkan device that is lost, or fails, in the middle of generation: a clean error, and the next
// request is answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "device/vulkan/faults.h"
#include "heddle/device.h"
#include "llm/stories.h"

namespace heddle::test {
namespace {

constexpr std::size_t kTokens = 5;

class VulkanLoss : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_vulkan(); !why.empty()) {
      GTEST_SKIP() << "no Vulkan device: " << why;
    }
    device_ = &find_device("vulkan:0");
    llm::ContextOptions options = options_for({.threads = 2, .chunk = 32});
    options.devices = {device_};
    context_ = std::make_unique<llm::Context>(story_.model, options);
    expected_ = answer();
    ASSERT_EQ(expected_.size(), story_.prompt.size() + kTokens);
  }
  void TearDown() override { vulkan::end_faults(); }

  std::vector<TokenId> answer() { return greedy(*context_, {story_.prompt}, kTokens)[0]; }

  /// Fails the `n`th call at the site in the middle of a request; false if there are fewer.
  bool survives(std::string_view site, std::uint64_t n, const std::vector<ErrorCode>& codes) {
    const std::uint64_t before = device_->generation();
    vulkan::inject_fault(site, n);
    bool failed = false;
    try {
      EXPECT_EQ(answer(), expected_);
    } catch (const Error& error) {
      failed = true;
      EXPECT_THAT(codes, testing::Contains(error.code())) << error.what();
      EXPECT_THAT(error.what(), testing::HasSubstr("vulkan:0"));
      // `greedy` gives no sequence back when it throws.
      context_->release(0);
    }
    if (!vulkan::end_faults()) return false;
    EXPECT_TRUE(failed || device_->generation() == before);
    EXPECT_EQ(answer(), expected_) << "after call " << n << " at " << site;
    return true;
  }

  const Story story_ = fable();
  Device* device_ = nullptr;
  std::unique_ptr<llm::Context> context_;
  std::vector<TokenId> expected_;
};

TEST_F(VulkanLoss, AHundredLossesInTheMiddleOfGeneration) {
  const std::uint64_t before = device_->generation();
  int losses = 0;
  for (std::uint64_t i = 0; losses < 100 && i < 300; ++i) {
    const char* site = i % 3 == 0 ? "submit_lost" : i % 3 == 1 ? "wait_lost" : "wait_timeout";
    losses += survives(site, 1 + i / 3 % kTokens, {ErrorCode::device_lost, ErrorCode::timeout});
    if (HasFailure()) break;
  }
  EXPECT_EQ(losses, 100);
  EXPECT_EQ(device_->generation(), before + 100);
}

TEST_F(VulkanLoss, WhatElseMayFailInARequest) {
  for (const vulkan::FaultSite& site : vulkan::fault_sites()) {
    for (std::uint64_t n = 1; n < 4; ++n) {
      const std::vector<ErrorCode> any{ErrorCode::device_lost, ErrorCode::timeout,
                                       ErrorCode::out_of_memory, ErrorCode::backend};
      if (!survives(site.name, n, any)) break;
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace heddle::test

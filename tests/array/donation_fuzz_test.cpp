// Random programs give the same bytes whether memory is written in place or not, whatever is
// evaluated, held and dropped in between. FUZZ_ROUNDS says how many programs.
#include <gtest/gtest.h>

#include "array/launch.h"
#include "array/ownership.h"
#include "support/async_device.h"
#include "support/environment.h"
#include "support/program_rules.h"
#include "support/random_program.h"

namespace heddle::test {
namespace {

constexpr int kReplays = 4;  // of each program

AsyncOptions quick() {
  AsyncOptions options;
  options.delay = std::chrono::microseconds(0);
  return options;
}

void expect_same(const Program& program, const std::vector<Bytes>& actual,
                 const std::vector<Bytes>& expected, const std::string& what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i], expected[i])
        << what << ": the bytes of %" << program.results[i] << " differ in\n"
        << to_string(program);
  }
}

std::vector<Bytes> without_donation(const Program& program, const LazyRun& run) {
  const NoDonation scope;
  return run_lazily(program, run);
}

struct Where {
  Device* device = nullptr;
  bool partly = false;
  std::vector<Ref<Stream>> streams = {};
  bool rounds_as_the_cpu = true;
};

/// Replays `program` on the device in several ways, with and without donation, and compares.
void check(const Program& program, const Where& where) {
  const auto run = [&](unsigned seed) {
    return LazyRun{seed, where.device, where.partly, where.streams};
  };
  const std::vector<Bytes> expected = without_donation(
      program, where.rounds_as_the_cpu ? LazyRun{program.seed} : run(program.seed));
  for (unsigned i = 0; i < kReplays; ++i) {
    const unsigned seed = program.seed * 100 + i;
    expect_same(program, run_lazily(program, run(seed)), expected,
                "with donation, replay " + std::to_string(seed));
    if (testing::Test::HasFailure()) return;
  }
  if (!where.device || !where.rounds_as_the_cpu) return;
  expect_same(program, without_donation(program, run(program.seed)), expected, "without donation");
}

unsigned rounds_asked() {
  return static_cast<unsigned>(number_from("FUZZ_ROUNDS", 200));
}

void fuzz(unsigned first_seed, unsigned rounds, const Where& where) {
  const std::uint64_t before = eval_counts().donations;
  for (unsigned seed = first_seed; seed < first_seed + rounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program program;
    ASSERT_NO_THROW(program = random_program(seed));
    try {
      check(program, where);
    } catch (const Error& error) {
      FAIL() << error.what() << "\n" << to_string(program);
    }
    if (testing::Test::HasFailure()) FAIL() << to_string(program);
  }
  EXPECT_GT(eval_counts().donations - before, rounds) << "hardly anything was written in place";
}

TEST(RandomPrograms, FollowFromTheirSeedAndUseEveryRule) {
  std::vector<bool> used(program_rules().size(), false);
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const Program program = random_program(seed);
    EXPECT_EQ(to_string(program), to_string(random_program(seed)));
    EXPECT_GE(program.steps.size(), 30u);
    for (const ProgramStep& step : program.steps) used[step.rule] = true;
  }
  for (std::size_t i = 0; i < used.size(); ++i) EXPECT_TRUE(used[i]) << program_rules()[i].name;
}

TEST(DonationFuzz, OnTheCpu) {
  fuzz(1000, rounds_asked(), {});
}
TEST(DonationFuzz, OnAnAsynchronousDevice) {
  AsyncDevice device(quick());
  fuzz(2000, rounds_asked(), {&device});
}
TEST(DonationFuzz, OnADeviceThatHidesItsMemory) {
  AsyncOptions hiding = quick();
  hiding.hides_local = true;
  AsyncDevice device(hiding);
  fuzz(3000, rounds_asked(), {&device});
}
TEST(DonationFuzz, OnTwoDevices) {
  AsyncDevice device(quick());
  fuzz(4000, rounds_asked(), {&device, true});
}
TEST(DonationFuzz, OnADeviceThatLagsBehind) {
  AsyncOptions slow;
  slow.delay = std::chrono::microseconds(200);
  AsyncDevice device(slow);
  fuzz(5000, rounds_asked() / 8 + 1, {&device, true});
}

// Streams of different pace: what should have waited for the slower ones is far too early.
TEST(DonationFuzz, OnSeveralStreams) {
  AsyncOptions uneven = quick();
  uneven.hides_local = true;
  uneven.lag = std::chrono::microseconds(150);
  AsyncDevice device(uneven);
  fuzz(6000, rounds_asked() / 2 + 1, {&device, false, {device.new_stream(), device.new_stream()}});
}
TEST(DonationFuzz, OnSeveralStreamsBesideTheCpu) {
  AsyncOptions uneven = quick();
  uneven.lag = std::chrono::microseconds(150);
  AsyncDevice device(uneven);
  fuzz(7000, rounds_asked() / 2 + 1, {&device, true, {device.new_stream(), device.new_stream()}});
}

bool is_simple(const Op& op) {
  return !std::holds_alternative<Softmax>(op) && !std::holds_alternative<RmsNorm>(op) &&
         !std::holds_alternative<AddRmsNorm>(op) && !std::holds_alternative<LayerNorm>(op) &&
         !std::holds_alternative<GatedMultiply>(op) && !std::holds_alternative<Linear>(op) &&
         !std::holds_alternative<Rope>(op) && !std::holds_alternative<Pad>(op) &&
         !std::holds_alternative<Conv>(op) && !std::holds_alternative<ChannelNorm>(op) &&
         !std::holds_alternative<GroupNorm>(op);
}
TEST(DonationFuzz, OnADeviceOfSimpleOps) {
  AsyncOptions simple = quick();
  simple.accepts = is_simple;
  AsyncDevice device(simple);
  fuzz(8000, rounds_asked(), {&device, false, {}, false});
}

TEST(DonationFuzz, OnADeviceThatOffersTooMuch) {
  AsyncOptions eager = quick();
  eager.offers_any_order = true;
  AsyncDevice device(eager);
  fuzz(9000, rounds_asked(), {&device});
}

}  // namespace
}  // namespace heddle::test

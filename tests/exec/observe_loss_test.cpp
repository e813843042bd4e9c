// Devices that fail, or are lost, while somebody watches.
#include "observe_support.h"
#include "pipeline.h"
#include "support/short_timeout.h"

namespace heddle::test {
namespace {

using testing::HasSubstr;

class ObservedLoss : public Pipeline {
 protected:
  /// One observed run in which something goes wrong at call `n`, and then runs that go well. False
  /// once there is no such call.
  template <class Inject>
  bool goes_wrong(std::uint64_t n, const Inject& inject) {
    const auto executable = make();
    reset(*executable);
    expect_run(*executable, 0);
    const auto seen = std::make_shared<Collector>();
    bool stopped = false, observer_failed = false;
    {
      const ObserveScope scope(seen);
      inject(n);
      try {
        run(*executable);
      } catch (const Error&) {
        stopped = true;
      }
      observer_failed = scope.error().has_value();
    }
    const bool happened = device_.end_fault();
    EXPECT_EQ(happened, stopped || observer_failed) << "call " << n;
    if (stopped) {
      EXPECT_THROW(executable->output("y"), Error) << "call " << n;
      if (!observer_failed) {
        EXPECT_THAT(seen->errors, testing::ElementsAre(testing::Not(testing::IsEmpty())));
      }
    } else {
      expect_near(executable->output("y").to_bytes(), expected_[1].outputs.at("y"), "y");
    }
    reset(*executable);
    expect_run(*executable, 0);
    const auto again = std::make_shared<Collector>();
    const ObserveScope scope(again);
    reset(*executable);
    expect_run(*executable, 0);
    expect_values(executable->plan(), *again, bound_);
    EXPECT_FALSE(scope.error());
    return happened;
  }
};

TEST_F(ObservedLoss, AFaultAtEachCall) {
  std::uint64_t n = 1;
  while (goes_wrong(n, [&](std::uint64_t at) { device_.fail_call(at); }) && !HasFailure()) ++n;
  EXPECT_GT(n, 30u);
}

TEST_F(ObservedLoss, TheDeviceIsLostAtEachCall) {
  std::uint64_t n = 1;
  while (goes_wrong(n, [&](std::uint64_t at) { device_.lose_at_call(at); }) && !HasFailure()) ++n;
  EXPECT_GT(n, 30u);
}

TEST_F(ObservedLoss, AKernelThatHangsEndsTheRunAndIsNamed) {
  const auto executable = make();
  expect_run(*executable, 0);
  const auto seen = std::make_shared<Collector>();
  {
    const ObserveScope scope(seen);
    device_.hang_at(2);
    EXPECT_THROW(run(*executable), Error);
    ASSERT_EQ(seen->errors.size(), 1u);
    EXPECT_THAT(seen->errors[0], HasSubstr("async"));
    EXPECT_FALSE(scope.error());
  }
  device_.end_hang();
  reset(*executable);
  expect_run(*executable, 0);
}

}  // namespace
}  // namespace heddle::test

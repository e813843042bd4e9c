// Devices that fail: errors that stay, nothing that hangs, and work again afterwards.
#include "pipeline.h"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;

class Faults : public Pipeline {
 protected:
  /// Runs, and says whether the injected fault stopped it.
  bool fails(Executable& executable, ErrorCode code) {
    try {
      run(executable);
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), testing::HasSubstr("injected fault"));
      return true;
    }
  }
};

TEST_F(Faults, ThePipelineUsesBothDevices) {
  const auto executable = make();
  EXPECT_GE(executable->plan().splits.size(), 3u);
  EXPECT_EQ(executable->plan().load.size(), 1u);
  EXPECT_EQ(executable->state("here")->spec().shape, (Shape{6, 32}));
  expect_run(*executable, 0);
  expect_run(*executable, 1);
}

constexpr ErrorCode kCodes[] = {ErrorCode::backend, ErrorCode::out_of_memory, ErrorCode::timeout};

TEST_F(Faults, AtEachCallOfTheFirstRun) {
  const auto other = compiled(graph_);  // on the CPU alone
  other->parameters()->set("w", Array(weights_, {32, 32}));
  for (const ErrorCode code : kCodes) {
    std::uint64_t n = 1;
    for (;; ++n) {
      parameters_ = make_ref<Parameters>();  // so that the weight is carried and packed anew
      parameters_->set("w", Array(weights_, {32, 32}));
      const auto executable = make();
      device_.fail_call(n, code);
      const bool failed = fails(*executable, code);
      ASSERT_EQ(device_.end_fault(), failed) << "call " << n;
      if (!failed) break;
      EXPECT_THROW(executable->output("y"), Error) << "call " << n;
      reset(*other);
      expect_run(*other, 0);  // the CPU is none the worse
      const auto fresh = make();
      expect_run(*fresh, 0);  // nor is the device
      reset(*executable);
      expect_run(*executable, 0);
      expect_run(*executable, 1);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(n, 40u);
  }
}

TEST_F(Faults, AtEachCallOfALaterRun) {
  for (const ErrorCode code : kCodes) {
    std::uint64_t n = 1;
    for (;; ++n) {
      const auto executable = make();
      expect_run(*executable, 0);
      device_.fail_call(n, code);
      const bool failed = fails(*executable, code);
      ASSERT_EQ(device_.end_fault(), failed) << "call " << n;
      if (!failed) break;
      reset(*executable);
      expect_run(*executable, 0);
      expect_run(*executable, 1);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(n, 15u);
  }
}

TEST_F(Faults, AtEachCallOfCompile) {
  std::uint64_t n = 1;
  for (;; ++n) {
    device_.fail_call(n);
    std::shared_ptr<Executable> executable;
    try {
      executable = make();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("injected fault"));
    }
    if (!device_.end_fault()) break;
    if (!executable) executable = make();  // a fault that placement took for a refusal is no harm
    expect_run(*executable, 0);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(n, 2u);
}

TEST_F(Faults, AStateThatAFailedRunOnlyReadIsNoneTheWorse) {
  GraphBuilder builder;
  const Array state = builder.state("s", f32({6, 32})), rows = builder.input("rows", i32({4}));
  builder.output("y", silu(take(state, rows, 0)));
  const auto executable = compiled(builder.build(), {&device_});
  const Array seed(std::vector<float>(6 * 32, 2.0f), {6, 32});
  executable->state("s")->seed(seed);
  const NamedTensor input = given("rows", rows_, {4});
  for (std::uint64_t n = 1;; ++n) {
    device_.fail_call(n);
    try {
      executable->run({input});
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("injected fault"));
    }
    if (!device_.end_fault()) {
      EXPECT_GT(n, 6u);
      break;
    }
    executable->run({input});
    EXPECT_NEAR(executable->output("y").to_vector<float>()[5], 2 / (1 + std::exp(-2.0f)), 1e-5);
    executable->state("s")->copy_rows(0, 2, 2);
  }
}

TEST_F(Faults, AFailedStateStaysFailedUntilItIsReset) {
  const auto executable = make();
  expect_run(*executable, 0);
  // The last kernels of the run are the writes of the device's state and what follows them.
  for (std::uint64_t n = 1; n < 60; ++n) {
    const std::uint64_t kernels = device_.kernels();
    device_.fail_call(n);
    EXPECT_THROW(run(*executable), Error);
    ASSERT_TRUE(device_.end_fault());
    if (device_.kernels() > kernels) break;  // it had begun
    reset(*executable);
  }
  for (int i = 0; i < 3; ++i) {
    expect_error(ErrorCode::backend, "injected fault", [&] { executable->state("there")->read(); });
    expect_error(ErrorCode::backend, "injected fault", [&] { run(*executable); });
  }
  reset(*executable);
  expect_run(*executable, 0);
}

TEST_F(Faults, ATimeoutSaysWhatWasAwaitedAndSeen) {
  GraphBuilder builder;
  builder.output("y", silu(builder.input("x", f32({4, 32}))));
  const auto executable = compiled(builder.build(), {&device_});
  const NamedTensor input = given("x", x_, {4, 32});
  executable->run({input});
  const auto ended = device_.counts().submissions;
  device_.hang_at(1);
  const Ref<Completion> end = executable->submit({&input, 1});
  try {
    end->wait(100ms);
    FAIL() << "it should have timed out";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    const std::string text = error.what();
    EXPECT_THAT(text, testing::HasSubstr("async"));
    EXPECT_THAT(text,
                testing::HasSubstr("waited 100 ms for submission " + std::to_string(ended + 1)));
    EXPECT_THAT(text, testing::HasSubstr("the last to have ended is " + std::to_string(ended)));
    EXPECT_THAT(text, testing::HasSubstr("its status: running"));
    EXPECT_THAT(text, testing::HasSubstr("silu"));
  }
  EXPECT_FALSE(end->done());
  EXPECT_EQ(device_.generation(), 1u);
  expect_error(ErrorCode::timeout, "submission", [&] { end->wait(); });  // the same, at once
  expect_error(ErrorCode::timeout, "submission", [&] { executable->output("y"); });
  const auto expect_silu = [&] {
    executable->run({input});
    const auto y = executable->output("y").to_vector<float>();
    EXPECT_NEAR(y[5], x_[5] / (1 + std::exp(-x_[5])), 1e-5);
  };
  expect_silu();  // on the device, opened again, while the old kernel hangs on
  EXPECT_FALSE(end->done());
  device_.end_hang();
  EXPECT_TRUE(end->done());
  expect_error(ErrorCode::timeout, "submission", [&] { end->wait(); });
  expect_silu();
}

TEST_F(Faults, MemoryOfALostDeviceIsQuarantined) {
  GraphBuilder builder;
  builder.output("y", silu(builder.input("x", f32({4, 32}))));
  Ref<Buffer> unrelated = device_.allocate(256);
  {
    const auto executable = compiled(builder.build(), {&device_});
    const NamedTensor input = given("x", x_, {4, 32});
    device_.hang_at(1);
    EXPECT_THROW(executable->submit({&input, 1})->wait(50ms), Error);
  }
  unrelated = nullptr;
  EXPECT_GE(device_.quarantined_bytes(), 256u);
  device_.end_hang();
  EXPECT_EQ(device_.quarantined_bytes(), 0u);
  expect_run(*make(), 0);
}

TEST_F(Faults, WorkThatFailedFailsWhatWaitsForIt) {
  AsyncDevice second(accepting("second", {"tanh"}));
  GraphBuilder builder;
  const Array a = silu(builder.input("x", f32({4, 32})));
  builder.output("y", tanh(a));
  const auto executable = compiled(builder.build(), {&device_, &second});
  const NamedTensor input = given("x", x_, {4, 32});
  executable->run({input});
  const auto before = second.kernels();
  for (std::uint64_t n = 1;; ++n) {
    device_.fail_call(n);
    bool failed = false;
    try {
      executable->run({input});
    } catch (const Error& error) {
      failed = true;
      EXPECT_THAT(error.what(), testing::HasSubstr("async: "));
    }
    if (!device_.end_fault()) break;
    EXPECT_TRUE(failed);
    EXPECT_EQ(second.kernels(), before);
  }
  executable->run({input});
}

}  // namespace
}  // namespace heddle::test

// Devices that are lost: what lived there is gone and says so, and everything else goes on.
#include <chrono>

#include "pipeline.h"
#include "support/short_timeout.h"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Loss : public Pipeline {
 protected:
  /// Runs, and says whether that failed, as it may only when a device was lost.
  template <class Body>
  static bool is_stopped(const Body& body) {
    try {
      body();
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::device_lost) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("async"));
      return true;
    }
  }
  Ref<Parameters> new_parameters() const {
    auto parameters = make_ref<Parameters>();
    parameters->set("w", Array(weights_, {32, 32}));
    return parameters;
  }
};

TEST_F(Loss, AtEachCallOfTheFirstRun) {
  std::uint64_t n = 1;
  for (;; ++n) {
    parameters_ = new_parameters();  // so that the weight is carried and packed anew
    const auto executable = make();
    device_.lose_at_call(n);
    const bool stopped = is_stopped([&] { run(*executable); });
    ASSERT_EQ(device_.end_fault(), stopped) << "call " << n;
    if (!stopped) break;
    EXPECT_THROW(executable->output("y"), Error) << "call " << n;
    reset(*executable);
    expect_run(*executable, 0);
    expect_run(*executable, 1);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(n, 40u);
  EXPECT_EQ(device_.generation(), n - 1);
}

TEST_F(Loss, AtEachCallOfALaterRun) {
  const auto executable = make(), beside = make();  // of the same weights
  std::uint64_t n = 1;
  for (;; ++n) {
    reset(*executable);
    expect_run(*executable, 0);
    device_.lose_at_call(n);
    const bool stopped = is_stopped([&] { run(*executable); });
    ASSERT_EQ(device_.end_fault(), stopped) << "call " << n;
    if (!stopped) break;
    reset(*beside);
    expect_run(*beside, 0);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(n, 15u);
}

TEST_F(Loss, AtEachCallOfCompile) {
  std::uint64_t n = 1;
  for (;; ++n) {
    std::shared_ptr<Executable> executable;
    device_.lose_at_call(n);
    is_stopped([&] { executable = make(); });
    if (!device_.end_fault()) break;
    if (!executable) executable = make();
    expect_run(*executable, 0);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(n, 2u);
}

TEST_F(Loss, AtEachCallOfTheRecoveryFromALoss) {
  std::uint64_t n = 1;
  for (;; ++n) {
    const auto executable = make();
    expect_run(*executable, 0);
    device_.lose();
    device_.lose_at_call(n);
    const bool stopped = is_stopped([&] {
      reset(*executable);
      run(*executable);
    });
    ASSERT_EQ(device_.end_fault(), stopped) << "call " << n;
    if (!stopped) break;
    reset(*executable);
    expect_run(*executable, 0);
    expect_run(*executable, 1);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(n, 40u);
}

TEST_F(Loss, StatesSayThatTheyAreLostUntilTheyAreReset) {
  const auto executable = make();
  expect_run(*executable, 0);
  const Ref<State> there = executable->state("there"), here = executable->state("fed");
  device_.lose();
  EXPECT_TRUE(there->is_lost());
  EXPECT_FALSE(here->is_lost());
  for (int i = 0; i < 2; ++i) {
    for (const auto& use : std::vector<std::function<void()>>{
             [&] { there->read(); },
             [&] { there->read_rows(0, 1); },
             [&] { there->grow(8); },
             [&] { there->copy_rows(0, 2, 1); },
             [&] { run(*executable); },
         }) {
      expect_error(ErrorCode::device_lost, "f32[6, 32]: it went with async", use);
      expect_error(ErrorCode::device_lost, "reset()", use);
    }
  }
  expect_near(here->read().to_bytes(), expected_[0].states.at("fed"), "fed");
  std::mt19937 random(3);
  const Bytes seeded = bytes_of(random_floats(random, 6 * 32));
  there->seed(Array::from_bytes(f32({6, 32}), seeded));
  EXPECT_FALSE(there->is_lost());
  EXPECT_EQ(there->read().to_bytes(), seeded);
  reset(*executable);
  expect_run(*executable, 0);
}

TEST_F(Loss, OutputsThatLivedThereAreGone) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({4, 32}));
  builder.output("there", silu(x));
  builder.output("here", tanh(x));
  const auto executable = compiled(builder.build(), {&device_});
  const NamedTensor input = given("x", x_, {4, 32});
  executable->run({input});
  const std::vector<float> before = executable->output("there").to_vector<float>();
  device_.lose();
  std::vector<float> row(32);
  expect_error(ErrorCode::device_lost, "async", [&] { executable->output("there"); });
  expect_error(ErrorCode::device_lost, "async", [&] {
    executable->copy_output_row("there", 1, std::as_writable_bytes(std::span(row)));
  });
  EXPECT_NEAR(executable->output("here").to_vector<float>()[3], std::tanh(x_[3]), 1e-6);
  executable->run({input});  // nothing that it needs is lost
  EXPECT_EQ(executable->output("there").to_vector<float>(), before);
  device_.lose();
  const std::vector<float> wrong(5);
  EXPECT_THROW(executable->run({given("x", wrong, {5})}), Error);
  expect_error(ErrorCode::device_lost, "run again", [&] { executable->output("here"); });
}

TEST_F(Loss, ConstantsClonesAndOtherExecutablesComeBack) {
  GraphBuilder builder;
  const Array w = builder.parameter("w", f32({32, 32}));
  const Array c = Array(x_, {4, 32});
  builder.output("y", silu(linear(silu(builder.input("x", f32({4, 32})) + c), w) + c));
  AsyncOptions options = accepting("async", {"silu", "linear", "repack", "add"});
  options.hides_local = true;
  AsyncDevice device(options);
  const auto first = compiled(builder.build(), {&device}, parameters_);
  const auto second = compiled(builder.build(), {&device}, parameters_);
  const auto third = first->clone();
  const NamedTensor input = given("x", x_, {4, 32});
  first->run({input});
  const auto expected = first->output("y").to_vector<float>();
  for (int i = 0; i < 3; ++i) {
    device.lose();
    for (const auto& executable : {first, second, third, first->clone()}) {
      executable->run({input});
      EXPECT_EQ(executable->output("y").to_vector<float>(), expected);
    }
  }
}

TEST_F(Loss, ConstantsThatADeviceMadeAreKeptElsewhere) {
  const Array made = on(device_, [&] { return silu(Array(x_, {4, 32})); });
  made.eval();
  GraphBuilder builder;
  builder.output("y", builder.input("x", f32({4, 32})) + made);
  const auto executable = compiled(builder.build());
  device_.lose();
  EXPECT_THROW(made.to_bytes(), Error);
  executable->run({given("x", x_, {4, 32})});
  EXPECT_NEAR(executable->output("y").to_vector<float>()[7], x_[7] + x_[7] / (1 + std::exp(-x_[7])),
              1e-5);
}

TEST_F(Loss, WeightsThatADeviceMadeAreKeptElsewhere) {
  const Array made = on(device_, [&] { return silu(Array(weights_, {32, 32})); });
  parameters_->set("w", made);
  const Bytes bytes = made.to_bytes();
  device_.lose();
  bound_["w"] = bytes;
  expected_ = interpret(graph_, bound_, 2);
  expect_run(*make(), 0);
}

TEST_F(Loss, AHangAtEachKernelOfARun) {
  std::uint64_t n = 1;
  for (;; ++n) {
    const auto executable = make();
    expect_run(*executable, 0);
    const std::vector<NamedTensor> inputs{given("x", x_, {4, 32}), given("rows", rows_, {4})};
    device_.hang_at(n);
    const auto began = std::chrono::steady_clock::now();
    bool hung = false;
    try {
      executable->run(inputs);
    } catch (const Error& error) {
      hung = true;
      EXPECT_EQ(error.code(), ErrorCode::timeout) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("async: waited 1000 ms"));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, 4s);
    if (!hung) break;
    expect_error(ErrorCode::timeout, "waited", [&] { executable->output("y"); });
    reset(*executable);
    expect_run(*executable, 0);  // while the old work hangs on
    expect_run(*executable, 1);
    if (n % 2 == 0) device_.end_hang();  // else it goes on past the executable's end
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(n, 3u);
  device_.end_hang();
}

TEST_F(Loss, TeardownDoesNotWaitForWhatHangs) {
  const auto began = std::chrono::steady_clock::now();
  {
    const auto executable = make();
    expect_run(*executable, 0);
    device_.hang_at(1);
    const std::vector<NamedTensor> inputs{given("x", x_, {4, 32}), given("rows", rows_, {4})};
    EXPECT_THROW(executable->submit(inputs)->wait(50ms), Error);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s);
  EXPECT_GT(device_.quarantined_bytes() + device_.live_bytes(), 0u);
  device_.end_hang();
  expect_run(*make(), 0);
}

TEST_F(Loss, StatesElsewhereThatAreKeptDoNotWaitForWhatHangs) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({4, 32})), rows = builder.input("rows", i32({4}));
  const Array state = builder.state("here", f32({6, 32}));
  builder.update("here", write_rows(state, tanh(x), rows));
  builder.output("y", silu(tanh(x)));
  AsyncDevice device(accepting("async", {"silu"}));
  const auto executable = compiled(builder.build(), {&device});
  const auto here = make_ref<State>(cpu_device(), f32({6, 32}), State::OnFailure::keep);
  executable->bind_state("here", here);
  const std::vector<NamedTensor> inputs{given("x", x_, {4, 32}), given("rows", rows_, {4})};
  device.hang_at(1);
  EXPECT_THROW(executable->submit(inputs)->wait(50ms), Error);
  EXPECT_NEAR(here->read().to_vector<float>()[4 * 32], std::tanh(x_[0]), 1e-6);
  executable->run(inputs);
  EXPECT_NEAR(executable->output("y").to_vector<float>()[0],
              std::tanh(x_[0]) / (1 + std::exp(-std::tanh(x_[0]))), 1e-5);
  device.end_hang();
}

}  // namespace
}  // namespace heddle::test

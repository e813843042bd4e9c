// Lazy arrays on devices that fail, hang or are lost: errors that stay where they belong, no wait
// beyond its bound, and all else goes on.
#include <chrono>
#include <numeric>

#include "array_test_support.h"
#include "support/async_device.h"
#include "support/short_timeout.h"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class ArrayLoss : public testing::TestWithParam<bool> {  // whether the host sees the memory
 protected:
  static AsyncOptions options() {
    AsyncOptions options;
    options.hides_local = !GetParam();
    options.delay = 0us;
    return options;
  }

  /// Products, a reduction, a node on the CPU in between, and something in place.
  Array program() const {
    const DeviceScope scope(device_);
    const Array x(values_, {4, 8});
    Array a = exp(x * Array(0.5f));
    a = a + Array(1.0f);
    const Array b = matmul(a, transpose(x));
    const Array there = sum(b, {1}, true);
    Array here = [&] {
      const DeviceScope cpu(cpu_device());
      return tanh(there);
    }();
    return slice(b * here, {0, 1}, {4, 4}) + Array(2.0f);
  }

  void expect_works() const { EXPECT_EQ(program().to_vector<float>(), expected_); }

  static std::vector<float> first_values() {
    std::vector<float> values(32);
    std::iota(values.begin(), values.end(), -16.0f);
    for (float& value : values) value *= 0.0625f;
    return values;
  }

  mutable AsyncDevice device_{options()};
  const std::vector<float> values_ = first_values();
  const std::vector<float> expected_ = program().to_vector<float>();
};
INSTANTIATE_TEST_SUITE_P(HostSeesMemory, ArrayLoss, testing::Bool());

TEST_P(ArrayLoss, WhatLivedThereFailsAtEveryRead) {
  const Array host(values_, {32});
  AsyncDevice other({.name = "other"});
  const Array elsewhere = [&] {
    const DeviceScope scope(other);
    return exp(host);
  }();
  const DeviceScope scope(device_);
  const Array x = exp(host), strided = transpose(reshape(x, {4, 8}));
  eval(x, strided, elsewhere);
  device_.lose();
  for (int read = 0; read < 2; ++read) {
    const std::vector<std::string> parts{"async", "lost"};
    expect_error([&] { x.eval(); }, ErrorCode::device_lost, parts);
    expect_error([&] { x.check(); }, ErrorCode::device_lost, parts);
    expect_error([&] { x.view(); }, ErrorCode::device_lost, parts);
    expect_error([&] { x.to_bytes(); }, ErrorCode::device_lost, parts);
    expect_error([&] { strided.to_bytes(); }, ErrorCode::device_lost, parts);
    expect_error([&] { (x + host).eval(); }, ErrorCode::device_lost, {"add", "async", "lost"});
    const DeviceScope cpu(cpu_device());
    expect_error([&] { tanh(x).eval(); }, ErrorCode::device_lost, {"tanh", "async", "lost"});
  }
  EXPECT_THAT(host.to_vector<float>(), testing::ElementsAreArray(values_));
  EXPECT_FLOAT_EQ(elsewhere.to_vector<float>()[0], std::exp(values_[0]));
  EXPECT_FLOAT_EQ((exp(host) + elsewhere).to_vector<float>()[0], 2 * std::exp(values_[0]));
}

TEST_P(ArrayLoss, OthersOfTheSameEvaluationGoOn) {
  const DeviceScope scope(device_);
  const Array x = exp(Array(values_, {32}));
  x.eval();
  device_.lose();
  const Array dependent = x + Array(1.0f), independent = exp(Array(values_, {32}));
  EXPECT_THROW(eval(dependent, independent), Error);
  EXPECT_FLOAT_EQ(independent.to_vector<float>()[31], std::exp(values_[31]));
  expect_error([&] { dependent.check(); }, ErrorCode::device_lost, {"lost"});
}

TEST_P(ArrayLoss, WorkInFlightFails) {
  AsyncOptions slow = options();
  slow.name = "slow";
  slow.delay = 50ms;
  AsyncDevice device(slow);
  const DeviceScope scope(device);
  const Array x = exp(Array(values_, {32}));
  async_eval(x);
  device.lose();
  expect_error([&] { x.to_bytes(); }, ErrorCode::device_lost, {"slow", "pulled the plug"});
  expect_error([&] { (x + Array(1.0f)).to_bytes(); }, ErrorCode::device_lost, {"lost"});
  EXPECT_FLOAT_EQ(exp(Array(values_, {32})).to_vector<float>()[5], std::exp(values_[5]));
}

/// Fails, by `arm(n)`, each call of the program in turn; returns how many there are.
template <class Arm>
std::uint64_t walk(AsyncDevice& device, const std::function<Array()>& program, ErrorCode code,
                   const Arm& arm, const std::function<void()>& expect_works) {
  for (std::uint64_t n = 1;; ++n) {
    std::string first;
    const auto read = [&](const Array& value) {
      try {
        value.to_bytes();
        return std::string();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        return std::string(error.what());
      }
    };
    arm(n);
    std::optional<Array> value;
    value = program();
    first = read(*value);
    const bool happened = device.end_fault();
    if (!happened) return n;
    if (!first.empty()) {
      EXPECT_THAT(first, HasSubstr("async"));
      // Reading may have failed, and not the value.
      const std::string second = read(*value);
      EXPECT_TRUE(second.empty() || second == first || code == ErrorCode::device_lost)
          << first << "\n"
          << second;
    }
    expect_works();
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "call " << n;
      return n;
    }
  }
}

TEST_P(ArrayLoss, AtEachCall) {
  const auto calls = walk(
      device_, [&] { return program(); }, ErrorCode::device_lost,
      [&](std::uint64_t n) { device_.lose_at_call(n); }, [&] { expect_works(); });
  EXPECT_GT(calls, 20u);
}

TEST_P(ArrayLoss, AFaultAtEachCall) {
  for (const ErrorCode code : {ErrorCode::backend, ErrorCode::out_of_memory, ErrorCode::timeout}) {
    const auto calls = walk(
        device_, [&] { return program(); }, code,
        [&](std::uint64_t n) { device_.fail_call(n, code); }, [&] { expect_works(); });
    EXPECT_GT(calls, 20u);
  }
}

TEST_P(ArrayLoss, AReaderThatFailedDoesNotSpoilWhatIsWrittenOverItsInput) {
  const DeviceScope scope(device_);
  for (std::uint64_t n = 1;; ++n) {
    Array x = exp(Array(values_, {32}));
    x.eval();
    device_.fail_call(n);
    const Array reader = sum(x);
    try {
      reader.eval();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::backend);
    }
    if (!device_.end_fault()) {
      EXPECT_GT(n, 4u);
      break;
    }
    const Array y = x + Array(1.0f);
    x = Array(0.0f);
    EXPECT_FLOAT_EQ(y.to_vector<float>()[3], std::exp(values_[3]) + 1) << "call " << n;
  }
}

TEST_P(ArrayLoss, AHangAtEachKernel) {
  std::uint64_t n = 1;
  for (;; ++n) {
    device_.hang_at(n);
    const auto began = std::chrono::steady_clock::now();
    const Array value = program();
    bool hung = false;
    try {
      value.to_bytes();
    } catch (const Error& error) {
      hung = true;
      EXPECT_TRUE(error.code() == ErrorCode::timeout || error.code() == ErrorCode::device_lost);
      EXPECT_THAT(error.what(), HasSubstr("async"));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, 4s);
    if (!hung) break;
    EXPECT_THROW(value.to_bytes(), Error);
    expect_works();  // while the old work hangs on
    if (n % 2 == 0) device_.end_hang();
  }
  EXPECT_GT(n, 5u);
  device_.end_hang();
}

}  // namespace
}  // namespace heddle::test

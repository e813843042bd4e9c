// Evaluation on devices beside the CPU: pins, fallback, transfers, work in flight and its errors.
#include "array/launch.h"
#include "array_test_support.h"
#include "test_device.h"

namespace heddle::test {
namespace {

TestDeviceOptions hidden() {
  TestDeviceOptions options;
  options.later = options.hide_memory = true;
  return options;
}

TEST(Devices, PinnedNodesRunThere) {
  TestDevice device("pinned");
  const Array x = arange(4.0);
  const Array y = [&] {
    const DeviceScope scope(device);
    return exp(x) * 2.0f;
  }();
  const Array z = y + 1.0f;
  EXPECT_EQ(x.node()->pin(), nullptr);
  EXPECT_EQ(y.node()->pin(), &device);
  EXPECT_EQ(z.node()->pin(), nullptr);
  z.eval();
  EXPECT_EQ(device.launches, 2);
  EXPECT_EQ(&y.view().buffer->device(), &device);
  EXPECT_EQ(&z.view().buffer->device(), &cpu_device());
}

TEST(Devices, ScopesNest) {
  TestDevice outer("outer"), inner("inner");
  const DeviceScope a(outer);
  {
    const DeviceScope b(inner);
    EXPECT_EQ(exp(Array(1.0f)).node()->pin(), &inner);
  }
  EXPECT_EQ(exp(Array(1.0f)).node()->pin(), &outer);
}

TEST(Devices, WhatADeviceLacksRunsOnTheCpuAndIsCounted) {
  TestDeviceOptions options = hidden();
  options.allows = [](const Op& op) { return name(op) != "sin"; };
  TestDevice device("no-sine", options);
  const DeviceScope scope(device);
  const std::uint64_t before = eval_counts().fallbacks;
  const Array y = exp(sin(cos(Array({0.0f, 1.0f}))));
  expect_near(y, {std::exp(std::sin(std::cos(0.0))), std::exp(std::sin(std::cos(1.0)))});
  EXPECT_EQ(eval_counts().fallbacks - before, 1u);
}

TEST(Devices, WhatNobodyCanRunSaysWhy) {
  const Array y = apply(Feed{Feed::Kind::whole}, {full({2}, Array(1)), full({2}, Array(1))});
  EXPECT_NO_THROW(y.eval());
  const Array c = sin(Array(std::vector<std::complex<float>>{{1, 2}}, {1}));
  try {
    c.eval();  // a CPU with complex kernels would be fine too
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("sin"));
    EXPECT_THAT(error.what(), testing::HasSubstr("no kernel on cpu"));
  }
}

TEST(Devices, SiluPlusItselfAcrossThreeSplits) {
  TestDevice device("middle", hidden());
  for (int run = 0; run < 50; ++run) {
    const Array x = arange(256.0) * 0.01f;
    const Array s = [&] {
      const DeviceScope scope(device);
      return silu(x);
    }();
    const Array y = s + x;
    const std::vector<float> got = y.to_vector<float>();
    for (int i = 0; i < 256; ++i) {
      const double v = i * 0.01;
      ASSERT_NEAR(got[i], v / (1 + std::exp(-v)) + v, 1e-5);
    }
  }
}

TEST(Devices, OneValueForTwoReadersIsCopiedOnce) {
  TestDevice device("readers", hidden());
  Array x = exp(arange(64.0) * 0.1f);
  x.eval();
  const DeviceScope scope(device);
  const Array a = sin(x), b = cos(x);
  const std::uint64_t before = eval_counts().transfers;
  eval(a, b);
  EXPECT_EQ(eval_counts().transfers - before, 1u);
}

TEST(Devices, ViewsTravelAsTheyLie) {
  TestDevice device("views", hidden());
  const Array x = reshape(arange(12.0), {3, 4});
  const Array view = transpose(slice(x, {1, 0}, {3, 4}, {1, 2}));
  const DeviceScope scope(device);
  EXPECT_THAT(values<float>(negative(view)), testing::ElementsAre(-4, -8, -6, -10));
  EXPECT_THAT(values<float>(transpose(exp(x) * 0.0f + x)),
              testing::ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
}

TEST(Devices, WorkGoesOutInBatches) {
  TestDevice device("batches", hidden());
  const DeviceScope scope(device);
  Array x = arange(16.0);
  const Array one(1.0f);
  for (int i = 0; i < 1000; ++i) x = x + one;
  x.eval();
  EXPECT_EQ(device.launches, 1001);
  EXPECT_GE(device.submissions, 1001 / 64);
  EXPECT_LE(device.submissions, 1001 / 64 + 3);
  EXPECT_FLOAT_EQ(x.to_vector<float>()[3], 1003);
}

TEST(Devices, InFlightResultsAreReadByLaterEvaluations) {
  TestDevice device("flight", hidden());
  const DeviceScope scope(device);
  Array total = zeros({32});
  for (int i = 0; i < 200; ++i) {
    total = total + Array(1.0f);
    total.eval();
  }
  EXPECT_FLOAT_EQ(total.to_vector<float>()[31], 200);
}

TEST(Devices, AFaultInFlightFailsWhatReadsItAndNothingElse) {
  TestDevice device("fault", hidden());
  const Array independent = [&] {
    const DeviceScope scope(device);
    return exp(zeros({4}));
  }();
  independent.eval();
  int launch = 0;
  device.on_launch = [&] {
    if (launch++ == 0) throw Error(ErrorCode::device_lost, "the test pulled the plug");
  };
  const auto pinned = [&](const Array& x) {
    const DeviceScope scope(device);
    return x * 2.0f;
  };
  const Array bad = pinned(arange(4.0));
  const Array on_cpu = bad + 1.0f;
  const Array on_device = pinned(bad);
  for (int read = 0; read < 3; ++read) {
    for (const Array& a : {on_cpu, bad, on_device}) {
      expect_error([&] { a.eval(); }, ErrorCode::device_lost, {"pulled the plug"});
    }
  }
  EXPECT_THAT(values<float>(independent), testing::Each(1.0f));
  EXPECT_THAT(values<float>(pinned(arange(2.0))), testing::ElementsAre(0, 2));
}

TEST(Devices, AFaultAtEachStepEndsInTheErrorAndNeverHangs) {
  for (int fault = 0; fault < 12; ++fault) {
    TestDevice device("steps", hidden());
    std::atomic<int> launch{0};
    device.on_launch = [&] {
      if (launch++ == fault) throw Error(ErrorCode::backend, "a fault of the test's");
    };
    Array x = arange(8.0);
    for (int i = 0; i < 6; ++i) {
      x = x + 1.0f;
      const DeviceScope scope(device);
      x = x * 2.0f + 1.0f;
    }
    if (launch <= fault && fault >= 12) {
      EXPECT_NO_THROW(x.eval());
    } else {
      for (int read = 0; read < 2; ++read) {
        expect_error([&] { x.to_bytes(); }, ErrorCode::backend, {"a fault of the test's"});
      }
    }
  }
}

TEST(Devices, MemoryThatIsLackingFailsTheNodeOnly) {
  TestDevice device("small");
  const DeviceScope scope(device);
  const Array huge = full({1 << 20, 1 << 20, 1 << 10}, Array(1.0f)) + 1.0f;
  expect_error([&] { huge.eval(); }, ErrorCode::out_of_memory, {});
  EXPECT_FLOAT_EQ((Array(1.0f) + 1.0f).item<float>(), 2);
}

}  // namespace
}  // namespace heddle::test

// Work in flight: how much there may be, what it holds, what its failures reach, and streams.
#include <barrier>
#include <latch>
#include <thread>

#include "array/in_flight.h"
#include "array/launch.h"
#include "array_test_support.h"
#include "base/settings.h"
#include "support/async_device.h"
#include "test_device.h"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;

/// Waits up to ten seconds for `condition`.
template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 10'000 && !condition(); ++i) std::this_thread::sleep_for(1ms);
  return condition();
}

Array swapped_halves(const Array& x) {  // cannot be written in place
  const std::int64_t n = x.size();
  return concatenate({slice(x, {n / 2}, {n}), slice(x, {0}, {n / 2})});
}

// ---- How much

TEST(InFlight, BatchesAreBoundedAndSubmissionBlocksBeyond) {
  TestDevice device("bounded", {.later = true});
  std::latch gate(1);
  device.on_launch = [&] { gate.wait(); };
  const int most = settings().batches_in_flight;
  std::atomic<bool> ended{false};
  std::thread thread([&] {
    const DeviceScope scope(device);
    Array x = zeros({4});
    for (int i = 0; i < 3 * most; ++i) {
      x = x + Array(1.0f);
      async_eval(x);
    }
    EXPECT_FLOAT_EQ(x.to_vector<float>()[2], 3.0f * static_cast<float>(most));
    ended = true;
  });
  EXPECT_TRUE(comes_true([&] { return device.submissions >= most; }));
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(device.submissions, most);
  EXPECT_FALSE(ended);
  gate.count_down();
  thread.join();
  EXPECT_GE(device.submissions, 3 * most);
}

class NeverDone final : public Completion {
 public:
  bool done() const noexcept override { return false; }
  void wait(std::chrono::nanoseconds) override { fail(ErrorCode::timeout, "it never ends"); }
};

TEST(InFlight, WorkThatTimesOutDoesNotBlockForEver) {
  const Ref<Stream> stream = cpu_device().new_stream();
  for (int i = 0; i < settings().batches_in_flight; ++i) {
    in_flight::add(*stream, make_ref<NeverDone>());
  }
  in_flight::make_room(*stream);
  while (in_flight::wait_for_oldest(cpu_device())) {
  }
}

TEST(InFlight, OtherStreamsAreNotHeldUp) {
  TestDevice stuck("stuck", {.later = true});
  TestDevice free("free", {.later = true});
  std::latch gate(1);
  stuck.on_launch = [&] { gate.wait(); };
  for (int i = 0; i < settings().batches_in_flight; ++i) {
    const DeviceScope scope(stuck);
    async_eval(exp(Array({1.0f})));
  }
  const DeviceScope scope(free);
  EXPECT_FLOAT_EQ(exp(Array({0.0f})).to_vector<float>()[0], 1.0f);
  gate.count_down();
}

TEST(InFlight, ViewsAndLaterWorkDoNotWait) {
  TestDevice device("gated", {.later = true, .hide_memory = true});
  std::latch gate(1);
  device.on_launch = [&] { gate.wait(); };
  const DeviceScope scope(device);
  const Array x = exp(reshape(arange(6.0), {2, 3}) * 0.0f);
  async_eval(x);
  const Array nothing = slice(transpose(x), {0, 0}, {3, 2}, {-1, 1});
  const Array backwards = slice(transpose(x), {2, 1}, {-4, 2}, {-1, 1});
  const Array later = x + 3;
  async_eval(nothing, backwards, later);  // would never return if it waited
  EXPECT_FALSE(x.is_available() || backwards.is_available() || later.is_available());
  gate.count_down();
  EXPECT_THAT(values<float>(backwards), testing::ElementsAre(1, 1, 1));
  EXPECT_THAT(values<float>(later), testing::Each(4.0f));
  EXPECT_THAT(values<float>(nothing), testing::IsEmpty());
}

// ---- Memory

TEST(InFlight, DeadIntermediatesOfABatchAreUsedAgain) {
  TestDevice device("recycling", {.later = true, .hide_memory = true});
  const DeviceScope scope(device);
  constexpr std::int64_t kBytes = 4096 * 4;
  Array x = exp(arange(4096.0) * 0.0f);
  for (int i = 0; i < 60; ++i) x = swapped_halves(x);
  const Array last = x;
  x = Array(0.0f);
  last.eval();
  EXPECT_FLOAT_EQ(last.to_vector<float>()[17], 1.0f);
  EXPECT_LE(device.peak_bytes, 5 * kBytes);
}

TEST(InFlight, AnInputInFlightIsWrittenOver) {
  AsyncDevice device({.hides_local = true, .delay = 20ms});
  const DeviceScope scope(device);
  Array x = exp(arange(4096.0) * 0.0f);
  async_eval(x);
  const Array y = x + Array(1.0f);
  x = Array(0.0f);
  const std::uint64_t before = eval_counts().donations;
  async_eval(y);
  EXPECT_EQ(eval_counts().donations - before, 1u);
  EXPECT_FLOAT_EQ(y.to_vector<float>()[4095], 2.0f);
}

TEST(InFlight, ReadersInFlightComeBeforeTheWriteOver) {
  AsyncDevice device({.hides_local = true, .delay = 5ms});
  const DeviceScope scope(device);
  for (int round = 0; round < 20; ++round) {
    Array x = exp(arange(4096.0) * 0.0f);
    async_eval(x);
    const Array reader = sum(x);
    async_eval(reader);
    const Array y = x * Array(0.0f);
    x = Array(0.0f);
    async_eval(y);
    EXPECT_FLOAT_EQ(reader.item<float>(), 4096.0f);
    EXPECT_FLOAT_EQ(y.to_vector<float>()[1], 0.0f);
  }
}

TEST(InFlight, AtAMemoryLimitSubmissionWaitsForWorkInFlight) {
  constexpr std::size_t kBytes = 4096 * 4;
  AsyncDevice device({.hides_local = true, .memory_limit = 8 * kBytes, .delay = 1ms});
  const DeviceScope scope(device);
  const Array start = exp(arange(4096.0) * 0.0f);
  start.eval();
  std::vector<Array> sums;
  for (int i = 0; i < 100; ++i) {  // all in flight, they would take a hundred times as much
    sums.push_back(sum(swapped_halves(start) + Array(1.0f)));
    async_eval(sums.back());
  }
  for (const Array& s : sums) EXPECT_FLOAT_EQ(s.item<float>(), 8192.0f);
  EXPECT_LE(device.live_bytes(), 8 * kBytes);
}

TEST(InFlight, WhereNothingIsInFlightMemoryThatIsLackingIsAnError) {
  constexpr std::size_t kBytes = 4096 * 4;
  AsyncDevice device({.memory_limit = 4 * kBytes});
  const DeviceScope scope(device);
  const Array fits = exp(arange(4096.0) * 0.0f);
  fits.eval();
  const Array large = concatenate({fits, fits, fits, fits, fits});
  expect_error([&] { large.eval(); }, ErrorCode::out_of_memory, {"async"});
  EXPECT_FLOAT_EQ((fits + Array(1.0f)).to_vector<float>()[9], 2.0f);  // nothing else is lost
}

// ---- Failures

TEST(InFlight, AFailedBatchFailsTheLaterOnesOfItsEvaluationOnly) {
  TestDevice device("failing", {.later = true, .hide_memory = true});
  const DeviceScope scope(device);
  const Array earlier = exp(zeros({4}));
  async_eval(earlier);
  earlier.eval();
  std::atomic<int> launch{0};
  device.on_launch = [&] {
    if (launch++ == 5) fail(ErrorCode::device_lost, "the test pulled the plug");
  };
  Array chain = arange(16.0);
  for (int i = 0; i < 200; ++i) chain = chain + Array(1.0f);  // several batches
  const Array beside = exp(depends({zeros({4})}, {chain})[0]);
  try {
    async_eval(chain, beside);
  } catch (const Error&) {  // if the device was quick
  }
  for (int read = 0; read < 2; ++read) {
    expect_error([&] { chain.to_bytes(); }, ErrorCode::device_lost, {"pulled the plug"});
    expect_error([&] { beside.to_bytes(); }, ErrorCode::device_lost, {"pulled the plug"});
  }
  EXPECT_THAT(values<float>(earlier), testing::Each(1.0f));
  EXPECT_THAT(values<float>(exp(zeros({3}))), testing::Each(1.0f));
}

TEST(InFlight, WorkThatACallLostIsNotTakenForDone) {
  // Each driver call fails in turn: results are right, or the error that was injected.
  for (std::uint64_t call = 1; call < 120; ++call) {
    AsyncDevice device({.hides_local = true});
    const Array x = arange(8.0);
    x.eval();
    std::vector<Array> results;
    {
      const DeviceScope scope(device);
      Array y = x;
      for (int i = 0; i < 8; ++i) results.push_back(y = swapped_halves(y) + Array(1.0f));
    }
    results.push_back(results[3] * 2.0f);  // on the CPU
    device.fail_call(call, ErrorCode::backend);
    try {
      eval(results);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("an injected fault"));
    }
    const bool happened = device.end_fault();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const float added = i == 8 ? 4.0f : static_cast<float>(i + 1);
      const float swapped = (i == 8 ? 4 : i + 1) % 2 ? 4.0f : 0.0f;
      try {
        EXPECT_FLOAT_EQ(results[i].to_vector<float>()[0], (added + swapped) * (i == 8 ? 2 : 1));
      } catch (const Error& error) {
        EXPECT_TRUE(happened) << error.what();
      }
    }
    if (!happened) break;
  }
}

TEST(InFlight, WaitsOfANodeThatFailedDoNotReachOthers) {
  AsyncDevice device({.hides_local = true, .delay = 20ms});
  const Array x = arange(4.0);
  x.eval();
  const auto on = [](const Ref<Stream>& stream, const auto& build) {
    const StreamScope scope(stream);
    return build();
  };
  const Ref<Stream> third = device.new_stream();
  const auto failing = [&] { return take(x, Array({9})); };
  const Array known = on(device.new_stream(), failing);
  EXPECT_THROW(known.eval(), Error);
  const Array in_flight = on(device.new_stream(), failing);
  async_eval(in_flight);
  const Array sum = on(third, [&] { return in_flight + known; });
  EXPECT_THROW(sum.eval(), Error);  // after it has begun to wait for what is in flight
  const Array independent = on(third, [&] { return x + Array(1.0f); });
  EXPECT_THAT(values<float>(independent), testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THROW(in_flight.eval(), Error);
}

// ---- Waiting in a circle

TEST(Waiting, InACircleIsAnErrorAndNotADeadlock) {
  for (int round = 0; round < 20; ++round) {
    TestDevice one("one"), two("two");
    const auto on = [](Device& device) {
      const DeviceScope scope(device);
      return exp(Array({1.0f}));
    };
    const Array x = on(one), y = on(two);
    std::barrier both_run(2);
    one.on_launch = [&] {
      both_run.arrive_and_wait();
      y.eval();
    };
    two.on_launch = [&] {
      both_run.arrive_and_wait();
      x.eval();
    };
    const auto evaluate = [](const Array& a) {
      expect_invalid([&] { a.eval(); }, {"is being evaluated by a call that waits for this one"});
    };
    std::thread other([&] { evaluate(y); });
    evaluate(x);
    other.join();
  }
}

TEST(Waiting, InALineIsFine) {
  TestDevice one("one");
  const Array y = exp(Array({0.0f}));
  const Array x = [&] {
    const DeviceScope scope(one);
    return exp(Array({0.0f}));
  }();
  one.on_launch = [&] {
    std::thread([&] { y.eval(); }).join();
    y.eval();
  };
  EXPECT_FLOAT_EQ(x.item<float>(), 1.0f);
}

// ---- Streams

TEST(Streams, OneOfTheCpuWorksLikeItsDefault) {
  const StreamScope scope(cpu_device().new_stream());
  EXPECT_FLOAT_EQ(exp(Array(0.0f)).item<float>(), 1.0f);
}

TEST(Streams, AreOrderedByWhatTheyReadAndWrite) {
  AsyncDevice device({.hides_local = true, .delay = 2ms});
  const std::vector<Ref<Stream>> streams = {device.new_stream(), device.new_stream(),
                                            device.default_stream()};
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::uint32_t random = seed + 1;
    const auto next = [&](std::uint32_t below) {
      return (random = random * 1664525u + 1013904223u) / 65536u % below;
    };
    Array x = arange(64.0) * 0.0f;
    double expected = 0;
    std::vector<Array> sums;
    std::vector<double> expected_sums;
    for (int step = 0; step < 60; ++step) {
      const StreamScope scope(streams[next(3)]);
      x = x + Array(1.0f);  // in place
      ++expected;
      if (next(3) == 0) x = swapped_halves(x);
      if (next(4) == 0) {
        const StreamScope reader(streams[next(3)]);
        sums.push_back(sum(x));
        expected_sums.push_back(64 * expected);
        if (next(2) == 0) async_eval(sums.back());
      }
      if (next(5) == 0) async_eval(x);
    }
    EXPECT_FLOAT_EQ(x.to_vector<float>()[63], static_cast<float>(expected));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      EXPECT_FLOAT_EQ(sums[i].item<float>(), static_cast<float>(expected_sums[i]));
    }
  }
}

TEST(Streams, ValuesPassedOnTogetherAreWaitedForOneByOne) {
  AsyncDevice device({.hides_local = true, .delay = 0us, .lag = 5ms});
  const Ref<Stream> slow = device.new_stream();
  const DeviceScope scope(device);
  const auto ones = [] { return exp(arange(4096.0) * 0.0f); };
  const Array passed = [&] {
    const Array fast_one = ones();
    const StreamScope slower(slow);
    return depends({fast_one, ones(), ones() + ones()}, {})[2];
  }();
  const Array total = sum(passed);
  async_eval(total);
  EXPECT_FLOAT_EQ(total.item<float>(), 8192.0f);
}

TEST(Streams, MayBeUsedFromAnyThread) {
  AsyncDevice device({.hides_local = true});
  const Ref<Stream> stream = device.new_stream();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const StreamScope scope(stream);
      for (int i = 0; i < 50; ++i) {
        const Array x = full({16}, Array(static_cast<float>(t))) + Array(1.0f);
        ASSERT_FLOAT_EQ(x.to_vector<float>()[15], static_cast<float>(t) + 1.0f);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Streams, NullIsRefused) {
  expect_invalid([] { const StreamScope scope(nullptr); }, {"StreamScope", "no stream"});
}

}  // namespace
}  // namespace heddle::test

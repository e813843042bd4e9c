// Many threads on the same and on overlapping graphs.
#include <latch>
#include <random>
#include <thread>

#include "array/eval.h"
#include "array_test_support.h"
#include "test_device.h"

namespace heddle::test {
namespace {

/// Runs body(i) on `count` threads that start together.
void on_threads(int count, const std::function<void(int)>& body) {
  std::latch start(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, EightEvaluateOneGraphAndEachNodeRunsOnce) {
  for (int round = 0; round < 20; ++round) {
    TestDevice device("shared");
    Array x = arange(8.0);
    {
      const DeviceScope scope(device);
      for (int i = 0; i < 50; ++i) x = x * 0.5f + x * 0.5f;
    }
    const std::vector<float> expected = {0, 1, 2, 3, 4, 5, 6, 7};
    on_threads(8, [&](int) { EXPECT_EQ(x.to_vector<float>(), expected); });
    EXPECT_EQ(device.launches, 150);
  }
}

TEST(Threads, OverlappingGraphsFromBothEnds) {
  for (int round = 0; round < 50; ++round) {
    std::vector<Array> nodes = {arange(4.0)};
    for (int i = 0; i < 100; ++i) nodes.push_back(nodes.back() + 1.0f);
    on_threads(2, [&](int thread) {
      if (thread == 0) {
        for (int i = 100; i > 0; i -= 7) {
          EXPECT_FLOAT_EQ(nodes[i].to_vector<float>()[3], 3.0f + static_cast<float>(i));
        }
      } else {
        for (int i = 1; i <= 100; i += 7) {
          EXPECT_FLOAT_EQ(nodes[i].to_vector<float>()[3], 3.0f + static_cast<float>(i));
        }
      }
    });
  }
}

TEST(Threads, ThePairOfAnOpIsNotADeadlock) {
  // Two threads want two halves in opposite order, each on a device of its own.
  TestDeviceOptions options;
  options.later = true;
  TestDevice one("one", options), two("two", options);
  for (int round = 0; round < 50; ++round) {
    const Array x = arange(16.0);
    const auto on = [&](Device& device, const Array& a) {
      const DeviceScope scope(device);
      return a + 1.0f;
    };
    const Array a = on(one, x), b = on(two, x);
    const Array c = on(one, b), d = on(two, a);
    on_threads(2, [&](int thread) {
      thread == 0 ? eval(c, d) : eval(d, c);
      EXPECT_FLOAT_EQ(c.to_vector<float>()[1], 3);
      EXPECT_FLOAT_EQ(d.to_vector<float>()[1], 3);
    });
  }
}

TEST(Threads, TheOwnersErrorIsTheWaitersError) {
  for (int round = 0; round < 50; ++round) {
    const Array bad = take(arange(4.0), Array({9}));
    Array x = bad;
    for (int i = 0; i < 20; ++i) x = x + 1.0f;
    std::vector<std::string> messages(8);
    on_threads(8, [&](int i) {
      try {
        x.eval();
      } catch (const Error& error) {
        messages[i] = error.what();
      }
    });
    for (const std::string& message : messages) EXPECT_EQ(message, messages[0]);
    EXPECT_THAT(messages[0], testing::HasSubstr("9"));
  }
}

TEST(Threads, HandlesDroppedElsewhereMakeDonationSafe) {
  for (int round = 0; round < 200; ++round) {
    Array x = arange(1024.0) + 0.0f;
    x.eval();
    Array mine = x;
    const Array sum_before = sum(mine);
    std::thread reader([handle = std::move(mine)]() mutable {
      const std::vector<float> seen = handle.to_vector<float>();
      for (int i = 0; i < 1024; ++i) ASSERT_EQ(seen[i], static_cast<float>(i));
      handle = Array(0.0f);
    });
    const Array y = x * 0.0f;
    x = Array(0.0f);
    y.eval();
    reader.join();
    EXPECT_FLOAT_EQ(sum_before.item<float>(), 1024 * 1023 / 2);
  }
}

/// A random graph: each thread evaluates random nodes of it; the values are those of one thread.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed, Device* device) : random_(seed) {
    std::vector<double> first(8);
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<double>(i);
    add(arange(8.0), first, false);
    for (int i = 0; i < 120; ++i) {
      std::optional<DeviceScope> scope;
      if (device && random_() % 3 == 0) scope.emplace(*device);
      grow();
    }
  }

  std::size_t size() const { return nodes_.size(); }
  void check(std::size_t i) const {
    if (fails_[i]) {
      EXPECT_THROW(nodes_[i].eval(), Error);
    } else {
      expect_near(nodes_[i], values_[i], 1e-5);
    }
  }
  void drop(std::size_t keep_every) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (i % keep_every != 0) nodes_[i] = Array(0.0f), values_[i] = {0.0}, fails_[i] = false;
    }
  }

 private:
  void add(Array a, std::vector<double> values, bool fails) {
    nodes_.push_back(std::move(a));
    values_.push_back(std::move(values));
    fails_.push_back(fails);
  }

  void grow() {
    const std::size_t a = random_() % nodes_.size(), b = random_() % nodes_.size();
    std::vector<double> result = values_[a];
    switch (random_() % 12) {
      case 0: {
        const DeviceScope here(cpu_device());  // elsewhere, all that shared its batch would fail
        add(take(nodes_[a], Array({0, 1, 2, 3, 4, 5, 6, 8}), 0), result, true);
        return;
      }
      case 1:
      case 2:
      case 3:
        for (double& v : result) v = std::sin(v);
        add(sin(nodes_[a]), result, fails_[a]);
        return;
      case 4:
        std::rotate(result.begin(), result.begin() + 4, result.end());
        add(concatenate({slice(nodes_[a], {4}, {8}), slice(nodes_[a], {0}, {4})}), result,
            fails_[a]);
        return;
      default:
        for (std::size_t i = 0; i < result.size(); ++i) result[i] = (result[i] + values_[b][i]) / 2;
        add((nodes_[a] + nodes_[b]) * 0.5f, result, fails_[a] || fails_[b]);
    }
  }

  std::mt19937 random_;
  std::vector<Array> nodes_;
  std::vector<std::vector<double>> values_;
  std::vector<bool> fails_;
};

TEST(Threads, RandomGraphsGiveTheSequentialResults) {
  TestDeviceOptions options;
  options.later = options.hide_memory = true;
  TestDevice device("random", options);
  for (unsigned seed = 1; seed <= 12; ++seed) {
    RandomGraph graph(seed, seed % 2 ? &device : nullptr);
    if (seed % 3 == 0) graph.drop(5);
    on_threads(8, [&](int thread) {
      std::mt19937 random(seed * 100 + static_cast<unsigned>(thread));
      for (int i = 0; i < 25; ++i) graph.check(random() % graph.size());
    });
  }
}

}  // namespace
}  // namespace heddle::test

// States of compiled functions: written where they lie if nobody else can see them, and left as
// they were by errors.
#include <cstring>
#include <random>
#include <thread>

#include "array/array_test_support.h"
#include "heddle/compile.h"
#include "heddle/device.h"
#include "host_math.h"

namespace heddle::test {
namespace {

const std::byte* memory_of(const Array& array) {
  return array.view().host();
}

class State : public testing::Test {
 protected:
  /// state = state + x
  ArraysFunction adds_ = compile(
      [this](const std::vector<Array>& in) {
        state_ = state_ + in[0];
        return std::vector<Array>{};
      },
      false, {&state_});
  Array state_ = Array({1.0f, 2.0f, 3.0f});
};

TEST_F(State, StaysInItsMemory) {
  const Array given = state_;
  adds_({Array(1.0f)});
  expect_near(given, {1, 2, 3});
  const std::byte* memory = memory_of(state_);
  for (int i = 0; i < 3; ++i) adds_({Array(1.0f)});
  EXPECT_EQ(memory_of(state_), memory);
  expect_near(state_, {5, 6, 7});
}

TEST_F(State, ThatSomebodyElseHoldsStaysAsItIs) {
  adds_({Array(1.0f)});
  const Array held = state_;
  adds_({Array(1.0f)});
  expect_near(held, {2, 3, 4});
  expect_near(state_, {3, 4, 5});
  const Array part = slice(state_, {1}, {3});
  part.eval();
  adds_({Array(1.0f)});
  expect_near(part, {4, 5});
  expect_near(state_, {4, 5, 6});
  const Array later = state_ * 2;  // not yet computed
  adds_({Array(1.0f)});
  expect_near(later, {8, 10, 12});
  adds_({state_});
  expect_near(state_, {10, 12, 14});
}

TEST_F(State, OfMemoryThatIsNotHeddlesIsNotWrittenTo) {
  const View view{allocate_host(12), 0, OperandSpec::contiguous({DType::f32, {3}})};
  std::memset(view.host(), 0, 12);
  state_ = Array::from_view(view);
  adds_({Array(1.0f)});
  EXPECT_EQ(reinterpret_cast<const float*>(view.host())[0], 0.0f);
  expect_near(state_, {1, 1, 1});
}

TEST(States, NobodyComputesAreTheSameArrays) {
  Array a({1.0f}), b({2.0f}), frozen({3.0f});
  const std::byte *of_a = memory_of(a), *of_b = memory_of(b), *of_frozen = memory_of(frozen);
  const ArraysFunction swaps = compile(
      [&](const std::vector<Array>&) {
        std::swap(a, b);
        return std::vector<Array>{a + frozen};
      },
      false, {&a, &b, &frozen});
  expect_near(swaps({})[0], {5});
  EXPECT_EQ(memory_of(a), of_b);
  EXPECT_EQ(memory_of(b), of_a);
  EXPECT_EQ(memory_of(frozen), of_frozen);
  expect_near(swaps({})[0], {4});
}

/// A function that counts in its state, and reads a table at a place that it computes.
class Failing : public testing::TestWithParam<bool> {
 protected:
  /// Whether the table is read after the state was written, or before.
  const bool writes_first_ = GetParam();
  Array state_ = Array({1, 2, 3}), table_ = Array({5, 6, 7});
  ArraysFunction reads_ = compile(
      [this](const std::vector<Array>& in) {
        if (writes_first_) state_ = state_ + 1;
        const Array found = take(table_, in[0] * 2, 0);
        if (!writes_first_) state_ = state_ + 1;
        return std::vector<Array>{found};
      },
      false, {&state_});
};

TEST_P(Failing, LeavesTheStateAsItWas) {
  for (int i = 0; i < 3; ++i) reads_({Array(1)});
  expect_near(state_, {4, 5, 6});
  const std::byte* memory = memory_of(state_);
  for (int i = 0; i < 2; ++i) {
    expect_invalid([&] { reads_({Array(7)}); }, {"14"});
    expect_near(state_, {4, 5, 6});
    EXPECT_EQ(memory_of(state_), memory);
  }
  expect_near(reads_({Array(1)})[0], {7});
  expect_near(state_, {5, 6, 7});
  EXPECT_EQ(memory_of(state_) == memory, !writes_first_);
}
INSTANTIATE_TEST_SUITE_P(When, Failing, testing::Bool(),
                         [](const auto& of) { return of.param ? "Written" : "NotYetWritten"; });

TEST(States, OfRandomProgramsAreWhatTheyAreUncompiled) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<Array> compiled, eager;
    for (int i = 0; i < 3; ++i) {
      for (auto* states : {&compiled, &eager})
        states->push_back(Array({1.0f * i, 0.5f, -2.0f, 1.0f + i}));
    }
    const auto program = [seed](std::vector<Array>& states) {
      std::mt19937 random(seed);
      for (int i = 0; i < 5; ++i) {
        const Array &a = states[random() % 3], &b = states[random() % 3];
        const std::vector<Array> choices{a + b, a - b, maximum(a, b), a * 0.5f, minimum(a, -b), b};
        states[random() % 3] = choices[random() % choices.size()];
      }
    };
    std::vector<Array*> pointers{&compiled[0], &compiled[1], &compiled[2]};
    const ArraysFunction step = compile(
        [&](const std::vector<Array>&) {
          program(compiled);
          return std::vector<Array>{compiled[0] + compiled[1]};
        },
        false, pointers);
    std::mt19937 random(seed);
    std::vector<std::pair<Array, std::vector<float>>> held;
    for (int call = 0; call < 5; ++call) {
      if (random() % 2) {
        const Array& one = compiled[random() % 3];
        held.emplace_back(one, one.to_vector<float>());
      }
      const Array sum = step({})[0];
      program(eager);
      EXPECT_EQ(sum.to_vector<float>(), (eager[0] + eager[1]).to_vector<float>());
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(compiled[i].to_vector<float>(), eager[i].to_vector<float>()) << i;
      for (const auto& [array, values] : held) EXPECT_EQ(array.to_vector<float>(), values);
      if (random() % 2) held.clear();
    }
  }
}

TEST(States, ThatThreadsShareTakeTurns) {
  Array count(0);
  const ArraysFunction counts = compile(
      [&](const std::vector<Array>&) {
        count = count + 1;
        return std::vector<Array>{count};
      },
      false, {&count});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) counts({});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count.item<int>(), 200);
}

TEST(States, AreNamedOnce) {
  Array state(1.0f);
  const ArraysFunction none = [](const std::vector<Array>&) { return std::vector<Array>{}; };
  expect_invalid(
      [&] {
        compile(none, false, {&state, &state});
      },
      {"compile: state 1 is named twice"});
  expect_invalid([&] { compile(none, false, {nullptr}); }, {"compile: state 0 is null"});
}

TEST(CompiledResults, AreWrittenOverLikeComputedOnes) {
  const ArrayFunction doubles = compile([](const Array& x) { return x * 2; });
  Array result = doubles(Array({1.0f, 2.0f}));
  const std::byte* memory = memory_of(result);
  Array more = result + 1.0f;
  result = Array(0.0f);
  more.eval();
  EXPECT_EQ(memory_of(more), memory);
  expect_near(more, {3, 5});
}

}  // namespace
}  // namespace heddle::test

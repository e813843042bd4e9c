// States: seeded, read, grown, shared, fed, and failed.
#include <thread>

#include "exec_test_support.h"

namespace heddle::test {
namespace {

const ErrorCode kInvalid = ErrorCode::invalid_argument;

/// Writes `tokens` rows of x into a cache, and reads them back through attention-like sums.
Graph writer(std::int64_t tokens) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({tokens, 4})), rows = builder.input("rows", i32({tokens}));
  const Array cache = write_rows(builder.state("cache", f32({8, 4})), x, rows);
  builder.output("sum", sum(cache, {0}));
  builder.update("cache", cache);
  return builder.build();
}

std::vector<float> filled(std::size_t count, float value) {
  return std::vector<float>(count, value);
}

void write(Executable& executable, std::int64_t tokens, float value, std::int32_t first_row) {
  std::vector<std::int32_t> rows;
  for (std::int64_t t = 0; t < tokens; ++t)
    rows.push_back(first_row + static_cast<std::int32_t>(t));
  executable.run({given("x", filled(static_cast<std::size_t>(tokens) * 4, value), {tokens, 4}),
                  given("rows", rows, {tokens})});
}

TEST(StateObject, BeginsAsZerosAndIsSeededResetAndGrown) {
  State state(cpu_device(), f32({2, 3}));
  EXPECT_EQ(state.read().to_vector<float>(), filled(6, 0));
  const auto g0 = state.generation();
  state.seed(Array(filled(6, 2.5f), {2, 3}));
  EXPECT_GT(state.generation(), g0);
  state.grow(4);
  EXPECT_EQ(state.spec().shape, (Shape{4, 3}));
  EXPECT_EQ(state.read_rows(1, 3).to_vector<float>(),
            (std::vector<float>{2.5f, 2.5f, 2.5f, 0, 0, 0}));
  EXPECT_EQ(state.read_rows(2, 2).shape(), (Shape{0, 3}));
  state.reset();
  EXPECT_EQ(state.read().to_vector<float>(), filled(12, 0));
  expect_error(kInvalid, "cannot shrink", [&] { state.grow(3); });
  expect_error(kInvalid, "rows 3 to 5", [&] { state.read_rows(3, 5); });
  expect_error(kInvalid, "the value f32[2, 3]", [&] { state.seed(Array(filled(6, 0), {2, 3})); });
}

TEST(StateObject, OfNoDimensions) {
  State state(cpu_device(), f32({}));
  state.seed(Array(3.0f));
  EXPECT_EQ(state.read().item<float>(), 3.0f);
  expect_error(kInvalid, "grow", [&] { state.grow(2); });
}

TEST(States, TheSameServesThePromptsPlanAndTheDecodePlan) {
  const auto prompt = compiled(writer(3)), decode = compiled(writer(1));
  const auto cache = make_ref<State>(cpu_device(), f32({8, 4}));
  prompt->bind_state("cache", cache);
  decode->bind_state("cache", cache);
  write(*prompt, 3, 1.0f, 0);
  write(*decode, 1, 10.0f, 3);
  write(*decode, 1, 100.0f, 4);
  EXPECT_EQ(decode->output("sum").to_vector<float>(), filled(4, 113));
  EXPECT_EQ(cache->read_rows(2, 6).to_vector<float>(),
            (std::vector<float>{1, 1, 1, 1, 10, 10, 10, 10, 100, 100, 100, 100, 0, 0, 0, 0}));
  EXPECT_EQ(prompt->state("cache").get(), cache.get());
}

TEST(States, BindingWhatDoesNotSuit) {
  AsyncDevice device;
  const auto executable = compiled(writer(1));
  const auto bind = [&](std::string_view name, Device& on, TensorSpec spec) {
    executable->bind_state(name, make_ref<State>(on, std::move(spec)));
  };
  expect_error(kInvalid, "there is no state 'c'", [&] { bind("c", cpu_device(), f32({8, 4})); });
  expect_error(kInvalid, "the graph needs f32[8, 4], the object is f32[8, 5]", [&] {
    bind("cache", cpu_device(), f32({8, 5}));
  });
  expect_error(kInvalid, "the graph needs", [&] {
    bind("cache", cpu_device(), {DType::f16, {8, 4}});
  });
  expect_error(kInvalid, "the graph needs", [&] { bind("cache", cpu_device(), f32({7, 4})); });
  expect_error(kInvalid, "the plan keeps it on cpu, the object is on async", [&] {
    bind("cache", device, f32({8, 4}));
  });
  expect_error(kInvalid, "there is no state 'c'", [&] { executable->state("c"); });
}

TEST(States, OneBoundToTwoNamesStopsTheRun) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({1, 4})), rows = builder.input("rows", i32({1}));
  for (const char* name : {"a", "b"}) {
    builder.update(name, write_rows(builder.state(name, f32({1, 4})), x, rows));
  }
  const auto executable = compiled(builder.build());
  const auto run = [&] {
    executable->run(
        {given("x", filled(4, 1), {1, 4}), given("rows", std::vector<std::int32_t>{0}, {1})});
  };
  const auto state = make_ref<State>(cpu_device(), f32({1, 4}));
  executable->bind_state("a", state);
  executable->bind_state("b", state);
  expect_error(kInvalid, "are bound to one object", run);
  EXPECT_EQ(state->read().to_vector<float>(), filled(4, 0));
  executable->bind_state("a", make_ref<State>(cpu_device(), f32({1, 4})));
  run();
  EXPECT_EQ(state->read().to_vector<float>(), filled(4, 1));
}

TEST(States, GrownBetweenRuns) {
  // Rows are chosen by data and nothing reads the state whole, so that it may be larger.
  GraphBuilder builder;
  const Array x = builder.input("x", f32({1, 4})), rows = builder.input("rows", i32({1}));
  builder.update("cache", write_rows(builder.state("cache", f32({2, 4})), x, rows));
  const auto executable = compiled(builder.build());
  const auto put = [&](float value, std::int32_t row) {
    executable->run(
        {given("x", filled(4, value), {1, 4}), given("rows", std::vector<std::int32_t>{row}, {1})});
  };
  put(1, 1);
  expect_error(kInvalid, "input 'rows' holds 2 at 0", [&] { put(2, 2); });
  executable->state("cache")->grow(1000);
  put(2, 999);
  EXPECT_EQ(executable->state("cache")->read_rows(1, 2).to_vector<float>(), filled(4, 1));
  EXPECT_EQ(executable->state("cache")->read_rows(999, 1000).to_vector<float>(), filled(4, 2));
  put(3, -1);  // writes nothing
  expect_error(kInvalid, "input 'rows' holds -2 at 0", [&] { put(3, -2); });
}

TEST(States, ReadWholeIsNotGrown) {
  const auto executable = compiled(writer(1));
  executable->bind_state("cache", make_ref<State>(cpu_device(), f32({8, 4})));
  expect_error(kInvalid, "the graph needs f32[8, 4]", [&] {
    executable->bind_state("cache", make_ref<State>(cpu_device(), f32({16, 4})));
  });
}

TEST(States, ClonesTakeNewOnesOrTheSame) {
  const auto first = compiled(writer(1));
  write(*first, 1, 1.0f, 0);
  const auto fresh = first->clone(), shared = first->clone(true);
  write(*fresh, 1, 5.0f, 1);
  EXPECT_EQ(fresh->output("sum").to_vector<float>(), filled(4, 5));
  write(*shared, 1, 5.0f, 1);
  EXPECT_EQ(shared->output("sum").to_vector<float>(), filled(4, 6));
  EXPECT_EQ(first->state("cache").get(), shared->state("cache").get());
  EXPECT_NE(first->state("cache").get(), fresh->state("cache").get());
}

TEST(States, RunsThatShareOneTakeTurns) {
  AsyncDevice device;
  const auto first = compiled(writer(1), {&device});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t, mine = first->clone(true)] {
      for (int i = 0; i < 20; ++i) write(*mine, 1, 1.0f, t);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first->state("cache")->read_rows(0, 5).to_vector<float>(),
            (std::vector<float>{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0}));
}

// ---- Feeds

Graph doubling(FeedKind kind, const std::string& extent = "") {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({3, 2}));
  const Array y = x * 2.0f + 1.0f;
  builder.output("y", y);
  builder.feed(x, y, kind, extent);
  return builder.build();
}

TEST(Feeds, WholeOutputAfterTheRunsReads) {
  const auto executable = compiled(doubling(FeedKind::whole));
  executable->state("x")->seed(Array(filled(6, 1), {3, 2}));
  executable->run({});
  EXPECT_EQ(executable->output("y").to_vector<float>(), filled(6, 3));
  EXPECT_EQ(executable->state("x")->read().to_vector<float>(), filled(6, 3));
  executable->run({});
  EXPECT_EQ(executable->output("y").to_vector<float>(), filled(6, 7));
}

TEST(Feeds, AnExplicitInputWinsForItsRun) {
  const auto executable = compiled(doubling(FeedKind::whole));
  executable->state("x")->seed(Array(filled(6, 100), {3, 2}));
  executable->run({given("x", filled(6, 1), {3, 2})});
  EXPECT_EQ(executable->output("y").to_vector<float>(), filled(6, 3));
  executable->run({});  // what the run before fed back
  EXPECT_EQ(executable->output("y").to_vector<float>(), filled(6, 7));
  EXPECT_EQ(executable->state("x")->read().to_vector<float>(), filled(6, 7));
}

TEST(Feeds, ThePrefixThatCounts) {
  const auto executable = compiled(doubling(FeedKind::prefix, "n"));
  for (const std::int32_t n : {2, 0, 3, 1}) {
    executable->state("x")->seed(Array(filled(6, 1), {3, 2}));
    executable->run({{"n", HostTensor(n)}});
    std::vector<float> expected = filled(6, 1);
    std::fill_n(expected.begin(), 2 * n, 3.0f);
    EXPECT_EQ(executable->state("x")->read().to_vector<float>(), expected) << n;
  }
  expect_error(kInvalid, "input 'n' holds 4", [&] {
    executable->run({{"n", HostTensor(std::int32_t{4})}});
  });
}

TEST(Feeds, OneRow) {
  GraphBuilder builder;
  const Array last = builder.input("last", f32({1, 2}));
  const Array x = builder.input("x", f32({3, 2}));
  const Array y = x + last;
  builder.output("y", y);
  builder.feed(last, y, FeedKind::row, "which");
  const auto executable = compiled(builder.build());
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  executable->run({given("x", values, {3, 2}), {"which", HostTensor(std::int32_t{1})}});
  EXPECT_EQ(executable->state("last")->read().to_vector<float>(), (std::vector<float>{3, 4}));
  executable->run({given("x", values, {3, 2}), {"which", HostTensor(std::int32_t{2})}});
  EXPECT_EQ(executable->output("y").to_vector<float>(), (std::vector<float>{4, 6, 6, 8, 8, 10}));
  EXPECT_EQ(executable->state("last")->read().to_vector<float>(), (std::vector<float>{8, 10}));
  expect_error(kInvalid, "input 'which' holds 3", [&] {
    executable->run({given("x", values, {3, 2}), {"which", HostTensor(std::int32_t{3})}});
  });
}

TEST(Feeds, OneFedInputFeedsAnother) {
  for (const bool a_first : {true, false}) {  // a <- new, b <- old a, in either order
    AsyncDevice device;
    GraphBuilder builder;
    const Array a = builder.input("a", f32({2})), b = builder.input("b", f32({2}));
    const Array next = a + b;
    builder.output("sum", next);
    if (a_first) builder.feed(a, next, FeedKind::whole);
    builder.feed(b, a, FeedKind::whole);
    if (!a_first) builder.feed(a, next, FeedKind::whole);
    const auto executable = compiled(builder.build(), {&device});
    executable->state("a")->seed(Array(filled(2, 1), {2}));
    std::vector<float> sums;
    for (int i = 0; i < 6; ++i) {
      executable->run({});
      sums.push_back(executable->output("sum").to_vector<float>()[1]);
    }
    EXPECT_EQ(sums, (std::vector<float>{1, 2, 3, 5, 8, 13})) << a_first;
  }
}

// ---- Failure

/// Writes the state, then gathers by ids that a kernel computed, which no check on the host sees.
Graph failing() {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({1, 4})), rows = builder.input("rows", i32({1}));
  const Array ids = builder.input("ids", i32({1})), fed = builder.input("fed", f32({1, 4}));
  builder.update("s", write_rows(builder.state("s", f32({2, 4})), x, rows));
  const Array y = take(builder.input("table", f32({3, 4})), ids + ids, 0) + fed;
  builder.output("y", y);
  builder.feed(fed, y, FeedKind::whole);
  return builder.build();
}

void run_failing(Executable& executable, float value, std::int32_t id) {
  executable.run(
      {given("x", filled(4, value), {1, 4}), given("rows", std::vector<std::int32_t>{0}, {1}),
       given("ids", std::vector<std::int32_t>{id}, {1}), given("table", filled(12, 1), {3, 4})});
}

class Failure : public testing::TestWithParam<bool> {
 protected:
  std::vector<Device*> devices() {
    if (!GetParam()) return {};
    return {&device_};
  }
  Device& home() { return GetParam() ? static_cast<Device&>(device_) : cpu_device(); }
  AsyncDevice device_;
};
INSTANTIATE_TEST_SUITE_P(Devices, Failure, testing::Bool());

TEST_P(Failure, MarksTheStatesThatTheRunWrote) {
  const auto executable = compiled(failing(), devices());
  run_failing(*executable, 1, 0);
  EXPECT_EQ(executable->state("fed")->read().to_vector<float>(), filled(4, 1));
  EXPECT_THROW(run_failing(*executable, 2, 50), Error);
  std::string first;
  for (int i = 0; i < 2; ++i) {
    try {
      executable->state("s")->read();
      FAIL() << "a state that a failed run wrote was read";
    } catch (const Error& error) {
      if (i > 0) {
        EXPECT_EQ(error.what(), first);
      }
      first = error.what();
    }
    EXPECT_THROW(executable->output("y"), Error);
    EXPECT_THROW(run_failing(*executable, 3, 0), Error);
  }
  for (const char* name : {"s", "fed"}) executable->state(name)->reset();
  run_failing(*executable, 4, 1);
  EXPECT_EQ(executable->state("s")->read_rows(0, 1).to_vector<float>(), filled(4, 4));
  EXPECT_EQ(executable->state("fed")->read().to_vector<float>(), filled(4, 1));
}

TEST_P(Failure, OfAStateThatIsKept) {
  const auto executable = compiled(failing(), devices());
  const auto kept = make_ref<State>(home(), f32({2, 4}), State::OnFailure::keep);
  const auto fed = make_ref<State>(home(), f32({1, 4}), State::OnFailure::keep);
  executable->bind_state("s", kept);
  executable->bind_state("fed", fed);
  run_failing(*executable, 1, 0);
  EXPECT_THROW(run_failing(*executable, 2, 50), Error);
  EXPECT_NO_THROW(kept->read());
  EXPECT_EQ(fed->read().to_vector<float>(), filled(4, 1));  // feeds happen only on success
  run_failing(*executable, 3, 1);
  EXPECT_EQ(kept->read_rows(0, 1).to_vector<float>(), filled(4, 3));
  EXPECT_EQ(fed->read().to_vector<float>(), filled(4, 2));
}

}  // namespace
}  // namespace heddle::test

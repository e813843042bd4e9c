// Executables as their callers see them: names, checks, parameters, outputs, clones.
#include <atomic>
#include <thread>

#include "exec_test_support.h"

namespace heddle::test {
namespace {

const ErrorCode kInvalid = ErrorCode::invalid_argument;

/// y = x w^T + b for rows of a table picked by ids.
class Lookup : public testing::Test {
 protected:
  Lookup() {
    GraphBuilder builder;
    const Array ids = builder.input("ids", i32({3}));
    const Array table = builder.parameter("table", f32({5, 16}));
    const Array y = linear(take(table, ids, 0), builder.parameter("w", f32({16, 16})));
    builder.output("y", y);
    builder.output("first", slice(y, {0, 0}, {3, 2}));
    executable_ = compiled(builder.build(), {}, parameters_);
    std::mt19937 random(21);
    table_ = random_floats(random, 5 * 16);
    w_ = random_floats(random, 16 * 16);
    parameters_->set("table", Array(table_, {5, 16}));
    parameters_->set("w", Array(w_, {16, 16}));
  }

  std::vector<float> expected(const std::vector<std::int32_t>& ids) const {
    std::vector<float> y;
    for (const std::int32_t id : ids) {
      for (std::size_t o = 0; o < 16; ++o) {
        double sum = 0;
        for (std::size_t i = 0; i < 16; ++i) {
          sum +=
              static_cast<double>(table_[static_cast<std::size_t>(id) * 16 + i]) * w_[o * 16 + i];
        }
        y.push_back(static_cast<float>(sum));
      }
    }
    return y;
  }
  void run(const std::vector<std::int32_t>& ids) { executable_->run({given("ids", ids, {3})}); }
  void expect_run(const std::vector<std::int32_t>& ids) {
    run(ids);
    EXPECT_THAT(executable_->output("y").to_vector<float>(),
                testing::Pointwise(testing::FloatNear(1e-5f), expected(ids)));
  }

  Ref<Parameters> parameters_ = make_ref<Parameters>();
  std::shared_ptr<Executable> executable_;
  std::vector<float> table_, w_;
};

TEST_F(Lookup, Runs) {
  EXPECT_GE(executable_->plan().load.size(), 1u);
  expect_run({4, 0, 2});
  expect_run({1, 1, 3});
}

TEST_F(Lookup, InputsThatDoNotSuit) {
  const std::vector<std::int32_t> ids{0, 1, 2};
  const std::vector<float> floats{0, 1, 2};
  expect_error(kInvalid, "there is no input 'idz'", [&] {
    executable_->run({given("ids", ids, {3}), given("idz", ids, {3})});
  });
  expect_error(kInvalid, "input 'ids' (i32[3]) is missing", [&] { executable_->run({}); });
  expect_error(kInvalid, "'ids' is given twice", [&] {
    executable_->run({given("ids", ids, {3}), given("ids", ids, {3})});
  });
  expect_error(kInvalid, "the graph takes i32[3]",
               [&] { executable_->run({given("ids", floats, {3})}); });
  expect_error(kInvalid, "the graph takes i32[3]", [&] {
    executable_->run({given("ids", ids, {1, 3})});
  });
  expect_error(kInvalid, "8 bytes", [&] {
    executable_->run({{"ids", HostTensor(i32({3}), std::as_bytes(std::span(ids)).first(8))}});
  });
  expect_run({0, 1, 2});
}

TEST_F(Lookup, IndicesOutOfBounds) {
  expect_error(kInvalid, "input 'ids' holds 5 at 1", [&] { run({0, 5, 1}); });
  expect_error(kInvalid, "input 'ids' holds -6 at 2", [&] { run({0, 4, -6}); });
  expect_run({4, 4, 0});
}

TEST_F(Lookup, ParametersMissingOrMisshapen) {
  const auto bare =
      compiled(trace([](const std::vector<Array>& x) { return std::vector<Array>{silu(x[0])}; },
                     std::vector<TensorSpec>{f32({2})}));
  bare->run({given("0", std::vector<float>{1, 2}, {2})});
  auto parameters = make_ref<Parameters>();
  const auto other = executable_->clone();
  GraphBuilder builder;
  builder.output("y", silu(builder.parameter("w", f32({16, 16}))));
  const auto lacking = compiled(builder.build(), {}, parameters);
  expect_error(kInvalid, "parameter 'w' is not set", [&] { lacking->run({}); });
  parameters->set("w", Array(std::vector<float>(32), {2, 16}));
  expect_error(kInvalid, "parameter 'w' is f32[2, 16]; the graph needs f32[16, 16]",
               [&] { lacking->run({}); });
  parameters->set("w", Array(std::vector<float>(256, 1.0f), {16, 16}));
  lacking->run({});
  EXPECT_NEAR(lacking->output("y").to_vector<float>()[0], 0.7310586f, 1e-5);
  expect_error(kInvalid, "parameter 'v' is not set", [&] { parameters->spec("v"); });
}

TEST_F(Lookup, AParameterReplacedBetweenRuns) {
  expect_run({0, 1, 2});
  for (float& w : w_) w = 1 - w;
  parameters_->set("w", Array(w_, {16, 16}));  // packed again
  expect_run({0, 1, 2});
  for (float& t : table_) t = -t;
  parameters_->set("table", Array(table_, {5, 16}));
  expect_run({4, 3, 2});
}

TEST_F(Lookup, OutputsAllSomeOrOneRow) {
  const std::vector<OutputRequest> none{{"y", std::nullopt}};
  expect_error(kInvalid, "no run yet", [&] { executable_->outputs(none); });
  run({3, 1, 0});
  const auto y = expected({3, 1, 0});
  const std::vector<OutputRequest> requests{{"first", 1}, {"y", 2}, {"first", std::nullopt}};
  const auto arrays = executable_->outputs(requests);
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_EQ(arrays[0].shape(), (Shape{2}));
  EXPECT_NEAR(arrays[0].to_vector<float>()[1], y[17], 1e-5);
  EXPECT_NEAR(arrays[1].to_vector<float>()[5], y[37], 1e-5);
  EXPECT_EQ(arrays[2].shape(), (Shape{3, 2}));
  EXPECT_NEAR(arrays[2].to_vector<float>()[4], y[32], 1e-5);
  std::vector<float> row(16);
  executable_->copy_output_row("y", 1, std::as_writable_bytes(std::span(row)));
  EXPECT_NEAR(row[3], y[19], 1e-5);
  expect_error(kInvalid, "it has no row 3", [&] {
    executable_->copy_output_row("y", 3, std::as_writable_bytes(std::span(row)));
  });
  expect_error(kInvalid, "a row is 8 bytes, not 64", [&] {
    executable_->copy_output_row("first", 0, std::as_writable_bytes(std::span(row)));
  });
  expect_error(kInvalid, "there is no output 'z'", [&] { executable_->output("z"); });
}

TEST_F(Lookup, OutputsAreNotChangedByLaterRuns) {
  run({0, 0, 0});
  const Array before = executable_->output("y");
  const auto values = expected({0, 0, 0});
  run({1, 2, 3});
  EXPECT_THAT(before.to_vector<float>(), testing::Pointwise(testing::FloatNear(1e-5f), values));
}

TEST_F(Lookup, ClonesSideBySide) {
  const auto work = [&](std::shared_ptr<Executable> mine, std::int32_t id) {
    const std::vector<std::int32_t> ids{id, (id + 1) % 5, (id + 2) % 5};
    const auto y = expected(ids);
    for (int i = 0; i < 40; ++i) {
      mine->run({given("ids", ids, {3})});
      const auto got = mine->output("y").to_vector<float>();
      for (std::size_t j = 0; j < y.size(); ++j) ASSERT_NEAR(got[j], y[j], 1e-5);
    }
  };
  std::vector<std::thread> threads;
  for (std::int32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] { work(executable_->clone(), t); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(executable_->clone()->parameters().get(), parameters_.get());
}

TEST_F(Lookup, OneExecutableFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) run({1, 2, 3});
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_run({1, 2, 3});
}

TEST(Executable, DestroyedWhileRunning) {
  AsyncOptions slow;
  slow.delay = std::chrono::milliseconds(20);
  AsyncDevice device(slow);
  Ref<Completion> end;
  {
    GraphBuilder builder;
    builder.output("y", silu(builder.input("x", f32({8}))));
    const auto executable = compiled(builder.build(), {&device});
    const std::vector<float> ones(8, 1.0f);
    const NamedTensor x = given("x", ones, {8});
    end = executable->submit({&x, 1});
  }
  EXPECT_TRUE(end->done());
  end->wait();
}

TEST(Executable, MemoryIsWhatThePlanSays) {
  GraphBuilder builder;
  builder.output("y", softmax(softmax(builder.input("x", f32({8, 16})), -1), -1));
  const auto executable = compiled(builder.build());
  EXPECT_EQ(executable->memory_bytes(), 3u * 8 * 16 * 4);  // input, arena, output
  EXPECT_EQ(planned_bytes(executable->plan()), executable->memory_bytes());
}

TEST(Executable, RowsBeyondTheExtentNeedNotBeGood) {
  GraphBuilder builder;
  const Array ids = builder.input("ids", i32({4}), "count");
  builder.output("y", take(builder.parameter("table", f32({5, 8})), ids, 0));
  const auto executable = compiled(builder.build());
  std::vector<float> table(40);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  executable->parameters()->set("table", Array(table, {5, 8}));
  const std::vector<std::int32_t> padded{3, 1, 999, -7};
  executable->run({given("ids", padded, {4}), {"count", HostTensor(std::int32_t{2})}});
  const auto y = executable->output("y").to_vector<float>();
  EXPECT_EQ(y[0], 24);
  EXPECT_EQ(y[8], 8);
  expect_error(kInvalid, "holds 999 at 2", [&] {
    executable->run({given("ids", padded, {4}), {"count", HostTensor(std::int32_t{3})}});
  });
  expect_error(kInvalid, "says that 5 rows of 'ids' count; it has 4", [&] {
    executable->run({given("ids", padded, {4}), {"count", HostTensor(std::int32_t{5})}});
  });
  expect_error(kInvalid, "says that -1 rows", [&] {
    executable->run({given("ids", padded, {4}), {"count", HostTensor(std::int32_t{-1})}});
  });
}

TEST(Executable, IndicesMayCountFromTheEnd) {
  GraphBuilder builder;
  const Array ids = builder.input("ids", i32({2}));
  const Array table = builder.parameter("table", f32({5}));
  builder.output("y", take(table, ids));
  builder.output("z", scatter_add(table, ids, Array(std::vector<float>{10, 20}, {2, 1}), 0));
  const auto executable = compiled(builder.build());
  executable->parameters()->set("table", Array({0.0f, 1.0f, 2.0f, 3.0f, 4.0f}));
  executable->run({given("ids", std::vector<std::int32_t>{-1, -5}, {2})});
  EXPECT_EQ(executable->output("y").to_vector<float>(), (std::vector<float>{4, 0}));
  EXPECT_EQ(executable->output("z").to_vector<float>(), (std::vector<float>{20, 1, 2, 3, 14}));
  expect_error(kInvalid, "holds -6 at 1; gather_rows takes -5 to 4", [&] {
    executable->run({given("ids", std::vector<std::int32_t>{4, -6}, {2})});
  });
}

TEST(ExecutableTest, RecordingsSayWhatTheirLaunchesCost) {
  AsyncOptions options;
  std::map<std::string, Cost> costs;  // by the label's op
  options.on_record = [&](std::span<const RecordedStep> steps) {
    for (const RecordedStep& step : steps) {
      const auto* launch = std::get_if<RecordedLaunch>(&step);
      if (!launch) continue;
      const bool is_linear = std::holds_alternative<Linear>(launch->label.op);
      costs[is_linear ? "linear" : "other"] = launch->cost;
    }
  };
  AsyncDevice device(options);
  GraphBuilder builder;
  const Array w = builder.parameter("w", f32({16, 32}));
  builder.output("y", tanh(linear(builder.input("x", f32({4, 32})), w)));
  const auto executable = compiled(builder.build(), {&device});
  EXPECT_EQ(costs["linear"].operations, 2.0 * 4 * 16 * 32);
  EXPECT_EQ(costs["linear"].bytes, 4.0 * (4 * 32 + 16 * 32 + 4 * 16));
  EXPECT_EQ(costs["other"].operations, 4.0 * 16);
  EXPECT_EQ(costs["other"].bytes, 4.0 * (2 * 4 * 16));
}

}  // namespace
}  // namespace heddle::test

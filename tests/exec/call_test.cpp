// Runs on arrays, without copies: what they give, what they leave, beside runs on host memory.
#include "exec_test_support.h"
#include "heddle/memory.h"

namespace heddle::test {
namespace {

class Call : public testing::TestWithParam<bool> {
 protected:
  Call() : device_(accepting("async", {"multiply", "exp"})) {
    GraphBuilder builder;
    const Array x = builder.input("x", f32({2, 3})), y = builder.input("y", f32({2, 3}));
    builder.output("product", x * y);
    builder.output("x", x);
    builder.output("constant", Array({4.0f, 5.0f}));
    builder.output("view", transpose(exp(x)));
    std::vector<Device*> devices;
    if (GetParam()) devices.push_back(&device_);
    executable_ = compiled(builder.build(), devices);
  }

  void expect_call(const std::vector<float>& x, const std::vector<float>& y) {
    const std::vector<NamedArray> inputs{{"y", Array(y, {2, 3})}, {"x", Array(x, {2, 3})}};
    expect_outputs(executable_->call(inputs), x, y);
  }
  static void expect_outputs(const std::vector<Array>& out, const std::vector<float>& x,
                             const std::vector<float>& y) {
    ASSERT_EQ(out.size(), 4u);
    std::vector<float> product(6), turned(6);
    for (std::size_t i = 0; i < 6; ++i) {
      product[i] = x[i] * y[i];
      turned[i % 3 * 2 + i / 3] = std::exp(x[i]);
    }
    EXPECT_EQ(out[0].to_vector<float>(), product);
    EXPECT_EQ(out[1].to_vector<float>(), x);
    EXPECT_EQ(out[2].to_vector<float>(), (std::vector<float>{4, 5}));
    EXPECT_EQ(out[3].shape(), (Shape{3, 2}));
    const std::vector<float> view = out[3].to_vector<float>();
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(view[i], turned[i], 1e-5f);
  }

  const std::vector<float> a_{1, 2, 3, 4, 5, 6}, b_{0, -1, 2, 0.5f, 1, 3};
  AsyncDevice device_;
  std::shared_ptr<Executable> executable_;
};

TEST_P(Call, GivesTheOutputsInTheirOrder) {
  expect_call(a_, b_);
  expect_call(b_, a_);
}

TEST_P(Call, ResultsStayAsTheyAre) {
  const std::vector<NamedArray> first{{"x", Array(a_, {2, 3})}, {"y", Array(b_, {2, 3})}};
  const std::vector<NamedArray> second{{"x", Array(b_, {2, 3})}, {"y", Array(b_, {2, 3})}};
  const std::vector<Array> one = executable_->call(first), other = executable_->call(second);
  expect_outputs(one, a_, b_);
  expect_outputs(other, b_, b_);
}

TEST_P(Call, AndRunsTakeTurns) {
  for (int i = 0; i < 3; ++i) {
    expect_call(a_, b_);
    expect_error(ErrorCode::invalid_argument, "no run yet",
                 [&] { executable_->output("product"); });
    executable_->run({given("x", b_, {2, 3}), given("y", b_, {2, 3})});
    EXPECT_EQ(executable_->output("x").to_vector<float>(), b_);
    EXPECT_EQ(executable_->output("product").to_vector<float>()[2], 4.0f);
  }
}

TEST_P(Call, TakesInputsOfAnyLayout) {
  const Array wide = reshape(arange(24.0), {4, 6});
  const Array x = slice(wide, {3, 5}, {-5, -7}, {-2, -2}), y = broadcast_to(Array(2.0f), {2, 3});
  const std::vector<NamedArray> inputs{{"x", x * 0.1f}, {"y", y}};
  expect_outputs(executable_->call(inputs), (x * 0.1f).to_vector<float>(), y.to_vector<float>());
  const std::vector<NamedArray> views{{"x", slice(wide, {1, 1}, {3, 4})}, {"y", y}};
  EXPECT_EQ(executable_->call(views)[1].to_vector<float>(),
            (std::vector<float>{7, 8, 9, 13, 14, 15}));
}

TEST_P(Call, RefusesWhatRunRefuses) {
  const Array x(a_, {2, 3});
  const std::vector<NamedArray> missing{{"x", x}}, unknown{{"x", x}, {"y", x}, {"z", x}},
      misshapen{{"x", x}, {"y", Array({1.0f})}};
  const ErrorCode invalid = ErrorCode::invalid_argument;
  expect_error(invalid, "'y'", [&] { executable_->call(missing); });
  expect_error(invalid, "'z'", [&] { executable_->call(unknown); });
  expect_error(invalid, "f32[1]", [&] { executable_->call(misshapen); });
  expect_call(a_, b_);
}

TEST_P(Call, AnInputThatFailsIsTheCallsError) {
  const Array bad = take(Array(a_, {6}), Array({0, 1, 2, 3, 4, 77}), 0);
  const std::vector<NamedArray> inputs{{"x", reshape(bad, {2, 3})}, {"y", Array(b_, {2, 3})}};
  expect_error(ErrorCode::invalid_argument, "77", [&] { executable_->call(inputs); });
  expect_call(a_, b_);
}

INSTANTIATE_TEST_SUITE_P(Devices, Call, testing::Bool(),
                         [](const auto& of) { return of.param ? "Async" : "Cpu"; });

TEST(CallOnTheCpu, LetsGoOfWhatItReadAndGave) {
  GraphBuilder builder;
  builder.output("y", builder.input("x", f32({100000})) * 2.0f);
  const auto executable = compiled(builder.build());
  const auto used = [] { return cpu_device().memory()->active(); };
  const std::size_t before = used();
  {
    const std::vector<NamedArray> inputs{{"x", contiguous(ones({100000}))}};
    const std::vector<Array> out = executable->call(inputs);
    EXPECT_GE(used(), before + 800000);
  }
  EXPECT_LT(used(), before + 400000);
}

TEST(CallOnTheCpu, StatesAndFeedsGoOnFromCallToRun) {
  GraphBuilder builder;
  const Array count = builder.input("count", f32({}));
  builder.feed(count, count + 1.0f, FeedKind::whole);
  builder.output("now", count + 0.0f);
  const auto executable = compiled(builder.build());
  EXPECT_EQ(executable->call({})[0].item<float>(), 0.0f);
  EXPECT_EQ(executable->call({})[0].item<float>(), 1.0f);
  executable->run(std::span<const NamedTensor>());
  EXPECT_EQ(executable->output("now").item<float>(), 2.0f);
  EXPECT_EQ(executable->call({})[0].item<float>(), 3.0f);
}

}  // namespace
}  // namespace heddle::test

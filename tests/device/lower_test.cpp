#include "device/lower.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "base/check.h"
#include "device/lower_reference.h"
#include "op/examples.h"
#include "support/specs.h"

namespace heddle {
namespace {

using testing::HasSubstr;

struct Case {
  Op op;
  const char* inputs;
  std::vector<std::pair<std::size_t, std::vector<double>>> given;  // operands that are not random
};

Reference random_input(const TensorSpec& spec, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Reference result{spec, std::vector<double>(static_cast<std::size_t>(elements(spec.shape)))};
  for (double& value : result.values) {
    value = normal(random);
    if (spec.dtype == DType::bool_) value = value > 0;
    if (is_integer(spec.dtype)) value = std::round(value * 3);
  }
  return result;
}

std::vector<Case> arithmetic_cases() {
  const double inf = std::numeric_limits<double>::infinity();
  return {
      {Unary{UnaryKind::silu}, "f16[2, 3]", {}},
      {Binary{BinaryKind::add}, "f32[2, 1, 3], f32[4, 1]", {}},
      {Binary{BinaryKind::multiply}, "bf16[2, 3], bf16[3]", {}},
      {Compare{CompareKind::less}, "f16[2, 1], f16[3]", {}},
      {Select{}, "bool[3, 1], f16[4], f16[]", {}},
      {GatedMultiply{}, "f32[2, 3], f32[2, 3]", {}},
      {GatedMultiply{UnaryKind::relu}, "f16[2, 3], f16[2, 3]", {}},
      {Reduce{ReduceKind::sum, {0}, false}, "f32[4, 3]", {}},
      {Reduce{ReduceKind::max, {0, 2}, true}, "f32[2, 3, 4]", {}},
      {Reduce{ReduceKind::mean, {1}, false}, "f16[2, 3, 4]", {}},
      {Reduce{ReduceKind::mean, {0, 1, 2}, false}, "f32[2, 3, 4]", {}},
      {Reduce{ReduceKind::mean, {0}, false}, "i32[4]", {}},
      {Reduce{ReduceKind::prod, {1, 2}, false}, "i8[2, 2, 2]", {}},
      {Reduce{ReduceKind::min, {2}, true}, "bf16[2, 3, 4]", {}},
      {Reduce{ReduceKind::sum, {}, false}, "bool[2, 3]", {}},
      {Reduce{ReduceKind::sum, {}, true}, "f32[2, 3]", {}},
      {Reduce{ReduceKind::sum, {1}, false}, "f32[2, 0, 3]", {}},
      {Reduce{ReduceKind::max, {1}, false}, "f32[0, 2]", {}},
      {Softmax{}, "f32[3, 5]", {}},
      {Softmax{}, "f16[5]", {}},
      {Softmax{}, "f32[3, 0]", {}},
      {RmsNorm{1e-5f, true, false}, "f64[0], f64[0]", {}},
      {LayerNorm{1e-5f, false, false}, "f64[2, 0]", {}},
      {Softmax{}, "f32[2, 3]", {{0, {-inf, -inf, -inf, -inf, 1, 900}}}},
      {Softmax{}, "f32[2, 0]", {}},
      {CausalSoftmax{}, "f32[2, 3, 5]", {}},
      {CausalSoftmax{}, "f16[5, 3]", {}},  // the first rows see nothing
      {CausalSoftmax{}, "f64[3, 0]", {}},
      {CausalSoftmax{}, "f32[2, 2]", {{0, {-inf, 900, 1, 2}}}},
      {RmsNorm{1e-5f, true, true}, "f32[2, 3, 4], f32[4], f32[4]", {}},
      {RmsNorm{1e-5f, false, false}, "f32[4]", {}},
      {RmsNorm{1e-5f, true, false}, "f16[2, 4], f32[4]", {}},
      {RmsNorm{1e-5f, true, false}, "f64[2, 4], f32[4]", {}},
      {AddRmsNorm{1e-5f, true, false}, "f32[2, 4], f32[2, 4], f32[4]", {}},
      {AddRmsNorm{1e-5f, true, true}, "f16[2, 4], f16[2, 4], f32[4], f16[4]", {}},
      {LayerNorm{1e-5f, true, true}, "f32[2, 3, 4], f32[4], f32[4]", {}},
      {LayerNorm{1e-5f, false, true}, "bf16[2, 4], f32[4]", {}},
      {Matmul{}, "f32[2, 3], f32[3, 4]", {}},
      {Matmul{}, "f16[5, 1, 2, 3], f16[6, 3, 4]", {}},
      {Matmul{}, "f32[2, 2, 2, 3], f32[2, 2, 3, 4]", {}},
      {Matmul{}, "f32[1, 2, 3], f32[3, 4]", {}},
      {Matmul{}, "f32[2, 0], f32[0, 4]", {}},
      {Linear{}, "f32[2, 3, 32], f16[5, 32], q8_0[4, 32]", {}},
      {Linear{}, "f32[32], q4_0[5, 32]", {}},
      {Linear{}, "f32[0, 32], f32[5, 32]", {}},
  };
}

std::vector<Case> row_cases() {
  const RopeAngles half{.dims = 6, .base = 500.0f, .scale = 0.5f};
  const RopeAngles pairs{.style = RopeStyle::interleaved, .dims = 8, .has_factors = true};
  const std::vector<double> positions{0, 7, 100000};
  const std::vector<double> factors{1, 2, 4, 8};
  const std::vector<double> rows{4, -1, 0};
  return {
      {Cast{DType::f16}, "q8_0[2, 32]", {}},
      {SliceUpdate{{1, 2}, {3, 5}, {1, 1}}, "f32[4, 5], f32[2, 3]", {}},
      {SliceUpdate{{3, 0, 5}, {-1, 4, 1}, {-1, 1, -1}}, "f32[4, 4, 6], f32[4, 4, 4]", {}},
      {SliceUpdate{{2, 1, 3}, {0, 3, 4}, {-1, 1, 9}}, "f32[4, 4, 6], f32[2, 2, 1]", {}},
      {SliceUpdate{{1, 3}, {-1, -1}, {-1, -1}}, "f32[2, 4], f32[2, 4]", {}},
      {SliceUpdate{{1, 0}, {1, 4}, {1, 1}}, "f32[2, 4], f32[0, 4]", {}},
      {SliceUpdate{}, "f32[], f32[]", {}},
      {GatherRows{DType::f16}, "f32[9, 3], i64[2, 2]", {{1, {0, 8, 3, 3}}}},
      {GatherRows{DType::f32}, "q8_0[9, 32], i32[]", {{1, {4}}}},
      {GatherRows{DType::f32, true}, "q8_0[9, 32], i32[2, 2]", {{1, {4, -9, -1, 0}}}},
      {WriteRows{}, "f16[5, 2], f32[3, 2], i32[3]", {{2, rows}}},
      {WriteRows{}, "q8_0[5, 32], f16[3, 32], i32[3]", {{2, rows}}},
      {Rope{half, false}, "f32[3, 2, 8], i32[3]", {{1, positions}}},
      {Rope{pairs, true}, "f32[3, 2, 8], f32[16], i32[3], f32[4]", {{2, positions}, {3, factors}}},
      {Rope{{.dims = 8}, false}, "f16[3, 1, 8], i32[3]", {{1, positions}}},
      {Rope{{.style = RopeStyle::interleaved, .dims = 4}, false},
       "f32[3, 2, 8], i32[3]",
       {{1, positions}}},
      {RopeTable{RopeStyle::split_half, true},
       "f32[3, 2, 8], f32[9, 3], f32[9, 3], i32[3]",
       {{3, {8, 0, 8}}}},
      {RopeTable{RopeStyle::interleaved, false}, "f16[3, 2, 8], f32[3, 4], f32[3, 4]", {}},
      {RopeWriteRows{true, true, pairs},
       "f16[5, 2, 8], f32[3, 2, 8], i32[3], f32[16], i32[3], f32[4]",
       {{2, rows}, {4, positions}, {5, factors}}},
      {RopeWriteRows{true, false, {}}, "f32[5, 2, 8], f32[3, 2, 8], i32[3], f32[16]", {{2, rows}}},
      {RopeWriteRows{false, false, {}}, "f32[5, 2, 8], f32[3, 2, 8], i32[3]", {{2, rows}}},
      {NormRope{1e-6f, true, half}, "f32[3, 2, 8], f32[8], i32[3]", {{2, positions}}},
      {NormRope{1e-6f, false, pairs},
       "f16[3, 2, 8], i32[3], f32[4]",
       {{1, positions}, {2, factors}}},
      {NormRopeWriteRows{1e-6f, true, pairs},
       "f16[5, 2, 8], f32[3, 2, 8], i32[3], f32[8], i32[3], f32[4]",
       {{2, rows}, {4, positions}, {5, factors}}},
      {NormRopeWriteRows{1e-6f, false, half},
       "f32[5, 2, 8], f32[3, 2, 8], i32[3], i32[3]",
       {{2, rows}, {3, positions}}},
  };
}

std::vector<Case> spatial_cases() {
  const Windows odd{{2, 1}, {1, 0}, {1, -1}, {1, 2}, {1, 3}};
  return {
      {Pad{Pad::Mode::constant, {1, 0, 2}, {0, 3, 1}}, "f32[2, 3, 4], f32[]", {}},
      {Pad{Pad::Mode::constant, {1}, {2}}, "i32[0], i32[]", {}},
      {Pad{}, "f32[], f32[]", {}},
      {Conv{plain(1)}, "f32[2, 9, 4], f32[6, 3, 4]", {}},
      {Conv{odd, 1, true}, "f16[2, 9, 5, 4], f16[6, 3, 2, 4]", {}},
      {Conv{odd, 2, true}, "f32[2, 9, 5, 4], f32[6, 3, 2, 2]", {}},
      {Conv{plain(2), 4}, "f32[2, 5, 5, 4], f32[4, 3, 2, 1]", {}},
      {Conv{plain(3)}, "f64[2, 2, 3, 4, 2], f64[0, 1, 2, 2, 2]", {}},
      {Conv{plain(1)}, "f32[0, 9, 0], f32[6, 3, 0]", {}},
      {ChannelNorm{1, 1e-5f, true, true}, "f32[2, 3, 4], f32[3], f32[3]", {}},
      {ChannelNorm{0, 1e-5f, false, true}, "f16[2, 3, 4], f32[2]", {}},
      {ChannelNorm{2, 1e-5f, false, false}, "f64[2, 3, 4]", {}},
      {ChannelNorm{0, 1e-5f, false, false}, "f32[0, 3]", {}},
      {GroupNorm{2, 1e-5f, true, true}, "f32[2, 3, 5, 4], f32[4], f32[4]", {}},
      {GroupNorm{4, 1e-5f, true, false}, "bf16[2, 4], f32[4]", {}},
      {GroupNorm{1, 1e-5f, false, true}, "f64[2, 3, 4], f64[4]", {}},
      {GroupNorm{2, 1e-5f, false, false}, "f32[0, 3, 4]", {}},
      {GroupNorm{2, 1e-5f, false, false}, "f32[2, 3, 0]", {}},
  };
}

std::vector<Case> attention_cases() {
  using enum Attention::Mask;
  const char* grouped = "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 6]";
  const char* sequence_first = "f16[2, 5, 4, 8], f16[2, 7, 2, 8], f16[2, 7, 2, 6]";
  const char* more_queries = "f32[1, 2, 7, 4], f32[1, 1, 3, 4], f32[1, 1, 3, 4]";
  const char* attend =
      "f32[5, 4, 8], f32[12, 2, 8], f16[12, 2, 8], i32[2, 3], i32[5], i32[5], i32[2]";
  const std::vector<std::pair<std::size_t, std::vector<double>>> batch{
      {3, {2, 0, -1, 1, 2, -1}}, {4, {0, 0, -1, 1, 1}}, {5, {0, 6, 0, 3, 0}}, {6, {7, 1}}};
  return {
      {Attention{.scale = 0.3f}, grouped, {}},
      {Attention{.mask = causal, .scale = 0.3f}, grouped, {}},
      {Attention{.mask = causal, .scale = 0.3f, .window = 2}, grouped, {}},
      {Attention{.mask = causal}, more_queries, {}},  // the first queries see nothing
      {Attention{.mask = causal, .scale = 0.5f, .sequence_first = true}, sequence_first, {}},
      {Attention{.mask = boolean},
       "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 6], bool[5, 7]",
       {}},
      {Attention{.mask = boolean},
       "f32[1, 1, 2, 4], f32[1, 1, 3, 4], f32[1, 1, 3, 4], bool[2, 3]",
       {{3, {0, 0, 0, 0, 1, 0}}}},
      {Attention{.mask = additive, .sequence_first = true},
       "f32[2, 5, 4, 8], f32[2, 7, 2, 8], f32[2, 7, 2, 6], f32[2, 1, 1, 7]",
       {}},
      {Attention{}, "f32[1, 2, 3, 4], f32[1, 2, 0, 4], f32[1, 2, 0, 4]", {}},
      {Attention{.scale = 0.3f, .has_sinks = true},
       "f32[2, 4, 5, 8], f32[2, 2, 7, 8], f32[2, 2, 7, 6], f32[4]",
       {}},
      {Attention{.mask = causal, .sequence_first = true, .has_sinks = true},
       "f16[2, 5, 4, 8], f16[2, 7, 2, 8], f16[2, 7, 2, 6], f16[4]",
       {}},
      {Attention{.mask = boolean, .has_sinks = true},
       "f32[1, 1, 2, 4], f32[1, 1, 3, 4], f32[1, 1, 3, 4], bool[2, 3], f32[1]",
       {{3, {0, 0, 0, 0, 1, 0}}}},
      {Attend{.scale = 0.4f, .block_size = 4}, attend, batch},
      {Attend{.scale = 0.4f, .block_size = 4, .window = 3}, attend, batch},
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto* group : {arithmetic_cases, row_cases, spatial_cases, attention_cases}) {
    for (Case& c : group()) all.push_back(std::move(c));
  }
  return all;
}

std::vector<Reference> inputs_of(const Case& c) {
  std::mt19937 random(1);
  std::vector<Reference> inputs;
  for (const TensorSpec& spec : specs(c.inputs)) inputs.push_back(random_input(spec, random));
  for (const auto& [operand, values] : c.given) inputs[operand].values = values;
  return inputs;
}

void expect_same(const std::vector<Reference>& got, const std::vector<Reference>& wanted,
                 const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(to_string(got[i].spec), to_string(wanted[i].spec)) << what;
    ASSERT_EQ(got[i].values.size(), wanted[i].values.size()) << what;
    for (std::size_t k = 0; k < got[i].values.size(); ++k) {
      const double tolerance = 1e-9 * (1 + std::abs(wanted[i].values[k]));
      ASSERT_NEAR(got[i].values[k], wanted[i].values[k], tolerance) << what << " element " << k;
    }
  }
}

TEST(Lower, ComputesWhatTheOpDoes) {
  for (const Case& c : all_cases()) {
    const std::vector<Reference> inputs = inputs_of(c);
    const std::string what = to_string(c.op) + " of " + c.inputs;
    expect_same(reference_lowered(c.op, inputs), reference(c.op, inputs), what);
  }
}

TEST(Lower, AttentionInBlocksOfQueries) {
  using enum Attention::Mask;
  // Scores of 40 queries by 2^20 keys are more than a block may have.
  const std::vector<TensorSpec> in =
      specs("f32[1, 2, 40, 4], f32[1, 1, 1048576, 4], f32[1, 1, 1048576, 4], bool[40, 1]");
  const auto blocks = [&](const Attention& op, std::size_t operands) {
    const Lowered lowered = lower(op, std::span(in).first(operands)).value();
    std::vector<std::vector<TensorSpec>> specs_of_steps;
    std::vector<std::string> keys;
    for (const LoweredStep& step : lowered.steps) {
      std::vector<TensorSpec> operand_specs;
      for (const auto& source : step.sources) {
        operand_specs.push_back(source.from_input ? in[source.index]
                                                  : specs_of_steps[source.index][source.output]);
      }
      if (std::holds_alternative<Attention>(step.op)) {
        keys.push_back(to_string(operand_specs[0].shape) + to_string(operand_specs[1].shape));
      }
      specs_of_steps.push_back(infer(step.op, operand_specs));
    }
    return keys;
  };
  EXPECT_EQ(blocks({.mask = none}, 3),
            (std::vector<std::string>{"[1, 2, 16, 4][1, 1, 1048576, 4]",
                                      "[1, 2, 16, 4][1, 1, 1048576, 4]",
                                      "[1, 2, 8, 4][1, 1, 1048576, 4]"}));
  EXPECT_EQ(blocks({.mask = causal, .window = 100}, 3),
            (std::vector<std::string>{"[1, 2, 16, 4][1, 1, 115, 4]", "[1, 2, 16, 4][1, 1, 115, 4]",
                                      "[1, 2, 8, 4][1, 1, 107, 4]"}));
  EXPECT_EQ(blocks({.mask = boolean}, 4).size(), 3u);
}

TEST(Lower, BlocksOfQueriesComputeTheSame) {
  // Few features, so that the reference is quick: 17 queries of many heads by many keys.
  const Case c{Attention{.mask = Attention::Mask::causal, .window = 5},
               "f32[1, 256, 17, 1], f32[1, 1, 4096, 1], f32[1, 1, 4096, 1]",
               {}};
  const std::vector<Reference> inputs = inputs_of(c);
  ASSERT_GT(lower(c.op, specs(c.inputs))->steps.size(), 5u);
  expect_same(reference_lowered(c.op, inputs), reference(c.op, inputs), "attention in blocks");
}

TEST(Lower, EveryStepInfersAndEveryOutputIsTheOps) {
  for (const Example& example : examples()) {
    const std::vector<TensorSpec> in = specs(example.inputs);
    const std::optional<Lowered> lowered = lower(example.op, in);
    if (!lowered) continue;
    std::vector<std::vector<TensorSpec>> results;
    const auto spec_of = [&](const LoweredStep::Source& source) {
      return source.from_input ? in.at(source.index) : results.at(source.index).at(source.output);
    };
    for (const LoweredStep& step : lowered->steps) {
      std::vector<TensorSpec> operands;
      for (const auto& source : step.sources) operands.push_back(spec_of(source));
      results.push_back(infer(step.op, operands));
      EXPECT_FALSE(is_leaf(step.op)) << to_string(example.op);
    }
    std::vector<TensorSpec> outputs;
    for (const auto& source : lowered->outputs) outputs.push_back(spec_of(source));
    EXPECT_EQ(outputs, infer(example.op, in)) << to_string(example.op);
  }
}

TEST(Lower, EndsForEveryOp) {
  const std::function<void(const Op&, std::span<const TensorSpec>, int)> descend =
      [&](const Op& op, std::span<const TensorSpec> in, int depth) {
        ASSERT_LT(depth, 16) << to_string(op);
        if (is_view(op)) return;
        const std::optional<Lowered> lowered = lower(op, in);
        if (!lowered) return;
        std::vector<std::vector<TensorSpec>> results;
        for (const LoweredStep& step : lowered->steps) {
          std::vector<TensorSpec> operands;
          for (const auto& source : step.sources) {
            operands.push_back(source.from_input ? in[source.index]
                                                 : results[source.index][source.output]);
          }
          descend(step.op, operands, depth + 1);
          results.push_back(infer(step.op, operands));
        }
      };
  for (const Example& example : examples()) descend(example.op, specs(example.inputs), 0);
}

// ---- legalize, on a device that prepares what a test lets it

class ListedKernel final : public Kernel {
 public:
  ListedKernel() : Kernel({}) {}
};

class ListedDevice final : public Device {
 public:
  using Accepts = std::function<bool(const Op&, std::span<const OperandSpec>)>;
  explicit ListedDevice(Accepts accepts) : accepts_(std::move(accepts)) {}

  std::string_view name() const noexcept override { return "listed"; }
  std::size_t alignment() const noexcept override { return 1; }
  Prepared prepare(const Op& op, std::span<const OperandSpec> inputs,
                   std::span<const OperandSpec>) override {
    if (accepts_(op, inputs)) return {std::make_shared<ListedKernel>(), {}};
    return {nullptr, "not on the list"};
  }
  Ref<Buffer> allocate(std::size_t, MemoryKind) override { fail(ErrorCode::unsupported, "none"); }
  Ref<Stream> default_stream() override { fail(ErrorCode::unsupported, "none"); }
  std::unique_ptr<Recording> record(std::span<const RecordedStep>) override { return nullptr; }
  std::unique_ptr<BindingTable> make_binding_table(std::size_t) override { return nullptr; }

 private:
  Accepts accepts_;
};

bool all_contiguous(std::span<const OperandSpec> inputs) {
  return std::ranges::all_of(inputs, is_contiguous);
}

OperandSpec transposed(const char* text) {  // [n, m] held as [m, n]
  const TensorSpec spec = heddle::spec(text);
  return {spec, {LayoutKind::strided, {1, spec.shape[0]}}};
}

Legal legalize_specs(Device& device, const Op& op, const char* inputs) {
  std::vector<OperandSpec> operands;
  for (const TensorSpec& spec : specs(inputs)) operands.push_back(OperandSpec::contiguous(spec));
  return legalize(device, op, operands);
}

TEST(Legalize, DirectWhereTheDeviceTakesIt) {
  ListedDevice device([](const Op&, auto) { return true; });
  const Legal legal = legalize_specs(device, Softmax{}, "f32[2, 3]");
  EXPECT_EQ(legal.how, Legal::How::direct);
  EXPECT_TRUE(legal.kernel);
}

TEST(Legalize, ViewsNeedNoKernel) {
  ListedDevice device([](const Op&, auto) { return false; });
  const Legal legal = legalize_specs(device, Reshape{{6}}, "f32[2, 3]");
  EXPECT_EQ(legal.how, Legal::How::direct);
  EXPECT_FALSE(legal.kernel);
}

TEST(Legalize, CopiesTheFewestInputs) {
  ListedDevice device([](const Op& op, std::span<const OperandSpec> in) {
    return std::holds_alternative<Contiguous>(op) || is_contiguous(in[0]);
  });
  const OperandSpec operands[] = {transposed("f32[2, 3]"), transposed("f32[2, 3]")};
  const Legal legal = legalize(device, Binary{BinaryKind::add}, operands);
  EXPECT_EQ(legal.how, Legal::How::contiguous);
  EXPECT_TRUE(legal.kernel);
  EXPECT_EQ(legal.copy, (std::vector<bool>{true, false}));
}

TEST(Legalize, CopiesAllInputsWhereItMust) {
  ListedDevice device([](const Op& op, std::span<const OperandSpec> in) {
    return std::holds_alternative<Contiguous>(op) || all_contiguous(in);
  });
  const OperandSpec operands[] = {transposed("bool[2, 3]"), transposed("f32[2, 3]"),
                                  OperandSpec::contiguous(spec("f32[3]"))};
  const Legal legal = legalize(device, Select{}, operands);
  EXPECT_EQ(legal.how, Legal::How::contiguous);
  EXPECT_EQ(legal.copy, (std::vector<bool>{true, true, false}));
}

TEST(Legalize, UpdatesOfSlicesAsConcatenations) {
  ListedDevice device([](const Op& op, auto) { return std::holds_alternative<Concatenate>(op); });
  const char* operands = "f32[4, 5], f32[2, 3]";
  EXPECT_EQ(legalize_specs(device, SliceUpdate{{1, 0}, {3, 3}, {1, 1}}, operands).how,
            Legal::How::lowered);
  // Elements apart have no simpler form.
  EXPECT_EQ(legalize_specs(device, SliceUpdate{{0, 0}, {4, 5}, {2, 2}}, operands).how,
            Legal::How::no);
}

TEST(Legalize, NeverCopiesAState) {
  ListedDevice device([](const Op& op, std::span<const OperandSpec> in) {
    return std::holds_alternative<Contiguous>(op) || all_contiguous(in);
  });
  const OperandSpec operands[] = {transposed("f32[9, 2]"),
                                  OperandSpec::contiguous(spec("f32[3, 2]")),
                                  OperandSpec::contiguous(spec("i32[3]"))};
  EXPECT_EQ(legalize(device, WriteRows{}, operands).how, Legal::How::no);
}

TEST(Legalize, LowersOverSeveralLevels) {
  // Elementary ops on contiguous operands of one shape, and reductions of f32 along the last axis.
  ListedDevice device([](const Op& op, std::span<const OperandSpec> in) {
    if (std::holds_alternative<Contiguous>(op) || std::holds_alternative<Arange>(op)) return true;
    if (!all_contiguous(in)) return false;
    if (std::holds_alternative<Cast>(op) || std::holds_alternative<Unary>(op)) return true;
    if (std::holds_alternative<Binary>(op)) return in[0].spec == in[1].spec;
    const auto* reduce = std::get_if<Reduce>(&op);
    return reduce && reduce->kind != ReduceKind::mean && !reduce->keepdims &&
           reduce->axes == Dims{static_cast<std::int64_t>(in[0].spec.shape.size()) - 1};
  });
  EXPECT_EQ(legalize_specs(device, LayerNorm{}, "f16[2, 3, 4], f32[4], f16[4]").how,
            Legal::How::lowered);
  EXPECT_EQ(legalize_specs(device, Softmax{}, "bf16[2, 4]").how, Legal::How::lowered);
  EXPECT_EQ(legalize_specs(device, Reduce{ReduceKind::mean, {0}, true}, "f32[2, 3]").how,
            Legal::How::lowered);
  const OperandSpec strided[] = {transposed("f32[2, 3]")};
  const Legal flat = legalize(device, Reshape{{6}}, strided);
  EXPECT_EQ(flat.how, Legal::How::lowered);
  ASSERT_EQ(flat.lowered.steps.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Contiguous>(flat.lowered.steps[0].op));
}

TEST(Legalize, SaysWhatIsLacking) {
  ListedDevice device([](const Op& op, auto) {
    return !std::holds_alternative<Softmax>(op) && !std::holds_alternative<Attention>(op) &&
           !std::holds_alternative<Reduce>(op);
  });
  const Legal legal =
      legalize_specs(device, Attention{}, "f32[1, 2, 3, 4], f32[1, 2, 3, 4], f32[1, 2, 3, 4]");
  EXPECT_EQ(legal.how, Legal::How::no);
  EXPECT_THAT(legal.reason, HasSubstr("attention on listed: not on the list"));
  EXPECT_THAT(legal.reason, HasSubstr("softmax on listed"));
  EXPECT_THAT(legal.reason, HasSubstr("reduce on listed"));
}

TEST(Legalize, PackedTablesHaveNoWayRound) {
  ListedDevice device(
      [](const Op&, std::span<const OperandSpec> in) { return all_contiguous(in); });
  const OperandSpec operands[] = {{spec("f16[32, 8]"), Layout::packed(LayoutKind::panel16)},
                                  OperandSpec::contiguous(spec("i32[3]"))};
  EXPECT_EQ(legalize(device, GatherRows{}, operands).how, Legal::How::no);
}

}  // namespace
}  // namespace heddle

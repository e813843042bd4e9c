#include "device/cpu/kernel_run.h"

namespace heddle::cpu {
namespace {

using Mask = Attention::Mask;

struct Sizes {
  std::int64_t batch = 2, heads = 4, kv_heads = 2, queries = 5, positions = 9;
  std::int64_t features = 20, value_features = 20;
  DType dtype = DType::f32;
};

Shape heads_shape(const Attention& op, std::int64_t b, std::int64_t h, std::int64_t s,
                  std::int64_t d) {
  return op.sequence_first ? Shape{b, s, h, d} : Shape{b, h, s, d};
}

std::vector<HostTensor> operands(const Attention& op, const Sizes& s) {
  return {random_tensor(s.dtype, heads_shape(op, s.batch, s.heads, s.queries, s.features), 1),
          random_tensor(s.dtype, heads_shape(op, s.batch, s.kv_heads, s.positions, s.features), 2),
          random_tensor(s.dtype,
                        heads_shape(op, s.batch, s.kv_heads, s.positions, s.value_features), 3)};
}

/// The element of a [B, H, S, D] operand (axes swapped if `sequence_first`), broadcast.
double at(const HostTensor& t, bool sequence_first, std::int64_t b, std::int64_t h, std::int64_t s,
          std::int64_t d) {
  const Dims& strides = t.operand.layout.strides;
  const Shape& shape = t.operand.spec.shape;
  const std::int64_t index[4] = {b, sequence_first ? s : h, sequence_first ? h : s, d};
  std::int64_t offset = 0;
  const std::size_t missing = 4 - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 1) offset += index[i + missing] * strides[i];
  }
  return element(t, static_cast<std::size_t>(offset));
}

bool hidden(const Attention& op, const std::vector<HostTensor>& in, const Sizes& s, std::int64_t b,
            std::int64_t h, std::int64_t i, std::int64_t j) {
  const std::int64_t position = s.positions - s.queries + i;
  if (op.mask == Mask::causal) {
    return j > position || (op.window > 0 && j <= position - op.window);
  }
  return op.mask == Mask::boolean && at(in[3], false, b, h, i, j) == 0.0;
}

std::vector<double> reference_row(const Attention& op, const std::vector<HostTensor>& in,
                                  const Sizes& s, std::int64_t b, std::int64_t h, std::int64_t i) {
  const std::int64_t kv = h / (s.heads / s.kv_heads);
  std::vector<double> scores, row(static_cast<std::size_t>(s.value_features));
  double largest = -INFINITY, sum = 0;
  for (std::int64_t j = 0; j < s.positions; ++j) {
    double score = 0;
    for (std::int64_t d = 0; d < s.features; ++d) {
      score += at(in[0], op.sequence_first, b, h, i, d) * at(in[1], op.sequence_first, b, kv, j, d);
    }
    score *= static_cast<double>(op.scale);
    if (op.mask == Mask::additive) score += at(in[3], false, b, h, i, j);
    scores.push_back(hidden(op, in, s, b, h, i, j) ? -INFINITY : score);
    largest = std::max(largest, scores.back());
  }
  for (std::int64_t j = 0; j < s.positions && largest > -INFINITY; ++j) {
    const double weight = std::exp(scores[static_cast<std::size_t>(j)] - largest);
    sum += weight;
    for (std::int64_t d = 0; d < s.value_features; ++d) {
      row[static_cast<std::size_t>(d)] += weight * at(in[2], op.sequence_first, b, kv, j, d);
    }
  }
  for (double& value : row) value = sum > 0 ? value / sum : 0.0;
  return row;
}

void expect_attention(const Attention& op, const std::vector<HostTensor>& in, const Sizes& s,
                      int threads = 1) {
  const double rounding = s.dtype == DType::f32 ? 0 : s.dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
  const HostTensor out = run_kernel(prepare_attention, op, in, {threads})[0];
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const std::vector<double> row = reference_row(op, in, s, b, h, i);
        for (std::int64_t d = 0; d < s.value_features; ++d) {
          const double expected = row[static_cast<std::size_t>(d)];
          ASSERT_NEAR(at(out, op.sequence_first, b, h, i, d), expected,
                      2e-6 + std::abs(expected) * (2e-6 + rounding))
              << to_string(Op(op)) << " at " << b << ' ' << h << ' ' << i << ' ' << d;
        }
      }
    }
  }
}

void expect_attention_everywhere(Attention op, const Sizes& s) {
  for (const bool sequence_first : {false, true}) {
    op.sequence_first = sequence_first;
    for (const Isa level : levels()) {
      const IsaScope scope(level);
      expect_attention(op, operands(op, s), s);
    }
  }
}

TEST(Attention, AgreesWithFloat64ForAllKindsOfHeads) {
  for (const Sizes& s :
       {Sizes{}, Sizes{.heads = 1, .kv_heads = 1, .queries = 1, .positions = 1},
        Sizes{.features = 1, .value_features = 3},
        Sizes{.queries = 17, .positions = 64, .features = 16, .value_features = 33},
        Sizes{.heads = 6, .kv_heads = 1, .queries = 33, .positions = 65},
        Sizes{.heads = 3, .kv_heads = 3, .features = 64, .value_features = 80},
        Sizes{.batch = 1, .heads = 2, .queries = 70, .positions = 130},
        Sizes{.batch = 1, .heads = 60, .kv_heads = 1, .queries = 2},
        Sizes{.batch = 1, .heads = 2, .features = 1024, .value_features = 8}}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      Sizes typed = s;
      typed.dtype = dtype;
      const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.features)));
      expect_attention_everywhere({.scale = scale}, typed);
      expect_attention_everywhere({.mask = Mask::causal, .scale = scale}, typed);
    }
  }
}

TEST(Attention, WindowsSeeTheLastPositions) {
  for (const std::int64_t window : {1, 2, 15, 16, 17, 63, 64, 65, 1000}) {
    expect_attention_everywhere({.mask = Mask::causal, .scale = 0.3f, .window = window},
                                {.batch = 1, .heads = 2, .queries = 70, .positions = 150});
  }
}

TEST(Attention, QueriesBeforeTheFirstPositionGiveZeros) {
  const Sizes sizes{.batch = 1, .queries = 9, .positions = 4};
  const Attention op{.mask = Mask::causal, .scale = 0.3f};
  expect_attention(op, operands(op, sizes), sizes);
}

TEST(Attention, MasksBroadcast) {
  const Sizes s{.queries = 18, .positions = 70};
  for (const Shape& shape :
       {Shape{2, 4, 18, 70}, {1, 4, 18, 70}, {2, 1, 1, 70}, {18, 70}, {70}, {2, 4, 18, 1}}) {
    for (const Isa level : levels()) {
      const IsaScope scope(level);
      Attention op{.mask = Mask::additive, .scale = 0.3f};
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        Sizes typed = s;
        typed.dtype = dtype;
        std::vector<HostTensor> in = operands(op, typed);
        in.push_back(random_tensor(dtype, shape, 4));
        expect_attention(op, in, typed);
      }
      op.mask = Mask::boolean;
      std::vector<HostTensor> in = operands(op, s);
      in.push_back(random_tensor(DType::bool_, shape, 5));
      for (std::size_t i = 0; i < in[3].bytes.size(); ++i) set_element(in[3], i, i * i % 3 == 0);
      expect_attention(op, in, s);
    }
  }
}

TEST(Attention, AFullyMaskedRowGivesZeros) {
  const Sizes s{.batch = 1, .heads = 2, .kv_heads = 1, .queries = 3, .positions = 70};
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    for (const Mask mask : {Mask::boolean, Mask::additive}) {
      const Attention op{.mask = mask, .scale = 0.3f};
      std::vector<HostTensor> in = operands(op, s);
      in.push_back(make_tensor(mask == Mask::boolean ? DType::bool_ : DType::f32, {3, 70}));
      for (std::size_t i = 0; i < 3 * 70; ++i) {
        const bool seen = i / 70 != 1 && i % 70 >= 66;  // and a first block without anything
        set_element(in[3], i, mask == Mask::boolean ? seen : seen ? 0.0 : -INFINITY);
      }
      expect_attention(op, in, s);
      const HostTensor out = run_kernel(prepare_attention, op, in)[0];
      for (std::int64_t d = 0; d < 20; ++d) EXPECT_EQ(at(out, false, 0, 1, 1, d), 0.0);
    }
  }
}

TEST(Attention, NoPositionsGiveZerosAndNoQueriesNothing) {
  for (const Mask mask : {Mask::none, Mask::causal}) {
    const Sizes none{.positions = 0};
    expect_attention({.mask = mask}, operands({}, none), none);
    const Sizes no_queries{.queries = 0};
    EXPECT_TRUE(run_kernel(prepare_attention, Attention{.mask = mask}, operands({}, no_queries))[0]
                    .bytes.empty());
  }
}

TEST(Attention, OperandsMayBeViews) {
  // q, k and v side by side in one tensor [B, S, (Hq + 2 Hkv) * D], as one product makes them.
  const Sizes s{.queries = 9, .positions = 9};
  const Attention op{.mask = Mask::causal, .scale = 0.3f, .sequence_first = true};
  const std::vector<HostTensor> dense = operands(op, s);
  std::vector<HostTensor> views;
  for (const HostTensor& t : dense) {
    const Shape& shape = t.operand.spec.shape;
    const std::int64_t row = 8 * s.features;
    views.push_back(random_tensor(
        OperandSpec{t.operand.spec, {LayoutKind::strided, {9 * row, row, s.features, 1}}}, 7));
    for (std::int64_t i = 0; i < elements(shape); ++i) {
      const std::int64_t d = i % shape[3], h = i / shape[3] % shape[2], n = i / shape[3] / shape[2];
      set_element(views.back(), static_cast<std::size_t>(n * row + h * s.features + d),
                  element(t, static_cast<std::size_t>(i)));
    }
  }
  EXPECT_EQ(run_kernel(prepare_attention, op, dense)[0].bytes,
            run_kernel(prepare_attention, op, views)[0].bytes);
}

TEST(Attention, ARowHasTheSameBitsAloneAndInCompany) {
  // The last queries of a prompt, alone and with those before them, on any number of threads.
  const Sizes s{.batch = 1, .heads = 6, .queries = 67, .positions = 700};
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    for (const std::int64_t window : {0, 90}) {
      const Attention op{
          .mask = Mask::causal, .scale = 0.3f, .window = window, .sequence_first = true};
      const std::vector<HostTensor> in = operands(op, s);
      const HostTensor all = run_kernel(prepare_attention, op, in)[0];
      const std::size_t row = 6 * 20 * sizeof(float);
      for (const int threads : {1, 2, 8}) {
        for (std::int64_t count = 1; count <= 67; count += threads == 2 ? 1 : 5) {
          std::vector<HostTensor> part = in;
          part[0] = make_tensor(DType::f32, {1, count, 6, 20});
          const auto first = static_cast<std::size_t>(67 - count);
          std::memcpy(part[0].bytes.data(), in[0].bytes.data() + first * row, part[0].bytes.size());
          const HostTensor some = run_kernel(prepare_attention, op, part, {threads})[0];
          ASSERT_TRUE(same_bytes(all, first * row, some, 0, some.bytes.size()))
              << count << " queries, threads " << threads << " level " << static_cast<int>(level);
        }
      }
    }
  }
}

TEST(Attention, WhatIsNotANumberShows) {
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    const Sizes s{.batch = 1, .heads = 1, .kv_heads = 1};
    std::vector<HostTensor> in = operands({}, s);
    in[0].as<float>()[2 * 20] = std::numeric_limits<float>::quiet_NaN();
    const HostTensor out = run_kernel(prepare_attention, Attention{}, in)[0];
    for (std::int64_t i = 0; i < 5; ++i) {
      EXPECT_EQ(std::isnan(at(out, false, 0, 0, i, 3)), i == 2);
    }
  }
}

TEST(Attention, RefusesWhatItHasNoKernelFor) {
  const auto reason = [](Sizes s) {
    return prepare(prepare_attention, Attention{}, operands({}, s)).reason;
  };
  EXPECT_THAT(reason({.dtype = DType::f64}), testing::HasSubstr("operands of f64"));
  EXPECT_THAT(reason({.features = 1025}), testing::HasSubstr("1025 features, at most 1024"));
}

}  // namespace
}  // namespace heddle::cpu

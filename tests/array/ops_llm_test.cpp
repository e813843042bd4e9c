// Functions for language models against double arithmetic.
#include <cmath>

#include "array_test_support.h"

namespace heddle::test {
namespace {

Array wave(const Shape& shape, float phase = 0) {
  return reshape(sin(arange(static_cast<double>(elements(shape))) * 0.7f + phase), shape);
}

TEST(Norms, RmsAndLayer) {
  const Array x = wave({3, 8}) * 2.0f, weight = wave({8}, 1), bias = wave({8}, 2);
  const std::vector<double> v = doubles(x), w = doubles(weight), b = doubles(bias);
  std::vector<double> rms, rms_plain, layer;
  for (int row = 0; row < 3; ++row) {
    double squares = 0, mean = 0, variance = 0;
    for (int i = 0; i < 8; ++i)
      squares += v[row * 8 + i] * v[row * 8 + i] / 8, mean += v[row * 8 + i] / 8;
    for (int i = 0; i < 8; ++i) variance += std::pow(v[row * 8 + i] - mean, 2) / 8;
    for (int i = 0; i < 8; ++i) {
      rms_plain.push_back(v[row * 8 + i] / std::sqrt(squares + 1e-5));
      rms.push_back(rms_plain.back() * w[i] + b[i]);
      layer.push_back((v[row * 8 + i] - mean) / std::sqrt(variance + 1e-5) * w[i] + b[i]);
    }
  }
  expect_near(fast::rms_norm(x, std::nullopt, 1e-5f), rms_plain, 1e-5);
  expect_near(fast::rms_norm(x, weight, 1e-5f, bias), rms, 1e-5);
  expect_near(fast::layer_norm(x, weight, bias, 1e-5f), layer, 1e-5);
  EXPECT_EQ(fast::rms_norm(astype(x, DType::f16), weight, 1e-5f).dtype(), DType::f32);
  EXPECT_EQ(fast::rms_norm(astype(x, DType::f16), astype(weight, DType::f16), 1e-5f).dtype(),
            DType::f16);
  expect_invalid([&] { fast::rms_norm(x, zeros({7}), 1e-5f); }, {"rms_norm", "f32[7]"});
  expect_invalid([&] { fast::layer_norm(Array(1.0f), std::nullopt, std::nullopt, 1e-5f); },
                 {"layer_norm"});
  expect_invalid([&] { fast::rms_norm(Array({1, 2}), std::nullopt, 1e-5f); }, {"rms_norm", "i32"});
}

TEST(Gate, MultipliesByTheActivation) {
  const Array gate({-1.0f, 2.0f}), up({3.0f, 0.5f});
  expect_near(gated_multiply(gate, up), {-3 / (1 + std::exp(1.0)), 1 / (1 + std::exp(-2.0))});
  expect_near(gated_multiply(gate, up, UnaryKind::relu), {0, 1});
  expect_invalid([&] { gated_multiply(gate, up, UnaryKind::sin); }, {"gated_multiply", "sin"});
  expect_invalid([&] { gated_multiply(gate, zeros({3})); }, {"gated_multiply", "f32[3]"});
}

/// x [T, H, D] turned in double, pair by pair.
std::vector<double> turned(const std::vector<double>& x, int heads, int width, int dims,
                           bool interleaved, const std::function<double(int t, int pair)>& angle) {
  std::vector<double> y = x;
  const int tokens = static_cast<int>(x.size()) / (heads * width);
  for (int t = 0; t < tokens; ++t) {
    for (int h = 0; h < heads; ++h) {
      for (int i = 0; i < dims / 2; ++i) {
        const int base = (t * heads + h) * width;
        const int a = base + (interleaved ? 2 * i : i);
        const int b = base + (interleaved ? 2 * i + 1 : i + dims / 2);
        const double c = std::cos(angle(t, i)), s = std::sin(angle(t, i));
        y[a] = x[a] * c - x[b] * s;
        y[b] = x[a] * s + x[b] * c;
      }
    }
  }
  return y;
}

TEST(Rope, ByAnglesAndByTables) {
  const Array x = wave({3, 2, 8});
  const Array positions({5, 0, 17});
  const int at[] = {5, 0, 17};
  const Array factors({1.0f, 2.0f, 4.0f});
  for (const RopeStyle style : {RopeStyle::interleaved, RopeStyle::split_half}) {
    const bool interleaved = style == RopeStyle::interleaved;
    const RopeAngles angles{style, 6, 100.0f, 0.5f};
    const auto angle = [&](int t, int i) { return at[t] * 0.5 * std::pow(100.0, -2.0 * i / 6); };
    expect_near(rope(x, positions, angles), turned(doubles(x), 2, 8, 6, interleaved, angle), 1e-5);
    const auto divided = [&](int t, int i) { return angle(t, i) / std::pow(2, i); };
    expect_near(rope(x, astype(positions, DType::i64), angles, factors),
                turned(doubles(x), 2, 8, 6, interleaved, divided), 1e-5);
    const Array table = reshape(arange(20.0), {20, 1}) * Array({0.5f, 0.25f});
    const auto looked_up = [&](int t, int i) { return at[t] * (i == 0 ? 0.5 : 0.25); };
    expect_near(rope_table(x, cos(table), sin(table), positions, style),
                turned(doubles(x), 2, 8, 4, interleaved, looked_up), 1e-5);
    const Array by_token = take(table, positions, 0);
    expect_near(rope_table(x, cos(by_token), sin(by_token), std::nullopt, style),
                turned(doubles(x), 2, 8, 4, interleaved, looked_up), 1e-5);
  }
  expect_invalid([&] { rope(x, positions, {RopeStyle::split_half, 7}); }, {"rope", "7"});
  expect_invalid([&] { rope(x, Array({1, 2}), {RopeStyle::split_half, 8}); }, {"rope", "i32[2]"});
  expect_invalid([&] { rope(x, wave({3}), {RopeStyle::split_half, 8}); }, {"rope", "f32[3]"});
}

TEST(Rope, TheFastFormTurnsAlongTheSecondLastAxis) {
  const Array x = wave({2, 3, 4, 8});  // [B, H, T, D]
  for (const bool traditional : {false, true}) {
    const Array by_token = reshape(transpose(x, {2, 0, 1, 3}), {4, 6, 8});
    const auto angle = [&](int t, int i) {
      return (t + 7) * 2.0 * std::pow(10000.0, -2.0 * i / 8);
    };
    const std::vector<double> expected = turned(doubles(by_token), 6, 8, 8, traditional, angle);
    const Array y = fast::rope(x, 8, traditional, 10000.0f, 2.0f, 7);
    EXPECT_EQ(y.spec(), x.spec());
    expect_near(transpose(y, {2, 0, 1, 3}), expected, 2e-5);
    // freqs are periods: those of the base give the same.
    std::vector<float> periods;
    for (int i = 0; i < 4; ++i) periods.push_back(std::pow(10000.0f, 2.0f * i / 8));
    const Array z = fast::rope(x, 8, traditional, std::nullopt, 2.0f, 7, Array(periods, {4}));
    expect_near(transpose(z, {2, 0, 1, 3}), expected, 2e-5);
  }
  EXPECT_EQ(fast::rope(wave({4, 8}), 4, false, 10000.0f, 1, 0).shape(), Shape({4, 8}));
  expect_invalid([&] { fast::rope(x, 8, false, std::nullopt, 1, 0); }, {"rope", "base"});
  expect_invalid([&] { fast::rope(x, 8, false, 1e4f, 1, 0, zeros({4})); }, {"rope", "base"});
  expect_invalid([&] { fast::rope(x, 10, false, 1e4f, 1, 0); }, {"rope", "10"});
  expect_invalid([&] { fast::rope(zeros({8}), 8, false, 1e4f, 1, 0); }, {"rope", "f32[8]"});
}

/// Attention over [B, H, S, D] in double; `seen(b, h, i, j)` is what is added to the score.
std::vector<double> attended(const Array& q_array, const Array& k_array, const Array& v_array,
                             double scale,
                             const std::function<double(int b, int h, int i, int j)>& added) {
  const std::vector<double> q = doubles(q_array), k = doubles(k_array), v = doubles(v_array);
  const int B = q_array.shape(0), H = q_array.shape(1), Q = q_array.shape(2), D = q_array.shape(3);
  const int G = k_array.shape(1), K = k_array.shape(2), E = v_array.shape(3);
  std::vector<double> out;
  for (int b = 0; b < B; ++b) {
    for (int h = 0; h < H; ++h) {
      const int g = b * G + h / (H / G);
      for (int i = 0; i < Q; ++i) {
        std::vector<double> score(K);
        double most = -INFINITY, total = 0;
        for (int j = 0; j < K; ++j) {
          for (int d = 0; d < D; ++d)
            score[j] += q[((b * H + h) * Q + i) * D + d] * k[(g * K + j) * D + d];
          score[j] = score[j] * scale + added(b, h, i, j);
          most = std::max(most, score[j]);
        }
        for (double& s : score) total += s = most == -INFINITY ? 0 : std::exp(s - most);
        for (int e = 0; e < E; ++e) {
          double sum = 0;
          for (int j = 0; j < K; ++j)
            sum += total == 0 ? 0 : score[j] / total * v[(g * K + j) * E + e];
          out.push_back(sum);
        }
      }
    }
  }
  return out;
}

TEST(AttentionFunctions, ScaledDotProduct) {
  const Array q = wave({2, 4, 3, 8}), k = wave({2, 2, 5, 8}, 1), v = wave({2, 2, 5, 6}, 2);
  const double scale = 1 / std::sqrt(8.0);
  const auto none = [](int, int, int, int) { return 0.0; };
  const auto causal = [](int, int, int i, int j) { return j <= i + 2 ? 0.0 : -INFINITY; };
  expect_near(fast::scaled_dot_product_attention(q, k, v), attended(q, k, v, scale, none), 1e-5);
  expect_near(fast::scaled_dot_product_attention(q, k, v, 0.3f), attended(q, k, v, 0.3f, none),
              1e-5);
  expect_near(fast::scaled_dot_product_attention(q, k, v, std::nullopt, "causal"),
              attended(q, k, v, scale, causal), 1e-5);
  const Array seen = arange(5, DType::i32) <= reshape(arange(3, DType::i32), {3, 1}) + 2;
  expect_near(fast::scaled_dot_product_attention(q, k, v, std::nullopt, "", seen),
              attended(q, k, v, scale, causal), 1e-5);
  const Array bias = wave({4, 3, 5}, 3);
  const std::vector<double> extra = doubles(bias);
  expect_near(fast::scaled_dot_product_attention(q, k, v, std::nullopt, "array", bias),
              attended(q, k, v, scale,
                       [&](int, int h, int i, int j) { return extra[(h * 3 + i) * 5 + j]; }),
              1e-5);
  expect_near(
      fast::scaled_dot_product_attention(q, k, v, std::nullopt, "", full({3, 5}, Array(false))),
      std::vector<double>(2 * 4 * 3 * 6, 0.0));
  const Array half = fast::scaled_dot_product_attention(
      astype(q, DType::f16), astype(k, DType::f16), astype(v, DType::f16));
  EXPECT_EQ(half.dtype(), DType::f16);
  expect_near(half, attended(q, k, v, scale, none), 5e-3);
  const auto refused = [&](const std::string& mode, const std::optional<Array>& mask) {
    expect_invalid([&] { fast::scaled_dot_product_attention(q, k, v, 1.0f, mode, mask); },
                   {"scaled_dot_product_attention"});
  };
  refused("casual", std::nullopt);
  refused("array", std::nullopt);
  refused("causal", seen);
  refused("", zeros({7}));
  expect_invalid([&] { fast::scaled_dot_product_attention(wave({8}), k, v); },
                 {"scaled_dot_product_attention", "f32[8]"});
  expect_invalid(
      [&] {
        fast::scaled_dot_product_attention(q, wave({2, 3, 5, 8}), v);
      },
      {"scaled_dot_product_attention"});
}

TEST(AttentionFunctions, SequenceFirstIsTheSameTransposed) {
  const Array q = wave({1, 4, 3, 8}), k = wave({1, 2, 5, 8}, 1), v = wave({1, 2, 5, 8}, 2);
  Attention params;
  params.mask = Attention::Mask::causal;
  params.window = 2;
  const std::vector<double> expected = attended(
      q, k, v, 1, [](int, int, int i, int j) { return j <= i + 2 && j > i ? 0.0 : -INFINITY; });
  expect_near(attention(q, k, v, params), expected, 1e-5);
  params.sequence_first = true;
  const Array y = attention(swapaxes(q, 1, 2), swapaxes(k, 1, 2), swapaxes(v, 1, 2), params);
  expect_near(swapaxes(y, 1, 2), expected, 1e-5);
  expect_invalid([&] { attention(q, k, v, params, zeros({1})); }, {"attention"});
}

TEST(AttentionFunctions, AttendReadsStatesThroughBlockTables) {
  // Two sequences in blocks of two rows; sequence 1 lies in blocks 2, 0 and sequence 0 in 1.
  const Array k = wave({6, 1, 4}, 1), v = wave({6, 1, 4}, 2), q = wave({3, 2, 4});
  const Array table = reshape(Array({1, 0, 2, 0}), {2, 2});
  Attend params;
  params.block_size = 2;
  params.scale = 0.5f;
  const Array y =
      attend(q, k, v, table, Array({0, 1, -1}), Array({1, 2, 0}), Array({2, 3}), params);
  const auto rows = [](const Array& a, std::vector<int> which) {
    const Array at(which, {static_cast<std::int64_t>(which.size())});
    return expand_dims(swapaxes(take(a, at, 0), 0, 1), 0);
  };
  const auto all = [](int, int, int, int) { return 0.0; };
  const auto token = [&](int t) {
    return expand_dims(swapaxes(slice(q, {t, 0, 0}, {t + 1, 2, 4}), 0, 1), 0);
  };
  std::vector<double> expected = attended(token(0), rows(k, {2, 3}), rows(v, {2, 3}), 0.5, all);
  const std::vector<double> second =
      attended(token(1), rows(k, {4, 5, 0}), rows(v, {4, 5, 0}), 0.5, all);
  expected.insert(expected.end(), second.begin(), second.end());
  expected.insert(expected.end(), 8, 0.0);
  expect_near(y, expected, 1e-5);
  expect_invalid(
      [&] {
        attend(q, k, v, table, Array({0, 1}), Array({1, 2, 0}), Array({2, 3}), params);
      },
      {"attend", "seq"});
}

TEST(WriteRows, RefusesWhatDoesNotFit) {
  expect_invalid(
      [] {
        write_rows(zeros({4, 2}), zeros({2, 3}), Array({0, 1}));
      },
      {"write_rows", "f32[2, 3]", "f32[4, 2]"});
  expect_invalid([] { write_rows(zeros({4, 2}), zeros({2, 2}), Array({0})); }, {"write_rows"});
  expect_invalid(
      [] {
        write_rows(zeros({4, 2}), zeros({2, 2}), Array({0.0f, 1.0f}));
      },
      {"write_rows", "f32[2]"});
  const Array beyond = write_rows(zeros({4, 2}), zeros({2, 2}), Array({0, 4}));
  expect_invalid([&] { beyond.eval(); }, {"4"});
}

// ---- What MLX's fast takes besides

TEST(FastRope, OffsetsAreArrays) {
  const Array x = wave({2, 3, 4, 6});
  const auto rope_of = [](const Array& a, int offset) {
    return doubles(fast::rope(a, 4, false, 100.0f, 0.5f, offset));
  };
  expect_near(fast::rope(x, 4, false, 100.0f, 0.5f, Array(7)), rope_of(x, 7));
  expect_near(fast::rope(x, 4, false, 100.0f, 0.5f, Array({7u})), rope_of(x, 7));
  // One for each entry of the batch, whatever the rank.
  const Array offsets(std::vector<std::int64_t>{7, -2}, {2});
  for (const Shape& shape : {Shape{2, 3, 4, 6}, Shape{2, 4, 6}, Shape{2, 3, 1, 4, 6}}) {
    const Array a = wave(shape);
    Dims start(shape.size(), 0), middle = start;
    middle[0] = 1;
    Shape first = shape;
    first[0] = 1;
    std::vector<double> want = rope_of(slice(a, start, first), 7);
    const std::vector<double> second = rope_of(slice(a, middle, shape), -2);
    want.insert(want.end(), second.begin(), second.end());
    const Array turned = fast::rope(a, 4, false, 100.0f, 0.5f, offsets);
    EXPECT_EQ(turned.shape(), shape);
    expect_near(turned, want);
  }
  EXPECT_EQ(fast::rope(astype(x, DType::bf16), 6, true, 100.0f, 1.0f, offsets).dtype(),
            DType::bf16);
  expect_invalid(
      [&] {
        fast::rope(x, 4, false, 100.0f, 1.0f, Array({1, 2, 3}));
      },
      {"rope", "i32[3]", "[2]"});
}

TEST(FastAttention, SinksJoinTheDenominator) {
  const Array q = wave({1, 2, 3, 4}), k = wave({1, 1, 5, 4}, 1), v = wave({1, 1, 5, 4}, 2);
  const Array sinks({0.5f, -1.0f});
  const Array seen =
      expand_dims(arange(0, 5, 1, DType::i32), 0) <= expand_dims(arange(2, 5, 1, DType::i32), 1);
  const Array scores = exp(matmul(q, swapaxes(k, -1, -2)) * 0.5f) * astype(seen, DType::f32);
  const Array all = sum(scores, -1, true) + reshape(exp(sinks), {1, 2, 1, 1});
  const std::vector<double> want = doubles(matmul(scores / all, v));
  expect_near(fast::scaled_dot_product_attention(q, k, v, 0.5f, "causal", {}, sinks), want, 1e-5);
  expect_near(fast::scaled_dot_product_attention(q, k, v, 0.5f, "", seen, sinks), want, 1e-5);
  const Array half = fast::scaled_dot_product_attention(
      astype(q, DType::f16), astype(k, DType::f16), astype(v, DType::f16), 0.5f, "causal", {},
      astype(sinks, DType::f16));
  EXPECT_EQ(half.dtype(), DType::f16);
  expect_near(half, want, 5e-3);
  expect_invalid(
      [&] {
        fast::scaled_dot_product_attention(astype(q, DType::f16), astype(k, DType::f16),
                                           astype(v, DType::f16), 0.5f, "causal", {}, sinks);
      },
      {"sinks", "f32[2]", "f16"});
}

TEST(NormRopeFunctions, AreTheirParts) {
  const Array x = wave({3, 2, 8}), weight = wave({8}, 1), positions({5, 0, 9});
  const RopeAngles angles{.dims = 6};
  const Array parts = rope(fast::rms_norm(x, weight, 1e-5f), positions, angles);
  expect_near(norm_rope(x, weight, 1e-5f, positions, angles), doubles(parts));
  expect_near(norm_rope(x, std::nullopt, 1e-5f, astype(positions, DType::i64), angles),
              doubles(rope(fast::rms_norm(x, std::nullopt, 1e-5f), positions, angles)));
  const Array rows({3, -1, 0});
  expect_near(norm_rope_write_rows(zeros({4, 2, 8}), x, rows, weight, 1e-5f, positions, angles),
              doubles(write_rows(zeros({4, 2, 8}), parts, rows)));
}

TEST(CausalSoftmaxFunction, SeesWhatCameBefore) {
  const Array scores = reshape(Array({1.0f, 2.0f, 3.0f, 0.0f, 0.0f, 0.0f}), {2, 3});
  const double e = std::exp(1.0);
  expect_near(causal_softmax(scores), {1 / (1 + e), e / (1 + e), 0, 1.0 / 3, 1.0 / 3, 1.0 / 3});
  EXPECT_EQ(causal_softmax(astype(scores, DType::i32)).dtype(), DType::f32);
}

}  // namespace
}  // namespace heddle::test

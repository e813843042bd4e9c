// Calls that no operand makes right: counts, extents, numbers.
#include <limits>

#include "bad_input_walk.h"

namespace heddle::test {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNaNf = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinityf = std::numeric_limits<float>::infinity();
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

Array floats(const Shape& shape) {
  return zeros_of({DType::f32, shape});
}
Array ints(const Shape& shape) {
  return zeros_of({DType::i32, shape});
}
Array blocks() {
  return zeros_of({DType::q8_0, {2, 64}});
}

void add_creation(std::vector<Refused>& all) {
  all.insert(all.end(), {
                            {"arange", {"nan"}, [] { arange(kNaN); }},
                            {"arange", {"inf"}, [] { arange(kInfinity); }},
                            {"arange", {"-inf"}, [] { arange(-kInfinity, 0); }},
                            {"arange", {"nan"}, [] { arange(0, 1, kNaN); }},
                            {"arange", {"by 0"}, [] { arange(0, 1, 0); }},
                            {"arange", {"too many"}, [] { arange(1e300); }},
                            {"arange", {"bool"}, [] { arange(3, DType::bool_); }},
                            {"arange", {"complex64"}, [] { arange(3, DType::complex64); }},
                            {"arange", {"q4_0"}, [] { arange(3, DType::q4_0); }},
                            {"full",
                             {"[-2, 3]"},
                             [] {
                               full({-2, 3}, Array(1.0f));
                             }},
                            {"full", {"f32[3]", "[2]"}, [] { full({2}, floats({3})); }},
                            {"full", {"f32[3]", "[]"}, [] { full({}, floats({3})); }},
                            {"full", {"q6_K"}, [] { full({2}, Array(1.0f), DType::q6_K); }},
                            {"full",
                             {"4611686018427387904"},
                             [] {
                               full({kHuge, kHuge}, Array(1.0f));
                             }},
                            {"zeros", {"-1"}, [] { zeros({-1}); }},
                            {"zeros", {"q8_0"}, [] { zeros({32}, DType::q8_0); }},
                            {"zeros",
                             {"4611686018427387904"},
                             [] {
                               zeros({kHuge, 8});
                             }},
                            {"ones",
                             {"-1"},
                             [] {
                               ones({3, -1});
                             }},
                            {"ones", {"q2_K"}, [] { ones({256}, DType::q2_K); }},
                            {"zeros_like", {"q8_0"}, [] { zeros_like(blocks()); }},
                            {"ones_like", {"q8_0"}, [] { ones_like(blocks()); }},
                        });
}

void add_shape(std::vector<Refused>& all) {
  all.insert(all.end(),
             {
                 {"reshape",
                  {"f32[2, 3]", "[5]"},
                  [] {
                    reshape(floats({2, 3}), {5});
                  }},
                 {"reshape",
                  {"[-1, -1]"},
                  [] {
                    reshape(floats({2, 3}), {-1, -1});
                  }},
                 {"reshape",
                  {"f32[2, 3]", "[4, -1]"},
                  [] {
                    reshape(floats({2, 3}), {4, -1});
                  }},
                 {"reshape",
                  {"f32[0, 3]", "[0, -1]"},
                  [] {
                    reshape(floats({0, 3}), {0, -1});
                  }},
                 {"reshape",
                  {"-2"},
                  [] {
                    reshape(floats({2, 3}), {-2, -3});
                  }},
                 {"reshape",
                  {"-2"},
                  [] {
                    reshape(floats({2, 3}), {-2, -1});
                  }},
                 {"reshape",
                  {"q8_0"},
                  [] {
                    reshape(blocks(), {8, 16});
                  }},
                 {"flatten",
                  {"f32[2, 3, 4]", "2", "1"},
                  [] {
                    flatten(floats({2, 3, 4}), 2, 1);
                  }},
                 {"transpose",
                  {"[0]", "f32[2, 3]"},
                  [] {
                    transpose(floats({2, 3}), {0});
                  }},
                 {"transpose",
                  {"[0, 1, 1]", "f32[2, 3]"},
                  [] {
                    transpose(floats({2, 3}), {0, 1, 1});
                  }},
                 {"transpose",
                  {"[]", "f32[2, 3]"},
                  [] {
                    transpose(floats({2, 3}), Dims{});
                  }},
                 {"transpose", {"q8_0"}, [] { transpose(blocks()); }},
                 {"swapaxes", {"q8_0"}, [] { swapaxes(blocks(), 0, 1); }},
                 {"moveaxis", {"q8_0"}, [] { moveaxis(blocks(), 0, 1); }},
                 {"squeeze",
                  {"axis 0", "f32[2, 1]"},
                  [] {
                    squeeze(floats({2, 1}), {0});
                  }},
                 {"expand_dims",
                  {"at most 8"},
                  [] {
                    expand_dims(floats({1, 1, 1, 1, 1}), {0, 1, 2, 3});
                  }},
                 {"expand_dims", {"q8_0"}, [] { expand_dims(blocks(), -1); }},
                 {"broadcast_to", {"f32[3]", "[2]"}, [] { broadcast_to(floats({3}), {2}); }},
                 {"broadcast_to",
                  {"f32[2, 3]", "[3]"},
                  [] {
                    broadcast_to(floats({2, 3}), {3});
                  }},
                 {"broadcast_to", {"[-1]"}, [] { broadcast_to(floats({1}), {-1}); }},
                 {"slice",
                  {"[0]", "f32[2, 3]"},
                  [] {
                    slice(floats({2, 3}), {0}, {1});
                  }},
                 {"slice",
                  {"[0, 0]", "[1]", "f32[2, 3]"},
                  [] {
                    slice(floats({2, 3}), {0, 0}, {1});
                  }},
                 {"slice",
                  {"[1, 1, 1]", "f32[2]"},
                  [] {
                    slice(floats({2}), {0}, {1}, {1, 1, 1});
                  }},
                 {"slice",
                  {"axis 1", "0"},
                  [] {
                    slice(floats({2, 3}), {0, 0}, {1, 1}, {1, 0});
                  }},
                 {"slice",
                  {"q8_0", "blocks"},
                  [] {
                    slice(blocks(), {0, 8}, {2, 40});
                  }},
                 {"slice",
                  {"q8_0"},
                  [] {
                    slice(blocks(), {0, 63}, {2, -99}, {1, -1});
                  }},
                 {"concatenate", {"no arrays"}, [] { concatenate({}); }},
                 {"concatenate",
                  {"f32[2, 3]", "f32[3, 2]"},
                  [] {
                    concatenate({floats({2, 3}), floats({3, 2})});
                  }},
                 {"concatenate",
                  {"f32[2, 3]", "f32[3]"},
                  [] {
                    concatenate({floats({2, 3}), floats({3})});
                  }},
                 {"concatenate",
                  {"f32", "q8_0"},
                  [] {
                    concatenate({floats({2, 64}), blocks()});
                  }},
                 {"split",
                  {"f32[2, 3]", "2"},
                  [] {
                    split(floats({2, 3}), 2, 1);
                  }},
                 {"split",
                  {"f32[2, 3]", "0"},
                  [] {
                    split(floats({2, 3}), 0);
                  }},
                 {"split",
                  {"f32[2, 3]", "-1"},
                  [] {
                    split(floats({2, 3}), -1);
                  }},
                 {"split", {"q8_0"}, [] { split(blocks(), 4, 1); }},
                 {"split", {"q8_0"}, [] { split(blocks(), std::vector<std::int64_t>{8}, 1); }},
                 {"stack", {"no arrays"}, [] { stack({}); }},
                 {"stack",
                  {"f32[2]", "f32[3]"},
                  [] {
                    stack({floats({2}), floats({3})});
                  }},
                 {"stack",
                  {"8"},
                  [] {
                    stack({floats({1, 1, 1, 1, 1, 1, 1, 1})});
                  }},
                 {"repeat",
                  {"-1"},
                  [] {
                    repeat(floats({2, 3}), -1, 0);
                  }},
                 {"repeat",
                  {"2147483647", "overflows"},
                  [] { repeat(broadcast_to(floats({1}), {kHuge / 4}), 2147483647, 0); }},
                 {"take", {"f32[3]", "integers"}, [] { take(floats({2}), floats({3})); }},
                 {"take",
                  {"bool[3]", "integers"},
                  [] {
                    take(floats({2}), zeros_of({DType::bool_, {3}}));
                  }},
                 {"take", {"f32[]"}, [] { take(floats({}), Array(0)); }},
                 {"astype", {"f32[2]", "q4_K"}, [] { astype(floats({2}), DType::q4_K); }},
                 {"dequantize", {"f32[2]"}, [] { dequantize(floats({2})); }},
             });
}

void add_elementwise(std::vector<Refused>& all) {
  all.insert(
      all.end(),
      {
          {"clip", {"neither"}, [] { clip(floats({2}), std::nullopt, std::nullopt); }},
          {"clip", {"f32[2]", "f32[3]"}, [] { clip(floats({2}), floats({3}), std::nullopt); }},
          {"clip", {"q8_0"}, [] { clip(floats({2}), std::nullopt, blocks()); }},
          {"add", {"f32[2]", "f32[3]"}, [] { floats({2}) + floats({3}); }},
          {"subtract", {"f32[2]", "f32[3]"}, [] { floats({2}) - floats({3}); }},
          {"multiply", {"f32[2]", "f32[3]"}, [] { floats({2}) * floats({3}); }},
          {"divide", {"f32[2]", "f32[3]"}, [] { floats({2}) / floats({3}); }},
          {"remainder", {"f32[2]", "f32[3]"}, [] { floats({2}) % floats({3}); }},
          {"equal", {"f32[2]", "f32[3]"}, [] { floats({2}) == floats({3}); }},
          {"not_equal", {"f32[2]", "f32[3]"}, [] { floats({2}) != floats({3}); }},
          {"less", {"f32[2]", "f32[3]"}, [] { floats({2}) < floats({3}); }},
          {"less_equal", {"f32[2]", "f32[3]"}, [] { floats({2}) <= floats({3}); }},
          {"greater", {"f32[2]", "f32[3]"}, [] { floats({2}) > floats({3}); }},
          {"greater_equal", {"f32[2]", "f32[3]"}, [] { floats({2}) >= floats({3}); }},
          {"negative", {"q8_0"}, [] { -blocks(); }},
          {"subtract", {"bool[2]"}, [] { zeros({2}, DType::bool_) - zeros({2}, DType::bool_); }},
          {"bitwise_and", {"f32[2]"}, [] { bitwise_and(floats({2}), floats({2})); }},
          {"bitwise_or", {"f32[2]"}, [] { bitwise_or(floats({2}), ints({2})); }},
          {"left_shift",
           {"bool[2]"},
           [] { left_shift(zeros({2}, DType::bool_), zeros({2}, DType::bool_)); }},
          {"right_shift", {"f32[2]"}, [] { right_shift(ints({2}), floats({2})); }},
          {"less", {"complex64"}, [] { less(zeros({2}, DType::complex64), floats({2})); }},
          {"maximum", {"complex64"}, [] { maximum(zeros({2}, DType::complex64), floats({2})); }},
          {"where", {"f32[2]", "f32[3]"}, [] { where(Array(true), floats({2}), floats({3})); }},
          {"where",
           {"q8_0"},
           [] {
             where(Array(true), floats({2, 64}), blocks());
           }},
          {"max", {"f32[0]"}, [] { max(floats({0})); }},
          {"min",
           {"f32[2, 0]"},
           [] {
             min(floats({2, 0}), 1);
           }},
          {"mean", {"f32[0]"}, [] { mean(floats({0})); }},
          {"max",
           {"complex64[2]"},
           [] {
             max(zeros_of({DType::complex64, {2}}));
           }},
          {"sum", {"q8_0"}, [] { sum(blocks()); }},
          {"prod", {"q8_0"}, [] { prod(blocks(), Dims{}); }},
          {"softmax",
           {"complex64"},
           [] {
             softmax(zeros_of({DType::complex64, {2}}));
           }},
      });
}

void add_products(std::vector<Refused>& all) {
  all.insert(all.end(),
             {
                 {"matmul", {"f32[]", "f32[2]"}, [] { matmul(floats({}), floats({2})); }},
                 {"matmul",
                  {"f32[2, 3]", "f32[2, 3]"},
                  [] {
                    matmul(floats({2, 3}), floats({2, 3}));
                  }},
                 {"matmul",
                  {"f32[2, 2, 3]", "f32[3, 3, 4]"},
                  [] {
                    matmul(floats({2, 2, 3}), floats({3, 3, 4}));
                  }},
                 {"matmul",
                  {"i32[2, 2]"},
                  [] {
                    matmul(ints({2, 2}), ints({2, 2}));
                  }},
                 {"matmul",
                  {"complex64"},
                  [] {
                    matmul(zeros({2, 2}, DType::complex64), floats({2, 2}));
                  }},
                 {"matmul",
                  {"q8_0"},
                  [] {
                    matmul(floats({3, 2}), blocks());
                  }},
                 {"linear",
                  {"weight"},
                  [] {
                    linear(floats({2, 3}), std::vector<Array>{});
                  }},
                 {"linear",
                  {"f32[3]"},
                  [] {
                    linear(floats({2, 3}), floats({3}));
                  }},
                 {"linear",
                  {"f32[4, 2]", "f32[2, 3]"},
                  [] {
                    linear(floats({2, 3}), floats({4, 2}));
                  }},
                 {"linear",
                  {"f64[4, 3]"},
                  [] {
                    linear(floats({2, 3}), zeros_of({DType::f64, {4, 3}}));
                  }},
                 {"linear",
                  {"i32[2, 3]"},
                  [] {
                    linear(ints({2, 3}), floats({4, 3}));
                  }},
                 {"gated_multiply",
                  {"f32[2]", "f32[3]"},
                  [] { gated_multiply(floats({2}), floats({3})); }},
                 {"gated_multiply",
                  {"tanh"},
                  [] { gated_multiply(floats({2}), floats({2}), UnaryKind::tanh); }},
             });
}

void rope_with(const RopeAngles& angles) {
  rope(floats({3, 2, 8}), ints({3}), angles);
}

void add_positions(std::vector<Refused>& all) {
  all.insert(
      all.end(),
      {
          {"rope", {"0 of 8"}, [] { rope_with({.dims = 0}); }},
          {"rope", {"-2 of 8"}, [] { rope_with({.dims = -2}); }},
          {"rope", {"3 of 8"}, [] { rope_with({.dims = 3}); }},
          {"rope", {"10 of 8"}, [] { rope_with({.dims = 10}); }},
          {"rope", {"base 0"}, [] { rope_with({.dims = 8, .base = 0}); }},
          {"rope", {"base -1"}, [] { rope_with({.dims = 8, .base = -1}); }},
          {"rope", {"base nan"}, [] { rope_with({.dims = 8, .base = kNaNf}); }},
          {"rope", {"base inf"}, [] { rope_with({.dims = 8, .base = kInfinityf}); }},
          {"rope", {"scale nan"}, [] { rope_with({.dims = 8, .scale = kNaNf}); }},
          {"rope", {"scale inf"}, [] { rope_with({.dims = 8, .scale = kInfinityf}); }},
          {"rope",
           {"f32[3]"},
           [] {
             rope(floats({3, 2, 8}), floats({3}), {.dims = 8});
           }},
          {"rope",
           {"i32[4]"},
           [] {
             rope(floats({3, 2, 8}), ints({4}), {.dims = 8});
           }},
          {"rope",
           {"f32[3]"},
           [] {
             rope(floats({3, 2, 8}), ints({3}), {.dims = 8}, floats({3}));
           }},
          {"rope_table",
           {"f32[9, 5]"},
           [] {
             rope_table(floats({3, 2, 8}), floats({9, 5}), floats({9, 5}), ints({3}));
           }},
          {"rope_table",
           {"f32[9, 3]"},
           [] {
             rope_table(floats({3, 2, 8}), floats({9, 4}), floats({9, 3}), ints({3}));
           }},
          {"rope_table",
           {"f32[9, 4]"},
           [] {
             rope_table(floats({3, 2, 8}), floats({9, 4}), floats({9, 4}), std::nullopt);
           }},
          {"fast::rope", {"f32[8]"}, [] { fast::rope(floats({8}), 8, false, 1e4f, 1, 0); }},
          {"fast::rope",
           {"base", "freqs"},
           [] {
             fast::rope(floats({3, 8}), 8, false, std::nullopt, 1, 0);
           }},
          {"fast::rope",
           {"base", "freqs"},
           [] {
             fast::rope(floats({3, 8}), 8, false, 1e4f, 1, 0, floats({4}));
           }},
          {"fast::rope",
           {"7 of 8"},
           [] {
             fast::rope(floats({3, 8}), 7, false, 1e4f, 1, 0);
           }},
          {"fast::rope",
           {"base 0"},
           [] {
             fast::rope(floats({3, 8}), 8, false, 0.0f, 1, 0);
           }},
          {"fast::rope",
           {"scale nan"},
           [] {
             fast::rope(floats({3, 8}), 8, false, 1e4f, kNaNf, 0);
           }},
          {"fast::rope",
           {"2147483647"},
           [] {
             fast::rope(floats({3, 8}), 8, false, 1e4f, 1, 2147483647);
           }},
          {"fast::rope",
           {"f32[5]"},
           [] {
             fast::rope(floats({3, 8}), 8, false, std::nullopt, 1, 0, floats({5}));
           }},
          {"write_rows",
           {"f32[2, 3]", "f32[4, 2]"},
           [] {
             write_rows(floats({4, 2}), floats({2, 3}), ints({2}));
           }},
          {"write_rows",
           {"i32[3]"},
           [] {
             write_rows(floats({4, 2}), floats({2, 2}), ints({3}));
           }},
          {"write_rows",
           {"f32[2]"},
           [] {
             write_rows(floats({4, 2}), floats({2, 2}), floats({2}));
           }},
          {"write_rows",
           {"i32[4, 2]", "f32[2, 2]"},
           [] {
             write_rows(ints({4, 2}), floats({2, 2}), ints({2}));
           }},
          {"write_rows", {"f32[]"}, [] { write_rows(floats({}), floats({}), ints({})); }},
          {"fast::rms_norm", {"f32[]"}, [] { fast::rms_norm(floats({}), std::nullopt, 1e-5f); }},
          {"fast::rms_norm",
           {"f32[3]"},
           [] {
             fast::rms_norm(floats({2, 4}), floats({3}), 1e-5f);
           }},
          {"fast::rms_norm",
           {"i32[2, 4]"},
           [] {
             fast::rms_norm(ints({2, 4}), std::nullopt, 1e-5f);
           }},
          {"fast::rms_norm", {"eps nan"}, [] { fast::rms_norm(floats({4}), std::nullopt, kNaNf); }},
          {"fast::rms_norm", {"eps -1"}, [] { fast::rms_norm(floats({4}), std::nullopt, -1); }},
          {"fast::rms_norm",
           {"eps inf"},
           [] { fast::rms_norm(floats({4}), std::nullopt, kInfinityf); }},
          {"fast::layer_norm",
           {"f32[5]"},
           [] {
             fast::layer_norm(floats({2, 4}), std::nullopt, floats({5}), 1e-5f);
           }},
          {"fast::layer_norm",
           {"eps nan"},
           [] { fast::layer_norm(floats({4}), std::nullopt, std::nullopt, kNaNf); }},
      });
}

void attention_with(const Attention& params, const std::optional<Array>& mask = std::nullopt) {
  attention(floats({2, 4, 3, 8}), floats({2, 2, 5, 8}), floats({2, 2, 5, 8}), params, mask);
}
void sdpa_with(const std::string& mode, const std::optional<Array>& mask,
               std::optional<float> scale = std::nullopt) {
  fast::scaled_dot_product_attention(floats({2, 4, 3, 8}), floats({2, 2, 5, 8}),
                                     floats({2, 2, 5, 8}), scale, mode, mask);
}
void sdpa_of(const Shape& q, const Shape& k, const Shape& v) {
  fast::scaled_dot_product_attention(floats(q), floats(k), floats(v));
}
void attend_with(const Attend& params) {
  const Array states = floats({64, 2, 32});
  attend(floats({3, 4, 32}), states, states, ints({2, 2}), ints({3}), ints({3}), ints({2}), params);
}

void add_attention(std::vector<Refused>& all) {
  using enum Attention::Mask;
  const char* sdpa = "fast::scaled_dot_product_attention";
  all.insert(
      all.end(),
      {
          {"attention", {"scale nan"}, [] { attention_with({.scale = kNaNf}); }},
          {"attention", {"scale inf"}, [] { attention_with({.scale = kInfinityf}); }},
          {"attention", {"window -1"}, [] { attention_with({.mask = causal, .window = -1}); }},
          {"attention", {"window 4"}, [] { attention_with({.window = 4}); }},
          {"attention", {"4 (q, k, v, mask)"}, [] { attention_with({.mask = boolean}); }},
          {"attention",
           {"3 inputs (q, k, v)"},
           [] {
             attention_with({}, floats({3, 5}));
           }},
          {"attention",
           {"f32[3, 5]", "bool"},
           [] {
             attention_with({.mask = boolean}, floats({3, 5}));
           }},
          {"attention",
           {"f32[4, 5]"},
           [] {
             attention_with({.mask = additive}, floats({4, 5}));
           }},
          {sdpa, {"\"none\""}, [] { sdpa_with("none", std::nullopt); }},
          {sdpa, {"array", "needs a mask"}, [] { sdpa_with("array", std::nullopt); }},
          {sdpa,
           {"causal", "does not go with"},
           [] {
             sdpa_with("causal", floats({3, 5}));
           }},
          {sdpa,
           {"i32[3, 5]"},
           [] {
             sdpa_with("", ints({3, 5}));
           }},
          {sdpa, {"scale nan"}, [] { sdpa_with("", std::nullopt, kNaNf); }},
          {sdpa,
           {"f32[4, 3, 8]"},
           [] {
             sdpa_of({4, 3, 8}, {2, 2, 5, 8}, {2, 2, 5, 8});
           }},
          {sdpa,
           {"f32[2, 5, 8]"},
           [] {
             sdpa_of({2, 4, 3, 8}, {2, 5, 8}, {2, 2, 5, 8});
           }},
          {sdpa,
           {"f32[2, 2, 5, 9]"},
           [] {
             sdpa_of({2, 4, 3, 8}, {2, 2, 5, 9}, {2, 2, 5, 8});
           }},
          {sdpa,
           {"f32[2, 2, 6, 8]"},
           [] {
             sdpa_of({2, 4, 3, 8}, {2, 2, 5, 8}, {2, 2, 6, 8});
           }},
          {sdpa,
           {"4 query heads", "3 key heads"},
           [] {
             sdpa_of({2, 4, 3, 8}, {2, 3, 5, 8}, {2, 3, 5, 8});
           }},
          {sdpa,
           {"4 query heads", "0 key heads"},
           [] {
             sdpa_of({2, 4, 3, 8}, {2, 0, 5, 8}, {2, 0, 5, 8});
           }},
          {"attend", {"blocks of 0"}, [] { attend_with({.block_size = 0}); }},
          {"attend", {"blocks of -1"}, [] { attend_with({.block_size = -1}); }},
          {"attend", {"window -1"}, [] { attend_with({.window = -1}); }},
          {"attend", {"scale nan"}, [] { attend_with({.scale = kNaNf}); }},
      });
}

void add_arrays(std::vector<Refused>& all) {
  const std::vector<float> three(3);
  all.insert(
      all.end(),
      {
          {"Array",
           {"f32[2, 2]", "16", "12"},
           [=] {
             Array(three, {2, 2});
           }},
          {"Array", {"-1"}, [=] { Array(three, {-1}); }},
          {"Array",
           {"q8_0[2, 33]"},
           [] {
             Array::from_bytes({DType::q8_0, {2, 33}}, {});
           }},
          {"Array",
           {"f32[2]", "8", "0"},
           [] {
             Array::from_bytes({DType::f32, {2}}, {});
           }},
          {"from_view", {"no buffer"}, [] { Array::from_view({}); }},
          {"from_view",
           {"f32[3]", "12", "8"},
           [] {
             Array::from_view({allocate_host(8), 0, OperandSpec::contiguous({DType::f32, {3}})});
           }},
          {"from_view",
           {"f32[2]", "offset 4"},
           [] {
             Array::from_view({allocate_host(8), 4, OperandSpec::contiguous({DType::f32, {2}})});
           }},
          {"item", {"f32[2]"}, [] { floats({2}).item<float>(); }},
          {"item", {"f32[]", "i32"}, [] { floats({}).item<int>(); }},
          {"to_vector", {"f32[2]", "f64"}, [] { floats({2}).to_vector<double>(); }},
          {"copy_to",
           {"f32[2]", "8", "7"},
           [] {
             std::vector<std::byte> seven(7);
             floats({2}).copy_to(seven);
           }},
          {"apply",
           {"linear", "2 outputs"},
           [] {
             heddle::apply(Linear{}, {floats({2, 3}), floats({1, 3}), floats({1, 3})});
           }},
          {"apply",
           {"contiguous", "f32[1], f32[2]"},
           [] {
             heddle::apply(Contiguous{}, {floats({1}), floats({2})});
           }},
          {"apply_multi",
           {"linear", "f32[2, 3]"},
           [] {
             apply_multi(Linear{}, {floats({2, 3})});
           }},
      });
}

}  // namespace

std::vector<Refused> refused_calls() {
  std::vector<Refused> all;
  add_creation(all);
  add_shape(all);
  add_elementwise(all);
  add_products(all);
  add_positions(all);
  add_attention(all);
  add_arrays(all);
  return all;
}

}  // namespace heddle::test

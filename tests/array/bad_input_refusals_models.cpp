// Calls of products, norms, positions and attention that no operand makes right.
#include <limits>

#include "bad_input_walk.h"

namespace heddle::test {

namespace {

constexpr float kNaNf = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinityf = std::numeric_limits<float>::infinity();

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
          {"attention", {"4 inputs (q, k, v, mask)"}, [] { attention_with({.mask = boolean}); }},
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
           {"complex64[3, 5]"},
           [] {
             sdpa_with("", zeros_of({DType::complex64, {3, 5}}));
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

}  // namespace

void add_refused_models(std::vector<Refused>& all) {
  add_products(all);
  add_positions(all);
  add_attention(all);
}

}  // namespace heddle::test

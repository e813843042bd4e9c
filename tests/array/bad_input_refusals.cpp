// Calls that no operand makes right: counts, extents, numbers.
#include <limits>

#include <gtest/gtest.h>

#include "bad_input_walk.h"
#include "heddle/device.h"
#include "heddle/graph.h"

namespace heddle::test {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

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
                 {"astype", {"f32[2]", "q4_K"}, [] { astype(floats({2}), DType::q4_K); }},
                 {"dequantize", {"f32[2]"}, [] { dequantize(floats({2})); }},
             });
}

void add_views(std::vector<Refused>& all) {
  all.insert(
      all.end(),
      {
          {"slice_update",
           {"[0]", "f32[2, 3]"},
           [] {
             slice_update(floats({2, 3}), floats({}), {0}, {1});
           }},
          {"slice_update",
           {"axis 1", "0"},
           [] {
             slice_update(floats({2, 3}), floats({}), {0, 0}, {1, 1}, {1, 0});
           }},
          {"slice_update",
           {"f32[4]", "[1, 3]"},
           [] {
             slice_update(floats({2, 3}), floats({4}), {1, 0}, {2, 3});
           }},
          {"slice_update",
           {"f32[1, 1, 1]", "[1, 3]"},
           [] {
             slice_update(floats({2, 3}), floats({1, 1, 1}), {1, 0}, {2, 3});
           }},
          {"slice_update",
           {"q8_0[2, 64]"},
           [] {
             slice_update(blocks(), floats({}), {0, 0}, {1, 32});
           }},
          {"as_strided",
           {"[7]", "f32[2, 3]", "6 elements"},
           [] {
             as_strided(floats({2, 3}), {7}, {1}, 0);
           }},
          {"as_strided", {"element -1", "f32[2]"}, [] { as_strided(floats({2}), {1}, {1}, -1); }},
          {"as_strided", {"[-1]", "f32[2]"}, [] { as_strided(floats({2}), {2}, {-1}, 0); }},
          {"as_strided",
           {"[1]", "[2, 2]"},
           [] {
             as_strided(floats({4}), {2, 2}, {1}, 0);
           }},
          {"as_strided", {"[-2]"}, [] { as_strided(floats({2}), {-2}, {1}, 0); }},
          {"as_strided",
           {"4611686018427387904"},
           [] { as_strided(floats({2}), {kHuge}, {kHuge}, 0); }},
          {"as_strided", {"f32[0]"}, [] { as_strided(floats({0}), {1}, {1}, 0); }},
          {"as_strided", {"q8_0"}, [] { as_strided(blocks(), {1}, {1}, 0); }},
          {"view",
           {"f32[2, 3]", "f64", "12 bytes"},
           [] {
             view(floats({2, 3}), DType::f64);
           }},
          {"view", {"f32[]", "u8"}, [] { view(floats({}), DType::u8); }},
          {"view", {"f32[32]", "q8_0"}, [] { view(floats({32}), DType::q8_0); }},
          {"view", {"q8_0[2, 64]"}, [] { view(blocks(), DType::u8); }},
          {"depends", {"no inputs"}, [] { depends({}, {floats({2})}); }},
          {"depends", {"no inputs"}, [] { depends({}, {}); }},
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

/// Fails when it is evaluated.
Array beyond() {
  return take(floats({2}), Array({9}));
}
const std::vector<std::string> kOutside = {"gather_rows", "9"};

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
           {"q8_0", "33"},
           [] {
             Array::from_bytes({DType::q8_0, {2, 33}}, {});
           }},
          {"Array",
           {"f32[2]", "8", "0"},
           [] {
             Array::from_bytes({DType::f32, {2}}, {});
           }},
          {"eval", kOutside,
           [] {
             eval({floats({2}), beyond()});
           }},
          {"eval", kOutside, [] { beyond().eval(); }},
          {"async_eval", kOutside, [] { async_eval(floats({2}), beyond()); }},
          {"schedule", kOutside, [] { schedule(beyond()).eval(); }},
          {"schedule", kOutside, [] { schedule(beyond()).async_eval(); }},
          {"check", kOutside,
           [] {
             const Array failed = beyond();
             EXPECT_THROW(failed.eval(), Error);
             check(floats({2}), failed);
           }},
          {"check", kOutside,
           [] {
             const Array failed = beyond();
             EXPECT_THROW(failed.eval(), Error);
             failed.check();
           }},
          {"to_string", kOutside, [] { to_string(beyond()); }},
          {"to_bytes", kOutside, [] { beyond().to_bytes(); }},
          {"view", kOutside, [] { beyond().view(); }},
          {"eval",
           {"no value"},
           [] {
             GraphBuilder().input("x", {DType::f32, {2}}).eval();
           }},
          {"StreamScope", {"no stream"}, [] { const StreamScope scope(nullptr); }},
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
  add_views(all);
  add_elementwise(all);
  add_refused_models(all);
  add_refused_quantized(all);
  add_refused_axes(all);
  add_arrays(all);
  return with_families(std::move(all), &FamilyRows::refused);
}

}  // namespace heddle::test

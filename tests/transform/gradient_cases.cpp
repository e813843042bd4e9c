#include "gradient_cases.h"

#include <algorithm>
#include <complex>

#include "heddle/fft.h"
#include "heddle/linalg.h"

namespace heddle::test {

Array random_array(std::mt19937& random, const Shape& shape, double low, double high, DType dtype) {
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<double> values(static_cast<std::size_t>(elements(shape)));
  for (double& value : values) value = uniform(random);
  return astype(Array(values, shape), dtype);
}

namespace {

/// Distances between neighbours are larger than any step of a difference.
Array distinct(std::mt19937& random, const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(elements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1 * static_cast<double>(i) - 1.03;
  std::ranges::shuffle(values, random);
  return {values, shape};
}

class Cases {
 public:
  std::vector<GradientCase> take() { return std::move(cases_); }
  std::mt19937 random{20261130};

  using Unary = Array (*)(const Arg&);
  void unary(const std::string& name, Unary f, double low, double high) {
    add(name, [f](const std::vector<Array>& x) { return std::vector<Array>{f(x[0])}; },
        {random_array(random, {3, 4}, low, high)});
  }
  using Binary = Array (*)(const Arg&, const Arg&);
  void binary(const std::string& name, Binary f, double low, double high) {
    const ArraysFunction function = [f](const std::vector<Array>& x) {
      return std::vector<Array>{f(x[0], x[1])};
    };
    add(name, function,
        {random_array(random, {2, 3}, low, high), random_array(random, {2, 3}, low, high)});
    add(name + "_broadcast", function,
        {random_array(random, {3, 1, 2}, low, high), random_array(random, {4, 1}, low, high)});
    add(name + "_scalar", function,
        {random_array(random, {3}, low, high), random_array(random, {}, low, high)});
  }
  /// Of one array.
  void one(const std::string& name, std::function<Array(const Array&)> f, const Array& x) {
    add(name, [f](const std::vector<Array>& in) { return std::vector<Array>{f(in[0])}; }, {x});
  }
  /// Of several arrays.
  GradientCase& some(const std::string& name, std::function<Array(const std::vector<Array>&)> f,
                     const std::vector<Array>& x) {
    return add(
        name, [f](const std::vector<Array>& in) { return std::vector<Array>{f(in)}; }, x);
  }
  GradientCase& add(const std::string& name, const ArraysFunction& f, std::vector<Array> inputs) {
    return cases_.emplace_back(GradientCase{name, f, std::move(inputs)});
  }
  /// Ops that compute in f32 only: differences are coarser, and second ones are left to the parts.
  void f32(const std::string& name, std::function<Array(const std::vector<Array>&)> f,
           std::vector<Array> inputs) {
    for (Array& input : inputs) input = astype(input, DType::f32);
    GradientCase& added = add(
        name, [f](const std::vector<Array>& in) { return std::vector<Array>{f(in)}; },
        std::move(inputs));
    added.step = 1e-2;
    added.tolerance = 2e-3;
    added.second_order = false;
  }
  Array array(const Shape& shape, double low = -1, double high = 1) {
    return random_array(random, shape, low, high);
  }
  Array apart(const Shape& shape) { return distinct(random, shape); }

 private:
  std::vector<GradientCase> cases_;
};

void add_unary(Cases& c) {
  c.unary("abs", abs, 0.1, 2);
  c.unary("negative", negative, -1, 1);
  c.unary("square", square, -1, 1);
  c.unary("sqrt", sqrt, 0.2, 2);
  c.unary("rsqrt", rsqrt, 0.2, 2);
  c.unary("reciprocal", reciprocal, 0.5, 2);
  c.unary("exp", exp, -1, 1);
  c.unary("expm1", expm1, -1, 1);
  c.unary("log", log, 0.2, 2);
  c.unary("log2", log2, 0.2, 2);
  c.unary("log10", log10, 0.2, 2);
  c.unary("log1p", log1p, -0.5, 1);
  c.unary("sin", sin, -2, 2);
  c.unary("cos", cos, -2, 2);
  c.unary("tan", tan, -1, 1);
  c.unary("sinh", sinh, -1, 1);
  c.unary("cosh", cosh, -1, 1);
  c.unary("tanh", tanh, -1, 1);
  c.unary("arcsin", arcsin, -0.8, 0.8);
  c.unary("arccos", arccos, -0.8, 0.8);
  c.unary("arctan", arctan, -2, 2);
  c.unary("sigmoid", sigmoid, -2, 2);
  c.unary("silu", silu, -2, 2);
  c.unary("gelu", gelu, -2, 2);
  c.unary("gelu_tanh", gelu_tanh, -2, 2);
  c.unary("relu", relu, 0.1, 1);
  c.unary("erf", erf, -1, 1);
  c.unary("floor", floor, 0.1, 0.9);
  c.unary("sign", sign, 0.1, 0.9);
}

void add_binary(Cases& c) {
  c.binary("add", add, -1, 1);
  c.binary("subtract", subtract, -1, 1);
  c.binary("multiply", multiply, -1, 1);
  c.binary("divide", divide, 0.5, 2);
  c.binary("power", power, 0.5, 2);
  c.binary("logaddexp", logaddexp, -1, 1);
  c.binary("arctan2", arctan2, 0.5, 2);
  const Array big = c.array({2, 3}, 1, 2), small = c.array({2, 3}, -1, 0.5);
  const auto larger = [](const std::vector<Array>& x) { return maximum(x[0], x[1]); };
  const auto smaller = [](const std::vector<Array>& x) { return minimum(x[0], x[1]); };
  c.some("maximum", larger, {big, small});
  c.some("maximum_second", larger, {small, big});
  c.some("minimum", smaller, {big, small});
  c.some("remainder", [](const std::vector<Array>& x) { return remainder(x[0], x[1]); },
         {c.array({4}, 2.2, 2.8), c.array({4}, 0.95, 1.05)});
  c.some("where", [](const std::vector<Array>& x) { return where(x[0] > 0.5, x[0], x[1]); },
         {c.array({3, 4}, 1, 2), c.array({4}, 0, 1)});
  c.one(
      "where_of_one", [](const Array& x) { return where(x > 0, x * x, -x); }, c.apart({7}));
  c.one(
      "clip", [](const Array& x) { return clip(x, Array(-0.5), Array(0.5)); }, c.apart({9}));
  c.some("gated", [](const std::vector<Array>& x) { return gated_multiply(x[0], x[1]); },
         {c.array({3, 4}), c.array({3, 4})});
  c.some("gated_gelu",
         [](const std::vector<Array>& x) { return gated_multiply(x[0], x[1], UnaryKind::gelu); },
         {c.array({2, 5}), c.array({2, 5})});
}

void add_views(Cases& c) {
  const Array x = c.array({2, 3, 4});
  c.one(
      "reshape",
      [](const Array& a) {
        return reshape(a, {4, 6});
      },
      x);
  c.one(
      "transpose",
      [](const Array& a) {
        return transpose(a, {2, 0, 1});
      },
      x);
  c.one(
      "slice",
      [](const Array& a) {
        return slice(a, {0, 1, 3}, {2, 3, -5}, {1, 2, -2});
      },
      x);
  c.one(
      "broadcast",
      [](const Array& a) {
        return broadcast_to(a, {3, 2, 3, 4});
      },
      x);
  c.one(
      "squeeze", [](const Array& a) { return squeeze(a); }, c.array({1, 3, 1}));
  c.one(
      "expand",
      [](const Array& a) {
        return expand_dims(a, {0, 2});
      },
      x);
  c.one(
      "as_strided",
      [](const Array& a) {
        return as_strided(a, {3, 4, 2}, {2, 1, -3}, 5);
      },
      x);
  c.one(
      "contiguous", [](const Array& a) { return contiguous(transpose(a)); }, x);
  c.one(
      "to_f32_and_back", [](const Array& a) { return astype(astype(a, DType::f64), DType::f64); },
      x);
  c.some("concatenate",
         [](const std::vector<Array>& in) {
           return concatenate({in[0], in[1], in[0]}, 1);
         },
         {c.array({2, 3}), c.array({2, 2})});
  c.add("split", [](const std::vector<Array>& in) { return split(in[0], 3, 1); },
        {c.array({2, 6})});
  c.some("depends",
         [](const std::vector<Array>& in) { return depends({in[0]}, {in[1]}).front() * in[1]; },
         {c.array({3}), c.array({3})});
}

void add_indexing(Cases& c) {
  const Array table = c.array({3, 2});
  c.one(
      "take",
      [=](const Array& a) {
        return take(a, Array({2, 0, 2, 1}), 0);
      },
      table);
  c.one(
      "take_axis_1",
      [=](const Array& a) {
        return take(a, Array({1, 1, 0}), 1);
      },
      table);
  const Array places(std::vector<int>{1, 0, 2, 1, 1, 1}, {3, 2});
  c.one(
      "take_along_axis", [=](const Array& a) { return take_along_axis(a, places, 0); }, table);
  const Array each(std::vector<int>{-1, 1}, {1, 2});
  c.one(
      "take_along_axis_one", [=](const Array& a) { return take_along_axis(a, each, 0); }, table);
  const Array bytes(std::vector<std::uint8_t>{1, 0, 1}, {3, 1});
  c.one(
      "take_along_axis_one_last", [=](const Array& a) { return take_along_axis(a, bytes, 1); },
      table);
  for (const ScatterKind kind : {ScatterKind::none, ScatterKind::sum, ScatterKind::prod,
                                 ScatterKind::max, ScatterKind::min}) {
    c.some(
        "scatter_" + std::string(to_string(kind)),
        [=](const std::vector<Array>& in) { return scatter_axis(in[0], places, in[1], 0, kind); },
        {c.apart({3, 2}), c.apart({3, 2}) + 0.05});
  }
  const Array with_zeros(std::vector<double>{0, 2, 3, 0, 0, 1}, {3, 2});
  c.some("scatter_prod_zeros",
         [=](const std::vector<Array>& in) {
           return scatter_axis(in[0], places, in[1], 0, ScatterKind::prod);
         },
         {with_zeros, c.array({3, 2})})
      .second_order = false;  // counting zeros has no slope
  c.some("slice_update",
         [](const std::vector<Array>& in) {
           return slice_update(in[0], in[1], {0, 3}, {3, -5}, {2, -2});
         },
         {c.array({3, 4}), c.array({2, 2})});
  c.some("pad",
         [](const std::vector<Array>& in) {
           return pad(in[0], {{1, 2}, {0, 1}}, in[1]);
         },
         {c.array({2, 3}), c.array({})});
  c.one(
      "pad_edge",
      [](const Array& a) {
        return pad(a, {{1, 2}, {0, 3}}, Array(0), "edge");
      },
      c.array({2, 3}));
  c.one(
      "topk", [](const Array& a) { return topk(a, 3, -1); }, c.apart({2, 6}));
  c.one(
      "flip", [](const Array& a) { return flip(a, 1); }, c.array({2, 3}));
}

void add_reductions(Cases& c) {
  const Array x = c.array({2, 3, 4});
  c.one(
      "sum",
      [](const Array& a) {
        return sum(a, {0, 2});
      },
      x);
  c.one(
      "sum_keepdims", [](const Array& a) { return sum(a, 1, true); }, x);
  c.one(
      "mean",
      [](const Array& a) {
        return mean(a, {1, 2});
      },
      x);
  c.one(
      "prod",
      [](const Array& a) {
        return prod(a, {0, 2});
      },
      x);
  const Array zeros_in(std::vector<double>{1, 0, 2, 0, 3, 0, 2, 1, 4, 2, 5, 3}, {3, 4});
  c.one(
      "prod_zeros", [](const Array& a) { return prod(a, 0); }, zeros_in);
  c.one(
      "max",
      [](const Array& a) {
        return max(a, {0, 2});
      },
      c.apart({2, 3, 4}));
  c.one(
      "min", [](const Array& a) { return min(a, 1, true); }, c.apart({2, 3, 4}));
  for (const bool reverse : {false, true}) {
    for (const bool inclusive : {false, true}) {
      const std::string how =
          std::string(reverse ? "_reverse" : "") + (inclusive ? "" : "_exclusive");
      c.one(
          "cumsum" + how, [=](const Array& a) { return cumsum(a, 1, reverse, inclusive); }, x);
      c.one(
          "cumprod" + how, [=](const Array& a) { return cumprod(a, 1, reverse, inclusive); }, x);
      c.one(
          "cumprod_zeros" + how, [=](const Array& a) { return cumprod(a, 1, reverse, inclusive); },
          zeros_in);
      const auto finite = [](const Array& a) { return where(isfinite(a), a, zeros_like(a)); };
      c.one(
          "cummax" + how, [=](const Array& a) { return finite(cummax(a, 1, reverse, inclusive)); },
          c.apart({2, 5}));
      c.one(
          "cummin" + how, [=](const Array& a) { return finite(cummin(a, 0, reverse, inclusive)); },
          c.apart({5, 2}));
      c.one(
          "logcumsumexp" + how,
          [=](const Array& a) { return finite(logcumsumexp(a, 1, reverse, inclusive)); },
          c.array({2, 5}, -3, 3));
    }
  }
  c.one(
      "softmax", [](const Array& a) { return softmax(a); }, x);
  c.one(
      "softmax_axis", [](const Array& a) { return softmax(a, 0); }, x);
}

void add_norms(Cases& c) {
  using std::nullopt;
  const Array x = c.array({2, 3, 4}), w = c.array({4}), bias = c.array({4});
  c.some("rms_norm", [](const auto& in) { return fast::rms_norm(in[0], in[1], 1e-3f, in[2]); },
         {x, w, bias});
  c.one(
      "rms_norm_plain", [](const Array& a) { return fast::rms_norm(a, nullopt, 1e-3f); }, x);
  c.some("layer_norm", [](const auto& in) { return fast::layer_norm(in[0], in[1], in[2], 1e-3f); },
         {x, w, bias});
  c.one(
      "layer_norm_plain",
      [](const Array& a) { return fast::layer_norm(a, nullopt, nullopt, 1e-3f); }, x);
  c.some("channel_norm",
         [](const auto& in) { return fast::channel_norm(in[0], 1, in[1], in[2], 1e-3f); },
         {x, c.array({3}), c.array({3})});
  c.some("group_norm",
         [](const auto& in) { return fast::group_norm(in[0], 2, in[1], in[2], 1e-3f); },
         {x, w, bias});
}

void add_products(Cases& c) {
  const auto product = [](const std::vector<Array>& in) { return matmul(in[0], in[1]); };
  c.some("matmul", product, {c.array({3, 4}), c.array({4, 2})});
  c.some("matmul_batch", product, {c.array({2, 1, 3, 4}), c.array({5, 4, 2})});
  c.some("matmul_vectors", product, {c.array({4}), c.array({4})});
  const auto by_transposed = [](const std::vector<Array>& in) {
    return matmul(in[0], swapaxes(in[1], 0, 1));
  };
  c.some("matmul_by_transposed", by_transposed, {c.array({2, 3, 4}), c.array({5, 4})});
  c.some("matmul_rows_by_transposed", by_transposed, {c.array({3, 4}), c.array({5, 4})});
  c.some("matmul_vector", product, {c.array({3, 4}), c.array({4})});
  c.f32("linear", [](const auto& in) { return linear(in[0], in[1]); },
        {c.array({2, 3, 4}), c.array({5, 4})});
  c.f32("linear_two",
        [](const auto& in) {
          const std::vector<Array> out = linear(in[0], std::vector<Array>{in[1], in[2]});
          return concatenate(out, -1);
        },
        {c.array({3, 4}), c.array({5, 4}), c.array({2, 4})});
  c.f32("grouped_linear",
        [=](const auto& in) {
          return grouped_linear(in[0], in[1], Array({1, 0, -1, 1}));
        },
        {c.array({4, 3}), c.array({3, 2, 3})});
}

void add_convolutions(Cases& c) {
  struct Shapes {
    const char* name;
    Shape x, w;
    Dims stride, low, high, kernel_dilation, input_dilation;
    int groups;
    bool flip;
  };
  const std::vector<Shapes> all{
      {"1d", {2, 7, 3}, {4, 3, 3}, {1}, {0}, {0}, {1}, {1}, 1, false},
      {"strided", {2, 8, 2}, {3, 3, 2}, {2}, {1}, {2}, {1}, {1}, 1, false},
      {"dilated", {1, 9, 2}, {2, 3, 2}, {2}, {2}, {1}, {2}, {3}, 1, false},
      {"flipped", {2, 6, 2}, {2, 3, 2}, {1}, {1}, {0}, {1}, {2}, 1, true},
      {"cropped", {1, 9, 1}, {2, 2, 1}, {1}, {-2}, {-1}, {1}, {1}, 1, false},
      {"grouped", {2, 5, 4}, {6, 2, 2}, {1}, {1}, {1}, {1}, {1}, 2, false},
      {"depthwise", {2, 5, 3}, {3, 2, 1}, {2}, {0}, {1}, {1}, {1}, 3, true},
      {"2d", {2, 5, 4, 2}, {3, 3, 2, 2}, {2, 1}, {1, 0}, {1, 1}, {1, 2}, {1, 1}, 1, false},
      {"3d",
       {1, 3, 4, 3, 2},
       {2, 2, 2, 2, 2},
       {1, 2, 1},
       {0, 1, 0},
       {1, 0, 0},
       {1, 1, 1},
       {1, 1, 2},
       1,
       false}};
  for (const Shapes& s : all) {
    c.some(std::string("conv_") + s.name,
           [s](const std::vector<Array>& in) {
             return conv_general(in[0], in[1], s.stride, s.low, s.high, s.kernel_dilation,
                                 s.input_dilation, s.groups, s.flip);
           },
           {c.array(s.x), c.array(s.w)});
  }
}

void add_windows(Cases& c) {
  c.one(
      "im2col",
      [](const Array& a) {
        return im2col(a, {2, 3}, {2, 1}, {1, 0}, {1, 2});
      },
      c.array({2, 4, 6, 2}));
  c.one(
      "max_pool",
      [](const Array& a) {
        return max_pool(a, {2, 2}, {1, 2}, {1, 0});
      },
      c.apart({2, 4, 4, 2}));
  c.one(
      "mean_pool", [](const Array& a) { return mean_pool(a, {3}, {2}, {1}); }, c.array({2, 6, 2}));
  c.one(
      "mean_pool_inside", [](const Array& a) { return mean_pool(a, {3}, {2}, {1}, false); },
      c.array({2, 6, 2}));
  for (const bool corners : {false, true}) {
    for (const ResizeKind kind : {ResizeKind::nearest, ResizeKind::linear}) {
      c.one(
          "resize_" + std::string(to_string(kind)) + (corners ? "_corners" : ""),
          [=](const Array& a) {
            return resize(a, {5, 3}, kind, corners);
          },
          c.array({2, 3, 4, 2}));
    }
  }
}

void add_sequences(Cases& c) {
  for (const RopeStyle style : {RopeStyle::interleaved, RopeStyle::split_half}) {
    const std::string name = style == RopeStyle::interleaved ? "_interleaved" : "_split_half";
    c.f32("rope" + name,
          [=](const auto& in) {
            return rope(in[0], Array({3, 0, 7}), {.style = style, .dims = 4});
          },
          {c.array({3, 2, 6})});
    c.f32("rope_table" + name,
          [=](const auto& in) {
            return rope_table(in[0], in[1], in[2], Array({4, 0, 4}), style);
          },
          {c.array({3, 2, 6}), c.array({5, 2}), c.array({5, 2})});
  }
  const std::vector<Array> qkv{c.array({2, 4, 3, 5}), c.array({2, 2, 4, 5}), c.array({2, 2, 4, 3})};
  c.f32(
      "attention",
      [](const auto& in) { return fast::scaled_dot_product_attention(in[0], in[1], in[2], 0.5f); },
      qkv);
  c.f32(
      "attention_causal",
      [](const auto& in) {
        return attention(in[0], in[1], in[2],
                         {.mask = Attention::Mask::causal, .scale = 0.5f, .window = 2});
      },
      qkv);
  std::vector<Array> with_mask = qkv;
  with_mask.push_back(c.array({1, 3, 4}));
  c.f32(
      "attention_mask",
      [](const auto& in) {
        return fast::scaled_dot_product_attention(in[0], in[1], in[2], 0.5f, "array", in[3]);
      },
      with_mask);
  c.f32("selective_scan",
        [](const auto& in) {
          const auto [y, state] = selective_scan(in[0], in[1], in[2], in[3], in[4], in[5], in[6]);
          return concatenate({flatten(y), flatten(state)});
        },
        {c.array({2, 3, 4}), c.array({2, 3, 4}, 0.1, 0.5), c.array({4, 2}, -1, -0.1),
         c.array({2, 3, 2, 2}), c.array({2, 3, 2, 2}), c.array({4}), c.array({2, 4, 2})});
}

}  // namespace

void add_chosen_products(Cases& c) {
  const Array lhs(std::vector<std::uint32_t>{1, 0, 1}, {3}),
      rhs(std::vector<std::uint32_t>{2, 0, 0}, {3});
  c.f32("gather_mm", [=](const auto& in) { return gather_mm(in[0], in[1], lhs, rhs); },
        {c.array({2, 2, 3}), c.array({3, 3, 2})});
  const Array segments(std::vector<std::uint32_t>{0, 2, 1, 5, 3, 3}, {3, 2});
  c.f32("segmented_mm", [=](const auto& in) { return segmented_mm(in[0], in[1], segments); },
        {c.array({2, 5}), c.array({5, 3})});
  const std::vector<Array> w = quantize(astype(c.array({4, 64}), DType::f32), 32, 4);
  for (const bool transposes : {true, false}) {
    c.f32(transposes ? "quantized_matmul" : "quantized_matmul_plain",
          [=](const auto& in) {
            return quantized_matmul(in[0], w[0], in[1], in[2], transposes, 32, 4);
          },
          {c.array({3, transposes ? 64 : 4}), w[1], w[2]});
  }
  const std::vector<Array> qkv{c.array({2, 4, 3, 5}), c.array({2, 2, 4, 5}), c.array({2, 2, 4, 3}),
                               c.array({4})};
  c.f32(
      "attention_sinks",
      [](const auto& in) {
        return attention(in[0], in[1], in[2],
                         {.mask = Attention::Mask::causal, .scale = 0.5f, .has_sinks = true},
                         std::nullopt, in[3]);
      },
      qkv);
  c.one(
      "causal_softmax", [](const Array& a) { return causal_softmax(a); }, c.array({2, 3, 4}));
}

void add_order(Cases& c) {
  c.one(
      "sort", [](const Array& a) { return sort(a, 0); }, c.apart({4, 3}));
  c.one(
      "sort_all", [](const Array& a) { return sort(a); }, c.apart({4, 3}));
  const Array rows(std::vector<int>{3, 0, -1}, {3}), columns(std::vector<int>{1, 1, 0}, {3});
  c.one(
      "gather",
      [=](const Array& a) {
        return gather(a, {rows, columns}, {0, 1}, {1, 2});
      },
      c.array({4, 3}));
  for (const ScatterKind kind : {ScatterKind::none, ScatterKind::sum, ScatterKind::prod,
                                 ScatterKind::max, ScatterKind::min}) {
    c.some("scatter_slices_" + std::string(to_string(kind)),
           [=](const std::vector<Array>& in) {
             return heddle::apply(Scatter{kind, {0, 1}}, {in[0], rows, columns, in[1]});
           },
           {c.apart({4, 3}), c.apart({3, 1, 2}) + 0.05});
  }
}

/// Far from singular, and from equal eigenvalues.
Array well_conditioned(Cases& c, std::int64_t n) {
  const Array number = arange(static_cast<double>(n), DType::f64);
  const Array diagonal =
      where(reshape(number, {n, 1}) == number, number + 2, zeros({}, DType::f64));
  return diagonal + 0.2 * c.array({n, n});
}

/// Squares of lengths: columns of complex bases have no phase of their own.
Array lengths_of(const Array& a) {
  return flatten(square(abs(a)));
}

void add_complex_factors(Cases& c, const Array& matrix) {
  const auto complex_of = [](const std::vector<Array>& in) {
    return astype(in[0], DType::complex64) +
           astype(in[1], DType::complex64) * Array(std::vector<std::complex<float>>{{0, 1}}, {});
  };
  c.f32("svd_complex",
        [=](const std::vector<Array>& in) {
          const std::vector<Array> made = linalg::svd(complex_of(in));
          const Array mixed = matmul(made[0] * (made[1] * made[1]), made[2]);
          return concatenate({lengths_of(made[0]), made[1], lengths_of(made[2]),
                              flatten(real(mixed)), flatten(imag(mixed))});
        },
        {matrix, c.array({3, 3})});
  const auto parts = [](const Array& a) {
    const auto [values, vectors] = linalg::eig(a);
    return concatenate({real(values), imag(values), lengths_of(vectors)});
  };
  const Array ones_below = tril(ones({3, 3}, DType::f64), -1);
  c.f32("eig", [=](const auto& in) { return parts(in[0]); }, {matrix});
  c.f32("eig_turning", [=](const auto& in) { return parts(in[0]); },
        {matrix + 3 * (ones_below - transpose(ones_below))});
  c.f32("eig_complex", [=](const auto& in) { return parts(complex_of(in)); },
        {matrix, c.array({3, 3})});
  c.f32("eigvals", [](const auto& in) -> Array { return real(linalg::eigvals(in[0])); }, {matrix});
}

void add_linear_algebra(Cases& c) {
  const Array square = well_conditioned(c, 3);
  const Array batch = stack({square, well_conditioned(c, 3)});
  const Array positive = matmul(square, transpose(square));
  for (const bool upper : {false, true}) {
    const std::string which = upper ? "_upper" : "";
    c.one(
        "cholesky" + which, [=](const Array& a) { return linalg::cholesky(a, upper); }, positive);
    c.one(
        "tri_inv" + which, [=](const Array& a) { return linalg::tri_inv(a, upper); }, square);
    c.some("solve_triangular" + which,
           [=](const auto& in) { return linalg::solve_triangular(in[0], in[1], upper); },
           {square, c.array({3, 2})});
    c.add("eigh" + which,
          [=](const std::vector<Array>& in) {
            const auto [values, vectors] = linalg::eigh(in[0], upper ? "U" : "L");
            // Vectors have no sign of their own.
            return std::vector<Array>{values, vectors * vectors};
          },
          {square + transpose(square)});
  }
  c.one(
      "inv", [](const Array& a) { return linalg::inv(a); }, batch);
  c.some("solve", [](const auto& in) { return linalg::solve(in[0], in[1]); },
         {batch, c.array({2, 3, 2})});
  c.one(
      "eigvalsh", [](const Array& a) { return linalg::eigvalsh(a); }, square + transpose(square));
  const auto qr_both = [](const std::vector<Array>& in) {
    const auto [q, r] = linalg::qr(in[0]);
    return std::vector<Array>{q, r};
  };
  c.add("qr", qr_both, {batch});
  c.add("qr_tall", qr_both, {c.array({5, 3})});
  c.add("qr_wide", qr_both, {concatenate({square, c.array({3, 2})}, 1)});
  const auto thin_svd = [](const std::vector<Array>& in) {
    const std::vector<Array> made = linalg::svd(in[0]);
    const std::int64_t count = made[1].shape(0);
    const Array u = slice(made[0], {0, 0}, {made[0].shape(0), count});
    const Array v = slice(made[2], {0, 0}, {count, made[2].shape(1)});
    return std::vector<Array>{heddle::square(u), made[1], heddle::square(v)};
  };
  c.add("svd", thin_svd, {square});
  c.add("svd_tall", thin_svd, {concatenate({square, c.array({2, 3})}, 0)});
  c.add("svd_wide", thin_svd, {concatenate({square, c.array({3, 2})}, 1)});
  c.one(
      "singular_values", [](const Array& a) { return linalg::svd(a, false)[0]; }, square);
  add_complex_factors(c, square);
  c.one(
      "det", [](const Array& a) { return linalg::det(a); }, square);
  c.one(
      "hadamard", [](const Array& a) { return hadamard_transform(a); }, c.array({2, 8}));
  c.one(
      "hadamard_12", [](const Array& a) { return hadamard_transform(a, 0.5f); }, c.array({2, 24}));
}

void add_fourier(Cases& c) {
  for (const std::int64_t n : {1, 6, 7}) {
    const std::string size = "_" + std::to_string(n);
    const auto whole = [n](const Array& a) { return fft::fft(astype(a, DType::complex64)); };
    c.f32("fft" + size, [=](const auto& in) { return whole(in[0]); }, {c.array({2, n})});
    c.f32("ifft" + size, [=](const auto& in) { return fft::ifft(whole(in[0]) * whole(in[0])); },
          {c.array({2, n})});
    c.f32("rfft" + size, [](const auto& in) { return fft::rfft(in[0]); }, {c.array({2, n})});
    c.f32("irfft" + size,
          [n](const auto& in) {
            return fft::irfft(fft::rfft(in[0]) * fft::rfft(in[1]), static_cast<int>(n), -1);
          },
          {c.array({2, n}), c.array({2, n})});
  }
}

std::vector<GradientCase> gradient_cases() {
  Cases cases;
  add_unary(cases);
  add_binary(cases);
  add_views(cases);
  add_indexing(cases);
  add_reductions(cases);
  add_norms(cases);
  add_products(cases);
  add_convolutions(cases);
  add_windows(cases);
  add_sequences(cases);
  add_order(cases);
  add_chosen_products(cases);
  add_linear_algebra(cases);
  add_fourier(cases);
  return cases.take();
}

}  // namespace heddle::test

#include "bad_input_walk.h"

#include <string_view>

#include "heddle/device.h"

namespace heddle::test {

Array zeros_of(const TensorSpec& spec) {
  return Array::from_bytes(spec, std::vector<std::byte>(byte_size(spec)));
}

namespace {

using UnaryFunction = Array (*)(const Arg&);
using BinaryFunction = Array (*)(const Arg&, const Arg&);

void add_unary(std::vector<Walked>& all) {
  const std::pair<const char*, UnaryFunction> functions[] = {{"abs", abs}, {"negative", negative},
                                                             {
                                                                 "operator-",
                                                                 operator- },
                                                                 {"sign", sign},
                                                                 {"square", square},
                                                                 {"sqrt", sqrt},
                                                                 {"rsqrt", rsqrt},
                                                                 {"reciprocal", reciprocal},
                                                                 {"exp", exp},
                                                                 {"expm1", expm1},
                                                                 {"log", log},
                                                                 {"log2", log2},
                                                                 {"log10", log10},
                                                                 {"log1p", log1p},
                                                                 {"sin", sin},
                                                                 {"cos", cos},
                                                                 {"tan", tan},
                                                                 {"sinh", sinh},
                                                                 {"cosh", cosh},
                                                                 {"tanh", tanh},
                                                                 {"arcsin", arcsin},
                                                                 {"arccos", arccos},
                                                                 {"arctan", arctan},
                                                                 {"sigmoid", sigmoid},
                                                                 {"silu", silu},
                                                                 {"gelu", gelu},
                                                                 {"gelu_tanh", gelu_tanh},
                                                                 {"relu", relu},
                                                                 {"erf", erf},
                                                                 {"floor", floor},
                                                                 {"ceil", ceil},
                                                                 {"round", round},
                                                                 {"logical_not", logical_not},
                                                                 {"isnan", isnan},
                                                                 {"isinf", isinf},
                                                                 {"isfinite", isfinite},
                                                                 {"zeros_like", zeros_like},
                                                                 {"ones_like", ones_like},
                                                                 {"transpose", transpose},
                                                                 {"squeeze", squeeze},
                                                                 {"contiguous", contiguous},
                                                                 {"copy", copy},
  };
  for (const auto& [name, f] : functions) {
    all.push_back({name, "f32[2, 256]", [f = f](const Arrays& in) { return Arrays{f(in[0])}; }});
  }
}

void add_binary(std::vector<Walked>& all) {
  const std::pair<const char*, BinaryFunction> functions[] = {
      {"add", add}, {"subtract", subtract}, {"multiply", multiply}, {"divide", divide},
      {"floor_divide", floor_divide}, {"remainder", remainder}, {"power", power},
      {"maximum", maximum}, {"minimum", minimum}, {"logaddexp", logaddexp}, {"arctan2", arctan2},
      {"logical_and", logical_and}, {"logical_or", logical_or}, {"equal", equal},
      {"not_equal", not_equal}, {"less", less}, {"less_equal", less_equal}, {"greater", greater},
      {"greater_equal", greater_equal},
      {"operator+", operator+ },
       {"operator-", operator- },
        {"operator*", operator* },
         {"operator/", operator/ },
          {"operator%", operator% },
           {"operator==", operator== },
            {"operator!=", operator!= },
             {"operator<", operator<},
              {"operator<=", operator<= },
               {"operator>", operator> },
                {
                    "operator>=",
                    operator>= },
               };
  const std::pair<const char*, BinaryFunction> of_integers[] = {
      {"floor_divide", floor_divide}, {"remainder", remainder},     {"power", power},
      {"bitwise_and", bitwise_and},   {"bitwise_or", bitwise_or},   {"bitwise_xor", bitwise_xor},
      {"left_shift", left_shift},     {"right_shift", right_shift},
  };
  const auto add_row = [&](const char* name, const char* operands, BinaryFunction f) {
    all.push_back({name, operands, [f](const Arrays& in) { return Arrays{f(in[0], in[1])}; }});
  };
  for (const auto& [name, f] : functions) {
    add_row(name, "f32[2, 256], f32[2, 256]", f);
    add_row(name, "f32[4, 1, 3], f32[5, 1]", f);
  }
  for (const auto& [name, f] : of_integers) add_row(name, "i32[2, 256], i32[256]", f);
}

template <class F>
void add_one(std::vector<Walked>& all, const char* name, const char* operands, F f) {
  const std::string_view function(name);
  const bool by_data = function == "write_rows" || function == "attend";
  all.push_back({name, operands, [f](const Arrays& in) { return Arrays{f(in)}; }, by_data});
}

void add_shape(std::vector<Walked>& all) {
  const auto add = [&](const char* name, const char* operands, auto f) {
    add_one(all, name, operands, f);
  };
  add("full", "f32[]", [](const Arrays& in) { return full({2, 3}, in[0]); });
  add("full", "f32[1, 3]", [](const Arrays& in) { return full({2, 3}, in[0], DType::f16); });
  add("reshape", "f32[2, 256]", [](const Arrays& in) { return reshape(in[0], {512}); });
  add("reshape", "f32[2, 3]", [](const Arrays& in) { return reshape(in[0], {3, -1}); });
  add("flatten", "f32[2, 256]", [](const Arrays& in) { return flatten(in[0]); });
  add("transpose", "f32[2, 3]", [](const Arrays& in) { return transpose(in[0], {1, 0}); });
  add("swapaxes", "f32[2, 3]", [](const Arrays& in) { return swapaxes(in[0], 0, 1); });
  add("moveaxis", "f32[2, 3]", [](const Arrays& in) { return moveaxis(in[0], 0, 1); });
  add("squeeze", "f32[2, 1]", [](const Arrays& in) { return squeeze(in[0], {1}); });
  add("expand_dims", "f32[2, 256]", [](const Arrays& in) { return expand_dims(in[0], 0); });
  add("expand_dims", "f32[2]", [](const Arrays& in) { return expand_dims(in[0], {0, 1, -1}); });
  add("broadcast_to", "f32[1, 256]", [](const Arrays& in) {
    return broadcast_to(in[0], {3, 2, 256});
  });
  add("slice", "f32[2, 256]", [](const Arrays& in) { return slice(in[0], {0, 32}, {1, 64}); });
  add("slice", "f32[2, 3]", [](const Arrays& in) {
    return slice(in[0], {1, 2}, {-9, -9}, {-1, -2});
  });
  add("slice_update", "f32[2, 256], f32[256]", [](const Arrays& in) {
    return slice_update(in[0], in[1], {1, 0}, {2, 256});
  });
  add("slice_update", "f32[2, 3], f32[2, 1]", [](const Arrays& in) {
    return slice_update(in[0], in[1], {1, 2}, {-9, -9}, {-1, -2});
  });
  add("as_strided", "f32[2, 256]", [](const Arrays& in) {
    return as_strided(in[0], {2, 255}, {-1, 2}, 1);
  });
  add("view", "f32[2, 256]", [](const Arrays& in) { return view(in[0], DType::u8); });
  add("view", "f32[2, 256]", [](const Arrays& in) { return view(in[0], DType::complex64); });
  add("view", "bool[3]", [](const Arrays& in) { return view(in[0], DType::u8); });
  all.push_back({"depends", "f32[2, 256], f32[3], i32[]", [](const Arrays& in) {
                   return depends({in[0], in[1]}, {in[2]});
                 }});
  add("concatenate", "f32[2, 256], f32[1, 256]", [](const Arrays& in) { return concatenate(in); });
  add("stack", "f32[2, 256], f32[2, 256]", [](const Arrays& in) { return stack(in); });
  all.push_back({"split", "f32[2, 256]", [](const Arrays& in) { return split(in[0], 2); }});
  all.push_back({"split", "f32[2, 256]", [](const Arrays& in) {
                   return split(in[0], std::vector<std::int64_t>{32, 64}, 1);
                 }});
  add("repeat", "f32[2, 256]", [](const Arrays& in) { return repeat(in[0], 3, 0); });
  add("astype", "f32[2, 256]", [](const Arrays& in) { return astype(in[0], DType::i8); });
  add("dequantize", "q8_0[2, 256]", [](const Arrays& in) { return dequantize(in[0]); });
  add("where", "bool[2, 256], f32[256], f32[2, 1]",
      [](const Arrays& in) { return where(in[0], in[1], in[2]); });
  add("clip", "f32[2, 256], f32[], f32[256]",
      [](const Arrays& in) { return clip(in[0], in[1], in[2]); });
}

template <class Whole, class ByAxes>
void add_reduction(std::vector<Walked>& all, const char* name, Whole whole, ByAxes by_axes) {
  add_one(all, name, "f32[2, 256]", [whole](const Arrays& in) { return whole(in[0], false); });
  add_one(all, name, "f32[2, 3]",
          [by_axes](const Arrays& in) { return by_axes(in[0], {0}, true); });
}

void add_reductions(std::vector<Walked>& all) {
  using Whole = Array (*)(const Arg&, bool);
  using ByAxes = Array (*)(const Arg&, const Dims&, bool);
  add_reduction<Whole, ByAxes>(all, "sum", sum, sum);
  add_reduction<Whole, ByAxes>(all, "mean", mean, mean);
  add_reduction<Whole, ByAxes>(all, "max", max, max);
  add_reduction<Whole, ByAxes>(all, "min", min, min);
  add_reduction<Whole, ByAxes>(all, "prod", prod, prod);
  add_one(all, "softmax", "f32[2, 256]", [](const Arrays& in) { return softmax(in[0], -1); });
  add_one(all, "softmax", "f32[2, 3]", [](const Arrays& in) { return softmax(in[0], 0); });
}

void add_products(std::vector<Walked>& all) {
  const auto add = [&](const char* name, const char* operands, auto f) {
    add_one(all, name, operands, f);
  };
  add("matmul", "f32[2, 256], f32[256, 3]", [](const Arrays& in) { return matmul(in[0], in[1]); });
  add("matmul", "f32[3, 2, 4], f32[4]", [](const Arrays& in) { return matmul(in[0], in[1]); });
  add("linear", "f32[2, 256], f32[3, 256]", [](const Arrays& in) { return linear(in[0], in[1]); });
  all.push_back({"linear", "f32[2, 256], f32[3, 256], q8_0[4, 256]", [](const Arrays& in) {
                   return linear(in[0], Arrays{in[1], in[2]});
                 }});
}

void add_llm(std::vector<Walked>& all) {
  const auto add = [&](const char* name, const char* operands, auto f) {
    add_one(all, name, operands, f);
  };
  add("gated_multiply", "f32[2, 256], f32[2, 256]",
      [](const Arrays& in) { return gated_multiply(in[0], in[1]); });
  const RopeAngles angles{.dims = 8};
  add("rope", "f32[3, 2, 256], i32[3]",
      [=](const Arrays& in) { return rope(in[0], in[1], angles); });
  add("rope", "f32[3, 2, 8], i64[3], f32[4]",
      [=](const Arrays& in) { return rope(in[0], in[1], angles, in[2]); });
  add("rope_table", "f32[3, 2, 8], f32[9, 4], f32[9, 4], i32[3]",
      [](const Arrays& in) { return rope_table(in[0], in[1], in[2], in[3]); });
  add("rope_table", "f32[3, 2, 8], f32[3, 4], f32[3, 4]",
      [](const Arrays& in) { return rope_table(in[0], in[1], in[2], std::nullopt); });
  add("write_rows", "f32[4, 256], f32[1, 256], i32[1]",
      [](const Arrays& in) { return write_rows(in[0], in[1], in[2]); });
  add("attend", "f32[3, 4, 32], f16[64, 2, 32], f16[64, 2, 32], i32[2, 2], i32[3], i32[3], i32[2]",
      [](const Arrays& in) {
        return attend(in[0], in[1], in[2], in[3], in[4], in[5], in[6], Attend{});
      });
  add("fast::rms_norm", "f32[2, 256], f32[256], f32[256]",
      [](const Arrays& in) { return fast::rms_norm(in[0], in[1], 1e-5f, in[2]); });
  add("fast::layer_norm", "f32[2, 256], f32[256], f32[256]",
      [](const Arrays& in) { return fast::layer_norm(in[0], in[1], in[2], 1e-5f); });
  add("fast::rope", "f32[2, 3, 256]",
      [](const Arrays& in) { return fast::rope(in[0], 8, true, 10000.0f, 1.0f, 0); });
  add("fast::rope", "f32[3, 8], f32[4]",
      [](const Arrays& in) { return fast::rope(in[0], 8, false, std::nullopt, 1.0f, 7, in[1]); });
  const char* qkv = "f32[2, 4, 3, 256], f32[2, 2, 5, 256], f32[2, 2, 5, 256]";
  add("fast::scaled_dot_product_attention", qkv,
      [](const Arrays& in) { return fast::scaled_dot_product_attention(in[0], in[1], in[2]); });
  add("fast::scaled_dot_product_attention",
      "f32[2, 4, 3, 8], f32[2, 2, 5, 8], f32[2, 2, 5, 8], bool[3, 5]", [](const Arrays& in) {
        return fast::scaled_dot_product_attention(in[0], in[1], in[2], 1.0f, "array", in[3]);
      });
  add("attention", qkv,
      [](const Arrays& in) { return attention(in[0], in[1], in[2], Attention{}); });
  add("attention", "f32[2, 4, 3, 8], f32[2, 2, 5, 8], f32[2, 2, 5, 8], f32[3, 5]",
      [](const Arrays& in) {
        return attention(in[0], in[1], in[2], Attention{.mask = Attention::Mask::additive}, in[3]);
      });
}

void add_arrays(std::vector<Walked>& all) {
  const auto add = [&](const char* name, auto f) { add_one(all, name, "f32[2, 256]", f); };
  add("apply", [](const Arrays& in) { return heddle::apply(Contiguous{}, in); });
  all.push_back({"apply_multi", "f32[2, 256], f32[3, 256]",
                 [](const Arrays& in) { return apply_multi(Linear{}, in); }});
  add("eval", [](const Arrays& in) { return eval(in), in[0]; });
  add("eval", [](const Arrays& in) { return in[0].eval(), in[0]; });
  add("async_eval", [](const Arrays& in) { return async_eval(in), in[0]; });
  add("check", [](const Arrays& in) { return check(in), in[0].check(), in[0]; });
  add("schedule", [](const Arrays& in) { return schedule(in).eval(), in[0]; });
  add("schedule", [](const Arrays& in) { return schedule(in).async_eval(), in[0]; });
  add("StreamScope", [](const Arrays& in) {
    const StreamScope scope(cpu_device().new_stream());
    return contiguous(in[0]);
  });
  add("DeviceScope", [](const Arrays& in) {
    const DeviceScope scope(cpu_device());
    return contiguous(in[0]);
  });
  add("shape", [](const Arrays& in) { return in[0].ndim() ? Array(in[0].shape(-1)) : in[0]; });
  add("to_bytes", [](const Arrays& in) { return in[0].to_bytes(), in[0]; });
  add("view", [](const Arrays& in) { return Array::from_view(in[0].view()); });
  add("from_view", [](const Arrays& in) { return Array::from_view(in[0].view()); });
  add("from_bytes",
      [](const Arrays& in) { return Array::from_bytes(in[0].spec(), in[0].to_bytes()); });
  add("copy_to", [](const Arrays& in) {
    std::vector<std::byte> bytes(in[0].nbytes());
    return in[0].copy_to(bytes), in[0];
  });
  add("to_string", [](const Arrays& in) { return to_string(in[0]), in[0]; });
}

}  // namespace

std::vector<FamilyRows>& Family::all() {
  static std::vector<FamilyRows> families;
  return families;
}

std::vector<Walked> walked_functions() {
  std::vector<Walked> all;
  add_unary(all);
  add_binary(all);
  add_shape(all);
  add_reductions(all);
  add_products(all);
  add_llm(all);
  add_walked_axes(all);
  add_walked_quantized(all);
  add_arrays(all);
  return with_families(std::move(all), &FamilyRows::walked);
}

std::vector<TakesAxis> functions_of_an_axis() {
  std::vector<TakesAxis> rows = {
      {"flatten", [](const Array& x, int axis) { flatten(x, axis); }, true},
      {"flatten", [](const Array& x, int axis) { flatten(x, 0, axis); }, true},
      {"swapaxes", [](const Array& x, int axis) { swapaxes(x, axis, -1); }},
      {"swapaxes", [](const Array& x, int axis) { swapaxes(x, -1, axis); }},
      {"moveaxis", [](const Array& x, int axis) { moveaxis(x, axis, -1); }},
      {"moveaxis", [](const Array& x, int axis) { moveaxis(x, -1, axis); }},
      {"expand_dims", [](const Array& x, int axis) { expand_dims(x, axis); }, true},
      {"concatenate",
       [](const Array& x, int axis) {
         concatenate({x, x}, axis);
       }},
      {"concatenate", [](const Array& x, int axis) { concatenate({x}, axis); }},
      {"stack",
       [](const Array& x, int axis) {
         stack({x, x}, axis);
       },
       true},
      {"split", [](const Array& x, int axis) { split(x, 1, axis); }},
      {"split", [](const Array& x, int axis) { split(x, std::vector<std::int64_t>{1}, axis); }},
      {"repeat", [](const Array& x, int axis) { repeat(x, 2, axis); }},
      {"sum", [](const Array& x, int axis) { sum(x, axis); }},
      {"mean", [](const Array& x, int axis) { mean(x, axis); }},
      {"max", [](const Array& x, int axis) { max(x, axis); }},
      {"min", [](const Array& x, int axis) { min(x, axis); }},
      {"prod", [](const Array& x, int axis) { prod(x, axis); }},
      {"softmax", [](const Array& x, int axis) { softmax(x, axis); }},
      {"cumsum", [](const Array& x, int axis) { cumsum(x, axis); }},
      {"cumprod", [](const Array& x, int axis) { cumprod(x, axis); }},
      {"cummax", [](const Array& x, int axis) { cummax(x, axis); }},
      {"cummin", [](const Array& x, int axis) { cummin(x, axis); }},
      {"logcumsumexp", [](const Array& x, int axis) { logcumsumexp(x, axis); }},
      {"flip", [](const Array& x, int axis) { flip(x, axis); }},
      {"fast::channel_norm",
       [](const Array& x, int axis) {
         fast::channel_norm(x, axis, std::nullopt, std::nullopt, 1e-5f);
       }},
      {"shape", [](const Array& x, int axis) { x.shape(axis); }},
  };
  return with_families(std::move(rows), &FamilyRows::of_an_axis);
}

std::vector<TakesAxes> functions_of_axes() {
  std::vector<TakesAxes> rows = {
      {"transpose", [](const Array& x, const Dims& axes) { transpose(x, axes); }},
      {"squeeze",
       [](const Array& x, const Dims& axes) {
         squeeze(reshape(x, {1, 1, 2, 3}), axes);
       }},
      {"expand_dims", [](const Array& x, const Dims& axes) { expand_dims(x, axes); }},
      {"sum", [](const Array& x, const Dims& axes) { sum(x, axes); }},
      {"mean", [](const Array& x, const Dims& axes) { mean(x, axes); }},
      {"max", [](const Array& x, const Dims& axes) { max(x, axes); }},
      {"min", [](const Array& x, const Dims& axes) { min(x, axes); }},
      {"prod", [](const Array& x, const Dims& axes) { prod(x, axes); }},
      {"flip", [](const Array& x, const Dims& axes) { flip(x, axes); }},
      {"pad", [](const Array& x,
                 const Dims& axes) { pad(x, axes, Dims(axes.size(), 1), Dims(axes.size(), 1)); }},
  };
  return with_families(std::move(rows), &FamilyRows::of_axes);
}

}  // namespace heddle::test

// MLX's quantisation, chosen matrices and what language models add, in the walk.
#include <limits>

#include "bad_input_walk.h"

namespace heddle::test {

namespace {

Array codes(const Shape& shape) {
  return zeros_of({DType::u32, shape});
}
Array bytes(const Shape& shape) {
  return zeros_of({DType::u8, shape});
}

void add_quantized(std::vector<Walked>& all) {
  const auto add = [&](const char* name, const char* operands,
                       std::function<Arrays(const Arrays&)> f, bool by_data = false) {
    all.push_back({name, operands, std::move(f), by_data});
  };
  add("quantize", "f32[2, 256]", [](const Arrays& in) { return quantize(in[0]); });
  add("quantize", "f32[2, 256], f32[]",
      [](const Arrays& in) { return quantize(in[0], {}, {}, "nvfp4", in[1]); });
  add("dequantize", "u32[2, 32], f32[2, 4], f32[2, 4]",
      [](const Arrays& in) { return Arrays{dequantize(in[0], in[1], in[2])}; });
  add("dequantize", "u32[2, 32], u8[2, 16], f32[1]", [](const Arrays& in) {
    return Arrays{dequantize(in[0], in[1], {}, {}, {}, "nvfp4", in[2])};
  });
  add("quantized_matmul", "f32[3, 256], u32[2, 32], f32[2, 4], f32[2, 4]",
      [](const Arrays& in) { return Arrays{quantized_matmul(in[0], in[1], in[2], in[3])}; });
  add("quantized_matmul", "f32[3, 2], u32[2, 32], u8[2, 8]", [](const Arrays& in) {
    return Arrays{quantized_matmul(in[0], in[1], in[2], {}, false, {}, {}, "mxfp4")};
  });
  add("qqmm", "f32[3, 256], u32[2, 32], u8[2, 16]",
      [](const Arrays& in) { return Arrays{qqmm(in[0], in[1], in[2])}; });
  add("qqmm", "f32[3, 256], f32[2, 256], f32[], f32[]", [](const Arrays& in) {
    return Arrays{qqmm(in[0], in[1], {}, {}, {}, "nvfp4", in[2], in[3])};
  });
  add(
      "gather_mm", "f32[2, 3, 4], f32[2, 4, 5], u32[2], u32[2]",
      [](const Arrays& in) { return Arrays{gather_mm(in[0], in[1], in[2], in[3])}; }, true);
  add(
      "gather_qmm", "f32[2, 3, 256], u32[2, 5, 32], f32[2, 5, 4], f32[2, 5, 4], u32[2], u32[2]",
      [](const Arrays& in) { return Arrays{gather_qmm(in[0], in[1], in[2], in[3], in[4], in[5])}; },
      true);
  add(
      "gather_qqmm", "f32[2, 3, 256], u32[2, 5, 32], u8[2, 5, 16], u32[2], u32[2], f32[], f32[2]",
      [](const Arrays& in) {
        return Arrays{
            gather_qqmm(in[0], in[1], in[2], in[3], in[4], {}, {}, "nvfp4", in[5], in[6])};
      },
      true);
  add("block_masked_mm", "f32[40, 40], f32[40, 40], bool[2, 2], f32[2, 2], bool[2, 2]",
      [](const Arrays& in) {
        return Arrays{block_masked_mm(in[0], in[1], 32, in[2], in[3], in[4])};
      });
  add("segmented_mm", "f32[3, 4], f32[4, 5], u32[2, 2]",
      [](const Arrays& in) { return Arrays{segmented_mm(in[0], in[1], in[2])}; });
  add("to_fp8", "f32[2, 3]", [](const Arrays& in) { return Arrays{to_fp8(in[0])}; });
  add("from_fp8", "u8[2, 3]", [](const Arrays& in) { return Arrays{from_fp8(in[0], DType::f16)}; });
}

void add_beyond_mlx(std::vector<Walked>& all) {
  const RopeAngles angles{.dims = 8};
  all.push_back({"norm_rope", "f32[3, 2, 8], f32[8], i32[3]", [=](const Arrays& in) {
                   return Arrays{norm_rope(in[0], in[1], 1e-6f, in[2], angles)};
                 }});
  all.push_back({"norm_rope_write_rows",
                 "f16[4, 2, 8], f32[1, 2, 8], i32[1], f32[8], i32[1], f32[4]",
                 [=](const Arrays& in) {
                   return Arrays{norm_rope_write_rows(in[0], in[1], in[2], in[3], 1e-6f, in[4],
                                                      angles, in[5])};
                 }});
  all.push_back({"causal_softmax", "f32[2, 256]",
                 [](const Arrays& in) { return Arrays{causal_softmax(in[0])}; }});
  all.push_back({"fast::rope", "f32[2, 3, 5, 8], i32[2]", [](const Arrays& in) {
                   return Arrays{fast::rope(in[0], 8, false, 1e4f, 1.0f, in[1])};
                 }});
  all.push_back({"fast::scaled_dot_product_attention",
                 "f32[2, 4, 3, 8], f32[2, 2, 5, 8], f32[2, 2, 5, 8], f32[4]", [](const Arrays& in) {
                   return Arrays{fast::scaled_dot_product_attention(in[0], in[1], in[2], {},
                                                                    "causal", {}, in[3])};
                 }});
}

}  // namespace

void add_walked_quantized(std::vector<Walked>& all) {
  add_quantized(all);
  add_beyond_mlx(all);
}

void add_refused_quantized(std::vector<Refused>& all) {
  const auto add = [&](const char* name, std::vector<std::string> parts,
                       std::function<void()> call) {
    all.push_back({name, std::move(parts), std::move(call)});
  };
  const Array w = floats({2, 256});
  const Array q = codes({2, 32}), s = floats({2, 4}), s8 = bytes({2, 16});
  add("quantize", {"int4", "nvfp4"}, [=] { quantize(w, {}, {}, "int4"); });
  add("quantize", {"7", "8"}, [=] { quantize(w, 64, 7); });
  add("quantize", {"-4"}, [=] { quantize(w, 64, -4); });
  add("quantize", {"48", "128"}, [=] { quantize(w, 48); });
  add("quantize", {"f32[2, 32]", "64"}, [=] { quantize(floats({2, 32})); });
  add("quantize", {"f32[256]", "2 dimensions"}, [=] { quantize(floats({256})); });
  add("quantize", {"mxfp4", "16"}, [=] { quantize(w, 16, 4, "mxfp4"); });
  add("quantize", {"mxfp8", "4"}, [=] { quantize(w, 32, 4, "mxfp8"); });
  add("quantize", {"global_scale", "mxfp8"}, [=] { quantize(w, {}, {}, "mxfp8", Array(1.0f)); });
  add("quantize", {"global_scale", "i32[]"}, [=] { quantize(w, {}, {}, "nvfp4", Array(1)); });
  add("dequantize", {"biases"}, [=] { dequantize(q, s); });
  add("dequantize", {"biases", "nvfp4"}, [=] { dequantize(q, s8, s, {}, {}, "nvfp4"); });
  add("dequantize", {"u8[2, 16]", "32"}, [=] { dequantize(q, s8, {}, {}, {}, "mxfp4"); });
  add("dequantize", {"i32"}, [=] { dequantize(q, s, s, {}, {}, "affine", {}, DType::i32); });
  add("quantized_matmul", {"f32[3, 128]", "256"}, [=] {
    quantized_matmul(floats({3, 128}), q, s, s);
  });
  add("quantized_matmul", {"5 bits"}, [=] { quantized_matmul(w, q, s, s, true, 64, 5); });
  add("qqmm", {"affine"}, [=] { qqmm(w, q, s, {}, {}, "affine"); });
  add("qqmm", {"no scales"}, [=] { qqmm(w, q); });
  add("qqmm", {"not quantised"}, [=] { qqmm(w, w, s8); });
  add("qqmm", {"global scale of w"}, [=] { qqmm(w, q, s8, {}, {}, "nvfp4", {}, Array(1.0f)); });
  add("qqmm", {"u32[1, 2, 32]"}, [=] { qqmm(w, codes({1, 2, 32}), bytes({1, 2, 16})); });
  add("gather_mm", {"f32[]"}, [=] { gather_mm(floats({}), w, codes({})); });
  add("gather_mm", {"lhs_indices", "f32[2]"}, [=] {
    gather_mm(floats({2, 3, 4}), floats({2, 4, 5}), floats({2}));
  });
  add("gather_qqmm", {"global_scale_w", "f32[3]"}, [=] {
    gather_qqmm(floats({2, 3, 256}), codes({2, 5, 32}), bytes({2, 5, 16}), codes({2}), codes({2}),
                {}, {}, "nvfp4", Array(1.0f), floats({3}));
  });
  add("block_masked_mm", {"16", "64"}, [=] { block_masked_mm(w, floats({256, 2}), 16, s); });
  add("block_masked_mm", {"mask_out", "[..., 1, 1]"}, [=] {
    block_masked_mm(w, floats({256, 2}), 64, floats({2, 2}));
  });
  add("block_masked_mm", {"i32"}, [=] {
    block_masked_mm(ints({2, 2}), ints({2, 2}), 32, floats({1, 1}));
  });
  add("segmented_mm", {"f32[2, 2]", "integers"}, [=] {
    segmented_mm(floats({3, 4}), floats({4, 5}), floats({2, 2}));
  });
  add("from_fp8", {"i32"}, [=] { from_fp8(bytes({2}), DType::i32); });
  const RopeAngles angles{.dims = 8};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  add("norm_rope", {"eps nan"}, [=] { norm_rope(floats({3, 2, 8}), {}, nan, ints({3}), angles); });
  add("norm_rope", {"f32[7]"}, [=] {
    norm_rope(floats({3, 2, 8}), floats({7}), 1e-6f, ints({3}), angles);
  });
  add("norm_rope_write_rows", {"eps -1"}, [=] {
    norm_rope_write_rows(floats({4, 2, 8}), floats({3, 2, 8}), ints({3}), {}, -1, ints({3}),
                         angles);
  });
  add("causal_softmax", {"f32[2]"}, [=] { causal_softmax(floats({2})); });
  add("fast::rope", {"f32[2]", "integers"}, [=] {
    fast::rope(floats({2, 3, 8}), 8, false, 1e4f, 1, floats({2}));
  });
  add("fast::rope", {"i32[3]", "[2]"}, [=] {
    fast::rope(floats({2, 3, 8}), 8, false, 1e4f, 1, ints({3}));
  });
  const Array heads = floats({2, 4, 3, 8});
  add("fast::scaled_dot_product_attention", {"f32[3]", "f32[4]"},
      [=] { fast::scaled_dot_product_attention(heads, heads, heads, {}, "", {}, floats({3})); });
  add("fast::scaled_dot_product_attention", {"f64[4]", "f32"}, [=] {
    fast::scaled_dot_product_attention(heads, heads, heads, {}, "", {},
                                       zeros_of({DType::f64, {4}}));
  });
}

}  // namespace heddle::test

// group_quantize and group_dequantize: f32, f16 and bf16 to and from MLX's groups.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/group_loops.h"
#include "device/cpu/group_rows.h"
#include "device/cpu/parallel.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kMostGroups = kBlock / 16;  // of a block of elements

/// A group's scale and bias, as codes are chosen with.
struct Chosen {
  float scale, bias;
};

/// Of the least and the largest value, the edge is the one farther from zero. It becomes a whole
/// number of steps, so that zero is one too. (Only where the values lie on one side of zero, and
/// far off, is that number 0, or beyond the largest code.)
Chosen choose_affine(const float* w, std::int64_t n, float largest_code) {
  float least = w[0], largest = w[0];
  for (std::int64_t i = 1; i < n; ++i) {
    least = std::min(least, w[i]);
    largest = std::max(largest, w[i]);
  }
  constexpr float kLeastScale = 1e-7f;
  const bool negative_edge = std::fabs(least) > std::fabs(largest);
  const float step = std::max((largest - least) / largest_code, kLeastScale);
  const float scale = negative_edge ? step : -step;
  const float edge = negative_edge ? least : largest;
  const float steps = std::nearbyint(edge / scale);
  return steps == 0.0f ? Chosen{scale, 0.0f} : Chosen{edge / steps, edge};
}

void encode_affine(const float* w, std::int64_t n, const Chosen& chosen, float largest_code,
                   std::uint8_t* codes) {
  constexpr float kRound = 0x1.8p23f;  // adding it rounds to a whole number, ties to even
  for (std::int64_t i = 0; i < n; ++i) {
    const float steps = (w[i] - chosen.bias) / chosen.scale;
    const float within = steps > 0.0f ? std::min(steps, largest_code) : 0.0f;  // NaN: 0
    codes[i] = static_cast<std::uint8_t>((within + kRound) - kRound);
  }
}

float largest_magnitude(const float* w, std::int64_t n) {
  float largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(w[i]));
  return largest;
}

/// The power of two whose logarithm is nearest to that of `ratio`; 1 for 0.
std::uint8_t encode_e8m0(float ratio) {
  if (ratio == 0.0f) return 127;
  const double exponent = std::nearbyint(std::log2(static_cast<double>(ratio)));
  return static_cast<std::uint8_t>(std::clamp(exponent, -127.0, 127.0) + 127.0);
}

/// Codes of `bits` bits, one after another from the lowest bit on; `n` of them fill whole words.
void pack(const std::uint8_t* codes, std::int64_t n, std::int64_t bits, std::uint32_t* words) {
  std::uint64_t held = 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    held |= std::uint64_t{codes[i]} << count;
    count += bits;
    if (count < 32) continue;
    *words++ = static_cast<std::uint32_t>(held);
    held >>= 32;
    count -= 32;
  }
}

/// Rows are quantised in blocks of up to kBlock elements.
struct Quantizer {
  GroupFormat format;
  BlockSource w;
  BlockSink scales;  // of affine
  std::int64_t width;

  std::int64_t blocks() const { return (width + kBlock - 1) / kBlock; }

  void block(const Launch& launch, std::int64_t row, std::int64_t first) const {
    const std::int64_t n = std::min(kBlock, width - first), groups = n / format.group_size;
    const std::int64_t group = (row * width + first) / format.group_size;
    BlockBuffer scratch;
    const float* values = w.floats(launch.inputs[0].data, row * width + first, n, scratch);
    std::uint8_t codes[kBlock];
    if (format.mode == QuantMode::affine) {
      affine(launch, values, group, groups, codes);
    } else {
      auto* stored = launch.outputs[1].as<std::uint8_t>() + group;
      for (std::int64_t g = 0; g < groups; ++g) {
        const std::int64_t at = g * format.group_size;
        stored[g] = floats(values + at, codes + at);
      }
    }
    auto* words = launch.outputs[0].as<std::uint32_t>() + (row * width + first) / 32 * format.bits +
                  (row * width + first) % 32 * format.bits / 32;
    pack(codes, n, format.bits, words);
  }

 private:
  void affine(const Launch& launch, const float* values, std::int64_t group, std::int64_t groups,
              std::uint8_t* codes) const {
    const auto largest_code = static_cast<float>((1 << format.bits) - 1);
    BlockBuffer scale_scratch, bias_scratch;
    float* scale = scales.float_target(launch.outputs[1].data, group, scale_scratch);
    float* bias = scales.float_target(launch.outputs[2].data, group, bias_scratch);
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t at = g * format.group_size;
      const Chosen chosen = choose_affine(values + at, format.group_size, largest_code);
      encode_affine(values + at, format.group_size, chosen, largest_code, codes + at);
      scale[g] = chosen.scale, bias[g] = chosen.bias;
    }
    scales.store(scale, launch.outputs[1].data, group, groups);
    scales.store(bias, launch.outputs[2].data, group, groups);
  }

  /// Codes of one group; its scale's code.
  std::uint8_t floats(const float* values, std::uint8_t* codes) const {
    const bool e4m3 = format.mode == QuantMode::mxfp8;
    const float ratio =
        largest_magnitude(values, format.group_size) / (e4m3 ? kLargestE4m3 : kLargestE2m1);
    const bool nvfp4 = format.mode == QuantMode::nvfp4;
    const std::uint8_t stored = nvfp4 ? encode_e4m3(ratio) : encode_e8m0(ratio);
    const float scale = nvfp4 ? decode_e4m3(stored) : std::ldexp(1.0f, stored - 127);
    for (std::int64_t i = 0; i < format.group_size; ++i) {
      const float scaled = scale == 0.0f ? 0.0f : values[i] / scale;
      codes[i] = e4m3 ? encode_e4m3(scaled) : encode_e2m1(scaled);
    }
    return stored;
  }
};

Prepared prepare_quantize(const PrepareArgs& args, const GroupQuantize& op) {
  const OperandSpec& w = args.inputs[0];
  if (w.layout.kind != LayoutKind::strided) {
    return refuse(fmt::format("group_quantize: its operand must be strided, not {}", to_string(w)));
  }
  const Shape& shape = w.spec.shape;
  const Quantizer quantizer{op.format, BlockSource(w), BlockSink(w.spec.dtype), shape.back()};
  const LeadingRows rows(shape);
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = shape.size() > 1;
  return make_kernel(std::move(traits), [quantizer, rows](const Launch& launch) {
    const std::int64_t blocks = quantizer.blocks();
    parallel(launch.team, rows.that_count(launch.extent) * blocks, row_grain(8 * kBlock),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 quantizer.block(launch, i / blocks, i % blocks * kBlock);
               }
             });
  });
}

Prepared prepare_dequantize(const PrepareArgs& args, const GroupDequantize& op) {
  if (std::string why = group_rows_refusal(args, 0, op.format); !why.empty()) return refuse(why);
  const GroupOperands groups(args, 0, op.format);
  const Shape& shape = args.outputs[0].spec.shape;
  const LeadingRows rows(shape);
  const BlockSink sink(op.dtype);
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = shape.size() > 1;
  auto run = [=, width = shape.back()](const Launch& launch) {
    const GroupRows w = groups.at(launch);
    const std::int64_t blocks = (width + kBlock - 1) / kBlock;
    parallel(launch.team, rows.that_count(launch.extent) * blocks, row_grain(kBlock),
             [&](std::int64_t begin, std::int64_t end) {
               BlockBuffer scratch;
               for (std::int64_t i = begin; i < end; ++i) {
                 const std::int64_t row = i / blocks, first = i % blocks * kBlock;
                 const std::int64_t n = std::min(kBlock, width - first);
                 std::byte* out = launch.outputs[0].data;
                 float* target = sink.float_target(out, row * width + first, scratch);
                 groups.loops->decode[groups.code](w, row, first, n, target);
                 sink.store(target, out, row * width + first, n);
               }
             });
  };
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace

Prepared prepare_group_quantize(const PrepareArgs& args) {
  if (const auto* op = std::get_if<GroupQuantize>(&args.op)) return prepare_quantize(args, *op);
  return prepare_dequantize(args, std::get<GroupDequantize>(args.op));
}

}  // namespace heddle::cpu

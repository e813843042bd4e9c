// fp8: e4m3 codes to and from f32, f16 and bf16.
#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/group_codes.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"

namespace heddle::cpu {

namespace {

Run encode(const OperandSpec& operand, std::int64_t count, std::int64_t per_row) {
  return [x = BlockSource(operand), count, per_row](const Launch& launch) {
    const std::int64_t all = launch.extent < 0 ? count : std::min(count, launch.extent * per_row);
    parallel(launch.team, (all + kBlock - 1) / kBlock, row_grain(kBlock),
             [&](std::int64_t begin, std::int64_t end) {
               BlockBuffer scratch;
               for (std::int64_t at = begin * kBlock; at < std::min(all, end * kBlock);
                    at += kBlock) {
                 const std::int64_t n = std::min(kBlock, all - at);
                 const float* from = x.floats(launch.inputs[0].data, at, n, scratch);
                 auto* to = launch.outputs[0].as<std::uint8_t>() + at;
                 for (std::int64_t i = 0; i < n; ++i) to[i] = encode_e4m3(from[i]);
               }
             });
  };
}

Run decode(const OperandSpec& operand, DType dtype, std::int64_t count, std::int64_t per_row) {
  return [codes = BlockSource(operand), sink = BlockSink(dtype), count,
          per_row](const Launch& launch) {
    const std::int64_t all = launch.extent < 0 ? count : std::min(count, launch.extent * per_row);
    parallel(
        launch.team, (all + kBlock - 1) / kBlock, row_grain(kBlock),
        [&](std::int64_t begin, std::int64_t end) {
          BlockBuffer scratch, out_scratch;
          for (std::int64_t at = begin * kBlock; at < std::min(all, end * kBlock); at += kBlock) {
            const std::int64_t n = std::min(kBlock, all - at);
            const auto* from =
                static_cast<const std::uint8_t*>(codes.load(launch.inputs[0].data, at, n, scratch));
            float* to = sink.float_target(launch.outputs[0].data, at, out_scratch);
            for (std::int64_t i = 0; i < n; ++i) to[i] = decode_e4m3(from[i]);
            sink.store(to, launch.outputs[0].data, at, n);
          }
        });
  };
}

}  // namespace

Prepared prepare_fp8(const PrepareArgs& args) {
  const OperandSpec& x = args.inputs[0];
  if (x.layout.kind != LayoutKind::strided) {
    return refuse(fmt::format("fp8: its operand must be strided, not {}", to_string(x)));
  }
  const Shape& shape = x.spec.shape;
  const std::int64_t count = elements(shape);
  const std::int64_t per_row = shape.empty() || shape[0] == 0 ? 0 : count / shape[0];
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = !shape.empty();
  const auto& op = std::get<Fp8>(args.op);
  return make_kernel(std::move(traits),
                     op.decode ? decode(x, op.dtype, count, per_row) : encode(x, count, per_row));
}

}  // namespace heddle::cpu

// Padding: rows of the output are rows of x with something on both sides, or all of it.
#include <algorithm>

#include "base/check.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

template <class U>
struct Padder {
  OperandSpec x;
  Shape out;
  Dims low;
  bool edge = false;
  std::int64_t rows = 1, row_length = 1, rows_per_leading = 0;

  void run(const Launch& launch) const {
    const std::int64_t count =
        launch.extent < 0 ? rows : std::min(rows, launch.extent * rows_per_leading);
    parallel(launch.team, count, row_grain(row_length), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) fill_row(launch, r);
    });
  }

 private:
  void fill_row(const Launch& launch, std::int64_t r) const {
    U* to = launch.outputs[0].as<U>() + r * row_length;
    bool outside = false;
    const std::int64_t first = source_of(r, outside);
    if (outside && !edge) {
      std::fill_n(to, row_length, *launch.inputs[1].as<U>());
      return;
    }
    const std::size_t last = out.size() - 1;
    const std::int64_t length = x.spec.shape[last], stride = x.layout.strides[last];
    const U* from = launch.inputs[0].as<U>() + first;
    const std::int64_t after = row_length - low[last] - length;
    // What has no edge is not padded by it, so that the elements read here are there.
    const auto beside = [&](std::int64_t element) {
      return edge ? from[element * stride] : *launch.inputs[1].as<U>();
    };
    if (low[last] > 0) std::fill_n(to, low[last], beside(0));
    to += low[last];
    for (std::int64_t i = 0; i < length; ++i) to[i] = from[i * stride];
    if (after > 0) std::fill_n(to + length, after, beside(length - 1));
  }

  /// Where the row of x that output row `r` shows begins, in elements from the operand's lowest.
  std::int64_t source_of(std::int64_t r, bool& outside) const {
    std::int64_t offset = first_element(x);
    for (std::size_t i = out.size() - 1; i-- > 0;) {
      const std::int64_t at = r % out[i] - low[i];
      r /= out[i];
      outside = outside || at < 0 || at >= x.spec.shape[i];
      offset += std::clamp<std::int64_t>(at, 0, std::max<std::int64_t>(0, x.spec.shape[i] - 1)) *
                x.layout.strides[i];
    }
    return offset;
  }
};

}  // namespace

Prepared prepare_pad(const PrepareArgs& args) {
  const auto& op = std::get<Pad>(args.op);
  OperandSpec x = args.inputs[0];
  for (const OperandSpec& input : args.inputs) {
    if (input.layout.kind == LayoutKind::strided) continue;
    return refuse(fmt::format("pad: operands must be strided, one is {}", to_string(input)));
  }
  Shape out = args.outputs[0].spec.shape;
  Dims low = op.low;
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = out.size() > 1 && op.low[0] == 0 && op.high[0] == 0;
  if (out.empty()) {  // as a row of one
    x.spec.shape = out = {1};
    x.layout.strides = {1};
    low = {0};
  }
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < out.size(); ++i) rows *= out[i];
  const std::int64_t per_leading = out.size() > 1 && out[0] > 0 ? rows / out[0] : 0;
  Run run = with_item_type(item_size(x.spec.dtype), [&](auto tag) -> Run {
    using U = typename decltype(tag)::type;
    return [padder = Padder<U>{x, out, low, op.mode == Pad::Mode::edge, rows, out.back(),
                               per_leading}](const Launch& launch) { padder.run(launch); };
  });
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace heddle::cpu

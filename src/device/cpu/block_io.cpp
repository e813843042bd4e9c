#include "device/cpu/block_io.h"

#include "device/cpu/types.h"

namespace heddle::cpu {

BlockSource::BlockSource(const OperandSpec& operand, const Shape& shape)
    : walk_(make_walk(shape, broadcast_strides(operand, shape))),
      item_(item_size(operand.spec.dtype)),
      dense_(walk_.dense()),
      widen_(is_half(operand.spec.dtype) ? widen_function(operand.spec.dtype) : nullptr) {}

const void* BlockSource::load(const std::byte* base, std::int64_t begin, std::int64_t n,
                              BlockBuffer& scratch) const {
  if (dense_) {
    const std::byte* from = at(base, begin);
    if (!widen_) return from;
    widen_(from, scratch.floats(), n);
    return scratch.bytes;
  }
  if (!widen_) {
    gather(walk_, item_, base, begin, n, scratch.bytes);
    return scratch.bytes;
  }
  alignas(64) std::byte halves[kBlock * 2];
  gather(walk_, item_, base, begin, n, halves);
  widen_(halves, scratch.floats(), n);
  return scratch.bytes;
}

BlockSink::BlockSink(DType dtype)
    : item_(item_size(dtype)), narrow_(is_half(dtype) ? narrow_function(dtype) : nullptr) {}

BlockSink BlockSink::of_output(const TensorSpec& output) {
  BlockSink sink(output.dtype);
  const std::int64_t most = kStreamedBytes / static_cast<std::int64_t>(sink.item_);
  if (elements(output.shape) >= most) sink.stream_ = row_ops().stream;
  return sink;
}

void BlockSink::put(const void* computed, std::byte* to, std::int64_t n) const {
  const std::int64_t bytes = n * static_cast<std::int64_t>(item_);
  if (!narrow_) return stream_(computed, to, bytes);
  const auto* floats = static_cast<const float*>(computed);
  if (!stream_) return narrow_(floats, to, n);
  alignas(64) std::byte halves[kBlock * 2];
  narrow_(floats, halves, n);
  stream_(halves, to, bytes);
}

void allow_in_place(KernelTraits& traits, std::size_t output, const OperandSpec& output_spec,
                    std::span<const OperandSpec> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& spec = inputs[i].spec;
    if (is_contiguous(inputs[i]) && spec.shape == output_spec.spec.shape &&
        item_size(spec.dtype) == item_size(output_spec.spec.dtype)) {
      traits.aliases.push_back({output, i, false});
    }
  }
}

}  // namespace heddle::cpu

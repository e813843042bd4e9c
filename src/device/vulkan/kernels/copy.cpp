// Moving items as they are: contiguous, view, concatenate, slice_update; and arange.
#include <bit>
#include <cmath>
#include <cstdlib>

#include "base/check.h"
#include "device/strides.h"
#include "device/vulkan/kernels/walk.h"
#include "heddle/half.h"

namespace heddle::vulkan {

namespace {

constexpr std::size_t kNumbers = 17;  // that the shader `copy` has room for

/// Dispatches that move items, for one kernel.
class Mover {
 public:
  explicit Mover(const PrepareArgs& args) : args_(args), maker_(args) {}

  KernelTraits& traits() { return maker_.traits; }

  /// All of input `from` to the output, one after the other.
  void to_contiguous(std::size_t from, const Items& items) {
    const Walk walk =
        make_walk(name(args_.op), items.shape, std::span(&items.strides, 1), kNumbers);
    add("copy", walk, items.bytes, input(from, walk.first[0] * items.bytes), output(0), false);
  }
  /// All of input `from` to where `strides` put it, from the output's item `first` on.
  void to_strides(std::size_t from, const Items& items, const Dims& strides, std::uint64_t first,
                  bool after_previous) {
    const std::vector<Dims> both{items.strides, strides};
    const Walk walk = make_walk(name(args_.op), items.shape, both, kNumbers);
    if (!walk.refusal.empty()) return refused(walk.refusal);
    add("copy_strided", walk, items.bytes, input(from, walk.first[0] * items.bytes),
        output(0, (first + walk.first[1]) * items.bytes), after_previous);
  }
  Prepared finish() { return refusal_.empty() ? maker_.finish() : refuse(refusal_); }

 private:
  void refused(const std::string& why) {
    if (refusal_.empty()) refusal_ = why;
  }
  void add(std::string_view shader, const Walk& walk, std::size_t bytes, Address from, Address to,
           bool after_previous) {
    if (!walk.refusal.empty()) return refused(walk.refusal);
    if (walk.count() == 0) return;
    const bool honours = traits().honours_extent;
    maker_.dispatch({shader,
                     walk_group(args_.limits),
                     {walk.rank(), static_cast<std::uint32_t>(bytes)},
                     grid_of(walk, honours, args_.limits),
                     {from, to, honours ? extent() : nothing()},
                     after_previous},
                    walk_params<kNumbers>(walk));
  }

  const PrepareArgs& args_;
  KernelMaker maker_;
  std::string refusal_;
};

/// Contiguous, and view as another dtype, which may leave the bytes where they are.
Prepared prepare_contiguous(const PrepareArgs& args) {
  const OperandSpec& x = args.inputs[0];
  const TensorSpec& result = args.outputs[0].spec;
  const Items items = movable_items(x);
  if (std::string reason = item_refusal(args, items); !reason.empty()) return refuse(reason);
  Mover mover(args);
  // Not where a view joins elements along axis 0.
  mover.traits().honours_extent =
      !x.spec.shape.empty() && !result.shape.empty() && x.spec.shape[0] == result.shape[0];
  if (std::holds_alternative<Reinterpret>(args.op) && is_contiguous(x)) {
    mover.traits().aliases.push_back({0, 0, false});
  }
  mover.to_contiguous(0, items);
  return mover.finish();
}

Prepared prepare_slice_update(const PrepareArgs& args, const SliceUpdate& op) {
  const OperandSpec &base = args.inputs[0], &whole = args.outputs[0];
  const Items items = as_items(base);
  if (std::string reason = item_refusal(args, items); !reason.empty()) return refuse(reason);
  Mover mover(args);
  if (is_contiguous(base)) mover.traits().aliases.push_back({0, 0, false});
  mover.to_contiguous(0, items);
  const ViewOf slice = view_of(Slice{op.start, op.stop, op.step}, whole).value();
  const auto first = static_cast<std::uint64_t>(slice.offset_bytes) / items.bytes;
  mover.to_strides(1, as_items(args.inputs[1]), slice.layout.strides, first, true);
  return mover.finish();
}

Prepared prepare_concatenate(const PrepareArgs& args, const Concatenate& op) {
  const Items joined = movable_items(args.outputs[0]);
  if (std::string reason = item_refusal(args, joined); !reason.empty()) return refuse(reason);
  const auto axis = static_cast<std::size_t>(op.axis);
  Mover mover(args);
  mover.traits().honours_extent = axis != 0;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const Items items = movable_items(args.inputs[i]);
    mover.to_strides(i, items, joined.strides, static_cast<std::uint64_t>(first), false);
    first += items.shape[axis] * joined.strides[axis];
  }
  return mover.finish();
}

// ---- Arange

struct ArangeParams {
  std::uint32_t size = 0;
  std::uint32_t start[2] = {}, step[2] = {};

  void set(std::uint64_t first, std::uint64_t difference) {
    start[0] = static_cast<std::uint32_t>(first),
    start[1] = static_cast<std::uint32_t>(first >> 32);
    step[0] = static_cast<std::uint32_t>(difference);
    step[1] = static_cast<std::uint32_t>(difference >> 32);
  }
};

/// The bits of an item that holds `value`.
std::uint64_t item_bits(DType dtype, double value) {
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<std::uint64_t>(value);
    case DType::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::f16:
      return f16(static_cast<float>(value)).bits;
    case DType::bf16:
      return bf16(static_cast<float>(value)).bits;
    default:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

/// Whether all values are whole and exact as doubles.
bool is_whole(const Arange& op) {
  const double size = static_cast<double>(op.size);
  return op.start == std::trunc(op.start) && op.step == std::trunc(op.step) &&
         std::fabs(op.start) + std::fabs(op.step) * size < 0x1p53;
}

bool needs_doubles(const Arange& op) {
  return op.dtype == DType::f64 || !is_whole(op);
}

std::string arange_refusal(const PrepareArgs& args, const Arange& op) {
  constexpr double kLimit = 9.2e18;
  constexpr std::int64_t kMostSize = 0xffff0000;  // so that rounding up to whole groups fits
  const double last = op.start + op.step * static_cast<double>(op.size);
  if (is_integer(op.dtype) && !(std::fabs(op.start) < kLimit && std::fabs(last) < kLimit)) {
    return "arange: its values must be within 9.2e18 of zero for an integer dtype";
  }
  if (op.size > kMostSize) {
    return fmt::format("arange: {} elements; at most {}", op.size, kMostSize);
  }
  if (op.step != 0 && needs_doubles(op) && !args.limits.float64) {
    return fmt::format("arange: from {} in steps of {}, on a device without 64-bit floats",
                       op.start, op.step);
  }
  return narrow_refusal(args, op.dtype);
}

Prepared prepare_arange(const PrepareArgs& args, const Arange& op) {
  if (std::string reason = arange_refusal(args, op); !reason.empty()) return refuse(reason);
  KernelMaker maker(args);
  if (op.size == 0) return maker.finish();
  const bool fill = op.step == 0, whole = !needs_doubles(op);
  ArangeParams params{static_cast<std::uint32_t>(op.size)};
  if (fill) {
    params.set(item_bits(op.dtype, op.start), 0);
  } else if (whole) {
    params.set(static_cast<std::uint64_t>(static_cast<std::int64_t>(op.start)),
               static_cast<std::uint64_t>(static_cast<std::int64_t>(op.step)));
  } else {
    params.set(std::bit_cast<std::uint64_t>(op.start), std::bit_cast<std::uint64_t>(op.step));
  }
  const std::uint32_t group = walk_group(args.limits);
  maker.dispatch({fill || whole ? "arange" : "arange_f64",
                  group,
                  {static_cast<std::uint32_t>(op.dtype), fill},
                  {(params.size + group - 1) / group},
                  {output(0)}},
                 params);
  return maker.finish();
}

}  // namespace

Prepared prepare_copy(const PrepareArgs& args) {
  if (const auto* op = std::get_if<Arange>(&args.op)) return prepare_arange(args, *op);
  if (std::string packed = packed_refusal(args); !packed.empty()) return refuse(packed);
  if (const auto* op = std::get_if<Concatenate>(&args.op)) return prepare_concatenate(args, *op);
  if (const auto* op = std::get_if<SliceUpdate>(&args.op)) return prepare_slice_update(args, *op);
  return prepare_contiguous(args);
}

}  // namespace heddle::vulkan

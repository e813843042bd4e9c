// gather: slices at indices.
#include "base/check.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/slice_starts.h"
#include "device/cpu/slices.h"

namespace heddle::cpu {

namespace {

struct Gatherer {
  Starts starts;
  Slices slices;
  std::int64_t per_row = 0;  // slices of an index of axis 0; 0 without such an axis

  void run(const Launch& launch) const {
    std::int64_t wanted = starts.count();
    if (launch.extent >= 0 && per_row > 0) wanted = std::min(wanted, launch.extent * per_row);
    if (slices.count() >= 2 * kGrainElements) return in_parts(launch, wanted);
    parallel(launch.team, wanted, row_grain(slices.count()),
             [&](std::int64_t begin, std::int64_t end) { copy(launch, begin, end); });
  }

 private:
  void copy(const Launch& launch, std::int64_t begin, std::int64_t end) const {
    const auto bytes = static_cast<std::int64_t>(slices.item());
    Indices::Scratch scratch;
    std::int64_t offsets[kBlock];
    for (std::int64_t t = begin; t < end; t += kBlock) {
      const std::int64_t n = std::min(kBlock, end - t);
      starts.load(launch, t, n, bytes, offsets, scratch);
      slices.copy(launch.inputs[0].data, offsets, n,
                  launch.outputs[0].data + t * slices.count() * bytes);
    }
  }

  /// Slices so large that threads share each.
  void in_parts(const Launch& launch, std::int64_t wanted) const {
    const std::int64_t parts = (slices.count() + kGrainElements - 1) / kGrainElements;
    const auto bytes = static_cast<std::int64_t>(slices.item());
    parallel(launch.team, wanted * parts, 1, [&](std::int64_t begin, std::int64_t end) {
      Indices::Scratch scratch;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t t = i / parts, first = i % parts * kGrainElements;
        const std::int64_t n = std::min(kGrainElements, slices.count() - first);
        std::int64_t offset;
        starts.load(launch, t, 1, bytes, &offset, scratch);
        slices.copy_part(launch.inputs[0].data + offset, first, n,
                         launch.outputs[0].data + (t * slices.count() + first) * bytes);
      }
    });
  }
};

}  // namespace

Prepared prepare_gather_slices(const PrepareArgs& args) {
  const auto& op = std::get<Gather>(args.op);
  const OperandSpec& x = args.inputs[0];
  for (const OperandSpec& operand : args.inputs) {
    if (operand.layout.kind == LayoutKind::strided) continue;
    return refuse(fmt::format("gather: operands must be strided, not {}", to_string(operand)));
  }
  Gatherer gatherer;
  gatherer.starts = Starts(args, op.axes, op.slice_sizes);
  gatherer.slices = Slices(op.slice_sizes, x.layout.strides, item_size(x.spec.dtype));
  const Shape indices = op.axes.empty() ? Shape{} : args.inputs[1].spec.shape;
  if (!indices.empty() && indices[0] > 0) gatherer.per_row = gatherer.starts.count() / indices[0];
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = !indices.empty();
  return make_kernel(std::move(traits), [gatherer](const Launch& launch) { gatherer.run(launch); });
}

}  // namespace heddle::cpu

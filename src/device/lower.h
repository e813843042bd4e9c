// Legalization: an op that a device lacks, written in ops that it may have. Both executors use it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/device.h"

namespace heddle {

/// One op of a lowered form. Sources are the original op's inputs or earlier steps' outputs.
struct LoweredStep {
  struct Source {
    bool from_input = true;
    std::size_t index = 0;   // which input, or which step
    std::size_t output = 0;  // of the step
  };
  Op op;
  std::vector<Source> sources;
};

struct Lowered {
  std::vector<LoweredStep> steps;
  std::vector<LoweredStep::Source> outputs;
};

/// The op in simpler ones, or nothing if it has no simpler form: fused ops into their parts,
/// attention into blocks of products and softmax, off-axis reductions into a transpose and a
/// last-axis one, mid-axis broadcasts into explicit ones, views that must copy into a contiguous
/// copy and the view. Results agree with the op's own within rounding. Lowered ops may need
/// lowering again.
std::optional<Lowered> lower(const Op& op, std::span<const TensorSpec> inputs);

/// How a device can run an op, in the order in which executors try. Leaves, and views that strides
/// can express, are `direct` without a kernel. Outputs of a lowered form are contiguous, but for a
/// view that strides express. `reason` names the op and the device, and for a lowered form the
/// step.
struct Legal {
  enum class How {
    direct,      // the kernel takes the operands as they lie
    contiguous,  // ... once the inputs marked in `copy` are copied to be contiguous
    lowered,     // by the steps of `lowered`, each of which the device can run in its turn
    no,          // not at all: `reason`
  } how = How::no;
  std::shared_ptr<const Kernel> kernel;  // direct and contiguous
  std::vector<bool> copy;                // contiguous: per input
  Lowered lowered;
  std::string reason;
};
Legal legalize(Device& device, const Op& op, std::span<const OperandSpec> inputs,
               std::span<const TensorSpec> outputs = {});

}  // namespace heddle

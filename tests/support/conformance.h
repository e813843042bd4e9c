// Running one op on a device and comparing what comes out with the reference: for every device.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "heddle/device.h"
#include "support/guarded.h"
#include "support/reference.h"

namespace heddle::test {

/// An input: its bytes, exactly as many as the operand spans.
struct Tensor {
  OperandSpec operand;
  std::vector<std::byte> bytes;
};

/// How an input lies in memory.
enum class Arrangement {
  contiguous,
  transposed,  // the axes in reverse order, outermost fastest
  sliced,      // every second element of the last axis, of rows with a gap between them
  broadcast,   // one row repeated along axis 0
  reversed,    // every axis backwards; only for ops that read so
};
inline constexpr Arrangement kArrangements[] = {Arrangement::contiguous, Arrangement::transposed,
                                                Arrangement::sliced, Arrangement::broadcast};
/// And backwards.
inline constexpr Arrangement kAllArrangements[] = {Arrangement::contiguous, Arrangement::transposed,
                                                   Arrangement::sliced, Arrangement::broadcast,
                                                   Arrangement::reversed};

/// The operand of a plain dtype so arranged. Block types: contiguous, rows with a gap, or in
/// reverse order.
OperandSpec arranged(DType dtype, const Shape& shape, Arrangement arrangement);

/// What numbers to fill a tensor with.
struct Fill {
  double low = -2, high = 2;
  bool special = false;  // NaN, infinities, zeros and the extremes among them, where there are any
};

using Random = std::mt19937_64;
Tensor random_tensor(const OperandSpec& operand, Random& random, Fill fill = {});
Tensor random_tensor(DType dtype, const Shape& shape, Random& random, Fill fill = {});
/// A contiguous tensor of the values given, rounded to the dtype.
Tensor tensor_of(DType dtype, const Shape& shape, const std::vector<double>& values);

/// By how much a result may differ: `ulps` units in the last place of the result's dtype, or
/// `absolute`, whichever is more. Integers and bools must always be equal.
struct Tolerance {
  double ulps = 0.5001;
  double absolute = 0;
};

/// Empty if `got` agrees with `want`, and else where and how it does not.
std::string difference(const Values& got, const Values& want, Tolerance tolerance);

struct RunOptions {
  int threads = 1;
  std::int64_t extent = -1;  // negative: none
  bool in_place = false;     // outputs over inputs, as the kernel's aliases allow
  /// Operands end, or begin, at inaccessible pages, inputs read-only, where the device imports
  /// them.
  std::optional<Flush> guarded;
};

/// The byte that outputs hold before a kernel writes them.
inline constexpr std::byte kUntouched{0xa5};

/// The outputs' bytes, or why the device does not run the op.
struct Ran {
  std::vector<Tensor> outputs;
  KernelTraits traits;
  std::string refused;
};
Ran run_op(Device& device, const Op& op, const std::vector<Tensor>& inputs,
           const RunOptions& options = {});

/// Runs the op (on the CPU with 1, 2 and 8 threads, on other devices with guarded operands) and in
/// place, which must give the same bits, and compares them with the reference. Fails the test with
/// what differs; a refusal is a failure too.
void expect_conformance(Device& device, const Op& op, const std::vector<Tensor>& inputs,
                        Tolerance tolerance = {});

/// Runs the op on all rows, on one row at a time and with every extent that makes a difference:
/// each row must have the same bits, and rows beyond an extent that is honoured stay untouched.
void expect_rows_alone(Device& device, const Op& op, const std::vector<Tensor>& inputs);

}  // namespace heddle::test

#include "op/infer.h"

namespace heddle {

Specs infer_op(const GroupQuantize&, const Operands& in) {
  in.check(false, "PENDING");
  return {};
}

Specs infer_op(const GroupDequantize&, const Operands& in) {
  in.check(false, "PENDING");
  return {};
}

Specs infer_op(const GroupMatmul&, const Operands& in) {
  in.check(false, "PENDING");
  return {};
}

Specs infer_op(const GatherMatmul&, const Operands& in) {
  in.check(false, "PENDING");
  return {};
}

Specs infer_op(const SegmentedMatmul&, const Operands& in) {
  in.check(false, "PENDING");
  return {};
}

Specs infer_op(const Fp8&, const Operands& in) {
  in.check(false, "PENDING");
  return {};
}

Specs infer_op(const CausalSoftmax&, const Operands& in) {
  in.check(false, "PENDING");
  return {};
}

Specs infer_op(const NormRope&, const Operands& in) {
  in.check(false, "PENDING");
  return {};
}

Specs infer_op(const NormRopeWriteRows&, const Operands& in) {
  in.check(false, "PENDING");
  return {};
}

}  // namespace heddle

// Rules for transforms and factors.
#include "heddle/fft.h"
#include "heddle/linalg.h"
#include "heddle/ops.h"
#include "support/program_rules.h"

namespace heddle::test {

namespace {

std::optional<Proposal> propose_hadamard(Draft& draft) {
  const auto x = draft.find([](const Draft::Value& v) {
    return is_floating(v.spec().dtype) && !v.shape().empty() && v.array.size() > 0 &&
           hadamard_order(v.shape().back()) > 0;
  });
  if (!x) return std::nullopt;
  const double root = std::sqrt(static_cast<double>(draft[*x].shape().back()));
  return Proposal{{*x}, {}, Range::around_zero(root * draft[*x].range.magnitude()).widened()};
}
std::vector<Array> build_hadamard(const ProgramStep&, std::vector<Array>& in) {
  return {hadamard_transform(in[0])};
}

/// Magnitudes, as programs have real numbers. Numbers: the axis.
std::optional<Proposal> propose_fft(Draft& draft) {
  const auto x = draft.find_floating(1);
  if (!x) return std::nullopt;
  const std::size_t axis = draft.below(draft[*x].shape().size());
  const std::int64_t extent = draft[*x].shape()[axis];
  if (extent == 0) return std::nullopt;
  const double most = static_cast<double>(extent) * draft[*x].range.magnitude();
  return Proposal{{*x}, {static_cast<std::int64_t>(axis)}, Range{0, most}.widened()};
}
std::vector<Array> build_fft(const ProgramStep& step, std::vector<Array>& in) {
  return {abs(fft::rfft(in[0], static_cast<int>(step.numbers[0])))};
}

std::optional<Proposal> propose_singular_values(Draft& draft) {
  const auto x = draft.find([](const Draft::Value& v) {
    return (v.spec().dtype == DType::f32 || v.spec().dtype == DType::f64) && v.shape().size() >= 2;
  });
  if (!x) return std::nullopt;
  const Shape& shape = draft[*x].shape();
  const auto count = static_cast<double>(shape.back() * shape[shape.size() - 2]);
  const double most = std::sqrt(count) * draft[*x].range.magnitude();
  return Proposal{{*x}, {}, Range{0, most}.widened()};
}
std::vector<Array> build_singular_values(const ProgramStep&, std::vector<Array>& in) {
  return linalg::svd(in[0], false);
}

constexpr Rule kRules[] = {
    {"hadamard", 3, propose_hadamard, build_hadamard},
    {"fft", 2, propose_fft, build_fft},
    {"singular_values", 1, propose_singular_values, build_singular_values},
};

}  // namespace

std::span<const Rule> linalg_rules() {
  return kRules;
}

}  // namespace heddle::test

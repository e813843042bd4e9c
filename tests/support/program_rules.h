// How random programs choose their steps, one rule an op.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "support/random_program.h"

namespace heddle::test {

/// What the elements of a value are known to lie between.
struct Range {
  double lo = 0, hi = 0;

  double magnitude() const { return std::max(std::abs(lo), std::abs(hi)); }
  bool within(double least, double most) const { return least <= lo && hi <= most; }
  /// All elements are at least `distance` from zero.
  bool avoids_zero(double distance) const { return lo >= distance || hi <= -distance; }
  /// With room for the rounding of half types.
  Range widened() const { return {lo - std::abs(lo) / 64, hi + std::abs(hi) / 64}; }
  static Range around_zero(double most) { return {-most, most}; }
  static Range of_both(Range a, Range b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }
};

/// A program being written, and what a rule may look at.
class Draft {
 public:
  struct Value {
    Array array;  // not evaluated: for its spec
    Range range;
    const TensorSpec& spec() const { return array.spec(); }
    const Shape& shape() const { return array.shape(); }
  };

  Draft(unsigned seed, bool halves) : random_(seed), halves_(halves) { program_.seed = seed; }

  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(below(static_cast<std::size_t>(most - least + 1)));
  }
  bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }

  const Value& operator[](std::size_t value) const { return values_[value]; }
  /// A value, rather a late one.
  std::size_t any();
  template <class Fits>
  std::optional<std::size_t> find(const Fits& fits) {
    for (int i = 0; i < 40; ++i) {
      if (const std::size_t value = any(); fits(values_[value])) return value;
    }
    return std::nullopt;
  }
  std::optional<std::size_t> find_floating(std::size_t min_rank = 0);

  /// A new input with values from `range`.
  std::size_t input(DType dtype, const Shape& shape, Range range);
  std::size_t input_of(DType dtype, const Shape& shape, const std::vector<double>& values);
  /// A new input of `count` indices below `limit`.
  std::size_t indices(std::int64_t count, std::int64_t limit);

  /// Adds a step by the rule, or nothing if the rule finds no operands this time.
  void grow(std::size_t rule);
  Program finish();

 private:
  bool is_welcome(const Array& array, Range range) const;
  void append(ProgramStep step, std::vector<Array> arrays, Range range);

  std::mt19937 random_;
  const bool halves_;
  Program program_;
  std::vector<Value> values_;
};

struct Proposal {
  std::vector<std::size_t> operands;
  std::vector<std::int64_t> numbers;
  Range range;  // of every output
  bool fails = false;
};

struct Rule {
  const char* name;
  int weight;  // how often it is tried, beside the others'
  std::optional<Proposal> (*propose)(Draft&);
  /// Operands come as the last handles wherever the replay drops them here: what takes an array's
  /// place moves it on.
  std::vector<Array> (*build)(const ProgramStep& step, std::vector<Array>& operands);
};

/// All rules. The first gives inputs: its number is the input's.
std::span<const Rule> program_rules();
inline constexpr std::size_t kInputRule = 0;

std::span<const Rule> elementwise_rules();
std::span<const Rule> shape_rules();
std::span<const Rule> row_rules();
std::span<const Rule> axis_rules();
std::span<const Rule> linalg_rules();
std::span<const Rule> order_rules();

/// Fails when it runs; not among the rules.
const Rule& failing_rule();
inline constexpr std::size_t kFailingRule = ~std::size_t{0};

inline Shape shape_of(const std::vector<std::int64_t>& numbers, std::size_t from = 0) {
  return Shape(std::span(numbers).subspan(from));
}
inline bool is_boolean(DType dtype) {
  return dtype == DType::bool_;
}
inline bool is_half(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace heddle::test

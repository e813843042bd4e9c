#include "cli/compare_dumps.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <map>

#include "base/check.h"
#include "io/npy.h"

namespace heddle::cli {

namespace {

constexpr std::size_t kMostListed = 10;

template <class T>
std::vector<double> doubles_as(const std::vector<std::byte>& bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

/// Complex numbers as two each.
std::vector<double> doubles(const npy::Tensor& tensor) {
  switch (tensor.spec.dtype) {
    case DType::bool_:
    case DType::u8:
      return doubles_as<std::uint8_t>(tensor.bytes);
    case DType::u16:
      return doubles_as<std::uint16_t>(tensor.bytes);
    case DType::u32:
      return doubles_as<std::uint32_t>(tensor.bytes);
    case DType::u64:
      return doubles_as<std::uint64_t>(tensor.bytes);
    case DType::i8:
      return doubles_as<std::int8_t>(tensor.bytes);
    case DType::i16:
      return doubles_as<std::int16_t>(tensor.bytes);
    case DType::i32:
      return doubles_as<std::int32_t>(tensor.bytes);
    case DType::i64:
      return doubles_as<std::int64_t>(tensor.bytes);
    case DType::f64:
      return doubles_as<double>(tensor.bytes);
    case DType::f32:
    case DType::complex64:
      return doubles_as<float>(tensor.bytes);
    default:
      fail(ErrorCode::io, "dumps hold no {}", to_string(tensor.spec.dtype));
  }
}

/// By how much the two exceed the tolerance: above 0, they differ.
double excess(double a, double b, const Tolerance& tolerance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return -tolerance.absolute;
  const double over = std::abs(a - b) - (tolerance.absolute + tolerance.relative * std::abs(b));
  return std::isnan(over) || std::isinf(a) || std::isinf(b) ? INFINITY : over;
}

void compare_values(const std::vector<double>& a, const std::vector<double>& b,
                    const Tolerance& tolerance, ComparedValue& out) {
  double most = -INFINITY;
  for (std::size_t i = 0; i < a.size(); ++i) {
    out.nan_a += std::isnan(a[i]);
    out.nan_b += std::isnan(b[i]);
    const double difference = std::abs(a[i] - b[i]);
    if (std::isfinite(difference)) {
      out.largest_absolute = std::max(out.largest_absolute, difference);
      if (b[i] != 0) {
        out.largest_relative = std::max(out.largest_relative, difference / std::abs(b[i]));
      }
    }
    const double over = excess(a[i], b[i], tolerance);
    if (over <= most) continue;
    most = over;
    out.worst = static_cast<std::int64_t>(i);
    out.worst_a = a[i];
    out.worst_b = b[i];
  }
  out.agree = most <= 0;
}

ComparedValue compared(const std::filesystem::path& a_directory, const DumpedValue& a,
                       const std::filesystem::path& b_directory, const DumpedValue& b,
                       const Tolerance& tolerance) {
  ComparedValue out{.a = a, .b = b};
  const npy::Tensor left = npy::read(a_directory / a.file), right = npy::read(b_directory / b.file);
  out.a.shape = left.spec.shape;
  out.b.shape = right.spec.shape;
  out.same_shape = left.spec.shape == right.spec.shape;
  const std::vector<double> in_a = doubles(left), in_b = doubles(right);
  if (!out.same_shape || in_a.size() != in_b.size()) {
    out.agree = false;
  } else {
    compare_values(in_a, in_b, tolerance, out);
  }
  return out;
}

/// "[2, 17]"
std::string position(std::int64_t index, const Shape& shape) {
  Dims at(shape.size(), 0);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 0) break;
    at[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return to_string(at);
}

std::string place(const DumpedValue& value) {
  return value.device.empty() ? "an input" : value.device;
}

std::string line(const ComparedValue& value) {
  std::string text = fmt::format("step {}, {}: ", value.a.run, value.a.name);
  if (!value.same_shape) {
    return text +
           fmt::format("{} in A, {} in B\n", to_string(value.a.shape), to_string(value.b.shape));
  }
  text += fmt::format(
      "largest difference {:.3g} absolute, {:.3g} relative; at {} of {}: {:.6g} in A ({}), {:.6g} "
      "in B ({})",
      value.largest_absolute, value.largest_relative, position(value.worst, value.a.shape),
      to_string(value.a.shape), value.worst_a, place(value.a), value.worst_b, place(value.b));
  if (value.nan_a + value.nan_b > 0) {
    text += fmt::format("; {} NaN in A, {} in B", value.nan_a, value.nan_b);
  }
  return text + "\n";
}

std::string names(const char* where, const std::vector<DumpedValue>& values) {
  if (values.empty()) return "";
  std::string text = fmt::format("only in {}: {} values\n", where, values.size());
  for (std::size_t i = 0; i < std::min(values.size(), kMostListed); ++i) {
    text += fmt::format("  step {}, {}\n", values[i].run, values[i].name);
  }
  if (values.size() > kMostListed)
    text += fmt::format("  and {} more\n", values.size() - kMostListed);
  return text;
}

}  // namespace

bool Comparison::agree() const {
  return std::ranges::all_of(values, &ComparedValue::agree);
}

Comparison compare_dumps(const std::filesystem::path& a, const std::filesystem::path& b,
                         const Tolerance& tolerance) {
  using Key = std::pair<std::uint64_t, std::string>;
  const std::vector<DumpedValue> in_a = read_dump(a), in_b = read_dump(b);
  std::map<Key, const DumpedValue*> others;
  for (const DumpedValue& value : in_b) others[{value.run, value.name}] = &value;
  Comparison out;
  for (const DumpedValue& value : in_a) {
    const auto other = others.extract({value.run, value.name});
    if (other.empty()) {
      out.only_a.push_back(value);
    } else {
      out.values.push_back(compared(a, value, b, *other.mapped(), tolerance));
    }
  }
  for (const DumpedValue& value : in_b) {
    if (others.contains({value.run, value.name})) out.only_b.push_back(value);
  }
  require(!out.values.empty(), ErrorCode::invalid_argument,
          "{} and {} have no value in common: {} in the one, {} in the other", a.string(),
          b.string(), in_a.size(), in_b.size());
  return out;
}

std::string to_text(const Comparison& comparison, const Tolerance& tolerance) {
  std::vector<const ComparedValue*> parted;
  for (const ComparedValue& value : comparison.values) {
    if (!value.agree) parted.push_back(&value);
  }
  std::string text =
      fmt::format("{} values compared, {} differ by more than {:g} + {:g} * |B|\n",
                  comparison.values.size(), parted.size(), tolerance.absolute, tolerance.relative);
  if (!parted.empty()) {
    text += "they part first at\n  " + line(*parted[0]);
    const auto further = std::min(parted.size(), kMostListed + 1);
    if (further > 1) text += "and then, the largest first, at\n";
    std::ranges::stable_sort(parted.begin() + 1, parted.end(), std::ranges::greater(),
                             &ComparedValue::largest_absolute);
    for (std::size_t i = 1; i < further; ++i) text += "  " + line(*parted[i]);
    if (parted.size() > further) text += fmt::format("  and {} more\n", parted.size() - further);
  } else {
    const auto most =
        std::ranges::max_element(comparison.values, {}, &ComparedValue::largest_absolute);
    text += "the largest difference is at\n  " + line(*most);
  }
  return text + names("A", comparison.only_a) + names("B", comparison.only_b);
}

}  // namespace heddle::cli

// Arrays as text, laid out as NumPy's repr lays them out.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "array/launch.h"
#include "base/check.h"
#include "heddle/half.h"
#include "heddle/ops.h"

namespace heddle {

namespace {

// NumPy's defaults.
constexpr std::int64_t kSummarizeBeyond = 1000;
constexpr std::int64_t kEdgeItems = 3;
constexpr std::size_t kLineWidth = 75;
constexpr int kMostFraction = 8;

// ---- Floating numbers

/// A number's shortest digits that read back as the same value of its type.
struct Digits {
  int fraction = 0;  // digits after the first
  int exponent = 0;
};

Digits parse_scientific(std::string_view text) {  // "-1.25e-05"
  const std::size_t e = text.find('e');
  const std::size_t point = text.find('.');
  Digits digits;
  if (point != std::string_view::npos) digits.fraction = static_cast<int>(e - point - 1);
  const std::string exponent(text.substr(e + 1));
  digits.exponent = std::atoi(exponent.c_str());
  return digits;
}

bool reads_back(double text_value, double value, DType dtype) {
  const auto as_float = static_cast<float>(text_value);
  return dtype == DType::f16 ? static_cast<float>(f16(as_float)) == static_cast<float>(value)
                             : static_cast<float>(bf16(as_float)) == static_cast<float>(value);
}

Digits shortest(double value, DType dtype) {
  std::array<char, 64> text;
  char* end = nullptr;
  if (dtype == DType::f64) {
    end = std::to_chars(text.begin(), text.end(), value, std::chars_format::scientific).ptr;
  } else if (dtype != DType::f16 && dtype != DType::bf16) {
    const auto single = static_cast<float>(value);
    end = std::to_chars(text.begin(), text.end(), single, std::chars_format::scientific).ptr;
  } else {
    for (int fraction = 0;; ++fraction) {
      end = std::to_chars(text.begin(), text.end(), value, std::chars_format::scientific, fraction)
                .ptr;
      *end = '\0';
      if (reads_back(std::strtod(text.data(), nullptr), value, dtype)) break;
    }
  }
  return parse_scientific({text.data(), static_cast<std::size_t>(end - text.data())});
}

/// One way to write all the numbers of an array, so that their points stand below each other.
class FloatStyle {
 public:
  FloatStyle(const std::vector<double>& values, DType dtype, bool plus)
      : dtype_(dtype), plus_(plus) {
    double most = 0, least = INFINITY;
    for (const double v : values) {
      if (!std::isfinite(v) || v == 0) continue;
      most = std::max(most, std::abs(v));
      least = std::min(least, std::abs(v));
    }
    scientific_ = most >= 1e8 || least < 1e-4 || (most > 0 && most / least > 1000);
    for (const double v : values) {
      if (std::isfinite(v)) precision_ = std::max(precision_, fraction_of(v));
    }
    for (const double v : values) measure(v);
    for (const double v : values) {
      if (!std::isfinite(v))
        left_ = std::max(left_, text_of(v).size() - std::min(text_of(v).size(), right_ + 1));
    }
  }

  std::string operator()(double value) const {
    const std::string text = text_of(value);
    if (!std::isfinite(value)) return fmt::format("{:>{}}", text, left_ + 1 + right_);
    const std::size_t whole = text.find('.');
    return fmt::format("{:>{}}", text.substr(0, whole), left_) +
           fmt::format("{:<{}}", text.substr(whole), 1 + right_);
  }

 private:
  int fraction_of(double value) const {
    const Digits digits = shortest(value, dtype_);
    const int fraction = scientific_ ? digits.fraction : digits.fraction - digits.exponent;
    return std::clamp(fraction, 0, kMostFraction);
  }

  void measure(double value) {
    if (!std::isfinite(value)) return;
    const std::string text = text_of(value);
    const std::size_t whole = text.find('.');
    left_ = std::max(left_, whole);
    right_ = std::max(right_, text.size() - whole - 1);
  }

  std::string text_of(double value) const {
    const std::string sign = plus_ && !std::signbit(value) && !std::isnan(value) ? "+" : "";
    if (!std::isfinite(value)) return sign + fmt::format("{}", value);
    if (!scientific_) return sign + positional(value);
    std::string text = fmt::format("{:.{}e}", value, precision_);
    if (precision_ == 0) text.insert(text.find('e'), ".");
    return sign + text;
  }

  std::string positional(double value) const {
    std::string text = fmt::format("{:.{}f}", value, fraction_of(value));
    if (text.find('.') == std::string::npos) return text + ".";
    text.erase(text.find_last_not_of('0') + 1);
    return text;
  }

  DType dtype_;
  bool plus_;
  bool scientific_ = false;
  int precision_ = 0;
  std::size_t left_ = 0, right_ = 0;  // characters before and after the point
};

std::vector<std::string> float_words(const std::vector<double>& values, DType dtype) {
  const FloatStyle style(values, dtype, false);
  std::vector<std::string> words;
  for (const double v : values) words.push_back(style(v));
  return words;
}

std::vector<std::string> complex_words(const std::vector<std::complex<float>>& values) {
  std::vector<double> reals, imaginaries;
  for (const std::complex<float>& v : values) {
    reals.push_back(v.real());
    imaginaries.push_back(v.imag());
  }
  const FloatStyle real(reals, DType::f32, false), imaginary(imaginaries, DType::f32, true);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::string text = imaginary(imaginaries[i]);
    text.insert(text.find_last_not_of(' ') + 1, "j");
    words.push_back(real(reals[i]) + text);
  }
  return words;
}

// ---- Elements

/// Where the elements are that are shown, in row-major order.
class Shown {
 public:
  explicit Shown(const Shape& shape)
      : shape_(shape), abridged_(elements(shape) > kSummarizeBeyond) {}

  /// Elements of one axis that are shown; -1 stands for those left out.
  std::vector<std::int64_t> of_axis(std::size_t axis) const {
    const std::int64_t extent = shape_[axis];
    std::vector<std::int64_t> indices;
    const bool cut = abridged_ && extent > 2 * kEdgeItems;
    for (std::int64_t i = 0; i < extent; ++i) {
      if (cut && i == kEdgeItems) {
        indices.push_back(-1);
        i = extent - kEdgeItems;
      }
      indices.push_back(i);
    }
    return indices;
  }

  /// Of what is shown, in elements from the operand's start.
  std::vector<std::int64_t> offsets(const OperandSpec& operand) const {
    const Dims& strides = operand.layout.strides;
    std::vector<std::int64_t> offsets{first_element(operand)};
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      std::vector<std::int64_t> next;
      for (const std::int64_t offset : offsets) {
        for (const std::int64_t i : of_axis(axis)) {
          if (i >= 0) next.push_back(offset + i * strides[axis]);
        }
      }
      offsets = std::move(next);
    }
    return offsets;
  }

  const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
  bool abridged_;
};

template <class T, class To>
std::vector<To> gather(const std::byte* data, const std::vector<std::int64_t>& offsets) {
  std::vector<To> values;
  values.reserve(offsets.size());
  for (const std::int64_t offset : offsets) {
    T value;
    std::memcpy(&value, data + offset * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) {
      values.push_back(static_cast<To>(static_cast<float>(value)));
    } else {
      values.push_back(static_cast<To>(value));
    }
  }
  return values;
}

template <class T>
std::vector<std::string> integer_words(const std::byte* data,
                                       const std::vector<std::int64_t>& offsets) {
  std::vector<std::string> words;
  std::size_t width = 0;
  for (const T value : gather<T, T>(data, offsets)) {
    words.push_back(std::to_string(value));
    width = std::max(width, words.back().size());
  }
  for (std::string& word : words) word = fmt::format("{:>{}}", word, width);
  return words;
}

std::vector<std::string> bool_words(const std::byte* data,
                                    const std::vector<std::int64_t>& offsets) {
  std::vector<std::string> words;
  std::size_t width = 0;
  for (const std::uint8_t value : gather<std::uint8_t, std::uint8_t>(data, offsets)) {
    words.push_back(value ? "True" : "False");
    width = std::max(width, words.back().size());
  }
  for (std::string& word : words) word = fmt::format("{:>{}}", word, width);
  return words;
}

std::vector<std::string> words_of(DType dtype, const std::byte* data,
                                  const std::vector<std::int64_t>& offsets) {
  switch (dtype) {
    case DType::bool_:
      return bool_words(data, offsets);
    case DType::u8:
      return integer_words<std::uint8_t>(data, offsets);
    case DType::u16:
      return integer_words<std::uint16_t>(data, offsets);
    case DType::u32:
      return integer_words<std::uint32_t>(data, offsets);
    case DType::u64:
      return integer_words<std::uint64_t>(data, offsets);
    case DType::i8:
      return integer_words<std::int8_t>(data, offsets);
    case DType::i16:
      return integer_words<std::int16_t>(data, offsets);
    case DType::i32:
      return integer_words<std::int32_t>(data, offsets);
    case DType::i64:
      return integer_words<std::int64_t>(data, offsets);
    case DType::f16:
      return float_words(gather<f16, double>(data, offsets), dtype);
    case DType::bf16:
      return float_words(gather<bf16, double>(data, offsets), dtype);
    case DType::f64:
      return float_words(gather<double, double>(data, offsets), dtype);
    case DType::complex64:
      return complex_words(gather<std::complex<float>, std::complex<float>>(data, offsets));
    default:
      return float_words(gather<float, double>(data, offsets), DType::f32);
  }
}

std::vector<std::string> words_of(const Array& array, const Shown& shown) {
  const Array plain = is_block(array.dtype()) ? dequantize(array) : array;
  View view = plain.view();
  Launcher launcher;
  if (!view.buffer->host() || view.layout().kind != LayoutKind::strided) {
    view = launcher.read_on_host(view);
  }
  return words_of(plain.dtype(), view.host(), shown.offsets(view.operand));
}

// ---- Layout

class Writer {
 public:
  Writer(const Shown& shown, const std::vector<std::string>& words)
      : shown_(shown), word_(words.begin()) {}

  /// The part below `axis`, each of whose lines but the first begins with `indent` spaces.
  std::string write(std::size_t axis, std::size_t indent, std::size_t width) {
    if (axis == shown_.shape().size()) return *word_++;
    if (axis + 1 == shown_.shape().size()) return write_row(axis, indent, width);
    const std::size_t below = shown_.shape().size() - axis - 1;
    const std::string line_break = "," + std::string(below, '\n') + std::string(indent, ' ');
    std::string text = "[";
    bool first = true;
    for (const std::int64_t i : shown_.of_axis(axis)) {
      if (!first) text += line_break;
      first = false;
      text += i < 0 ? "..." : write(axis + 1, indent + 1, width - 1);
    }
    return text + "]";
  }

 private:
  std::string write_row(std::size_t axis, std::size_t indent, std::size_t width) {
    std::string text, line = "[";
    const std::string margin(indent, ' ');
    std::size_t at = indent;  // where `line`, with its margin, ends
    bool first = true;
    for (const std::int64_t i : shown_.of_axis(axis)) {
      const std::string word = i < 0 ? "..." : write(axis + 1, indent, width);
      if (!first) {
        line += ",";
        if (at + 2 + word.size() > width - 1) {
          text += line + "\n";
          line = margin;
          at = indent;
        } else {
          line += " ";
          at += 2;
        }
      }
      line += word;
      at += word.size();
      first = false;
    }
    return text + line + "]";
  }

  const Shown& shown_;
  std::vector<std::string>::const_iterator word_;
};

}  // namespace

std::string to_string(const Array& array) {
  constexpr std::string_view kPrefix = "array(";
  std::string text(kPrefix);
  if (array.size() == 0) {
    text += "[]";
    if (array.ndim() != 1) text += ", shape=" + to_string(array.shape());
    array.eval();
  } else {
    const Shown shown(array.shape());
    const std::vector<std::string> words = words_of(array, shown);
    text += Writer(shown, words).write(0, kPrefix.size() + 1, kLineWidth - 1);
  }
  text += ",";
  const std::string dtype = fmt::format("dtype={})", to_string(array.dtype()));
  const std::size_t last_line = text.size() - (text.rfind('\n') + 1);
  const bool fits = last_line + 1 + dtype.size() <= kLineWidth;
  return text + (fits ? " " : "\n" + std::string(kPrefix.size(), ' ')) + dtype;
}

std::ostream& operator<<(std::ostream& out, const Array& array) {
  return out << to_string(array);
}

}  // namespace heddle

// Python's str() and repr().
#include <charconv>
#include <cmath>

#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

std::string escaped(char32_t c, std::string_view character, char quote) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (c == '\\' || c == static_cast<unsigned char>(quote)) return fmt::format("\\{}", character);
  if (is_printable(c)) return std::string(character);
  const auto code = static_cast<std::uint32_t>(c);
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

void append_string_repr(Runtime& run, Text& out, const Text& text) {
  run.make(text.size());
  const std::string& bytes = text.bytes();
  const bool single = bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
  const char quote = single ? '"' : '\'';
  out.append(std::string_view(&quote, 1), Origin::data);
  text.each_run([&](std::string_view piece, Origin origin) {
    each_character(piece, [&](char32_t c, std::string_view character) {
      out.append(escaped(c, character, quote), origin);
    });
  });
  out.append(std::string_view(&quote, 1), Origin::data);
}

struct Brackets {
  std::string_view open, close;
};

Brackets brackets(SequenceKind kind) {
  switch (kind) {
    case SequenceKind::tuple:
      return {"(", ")"};
    case SequenceKind::keys:
      return {"dict_keys([", "])"};
    case SequenceKind::values:
      return {"dict_values([", "])"};
    case SequenceKind::items:
      return {"dict_items([", "])"};
    default:
      return {"[", "]"};
  }
}

void append_sequence(Runtime& run, Text& out, const Sequence& sequence) {
  if (sequence.kind == SequenceKind::range) return out.append(sequence.shown, Origin::data);
  if (sequence.kind == SequenceKind::generator)
    return out.append("<generator object>", Origin::data);
  const Brackets around = brackets(sequence.kind);
  out.append(around.open, Origin::data);
  for (std::size_t i = 0; i < sequence.elements.size(); ++i) {
    if (i > 0) out.append(", ", Origin::data);
    append_repr(run, out, sequence.elements[i]);
  }
  const bool alone = sequence.kind == SequenceKind::tuple && sequence.elements.size() == 1;
  out.append(alone ? "," : "", Origin::data);
  out.append(around.close, Origin::data);
}

void append_dict(Runtime& run, Text& out, const Dict& dict) {
  out.append("{", Origin::data);
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!first) out.append(", ", Origin::data);
    first = false;
    append_repr(run, out, key);
    out.append(": ", Origin::data);
    append_repr(run, out, value);
  }
  out.append("}", Origin::data);
}

/// `digits` with the point after the first `before` of them, which may lie outside.
std::string plain_decimal(const std::string& digits, int before) {
  const int count = static_cast<int>(digits.size());
  if (before <= 0) return "0." + std::string(static_cast<std::size_t>(-before), '0') + digits;
  if (before >= count)
    return digits + std::string(static_cast<std::size_t>(before - count), '0') + ".0";
  const auto split = static_cast<std::size_t>(before);
  return digits.substr(0, split) + "." + digits.substr(split);
}

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto written = std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value),
                                     std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(written.ptr - buffer));
  const std::size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  const std::string sign = std::signbit(value) ? "-" : "";
  if (exponent >= -4 && exponent < 16) return sign + plain_decimal(digits, exponent + 1);
  std::string mantissa = digits.substr(0, 1);
  if (digits.size() > 1) mantissa += "." + digits.substr(1);
  return fmt::format("{}{}e{}{:02}", sign, mantissa, exponent < 0 ? '-' : '+', std::abs(exponent));
}

void append_repr(Runtime& run, Text& out, const Value& value) {
  run.step();
  run.check_size(out.size());
  const Runtime::Level level(run);
  if (const Text* text = value.text()) return append_string_repr(run, out, *text);
  if (const Sequence* sequence = value.sequence()) return append_sequence(run, out, *sequence);
  if (const Dict* dict = value.dict()) return append_dict(run, out, *dict);
  if (const Object* object = value.object()) return out.append(object->shown(), Origin::data);
  if (value.is_undefined()) return out.append("Undefined", Origin::data);
  if (value.is_none()) return out.append("None", Origin::data);
  if (value.is<bool>()) return out.append(*value.integer() != 0 ? "True" : "False", Origin::data);
  if (value.is<std::int64_t>())
    return out.append(fmt::format("{}", *value.integer()), Origin::data);
  out.append(float_text(*value.real()), Origin::data);
}

Text shown(Runtime& run, const Value& value) {
  if (const Text* text = value.text()) {
    run.scan(text->size());
    return *text;
  }
  if (value.is_undefined()) return {};
  Text out;
  append_repr(run, out, value);
  return out;
}

}  // namespace heddle::text::jinja

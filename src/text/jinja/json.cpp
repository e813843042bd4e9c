// JSON in, and json.dumps out.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/jinja/native.h"
#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

using nlohmann::json;

/// Builds a Value from a parser's events, so that depth costs no stack.
class Builder : public nlohmann::json_sax<json> {
 public:
  Builder(Runtime& run, Origin origin, std::string_view what)
      : run_(run), origin_(origin), what_(what) {}

  bool null() override { return add(Value()); }
  bool boolean(bool value) override { return add(Value::boolean(value)); }
  bool number_integer(number_integer_t value) override { return add(Value::integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    const bool fits = value <= static_cast<number_unsigned_t>(INT64_MAX);
    return add(fits ? Value::integer(static_cast<std::int64_t>(value))
                    : Value::real(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add(Value::real(value));
  }
  bool string(string_t& value) override { return add(run_.string(value, origin_)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool key(string_t& name) override {
    open_.back().key = run_.string(name, origin_);
    return true;
  }
  bool end_object() override {
    Level level = std::move(open_.back());
    open_.pop_back();
    return add(run_.dict(std::move(level.dict)));
  }
  bool end_array() override {
    Level level = std::move(open_.back());
    open_.pop_back();
    return add(run_.sequence(std::move(level.list)));
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    fail_render("{} is not JSON: {}", what_, e.what());
  }

  Value result;

 private:
  struct Level {
    bool object;
    Dict dict;
    std::vector<Value> list;
    Value key;
  };

  bool open(bool object) {
    if (open_.size() >= static_cast<std::size_t>(run_.limits().nesting))
      fail_render("{} nests deeper than {} (limit 'nesting')", what_, run_.limits().nesting);
    open_.push_back({object, {}, {}, {}});
    return true;
  }

  bool add(Value value) {
    run_.step();
    if (open_.empty())
      result = std::move(value);
    else if (open_.back().object)
      insert(run_, open_.back().dict, open_.back().key, std::move(value));
    else
      open_.back().list.push_back(std::move(value));
    return true;
  }

  Runtime& run_;
  const Origin origin_;
  const std::string_view what_;
  std::vector<Level> open_;
};

class Writer {
 public:
  Writer(Runtime& run, const JsonStyle& style) : run_(run), style_(style) {}

  void value(const Value& value) {
    run_.step();
    run_.check_size(out.size());
    const Runtime::Level level(run_);
    require_defined(value);
    if (const Text* text = value.text()) return string(*text);
    if (const Dict* dict = value.dict()) return object(*dict);
    const Sequence* sequence = value.sequence();
    if (sequence != nullptr && sequence->kind <= SequenceKind::tuple) return array(*sequence);
    if (!value.is_none() && !value.is_number())
      fail_render("Object of type {} is not JSON serializable", type_name(value));
    add(scalar(value));
  }

  Text out;

 private:
  void add(std::string_view text) { out.append(text, Origin::data); }

  static std::string scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (value.is<bool>()) return *value.integer() != 0 ? "true" : "false";
    if (value.integer()) return fmt::format("{}", *value.integer());
    const std::string text = float_text(*value.real());
    if (text == "nan") return "NaN";
    return text == "inf" ? "Infinity" : (text == "-inf" ? "-Infinity" : text);
  }

  void string(const Text& text) {
    run_.make(text.size());
    add("\"");
    text.each_run([&](std::string_view piece, Origin origin) {
      std::string escaped;
      each_character(piece, [&](char32_t c, std::string_view character) {
        append_escaped(escaped, c, character);
      });
      out.append(escaped, origin);
    });
    add("\"");
  }

  void append_escaped(std::string& to, char32_t c, std::string_view character) const {
    static constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    const std::size_t k = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
    const auto hex = [&](char32_t unit) {
      to += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(unit));
    };
    if (k != std::string_view::npos) {
      (to += '\\') += kLetters[k];
    } else if (c < 0x20 || (style_.ascii && c >= 0x7F && c < 0x10000)) {
      hex(c);
    } else if (style_.ascii && c >= 0x10000) {
      hex(0xD800 + ((c - 0x10000) >> 10));
      hex(0xDC00 + ((c - 0x10000) & 0x3FF));
    } else {
      to += character;
    }
  }

  void new_line() {
    if (!style_.indent) return;
    run_.make(1 + depth_ * style_.indent->size());
    add("\n");
    for (std::size_t i = 0; i < depth_; ++i) out.append(*style_.indent);
  }

  template <class Elements, class Each>
  void bracketed(std::string_view open, std::string_view close, const Elements& elements,
                 Each each) {
    add(open);
    ++depth_;
    bool first = true;
    for (const auto& element : elements) {
      if (!first) out.append(style_.item_separator);
      first = false;
      new_line();
      each(element);
    }
    --depth_;
    if (!first) new_line();
    add(close);
  }

  void array(const Sequence& sequence) {
    bracketed("[", "]", sequence.elements, [&](const Value& element) { value(element); });
  }

  void object(const Dict& dict) {
    auto entries = dict.entries;
    if (style_.sort_keys)
      std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
        return compare(run_, a.first, b.first) < 0;
      });
    bracketed("{", "}", entries, [&](const auto& entry) {
      const auto& [key, held] = entry;
      if (key.text() != nullptr)
        string(*key.text());
      else if (key.is_none() || key.is_number())
        string(Text(scalar(key), Origin::data));
      else
        fail_render("keys must be str, int, float, bool or None, not {}", type_name(key));
      out.append(style_.key_separator);
      value(held);
    });
  }

  Runtime& run_;
  const JsonStyle& style_;
  std::size_t depth_ = 0;
};

}  // namespace

Text to_json(Runtime& run, const Value& value, const JsonStyle& style) {
  Writer writer(run, style);
  writer.value(value);
  return std::move(writer.out);
}

Value from_json(Runtime& run, std::string_view text, Origin origin, std::string_view what) {
  Builder builder(run, origin, what);
  json::sax_parse(text.begin(), text.end(), &builder);
  if (builder.result.dict() == nullptr) fail_render("{} must be a JSON object", what);
  return std::move(builder.result);
}

}  // namespace heddle::text::jinja

// Filters, tests, methods and functions that are built in.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/runtime.h"

namespace heddle::text::jinja {

/// Arguments by the names that a Native gives its parameters.
class Bound {
 public:
  std::size_t size() const { return slots_.size(); }
  bool given(std::size_t i) const { return slots_[i].has_value(); }
  /// Given, and not none.
  bool set(std::size_t i) const { return given(i) && !slots_[i]->is_none(); }
  const Value& operator[](std::size_t i) const { return *slots_[i]; }
  Value value_or(std::size_t i, Value otherwise) const;
  std::int64_t integer_or(std::size_t i, std::int64_t otherwise) const;
  bool truth_or(Runtime& run, std::size_t i, bool otherwise) const;
  /// Throws if it is no string.
  const Text& text(std::size_t i) const;

  std::vector<Value> rest;
  std::vector<std::pair<std::string, Value>> named_rest;

 private:
  friend Bound bind(std::string_view name, std::string_view parameters, const Arguments& arguments);
  std::vector<std::optional<Value>> slots_;
};

/// `parameters`: names with spaces between, "?" after those that may be left out; at the end "*" if
/// any number may follow, "**" if any names may.
Bound bind(std::string_view name, std::string_view parameters, const Arguments& arguments);

struct Native {
  std::string_view name, parameters;
  Value (*apply)(Runtime& run, const Value& self, const Bound& arguments);
};

struct Test {
  std::string_view name;
  int parameters;
  bool (*apply)(Runtime& run, const Value& self, const Arguments& arguments);
};

using Natives = std::map<std::string_view, Native>;
Natives natives(std::initializer_list<Native> list);

// By name.
const Natives& text_filters();
const Natives& sequence_filters();
const Natives& selecting_filters();
const Natives& number_filters();
const Natives& text_methods();
const Natives& text_split_methods();
const Natives& sequence_methods();
const Natives& dict_methods();
const Natives& functions();

const Native* find_filter(std::string_view name);
const Test* find_test(std::string_view name);
Value apply_filter(Runtime& run, std::string_view name, const Value& input,
                   const Arguments& arguments);
bool apply_test(Runtime& run, std::string_view name, const Value& input,
                const Arguments& arguments);

/// `object.name`, and `object[key]`.
Value attribute_of(Runtime& run, const Value& object, const Text& name);
Value item_of(Runtime& run, const Value& object, const Value& key);
Value call_value(Runtime& run, const Value& callee, const Arguments& arguments);
/// A function, or a method of `self`.
Value native_value(const Native& native, const Value& self);

/// Counted from the end if negative.
std::optional<std::size_t> index_of(std::int64_t index, std::size_t size);

// Shared by filters and methods.
enum class Case { upper, lower, swapped };
void append_cased(std::string& to, char32_t c, Case wanted);
Text changed_case(Runtime& run, const Text& text, Case wanted);
Text capitalized(Runtime& run, const Text& text);
/// Python's str.replace; a negative `count` replaces all.
Text replaced(Runtime& run, const Text& text, const Text& old, const Text& fresh,
              std::int64_t count);
/// Strips white space, or the characters of `characters` if that is not null.
Text stripped(Runtime& run, const Text& text, const Text* characters, bool left, bool right);
Text padded(Runtime& run, const Text& text, std::int64_t left, std::int64_t right,
            const Text& fill);
Text joined_text(Runtime& run, const std::vector<Value>& parts, const Text& separator);
/// Lines without their ends, or with them.
std::vector<Text> lines(Runtime& run, const Text& text, bool keep_ends);
/// Python's `format % arguments`.
Text percent_format(Runtime& run, const Text& format, const Value& arguments);
/// Python's format.format(...).
Text brace_format(Runtime& run, const Text& format, const Arguments& arguments);

struct JsonStyle {
  bool ascii = false, sort_keys = false;
  std::optional<Text> indent;  // of one level
  Text item_separator, key_separator;
};
/// Python's json.dumps.
Text to_json(Runtime& run, const Value& value, const JsonStyle& style);
/// A JSON object as a dict; throws Failure naming `what`.
Value from_json(Runtime& run, std::string_view json, Origin origin, std::string_view what);

}  // namespace heddle::text::jinja

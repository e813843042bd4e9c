// The values that templates compute with: Python's, as far as templates see them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/text.h"

namespace heddle::text::jinja {

class Runtime;
class Value;
struct Arguments;

/// What stops a template. It gets its place in the source, and becomes an Error, at the border.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Undefined {
  /// What an error says when it is used. Shared, because most are never used.
  std::shared_ptr<const std::string> why;
};
struct None {};

enum class SequenceKind : std::uint8_t { list, tuple, keys, values, items, range, generator };

/// Immutable, but for how far a generator has been read.
struct Sequence {
  SequenceKind kind = SequenceKind::list;
  std::vector<Value> elements;
  int nesting = 1;             // of lists and dicts, itself included
  std::string shown;           // a range prints as it was called
  bool grouped = false;        // a tuple of groupby: `grouper` and `list`
  mutable bool spent = false;  // a generator gives its elements once
};

/// In order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int nesting = 1;
};

/// Whatever has attributes or can be called: namespaces, loops, macros, functions, methods.
class Object : public std::enable_shared_from_this<Object> {
 public:
  virtual ~Object() = default;
  virtual std::string shown() const = 0;
  /// Nothing if there is no such attribute.
  virtual std::optional<Value> attribute(Runtime& run, const Text& name);
  virtual bool callable() const { return false; }
  virtual Value call(Runtime& run, const Arguments& arguments);
  /// Lets go of all values, so that those which hold each other in a circle can end.
  virtual void clear() {}
  /// Of lists and dicts in what it holds, unless it is cleared.
  int nesting = 0;
};

class Value {
 public:
  using Variant = std::variant<Undefined, None, bool, std::int64_t, double,
                               std::shared_ptr<const Text>, std::shared_ptr<const Sequence>,
                               std::shared_ptr<const Dict>, std::shared_ptr<Object>>;

  Value() : value_(None{}) {}
  explicit Value(Variant value) : value_(std::move(value)) {}
  static Value undefined(std::string why);
  static Value boolean(bool b) { return Value(Variant(b)); }
  static Value integer(std::int64_t i) { return Value(Variant(i)); }
  static Value real(double d) { return Value(Variant(d)); }
  static Value object(std::shared_ptr<Object> o) { return Value(Variant(std::move(o))); }

  template <class T>
  bool is() const noexcept {
    return std::holds_alternative<T>(value_);
  }
  bool is_undefined() const noexcept { return is<Undefined>(); }
  bool is_none() const noexcept { return is<None>(); }
  bool is_number() const noexcept { return is<bool>() || is<std::int64_t>() || is<double>(); }

  // Null where the value is something else.
  const Text* text() const noexcept { return pointer<const Text>(); }
  const Sequence* sequence() const noexcept { return pointer<const Sequence>(); }
  const Dict* dict() const noexcept { return pointer<const Dict>(); }
  Object* object() const noexcept { return pointer<Object>(); }
  /// Of an int or a bool.
  std::optional<std::int64_t> integer() const noexcept;
  /// Of any number.
  std::optional<double> real() const noexcept;

  const Variant& variant() const noexcept { return value_; }
  bool same_object(const Value& other) const noexcept;
  int nesting() const noexcept;

 private:
  template <class T>
  T* pointer() const noexcept {
    const auto* held = std::get_if<std::shared_ptr<T>>(&value_);
    return held == nullptr ? nullptr : held->get();
  }

  Variant value_;
};

/// What a call was given.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// "str", "int", "dict", ...
std::string type_name(const Value& value);
/// What an error says of an undefined value, or "int object".
[[noreturn]] void fail_undefined(const Undefined& undefined);
/// Throws if `value` is undefined.
void require_defined(const Value& value);

bool truth(Runtime& run, const Value& value);
bool equal(Runtime& run, const Value& a, const Value& b);
/// Negative, zero or positive; `op` is for the error where the two have no order.
int compare(Runtime& run, const Value& a, const Value& b, std::string_view op = "<");
/// Python's `needle in value`.
bool contains(Runtime& run, const Value& value, const Value& needle);
/// Null if there is none. Throws where the key cannot be one.
const Value* find(Runtime& run, const Dict& dict, const Value& key);
const Value* find(Runtime& run, const Dict& dict, std::string_view key);
/// Adds, or replaces.
void insert(Runtime& run, Dict& dict, const Value& key, Value value);

/// What a for loop would go through. Throws for what cannot be iterated.
std::vector<Value> iterate(Runtime& run, const Value& value);
/// Python's len().
std::int64_t length(Runtime& run, const Value& value);

/// Python's str() and repr().
Text shown(Runtime& run, const Value& value);
void append_repr(Runtime& run, Text& out, const Value& value);
std::string float_text(double value);  // repr(float)

}  // namespace heddle::text::jinja

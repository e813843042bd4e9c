#include "text/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

bool is_list(const Value& value) {
  return value.sequence() != nullptr && value.sequence()->kind == SequenceKind::list;
}
bool is_tuple(const Value& value) {
  return value.sequence() != nullptr && value.sequence()->kind == SequenceKind::tuple;
}

/// Exact, where an int and a double meet.
int compare_numbers(const Value& a, const Value& b) {
  const auto sign = [](auto x, auto y) { return x < y ? -1 : (x > y ? 1 : 0); };
  if (a.integer() && b.integer()) return sign(*a.integer(), *b.integer());
  return sign(
      static_cast<long double>(a.integer() ? static_cast<long double>(*a.integer()) : *a.real()),
      static_cast<long double>(b.integer() ? static_cast<long double>(*b.integer()) : *b.real()));
}

bool has_nan(const Value& a, const Value& b) {
  return (a.is<double>() && std::isnan(*a.real())) || (b.is<double>() && std::isnan(*b.real()));
}

bool equal_dicts(Runtime& run, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = find(run, b, key);
    if (other == nullptr || !equal(run, value, *other)) return false;
  }
  return true;
}

bool equal_elements(Runtime& run, const Sequence& a, const Sequence& b) {
  if (a.elements.size() != b.elements.size()) return false;
  for (std::size_t i = 0; i < a.elements.size(); ++i) {
    if (!equal(run, a.elements[i], b.elements[i])) return false;
  }
  return true;
}

int compare_elements(Runtime& run, const Sequence& a, const Sequence& b, std::string_view op) {
  const std::size_t shared = std::min(a.elements.size(), b.elements.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if (!equal(run, a.elements[i], b.elements[i]))
      return compare(run, a.elements[i], b.elements[i], op);
  }
  return a.elements.size() < b.elements.size() ? -1 : a.elements.size() > b.elements.size();
}

void require_key(const Value& key) {
  if (key.dict() != nullptr || is_list(key)) fail_render("unhashable type: '{}'", type_name(key));
}

/// Where the key is among the entries; their number if it is not there.
std::size_t entry_of(Runtime& run, const Dict& dict, std::string_view key) {
  run.step(static_cast<std::int64_t>(dict.entries.size() / 16 + 1));
  const auto is_key = [key](const auto& entry) {
    const Text* text = entry.first.text();
    return text != nullptr && text->size() == key.size() && text->bytes() == key;
  };
  return static_cast<std::size_t>(std::find_if(dict.entries.begin(), dict.entries.end(), is_key) -
                                  dict.entries.begin());
}

std::size_t entry_of(Runtime& run, const Dict& dict, const Value& key) {
  require_key(key);
  if (const Text* text = key.text()) return entry_of(run, dict, text->bytes());
  std::size_t i = 0;
  while (i < dict.entries.size() &&
         (dict.entries[i].first.text() != nullptr || !equal(run, dict.entries[i].first, key)))
    ++i;
  return i;
}

const Value* value_at(const Dict& dict, std::size_t entry) {
  return entry < dict.entries.size() ? &dict.entries[entry].second : nullptr;
}

}  // namespace

std::optional<Value> Object::attribute(Runtime&, const Text&) {
  return std::nullopt;
}
Value Object::call(Runtime&, const Arguments&) {
  fail_render("{} is not callable", shown());
}

Value Value::undefined(std::string why) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(why))});
}

std::optional<std::int64_t> Value::integer() const noexcept {
  if (const auto* i = std::get_if<std::int64_t>(&value_)) return *i;
  if (const auto* b = std::get_if<bool>(&value_)) return *b ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::real() const noexcept {
  if (const auto* d = std::get_if<double>(&value_)) return *d;
  if (const auto i = integer()) return static_cast<double>(*i);
  return std::nullopt;
}

bool Value::same_object(const Value& other) const noexcept {
  if (is<bool>() && other.is<bool>()) return std::get<bool>(value_) == std::get<bool>(other.value_);
  if (is_none() && other.is_none()) return true;
  if (is<std::int64_t>() && other.is<std::int64_t>()) return integer() == other.integer();
  if (object() != nullptr) return object() == other.object();
  if (sequence() != nullptr) return sequence() == other.sequence();
  if (dict() != nullptr) return dict() == other.dict();
  return text() != nullptr && other.text() != nullptr && text()->bytes() == other.text()->bytes();
}

int Value::nesting() const noexcept {
  if (const Sequence* s = sequence()) return s->nesting;
  if (const Dict* d = dict()) return d->nesting;
  if (const Object* o = object()) return o->nesting;
  return 0;
}

std::string type_name(const Value& value) {
  static constexpr const char* kSequences[] = {"list",       "tuple", "dict_keys", "dict_values",
                                               "dict_items", "range", "generator"};
  if (const Sequence* s = value.sequence()) return kSequences[static_cast<std::size_t>(s->kind)];
  static constexpr const char* kNames[] = {"Undefined", "NoneType", "bool", "int",   "float",
                                           "str",       "",         "dict", "object"};
  return kNames[value.variant().index()];
}

void fail_undefined(const Undefined& undefined) {
  throw Failure(undefined.why ? *undefined.why : "the value is undefined");
}

void require_defined(const Value& value) {
  if (const auto* undefined = std::get_if<Undefined>(&value.variant())) fail_undefined(*undefined);
}

bool truth(Runtime&, const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (value.is_number()) return *value.real() != 0;
  if (const Text* text = value.text()) return !text->empty();
  if (const Sequence* s = value.sequence())
    return s->kind == SequenceKind::generator || !s->elements.empty();
  if (const Dict* dict = value.dict()) return !dict->entries.empty();
  return true;
}

bool equal(Runtime& run, const Value& a, const Value& b) {
  run.step();
  const Runtime::Level level(run);
  if (a.is_number() && b.is_number()) return !has_nan(a, b) && compare_numbers(a, b) == 0;
  if (a.text() != nullptr && b.text() != nullptr) {
    run.scan(std::min(a.text()->size(), b.text()->size()));
    return a.text()->bytes() == b.text()->bytes();
  }
  if ((is_list(a) && is_list(b)) || (is_tuple(a) && is_tuple(b)))
    return equal_elements(run, *a.sequence(), *b.sequence());
  if (a.dict() != nullptr && b.dict() != nullptr) return equal_dicts(run, *a.dict(), *b.dict());
  if (a.is_undefined() || a.is_none()) return a.variant().index() == b.variant().index();
  return a.variant().index() == b.variant().index() && a.same_object(b);
}

int compare(Runtime& run, const Value& a, const Value& b, std::string_view op) {
  run.step();
  const Runtime::Level level(run);
  require_defined(a);
  require_defined(b);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.text() != nullptr && b.text() != nullptr) {
    run.scan(std::min(a.text()->size(), b.text()->size()));
    return a.text()->bytes().compare(b.text()->bytes());
  }
  if ((is_list(a) && is_list(b)) || (is_tuple(a) && is_tuple(b)))
    return compare_elements(run, *a.sequence(), *b.sequence(), op);
  fail_render("'{}' is not supported between instances of '{}' and '{}'", op, type_name(a),
              type_name(b));
}

const Value* find(Runtime& run, const Dict& dict, const Value& key) {
  return value_at(dict, entry_of(run, dict, key));
}

const Value* find(Runtime& run, const Dict& dict, std::string_view key) {
  return value_at(dict, entry_of(run, dict, key));
}

void insert(Runtime& run, Dict& dict, const Value& key, Value value) {
  const std::size_t entry = entry_of(run, dict, key);
  if (entry < dict.entries.size())
    dict.entries[entry].second = std::move(value);
  else
    dict.entries.emplace_back(key, std::move(value));
}

bool contains(Runtime& run, const Value& value, const Value& needle) {
  if (const Text* text = value.text()) {
    require_defined(needle);
    if (needle.text() == nullptr)
      fail_render("'in <string>' requires string as left operand, not {}", type_name(needle));
    run.scan(text->size());
    return find_text(text->bytes(), needle.text()->bytes()) != std::string::npos;
  }
  if (const Dict* dict = value.dict()) return find(run, *dict, needle) != nullptr;
  for (const Value& element : iterate(run, value)) {
    if (equal(run, element, needle)) return true;
  }
  return false;
}

std::vector<Value> iterate(Runtime& run, const Value& value) {
  std::vector<Value> elements;
  if (value.is_undefined()) return elements;
  if (const Sequence* s = value.sequence()) {
    if (s->spent) return elements;
    if (s->kind == SequenceKind::generator) s->spent = true;
    run.step(static_cast<std::int64_t>(s->elements.size()));
    return s->elements;
  }
  if (const Dict* dict = value.dict()) {
    run.step(static_cast<std::int64_t>(dict->entries.size()));
    for (const auto& entry : dict->entries) elements.push_back(entry.first);
    return elements;
  }
  const Text* text = value.text();
  if (text == nullptr) fail_render("'{}' object is not iterable", type_name(value));
  const std::vector<std::size_t> starts = character_starts(text->bytes());
  for (std::size_t i = 0; i + 1 < starts.size(); ++i)
    elements.push_back(run.string(text->slice(starts[i], starts[i + 1])));
  return elements;
}

std::int64_t length(Runtime& run, const Value& value) {
  if (value.is_undefined()) return 0;
  if (const Text* text = value.text()) {
    run.scan(text->size());
    return static_cast<std::int64_t>(count_characters(text->bytes()));
  }
  if (const Dict* dict = value.dict()) return static_cast<std::int64_t>(dict->entries.size());
  const Sequence* s = value.sequence();
  if (s == nullptr || s->kind == SequenceKind::generator)
    fail_render("object of type '{}' has no len()", type_name(value));
  return static_cast<std::int64_t>(s->elements.size());
}

}  // namespace heddle::text::jinja

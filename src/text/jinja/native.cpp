#include "text/jinja/native.h"

#include <algorithm>
#include <array>

namespace heddle::text::jinja {

namespace {

struct Parameters {
  std::vector<std::string_view> names;
  std::size_t required = 0;
  bool rest = false, named_rest = false;
};

Parameters parse_parameters(std::string_view text) {
  Parameters parameters;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    std::string_view name = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (name == "*") {
      parameters.rest = true;
    } else if (name == "**") {
      parameters.named_rest = true;
    } else if (name.back() == '?') {
      parameters.names.push_back(name.substr(0, name.size() - 1));
    } else {
      parameters.names.push_back(name);
      parameters.required = parameters.names.size();
    }
  }
  return parameters;
}

class NativeValue : public Object {
 public:
  NativeValue(const Native& native, Value self) : native_(native), self_(std::move(self)) {
    nesting = self_.nesting() + 1;
  }
  std::string shown() const override { return fmt::format("<function {}>", native_.name); }
  bool callable() const override { return true; }
  Value call(Runtime& run, const Arguments& arguments) override {
    return native_.apply(run, self_, bind(native_.name, native_.parameters, arguments));
  }

 private:
  const Native& native_;
  const Value self_;
};

const Native* find_native(const Natives& natives, std::string_view name) {
  const auto found = natives.find(name);
  return found == natives.end() ? nullptr : &found->second;
}

const Native* find_method(const Value& self, std::string_view name) {
  if (self.text() != nullptr) {
    const Native* method = find_native(text_methods(), name);
    return method != nullptr ? method : find_native(text_split_methods(), name);
  }
  if (self.dict() != nullptr) return find_native(dict_methods(), name);
  const Sequence* sequence = self.sequence();
  const bool has_methods = sequence != nullptr && (sequence->kind == SequenceKind::list ||
                                                   sequence->kind == SequenceKind::tuple ||
                                                   sequence->kind == SequenceKind::range);
  return has_methods ? find_native(sequence_methods(), name) : nullptr;
}

Value missing(const Value& object, std::string_view name) {
  return Value::undefined(
      fmt::format("'{} object' has no attribute '{}'", type_name(object), name));
}

std::optional<Value> indexed(Runtime& run, const Value& object, std::int64_t index) {
  if (const Text* text = object.text()) {
    run.scan(text->size());
    const auto at = [&](std::size_t from, std::size_t to) {
      return run.string(text->slice(from, to));
    };
    std::size_t count = static_cast<std::size_t>(length(run, object));
    const auto i = index_of(index, count);
    if (!i) return std::nullopt;
    std::size_t begin = 0;
    for (std::size_t seen = 0;; ++begin) {
      const bool starts = (static_cast<unsigned char>(text->bytes()[begin]) & 0xC0) != 0x80;
      if (starts && seen++ == *i) break;
    }
    std::size_t end = begin + 1;
    while (end < text->size() && (static_cast<unsigned char>(text->bytes()[end]) & 0xC0) == 0x80)
      ++end;
    return at(begin, end);
  }
  const Sequence* sequence = object.sequence();
  if (sequence == nullptr ||
      (sequence->kind > SequenceKind::tuple && sequence->kind != SequenceKind::range))
    return std::nullopt;
  const auto i = index_of(index, sequence->elements.size());
  return i ? std::optional(sequence->elements[*i]) : std::nullopt;
}

}  // namespace

Value Bound::value_or(std::size_t i, Value otherwise) const {
  return given(i) ? *slots_[i] : std::move(otherwise);
}

std::int64_t Bound::integer_or(std::size_t i, std::int64_t otherwise) const {
  if (!given(i)) return otherwise;
  require_defined(*slots_[i]);
  const auto integer = slots_[i]->integer();
  if (!integer) fail_render("expected an integer, got '{}'", type_name(*slots_[i]));
  return *integer;
}

bool Bound::truth_or(Runtime& run, std::size_t i, bool otherwise) const {
  return given(i) ? truth(run, *slots_[i]) : otherwise;
}

const Text& Bound::text(std::size_t i) const {
  require_defined(*slots_[i]);
  if (slots_[i]->text() == nullptr) fail_render("expected a str, got '{}'", type_name(*slots_[i]));
  return *slots_[i]->text();
}

Bound bind(std::string_view name, std::string_view spec, const Arguments& arguments) {
  const Parameters parameters = parse_parameters(spec);
  Bound bound;
  bound.slots_.resize(parameters.names.size());
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i < bound.slots_.size())
      bound.slots_[i] = arguments.positional[i];
    else if (parameters.rest)
      bound.rest.push_back(arguments.positional[i]);
    else
      fail_render("{}() takes at most {} arguments, got {}", name, bound.slots_.size(),
                  arguments.positional.size());
  }
  for (const auto& [key, value] : arguments.named) {
    const auto found = std::find(parameters.names.begin(), parameters.names.end(), key);
    const auto i = static_cast<std::size_t>(found - parameters.names.begin());
    if (found != parameters.names.end()) {
      if (bound.slots_[i]) fail_render("{}() got two values for '{}'", name, key);
      bound.slots_[i] = value;
    } else if (parameters.named_rest) {
      bound.named_rest.emplace_back(key, value);
    } else {
      fail_render("{}() has no parameter '{}'", name, key);
    }
  }
  for (std::size_t i = 0; i < parameters.required; ++i) {
    if (!bound.slots_[i]) fail_render("{}() misses its argument '{}'", name, parameters.names[i]);
  }
  return bound;
}

Natives natives(std::initializer_list<Native> list) {
  Natives map;
  for (const Native& native : list) map.emplace(native.name, native);
  return map;
}

const Native* find_filter(std::string_view name) {
  for (const Natives* some :
       {&text_filters(), &sequence_filters(), &selecting_filters(), &number_filters()}) {
    if (const Native* filter = find_native(*some, name)) return filter;
  }
  return nullptr;
}

Value apply_filter(Runtime& run, std::string_view name, const Value& input,
                   const Arguments& arguments) {
  run.step();
  const Native* filter = find_filter(name);
  if (filter == nullptr) fail_render("no filter named '{}'", name);
  return filter->apply(run, input, bind(name, filter->parameters, arguments));
}

bool apply_test(Runtime& run, std::string_view name, const Value& input,
                const Arguments& arguments) {
  run.step();
  const Test* test = find_test(name);
  if (test == nullptr) fail_render("no test named '{}'", name);
  if (static_cast<int>(arguments.positional.size()) != test->parameters || !arguments.named.empty())
    fail_render("the test '{}' takes {} arguments", name, test->parameters);
  return test->apply(run, input, arguments);
}

Value native_value(const Native& native, const Value& self) {
  return Value::object(std::make_shared<NativeValue>(native, self));
}

Value attribute_of(Runtime& run, const Value& object, const Text& name) {
  require_defined(object);
  if (Object* held = object.object()) {
    const std::optional<Value> found = held->attribute(run, name);
    return found ? *found : missing(object, name.bytes());
  }
  if (const Native* method = find_method(object, name.bytes()))
    return native_value(*method, object);
  if (const Dict* dict = object.dict()) {
    if (const Value* found = find(run, *dict, name.bytes())) return *found;
  }
  const Sequence* sequence = object.sequence();
  if (sequence != nullptr && sequence->grouped) {
    if (name.bytes() == "grouper") return sequence->elements[0];
    if (name.bytes() == "list") return sequence->elements[1];
  }
  return missing(object, name.bytes());
}

Value item_of(Runtime& run, const Value& object, const Value& key) {
  require_defined(object);
  if (const Dict* dict = object.dict()) {
    const bool hashable = key.dict() == nullptr &&
                          (key.sequence() == nullptr || key.sequence()->kind != SequenceKind::list);
    const Value* found = hashable ? find(run, *dict, key) : nullptr;
    if (found != nullptr) return *found;
  }
  if (const auto index = key.integer()) {
    if (const std::optional<Value> found = indexed(run, object, *index)) return *found;
  }
  if (key.text() != nullptr) {
    if (const Native* method = find_method(object, key.text()->bytes()))
      return native_value(*method, object);
    if (object.dict() == nullptr) return attribute_of(run, object, *key.text());
  }
  return Value::undefined(fmt::format(
      "'{} object' has no element {}", type_name(object),
      key.text() != nullptr || key.is_number() ? shown(run, key).bytes() : "of that key"));
}

Value call_value(Runtime& run, const Value& callee, const Arguments& arguments) {
  require_defined(callee);
  Object* object = callee.object();
  if (object == nullptr || !object->callable())
    fail_render("'{}' object is not callable", type_name(callee));
  const Runtime::Level level(run);
  return object->call(run, arguments);
}

std::optional<std::size_t> index_of(std::int64_t index, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  if (index < 0) index += count;
  if (index < 0 || index >= count) return std::nullopt;
  return static_cast<std::size_t>(index);
}

}  // namespace heddle::text::jinja

#include "text/jinja/runtime.h"

#include <algorithm>

namespace heddle::text::jinja {

Runtime::~Runtime() {
  for (const auto& object : kept_) object->clear();
}

void Runtime::step(std::int64_t count) {
  steps_ += count;
  if (steps_ > limits_.steps)
    fail_render("it takes more than {} steps (limit 'steps')", limits_.steps);
}

void Runtime::check_size(std::size_t bytes) const {
  if (bytes > limits_.output_bytes)
    fail_render("a text of {} bytes exceeds {} (limit 'output_bytes')", bytes,
                limits_.output_bytes);
}

void Runtime::make(std::size_t bytes) {
  check_size(bytes);
  scan(bytes);
  bytes_ += bytes;
  if (bytes_ > limits_.string_bytes)
    fail_render("its strings take more than {} bytes (limit 'string_bytes')", limits_.string_bytes);
}

Value Runtime::string(Text text) {
  make(text.size());
  bytes_ += text.runs().size() * sizeof(Text::Run);
  return Value(Value::Variant(std::make_shared<const Text>(std::move(text))));
}

Value Runtime::string(std::string_view bytes, Origin origin) {
  return string(Text(std::string(bytes), origin));
}

int Runtime::checked_nesting(int nesting) const {
  if (nesting > limits_.nesting)
    fail_render("lists and dicts nest deeper than {} (limit 'nesting')", limits_.nesting);
  return nesting;
}

Value Runtime::sequence(std::vector<Value> elements, SequenceKind kind) {
  step(static_cast<std::int64_t>(elements.size()) + 1);
  Sequence sequence{kind, std::move(elements)};
  for (const Value& element : sequence.elements)
    sequence.nesting = std::max(sequence.nesting, element.nesting() + 1);
  checked_nesting(sequence.nesting);
  return Value(Value::Variant(std::make_shared<const Sequence>(std::move(sequence))));
}

Value Runtime::dict(Dict dict) {
  step(static_cast<std::int64_t>(dict.entries.size()) + 1);
  for (const auto& [key, value] : dict.entries)
    dict.nesting = std::max({dict.nesting, key.nesting() + 1, value.nesting() + 1});
  checked_nesting(dict.nesting);
  return Value(Value::Variant(std::make_shared<const Dict>(std::move(dict))));
}

Runtime::Level::Level(Runtime& run) : run_(run) {
  if (run.level_ >= run.limits_.recursion)
    fail_render("more than {} levels of recursion (limit 'recursion')", run.limits_.recursion);
  ++run.level_;
}

}  // namespace heddle::text::jinja

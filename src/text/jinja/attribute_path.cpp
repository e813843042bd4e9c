#include "text/jinja/attribute_path.h"

#include <algorithm>
#include <charconv>

#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

Value step_key(Runtime& run, const Text& name) {
  const std::string& bytes = name.bytes();
  const bool digits = !bytes.empty() && std::all_of(bytes.begin(), bytes.end(), is_digit);
  std::int64_t index = 0;
  const auto parsed = std::from_chars(bytes.data(), bytes.data() + bytes.size(), index);
  return digits && parsed.ec == std::errc() ? Value::integer(index) : run.string(name);
}

std::vector<Text> parts(Runtime& run, const Text& text, char separator) {
  run.make(text.size());
  std::vector<Text> all;
  std::size_t begin = 0;
  while (true) {
    run.step();
    const std::size_t end = std::min(text.bytes().find(separator, begin), text.size());
    all.push_back(text.slice(begin, end));
    if (end == text.size()) return all;
    begin = end + 1;
  }
}

Value folded(Runtime& run, Value value, bool case_sensitive) {
  if (case_sensitive || value.text() == nullptr) return value;
  return run.string(changed_case(run, *value.text(), Case::lower));
}

}  // namespace

Value at_path(Runtime& run, const Value& item, const Value& path, const Value* otherwise) {
  if (path.is_none()) return item;
  Value value = item;
  const auto walk = [&](const Value& key) {
    value = item_of(run, value, key);
    if (value.is_undefined() && otherwise != nullptr && !otherwise->is_none()) value = *otherwise;
  };
  if (path.text() == nullptr) {
    walk(path);
    return value;
  }
  for (const Text& part : parts(run, *path.text(), '.')) walk(step_key(run, part));
  return value;
}

Value sort_key(Runtime& run, const Value& item, const Value& path, bool case_sensitive) {
  return folded(run, at_path(run, item, path), case_sensitive);
}

Value sort_keys(Runtime& run, const Value& item, const Value& paths, bool case_sensitive) {
  std::vector<Value> keys;
  if (paths.text() == nullptr) {
    keys.push_back(sort_key(run, item, paths, case_sensitive));
  } else {
    for (const Text& path : parts(run, *paths.text(), ','))
      keys.push_back(sort_key(run, item, run.string(path), case_sensitive));
  }
  return run.sequence(std::move(keys));
}

}  // namespace heddle::text::jinja

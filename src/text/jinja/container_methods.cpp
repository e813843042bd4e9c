// The methods of lists, tuples and dicts. None changes its object.
#include "text/jinja/native.h"

namespace heddle::text::jinja {

namespace {

Value count(Runtime& run, const Value& self, const Bound& a) {
  std::int64_t found = 0;
  for (const Value& element : self.sequence()->elements) found += equal(run, element, a[0]);
  return Value::integer(found);
}

Value index(Runtime& run, const Value& self, const Bound& a) {
  const std::vector<Value>& elements = self.sequence()->elements;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (equal(run, elements[i], a[0])) return Value::integer(static_cast<std::int64_t>(i));
  }
  fail_render("the value is not in the {}", type_name(self));
}

Value keys(Runtime& run, const Value& self, const Bound&) {
  return run.sequence(iterate(run, self), SequenceKind::keys);
}

Value values(Runtime& run, const Value& self, const Bound&) {
  std::vector<Value> all;
  for (const auto& entry : self.dict()->entries) all.push_back(entry.second);
  return run.sequence(std::move(all), SequenceKind::values);
}

Value items(Runtime& run, const Value& self, const Bound&) {
  std::vector<Value> all;
  for (const auto& [key, value] : self.dict()->entries)
    all.push_back(run.sequence({key, value}, SequenceKind::tuple));
  return run.sequence(std::move(all), SequenceKind::items);
}

Value get(Runtime& run, const Value& self, const Bound& a) {
  const Value* found = find(run, *self.dict(), a[0]);
  return found != nullptr ? *found : a.value_or(1, Value());
}

Value copy(Runtime&, const Value& self, const Bound&) {
  return self;
}

}  // namespace

const Natives& sequence_methods() {
  static const Natives all =
      natives({{"count", "value", count}, {"index", "value", index}, {"copy", "", copy}});
  return all;
}

const Natives& dict_methods() {
  static const Natives all = natives({{"keys", "", keys},
                                      {"values", "", values},
                                      {"items", "", items},
                                      {"get", "key default?", get},
                                      {"copy", "", copy}});
  return all;
}

}  // namespace heddle::text::jinja

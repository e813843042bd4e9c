// Filters on lists and dicts.
#include <algorithm>

#include "text/jinja/arithmetic.h"
#include "text/jinja/attribute_path.h"

namespace heddle::text::jinja {

namespace {

struct Keyed {
  Value key, value;
};

std::vector<Keyed> keyed(Runtime& run, const Value& self, const Value& path, bool case_sensitive) {
  std::vector<Keyed> all;
  for (Value& value : iterate(run, self)) {
    Value key = sort_key(run, value, path, case_sensitive);
    all.push_back({std::move(key), std::move(value)});
  }
  return all;
}

void sort_by_key(Runtime& run, std::vector<Keyed>& items, bool reverse) {
  // Equal ones stay in order, in reverse too.
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? compare(run, b.key, a.key) < 0 : compare(run, a.key, b.key) < 0;
  });
}

std::vector<Value> values_of(std::vector<Keyed> items) {
  std::vector<Value> all;
  for (Keyed& item : items) all.push_back(std::move(item.value));
  return all;
}

/// sort(reverse=False, case_sensitive=False, attribute=None)
Value sort(Runtime& run, const Value& self, const Bound& a) {
  const Value paths = a.value_or(2, Value());
  std::vector<Keyed> items;
  for (Value& value : iterate(run, self)) {
    Value keys = sort_keys(run, value, paths, a.truth_or(run, 1, false));
    items.push_back({std::move(keys), std::move(value)});
  }
  sort_by_key(run, items, a.truth_or(run, 0, false));
  return run.sequence(values_of(std::move(items)));
}

/// dictsort(case_sensitive=False, by='key', reverse=False)
Value dictsort(Runtime& run, const Value& self, const Bound& a) {
  require_defined(self);
  if (self.dict() == nullptr) fail_render("dictsort needs a dict, got '{}'", type_name(self));
  const std::string by = a.given(1) ? a.text(1).bytes() : "key";
  if (by != "key" && by != "value") fail_render("dictsort: by must be 'key' or 'value'");
  std::vector<Keyed> items;
  for (const auto& [key, value] : self.dict()->entries) {
    const Value& what = by == "key" ? key : value;
    items.push_back({sort_key(run, what, Value(), a.truth_or(run, 0, false)),
                     run.sequence({key, value}, SequenceKind::tuple)});
  }
  sort_by_key(run, items, a.truth_or(run, 2, false));
  return run.sequence(values_of(std::move(items)));
}

/// unique(case_sensitive=False, attribute=None)
Value unique(Runtime& run, const Value& self, const Bound& a) {
  std::vector<Value> seen, kept;
  for (Keyed& item : keyed(run, self, a.value_or(1, Value()), a.truth_or(run, 0, false))) {
    const bool known = std::any_of(seen.begin(), seen.end(),
                                   [&](const Value& key) { return equal(run, key, item.key); });
    if (known) continue;
    seen.push_back(std::move(item.key));
    kept.push_back(std::move(item.value));
  }
  return run.sequence(std::move(kept), SequenceKind::generator);
}

/// min, max(case_sensitive=False, attribute=None)
Value extreme(Runtime& run, const Value& self, const Bound& a, bool least) {
  auto items = keyed(run, self, a.value_or(1, Value()), a.truth_or(run, 0, false));
  if (items.empty()) return Value::undefined("the sequence was empty");
  std::size_t best = 0;
  for (std::size_t i = 1; i < items.size(); ++i) {
    const Value &key = items[i].key, &least_or_most = items[best].key;
    if (least ? compare(run, key, least_or_most) < 0 : compare(run, least_or_most, key) < 0)
      best = i;
  }
  return items[best].value;
}

/// groupby(attribute, default=None, case_sensitive=False)
Value groupby(Runtime& run, const Value& self, const Bound& a) {
  const Value otherwise = a.value_or(1, Value());
  const bool case_sensitive = a.truth_or(run, 2, false);
  const auto real_key = [&](const Value& item) { return at_path(run, item, a[0], &otherwise); };
  std::vector<Keyed> items;
  for (Value& value : iterate(run, self)) {
    Value key = sort_key(run, real_key(value), Value(), case_sensitive);
    items.push_back({std::move(key), std::move(value)});
  }
  sort_by_key(run, items, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    std::vector<Value> members;
    for (; end < items.size() && equal(run, items[begin].key, items[end].key); ++end)
      members.push_back(items[end].value);
    if (members.empty()) members.push_back(items[end++].value);  // a key that equals nothing
    Value key = real_key(members.front());
    const Value pair =
        run.sequence({std::move(key), run.sequence(std::move(members))}, SequenceKind::tuple);
    Sequence group = *pair.sequence();
    group.grouped = true;
    groups.push_back(Value(Value::Variant(std::make_shared<const Sequence>(std::move(group)))));
  }
  return run.sequence(std::move(groups));
}

Value first(Runtime& run, const Value& self, const Bound&) {
  const std::vector<Value> all = iterate(run, self);
  return all.empty() ? Value::undefined("no first item, the sequence was empty") : all.front();
}

Value last(Runtime& run, const Value& self, const Bound&) {
  const Sequence* sequence = self.sequence();
  if (sequence != nullptr && sequence->kind == SequenceKind::generator)
    fail_render("'{}' object is not reversible", type_name(self));
  const std::vector<Value> all = iterate(run, self);
  return all.empty() ? Value::undefined("no last item, the sequence was empty") : all.back();
}

Value reverse(Runtime& run, const Value& self, const Bound&) {
  if (self.text() != nullptr) return sliced(run, self, Value(), Value(), Value::integer(-1));
  std::vector<Value> all = iterate(run, self);
  std::reverse(all.begin(), all.end());
  return run.sequence(std::move(all), SequenceKind::generator);
}

/// join(d='', attribute=None)
Value join(Runtime& run, const Value& self, const Bound& a) {
  std::vector<Value> parts = iterate(run, self);
  if (a.set(1)) {
    for (Value& part : parts) part = at_path(run, part, a[1]);
  }
  return run.string(joined_text(run, parts, a.given(0) ? shown(run, a[0]) : Text()));
}

Value items(Runtime& run, const Value& self, const Bound&) {
  std::vector<Value> all;
  if (self.is_undefined()) return run.sequence(std::move(all), SequenceKind::generator);
  if (self.dict() == nullptr) fail_render("can only get item pairs from a mapping");
  for (const auto& [key, value] : self.dict()->entries)
    all.push_back(run.sequence({key, value}, SequenceKind::tuple));
  return run.sequence(std::move(all), SequenceKind::generator);
}

/// batch(linecount, fill_with=None)
Value batch(Runtime& run, const Value& self, const Bound& a) {
  const std::int64_t size = a.integer_or(0, 0);
  std::vector<Value> all, line;
  for (Value& value : iterate(run, self)) {
    if (static_cast<std::int64_t>(line.size()) == size && !line.empty())
      all.push_back(run.sequence(std::exchange(line, {})));
    line.push_back(std::move(value));
  }
  if (line.empty()) return run.sequence(std::move(all), SequenceKind::generator);
  while (a.set(1) && static_cast<std::int64_t>(line.size()) < size) {
    run.step();
    line.push_back(a[1]);
  }
  all.push_back(run.sequence(std::move(line)));
  return run.sequence(std::move(all), SequenceKind::generator);
}

/// slice(slices, fill_with=None)
Value slice(Runtime& run, const Value& self, const Bound& a) {
  const std::int64_t slices = a.integer_or(0, 0);
  if (slices == 0) fail_render("slice: integer division or modulo by zero");
  const std::vector<Value> values = iterate(run, self);
  const auto size = static_cast<std::int64_t>(values.size());
  std::vector<Value> all;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    const bool longer = i < size % slices;
    const std::int64_t end = at + size / slices + longer;
    std::vector<Value> part(values.begin() + at, values.begin() + end);
    if (a.set(1) && !longer) part.push_back(a[1]);
    all.push_back(run.sequence(std::move(part)));
    at = end;
  }
  return run.sequence(std::move(all), SequenceKind::generator);
}

/// sum(attribute=None, start=0)
Value sum(Runtime& run, const Value& self, const Bound& a) {
  Value total = a.value_or(1, Value::integer(0));
  if (total.text() != nullptr) fail_render("sum() can't sum strings");
  for (const Value& item : iterate(run, self))
    total = arithmetic(run, "+", total, at_path(run, item, a.value_or(0, Value())));
  return total;
}

Value length_filter(Runtime& run, const Value& self, const Bound&) {
  return Value::integer(length(run, self));
}

/// default(default_value='', boolean=False)
Value default_filter(Runtime& run, const Value& self, const Bound& a) {
  const bool replaces = self.is_undefined() || (a.truth_or(run, 1, false) && !truth(run, self));
  if (!replaces) return self;
  return a.given(0) ? a[0] : run.string(Text());
}

Value attr(Runtime& run, const Value& self, const Bound& a) {
  require_defined(self);
  if (self.dict() != nullptr) {  // methods only, not keys
    const auto method = dict_methods().find(a.text(0).bytes());
    if (method != dict_methods().end()) return native_value(method->second, self);
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", a.text(0).bytes()));
  }
  return attribute_of(run, self, a.text(0));
}

}  // namespace

const Natives& sequence_filters() {
  using R = Runtime&;
  using V = const Value&;
  using B = const Bound&;
  static const Natives all = natives({
      {"sort", "reverse? case_sensitive? attribute?", sort},
      {"dictsort", "case_sensitive? by? reverse?", dictsort},
      {"unique", "case_sensitive? attribute?", unique},
      {"min", "case_sensitive? attribute?", [](R r, V s, B a) { return extreme(r, s, a, true); }},
      {"max", "case_sensitive? attribute?", [](R r, V s, B a) { return extreme(r, s, a, false); }},
      {"groupby", "attribute default? case_sensitive?", groupby},
      {"first", "", first},
      {"last", "", last},
      {"reverse", "", reverse},
      {"join", "d? attribute?", join},
      {"items", "", items},
      {"list", "", [](R r, V s, B) { return r.sequence(iterate(r, s)); }},
      {"batch", "linecount fill_with?", batch},
      {"slice", "slices fill_with?", slice},
      {"sum", "attribute? start?", sum},
      {"length", "", length_filter},
      {"count", "", length_filter},
      {"default", "default_value? boolean?", default_filter},
      {"d", "default_value? boolean?", default_filter},
      {"attr", "name", attr},
  });
  return all;
}

}  // namespace heddle::text::jinja

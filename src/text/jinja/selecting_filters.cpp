// map, select, reject and their kin: filters that apply filters and tests.
#include <algorithm>

#include "text/jinja/attribute_path.h"

namespace heddle::text::jinja {

namespace {

Value generator(Runtime& run, std::vector<Value> elements) {
  return run.sequence(std::move(elements), SequenceKind::generator);
}

/// The arguments from `from` on, for the filter or test that they are meant for.
Arguments passed_on(const Bound& a, std::size_t from) {
  Arguments arguments;
  for (std::size_t i = from; i < a.rest.size(); ++i) arguments.positional.push_back(a.rest[i]);
  arguments.named = a.named_rest;
  return arguments;
}

const std::string& name_at(const Bound& a, std::size_t i) {
  if (a.rest[i].text() == nullptr)
    fail_render("expected the name of a filter or test, got '{}'", type_name(a.rest[i]));
  return a.rest[i].text()->bytes();
}

/// map(attribute=..., default=...)
Value map_attribute(Runtime& run, const Value& self, const Bound& a) {
  Value path, otherwise;
  for (const auto& [name, value] : a.named_rest) {
    if (name != "attribute" && name != "default")
      fail_render("unexpected keyword argument '{}'", name);
    (name == "attribute" ? path : otherwise) = value;
  }
  std::vector<Value> mapped;
  for (const Value& item : iterate(run, self))
    mapped.push_back(at_path(run, item, path, &otherwise));
  return generator(run, std::move(mapped));
}

/// map(filter, arguments...)
Value map(Runtime& run, const Value& self, const Bound& a) {
  if (!truth(run, self)) return generator(run, {});  // whatever it is, as in Jinja
  const bool attribute = std::any_of(a.named_rest.begin(), a.named_rest.end(),
                                     [](const auto& named) { return named.first == "attribute"; });
  if (a.rest.empty() && attribute) return map_attribute(run, self, a);
  if (a.rest.empty()) fail_render("map requires a filter argument");
  const Arguments arguments = passed_on(a, 1);
  std::vector<Value> mapped;
  for (const Value& item : iterate(run, self))
    mapped.push_back(apply_filter(run, name_at(a, 0), item, arguments));
  return generator(run, std::move(mapped));
}

/// select(test, arguments...) and, with `by_attribute`, selectattr(attribute, test, arguments...)
Value select(Runtime& run, const Value& self, const Bound& a, bool by_attribute, bool wanted) {
  if (!truth(run, self)) return generator(run, {});  // whatever it is, as in Jinja
  const std::size_t test = by_attribute ? 1 : 0;
  if (by_attribute && a.rest.empty()) fail_render("missing the name of the attribute");
  const Arguments arguments = passed_on(a, test + 1);
  std::vector<Value> kept;
  for (Value& item : iterate(run, self)) {
    const Value looked_at = by_attribute ? at_path(run, item, a.rest[0]) : item;
    const bool passes = a.rest.size() > test
                            ? apply_test(run, name_at(a, test), looked_at, arguments)
                            : truth(run, looked_at);
    if (passes == wanted) kept.push_back(std::move(item));
  }
  return generator(run, std::move(kept));
}

}  // namespace

const Natives& selecting_filters() {
  using R = Runtime&;
  using V = const Value&;
  using B = const Bound&;
  static const Natives all = natives({
      {"map", "* **", map},
      {"select", "* **", [](R r, V s, B a) { return select(r, s, a, false, true); }},
      {"reject", "* **", [](R r, V s, B a) { return select(r, s, a, false, false); }},
      {"selectattr", "* **", [](R r, V s, B a) { return select(r, s, a, true, true); }},
      {"rejectattr", "* **", [](R r, V s, B a) { return select(r, s, a, true, false); }},
  });
  return all;
}

}  // namespace heddle::text::jinja

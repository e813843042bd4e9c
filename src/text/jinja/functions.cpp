// What templates can call without being given it.
#include <locale.h>

#include <array>

#include "text/jinja/namespace.h"
#include "text/jinja/native.h"

namespace heddle::text::jinja {

namespace {

Value range(Runtime& run, const Value&, const Bound& a) {
  const bool one = !a.given(1);
  const std::int64_t begin = one ? 0 : a.integer_or(0, 0), end = a.integer_or(one ? 0 : 1, 0);
  const std::int64_t step = a.integer_or(2, 1);
  if (step == 0) fail_render("range() arg 3 must not be zero");
  const auto wide = [](std::int64_t x) { return static_cast<__int128>(x); };
  const __int128 span = step > 0 ? wide(end) - begin : wide(begin) - end;
  const __int128 stride = step > 0 ? wide(step) : -wide(step);
  const __int128 count = span <= 0 ? 0 : (span + stride - 1) / stride;
  if (count > run.limits().range)
    fail_render("range() of more than {} elements (limit 'range')", run.limits().range);
  Sequence sequence;
  sequence.kind = SequenceKind::range;
  sequence.shown = step == 1 ? fmt::format("range({}, {})", begin, end)
                             : fmt::format("range({}, {}, {})", begin, end, step);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i)
    sequence.elements.push_back(Value::integer(begin + i * step));
  run.step(static_cast<std::int64_t>(count));
  return Value(Value::Variant(std::make_shared<const Sequence>(std::move(sequence))));
}

/// dict(mapping or pairs, **names)
Value make_dict(Runtime& run, const Value&, const Bound& a) {
  Dict dict;
  if (a.given(0) && a[0].dict() != nullptr) {
    dict.entries = a[0].dict()->entries;
  } else if (a.given(0)) {
    require_defined(a[0]);
    for (const Value& pair : iterate(run, a[0])) {
      const std::vector<Value> parts = iterate(run, pair);
      if (parts.size() != 2) fail_render("dict() needs pairs, got {} values", parts.size());
      insert(run, dict, parts[0], parts[1]);
    }
  }
  for (const auto& [name, value] : a.named_rest)
    insert(run, dict, run.string(name, Origin::from_template), value);
  return run.dict(std::move(dict));
}

Value make_namespace(Runtime& run, const Value& self, const Bound& a) {
  const Value initial = make_dict(run, self, a);
  const auto names = run.keep(std::make_shared<Namespace>());
  for (const auto& [key, value] : initial.dict()->entries) {
    if (key.text() != nullptr) names->set(key.text()->bytes(), value);
  }
  return Value::object(names);
}

Value raise_exception(Runtime& run, const Value&, const Bound& a) {
  throw Failure(shown(run, a[0]).bytes());
}

Value strftime_now(Runtime& run, const Value&, const Bound& a) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string& format = a.text(0).bytes();
  if (format.find('\0') != std::string::npos) fail_render("embedded null character");
  if (format.empty()) return run.string(Text());
  constexpr std::size_t kLongest = 4096;
  if (format.size() > kLongest / 4) fail_render("a time format longer than {}", kLongest / 4);
  std::string text(kLongest, '\0');
  text.resize(strftime_l(text.data(), text.size(), format.c_str(), &run.now(), plain));
  return run.string(text);
}

class Cycler : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {
    for (const Value& item : items_) nesting = std::max(nesting, item.nesting() + 1);
  }
  std::string shown() const override { return "<Cycler>"; }
  std::optional<Value> attribute(Runtime& run, const Text& name) override;
  Value next() { return items_[at_++ % items_.size()]; }
  void reset() { at_ = 0; }

 private:
  std::vector<Value> items_;
  std::size_t at_ = 0;
};

class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {
    nesting = separator_.nesting() + 1;
  }
  std::string shown() const override { return "<Joiner>"; }
  bool callable() const override { return true; }
  Value call(Runtime& run, const Arguments&) override {
    return std::exchange(used_, true) ? separator_ : run.string(Text());
  }

 private:
  Value separator_;
  bool used_ = false;
};

std::optional<Value> Cycler::attribute(Runtime&, const Text& text) {
  static const Native kNext{"next", "", [](Runtime&, const Value& self, const Bound&) {
                              return static_cast<Cycler*>(self.object())->next();
                            }};
  static const Native kReset{"reset", "", [](Runtime&, const Value& self, const Bound&) {
                               static_cast<Cycler*>(self.object())->reset();
                               return Value();
                             }};
  if (text.bytes() == "current") return items_[at_ % items_.size()];
  if (text.bytes() != "next" && text.bytes() != "reset") return std::nullopt;
  const auto self = std::static_pointer_cast<Cycler>(shared_from_this());
  return native_value(text.bytes() == "next" ? kNext : kReset, Value::object(self));
}

Value make_cycler(Runtime& run, const Value&, const Bound& a) {
  if (a.rest.empty()) fail_render("at least one item has to be provided");
  const Value items = run.sequence(a.rest, SequenceKind::tuple);
  return Value::object(std::make_shared<Cycler>(items.sequence()->elements));
}

Value make_joiner(Runtime& run, const Value&, const Bound& a) {
  Value separator = a.value_or(0, run.string(", ", Origin::from_template));
  run.sequence({separator});
  return Value::object(std::make_shared<Joiner>(std::move(separator)));
}

}  // namespace

const Natives& functions() {
  static const Natives all = natives({
      {"range", "start stop? step?", range},
      {"dict", "values? **", make_dict},
      {"namespace", "values? **", make_namespace},
      {"raise_exception", "message", raise_exception},
      {"strftime_now", "format", strftime_now},
      {"cycler", "*", make_cycler},
      {"joiner", "sep?", make_joiner},
  });
  return all;
}

}  // namespace heddle::text::jinja

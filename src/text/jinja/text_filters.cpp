// Filters that make texts.
#include <algorithm>

#include "text/jinja/native.h"
#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

Value in_case(Runtime& run, const Value& self, Case wanted) {
  return run.string(changed_case(run, shown(run, self), wanted));
}

Value trim(Runtime& run, const Value& self, const Bound& a) {
  return run.string(stripped(run, shown(run, self), a.set(0) ? &a.text(0) : nullptr, true, true));
}

/// A capital after white space, an opening bracket or a hyphen, small letters elsewhere.
Value title(Runtime& run, const Value& self, const Bound&) {
  const Text text = shown(run, self);
  run.make(text.size());
  Text out;
  bool begins = true;
  text.each_run([&](std::string_view piece, Origin origin) {
    each_character(piece, [&](char32_t c, std::string_view) {
      std::string character;
      append_cased(character, c, begins ? Case::upper : Case::lower);
      out.append(character, origin);
      begins = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    });
  });
  return run.string(std::move(out));
}

Value replace(Runtime& run, const Value& self, const Bound& a) {
  return run.string(replaced(run, shown(run, self), shown(run, a[0]), shown(run, a[1]),
                             a.set(2) ? a.integer_or(2, -1) : -1));
}

/// indent(width=4, first=False, blank=False)
Value indent(Runtime& run, const Value& self, const Bound& a) {
  require_defined(self);
  if (self.text() == nullptr) fail_render("indent needs a str, got '{}'", type_name(self));
  Text margin;
  if (a.given(0) && a[0].text() != nullptr)
    margin = *a[0].text();
  else
    margin = padded(run, Text(), a.integer_or(0, 4), 0, Text(" ", Origin::from_template));
  const bool first = a.truth_or(run, 1, false), blank = a.truth_or(run, 2, false);
  Text text = *self.text();
  text.append("\n", Origin::from_template);
  Text out;
  bool at_first = true;
  for (const Text& line : lines(run, text, false)) {
    if (!at_first) out.append("\n", Origin::from_template);
    if (at_first ? first : (blank || !line.empty())) {
      run.make(margin.size());
      out.append(margin);
    }
    out.append(line);
    run.check_size(out.size());
    at_first = false;
  }
  return run.string(std::move(out));
}

Value escape(Runtime& run, const Value& self, const Bound&) {
  static constexpr std::string_view kSpecial = "&<>'\"";
  static constexpr std::string_view kNames[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  Text out;
  const Text text = shown(run, self);
  run.make(text.size() * 5);
  text.each_run([&](std::string_view piece, Origin origin) {
    for (const char c : piece) {
      const std::size_t special = kSpecial.find(c);
      out.append(special == std::string_view::npos ? std::string_view(&c, 1) : kNames[special],
                 origin);
    }
  });
  return run.string(std::move(out));
}

Value string(Runtime& run, const Value& self, const Bound&) {
  return self.text() != nullptr ? self : run.string(shown(run, self));
}

Value format(Runtime& run, const Value& self, const Bound& a) {
  if (!a.rest.empty() && !a.named_rest.empty())
    fail_render("can't handle positional and keyword arguments at the same time");
  Dict names;
  for (const auto& [name, value] : a.named_rest)
    insert(run, names, run.string(name, Origin::from_template), value);
  const Value arguments = names.entries.empty() ? run.sequence(a.rest, SequenceKind::tuple)
                                                : run.dict(std::move(names));
  return run.string(percent_format(run, shown(run, self), arguments));
}

Value center(Runtime& run, const Value& self, const Bound& a) {
  const Text text = shown(run, self);
  const std::int64_t width = a.integer_or(0, 80);
  const auto size = static_cast<std::int64_t>(count_characters(text.bytes()));
  const std::int64_t missing = std::max<std::int64_t>(width - size, 0);
  const std::int64_t before = missing / 2 + (missing & width & 1);
  return run.string(padded(run, text, before, missing - before, Text(" ", Origin::from_template)));
}

Value word_count(Runtime& run, const Value& self, const Bound&) {
  const Text text = shown(run, self);
  run.scan(text.size());
  std::int64_t count = 0;
  bool inside = false;
  each_character(text.bytes(), [&](char32_t c, std::string_view) {
    const bool word = is_alpha(c) || is_digit(c) || c == '_';
    count += word && !inside;
    inside = word;
  });
  return Value::integer(count);
}

/// truncate(length=255, killwords=False, end='...', leeway=5)
Value truncate(Runtime& run, const Value& self, const Bound& a) {
  const Text end = a.given(2) ? a.text(2) : Text("...", Origin::from_template);
  const std::int64_t most = a.integer_or(0, 255), leeway = a.set(3) ? a.integer_or(3, 5) : 5;
  const auto end_size = static_cast<std::int64_t>(count_characters(end.bytes()));
  if (most < end_size) fail_render("truncate: the length is less than that of the end");
  if (leeway < 0) fail_render("truncate: the leeway is negative");
  if (length(run, self) <= most + leeway) return self;
  if (self.text() == nullptr) fail_render("truncate needs a str, got '{}'", type_name(self));
  const Text& text = *self.text();
  const auto starts = character_starts(text.bytes());
  std::size_t cut = starts[static_cast<std::size_t>(most - end_size)];
  if (!a.truth_or(run, 1, false)) {
    const std::size_t space = std::string_view(text.bytes()).substr(0, cut).rfind(' ');
    if (space != std::string_view::npos) cut = space;
  }
  Text out = text.slice(0, cut);
  out.append(end);
  return run.string(std::move(out));
}

/// tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False), as Hugging Face has
/// it
Value tojson(Runtime& run, const Value& self, const Bound& a) {
  JsonStyle style;
  style.ascii = a.truth_or(run, 0, false);
  style.sort_keys = a.truth_or(run, 3, false);
  if (a.set(1) && a[1].text() != nullptr)
    style.indent = *a[1].text();
  else if (a.set(1))
    style.indent = padded(run, Text(), a.integer_or(1, 0), 0, Text(" ", Origin::data));
  style.item_separator = Text(style.indent ? "," : ", ", Origin::data);
  style.key_separator = Text(": ", Origin::data);
  if (a.set(2)) {
    const std::vector<Value> both = iterate(run, a[2]);
    if (both.size() != 2 || both[0].text() == nullptr || both[1].text() == nullptr)
      fail_render("tojson: separators must be two strings");
    style.item_separator = *both[0].text();
    style.key_separator = *both[1].text();
  }
  return run.string(to_json(run, self, style));
}

}  // namespace

const Natives& text_filters() {
  using R = Runtime&;
  using V = const Value&;
  using B = const Bound&;
  static const Natives all = natives({
      {"upper", "", [](R r, V s, B) { return in_case(r, s, Case::upper); }},
      {"lower", "", [](R r, V s, B) { return in_case(r, s, Case::lower); }},
      {"capitalize", "", [](R r, V s, B) { return r.string(capitalized(r, shown(r, s))); }},
      {"title", "", title},
      {"trim", "chars?", trim},
      {"replace", "old new count?", replace},
      {"indent", "width? first? blank?", indent},
      {"escape", "", escape},
      {"e", "", escape},
      {"forceescape", "", escape},
      {"safe", "", string},
      {"string", "", string},
      {"format", "* **", format},
      {"center", "width?", center},
      {"wordcount", "", word_count},
      {"truncate", "length? killwords? end? leeway?", truncate},
      {"tojson", "ensure_ascii? indent? separators? sort_keys?", tojson},
  });
  return all;
}

}  // namespace heddle::text::jinja

// The methods of str.
#include <algorithm>

#include "text/jinja/native.h"
#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

Value strip(Runtime& run, const Value& self, const Bound& a, bool left, bool right) {
  return run.string(stripped(run, *self.text(), a.set(0) ? &a.text(0) : nullptr, left, right));
}

/// Whether the text begins, or ends, with the argument, or with one of a tuple of them.
bool has_affix(Runtime& run, const Value& self, const Value& affix, bool at_end) {
  if (const Sequence* several = affix.sequence(); several && several->kind == SequenceKind::tuple)
    return std::any_of(several->elements.begin(), several->elements.end(),
                       [&](const Value& one) { return has_affix(run, self, one, at_end); });
  require_defined(affix);
  if (affix.text() == nullptr) fail_render("expected a str or a tuple of str");
  run.scan(affix.text()->size());
  const std::string& text = self.text()->bytes();
  const std::string& wanted = affix.text()->bytes();
  return at_end ? text.ends_with(wanted) : text.starts_with(wanted);
}

/// The part of the text that `start` and `end` (arguments 1 and 2) leave, in bytes.
std::pair<std::size_t, std::size_t> part_of(Runtime& run, const Value& self, const Bound& a) {
  const Text& text = *self.text();
  run.scan(text.size());
  if (!a.set(1) && !a.set(2)) return {0, text.size()};
  run.scan(text.size());
  const auto starts = character_starts(text.bytes());
  const auto count = static_cast<std::int64_t>(starts.size()) - 1;
  const auto place = [&](std::size_t i, std::int64_t otherwise) {
    const std::int64_t index = a.set(i) ? a.integer_or(i, 0) : otherwise;
    return index < 0 ? std::max<std::int64_t>(index + count, 0) : index;
  };
  const std::int64_t begin = place(1, 0), end = std::min(place(2, count), count);
  if (begin > end) return {1, 0};
  return {starts[static_cast<std::size_t>(begin)], starts[static_cast<std::size_t>(end)]};
}

Value affix_method(Runtime& run, const Value& self, const Bound& a, bool at_end) {
  const auto [begin, end] = part_of(run, self, a);
  if (begin > end) return Value::boolean(false);
  if (begin == 0 && end == self.text()->size())
    return Value::boolean(has_affix(run, self, a[0], at_end));
  const Value part = run.string(self.text()->slice(begin, end));
  return Value::boolean(has_affix(run, part, a[0], at_end));
}

/// The character at which the argument is found, or nothing.
std::optional<std::int64_t> found_at(Runtime& run, const Value& self, const Bound& a, bool last) {
  const auto [begin, end] = part_of(run, self, a);
  if (begin > end) return std::nullopt;
  const std::string_view text = self.text()->bytes();
  const std::string_view part = text.substr(begin, end - begin);
  const std::size_t at =
      last ? find_last_text(part, a.text(0).bytes()) : find_text(part, a.text(0).bytes());
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<std::int64_t>(count_characters(text.substr(0, begin + at)));
}

Value find_method(Runtime& run, const Value& self, const Bound& a, bool last) {
  return Value::integer(found_at(run, self, a, last).value_or(-1));
}

Value index_method(Runtime& run, const Value& self, const Bound& a, bool last) {
  const auto at = found_at(run, self, a, last);
  if (!at) fail_render("substring not found");
  return Value::integer(*at);
}

Value count(Runtime& run, const Value& self, const Bound& a) {
  const auto [begin, end] = part_of(run, self, a);
  if (begin > end) return Value::integer(0);
  const std::string_view part = std::string_view(self.text()->bytes()).substr(begin, end - begin);
  const std::string& needle = a.text(0).bytes();
  if (needle.empty()) return Value::integer(static_cast<std::int64_t>(count_characters(part)) + 1);
  std::int64_t found = 0;
  for (std::size_t at = find_text(part, needle); at != std::string_view::npos;
       at = find_text(part, needle, at + needle.size())) {
    run.scan(needle.size());
    ++found;
  }
  return Value::integer(found);
}

/// Whether all characters satisfy `accept`, and there is one.
template <class Accept>
Value all_of(Runtime& run, const Value& self, Accept accept) {
  run.scan(self.text()->size());
  bool all = !self.text()->empty();
  each_character(self.text()->bytes(), [&](char32_t c, std::string_view) { all &= accept(c); });
  return Value::boolean(all);
}

/// isupper, islower: some letter, and none of the other case.
Value has_only_case(Runtime& run, const Value& self, bool (*wanted)(char32_t) noexcept,
                    bool (*other)(char32_t) noexcept) {
  run.scan(self.text()->size());
  bool some = false, others = false;
  each_character(self.text()->bytes(), [&](char32_t c, std::string_view) {
    some |= wanted(c);
    others |= other(c);
  });
  return Value::boolean(some && !others);
}

Value title(Runtime& run, const Value& self, const Bound&) {
  run.make(self.text()->size());
  Text out;
  bool inside = false;
  self.text()->each_run([&](std::string_view piece, Origin origin) {
    each_character(piece, [&](char32_t c, std::string_view) {
      std::string character;
      append_utf8(character, inside ? to_lower(c) : to_upper(c));
      out.append(character, origin);
      inside = is_upper(c) || is_lower(c);
    });
  });
  return run.string(std::move(out));
}

Value justify(Runtime& run, const Value& self, const Bound& a, bool left, bool right) {
  const Text fill = a.given(1) ? a.text(1) : Text(" ", Origin::from_template);
  if (count_characters(fill.bytes()) != 1)
    fail_render("the fill character must be exactly one character long");
  const std::int64_t width = a.integer_or(0, 0);
  const std::int64_t missing = std::max<std::int64_t>(width - length(run, self), 0);
  std::int64_t before = left ? missing : 0;
  if (left && right) before = missing / 2 + (missing & width & 1);
  return run.string(padded(run, *self.text(), before, missing - before, fill));
}

Value zfill(Runtime& run, const Value& self, const Bound& a) {
  const Text& text = *self.text();
  const std::int64_t missing = std::max<std::int64_t>(a.integer_or(0, 0) - length(run, self), 0);
  const std::size_t sign = !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+');
  Text out = text.slice(0, sign);
  out.append(padded(run, text.slice(sign, text.size()), missing, 0, Text("0", Origin::data)));
  return run.string(std::move(out));
}

Value join(Runtime& run, const Value& self, const Bound& a) {
  const std::vector<Value> parts = iterate(run, a[0]);
  for (const Value& part : parts) {
    require_defined(part);
    if (part.text() == nullptr) fail_render("expected a list of str, found '{}'", type_name(part));
  }
  return run.string(joined_text(run, parts, *self.text()));
}

Value remove_affix(Runtime& run, const Value& self, const Bound& a, bool at_end) {
  const Text &text = *self.text(), &affix = a.text(0);
  if (!has_affix(run, self, a[0], at_end)) return self;
  return run.string(at_end ? text.slice(0, text.size() - affix.size())
                           : text.slice(affix.size(), text.size()));
}

Value format(Runtime& run, const Value& self, const Bound& a) {
  return run.string(brace_format(run, *self.text(), {a.rest, a.named_rest}));
}

}  // namespace

const Natives& text_methods() {
  using R = Runtime&;
  using V = const Value&;
  using B = const Bound&;
  static const Natives all = natives({
      {"strip", "chars?", [](R r, V s, B a) { return strip(r, s, a, true, true); }},
      {"lstrip", "chars?", [](R r, V s, B a) { return strip(r, s, a, true, false); }},
      {"rstrip", "chars?", [](R r, V s, B a) { return strip(r, s, a, false, true); }},
      {"startswith", "prefix start? end?",
       [](R r, V s, B a) { return affix_method(r, s, a, false); }},
      {"endswith", "suffix start? end?", [](R r, V s, B a) { return affix_method(r, s, a, true); }},
      {"find", "sub start? end?", [](R r, V s, B a) { return find_method(r, s, a, false); }},
      {"rfind", "sub start? end?", [](R r, V s, B a) { return find_method(r, s, a, true); }},
      {"index", "sub start? end?", [](R r, V s, B a) { return index_method(r, s, a, false); }},
      {"rindex", "sub start? end?", [](R r, V s, B a) { return index_method(r, s, a, true); }},
      {"count", "sub start? end?", count},
      {"replace", "old new count?",
       [](R r, V s, B a) {
         return r.string(replaced(r, *s.text(), a.text(0), a.text(1), a.integer_or(2, -1)));
       }},
      {"upper", "", [](R r, V s, B) { return r.string(changed_case(r, *s.text(), Case::upper)); }},
      {"lower", "", [](R r, V s, B) { return r.string(changed_case(r, *s.text(), Case::lower)); }},
      {"casefold", "",
       [](R r, V s, B) { return r.string(changed_case(r, *s.text(), Case::lower)); }},
      {"swapcase", "",
       [](R r, V s, B) { return r.string(changed_case(r, *s.text(), Case::swapped)); }},
      {"capitalize", "", [](R r, V s, B) { return r.string(capitalized(r, *s.text())); }},
      {"title", "", title},
      {"join", "iterable", join},
      {"isdigit", "", [](R r, V s, B) { return all_of(r, s, is_digit); }},
      {"isnumeric", "", [](R r, V s, B) { return all_of(r, s, is_digit); }},
      {"isdecimal", "", [](R r, V s, B) { return all_of(r, s, is_digit); }},
      {"isalpha", "", [](R r, V s, B) { return all_of(r, s, is_alpha); }},
      {"isalnum", "",
       [](R r, V s, B) {
         return all_of(r, s, [](char32_t c) { return is_alpha(c) || is_digit(c); });
       }},
      {"isspace", "", [](R r, V s, B) { return all_of(r, s, is_space); }},
      {"isupper", "", [](R r, V s, B) { return has_only_case(r, s, is_upper, is_lower); }},
      {"islower", "", [](R r, V s, B) { return has_only_case(r, s, is_lower, is_upper); }},
      {"ljust", "width fill?", [](R r, V s, B a) { return justify(r, s, a, false, true); }},
      {"rjust", "width fill?", [](R r, V s, B a) { return justify(r, s, a, true, false); }},
      {"center", "width fill?", [](R r, V s, B a) { return justify(r, s, a, true, true); }},
      {"zfill", "width", zfill},
      {"removeprefix", "prefix", [](R r, V s, B a) { return remove_affix(r, s, a, false); }},
      {"removesuffix", "suffix", [](R r, V s, B a) { return remove_affix(r, s, a, true); }},
      {"format", "* **", format},
  });
  return all;
}

}  // namespace heddle::text::jinja

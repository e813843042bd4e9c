// What filters and methods do to texts, keeping where each piece came from.
#include <algorithm>

#include "text/jinja/native.h"
#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

void append_character(Text& out, char32_t c, Origin origin) {
  std::string character;
  append_utf8(character, c);
  out.append(character, origin);
}

char32_t with_case(char32_t c, Case wanted) {
  if (wanted == Case::upper) return to_upper(c);
  if (wanted == Case::lower) return to_lower(c);
  return is_upper(c) ? to_lower(c) : to_upper(c);
}

constexpr char32_t kSharpS = 0xDF;  // the one common letter whose capital is two

}  // namespace

void append_cased(std::string& to, char32_t c, Case wanted) {
  if (c == kSharpS && wanted != Case::lower)
    to += "SS";
  else
    append_utf8(to, with_case(c, wanted));
}

Text changed_case(Runtime& run, const Text& text, Case wanted) {
  run.make(text.size());
  Text out;
  text.each_run([&](std::string_view piece, Origin origin) {
    std::string changed;
    each_character(piece, [&](char32_t c, std::string_view) { append_cased(changed, c, wanted); });
    out.append(changed, origin);
  });
  return out;
}

Text capitalized(Runtime& run, const Text& text) {
  run.make(text.size());
  Text out;
  text.each_run([&](std::string_view piece, Origin origin) {
    each_character(piece, [&](char32_t c, std::string_view) {
      append_character(out, out.empty() ? to_upper(c) : to_lower(c), origin);
    });
  });
  return out;
}

Text replaced(Runtime& run, const Text& text, const Text& old, const Text& fresh,
              std::int64_t count) {
  Text out;
  std::size_t from = 0;
  const auto add = [&](const Text& piece, std::size_t begin, std::size_t end) {
    run.make(end - begin);
    run.check_size(out.size() + (end - begin));
    out.append(piece, begin, end);
  };
  for (; count != 0; --count) {
    const std::size_t at = find_text(text.bytes(), old.bytes(), from);
    if (at == std::string::npos) break;
    add(text, from, at);
    add(fresh, 0, fresh.size());
    from = at + old.size();
    if (!old.empty()) continue;
    if (from == text.size()) return out;
    const std::size_t end = from + utf8_unit(text.bytes(), from).length;
    add(text, from, end);
    from = end;
  }
  add(text, from, text.size());
  return out;
}

Text stripped(Runtime& run, const Text& text, const Text* characters, bool left, bool right) {
  run.make(text.size());
  std::u32string wanted;
  if (characters != nullptr)
    each_character(characters->bytes(), [&](char32_t c, std::string_view) { wanted += c; });
  const auto goes = [&](std::size_t at) {
    const char32_t c = utf8_unit(text.bytes(), at).code_point;
    run.step(static_cast<std::int64_t>(wanted.size() / 16));
    return characters == nullptr ? is_space(c) : wanted.find(c) != std::u32string::npos;
  };
  std::size_t begin = 0, end = text.size();
  while (left && begin < end && goes(begin)) begin += utf8_unit(text.bytes(), begin).length;
  while (right && end > begin) {
    std::size_t at = end - 1;
    while (at > begin && (static_cast<unsigned char>(text.bytes()[at]) & 0xC0) == 0x80) --at;
    if (!goes(at)) break;
    end = at;
  }
  return text.slice(begin, end);
}

Text padded(Runtime& run, const Text& text, std::int64_t left, std::int64_t right,
            const Text& fill) {
  Text out;
  const auto add = [&](std::int64_t count) {
    if (count > 0) run.make(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) out.append(fill);
  };
  add(left);
  out.append(text);
  add(right);
  return out;
}

Text joined_text(Runtime& run, const std::vector<Value>& parts, const Text& separator) {
  Text out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Text part = shown(run, parts[i]);
    run.make(separator.size() + part.size());
    run.check_size(out.size() + separator.size() + part.size());
    if (i > 0) out.append(separator);
    out.append(part);
  }
  return out;
}

std::vector<Text> lines(Runtime& run, const Text& text, bool keep_ends) {
  run.make(text.size());
  std::vector<Text> all;
  const std::string& bytes = text.bytes();
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const Utf8Unit unit = utf8_unit(bytes, at);
    std::size_t after = at + unit.length;
    if (is_line_end(unit.code_point)) {
      if (bytes[at] == '\r' && after < bytes.size() && bytes[after] == '\n') ++after;
      all.push_back(text.slice(begin, keep_ends ? after : at));
      run.step();
      begin = after;
    }
    at = after;
  }
  if (begin < bytes.size()) all.push_back(text.slice(begin, bytes.size()));
  return all;
}

}  // namespace heddle::text::jinja

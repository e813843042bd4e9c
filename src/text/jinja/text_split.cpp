// The methods of str that cut it into pieces.
#include <algorithm>

#include "text/jinja/native.h"
#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

/// Pieces between runs of white space.
std::vector<Value> words(Runtime& run, const Text& text, std::int64_t most) {
  std::vector<Value> pieces;
  const std::string_view bytes = text.bytes();
  std::size_t at = strip_begin(bytes);
  while (at < bytes.size()) {
    if (most-- == 0) {
      pieces.push_back(run.string(text.slice(at, text.size())));
      break;
    }
    std::size_t end = at;
    while (end < bytes.size()) {
      const Utf8Unit unit = utf8_unit(bytes, end);
      if (is_space(unit.code_point)) break;
      end += unit.length;
    }
    pieces.push_back(run.string(text.slice(at, end)));
    at = end + strip_begin(bytes.substr(end));
  }
  return pieces;
}

/// As words, but counted from the end.
std::vector<Value> last_words(Runtime& run, const Text& text, std::int64_t most) {
  std::vector<Value> pieces;
  const std::string_view bytes = text.bytes();
  std::size_t end = strip_end(bytes);
  while (end > 0) {
    if (most-- == 0) {
      pieces.push_back(run.string(text.slice(0, end)));
      break;
    }
    std::size_t begin = end;
    while (begin > 0) {
      std::size_t at = begin - 1;
      while (at > 0 && (static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80) --at;
      if (is_space(utf8_unit(bytes, at).code_point)) break;
      begin = at;
    }
    pieces.push_back(run.string(text.slice(begin, end)));
    end = strip_end(bytes.substr(0, begin));
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<std::size_t> occurrences(Runtime& run, std::string_view text, std::string_view needle) {
  std::vector<std::size_t> all;
  for (std::size_t at = find_text(text, needle); at != std::string_view::npos;
       at = find_text(text, needle, at + needle.size())) {
    run.scan(needle.size());
    all.push_back(at);
  }
  return all;
}

/// Where `needle` is found from the end, in order of the text.
std::vector<std::size_t> last_occurrences(Runtime& run, std::string_view text,
                                          std::string_view needle, std::int64_t most) {
  const std::string backwards(text.rbegin(), text.rend()), wanted(needle.rbegin(), needle.rend());
  std::vector<std::size_t> all = occurrences(run, backwards, wanted);
  if (most >= 0 && all.size() > static_cast<std::size_t>(most))
    all.resize(static_cast<std::size_t>(most));
  for (std::size_t& at : all) at = text.size() - at - needle.size();
  std::reverse(all.begin(), all.end());
  return all;
}

Value split(Runtime& run, const Value& self, const Bound& a, bool from_end) {
  const Text& text = *self.text();
  const std::int64_t most = a.given(1) ? a.integer_or(1, -1) : -1;
  run.scan(text.size());
  if (a.given(0)) require_defined(a[0]);
  if (!a.set(0))
    return run.sequence(from_end ? last_words(run, text, most) : words(run, text, most));
  const std::string& separator = a.text(0).bytes();
  if (separator.empty()) fail_render("empty separator");
  std::vector<std::size_t> cuts = from_end ? last_occurrences(run, text.bytes(), separator, most)
                                           : occurrences(run, text.bytes(), separator);
  if (most >= 0 && cuts.size() > static_cast<std::size_t>(most))
    cuts.resize(static_cast<std::size_t>(most));
  std::vector<Value> pieces;
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    pieces.push_back(run.string(text.slice(begin, cut)));
    begin = cut + separator.size();
  }
  pieces.push_back(run.string(text.slice(begin, text.size())));
  return run.sequence(std::move(pieces));
}

Value split_lines(Runtime& run, const Value& self, const Bound& a) {
  std::vector<Value> pieces;
  for (Text& line : lines(run, *self.text(), a.truth_or(run, 0, false)))
    pieces.push_back(run.string(std::move(line)));
  return run.sequence(std::move(pieces));
}

Value partition(Runtime& run, const Value& self, const Bound& a, bool last) {
  const Text &text = *self.text(), &separator = a.text(0);
  if (separator.empty()) fail_render("empty separator");
  run.scan(text.size());
  const std::size_t at = last ? find_last_text(text.bytes(), separator.bytes())
                              : find_text(text.bytes(), separator.bytes());
  std::vector<Value> parts{run.string(Text()), run.string(Text()), run.string(Text())};
  if (at == std::string_view::npos) {
    parts[last ? 2 : 0] = self;
  } else {
    const std::size_t after = at + separator.size();
    parts = {run.string(text.slice(0, at)), run.string(text.slice(at, after)),
             run.string(text.slice(after, text.size()))};
  }
  return run.sequence(std::move(parts), SequenceKind::tuple);
}

}  // namespace

const Natives& text_split_methods() {
  using R = Runtime&;
  using V = const Value&;
  using B = const Bound&;
  static const Natives all = natives({
      {"split", "sep? maxsplit?", [](R r, V s, B a) { return split(r, s, a, false); }},
      {"rsplit", "sep? maxsplit?", [](R r, V s, B a) { return split(r, s, a, true); }},
      {"splitlines", "keepends?", split_lines},
      {"partition", "sep", [](R r, V s, B a) { return partition(r, s, a, false); }},
      {"rpartition", "sep", [](R r, V s, B a) { return partition(r, s, a, true); }},
  });
  return all;
}

}  // namespace heddle::text::jinja

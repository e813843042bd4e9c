#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pretokenizer.h"

#include <pcre2.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "text/utf8.h"

namespace heddle::text {
namespace {

struct Free {
  void operator()(pcre2_code* p) const noexcept { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const noexcept { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const noexcept { pcre2_match_context_free(p); }
};
using Code = std::unique_ptr<pcre2_code, Free>;
using MatchData = std::unique_ptr<pcre2_match_data, Free>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free>;

std::string describe(int error) {
  char message[256];
  pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
  return message;
}

/// PCRE2's \s has U+180E, which Unicode took out of white space in version 6.3; the property has
/// what the models' own tokenizers have.
std::string with_unicode_space(std::string_view pattern) {
  std::string result;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view two = pattern.substr(i, 2);
    if (two == "\\s" || two == "\\S") {
      result += two == "\\s" ? "\\p{White_Space}" : "\\P{White_Space}";
      ++i;
    } else {
      result += pattern[i];
    }
  }
  return result;
}

Code compile(std::string_view pattern, Pretokenizer::Engine engine) {
  const std::string source = with_unicode_space(pattern);
  int error = 0;
  PCRE2_SIZE at = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                          PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
  require(code != nullptr, ErrorCode::backend, "PCRE2 refuses the pattern {} at {}: {}", source, at,
          describe(error));
  // Where PCRE2 was built without a compiler for this processor, it interprets.
  if (engine == Pretokenizer::Engine::fastest) pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

/// A run of a million blanks takes a million steps of one match, so the limits that PCRE2 sets
/// against runaway patterns must not end it; these patterns are known to be linear.
MatchContext unlimited() {
  MatchContext context(pcre2_match_context_create(nullptr));
  require(context != nullptr, ErrorCode::out_of_memory, "no memory for a PCRE2 match context");
  pcre2_set_match_limit(context.get(), UINT32_MAX);
  pcre2_set_depth_limit(context.get(), UINT32_MAX);
  pcre2_set_heap_limit(context.get(), UINT32_MAX);
  return context;
}

/// `text` with each byte that is not part of valid UTF-8 replaced by U+0001, so that offsets stay;
/// empty when there is none.
std::string with_invalid_masked(std::string_view text) {
  std::string masked;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Unit unit = utf8_unit(text, i);
    if (unit.status != Utf8Status::valid) {
      if (masked.empty()) masked = text;
      std::fill_n(masked.begin() + static_cast<std::ptrdiff_t>(i), unit.length, '\x01');
    }
    i += unit.length;
  }
  return masked;
}

}  // namespace

struct Pretokenizer::Pattern {
  Code code;
  MatchContext context;

  /// Finds the leftmost match in piece[at:]; false when there is none.
  bool match(std::string_view piece, std::size_t at, pcre2_match_data* data) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
    // Checking the encoding takes time linear in the piece, at each match; `split` saw to it once.
    constexpr std::uint32_t kOptions = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    const auto run = [&](std::uint32_t options) {
      return pcre2_match(code.get(), subject, piece.size(), at, options, data, context.get());
    };
    int result = run(kOptions);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = run(kOptions | PCRE2_NO_JIT);
    if (result == PCRE2_ERROR_NOMATCH) return false;
    require(result >= 0,
            result == PCRE2_ERROR_NOMEMORY ? ErrorCode::out_of_memory : ErrorCode::backend,
            "splitting text into words: {}", describe(result));
    return true;
  }

  /// The lengths of the pieces that `piece` falls into.
  void split(std::string_view piece, pcre2_match_data* data,
             std::vector<std::size_t>& lengths) const {
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data);
    std::size_t done = 0;
    while (done < piece.size() && match(piece, done, data)) {
      if (span[0] > done) lengths.push_back(span[0] - done);
      lengths.push_back(span[1] - span[0]);
      done = span[1];
    }
    if (done < piece.size()) lengths.push_back(piece.size() - done);
  }
};

Pretokenizer::Pretokenizer(const PretokenizerRules& rules, Engine engine) {
  for (const std::string_view pattern : rules.patterns) {
    patterns_.push_back({compile(pattern, engine), unlimited()});
  }
}

Pretokenizer::~Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;

std::vector<std::string_view> Pretokenizer::split(std::string_view text) const {
  if (text.empty()) return {};
  const std::string masked = with_invalid_masked(text);
  const std::string_view subject = masked.empty() ? text : std::string_view(masked);
  const MatchData data(pcre2_match_data_create(1, nullptr));
  require(data != nullptr, ErrorCode::out_of_memory, "no memory for PCRE2 match data");

  std::vector<std::size_t> lengths{text.size()}, finer;
  for (const Pattern& pattern : patterns_) {
    finer.clear();
    std::size_t begin = 0;
    for (const std::size_t length : lengths) {
      pattern.split(subject.substr(begin, length), data.get(), finer);
      begin += length;
    }
    lengths.swap(finer);
  }
  std::vector<std::string_view> pieces;
  pieces.reserve(lengths.size());
  std::size_t begin = 0;
  for (const std::size_t length : lengths) {
    pieces.push_back(text.substr(begin, length));
    begin += length;
  }
  return pieces;
}

}  // namespace heddle::text

// Patterns against std::regex, bounded numbers against arithmetic.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdlib>
#include <regex>

#include "heddle/error.h"
#include "text/grammar/number_range.h"
#include "text/grammar/pattern.h"
#include "text/grammar_support.h"

namespace heddle::test {
namespace {

namespace tg = text::grammar;

tg::CharDfa dfa_of(const std::string& pattern) {
  std::size_t steps = 1'000'000;
  return tg::pattern_dfa(pattern, "test", steps);
}

std::string random_pattern(Random& random, int depth) {
  static const std::vector<std::string> atoms{
      "a",   "b", ".",      "[ab]",    "[^a]",  "\\d",     "\\w",    "\\s", "[0-9b]",
      "\\.", "-", "[^\\d]", "[a\\-1]", "\\x61", "\\u0062", "[\\w.]", "^",   "$"};
  std::string s;
  for (std::size_t i = 0, n = 1 + below(random, 3); i < n; ++i) {
    std::string atom = atoms[below(random, atoms.size())];
    if (depth > 0 && below(random, 3) == 0) {
      atom = (below(random, 2) == 0 ? "(" : "(?:") + random_pattern(random, depth - 1) + "|" +
             random_pattern(random, depth - 1) + ")";
    }
    static const std::vector<std::string> counts{"",  "",    "",      "*",    "+",
                                                 "?", "{2}", "{1,2}", "{1,}", "*?"};
    const bool is_anchor = atom == "^" || atom == "$";
    s += atom + (is_anchor ? "" : counts[below(random, counts.size())]);
  }
  return s;
}

TEST(GrammarPattern, FindsWhatStdRegexFinds) {
  Random random(271828);
  std::vector<std::string> texts{""};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == 3) continue;
    for (const char c : {'a', 'b', '1', '.', '-', ' ', '\n'}) texts.push_back(texts[i] + c);
  }
  std::size_t found = 0, missed = 0, refused = 0;
  for (int round = 0; round < 400; ++round) {
    const std::string pattern = random_pattern(random, 2);
    tg::CharDfa dfa;
    try {
      dfa = dfa_of(pattern);
    } catch (const Error& error) {
      EXPECT_NE(std::string_view(error.what()).find("too complex"), std::string_view::npos);
      ++refused;
      continue;
    }
    const std::regex regex(pattern, std::regex::ECMAScript);
    for (int i = 0; i < 150; ++i) {
      const std::string& text = texts[below(random, texts.size())];
      const bool expected = std::regex_search(text, regex);
      ++(expected ? found : missed);
      ASSERT_EQ(dfa.accepts(text), expected) << "/" << pattern << "/ in \"" << text << "\"";
    }
  }
  EXPECT_GT(found, 5000u);
  EXPECT_GT(missed, 5000u);
  EXPECT_LT(refused, 10u);
}

TEST(GrammarPattern, LanguagesIntersect) {
  Random random(161803);
  const std::vector<std::string> names{"a", "ab", "b1"};
  for (int round = 0; round < 100; ++round) {
    const tg::CharDfa a = dfa_of(random_pattern(random, 1)), b = dfa_of(random_pattern(random, 1)),
                      length = tg::of_length(1, 3, "test"), others = tg::other_than(names);
    const tg::CharDfa all = tg::intersection(tg::intersection(a, b, "test"),
                                             tg::intersection(length, others, "test"), "test");
    for (const std::string text :
         {"", "a", "b", "ab", "ba", "b1", "b1a", "1ab", "a.b-", "aé", "é"}) {
      const std::size_t n = tg::char_count(text);
      const bool is_name = std::find(names.begin(), names.end(), text) != names.end();
      EXPECT_EQ(all.accepts(text),
                a.accepts(text) && b.accepts(text) && n >= 1 && n <= 3 && !is_name)
          << text;
    }
  }
}

/// Whether a machine whose labels are texts and characters accepts a number's text.
bool accepts(const tg::Machine& machine, std::string_view text) {
  std::vector<std::pair<std::uint32_t, std::size_t>> work{{0, 0}};
  while (!work.empty()) {
    const auto [state, at] = work.back();
    work.pop_back();
    if (at == text.size() && machine.states[state].accepts) return true;
    for (const auto& [label, target] : machine.states[state].edges) {
      if (label.kind == tg::Expr::Kind::text && label.text.empty()) work.push_back({target, at});
      if (at == text.size()) continue;
      const auto c = static_cast<char32_t>(text[at]);
      const bool reads = label.kind == tg::Expr::Kind::text ? label.text == std::u32string(1, c)
                                                            : label.chars.contains(c);
      if (reads) work.push_back({target, at + 1});
    }
  }
  return false;
}

TEST(GrammarNumber, BoundsAreExact) {
  Random random(57721);
  std::vector<std::string> numbers;
  for (int n = -1300; n <= 1300; n += 13) numbers.push_back(std::to_string(n));
  for (int n = 1; n < 3000; n += 37) {
    for (const char* sign : {"", "-"}) {
      numbers.push_back(fmt::format("{}{}.{:02}", sign, n / 100, n % 100));
      numbers.push_back(fmt::format("{}{}.{:02}0", sign, n / 100, n % 100));
    }
  }
  std::size_t inside = 0;
  for (int round = 0; round < 300; ++round) {
    const auto pick = [&] { return numbers[below(random, numbers.size())]; };
    std::optional<std::string> min, max;
    if (below(random, 4) > 0) min = pick();
    if (below(random, 4) > 0) max = pick();
    const bool exclusive_min = below(random, 2) == 0, exclusive_max = below(random, 2) == 0;
    tg::NumberRange range;
    range.integer = below(random, 3) == 0;
    if (below(random, 4) == 0)
      range.multiple_of = 1 + static_cast<std::uint32_t>(below(random, 15));
    if (min) range.min = {*tg::parse_decimal(*min), exclusive_min};
    if (max) range.max = {*tg::parse_decimal(*max), exclusive_max};
    const tg::Machine machine = tg::number_machine(range, "test");
    for (int i = 0; i < 200; ++i) {
      const std::string text = i == 0 ? min.value_or("7") : i == 1 ? max.value_or("7") : pick();
      const double x = std::strtod(text.c_str(), nullptr);
      const double a = min ? std::strtod(min->c_str(), nullptr) : -1e300;
      const double b = max ? std::strtod(max->c_str(), nullptr) : 1e300;
      bool expected = (exclusive_min ? x > a : x >= a) && (exclusive_max ? x < b : x <= b);
      const bool whole = range.integer || range.multiple_of > 1;
      if (whole) {
        expected = expected && text.find('.') == text.npos &&
                   std::strtol(text.c_str(), nullptr, 10) % range.multiple_of == 0;
      }
      inside += expected;
      ASSERT_EQ(accepts(machine, text), expected)
          << text << " in " << min.value_or("-") << (exclusive_min ? " < " : " <= ") << "x"
          << (exclusive_max ? " < " : " <= ") << max.value_or("-") << " of " << range.multiple_of;
    }
  }
  EXPECT_GT(inside, 5000u);
}

TEST(GrammarNumber, Decimals) {
  const auto shown = [](const char* json) {
    const auto d = tg::parse_decimal(json);
    return d ? std::string(d->negative ? "-" : "") + d->whole + "." + d->fraction : "none";
  };
  EXPECT_EQ(shown("0"), "0.");
  EXPECT_EQ(shown("-0.0"), "0.");
  EXPECT_EQ(shown("-12.50"), "-12.5");
  EXPECT_EQ(shown("1.25e+2"), "125.");
  EXPECT_EQ(shown("125E-4"), "0.0125");
  EXPECT_EQ(shown("1e20"), "100000000000000000000.");
  EXPECT_EQ(shown("1e401"), "none");
  EXPECT_LT(tg::compare(*tg::parse_decimal("-2"), *tg::parse_decimal("-1.5")), 0);
  EXPECT_GT(tg::compare(*tg::parse_decimal("10"), *tg::parse_decimal("9.99")), 0);
  EXPECT_EQ(tg::compare(*tg::parse_decimal("1.0"), *tg::parse_decimal("10e-1")), 0);
}

}  // namespace
}  // namespace heddle::test

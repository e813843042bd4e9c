// Matchers against a recogniser that tries everything, on random grammars; masks against the tokens
// one by one.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "heddle/error.h"
#include "support/shared_files.h"
#include "text/grammar_support.h"

namespace heddle::test {
namespace {

/// A grammar as the test sees it.
struct Naive {
  enum class Kind { text, any_of, rule, sequence, choice, repeat };
  Kind kind;
  std::string text;  // text: itself; any_of: its characters, one byte each
  std::size_t rule = 0;
  int min = 0, max = 0;  // max -1: no limit
  std::vector<Naive> parts = {};
};

std::string to_gbnf(const Naive& n) {
  std::string s;
  switch (n.kind) {
    case Naive::Kind::text:
      return "\"" + n.text + "\"";
    case Naive::Kind::any_of:
      return "[" + n.text + "]";
    case Naive::Kind::rule:
      return n.rule == 0 ? "root" : "r" + std::to_string(n.rule);
    case Naive::Kind::sequence:
      for (const Naive& part : n.parts) s += to_gbnf(part) + " ";
      return "(" + s + ")";
    case Naive::Kind::choice:
      for (const Naive& part : n.parts) s += (s.empty() ? "" : "| ") + to_gbnf(part) + " ";
      return "(" + s + ")";
    case Naive::Kind::repeat:
      s = to_gbnf(n.parts.front());
      if (n.min == 0 && n.max == -1) return s + "*";
      if (n.min == 1 && n.max == -1) return s + "+";
      if (n.min == 0 && n.max == 1) return s + "?";
      return s + "{" + std::to_string(n.min) + "," + (n.max < 0 ? "" : std::to_string(n.max)) + "}";
  }
  return s;
}

Naive random_part(Random& random, std::size_t rules, int depth) {
  const auto letters = [&](std::size_t most) {
    std::string s;
    for (std::size_t i = 0, n = 1 + below(random, most); i < n; ++i)
      s += static_cast<char>('a' + below(random, 3));
    return s;
  };
  switch (below(random, depth > 0 ? 9 : 4)) {
    case 0:
    case 1:
      return {Naive::Kind::text, letters(2)};
    case 2:
      return {Naive::Kind::any_of, letters(2)};
    case 3:
    case 4:
      return {Naive::Kind::rule, "", below(random, rules)};
    case 5:
    case 6: {
      Naive n{Naive::Kind::sequence, ""};
      for (std::size_t i = 0, count = below(random, 4); i < count; ++i)
        n.parts.push_back(random_part(random, rules, depth - 1));
      return n;
    }
    case 7: {
      Naive n{Naive::Kind::choice, ""};
      for (std::size_t i = 0, count = 1 + below(random, 3); i < count; ++i)
        n.parts.push_back(random_part(random, rules, depth - 1));
      return n;
    }
    default: {
      Naive n{Naive::Kind::repeat, ""};
      n.min = static_cast<int>(below(random, 3));
      n.max = below(random, 2) == 0 ? -1 : n.min + static_cast<int>(below(random, 3));
      n.parts.push_back(random_part(random, rules, depth - 1));
      return n;
    }
  }
}

/// Where each part can end, by the set of all ways.
class NaiveReader {
 public:
  NaiveReader(const std::vector<Naive>& rules, std::string_view text)
      : rules_(rules), text_(text) {}
  bool accepts() { return of_rule(0, 0).contains(text_.size()); }

 private:
  using Ends = std::set<std::size_t>;

  Ends of_rule(std::size_t rule, std::size_t at) {
    const auto known = known_.find({rule, at});
    if (known != known_.end()) return known->second;
    known_[{rule, at}];  // what calls itself before it reads stands for nothing, or was refused
    const Ends ends = of(rules_[rule], at);
    known_[{rule, at}] = ends;
    return ends;
  }

  Ends of(const Naive& n, std::size_t at) {
    Ends ends;
    switch (n.kind) {
      case Naive::Kind::text:
        if (text_.substr(at).starts_with(n.text)) ends.insert(at + n.text.size());
        return ends;
      case Naive::Kind::any_of:
        if (at < text_.size() && n.text.find(text_[at]) != std::string::npos) ends.insert(at + 1);
        return ends;
      case Naive::Kind::rule:
        return of_rule(n.rule, at);
      case Naive::Kind::sequence:
        ends = {at};
        for (const Naive& part : n.parts) ends = after(part, ends);
        return ends;
      case Naive::Kind::choice:
        for (const Naive& part : n.parts) ends.merge(of(part, at));
        return ends;
      case Naive::Kind::repeat: {
        Ends now{at};
        for (int i = 0; i < n.min; ++i) now = after(n.parts.front(), now);
        ends = now;
        for (int i = n.min; n.max < 0 || i < n.max; ++i) {
          now = after(n.parts.front(), now);
          const std::size_t before = ends.size();
          ends.insert(now.begin(), now.end());
          if (ends.size() == before) break;
        }
        return ends;
      }
    }
    return ends;
  }

  Ends after(const Naive& part, const Ends& starts) {
    Ends ends;
    for (const std::size_t start : starts) ends.merge(of(part, start));
    return ends;
  }

  const std::vector<Naive>& rules_;
  std::string_view text_;
  std::map<std::pair<std::size_t, std::size_t>, Ends> known_;
};

/// All strings of a, b and c up to `length`.
std::vector<std::string> all_texts(std::size_t length) {
  std::vector<std::string> texts{""};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length) continue;
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  return texts;
}

/// A prefix that the matcher takes can be completed, to a text that is in the language.
void expect_completable(const std::vector<Naive>& rules, GrammarMatcher matcher, std::string text,
                        Random& random) {
  for (int i = 0; i < 400 && !matcher.may_end(); ++i) {
    const std::vector<TokenId> ids = masked(matcher, bytes_vocabulary());
    const TokenId id = ids[below(random, ids.size())];
    matcher.accept(id);
    text += static_cast<char>(id);
  }
  if (!matcher.may_end() || text.size() > 60) return;  // the walk went on and on
  EXPECT_TRUE(NaiveReader(rules, text).accepts()) << text;
}

TEST(GrammarReference, RandomGrammars) {
  Random random(4711);
  const std::vector<std::string> texts = all_texts(5);
  int compared = 0, refused = 0;
  std::size_t accepted = 0;
  const int rounds = rounds_or(300);
  while (compared < rounds) {
    const std::size_t count = 1 + below(random, 4);
    std::vector<Naive> rules;
    std::string gbnf;
    for (std::size_t i = 0; i < count; ++i) {
      rules.push_back(random_part(random, count, 3));
      gbnf += to_gbnf({Naive::Kind::rule, "", i}) + " ::= " + to_gbnf(rules.back()) + "\n";
    }
    std::shared_ptr<const Grammar> grammar;
    try {
      grammar = Grammar::from_gbnf(gbnf);
    } catch (const Error&) {  // left recursion, or no finite text
      ++refused;
      continue;
    }
    ++compared;
    const std::size_t before = accepted;
    for (const std::string& text : texts) {
      const bool inside = NaiveReader(rules, text).accepts();
      accepted += inside;
      ASSERT_EQ(has_text(grammar, text), inside) << gbnf << "text: " << text;
      if (inside) {
        for (std::size_t i = 0; i < text.size(); ++i)
          ASSERT_TRUE(has_prefix(grammar, text.substr(0, i))) << gbnf << "text: " << text;
      }
    }
    for (int i = 0; i < 5; ++i) {
      const std::string& text = texts[below(random, texts.size())];
      if (!has_prefix(grammar, text)) continue;
      GrammarMatcher matcher(grammar, bytes_vocabulary().index);
      for (const char c : text) matcher.accept(c);
      expect_completable(rules, matcher, text, random);
    }
    if (accepted == before) --compared;  // nothing short in it
  }
  EXPECT_GT(accepted, static_cast<std::size_t>(3 * rounds));
  EXPECT_LT(refused, 20 * compared);
}

/// Along a random text, each mask is what asking for each token gives.
void expect_masks(const std::shared_ptr<const Grammar>& grammar, const Indexed& v, Random& random,
                  int steps, TextStart start = TextStart::after_prompt) {
  GrammarMatcher matcher(grammar, v.index, start);
  for (int i = 0; i < steps; ++i) {
    const std::vector<TokenId> ids = masked(matcher, v);
    std::vector<TokenId> asked;
    for (TokenId id = 0; id < static_cast<TokenId>(v.index->size()); ++id) {
      if (matcher.allows(id)) asked.push_back(id);
    }
    ASSERT_EQ(ids, asked) << "step " << i;
    std::vector<TokenId> going_on;
    for (const TokenId id : ids) {
      if (!v.tokenizer.is_end(id)) going_on.push_back(id);
    }
    if (going_on.empty()) return;
    const TokenId id = going_on[below(random, going_on.size())];
    const std::string bytes = v.tokenizer.token_bytes(id);
    EXPECT_FALSE(bytes.empty());
    EXPECT_NE(v.tokenizer.type(id), TokenType::control);
    matcher.accept(id);
  }
}

std::vector<std::shared_ptr<const Grammar>> grammars() {
  return {Grammar::json_object(), Grammar::from_json_schema(R"({"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 70}, "age": {"type": "integer", "maximum": 130},
            "tags": {"type": "array", "items": {"enum": ["red", "green", "grün", "\n"]}}},
            "additionalProperties": {"type": "string", "pattern": "^[a-zé]+$"}})"),
          Grammar::from_gbnf("root ::= word (\" \" word)* \".\"\nword ::= [a-zA-Zà-ÿ一-龥]{1,9}"),
          Grammar::from_gbnf("root ::= (\"a\" | \"ab\" | \"abc\" | .){1,200}"),
          Grammar::from_gbnf("root ::= sum\nsum ::= term ([+-] term)*\nterm ::= [0-9]+ | \"(\" sum "
                             "\")\" | \" \" term")};
}

TEST(GrammarReference, MasksAreWhatTheTokensAre) {
  const std::vector<std::string> names = vocabulary_names();
  ASSERT_FALSE(names.empty());
  Random random(99);
  const auto all = grammars();
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Indexed& v = vocabulary(name);
    const int steps = v.index->size() > 10000 ? 12 : 60;
    for (const auto& grammar : all) {
      expect_masks(grammar, v, random, steps);
      expect_masks(grammar, v, random, steps / 4, TextStart::at_beginning);
    }
  }
  for (const auto& grammar : all) expect_masks(grammar, bytes_vocabulary(), random, 200);
}

}  // namespace
}  // namespace heddle::test

// Grammars and schemas that a few random changes have broken: they are refused with an Error that
// says what it is about, or masks can be made by them, and soon.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "heddle/error.h"
#include "text/json_schema_support.h"

namespace heddle::test {
namespace {

std::string changed(std::string text, const std::vector<std::string>& pieces, Random& random) {
  for (std::size_t i = 0, n = 1 + below(random, 4); i < n; ++i) {
    const std::size_t at = below(random, text.size() + 1), length = below(random, 12);
    switch (below(random, 5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
      case 2:
        text.insert(at, pieces[below(random, pieces.size())]);
        break;
      case 3:
        text.insert(at, text.substr(below(random, text.size() + 1), length));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(random, 256));
    }
  }
  return text;
}

/// Makes a grammar and some random steps by it. False if it was refused.
template <class Make>
bool try_out(const std::string& text, Random& random, const Make& make) {
  const auto begin = std::chrono::steady_clock::now();
  bool refused = false;
  try {
    GrammarMatcher matcher(make(text), bytes_vocabulary().index);
    for (int i = 0; i < 30 && !matcher.must_end(); ++i) {
      std::vector<TokenId> ids = masked(matcher, bytes_vocabulary());
      std::erase(ids, kBytesEnd);
      if (!ids.empty()) matcher.accept(ids[below(random, ids.size())]);
    }
  } catch (const Error& error) {
    refused = true;
    EXPECT_TRUE(error.code() == ErrorCode::invalid_argument ||
                error.code() == ErrorCode::unsupported)
        << text << "\n"
        << error.what();
    const std::string_view what = error.what();
    EXPECT_TRUE(what.find("grammar") != what.npos || what.starts_with("JSON schema")) << what;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30)) << text;
  return !refused;
}

template <class Make>
void fuzz(const std::vector<std::string>& seeds, const std::vector<std::string>& pieces,
          const Make& make) {
  Random random(8128);
  const auto start = std::chrono::steady_clock::now();
  int done = 0, made = 0;
  for (; done < rounds_or(3000); ++done) {
    made += try_out(changed(seeds[below(random, seeds.size())], pieces, random), random, make);
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(200)) break;
  }
  std::cout << done << " texts, " << made << " of them good\n";
  EXPECT_GT(made, 0);
  EXPECT_LT(made, done);
}

TEST(GrammarFuzz, ChangedGbnf) {
  const std::vector<std::string> seeds{
      "root ::= object\nvalue ::= object | array | string | number | (\"true\" | \"false\" | "
      "\"null\") ws\nobject ::=\n  \"{\" ws (\n string \":\" ws value\n (\",\" ws string \":\" ws "
      "value)*\n )? \"}\" ws\narray ::= \"[\" ws (value (\",\" ws value)*)? \"]\" ws\nstring ::= "
      "\"\\\"\" ([^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt] | \"u\" [0-9a-fA-F]{4}))* "
      "\"\\\"\" ws\nnumber ::= (\"-\"? ([0-9] | [1-9] [0-9]{0,15})) (\".\" [0-9]+)? ([eE] [-+]? "
      "[0-9] [1-9]{0,15})? ws\nws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n",
      "root ::= (expr \"=\" term \"\\n\")+ # sums\nexpr ::= term ([-+*/] term)*\nterm ::= num | "
      "\"(\" expr \")\"\nnum ::= [0-9]+\n",
      "root ::= \"1. \" move \" \" move \"\\n\" ([1-9] [0-9]? \". \" move \" \" move "
      "\"\\n\")+\nmove "
      "::= (pawn | \"O-O\" \"-O\"?) [+#]?\npawn ::= ([a-h] \"x\")? [a-h] [1-8] (\"=\" [NBQR])?"};
  const std::vector<std::string> pieces{"root", "value", "ws",         "(", ")",   "[",  "]", "{",
                                        "}",    "{0,9}", "{999999}",   "*", "+",   "?",  "|", "\"",
                                        "\\",   "\\x4",  "^",          "-", "::=", "\n", "#", "é",
                                        ".",    "\"\"",  "\n x ::= y", "1"};
  fuzz(seeds, pieces, [](const std::string& text) { return Grammar::from_gbnf(text); });
}

TEST(GrammarFuzz, ChangedSchemas) {
  Random random(496);
  std::vector<std::string> seeds;
  for (int i = 0; i < 40; ++i) seeds.push_back(random_schema(random).dump());
  const std::vector<std::string> pieces{"{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "\"",
                                        "1",
                                        "-1",
                                        "1e300",
                                        "null",
                                        "true",
                                        "false",
                                        "\"type\":\"string\",",
                                        "\"$ref\":\"#\",",
                                        "\"anyOf\":[{\"$ref\":\"#\"},{}],",
                                        "\"maxLength\":100000,",
                                        "\"pattern\":\"(a*)*b{3,9}\",",
                                        "\"minItems\":3,",
                                        "\"properties\":{\"a\":{\"$ref\":\"#\"}},",
                                        "\"not\":{},",
                                        "\"enum\":[1,{}],",
                                        "\"items\":{\"$ref\":\"#/$defs/tree\"},"};
  fuzz(seeds, pieces, [](const std::string& text) { return Grammar::from_json_schema(text); });
}

}  // namespace
}  // namespace heddle::test

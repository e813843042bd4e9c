// GBNF, and what matchers make of it token by token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "heddle/error.h"
#include "text/grammar_support.h"
#include "text/vocabularies.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kEscaped = R"("\x41é\U0001F600\n\"\\\[\]")";

void expect_language(const char* gbnf, const std::vector<std::string>& inside,
                     const std::vector<std::string>& outside) {
  const auto grammar = Grammar::from_gbnf(gbnf);
  for (const std::string& text : inside)
    EXPECT_TRUE(has_text(grammar, text)) << gbnf << ": " << text;
  for (const std::string& text : outside)
    EXPECT_FALSE(has_text(grammar, text)) << gbnf << ": " << text;
}

TEST(Gbnf, Notation) {
  expect_language("root ::= \"ab\" | \"c\"", {"ab", "c"}, {"", "a", "abc"});
  expect_language("root ::= [a-c_x-] [^a-c\\n]", {"ad", "-z", "_é", "x\xF0\x9F\x98\x80"},
                  {"aa", "a\n", "y1", "a", "a\xC3", "a\xED\xA0\x80", "a\xC0\x80"});
  expect_language("root ::= .", {"a", "é", "\n", "\xF4\x8F\xBF\xBF"},
                  {"", "ab", "\xF4\x90\x80\x80"});
  expect_language("root ::= \"a\"? [b]* \"c\"+", {"c", "ac", "abbcc"}, {"", "ab", "aac"});
  expect_language("root ::= \"ab\"{2} [c]{1,} (\"d\" | \"e\"){0,2}", {"ababc", "ababccde"},
                  {"abc", "abab", "ababcded"});
  expect_language("root ::= (\"a\" | )\"b\"{0}", {"", "a"}, {"b", "ab"});
  expect_language((std::string("root ::= ") + kEscaped).c_str(),
                  {"A\xC3\xA9\xF0\x9F\x98\x80\n\"\\[]"}, {"A"});
  expect_language(
      "# first\nroot ::= # why\n  a-1 |\n b_2 # or\n | (\n \"z\" # here\n )\r\n"
      "a-1 ::= \"1\"\n\n\nb_2::=\"2\"",
      {"1", "2", "z"}, {""});
  expect_language("root ::= [] | \"x\"", {"x"}, {"", "]"});
}

TEST(Gbnf, Recursion) {
  expect_language("root ::= \"(\" root? \")\" root?", {"()", "(()())()"}, {"", "(", "())"});
  expect_language("root ::= | \"a\" root x\nx ::= \"b\"?", {"", "a", "aab", "aaabbb"},
                  {"b", "abb"});
}

TEST(Gbnf, RefusalsNameThePlace) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "there is no rule \"root\""},
      {"a ::= \"x\"", "there is no rule \"root\""},
      {"root ::= b", "line 1, column 10: there is no rule \"b\""},
      {"root ::= \"x\"\n\n  root ::= \"y\"", "line 3, column 3: there is a rule \"root\" already"},
      {"root = \"x\"", "line 1, column 6: expected ::="},
      {"root ::= \"x", "line 1, column 10: this \" is never closed"},
      {"root ::= \"é\" [a", "line 1, column 14: this [ is never closed"},
      {"root ::= (\"a\"", "line 1, column 10: this ( is never closed"},
      {"root ::= \"a\")", "line 1, column 13: this ) closes no ("},
      {"root ::= *", "line 1, column 10: there is nothing before this *"},
      {"root ::= \"a\" | {2}", "nothing before this {"},
      {"root ::= [z-a]", "line 1, column 11: this range ends before it begins"},
      {"root ::= \"\\q\"", "line 1, column 11: unknown escape"},
      {"root ::= \"\\x4\"", "needs 2 hexadecimal digits"},
      {"root ::= \"\\uD800\"", "U+D800 is not a character"},
      {"root ::= \"\\U00110000\"", "U+110000 is not a character"},
      {"root ::= \"a\"{3,2}", "line 1, column 13: 3 repetitions at least, but 2 at most"},
      {"root ::= \"a\"{,2}", "expected a count"},
      {"root ::= \"a\"{2", "expected }"},
      {"root ::= \"a\"{9999999999}", "more than 1000000000 repetitions"},
      {"root ::= \"a\"?*+?*+", "repeated again too often"},
      {"root ::= \"a\xFF\"", "not part of valid UTF-8"},
      {"root ::= <think>", "tokens cannot be named"},
      {"root ::= \"a\" ; x", "column 14: expected"},
      {"root ::= root \"a\" | \"b\"", "left-recursive: rule \"root\""},
      {"root ::= a\na ::= e b\nb ::= a | \"y\"\ne ::= \"x\"?", "(a -> b -> a)"},
      {"root ::= \"a\" root", "no finite text: rule \"root\" never comes to an end"},
      {"root ::= []", "no finite text"},
      {std::string("root ::= ") + std::string(300, '('), "nested more than 200 deep"},
      {std::string(2 << 20, ' '), "too long"},
  };
  for (const auto& [text, message] : cases) {
    const std::string said = refusal([&] { Grammar::from_gbnf(text); });
    EXPECT_THAT(said, HasSubstr(message)) << text.substr(0, 100);
  }
}

TEST(Gbnf, DeepNestingAndLongRepetitionsAreBounded) {
  const std::string open(200, '('), close(200, ')');
  EXPECT_TRUE(has_text(Grammar::from_gbnf("root ::= " + open + "\"a\"" + close), "a"));
  std::string powers = "root ::= ((((\"a\"{1000}){1000}){1000}){1000}){1000}";
  EXPECT_TRUE(has_prefix(Grammar::from_gbnf(powers), std::string(5000, 'a')));
  std::string many = "root ::= ";
  for (int i = 0; i < 40000; ++i) many += "[a-z]{100,128}";
  EXPECT_THAT(refusal([&] { Grammar::from_gbnf(many); }), HasSubstr("too large"));
}

TEST(Gbnf, CountsAreExact) {
  for (const int n : {0, 1, 2, 63, 64, 65, 127, 128, 129, 130, 191, 192, 193, 1000, 5000}) {
    const auto text = [](int count) { return std::string(static_cast<std::size_t>(count), 'a'); };
    const auto exact = Grammar::from_gbnf("root ::= [a]{" + std::to_string(n) + "}");
    const auto most = Grammar::from_gbnf("root ::= (\"a\"){0," + std::to_string(n) + "}");
    for (const int count :
         {0, 1, 62, 63, 64, 65, 127, 128, 129, 192, 256, n - 65, n - 64, n - 1, n, n + 1}) {
      if (count < 0) continue;
      EXPECT_EQ(has_text(exact, text(count)), count == n) << n << " " << count;
      EXPECT_EQ(has_text(most, text(count)), count <= n) << n << " " << count;
    }
  }
}

TEST(GrammarMatcher, TokensMayEndInsideCharacters) {
  const auto grammar = Grammar::from_gbnf("root ::= [é-ë] [\\U0001F600-\\U0001F64F]");
  GrammarMatcher matcher(grammar, bytes_vocabulary().index);
  EXPECT_THAT(masked(matcher, bytes_vocabulary()), ElementsAre(0xC3));
  matcher.accept(0xC3);
  EXPECT_THAT(masked(matcher, bytes_vocabulary()), ElementsAre(0xA9, 0xAA, 0xAB));
  matcher.accept(0xAA);
  for (const TokenId id : {0xF0, 0x9F}) {
    EXPECT_THAT(masked(matcher, bytes_vocabulary()), ElementsAre(id));
    EXPECT_FALSE(matcher.may_end());
    matcher.accept(id);
  }
  EXPECT_THAT(masked(matcher, bytes_vocabulary()), ElementsAre(0x98, 0x99));
  matcher.accept(0x99);
  EXPECT_EQ(masked(matcher, bytes_vocabulary()).size(), 16u);
  matcher.accept(0x80);
  EXPECT_TRUE(matcher.must_end());
  EXPECT_THAT(masked(matcher, bytes_vocabulary()), ElementsAre(kBytesEnd));
}

TEST(GrammarMatcher, Ends) {
  const auto grammar = Grammar::from_gbnf("root ::= \"a\" \"b\"?");
  GrammarMatcher matcher(grammar, bytes_vocabulary().index);
  EXPECT_FALSE(matcher.may_end());
  EXPECT_FALSE(matcher.allows(kBytesEnd));
  EXPECT_THROW(matcher.accept(kBytesEnd), Error);
  EXPECT_THROW(matcher.accept('b'), Error);
  EXPECT_THROW(matcher.accept(-1), Error);
  EXPECT_THROW(matcher.accept(257), Error);
  matcher.accept('a');
  EXPECT_TRUE(matcher.may_end());
  EXPECT_FALSE(matcher.must_end());
  EXPECT_THAT(masked(matcher, bytes_vocabulary()), ElementsAre('b', kBytesEnd));
  GrammarMatcher other = matcher;
  matcher.accept(kBytesEnd);
  EXPECT_TRUE(matcher.must_end());
  EXPECT_THROW(matcher.accept('b'), Error);
  std::vector<float> logits(257);
  EXPECT_THAT(refusal([&] { matcher.mask(logits); }), HasSubstr("the text has ended"));
  other.accept('b');
  EXPECT_TRUE(other.must_end());
  matcher = other;
  EXPECT_THAT(masked(matcher, bytes_vocabulary()), ElementsAre(kBytesEnd));
}

TEST(GrammarMatcher, MaskLeavesTheOthersAlone) {
  const auto grammar = Grammar::from_gbnf("root ::= [a-c]");
  GrammarMatcher matcher(grammar, bytes_vocabulary().index);
  std::vector<float> logits(300, 7);
  logits['b'] = std::numeric_limits<float>::quiet_NaN();
  logits['c'] = -std::numeric_limits<float>::infinity();
  matcher.mask(logits);
  EXPECT_EQ(logits['a'], 7);
  EXPECT_TRUE(std::isnan(logits['b']));
  for (const int other : {0, int{'d'}, 255, 256, 299})
    EXPECT_EQ(logits[static_cast<std::size_t>(other)], -std::numeric_limits<float>::infinity());
  std::vector<float> few(256);
  EXPECT_THAT(refusal([&] { matcher.mask(few); }), HasSubstr("256 logits for the 257 tokens"));
}

TEST(GrammarMatcher, SaysWhenNoTokenCanFollow) {
  VocabularyBuilder builder = sentencepiece_basics();
  builder.texts.resize(3 + 'c');  // no byte from 'c' on
  builder.types.resize(3 + 'c');
  builder.scores.resize(3 + 'c');
  const Indexed few{Tokenizer(builder.metadata("llama"))};
  GrammarMatcher matcher(Grammar::from_gbnf("root ::= \"b\" \"c\""), few.index);
  EXPECT_THAT(masked(matcher, few), ElementsAre(kByteZero + 'b'));
  matcher.accept(kByteZero + 'b');
  EXPECT_THAT(refusal([&] { masked(matcher, few); }),
              HasSubstr("no token of the vocabulary can continue"));
}

TEST(GrammarMatcher, SentencePieceSpaces) {
  VocabularyBuilder builder = sentencepiece_basics();
  const std::string mark = "\xE2\x96\x81";
  const TokenId a = builder.add("a"), space_a = builder.add(mark + "a"), space = builder.add(mark),
                two = builder.add(mark + mark + "a");
  builder.add("");
  builder.add("<tool>", TokenType::control);
  const TokenId user = builder.add(" ", TokenType::user_defined);
  const Indexed v{Tokenizer(builder.metadata("llama"))};
  const TokenId byte_a = kByteZero + 'a', byte_space = kByteZero + ' ';

  const auto word = Grammar::from_gbnf("root ::= \"a\"");
  GrammarMatcher after(word, v.index), first(word, v.index, TextStart::at_beginning);
  EXPECT_THAT(masked(after, v), ElementsAre(byte_a, a));
  EXPECT_THAT(masked(first, v), ElementsAre(byte_a, a, space_a));
  for (const TokenId id : {byte_a, a, space_a}) EXPECT_TRUE(first.allows(id));
  for (const TokenId id : {space, byte_space, two, user}) EXPECT_FALSE(first.allows(id));
  first.accept(space_a);
  EXPECT_TRUE(first.must_end());

  const auto spaced = Grammar::from_gbnf("root ::= \" a\" \" a\"");
  GrammarMatcher text(spaced, v.index);
  EXPECT_THAT(masked(text, v), ElementsAre(byte_space, space_a, space, user));
  text.accept(space_a);
  EXPECT_THAT(masked(text, v), ElementsAre(byte_space, space_a, space, user));
  GrammarMatcher beginning(spaced, v.index, TextStart::at_beginning);
  EXPECT_THAT(masked(beginning, v), ElementsAre(two));
  beginning.accept(two);
  EXPECT_THAT(masked(beginning, v), ElementsAre(byte_space, space_a, space, user));
}

// Without shared frames there would be 2^200 stacks here.
TEST(GrammarMatcher, AmbiguityDoesNotMultiply) {
  const auto grammar = Grammar::from_gbnf("root ::= \"a\" root \"x\" | \"a\" root \"y\" | \"a\"");
  GrammarMatcher matcher(grammar, bytes_vocabulary().index);
  for (int i = 0; i < 200; ++i) matcher.accept('a');
  for (int i = 0; i < 199; ++i) {
    EXPECT_THAT(masked(matcher, bytes_vocabulary()),
                i == 0 ? testing::SizeIs(3) : testing::SizeIs(2));
    matcher.accept(i % 3 == 0 ? 'x' : 'y');
  }
  EXPECT_TRUE(matcher.must_end());
}

TEST(GrammarMatcher, TooManyWaysAreRefused) {
  const auto grammar = Grammar::from_gbnf(
      "root ::= ((([a]{0,3000} [a]{0,3000}){0,3000} [a]{0,3000}){0,3000} [a]){0,3000}");
  GrammarMatcher matcher(grammar, bytes_vocabulary().index);
  const std::string said = refusal([&] {
    for (int i = 0; i < 3000; ++i) matcher.accept('a');
  });
  EXPECT_THAT(said, HasSubstr("too many ways"));
}

TEST(GrammarMatcher, LongTextsTakeLittleMemory) {
  const auto grammar =
      Grammar::from_gbnf("root ::= value\nvalue ::= \"[\" (value (\",\" value)*)? \"]\" | [0-9]+");
  GrammarMatcher matcher(grammar, bytes_vocabulary().index);
  for (int i = 0; i < 20000; ++i) matcher.accept('[');  // deep: all of it is needed
  for (int i = 0; i < 19999; ++i) matcher.accept(']');
  EXPECT_FALSE(matcher.may_end());
  matcher.accept(']');
  EXPECT_TRUE(matcher.must_end());
  GrammarMatcher wide(grammar, bytes_vocabulary().index);
  wide.accept('[');
  for (int i = 0; i < 200000; ++i) wide.accept(i % 2 == 0 ? '7' : ',');
  wide.accept('8');
  wide.accept(']');
  EXPECT_TRUE(wide.must_end());
}

TEST(GrammarMatcher, OneGrammarInManyThreads) {
  const auto grammar = Grammar::json_object();
  const std::string text = R"({"a": [1, {"b": null}], "é\n": "\ud83d\ude00"})";
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      GrammarMatcher matcher(grammar, bytes_vocabulary().index);
      for (const char c : text) {
        const auto id = static_cast<TokenId>(static_cast<unsigned char>(c));
        const std::vector<TokenId> ids = masked(matcher, bytes_vocabulary());
        EXPECT_NE(std::find(ids.begin(), ids.end(), id), ids.end());
        matcher.accept(id);
      }
      EXPECT_TRUE(matcher.must_end());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GrammarMatcher, NeedsBothParts) {
  EXPECT_THROW(GrammarMatcher(nullptr, bytes_vocabulary().index), Error);
  EXPECT_THROW(GrammarMatcher(Grammar::json_object(), nullptr), Error);
}

}  // namespace
}  // namespace heddle::test

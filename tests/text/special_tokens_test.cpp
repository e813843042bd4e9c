#include "text/special_tokens.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "heddle/chat_template.h"
#include "text/merge.h"
#include "text/vocabularies.h"

namespace heddle::test {
namespace {

using Ids = std::vector<TokenId>;
using Pieces = std::vector<std::pair<std::string, TokenId>>;

/// Longest tokens first, each from left to right, by looking everywhere.
Pieces naive_cut(const std::map<std::string, TokenId>& tokens, const std::string& text) {
  Pieces pieces = {{text, text::kNoToken}};
  for (std::size_t length = text.size(); length > 0; --length) {
    Pieces finer;
    for (const auto& [piece, id] : pieces) {
      std::size_t done = 0;
      for (std::size_t i = 0; id == text::kNoToken && i + length <= piece.size();) {
        const auto token = tokens.find(piece.substr(i, length));
        if (token == tokens.end()) {
          ++i;
          continue;
        }
        if (i > done) finer.emplace_back(piece.substr(done, i - done), text::kNoToken);
        finer.emplace_back(token->first, token->second);
        done = i += length;
      }
      if (done < piece.size()) finer.emplace_back(piece.substr(done), id);
    }
    pieces = finer;
  }
  return pieces;
}

TEST(SpecialTokens, UserDefinedAlwaysControlOnRequest) {
  VocabularyBuilder builder = all_bytes();
  const TokenId control = builder.add("<|c|>", TokenType::control);
  const TokenId mine = builder.add("<u>", TokenType::user_defined);
  const Tokenizer tokenizer(builder.metadata("gpt2", "gpt-2"));
  EXPECT_EQ(tokenizer.encode("a<u>b", kPlain), (Ids{'a', mine, 'b'}));
  EXPECT_EQ(tokenizer.encode("<|c|>", kPlain), (Ids{'<', '|', 'c', '|', '>'}));
  EXPECT_EQ(tokenizer.encode("<|c|><u>", kParse), (Ids{control, mine}));
  EXPECT_EQ(tokenizer.encode("<|c|", kParse), (Ids{'<', '|', 'c', '|'}));
  EXPECT_EQ(tokenizer.encode("", kParse), Ids{});
}

TEST(SpecialTokens, ControlTokensOnlyInTheTemplatesOwnText) {
  VocabularyBuilder builder = all_bytes();
  const TokenId control = builder.add("<c>", TokenType::control);
  const TokenId longer = builder.add("<c>d", TokenType::control);
  const TokenId mine = builder.add("<u>", TokenType::user_defined);
  const TokenId merged = builder.add("ab");
  builder.merges = {"a b"};
  const Tokenizer tokenizer(builder.metadata("gpt2", "gpt-2"));
  const auto own = [](std::string text) { return TextPiece{std::move(text), true}; };
  const auto data = [](std::string text) { return TextPiece{std::move(text), false}; };
  const auto ids = [&](std::vector<TextPiece> pieces) { return tokenizer.encode_pieces(pieces); };
  EXPECT_EQ(ids({own("<c>"), data("<c>"), own("<c>")}), (Ids{control, '<', 'c', '>', control}));
  EXPECT_EQ(ids({own("<"), data("c"), own(">")}), (Ids{'<', 'c', '>'}));
  EXPECT_EQ(ids({own("<c"), data("><c>")}), (Ids{'<', 'c', '>', '<', 'c', '>'}));
  EXPECT_EQ(ids({own("<c>"), data("d")}), (Ids{control, 'd'}));
  EXPECT_EQ(ids({own("<c>d")}), Ids{longer});
  EXPECT_EQ(ids({data("<u>"), own("x"), data("<"), own("u>")}), (Ids{mine, 'x', mine}));
  EXPECT_EQ(ids({own("a"), data("b")}), Ids{merged});
  EXPECT_EQ(ids({}), Ids{});
}

TEST(SpecialTokens, TheLongestGoesFirst) {
  VocabularyBuilder builder = all_bytes();
  const TokenId two = builder.add("ab", TokenType::user_defined);
  const TokenId four = builder.add("bcde", TokenType::user_defined);
  const TokenId three = builder.add("abc", TokenType::user_defined);
  const Tokenizer tokenizer(builder.metadata("gpt2", "gpt-2"));
  EXPECT_EQ(tokenizer.encode("abcde", kPlain), (Ids{'a', four}));
  EXPECT_EQ(tokenizer.encode("abcd", kPlain), (Ids{three, 'd'}));
  EXPECT_EQ(tokenizer.encode("abd", kPlain), (Ids{two, 'd'}));
}

TEST(SpecialTokens, EqualsTheDefinitionOnRandomText) {
  std::mt19937 random(13);
  for (int round = 0; round < 300; ++round) {
    VocabularyBuilder builder;
    std::map<std::string, TokenId> tokens;
    for (unsigned n = random() % 12; n > 0; --n) {
      std::string token;
      for (unsigned i = 1 + random() % 6; i > 0; --i)
        token += static_cast<char>('a' + random() % 2);
      if (!tokens.count(token)) tokens[token] = builder.add(token, TokenType::user_defined);
    }
    builder.add("z");
    const text::Vocabulary vocabulary = text::read_vocabulary(builder.metadata("gpt2", "gpt-2"));
    const text::SpecialTokens special(vocabulary, false);
    std::string text;
    for (unsigned i = 1 + random() % 40; i > 0; --i) text += "aabbc"[random() % 5];
    Pieces pieces;
    for (const text::Fragment& f : special.cut(text)) {
      pieces.emplace_back(text.substr(f.begin, f.end - f.begin), f.id);
    }
    ASSERT_EQ(pieces, naive_cut(tokens, text)) << text;
  }
}

TEST(SpecialTokens, ThousandsOfTokensInLongText) {
  VocabularyBuilder builder = all_bytes();
  for (int i = 0; i < 5000; ++i) {
    builder.add("<|reserved_" + std::to_string(i) + "|>", TokenType::control);
  }
  for (int n = 2; n < 32; ++n)
    builder.add(std::string(static_cast<std::size_t>(n), ' '), TokenType::user_defined);
  const Tokenizer tokenizer(builder.metadata("gpt2", "gpt-2"));
  std::string text(1 << 20, '<');
  EXPECT_EQ(tokenizer.encode(text, kParse).size(), text.size());
  text.clear();
  for (int i = 0; i < 50'000; ++i) text += "<|reserved_" + std::to_string(i % 5000) + "|>";
  EXPECT_EQ(tokenizer.encode(text, kParse).size(), 50'000u);
  text.assign(31 * 30'000 + 7, ' ');
  const Ids ids = tokenizer.encode(text, kPlain);
  EXPECT_EQ(ids.size(), 30'001u);
  EXPECT_EQ(tokenizer.token_text(ids.back()), std::string(7, ' '));
}

TEST(SpecialTokens, Phi3SwallowsWhiteSpaceAfterItsTokens) {
  VocabularyBuilder builder = sentencepiece_basics();
  const TokenId user = builder.add("<|user|>", TokenType::control);
  const TokenId mark_a = builder.add(
      "\xE2\x96\x81"
      "a");
  builder.add("\xE2\x96\x81");
  builder.add("a");
  gguf::Metadata metadata = builder.metadata("llama");
  metadata.set("general.name", std::string("Phi-3-mini"));
  const Tokenizer phi(metadata);
  EXPECT_EQ(phi.encode("<|user|> \n a", kParse), (Ids{user, mark_a}));
  EXPECT_EQ(phi.encode("</s>\n<|user|>\n", kParse), (Ids{2, user}));
  EXPECT_NE(phi.encode("<s> a", kParse), (Ids{1, mark_a}));
  EXPECT_NE(Tokenizer(builder.metadata("llama")).encode("<|user|> a", kParse), (Ids{user, mark_a}));
}

TEST(SpecialTokens, EndsAreKnownByIdAndByName) {
  VocabularyBuilder builder = all_bytes();
  const TokenId eos = builder.add("<eos>", TokenType::control);
  const TokenId eot = builder.add("<turn>", TokenType::control);
  const TokenId im_end = builder.add("<|im_end|>", TokenType::normal);  // as some files have it
  gguf::Metadata metadata = builder.metadata("gpt2", "gpt-2");
  metadata.set("tokenizer.ggml.eos_token_id", std::uint32_t(eos));
  metadata.set("tokenizer.ggml.eot_token_id", std::uint32_t(eot));
  const Tokenizer tokenizer(metadata);
  for (const TokenId id : {eos, eot, im_end}) EXPECT_TRUE(tokenizer.is_end(id));
  for (const TokenId id : {TokenId{'a'}, TokenId{-1}, TokenId{100'000}})
    EXPECT_FALSE(tokenizer.is_end(id));
  EXPECT_EQ(tokenizer.type(im_end), TokenType::control);
  EXPECT_EQ(tokenizer.decode(Ids{'a', im_end}), "a");
  EXPECT_EQ(tokenizer.decode(Ids{'a', im_end}, true), "a<|im_end|>");
  EXPECT_EQ(tokenizer.eos(), eos);
  EXPECT_EQ(tokenizer.bos(), std::nullopt);
  EXPECT_EQ(tokenizer.find("<turn>"), eot);
  EXPECT_EQ(tokenizer.find("nonesuch"), std::nullopt);
}

}  // namespace
}  // namespace heddle::test

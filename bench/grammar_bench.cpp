// What constrained sampling costs a token: milliseconds of a mask over the vocabulary of a GGUF
// file
// (../shared/tokenizers/qwen2.gguf unless named), along texts drawn at random, when a place in the
// grammar is new and when it has been seen. Medians and the worst.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "heddle/gguf.h"
#include "heddle/grammar.h"

namespace heddle {
namespace {

double milliseconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double quantile(std::vector<double>& values, double at) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1))];
}

/// One that the mask leaves, after a random place in `from` if there is one, or else anywhere.
TokenId pick(const std::vector<float>& logits, const std::vector<TokenId>& from,
             std::mt19937_64& random) {
  for (std::size_t i = 0, at = random(); i < from.size(); ++i) {
    const TokenId id = from[(at + i) % from.size()];
    if (logits[static_cast<std::size_t>(id)] == 0) return id;
  }
  return static_cast<TokenId>(std::ranges::find(logits, 0.0f) - logits.begin());
}

/// The masks of `texts` texts of up to `tokens` tokens; those of the first text apart.
void measure(const char* name, const std::shared_ptr<const Grammar>& grammar,
             const Tokenizer& tokenizer, const std::shared_ptr<const VocabularyIndex>& index) {
  constexpr int kTexts = 20, kTokens = 100;
  std::mt19937_64 random(1);
  std::vector<double> first, later, accepts;
  std::vector<float> logits(index->size());
  std::vector<TokenId> all, quotes;  // those that begin with a quote close a string
  for (std::size_t i = 0; i < index->size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (!tokenizer.is_end(id)) all.push_back(id);
    if (tokenizer.token_bytes(id).starts_with('"')) quotes.push_back(id);
  }
  for (int text = 0; text < kTexts; ++text) {
    GrammarMatcher matcher(grammar, index);
    for (int i = 0; i < kTokens && !matcher.must_end(); ++i) {
      std::ranges::fill(logits, 0.0f);
      (text == 0 ? first : later).push_back(milliseconds([&] { matcher.mask(logits); }));
      const TokenId id = pick(logits, random() % 4 == 0 ? quotes : all, random);
      accepts.push_back(milliseconds([&] { matcher.accept(id); }));
    }
  }
  std::printf(
      "%-22s first text: median %6.3f, worst %6.3f   later: median %6.3f, worst %6.3f   "
      "accept: median %7.4f ms\n",
      name, quantile(first, 0.5), quantile(first, 1), quantile(later, 0.5), quantile(later, 1),
      quantile(accepts, 0.5));
}

int run(const std::string& path) {
  const Tokenizer tokenizer(gguf::File::open(path).metadata());
  std::shared_ptr<const VocabularyIndex> index;
  const double build = milliseconds([&] { index = std::make_shared<VocabularyIndex>(tokenizer); });
  std::printf("%zu tokens; index made in %.1f ms\n", tokenizer.size(), build);
  const auto schema = [](const char* text) { return Grammar::from_json_schema(text); };
  const auto person = schema(R"({"type": "object", "properties": {"name": {"type": "string"},
    "age": {"type": "integer", "minimum": 0, "maximum": 130}, "tags": {"type": "array", "items":
    {"enum": ["red", "green", "blue"]}}, "note": {"type": "string", "maxLength": 200}},
    "required": ["name", "age", "tags", "note"], "additionalProperties": false})");
  measure("json_object", Grammar::json_object(), tokenizer, index);
  measure("schema", person, tokenizer, index);
  measure("string of 1000", schema(R"({"type": "string", "maxLength": 1000})"), tokenizer, index);
  measure("pattern", schema(R"({"pattern": "^[a-z]+( [a-z]+){0,30}$"})"), tokenizer, index);
  measure("words (GBNF)", Grammar::from_gbnf("root ::= ([^ ]+ \" \")*"), tokenizer, index);
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  return heddle::run(argc > 1 ? argv[1] : "../shared/tokenizers/qwen2.gguf");
}

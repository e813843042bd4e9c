#include "text/grammar_support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "heddle/error.h"
#include "heddle/gguf.h"
#include "support/shared_files.h"
#include "text/vocabularies.h"

namespace heddle::test {
namespace {

const char* const kBundled = "models/fable-1m-f16.gguf";

std::filesystem::path path_of(const std::string& name) {
  if (name == kBundled) return std::filesystem::path(HEDDLE_SOURCE_DIR) / name;
  return shared_dir() / name;
}

/// Reads `text` as far as it goes.
bool read(GrammarMatcher& matcher, std::string_view text) {
  for (const char c : text) {
    const auto id = static_cast<TokenId>(static_cast<unsigned char>(c));
    if (!matcher.allows(id)) return false;
    matcher.accept(id);
  }
  return true;
}

}  // namespace

int rounds_or(int usual) {
  const char* given = std::getenv("FUZZ_ROUNDS");
  return given == nullptr ? usual : std::atoi(given);
}

const Indexed& bytes_vocabulary() {
  static const Indexed indexed = [] {
    VocabularyBuilder builder = all_bytes();
    builder.add("<|end|>", TokenType::control);
    return Indexed(Tokenizer(builder.metadata("gpt2", "gpt-2")));
  }();
  return indexed;
}

std::vector<std::string> vocabulary_names() {
  std::vector<std::string> names;
  for (const char* name : {kBundled, "models/stories260K.gguf", "tokenizers/gpt-2.gguf",
                           "tokenizers/llama-spm.gguf", "tokenizers/qwen2.gguf"}) {
    if (std::filesystem::exists(path_of(name))) names.push_back(name);
  }
  return names;
}

const Indexed& vocabulary(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Indexed>> opened;
  std::unique_ptr<Indexed>& entry = opened[name];
  if (!entry)
    entry = std::make_unique<Indexed>(Tokenizer(gguf::File::open(path_of(name)).metadata()));
  return *entry;
}

bool has_text(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar, bytes_vocabulary().index);
  return read(matcher, text) && matcher.may_end();
}

bool has_prefix(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar, bytes_vocabulary().index);
  return read(matcher, text);
}

std::vector<TokenId> masked(GrammarMatcher& matcher, const Indexed& vocabulary) {
  std::vector<float> logits(vocabulary.index->size(), 1.0f);
  matcher.mask(logits);
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isinf(logits[i])) ids.push_back(static_cast<TokenId>(i));
  }
  return ids;
}

std::string sample(const std::shared_ptr<const Grammar>& grammar, const Indexed& vocabulary,
                   Random& random, int most) {
  GrammarMatcher matcher(grammar, vocabulary.index);
  std::string text;
  for (int i = 0; i < most; ++i) {
    std::vector<TokenId> ids = masked(matcher, vocabulary);
    if (below(random, static_cast<std::size_t>(i) + 8) >= 6) {
      const std::string_view closers = below(random, 2) == 0 ? "\"" : "\"]}";
      std::vector<TokenId> closing;
      for (const TokenId id : ids) {
        const std::string bytes = vocabulary.tokenizer.token_bytes(id);
        const bool closes = bytes.size() == 1 && closers.find(bytes[0]) != closers.npos;
        if (closes || vocabulary.tokenizer.is_end(id)) closing.push_back(id);
      }
      if (!closing.empty()) ids = std::move(closing);
    }
    const TokenId id = ids[below(random, ids.size())];
    matcher.accept(id);
    if (vocabulary.tokenizer.is_end(id)) return text;
    text += vocabulary.tokenizer.token_bytes(id);
  }
  ADD_FAILURE() << "no end after " << most << " tokens: " << text;
  return text;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

}  // namespace heddle::test

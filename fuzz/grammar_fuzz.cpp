// Any text is a grammar, or a schema, or is refused with an Error; and what is a grammar can be
// read by. The input's first byte says which of the two the rest is.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target grammar_fuzz
//   build/fuzz/fuzz/grammar_fuzz -max_total_time=600 -max_len=4096 CORPUS_DIR
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "heddle/error.h"
#include "heddle/gguf.h"
#include "heddle/grammar.h"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "grammar_fuzz: %s\n", what);
  std::abort();
}

/// A token for each ASCII character, some longer ones, and an end.
std::shared_ptr<const heddle::VocabularyIndex> vocabulary() {
  std::vector<std::string> texts{"<unk>", "<s>", "</s>"};
  for (int b = 0; b < 256; ++b) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", b);
    texts.push_back(text);
  }
  for (const char* more : {"\":", "{\"", "\", \"", "true", "ab", "00", "],["})
    texts.push_back(more);
  std::vector<std::int32_t> types(texts.size(), 1);
  types[0] = 2;
  types[1] = types[2] = 3;
  for (std::size_t i = 3; i < 259; ++i) types[i] = 6;
  heddle::gguf::Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("llama"));
  metadata.set("tokenizer.ggml.tokens", heddle::gguf::Array(texts));
  metadata.set("tokenizer.ggml.token_type", heddle::gguf::Array(types));
  metadata.set("tokenizer.ggml.scores", heddle::gguf::Array(std::vector<float>(texts.size())));
  return std::make_shared<heddle::VocabularyIndex>(heddle::Tokenizer(metadata));
}

/// Goes on with the token at `choice` of those that are allowed. False at the end.
bool step(heddle::GrammarMatcher& matcher, std::size_t tokens, std::size_t choice) {
  std::vector<float> logits(tokens);
  matcher.mask(logits);
  std::vector<heddle::TokenId> allowed;
  for (std::size_t i = 0; i < tokens; ++i) {
    const auto id = static_cast<heddle::TokenId>(i);
    require(matcher.allows(id) == (logits[i] == 0), "a mask is not what its tokens are");
    if (logits[i] == 0) allowed.push_back(id);
  }
  require(!allowed.empty(), "a mask lets nothing through");
  matcher.accept(allowed[choice % allowed.size()]);
  return !matcher.must_end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto index = vocabulary();
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    const auto grammar = data[0] % 2 == 0 ? heddle::Grammar::from_gbnf(text)
                                          : heddle::Grammar::from_json_schema(text);
    heddle::GrammarMatcher matcher(grammar, index);
    for (std::size_t i = 0; i < 20 && step(matcher, index->size(), data[i % size]); ++i) {
    }
  } catch (const heddle::Error& error) {
    require(error.code() == heddle::ErrorCode::invalid_argument ||
                error.code() == heddle::ErrorCode::unsupported,
            "refused with another error");
  }
  return 0;
}

#include "llm/synthetic_vocabulary.h"

#include <string>
#include <vector>

#include "base/check.h"
#include "heddle/tokenizer.h"
#include "text/byte_level.h"

namespace heddle::llm {

namespace {

constexpr std::int64_t kLeast = 512, kMost = 400'000;
constexpr std::string_view kLetters = "etaoinshrdlcumwfgypbvkjxqz";  // as often as in English

struct Family {
  const char* pretokenizer;
  std::int64_t special;                 // tokens at the end, padding among them
  std::vector<std::string_view> names;  // of the first of those
  std::int64_t bos, eos, padding;       // counted from the first special token
  bool add_bos;
  std::string_view chat_template;
};

// https://huggingface.co/Qwen/Qwen2.5-0.5B-Instruct/blob/main/tokenizer_config.json: 151,643 tokens
// come before its special ones, and the embedding has 151,936 rows.
const Family kQwen2{
    "qwen2",
    151'936 - 151'643,
    {"<|endoftext|>", "<|im_start|>", "<|im_end|>"},
    0,
    2,
    0,
    false,
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}"};

// https://huggingface.co/meta-llama/Llama-3.2-1B-Instruct/blob/main/tokenizer_config.json: 128,000
// tokens come before its 256 special ones.
const Family kLlama3{
    "llama-bpe",
    256,
    {"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
     "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>", "<|reserved_special_token_2|>",
     "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>"},
    0,
    9,
    4,
    true,
    "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\\n\\n' + message['content'] + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
    "{% endif %}"};

/// Tokens and merges, until there are enough.
class Builder {
 public:
  explicit Builder(std::size_t ordinary) : ordinary_(ordinary) {}

  void build() {
    for (int byte = 0; byte < 256; ++byte) {
      tokens_.push_back(text::byte_character(static_cast<std::uint8_t>(byte)));
    }
    const std::string space = text::byte_character(' ');
    for (const char a : kLetters) merge(space, {a});
    std::vector<std::string> pairs;
    for (const char a : kLetters) {
      for (const char b : kLetters) pairs.push_back(merge({a}, {b}));
    }
    for (const std::string& pair : pairs) merge(space, pair);
    std::vector<std::string> triples;
    for (const std::string& pair : pairs) {
      for (const char c : kLetters) triples.push_back(merge(pair, {c}));
    }
    for (const std::string& triple : triples) merge(space, triple);
    for (const std::string& start : pairs) {
      for (const std::string& end : pairs) merge(start, end);
    }
  }

  std::vector<std::string> take_tokens() { return std::move(tokens_); }
  std::vector<std::string> take_merges() { return std::move(merges_); }

 private:
  std::string merge(const std::string& left, const std::string& right) {
    if (tokens_.size() < ordinary_) {
      tokens_.push_back(left + right);
      merges_.push_back(left + " " + right);
    }
    return left + right;
  }

  std::size_t ordinary_;
  std::vector<std::string> tokens_, merges_;
};

}  // namespace

void set_vocabulary(gguf::Metadata& metadata, VocabularyFamily name, std::int64_t size) {
  require(kLeast <= size && size <= kMost, ErrorCode::invalid_argument,
          "a synthetic vocabulary has from {} to {} tokens, not {}", kLeast, kMost, size);
  const Family& family = name == VocabularyFamily::qwen2 ? kQwen2 : kLlama3;
  const auto named = static_cast<std::int64_t>(family.names.size());
  const bool is_small = size < 100 * family.special;  // has only the special tokens with names
  const std::int64_t first = size - (is_small ? named : family.special);
  Builder builder(static_cast<std::size_t>(first));
  builder.build();
  std::vector<std::string> tokens = builder.take_tokens();
  std::vector<std::int32_t> types(tokens.size(), static_cast<std::int32_t>(TokenType::normal));
  for (std::int64_t id = first; id < size; ++id) {
    const std::int64_t i = id - first;
    const bool has_name = i < named;
    tokens.push_back(has_name ? std::string(family.names[static_cast<std::size_t>(i)])
                              : fmt::format("[PAD{}]", id));
    types.push_back(static_cast<std::int32_t>(has_name ? TokenType::control : TokenType::unused));
  }
  metadata.set("tokenizer.ggml.model", "gpt2");
  metadata.set("tokenizer.ggml.pre", family.pretokenizer);
  metadata.set("tokenizer.ggml.tokens", gguf::Array(std::move(tokens)));
  metadata.set("tokenizer.ggml.token_type", gguf::Array(std::move(types)));
  metadata.set("tokenizer.ggml.merges", gguf::Array(builder.take_merges()));
  const auto set_id = [&](const char* key, std::int64_t id) {
    metadata.set(key, static_cast<std::uint32_t>(first + id));
  };
  set_id("tokenizer.ggml.bos_token_id", family.bos);
  set_id("tokenizer.ggml.eos_token_id", family.eos);
  set_id("tokenizer.ggml.padding_token_id", family.padding);
  metadata.set("tokenizer.ggml.add_bos_token", family.add_bos);
  metadata.set("tokenizer.chat_template", std::string(family.chat_template));
}

}  // namespace heddle::llm

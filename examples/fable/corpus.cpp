#include "corpus.h"

namespace fable {
namespace {

using namespace heddle;

constexpr const char* kChatTemplate =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

std::string conversation_text(const Fable& fable) {
  return request_text(fable) + fable.story + kTurnEnd + "\n";
}

BpeVocabulary train_vocabulary(std::uint64_t seed, int texts, int n_vocab) {
  std::vector<std::string> written;
  for (int i = 0; i < texts; ++i) {
    Random random = Random::of(seed, static_cast<std::uint64_t>(Purpose::vocabulary),
                               static_cast<std::uint64_t>(i));
    const Fable fable = write_fable(random);
    written.push_back(fable.request.empty() ? fable.story : conversation_text(fable));
  }
  return train_bpe(written, {.vocab_size = static_cast<std::size_t>(n_vocab),
                             .special_tokens = {kEndOfText, kTurnBegin, kTurnEnd}});
}

gguf::Metadata metadata_of(const BpeVocabulary& vocabulary) {
  gguf::Metadata metadata("the trained vocabulary");
  set_vocabulary(metadata, vocabulary);
  const auto count = static_cast<std::uint32_t>(vocabulary.tokens.size());
  metadata.set("tokenizer.ggml.bos_token_id", count - 3);
  metadata.set("tokenizer.ggml.eos_token_id", count - 1);
  metadata.set("tokenizer.ggml.padding_token_id", count - 3);
  metadata.set("tokenizer.ggml.add_bos_token", false);
  metadata.set("tokenizer.chat_template", std::string(kChatTemplate));
  return metadata;
}

}  // namespace

std::string request_text(const Fable& fable) {
  return std::string(kTurnBegin) + "user\n" + fable.request + kTurnEnd + "\n" + kTurnBegin +
         "assistant\n";
}

Corpus::Corpus(std::uint64_t seed, int texts, int n_vocab)
    : seed_(seed),
      vocabulary_(train_vocabulary(seed, texts, n_vocab)),
      metadata_(metadata_of(vocabulary_)),
      tokenizer_(metadata_) {}

Array Corpus::rows(Purpose purpose, std::int64_t first_row, int rows, int length) const {
  std::vector<TokenId> ids;
  for (int row = 0; row < rows; ++row) {
    append_row(Random::of(seed_, static_cast<std::uint64_t>(purpose),
                          static_cast<std::uint64_t>(first_row + row)),
               static_cast<std::size_t>(length), ids);
  }
  return Array(ids, {rows, length});
}

void Corpus::append_row(Random random, std::size_t length, std::vector<TokenId>& ids) const {
  const std::size_t end = ids.size() + length;
  const bool is_conversation = random.below(2) == 1;
  // What is told unasked may begin a text, or come after another.
  const bool follows = !is_conversation && random.below(2) == 1;
  if (follows)
    ids.push_back(tokenizer_.encode(kEndOfText, {.add_special = false, .parse_special = true})[0]);
  while (ids.size() < end) {
    const std::string text = is_conversation ? conversation_text(write_fable_on_request(random))
                                             : write_fable_unasked(random).story + kEndOfText;
    const auto more = tokenizer_.encode(text, {.add_special = false, .parse_special = true});
    ids.insert(ids.end(), more.begin(), more.end());
  }
  ids.resize(end);
}

}  // namespace fable

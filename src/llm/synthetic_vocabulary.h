// Vocabularies that nobody trained, with as many tokens as a real one and its special tokens.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/gguf.h"

namespace heddle::llm {

enum class VocabularyFamily : std::uint8_t { qwen2, llama3 };

/// Sets the tokenizer.* keys of a byte-level vocabulary of `size` tokens, and a chat template: all
/// bytes, letters merged into pairs, triples and fours, and the family's special tokens last, at
/// their own ids where `size` is the family's. Any text can be encoded. Throws invalid_argument for
/// less than 512 tokens or more than 400,000.
void set_vocabulary(gguf::Metadata& metadata, VocabularyFamily family, std::int64_t size);

}  // namespace heddle::llm

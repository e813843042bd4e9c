// SentencePiece's BPE: neighbours merge into the token with the best score.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"
#include "text/merge.h"
#include "text/model.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace heddle::text {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581 stands for a space

/// The byte that "<0xNN>" means; -1 for other texts.
int byte_of(std::string_view text) noexcept {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int byte = -1;
  const auto parsed = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  return parsed.ptr == text.data() + 5 ? byte : -1;
}

void append_with_marks(std::string& marked, std::string_view text) {
  for (const char c : text) {
    if (c == ' ') {
      marked += kSpaceMark;
    } else {
      marked += c;
    }
  }
}

/// How far the marks at the beginning and what follows them go, up to the next mark.
std::size_t word_length(std::string_view text) noexcept {
  std::size_t i = 0;
  while (text.substr(i).starts_with(kSpaceMark)) i += kSpaceMark.size();
  return std::min(text.find(kSpaceMark, i), text.size());
}

class SentencePiece final : public Model {
 public:
  explicit SentencePiece(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    byte_ids_.fill(kNoToken);
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const int byte = byte_of(vocabulary.texts[i]);
      require(byte >= 0 || vocabulary.types[i] != TokenType::byte, ErrorCode::io,
              "tokenizer.ggml.tokens: token {} has the type of a byte but reads \"{}\", not <0xNN>",
              i, vocabulary.texts[i]);
      if (byte >= 0) byte_ids_[static_cast<std::size_t>(byte)] = static_cast<TokenId>(i);
      if (!vocabulary.is_ordinary(static_cast<TokenId>(i))) continue;
      max_length_ = std::max(max_length_, vocabulary.texts[i].size());
      if (word_length(vocabulary.texts[i]) < vocabulary.texts[i].size())
        words_are_separate_ = false;
    }
  }

  void encode(std::string_view text, bool after_special, std::vector<TokenId>& ids) const override {
    std::string marked;
    marked.reserve(text.size() + text.size() / 2);
    if (vocabulary_.add_space_prefix && after_special) marked += kSpaceMark;
    append_with_marks(marked, text);
    Merger merger;
    for (std::string_view rest = marked; !rest.empty();) {
      const std::size_t length = words_are_separate_ ? word_length(rest) : rest.size();
      encode_word(rest.substr(0, length), merger, ids);
      rest.remove_prefix(length);
    }
  }

  std::string bytes(TokenId id) const override {
    const std::string_view text = vocabulary_.text(id);
    if (vocabulary_.type(id) == TokenType::byte) return {static_cast<char>(byte_of(text))};
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
      const bool mark = text.substr(i).starts_with(kSpaceMark);
      result += mark ? ' ' : text[i];
      i += mark ? kSpaceMark.size() : 1;
    }
    return result;
  }

 private:
  void encode_word(std::string_view word, Merger& merger, std::vector<TokenId>& ids) const {
    merger.clear();
    for (std::size_t i = 0; i < word.size();) {
      const std::uint32_t length = utf8_unit(word, i).length;
      merger.add_symbol(ordinary(word.substr(i, length)), static_cast<std::uint32_t>(i), length);
      i += length;
    }
    merger.run([&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
      const TokenId id = ordinary(word.substr(left.begin, left.length + right.length));
      if (id == kNoToken) return std::nullopt;
      return Merge{-static_cast<double>(vocabulary_.scores[static_cast<std::size_t>(id)]), id};
    });
    merger.for_each([&](const Symbol& symbol) {
      append_symbol(word.substr(symbol.begin, symbol.length), symbol.id, ids);
    });
  }

  TokenId ordinary(std::string_view text) const noexcept {
    if (text.size() > max_length_) return kNoToken;  // hashing what cannot match is not free
    const auto id = vocabulary_.find(text);
    return id && vocabulary_.is_ordinary(*id) ? *id : kNoToken;
  }

  /// A symbol without a token becomes its bytes, or else the unknown token, or else nothing.
  void append_symbol(std::string_view text, TokenId id, std::vector<TokenId>& ids) const {
    if (id != kNoToken) return ids.push_back(id);
    const std::size_t size = ids.size();
    for (const char c : text) {
      const TokenId byte_id = byte_ids_[static_cast<std::uint8_t>(c)];
      if (byte_id == kNoToken) {
        ids.resize(size);
        if (vocabulary_.unknown) ids.push_back(*vocabulary_.unknown);
        return;
      }
      ids.push_back(byte_id);
    }
  }

  const Vocabulary& vocabulary_;
  std::array<TokenId, 256> byte_ids_;
  std::size_t max_length_ = 0;
  /// No token reaches from one word into the next, so that words merge each for themselves: the
  /// same result from queues that stay short.
  bool words_are_separate_ = true;
};

}  // namespace

std::unique_ptr<Model> make_sentencepiece(const Vocabulary& vocabulary) {
  return std::make_unique<SentencePiece>(vocabulary);
}

}  // namespace heddle::text

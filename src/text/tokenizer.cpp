#include "heddle/tokenizer.h"

#include <algorithm>

#include "base/check.h"
#include "heddle/chat_template.h"
#include "heddle/gguf.h"
#include "text/merge.h"
#include "text/model.h"
#include "text/special_tokens.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace heddle {
namespace {

/// Symbols count bytes in 32 bits, and SentencePiece writes three for a space.
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

std::unique_ptr<text::Model> make_model(const text::Vocabulary& v, const gguf::Metadata& metadata) {
  return v.kind == text::VocabularyKind::sentencepiece ? text::make_sentencepiece(v)
                                                       : text::make_byte_level(v, metadata);
}

}  // namespace

struct Tokenizer::Impl {
  text::Vocabulary vocabulary;
  text::SpecialTokens user_defined, all_special;
  std::unique_ptr<text::Model> model;

  explicit Impl(const gguf::Metadata& metadata)
      : vocabulary(text::read_vocabulary(metadata)),
        user_defined(vocabulary, false),
        all_special(vocabulary, true),
        model(make_model(vocabulary, metadata)) {}

  void check(TokenId id) const {
    require(id >= 0 && static_cast<std::size_t>(id) < vocabulary.size(),
            ErrorCode::invalid_argument, "token {} is not one of the vocabulary's {}", id,
            vocabulary.size());
  }

  std::vector<TokenId> encode(std::string_view text, const text::SpecialTokens& special,
                              std::span<const text::ByteRange> data, bool add_special) const {
    require(text.size() < kMaxTextBytes, ErrorCode::invalid_argument,
            "text of {} bytes is too long to encode at once; the limit is {}", text.size(),
            kMaxTextBytes - 1);
    std::vector<TokenId> ids;
    if (add_special && vocabulary.add_bos) ids.push_back(*vocabulary.bos);
    bool after_special = true;
    for (const text::Fragment& fragment : special.cut(text, data)) {
      if (fragment.id != text::kNoToken) {
        ids.push_back(fragment.id);
      } else if (fragment.begin < fragment.end) {
        model->encode(text.substr(fragment.begin, fragment.end - fragment.begin), after_special,
                      ids);
      }
      after_special = fragment.id != text::kNoToken;
    }
    if (add_special && vocabulary.add_eos) ids.push_back(*vocabulary.eos);
    return ids;
  }
};

Tokenizer::Tokenizer(const gguf::Metadata& metadata) : impl_(std::make_unique<Impl>(metadata)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const text::SpecialTokens& special =
      options.parse_special ? impl_->all_special : impl_->user_defined;
  return impl_->encode(text, special, {}, options.add_special);
}

std::vector<TokenId> Tokenizer::encode_pieces(std::span<const TextPiece> pieces,
                                              bool add_special) const {
  std::string text;
  std::vector<text::ByteRange> data;
  for (const TextPiece& piece : pieces) {
    if (!piece.from_template) data.push_back({text.size(), text.size() + piece.text.size()});
    text += piece.text;
  }
  return impl_->encode(text, impl_->all_special, data, add_special);
}

std::string Tokenizer::token_bytes(TokenId id, bool show_special) const {
  switch (type(id)) {
    case TokenType::unknown:
    case TokenType::control:
      return show_special ? std::string(impl_->vocabulary.text(id)) : std::string();
    case TokenType::user_defined:
      return std::string(impl_->vocabulary.text(id));
    default:
      return impl_->model->bytes(id);
  }
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool show_special) const {
  Detokenizer detokenizer(*this, show_special);
  std::string text;
  for (const TokenId id : ids) text += detokenizer.add(id);
  return text += detokenizer.finish();
}

std::size_t Tokenizer::size() const noexcept {
  return impl_->vocabulary.size();
}

std::string_view Tokenizer::token_text(TokenId id) const {
  impl_->check(id);
  return impl_->vocabulary.text(id);
}

TokenType Tokenizer::type(TokenId id) const {
  impl_->check(id);
  return impl_->vocabulary.type(id);
}

std::optional<TokenId> Tokenizer::find(std::string_view token_text) const noexcept {
  return impl_->vocabulary.find(token_text);
}

std::optional<TokenId> Tokenizer::bos() const noexcept {
  return impl_->vocabulary.bos;
}
std::optional<TokenId> Tokenizer::eos() const noexcept {
  return impl_->vocabulary.eos;
}

bool Tokenizer::is_end(TokenId id) const noexcept {
  const std::vector<TokenId>& ends = impl_->vocabulary.ends;
  return std::binary_search(ends.begin(), ends.end(), id);
}

bool Tokenizer::drops_first_space() const noexcept {
  return impl_->vocabulary.add_space_prefix;
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool show_special)
    : tokenizer_(&tokenizer), show_special_(show_special) {}

std::string Detokenizer::add(TokenId id) {
  std::string bytes = tokenizer_->token_bytes(id, show_special_);
  const text::Vocabulary& v = tokenizer_->impl_->vocabulary;
  const bool adds_text = !bytes.empty() && v.type(id) != TokenType::control;
  if (at_start_ && adds_text) {
    at_start_ = false;
    if (tokenizer_->drops_first_space() && bytes.front() == ' ') bytes.erase(0, 1);
  }
  pending_ += bytes;
  std::string text;
  std::size_t i = 0;
  while (i < pending_.size()) {
    const text::Utf8Unit unit = text::utf8_unit(pending_, i);
    if (unit.status == text::Utf8Status::incomplete) break;
    const bool valid = unit.status == text::Utf8Status::valid;
    text += valid ? std::string_view(pending_).substr(i, unit.length) : text::kReplacementCharacter;
    i += unit.length;
  }
  pending_.erase(0, i);
  return text;
}

std::string Detokenizer::finish() {
  const bool unfinished = !pending_.empty();
  pending_.clear();
  return std::string(unfinished ? text::kReplacementCharacter : "");
}

}  // namespace heddle

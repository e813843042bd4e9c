// GPT-2's byte-level BPE: words, whose bytes merge in the order of the list of merges.
#include "text/byte_level.h"

#include <array>
#include <bit>
#include <span>

#include "base/check.h"
#include "heddle/gguf.h"
#include "text/merge.h"
#include "text/model.h"
#include "text/pretokenizer.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace heddle::text {
namespace {

constexpr const char* kMerges = "tokenizer.ggml.merges";

/// GPT-2 writes each byte of a token's text as a printable character: itself where that is one,
/// else the next of U+0100, U+0101, ... (https://github.com/openai/gpt-2, bytes_to_unicode).
constexpr std::array<char16_t, 256> byte_characters() {
  std::array<char16_t, 256> characters{};
  char16_t next = 0x100;
  for (unsigned b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    characters[b] = printable ? static_cast<char16_t>(b) : next++;
  }
  return characters;
}
constexpr std::array<char16_t, 256> kByteCharacters = byte_characters();
constexpr std::size_t kCharacterCount = 0x144;  // one past the last of them

constexpr std::array<std::int16_t, kCharacterCount> character_bytes() {
  std::array<std::int16_t, kCharacterCount> bytes{};
  bytes.fill(-1);
  for (std::size_t b = 0; b < 256; ++b) bytes[kByteCharacters[b]] = static_cast<std::int16_t>(b);
  return bytes;
}
constexpr std::array<std::int16_t, kCharacterCount> kCharacterBytes = character_bytes();

std::string in_byte_characters(std::string_view text) {
  std::string result;
  result.reserve(text.size() + text.size() / 2);
  for (const char c : text) append_utf8(result, kByteCharacters[static_cast<std::uint8_t>(c)]);
  return result;
}

/// What a pair of tokens merges into, and when. Open addressing, at most three quarters full.
class MergeTable {
 public:
  explicit MergeTable(std::size_t count)
      : slots_(std::bit_ceil(count + count / 3 + 1), Slot{kEmpty, 0, kNoToken}) {}

  /// The first of two equal pairs stays.
  void insert(TokenId left, TokenId right, std::uint32_t rank, TokenId id) noexcept {
    Slot& slot = slots_[locate(key_of(left, right))];
    if (slot.key == kEmpty) slot = {key_of(left, right), rank, id};
  }

  std::optional<Merge> find(TokenId left, TokenId right) const noexcept {
    if (left == kNoToken || right == kNoToken) return std::nullopt;
    const Slot& slot = slots_[locate(key_of(left, right))];
    if (slot.key == kEmpty) return std::nullopt;
    return Merge{static_cast<double>(slot.rank), slot.id};
  }

 private:
  struct Slot {
    std::uint64_t key;
    std::uint32_t rank;
    TokenId id;
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  static std::uint64_t key_of(TokenId left, TokenId right) noexcept {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }

  std::size_t locate(std::uint64_t key) const noexcept {
    std::uint64_t hash = (key ^ key >> 31) * 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
    hash ^= hash >> 29;
    std::size_t i = hash & (slots_.size() - 1);
    while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return i;
  }

  std::vector<Slot> slots_;
};

MergeTable read_merges(const Vocabulary& vocabulary, const gguf::Metadata& metadata) {
  const auto& merges = metadata.get_array<std::string>(kMerges);
  MergeTable table(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::string_view line = merges[i];
    // From the second character on: a token may be a space itself.
    const std::size_t space = line.find(' ', 1);
    require(space != std::string_view::npos, ErrorCode::io,
            "{}: entry {}, \"{}\", is not two tokens", kMerges, i, line);
    const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
    const std::string whole = std::string(left) + std::string(right);
    std::array<TokenId, 3> ids{};
    const std::array<std::string_view, 3> texts = {left, right, whole};
    for (std::size_t part = 0; part < 3; ++part) {
      const auto id = vocabulary.find(texts[part]);
      require(id.has_value(), ErrorCode::io,
              "{}: entry {}, \"{}\", needs \"{}\", which is not a token", kMerges, i, line,
              texts[part]);
      ids[part] = *id;
    }
    if (!vocabulary.is_ordinary(ids[2])) continue;
    table.insert(ids[0], ids[1], static_cast<std::uint32_t>(i), ids[2]);
  }
  return table;
}

class ByteLevel final : public Model {
 public:
  ByteLevel(const Vocabulary& vocabulary, const gguf::Metadata& metadata)
      : vocabulary_(vocabulary),
        rules_(pretokenizer_rules(metadata)),
        pretokenizer_(rules_),
        merges_(read_merges(vocabulary, metadata)) {
    for (std::size_t b = 0; b < 256; ++b) {
      const auto id = vocabulary.find(byte_character(static_cast<std::uint8_t>(b)));
      byte_ids_[b] = id && vocabulary.is_ordinary(*id) ? *id : kNoToken;
    }
  }

  void encode(std::string_view text, bool, std::vector<TokenId>& ids) const override {
    Merger merger;
    for (const std::string_view word : pretokenizer_.split(text)) {
      if (rules_.whole_words && append_whole(word, ids)) continue;
      merger.clear();
      for (std::size_t i = 0; i < word.size(); ++i) {
        const TokenId id = byte_ids_[static_cast<std::uint8_t>(word[i])];
        merger.add_symbol(id, static_cast<std::uint32_t>(i), 1);
      }
      merger.run([&](const Symbol& a, const Symbol& b) { return merges_.find(a.id, b.id); });
      merger.for_each([&](const Symbol& symbol) {
        const TokenId id =
            symbol.id != kNoToken ? symbol.id : vocabulary_.unknown.value_or(kNoToken);
        if (id != kNoToken) ids.push_back(id);
      });
    }
  }

  /// A character that stands for no byte is given as it is.
  std::string bytes(TokenId id) const override {
    const std::string_view text = vocabulary_.text(id);
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
      const Utf8Unit unit = utf8_unit(text, i);
      const bool known = unit.status == Utf8Status::valid && unit.code_point < kCharacterCount &&
                         kCharacterBytes[unit.code_point] >= 0;
      if (known) {
        result += static_cast<char>(kCharacterBytes[unit.code_point]);
      } else {
        result.append(text.substr(i, unit.length));
      }
      i += unit.length;
    }
    return result;
  }

 private:
  bool append_whole(std::string_view word, std::vector<TokenId>& ids) const {
    const auto id = vocabulary_.find(in_byte_characters(word));
    if (!id || !vocabulary_.is_ordinary(*id)) return false;
    ids.push_back(*id);
    return true;
  }

  const Vocabulary& vocabulary_;
  const PretokenizerRules& rules_;
  Pretokenizer pretokenizer_;
  MergeTable merges_;
  std::array<TokenId, 256> byte_ids_;
};

}  // namespace

std::string byte_character(std::uint8_t byte) {
  std::string text;
  append_utf8(text, kByteCharacters[byte]);
  return text;
}

std::unique_ptr<Model> make_byte_level(const Vocabulary& vocabulary,
                                       const gguf::Metadata& metadata) {
  return std::make_unique<ByteLevel>(vocabulary, metadata);
}

}  // namespace heddle::text

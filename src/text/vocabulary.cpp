#include "text/vocabulary.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "heddle/gguf.h"
#include "text/pretokenizer.h"

namespace heddle::text {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kTypes = "tokenizer.ggml.token_type";
constexpr const char* kScores = "tokenizer.ggml.scores";

/// Tokens that end an answer, by what they are called: files name only some of them by id, and many
/// give some of them the wrong type. The list is the one users of GGUF files know from llama.cpp.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<EOT>",
    "<|return|>",
    "<|call|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<end_of_utterance>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",  // DeepSeek
};

VocabularyKind read_kind(const gguf::Metadata& metadata) {
  const std::string_view model = metadata.get_string("tokenizer.ggml.model");
  if (model == "llama") return VocabularyKind::sentencepiece;
  if (model == "gpt2") return VocabularyKind::byte_level;
  fail(ErrorCode::unsupported,
       "tokenizer.ggml.model: \"{}\" is not supported; \"llama\" (SentencePiece) and \"gpt2\" "
       "(byte-level BPE) are",
       model);
}

void read_texts(const gguf::Metadata& metadata, Vocabulary& v) {
  const auto& texts = metadata.get_array<std::string>(kTokens);
  require(!texts.empty(), ErrorCode::io, "{}: the array is empty", kTokens);
  require(texts.size() <= static_cast<std::size_t>(std::numeric_limits<TokenId>::max()),
          ErrorCode::io, "{}: {} tokens are more than ids can count", kTokens, texts.size());
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  require(bytes <= std::numeric_limits<std::uint32_t>::max(), ErrorCode::io,
          "{}: the tokens' texts take {} bytes; at most 4 GiB are supported", kTokens, bytes);
  v.texts.reserve(texts.size(), bytes);
  for (const std::string& text : texts) v.texts.push_back(text);
  v.by_text = TextIndex(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) continue;
    const auto other = v.by_text.add(static_cast<TokenId>(i), v.texts);
    require(!other, ErrorCode::io, "{}: tokens {} and {} are both \"{}\"", kTokens,
            other.value_or(kNoToken), i, texts[i]);
  }
}

void read_types(const gguf::Metadata& metadata, Vocabulary& v) {
  v.types.assign(v.size(), TokenType::normal);
  const auto* types = metadata.find_array<std::int32_t>(kTypes);
  if (types == nullptr) return;
  require(types->size() == v.size(), ErrorCode::io, "{}: {} types for {} tokens", kTypes,
          types->size(), v.size());
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::int32_t type = (*types)[i];
    require(type >= 0 && type <= static_cast<int>(TokenType::byte), ErrorCode::io,
            "{}: token {} has type {}; types are 1 to 6, or 0 for none", kTypes, i, type);
    if (type != 0) v.types[i] = static_cast<TokenType>(type);
  }
}

void read_scores(const gguf::Metadata& metadata, Vocabulary& v) {
  v.scores = metadata.get_array<float>(kScores);
  require(v.scores.size() == v.size(), ErrorCode::io, "{}: {} scores for {} tokens", kScores,
          v.scores.size(), v.size());
  const auto nan =
      std::find_if(v.scores.begin(), v.scores.end(), [](float s) { return std::isnan(s); });
  require(nan == v.scores.end(), ErrorCode::io, "{}: the score of token {} is not a number",
          kScores, nan - v.scores.begin());
}

std::optional<TokenId> read_id(const gguf::Metadata& metadata, const Vocabulary& v,
                               const char* name) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  const std::optional<std::int64_t> id = metadata.find_int(key);
  if (!id) return std::nullopt;
  require(*id >= 0 && static_cast<std::uint64_t>(*id) < v.size(), ErrorCode::io,
          "{}: {} is not one of the {} tokens", key, *id, v.size());
  return static_cast<TokenId>(*id);
}

/// SentencePiece files may leave out the three ids that its trainer always gives.
struct TrainerToken {
  TokenId id;
  TokenType type;
  std::string_view text;
};
constexpr TrainerToken kUnknown = {0, TokenType::unknown, "<unk>"};
constexpr TrainerToken kBegin = {1, TokenType::control, "<s>"};
constexpr TrainerToken kEnd = {2, TokenType::control, "</s>"};

std::optional<TokenId> or_default(std::optional<TokenId> id, Vocabulary& v,
                                  const TrainerToken& token) {
  const auto at = static_cast<std::size_t>(token.id);
  if (id || v.kind != VocabularyKind::sentencepiece || at >= v.size()) return id;
  if (v.types[at] != token.type && v.texts[at] != token.text) return id;
  v.types[at] = token.type;
  return token.id;
}

void read_roles(const gguf::Metadata& metadata, Vocabulary& v) {
  v.unknown = or_default(read_id(metadata, v, "unknown"), v, kUnknown);
  v.bos = or_default(read_id(metadata, v, "bos"), v, kBegin);
  v.eos = or_default(read_id(metadata, v, "eos"), v, kEnd);
  // "seperator" is how the format spells it.
  for (const char* unused :
       {"padding", "seperator", "mask", "cls", "fim_pre", "fim_suf", "fim_mid"}) {
    read_id(metadata, v, unused);
  }
  if (v.eos) v.ends.push_back(*v.eos);
  for (const char* end : {"eot", "eom", "fim_pad", "fim_rep", "fim_sep"}) {
    if (const auto id = read_id(metadata, v, end)) v.ends.push_back(*id);
  }
  for (const std::string_view text : kEndTexts) {
    if (const auto id = v.find(text)) {
      v.ends.push_back(*id);
      v.types[static_cast<std::size_t>(*id)] = TokenType::control;
    }
  }
  std::sort(v.ends.begin(), v.ends.end());
  v.ends.erase(std::unique(v.ends.begin(), v.ends.end()), v.ends.end());
}

bool read_add(const gguf::Metadata& metadata, const char* key, bool fallback,
              std::optional<TokenId> id, const char* role) {
  const std::optional<bool> asked = metadata.find_bool(key);
  require(!asked.value_or(false) || id, ErrorCode::io,
          "{}: is true, but the file names no {} token", key, role);
  return asked.value_or(fallback) && id;
}

bool is_phi3(const gguf::Metadata& metadata) {
  std::string name(metadata.find_string("general.name").value_or(""));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

}  // namespace

std::optional<TokenId> Vocabulary::find(std::string_view text) const noexcept {
  return text.empty() ? std::nullopt : by_text.find(text, texts);
}

Vocabulary read_vocabulary(const gguf::Metadata& metadata) {
  Vocabulary v{};
  v.kind = read_kind(metadata);
  const bool sentencepiece = v.kind == VocabularyKind::sentencepiece;
  read_texts(metadata, v);
  read_types(metadata, v);
  if (sentencepiece) read_scores(metadata, v);
  read_roles(metadata, v);
  const bool bos_by_default = sentencepiece || pretokenizer_rules(metadata).add_bos;
  v.add_bos =
      read_add(metadata, "tokenizer.ggml.add_bos_token", bos_by_default, v.bos, "beginning");
  v.add_eos = read_add(metadata, "tokenizer.ggml.add_eos_token", false, v.eos, "end");
  v.add_space_prefix =
      sentencepiece && metadata.find_bool("tokenizer.ggml.add_space_prefix").value_or(true);
  v.strip_after_special = is_phi3(metadata);
  return v;
}

}  // namespace heddle::text

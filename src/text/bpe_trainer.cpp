// Merges are found without looking at all words again: each pair of neighbours knows where it
// occurs and how often, and a heap, whose entries may be out of date, the most frequent.
#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "heddle/gguf.h"
#include "heddle/tokenizer.h"
#include "heddle/tokenizer_trainer.h"
#include "text/byte_level.h"
#include "text/pretokenizer.h"

namespace heddle {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

using WordCounts = std::unordered_map<std::string_view, std::uint64_t>;

class SpecialCutter {
 public:
  explicit SpecialCutter(const std::vector<std::string>& specials)
      : specials_(specials.begin(), specials.end()) {
    std::sort(specials_.begin(), specials_.end(),
              [](auto a, auto b) { return a.size() > b.size(); });
    for (const std::string_view special : specials_) begins_.push_back(special.front());
  }

  /// Calls visit(piece) for what lies between special tokens.
  template <class Visit>
  void cut(std::string_view text, const Visit& visit) const {
    std::size_t done = 0;
    for (std::size_t at = text.find_first_of(begins_); at < text.size();) {
      const std::size_t length = special_at(text, at);
      if (length > 0) {
        visit(text.substr(done, at - done));
        done = at + length;
      }
      at = text.find_first_of(begins_, at + std::max<std::size_t>(length, 1));
    }
    visit(text.substr(done));
  }

 private:
  std::size_t special_at(std::string_view text, std::size_t at) const {
    for (const std::string_view special : specials_) {
      if (text.substr(at, special.size()) == special) return special.size();
    }
    return 0;
  }

  std::vector<std::string_view> specials_;
  std::string begins_;
};

WordCounts count_words(std::span<const std::string> texts, const BpeOptions& options) {
  const text::Pretokenizer pretokenizer(text::pretokenizer_rules(options.pre));
  const SpecialCutter cutter(options.special_tokens);
  WordCounts words;
  for (const std::string& text : texts) {
    cutter.cut(text, [&](std::string_view piece) {
      for (const std::string_view word : pretokenizer.split(piece)) ++words[word];
    });
  }
  return words;
}

struct Pair {
  TokenId left, right;
  friend auto operator<=>(const Pair&, const Pair&) = default;
};

struct PairHash {
  std::size_t operator()(const Pair& pair) const noexcept {
    const auto key =
        static_cast<std::uint64_t>(pair.left) << 32 | static_cast<std::uint32_t>(pair.right);
    return static_cast<std::size_t>((key ^ key >> 29) * 0x9E3779B97F4A7C15u >> 16);
  }
};

/// A token in a word, in a list of its neighbours. One that was merged into its left neighbour is
/// no token any more.
struct Place {
  TokenId id;
  std::uint32_t previous, next;
  std::uint64_t count;  // of its word
};
constexpr TokenId kMergedAway = -1;

struct Occurrences {
  std::uint64_t count = 0;
  std::vector<std::uint32_t> places;  // of the left one; some may be a pair no longer
};

class Trainer {
 public:
  explicit Trainer(const WordCounts& words) {
    std::size_t bytes = 0;
    for (const auto& [word, count] : words) bytes += word.size();
    require(bytes < kNone, ErrorCode::invalid_argument,
            "train_bpe: the different words of the texts have {} bytes together, 2^32 or more",
            bytes);
    places_.reserve(bytes);
    for (const auto& [word, count] : words) add_word(word, count);
    for (std::uint32_t at = 0; at < places_.size(); ++at) add_pair(at);
    push_touched();
  }

  /// The most frequent pair, if it occurs `min_count` times. The next call gives another one.
  std::optional<Pair> take_best(std::uint64_t min_count) {
    while (!queue_.empty()) {
      const Entry best = queue_.top();
      queue_.pop();
      const auto pair = pairs_.find(best.pair);
      if (pair == pairs_.end() || pair->second.count == 0) continue;
      if (pair->second.count != best.count) {
        queue_.push({pair->second.count, best.pair});
        continue;
      }
      if (best.count < min_count) return std::nullopt;
      return best.pair;
    }
    return std::nullopt;
  }

  /// Writes `whole` wherever `pair` is, from left to right.
  void merge(const Pair& pair, TokenId whole) {
    std::vector<std::uint32_t> places = std::move(pairs_.at(pair).places);
    std::sort(places.begin(), places.end());
    for (const std::uint32_t at : places) {
      const std::uint32_t right = places_[at].next;
      if (places_[at].id != pair.left || right == kNone || places_[right].id != pair.right)
        continue;
      merge_at(at, right, whole);
    }
    pairs_.erase(pair);
    push_touched();
  }

 private:
  struct Entry {
    std::uint64_t count;
    Pair pair;
    friend bool operator<(const Entry& a, const Entry& b) noexcept {
      return a.count != b.count ? a.count < b.count : a.pair > b.pair;
    }
  };

  void add_word(std::string_view word, std::uint64_t count) {
    const auto begin = static_cast<std::uint32_t>(places_.size());
    for (std::size_t i = 0; i < word.size(); ++i) {
      const auto at = begin + static_cast<std::uint32_t>(i);
      places_.push_back({static_cast<std::uint8_t>(word[i]), i == 0 ? kNone : at - 1,
                         i + 1 == word.size() ? kNone : at + 1, count});
    }
  }

  Pair pair_at(std::uint32_t left) const {
    return {places_[left].id, places_[places_[left].next].id};
  }

  void add_pair(std::uint32_t left) {
    if (left == kNone || places_[left].next == kNone) return;
    const Pair pair = pair_at(left);
    Occurrences& occurrences = pairs_[pair];
    occurrences.count += places_[left].count;
    occurrences.places.push_back(left);
    touched_.insert(pair);
  }

  void remove_pair(std::uint32_t left) {
    if (left == kNone || places_[left].next == kNone) return;
    const auto pair = pairs_.find(pair_at(left));
    if (pair != pairs_.end()) pair->second.count -= places_[left].count;
  }

  void merge_at(std::uint32_t at, std::uint32_t right, TokenId whole) {
    const std::uint32_t previous = places_[at].previous, next = places_[right].next;
    remove_pair(previous);
    remove_pair(at);
    remove_pair(right);
    places_[at].id = whole;
    places_[at].next = next;
    places_[right].id = kMergedAway;
    if (next != kNone) places_[next].previous = at;
    add_pair(previous);
    add_pair(at);
  }

  void push_touched() {
    for (const Pair& pair : touched_) {
      if (const auto found = pairs_.find(pair); found != pairs_.end()) {
        queue_.push({found->second.count, pair});
      }
    }
    touched_.clear();
  }

  std::vector<Place> places_;
  std::unordered_map<Pair, Occurrences, PairHash> pairs_;
  std::unordered_set<Pair, PairHash> touched_;  // their counts have grown
  std::priority_queue<Entry> queue_;
};

void check_options(const BpeOptions& options, const std::vector<std::string>& bytes) {
  std::unordered_set<std::string_view> seen(bytes.begin(), bytes.end());
  for (const std::string& special : options.special_tokens) {
    require(!special.empty(), ErrorCode::invalid_argument, "train_bpe: a special token is empty");
    require(seen.insert(special).second, ErrorCode::invalid_argument,
            "train_bpe: the special token \"{}\" is there twice, or is the token of a byte",
            special);
  }
  const std::size_t least = bytes.size() + options.special_tokens.size();
  require(options.vocab_size >= least, ErrorCode::invalid_argument,
          "train_bpe: vocab_size is {}, but 256 bytes and {} special tokens need {}",
          options.vocab_size, options.special_tokens.size(), least);
  require(options.vocab_size <= std::numeric_limits<TokenId>::max(), ErrorCode::invalid_argument,
          "train_bpe: vocab_size is {}, and ids have 31 bits", options.vocab_size);
}

}  // namespace

BpeVocabulary train_bpe(std::span<const std::string> texts, const BpeOptions& options) {
  BpeVocabulary vocabulary{{}, {}, options.special_tokens.size(), options.pre};
  std::vector<std::string>& tokens = vocabulary.tokens;
  for (unsigned byte = 0; byte < 256; ++byte) {
    tokens.push_back(text::byte_character(static_cast<std::uint8_t>(byte)));
  }
  check_options(options, tokens);

  const std::unordered_set<std::string_view> specials(options.special_tokens.begin(),
                                                      options.special_tokens.end());
  std::unordered_map<std::string, TokenId> ids;
  for (std::size_t id = 0; id < tokens.size(); ++id)
    ids.emplace(tokens[id], static_cast<TokenId>(id));

  Trainer trainer(count_words(texts, options));
  while (tokens.size() + specials.size() < options.vocab_size) {
    const auto pair = trainer.take_best(options.min_count);
    if (!pair) break;
    const std::string &left = tokens[static_cast<std::size_t>(pair->left)],
                      &right = tokens[static_cast<std::size_t>(pair->right)];
    const std::string whole = left + right;
    if (specials.contains(whole)) continue;  // two tokens must not have one text
    vocabulary.merges.push_back(left + " " + right);
    // Other merges may have led to the same text before.
    const auto [entry, is_new] = ids.emplace(whole, static_cast<TokenId>(tokens.size()));
    if (is_new) tokens.push_back(whole);
    trainer.merge(*pair, entry->second);
  }
  tokens.insert(tokens.end(), options.special_tokens.begin(), options.special_tokens.end());
  return vocabulary;
}

void set_vocabulary(gguf::Metadata& metadata, const BpeVocabulary& vocabulary) {
  std::vector<std::int32_t> types(vocabulary.tokens.size(), static_cast<int>(TokenType::normal));
  require(vocabulary.special_tokens <= types.size(), ErrorCode::invalid_argument,
          "set_vocabulary: {} tokens cannot have {} special ones", types.size(),
          vocabulary.special_tokens);
  std::fill_n(types.rbegin(), vocabulary.special_tokens, static_cast<int>(TokenType::control));
  metadata.set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.set("tokenizer.ggml.pre", vocabulary.pre);
  metadata.set("tokenizer.ggml.tokens", gguf::Array(vocabulary.tokens));
  metadata.set("tokenizer.ggml.token_type", gguf::Array(std::move(types)));
  metadata.set("tokenizer.ggml.merges", gguf::Array(vocabulary.merges));
}

}  // namespace heddle

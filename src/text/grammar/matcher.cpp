#include <algorithm>
#include <limits>
#include <mutex>

#include "base/check.h"
#include "heddle/grammar.h"
#include "text/grammar/grammar_impl.h"
#include "text/grammar/masks.h"

namespace heddle {

using text::grammar::kNoState;
using text::grammar::Parser;
using text::grammar::Place;
using text::grammar::PlaceMask;
using text::grammar::PlaceMasks;
using text::grammar::StateId;
using text::grammar::TokenSet;
using text::grammar::TokenTrie;

struct VocabularyIndex::Impl {
  explicit Impl(const Tokenizer& tokenizer) : trie(tokenizer) {}

  /// The masks that all matchers of a grammar share.
  std::shared_ptr<PlaceMasks> masks_of(const std::shared_ptr<const Grammar>& grammar,
                                       const text::grammar::Automaton& automaton) const {
    const std::lock_guard lock(mutex);
    std::erase_if(masks, [](const auto& entry) { return entry.first.expired(); });
    for (const auto& [key, value] : masks) {
      if (!key.owner_before(grammar) && !grammar.owner_before(key)) return value;
    }
    masks.push_back({grammar, std::make_shared<PlaceMasks>(automaton, trie)});
    return masks.back().second;
  }

  TokenTrie trie;
  mutable std::mutex mutex;
  mutable std::vector<std::pair<std::weak_ptr<const Grammar>, std::shared_ptr<PlaceMasks>>> masks;
};

VocabularyIndex::VocabularyIndex(const Tokenizer& tokenizer)
    : impl_(std::make_unique<Impl>(tokenizer)) {}
VocabularyIndex::~VocabularyIndex() = default;

std::size_t VocabularyIndex::size() const noexcept {
  return impl_->trie.vocabulary_size();
}

struct GrammarMatcher::Impl {
  /// With more places at once, one walk for all is less work than joining a mask for each.
  static constexpr std::size_t kMostPlaces = 32;

  Impl(std::shared_ptr<const Grammar> g, std::shared_ptr<const VocabularyIndex> v, TextStart start)
      : grammar(std::move(g)),
        vocabulary(std::move(v)),
        trie(&vocabulary->impl_->trie),
        masks(vocabulary->impl_->masks_of(grammar, grammar->impl_->automaton)),
        parser(grammar->impl_->automaton),
        state(parser.start()),
        first_space_is_dropped(start == TextStart::at_beginning && trie->drops_first_space()) {}

  /// What a token adds to the text.
  std::string_view added(TokenId token) const {
    const std::string_view bytes = trie->bytes(token);
    return first_space_is_dropped && bytes.starts_with(' ') ? bytes.substr(1) : bytes;
  }

  /// Where the text is with `token` after it; kNoState if it is not allowed.
  StateId after(TokenId token) {
    parser.begin_work();
    const std::string_view bytes = added(token);
    if (has_ended || bytes.empty()) return kNoState;
    StateId next = state;
    for (const char c : bytes) {
      next = parser.step(next, static_cast<std::uint8_t>(c));
      if (next == kNoState) break;
    }
    return next;
  }

  bool allows(TokenId token) {
    require(token >= 0 && static_cast<std::size_t>(token) < trie->vocabulary_size(),
            ErrorCode::invalid_argument, "grammar: token {} is not one of the vocabulary's {}",
            token, trie->vocabulary_size());
    if (trie->is_end(token)) return !has_ended && parser.accepts(state);
    return after(token) != kNoState;
  }

  void add_walked(TokenSet& allowed, StateId from, std::uint32_t first, std::uint32_t last) {
    walk(*trie, parser, from, first, last, trail, [&](std::uint32_t node, StateId) {
      for (const TokenId id : trie->tokens(node)) allowed.add(id);
    });
  }

  void add_place(TokenSet& allowed, const Place& place, const PlaceMask& mask) {
    if (mask.many) allowed.add(*mask.many);
    for (const TokenId id : mask.few) allowed.add(id);
    if (mask.leaving.empty()) return;
    const StateId after = parser.after(place.frame);
    if (after == kNoState || !parser.reads_on(after)) return;
    for (const std::uint32_t node : mask.leaving)
      add_walked(allowed, after, node + 1, (*trie)[node].end);
  }

  /// At the beginning of a text, where a token " a" adds "a".
  void add_first(TokenSet& allowed) {
    const auto size = static_cast<std::uint32_t>(trie->size());
    for (std::uint32_t node = 0; node < size; node = (*trie)[node].end) {
      const bool is_space = (*trie)[node].byte == ' ';
      add_walked(allowed, state, is_space ? node + 1 : node, (*trie)[node].end);
    }
  }

  TokenSet allowed() {
    TokenSet allowed(trie->vocabulary_size());
    if (has_ended) return allowed;
    if (first_space_is_dropped) {
      add_first(allowed);
    } else {
      for (const Place& place : parser.places(state)) add_place(allowed, place, *masks->at(place));
    }
    if (parser.accepts(state)) {
      for (const TokenId end : trie->ends()) allowed.add(end);
    }
    return allowed;
  }

  std::shared_ptr<const Grammar> grammar;
  std::shared_ptr<const VocabularyIndex> vocabulary;
  const TokenTrie* trie;
  std::shared_ptr<PlaceMasks> masks;
  Parser parser;
  StateId state;
  std::vector<StateId> trail;
  bool first_space_is_dropped, has_ended = false;
};

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar,
                               std::shared_ptr<const VocabularyIndex> vocabulary, TextStart start) {
  require(grammar != nullptr && vocabulary != nullptr, ErrorCode::invalid_argument,
          "a grammar matcher needs a grammar and a vocabulary index");
  impl_ = std::make_unique<Impl>(std::move(grammar), std::move(vocabulary), start);
}
GrammarMatcher::~GrammarMatcher() = default;
GrammarMatcher::GrammarMatcher(const GrammarMatcher& other)
    : impl_(std::make_unique<Impl>(*other.impl_)) {}
GrammarMatcher& GrammarMatcher::operator=(const GrammarMatcher& other) {
  impl_ = std::make_unique<Impl>(*other.impl_);
  return *this;
}
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;

void GrammarMatcher::mask(std::span<float> logits) {
  const std::size_t size = impl_->trie->vocabulary_size();
  require(logits.size() >= size, ErrorCode::invalid_argument,
          "grammar: {} logits for the {} tokens of the vocabulary", logits.size(), size);
  const TokenSet allowed = impl_->allowed();
  require(!allowed.empty(), ErrorCode::invalid_argument, "grammar: {}",
          impl_->has_ended ? "the text has ended; no token may follow"
          : may_end()
              ? "the text can only end here, and the vocabulary has no end token"
              : "no token of the vocabulary can continue the text here, and it may not end");
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  for (std::size_t word = 0; word * 64 < logits.size(); ++word) {
    const std::uint64_t bits = word < allowed.words().size() ? allowed.words()[word] : 0;
    if (bits == ~std::uint64_t{0}) continue;
    const std::size_t count = std::min<std::size_t>(64, logits.size() - word * 64);
    for (std::size_t i = 0; i < count; ++i) {
      float& logit = logits[word * 64 + i];
      logit = (bits >> i & 1) != 0 ? logit : kForbidden;
    }
  }
}

bool GrammarMatcher::allows(TokenId token) {
  return impl_->allows(token);
}

void GrammarMatcher::accept(TokenId token) {
  const bool allowed = impl_->allows(token);
  require(allowed, ErrorCode::invalid_argument, "grammar: token {} (\"{}\") is not allowed here",
          token, impl_->trie->bytes(token));
  if (impl_->trie->is_end(token)) {
    impl_->has_ended = true;
    return;
  }
  impl_->state = impl_->parser.tidy(impl_->after(token));
  impl_->first_space_is_dropped = false;
}

bool GrammarMatcher::may_end() const {
  return impl_->parser.accepts(impl_->state);
}

bool GrammarMatcher::must_end() const {
  return impl_->has_ended || (may_end() && !impl_->parser.reads_on(impl_->state));
}

}  // namespace heddle

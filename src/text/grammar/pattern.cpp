#include "text/grammar/pattern.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "text/grammar/pattern_syntax.h"

namespace heddle::text::grammar {
namespace {

constexpr std::size_t kMostNodes = 50'000;
constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr std::size_t kFoundNodes = 3;  // Nfa::found and what it reaches

/// Thompson's machine of a pattern.
struct Nfa {
  enum class Kind : std::uint8_t { chars, split, begin, end, match };
  struct Node {
    Kind kind;
    CharSet chars = {};
    std::uint32_t next = kNone, other = kNone;
  };
  std::vector<Node> nodes;
  std::uint32_t start = 0;
  std::uint32_t found = 0;  // a match has been read, and anything may follow
};

class NfaBuilder {
 public:
  explicit NfaBuilder(std::string_view where) : where_(where) {}

  /// With anything before and after what the pattern matches.
  Nfa build(const Pattern& pattern) {
    const std::uint32_t match = add({Nfa::Kind::match});
    nfa_.found = emit_any(match);
    nfa_.start = emit_any(emit(pattern, nfa_.found));
    return std::move(nfa_);
  }

 private:
  std::uint32_t add(Nfa::Node node) {
    require(nfa_.nodes.size() < kMostNodes, ErrorCode::unsupported,
            "{}: the pattern is too large; it takes more than {} nodes", where_, kMostNodes);
    nfa_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(nfa_.nodes.size() - 1);
  }

  std::uint32_t emit_any(std::uint32_t next) {
    const std::uint32_t loop = add({Nfa::Kind::split, {}, kNone, next});
    const std::uint32_t any = add({Nfa::Kind::chars, CharSet::all(), loop});
    nfa_.nodes[loop].next = any;
    return loop;
  }

  std::uint32_t emit(const Pattern& p, std::uint32_t next) {
    switch (p.kind) {
      case Pattern::Kind::chars:
        return add({Nfa::Kind::chars, p.chars, next});
      case Pattern::Kind::begin:
        return add({Nfa::Kind::begin, {}, next});
      case Pattern::Kind::end:
        return add({Nfa::Kind::end, {}, next});
      case Pattern::Kind::sequence:
        for (auto part = p.parts.rbegin(); part != p.parts.rend(); ++part) next = emit(*part, next);
        return next;
      case Pattern::Kind::choice: {
        std::uint32_t choice = kNone;
        for (const Pattern& part : p.parts) {
          const std::uint32_t start = emit(part, next);
          choice = choice == kNone ? start : add({Nfa::Kind::split, {}, start, choice});
        }
        return choice;
      }
      case Pattern::Kind::repeat:
        return emit_repeat(p, next);
    }
    return next;
  }

  std::uint32_t emit_repeat(const Pattern& p, std::uint32_t next) {
    const Pattern& part = p.parts.front();
    if (p.max == Pattern::kUnbounded) {
      const std::uint32_t loop = add({Nfa::Kind::split, {}, kNone, next});
      const std::uint32_t body = emit(part, loop);
      nfa_.nodes[loop].next = body;
      next = loop;
    } else {
      const std::uint32_t leave = next;
      for (std::uint32_t i = p.min; i < p.max; ++i)
        next = add({Nfa::Kind::split, {}, emit(part, next), leave});
    }
    for (std::uint32_t i = 0; i < p.min; ++i) next = emit(part, next);
    return next;
  }

  std::string_view where_;
  Nfa nfa_;
};

/// Rabin and Scott's construction.
class DfaBuilder {
 public:
  DfaBuilder(const Nfa& nfa, std::string_view where, std::size_t& steps)
      : nfa_(nfa), where_(where), steps_(steps), seen_(nfa.nodes.size()) {}

  CharDfa build() {
    // Not among the numbered: no later set is at the beginning of the text.
    sets_.push_back(closure({nfa_.start}, true, false));
    CharDfa dfa;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      const std::vector<std::uint32_t> set = sets_[i];
      dfa.states.push_back({matches(set, i == 0), edges_of(set)});
    }
    return dfa;
  }

 private:
  using Set = std::vector<std::uint32_t>;

  void spend(std::size_t steps) {
    require(steps <= steps_, ErrorCode::unsupported,
            "{}: the pattern is too complex to be made into a machine", where_);
    steps_ -= steps;
  }

  /// `set` and what can be reached from it without a character, sorted.
  Set closure(Set set, bool at_begin, bool at_end) {
    ++mark_;
    Set reached;
    while (!set.empty()) {
      const std::uint32_t id = set.back();
      set.pop_back();
      if (seen_[id] == mark_) continue;
      seen_[id] = mark_;
      reached.push_back(id);
      const Nfa::Node& node = nfa_.nodes[id];
      const bool passes = node.kind == Nfa::Kind::split ||
                          (node.kind == Nfa::Kind::begin && at_begin) ||
                          (node.kind == Nfa::Kind::end && at_end);
      if (!passes) continue;
      set.push_back(node.next);
      if (node.kind == Nfa::Kind::split) set.push_back(node.other);
    }
    spend(reached.size());
    // Whatever else could be matched makes no difference then.
    if (reached.size() > kFoundNodes && seen_[nfa_.found] == mark_)
      return closure({nfa_.found}, false, false);
    std::sort(reached.begin(), reached.end());
    return reached;
  }

  bool matches(const Set& set, bool at_begin) {
    const Set at_end = closure(set, at_begin, true);
    return std::any_of(at_end.begin(), at_end.end(),
                       [&](std::uint32_t id) { return nfa_.nodes[id].kind == Nfa::Kind::match; });
  }

  std::uint32_t number_of(Set set) {
    const auto [at, is_new] = numbers_.emplace(set, static_cast<std::uint32_t>(sets_.size()));
    if (is_new) sets_.push_back(std::move(set));
    require(sets_.size() <= kMostDfaStates, ErrorCode::unsupported,
            "{}: the pattern is too complex; its machine has more than {} states", where_,
            kMostDfaStates);
    return at->second;
  }

  std::vector<CharDfa::Edge> edges_of(const Set& set) {
    std::vector<char32_t> begins;  // of runs of characters that are all alike
    for (const std::uint32_t id : set) {
      if (nfa_.nodes[id].kind != Nfa::Kind::chars) continue;
      for (const CharRange& r : nfa_.nodes[id].chars.ranges()) {
        begins.push_back(r.first);
        begins.push_back(r.last + 1);
      }
    }
    std::sort(begins.begin(), begins.end());
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
    std::map<std::uint32_t, std::vector<CharRange>> by_target;
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
      Set next;
      spend(set.size());
      for (const std::uint32_t id : set) {
        const Nfa::Node& node = nfa_.nodes[id];
        if (node.kind == Nfa::Kind::chars && node.chars.contains(begins[i]))
          next.push_back(node.next);
      }
      if (next.empty()) continue;
      by_target[number_of(closure(std::move(next), false, false))].push_back(
          {begins[i], begins[i + 1] - 1});
    }
    std::vector<CharDfa::Edge> edges;
    for (auto& [target, ranges] : by_target) edges.push_back({CharSet(std::move(ranges)), target});
    return edges;
  }

  const Nfa& nfa_;
  std::string_view where_;
  std::size_t& steps_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t mark_ = 0;
  std::map<Set, std::uint32_t> numbers_;
  std::vector<Set> sets_;
};

}  // namespace

CharDfa pattern_dfa(std::string_view pattern, std::string_view where, std::size_t& steps) {
  const Nfa nfa = NfaBuilder(where).build(parse_pattern(pattern, where));
  return DfaBuilder(nfa, where, steps).build();
}

}  // namespace heddle::text::grammar

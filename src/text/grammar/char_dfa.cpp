#include "text/grammar/char_dfa.h"

#include <limits>
#include <map>

#include "base/check.h"
#include "text/utf8.h"

namespace heddle::text::grammar {
namespace {

constexpr std::uint32_t kUnbounded = std::numeric_limits<std::uint32_t>::max();

void require_small(std::size_t states, std::string_view what) {
  require(states <= kMostDfaStates, ErrorCode::unsupported,
          "{}: too large; it would take more than {} states", what, kMostDfaStates);
}

template <class Visit>
void for_each_char(std::string_view utf8, const Visit& visit) {
  for (std::size_t i = 0; i < utf8.size();) {
    const Utf8Unit unit = utf8_unit(utf8, i);
    visit(unit.status == Utf8Status::valid ? unit.code_point : U'\uFFFD');
    i += unit.length;
  }
}

}  // namespace

bool CharDfa::accepts(std::string_view utf8) const {
  constexpr std::uint32_t kNowhere = kUnbounded;
  std::uint32_t state = 0;
  for_each_char(utf8, [&](char32_t c) {
    if (state == kNowhere) return;
    const std::vector<Edge>& edges = states[state].edges;
    state = kNowhere;
    for (const Edge& edge : edges) {
      if (edge.chars.contains(c)) state = edge.target;
    }
  });
  return state != kNowhere && states[state].accepts;
}

CharDfa intersection(const CharDfa& a, const CharDfa& b, std::string_view what) {
  CharDfa both;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  const auto number_of = [&](std::uint32_t x, std::uint32_t y) {
    const auto [at, is_new] =
        numbers.emplace(std::pair(x, y), static_cast<std::uint32_t>(pairs.size()));
    if (is_new) pairs.push_back({x, y});
    require_small(pairs.size(), what);
    return at->second;
  };
  number_of(0, 0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const CharDfa::State &x = a.states[pairs[i].first], &y = b.states[pairs[i].second];
    CharDfa::State state{x.accepts && y.accepts, {}};
    for (const CharDfa::Edge& e : x.edges) {
      for (const CharDfa::Edge& f : y.edges) {
        CharSet chars = e.chars & f.chars;
        if (!chars.empty())
          state.edges.push_back({std::move(chars), number_of(e.target, f.target)});
      }
    }
    both.states.push_back(std::move(state));
  }
  return both;
}

CharDfa of_length(std::uint32_t min, std::uint32_t max, std::string_view what) {
  const std::uint32_t last = max == kUnbounded ? min : max;
  require_small(last, what);
  CharDfa dfa;
  for (std::uint32_t length = 0; length <= last; ++length) {
    CharDfa::State state{length >= min, {}};
    if (length < last) state.edges.push_back({CharSet::all(), length + 1});
    if (length == last && max == kUnbounded) state.edges.push_back({CharSet::all(), length});
    dfa.states.push_back(std::move(state));
  }
  return dfa;
}

CharDfa other_than(std::span<const std::string> names) {
  std::vector<std::map<char32_t, std::uint32_t>> children(1);  // a trie
  std::vector<bool> is_name(1);
  for (const std::string& name : names) {
    std::uint32_t node = 0;
    for_each_char(name, [&](char32_t c) {
      const auto fresh = static_cast<std::uint32_t>(children.size());
      const auto [child, is_new] = children[node].emplace(c, fresh);
      node = child->second;
      if (!is_new) return;
      children.emplace_back();
      is_name.push_back(false);
    });
    is_name[node] = true;
  }
  CharDfa dfa;
  const auto free = static_cast<std::uint32_t>(children.size());
  for (std::size_t i = 0; i < children.size(); ++i) {
    CharDfa::State state{!is_name[i], {}};
    std::vector<CharRange> taken;
    for (const auto& [c, child] : children[i]) {
      state.edges.push_back({CharSet(c), child});
      taken.push_back({c, c});
    }
    state.edges.push_back({CharSet(std::move(taken)).complement(), free});
    dfa.states.push_back(std::move(state));
  }
  dfa.states.push_back({true, {{CharSet::all(), free}}});
  return dfa;
}

std::size_t char_count(std::string_view utf8) noexcept {
  std::size_t count = 0;
  for_each_char(utf8, [&](char32_t) { ++count; });
  return count;
}

}  // namespace heddle::text::grammar

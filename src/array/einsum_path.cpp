#include "array/einsum_path.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <set>

#include "array/ops_common.h"
#include "heddle/einsum.h"

namespace heddle {

namespace {

using LetterSet = std::set<char>;
using Extents = std::map<char, std::int64_t>;

// ---- What is written

struct Subscripts {
  std::vector<Letters> inputs;
  Letters output;
};

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

/// Without "->": an ellipsis if there is one, and the letters that come once.
Letters implied_output(const std::string& inputs) {
  std::map<char, int> counts;
  for (const char c : inputs) counts[c] += is_letter(c);
  Letters output = inputs.find('.') == std::string::npos ? "" : "...";
  for (const auto& [letter, count] : counts) {
    if (count == 1) output += letter;
  }
  return output;
}

Subscripts parse(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c != ' ') plain += c;
  }
  const std::size_t arrow = plain.find("->");
  const std::string inputs = plain.substr(0, arrow);
  Subscripts subscripts;
  subscripts.output = arrow == std::string::npos ? implied_output(inputs) : plain.substr(arrow + 2);
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = inputs.find(',', begin);
    subscripts.inputs.push_back(inputs.substr(begin, comma - begin));
    if (comma == std::string::npos) break;
    begin = comma + 1;
  }
  return subscripts;
}

/// Where the ellipsis is; npos where there is none. Everything else must be letters.
std::size_t find_ellipsis(const char* function, const Letters& letters) {
  std::size_t found = std::string::npos;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (is_letter(letters[i])) continue;
    const bool dots = letters.compare(i, 3, "...") == 0;
    require(dots, ErrorCode::invalid_argument,
            "{}: '{}' in \"{}\"; subscripts are letters and one ellipsis", function, letters[i],
            letters);
    require(found == std::string::npos, ErrorCode::invalid_argument,
            "{}: \"{}\" has more than one ellipsis", function, letters);
    found = i;
    i += 2;
  }
  return found;
}

/// Puts characters for the last `count` axes of the longest ellipsis in the place of this one.
void expand(Letters& letters, std::size_t at, std::size_t count) {
  Letters axes;
  for (std::size_t i = count; i-- > 0;) axes += static_cast<char>('\x01' + i);
  letters.replace(at, 3, axes);
}

void expand_ellipses(const char* function, Subscripts& subscripts,
                     const std::vector<Array>& operands) {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Letters& letters = subscripts.inputs[i];
    const std::size_t at = find_ellipsis(function, letters);
    const std::size_t named = letters.size() - (at == std::string::npos ? 0 : 3);
    const std::size_t rank = operands[i].ndim();
    require(at == std::string::npos ? named == rank : named <= rank, ErrorCode::invalid_argument,
            "{}: operand {} is {}, with {} dimensions, for \"{}\"", function, i, operands[i].spec(),
            rank, letters);
    if (at == std::string::npos) continue;
    expand(letters, at, rank - named);
    longest = std::max(longest, rank - named);
  }
  const std::size_t at = find_ellipsis(function, subscripts.output);
  if (at != std::string::npos) expand(subscripts.output, at, longest);
}

/// The extent of each letter, once all fit.
Extents extents_of(const char* function, const Subscripts& subscripts,
                   const std::vector<Array>& operands) {
  Extents extents;
  std::map<char, std::size_t> givers;  // the operands that the extents are of
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Extents own;
    for (std::size_t axis = 0; axis < subscripts.inputs[i].size(); ++axis) {
      const char letter = subscripts.inputs[i][axis];
      const std::int64_t extent = operands[i].shape()[axis];
      const std::int64_t before = own.try_emplace(letter, extent).first->second;
      require(before == extent, ErrorCode::invalid_argument,
              "{}: the axes of operand {}, {}, that share the letter '{}' have {} and {} elements",
              function, i, operands[i].spec(), letter, before, extent);
      std::int64_t& known = extents.try_emplace(letter, extent).first->second;
      std::size_t& giver = givers.try_emplace(letter, i).first->second;
      require(known == extent || known == 1 || extent == 1, ErrorCode::invalid_argument,
              "{}: axis {} of operand {}, {}, does not broadcast with the {} elements that its "
              "letter has in operand {}, {}",
              function, axis, i, operands[i].spec(), known, giver, operands[giver].spec());
      if (known == 1) known = extent, giver = i;
    }
  }
  return extents;
}

void check_output(const char* function, const Letters& output, const Extents& extents) {
  LetterSet seen;
  for (const char letter : output) {
    require(seen.insert(letter).second, ErrorCode::invalid_argument,
            "{}: the letter '{}' comes twice in the result", function, letter);
    require(extents.contains(letter), ErrorCode::invalid_argument,
            "{}: the letter '{}' of the result is in no operand", function, letter);
  }
  require(output.size() <= kMaxRank, ErrorCode::invalid_argument,
          "{}: the result has {} dimensions; at most {} are supported", function, output.size(),
          kMaxRank);
}

// ---- The order

LetterSet set_of(const Letters& letters) {
  return {letters.begin(), letters.end()};
}

template <class Set>
double size_of(const Set& letters, const Extents& extents) {
  double size = 1;
  for (const char letter : letters) size *= static_cast<double>(extents.at(letter));
  return size;
}

/// A product for each combination of letters and operand beyond the first, and a sum where letters
/// go.
double cost_of(const LetterSet& letters, std::size_t operands, bool sums, const Extents& extents) {
  const double each = static_cast<double>(std::max<std::size_t>(1, operands - 1)) + (sums ? 1 : 0);
  return size_of(letters, extents) * each;
}

struct Candidate {
  int first, second;
  double freed, cost;
  LetterSet letters, kept;
};

class Greedy {
 public:
  Greedy(const Subscripts& subscripts, const Extents& extents, double cost_limit)
      : output_(set_of(subscripts.output)),
        extents_(extents),
        terms_(subscripts.inputs),
        cost_limit_(cost_limit),
        size_limit_(size_of(subscripts.output, extents)) {
    for (const Letters& term : terms_) {
      size_limit_ = std::max(size_limit_, size_of(term, extents));
    }
  }

  void plan(EinsumPlan& plan) {
    propose(0, true);
    while (terms_.size() > 1) {
      if (candidates_.empty()) propose(0, false);
      if (candidates_.empty()) return take_all(plan);
      const auto better = [](const Candidate& a, const Candidate& b) {
        return a.freed > b.freed || (a.freed == b.freed && a.cost < b.cost);
      };
      const Candidate best = *std::min_element(candidates_.begin(), candidates_.end(), better);
      take(best, plan);
      propose(static_cast<int>(terms_.size()) - 1, true);
    }
  }

 private:
  /// All pairs whose second is `from` or later; of those that share a letter, or of all.
  void propose(int from, bool sharing) {
    const int count = static_cast<int>(terms_.size());
    for (int i = 0; i < count; ++i) {
      for (int j = std::max(i + 1, from); j < count; ++j) {
        const bool share = terms_[at(i)].find_first_of(terms_[at(j)]) != std::string::npos;
        if (share || !sharing) propose_pair(i, j);
      }
    }
  }

  void propose_pair(int i, int j) {
    LetterSet letters = set_of(terms_[at(i)]);
    letters.insert(terms_[at(j)].begin(), terms_[at(j)].end());
    LetterSet kept;
    for (const char letter : letters) {
      bool needed = output_.contains(letter);
      for (int k = 0; k < static_cast<int>(terms_.size()); ++k) {
        needed = needed || (k != i && k != j && terms_[at(k)].find(letter) != std::string::npos);
      }
      if (needed) kept.insert(letter);
    }
    const double size = size_of(kept, extents_);
    const double cost = cost_of(letters, 2, kept.size() < letters.size(), extents_);
    if (size > size_limit_ || spent_ + cost > cost_limit_ || kept.size() > kMaxRank) return;
    const double freed =
        size_of(set_of(terms_[at(i)]), extents_) + size_of(set_of(terms_[at(j)]), extents_) - size;
    candidates_.push_back({i, j, freed, cost, std::move(letters), std::move(kept)});
  }

  void take(const Candidate& pair, EinsumPlan& plan) {
    // In the order in which a product of matrices leaves them: shared, the first's, the second's.
    const Letters &a = terms_[at(pair.first)], &b = terms_[at(pair.second)];
    Letters kept;
    const auto add = [&](const Letters& from, bool shared) {
      for (const char c : from) {
        const bool both = a.find(c) != std::string::npos && b.find(c) != std::string::npos;
        if (both == shared && pair.kept.contains(c) && kept.find(c) == std::string::npos) kept += c;
      }
    };
    add(a, true), add(a, false), add(b, false);
    plan.steps.push_back({{pair.first, pair.second}, {a, b}, kept});
    plan.cost += pair.cost;
    plan.scaling = std::max(plan.scaling, pair.letters.size());
    spent_ += pair.cost;
    forget(pair.first, pair.second);
    terms_.erase(terms_.begin() + pair.second);
    terms_.erase(terms_.begin() + pair.first);
    terms_.push_back(kept);
  }

  /// Candidates of two operands that leave the list go; others' positions move up.
  void forget(int first, int second) {
    std::erase_if(candidates_, [&](const Candidate& c) {
      return c.first == first || c.first == second || c.second == first || c.second == second;
    });
    const auto moved = [&](int position) {
      return position - (position > first ? 1 : 0) - (position > second ? 1 : 0);
    };
    for (Candidate& c : candidates_) c.first = moved(c.first), c.second = moved(c.second);
  }

  void take_all(EinsumPlan& plan) {
    LetterSet letters;
    for (const Letters& term : terms_) letters.insert(term.begin(), term.end());
    std::vector<int> positions(terms_.size());
    std::iota(positions.begin(), positions.end(), 0);
    plan.cost += cost_of(letters, terms_.size(), letters.size() > output_.size(), extents_);
    plan.scaling = std::max(plan.scaling, letters.size());
    plan.steps.push_back({std::move(positions), terms_, {}});
  }

  static std::size_t at(int position) { return static_cast<std::size_t>(position); }

  LetterSet output_;
  const Extents& extents_;
  std::vector<Letters> terms_;
  double cost_limit_, size_limit_, spent_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace

EinsumPlan plan_einsum(const char* function, const std::string& text,
                       const std::vector<Array>& operands) {
  require(!operands.empty(), ErrorCode::invalid_argument, "{}: there are no operands", function);
  Subscripts subscripts = parse(text);
  require(subscripts.inputs.size() == operands.size(), ErrorCode::invalid_argument,
          "{}: \"{}\" is of {} operands; there are {}", function, text, subscripts.inputs.size(),
          operands.size());
  expand_ellipses(function, subscripts, operands);
  const Extents extents = extents_of(function, subscripts, operands);
  check_output(function, subscripts.output, extents);
  LetterSet all;
  for (const Letters& term : subscripts.inputs) all.insert(term.begin(), term.end());
  EinsumPlan plan;
  plan.naive_scaling = all.size();
  plan.naive_cost = cost_of(all, operands.size(), all.size() > subscripts.output.size(), extents);
  if (operands.size() <= 2) {
    std::vector<int> positions(operands.size());
    std::iota(positions.begin(), positions.end(), 0);
    plan.steps.push_back({std::move(positions), subscripts.inputs, {}});
    plan.cost = plan.naive_cost;
    plan.scaling = plan.naive_scaling;
  } else {
    Greedy(subscripts, extents, plan.naive_cost).plan(plan);
  }
  plan.steps.back().output = subscripts.output;
  return plan;
}

std::pair<std::vector<std::vector<int>>, std::string> einsum_path(
    const std::string& subscripts, const std::vector<Array>& operands, std::source_location where) {
  using Path = std::pair<std::vector<std::vector<int>>, std::string>;
  return within("einsum_path", where, [&]() -> Path {
    const EinsumPlan plan = plan_einsum("einsum_path", subscripts, operands);
    Path path;
    for (const EinsumStep& step : plan.steps) path.first.push_back(step.positions);
    path.second = fmt::format(
        "  Complete contraction:  {}\n"
        "         Naive scaling:  {}\n"
        "     Optimized scaling:  {}\n"
        "      Naive FLOP count:  {:.6g}\n"
        "  Optimized FLOP count:  {:.6g}\n",
        subscripts, plan.naive_scaling, plan.scaling, plan.naive_cost, plan.cost);
    return path;
  });
}

}  // namespace heddle

// The work that merging does, counted.
#include "text/merge.h"

#include <gtest/gtest.h>

#include <optional>

namespace heddle::text {
namespace {

/// Pairs of equal ids merge into the next id, the smaller first: a run of n symbols becomes a tree.
std::optional<Merge> doubling(const Symbol& a, const Symbol& b) {
  if (a.id != b.id) return std::nullopt;
  return Merge{static_cast<double>(a.id), a.id + 1};
}

std::vector<TokenId> merged(Merger& merger) {
  std::vector<TokenId> ids;
  merger.for_each([&](const Symbol& s) { ids.push_back(s.id); });
  return ids;
}

TEST(Merge, WorkIsLinearInTheNumberOfSymbols) {
  for (const std::uint32_t n : {1000u, 10'000u, 100'000u, 1'000'000u}) {
    Merger merger;
    for (std::uint32_t i = 0; i < n; ++i) merger.add_symbol(0, i, 1);
    std::size_t lookups = 0;
    const std::size_t candidates = merger.run([&](const Symbol& a, const Symbol& b) {
      ++lookups;
      return doubling(a, b);
    });
    EXPECT_LE(candidates, 3 * std::size_t{n});
    EXPECT_LE(lookups, 3 * std::size_t{n});
  }
}

TEST(Merge, AChainThatGrowsFromTheLeftIsLinearToo) {
  constexpr std::uint32_t n = 200'000;
  Merger merger;
  for (std::uint32_t i = 0; i < n; ++i) merger.add_symbol(i == 0, i, 1);
  const std::size_t candidates =
      merger.run([](const Symbol& a, const Symbol& b) -> std::optional<Merge> {
        if (a.id != 1 || b.id != 0) return std::nullopt;
        return Merge{0, 1};
      });
  EXPECT_LE(candidates, 3 * std::size_t{n});
  EXPECT_EQ(merged(merger), std::vector<TokenId>{1});
}

TEST(Merge, TiesGoToTheLeft) {
  Merger merger;
  for (std::uint32_t i = 0; i < 7; ++i) merger.add_symbol(0, i, 1);
  merger.run(doubling);
  EXPECT_EQ(merged(merger), (std::vector<TokenId>{2, 1, 0}));  // 4 + 2 + 1
}

TEST(Merge, NothingAndOneSymbol) {
  Merger merger;
  EXPECT_EQ(merger.run(doubling), 0u);
  EXPECT_TRUE(merged(merger).empty());
  merger.add_symbol(5, 0, 1);
  EXPECT_EQ(merger.run(doubling), 0u);
  EXPECT_EQ(merged(merger), std::vector<TokenId>{5});
  merger.clear();
  EXPECT_TRUE(merged(merger).empty());
}

}  // namespace
}  // namespace heddle::text

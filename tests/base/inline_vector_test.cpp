// A vector's contract, in place and on the heap, with elements that count themselves.
#include "base/inline_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

namespace heddle {
namespace {

using Shared = std::shared_ptr<int>;
using Vector = InlineVector<Shared, 2>;

Vector filled(const Shared& element, std::size_t count) {
  Vector vector;
  for (std::size_t i = 0; i < count; ++i) vector.push_back(element);
  return vector;
}

TEST(InlineVector, HoldsWhatWasPushedInOrder) {
  InlineVector<int, 2> vector;
  for (int i = 0; i < 100; ++i) {
    vector.push_back(i);
    ASSERT_EQ(vector.size(), static_cast<std::size_t>(i) + 1);
    ASSERT_EQ(vector.front(), 0);
    ASSERT_EQ(vector.back(), i);
  }
  EXPECT_EQ(std::accumulate(vector.begin(), vector.end(), 0), 4950);
  vector.pop_back();
  EXPECT_EQ(vector.back(), 98);
  const InlineVector<int, 2> listed{7, 8, 9};
  EXPECT_EQ(std::vector<int>(listed.begin(), listed.end()), std::vector<int>({7, 8, 9}));
}

TEST(InlineVector, EndsEveryElementOnce) {
  for (const std::size_t count : {0u, 1u, 2u, 3u, 50u}) {
    const auto element = std::make_shared<int>(1);
    const auto handles = [&] { return static_cast<std::size_t>(element.use_count()) - 1; };
    {
      Vector vector = filled(element, count);
      EXPECT_EQ(handles(), count);
      if (count > 0) vector.pop_back();
      EXPECT_EQ(handles(), count - (count > 0));
      vector.clear();
      EXPECT_TRUE(vector.empty());
      EXPECT_EQ(handles(), 0u);
      vector.push_back(element);
      EXPECT_EQ(handles(), 1u);
    }
    EXPECT_EQ(handles(), 0u);
  }
}

TEST(InlineVector, MovesInPlaceAndOnTheHeap) {
  for (const std::size_t from : {0u, 1u, 2u, 3u, 50u}) {
    for (const std::size_t to : {0u, 2u, 50u}) {
      const auto moved = std::make_shared<int>(1), replaced = std::make_shared<int>(2);
      Vector source = filled(moved, from), target = filled(replaced, to);
      target = std::move(source);
      EXPECT_EQ(target.size(), from);
      EXPECT_EQ(static_cast<std::size_t>(moved.use_count()), from + 1);
      EXPECT_EQ(replaced.use_count(), 1);
      source = filled(replaced, 3);  // still of use
      EXPECT_EQ(source.size(), 3u);
      const Vector last = std::move(target);
      EXPECT_EQ(last.size(), from);
      EXPECT_EQ(static_cast<std::size_t>(moved.use_count()), from + 1);
    }
  }
}

}  // namespace
}  // namespace heddle

// Block bookkeeping against a plain model of it: every position of every sequence has its own row,
// except where a fork shares it unchanged.
#include "llm/kv_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "heddle/error.h"

namespace heddle::llm {
namespace {

TEST(KvBlocks, RandomUseNeverMixesSequences) {
  std::mt19937 random(7);
  KvBlocks blocks(4, 5, 20);
  std::map<SequenceId, std::vector<int>> expected;  // what each position should hold
  std::map<std::int32_t, int> memory;               // row -> what was written there
  int next = 0;
  const auto copy = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = 0; i < kBlockSize; ++i) {
      memory[static_cast<std::int32_t>(to * kBlockSize + i)] =
          memory[static_cast<std::int32_t>(from * kBlockSize + i)];
    }
  };
  const auto check = [&] {
    for (const auto& [sequence, values] : expected) {
      ASSERT_EQ(blocks.length(sequence), static_cast<std::int64_t>(values.size()));
      for (std::size_t p = 0; p < values.size(); ++p) {
        ASSERT_EQ(memory[blocks.row(sequence, static_cast<std::int64_t>(p))], values[p])
            << sequence << " at " << p;
      }
    }
  };
  for (int step = 0; step < 3000; ++step) {
    const auto some = static_cast<SequenceId>(random() % 4);
    const bool exists = expected.contains(some);
    switch (random() % 5) {
      case 0:
        if (expected.size() < 4) expected[blocks.create()] = {};
        break;
      case 1:
        if (exists && expected.size() < 4) {
          const std::vector<int> values = expected[some];
          expected[blocks.fork(some)] = values;
        }
        break;
      case 2:
        if (exists && random() % 4 == 0) {
          blocks.release(some);
          expected.erase(some);
        }
        break;
      case 3:
        if (exists) {
          const auto length = static_cast<std::int64_t>(random() % (expected[some].size() + 1));
          blocks.truncate(some, length);
          expected[some].resize(static_cast<std::size_t>(length));
        }
        break;
      default:
        if (exists) {
          const auto room = 5 * kBlockSize - blocks.length(some);
          const auto count = std::min<std::int64_t>(room, static_cast<std::int64_t>(random() % 40));
          const std::int64_t from = blocks.length(some);
          blocks.extend(some, count, copy);
          for (std::int64_t p = from; p < from + count; ++p) {
            memory[blocks.row(some, p)] = next;
            expected[some].push_back(next++);
          }
        }
    }
    check();
  }
  while (!expected.empty()) {
    blocks.release(expected.begin()->first);
    expected.erase(expected.begin());
  }
  EXPECT_EQ(blocks.free_blocks(), 4 * 5) << "blocks leaked";
}

TEST(KvBlocks, ForksShareUntilOneWrites) {
  KvBlocks blocks(2, 3, 6);
  int copies = 0;
  const auto count = [&](std::int64_t, std::int64_t) { ++copies; };
  const SequenceId first = blocks.create();
  blocks.extend(first, 40, count);
  const SequenceId second = blocks.fork(first);
  EXPECT_EQ(blocks.free_blocks(), 4);
  EXPECT_EQ(blocks.blocks(first), blocks.blocks(second));
  blocks.extend(second, 1, count);
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(blocks.row(first, 31), blocks.row(second, 31));
  EXPECT_NE(blocks.row(first, 39), blocks.row(second, 39));
  blocks.extend(first, 1, count);
  EXPECT_EQ(copies, 1) << "the last user of a block writes in place";
}

TEST(KvBlocks, WholeBlocksAreNotCopied) {
  KvBlocks blocks(2, 3, 6);
  const auto never = [](std::int64_t, std::int64_t) { FAIL(); };
  const SequenceId first = blocks.create();
  blocks.extend(first, kBlockSize, never);
  const SequenceId second = blocks.fork(first);
  blocks.extend(first, 1, never);
  blocks.extend(second, 1, never);
  EXPECT_NE(blocks.row(first, kBlockSize), blocks.row(second, kBlockSize));
}

TEST(KvBlocks, WhoHoldsWhat) {
  KvBlocks blocks(4, 3, 5);
  const auto none = [](std::int64_t, std::int64_t) {};
  const SequenceId first = blocks.create();
  EXPECT_EQ(blocks.needed(first, 0), 0);
  EXPECT_EQ(blocks.needed(first, kBlockSize + 1), 2);
  blocks.extend(first, 40, none);
  const SequenceId second = blocks.fork(first), third = blocks.fork(first);
  blocks.truncate(third, kBlockSize);
  EXPECT_EQ(blocks.needed(second, 1), 1);
  EXPECT_EQ(blocks.needed(second, kBlockSize), 2);
  EXPECT_EQ(blocks.needed(third, 1), 1);
  EXPECT_EQ(blocks.held_by(std::vector{first, second}), 1);
  EXPECT_EQ(blocks.held_by(std::vector{first, second, third}), 2);
  EXPECT_EQ(blocks.held_by(std::vector{third}), 0);
  EXPECT_EQ(blocks.held_by({}), 0);
  blocks.extend(second, 1, none);
  EXPECT_EQ(blocks.held_by(std::vector{second}), 1);
  EXPECT_EQ(blocks.free_blocks(), 2);
}

TEST(KvBlocks, RunningOutLeavesTheRest) {
  KvBlocks blocks(3, 3, 3);
  const auto none = [](std::int64_t, std::int64_t) {};
  const SequenceId first = blocks.create(), second = blocks.create();
  blocks.extend(first, 40, none);
  EXPECT_THROW(blocks.extend(second, 40, none), Error);
  blocks.truncate(second, 0);
  EXPECT_EQ(blocks.free_blocks(), 1);
  blocks.extend(second, kBlockSize, none);
  EXPECT_EQ(blocks.free_blocks(), 0);
}

TEST(KvBlocks, BadUseIsRefused) {
  KvBlocks blocks(1, 1, 1);
  const auto none = [](std::int64_t, std::int64_t) {};
  EXPECT_THROW(blocks.length(0), Error);
  EXPECT_THROW(blocks.length(-1), Error);
  const SequenceId sequence = blocks.create();
  EXPECT_THROW(blocks.create(), Error);
  EXPECT_THROW(blocks.extend(sequence, kBlockSize + 1, none), Error);
  EXPECT_THROW(blocks.truncate(sequence, 1), Error);
  EXPECT_EQ(blocks.length(sequence), 0);
}

}  // namespace
}  // namespace heddle::llm

#include "base/team.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "heddle/error.h"
#include "support/allocations.h"

namespace heddle {
namespace {

using namespace std::chrono_literals;

class Teams : public testing::TestWithParam<int> {};

std::int64_t sum_below(Team& team, std::int64_t count, std::int64_t grain) {
  std::atomic<std::int64_t> sum{0};
  team.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t part = 0;
    for (std::int64_t i = begin; i < end; ++i) part += i;
    sum += part;
  });
  return sum;
}

TEST_P(Teams, EveryIndexOnce) {
  Team team(GetParam());
  EXPECT_EQ(team.size(), GetParam());
  for (const std::int64_t count : {0, 1, 2, 7, 64, 1000, 4097}) {
    for (const std::int64_t grain : {1, 3, 64, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
      team.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      for (const auto& times : seen) ASSERT_EQ(times, 1) << count << " by " << grain;
    }
  }
}

TEST_P(Teams, BordersDependOnCountAndGrainOnly) {
  Team team(GetParam());
  std::mutex mutex;
  std::set<std::pair<std::int64_t, std::int64_t>> chunks;
  team.parallel_for(10, 4, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    chunks.emplace(begin, end);
  });
  EXPECT_EQ(chunks, (std::set<std::pair<std::int64_t, std::int64_t>>{{0, 4}, {4, 8}, {8, 10}}));
}

TEST_P(Teams, HugeCountsDoNotOverflow) {
  Team team(GetParam());
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  std::atomic<std::int64_t> covered{0};
  team.parallel_for(kHuge, kHuge / 8 + 1,
                    [&](std::int64_t begin, std::int64_t end) { covered += end - begin; });
  EXPECT_EQ(covered, kHuge);
}

TEST_P(Teams, NestedCallsRunInline) {
  Team team(GetParam());
  std::atomic<int> total{0};
  team.parallel_for(16, 1, [&](std::int64_t, std::int64_t) {
    const std::thread::id self = std::this_thread::get_id();
    team.parallel_for(16, 1, [&](std::int64_t, std::int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      ++total;
    });
  });
  EXPECT_EQ(total, 256);
}

TEST_P(Teams, FirstExceptionReachesTheCallerAndTheRestIsSkipped) {
  Team team(GetParam());
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> begun{0};
    EXPECT_THROW(team.parallel_for(100000, 1,
                                   [&](std::int64_t begin, std::int64_t) {
                                     ++begun;
                                     if (begin == 5) throw std::runtime_error("chunk 5");
                                   }),
                 std::runtime_error);
    if (team.size() == 1) {
      EXPECT_EQ(begun, 6);  // others may have finished before a slow one throws
    }
    EXPECT_EQ(sum_below(team, 100, 1), 4950);  // the team is as good as new
  }
}

TEST_P(Teams, EveryChunkThrowing) {
  Team team(GetParam());
  const Team::Session session(team);
  for (int round = 0; round < 100; ++round) {
    EXPECT_THROW(team.parallel_for(
                     64, 1, [](std::int64_t, std::int64_t) { throw std::runtime_error("all"); }),
                 std::runtime_error);
  }
}

TEST_P(Teams, ConcurrentCallers) {
  Team team(GetParam());
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 500; ++i) {
        const std::int64_t count = 100 + caller * 13 + i;
        if (sum_below(team, count, 7) != count * (count - 1) / 2) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(Teams, ManySmallLoops) {
  Team team(GetParam());
  const Team::Session session(team);
  std::int64_t total = 0;
  for (int i = 0; i < 100000; ++i) {
    int chunks[4] = {};
    team.parallel_for(4, 1, [&](std::int64_t begin, std::int64_t) { ++chunks[begin]; });
    for (const int times : chunks) total += times;
  }
  EXPECT_EQ(total, 400000);
}

TEST_P(Teams, LoopsBetweenSleeps) {
  Team team(GetParam());
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(sum_below(team, 1000, 10), 499500);
    std::this_thread::sleep_for(i % 2 ? 1ms : 10us);
  }
}

TEST_P(Teams, DestroyedWhileIdleSpinningOrUnused) {
  for (int i = 0; i < 50; ++i) {
    { const Team unused(GetParam()); }
    Team team(GetParam());
    {
      const Team::Session session(team);
      if (i % 3) sum_below(team, 64, 1);
    }
    if (i % 2) std::this_thread::sleep_for(300us);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Teams, testing::Values(1, 2, 8));

TEST(Team, ACallerWhoseTeamIsBusyGoesAlone) {
  Team team(2);
  std::atomic<bool> release{false}, first_runs{false};
  std::thread holder([&] {
    team.parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
      first_runs = true;
      while (!release) std::this_thread::yield();
    });
  });
  while (!first_runs) std::this_thread::yield();
  EXPECT_EQ(sum_below(team, 1000, 1), 499500);  // would hang here if it waited for the team
  release = true;
  holder.join();
}

TEST(Team, WorkersTakePart) {
  Team team(2);
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  team.parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    ++inside;
    while (!met && std::chrono::steady_clock::now() < deadline) {
      if (inside == 2) met = true;
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(met);
}

TEST(Team, LoopsDoNotAllocate) {
  Team team(2);
  std::array<std::int64_t, 16> large_capture{};
  std::atomic<std::int64_t> sum{0};
  const auto loop = [&] {
    team.parallel_for(64, 1, [large_capture, &sum](std::int64_t begin, std::int64_t) {
      sum += begin + large_capture[0];
    });
  };
  loop();
  const AllocationCount allocations;
  for (int i = 0; i < 100; ++i) loop();
  EXPECT_EQ(allocations.so_far(), 0);
  sum += *std::make_unique<std::int64_t>(0);
  EXPECT_EQ(allocations.so_far(), 1);  // the count counts
  EXPECT_EQ(sum, 101 * 2016);
}

TEST(Team, RefusesNonsense) {
  EXPECT_THROW(Team(0), Error);
  EXPECT_THROW(Team(-1), Error);
  Team team(2);
  EXPECT_THROW(team.parallel_for(10, 0, [](std::int64_t, std::int64_t) {}), Error);
}

TEST(TeamScope, NestsAndIsOfItsThread) {
  Team& process = current_team();
  Team outer(1), inner(2);
  {
    const TeamScope outer_scope(outer);
    EXPECT_EQ(&current_team(), &outer);
    {
      const TeamScope inner_scope(inner);
      EXPECT_EQ(&current_team(), &inner);
      std::thread([&] { EXPECT_EQ(&current_team(), &process); }).join();
    }
    EXPECT_EQ(&current_team(), &outer);
  }
  EXPECT_EQ(&current_team(), &process);
  inner.parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
    if (&current_team() != &process) {
      EXPECT_EQ(&current_team(), &inner);
    }
  });
}

}  // namespace
}  // namespace heddle

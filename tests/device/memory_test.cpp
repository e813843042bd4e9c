#include "heddle/memory.h"

#include <gmock/gmock.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "device/sanitizer.h"
#include "heddle/error.h"

namespace heddle {
namespace {

using testing::HasSubstr;

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

/// Memory that is only numbers, and remembers what was asked of it.
struct FakeMemory {
  struct State {
    std::mutex mutex;
    std::size_t held = 0, most_held = 0, capacity = kNoMemoryLimit;
    int allocations = 0, frees = 0;
    bool throws = false;
    std::uintptr_t next_address = 1 << 20;
    std::vector<std::size_t> freed;  // sizes, in order
    MemoryPool::Clock::time_point now{};
  };
  std::shared_ptr<State> state = std::make_shared<State>();

  MemoryPool::Source source() const {
    return {[s = state](std::size_t bytes) -> void* {
              const std::lock_guard lock(s->mutex);
              if (bytes > s->capacity - std::min(s->capacity, s->held)) {
                if (s->throws) throw Error(ErrorCode::out_of_memory, "the driver has none");
                return nullptr;
              }
              ++s->allocations;
              s->held += bytes;
              s->most_held = std::max(s->most_held, s->held);
              const std::uintptr_t address = s->next_address;
              s->next_address += (bytes + 63) / 64 * 64;
              return reinterpret_cast<void*>(address);
            },
            [s = state](void*, std::size_t bytes) {
              const std::lock_guard lock(s->mutex);
              ++s->frees;
              s->held -= bytes;
              s->freed.push_back(bytes);
            }};
  }
  MemoryPool::Options options() const {
    MemoryPool::Options options;
    options.name = "fake";
    options.now = [s = state] { return s->now; };
    return options;
  }
  State* operator->() const { return state.get(); }
};

struct Pool : FakeMemory {
  MemoryPool pool{source(), options()};
  void warm(std::size_t bytes) { pool.allocate(bytes); }  // then that much may be cached
};

std::string error_of(const std::function<void()>& f, ErrorCode code) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

// ---- Sizes

TEST(MemoryPool, GivesAtLeastWhatIsAskedAndLittleMore) {
  Pool p;
  std::vector<std::size_t> sizes{0, 1, 63, 64, 65, 127, 512, 513, 1023, 1024, 1025, 4097};
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) sizes.push_back(random() >> (19 + random() % 45));
  for (std::size_t shift = 8; shift < 46; ++shift) {
    for (const std::size_t off : {-1, 0, 1}) sizes.push_back((std::size_t{1} << shift) + off);
  }
  for (const std::size_t bytes : sizes) {
    p.pool.clear_cache();
    const MemoryPool::Block block = p.pool.allocate(bytes);
    ASSERT_GE(block.bytes(), std::max<std::size_t>(bytes, 1)) << bytes;
    ASSERT_EQ(block.bytes() % 64, 0u) << bytes;
    ASSERT_LT(block.bytes() - bytes, std::max<std::size_t>(65, bytes / 8 + 1)) << bytes;
    if (bytes >= kMiB) {
      ASSERT_LE(block.bytes() - bytes, bytes / 32) << bytes;
    }
    ASSERT_EQ(p.pool.active(), block.bytes());
    ASSERT_EQ(p->held, block.bytes());
  }
}

TEST(MemoryPool, ZeroBytesAreABlockOfTheirOwn) {
  Pool p;
  const auto a = p.pool.allocate(0), b = p.pool.allocate(0);
  EXPECT_NE(a.memory(), nullptr);
  EXPECT_NE(a.memory(), b.memory());
  EXPECT_EQ(p.pool.active(), 128u);
}

TEST(MemoryPool, WhatNoProcessCanAddressIsRefusedUnasked) {
  Pool p;
  for (const std::size_t bytes : {(std::size_t{1} << 47) + 1, kNoMemoryLimit - 7, kNoMemoryLimit}) {
    const std::string what = error_of([&] { p.pool.allocate(bytes); }, ErrorCode::out_of_memory);
    EXPECT_THAT(what, HasSubstr(std::to_string(bytes)));
  }
  EXPECT_EQ(p->allocations, 0);
  EXPECT_EQ(p.pool.allocate(std::size_t{1} << 47).bytes(), std::size_t{1} << 47);
}

// ---- Reuse

TEST(MemoryPool, AFreedBlockIsUsedAgain) {
  Pool p;
  for (const std::size_t bytes : {std::size_t{100}, 10 * kKiB, 5 * kMiB}) {
    void* first = p.pool.allocate(bytes).memory();
    EXPECT_EQ(p.pool.allocate(bytes).memory(), first);
    EXPECT_EQ(p.pool.allocate(bytes - bytes / 50).memory(), first);
  }
  EXPECT_EQ(p->allocations, 3);
  EXPECT_EQ(p->frees, 0);
}

TEST(MemoryPool, TheBestFitIsTakenAndNothingMuchLarger) {
  Pool p;
  std::list<MemoryPool::Block> blocks;
  for (const std::size_t mib : {16, 18, 17, 20}) blocks.push_back(p.pool.allocate(mib * kMiB));
  void* const of17 = std::next(blocks.begin(), 2)->memory();
  blocks.clear();
  ASSERT_EQ(p.pool.cached(), 71 * kMiB);
  const auto best = p.pool.allocate(16 * kMiB + kMiB / 2);
  EXPECT_EQ(best.memory(), of17);
  EXPECT_EQ(best.bytes(), 17 * kMiB);
  EXPECT_EQ(p.pool.allocate(17 * kMiB).bytes(), 18 * kMiB);
  EXPECT_EQ(p.pool.allocate(13 * kMiB).bytes(), 13 * kMiB) << "16 MiB waste more than 1/8";
  EXPECT_EQ(p->allocations, 5);
}

TEST(MemoryPool, SmallBlocksAreNotWastedOnSmallerRequests) {
  Pool p;
  p.warm(128);
  EXPECT_EQ(p.pool.allocate(64).bytes(), 64u);
}

// ---- Counts

TEST(MemoryPool, CountsActivePeakAndCached) {
  Pool p;
  std::optional a = p.pool.allocate(kMiB), b = p.pool.allocate(2 * kMiB);
  EXPECT_EQ(p.pool.active(), 3 * kMiB);
  EXPECT_EQ(p.pool.peak(), 3 * kMiB);
  EXPECT_EQ(p.pool.cached(), 0u);
  a.reset();
  EXPECT_EQ(p.pool.active(), 2 * kMiB);
  EXPECT_EQ(p.pool.peak(), 3 * kMiB);
  EXPECT_EQ(p.pool.cached(), kMiB);
  p.pool.reset_peak();
  EXPECT_EQ(p.pool.peak(), 2 * kMiB);
  a = p.pool.allocate(kMiB);
  EXPECT_EQ(p.pool.peak(), 3 * kMiB);
  EXPECT_EQ(p.pool.cached(), 0u);
  a.reset();
  b.reset();
  EXPECT_EQ(p.pool.cached(), 3 * kMiB);
  p.pool.clear_cache();
  EXPECT_EQ(p.pool.cached(), 0u);
  EXPECT_EQ(p.pool.active(), 0u);
  EXPECT_EQ(p->held, 0u);
}

TEST(MemoryPool, BlocksMove) {
  Pool p;
  MemoryPool::Block a = p.pool.allocate(100);
  void* const memory = a.memory();
  MemoryPool::Block b = std::move(a);
  EXPECT_EQ(a.memory(), nullptr);  // NOLINT: what it is after
  EXPECT_EQ(a.bytes(), 0u);
  EXPECT_EQ(b.memory(), memory);
  b = p.pool.allocate(kKiB);
  EXPECT_EQ(p.pool.active(), kKiB);
  b = {};
  EXPECT_EQ(p.pool.active(), 0u);
}

// ---- Limits

TEST(MemoryPool, AtTheMemoryLimitTheCacheGivesWayThenItThrows) {
  Pool p;
  EXPECT_EQ(p.pool.set_memory_limit(10 * kMiB), kNoMemoryLimit);
  EXPECT_EQ(p.pool.memory_limit(), 10 * kMiB);
  p.warm(4 * kMiB);
  std::optional a = p.pool.allocate(6 * kMiB);
  EXPECT_EQ(p.pool.cached(), 4 * kMiB);
  std::optional b = p.pool.allocate(2 * kMiB);
  EXPECT_EQ(p.pool.cached(), 0u);
  EXPECT_EQ(p->most_held, 10 * kMiB);
  const std::string what =
      error_of([&] { p.pool.allocate(2 * kMiB + 1); }, ErrorCode::out_of_memory);
  for (const char* part : {"fake", "2097153 bytes", "8388608 are active", "0 cached", "10485760"}) {
    EXPECT_THAT(what, HasSubstr(part));
  }
  EXPECT_EQ(p.pool.active(), 8 * kMiB);
  EXPECT_EQ(p.pool.allocate(2 * kMiB).bytes(), 2 * kMiB);
  a.reset();
  EXPECT_EQ(p.pool.allocate(8 * kMiB).bytes(), 8 * kMiB) << "as work that ends makes room";
  EXPECT_LE(p->most_held, 10 * kMiB);
}

TEST(MemoryPool, AMemoryLimitBelowWhatIsActiveLeavesIt) {
  Pool p;
  p.warm(kMiB);
  std::optional a = p.pool.allocate(3 * kMiB);
  EXPECT_EQ(p.pool.cached(), kMiB);
  p.pool.set_memory_limit(2 * kMiB);
  EXPECT_EQ(p.pool.cached(), 0u);
  EXPECT_EQ(p.pool.active(), 3 * kMiB);
  error_of([&] { p.pool.allocate(1); }, ErrorCode::out_of_memory);
  a.reset();
  EXPECT_EQ(p.pool.cached(), 0u) << "3 MiB would pass the limit";
  EXPECT_EQ(p.pool.set_memory_limit(0), 2 * kMiB);
  EXPECT_EQ(p.pool.memory_limit(), kNoMemoryLimit);
  EXPECT_EQ(p.pool.allocate(9 * kMiB).bytes(), 9 * kMiB);
}

TEST(MemoryPool, TheCacheLimitEvictsTheOldest) {
  Pool p;
  EXPECT_EQ(p.pool.set_cache_limit(6 * kMiB), kNoMemoryLimit);
  std::list<MemoryPool::Block> blocks;
  for (const std::size_t mib : {1, 2, 3, 4}) blocks.push_back(p.pool.allocate(mib * kMiB));
  while (!blocks.empty()) blocks.pop_front();
  EXPECT_THAT(p->freed, testing::UnorderedElementsAre(kMiB, 2 * kMiB, 3 * kMiB));
  EXPECT_EQ(p.pool.cached(), 4 * kMiB);
  p.warm(7 * kMiB);
  EXPECT_EQ(p.pool.cached(), 4 * kMiB) << "a block above the limit drives out nothing";
  EXPECT_EQ(p.pool.set_cache_limit(0), 6 * kMiB);
  EXPECT_EQ(p.pool.cached(), 0u);
  p.warm(64);
  EXPECT_EQ(p.pool.cached(), 0u);
  EXPECT_EQ(p->held, 0u);
}

TEST(MemoryPool, TheCacheDoesNotMakeTheProgramMuchLarger) {
  Pool p;
  const std::size_t most = 800 * kMiB;
  p.warm(most);
  std::mt19937 random(1);
  std::list<MemoryPool::Block> blocks;
  for (int i = 0; i < 2000; ++i) {
    while (p.pool.active() > most / 2 || (!blocks.empty() && random() % 2)) blocks.pop_front();
    blocks.push_back(p.pool.allocate(kMiB + random() % (100 * kMiB)));
  }
  EXPECT_LE(p.pool.peak(), most);
  EXPECT_LE(p->most_held, most + most / 8);
  EXPECT_GT(p->most_held, most);
}

TEST(MemoryPool, WhatLiesUnusedIsGivenBack) {
  Pool p;
  p.warm(512 * kMiB);
  p.warm(kKiB);
  p->now += std::chrono::seconds(6);
  p.warm(2 * kMiB);
  EXPECT_EQ(p.pool.cached(), 514 * kMiB + kKiB);
  p->now += std::chrono::seconds(6);
  p.warm(2 * kMiB);  // from the cache, and back
  EXPECT_EQ(p.pool.cached(), 2 * kMiB);
  p.warm(100);
  p->now += std::chrono::seconds(11);
  for (int i = 0; i < 2000; ++i) p.warm(100);
  EXPECT_EQ(p.pool.cached(), 128u) << "small requests see it, too";
}

// ---- A source that fails

TEST(MemoryPool, AFailingSourceIsAskedAgainWithoutTheCache) {
  for (const bool throws : {false, true}) {
    Pool p;
    p->capacity = 10 * kMiB;
    p->throws = throws;
    p.warm(4 * kMiB);
    p.warm(3 * kMiB);
    EXPECT_EQ(p.pool.cached(), 7 * kMiB);
    const auto a = p.pool.allocate(8 * kMiB);
    EXPECT_EQ(p.pool.cached(), 0u);
    const std::string what = error_of([&] { p.pool.allocate(3 * kMiB); }, ErrorCode::out_of_memory);
    EXPECT_THAT(what, HasSubstr("fake: no memory for 3145728 bytes"));
    EXPECT_THAT(what, HasSubstr("8388608 are active, 0 cached, there is no limit"));
    EXPECT_EQ(p.pool.active(), 8 * kMiB);
    EXPECT_EQ(p.pool.peak(), 8 * kMiB) << "what never was does not count";
    EXPECT_EQ(p.pool.allocate(2 * kMiB).bytes(), 2 * kMiB);
  }
}

TEST(MemoryPool, OtherErrorsOfTheSourcePassAndReserveNothing) {
  bool lost = true;
  MemoryPool::Options options;
  options.name = "fake";
  options.memory_limit = kMiB;
  MemoryPool pool({[&](std::size_t) -> void* {
                     if (lost) throw Error(ErrorCode::device_lost, "gone");
                     return &lost;
                   },
                   [](void*, std::size_t) {}},
                  options);
  for (int i = 0; i < 3; ++i) {
    error_of([&] { pool.allocate(kMiB); }, ErrorCode::device_lost);
  }
  lost = false;
  EXPECT_EQ(pool.allocate(kMiB).memory(), &lost);
}

TEST(MemoryPool, NeedsASourceAndAClock) {
  const MemoryPool::Source none{};
  error_of([&] { MemoryPool(none, {}); }, ErrorCode::invalid_argument);
  FakeMemory fake;
  MemoryPool::Options timeless;
  timeless.now = nullptr;
  error_of([&] { MemoryPool(fake.source(), timeless); }, ErrorCode::invalid_argument);
}

TEST(MemoryPool, BlocksMayOutliveIt) {
  FakeMemory fake;
  const std::weak_ptr<FakeMemory::State> watch = fake.state;
  std::optional<MemoryPool::Block> first, second;
  {
    MemoryPool pool(fake.source(), {.name = "fake"});
    first = pool.allocate(100);
    second = pool.allocate(kMiB);
    pool.allocate(kKiB);
  }
  EXPECT_EQ(fake->frees, 1) << "the cache";
  first.reset();
  EXPECT_EQ(fake->held, kMiB);
  std::thread([&] { second.reset(); }).join();
  EXPECT_EQ(fake->held, 0u);
  fake.state.reset();
  EXPECT_TRUE(watch.expired()) << "the source goes with the last block";
}

// ---- Many at once

/// Real memory, in which each block is filled with its own number.
MemoryPool::Source real_memory() {
  return {[](std::size_t bytes) { return ::operator new (bytes, std::align_val_t{64}); },
          [](void* memory, std::size_t) { ::operator delete (memory, std::align_val_t{64}); }};
}

struct Filled {
  MemoryPool::Block block;
  std::size_t bytes;
  unsigned char with;

  Filled(MemoryPool& pool, std::size_t n, unsigned char fill)
      : block(pool.allocate(n)), bytes(n), with(fill) {
    std::memset(block.memory(), fill, n);
  }
  bool intact() const {
    const auto* at = static_cast<const unsigned char*>(block.memory());
    return std::all_of(at, at + bytes, [&](unsigned char c) { return c == with; });
  }
};

TEST(MemoryPool, RandomUseAgreesWithAModel) {
  MemoryPool::Options options;
  options.addressable = true;
  options.memory_limit = 40 * kMiB;
  options.cache_limit = 10 * kMiB;
  MemoryPool pool(real_memory(), options);
  std::mt19937 random(7);
  std::vector<Filled> held;
  std::size_t sum = 0, peak = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    if (held.empty() || random() % 9 < 5) {
      const std::size_t bytes = random() % (std::size_t{1} << (random() % 23));
      try {
        held.emplace_back(pool, bytes, static_cast<unsigned char>(random()));
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::out_of_memory);
        ++refused;
        ASSERT_GT(sum + bytes + bytes / 8, 40 * kMiB);
        held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(held.size() / 2));
        sum = 0;
        for (const Filled& f : held) sum += f.block.bytes();
        continue;
      }
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(held.back().block.memory()) % 64, 0u);
      sum += held.back().block.bytes();
      peak = std::max(peak, sum);
    } else {
      std::swap(held[random() % held.size()], held.back());
      ASSERT_TRUE(held.back().intact());
      sum -= held.back().block.bytes();
      held.pop_back();
    }
    ASSERT_EQ(pool.active(), sum);
    ASSERT_EQ(pool.peak(), peak);
    ASSERT_LE(pool.cached(), 10 * kMiB);
    ASSERT_LE(pool.active() + pool.cached(), 40 * kMiB);
  }
  EXPECT_GT(refused, 0);
  // No two overlap.
  std::set<std::pair<const std::byte*, const std::byte*>> ranges;
  for (const Filled& f : held) {
    ASSERT_TRUE(f.intact());
    const auto* at = static_cast<const std::byte*>(f.block.memory());
    ranges.emplace(at, at + f.block.bytes());
  }
  ASSERT_EQ(ranges.size(), held.size());
  const std::byte* end = nullptr;
  for (const auto& [first, last] : ranges) {
    EXPECT_GE(first, end);
    end = last;
  }
}

#if HEDDLE_ADDRESS_SANITIZER
TEST(MemoryPool, TheAddressSanitizerKnowsWhatIsNobodys) {
  MemoryPool::Options options;
  options.addressable = true;
  MemoryPool pool(real_memory(), options);
  const auto poisoned = [](const void* memory, std::size_t at) {
    return __asan_address_is_poisoned(static_cast<const std::byte*>(memory) + at) != 0;
  };
  std::optional block = pool.allocate(5000);
  const void* const memory = block->memory();
  EXPECT_FALSE(poisoned(memory, 0) || poisoned(memory, 4999));
  EXPECT_TRUE(poisoned(memory, 5000)) << "the room up to the size class";
  block.reset();
  EXPECT_TRUE(poisoned(memory, 0) && poisoned(memory, 4999)) << "cached";
  block = pool.allocate(5100);
  ASSERT_EQ(block->memory(), memory);
  EXPECT_FALSE(poisoned(memory, 0) || poisoned(memory, 5099));
}
#endif

TEST(MemoryPool, ThreadsFreeWhatOthersAllocate) {
  constexpr int kThreads = 8, kRounds = 2000;
  std::optional<MemoryPool> pool;
  MemoryPool::Options options;
  options.addressable = true;
  options.memory_limit = kMiB;
  pool.emplace(real_memory(), options);
  std::mutex mutex;
  std::vector<Filled> shared;
  std::atomic<int> broken{0}, refused{0};
  std::barrier start(kThreads);
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    start.arrive_and_wait();
    for (int i = 0; i < kRounds; ++i) {
      std::optional<Filled> mine, taken;
      try {
        mine.emplace(*pool, random() % (std::size_t{1} << (random() % 18)),
                     static_cast<unsigned char>(random()));
      } catch (const Error&) {
        ++refused;
      }
      {
        const std::lock_guard lock(mutex);
        if (mine) shared.push_back(std::move(*mine));
        if (shared.size() > 200 || (!mine && !shared.empty())) {
          std::swap(shared[random() % shared.size()], shared.back());
          taken.emplace(std::move(shared.back()));
          shared.pop_back();
        }
      }
      if (taken && !taken->intact()) ++broken;
      if (random() % 500 == 0) pool->clear_cache();
      if (pool->active() > kMiB || pool->cached() > kMiB) ++broken;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(broken, 0);
  EXPECT_GT(refused, 0);
  std::size_t sum = 0;
  for (const Filled& f : shared) sum += f.block.bytes();
  EXPECT_EQ(pool->active(), sum);
  pool.reset();
  shared.clear();
}

TEST(MemoryPool, ALimitHoldsAmongThreads) {
  Pool p;
  p.pool.set_memory_limit(8 * kMiB);
  std::atomic<int> refused{0};
  const auto work = [&](std::size_t bytes) {
    for (int i = 0; i < 2000; ++i) {
      try {
        p.pool.allocate(bytes);
      } catch (const Error&) {
        ++refused;
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t) threads.emplace_back(work, (t + 1) * kMiB);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(p.pool.active(), 0u);
  EXPECT_LE(p.pool.peak(), 8 * kMiB);
  EXPECT_EQ(p.pool.allocate(8 * kMiB).bytes(), 8 * kMiB) << "no reservation is left over";
}

// ---- Devices

TEST(Memory, TheCpuCountsItsBuffers) {
  clear_cache();
  const std::size_t before = get_active_memory();
  reset_peak_memory();
  Ref<Buffer> buffer = cpu_device().allocate(3 * kMiB);
  EXPECT_EQ(buffer->size(), 3 * kMiB);
  EXPECT_EQ(get_active_memory() - before, 3 * kMiB);
  EXPECT_EQ(get_peak_memory(cpu_device()), get_active_memory());
  const std::byte* const address = buffer->host();
  auto owner = std::make_shared<std::vector<std::byte>>(kMiB);
  const Ref<Buffer> imported = cpu_device().import_host(*owner, owner);
  EXPECT_EQ(get_active_memory() - before, 3 * kMiB) << "imported memory is not counted";
  const std::size_t limit = set_cache_limit(100 * kMiB);
  buffer = nullptr;
  EXPECT_EQ(get_active_memory(), before);
  EXPECT_EQ(get_cache_memory(), 3 * kMiB);
  buffer = allocate_host(3 * kMiB);
  EXPECT_EQ(buffer->host(), address);
  EXPECT_EQ(get_cache_memory(), 0u);
  buffer = nullptr;
  clear_cache();
  EXPECT_EQ(get_cache_memory(), 0u);
  EXPECT_EQ(set_cache_limit(limit), 100 * kMiB);
}

TEST(Memory, TheCpuHasALimit) {
  const std::size_t before = set_memory_limit(get_active_memory() + kMiB);
  EXPECT_EQ(get_memory_limit(), get_active_memory() + kMiB);
  const std::string what = error_of([] { allocate_host(2 * kMiB); }, ErrorCode::out_of_memory);
  EXPECT_THAT(what, HasSubstr("cpu: no memory for 2097152 bytes"));
  EXPECT_EQ(allocate_host(kMiB)->size(), kMiB);
  set_memory_limit(before);
  EXPECT_EQ(allocate_host(2 * kMiB)->size(), 2 * kMiB);
}

TEST(Memory, TheCpuTakesItsLimitsFromTheSettings) {
  // The settings of a process are read once: this needs one that has not.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto child = [] {
    setenv("HEDDLE_MEMORY_LIMIT", "1M", 1);
    setenv("HEDDLE_CACHE_LIMIT", "3k", 1);
    const bool read = get_memory_limit() == kMiB && set_cache_limit(0) == 3 * kKiB;
    std::exit(read ? 0 : 1);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

class Uncounted final : public Device {
 public:
  std::string_view name() const noexcept override { return "uncounted"; }
  std::size_t alignment() const noexcept override { return 64; }
  Prepared prepare(const Op&, std::span<const OperandSpec>, std::span<const OperandSpec>) override {
    return {};
  }
  Ref<Buffer> allocate(std::size_t, MemoryKind) override { return nullptr; }
  Ref<Stream> default_stream() override { return nullptr; }
  std::unique_ptr<Recording> record(std::span<const RecordedStep>) override { return nullptr; }
  std::unique_ptr<BindingTable> make_binding_table(std::size_t) override { return nullptr; }
};

TEST(Memory, ADeviceThatDoesNotCountHasNoneAndTakesNoLimit) {
  Uncounted device;
  EXPECT_EQ(device.memory(), nullptr);
  EXPECT_EQ(get_active_memory(device), 0u);
  EXPECT_EQ(get_peak_memory(device), 0u);
  EXPECT_EQ(get_cache_memory(device), 0u);
  EXPECT_EQ(get_memory_limit(device), kNoMemoryLimit);
  reset_peak_memory(device);
  clear_cache(device);
  for (const auto& set : {set_memory_limit, set_cache_limit}) {
    EXPECT_THAT(error_of([&] { set(kMiB, device); }, ErrorCode::unsupported),
                HasSubstr("uncounted"));
  }
}

}  // namespace
}  // namespace heddle

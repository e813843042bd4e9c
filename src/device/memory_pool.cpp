#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "base/check.h"
#include "device/sanitizer.h"
#include "heddle/memory.h"

namespace heddle {

namespace {

// ---- Size classes: multiples of 64 bytes up to 1 KiB, then 8 to a doubling, from 1 MiB on 32.

constexpr std::size_t kGranule = 64;
constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::size_t kMostBytes = std::size_t{1} << 47;  // what a process can address

struct SizeClass {
  std::size_t index, bytes;
};

/// From a class's size, or a size in its doubling, to the next class.
constexpr std::size_t step_at(std::size_t bytes) {
  const std::size_t floor = std::bit_floor(bytes);
  return bytes < kLarge ? std::max(kGranule, floor / 8) : floor / 32;
}

/// `bytes` must be the size of a class.
constexpr std::size_t index_of(std::size_t bytes) {
  const auto shift = static_cast<std::size_t>(std::countr_zero(step_at(bytes)));
  const std::size_t steps = bytes >> shift;
  constexpr auto kFirstShift = static_cast<std::size_t>(std::countr_zero(kGranule));
  if (bytes < kLarge) return (shift - kFirstShift) * 8 + steps;
  constexpr auto kLargeShift = static_cast<std::size_t>(std::countr_zero(kLarge / 32));
  constexpr std::size_t kBelowLarge = (kLargeShift + 3 - kFirstShift) * 8;
  return kBelowLarge + (shift - kLargeShift) * 32 + (steps - 32);
}
static_assert(index_of(kLarge) == index_of(kLarge - kLarge / 16) + 1);
static_assert(index_of(2048) == index_of(1920) + 1);

constexpr std::size_t kClasses = index_of(kMostBytes) + 1;

SizeClass class_of(std::size_t bytes) {
  bytes = std::max(bytes, kGranule);
  const std::size_t step = step_at(bytes);
  const std::size_t rounded = (bytes + step - 1) & ~(step - 1);
  return {index_of(rounded), rounded};
}

SizeClass next(SizeClass c) {
  return {c.index + 1, c.bytes + step_at(c.bytes)};
}

// ---- When the cache lets go of blocks

/// Beyond what was active at the worst moment, for requests that fit no cached block.
std::size_t slack(std::size_t most_active) {
  return std::max(std::size_t{16} << 20, most_active / 8);
}
/// Longer than a step of a program that repeats itself takes; large one-offs should not stay.
constexpr std::chrono::seconds kStale{10};
/// Small blocks read the clock this seldom, since it costs as much as they do.
constexpr std::uint32_t kFreesPerClockRead = 1024;

std::size_t room_below(std::size_t limit, std::size_t used) {
  return limit - std::min(limit, used);
}

}  // namespace

/// A block, for as long as the pool has it: in somebody's hands, or linked into the cache.
struct MemoryPool::Block::Record {
  Impl* pool;
  std::size_t bytes, size_class;
  void* memory = nullptr;
  Record *newer = nullptr, *older = nullptr;    // in the whole cache
  Record *previous = nullptr, *next = nullptr;  // in its size class, or in a Chain
  Clock::time_point freed{};
};

struct MemoryPool::Impl {
  using Record = Block::Record;

  /// Blocks on their way back to the source, once the lock is dropped.
  struct Chain {
    Record* first = nullptr;
    void add(Record* record) noexcept {
      record->next = first;
      first = record;
    }
  };

  Impl(Source from, Options with) : source(std::move(from)), options(std::move(with)) {}

  Record* allocate(std::size_t bytes);
  void free(Record* record, bool keep) noexcept;
  void close() noexcept;
  /// Runs `change` under the lock; gives back what it evicts.
  template <class Change>
  std::size_t changing(const Change& change) noexcept;

  // Under the lock.
  Record* take(SizeClass wanted) noexcept;
  bool reserve(std::size_t bytes, Chain& freed);
  void count(const Record& record) noexcept;
  void cache(Record* record) noexcept;
  void uncache(Record* record) noexcept;
  void evict(std::size_t most_cached, Chain& freed) noexcept;
  void evict_stale(Chain& freed);

  // Not under the lock.
  Record* make(SizeClass wanted, std::size_t asked);
  void* ask_source(std::size_t bytes);
  void give_back(Chain freed) noexcept;
  [[noreturn]] void refuse(std::size_t asked, const char* why);

  const Source source;
  Options options;
  mutable std::mutex mutex;
  std::size_t active = 0, peak = 0, cached = 0;
  std::size_t reserved = 0;     // asked of the source, not yet there
  std::size_t most_active = 0;  // unlike `peak`, never reset
  std::size_t blocks_out = 0;
  std::uint32_t frees = 0;
  bool closed = false;
  Clock::time_point now{};  // when the clock was last read
  Record *oldest = nullptr, *newest = nullptr;
  std::array<Record*, kClasses> classes{};  // the newest first
};

// ---- The cache

void MemoryPool::Impl::cache(Record* record) noexcept {
  record->freed = now;
  record->older = newest;
  record->newer = nullptr;
  (newest ? newest->newer : oldest) = record;
  newest = record;
  Record*& head = classes[record->size_class];
  record->previous = nullptr;
  record->next = head;
  if (head) head->previous = record;
  head = record;
  cached += record->bytes;
}

void MemoryPool::Impl::uncache(Record* record) noexcept {
  (record->older ? record->older->newer : oldest) = record->newer;
  (record->newer ? record->newer->older : newest) = record->older;
  (record->previous ? record->previous->next : classes[record->size_class]) = record->next;
  if (record->next) record->next->previous = record->previous;
  cached -= record->bytes;
}

MemoryPool::Impl::Record* MemoryPool::Impl::take(SizeClass wanted) noexcept {
  const std::size_t most = wanted.bytes + wanted.bytes / 8;
  for (SizeClass c = wanted; c.index < kClasses && c.bytes <= most; c = next(c)) {
    if (Record* record = classes[c.index]) {
      uncache(record);
      return record;
    }
  }
  return nullptr;
}

void MemoryPool::Impl::evict(std::size_t most_cached, Chain& freed) noexcept {
  while (cached > most_cached) {
    Record* record = oldest;
    uncache(record);
    freed.add(record);
  }
}

void MemoryPool::Impl::evict_stale(Chain& freed) {
  now = options.now();
  while (oldest && now - oldest->freed > kStale) {
    Record* record = oldest;
    uncache(record);
    freed.add(record);
  }
}

// ---- Allocation

bool MemoryPool::Impl::reserve(std::size_t bytes, Chain& freed) {
  const std::size_t held = active + reserved;
  if (bytes > room_below(options.memory_limit, held)) return false;
  evict_stale(freed);
  const std::size_t then = held + bytes, most = std::max(most_active, then);
  evict(std::min(options.memory_limit, most + slack(most)) - then, freed);
  reserved += bytes;
  return true;
}

void MemoryPool::Impl::count(const Record& record) noexcept {
  active += record.bytes;
  ++blocks_out;
  peak = std::max(peak, active);
  most_active = std::max(most_active, active);
}

void* MemoryPool::Impl::ask_source(std::size_t bytes) {
  try {
    return source.allocate(bytes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
  } catch (const std::bad_alloc&) {
  }
  return nullptr;
}

MemoryPool::Impl::Record* MemoryPool::Impl::make(SizeClass wanted, std::size_t asked) {
  const std::size_t bytes = wanted.bytes;
  std::unique_ptr<Record> record;
  try {
    record.reset(new Record{this, bytes, wanted.index});
    record->memory = ask_source(bytes);
    if (!record->memory) {
      changing([&](Chain& freed) { evict(0, freed); });
      record->memory = ask_source(bytes);
    }
  } catch (...) {
    const std::lock_guard lock(mutex);
    reserved -= bytes;
    throw;
  }
  {
    const std::lock_guard lock(mutex);
    reserved -= bytes;
    if (record->memory) count(*record);
  }
  if (!record->memory) refuse(asked, "the system has no more");
  return record.release();
}

MemoryPool::Impl::Record* MemoryPool::Impl::allocate(std::size_t bytes) {
  if (bytes > kMostBytes) refuse(bytes, "no process can address that");
  const SizeClass wanted = class_of(bytes);
  Chain freed;
  bool fits = true;
  Record* record = nullptr;
  {
    const std::lock_guard lock(mutex);
    record = take(wanted);
    if (record) {
      count(*record);
    } else {
      fits = reserve(wanted.bytes, freed);
    }
  }
  give_back(freed);
  if (!fits) refuse(bytes, "it would pass the limit");
  if (!record) record = make(wanted, bytes);
  if (options.addressable) {
    allow_access(record->memory, bytes);
    forbid_access(static_cast<std::byte*>(record->memory) + bytes, record->bytes - bytes);
  }
  return record;
}

void MemoryPool::Impl::refuse(std::size_t asked, const char* why) {
  std::unique_lock lock(mutex);
  const std::size_t in_use = active, kept = cached, limit = options.memory_limit;
  lock.unlock();
  fail(ErrorCode::out_of_memory, "{}: no memory for {} bytes: {}; {} are active, {} cached, {}",
       options.name, asked, why, in_use, kept,
       limit == kNoMemoryLimit ? "there is no limit" : fmt::format("the limit is {}", limit));
}

// ---- Freeing

void MemoryPool::Impl::give_back(Chain freed) noexcept {
  while (Record* record = freed.first) {
    freed.first = record->next;
    if (options.addressable) allow_access(record->memory, record->bytes);
    source.free(record->memory, record->bytes);
    delete record;
  }
}

void MemoryPool::Impl::free(Record* record, bool keep) noexcept {
  if (options.addressable) forbid_access(record->memory, record->bytes);
  Chain freed;
  bool last = false;
  {
    const std::lock_guard lock(mutex);
    active -= record->bytes;
    last = --blocks_out == 0 && closed;
    if (!keep || closed || record->bytes > options.cache_limit) {
      freed.add(record);
    } else {
      // The clock first: this block is not older than now.
      if (record->bytes >= kLarge || ++frees % kFreesPerClockRead == 0) evict_stale(freed);
      cache(record);
      const std::size_t most = most_active + slack(most_active);
      evict(std::min({options.cache_limit, room_below(options.memory_limit, active + reserved),
                      room_below(most, active + reserved)}),
            freed);
    }
  }
  give_back(freed);
  if (last) delete this;
}

void MemoryPool::Impl::close() noexcept {
  Chain freed;
  bool unused = false;
  {
    const std::lock_guard lock(mutex);
    closed = true;
    evict(0, freed);
    unused = blocks_out == 0;
  }
  give_back(freed);
  if (unused) delete this;
}

template <class Change>
std::size_t MemoryPool::Impl::changing(const Change& change) noexcept {
  Chain freed;
  std::size_t result = 0;
  {
    const std::lock_guard lock(mutex);
    if constexpr (std::is_void_v<decltype(change(freed))>) {
      change(freed);
    } else {
      result = change(freed);
    }
  }
  give_back(freed);
  return result;
}

// ---- What is public

MemoryPool::MemoryPool(Source source, Options options) {
  require(source.allocate && source.free && options.now, ErrorCode::invalid_argument,
          "memory pool {}: it needs functions that allocate, free and tell the time", options.name);
  if (options.memory_limit == 0) options.memory_limit = kNoMemoryLimit;
  impl_ = new Impl(std::move(source), std::move(options));
}

MemoryPool::~MemoryPool() {
  impl_->close();
}

MemoryPool::Block::~Block() {
  if (record_) record_->pool->free(record_, true);
}

void MemoryPool::Block::discard() noexcept {
  if (record_) record_->pool->free(std::exchange(record_, nullptr), false);
}

void* MemoryPool::Block::memory() const noexcept {
  return record_ ? record_->memory : nullptr;
}

std::size_t MemoryPool::Block::bytes() const noexcept {
  return record_ ? record_->bytes : 0;
}

MemoryPool::Block MemoryPool::allocate(std::size_t bytes) {
  return Block(impl_->allocate(bytes));
}

std::size_t MemoryPool::active() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->active;
}

std::size_t MemoryPool::peak() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->peak;
}

std::size_t MemoryPool::cached() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->cached;
}

std::size_t MemoryPool::memory_limit() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->options.memory_limit;
}

std::size_t MemoryPool::cache_limit() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->options.cache_limit;
}

void MemoryPool::reset_peak() noexcept {
  const std::lock_guard lock(impl_->mutex);
  impl_->peak = impl_->active;
}

void MemoryPool::clear_cache() noexcept {
  impl_->changing([&](Impl::Chain& freed) { impl_->evict(0, freed); });
}

std::size_t MemoryPool::set_memory_limit(std::size_t limit) noexcept {
  if (limit == 0) limit = kNoMemoryLimit;
  return impl_->changing([&](Impl::Chain& freed) {
    impl_->evict(room_below(limit, impl_->active + impl_->reserved), freed);
    return std::exchange(impl_->options.memory_limit, limit);
  });
}

std::size_t MemoryPool::set_cache_limit(std::size_t limit) noexcept {
  return impl_->changing([&](Impl::Chain& freed) {
    impl_->evict(limit, freed);
    return std::exchange(impl_->options.cache_limit, limit);
  });
}

// ---- By device

namespace {

MemoryPool& pool_of(Device& device) {
  MemoryPool* pool = device.memory();
  require(pool != nullptr, ErrorCode::unsupported,
          "{} does not count its memory, so that it cannot limit it", device.name());
  return *pool;
}

}  // namespace

std::size_t get_active_memory(Device& device) {
  const MemoryPool* pool = device.memory();
  return pool ? pool->active() : 0;
}

std::size_t get_peak_memory(Device& device) {
  const MemoryPool* pool = device.memory();
  return pool ? pool->peak() : 0;
}

std::size_t get_cache_memory(Device& device) {
  const MemoryPool* pool = device.memory();
  return pool ? pool->cached() : 0;
}

void reset_peak_memory(Device& device) {
  if (MemoryPool* pool = device.memory()) pool->reset_peak();
}

void clear_cache(Device& device) {
  if (MemoryPool* pool = device.memory()) pool->clear_cache();
}

std::size_t set_memory_limit(std::size_t limit, Device& device) {
  return pool_of(device).set_memory_limit(limit);
}

std::size_t get_memory_limit(Device& device) {
  const MemoryPool* pool = device.memory();
  return pool ? pool->memory_limit() : kNoMemoryLimit;
}

std::size_t set_cache_limit(std::size_t limit, Device& device) {
  return pool_of(device).set_cache_limit(limit);
}

}  // namespace heddle

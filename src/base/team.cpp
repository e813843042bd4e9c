#include "base/team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/system.h"

namespace heddle {

namespace {

using Clock = std::chrono::steady_clock;

/// How long a worker in a session looks for the next loop before it sleeps (waking takes longer
/// than the loops of small models do), and how long a caller looks for the end of the last chunks.
constexpr std::chrono::microseconds kSpin{100};
constexpr int kSpinsPerClockRead = 64;

/// Chunks published at once: their number must fit in half of a word.
constexpr std::int64_t kMaxChunks = std::int64_t{1} << 31;

thread_local bool inside_chunk = false;
thread_local Team* team_of_thread = nullptr;

void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");  // most processors take yield for nothing
#endif
}

/// Waits until `ready()`, at most kSpin; gives its last answer.
template <class Ready>
bool spin_until(const Ready& ready) {
  const Clock::time_point end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < kSpinsPerClockRead; ++i) {
      if (ready()) return true;
      pause_processor();
    }
    std::this_thread::yield();  // whoever waits for this processor may be who is awaited
  } while (Clock::now() < end);
  return ready();
}

class InsideChunk {
 public:
  InsideChunk() : previous_(std::exchange(inside_chunk, true)) {}
  ~InsideChunk() { inside_chunk = previous_; }
  InsideChunk(const InsideChunk&) = delete;
  InsideChunk& operator=(const InsideChunk&) = delete;

 private:
  bool previous_;
};

struct Loop {
  std::int64_t count = 0, grain = 1;
  const Team::Body* body = nullptr;

  std::int64_t chunks() const { return count / grain + (count % grain != 0); }
  void run_chunk(std::int64_t chunk) const {
    const std::int64_t begin = chunk * grain;
    (*body)(begin, begin + std::min(grain, count - begin));
  }
};

}  // namespace

// One loop at a time is shared with the workers. Its progress is one word, chunks not yet taken and
// workers inside chunks, so that taking a chunk and becoming someone the caller waits for are one
// step: a worker that is late finds no chunk, and never touches a loop that has ended.
struct Team::Impl {
  explicit Impl(int threads) : spins(threads <= available_processors()) {}

  static constexpr std::uint64_t kOneRunning = std::uint64_t{1} << 32;
  static std::uint32_t untaken(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
  static std::uint64_t running(std::uint64_t word) { return word >> 32; }

  bool has_work() const { return untaken(progress.load()) > 0; }

  void share(const Loop& shared, std::int64_t begin, std::int64_t end);
  void run_chunk(std::uint32_t left) noexcept;
  void take_chunks_as_caller();
  void take_chunks_as_worker();
  void wait_for_workers();
  void work();
  void sleep();

  const bool spins;  // a worker that has no processor of its own must not
  std::atomic<int> sessions{0};
  std::atomic<bool> taken{false};  // by a caller whose loop is shared

  Loop loop;                    // written by the owner of `taken`, read by those who hold a chunk
  std::int64_t last_chunk = 0;  // chunks are taken in order: last_chunk - untaken is next
  std::atomic<std::uint64_t> progress{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written by who set `failed`

  std::mutex mutex;
  std::condition_variable wake, finished;
  std::atomic<int> sleepers{0};
  std::atomic<bool> caller_sleeps{false};
  std::atomic<bool> stopping{false};
  std::vector<std::thread> workers;
};

void Team::Impl::run_chunk(std::uint32_t left) noexcept {
  try {
    const InsideChunk inside;
    loop.run_chunk(last_chunk - left);
  } catch (...) {
    if (!failed.exchange(true)) error = std::current_exception();
    progress.fetch_and(~std::uint64_t{0xffffffff});  // the rest is skipped
  }
}

void Team::Impl::take_chunks_as_caller() {
  std::uint64_t word = progress.load();
  while (untaken(word) > 0) {
    if (!progress.compare_exchange_weak(word, word - 1)) continue;
    run_chunk(untaken(word));
    word = progress.load();
  }
}

void Team::Impl::take_chunks_as_worker() {
  std::uint64_t word = progress.load();
  bool counted = false;
  while (untaken(word) > 0) {
    if (!progress.compare_exchange_weak(word, word - 1 + (counted ? 0 : kOneRunning))) continue;
    counted = true;
    run_chunk(untaken(word));
    word = progress.load();
  }
  if (!counted) return;
  const bool last = running(progress.fetch_sub(kOneRunning)) == 1;
  if (last && caller_sleeps.load()) {
    { const std::lock_guard lock(mutex); }
    finished.notify_one();
  }
}

void Team::Impl::wait_for_workers() {
  const auto ended = [&] { return running(progress.load()) == 0; };
  if (ended() || (spins && spin_until(ended))) return;
  std::unique_lock lock(mutex);
  caller_sleeps.store(true);
  finished.wait(lock, ended);
  caller_sleeps.store(false);
}

void Team::Impl::share(const Loop& shared, std::int64_t begin, std::int64_t end) {
  loop = shared;
  last_chunk = end;
  const auto chunks = static_cast<std::uint32_t>(end - begin);
  progress.store(chunks);
  if (sleepers.load() > 0) {  // who goes to sleep now sees the chunks first
    { const std::lock_guard lock(mutex); }
    if (chunks == 2) {
      wake.notify_one();
    } else {
      wake.notify_all();
    }
  }
  take_chunks_as_caller();
  wait_for_workers();
}

void Team::Impl::sleep() {
  std::unique_lock lock(mutex);
  sleepers.fetch_add(1);
  wake.wait(lock, [&] { return has_work() || stopping.load(); });
  sleepers.fetch_sub(1);
}

void Team::Impl::work() {
  const auto awake = [&] { return has_work() || stopping.load() || sessions.load() == 0; };
  while (!stopping.load()) {
    take_chunks_as_worker();
    if (spins && sessions.load() > 0) spin_until(awake);
    if (!has_work()) sleep();
  }
}

Team::Team(int threads) {
  require(threads >= 1, ErrorCode::invalid_argument, "a team of {} threads; 1 is the least",
          threads);
  impl_ = std::make_unique<Impl>(threads);
  impl_->workers.reserve(static_cast<std::size_t>(threads - 1));
  for (int i = 1; i < threads; ++i) {
    impl_->workers.emplace_back([this] {
      team_of_thread = this;
      impl_->work();
    });
  }
}

Team::~Team() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping.store(true);
  }
  impl_->wake.notify_all();
  for (std::thread& worker : impl_->workers) worker.join();
}

int Team::size() const noexcept {
  return static_cast<int>(impl_->workers.size()) + 1;
}

void Team::parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  require(grain >= 1, ErrorCode::invalid_argument, "parallel_for in chunks of {}", grain);
  const Loop loop{std::max<std::int64_t>(count, 0), grain, &body};
  const std::int64_t chunks = loop.chunks();
  const bool alone =
      chunks <= 1 || inside_chunk || impl_->workers.empty() || impl_->taken.exchange(true);
  if (alone) {
    const InsideChunk inside;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) loop.run_chunk(chunk);
    return;
  }
  for (std::int64_t begin = 0; begin < chunks && !impl_->failed.load(); begin += kMaxChunks) {
    impl_->share(loop, begin, std::min(chunks, begin + kMaxChunks));
  }
  impl_->failed.store(false);
  const std::exception_ptr error = std::exchange(impl_->error, nullptr);
  impl_->taken.store(false);
  if (error) std::rethrow_exception(error);
}

Team::Session::Session(Team& team) : team_(team) {
  team_.impl_->sessions.fetch_add(1);
}

Team::Session::~Session() {
  team_.impl_->sessions.fetch_sub(1);
}

Team& current_team() {
  if (team_of_thread) return *team_of_thread;
  static Team team(default_threads());
  return team;
}

TeamScope::TeamScope(Team& team) : previous_(std::exchange(team_of_thread, &team)) {}

TeamScope::~TeamScope() {
  team_of_thread = previous_;
}

}  // namespace heddle

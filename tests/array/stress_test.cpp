// Eight threads on shared random graphs: they evaluate, read, build on and drop what others do the
// same with, while ops and devices fail. STRESS_SECONDS says for how long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "heddle/ops.h"
#include "support/async_device.h"
#include "support/environment.h"
#include "support/random_program.h"

namespace heddle::test {
namespace {

constexpr int kThreads = 8;
constexpr auto kPatience = std::chrono::seconds(120);  // far more than a round takes

/// What became of a value: its bytes, or an error.
struct Outcome {
  Bytes bytes;
  std::string error;
  bool failed() const { return !error.empty(); }
};

Outcome outcome_of(const Array& value) {
  try {
    return {value.to_bytes(), {}};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

/// How every value comes out on one thread, on the CPU.
std::vector<Outcome> sequential(const Program& program) {
  std::vector<Outcome> outcomes;
  for (const Array& value : build_values(program, {})) outcomes.push_back(outcome_of(value));
  return outcomes;
}

/// Errors that the threads met, by value: one value has one error.
class Errors {
 public:
  explicit Errors(std::size_t values) : known_(values) {}
  /// The first outcome that anyone reported of the value ("" is that it is well).
  std::string agree(std::size_t value, const std::string& error) {
    const std::lock_guard lock(mutex_);
    if (!known_[value]) known_[value] = error;
    return *known_[value];
  }

 private:
  std::mutex mutex_;
  std::vector<std::optional<std::string>> known_;
};

struct Round {
  Program program;
  std::vector<Outcome> expected;
  bool faulty = false;  // the device fails now and then
  Errors errors;

  Round(Program p, bool f)
      : program(std::move(p)),
        expected(sequential(program)),
        faulty(f),
        errors(program.value_count()) {}
};

/// One thread with handles of its own on all values.
class Player {
 public:
  Player(Round& round, const std::vector<Array>& values, unsigned seed)
      : round_(round), values_(values.begin(), values.end()), random_(seed) {}

  void play() {
    for (int i = 0; i < 40 && !testing::Test::HasFailure(); ++i) {
      const std::size_t value = random_() % values_.size();
      if (!values_[value]) continue;
      switch (random_() % 8) {
        case 0:
          values_[value].reset();
          break;
        case 1:
          evaluate_some();
          break;
        case 2:
          check_own(value, copy(*values_[value]));
          break;
        case 3:
          write_over(value);
          break;
        default:
          check(value);
      }
    }
    scheduled_.reset();
    values_.clear();
  }

 private:
  void evaluate_some() {
    std::vector<Array> some;
    for (unsigned i = 0; i < 4; ++i) {
      const auto& value = values_[random_() % values_.size()];
      if (value) some.push_back(*value);
    }
    try {
      evaluate(some);
    } catch (const Error&) {  // `check` asks which, and what it says
    }
  }

  /// In one of all ways; what is scheduled starts when the next is, or never.
  void evaluate(const std::vector<Array>& some) {
    switch (random_() % 4) {
      case 0:
        return async_eval(some);
      case 1: {
        std::optional<Scheduled> last = std::exchange(scheduled_, schedule(some));
        if (last) random_() % 2 ? last->eval() : last->async_eval();
        return;
      }
      case 2:
        return heddle::check(some);
      default:
        return eval(some);
    }
  }

  static std::string error_of(const Array& array) {
    try {
      array.eval();
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }

  /// The value comes out as everyone else sees it.
  void check(std::size_t value) {
    const Outcome& expected = round_.expected[value];
    const std::string error = error_of(*values_[value]);
    ASSERT_EQ(error, round_.errors.agree(value, error)) << "two answers about " << name_of(value);
    if (!round_.faulty) {
      ASSERT_EQ(error, expected.error) << name_of(value);
    }
    if (error.empty()) check_own(value, *values_[value]);
  }

  /// `array` equals the value. What it needs beyond the value, and reading it, may meet the fault.
  void check_own(std::size_t value, const Array& array) {
    const Outcome seen = outcome_of(array);
    if (round_.faulty && seen.failed()) {
      ASSERT_THAT(seen.error, testing::HasSubstr("injected fault"));
      return;
    }
    ASSERT_EQ(seen.error, round_.expected[value].error) << name_of(value);
    ASSERT_EQ(seen.bytes, round_.expected[value].bytes) << name_of(value);
  }

  /// Gives the handle to ops that write in place where they may, and leave the value as it was.
  void write_over(std::size_t value) {
    Array mine = std::move(*values_[value]);
    values_[value].reset();
    if (!is_floating(mine.dtype())) return check_own(value, mine);
    if (mine.ndim() == 0 || mine.shape(0) == 0 || random_() % 2 == 0) {
      return check_own(value, negative(negative(std::move(mine))));
    }
    const Array row = take(mine, Array({0}), 0);
    check_own(value, write_rows(std::move(mine), row, Array({0})));
  }

  std::string name_of(std::size_t value) const {
    return "%" + std::to_string(value) + " of\n" + to_string(round_.program);
  }

  Round& round_;
  std::vector<std::optional<Array>> values_;
  std::optional<Scheduled> scheduled_;
  std::mt19937 random_;
};

/// Ends the process, saying what hung, unless it is over in time.
class Watchdog {
 public:
  explicit Watchdog(const Program& program)
      : text_(to_string(program)), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, kPatience, [&] { return over_; })) return;
    std::fprintf(stderr, "threads hang on\n%s", text_.c_str());
    std::abort();
  }

  const std::string text_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

struct Mode {
  bool on_device = false;
  int failing = 0;  // percent of the ops
  bool faulty = false;
};

void play_round(unsigned seed, const Mode& mode) {
  Round round(random_program(seed, {.steps = 50, .failing = mode.failing}), mode.faulty);
  AsyncOptions options;
  options.delay = std::chrono::microseconds(0);
  options.hides_local = seed % 3 == 0;
  AsyncDevice device(options);
  std::mt19937 random(seed);
  const std::vector<Ref<Stream>> streams = {nullptr, device.new_stream(), device.new_stream()};
  std::vector<Array> values = build_values(round.program, [&]() -> Place {
    if (!mode.on_device || random() % 3 == 0) return {};
    return {&device, streams[random() % streams.size()]};
  });
  if (mode.faulty) device.fail_call(1 + random() % 80);
  const Watchdog watchdog(round.program);
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, player = Player(round, values, seed * kThreads + i)]() mutable {
      start.arrive_and_wait();
      player.play();
    });
  }
  values.clear();
  for (std::thread& thread : threads) thread.join();
}

void stress(unsigned first_seed, const Mode& mode) {
  constexpr int kTests = 4;  // share the time
  const int seconds = number_from("STRESS_SECONDS", 5);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(1000 * seconds / kTests);
  unsigned seed = first_seed;
  do {
    SCOPED_TRACE("seed " + std::to_string(seed));
    play_round(seed++, mode);
  } while (std::chrono::steady_clock::now() < end && !testing::Test::HasFailure());
  testing::Test::RecordProperty("rounds", static_cast<int>(seed - first_seed));
}

TEST(Stress, SharedGraphsOnTheCpu) {
  stress(1'000'000, {});
}
TEST(Stress, OpsThatFail) {
  stress(2'000'000, {.failing = 4});
}
TEST(Stress, OpsThatFailBesideADevice) {
  stress(3'000'000, {.on_device = true, .failing = 2});
}
TEST(Stress, ADeviceThatFails) {
  stress(4'000'000, {.on_device = true, .faulty = true});
}

}  // namespace
}  // namespace heddle::test

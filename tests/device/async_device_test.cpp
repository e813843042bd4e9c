// The asynchronous test device's own promises, which other tests rely on: streams, handles, limits.
#include "support/async_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "array/test_device.h"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;

/// Work that ends when, and as, the test says.
class Gate final : public Completion {
 public:
  bool done() const noexcept override {
    const std::lock_guard lock(mutex_);
    return open_;
  }
  void wait(std::chrono::nanoseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!opened_.wait_for(lock, timeout, [&] { return open_; }))
      throw Error(ErrorCode::timeout, "the gate stayed shut");
    if (failure_) throw Error(*failure_, "the gate fell off");
  }
  void open(std::optional<ErrorCode> failure = std::nullopt) {
    const std::lock_guard lock(mutex_);
    open_ = true;
    failure_ = failure;
    opened_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
  std::optional<ErrorCode> failure_;
};

constexpr std::size_t kCount = 256;
constexpr std::size_t kBytes = kCount * sizeof(float);

class AsyncDeviceTest : public testing::Test {
 protected:
  static AsyncOptions options() {
    AsyncOptions options;
    options.delay = 0us;
    return options;
  }

  Ref<Buffer> filled(float value) {
    const std::vector<float> values(kCount, value);
    Ref<Buffer> buffer = device_.allocate(kBytes);
    std::memcpy(buffer->host(), values.data(), kBytes);
    return buffer;
  }
  static float first(const Ref<Buffer>& buffer) {
    float value;
    std::memcpy(&value, buffer->host(), sizeof value);
    return value;
  }
  static void copy(Stream& stream, const Ref<Buffer>& from, const Ref<Buffer>& to) {
    stream.copy(from, 0, to, 0, kBytes);
  }
  void negate(Stream& stream, const Ref<Buffer>& from, const Ref<Buffer>& to) {
    const OperandSpec floats = OperandSpec::contiguous({DType::f32, {kCount}});
    const Prepared prepared =
        device_.prepare_cached(Unary{UnaryKind::negative}, {&floats, 1}, {&floats, 1});
    ASSERT_TRUE(prepared) << prepared.reason;
    const View input{from, 0, floats}, output{to, 0, floats};
    stream.encode(prepared.kernel, {&input, 1}, {&output, 1}, {}, {});
  }
  /// Work on the stream that the gate holds up.
  Ref<Completion> held_copy(Stream& stream, const Ref<Buffer>& from, const Ref<Buffer>& to) {
    stream.wait_for(gate_);
    copy(stream, from, to);
    return stream.submit();
  }
  static ErrorCode error_of(const Ref<Completion>& end, std::chrono::nanoseconds timeout = 10s) {
    try {
      end->wait(timeout);
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "the work ended well";
    return ErrorCode::backend;
  }

  template <class Body>
  static void expect_lost(const Body& body) {
    try {
      body();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::device_lost) << error.what();
      EXPECT_THAT(error.what(), testing::HasSubstr("lost"));
    }
  }

  const Ref<Gate> gate_ = make_ref<Gate>();
  AsyncDevice device_{options()};
  const Ref<Stream> main_ = device_.default_stream();
};

TEST_F(AsyncDeviceTest, WorkKeepsMemoryButNoHandles) {
  Ref<Buffer> from = filled(3), to = filled(0);
  const Ref<Completion> end = held_copy(*main_, from, to);
  EXPECT_EQ(from->use_count(), 1);
  EXPECT_EQ(to->use_count(), 1);
  from = nullptr;
  EXPECT_EQ(device_.live_bytes(), 2 * kBytes);
  gate_->open();
  end->wait();
  EXPECT_EQ(device_.live_bytes(), kBytes);
  EXPECT_EQ(first(to), 3);
}

TEST_F(AsyncDeviceTest, KernelsKeepNoHandlesEither) {
  Ref<Buffer> from = filled(3);
  const Ref<Buffer> to = filled(0);
  main_->wait_for(gate_);
  negate(*main_, from, to);
  EXPECT_EQ(from->use_count(), 1);
  const Ref<Completion> end = main_->submit();
  from = nullptr;
  gate_->open();
  end->wait();
  EXPECT_EQ(first(to), -3);
}

TEST_F(AsyncDeviceTest, StreamsRunAtTheSameTime) {
  const Ref<Stream> other = device_.new_stream();
  const Ref<Buffer> a = filled(1), b = filled(2), c = filled(0), d = filled(0);
  const Ref<Completion> held = held_copy(*main_, a, c);
  copy(*other, b, d);
  other->submit()->wait();  // though the default stream's work was submitted before
  EXPECT_EQ(first(d), 2);
  EXPECT_FALSE(held->done());
  gate_->open();
  held->wait();
  EXPECT_EQ(first(c), 1);
}

TEST_F(AsyncDeviceTest, WaitingOrdersStreams) {
  const Ref<Stream> other = device_.new_stream();
  const Ref<Buffer> a = filled(1), b = filled(2), c = filled(3);
  const Ref<Completion> held = held_copy(*main_, a, b);
  other->wait_for(held);
  copy(*other, b, c);
  const Ref<Completion> end = other->submit();
  EXPECT_FALSE(end->done());
  gate_->open();
  end->wait();
  EXPECT_EQ(first(c), 1);
}

TEST_F(AsyncDeviceTest, NothingIsPoisonedWhileAnotherStreamReadsIt) {
  const Ref<Stream> other = device_.new_stream();
  const Ref<Buffer> read = filled(1), to = filled(0), next = filled(2);
  const Ref<Completion> reader = held_copy(*main_, read, to);
  other->wait_for(reader);
  copy(*other, next, read);
  const Ref<Completion> writer = other->submit();
  EXPECT_EQ(first(read), 1);
  gate_->open();
  writer->wait();
  EXPECT_EQ(first(to), 1);
  EXPECT_EQ(first(read), 2);
}

TEST_F(AsyncDeviceTest, AWriteBehindAWaitIsPoisonedOnceTheWaitIsOver) {
  const Ref<Buffer> from = filled(1), to = filled(5);
  main_->wait_for(gate_);
  negate(*main_, from, to);
  device_.hang_at(1);
  const Ref<Completion> end = main_->submit();
  EXPECT_EQ(first(to), 5);  // whatever the gate stands for may be reading it
  gate_->open();
  device_.wait_for_hang();
  EXPECT_TRUE(std::isnan(first(to)));
  device_.end_hang();
  EXPECT_EQ(error_of(end), ErrorCode::device_lost);
}

TEST_F(AsyncDeviceTest, WhatWillBeWrittenIsPoisonedAtSubmission) {
  const Ref<Buffer> from = filled(1), to = filled(5);
  device_.hang_at(1);
  negate(*main_, from, to);
  EXPECT_EQ(first(to), 5);
  const Ref<Completion> end = main_->submit();
  EXPECT_TRUE(std::isnan(first(to)));
  device_.end_hang();
  EXPECT_EQ(error_of(end), ErrorCode::device_lost);
}

TEST_F(AsyncDeviceTest, ALossFailsWhatIsPendingOnEveryStream) {
  const Ref<Stream> other = device_.new_stream();
  Ref<Buffer> a = filled(1), b = filled(2);
  const Ref<Buffer> c = filled(3);
  const Ref<Completion> pending = held_copy(*other, a, c);
  device_.hang_at(1);
  negate(*main_, a, b);
  const Ref<Completion> hung = main_->submit();
  device_.wait_for_hang();
  EXPECT_EQ(error_of(hung, 50ms), ErrorCode::timeout);
  EXPECT_EQ(error_of(pending), ErrorCode::device_lost);
  EXPECT_EQ(device_.generation(), 1u);
  EXPECT_TRUE(c->is_lost());
  expect_lost([&] { copy(*other, b, c); });
  b = nullptr;
  EXPECT_EQ(device_.quarantined_bytes(), kBytes);
  EXPECT_EQ(device_.live_bytes(), 3 * kBytes);
  const Ref<Buffer> d = filled(4), e = filled(5);  // what is new works while the old still hangs
  for (const Ref<Stream>& stream : {main_, other}) {
    negate(*stream, d, e);
    stream->submit()->wait();
  }
  EXPECT_EQ(first(e), -4);
  gate_->open();
  device_.end_hang();
  EXPECT_EQ(device_.quarantined_bytes(), 0u);
  EXPECT_EQ(device_.live_bytes(), 4 * kBytes);
  expect_lost([&] { copy(*other, a, c); });
  EXPECT_EQ(device_.generation(), 1u);
}

TEST_F(AsyncDeviceTest, WhatWasMadeBeforeALossIsGone) {
  const OperandSpec floats = OperandSpec::contiguous({DType::f32, {kCount}});
  const auto prepare = [&] {
    return device_.prepare_cached(Unary{UnaryKind::negative}, {&floats, 1}, {&floats, 1}).kernel;
  };
  const auto old_kernel = prepare();
  EXPECT_EQ(prepare(), old_kernel);
  const Ref<Buffer> old = filled(1);
  const std::unique_ptr<BindingTable> old_table = device_.make_binding_table(1);
  const std::unique_ptr<Recording> old_recording = device_.record({});
  copy(*main_, old, old);
  device_.lose();
  expect_lost([&] { main_->submit(); });  // what it was to do was added before
  expect_lost([&] { old->check_alive(); });
  expect_lost([&] { old->wait_for_writes(); });
  expect_lost([&] { old->wait_for_uses(); });
  const Ref<Buffer> a = filled(1), b = filled(2);
  const View input{a, 0, floats}, output{b, 0, floats};
  expect_lost([&] { main_->encode(old_kernel, {&input, 1}, {&output, 1}, {}, {}); });
  expect_lost([&] { old_table->set(0, a, 0, kBytes); });
  expect_lost([&] { main_->replay(*old_recording, *device_.make_binding_table(1)); });
  expect_lost([&] { main_->replay(*device_.record({}), *old_table); });
  EXPECT_NE(prepare(), old_kernel);
  negate(*main_, a, b);
  main_->submit()->wait();
  EXPECT_EQ(first(b), -1);
}

/// Copies and kernels on random streams, ordered by what the buffers remember, do what they would
/// do one after the other, poison or not.
TEST_F(AsyncDeviceTest, RandomWorkOverSeveralStreams) {
  std::mt19937 random(5);
  std::vector<Ref<Stream>> streams = {main_};
  for (int i = 0; i < 3; ++i) streams.push_back(device_.new_stream());
  std::vector<Ref<Buffer>> buffers;
  std::vector<float> expected;
  for (int i = 0; i < 6; ++i) {
    expected.push_back(static_cast<float>(i + 1));
    buffers.push_back(filled(expected.back()));
  }
  for (int step = 0; step < 2000; ++step) {
    Stream& stream = *streams[random() % streams.size()];
    const std::size_t from = random() % buffers.size(), to = random() % buffers.size();
    if (from == to) continue;
    if (const Ref<Completion> write = buffers[from]->last_write()) stream.wait_for(write);
    for (const Ref<Completion>& use : buffers[to]->last_uses()) stream.wait_for(use);
    const bool negated = random() % 2 == 0;
    negated ? negate(stream, buffers[from], buffers[to]) : copy(stream, buffers[from], buffers[to]);
    expected[to] = negated ? -expected[from] : expected[from];
    const Ref<Completion> end = stream.submit();
    buffers[from]->note_read(end);
    buffers[to]->note_write(end);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers[i]->wait_for_writes();
    EXPECT_EQ(first(buffers[i]), expected[i]);
  }
}

TEST_F(AsyncDeviceTest, AnErrorTravelsFromStreamToStream) {
  const Ref<Stream> other = device_.new_stream();
  const Ref<Buffer> a = filled(1), b = filled(2), c = filled(3);
  const Ref<Completion> failing = held_copy(*main_, a, b);
  other->wait_for(failing);
  copy(*other, b, c);
  const Ref<Completion> dependent = other->submit();
  gate_->open(ErrorCode::io);
  EXPECT_EQ(error_of(failing), ErrorCode::io);
  EXPECT_EQ(error_of(dependent), ErrorCode::io);
  EXPECT_EQ(first(c), 3);
}

TEST_F(AsyncDeviceTest, ADroppedStreamLeavesItsWorkToRun) {
  const Ref<Buffer> a = filled(1), b = filled(0);
  Ref<Stream> other = device_.new_stream();
  const Ref<Completion> end = held_copy(*other, a, b);
  other = nullptr;
  gate_->open();
  end->wait();
  EXPECT_EQ(first(b), 1);
  for (int i = 0; i < 300; ++i) {  // their threads end, too
    const Ref<Stream> brief = device_.new_stream();
    copy(*brief, a, b);
    brief->submit()->wait();
  }
}

TEST_F(AsyncDeviceTest, WhatAThreadAddsItAloneSubmits) {
  const Ref<Buffer> a = filled(1), b = filled(0);
  copy(*main_, a, b);
  std::thread([&] { main_->submit()->wait(); }).join();
  EXPECT_EQ(device_.counts().copies, 0u);
  main_->submit()->wait();
  EXPECT_EQ(device_.counts().copies, 1u);
}

TEST_F(AsyncDeviceTest, ACallThatThrowsDropsWhatItsThreadAdded) {
  const Ref<Buffer> a = filled(1), b = filled(0);
  copy(*main_, a, b);
  device_.fail_call(1);
  EXPECT_THROW(copy(*main_, a, b), Error);
  main_->submit()->wait();
  EXPECT_EQ(device_.counts().copies, 0u);
  EXPECT_EQ(first(b), 0);
}

TEST_F(AsyncDeviceTest, TheMemoryLimitCountsWhatWorkInFlightUses) {
  AsyncOptions limited = options();
  limited.name = "small";
  limited.memory_limit = 2 * kBytes;
  AsyncDevice device(limited);
  const Ref<Buffer> to = device.allocate(kBytes);
  Ref<Buffer> from = device.allocate(kBytes);
  const auto expect_full = [&] {
    try {
      device.allocate(8);
      ADD_FAILURE() << "there was room";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
      EXPECT_STREQ(error.what(), "small: no memory for 8 bytes: 2048 of 2048 are taken");
    }
  };
  expect_full();
  const Ref<Completion> end = held_copy(*device.default_stream(), from, to);
  from = nullptr;
  expect_full();
  gate_->open();
  end->wait();
  EXPECT_EQ(device.allocate(kBytes)->size(), kBytes);
  EXPECT_THROW(device.allocate(~std::size_t{0}), Error);
  EXPECT_EQ(device.live_bytes(), kBytes);
}

TEST(Streams, ADeviceWithOneQueueGivesItsDefaultStream) {
  TestDevice device("one queue");
  EXPECT_EQ(device.new_stream(), device.default_stream());
}

TEST(Streams, TheCpuMakesNewOnes) {
  const Ref<Stream> stream = cpu_device().new_stream();
  EXPECT_NE(stream, cpu_device().default_stream());
  EXPECT_NE(stream, cpu_device().new_stream());
  const Ref<Buffer> from = cpu_device().allocate(1), to = cpu_device().allocate(1);
  *from->host() = std::byte{7};
  stream->copy(from, 0, to, 0, 1);
  stream->submit()->wait();
  EXPECT_EQ(*to->host(), std::byte{7});
}

}  // namespace
}  // namespace heddle::test

#include "heddle/completion.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "heddle/buffer.h"

namespace heddle {
namespace {

/// Work that ends when it is told to, and counts who waited.
class Scripted : public Completion {
 public:
  explicit Scripted(bool ended = false, bool fails = false) : ended_(ended), fails_(fails) {}
  bool done() const noexcept override { return ended_; }
  void wait(std::chrono::nanoseconds timeout) override {
    ++waits;
    last_timeout = timeout;
    if (fails_) fail(ErrorCode::backend, "scripted failure");
  }
  int waits = 0;
  std::chrono::nanoseconds last_timeout{0};

 private:
  bool ended_, fails_;
};

Device& no_device() {
  // Buffers only pass the reference on; nothing here looks behind it.
  static std::max_align_t storage;
  return reinterpret_cast<Device&>(storage);
}

TEST(Completion, CompletedIsDone) {
  const Ref<Completion> done = completed();
  EXPECT_TRUE(done->done());
  done->wait();
  done->wait(std::chrono::nanoseconds(0));
}

TEST(Completion, WaitUsesTheTimeoutThatIsSet) {
  const Ref<Scripted> work = make_ref<Scripted>();
  static_cast<Completion&>(*work).wait();
  EXPECT_GT(work->last_timeout.count(), 0);
}

TEST(Buffer, ANewOneWaitsForNothing) {
  Buffer& buffer = *new Buffer(no_device(), 8, nullptr);
  const Ref<Buffer> handle(&buffer);
  EXPECT_FALSE(buffer.last_write());
  EXPECT_TRUE(buffer.last_uses().empty());
  buffer.wait_for_writes();
  buffer.wait_for_uses();
}

TEST(Buffer, ReadersWaitForTheWriteAndWritersForReadersToo) {
  const Ref<Buffer> buffer = make_ref<Buffer>(no_device(), std::size_t{8}, nullptr);
  const Ref<Scripted> write = make_ref<Scripted>();
  const Ref<Scripted> read = make_ref<Scripted>();
  buffer->note_write(write);
  buffer->note_read(read);
  buffer->wait_for_writes();
  EXPECT_EQ(write->waits, 1);
  EXPECT_EQ(read->waits, 0);
  buffer->wait_for_uses();
  EXPECT_EQ(write->waits, 2);
  EXPECT_EQ(read->waits, 1);
}

TEST(Buffer, AWriteReplacesWhatCameBefore) {
  const Ref<Buffer> buffer = make_ref<Buffer>(no_device(), std::size_t{8}, nullptr);
  const Ref<Scripted> first = make_ref<Scripted>();
  const Ref<Scripted> second = make_ref<Scripted>();
  buffer->note_write(first);
  buffer->note_read(make_ref<Scripted>());
  buffer->note_write(second);
  ASSERT_EQ(buffer->last_uses().size(), 1u);
  EXPECT_TRUE(buffer->last_write() == Ref<Completion>(second));
  EXPECT_EQ(first->use_count(), 1);
}

TEST(Buffer, ReadsThatEndedAreForgottenAndAFailedWriteIsNot) {
  const Ref<Buffer> buffer = make_ref<Buffer>(no_device(), std::size_t{8}, nullptr);
  buffer->note_write(make_ref<Scripted>(true, true));
  for (int i = 0; i < 1000; ++i) buffer->note_read(make_ref<Scripted>(true));
  EXPECT_EQ(buffer->last_uses().size(), 1u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(buffer->wait_for_writes(), Error);
    EXPECT_THROW(buffer->wait_for_uses(), Error);
  }
}

}  // namespace
}  // namespace heddle

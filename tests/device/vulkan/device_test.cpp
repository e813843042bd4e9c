// The Vulkan device: its memory, streams and recordings.
#include "device/vulkan/device.h"

#include <cstring>
#include <numeric>
#include <thread>

#include "base/settings.h"
#include "device/vulkan/vulkan_device.h"
#include "heddle/array.h"
#include "heddle/memory.h"
#include "heddle/ops.h"
#include "support/conformance.h"

namespace heddle::test {
namespace {

// ---- Small programs on views

const TensorSpec kFloats{DType::f32, {256}};
constexpr std::size_t kBytes = 1024;

Ref<Buffer> floats(Device& device, float first) {
  std::vector<float> values(256);
  std::iota(values.begin(), values.end(), first);
  const Ref<Buffer> host = device.allocate(kBytes, MemoryKind::host_visible);
  std::memcpy(host->host(), values.data(), kBytes);
  const Ref<Buffer> local = device.allocate(kBytes);
  device.default_stream()->copy(host, 0, local, 0, kBytes);
  device.default_stream()->submit()->wait();
  return local;
}

std::vector<float> read(Device& device, const Ref<Buffer>& buffer) {
  const Ref<Buffer> host = device.allocate(kBytes, MemoryKind::host_visible);
  device.default_stream()->copy(buffer, 0, host, 0, kBytes);
  device.default_stream()->submit()->wait();
  std::vector<float> values(256);
  std::memcpy(values.data(), host->host(), kBytes);
  return values;
}

View view(const Ref<Buffer>& buffer) {
  return {buffer, 0, OperandSpec::contiguous(kFloats)};
}

std::shared_ptr<const Kernel> adder(Device& device) {
  const OperandSpec operand = OperandSpec::contiguous(kFloats);
  const OperandSpec both[] = {operand, operand};
  const Prepared prepared = device.prepare(Binary{BinaryKind::add}, both, {&operand, 1});
  EXPECT_TRUE(prepared) << prepared.reason;
  return prepared.kernel;
}

void add(Stream& stream, const std::shared_ptr<const Kernel>& kernel, const Ref<Buffer>& a,
         const Ref<Buffer>& b, const Ref<Buffer>& sum) {
  const View inputs[] = {view(a), view(b)}, outputs[] = {view(sum)};
  stream.encode(kernel, inputs, outputs, {}, {});
}

/// The device as the machine has it, and as discrete ones are: its memory hidden from the host.
class VulkanMemory : public Vulkan, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    Vulkan::SetUp();
    if (IsSkipped()) return;
    device_ = own_vulkan_device({.hides_memory = GetParam()});
  }
  Device& device() { return *device_; }

 private:
  std::unique_ptr<Device> device_;
};
INSTANTIATE_TEST_SUITE_P(Memory, VulkanMemory, ::testing::Bool(),
                         [](const auto& memory) { return memory.param ? "Hidden" : "AsItIs"; });

TEST_P(VulkanMemory, HostSeesWhatItShould) {
  EXPECT_NE(device().allocate(100, MemoryKind::host_visible)->host(), nullptr);
  EXPECT_EQ(device().allocate(100)->host() != nullptr, device().shares_host_memory());
  EXPECT_EQ(device().allocate(0)->size(), 0u);
}

TEST_P(VulkanMemory, RefusesWhatIsTooLarge) {
  try {
    device().allocate(std::size_t{1} << 44);
    FAIL() << "allocated 16 TiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_NE(std::string(error.what()).find(device().name()), std::string::npos) << error.what();
  }
}

TEST_P(VulkanMemory, PoolCounts) {
  const std::size_t before = get_active_memory(device());
  {
    const Ref<Buffer> buffer = device().allocate(1 << 20);
    EXPECT_GE(get_active_memory(device()), before + (1 << 20));
  }
  EXPECT_EQ(get_active_memory(device()), before);
}

TEST_P(VulkanMemory, CopiesBetweenItAndTheHost) {
  std::vector<float> values(256);
  std::iota(values.begin(), values.end(), 7.0f);
  const Ref<Buffer> from = allocate_host(kBytes), back = allocate_host(kBytes);
  std::memcpy(from->host(), values.data(), kBytes);
  const Ref<Buffer> local = device().allocate(kBytes);
  const Ref<Stream> stream = device().default_stream();
  stream->copy(from, 0, local, 0, kBytes);
  stream->copy(local, 4, back, 8, kBytes - 8);
  stream->submit()->wait();
  EXPECT_EQ(std::memcmp(back->host() + 8, from->host() + 4, kBytes - 8), 0);
}

TEST_P(VulkanMemory, RefusesCopiesPastTheEnd) {
  const Ref<Buffer> a = device().allocate(64), b = device().allocate(32);
  EXPECT_THROW(device().default_stream()->copy(a, 0, b, 0, 33), Error);
  EXPECT_THROW(device().default_stream()->copy(a, 65, b, 0, 0), Error);
  EXPECT_THROW(device().default_stream()->copy(b, 32, a, 0, ~std::size_t{0}), Error);
}

TEST_P(VulkanMemory, ImportsHostMemoryOrSaysNo) {
  constexpr std::size_t kPage = 4096;
  auto owner = std::shared_ptr<std::byte>(
      static_cast<std::byte*>(std::aligned_alloc(kPage, 2 * kPage)), std::free);
  std::memset(owner.get(), 0x3f, 2 * kPage);
  const Ref<Buffer> imported = device().import_host({owner.get() + 64, kBytes}, owner);
  if (!device().shares_host_memory()) {
    EXPECT_EQ(imported, nullptr);
    return;
  }
  ASSERT_NE(imported, nullptr);
  EXPECT_EQ(imported->host(), owner.get() + 64);
  const std::vector<float> values = read(device(), imported);
  EXPECT_EQ(std::memcmp(values.data(), owner.get() + 64, kBytes), 0);
}

TEST_P(VulkanMemory, ArraysLiveThere) {
  const DeviceScope scope(device());
  const Array a = arange(0, 1000, 1, DType::f32);
  const Array b = (a + a) * Array(0.5f);
  std::vector<float> want(1000);
  std::iota(want.begin(), want.end(), 0.0f);
  EXPECT_EQ(b.to_vector<float>(), want);
}

// ---- Streams

TEST_F(Vulkan, WorkOfAStreamIsInOrder) {
  const auto kernel = adder(device());
  const Ref<Buffer> one = floats(device(), 1), sum = floats(device(), 0);
  const Ref<Stream> stream = device().default_stream();
  // Each needs the one before: within a submission, and between submissions.
  for (int i = 0; i < 40; ++i) {
    add(*stream, kernel, sum, one, sum);
    if (i % 10 == 9) stream->submit();
  }
  const std::vector<float> values = read(device(), sum);
  for (int i = 0; i < 256; ++i) {
    ASSERT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(i + 40 * (i + 1)));
  }
}

TEST_F(Vulkan, StreamsWaitForEachOther) {
  const auto kernel = adder(device());
  const Ref<Stream> a = device().new_stream(), b = device().new_stream();
  const Ref<Buffer> one = floats(device(), 1), sum = floats(device(), 0);
  for (int i = 0; i < 20; ++i) {
    Stream& stream = i % 2 == 0 ? *a : *b;
    Stream& other = i % 2 == 0 ? *b : *a;
    add(stream, kernel, sum, one, sum);
    other.wait_for(stream.submit());
  }
  const Ref<Stream> reader = device().default_stream();
  reader->wait_for(a->submit());
  reader->wait_for(b->submit());
  const std::vector<float> values = read(device(), sum);
  EXPECT_EQ(values[5], 5 + 20 * 6);
}

TEST_F(Vulkan, ASubmissionThatOnlyWaitsEndsNoSooner) {
  const auto kernel = adder(device());
  const Ref<Buffer> one = floats(device(), 1), sum = floats(device(), 0);
  const Ref<Stream> works = device().new_stream(), waits = device().new_stream();
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 20; ++i) add(*works, kernel, sum, one, sum);
    const Ref<Completion> work = works->submit();
    waits->wait_for(work);
    const Ref<Completion> waited = waits->submit();
    if (waited->done()) {
      EXPECT_TRUE(work->done());
    }
    waited->wait();
    EXPECT_TRUE(work->done());
  }
}

TEST_F(Vulkan, NothingToDoIsDone) {
  const Ref<Completion> end = device().new_stream()->submit();
  EXPECT_TRUE(end->done());
  end->wait();
}

TEST_F(Vulkan, BarriersOnlyWhereBytesConflict) {
  const auto kernel = adder(device());
  const Ref<Buffer> a = floats(device(), 1), b = floats(device(), 2);
  const Ref<Buffer> c = floats(device(), 0), d = floats(device(), 0);
  const Ref<Stream> stream = device().new_stream();
  const auto barriers_of = [&](const auto& body) {
    const std::uint64_t before = device().counts().barriers;
    body();
    stream->submit()->wait();
    return device().counts().barriers - before;
  };
  const std::uint64_t first = 1;  // after what the stream did before
  EXPECT_EQ(barriers_of([&] {
              add(*stream, kernel, a, b, c);
              add(*stream, kernel, a, b, d);  // reads the same, writes elsewhere
            }),
            first);
  EXPECT_EQ(barriers_of([&] {
              add(*stream, kernel, a, b, c);
              add(*stream, kernel, c, b, d);  // read after write
              add(*stream, kernel, a, b, c);  // write after read
              add(*stream, kernel, a, b, c);  // write after write
            }),
            first + 3);
}

TEST_F(Vulkan, ThreadsDoNotSeeEachOthersOpenWork) {
  const auto kernel = adder(device());
  const Ref<Stream> stream = device().default_stream();
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(4);
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      const Ref<Buffer> mine = floats(device(), static_cast<float>(t));
      for (int i = 0; i < 20; ++i) {
        add(*stream, kernel, mine, mine, mine);
        if (i % 3 == 0) stream->submit();
      }
      results[t] = read(device(), mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < results.size(); ++t) {
    EXPECT_EQ(results[t][3], (3.0f + static_cast<float>(t)) * 1048576.0f);
  }
}

TEST_F(Vulkan, ErrorsOfWhatItWaitedForAreItsOwn) {
  class Failing final : public Completion {
    bool done() const noexcept override { return true; }
    void wait(std::chrono::nanoseconds) override {
      throw Error(ErrorCode::io, "the disk was eaten");
    }
  };
  const auto kernel = adder(device());
  const Ref<Buffer> a = floats(device(), 1), sum = floats(device(), 0);
  const Ref<Stream> first = device().new_stream(), second = device().new_stream();
  first->wait_for(make_ref<Failing>());
  add(*first, kernel, a, a, sum);
  const Ref<Completion> end = first->submit();
  second->wait_for(end);
  add(*second, kernel, a, a, sum);
  const Ref<Completion> later = second->submit();
  for (const auto& failed : {end, later, end}) {
    try {
      failed->wait();
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
      EXPECT_STREQ(error.what(), "the disk was eaten");
    }
  }
  add(*first, kernel, a, a, sum);  // work that needs none of it goes on
  first->submit()->wait();
}

// ---- Recordings

struct Recorded {
  std::unique_ptr<Recording> recording;
  std::unique_ptr<BindingTable> table;
};

RecordedLaunch launch(const std::shared_ptr<const Kernel>& kernel, std::uint32_t a, std::uint32_t b,
                      std::uint32_t sum) {
  return {.kernel = kernel,
          .inputs = {{a, 0, kBytes}, {b, 0, kBytes}},
          .outputs = {{sum, 0, kBytes}},
          .workspace = {},
          .extent = {},
          .label = {0, Binary{BinaryKind::add}, {}},
          .cost = {}};
}

TEST_P(VulkanMemory, RecordingsFollowTheirBindings) {
  const auto kernel = adder(device());
  const RecordedStep steps[] = {RecordedBarrier{}, launch(kernel, 0, 1, 2), RecordedBarrier{},
                                launch(kernel, 2, 1, 3)};
  const auto recording = device().record(steps);
  const auto table = device().make_binding_table(4);
  const Ref<Buffer> x = floats(device(), 0), y = floats(device(), 100), one = floats(device(), 1);
  const Ref<Buffer> between = device().allocate(kBytes), out = device().allocate(kBytes);
  table->set(1, one, 0, kBytes);
  table->set(2, between, 0, kBytes);
  table->set(3, out, 0, kBytes);
  const Ref<Stream> stream = device().default_stream();
  const DeviceCounts before = device().counts();
  for (const Ref<Buffer>& input : {x, y, x}) {
    table->set(0, input, 0, kBytes);
    stream->replay(*recording, *table);
    stream->submit()->wait();
    EXPECT_EQ(read(device(), out)[3], (input == x ? 3.0f : 103.0f) + 2 * 4.0f);
  }
  const DeviceCounts after = device().counts();
  EXPECT_EQ(after.replayed - before.replayed, 3u);
  if (settings().vulkan_recordings) {
    EXPECT_EQ(after.recorded - before.recorded, 1u);
  }
}

TEST_P(VulkanMemory, RecordedCopiesReachTheHostAndGrowWithTheirSlots) {
  const RecordedStep steps[] = {RecordedBarrier{},
                                RecordedCopy{{0, 0, kWholeSlot}, {1, 0, kWholeSlot}},
                                RecordedBarrier{}, RecordedCopy{{1, 4, 400}, {2, 8, 400}}};
  const auto recording = device().record(steps);
  const auto table = device().make_binding_table(3);
  const Ref<Stream> stream = device().default_stream();
  for (const std::size_t bytes : {kBytes, std::size_t{77'777}, kBytes}) {
    const Ref<Buffer> host = allocate_host(bytes), back = allocate_host(512);
    for (std::size_t i = 0; i < bytes; ++i) host->host()[i] = static_cast<std::byte>(i * 7 + bytes);
    const Ref<Buffer> local = device().allocate(bytes);
    table->set(0, host, 0, bytes);
    table->set(1, local, 0, bytes);
    table->set(2, back, 64, 448);
    stream->replay(*recording, *table);
    stream->submit()->wait();
    EXPECT_EQ(std::memcmp(back->host() + 72, host->host() + 4, 400), 0) << bytes;
    const Ref<Buffer> all = allocate_host(bytes);
    stream->copy(local, 0, all, 0, bytes);
    stream->submit()->wait();
    EXPECT_EQ(std::memcmp(all->host(), host->host(), bytes), 0) << bytes;
  }
}

TEST_F(Vulkan, RecordingsSayWhatIsNotBound) {
  const RecordedStep steps[] = {RecordedCopy{{0, 0, 4}, {1, 0, 4}}};
  const auto recording = device().record(steps);
  const auto table = device().make_binding_table(2);
  table->set(0, device().allocate(64), 0, 64);
  const Ref<Stream> stream = device().default_stream();
  EXPECT_THROW(stream->replay(*recording, *table), Error);
  EXPECT_THROW(table->set(2, device().allocate(64), 0, 64), Error);
  EXPECT_THROW(table->set(1, device().allocate(64), 1, 64), Error);
}

// ---- Limits

TEST_F(Vulkan, FoldsGridsThatAreTooLarge) {
  const auto small = own_vulkan_device({.max_groups = 5});
  const OperandSpec operand = OperandSpec::contiguous({DType::f32, {60'000}});
  const OperandSpec both[] = {operand, operand};
  const Prepared fits = small->prepare(Binary{BinaryKind::add}, both, {&operand, 1});
  ASSERT_TRUE(fits) << fits.reason;
  Random random(2);
  expect_conformance(*small, Binary{BinaryKind::multiply},
                     {random_tensor(operand, random), random_tensor(operand, random)});

  const auto smaller = own_vulkan_device({.max_groups = 1});
  const Prepared refused = smaller->prepare(Binary{BinaryKind::add}, both, {&operand, 1});
  EXPECT_FALSE(refused);
  EXPECT_NE(refused.reason.find("workgroups"), std::string::npos) << refused.reason;
}

TEST_F(Vulkan, IsFoundByName) {
  EXPECT_EQ(&find_device("vulkan"), &find_device("vulkan:0"));
  const DeviceInfo info = device().describe();
  EXPECT_FALSE(info.hardware.empty());
  EXPECT_FALSE(info.driver.empty());
  EXPECT_GT(info.memory, 0u);
}

TEST(NoVulkan, IsNeverADefault) {
  for (const Device* device : default_devices()) {
    EXPECT_FALSE(device->name().starts_with("vulkan")) << device->name();
  }
}

}  // namespace
}  // namespace heddle::test

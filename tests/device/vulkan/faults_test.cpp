// Every call of the driver that can fail, made to fail: the error, its text, that nothing waits
// beyond its bound, and that the next run works.
#include "device/vulkan/faults.h"

#include <chrono>
#include <cstring>

#include "device/vulkan/vulkan_device.h"
#include "heddle/array.h"
#include "heddle/ops.h"
#include "support/conformance.h"

namespace heddle::test {
namespace {

constexpr std::size_t kBytes = 256;

OperandSpec floats() {
  return OperandSpec::contiguous({DType::f32, {64}});
}

Ref<Buffer> filled(Device& device, float value) {
  const Ref<Buffer> host = device.allocate(kBytes, MemoryKind::host_visible);
  for (std::size_t i = 0; i < 64; ++i) std::memcpy(host->host() + 4 * i, &value, 4);
  const Ref<Buffer> local = device.allocate(kBytes);
  device.default_stream()->copy(host, 0, local, 0, kBytes);
  device.default_stream()->submit()->wait();
  return local;
}

float first_of(Device& device, const Ref<Buffer>& buffer) {
  const Ref<Buffer> host = device.allocate(kBytes, MemoryKind::host_visible);
  device.default_stream()->copy(buffer, 0, host, 0, kBytes);
  device.default_stream()->submit()->wait();
  float value;
  std::memcpy(&value, host->host(), 4);
  return value;
}

/// Something of everything that calls the driver; gives 7.
float use(Device& device) {
  const OperandSpec operand = floats();
  const OperandSpec both[] = {operand, operand};
  const Prepared add = device.prepare(Binary{BinaryKind::add}, both, {&operand, 1});
  if (!add) throw Error(ErrorCode::unsupported, add.reason);
  const Ref<Buffer> one = filled(device, 1), two = filled(device, 2);
  const Ref<Buffer> three = device.allocate(kBytes), seven = device.allocate(kBytes);
  const View inputs[] = {{one, 0, operand}, {two, 0, operand}}, output{three, 0, operand};
  const Ref<Stream> stream = device.new_stream();
  stream->encode(add.kernel, inputs, {&output, 1}, {}, {});
  const Ref<Completion> made = stream->submit();

  // 3 + 1, and then 3 more, from a recording that waits for that.
  const auto launch = [&](std::uint32_t a, std::uint32_t b, std::uint32_t sum) {
    return RecordedLaunch{.kernel = add.kernel,
                          .inputs = {{a, 0, kBytes}, {b, 0, kBytes}},
                          .outputs = {{sum, 0, kBytes}},
                          .workspace = {},
                          .extent = {},
                          .label = {7, Binary{BinaryKind::add}, {}},
                          .cost = {}};
  };
  const RecordedStep steps[] = {RecordedBarrier{}, launch(0, 1, 2), RecordedBarrier{},
                                launch(2, 0, 2)};
  const auto recording = device.record(steps);
  const auto table = device.make_binding_table(3);
  table->set(0, three, 0, kBytes);
  table->set(1, one, 0, kBytes);
  table->set(2, seven, 0, kBytes);
  const Ref<Stream> other = device.default_stream();
  other->wait_for(made);
  other->replay(*recording, *table);
  other->submit()->wait();
  EXPECT_TRUE(made->done());
  return first_of(device, seven);
}

using Clock = std::chrono::steady_clock;
// Nothing here runs for long, and an injected timeout does not wait.
constexpr std::chrono::seconds kBound{5};

class VulkanFaults : public Vulkan {
 protected:
  void TearDown() override { vulkan::end_faults(); }
};

/// Uses a device whose `n`th call at a site fails; returns whether there were so many.
bool survives(Device& device, const vulkan::FaultSite& site, std::uint64_t n) {
  SCOPED_TRACE(std::string(site.name) + ":" + std::to_string(n));
  vulkan::inject_fault(site.name, n);
  const auto begin = Clock::now();
  std::string error;
  try {
    EXPECT_EQ(use(device), 7);  // some have another way: without an import, say
  } catch (const Error& caught) {
    error = caught.what();
    EXPECT_NE(caught.code(), ErrorCode::invalid_argument) << error;
    EXPECT_NE(error.find("vulkan:test"), std::string::npos) << error;
  }
  EXPECT_LT(Clock::now() - begin, kBound);
  const bool happened = vulkan::end_faults();
  if (!happened) {
    EXPECT_EQ(error, "");
  }
  EXPECT_EQ(use(device), 7) << "after " << error;
  EXPECT_LT(Clock::now() - begin, 2 * kBound);
  return happened;
}

TEST_F(VulkanFaults, EveryCallMayFail) {
  for (const vulkan::FaultSite& site : vulkan::fault_sites()) {
    const auto device = own_vulkan_device({.hides_memory = true});
    constexpr std::uint64_t kMost = 60;
    std::uint64_t n = 1;
    while (n < kMost && survives(*device, site, n)) ++n;
    EXPECT_LT(n, kMost) << site.name;
    const bool may_be_unused = site.name == "import" || site.name == "wait_timeout";
    EXPECT_TRUE(n > 1 || may_be_unused) << "no call at " << site.name;
  }
}

TEST_F(VulkanFaults, LosingTheDeviceFailsWhatLivedThereAndNothingElse) {
  const auto device = own_vulkan_device();
  const std::uint64_t before = device->generation();
  const Ref<Buffer> old = filled(*device, 3);
  vulkan::inject_fault("submit_lost");
  const Ref<Stream> stream = device->default_stream();
  stream->copy(old, 0, old, 128, 128);
  EXPECT_THROW(stream->submit(), Error);
  EXPECT_EQ(device->generation(), before + 1);
  EXPECT_TRUE(old->is_lost());
  try {
    first_of(*device, old);
    FAIL() << "read memory that is gone";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_lost) << error.what();
  }
  const Ref<Buffer> fresh = filled(*device, 4);
  EXPECT_FALSE(fresh->is_lost());
  EXPECT_EQ(first_of(*device, fresh), 4);
}

TEST_F(VulkanFaults, ATimeoutNamesTheLastOperations) {
  const auto device = own_vulkan_device();
  EXPECT_EQ(use(*device), 7);
  vulkan::inject_fault("wait_timeout", 3);  // the recording's
  try {
    use(*device);
    FAIL() << "no timeout";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    const std::string text = error.what();
    for (const char* part : {"vulkan:test", "waited for", "reached", "node 7: add"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
  EXPECT_EQ(use(*device), 7);
}

TEST_F(VulkanFaults, SomeoneWhoOnlyAsksLosesNothing) {
  const auto device = own_vulkan_device();
  const std::uint64_t before = device->generation();
  const Ref<Buffer> large = device->allocate(std::size_t{64} << 20);
  const Ref<Buffer> other = device->allocate(std::size_t{64} << 20);
  const Ref<Stream> stream = device->default_stream();
  stream->copy(large, 0, other, 0, large->size());
  const Ref<Completion> end = stream->submit();
  try {
    end->wait(std::chrono::nanoseconds(1));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
  }
  end->wait();
  EXPECT_EQ(device->generation(), before);
}

TEST_F(VulkanFaults, UnknownSitesAreRefusedWithAList) {
  try {
    vulkan::inject_fault("lunch");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("submit"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace heddle::test

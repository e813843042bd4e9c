// What --report says, of devices that count.
#include "cli/device_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/async_device.h"

namespace heddle::cli {
namespace {

using test::AsyncDevice;
using test::AsyncOptions;
using testing::HasSubstr;
using testing::StartsWith;

AsyncOptions without_attention() {
  AsyncOptions options;
  options.name = "gpu";
  options.hides_local = true;
  options.delay = std::chrono::microseconds(0);
  options.accepts = [](const Op& op) {
    return !std::holds_alternative<Attend>(op) && !std::holds_alternative<Attention>(op) &&
           !std::holds_alternative<Matmul>(op);
  };
  return options;
}

TEST(DeviceReport, CountsWhatHappenedSinceItBegan) {
  AsyncDevice device(without_attention());
  llm::ContextOptions options;
  options.n_ctx = 64;
  options.threads = 1;
  options.devices = {&device};
  options.gpu_layers = 2;
  llm::Context context(llm::Model::bundled(), options);
  EXPECT_THAT(devices_of(context), testing::ElementsAre(&cpu_device(), &device));

  const llm::SequenceId sequence = context.create();
  const std::vector<TokenId> token{5};
  context.step(sequence, token);
  const DeviceReport report(context);
  EXPECT_THAT(report.text(), StartsWith("gpu: 0 submissions, 0 recordings made, 0 replayed, 0 "
                                        "barriers, 0 copies of 0 B\n  0 dispatches\n"));
  for (int i = 0; i < 10; ++i) context.step(sequence, token);
  // Two layers whose attention is the CPU's: three splits a step on the device, and copies of keys
  // and values for it.
  const std::string text = report.text();
  EXPECT_THAT(text, StartsWith("gpu: 30 submissions, 0 recordings made, 30 replayed, "));
  EXPECT_THAT(text, HasSubstr(" dispatches: 80 linear, 40 contiguous, 40 rope_write_rows, "));
  EXPECT_THAT(text,
              testing::EndsWith("on the cpu though another device was asked for: 20 attend\n"));
}

TEST(DeviceReport, WithoutADeviceThereIsNothingToCount) {
  llm::ContextOptions options;
  options.n_ctx = 64;
  llm::Context context(llm::Model::bundled(), options);
  EXPECT_EQ(DeviceReport(context).text(), "no device but the cpu took part\n");
}

}  // namespace
}  // namespace heddle::cli

// The reference texts on a Vulkan device: whole, in part, and several times over.
#include <gtest/gtest.h>

#include "exec/plan.h"
#include "heddle/device.h"
#include "llm/engine_support.h"
#include "llm/stories.h"

namespace heddle::test {
namespace {

/// Enough to leave the prompt's plan for the decode's, and few enough for a driver that runs on the
/// CPU.
constexpr std::size_t kBeginning = 40;

class VulkanText : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_vulkan(); !why.empty()) {
      GTEST_SKIP() << "no Vulkan device: " << why;
    }
    device_ = &find_device("vulkan:0");
  }

  static llm::ContextOptions on(std::vector<Device*> devices, std::optional<std::int64_t> layers,
                                bool lazy = false) {
    llm::ContextOptions options = options_for({.lazy = lazy, .threads = 2, .chunk = 32});
    options.devices = std::move(devices);
    options.gpu_layers = layers;
    return options;
  }

  static std::string tell(const Story& story, const llm::ContextOptions& options,
                          std::size_t most) {
    llm::Context context(story.model, options);
    return story.model->tokenizer().decode(greedy(context, {story.prompt}, most)[0]);
  }

  void expect_beginning_at_every_division(const Story& story) const {
    const std::int64_t n_layer = story.model->config().n_layer;
    for (std::int64_t n = 0; n <= n_layer + 1; ++n) {
      const std::string text = tell(story, on({device_}, n), kBeginning);
      EXPECT_EQ(text, story.text.substr(0, text.size())) << n << " layers";
      EXPECT_GT(text.size(), kBeginning) << n;
    }
  }

  Device* device_ = nullptr;
};

TEST_F(VulkanText, TheWholeFable) {
  const Story story = fable();
  EXPECT_EQ(tell(story, on({device_}, {}), story.most), story.text);
}

TEST_F(VulkanText, TheWholeStory) {
  HEDDLE_SHARED_FILE(file, "models/stories260K.gguf");
  const Story story = stories260K();
  EXPECT_EQ(tell(story, on({device_}, {}), story.most), story.text);
}

TEST_F(VulkanText, TheFableAtEveryNumberOfLayers) {
  expect_beginning_at_every_division(fable());
}

TEST_F(VulkanText, TheStoryAtEveryNumberOfLayers) {
  HEDDLE_SHARED_FILE(file, "models/stories260K.gguf");
  expect_beginning_at_every_division(stories260K());
}

TEST_F(VulkanText, LazilyAndWithTheCpuBetween) {
  const Story story = fable();
  for (const auto& options : {on({device_}, {}, true), on({device_}, 2, true),
                              on({&cpu_device(), device_}, {}), on({device_, &cpu_device()}, {})}) {
    const std::string text = tell(story, options, kBeginning);
    EXPECT_EQ(text, story.text.substr(0, text.size()));
    EXPECT_GT(text.size(), kBeginning);
  }
}

TEST_F(VulkanText, EnginesShareAndBatchThere) {
  const Story story = fable();
  llm::EngineOptions options;
  options.context = on({device_}, {});
  options.n_parallel = 3;
  llm::Engine engine(story.model, options);
  const auto& tokenizer = story.model->tokenizer();
  std::vector<llm::Request> requests(5, greedily(story.prompt, 12));
  requests[1].prompt = tokenizer.encode("Once upon a time, a brave fox named Pip lived near");
  requests[3].prompt = tokenizer.encode("The bird");
  std::vector<std::string> alone;
  for (const llm::Request& request : requests) alone.push_back(hear(*engine.submit(request)).text);
  EXPECT_EQ(alone[0], story.text.substr(16, alone[0].size()));
  const auto embedding = engine.submit(llm::EmbeddingRequest{.tokens = requests[1].prompt});
  const auto tickets = engine.submit(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(hear(*tickets[i]).text, alone[i]);
  EXPECT_EQ(hear(*embedding).finish->embedding.size(), 128u);
  expect_at_rest(engine);
}

/// One submission a split and token, and nothing recorded once each plan has run.
TEST_F(VulkanText, ReplaysWhatItRecorded) {
  const Story story = fable();
  llm::Context context(story.model, on({device_}, {}));
  std::size_t splits = 0;
  for (const Split& split : context.plan_for(1).splits) splits += split.device == device_;
  const llm::SequenceId sequence = context.create();
  context.step(sequence, {&story.prompt[0], 1});
  const DeviceCounts before = device_->counts();
  for (int i = 0; i < 10; ++i) context.step(sequence, {&story.prompt[0], 1});
  const DeviceCounts after = device_->counts();
  EXPECT_EQ(after.recorded, before.recorded);
  EXPECT_EQ(after.replayed - before.replayed, 10 * splits);
}

}  // namespace
}  // namespace heddle::test

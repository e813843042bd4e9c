// Models on devices: which part goes where, the same text from every division, and what is refused
// before anything is loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/plan.h"
#include "llm/layer_devices.h"
#include "llm/memory_need.h"
#include "llm/stories.h"
#include "support/async_device.h"
#include "support/error_message.h"
#include "support/shared_files.h"

namespace heddle::test {
namespace {

using std::chrono::microseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

AsyncOptions quick(std::string name) {
  AsyncOptions options;
  options.name = std::move(name);
  options.hides_local = true;
  options.delay = microseconds(0);
  return options;
}

AsyncOptions with_memory(std::string name, std::size_t bytes) {
  AsyncOptions options = quick(std::move(name));
  options.memory_limit = bytes;
  return options;
}

/// For AsyncOptions::accepts: all but these.
template <class... Ops>
bool lacks(const Op& op) {
  return !(std::holds_alternative<Ops>(op) || ...);
}

std::string names(const std::vector<Device*>& devices) {
  std::string text;
  for (const Device* device : devices) (text += text.empty() ? "" : " ") += device->name();
  return text;
}

// ---- Who gets what

TEST(LayerDevices, LayersAreSpreadInProportionToMemory) {
  AsyncDevice small(with_memory("small", 1'000'000)), large(with_memory("large", 3'000'000)),
      unknown(quick("unknown"));
  const auto spread = [](std::int64_t count, const std::vector<Device*>& devices) {
    return names(llm::spread_layers(count, devices));
  };
  EXPECT_EQ(spread(8, {&small, &large}), "small small large large large large large large");
  EXPECT_EQ(spread(4, {&large, &small}), "large large large small");
  EXPECT_EQ(spread(1, {&small, &large}), "large");
  EXPECT_EQ(spread(5, {&small}), "small small small small small");
  EXPECT_EQ(spread(0, {&small, &large}), "");
  // Where one does not say what it has, all count alike.
  EXPECT_EQ(spread(4, {&small, &unknown}), "small small unknown unknown");
}

struct Division {
  std::optional<std::int64_t> gpu_layers;
  const char* expected;  // embedding, layers, output
};

TEST(LayerDevices, TheFirstLayersGoToTheDevicesAndAllIfThereAreFewer) {
  AsyncDevice a(quick("a")), b(quick("b"));
  llm::ModelConfig config;
  config.n_layer = 4;
  const auto divide = [&](std::vector<Device*> devices, std::optional<std::int64_t> gpu_layers) {
    llm::ContextOptions options;
    options.devices = std::move(devices);
    options.gpu_layers = gpu_layers;
    const llm::LayerDevices placed = llm::layer_devices(config, options);
    return names({placed.embedding}) + " | " + names(placed.layers) + " | " +
           names({placed.output});
  };
  for (const auto& [gpu_layers, expected] :
       {Division{std::nullopt, "a | a a b b | b"}, Division{0, "cpu | cpu cpu cpu cpu | cpu"},
        Division{1, "cpu | a cpu cpu cpu | cpu"}, Division{2, "cpu | a b cpu cpu | cpu"},
        Division{4, "cpu | a a b b | cpu"}, Division{5, "a | a a b b | b"},
        Division{99, "a | a a b b | b"}}) {
    EXPECT_EQ(divide({&a, &b}, gpu_layers), expected) << gpu_layers.value_or(-1);
  }
  EXPECT_EQ(divide({&a}, 3), "cpu | a a a cpu | cpu");
  EXPECT_EQ(divide({&a, &cpu_device()}, 5).substr(0, 5), "a | a");
  EXPECT_EQ(divide({}, 0), "cpu | cpu cpu cpu cpu | cpu");

  llm::ContextOptions nobody_asked;
  EXPECT_EQ(llm::layer_devices(config, nobody_asked).embedding, nullptr);
  EXPECT_THAT(llm::layer_devices(config, nobody_asked).layers, IsEmpty());
  EXPECT_THAT(message_of(ErrorCode::invalid_argument,
                         [&] {
                           divide({&a, &b, &a}, {});
                         }),
              HasSubstr("a is there twice"));
  EXPECT_THAT(message_of(ErrorCode::invalid_argument, [&] { divide({&a}, -1); }),
              HasSubstr("--gpu-layers -1"));
}

TEST(LayerDevices, MemoryLeftIsWhatIsNotActive) {
  AsyncDevice unknown(quick("unknown")), known(with_memory("known", 1000));
  EXPECT_EQ(llm::memory_left(unknown), std::nullopt);
  EXPECT_EQ(llm::memory_left(known), 1000u);
  const std::optional<std::uint64_t> host = llm::memory_left(cpu_device());
  ASSERT_TRUE(host.has_value());
  EXPECT_GT(*host, 0u);
}

// ---- The same text

llm::ContextOptions on(std::vector<Device*> devices,
                       std::optional<std::int64_t> gpu_layers = std::nullopt, bool lazy = false) {
  llm::ContextOptions options = options_for({.lazy = lazy, .threads = 2});
  options.devices = std::move(devices);
  options.gpu_layers = gpu_layers;
  return options;
}

/// Every device whose memory holds KV states of the plan, by the layer.
std::vector<std::string> kv_homes(const Plan& plan, std::int64_t n_layer) {
  std::vector<std::string> homes(static_cast<std::size_t>(n_layer));
  for (const Slot& slot : plan.slots) {
    if (slot.kind != SlotKind::state) continue;
    std::string& home = homes[std::stoul(slot.name.substr(2))];
    EXPECT_TRUE(home.empty() || home == slot.device->name()) << slot.name;
    home = slot.device->name();
  }
  return homes;
}

void expect_text_at_every_division(const Story& story, const std::vector<Device*>& devices) {
  const std::int64_t n_layer = story.model->config().n_layer;
  for (const bool lazy : {false, true}) {
    for (std::int64_t n = 0; n <= n_layer + 1; ++n) {
      llm::Context context(story.model, on(devices, n, lazy));
      const auto told = greedy(context, {story.prompt}, story.most);
      ASSERT_EQ(story.model->tokenizer().decode(told[0]), story.text)
          << n << " layers" << (lazy ? ", lazily" : "");
      EXPECT_THAT(context.host_ops(), IsEmpty());
    }
  }
}

TEST(OnDevices, TheFableAtEveryNumberOfLayers) {
  AsyncDevice device(quick("gpu"));
  expect_text_at_every_division(fable(), {&device});
}

TEST(OnDevices, TheFableOnTwoDevicesAtEveryNumberOfLayers) {
  AsyncDevice one(quick("one")), two(quick("two"));
  expect_text_at_every_division(fable(), {&one, &two});
}

TEST(OnDevices, StoriesAtEveryNumberOfLayers) {
  HEDDLE_SHARED_FILE(file, "models/stories260K.gguf");
  AsyncDevice device(quick("gpu"));
  expect_text_at_every_division(stories260K(), {&device});
}

TEST(OnDevices, StoriesOnThreeDevicesAndTheCpu) {
  HEDDLE_SHARED_FILE(file, "models/stories260K.gguf");
  AsyncDevice one(quick("one")), two(quick("two")), three(quick("three"));
  const Story story = stories260K();
  for (const bool lazy : {false, true}) {
    llm::Context context(story.model, on({&one, &two, &cpu_device(), &three}, {}, lazy));
    const auto told = greedy(context, {story.prompt}, story.most);
    EXPECT_EQ(story.model->tokenizer().decode(told[0]), story.text) << lazy;
  }
}

TEST(OnDevices, InEveryWayOfTelling) {
  AsyncDevice device(quick("gpu"));
  const Story story = fable();
  for (const DType kv_type : {DType::f32, DType::f16, DType::q8_0}) {
    for (const bool lazy : {false, true}) {
      for (const std::int64_t chunk : {3, 512}) {
        const Telling telling{lazy, 2, chunk, true, kv_type};
        llm::ContextOptions options = options_for(telling);
        options.devices = {&device};
        options.gpu_layers = 2;
        llm::Context context(story.model, options);
        const auto told = greedy(context, {story.prompt, {5, 6, 7}, {9}}, story.most);
        EXPECT_EQ(story.model->tokenizer().decode(told[0]), story.text) << to_string(telling);
      }
    }
  }
}

TEST(OnDevices, ForksCopyTheirRowsWhereTheLayerIs) {
  AsyncOptions as_the_cpu = quick("gpu");
  as_the_cpu.packs = true;  // the same kernels: the same bits
  AsyncDevice device(as_the_cpu);
  const auto model = llm::Model::bundled();
  const std::vector<TokenId> prompt = model->tokenizer().encode("Once upon a time, a fox");
  const std::vector<TokenId> left{5}, right{6};
  for (const bool lazy : {false, true}) {
    std::vector<std::vector<float>> expected, got;
    for (std::vector<std::vector<float>>* logits : {&expected, &got}) {
      llm::ContextOptions options = on({&device}, logits == &got ? 2 : 0, lazy);
      options.n_seq_max = 2;
      llm::Context context(model, options);
      const llm::SequenceId first = context.create();
      context.step(first, prompt);
      const llm::SequenceId second = context.fork(first);
      logits->push_back(context.step(first, left));
      logits->push_back(context.step(second, right));
    }
    EXPECT_EQ(got, expected) << (lazy ? "lazily" : "planned");
  }
}

// ---- What the plan shows

TEST(OnDevices, EachLayersKvIsWhereTheLayerRuns) {
  AsyncDevice device(quick("gpu"));
  const auto model = llm::Model::bundled();
  for (std::int64_t n = 0; n <= 5; ++n) {
    llm::Context context(model, on({&device}, n));
    const Plan& plan = context.plan_for(1);
    std::vector<std::string> expected(4, "cpu");
    std::fill_n(expected.begin(), std::min<std::int64_t>(n, 4), "gpu");
    EXPECT_EQ(kv_homes(plan, 4), expected) << n;
    // The embedding on the CPU, n layers, the rest on the CPU: three splits and two copies.
    const bool partial = n > 0 && n < 5;
    EXPECT_EQ(plan.splits.size(), partial ? 3u : 1u) << n;
    std::size_t copies = 0;
    for (const Split& split : plan.splits) {
      for (const PlannedStep& step : split.steps)
        copies += std::holds_alternative<PlannedCopy>(step);
    }
    EXPECT_EQ(copies, partial ? 2u : 0u) << n;
    const std::string text = to_text(plan);
    EXPECT_THAT(text, HasSubstr("ops by device: "));
    if (partial) {
      EXPECT_THAT(text, AllOf(HasSubstr("split 1 on gpu: "), HasSubstr("(512 B) to gpu\n"),
                              HasSubstr("(512 B) to cpu\n")));
    }
  }
}

TEST(OnDevices, OneSubmissionASplitAndNoRecordingAfterWarmUp) {
  AsyncDevice device(quick("gpu"));
  const Story story = fable();
  llm::Context context(story.model, on({&device}, 3));
  const llm::SequenceId sequence = context.create();
  context.step(sequence, story.prompt);
  context.step(sequence, {&story.prompt[0], 1});
  const DeviceCounts before = device.counts();
  for (int i = 0; i < 10; ++i) context.step(sequence, {&story.prompt[0], 1});
  const DeviceCounts after = device.counts();
  EXPECT_EQ(after.submissions - before.submissions, 10u);
  EXPECT_EQ(after.replayed - before.replayed, 10u);
  EXPECT_EQ(after.recorded, before.recorded);
  EXPECT_EQ(after.copies - before.copies, 10u);
}

TEST(OnDevices, WhatADeviceLacksBesideWeightsRunsOnTheCpuAndIsCounted) {
  AsyncOptions options = quick("gpu");
  options.accepts = lacks<Attend, Attention, Matmul>;  // nor its simpler forms
  AsyncDevice device(options);
  const Story story = fable();
  for (const bool lazy : {false, true}) {
    llm::Context context(story.model, on({&device}, 3, lazy));
    const llm::SequenceId sequence = context.create();
    for (int i = 0; i < 2; ++i) context.step(sequence, {&story.prompt[0], 1});
    const auto host_ops = context.host_ops();
    ASSERT_EQ(host_ops.size(), 1u);
    EXPECT_EQ(host_ops.at("attend"), 6u) << lazy;  // two steps of three layers
    context.truncate(sequence, 0);
    context.release(sequence);
    const auto told = greedy(context, {story.prompt}, story.most);
    EXPECT_EQ(story.model->tokenizer().decode(told[0]), story.text) << lazy;
  }
  llm::Context context(story.model, on({&device}, 3));
  EXPECT_THAT(to_text(context.plan_for(1)),
              HasSubstr("on the cpu though another device was asked for: attend 3\n"));
}

// ---- What is refused

TEST(OnDevices, AWeightWithoutAKernelIsNamedBeforeAnythingIsLoaded) {
  AsyncOptions options = quick("gpu");
  options.accepts = lacks<Linear, Matmul>;
  AsyncDevice device(options);
  const auto model = llm::Model::bundled();
  const std::string message =
      message_of(ErrorCode::unsupported, [&] { llm::Context(model, on({&device})); });
  EXPECT_THAT(message, AllOf(HasSubstr("gpu does not take the model"), HasSubstr("linear"),
                             HasSubstr("'blk.0.attn_q.weight' (f16[128, 128])"),
                             HasSubstr("gpu has no linear"), HasSubstr("--gpu-layers 0 ")));
  EXPECT_EQ(device.live_bytes(), 0u);
  EXPECT_NO_THROW(llm::Context(model, on({&device}, 0)));

  AsyncOptions no_rows = quick("rows");
  no_rows.accepts = lacks<GatherRows>;
  AsyncDevice without_rows(no_rows);
  EXPECT_THAT(message_of(ErrorCode::unsupported, [&] { llm::Context(model, on({&without_rows})); }),
              HasSubstr("'token_embd.weight'"));
  EXPECT_NO_THROW(llm::Context(model, on({&without_rows}, 4)));
}

TEST(OnDevices, AWeightThatDoesNotFitIsNamedWithWhatWould) {
  const auto model = llm::Model::bundled();
  AsyncDevice device(with_memory("gpu", 1'600'000));
  llm::ContextOptions options = on({&device});
  options.chunk = 32;
  const std::string message =
      message_of(ErrorCode::out_of_memory, [&] { llm::Context(model, options); });
  EXPECT_THAT(message,
              AllOf(HasSubstr("gpu: "), HasSubstr("tensor 'blk."),
                    HasSubstr("is the first that does not fit"), HasSubstr("--gpu-layers ")));
  EXPECT_EQ(device.live_bytes(), 0u);

  const std::size_t at = message.find("--gpu-layers ") + std::string("--gpu-layers ").size();
  const std::int64_t advised = std::stoll(message.substr(at));
  ASSERT_GT(advised, 0);
  options.gpu_layers = advised + 1;
  EXPECT_THROW(llm::Context(model, options), Error);
  options.gpu_layers = advised;
  llm::Context context(model, options);
  const std::vector<TokenId> prompt = model->tokenizer().encode("Once upon a time");
  EXPECT_NO_THROW(context.step(context.create(), prompt));
  EXPECT_GT(device.live_bytes(), 0u);
}

TEST(OnDevices, ASmallerContextIsAdvisedWhereThatIsEnough) {
  const auto model = llm::Model::bundled();
  AsyncDevice device(with_memory("gpu", 3'200'000));
  llm::ContextOptions options = on({&device});
  options.n_ctx = 512;
  options.n_seq_max = 4;
  options.chunk = 32;
  options.kv_type = DType::f32;
  const std::string message =
      message_of(ErrorCode::out_of_memory, [&] { llm::Context(model, options); });
  EXPECT_THAT(message, AllOf(HasSubstr("-c "), HasSubstr("would fit")));
  const std::size_t at = message.find("-c ") + 3;
  options.n_ctx = std::stoll(message.substr(at));
  EXPECT_LT(options.n_ctx, 512);
  EXPECT_NO_THROW(llm::Context(model, options));
}

TEST(OnDevices, WhatIsLargerThanOneAllocationIsNamed) {
  const auto model = llm::Model::bundled();
  AsyncOptions limited = quick("gpu");
  limited.largest_allocation = 200'000;  // token_embd.weight takes 232192
  AsyncDevice device(limited);
  llm::ContextOptions options = on({&device});
  options.chunk = 32;
  const std::string message =
      message_of(ErrorCode::out_of_memory, [&] { llm::Context(model, options); });
  EXPECT_THAT(message, AllOf(HasSubstr("tensor 'token_embd.weight'"), HasSubstr("(232192 bytes)"),
                             HasSubstr("at once"), HasSubstr("--gpu-layers 4 would fit")));
  options.gpu_layers = 4;
  llm::Context context(model, options);
  const std::vector<TokenId> prompt = model->tokenizer().encode("Once upon a time");
  EXPECT_NO_THROW(context.step(context.create(), prompt));
}

TEST(OnDevices, WeightsThatAreThereAlreadyAreNotCountedAgain) {
  for (const bool packs : {false, true}) {
    AsyncOptions device_options = quick("gpu");
    device_options.packs = packs;
    AsyncDevice device(device_options);
    const auto model = llm::Model::bundled();
    llm::Context context(model, on({&device}, 2));
    const Plan& plan = context.plan_for(1);
    const auto weights_on = [&](Device& where) {
      const auto bytes = llm::slot_bytes_needed(plan, *model->parameters());
      std::uint64_t sum = 0;
      for (const llm::Need& need : llm::needs_of(plan, bytes)) {
        if (need.device == &where) sum += need.weights;
      }
      return sum;
    };
    std::uint64_t of_two_layers = 0;
    for (const gguf::Tensor& tensor : model->file().tensors()) {
      const bool first_two = tensor.name.starts_with("blk.0.") || tensor.name.starts_with("blk.1.");
      if (first_two) of_two_layers += tensor.data.size();
    }
    EXPECT_GE(weights_on(device), of_two_layers) << packs;  // packed forms may be padded
    EXPECT_LT(weights_on(device), of_two_layers * 5 / 4) << packs;
    EXPECT_GT(weights_on(cpu_device()), 0u);  // packed forms
    const std::vector<TokenId> prompt{5};
    context.step(context.create(), prompt);
    EXPECT_EQ(weights_on(device), 0u) << packs;
    EXPECT_EQ(weights_on(cpu_device()), 0u);
  }
}

TEST(OnDevices, WeightsThatADeviceCanSeeWhereTheyAreTakeNoneOfItsMemory) {
  const auto model = llm::Model::bundled();
  AsyncOptions small = with_memory("gpu", 1'600'000);  // less than the weights alone
  small.most_imported = std::size_t{1} << 30;
  AsyncDevice device(small);
  llm::ContextOptions options = on({&device});
  options.chunk = 32;
  llm::Context context(model, options);
  const std::vector<TokenId> prompt = model->tokenizer().encode("Once upon a time");
  context.step(context.create(), prompt);
  EXPECT_LT(device.live_bytes(), 1'600'000u);
}

TEST(OnDevices, AContextIsChosenToFitTheDevice) {
  const auto model = llm::Model::bundled();
  AsyncDevice device(quick("gpu"));
  llm::ContextOptions options = on({&device});
  options.n_ctx = 0;
  EXPECT_EQ(llm::Context(model, options).options().n_ctx, model->config().n_ctx_train);
}

}  // namespace
}  // namespace heddle::test

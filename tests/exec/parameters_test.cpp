// Weights on other devices: without a copy where the device can import, in pieces where it cannot.
#include "exec/parameters.h"

#include <sys/mman.h>

#include "base/system.h"
#include "exec_test_support.h"
#include "heddle/memory.h"

namespace heddle::test {
namespace {

constexpr std::size_t kMega = std::size_t{1} << 20;
const TensorSpec kHalfMega = f32({131072});

/// A mapping like a file's, with tensors at given offsets.
struct Mapping {
  explicit Mapping(std::size_t size) : bytes(size) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    begin = static_cast<std::byte*>(memory);
    auto* floats = static_cast<float*>(memory);
    for (std::size_t i = 0; i < size / sizeof(float); ++i) floats[i] = static_cast<float>(i % 997);
    owner = std::shared_ptr<const void>(
        memory, [size](const void* at) { munmap(const_cast<void*>(at), size); });
  }
  void set(Parameters& parameters, const std::string& name, std::size_t offset,
           const TensorSpec& spec = kHalfMega) const {
    parameters.set_mapped(name, spec, {begin + offset, byte_size(spec)}, owner);
  }

  std::size_t bytes;
  std::byte* begin;
  std::shared_ptr<const void> owner;
};

AsyncOptions importing(std::size_t most) {
  AsyncOptions options;
  options.hides_local = true;
  options.most_imported = most;
  return options;
}

std::vector<View> all_on(Parameters& parameters, const std::vector<std::string>& names,
                         Device& device) {
  parameters.impl().import_together(names, device);
  std::vector<View> views;
  for (const std::string& name : names)
    views.push_back(parameters.impl().plain(name, parameters.spec(name), device));
  return views;
}

TEST(ParametersOnDevices, NeighboursShareOneWindowOfTheMapping) {
  AsyncDevice device(importing(64 * kMega));
  const auto parameters = make_ref<Parameters>();
  const Mapping file(8 * kMega), another(kMega);
  const std::vector<std::size_t> offsets{32, kMega + 96, 2 * kMega + 32, 7 * kMega};
  file.set(*parameters, "c", offsets[2]);
  file.set(*parameters, "a", offsets[0]);
  file.set(*parameters, "b", offsets[1]);
  file.set(*parameters, "far", offsets[3]);
  another.set(*parameters, "other", 0);
  const auto views = all_on(*parameters, {"a", "b", "c", "far", "other"}, device);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(&views[i].buffer->device(), &device);
    EXPECT_EQ(views[i].host(), file.begin + offsets[i]) << i;
  }
  EXPECT_EQ(views[4].host(), another.begin);
  EXPECT_EQ(views[0].buffer, views[1].buffer);
  EXPECT_EQ(views[1].buffer, views[2].buffer);
  EXPECT_EQ(views[2].buffer->size(), (2 * kMega + kMega / 2) + page_size());  // in whole pages
  EXPECT_NE(views[3].buffer, views[0].buffer);
  EXPECT_NE(views[4].buffer, views[0].buffer);
  EXPECT_EQ(device.live_bytes(), 0u);
  const auto again = all_on(*parameters, {"b", "far"}, device);
  EXPECT_EQ(again[0].buffer, views[1].buffer);
  EXPECT_EQ(again[1].buffer, views[3].buffer);
}

TEST(ParametersOnDevices, ATensorIsWholeInItsWindowOrCopied) {
  AsyncDevice device(importing(kMega));
  const auto parameters = make_ref<Parameters>();
  const Mapping file(8 * kMega);
  file.set(*parameters, "a", 0);
  file.set(*parameters, "b", kMega);
  file.set(*parameters, "large", 2 * kMega, f32({1 << 20}));
  file.set(*parameters, "small", 7 * kMega, f32({16}));
  const auto views = all_on(*parameters, {"a", "b", "large", "small"}, device);
  EXPECT_EQ(views[0].host(), file.begin);  // all four at once are too much for it
  EXPECT_EQ(views[1].host(), file.begin + kMega);
  EXPECT_NE(views[0].buffer, views[1].buffer);
  EXPECT_EQ(views[2].buffer->host(), nullptr);
  EXPECT_EQ(views[3].buffer->host(), nullptr);
  EXPECT_EQ(device.live_bytes(), 4 * kMega + 64);
}

TEST(ParametersOnDevices, TheMappingIsKeptWhileAnyoneUsesIt) {
  AsyncDevice device(importing(64 * kMega));
  std::weak_ptr<const void> mapped;
  std::shared_ptr<Executable> executable;
  {
    GraphBuilder builder;
    builder.output("y", builder.input("x", kHalfMega) + builder.parameter("w", kHalfMega));
    const auto parameters = make_ref<Parameters>();
    const Mapping file(kMega);
    mapped = file.owner;
    file.set(*parameters, "w", 128);
    executable = compiled(builder.build(), {&device}, parameters);
  }
  const std::vector<float> x(131072, 0.5f);
  for (int run = 0; run < 2; ++run) {
    executable->run({given("x", x, {131072})});
    EXPECT_EQ(executable->output("y").to_vector<float>()[5], 0.5f + 37);
    EXPECT_FALSE(mapped.expired());
    device.lose();
  }
  executable = nullptr;
  EXPECT_TRUE(mapped.expired());
}

TEST(ParametersOnDevices, TheyAreImportedAnewAfterALoss) {
  AsyncDevice device(importing(64 * kMega));
  const auto parameters = make_ref<Parameters>();
  const Mapping file(4 * kMega);
  file.set(*parameters, "a", 0);
  file.set(*parameters, "b", kMega);
  const auto before = all_on(*parameters, {"a", "b"}, device);
  device.lose();
  const auto after = all_on(*parameters, {"a", "b"}, device);
  EXPECT_TRUE(before[0].buffer->is_lost());
  EXPECT_FALSE(after[0].buffer->is_lost());
  EXPECT_EQ(after[0].buffer, after[1].buffer);
  EXPECT_EQ(after[1].host(), file.begin + kMega);
}

TEST(ParametersOnDevices, WhatIsCopiedComesInPieces) {
  AsyncDevice device(importing(0));
  const auto parameters = make_ref<Parameters>();
  const Mapping file(40 * kMega);
  const TensorSpec spec = f32({10 << 20});
  file.set(*parameters, "w", 0, spec);
  const View view = all_on(*parameters, {"w"}, device)[0];
  EXPECT_EQ(device.counts().copies, 3u);
  EXPECT_EQ(device.counts().copied_bytes, 40 * kMega);
  EXPECT_EQ(device.live_bytes(), 40 * kMega);
  std::vector<float> bytes(10 << 20);
  Array::from_view(view).copy_to(std::as_writable_bytes(std::span(bytes)));
  EXPECT_EQ(std::memcmp(bytes.data(), file.begin, 40 * kMega), 0);
}

TEST(ParametersOnDevices, TheFirstThatDoesNotFitIsNamed) {
  AsyncOptions options = importing(0);
  options.memory_limit = 9 * kMega / 4;  // what runs need is 1 MiB, staging half of one
  AsyncDevice device(options);
  GraphBuilder builder;
  Array y = builder.input("x", kHalfMega);
  const auto parameters = make_ref<Parameters>();
  const Mapping file(4 * kMega);
  for (int i = 0; i < 4; ++i) {
    const std::string name = "blk." + std::to_string(i) + ".weight";
    file.set(*parameters, name, static_cast<std::size_t>(i) * kMega);
    y = y + builder.parameter(name, kHalfMega);
  }
  builder.output("y", sum(y, {0}));
  const auto executable = compiled(builder.build(), {&device}, parameters);
  const std::vector<float> x(131072);
  for (int attempt = 0; attempt < 2; ++attempt) {
    expect_error(ErrorCode::out_of_memory,
                 "parameter 'blk.1.weight' (f32[131072], 524288 bytes) does not fit on async: ",
                 [&] { executable->run({given("x", x, {131072})}); });
  }
}

TEST(ParametersOnDevices, ThePlainFormOfAPackedWeightIsNotKept) {
  AsyncOptions options = accepting("async", {"linear", "repack"});
  options.hides_local = options.packs = true;
  AsyncDevice device(options);
  GraphBuilder builder;
  const TensorSpec weight = f32({256, 256});
  builder.output("y", linear(builder.input("x", f32({4, 256})), builder.parameter("w", weight)));
  const Mapping file(kMega);
  const auto parameters = make_ref<Parameters>();
  file.set(*parameters, "w", 0, weight);
  const auto executable = compiled(builder.build(), {&device}, parameters);
  ASSERT_EQ(executable->plan().load.size(), 1u);
  const std::vector<float> x(4 * 256, 1.0f);
  executable->run({given("x", x, {4, 256})});
  EXPECT_GE(device.live_bytes(), byte_size(weight));
  EXPECT_LT(device.live_bytes(), byte_size(weight) * 3 / 2);
  float expected = 0;
  for (int i = 0; i < 256; ++i) expected += static_cast<float>((256 + i) % 997);
  EXPECT_NEAR(executable->output("y").to_vector<float>()[1], expected, 1e-2 * expected);
}

TEST(MappedParameters, ArePackedInPiecesAndReleasedPieceByPiece) {
  const TensorSpec weight = f32({2050, 4096});  // 32 MiB and a little
  const Mapping file(byte_size(weight));
  const auto parameters = make_ref<Parameters>();
  std::vector<std::span<const std::byte>> released;
  parameters->impl().release = [&](std::span<const std::byte> bytes) { released.push_back(bytes); };
  file.set(*parameters, "w", 0, weight);
  GraphBuilder builder;
  builder.output("y", linear(builder.input("x", f32({1, 4096})), builder.parameter("w", weight)));
  const auto executable = compiled(builder.build(), {}, parameters);
  ASSERT_EQ(executable->plan().load.size(), 1u);
  std::vector<float> x(4096);
  x[0] = 1;
  for (int run = 0; run < 2; ++run) executable->run({given("x", x, {1, 4096})});
  const std::span<const std::byte> whole = released.back();  // at the end, with what lies between
  released.pop_back();
  EXPECT_EQ(whole.data(), file.begin);
  EXPECT_EQ(whole.size(), file.bytes);
  const std::byte* next = file.begin;
  for (const auto& piece : released) {
    EXPECT_EQ(piece.data(), next);
    EXPECT_LE(piece.size(), std::size_t{16} << 20);
    next = piece.data() + piece.size();
  }
  EXPECT_EQ(next, file.begin + file.bytes);  // once
  EXPECT_GE(released.size(), 3u);
  const std::vector<float> y = executable->output("y").to_vector<float>();
  for (std::size_t row = 0; row < y.size(); ++row) {
    ASSERT_EQ(y[row], static_cast<float>(row * 4096 % 997)) << row;
  }
}

TEST(MappedParameters, SmallOnesThatAreReadAsTheyLieLeaveTheMapping) {
  const Mapping file(kMega);
  const auto parameters = make_ref<Parameters>();
  std::vector<std::span<const std::byte>> released;
  parameters->impl().release = [&](std::span<const std::byte> bytes) { released.push_back(bytes); };
  const TensorSpec small = f32({64}), large = f32({32768});
  file.set(*parameters, "a", 0, small);
  file.set(*parameters, "b", 256, small);  // beside the first
  file.set(*parameters, "c", 512 << 10, large);
  GraphBuilder builder;
  const Array a = builder.parameter("a", small), b = builder.parameter("b", small);
  builder.output("sum", a + b);
  builder.output("large", builder.parameter("c", large) * 2.0f);
  const auto executable = compiled(builder.build(), {}, parameters);
  for (int run = 0; run < 2; ++run) executable->run({});
  const auto in_mapping = [&](const char* name) {
    const std::byte* at = parameters->impl().find(name)->plain.host();
    return at >= file.begin && at < file.begin + file.bytes;
  };
  EXPECT_FALSE(in_mapping("a"));
  EXPECT_FALSE(in_mapping("b"));
  EXPECT_TRUE(in_mapping("c"));
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].data(), file.begin);
  EXPECT_EQ(released[0].size(), 512u);
  const std::vector<float> sum = executable->output("sum").to_vector<float>();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(sum[i], static_cast<float>(2 * i + 64)) << i;
}

TEST(LoadedParameters, SayHowMuchIsReadyOnce) {
  const TensorSpec weight = f32({2050, 4096}), other = f32({64, 32});
  const Mapping file(byte_size(weight));
  const auto parameters = make_ref<Parameters>();
  parameters->impl().release = [](std::span<const std::byte>) {};
  file.set(*parameters, "w", 0, weight);
  parameters->set("v", zeros({64, 32}));
  std::vector<LoadProgress> seen;
  std::vector<std::string> names;
  parameters->impl().set_progress([&](const LoadProgress& at) {
    seen.push_back(at);
    names.emplace_back(at.parameter);
  });
  GraphBuilder builder;
  builder.output("y", linear(builder.input("x", f32({1, 4096})), builder.parameter("w", weight)));
  builder.output("z", linear(builder.input("u", f32({1, 32})), builder.parameter("v", other)));
  const Graph graph = builder.build();
  const std::vector<float> x(4096), u(32);
  const auto run = [&] {
    compiled(graph, {}, parameters)->run({given("x", x, {1, 4096}), given("u", u, {1, 32})});
  };
  run();
  ASSERT_GE(seen.size(), 4u);  // three pieces of the one
  EXPECT_THAT(names, testing::Contains("w"));
  EXPECT_THAT(names, testing::Contains("v"));
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_GT(seen[i].done, seen[i - 1].done);
  EXPECT_EQ(seen.back().done, seen.back().total);
  EXPECT_GE(seen.back().total, byte_size(weight) + byte_size(other));
  seen.clear();
  run();
  EXPECT_TRUE(seen.empty()) << "they are there";
  parameters->impl().set_progress({});
  parameters->set("v", ones({64, 32}));
  run();
  EXPECT_TRUE(seen.empty()) << "nobody asks any more";
}

}  // namespace
}  // namespace heddle::test

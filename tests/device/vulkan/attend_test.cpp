// attend on Vulkan: heads of all kinds, every form that its work is shared out in, and indices that
// may be anything.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "device/vulkan/vulkan_device.h"
#include "heddle/error.h"
#include "support/conformance.h"

namespace heddle::test {
namespace {

class VulkanAttend : public Vulkan {};

struct Sizes {
  std::int64_t heads = 4, kv_heads = 2, features = 20;
  std::int64_t block_size = 8, sequences = 3, table_width = 12;
  DType keys = DType::f16, values = DType::f16;
  std::int64_t rows() const { return sequences * table_width * block_size; }
};

Tensor indices(const Shape& shape, const std::vector<int>& values) {
  return tensor_of(DType::i32, shape, {values.begin(), values.end()});
}

/// States of several sequences whose blocks lie in a scrambled order.
struct Context {
  Sizes sizes;
  Tensor keys, values;
  std::vector<int> table, lengths;
};

Context make_context(const Sizes& sizes, std::vector<int> lengths) {
  Random random(3);
  const Shape state{sizes.rows(), sizes.kv_heads, sizes.features};
  Context context{sizes, random_tensor(sizes.keys, state, random, {-1, 1}),
                  random_tensor(sizes.values, state, random, {-1, 1}),
                  std::vector<int>(static_cast<std::size_t>(sizes.sequences * sizes.table_width)),
                  std::move(lengths)};
  for (std::size_t i = 0; i < context.table.size(); ++i) context.table[i] = static_cast<int>(i);
  std::shuffle(context.table.begin(), context.table.end(), random);
  return context;
}

struct Tokens {
  std::vector<int> sequence, position;
  std::size_t first = 0;  // of the queries that all tokens of a context draw from

  Tokens part(std::size_t begin, std::size_t count) const {
    const auto cut = [&](const std::vector<int>& of) {
      const auto from = of.begin() + static_cast<std::ptrdiff_t>(begin);
      return std::vector<int>(from, from + static_cast<std::ptrdiff_t>(count));
    };
    return {cut(sequence), cut(position), first + begin};
  }
};

Tokens prompt(int first, std::size_t count) {
  Tokens tokens{std::vector<int>(count, 0), std::vector<int>(count)};
  for (std::size_t i = 0; i < count; ++i) tokens.position[i] = first + static_cast<int>(i);
  return tokens;
}

Tensor queries(const Sizes& sizes, const Tokens& tokens) {
  Random random(9);
  const auto count = static_cast<std::int64_t>(tokens.sequence.size());
  const auto first = static_cast<std::int64_t>(tokens.first);
  const Tensor all =
      random_tensor(DType::f32, {first + count, sizes.heads, sizes.features}, random, {-2, 2});
  const auto row = static_cast<std::ptrdiff_t>(sizes.heads * sizes.features * 4);
  return {OperandSpec::contiguous({DType::f32, {count, sizes.heads, sizes.features}}),
          {all.bytes.begin() + first * row, all.bytes.end()}};
}

std::vector<Tensor> inputs_of(const Context& c, const Tokens& t) {
  const auto count = static_cast<std::int64_t>(t.sequence.size());
  return {queries(c.sizes, t),
          c.keys,
          c.values,
          indices({c.sizes.sequences, c.sizes.table_width}, c.table),
          indices({count}, t.sequence),
          indices({count}, t.position),
          indices({c.sizes.sequences}, c.lengths)};
}

constexpr Tolerance kTolerance{16, 4e-6};

void check(Device& device, const Attend& op, const Context& context, const Tokens& tokens) {
  expect_conformance(device, op, inputs_of(context, tokens), kTolerance);
}

Attend attend_of(const Sizes& sizes, std::int64_t window = 0) {
  return {.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(sizes.features))),
          .block_size = sizes.block_size,
          .window = window};
}

TEST_F(VulkanAttend, HeadsOfAllKinds) {
  struct Case {
    std::int64_t heads, kv_heads, features;
  };
  for (const Case& c : {Case{1, 1, 1},
                        {2, 1, 15},
                        {4, 4, 16},
                        {6, 2, 18},
                        {9, 3, 64},
                        {14, 2, 64},
                        {3, 3, 80},
                        {17, 1, 128},
                        {4, 2, 256},
                        {2, 1, 512}}) {
    const DType dtype = c.heads % 2 == 0 ? DType::f16 : DType::f32;
    const Sizes sizes{.heads = c.heads,
                      .kv_heads = c.kv_heads,
                      .features = c.features,
                      .keys = dtype,
                      .values = dtype};
    const Context context = make_context(sizes, {90, 17, 65});
    check(device(), attend_of(sizes), context, {{0, 0, -1, 1, 2, 2, 2}, {88, 89, 0, 16, 0, 1, 64}});
  }
}

TEST_F(VulkanAttend, StatesOfAllTypes) {
  struct Case {
    DType keys, values;
    std::int64_t features;
  };
  for (const Case& c : {Case{DType::q8_0, DType::q8_0, 96},
                        {DType::q8_0, DType::f16, 32},
                        {DType::f32, DType::q8_0, 64},
                        {DType::f16, DType::f32, 18}}) {
    const Sizes sizes{.features = c.features, .keys = c.keys, .values = c.values};
    const Context context = make_context(sizes, {90, 17, 65});
    check(device(), attend_of(sizes), context, {{0, 2, -1, 1}, {88, 64, 0, 16}});
  }
}

TEST_F(VulkanAttend, LengthsAndWindows) {
  const Sizes sizes{};
  const Context context = make_context(sizes, {96, 40, 0});
  // Beyond the sequence's length, at every edge of blocks, in a sequence without positions.
  const Tokens tokens{{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0},
                      {0, 7, 8, 31, 32, 33, 63, 64, 39, 70, 3, 95}};
  for (const std::int64_t window : {0, 1, 2, 8, 31, 32, 33, 64, 1000}) {
    check(device(), attend_of(sizes, window), context, tokens);
  }
}

TEST_F(VulkanAttend, LongContextsAndPrompts) {
  const Sizes sizes{.heads = 6, .kv_heads = 2, .block_size = 32, .sequences = 2, .table_width = 40};
  const Context context = make_context(sizes, {1280, 1000});
  for (const std::int64_t window : {0, 300}) {
    const Attend op = attend_of(sizes, window);
    check(device(), op, context, {{0, 1, 0, 0}, {255, 999, 256, 1279}});  // splits shared
    check(device(), op, context, prompt(500, 40));                        // rows together
  }
  Tokens mixed{{}, {}};  // rows together that are not of one sequence, nor in order
  for (int i = 0; i < 45; ++i) {
    mixed.sequence.push_back(i % 5 == 3 ? -1 : (i / 3) % 2);
    mixed.position.push_back((i * 37) % 1000);
  }
  check(device(), attend_of(sizes), context, mixed);
}

void expect_same_bits_in_parts(Device& device, const Attend& op, const Context& context,
                               const Tokens& tokens) {
  const Ran all = run_op(device, op, inputs_of(context, tokens));
  ASSERT_EQ(all.refused, "");
  const auto row = static_cast<std::size_t>(context.sizes.heads * context.sizes.features * 4);
  for (const std::size_t chunk : {1, 3, 8, 9, 32, 33}) {
    for (std::size_t first = 0; first < tokens.sequence.size(); first += chunk) {
      const std::size_t count = std::min(chunk, tokens.sequence.size() - first);
      const Ran some = run_op(device, op, inputs_of(context, tokens.part(first, count)));
      ASSERT_EQ(std::memcmp(all.outputs[0].bytes.data() + first * row, some.outputs[0].bytes.data(),
                            count * row),
                0)
          << "tokens " << first << " + " << count;
    }
  }
}

TEST_F(VulkanAttend, ARowHasTheSameBitsAloneAndInCompany) {
  for (const DType dtype : {DType::f16, DType::q8_0}) {
    const Sizes sizes{.heads = 6,
                      .kv_heads = 2,
                      .features = 32,
                      .block_size = 32,
                      .sequences = 3,
                      .table_width = 30,
                      .keys = dtype,
                      .values = dtype};
    const Context context = make_context(sizes, {900, 960, 700});
    for (const std::int64_t window : {0, 270}) {
      expect_same_bits_in_parts(device(), attend_of(sizes, window), context, prompt(720, 67));
    }
    Tokens mixed{{}, {}};
    for (int i = 0; i < 35; ++i) {
      mixed.sequence.push_back(i % 4 - 1);
      mixed.position.push_back((i * 61) % 900);
    }
    expect_same_bits_in_parts(device(), attend_of(sizes), context, mixed);
  }
}

void spoil(Context& context, int position) {
  const Sizes& s = context.sizes;
  const auto at = static_cast<std::size_t>(position / s.block_size);
  const std::int64_t row = context.table[at] * s.block_size + position % s.block_size;
  const auto bytes = static_cast<std::size_t>(s.kv_heads * s.features * 2);
  for (std::size_t i = 0; i < bytes; i += 2) {
    const std::uint16_t nan = 0x7e00, infinity = 0x7c00;
    std::memcpy(&context.keys.bytes[static_cast<std::size_t>(row) * bytes + i], &nan, 2);
    std::memcpy(&context.values.bytes[static_cast<std::size_t>(row) * bytes + i], &infinity, 2);
  }
}

TEST_F(VulkanAttend, HiddenRowsMayHoldAnything) {
  const Sizes sizes{};
  Context context = make_context(sizes, {96, 40, 10});
  const Attend op = attend_of(sizes, 25);
  for (const std::size_t count : {12, 40}) {
    Context spoilt = context;
    const Tokens tokens = prompt(30, count);
    const Ran before = run_op(device(), op, inputs_of(context, tokens));
    const int last = 30 + static_cast<int>(count) - 1;
    for (const int p : {0, 5, last + 1, last + 2, 80}) spoil(spoilt, p);
    const Ran after = run_op(device(), op, inputs_of(spoilt, tokens));
    EXPECT_TRUE(before.outputs[0].bytes == after.outputs[0].bytes);
    // A row that the first tokens do not see and the next ones do.
    spoil(spoilt, 35);
    const Ran seen = run_op(device(), op, inputs_of(spoilt, tokens));
    const auto row = static_cast<std::size_t>(sizes.heads * sizes.features * 4);
    EXPECT_EQ(std::memcmp(before.outputs[0].bytes.data(), seen.outputs[0].bytes.data(), 5 * row),
              0);
    const Values values = decode(seen.outputs[0].operand, seen.outputs[0].bytes.data());
    for (std::size_t i = 5 * row / 4; i < 12 * row / 4; ++i)
      EXPECT_TRUE(std::isnan(values.real[i]));
  }
}

TEST_F(VulkanAttend, AnExtentLeavesLaterTokensAlone) {
  const Sizes sizes{.block_size = 32};
  const Context context = make_context(sizes, {96, 40, 10});
  const Attend op = attend_of(sizes);
  for (const std::size_t count : {4, 12, 40}) {
    Tokens tokens = prompt(8, count);
    for (std::size_t i = 2; i < count; ++i) {  // the rest is junk
      tokens.sequence[i] = static_cast<int>(77 * i);
      tokens.position[i] = -3;
    }
    const auto inputs = inputs_of(context, tokens);
    const Ran all = run_op(device(), op, inputs_of(context, tokens.part(0, 2)));
    const Ran some = run_op(device(), op, inputs, {.extent = 2});
    ASSERT_TRUE(some.traits.honours_extent);
    const std::size_t live = all.outputs[0].bytes.size();
    EXPECT_EQ(std::memcmp(all.outputs[0].bytes.data(), some.outputs[0].bytes.data(), live), 0);
    for (std::size_t i = live; i < some.outputs[0].bytes.size(); ++i) {
      ASSERT_EQ(some.outputs[0].bytes[i], kUntouched);
    }
  }
}

TEST_F(VulkanAttend, IdleTokensAndEmptyBatches) {
  const Sizes sizes{.block_size = 32};
  const Context context = make_context(sizes, {96, 40, 0});
  for (const std::size_t count : {0, 2, 12, 40}) {
    const Tokens idle{std::vector<int>(count, -1), std::vector<int>(count, -7)};
    const Ran ran = run_op(device(), attend_of(sizes), inputs_of(context, idle));
    ASSERT_EQ(ran.refused, "");
    for (const Number x : decode(ran.outputs[0].operand, ran.outputs[0].bytes.data()).real) {
      EXPECT_EQ(x, 0);
    }
  }
}

TEST_F(VulkanAttend, ReportsIndicesOutOfBounds) {
  const Sizes sizes{};
  Context context = make_context(sizes, {96, 40, 10});
  const auto fails = [&](int sequence, int position) {
    for (const std::size_t company : {0, 12, 40}) {
      Tokens tokens = prompt(0, company);
      tokens.sequence.push_back(sequence);
      tokens.position.push_back(position);
      try {
        run_op(device(), attend_of(sizes), inputs_of(context, tokens));
      } catch (const Error&) {
        continue;
      }
      return false;
    }
    return true;
  };
  EXPECT_FALSE(fails(0, 95));
  EXPECT_TRUE(fails(3, 0));
  EXPECT_TRUE(fails(-2, 0));
  EXPECT_TRUE(fails(0, 96));
  EXPECT_TRUE(fails(0, -1));
  EXPECT_TRUE(fails(0, std::numeric_limits<int>::max()));
  EXPECT_TRUE(fails(std::numeric_limits<int>::max(), 0));
  EXPECT_TRUE(fails(std::numeric_limits<int>::min(), 0));

  for (const int length : {97, -1, std::numeric_limits<int>::max()}) {
    context.lengths[1] = length;
    EXPECT_TRUE(fails(1, 0)) << length;
  }
  context.lengths[1] = 40;

  for (const int block :
       {36, -1, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    context.table[12 + 2] = block;
    EXPECT_TRUE(fails(1, 16)) << block;
    EXPECT_FALSE(fails(1, 15)) << "what a token does not see is not read";
  }
}

TEST_F(VulkanAttend, RefusesWhatItHasNoRoomFor) {
  const auto reason = [&](const Sizes& sizes) {
    const Context context = make_context(sizes, {1, 1, 1});
    return run_op(device(), attend_of(sizes), inputs_of(context, {{0}, {0}})).refused;
  };
  EXPECT_EQ(reason({.features = 1024}), "");
  EXPECT_THAT(reason({.features = 4100}), testing::HasSubstr("4100 features"));
  Context context = make_context({}, {1, 1, 1});
  context.keys.operand.layout.strides[0] *= 2;
  context.keys.bytes.resize(span_bytes(context.keys.operand));
  EXPECT_THAT(run_op(device(), attend_of({}), inputs_of(context, {{0}, {0}})).refused,
              testing::HasSubstr("contiguous"));
}

}  // namespace
}  // namespace heddle::test

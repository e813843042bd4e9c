#include "device/cpu/attend_run.h"
#include "heddle/error.h"

namespace heddle::cpu {
namespace {

TEST(Attend, AgreesWithFloat64ForAllKindsOfHeads) {
  struct Case {
    std::int64_t heads, kv_heads, features;
  };
  for (const Case& c : {Case{1, 1, 1},
                        {2, 1, 15},
                        {4, 4, 16},
                        {6, 2, 17},
                        {8, 1, 64},
                        {3, 3, 80},
                        {60, 1, 128},
                        {2, 1, 1024}}) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const Sizes sizes{
          .heads = c.heads, .kv_heads = c.kv_heads, .features = c.features, .dtype = dtype};
      const Context context = make_context(sizes, {90, 17, 65});
      const Tokens tokens = make_tokens(sizes, {0, 0, -1, 1, 2, 2, 2}, {88, 89, 0, 16, 0, 1, 64});
      const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.features)));
      const Attend op{.scale = scale, .block_size = sizes.block_size};
      const std::vector<double> expected = reference(op, context, tokens);
      for (const Isa level : levels()) {
        const IsaScope scope(level);
        expect_near(attend(op, context, tokens), expected, to_string(Op(op)).c_str());
      }
    }
  }
}

TEST(Attend, SeesLengthsAndWindows) {
  const Sizes sizes{};
  const Context context = make_context(sizes, {96, 40, 0});
  // Beyond the sequence's length, at every edge of blocks, in a sequence without positions.
  const Tokens tokens =
      make_tokens(sizes, {0, 0, 0, 0, 0, 1, 1, 2, 0}, {0, 7, 8, 63, 64, 39, 70, 3, 95});
  for (const std::int64_t window : {0, 1, 2, 8, 63, 64, 65, 1000}) {
    const Attend op{.scale = 0.5f, .block_size = sizes.block_size, .window = window};
    const std::vector<double> expected = reference(op, context, tokens);
    for (const Isa level : levels()) {
      const IsaScope scope(level);
      expect_near(attend(op, context, tokens), expected, to_string(Op(op)).c_str());
    }
  }
}

TEST(Attend, ARowHasTheSameBitsAloneAndInCompany) {
  const Sizes sizes{.heads = 6, .kv_heads = 2, .features = 40};
  const Context context = make_context(sizes, {96, 96, 96});
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    for (const std::int64_t window : {0, 20}) {
      const Attend op{.scale = 0.4f, .block_size = sizes.block_size, .window = window};
      expect_same_bits_in_parts(op, context, prompt(sizes, 20, 67));
      expect_same_bits_in_parts(
          op, context, make_tokens(sizes, {0, 1, 0, 2, -1, 2, 2, 1}, {5, 95, 6, 0, 0, 80, 81, 40}));
    }
  }
}

TEST(Attend, LongContextsHaveTheSameBitsWhoeverComputesTheirSplits) {
  const Sizes sizes{.heads = 4,
                    .kv_heads = 1,
                    .features = 24,
                    .block_size = 32,
                    .sequences = 1,
                    .table_width = 60};
  const Context context = make_context(sizes, {1900});
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    for (const std::int64_t window : {0, 700}) {
      const Attend op{.scale = 0.4f, .block_size = 32, .window = window};
      const Tokens tokens = prompt(sizes, 1500, 67);
      expect_near(attend(op, context, tokens), reference(op, context, tokens), "long");
      expect_same_bits_in_parts(op, context, tokens);
      expect_same_bits_in_parts(op, context, prompt(sizes, 508, 8));
    }
  }
}

TEST(Attend, HiddenRowsMayHoldAnything) {
  const Sizes sizes{};
  Context context = make_context(sizes, {96, 40, 10});
  const Tokens tokens = prompt(sizes, 30, 12);
  const Attend op{.scale = 0.4f, .block_size = sizes.block_size, .window = 25};
  const std::vector<double> expected = reference(op, context, tokens);
  const HostTensor before = attend(op, context, tokens);
  // Later positions of the same block of 64, positions before every window, other sequences.
  const auto spoil = [&](std::int64_t p) {
    const auto block =
        static_cast<std::int64_t>(element(context.table, static_cast<std::size_t>(p / 8)));
    const auto row = static_cast<std::size_t>(block * 8 + p % 8) * 2 * 20;
    for (std::size_t i = 0; i < 40; ++i) {
      set_element(context.keys, row + i, std::numeric_limits<double>::quiet_NaN());
      set_element(context.values, row + i, std::numeric_limits<double>::infinity());
    }
  };
  for (const std::int64_t p : {0, 5, 42, 43, 60, 70}) spoil(p);
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    expect_near(attend(op, context, tokens), expected, "spoilt");
  }
  EXPECT_EQ(attend(op, context, tokens).bytes, before.bytes);

  // A row that the first tokens do not see and the last ones do.
  spoil(35);
  const HostTensor after = attend(op, context, tokens);
  EXPECT_TRUE(same_bytes(before, 0, after, 0, 5 * tokens.row_size()));
  for (std::size_t i = 5 * tokens.row_size() / 4; i < after.bytes.size() / 4; ++i) {
    EXPECT_TRUE(std::isnan(element(after, i)));
  }
}

TEST(Attend, IdleTokensAndEmptyBatches) {
  const Sizes sizes{};
  const Context context = make_context(sizes, {96, 40, 10});
  const Attend op{.block_size = sizes.block_size};
  const HostTensor idle = attend(op, context, make_tokens(sizes, {-1, -1}, {-7, 1000}));
  for (std::size_t i = 0; i < idle.bytes.size() / 4; ++i) EXPECT_EQ(element(idle, i), 0.0);
  EXPECT_TRUE(attend(op, context, make_tokens(sizes, {}, {})).bytes.empty());
}

TEST(Attend, AnExtentLeavesLaterTokensAlone) {
  const Sizes sizes{};
  const Context context = make_context(sizes, {96, 40, 10});
  const Attend op{.block_size = sizes.block_size};
  const Tokens tokens = make_tokens(sizes, {0, 1, 77, 99}, {8, 9, -3, 100000});  // the rest is junk
  const HostTensor all = attend(op, context, tokens.part(0, 2));
  const HostTensor some = attend(op, context, tokens, {.extent = 2});
  EXPECT_TRUE(same_bytes(all, 0, some, 0, 2 * tokens.row_size()));
  for (std::size_t i = 2 * tokens.row_size(); i < some.bytes.size(); ++i) {
    ASSERT_EQ(some.bytes[i], kUntouched);
  }
}

std::string message_of(const Context& context, const Tokens& tokens) {
  try {
    attend(Attend{.block_size = context.sizes.block_size}, context, tokens);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "no error";
}

TEST(Attend, NamesTheTokenWhoseIndexIsOutside) {
  const Sizes sizes{};
  Context context = make_context(sizes, {96, 40, 10});
  using testing::HasSubstr;
  const auto message = [&](std::int32_t sequence, std::int32_t position) {
    return message_of(context, make_tokens(sizes, {0, sequence}, {0, position}));
  };
  EXPECT_THAT(message(3, 0), HasSubstr("token 1 has sequence 3"));
  EXPECT_THAT(message(-2, 0), HasSubstr("token 1 has sequence -2"));
  EXPECT_THAT(message(0, 96), HasSubstr("token 1 has position 96"));
  EXPECT_THAT(message(0, -1), HasSubstr("token 1 has position -1"));

  context.lengths.as<std::int32_t>()[1] = 97;
  EXPECT_THAT(message(1, 0), HasSubstr("sequence 1 has length 97"));
  context.lengths.as<std::int32_t>()[1] = 40;

  context.table.as<std::int32_t>()[12 + 2] = 36;
  EXPECT_THAT(message(1, 16), HasSubstr("block 36 of its sequence 1"));
  EXPECT_EQ(message(1, 15), "no error") << "what a token does not see is not read";
  context.table.as<std::int32_t>()[12 + 2] = -1;
  EXPECT_THAT(message(1, 30), HasSubstr("token 1 reads position 23 from block -1"));
}

TEST(Attend, StatesMayHaveGrownBeyondTheirSpec) {
  const Sizes sizes{};
  Context context = make_context(sizes, {96, 40, 10});
  const Tokens tokens = make_tokens(sizes, {0}, {50});
  const Attend op{.block_size = sizes.block_size};
  const HostTensor before = attend(op, context, tokens);
  // The kernel is prepared for one block's rows, and bound to all of them.
  for (HostTensor* state : {&context.keys, &context.values}) {
    state->operand = OperandSpec::contiguous({sizes.dtype, {8, sizes.kv_heads, sizes.features}});
  }
  EXPECT_EQ(attend(op, context, tokens).bytes, before.bytes);
}

TEST(Attend, RefusesWhatItHasNoRoomFor) {
  const Sizes sizes{.features = 1025};
  const Context c = make_context(sizes, {1, 1, 1});
  const Tokens t = make_tokens(sizes, {0}, {0});
  const Prepared prepared = prepare(prepare_attend, Attend{.block_size = 8},
                                    {t.queries, c.keys, c.values, c.table, int_tensor({1}, {0}),
                                     int_tensor({1}, {0}), c.lengths});
  EXPECT_THAT(prepared.reason, testing::HasSubstr("1025 features, at most 1024"));
}

}  // namespace
}  // namespace heddle::cpu

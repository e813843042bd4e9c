#include "device/cpu/kernel_run.h"
#include "heddle/error.h"

namespace heddle::cpu {
namespace {

struct Sizes {
  std::int64_t heads = 4, kv_heads = 2, features = 20;
  std::int64_t block_size = 8, sequences = 3, table_width = 12;
  DType dtype = DType::f16;
  std::int64_t rows() const { return sequences * table_width * block_size; }
};

/// States of several sequences whose blocks lie in a scrambled order.
struct Context {
  Sizes sizes;
  HostTensor keys, values, table, lengths;
};

Context make_context(const Sizes& s, const std::vector<std::int32_t>& lengths) {
  std::vector<std::int32_t> table(static_cast<std::size_t>(s.sequences * s.table_width));
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i);
  std::shuffle(table.begin(), table.end(), std::mt19937(3));
  const Shape state{s.rows(), s.kv_heads, s.features};
  return {s, random_tensor(s.dtype, state, 1), random_tensor(s.dtype, state, 2),
          int_tensor({s.sequences, s.table_width}, table), int_tensor({s.sequences}, lengths)};
}

struct Tokens {
  HostTensor queries;
  std::vector<std::int32_t> sequence, position;

  Tokens part(std::size_t first, std::size_t count) const {
    const Shape& shape = queries.operand.spec.shape;
    Tokens result{make_tensor(DType::f32, {static_cast<std::int64_t>(count), shape[1], shape[2]}),
                  {sequence.begin() + static_cast<std::ptrdiff_t>(first),
                   sequence.begin() + static_cast<std::ptrdiff_t>(first + count)},
                  {position.begin() + static_cast<std::ptrdiff_t>(first),
                   position.begin() + static_cast<std::ptrdiff_t>(first + count)}};
    const std::size_t row = row_size();
    std::memcpy(result.queries.bytes.data(), queries.bytes.data() + first * row, count * row);
    return result;
  }
  std::size_t row_size() const {
    const Shape& shape = queries.operand.spec.shape;
    return static_cast<std::size_t>(shape[1] * shape[2]) * sizeof(float);
  }
};

Tokens make_tokens(const Sizes& s, std::vector<std::int32_t> sequence,
                   std::vector<std::int32_t> position) {
  const auto count = static_cast<std::int64_t>(sequence.size());
  return {random_tensor(DType::f32, {count, s.heads, s.features}, 9), std::move(sequence),
          std::move(position)};
}

HostTensor attend(const Attend& op, const Context& c, const Tokens& t, RunOptions options = {}) {
  const auto count = static_cast<std::int64_t>(t.sequence.size());
  return run_kernel(prepare_attend, op,
                    {t.queries, c.keys, c.values, c.table, int_tensor({count}, t.sequence),
                     int_tensor({count}, t.position), c.lengths},
                    options)[0];
}

std::vector<double> reference(const Attend& op, const Context& c, const Tokens& t) {
  const Sizes& s = c.sizes;
  const auto features = static_cast<std::size_t>(s.features);
  std::vector<double> out(t.sequence.size() * static_cast<std::size_t>(s.heads) * features);
  for (std::size_t token = 0; token < t.sequence.size(); ++token) {
    if (t.sequence[token] < 0) continue;
    const auto sequence = static_cast<std::size_t>(t.sequence[token]);
    const std::int64_t position = t.position[token];
    const auto end = std::min<std::int64_t>(
        position + 1, static_cast<std::int64_t>(element(c.lengths, sequence)));
    const std::int64_t begin =
        op.window > 0 ? std::max<std::int64_t>(0, position + 1 - op.window) : 0;
    for (std::int64_t head = 0; head < s.heads; ++head) {
      const std::size_t q =
          (token * static_cast<std::size_t>(s.heads) + static_cast<std::size_t>(head)) * features;
      const auto state_at = [&](std::int64_t p) {
        const auto block = static_cast<std::int64_t>(
            element(c.table, sequence * static_cast<std::size_t>(s.table_width) +
                                 static_cast<std::size_t>(p / s.block_size)));
        const std::int64_t row = block * s.block_size + p % s.block_size;
        return static_cast<std::size_t>(row * s.kv_heads + head / (s.heads / s.kv_heads)) *
               features;
      };
      double sum = 0;
      for (std::int64_t p = begin; p < end; ++p) {
        double score = 0;
        for (std::size_t i = 0; i < features; ++i) {
          score += element(t.queries, q + i) * element(c.keys, state_at(p) + i);
        }
        const double weight = std::exp(score * static_cast<double>(op.scale));
        sum += weight;
        for (std::size_t i = 0; i < features; ++i) {
          out[q + i] += weight * element(c.values, state_at(p) + i);
        }
      }
      for (std::size_t i = 0; i < features; ++i) {
        if (sum > 0) out[q + i] /= sum;
      }
    }
  }
  return out;
}

void expect_near(const HostTensor& out, const std::vector<double>& expected, const char* what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(element(out, i), expected[i], 2e-6 * (1 + std::abs(expected[i])))
        << what << " element " << i;
  }
}

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

/// A prompt of `count` tokens of sequence 0 from `first` on.
Tokens prompt(const Sizes& sizes, std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> position(count);
  for (std::size_t i = 0; i < count; ++i) position[i] = first + static_cast<std::int32_t>(i);
  return make_tokens(sizes, std::vector<std::int32_t>(count, 0), position);
}

void expect_same_bits_in_parts(const Attend& op, const Context& context, const Tokens& tokens) {
  const HostTensor all = attend(op, context, tokens);
  for (const int threads : {1, 2, 8}) {
    for (const std::size_t chunk : {1, 2, 3, 7, 8, 31, 67}) {
      for (std::size_t first = 0; first < tokens.sequence.size(); first += chunk) {
        const std::size_t count = std::min(chunk, tokens.sequence.size() - first);
        const HostTensor some = attend(op, context, tokens.part(first, count), {threads});
        ASSERT_TRUE(same_bytes(all, first * tokens.row_size(), some, 0, some.bytes.size()))
            << "tokens " << first << " + " << count << " threads " << threads;
      }
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

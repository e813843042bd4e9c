// States of q8_0: how rows are written, and attended to.
#include <limits>

#include "device/cpu/attend_run.h"
#include "device/cpu/quant.h"
#include "tensor/blocks.h"

namespace heddle::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<BlockQ8_0> encode(Isa level, const std::vector<float>& x) {
  std::vector<BlockQ8_0> blocks(x.size() / kSmallBlock);
  quant_loops(level).encode_q8_0(x.data(), blocks.data(), static_cast<std::int64_t>(x.size()));
  return blocks;
}

float scale_of(const BlockQ8_0& block) {
  return f16_bits_to_f32(block.d);
}

/// One block whose largest magnitude is `largest`.
std::vector<float> block_up_to(float largest, std::uint32_t seed) {
  std::vector<float> x(kSmallBlock);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-largest, largest);
  for (float& value : x) value = uniform(generator);
  x[seed % kSmallBlock] = seed % 2 ? largest : -largest;
  return x;
}

TEST(Q8States, RoundToNearestInStepsOfThe127thPart) {
  for (const Isa level : levels()) {
    std::uint32_t seed = 0;
    for (float largest = 1e-9f; largest < 1e6f; largest *= 1.37f) {
      const std::vector<float> x = block_up_to(largest, ++seed);
      const BlockQ8_0 block = encode(level, x)[0];
      const double step = static_cast<double>(scale_of(block));
      // As near as f16 comes to it, which for its subnormals is 2^-24.
      ASSERT_NEAR(step, static_cast<double>(largest) / 127,
                  std::max(static_cast<double>(largest) / 127 * 0x1p-11, 0x1p-24));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = static_cast<double>(x[i]) / step;
        ASSERT_LE(std::abs(block.qs[i] - exact), 0.5 + 1e-6) << largest << ' ' << i;
        ASSERT_GE(block.qs[i], -127);
      }
    }
  }
}

TEST(Q8States, AreTheSameBitsAtEveryLevel) {
  std::vector<float> x;
  for (std::uint32_t seed = 1; seed < 200; ++seed) {
    const std::vector<float> block =
        block_up_to(std::pow(1.2f, static_cast<float>(seed) - 100), seed);
    x.insert(x.end(), block.begin(), block.end());
  }
  const std::vector<BlockQ8_0> want = encode(Isa::portable, x);
  for (const Isa level : levels()) {
    const std::vector<BlockQ8_0> got = encode(level, x);
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(BlockQ8_0)), 0);
  }
}

TEST(Q8States, KeepZerosAndWhatIsNotFiniteAndSaturate) {
  for (const Isa level : levels()) {
    std::vector<float> x(4 * kSmallBlock, 0.0f);
    x[32 + 3] = std::numeric_limits<float>::quiet_NaN();
    x[64 + 31] = -kInfinity;
    x[96] = 3e38f, x[97] = -1e7f, x[98] = 65504.0f;
    const std::vector<BlockQ8_0> blocks = encode(level, x);
    std::vector<float> back(x.size());
    quant_loops(level).decode_q8_0(reinterpret_cast<const std::byte*>(blocks.data()),
                                   static_cast<std::int64_t>(x.size()), back.data());
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(back[i], 0.0f);
    for (std::size_t i = 32; i < 96; ++i) EXPECT_TRUE(std::isnan(back[i])) << i;
    EXPECT_EQ(back[96], 127 * 65504.0f);
    EXPECT_EQ(back[97], -127 * 65504.0f);
    EXPECT_EQ(back[98], 65504.0f);
    EXPECT_EQ(back[99], 0.0f);
  }
}

TEST(Q8States, DecodeAsTheFormatSays) {
  std::vector<BlockQ8_0> blocks(300);
  std::mt19937 generator(1);
  for (BlockQ8_0& block : blocks) {
    block.d = static_cast<std::uint16_t>(generator() % 0x7c00);  // finite, subnormals included
    for (std::int8_t& code : block.qs) code = static_cast<std::int8_t>(generator());
  }
  const auto count = static_cast<std::int64_t>(blocks.size()) * kSmallBlock;
  std::vector<float> want(static_cast<std::size_t>(count)), got(want.size());
  dequantize_row(DType::q8_0, blocks.data(), want.data(), count);
  for (const Isa level : levels()) {
    quant_loops(level).decode_q8_0(reinterpret_cast<const std::byte*>(blocks.data()), count,
                                   got.data());
    EXPECT_EQ(got, want) << static_cast<int>(level);
  }
}

TEST(Q8States, AreWrittenByWriteRows) {
  const HostTensor x = random_tensor(DType::f32, {3, 2, 64}, 1);
  HostTensor state = make_tensor(DType::q8_0, {5, 2, 64});
  for (const Isa level : levels()) {
    const IsaScope scope(level);
    const std::vector<HostTensor> inputs{state, x, int_tensor({3}, {4, -1, 0})};
    const Prepared prepared = prepare(prepare_rows, WriteRows{}, inputs);
    ASSERT_TRUE(prepared) << prepared.reason;
    std::vector<Operand> operands;
    for (const HostTensor& input : inputs) {
      operands.push_back({const_cast<std::byte*>(input.bytes.data()), input.bytes.size()});
    }
    const Operand out{state.bytes.data(), state.bytes.size()};
    Team team(2);
    static_cast<const CpuKernel&>(*prepared.kernel).run({operands, {&out, 1}, nullptr, -1, team});
    const auto* floats = reinterpret_cast<const float*>(x.bytes.data());
    const std::size_t row = row_bytes(DType::q8_0, 128);
    for (const auto& [token, to] : {std::pair{0, 4}, {2, 0}}) {
      const auto want =
          encode(level, std::vector(floats + token * 128, floats + token * 128 + 128));
      EXPECT_EQ(
          std::memcmp(state.bytes.data() + static_cast<std::size_t>(to) * row, want.data(), row),
          0);
    }
  }
}

// ---- Attention

struct AttendCase {
  std::int64_t heads, kv_heads, features;
};

TEST(Q8States, AreAttendedToAsTheirFloatsAre) {
  constexpr std::int64_t kBlockSize = 8, kWidth = 90;
  for (const AttendCase& c : {AttendCase{4, 2, 32}, {3, 1, 96}, {2, 2, 128}}) {
    const Shape shape{2 * kWidth * kBlockSize, c.kv_heads, c.features};
    const HostTensor keys = random_state(DType::q8_0, shape, 1);
    const HostTensor values = random_state(DType::q8_0, shape, 2);
    const HostTensor key_floats = readable(keys), value_floats = readable(values);
    std::vector<std::int32_t> table(2 * kWidth);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i);
    std::shuffle(table.begin(), table.end(), std::mt19937(3));
    const std::vector<HostTensor> rest{
        int_tensor({2, kWidth}, table), int_tensor({6}, {0, 0, 0, 1, -1, 1}),
        int_tensor({6}, {17, 18, 600, 700, 0, 3}), int_tensor({2}, {601, 720})};
    const HostTensor queries = random_tensor(DType::f32, {6, c.heads, c.features}, 4);
    const auto run = [&](const HostTensor& k, const HostTensor& v, int threads) {
      std::vector<HostTensor> inputs{queries, k, v};
      inputs.insert(inputs.end(), rest.begin(), rest.end());
      const Attend op{.scale = 0.2f, .block_size = kBlockSize};
      return run_kernel(prepare_attend, op, inputs, {threads})[0];
    };
    for (const Isa level : levels()) {
      const IsaScope scope(level);
      const HostTensor want = run(key_floats, value_floats, 1);
      for (const int threads : {1, 2, 8}) {
        EXPECT_EQ(run(keys, values, threads).bytes, want.bytes);
        EXPECT_EQ(run(keys, value_floats, threads).bytes, want.bytes);
      }
    }
  }
}

}  // namespace
}  // namespace heddle::cpu

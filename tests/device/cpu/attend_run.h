// Attend run on states of several sequences, and its float64 reference.
#pragma once

#include "device/cpu/kernel_run.h"
#include "device/cpu/quant.h"
#include "tensor/blocks.h"

namespace heddle::cpu {

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

inline HostTensor random_state(DType dtype, const Shape& shape, std::uint32_t seed) {
  if (dtype != DType::q8_0) return random_tensor(dtype, shape, seed);
  const HostTensor x = random_tensor(DType::f32, shape, seed);
  HostTensor state = make_tensor(dtype, shape);
  quant_loops(Isa::portable)
      .encode_q8_0(reinterpret_cast<const float*>(x.bytes.data()), state.bytes.data(),
                   elements(shape));
  return state;
}

/// The same numbers in a type that `element` reads.
inline HostTensor readable(const HostTensor& state) {
  if (state.operand.spec.dtype != DType::q8_0) return state;
  HostTensor floats = make_tensor(DType::f32, state.operand.spec.shape);
  dequantize_row(DType::q8_0, state.bytes.data(), floats.as<float>(),
                 elements(state.operand.spec.shape));
  return floats;
}

inline Context make_context(const Sizes& s, const std::vector<std::int32_t>& lengths) {
  std::vector<std::int32_t> table(static_cast<std::size_t>(s.sequences * s.table_width));
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i);
  std::shuffle(table.begin(), table.end(), std::mt19937(3));
  const Shape state{s.rows(), s.kv_heads, s.features};
  return {s, random_state(s.dtype, state, 1), random_state(s.dtype, state, 2),
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

inline Tokens make_tokens(const Sizes& s, std::vector<std::int32_t> sequence,
                          std::vector<std::int32_t> position) {
  const auto count = static_cast<std::int64_t>(sequence.size());
  return {random_tensor(DType::f32, {count, s.heads, s.features}, 9), std::move(sequence),
          std::move(position)};
}

inline HostTensor attend(const Attend& op, const Context& c, const Tokens& t,
                         RunOptions options = {}) {
  const auto count = static_cast<std::int64_t>(t.sequence.size());
  return run_kernel(prepare_attend, op,
                    {t.queries, c.keys, c.values, c.table, int_tensor({count}, t.sequence),
                     int_tensor({count}, t.position), c.lengths},
                    options)[0];
}

inline std::vector<double> reference(const Attend& op, const Context& c, const Tokens& t) {
  const Sizes& s = c.sizes;
  const HostTensor keys = readable(c.keys), values = readable(c.values);
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
          score += element(t.queries, q + i) * element(keys, state_at(p) + i);
        }
        const double weight = std::exp(score * static_cast<double>(op.scale));
        sum += weight;
        for (std::size_t i = 0; i < features; ++i) {
          out[q + i] += weight * element(values, state_at(p) + i);
        }
      }
      for (std::size_t i = 0; i < features; ++i) {
        if (sum > 0) out[q + i] /= sum;
      }
    }
  }
  return out;
}

inline void expect_near(const HostTensor& out, const std::vector<double>& expected,
                        const char* what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(element(out, i), expected[i], 2e-6 * (1 + std::abs(expected[i])))
        << what << " element " << i;
  }
}

/// A prompt of `count` tokens of sequence 0 from `first` on.
inline Tokens prompt(const Sizes& sizes, std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> position(count);
  for (std::size_t i = 0; i < count; ++i) position[i] = first + static_cast<std::int32_t>(i);
  return make_tokens(sizes, std::vector<std::int32_t>(count, 0), position);
}

inline void expect_same_bits_in_parts(const Attend& op, const Context& context,
                                      const Tokens& tokens) {
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

}  // namespace heddle::cpu

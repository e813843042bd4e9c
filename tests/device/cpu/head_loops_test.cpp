// The loops that read stored heads, against decoded copies of them.
#include "device/cpu/head_loops.h"

#include "device/cpu/attend_run.h"
#include "device/cpu/products.h"

namespace heddle::cpu {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0};

/// Rows of two heads, of which the second is looked at.
struct Heads {
  std::int64_t features;
  HostTensor state, floats;

  Heads(DType dtype, std::int64_t rows, std::int64_t count)
      : features(count), state(random_state(dtype, {rows, 2, count}, 5)), floats(readable(state)) {}
  const std::byte* row(std::int64_t i) const { return state.bytes.data() + i * 2 * offset(); }
  std::int64_t offset() const {
    return static_cast<std::int64_t>(row_bytes(state.operand.spec.dtype, features));
  }
  float at(std::int64_t i, std::int64_t feature) const {
    return static_cast<float>(
        element(floats, static_cast<std::size_t>((2 * i + 1) * features + feature)));
  }
};

std::vector<std::int64_t> feature_counts(DType dtype) {
  if (dtype == DType::q8_0) return {32, 64, 96, 128, 256};
  return {1, 15, 16, 17, 40, 64, 80, 128, 130};
}

TEST(HeadLoops, KeyPanelsAreTheRowsTransposed) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t features : feature_counts(dtype)) {
      const Heads heads(dtype, 16, features);
      for (const std::int64_t missing : {-1, 0, 7, 15}) {
        std::vector<const std::byte*> rows(16);
        for (std::int64_t r = 0; r < 16; ++r) {
          rows[static_cast<std::size_t>(r)] = r == missing ? nullptr : heads.row(r);
        }
        for (const Isa level : levels()) {
          std::vector<float> panel(static_cast<std::size_t>(round_up_to_panel(features) * 16), 7);
          head_loops(level, dtype)
              ->key_panel({.rows = rows.data(),
                           .offset = heads.offset(),
                           .features = features,
                           .panel = panel.data(),
                           .next = {rows.data() + 1, 14, heads.offset()}});
          for (std::int64_t i = 0; i < static_cast<std::int64_t>(panel.size()); ++i) {
            const std::int64_t feature = i / 16, r = i % 16;
            const float want = feature < features && r != missing ? heads.at(r, feature) : 0.0f;
            ASSERT_EQ(panel[static_cast<std::size_t>(i)], want)
                << to_string(dtype) << " row " << r << " feature " << feature;
          }
        }
      }
    }
  }
}

/// The same by TileJob on decoded values.
void add_decoded(const Products& loops, const ValuesJob& job, const std::vector<float>& decoded,
                 float* out) {
  const std::int64_t padded = round_up_to_panel(job.features);
  for (std::int64_t column = 0; column < padded; column += kGroupColumns) {
    loops.tile({job.weights, kWeightsStride, job.rows, decoded.data() + column, padded, kPanel,
                job.depth, std::min(kGroupColumns, padded - column), out + column, padded,
                job.scales});
  }
}

TEST(HeadLoops, StoredValuesAddUpToTheBitsOfDecodedOnes) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t features : feature_counts(dtype)) {
      const Heads heads(dtype, 64, features);
      const std::int64_t padded = round_up_to_panel(features);
      std::vector<float> decoded(static_cast<std::size_t>(64 * padded));
      std::vector<const std::byte*> rows(64);
      for (std::int64_t k = 0; k < 64; ++k) {
        rows[static_cast<std::size_t>(k)] = heads.row(k);
        for (std::int64_t f = 0; f < features; ++f) {
          decoded[static_cast<std::size_t>(k * padded + f)] = heads.at(k, f);
        }
      }
      const HostTensor weights = random_tensor(DType::f32, {20, 64}, 1);
      const HostTensor scales = random_tensor(DType::f32, {20}, 2);
      const HostTensor before = random_tensor(DType::f32, {20, padded}, 3);
      for (const Isa level : levels()) {
        for (const std::int64_t count : {1, 2, 3, 4, 5, 7, 8, 9, 16, 20}) {
          for (const std::int64_t depth : {1, 33, 64}) {
            HostTensor got = before, want = before;
            const ValuesJob job{.weights = reinterpret_cast<const float*>(weights.bytes.data()),
                                .rows = count,
                                .values = rows.data(),
                                .offset = heads.offset(),
                                .depth = depth,
                                .features = features,
                                .out = got.as<float>(),
                                .out_stride = padded,
                                .scales = reinterpret_cast<const float*>(scales.bytes.data()),
                                .next = {rows.data(), depth, heads.offset()}};
            head_loops(level, dtype)->add_values(job);
            add_decoded(products(level), job, decoded, want.as<float>());
            ASSERT_EQ(got.bytes, want.bytes)
                << to_string(dtype) << " features " << features << " rows " << count << " depth "
                << depth << " level " << static_cast<int>(level);
          }
        }
      }
    }
  }
}

TEST(HeadLoops, OtherTypesHaveNone) {
  EXPECT_EQ(head_loops(isa(), DType::q4_0), nullptr);
  EXPECT_EQ(head_loops(isa(), DType::i32), nullptr);
}

}  // namespace
}  // namespace heddle::cpu

// Products with operands rounded to bf16 (HEDDLE_MATMUL=bf16), in every form that runs here.
#include <limits>

#include "device/cpu/forms.h"
#include "device/cpu/linear_run.h"

namespace heddle::cpu {
namespace {

struct RoundedForm {
  std::string name;
  LinearForms forms;
};

/// Each level's, and the one without instructions for bf16 where the level has them.
std::vector<RoundedForm> rounded_forms() {
  std::vector<RoundedForm> all;
  for (const Isa level : levels()) {
    all.push_back({std::string(setting_of(level)), forms_for(level, true)});
  }
#if defined(__x86_64__)
  if (isa() >= Isa::avx512 && has_avx512_bf16()) {
    LinearForms plain = forms_for(Isa::avx512, true);
    plain.rounded = &avx512::kRoundedProducts;
    all.push_back({"avx512 without BF16", plain});
  }
#endif
  return all;
}

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

class RoundedLinear : public testing::TestWithParam<DType> {};

TEST_P(RoundedLinear, IsTheProductOfRoundedOperands) {
  std::uint32_t seed = 1;
  for (const std::int64_t rows : {1, 3, 7, 13, 97}) {
    for (const std::int64_t columns : {1, 15, 16, 17, 33, 65, 130}) {
      for (const std::int64_t depth : {0, 1, 2, 15, 31, 32, 33, 128, 255, 256, 301}) {
        const HostTensor x = random_tensor(DType::f32, {rows, depth}, ++seed);
        const HostTensor weight = random_tensor(GetParam(), {columns, depth}, ++seed);
        const PlainReference expected = plain_reference(as_bf16(x), as_bf16(weight));
        for (const RoundedForm& form : rounded_forms()) {
          const FormsScope scope(form.forms);
          for (const HostTensor& w : {weight, packed(weight)}) {
            const HostTensor out = linear(x, w);
            for (std::size_t i = 0; i < expected.sums.size(); ++i) {
              ASSERT_NEAR(element(out, i), expected.sums[i], 1e-6 * expected.magnitudes[i] + 1e-37)
                  << to_string(w.operand) << " rows " << rows << " element " << i << " "
                  << form.name;
            }
          }
        }
      }
    }
  }
}

TEST_P(RoundedLinear, ARowHasTheSameBitsAloneAndInCompany) {
  constexpr std::int64_t kRows = 67, kDepth = 301, kColumns = 150;
  const HostTensor x = random_tensor(DType::f32, {kRows, kDepth}, 5);
  const HostTensor weight = random_tensor(GetParam(), {kColumns, kDepth}, 6);
  for (const RoundedForm& form : rounded_forms()) {
    const FormsScope scope(form.forms);
    for (const HostTensor& w : {weight, packed(weight)}) {
      const HostTensor all = linear(x, w);
      for (const int threads : {1, 2, 8}) {
        for (std::int64_t count = 1; count <= kRows; count += count < 14 ? 1 : 9) {
          const std::int64_t first = (count * 7) % (kRows - count + 1);
          const HostTensor some = linear(rows_of(x, first, count), w, {threads});
          ASSERT_TRUE(same_bytes(all, static_cast<std::size_t>(first * kColumns) * sizeof(float),
                                 some, 0, some.bytes.size()))
              << to_string(w.operand) << " rows " << first << " + " << count << ", " << threads
              << " threads, " << form.name;
        }
      }
    }
  }
}

TEST_P(RoundedLinear, WhatIsNotFiniteStaysInItsRowAndColumn) {
  for (const RoundedForm& form : rounded_forms()) {
    const FormsScope scope(form.forms);
    HostTensor x = random_tensor(DType::f32, {20, 41}, 1);
    HostTensor weight = random_tensor(GetParam(), {20, 41}, 2);
    x.as<float>()[3 * 41 + 40] = std::numeric_limits<float>::quiet_NaN();
    set_element(weight, 18 * 41 + 40, std::numeric_limits<double>::infinity());
    for (const HostTensor& w : {weight, packed(weight)}) {
      const HostTensor out = linear(x, w);
      for (std::size_t r = 0; r < 20; ++r) {
        for (std::size_t c = 0; c < 20; ++c) {
          const double value = element(out, r * 20 + c);
          if (r == 3) {
            EXPECT_TRUE(std::isnan(value)) << form.name;
          } else {
            EXPECT_EQ(std::isfinite(value), c != 18) << r << ' ' << c << " " << form.name;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoundedLinear, testing::ValuesIn(kTypes),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST(RoundedLinear, LeavesBlockTypesAlone) {
  const HostTensor x = random_tensor(DType::f32, {9, 512}, 1);
  const std::vector<HostTensor> inputs = {
      x, random_tensor(DType::f16, {33, 512}, 2), packed(random_blocks(DType::q4_K, 40, 512, 3)),
      packed(random_tensor(DType::bf16, {65, 512}, 4)), random_blocks(DType::q8_0, 17, 512, 5)};
  for (const RoundedForm& form : rounded_forms()) {
    for (const int threads : {1, 3}) {
      std::vector<HostTensor> together;
      {
        const FormsScope scope(form.forms);
        together = run_kernel(prepare_linear, Linear{}, inputs, {threads});
        for (std::size_t i = 0; i < together.size(); ++i) {
          EXPECT_EQ(together[i].bytes, linear(x, inputs[i + 1]).bytes) << i << " " << form.name;
        }
      }
      LinearForms exact = form.forms;
      exact.rounded = nullptr;
      const FormsScope scope(exact);
      EXPECT_EQ(together[1].bytes, linear(x, inputs[2]).bytes) << form.name;
      EXPECT_EQ(together[3].bytes, linear(x, inputs[4]).bytes) << form.name;
      EXPECT_NE(together[0].bytes, linear(x, inputs[1]).bytes) << form.name;
    }
  }
}

TEST(RoundedLinear, AnExtentLeavesLaterRowsAlone) {
  const HostTensor x = random_tensor(DType::f32, {8, 3, 21}, 1);
  const HostTensor weight = random_tensor(DType::f16, {17, 21}, 2);
  for (const RoundedForm& form : rounded_forms()) {
    const FormsScope scope(form.forms);
    const HostTensor all = linear(x, weight);
    for (const std::int64_t extent : {0, 1, 5, 8, 9}) {
      const HostTensor some = linear(x, weight, {.extent = extent});
      const std::size_t written =
          static_cast<std::size_t>(std::min<std::int64_t>(extent, 8)) * 3 * 17 * sizeof(float);
      EXPECT_TRUE(same_bytes(all, 0, some, 0, written));
      for (std::size_t i = written; i < some.bytes.size(); ++i) {
        ASSERT_EQ(some.bytes[i], kUntouched);
      }
    }
  }
}

TEST(RoundedLinear, ExpertsAreRoundedAlike) {
  const HostTensor x = random_tensor(DType::f32, {30, 45}, 1);
  HostTensor experts = random_tensor(DType::f16, {2, 19, 45}, 2);
  std::vector<std::int32_t> chosen;
  for (int t = 0; t < 30; ++t) chosen.push_back(t / 7 % 2);
  for (const RoundedForm& form : rounded_forms()) {
    const FormsScope scope(form.forms);
    const HostTensor out = run_kernel(prepare_grouped_linear, GroupedLinear{},
                                      {x, experts, int_tensor({30}, chosen)}, {2})[0];
    for (int e = 0; e < 2; ++e) {
      HostTensor own = make_tensor(DType::f16, {19, 45});
      const auto from = experts.bytes.begin() + e * static_cast<std::ptrdiff_t>(own.bytes.size());
      std::copy_n(from, own.bytes.size(), own.bytes.begin());
      const HostTensor want = linear(x, own);
      for (std::size_t t = 0; t < 30; ++t) {
        if (chosen[t] != e) continue;
        EXPECT_TRUE(same_bytes(out, t * 19 * sizeof(float), want, t * 19 * sizeof(float),
                               19 * sizeof(float)))
            << form.name << " row " << t;
      }
    }
  }
}

// Of the setting: what it costs in precision. Half a unit of bf16's last place is 2^-9 of a number.
TEST(RoundedLinear, ErrsLessThanRoundingBothOperandsMay) {
  const HostTensor x = random_tensor(DType::f32, {4, 2048}, 7);
  const HostTensor w = random_tensor(DType::f16, {40, 2048}, 8);
  const PlainReference expected = plain_reference(x, w);
  for (const RoundedForm& form : rounded_forms()) {
    const FormsScope scope(form.forms);
    const HostTensor out = linear(x, packed(w));
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < expected.sums.size(); ++i) {
      error += std::pow(element(out, i) - expected.sums[i], 2);
      norm += std::pow(expected.sums[i], 2);
    }
    EXPECT_LT(std::sqrt(error / norm), 4e-3) << form.name;
  }
}

}  // namespace
}  // namespace heddle::cpu

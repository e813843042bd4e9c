// Linear on Vulkan: every weight type in every form, which must agree to the bit.
#include <cmath>
#include <cstring>

#include "device/vulkan/device.h"
#include "device/vulkan/product_forms.h"

namespace heddle::test {
namespace {

constexpr DType kTypes[] = {DType::f32,  DType::f16,  DType::bf16, DType::q4_0,   DType::q4_1,
                            DType::q5_0, DType::q5_1, DType::q8_0, DType::q2_K,   DType::q3_K,
                            DType::q4_K, DType::q5_K, DType::q6_K, DType::iq4_nl, DType::iq4_xs};

std::vector<Values> decoded(const std::vector<Tensor>& tensors) {
  std::vector<Values> values;
  for (const Tensor& tensor : tensors) {
    values.push_back(decode(tensor.operand, tensor.bytes.data()));
  }
  return values;
}

/// Every type, on a device with all features and on one without the optional ones.
class LinearTypes : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (!vulkan_device()) GTEST_SKIP() << "no Vulkan device: " << why_no_vulkan();
  }
  static Device& device() { return *vulkan_device(); }
  static Device& minimal_device() {
    static const std::unique_ptr<Device> made =
        vulkan::make_device(vulkan::physical_devices().all.front(), "minimal", {.minimal = true});
    return *made;
  }
};

struct Sizes {
  std::int64_t rows, columns, depth;
};

void expect_reference(Device& device, DType dtype, const Sizes& sizes, Random& random) {
  SCOPED_TRACE(testing::Message() << sizes.rows << " rows, " << sizes.columns << " columns, depth "
                                  << sizes.depth);
  const std::vector<Tensor> inputs{random_tensor(DType::f32, {sizes.rows, sizes.depth}, random),
                                   random_tensor(dtype, {sizes.columns, sizes.depth}, random)};
  const std::vector<Tensor> outputs = expect_forms_agree(device, Linear{}, inputs);
  ASSERT_EQ(outputs.size(), 1u);
  const Values want = reference(Linear{}, decoded(inputs))[0];
  const Values got = decode(outputs[0].operand, outputs[0].bytes.data());
  // Hundreds of products of at most 2 x 2.
  EXPECT_EQ(difference(got, want, {4, 3e-5}), "");
  if (sizes.depth > 0) {
    EXPECT_LT(relative_error(got, want), 1e-6);
  }
}

// Drivers take a while over each pipeline, and the number of rows chooses it: so every type is
// tried with one and with five rows, and some types with more.
TEST_P(LinearTypes, AgreesWithTheReferenceInEveryForm) {
  Random random(1);
  std::vector<Sizes> sizes{{1, 70, 512}, {5, 33, 768}, {5, 3, 0}};
  if (!is_block(GetParam())) {
    sizes.insert(sizes.end(), {{1, 9, 1}, {5, 66, 65}, {5, 7, 100}});
  }
  for (const Sizes& s : sizes) expect_reference(device(), GetParam(), s, random);
}

TEST_P(LinearTypes, TakesSmallWeightsWhoseScalesAreSubnormal) {
  Random random(10);
  const std::vector<Tensor> inputs{
      random_tensor(DType::f32, {5, 256}, random),
      random_tensor(GetParam(), {9, 256}, random, {.low = -2e-4, .high = 2e-4})};
  const Values want = reference(Linear{}, decoded(inputs))[0];
  in_every_form([&] {
    const Ran ran = run_op(device(), Linear{}, inputs);
    ASSERT_EQ(ran.refused, "");
    EXPECT_LT(relative_error(decode(ran.outputs[0].operand, ran.outputs[0].bytes.data()), want),
              1e-6);
  });
}

TEST_P(LinearTypes, ARowHasTheSameBitsAloneAndInCompany) {
  Random random(2);
  const std::vector<Tensor> inputs{random_tensor(DType::f32, {5, 512}, random),
                                   random_tensor(GetParam(), {67, 512}, random)};
  in_every_form([&] { expect_rows_alone(device(), Linear{}, inputs); });
}

TEST_P(LinearTypes, ADeviceWithoutOptionalFeaturesGivesTheSameBits) {
  Random random(3);
  const std::vector<Tensor> inputs{random_tensor(DType::f32, {5, 512}, random),
                                   random_tensor(GetParam(), {35, 512}, random)};
  const std::vector<Tensor> full = expect_forms_agree(device(), Linear{}, inputs);
  const std::vector<Tensor> minimal = expect_forms_agree(minimal_device(), Linear{}, inputs);
  ASSERT_EQ(full.size(), minimal.size());
  EXPECT_EQ(full[0].bytes, minimal[0].bytes);
}

/// A copy of the tensor `offset` bytes into a buffer.
View view_at(Device& device, const Tensor& tensor, std::size_t offset) {
  Ref<Buffer> buffer = device.allocate(offset + tensor.bytes.size(), MemoryKind::host_visible);
  std::memcpy(buffer->host() + offset, tensor.bytes.data(), tensor.bytes.size());
  return {std::move(buffer), offset, tensor.operand};
}

TEST_P(LinearTypes, OperandsMayLieAtAnyAddressOfTheirItems) {
  Random random(4);
  const std::vector<Tensor> inputs{random_tensor(DType::f32, {5, 512}, random),
                                   random_tensor(GetParam(), {9, 512}, random)};
  const std::size_t item = GetParam() == DType::f32 ? 4 : 2;
  in_every_form([&] {
    const Ran aligned = run_op(device(), Linear{}, inputs);
    ASSERT_EQ(aligned.refused, "");
    for (const std::size_t step : {1, 2, 3}) {
      const View in[] = {view_at(device(), inputs[0], 4 * step),
                         view_at(device(), inputs[1], item * step)};
      const View out[] = {view_at(device(), aligned.outputs[0], 4 * step)};
      std::memset(out[0].host(), 0, aligned.outputs[0].bytes.size());
      const OperandSpec operands[] = {in[0].operand, in[1].operand};
      const OperandSpec results[] = {out[0].operand};
      const Prepared prepared = device().prepare(Linear{}, operands, results);
      ASSERT_TRUE(prepared) << prepared.reason;
      const Ref<Stream> stream = device().default_stream();
      stream->encode(prepared.kernel, in, out, {}, {});
      stream->submit()->wait();
      EXPECT_EQ(std::memcmp(out[0].host(), aligned.outputs[0].bytes.data(),
                            aligned.outputs[0].bytes.size()),
                0)
          << "at " << step << " items past a boundary";
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Types, LinearTypes, testing::ValuesIn(kTypes),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST_F(Vulkan, LinearOfManyRows) {
  Random random(9);
  for (const DType dtype : {DType::f32, DType::q8_0, DType::q4_K}) {
    SCOPED_TRACE(to_string(dtype));
    for (const Sizes& sizes : {Sizes{9, 65, 512}, {40, 130, 256}, {67, 33, 256}}) {
      expect_reference(device(), dtype, sizes, random);
    }
    const std::vector<Tensor> inputs{random_tensor(DType::f32, {35, 256}, random),
                                     random_tensor(dtype, {67, 256}, random)};
    in_every_form([&] { expect_rows_alone(device(), Linear{}, inputs); });
  }
}

TEST_F(Vulkan, LinearSumsLongRowsAccurately) {
  Random random(5);
  const std::vector<Tensor> inputs{random_tensor(DType::f32, {1, 20'000}, random),
                                   random_tensor(DType::f16, {40, 20'000}, random)};
  const std::vector<Tensor> outputs = expect_forms_agree(device(), Linear{}, inputs);
  ASSERT_EQ(outputs.size(), 1u);
  const Values want = reference(Linear{}, decoded(inputs))[0];
  EXPECT_LT(relative_error(decode(outputs[0].operand, outputs[0].bytes.data()), want), 1e-6);
}

TEST_F(Vulkan, LinearOfSeveralWeightsOfSeveralTypes) {
  Random random(6);
  std::vector<Tensor> inputs{random_tensor(DType::f32, {5, 256}, random)};
  const std::pair<DType, std::int64_t> weights[] = {
      {DType::q4_K, 33}, {DType::f16, 70}, {DType::q6_K, 0}, {DType::q4_K, 9}, {DType::q8_0, 64}};
  for (const auto& [dtype, columns] : weights) {
    inputs.push_back(random_tensor(dtype, {columns, 256}, random));
  }
  const Ran together = run_op(device(), Linear{}, inputs);
  ASSERT_EQ(together.refused, "");
  for (std::size_t i = 0; i < together.outputs.size(); ++i) {
    const Ran alone = run_op(device(), Linear{}, {inputs[0], inputs[i + 1]});
    EXPECT_EQ(alone.outputs[0].bytes, together.outputs[i].bytes) << i;
  }
}

TEST_F(Vulkan, LinearLeavesRowsBeyondAnExtentAlone) {
  Random random(7);
  const std::vector<Tensor> inputs{random_tensor(DType::f32, {8, 3, 64}, random),
                                   random_tensor(DType::q8_0, {17, 64}, random)};
  in_every_form([&] {
    const Ran all = run_op(device(), Linear{}, inputs);
    ASSERT_TRUE(all.traits.honours_extent);
    for (const std::int64_t extent : {0, 1, 5, 8, 9}) {
      const Ran some = run_op(device(), Linear{}, inputs, {.extent = extent});
      const std::vector<std::byte>& bytes = some.outputs[0].bytes;
      const std::size_t written =
          static_cast<std::size_t>(std::min<std::int64_t>(extent, 8)) * 3 * 17 * sizeof(float);
      EXPECT_EQ(std::memcmp(bytes.data(), all.outputs[0].bytes.data(), written), 0) << extent;
      for (std::size_t i = written; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], kUntouched);
    }
  });
}

TEST_F(Vulkan, LinearOfOneVectorAndOfNone) {
  Random random(8);
  const Tensor weight = random_tensor(DType::q4_0, {5, 64}, random);
  expect_conformance(device(), Linear{}, {random_tensor(DType::f32, {64}, random), weight},
                     {4, 1e-5});
  expect_conformance(device(), Linear{}, {random_tensor(DType::f32, {0, 64}, random), weight});
}

TEST_F(Vulkan, LinearPassesOnWhatIsNotANumber) {
  std::vector<double> x(64, 1);
  x[40] = NAN;
  x[3] = INFINITY;
  const std::vector<Tensor> inputs{tensor_of(DType::f32, {2, 32}, x),
                                   tensor_of(DType::f32, {2, 32}, std::vector<double>(64, 0.5))};
  in_every_form([&] {
    const Ran ran = run_op(device(), Linear{}, inputs);
    const Values got = decode(ran.outputs[0].operand, ran.outputs[0].bytes.data());
    for (const int i : {0, 1}) EXPECT_EQ(got.real[static_cast<std::size_t>(i)], INFINITY);
    for (const int i : {2, 3}) EXPECT_TRUE(std::isnan(got.real[static_cast<std::size_t>(i)]));
  });
}

std::string refusal(Device& device, const OperandSpec& x, const OperandSpec& weight) {
  const OperandSpec inputs[] = {x, weight};
  const OperandSpec out =
      OperandSpec::contiguous({DType::f32, {x.spec.shape[0], weight.spec.shape[0]}});
  return device.prepare(Linear{}, inputs, {&out, 1}).reason;
}

TEST_F(Vulkan, LinearRefusesWhatItCannotRead) {
  const OperandSpec x = OperandSpec::contiguous({DType::f32, {2, 64}});
  const OperandSpec weight = OperandSpec::contiguous({DType::f16, {32, 64}});
  EXPECT_EQ(refusal(device(), x, weight), "");
  EXPECT_NE(refusal(device(), x, {weight.spec, Layout::packed(LayoutKind::panel16)})
                .find("must be contiguous"),
            std::string::npos);
  EXPECT_NE(refusal(device(), x, arranged(DType::q4_0, {32, 64}, Arrangement::sliced))
                .find("must be contiguous"),
            std::string::npos);
  EXPECT_NE(refusal(device(), arranged(DType::f32, {2, 64}, Arrangement::transposed), weight)
                .find("must be contiguous"),
            std::string::npos);
  constexpr std::int64_t kLong = std::int64_t{1} << 31;
  const auto refuses_long = [&](std::int64_t rows, std::int64_t columns, std::int64_t depth) {
    return refusal(device(), OperandSpec::contiguous({DType::f32, {rows, depth}}),
                   OperandSpec::contiguous({DType::f16, {columns, depth}}))
               .find("2147483647") != std::string::npos;
  };
  EXPECT_TRUE(refuses_long(1, 1, kLong));
  EXPECT_TRUE(refuses_long(1, kLong, 1));
  EXPECT_TRUE(refuses_long(kLong, 1, 1));
  EXPECT_FALSE(refuses_long(1, 1, kLong - 1));
  EXPECT_FALSE(refuses_long(1, kLong - 1, 1));
  EXPECT_NE(refusal(device(), OperandSpec::contiguous({DType::f32, {1 << 24, 1}}),
                    OperandSpec::contiguous({DType::f16, {1 << 24, 1}}))
                .find("workgroups are more than a dispatch can count"),
            std::string::npos);
}

// ---- Which form

TEST(ProductForms, FollowTheDeviceAndTheRows) {
  using vulkan::product_form;
  vulkan::Limits limits{.max_group_size = 128, .shared_bytes = 16'384, .subgroup_size = 32};
  EXPECT_EQ(product_form(limits, 1), ProductForm::vector);
  EXPECT_EQ(product_form(limits, 8), ProductForm::vector);
  EXPECT_EQ(product_form(limits, 9), ProductForm::tiled);
  limits.shared_bytes = 16'383;  // a tile takes all 16 KiB that any device has
  EXPECT_EQ(product_form(limits, 9), ProductForm::scalar);
  EXPECT_EQ(product_form(limits, 8), ProductForm::vector);
  limits.shared_bytes = 16'384;
  limits.max_group_size = 127;
  EXPECT_EQ(product_form(limits, 9), ProductForm::scalar);
  limits.max_group_size = 128;
  limits.portability_subset = true;
  EXPECT_EQ(product_form(limits, 1), ProductForm::scalar);
  EXPECT_EQ(product_form(limits, 9), ProductForm::scalar);
  limits.portability_subset = false;
  limits.subgroup_size = 8;
  EXPECT_EQ(product_form(limits, 9), ProductForm::scalar);
}

TEST(ProductForms, AreForcedWhereTheyCanRun) {
  using vulkan::product_form;
  const vulkan::Limits able{.max_group_size = 128, .shared_bytes = 16'384, .subgroup_size = 8};
  const vulkan::Limits unable{.max_group_size = 64, .shared_bytes = 4'096, .subgroup_size = 8};
  for (const ProductForm form : kForms) {
    vulkan::force_product_form(form);
    EXPECT_EQ(product_form(able, 1), form);
    EXPECT_EQ(product_form(able, 100), form);
    EXPECT_EQ(product_form(unable, 1), ProductForm::scalar);
  }
  vulkan::force_product_form(std::nullopt);
}

}  // namespace
}  // namespace heddle::test

// The same random weights in f32 and in every block type, written by another program
// (../shared/reference/tiny): our decoder must find them where that program put them, and our
// encoder must not lose more than its did.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heddle/gguf.h"
#include "support/shared_files.h"
#include "tensor/blocks.h"
#include "tensor/quantize.h"
#include "tensor/tensor_test_support.h"

namespace heddle {
namespace {

std::vector<float> decoded(const gguf::Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(elements(tensor.shape)));
  dequantize_row(tensor.dtype, tensor.data.data(), values.data(), std::ssize(values));
  return values;
}

double error_of_our_encoding(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(row_bytes(dtype, std::ssize(values)));
  quantize_row(dtype, values.data(), bytes.data(), std::ssize(values));
  std::vector<float> back(values.size());
  dequantize_row(dtype, bytes.data(), back.data(), std::ssize(values));
  return test::relative_l2(back, values);
}

struct Case {
  const char* file;
  DType dtype;
  double least, most;  // measured over the file's tensors, widened by 0.5 %
};

class ReferenceModel : public testing::TestWithParam<Case> {};

TEST_P(ReferenceModel, DecodesToItsFloatTwinWithinTheTypesError) {
  const Case& expected = GetParam();
  const std::string directory = "reference/tiny/tiny-llama-";
  HEDDLE_SHARED_FILE(exact_path, directory + "f32.gguf");
  HEDDLE_SHARED_FILE(path, directory + expected.file + ".gguf");
  const gguf::File exact = gguf::File::open(exact_path);
  const gguf::File file = gguf::File::open(path);
  int matrices = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.dtype == DType::f32) continue;  // norms
    ASSERT_EQ(tensor.dtype, expected.dtype) << tensor.name;
    const double error = test::relative_l2(decoded(tensor), decoded(exact.tensor(tensor.name)));
    EXPECT_GE(error, expected.least) << tensor.name;
    EXPECT_LE(error, expected.most) << tensor.name;
    ++matrices;
  }
  EXPECT_EQ(matrices, 16);
}

TEST_P(ReferenceModel, OurEncoderLosesNoMoreThanItsDid) {
  const Case& expected = GetParam();
  const std::string directory = "reference/tiny/tiny-llama-";
  HEDDLE_SHARED_FILE(exact_path, directory + "f32.gguf");
  HEDDLE_SHARED_FILE(path, directory + expected.file + ".gguf");
  const char* name = "blk.0.attn_q.weight";
  const gguf::File exact = gguf::File::open(exact_path);
  const gguf::File file = gguf::File::open(path);
  const std::vector<float> values = decoded(exact.tensor(name));
  const double theirs = test::relative_l2(decoded(file.tensor(name)), values);
  EXPECT_LE(error_of_our_encoding(expected.dtype, values), theirs);
}

constexpr Case kCases[] = {
    {"f16", DType::f16, 0.000205, 0.000209},   {"bf16", DType::bf16, 0.001637, 0.001680},
    {"q4_0", DType::q4_0, 0.0850, 0.0868},     {"q4_1", DType::q4_1, 0.0775, 0.0792},
    {"q5_0", DType::q5_0, 0.0421, 0.0432},     {"q5_1", DType::q5_1, 0.0375, 0.0384},
    {"q8_0", DType::q8_0, 0.00528, 0.00541},   {"q2_k", DType::q2_K, 0.2930, 0.2992},
    {"q3_k_m", DType::q3_K, 0.1494, 0.1523},   {"q4_k_m", DType::q4_K, 0.0705, 0.0722},
    {"q5_k_m", DType::q5_K, 0.0357, 0.0367},   {"q6_k", DType::q6_K, 0.0175, 0.0179},
    {"iq4_nl", DType::iq4_nl, 0.0755, 0.0769}, {"iq4_xs", DType::iq4_xs, 0.0760, 0.0775},
};

INSTANTIATE_TEST_SUITE_P(Tiny, ReferenceModel, testing::ValuesIn(kCases),
                         [](const auto& parameter) { return std::string(parameter.param.file); });

}  // namespace
}  // namespace heddle

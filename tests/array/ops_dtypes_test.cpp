// The dtypes that functions give, and values at which they are particular: what NumPy's table
// cannot say, because its dtypes are others.
#include "array_test_support.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

TEST(Dtypes, OfCreation) {
  EXPECT_EQ(arange(3).dtype(), DType::i32);
  EXPECT_EQ(arange(std::int64_t{3}, 5).dtype(), DType::i32);
  EXPECT_EQ(arange(3.0).dtype(), DType::f32);
  EXPECT_EQ(arange(0, 3, 0.5).dtype(), DType::f32);
  EXPECT_EQ(arange(1, 3, DType::bf16).dtype(), DType::bf16);
  EXPECT_EQ(linspace(0, 1, 3).dtype(), DType::f32);
  EXPECT_EQ(full_like(zeros({2}, DType::f16), 1.5f).dtype(), DType::f16);
  EXPECT_EQ(eye(2, DType::i8).dtype(), DType::i8);
  EXPECT_EQ(identity(2).dtype(), DType::f32);
  EXPECT_EQ(number_of_elements(zeros({2, 3}), {0, 1}, false).item<std::int32_t>(), 6);
  for (const DType dtype :
       {DType::u8, DType::u16, DType::u32, DType::u64, DType::i8, DType::i16, DType::i32,
        DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    EXPECT_EQ(doubles(arange(1, 4, dtype)), (std::vector<double>{1, 2, 3})) << to_string(dtype);
  }
}

TEST(Dtypes, OfElementWiseFunctions) {
  const Array whole({1, 2}), small = zeros({2}, DType::i8), half = zeros({2}, DType::f16);
  const Array complex = zeros({2}, DType::complex64);
  EXPECT_EQ(arcsinh(whole).dtype(), DType::f32);
  EXPECT_EQ(erfinv(half).dtype(), DType::f16);
  EXPECT_EQ(degrees(half).dtype(), DType::f16);
  EXPECT_EQ(radians(whole).dtype(), DType::f32);
  EXPECT_EQ(round(small, -1).dtype(), DType::i8);
  EXPECT_EQ(round(half, 2).dtype(), DType::f16);
  EXPECT_EQ(trunc(small).dtype(), DType::i8);
  EXPECT_EQ(real(complex).dtype(), DType::f32);
  EXPECT_EQ(imag(half).dtype(), DType::f16);
  EXPECT_EQ(conjugate(complex).dtype(), DType::complex64);
  EXPECT_EQ((~small).dtype(), DType::i8);
  EXPECT_EQ(isclose(half, whole).dtype(), DType::bool_);
  EXPECT_EQ(divmod(small, half)[1].dtype(), DType::f16);
}

TEST(Dtypes, OfReductions) {
  const Array small = ones({2, 3}, DType::i8), half = ones({2, 3}, DType::f16);
  const Array complex = ones({2, 3}, DType::complex64);
  EXPECT_EQ(all(half).dtype(), DType::bool_);
  EXPECT_EQ(count_nonzero(half).dtype(), DType::i32);
  EXPECT_EQ(var(small).dtype(), DType::f32);
  EXPECT_EQ(var(half).dtype(), DType::f16);
  EXPECT_EQ(std(complex).dtype(), DType::f32);
  EXPECT_EQ(median(small).dtype(), DType::f32);
  EXPECT_EQ(logsumexp(half, 0).dtype(), DType::f16);
  EXPECT_EQ(trace(ones({2, 2}, DType::i8)).dtype(), DType::i32);
  EXPECT_EQ(diff(ones({2}, DType::bool_)).dtype(), DType::bool_);
  EXPECT_EQ(softmax(small).dtype(), DType::f32);
}

TEST(Dtypes, NanToNumGivesTheLargestOfEach) {
  const Array odd({NAN, INFINITY, -INFINITY, 1.0f});
  EXPECT_THAT(doubles(nan_to_num(astype(odd, DType::f16))), ElementsAre(0, 65504, -65504, 1));
  EXPECT_THAT(doubles(nan_to_num(astype(odd, DType::bf16))),
              ElementsAre(0, 0x1.fep127, -0x1.fep127, 1));
  EXPECT_THAT(doubles(nan_to_num(odd, 2, 3)),
              ElementsAre(2, 3, -static_cast<double>(std::numeric_limits<float>::max()), 1));
}

TEST(Dtypes, ExtremesOfRoundedIntegers) {
  EXPECT_THAT(values<std::uint8_t>(round(Array(std::vector<std::uint8_t>{255, 250, 4}, {3}), -1)),
              ElementsAre(4, 250, 0));  // 260 wraps
  EXPECT_THAT(values<std::int8_t>(round(Array(std::vector<std::int8_t>{-128, 127, 50}, {3}), -3)),
              ElementsAre(0, 0, 0));
  EXPECT_THAT(values<int>(round(Array({15, 25, -15, -25}), -1)), ElementsAre(20, 20, -20, -20));
}

TEST(Dtypes, OfOneFunctionByManyNames) {
  const Array a({6, 5}), b({3, 1});
  EXPECT_THAT(values<int>(a & b), ElementsAre(2, 1));
  EXPECT_THAT(values<int>(a | b), ElementsAre(7, 5));
  EXPECT_THAT(values<int>(a ^ b), ElementsAre(5, 4));
  EXPECT_THAT(values<int>(a << b), ElementsAre(48, 10));
  EXPECT_THAT(values<int>(a >> 1), ElementsAre(3, 2));
  EXPECT_THAT(values<int>(~a), ElementsAre(-7, -6));
  EXPECT_THAT(values<bool>((a > b) && (a > 5)), ElementsAre(true, false));
  EXPECT_THAT(values<bool>((a < b) || (a > 5)), ElementsAre(true, false));
}

}  // namespace
}  // namespace heddle::test

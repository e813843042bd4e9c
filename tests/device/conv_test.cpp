// Convolutions of a size that a library's kernels take, which cut images into slabs.
#include "device/cpu_levels.h"

namespace heddle::test {
namespace {

struct ConvCase {
  const char* what;
  Windows windows;
  std::int64_t groups;
  Shape x, w;
};

std::vector<ConvCase> large_cases() {
  const Dims one{1, 1}, none{0, 0};
  return {
      {"padded, two slabs", {one, one, one, one, one}, 1, {1, 41, 37, 32}, {48, 3, 3, 32}},
      {"strided", {{2, 2}, one, one, one, one}, 1, {2, 24, 21, 24}, {40, 3, 3, 24}},
      {"dilated", {one, {2, 4}, {4, 2}, {2, 3}, one}, 1, {1, 23, 20, 16}, {32, 3, 3, 16}},
      {"large taps", {{2, 2}, {3, 3}, {3, 3}, one, one}, 1, {1, 40, 41, 3}, {32, 7, 7, 3}},
      {"odd channels", {one, one, one, one, one}, 1, {2, 14, 15, 19}, {33, 3, 3, 19}},
      {"pointwise", {one, none, none, one, one}, 1, {2, 20, 15, 48}, {72, 1, 1, 48}},
      {"pointwise, strided", {{2, 3}, none, none, one, one}, 1, {2, 20, 20, 64}, {128, 1, 1, 64}},
      {"grouped", {one, one, one, one, one}, 4, {2, 14, 14, 64}, {64, 3, 3, 16}},
      {"grouped, odd", {one, one, one, one, one}, 3, {2, 14, 14, 21}, {45, 3, 3, 7}},
      {"depthwise", {one, one, one, one, one}, 48, {2, 40, 35, 48}, {48, 3, 3, 1}},
      {"much padding", {one, {5, 1}, {6, 0}, one, one}, 1, {1, 14, 14, 32}, {32, 3, 3, 32}},
      {"mostly weights", {one, one, one, one, one}, 1, {3, 5, 6, 64}, {128, 3, 3, 64}},
      {"mostly weights, strided",
       {{2, 1}, {0, 1}, one, one, one},
       1,
       {2, 9, 5, 80},
       {192, 2, 3, 80}},
      {"many outputs", {one, one, one, one, one}, 1, {1, 33, 20, 32}, {128, 3, 3, 32}},
      {"mostly weights, one axis", {{1}, {2}, {2}, {1}, {1}}, 1, {2, 20, 64}, {128, 5, 64}},
      {"mostly weights, three axes",
       {{1, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, 1, 1}, {1, 1, 1}},
       1,
       {2, 3, 4, 4, 64},
       {128, 2, 2, 2, 64}},
      {"one axis", {{1}, {2}, {2}, {1}, {1}}, 1, {2, 300, 32}, {48, 5, 32}},
      {"three axes",
       {{1, 2, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
       1,
       {1, 5, 8, 9, 16},
       {32, 3, 3, 3, 16}},
  };
}

/// Sums of a library's are chains of any length.
Tolerance tolerance_of(DType dtype, const Shape& w) {
  const auto depth = static_cast<double>(elements(w) / w[0]);
  return {dtype == DType::f32 ? 1 : 0.6, 0x1p-24 * 16 * (depth + 4)};
}

TEST(LargeConvolutions, EveryGeometry) {
  Random random(1);
  for (const ConvCase& c : large_cases()) {
    SCOPED_TRACE(c.what);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      expect_on_cpu(Conv{c.windows, c.groups},
                    {random_tensor(dtype, c.x, random), random_tensor(dtype, c.w, random)},
                    tolerance_of(dtype, c.w));
    }
  }
}

TEST(LargeConvolutions, RowsAlone) {
  Random random(2);
  for (const ConvCase& c : large_cases()) {
    SCOPED_TRACE(c.what);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Shape three = c.x;
      three[0] = 3;
      expect_rows_alone(cpu_device(), Conv{c.windows, c.groups},
                        {random_tensor(dtype, three, random), random_tensor(dtype, c.w, random)});
    }
  }
}

}  // namespace
}  // namespace heddle::test

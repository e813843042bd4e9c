// Indices and order against NumPy.
#include <gtest/gtest.h>

#include "numpy_oracle.h"

namespace heddle::test {
namespace {

// clang-format off
const std::vector<NumpyCase> kTake = {
    NUMPY("f32[3, 4], i32[5] in -12..11", "np.take(a, b)", take(a, b)),
    NUMPY("f32[3, 4], i64[2, 2] in -4..3", "np.take(a, b, axis=1)", take(a, b, 1)),
    NUMPY("i8[3, 4], u8[2] in 0..2", "np.take(a, b, axis=0)", take(a, b, 0)),
    NUMPY("f64[3, 4]", "np.take(a, -2, axis=-1)", take(a, -2, -1)),
    NUMPY("f64[3, 4]", "np.take(a, 7)", take(a, 7)),
    NUMPY("bf16[4, 3, 2], i32[4, 5, 2] in -3..2", "np.take_along_axis(a, b, axis=1)", take_along_axis(a, b, 1)),
    NUMPY("complex64[3, 4], i32[2, 4] in -3..2", "np.take_along_axis(a, b, axis=0)", take_along_axis(a, b, 0)),
    NUMPY("f32[3, 5], i32[1, 5] in 0..2, f32[1, 5]", "[x := a.copy(), np.put_along_axis(x, b, c, axis=0)][0]", put_along_axis(a, b, c, 0)),
    NUMPY("f32[9, 2], i32[5] in -9..8, i32[5] in -2..1", "a[b, c]", reshape(gather(a, {b, c}, {0, 1}, {1, 1}), {5})),
    NUMPY("f32[9, 4], i32[5] in -9..8", "a[b]", squeeze(gather(a, b, 0, {1, 4}), 1)),
    NUMPY("f32[9, 4]", "a[3:5, 1:4]", slice(a, Array({3, 1}), {0, 1}, {2, 3})),
    NUMPY("f32[9, 4]", "a[-2:, :2]", slice(a, Array({-2}), {0}, {2, 2})),
};

const std::vector<NumpyCase> kUpdates = {
    NUMPY("f64[5, 3], i32[9] in -5..4, f64[9, 3]", "[x := a.copy(), np.add.at(x, b, c)][0]", scatter_add(a, b, expand_dims(c, 1), 0)),
    NUMPY("f64[5, 3], i32[9] in -5..4, f64[9, 3]", "[x := a.copy(), np.multiply.at(x, b, c)][0]", scatter_prod(a, b, expand_dims(c, 1), 0)),
    NUMPY("i16[5], u8[9] in 0..4, i16[9]", "[x := a.copy(), np.maximum.at(x, b, c)][0]", scatter_max(a, b, expand_dims(c, 1), 0)),
    NUMPY("f32[5], i64[9] in -5..4, f32[9]", "[x := a.copy(), np.minimum.at(x, b, c)][0]", scatter_min(a, b, expand_dims(c, 1), 0)),
    NUMPY("f64[4, 3], i32[6] in -4..3, i64[6] in -3..2, f64[6]", "[x := a.copy(), np.add.at(x, (b, c), d)][0]", scatter_add(a, {b, c}, reshape(d, {6, 1, 1}), {0, 1})),
    NUMPY("f64[7], i32[9] in 0..6, f64[9]", "[x := a.copy(), np.add.at(x, b, c)][0]", scatter_add_axis(a, b, c, 0)),
    NUMPY("f32[5, 4], f32[2, 3]", "[x := a.copy(), x.__setitem__((slice(1, 3), slice(0, 3)), b)][0]", slice_update(a, b, Array({1}), {0})),
    NUMPY("f64[5, 4], f64[2]", "[x := a.copy(), x[1:5:2, 0:2].__iadd__(b)][0]", slice_update_add(a, b, {1, 0}, {5, 2}, {2, 1})),
    NUMPY("f64[5, 4], f64[4]", "[x := a.copy(), x[::-2].__imul__(b)][0]", slice_update_prod(a, b, {4, 0}, {-9, 4}, {-2, 1})),
    NUMPY("i32[5, 4], i32[1, 4]", "np.concatenate([a[:3], np.maximum(a[3:], b)])", slice_update_max(a, b, {3, 0}, {5, 4})),
    NUMPY("f32[5, 4], f32[]", "np.concatenate([a[:, :2], np.minimum(a[:, 2:], b)], axis=1)", slice_update_min(a, b, {0, 2}, {5, 4})),
    NUMPY("f32[4, 5], bool[4, 5], f32[20]", "[x := a.copy(), x.__setitem__(b, c[:b.sum()])][0]", masked_scatter(a, b, c)),
    NUMPY("f32[4, 5], bool[4], f32[4, 5]", "[x := a.copy(), x.__setitem__(b, c[:b.sum()])][0]", masked_scatter(a, b, c)),
    NUMPY("f32[4, 5], bool[4], f32[5]", "[x := a.copy(), x.__setitem__(b, c)][0]", masked_scatter(a, b, c)),
    NUMPY("i64[4, 5], bool[4, 5], i64[]", "[x := a.copy(), x.__setitem__(b, c)][0]", masked_scatter(a, b, c)),
};

const std::vector<NumpyCase> kOrder = {
    NUMPY("f32[3, 40]", "np.sort(a)", sort(a, -1)),
    NUMPY("f16[3, 40]", "np.sort(a, axis=0)", sort(a, 0)),
    NUMPY("i8[3, 40]", "np.sort(a, axis=None)", sort(a)),
    NUMPY("bool[40]", "np.sort(a)", sort(a)),
    NUMPY("u64[4, 40]", "np.argsort(a, kind='stable')", argsort(a, 1)),
    NUMPY("i16[4, 40]", "np.argsort(a, axis=0, kind='stable')", argsort(a, 0)),
    NUMPY("bf16[4, 40]", "np.argsort(a, axis=None, kind='stable')", argsort(a)),
    NUMPY("complex64[2, 30]", "np.sort(a)", sort(a, 1)),
    NUMPY("complex64[30]", "np.argsort(a, kind='stable')", argsort(a)),
    NUMPY("f32[3]", "np.sort(a / 0 * np.array([1, 0, -1]))", sort(divide(multiply(a, Array({1.0f, 0.0f, -1.0f})), zeros({3})))),
    NUMPY("f32[4, 30]", "np.partition(a, 7)[:, 7]", take(partition(a, 7, 1), 7, 1)),
    NUMPY("i32[4, 30]", "np.partition(a, -3, axis=None)[-3]", take(partition(a, -3), -3)),
    NUMPY("f32[4, 30]", "np.sort(a)[:, ::-1][:, :5]", topk(a, 5, 1)),
    NUMPY("f64[4, 30]", "np.sort(a, axis=None)[::-1][:5]", topk(a, 5)),
    NUMPY("f32[4, 30]", "np.argmax(a, axis=1)", argmax(a, 1)),
    NUMPY("i8[4, 30]", "np.argmin(a)", argmin(a)),
    NUMPY("u16[4, 30]", "np.argmin(a, axis=0, keepdims=True)", argmin(a, 0, true)),
    NUMPY("i32[50], i32[4, 5]", "np.searchsorted(np.sort(a), b)", searchsorted(sort(a), b)),
    NUMPY("f32[50], f32[4, 5]", "np.searchsorted(np.sort(a), b, side='right')", searchsorted(sort(a), b, "right")),
    NUMPY("i8[50], f32[7]", "np.searchsorted(np.sort(a), b)", searchsorted(sort(a), b)),
    NUMPY("complex64[50], complex64[7]", "np.searchsorted(np.sort(a), b)", searchsorted(sort(a), b)),
    NUMPY("i32[50] in 0..8", "np.searchsorted(np.sort(a), np.arange(10))", sorted_offsets(sort(a), 9)),
};
// clang-format on

TEST(NumPy, TakesAndGathers) {
  expect_numpy_agrees(kTake);
}
TEST(NumPy, Updates) {
  expect_numpy_agrees(kUpdates);
}
TEST(NumPy, Order) {
  expect_numpy_agrees(kOrder);
}

}  // namespace
}  // namespace heddle::test

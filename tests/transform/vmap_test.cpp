// Axes of vmap, what differs and what does not, nesting, and what it refuses.
#include "array/array_test_support.h"
#include "host_math.h"

namespace heddle::test {
namespace {

Array counting(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(elements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return {values, shape};
}

TEST(Vmap, TakesAndPutsTheBatchWhereItIsTold) {
  const ArraysFunction f = [](const std::vector<Array>& in) {
    return std::vector<Array>{in[0] + in[1], sum(in[0])};
  };
  const Array x = counting({2, 3}), y = counting({2});
  const std::vector<Array> out = vmap(f, {1, -1}, {1, 0})({x, y});
  EXPECT_EQ(out[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(out[0].to_vector<float>(), (std::vector<float>{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(out[1].to_vector<float>(), (std::vector<float>{3, 5, 7}));
}

TEST(Vmap, AnOutputThatIsTheSameForAllIsRepeatedOrGivenOnce) {
  const Array y = counting({2});
  const ArraysFunction f = [&](const std::vector<Array>&) { return std::vector<Array>{y * 2, y}; };
  const std::vector<Array> out = vmap(f, {0}, {0, -1})({counting({3})});
  EXPECT_EQ(out[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(out[0].to_vector<float>(), (std::vector<float>{0, 2, 0, 2, 0, 2}));
  EXPECT_EQ(out[1].shape(), (Shape{2}));
}

TEST(Vmap, Nests) {
  const ArraysFunction dot = [](const std::vector<Array>& in) {
    return std::vector<Array>{sum(in[0] * in[1])};
  };
  const Array a = counting({2, 4}), b = counting({3, 4});
  const ArraysFunction rows = vmap(vmap(dot, {-1, 0}), {0, -1});
  EXPECT_EQ(doubles(rows({a, b})[0]), doubles(matmul(a, transpose(b))));
}

TEST(Vmap, OfGradientsAndGradientsOfMaps) {
  const ArrayFunction cube = [](const Array& x) { return x * x * x; };
  const Array x({1.0f, 2.0f, 3.0f});
  expect_near(vmap(grad(cube))(x), {3, 12, 27});
  expect_near(vmap(grad(grad(cube)))(x), {6, 12, 18});
  const ArrayFunction total = [&](const Array& all) { return sum(vmap(cube)(all)); };
  expect_near(grad(total)(x), {3, 12, 27});
}

TEST(Vmap, HessianByColumns) {
  const ArrayFunction f = [](const Array& x) { return sum(x * x * x) + x.shape(0) * prod(x); };
  const Array x({1.0f, 2.0f, 3.0f});
  const ArrayFunction column = [&](const Array& t) { return jvp(grad(f), x, t).second; };
  const Array unit = astype(reshape(Array({0, 1, 2}), {3, 1}) == Array({0, 1, 2}), DType::f32);
  expect_near(vmap(column)(unit), {6, 9, 6, 9, 12, 3, 6, 3, 18});
}

TEST(Vmap, IdsOfTablesThatDifferToo) {
  const Array tables = counting({2, 3, 2}), ids(std::vector<int>{2, 0, 1, 1}, {2, 2});
  const ArraysFunction look = [](const std::vector<Array>& in) {
    return std::vector<Array>{take(in[0], in[1], 0)};
  };
  expect_near(vmap(look)({tables, ids})[0], {4, 5, 0, 1, 8, 9, 8, 9});
  expect_near(vmap(look, {0, -1})({tables, Array({1})})[0], {2, 3, 8, 9});
  expect_near(vmap(look, {-1, 0})({counting({3, 2}), ids})[0], {4, 5, 0, 1, 2, 3, 2, 3});
}

TEST(Vmap, RowsTimesWeightsThatDiffer) {
  const ArraysFunction product = [](const std::vector<Array>& in) {
    return std::vector<Array>{linear(in[0], in[1])};
  };
  const Array weights = counting({2, 4, 3});
  for (const Shape& example : {Shape{3}, Shape{5, 3}, Shape{2, 5, 3}}) {
    const Array x = counting(example);
    const Array own = stack({x, x + 1});
    std::vector<Array> shared_rows, own_rows;
    for (int i = 0; i < 2; ++i) {
      const Array weight = take(weights, i, 0);
      shared_rows.push_back(linear(x, weight));
      own_rows.push_back(linear(take(own, i, 0), weight));
    }
    const Array shared = vmap(product, {-1, 0})({x, weights})[0];
    const Array apart = vmap(product)({own, weights})[0];
    EXPECT_EQ(shared.shape(), stack(shared_rows).shape());
    EXPECT_EQ(doubles(shared), doubles(stack(shared_rows)));
    EXPECT_EQ(doubles(apart), doubles(stack(own_rows)));
  }
}

TEST(Vmap, RefusesWhatDoesNotFit) {
  const ArraysFunction f = [](const std::vector<Array>& in) { return in; };
  const Array two = counting({2}), three = counting({3});
  expect_invalid([&] { vmap(f)({two, three}); }, {"vmap", "3 examples", "axis 0"});
  expect_invalid([&] { vmap(f, {0})({two, three}); }, {"vmap", "1 in_axes for 2"});
  expect_invalid([&] { vmap(f, {1})({two}); }, {"vmap: in_axes 0 is 1", "f32[2]"});
  expect_invalid([&] { vmap(f, {-2})({two}); }, {"-2"});
  expect_invalid([&] { vmap(f, {-1})({two}); }, {"no argument has an axis"});
  expect_invalid([&] { vmap(f)({counting({0, 2})}); }, {"no examples"});
  expect_invalid([&] { vmap(f, {0}, {2})({two}); }, {"out_axes 0 is 2"});
}

TEST(Vmap, AnArgumentCannotBeLookedAt) {
  const ArrayFunction looks = [](const Array& x) { return x.item<float>() > 0 ? x : -x; };
  expect_invalid([&] { vmap(looks)(counting({2})); }, {"argument of vmap"});
}

}  // namespace
}  // namespace heddle::test

// Random numbers: operands that suit their functions, and calls that none makes right.
#include "bad_input_walk.h"
#include "heddle/random.h"

namespace heddle::test {

namespace {

template <class F>
void add(std::vector<Walked>& all, const char* name, const char* operands, F f) {
  all.push_back(
      {std::string("random::") + name, operands, [f](const Arrays& in) { return Arrays{f(in)}; }});
}

void add_keys(std::vector<Walked>& all) {
  add(all, "key", "", [](const Arrays&) { return random::key(7); });
  all.push_back({"random::seed", "", [](const Arrays&) {
                   random::seed(7);
                   return Arrays{};
                 }});
  all.push_back({"random::split", "u32[2]", [](const Arrays& in) {
                   const auto [first, second] = random::split(in[0]);
                   return Arrays{first, second};
                 }});
  add(all, "split", "u32[2]", [](const Arrays& in) { return random::split(in[0], 5); });
  add(all, "bits", "u32[2]", [](const Arrays& in) { return random::bits({3, 2}, in[0]); });
  add(all, "bits", "u32[2]", [](const Arrays& in) { return random::bits({3}, 1, in[0]); });
  add(all, "permutation", "u32[2]", [](const Arrays& in) { return random::permutation(7, in[0]); });
  add(all, "permutation", "f32[2, 3], u32[2]",
      [](const Arrays& in) { return random::permutation(in[0], 0, in[1]); });
}

void add_distributions(std::vector<Walked>& all) {
  add(all, "uniform", "f32[3], f32[], u32[2]", [](const Arrays& in) {
    return random::uniform(in[0], in[1], {2, 3}, DType::f16, in[2]);
  });
  add(all, "uniform", "u32[2]", [](const Arrays& in) { return random::uniform({2}, in[0]); });
  add(all, "normal", "f32[3], f32[], u32[2]", [](const Arrays& in) {
    return random::normal({2, 3}, DType::f32, in[0], in[1], in[2]);
  });
  add(all, "normal", "u32[2]",
      [](const Arrays& in) { return random::normal({2}, DType::complex64, in[0]); });
  add(all, "multivariate_normal", "f32[2], f32[2, 2], u32[2]", [](const Arrays& in) {
    return random::multivariate_normal(in[0], in[1], {3}, DType::f32, in[2]);
  });
  all.back().by_data = true;  // a covariance of NaNs has no factors
  add(all, "truncated_normal", "f32[3], f32[], u32[2]", [](const Arrays& in) {
    return random::truncated_normal(in[0], in[1], {2, 3}, DType::f32, in[2]);
  });
  add(all, "gumbel", "u32[2]",
      [](const Arrays& in) { return random::gumbel({2}, DType::f32, in[0]); });
  add(all, "laplace", "u32[2]", [](const Arrays& in) { return random::laplace({2}, in[0]); });
}

void add_choices(std::vector<Walked>& all) {
  add(all, "randint", "f32[3], f32[], u32[2]", [](const Arrays& in) {
    return random::randint(in[0], in[1], {2, 3}, DType::i16, in[2]);
  });
  add(all, "bernoulli", "f32[3], u32[2]",
      [](const Arrays& in) { return random::bernoulli(in[0], in[1]); });
  add(all, "categorical", "f32[2, 3], u32[2]",
      [](const Arrays& in) { return random::categorical(in[0], 1, in[1]); });
  add(all, "categorical", "f32[2, 3], u32[2]",
      [](const Arrays& in) { return random::categorical(in[0], 0, 4, in[1]); });
}

void add_walked(std::vector<Walked>& all) {
  add_keys(all);
  add_distributions(all);
  add_choices(all);
}

void add_axes(std::vector<TakesAxis>& all) {
  all.push_back(
      {"random::permutation", [](const Array& x, int axis) { random::permutation(x, axis); }});
  all.push_back(
      {"random::categorical", [](const Array& x, int axis) { random::categorical(x, axis); }});
}

void add_refused(std::vector<Refused>& all) {
  all.push_back({"random::bits", {"a width of 3"}, [] { random::bits({}, 3); }});
  all.push_back({"random::bits", {"negative"}, [] { random::bits({-1}); }});
  all.push_back({"random::split", {"-1 keys"}, [] { random::split(random::key(0), -1); }});
  all.push_back({"random::uniform", {"i32"}, [] { random::uniform({2}, DType::i32); }});
  all.push_back({"random::normal", {"u8"}, [] { random::normal({2}, DType::u8); }});
  all.push_back({"random::randint", {"f32"}, [] { random::randint(0, 1, {2}, DType::f32); }});
  all.push_back({"random::laplace", {"bool"}, [] { random::laplace({2}, DType::bool_); }});
  all.push_back({"random::gumbel", {"i8"}, [] { random::gumbel({2}, DType::i8); }});
  all.push_back({"random::permutation", {"-3"}, [] { random::permutation(-3); }});
  all.push_back({"random::categorical", {"-2 samples"}, [] {
                   random::categorical(floats({2, 3}), 1, -2);
                 }});
}

const Family kRandom({.walked = add_walked, .of_an_axis = add_axes, .refused = add_refused});

}  // namespace

}  // namespace heddle::test

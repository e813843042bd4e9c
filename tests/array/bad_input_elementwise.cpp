// The families of ops_elementwise.h, ops_shape.h and ops_reduce.h: operands that suit them, and
// calls that none makes right.
#include <limits>

#include "bad_input_walk.h"

namespace heddle::test {

namespace {

template <class F>
void add(std::vector<Walked>& all, const char* name, const char* operands, F f) {
  all.push_back({name, operands, [f](const Arrays& in) { return Arrays{f(in)}; }});
}
template <class F>
void add_list(std::vector<Walked>& all, const char* name, const char* operands, F f) {
  all.push_back({name, operands, f});
}

void add_unary(std::vector<Walked>& all) {
  using Function = Array (*)(const Arg&);
  const std::pair<const char*, Function> floats[] = {
      {"positive", positive},   {"arcsinh", arcsinh},
      {"arccosh", arccosh},     {"arctanh", arctanh},
      {"degrees", degrees},     {"radians", radians},
      {"erfinv", erfinv},       {"trunc", trunc},
      {"isposinf", isposinf},   {"isneginf", isneginf},
      {"conjugate", conjugate}, {"real", real},
      {"imag", imag},           {"stop_gradient", stop_gradient},
  };
  for (const auto& [name, f] : floats) {
    add(all, name, "f32[2, 256]", [f = f](const Arrays& in) { return f(in[0]); });
  }
  for (const auto& [name, f] :
       {std::pair<const char*, Function>{"conjugate", conjugate}, {"real", real}, {"imag", imag}}) {
    add(all, name, "complex64[2, 3]", [f = f](const Arrays& in) { return f(in[0]); });
  }
  add(all, "bitwise_invert", "i32[2, 256]", [](const Arrays& in) { return bitwise_invert(in[0]); });
  add(all, "operator~", "bool[3]", [](const Arrays& in) { return ~in[0]; });
  add(all, "round", "f32[2, 256]", [](const Arrays& in) { return round(in[0], 2); });
  add(all, "round", "i32[2, 3]", [](const Arrays& in) { return round(in[0], -1); });
  add(all, "nan_to_num", "f32[2, 256]", [](const Arrays& in) { return nan_to_num(in[0], 1, 2); });
}

void add_binary(std::vector<Walked>& all) {
  using Function = Array (*)(const Arg&, const Arg&);
  const std::pair<const char*, Function> of_integers[] = {
      {"operator&", [](const Arg& a, const Arg& b) { return a & b; }},
      {"operator|", [](const Arg& a, const Arg& b) { return a | b; }},
      {"operator^", [](const Arg& a, const Arg& b) { return a ^ b; }},
      {"operator<<", [](const Arg& a, const Arg& b) { return a << b; }},
      {"operator>>", [](const Arg& a, const Arg& b) { return a >> b; }},
  };
  for (const auto& [name, f] : of_integers) {
    add(all, name, "i32[2, 256], i32[256]", [f = f](const Arrays& in) { return f(in[0], in[1]); });
  }
  const std::pair<const char*, Function> of_numbers[] = {
      {"operator&&", [](const Arg& a, const Arg& b) { return a && b; }},
      {"operator||", [](const Arg& a, const Arg& b) { return a || b; }},
      {"logical_xor", logical_xor},
      {"isclose", [](const Arg& a, const Arg& b) { return isclose(a, b, 0.1, 0.1, true); }},
      {"allclose", [](const Arg& a, const Arg& b) { return allclose(a, b); }},
      {"array_equal", [](const Arg& a, const Arg& b) { return array_equal(a, b, true); }},
  };
  for (const auto& [name, f] : of_numbers) {
    add(all, name, "f32[2, 256], f32[2, 256]",
        [f = f](const Arrays& in) { return f(in[0], in[1]); });
  }
  add_list(all, "divmod", "f32[2, 256], f32[256]",
           [](const Arrays& in) { return divmod(in[0], in[1]); });
}

void add_shape(std::vector<Walked>& all) {
  add(all, "full_like", "f32[2, 256], f32[]",
      [](const Arrays& in) { return full_like(in[0], in[1]); });
  add(all, "tril", "f32[2, 256]", [](const Arrays& in) { return tril(in[0], 1); });
  add(all, "triu", "f32[2, 256]", [](const Arrays& in) { return triu(in[0], -1); });
  add(all, "unflatten", "f32[2, 256]", [](const Arrays& in) {
    return unflatten(in[0], 1, {-1, 32});
  });
  add(all, "moveaxis", "f32[2, 256]", [](const Arrays& in) {
    return moveaxis(in[0], {0, 1}, {1, 0});
  });
  add(all, "atleast_1d", "f32[2, 256]", [](const Arrays& in) { return atleast_1d(in[0]); });
  add(all, "atleast_2d", "f32[2, 256]", [](const Arrays& in) { return atleast_2d(in[0]); });
  add(all, "atleast_3d", "f32[2, 256]", [](const Arrays& in) { return atleast_3d(in[0]); });
  add_list(all, "atleast_1d", "f32[], f32[3]", [](const Arrays& in) { return atleast_1d(in); });
  add_list(all, "atleast_2d", "f32[], f32[3]", [](const Arrays& in) { return atleast_2d(in); });
  add_list(all, "atleast_3d", "f32[], f32[3]", [](const Arrays& in) { return atleast_3d(in); });
  add_list(all, "broadcast_arrays", "f32[2, 256], f32[256]",
           [](const Arrays& in) { return broadcast_arrays(in); });
  add_list(all, "meshgrid", "f32[3], f32[256]", [](const Arrays& in) { return meshgrid(in); });
  add(all, "number_of_elements", "f32[2, 256]",
      [](const Arrays& in) { return number_of_elements(in[0], {0}, true, DType::f32); });
  add_list(all, "unstack", "f32[2, 256]", [](const Arrays& in) { return unstack(in[0]); });
  add(all, "diagonal", "f32[2, 256]", [](const Arrays& in) { return diagonal(in[0], 1); });
  add(all, "diag", "f32[2, 256]", [](const Arrays& in) { return diag(in[0]); });
  add(all, "diag", "f32[3]", [](const Arrays& in) { return diag(in[0], -2); });
  add(all, "trace", "f32[2, 256]", [](const Arrays& in) { return trace(in[0]); });
  add(all, "contiguous", "f32[2, 256]", [](const Arrays& in) { return contiguous(in[0], true); });
  add(all, "repeat", "f32[2, 256]", [](const Arrays& in) { return repeat(in[0], 2); });
  add(all, "tile", "f32[2, 256]", [](const Arrays& in) { return tile(in[0], {2, 1, 3}); });
  add(all, "roll", "f32[2, 256]", [](const Arrays& in) { return roll(in[0], 5); });
  add(all, "roll", "f32[2, 256]", [](const Arrays& in) { return roll(in[0], {5, 1}, {0, 0}); });
}

template <class F>
void add_reduction(std::vector<Walked>& all, const char* name, F f) {
  add(all, name, "f32[2, 256]", [f](const Arrays& in) { return f(in[0], Dims{0, 1}); });
  add(all, name, "f32[2, 3]", [f](const Arrays& in) { return f(in[0], Dims{-1}); });
}

void add_reductions(std::vector<Walked>& all) {
  add_reduction(all, "all", [](const Array& a, const Dims& axes) { return heddle::all(a, axes); });
  add_reduction(all, "any", [](const Array& a, const Dims& axes) { return any(a, axes); });
  add_reduction(all, "var", [](const Array& a, const Dims& axes) { return var(a, axes, true); });
  add_reduction(all, "std",
                [](const Array& a, const Dims& axes) { return heddle::std(a, axes, false, 1); });
  add_reduction(all, "median", [](const Array& a, const Dims& axes) { return median(a, axes); });
  add_reduction(all, "logsumexp",
                [](const Array& a, const Dims& axes) { return logsumexp(a, axes); });
  add_reduction(all, "count_nonzero",
                [](const Array& a, const Dims& axes) { return count_nonzero(a, axes); });
  add_reduction(all, "softmax", [](const Array& a, const Dims& axes) { return softmax(a, axes); });
  add(all, "diff", "f32[2, 256], f32[2, 1]",
      [](const Arrays& in) { return diff(in[0], 2, -1, in[1]); });
}

void add_walked(std::vector<Walked>& all) {
  add_unary(all);
  add_binary(all);
  add_shape(all);
  add_reductions(all);
}

void add_axis(std::vector<TakesAxis>& all) {
  const TakesAxis rows[] = {
      {"unflatten",
       [](const Array& x, int axis) {
         unflatten(x, axis, {1, -1});
       }},
      {"squeeze", [](const Array& x, int axis) { squeeze(x, axis); }},
      {"unstack", [](const Array& x, int axis) { unstack(x, axis); }},
      {"diagonal", [](const Array& x, int axis) { diagonal(x, 0, axis, 1); }, true},
      {"diagonal", [](const Array& x, int axis) { diagonal(x, 0, 0, axis); }, true},
      {"trace", [](const Array& x, int axis) { trace(x, 0, axis, 1); }, true},
      {"roll", [](const Array& x, int axis) { roll(x, 1, axis); }},
      {"roll",
       [](const Array& x, int axis) {
         roll(x, {1, 2}, axis);
       }},
      {"all", [](const Array& x, int axis) { heddle::all(x, axis); }},
      {"any", [](const Array& x, int axis) { any(x, axis); }},
      {"var", [](const Array& x, int axis) { var(x, axis); }},
      {"std", [](const Array& x, int axis) { heddle::std(x, axis); }},
      {"median", [](const Array& x, int axis) { median(x, axis); }},
      {"logsumexp", [](const Array& x, int axis) { logsumexp(x, axis); }},
      {"count_nonzero", [](const Array& x, int axis) { count_nonzero(x, axis); }},
      {"diff", [](const Array& x, int axis) { diff(x, 1, axis); }},
  };
  all.insert(all.end(), std::begin(rows), std::end(rows));
}

void add_axes(std::vector<TakesAxes>& all) {
  const TakesAxes rows[] = {
      {"all", [](const Array& x, const Dims& axes) { heddle::all(x, axes); }},
      {"any", [](const Array& x, const Dims& axes) { any(x, axes); }},
      {"var", [](const Array& x, const Dims& axes) { var(x, axes); }},
      {"std", [](const Array& x, const Dims& axes) { heddle::std(x, axes); }},
      {"median", [](const Array& x, const Dims& axes) { median(x, axes); }},
      {"logsumexp", [](const Array& x, const Dims& axes) { logsumexp(x, axes); }},
      {"count_nonzero", [](const Array& x, const Dims& axes) { count_nonzero(x, axes); }},
      {"softmax", [](const Array& x, const Dims& axes) { softmax(x, axes); }},
      {"number_of_elements",
       [](const Array& x, const Dims& axes) { number_of_elements(x, axes, false); }},
      {"moveaxis",
       [](const Array& x, const Dims& axes) {
         moveaxis(x, axes, {0, 1});
       }},
      {"moveaxis",
       [](const Array& x, const Dims& axes) {
         moveaxis(x, {0, 1}, axes);
       }},
  };
  all.insert(all.end(), std::begin(rows), std::end(rows));
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kMost = std::numeric_limits<int>::max();

void add_refused(std::vector<Refused>& all) {
  const Array complex = zeros_of({DType::complex64, {2, 2}});
  const Refused rows[] = {
      {"linspace", {"nan"}, [] { linspace(kNaN, 1); }},
      {"linspace", {"-1"}, [] { linspace(0, 1, -1); }},
      {"linspace", {"1e+308"}, [] { linspace(-1e308, 1e308); }},
      {"linspace", {"q8_0"}, [] { linspace(0, 1, 32, DType::q8_0); }},
      {"eye", {"-3"}, [] { eye(-3); }},
      {"eye", {"q4_K"}, [] { eye(256, DType::q4_K); }},
      {"identity", {"-1"}, [] { identity(-1); }},
      {"tri", {"-2"}, [] { tri(4, -2); }},
      {"full_like", {"f32[3]", "[2]"}, [] { full_like(floats({2}), floats({3})); }},
      {"tril", {"f32[3]", "matrix"}, [] { tril(floats({3})); }},
      {"triu", {"f32[]", "matrix"}, [] { triu(floats({})); }},
      {"unflatten", {"without axes"}, [] { unflatten(floats({4}), 0, {}); }},
      {"unflatten",
       {"f32[4]", "[3, -1]"},
       [] {
         unflatten(floats({4}), 0, {3, -1});
       }},
      {"unflatten",
       {"f32[4]", "[2, 3]"},
       [] {
         unflatten(floats({4}), 0, {2, 3});
       }},
      {"moveaxis",
       {"2 axes", "1 places"},
       [] {
         moveaxis(floats({2, 3}), {0, 1}, {0});
       }},
      {"squeeze",
       {"f32[2, 3]"},
       [] {
         squeeze(floats({2, 3}), 1);
       }},
      {"broadcast_arrays",
       {"[2]", "[3]"},
       [] {
         broadcast_arrays({floats({2}), floats({3})});
       }},
      {"meshgrid",
       {"f32[2, 3]"},
       [] {
         meshgrid({floats({2, 3})});
       }},
      {"meshgrid", {"\"zx\"", "\"ij\""}, [] { meshgrid({floats({2})}, false, "zx"); }},
      {"diagonal", {"f32[3]"}, [] { diagonal(floats({3})); }},
      {"diagonal",
       {"1 and -1"},
       [] {
         diagonal(floats({3, 3}), 0, 1, -1);
       }},
      {"diag", {"f32[]"}, [] { diag(floats({})); }},
      {"diag",
       {"f32[1, 1, 1]"},
       [] {
         diag(floats({1, 1, 1}));
       }},
      {"trace", {"f32[3]"}, [] { trace(floats({3})); }},
      {"repeat", {"-1 times"}, [] { repeat(floats({3}), -1); }},
      {"tile",
       {"-2 times"},
       [] {
         tile(floats({3}), {2, -2});
       }},
      {"tile",
       {"overflows"},
       [] { tile(floats({3}), {std::numeric_limits<std::int64_t>::max()}); }},
      {"roll",
       {"2 shifts", "3 axes"},
       [] {
         roll(floats({1, 2, 3}), {1, 2}, {0, 1, 2});
       }},
      {"var", {"nothing", "f32[0]"}, [] { var(floats({0})); }},
      {"std",
       {"nothing", "f32[2, 0]"},
       [] {
         heddle::std(floats({2, 0}), 1);
       }},
      {"median", {"nothing", "f32[0]"}, [] { median(floats({0})); }},
      {"median", {"complex64"}, [=] { median(complex); }},
      {"logsumexp", {"complex64"}, [=] { logsumexp(complex); }},
      {"diff", {"-1 times"}, [] { diff(floats({3}), -1); }},
      {"diff",
       {"f32[2, 3]"},
       [] {
         diff(floats({3}), 1, 0, floats({2, 3}));
       }},
      {"isposinf", {"complex64", "one sign"}, [=] { isposinf(complex); }},
      {"isneginf", {"q8_0"}, [] { isneginf(blocks()); }},
      {"round", {"1000 decimals"}, [] { round(floats({2}), 1000); }},
      {"round", {"decimals"}, [] { round(floats({2}), kMost); }},
      {"floor", {"complex64"}, [=] { floor(complex); }},
      {"trunc", {"complex64"}, [=] { trunc(complex); }},
      {"erfinv", {"complex64"}, [=] { erfinv(complex); }},
      {"bitwise_invert", {"f32[2]"}, [] { bitwise_invert(floats({2})); }},
      {"operator&", {"f32[2]"}, [] { floats({2}) & floats({2}); }},
      {"operator<<", {"f32[2]"}, [] { floats({2}) << 1; }},
      {"divmod", {"complex64"}, [=] { divmod(complex, complex); }},
      {"isclose", {"q8_0"}, [] { isclose(blocks(), blocks()); }},
      {"array_equal",
       {"q8_0"},
       [] {
         array_equal(blocks(), floats({2, 64}));
       }},
      {"clip", {"neither"}, [] { clip(floats({2})); }},
  };
  all.insert(all.end(), std::begin(rows), std::end(rows));
}

const Family kFamily({add_walked, add_axis, add_axes, add_refused});

}  // namespace

}  // namespace heddle::test

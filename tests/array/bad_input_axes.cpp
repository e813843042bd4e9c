// Functions along an axis and over spatial axes: operands that suit them, and calls that none makes
// right.
#include <limits>

#include "bad_input_walk.h"

namespace heddle::test {

namespace {

template <class F>
void add(std::vector<Walked>& all, const char* name, const char* operands, F f,
         bool by_data = false) {
  all.push_back({name, operands, [f](const Arrays& in) { return Arrays{f(in)}; }, by_data});
}

using Scan = Array (*)(const Arg&, bool, bool);
using ScanOfAxis = Array (*)(const Arg&, int, bool, bool);

void add_scan(std::vector<Walked>& all, const char* name, Scan whole, ScanOfAxis along) {
  add(all, name, "f32[2, 256]", [whole](const Arrays& in) { return whole(in[0], true, false); });
  add(all, name, "f32[2, 3]", [along](const Arrays& in) { return along(in[0], 0, false, true); });
}

void add_moved(std::vector<Walked>& all) {
  add(all, "pad", "f32[2, 256], f32[]", [](const Arrays& in) { return pad(in[0], 1, in[1]); });
  add(all, "pad", "f32[2, 256]", [](const Arrays& in) { return pad(in[0], {1, 2}, 0, "edge"); });
  add(all, "pad", "f32[2, 3], f32[]", [](const Arrays& in) {
    return pad(in[0], std::vector<std::pair<int, int>>{{0, 1}, {2, 0}}, in[1]);
  });
  add(all, "flip", "f32[2, 256]", [](const Arrays& in) { return flip(in[0], 0); });
  add(all, "flip", "f32[2, 3]", [](const Arrays& in) { return flip(in[0]); });
}

void add_spatial(std::vector<Walked>& all) {
  const char* one = "f32[2, 9, 256], f32[4, 3, 256]";
  const char* two = "f32[1, 5, 4, 3], f32[4, 2, 2, 3]";
  const char* three = "f32[1, 3, 3, 3, 2], f32[2, 2, 2, 2, 2]";
  add(all, "conv_general", one, [](const Arrays& in) { return conv_general(in[0], in[1]); });
  add(all, "conv_general", two, [](const Arrays& in) {
    return conv_general(in[0], in[1], {2}, {1}, {1}, {2, 1}, 1);
  });
  add(all, "conv1d", one, [](const Arrays& in) { return conv1d(in[0], in[1], 2, 1); });
  add(all, "conv2d", two, [](const Arrays& in) { return conv2d(in[0], in[1]); });
  add(all, "conv3d", three, [](const Arrays& in) { return conv3d(in[0], in[1]); });
  add(all, "conv_transpose1d", one,
      [](const Arrays& in) { return conv_transpose1d(in[0], in[1], 2); });
  add(all, "conv_transpose2d", two,
      [](const Arrays& in) { return conv_transpose2d(in[0], in[1]); });
  add(all, "conv_transpose3d", three,
      [](const Arrays& in) { return conv_transpose3d(in[0], in[1]); });
  add(all, "im2col", "f32[2, 9, 256]", [](const Arrays& in) { return im2col(in[0], {2}); });
  add(all, "max_pool", "f32[2, 9, 256]", [](const Arrays& in) { return max_pool(in[0], {2}); });
  add(all, "mean_pool", "f32[2, 5, 6, 3]",
      [](const Arrays& in) { return mean_pool(in[0], {2}, {1}, {1}, false); });
  add(all, "resize", "f32[2, 9, 256]", [](const Arrays& in) { return resize(in[0], {4}); });
  add(all, "resize", "f32[2, 5, 6, 3]", [](const Arrays& in) {
    return resize(in[0], {4, 9}, ResizeKind::linear, true);
  });
}

void add_models(std::vector<Walked>& all) {
  add(
      all, "grouped_linear", "f32[2, 256], f32[4, 3, 256], i32[2]",
      [](const Arrays& in) { return grouped_linear(in[0], in[1], in[2]); }, true);
  all.push_back({"selective_scan",
                 "f32[2, 3, 4], f32[2, 3, 4], f32[4, 5], f32[2, 3, 5], f32[2, 3, 5], f32[4], "
                 "f32[2, 4, 5]",
                 [](const Arrays& in) {
                   const auto [y, state] =
                       selective_scan(in[0], in[1], in[2], in[3], in[4], in[5], in[6]);
                   return Arrays{y, state};
                 }});
  add(all, "fast::channel_norm", "f32[2, 256, 3], f32[256], f32[256]",
      [](const Arrays& in) { return fast::channel_norm(in[0], 1, in[1], in[2], 1e-5f); });
  add(all, "fast::group_norm", "f32[2, 3, 256], f32[256], f32[256]",
      [](const Arrays& in) { return fast::group_norm(in[0], 4, in[1], in[2], 1e-5f); });
}

Array bytes_of(const Shape& shape) {
  return zeros_of({DType::u8, shape});
}

void refuse_along_axes(std::vector<Refused>& all) {
  const Array complex = zeros({2}, DType::complex64);
  all.insert(all.end(),
             {
                 {"cumsum", {"q8_0"}, [] { cumsum(blocks(), 0); }},
                 {"cummax", {"complex64[2]"}, [=] { cummax(complex); }},
                 {"logcumsumexp", {"complex64[2]"}, [=] { logcumsumexp(complex, 0); }},
                 {"pad", {"mode \"wrap\""}, [] { pad(floats({2}), 1, 0, "wrap"); }},
                 {"pad", {"-1"}, [] { pad(floats({2}), -1); }},
                 {"pad",
                  {"1 widths", "f32[2, 3]"},
                  [] {
                    pad(floats({2, 3}), std::vector<std::pair<int, int>>{{1, 1}});
                  }},
                 {"pad",
                  {"[1]", "[1, 1]"},
                  [] {
                    pad(floats({2}), Dims{0}, {1}, {1, 1});
                  }},
                 {"pad", {"f32[0]", "no edge"}, [] { pad(floats({0}), 1, 0, "edge"); }},
                 {"pad", {"f32[2]"}, [] { pad(floats({3}), 1, floats({2})); }},
                 {"pad", {"q8_0"}, [] { pad(blocks(), 1); }},
                 {"pad",
                  {"overflows"},
                  [] {
                    pad(broadcast_to(floats({1}), {std::numeric_limits<std::int64_t>::max() / 8}),
                        Dims{0}, {std::numeric_limits<std::int64_t>::max()}, {0});
                  }},
                 {"flip", {"q8_0"}, [] { flip(blocks()); }},
             });
}

void refuse_spatial(std::vector<Refused>& all) {
  all.insert(all.end(),
             {
                 {"conv1d",
                  {"f32[2, 9]", "3 dimensions"},
                  [] {
                    conv1d(floats({2, 9}), floats({4, 3}));
                  }},
                 {"conv2d",
                  {"f32[2, 9, 1]", "4 dimensions"},
                  [] {
                    conv2d(floats({2, 9, 1}), floats({4, 3, 1}));
                  }},
                 {"conv3d",
                  {"5 dimensions"},
                  [] {
                    conv3d(floats({2, 9, 1}), floats({4, 3, 1}));
                  }},
                 {"conv1d",
                  {"u8"},
                  [] {
                    conv1d(bytes_of({2, 9, 1}), bytes_of({4, 3, 1}));
                  }},
                 {"conv1d",
                  {"f32[4, 3, 2]", "1"},
                  [] {
                    conv1d(floats({2, 9, 1}), floats({4, 3, 2}));
                  }},
                 {"conv1d",
                  {"stride [0]"},
                  [] {
                    conv1d(floats({2, 9, 1}), floats({4, 3, 1}), 0);
                  }},
                 {"conv1d",
                  {"window of 10", "9"},
                  [] {
                    conv1d(floats({2, 9, 1}), floats({4, 10, 1}));
                  }},
                 {"conv1d",
                  {"2 groups"},
                  [] {
                    conv1d(floats({2, 9, 1}), floats({4, 3, 1}), 1, 0, 1, 2);
                  }},
                 {"conv_general",
                  {"f32[9, 1]"},
                  [] {
                    conv_general(floats({9, 1}), floats({3, 1}));
                  }},
                 {"conv_general",
                  {"stride [1, 1]"},
                  [] {
                    conv_general(floats({2, 9, 1}), floats({4, 3, 1}), {1, 1});
                  }},
                 {"conv_general",
                  {"q8_0"},
                  [] {
                    conv_general(zeros_of({DType::q8_0, {1, 2, 32}}), floats({1, 1, 32}));
                  }},
                 {"conv_transpose1d",
                  {"-1"},
                  [] {
                    conv_transpose1d(floats({2, 9, 1}), floats({4, 3, 1}), 1, 0, 1, -1);
                  }},
                 {"conv_transpose1d",
                  {"f32[4, 3]"},
                  [] {
                    conv_transpose1d(floats({2, 9, 1}), floats({4, 3}));
                  }},
                 {"conv_transpose1d",
                  {"too far"},
                  [] {
                    conv_transpose1d(floats({2, 9, 1}), floats({4, 3, 1}), 1, 0, 2147483647);
                  }},
                 {"conv_transpose2d",
                  {"4 dimensions"},
                  [] {
                    conv_transpose2d(floats({2, 9, 1}), floats({4, 3, 1}));
                  }},
                 {"conv_transpose3d",
                  {"5 dimensions"},
                  [] {
                    conv_transpose3d(floats({2, 9, 1}), floats({4, 3, 1}));
                  }},
                 {"im2col",
                  {"window of 10", "9"},
                  [] {
                    im2col(floats({2, 9, 1}), {10});
                  }},
                 {"max_pool",
                  {"window", "10"},
                  [] {
                    max_pool(floats({2, 9, 1}), {10});
                  }},
                 {"max_pool",
                  {"bool"},
                  [] {
                    max_pool(zeros({2, 9, 1}, DType::bool_), {2});
                  }},
                 {"max_pool",
                  {"smaller than the window"},
                  [] {
                    max_pool(floats({2, 9, 1}), {2}, {1}, {2});
                  }},
                 {"mean_pool",
                  {"complex64"},
                  [] {
                    mean_pool(zeros({2, 9, 1}, DType::complex64), {2});
                  }},
                 {"resize",
                  {"size [0]"},
                  [] {
                    resize(floats({2, 9, 1}), {0});
                  }},
                 {"resize",
                  {"f32[2, 9]"},
                  [] {
                    resize(floats({2, 9}), {3});
                  }},
                 {"grouped_linear",
                  {"i32[2, 3]"},
                  [] {
                    grouped_linear(ints({2, 3}), floats({1, 4, 3}), ints({2}));
                  }},
                 {"grouped_linear",
                  {"f32[4, 3]"},
                  [] {
                    grouped_linear(floats({2, 3}), floats({4, 3}), ints({2}));
                  }},
                 {"selective_scan",
                  {"complex64"},
                  [] {
                    selective_scan(zeros({1, 1, 1}, DType::complex64), floats({1, 1, 1}),
                                   floats({1, 1}), floats({1, 1, 1}), floats({1, 1, 1}),
                                   std::nullopt, floats({1, 1, 1}));
                  }},
                 {"fast::group_norm",
                  {"5 groups", "f32[2, 3]"},
                  [] {
                    fast::group_norm(floats({2, 3}), 5, std::nullopt, std::nullopt, 1e-5f);
                  }},
                 {"fast::channel_norm",
                  {"f32[2]", "f32[3]"},
                  [] {
                    fast::channel_norm(floats({2, 3}), 1, floats({2}), std::nullopt, 1e-5f);
                  }},
             });
}

}  // namespace

void add_walked_axes(std::vector<Walked>& all) {
  add_scan(all, "cumsum", cumsum, cumsum);
  add_scan(all, "cumprod", cumprod, cumprod);
  add_scan(all, "cummax", cummax, cummax);
  add_scan(all, "cummin", cummin, cummin);
  add_scan(all, "logcumsumexp", logcumsumexp, logcumsumexp);
  add_moved(all);
  add_spatial(all);
  add_models(all);
}

void add_refused_axes(std::vector<Refused>& all) {
  refuse_along_axes(all);
  refuse_spatial(all);
}

}  // namespace heddle::test

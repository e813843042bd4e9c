// Linear algebra, Fourier transforms, products and einsum: operands that suit them, and calls that
// none makes right.
#include <cmath>
#include <limits>

#include "bad_input_walk.h"
#include "heddle/einsum.h"
#include "heddle/fft.h"
#include "heddle/linalg.h"

namespace heddle::test {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kInfinityf = std::numeric_limits<float>::infinity();

/// Zeros are singular, which shows when it is evaluated.
template <class F>
void add(std::vector<Walked>& all, const char* name, const char* operands, F f,
         bool by_data = false) {
  all.push_back({name, operands, [f](const Arrays& in) { return Arrays{f(in)}; }, by_data});
}
template <class F>
void add_pair(std::vector<Walked>& all, const char* name, const char* operands, F f,
              bool by_data = false) {
  all.push_back({name, operands,
                 [f](const Arrays& in) {
                   const auto [first, second] = f(in);
                   return Arrays{first, second};
                 },
                 by_data});
}

void add_factors(std::vector<Walked>& all) {
  using namespace linalg;
  const char *square = "f32[2, 3, 3]", *any = "f32[2, 256]";
  add_pair(all, "linalg::qr", any, [](const Arrays& in) { return qr(in[0]); });
  add_pair(all, "linalg::lu_factor", any, [](const Arrays& in) { return lu_factor(in[0]); });
  all.push_back({"linalg::lu", any, [](const Arrays& in) { return lu(in[0]); }});
  all.push_back({"linalg::svd", "f32[5, 3]", [](const Arrays& in) { return svd(in[0]); }, true});
  all.push_back({"linalg::svd", any, [](const Arrays& in) { return svd(in[0], false); }, true});
  add(
      all, "linalg::inv", square, [](const Arrays& in) { return inv(in[0]); }, true);
  add(
      all, "linalg::tri_inv", square, [](const Arrays& in) { return tri_inv(in[0], true); }, true);
  add(
      all, "linalg::cholesky", square, [](const Arrays& in) { return cholesky(in[0]); }, true);
  add(
      all, "linalg::cholesky_inv", square, [](const Arrays& in) { return cholesky_inv(in[0]); },
      true);
  add(
      all, "linalg::pinv", "f32[2, 5, 3]", [](const Arrays& in) { return pinv(in[0]); }, true);
  add_pair(
      all, "linalg::eig", square, [](const Arrays& in) { return eig(in[0]); }, true);
  add(
      all, "linalg::eigvals", square, [](const Arrays& in) { return eigvals(in[0]); }, true);
  add(
      all, "linalg::eigvalsh", square, [](const Arrays& in) { return eigvalsh(in[0]); }, true);
  add_pair(
      all, "linalg::eigh", square, [](const Arrays& in) { return eigh(in[0], "U"); }, true);
  add(all, "linalg::det", square, [](const Arrays& in) { return det(in[0]); });
  add_pair(all, "linalg::slogdet", square, [](const Arrays& in) { return slogdet(in[0]); });
  add(
      all, "linalg::solve", "f32[3, 3], f32[3]",
      [](const Arrays& in) { return solve(in[0], in[1]); }, true);
  add(
      all, "linalg::solve", "f32[2, 3, 3], f32[3, 4]",
      [](const Arrays& in) { return solve(in[0], in[1]); }, true);
  add(
      all, "linalg::solve_triangular", "f32[3, 3], f32[2, 3, 1]",
      [](const Arrays& in) { return solve_triangular(in[0], in[1]); }, true);
  add(all, "linalg::cross", "f32[2, 3], f32[3]",
      [](const Arrays& in) { return cross(in[0], in[1]); });
}

void add_norms(std::vector<Walked>& all) {
  using linalg::norm;
  add(all, "linalg::norm", "f32[2, 256]", [](const Arrays& in) { return norm(in[0]); });
  add(all, "linalg::norm", "f32[2, 3]", [](const Arrays& in) { return norm(in[0], 1); });
  add(all, "linalg::norm", "f32[256]", [](const Arrays& in) { return norm(in[0], 3.0, 0); });
  add(all, "linalg::norm", "f32[2, 3]", [](const Arrays& in) { return norm(in[0], 1.0); });
  add(
      all, "linalg::norm", "f32[2, 256]", [](const Arrays& in) { return norm(in[0], "nuc"); },
      true);
  add(
      all, "linalg::norm", "f32[4, 2, 3]",
      [](const Arrays& in) {
        return norm(in[0], 2.0, Dims{0, -1}, true);
      },
      true);
}

void add_transforms(std::vector<Walked>& all) {
  using namespace fft;
  const char* x = "f32[2, 256]";
  add(all, "fft::fft", x, [](const Arrays& in) { return fft::fft(in[0]); });
  add(all, "fft::fft", x, [](const Arrays& in) { return fft::fft(in[0], 5, 0); });
  add(all, "fft::ifft", x, [](const Arrays& in) { return ifft(in[0], 0, FFTNorm::ortho); });
  add(all, "fft::rfft", x, [](const Arrays& in) { return rfft(in[0]); });
  add(all, "fft::irfft", x, [](const Arrays& in) { return irfft(in[0], 7, 1); });
  add(all, "fft::irfft", x, [](const Arrays& in) { return irfft(in[0]); });
  add(all, "fft::fft2", x, [](const Arrays& in) { return fft2(in[0]); });
  add(all, "fft::ifft2", x, [](const Arrays& in) { return ifft2(in[0], {3, 4}, Dims{0, 1}); });
  add(all, "fft::rfft2", x, [](const Arrays& in) { return rfft2(in[0]); });
  add(all, "fft::irfft2", x, [](const Arrays& in) { return irfft2(in[0]); });
  add(all, "fft::fftn", x, [](const Arrays& in) { return fftn(in[0]); });
  add(all, "fft::ifftn", x, [](const Arrays& in) { return ifftn(in[0], Dims{0}); });
  add(all, "fft::rfftn", x, [](const Arrays& in) { return rfftn(in[0]); });
  add(all, "fft::irfftn", x, [](const Arrays& in) { return irfftn(in[0]); });
  add(all, "fft::fftshift", x, [](const Arrays& in) { return fftshift(in[0]); });
  add(all, "fft::ifftshift", x, [](const Arrays& in) { return ifftshift(in[0], Dims{1}); });
}

void add_products(std::vector<Walked>& all) {
  add(all, "addmm", "f32[3], f32[2, 256], f32[256, 3]",
      [](const Arrays& in) { return addmm(in[0], in[1], in[2], 2.0f, 3.0f); });
  add(all, "inner", "f32[2, 256], f32[3, 256]",
      [](const Arrays& in) { return inner(in[0], in[1]); });
  add(all, "outer", "f32[2, 256], f32[3]", [](const Arrays& in) { return outer(in[0], in[1]); });
  add(all, "kron", "f32[2, 256], f32[3]", [](const Arrays& in) { return kron(in[0], in[1]); });
  add(all, "tensordot", "f32[2, 3], f32[3, 4]",
      [](const Arrays& in) { return tensordot(in[0], in[1], 1); });
  add(all, "tensordot", "f32[2, 256], f32[3, 256]",
      [](const Arrays& in) { return tensordot(in[0], in[1], Dims{1}, Dims{-1}); });
  add(all, "vecdot", "f32[2, 256], f32[256]",
      [](const Arrays& in) { return vecdot(in[0], in[1]); });
  add(all, "hadamard_transform", "f32[2, 256]",
      [](const Arrays& in) { return hadamard_transform(in[0]); });
  using Window = Array (*)(int, std::source_location);
  const std::pair<const char*, Window> windows[] = {
      {"bartlett", bartlett}, {"blackman", blackman}, {"hamming", hamming}, {"hanning", hanning}};
  for (const auto& [name, window] : windows) {
    add(all, name, "f32[2, 3]", [window = window](const Arrays& in) {
      return window(static_cast<int>(in[0].size()), std::source_location::current());
    });
  }
  add(all, "einsum", "f32[2, 256], f32[256, 3]",
      [](const Arrays& in) { return einsum("ij,jk", in); });
  add(all, "einsum", "f32[2, 3], f32[3, 3], f32[3]",
      [](const Arrays& in) { return einsum("...j,jj,j->...", in); });
}

void add_walked(std::vector<Walked>& all) {
  add_factors(all);
  add_norms(all);
  add_transforms(all);
  add_products(all);
}

void add_of_an_axis(std::vector<TakesAxis>& all) {
  all.push_back({"linalg::norm", [](const Array& x, int axis) { linalg::norm(x, axis); }});
  all.push_back({"linalg::norm", [](const Array& x, int axis) { linalg::norm(x, 1.0, axis); }});
  all.push_back({"linalg::cross", [](const Array& x, int axis) { linalg::cross(x, x, axis); }});
  all.push_back({"vecdot", [](const Array& x, int axis) { vecdot(x, x, axis); }});
  all.push_back({"fft::fft", [](const Array& x, int axis) { fft::fft(x, 2, axis); }});
  all.push_back({"fft::ifft", [](const Array& x, int axis) { fft::ifft(x, 2, axis); }});
  all.push_back({"fft::rfft", [](const Array& x, int axis) { fft::rfft(x, 2, axis); }});
  all.push_back({"fft::irfft", [](const Array& x, int axis) { fft::irfft(x, 2, axis); }});
}

void add_of_axes(std::vector<TakesAxes>& all) {
  all.push_back({"linalg::norm", [](const Array& x, const Dims& axes) { linalg::norm(x, axes); }});
  all.push_back(
      {"linalg::norm", [](const Array& x, const Dims& axes) { linalg::norm(x, "fro", axes); }});
  all.push_back(
      {"tensordot", [](const Array& x, const Dims& axes) { tensordot(x, x, axes, axes); }});
  all.push_back({"fft::fft2", [](const Array& x, const Dims& axes) { fft::fft2(x, axes); }});
  all.push_back({"fft::fftn", [](const Array& x, const Dims& axes) {
                   fft::fftn(x, Dims(axes.size(), 2), axes);
                 }});
  all.push_back({"fft::irfftn", [](const Array& x, const Dims& axes) { fft::irfftn(x, axes); }});
  all.push_back(
      {"fft::fftshift", [](const Array& x, const Dims& axes) { fft::fftshift(x, axes); }});
  all.push_back(
      {"fft::ifftshift", [](const Array& x, const Dims& axes) { fft::ifftshift(x, axes); }});
}

void refuse_linalg(std::vector<Refused>& all) {
  const auto refuse = [&](const char* function, std::vector<std::string> parts, auto call) {
    all.push_back({std::string("linalg::") + function, std::move(parts), call});
  };
  refuse("norm", {"order 3", "matrices"}, [] { linalg::norm(floats({2, 3}), 3.0); });
  refuse("norm", {"order nan"}, [] { linalg::norm(floats({2}), std::nan("")); });
  refuse("norm", {"3 axes", "f32[2, 3, 4]"}, [] { linalg::norm(floats({2, 3, 4}), 1.0); });
  refuse("norm", {"0 axes"}, [] { linalg::norm(floats({2}), 1.0, Dims{}); });
  refuse("norm", {"\"fro\"", "1 axes"}, [] { linalg::norm(floats({2}), "fro"); });
  refuse("norm", {"\"spectral\"", "fro"}, [] { linalg::norm(floats({2, 2}), "spectral"); });
  refuse("norm", {"3 axes"}, [] { linalg::norm(floats({2, 3, 4}), Dims{0, 1, 2}); });
  refuse("norm", {"nothing"}, [] { linalg::norm(floats({0}), kInfinity); });
  refuse("eigh", {"\"X\"", "L or U"}, [] { linalg::eigh(floats({2, 2}), "X"); });
  refuse("eigvalsh", {"\"lower\""}, [] { linalg::eigvalsh(floats({2, 2}), "lower"); });
  refuse("solve", {"f32[2, 2]", "f32[3]"}, [] { linalg::solve(floats({2, 2}), floats({3})); });
  refuse("solve", {"do not broadcast"}, [] {
    linalg::solve(floats({4, 2, 2}), floats({3, 2, 1}));
  });
  refuse("cross", {"4 elements", "2 or 3"}, [] { linalg::cross(floats({4}), floats({4})); });
  refuse("cross", {"axis 0", "different"}, [] { linalg::cross(floats({3, 3}), floats({3}), 0); });
}

void refuse_fft(std::vector<Refused>& all) {
  const auto refuse = [&](const char* function, std::vector<std::string> parts, auto call) {
    all.push_back({std::string("fft::") + function, std::move(parts), call});
  };
  refuse("fft", {"[0]", "at least 1"}, [] { fft::fft(floats({4}), 0, 0); });
  refuse("fft", {"[-3]"}, [] { fft::fft(floats({4}), -3, 0); });
  refuse("fft", {"[0]"}, [] { fft::fft(floats({0})); });
  refuse("irfft", {"[0]"}, [] { fft::irfft(floats({1})); });
  refuse("fft", {"norm 7"}, [] { fft::fft(floats({4}), 0, static_cast<fft::FFTNorm>(7)); });
  refuse("fftn", {"[2, 2]", "[0]"}, [] { fft::fftn(floats({4, 4}), {2, 2}, Dims{0}); });
  refuse("fft2", {"-2"}, [] { fft::fft2(floats({4})); });
  refuse("fftfreq", {"0 samples"}, [] { fft::fftfreq(0); });
  refuse("fftfreq", {"0 apart"}, [] { fft::fftfreq(4, 0); });
  refuse("rfftfreq", {"-1 samples"}, [] { fft::rfftfreq(-1); });
  refuse("rfftfreq", {"inf apart"}, [] { fft::rfftfreq(4, kInfinity); });
}

void refuse_products(std::vector<Refused>& all) {
  const auto refuse = [&](const char* function, std::vector<std::string> parts, auto call) {
    all.push_back({function, std::move(parts), call});
  };
  refuse("addmm", {"i32"}, [] { addmm(ints({2}), ints({2, 2}), ints({2, 2})); });
  refuse("addmm", {"[3]"}, [] { addmm(floats({3}), floats({2, 2}), floats({2, 2})); });
  refuse("inner", {"f32[2, 3]", "f32[4]"}, [] { inner(floats({2, 3}), floats({4})); });
  refuse("inner", {"i32"}, [] { inner(ints({2, 3}), ints({3})); });
  refuse("kron", {"10 axes", "at most 8"}, [] {
    kron(floats({2, 2, 2, 2, 2}), floats({2, 2, 2, 2, 2}));
  });
  refuse("tensordot", {"-1 axes"}, [] { tensordot(floats({2}), floats({2}), -1); });
  refuse("tensordot", {"3 axes"}, [] { tensordot(floats({2, 2}), floats({2, 2}), 3); });
  refuse("tensordot", {"not pairs"}, [] {
    tensordot(floats({2, 2}), floats({2, 2}), Dims{0, 1}, Dims{0});
  });
  refuse("tensordot", {"axis 1 of f32[2, 3]", "axis 0 of f32[2, 3]"}, [] {
    tensordot(floats({2, 3}), floats({2, 3}), Dims{1}, Dims{0});
  });
  refuse("tensordot", {"10 axes are left"}, [] {
    tensordot(floats({1, 1, 1, 1, 1}), floats({1, 1, 1, 1, 1}), 0);
  });
  refuse("vecdot", {"f32[2, 3]", "f32[2]"}, [] { vecdot(floats({2, 3}), floats({2})); });
  refuse("hadamard_transform", {"36 elements"}, [] { hadamard_transform(floats({2, 36})); });
  refuse("hadamard_transform", {"empty"}, [] { hadamard_transform(floats({0, 4})); });
  refuse("hadamard_transform", {"complex64"},
         [] { hadamard_transform(zeros({4}, DType::complex64)); });
  refuse("hadamard_transform", {"scale inf"}, [] { hadamard_transform(floats({4}), kInfinityf); });
}

void refuse_einsum(std::vector<Refused>& all) {
  for (const char* function : {"einsum", "einsum_path"}) {
    const auto refuse = [&](const char* subscripts, Arrays operands,
                            std::vector<std::string> parts) {
      const bool path = std::string(function) == "einsum_path";
      all.push_back({function, std::move(parts), [=] {
                       if (path) {
                         einsum_path(subscripts, operands);
                       } else {
                         einsum(subscripts, operands);
                       }
                     }});
    };
    refuse("", {}, {"no operands"});
    refuse("ij", {floats({2, 3}), floats({3})}, {"1 operands", "there are 2"});
    refuse("ij,j,k", {floats({2, 3}), floats({3})}, {"3 operands"});
    refuse("ijk", {floats({2, 3})}, {"operand 0", "f32[2, 3]", "\"ijk\""});
    refuse("i", {floats({2, 3})}, {"operand 0"});
    refuse("i1", {floats({2, 3})}, {"'1'"});
    refuse("i..", {floats({2, 3})}, {"'.'"});
    refuse("...i...", {floats({2, 3})}, {"more than one ellipsis"});
    refuse("ij->i-", {floats({2, 3})}, {"'-'"});
    refuse("...ijk", {floats({2, 3})}, {"operand 0"});
    refuse("ij->ii", {floats({2, 3})}, {"'i'", "twice"});
    refuse("ij->k", {floats({2, 3})}, {"'k'", "in no operand"});
    refuse("ii", {floats({2, 3})}, {"'i'", "2 and 3"});
    refuse("ij,jk", {floats({2, 3}), floats({4, 5})}, {"operand 1", "f32[4, 5]", "3 elements"});
    refuse("...i,...i", {floats({2, 3}), floats({4, 3})}, {"operand 1"});
    refuse("abcde,fghij->abcdefghij", {floats({1, 1, 1, 1, 1}), floats({1, 1, 1, 1, 1})},
           {"10 dimensions"});
  }
}

void add_refused(std::vector<Refused>& all) {
  refuse_linalg(all);
  refuse_fft(all);
  refuse_products(all);
  refuse_einsum(all);
}

const Family kFamily({.walked = add_walked,
                      .of_an_axis = add_of_an_axis,
                      .of_axes = add_of_axes,
                      .refused = add_refused});

}  // namespace

}  // namespace heddle::test

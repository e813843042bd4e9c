// Fourier transforms along an axis. Real lines of even length are complex ones of half the length,
// two elements each.
#include <complex>

#include "base/check.h"
#include "device/cpu/fft_plan.h"
#include "device/cpu/lines.h"
#include "device/cpu/matrices.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kColumns = 8;  // complex numbers in a cache line

Complex product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

class LineTransform {
 public:
  LineTransform(FftKind kind, std::int64_t n)
      : kind_(kind),
        n_(n),
        inverse_(kind == FftKind::inverse || kind == FftKind::real_inverse),
        halved_(is_real(kind) && n % 2 == 0),
        plan_(halved_ ? n / 2 : n, inverse_) {
    const std::int64_t sign = kind == FftKind::real_forward ? -1 : 1;
    for (std::int64_t k = 0; halved_ && k <= n / 2; ++k)
      turns_.push_back(root_of_unity(sign * k, n));
  }

  static bool is_real(FftKind kind) {
    return kind == FftKind::real_forward || kind == FftKind::real_inverse;
  }
  /// Floats of a line.
  std::int64_t in_floats() const {
    if (kind_ == FftKind::real_forward) return n_;
    return 2 * (kind_ == FftKind::real_inverse ? n_ / 2 + 1 : n_);
  }
  std::int64_t out_floats() const {
    if (kind_ == FftKind::real_inverse) return n_;
    return 2 * (kind_ == FftKind::real_forward ? n_ / 2 + 1 : n_);
  }
  /// Complex numbers of memory that `run` needs.
  std::int64_t scratch() const {
    return plan_.scratch() + (is_real(kind_) ? 2 * plan_.length() : 0);
  }

  void run(const float* from, float* to, Complex* scratch) const {
    Complex* first = scratch + plan_.scratch();
    Complex* second = first + plan_.length();
    switch (kind_) {
      case FftKind::forward:
      case FftKind::inverse:
        plan_.run(reinterpret_cast<const Complex*>(from), reinterpret_cast<Complex*>(to), scratch);
        break;
      case FftKind::real_forward:
        from_real(from, first);
        plan_.run(first, second, scratch);
        to_half(second, reinterpret_cast<Complex*>(to));
        break;
      case FftKind::real_inverse:
        from_half(reinterpret_cast<const Complex*>(from), first);
        plan_.run(first, second, scratch);
        to_real(second, to);
        break;
    }
    if (!inverse_) return;
    const float scale = 1.0f / static_cast<float>(n_);
    for (std::int64_t i = 0; i < out_floats(); ++i) to[i] *= scale;
  }

 private:
  void from_real(const float* from, Complex* line) const {
    const std::int64_t step = halved_ ? 2 : 1;
    for (std::int64_t i = 0; i < plan_.length(); ++i) {
      line[i] = {from[step * i], halved_ ? from[step * i + 1] : 0.0f};
    }
  }
  void to_real(const Complex* line, float* to) const {
    const std::int64_t step = halved_ ? 2 : 1;
    for (std::int64_t i = 0; i < plan_.length(); ++i) {
      to[step * i] = line[i].real();
      if (halved_) to[step * i + 1] = line[i].imag();
    }
  }

  /// The line's first half from its transform, or from that of its even and odd elements together:
  /// E + i O, both of which are the conjugates of themselves backwards.
  void to_half(const Complex* z, Complex* to) const {
    const std::int64_t half = n_ / 2;
    if (!halved_) {
      std::copy_n(z, half + 1, to);
      to[0] = {z[0].real(), 0.0f};
      return;
    }
    for (std::int64_t k = 0; k <= half; ++k) {
      const Complex a = z[k % half], b = std::conj(z[(half - k) % half]);
      const Complex even = (a + b) * 0.5f, odd = (a - b) * 0.5f;  // odd is i O
      const Complex turned = product(odd, turns_[static_cast<std::size_t>(k)]);
      to[k] = {even.real() + turned.imag(), even.imag() - turned.real()};
    }
    to[0] = {to[0].real(), 0.0f};
    to[half] = {to[half].real(), 0.0f};
  }

  /// And back. The imaginary parts of what is its own conjugate do not count.
  void from_half(const Complex* from, Complex* z) const {
    const std::int64_t half = n_ / 2;
    const auto at = [&](std::int64_t k) {
      const bool own = k == 0 || (halved_ && k == half);
      return own ? Complex(from[k].real(), 0.0f) : from[k];
    };
    if (!halved_) {
      z[0] = at(0);
      for (std::int64_t k = 1; k <= half; ++k) {
        z[k] = from[k];
        z[n_ - k] = std::conj(from[k]);
      }
      return;
    }
    for (std::int64_t k = 0; k < half; ++k) {
      const Complex a = at(k), b = std::conj(at(half - k));
      const Complex even = a + b, odd = product(a - b, turns_[static_cast<std::size_t>(k)]);
      z[k] = {even.real() - odd.imag(), even.imag() + odd.real()};
    }
  }

  FftKind kind_;
  std::int64_t n_;
  bool inverse_, halved_;
  FftPlan plan_;
  std::vector<Complex> turns_;
};

/// Lines side by side are first laid out one by one, some at a time.
template <class In, class Out>
struct FftLines {
  Lines in, out;
  LineTransform transform;

  bool direct() const { return in.inner == 1; }
  std::int64_t across() const { return (in.inner + kColumns - 1) / kColumns; }

  struct Room {
    In* from;
    Out* to;
    Complex* scratch;
  };
  Room carve(Carver& carver) const {
    const std::int64_t columns = direct() ? 0 : std::min(kColumns, in.inner);
    return {carver.take<In>(columns * in.length), carver.take<Out>(columns * out.length),
            carver.take<Complex>(transform.scratch())};
  }

  void run(const Launch& launch, std::int64_t item, const Room& room) const {
    const In* from = launch.inputs[0].as<In>();
    Out* to = launch.outputs[0].as<Out>();
    if (direct()) return one(from + item * in.length, to + item * out.length, room.scratch);
    const std::int64_t line = item / across(), column = item % across() * kColumns;
    const std::int64_t columns = std::min(kColumns, in.inner - column);
    from += in.at(line, 0) + column;
    to += out.at(line, 0) + column;
    for (std::int64_t i = 0; i < in.length; ++i) {
      for (std::int64_t c = 0; c < columns; ++c) {
        room.from[c * in.length + i] = from[i * in.inner + c];
      }
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      one(room.from + c * in.length, room.to + c * out.length, room.scratch);
    }
    for (std::int64_t i = 0; i < out.length; ++i) {
      for (std::int64_t c = 0; c < columns; ++c) {
        to[i * out.inner + c] = room.to[c * out.length + i];
      }
    }
  }

 private:
  void one(const In* from, Out* to, Complex* scratch) const {
    transform.run(reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to), scratch);
  }
};

template <class In, class Out>
Prepared prepare_lines(const PrepareArgs& args, const Fft& op) {
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  const Lines in(args.inputs[0].spec.shape, op.axis), out(args.outputs[0].spec.shape, op.axis);
  if (in.count() == 0) return make_kernel(std::move(traits), [](const Launch&) {});
  // Shared, as a plan has tables.
  const auto lines = std::make_shared<const FftLines<In, Out>>(
      FftLines<In, Out>{in, out, LineTransform(op.kind, op.n)});
  Carver measure;
  lines->carve(measure);
  const std::int64_t columns = std::min(in.inner, kColumns);
  const Tasks tasks(in.outer * lines->across(), in.outer_per_row * lines->across(),
                    10 * op.n * columns, measure.used(), traits.writes[0].end);
  traits.workspace_bytes = tasks.workspace_bytes();
  traits.honours_extent = in.honours_extent();
  return make_kernel(std::move(traits), [lines, tasks](const Launch& launch) {
    tasks.run(launch, [&](std::int64_t item, std::byte* scratch) {
      Carver carver(scratch);
      lines->run(launch, item, lines->carve(carver));
    });
  });
}

}  // namespace

Prepared prepare_fft(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const auto& op = std::get<Fft>(args.op);
  if (op.n > FftPlan::kMostElements) {
    return refuse(
        fmt::format("fft: lines of {} elements; at most {}", op.n, FftPlan::kMostElements));
  }
  switch (op.kind) {
    case FftKind::real_forward:
      return prepare_lines<float, Complex>(args, op);
    case FftKind::real_inverse:
      return prepare_lines<Complex, float>(args, op);
    default:
      return prepare_lines<Complex, Complex>(args, op);
  }
}

}  // namespace heddle::cpu

// Matmul and convolution against oneDNN called directly: the same operands in the same layouts, on
// as many threads (OpenMP's), as a table: op, shape, heddle's time, oneDNN's, the ratio. "packed"
// is oneDNN's time with weights that were reordered before, which is what a program that keeps them
// can have.
//
// Times are medians of alternating turns.
//
//   dnnl_bench [-t THREADS] [-r TURNS] [WORDS]    cases whose line holds all words
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/system.h"
#include "cpu_work.h"
#include "measure.h"

extern "C" void omp_set_num_threads(int);

namespace heddle::bench {
namespace {

using Memory = dnnl::memory;
using Tag = Memory::format_tag;
using Primitives = std::unordered_map<int, Memory>;

constexpr double kShortest = 2e-3;  // seconds of a measurement, at least

struct Case {
  std::string name, shape;
  Op op;
  std::vector<Input> inputs;

  std::string line() const { return fmt::format("{:<14} {:<40}", name, shape); }
};

// ---- oneDNN

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

Memory::data_type type_of(DType dtype) {
  return dtype == DType::bf16 ? Memory::data_type::bf16 : Memory::data_type::f32;
}

Memory memory_over(const Memory::desc& desc, std::span<const std::byte> bytes) {
  return Memory(desc, engine(), const_cast<std::byte*>(bytes.data()));
}

/// What runs an op through oneDNN: a reorder of the weights where it wants them otherwise, and the
/// primitive.
class Direct {
 public:
  Direct(const Case& c, const CpuWork& work, std::span<std::byte> out) : stream_(engine()) {
    if (const auto* conv = std::get_if<Conv>(&c.op)) {
      make_convolution(*conv, c.inputs[0].spec, c.inputs[1].spec, work, out);
    } else {
      make_matmul(c.inputs[0].spec, c.inputs[1].spec, work, out);
    }
  }

  void run() {
    if (plain_weights_) reorder_.execute(stream_, *plain_weights_, arguments_[DNNL_ARG_WEIGHTS]);
    run_packed();
  }
  void run_packed() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  void make_convolution(const Conv& op, const TensorSpec& x, const TensorSpec& w,
                        const CpuWork& work, std::span<std::byte> out) {
    const auto type = type_of(x.dtype);
    const TensorSpec y = infer(op, std::vector<TensorSpec>{x, w})[0];
    const Memory::dim groups = op.groups;
    const Memory::desc source({x.shape[0], x.shape[3], x.shape[1], x.shape[2]}, type, Tag::nhwc);
    const Memory::desc result({y.shape[0], y.shape[3], y.shape[1], y.shape[2]}, type, Tag::nhwc);
    Memory::dims weights{w.shape[0], w.shape[3], w.shape[1], w.shape[2]};
    Tag plain = Tag::ohwi;
    if (groups > 1) {
      weights = {groups, w.shape[0] / groups, w.shape[3], w.shape[1], w.shape[2]};
      plain = Tag::gohwi;
    }
    const Windows& windows = op.windows;
    const Memory::dims stride{windows.stride[0], windows.stride[1]};
    const Memory::dims low{windows.padding_low[0], windows.padding_low[1]};
    const Memory::dims high{windows.padding_high[0], windows.padding_high[1]};
    const Memory::dims dilation{windows.kernel_dilation[0] - 1, windows.kernel_dilation[1] - 1};
    const dnnl::convolution_forward::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, source,
        Memory::desc(weights, type, Tag::any), result, stride, dilation, low, high);
    const dnnl::convolution_forward::primitive_desc chosen(desc, engine());
    primitive_ = dnnl::convolution_forward(chosen);
    implementation = chosen.impl_info_str();
    bind(chosen.weights_desc(), Memory::desc(weights, type, plain), source, result, work, out);
  }

  void make_matmul(const TensorSpec& a, const TensorSpec& b, const CpuWork& work,
                   std::span<std::byte> out) {
    const auto type = type_of(a.dtype);
    const Memory::desc source({a.shape[0], a.shape[1]}, type, Tag::ab);
    const Memory::desc weights({b.shape[0], b.shape[1]}, type, Tag::ab);
    const Memory::desc result({a.shape[0], b.shape[1]}, type, Tag::ab);
    const dnnl::matmul::primitive_desc chosen({source, weights, result}, engine());
    primitive_ = dnnl::matmul(chosen);
    implementation = chosen.impl_info_str();
    bind(weights, weights, source, result, work, out);
  }

  void bind(const Memory::desc& wanted, const Memory::desc& plain, const Memory::desc& source,
            const Memory::desc& result, const CpuWork& work, std::span<std::byte> out) {
    arguments_ = {{DNNL_ARG_SRC, memory_over(source, work.input(0))},
                  {DNNL_ARG_WEIGHTS, memory_over(plain, work.input(1))},
                  {DNNL_ARG_DST, memory_over(result, out)}};
    if (wanted == plain) return;
    plain_weights_ = std::make_unique<Memory>(arguments_[DNNL_ARG_WEIGHTS]);
    arguments_[DNNL_ARG_WEIGHTS] = Memory(wanted, engine());
    reorder_ = dnnl::reorder(*plain_weights_, arguments_[DNNL_ARG_WEIGHTS]);
    run();
  }

  dnnl::stream stream_;
  dnnl::primitive primitive_;
  dnnl::reorder reorder_;
  std::unique_ptr<Memory> plain_weights_;
  Primitives arguments_;

 public:
  std::string implementation;
};

// ---- The cases

Case convolution(DType dtype, std::int64_t batch, std::int64_t side, std::int64_t channels,
                 std::int64_t outputs, std::int64_t taps, std::int64_t stride = 1,
                 std::int64_t groups = 1) {
  const std::int64_t padding = taps / 2;
  const Windows windows{{stride, stride}, {padding, padding}, {padding, padding}, {1, 1}, {1, 1}};
  return {fmt::format("conv {}", to_string(dtype)),
          fmt::format("{} x {}^2 x {} -> {}, {}x{} / {}{}", batch, side, channels, outputs, taps,
                      taps, stride, groups > 1 ? fmt::format(", {} groups", groups) : ""),
          Conv{windows, groups},
          {{{dtype, {batch, side, side, channels}}, {}, false},
           {{dtype, {outputs, taps, taps, channels / groups}}, {}, false}}};
}

Case product(DType dtype, std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  return {fmt::format("matmul {}", to_string(dtype)),
          fmt::format("{} x {} x {}", rows, depth, columns),
          Matmul{},
          {{{dtype, {rows, depth}}, {}, false}, {{dtype, {depth, columns}}, {}, false}}};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t side : {256, 512, 1024, 2048, 4096}) {
      cases.push_back(product(dtype, side, side, side));
    }
    cases.push_back(product(dtype, 128, 4096, 4096));
    cases.push_back(product(dtype, 8192, 512, 512));
    cases.push_back(convolution(dtype, 8, 224, 3, 64, 7, 2));
    cases.push_back(convolution(dtype, 8, 56, 64, 64, 3));
    cases.push_back(convolution(dtype, 8, 56, 64, 256, 1));
    cases.push_back(convolution(dtype, 8, 28, 128, 128, 3));
    cases.push_back(convolution(dtype, 8, 14, 256, 256, 3));
    cases.push_back(convolution(dtype, 8, 7, 512, 512, 3));
    cases.push_back(convolution(dtype, 1, 7, 512, 512, 3));
    cases.push_back(convolution(dtype, 1, 14, 1024, 256, 1));
    cases.push_back(convolution(dtype, 1, 64, 320, 320, 3));
    cases.push_back(convolution(dtype, 1, 512, 64, 64, 3));
    cases.push_back(convolution(dtype, 8, 56, 64, 128, 3, 2));
    cases.push_back(convolution(dtype, 8, 56, 128, 128, 3, 1, 4));
    cases.push_back(convolution(dtype, 8, 112, 96, 96, 3, 1, 96));
  }
  return cases;
}

// ---- Measuring

/// Both pools' threads spin for a while after their work, in the other's way: they are waited for.
double seconds_of(int runs, const auto& body) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  body();
  return seconds([&] {
           for (int i = 0; i < runs; ++i) body();
         }) /
         runs;
}

void measure(const Case& c, Team& team, int turns) {
  const Team::Session session(team);
  const CpuWork work(c.op, c.inputs);
  const Ref<Buffer> out = allocate_host(work.output_bytes());
  Direct direct(c, work, {out->host(), work.output_bytes()});
  work.run(team);
  direct.run();
  const double once = seconds([&] { work.run(team); });
  const int runs = static_cast<int>(std::max(1.0, std::ceil(kShortest / once)));
  std::vector<double> own, theirs, packed, ratios;
  for (int turn = 0; turn < turns; ++turn) {
    own.push_back(seconds_of(runs, [&] { work.run(team); }));
    theirs.push_back(seconds_of(runs, [&] { direct.run(); }));
    packed.push_back(seconds_of(runs, [&] { direct.run_packed(); }));
    ratios.push_back(own.back() / theirs.back());
  }
  fmt::print("{} {:>9.3f} {:>9.3f} {:>9.3f} {:>6.2f}  {}\n", c.line(), 1e3 * median(own),
             1e3 * median(theirs), 1e3 * median(packed), median(ratios), direct.implementation);
  std::fflush(stdout);
}

int run(int count, char** words) {
  int threads = default_threads(), turns = 9;
  std::vector<std::string> wanted;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool is_option = (word == "-t" || word == "-r") && i + 1 < count;
    if (is_option) {
      (word == "-t" ? threads : turns) = std::max(1, std::atoi(words[++i]));
    } else {
      wanted.push_back(word);
    }
  }
  omp_set_num_threads(threads);
  Team team(threads);
  const TeamScope scope(team);
  fmt::print("{}, {} threads\n{:<55} {:>9} {:>9} {:>9} {:>6}\n", processor_name(), threads,
             "milliseconds", "heddle", "oneDNN", "packed", "ratio");
  for (const Case& c : all_cases()) {
    const std::string line = c.line();
    const auto has = [&](const std::string& word) { return line.find(word) != std::string::npos; };
    if (std::ranges::all_of(wanted, has)) measure(c, team, turns);
  }
  return 0;
}

}  // namespace
}  // namespace heddle::bench

int main(int count, char** words) {
  return heddle::bench::run(count, words);
}

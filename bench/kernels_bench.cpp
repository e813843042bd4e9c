// Each family of CPU kernels against its bound, as a table: kernel, shape, time, bound, ratio.
//
// A bound is measured by this program, in turns with the kernel, as a machine's rates swing within
// minutes; times and ratios are medians of the turns. "read": reading what the kernel reads.
// "copy": copying as many bytes as it reads and writes. "f32", "bf16", "int8": as many operations
// at the rate of registers alone; quantised weights are held against the best that multiplies bytes
// or floats here, AMX tiles included, and others, with HEDDLE_MATMUL=bf16, against the best for
// bf16. "rows": copying rows of the same size to or from the same places. "sort": std::sort of the
// same numbers, shared among the threads without loss.
//
//   kernels_bench [-t THREADS] [-r TURNS] [WORDS]    cases whose line holds all words
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>

#include "base/settings.h"
#include "base/system.h"
#include "bounds.h"
#include "cpu_work.h"
#include "measure.h"

namespace heddle::bench {
namespace {

constexpr std::int64_t kBeyondCaches = std::int64_t{192} << 20;  // bytes
constexpr double kShortest = 2e-3;  // seconds of a measurement, at least
constexpr DType kWeightTypes[] = {DType::f32,  DType::f16,    DType::bf16,  DType::q8_0,
                                  DType::q4_0, DType::q4_1,   DType::q5_0,  DType::q5_1,
                                  DType::q2_K, DType::q3_K,   DType::q4_K,  DType::q5_K,
                                  DType::q6_K, DType::iq4_nl, DType::iq4_xs};

enum class Bound { read, copy, f32, bf16, int8, rows, std_sort };

struct Case {
  std::string kernel, shape;
  Op op;
  std::vector<Input> inputs;
  Bound bound;
  /// Bytes or operations; 0: the bytes of all inputs ("read"), and of the outputs too ("copy").
  double amount = 0;
  bool in_place = false;
  /// "rows": how many bytes a row has, and whether they are written, not read, anywhere.
  std::int64_t row = 0;
  bool written = false;

  std::string line() const { return fmt::format("{:<22} {:<38}", kernel, shape); }
};

std::string name_of_type(DType dtype) {
  return std::string(to_string(dtype));
}

std::vector<std::int32_t> counted(std::int64_t count) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// ---- The cases

void add_products(std::vector<Case>& cases) {
  constexpr std::int64_t kDepth = 4096, kManyRows = 512, kManyColumns = 4096;
  for (const DType dtype : kWeightTypes) {
    const auto columns =
        kBeyondCaches / static_cast<std::int64_t>(row_bytes(dtype, kDepth)) / 64 * 64;
    const auto add = [&](std::int64_t rows, std::int64_t outputs, Bound bound, double amount) {
      cases.push_back(
          {"linear " + name_of_type(dtype),
           fmt::format("{} x {} -> {}", rows, kDepth, outputs),
           Linear{},
           {{{DType::f32, {rows, kDepth}}, {}, false}, {{dtype, {outputs, kDepth}}, {}, true}},
           bound,
           amount});
    };
    for (const std::int64_t rows : {1, 4, 8}) add(rows, columns, Bound::read, 0);
    const Bound plain = settings().matmul == "bf16" ? Bound::bf16 : Bound::f32;
    add(kManyRows, kManyColumns, is_block(dtype) ? Bound::int8 : plain,
        2.0 * kManyRows * kManyColumns * kDepth);
  }
  constexpr std::int64_t kSide = 1024;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Input matrix{{dtype, {kSide, kSide}}, {}, false};
    cases.push_back({"matmul " + name_of_type(dtype),
                     fmt::format("{0} x {0} x {0}", kSide),
                     Matmul{},
                     {matrix, matrix},
                     Bound::f32,
                     2.0 * kSide * kSide * kSide});
  }
}

/// MLX's groups, with scales and biases of f16.
void add_group_products(std::vector<Case>& cases) {
  constexpr std::int64_t kDepth = 4096, kManyRows = 512, kManyColumns = 4096;
  using enum QuantMode;
  for (const GroupFormat& f : {GroupFormat{affine, 64, 2},
                               {affine, 64, 3},
                               {affine, 64, 4},
                               {affine, 64, 5},
                               {affine, 64, 6},
                               {affine, 64, 8},
                               {mxfp4, 32, 4},
                               {mxfp8, 32, 8},
                               {nvfp4, 16, 4}}) {
    const std::int64_t words = kDepth * f.bits / 32, groups = kDepth / f.group_size;
    const auto add = [&](std::int64_t rows, std::int64_t columns, Bound bound, double amount) {
      const DType scales = f.mode == affine ? DType::f16 : DType::u8;
      // Scales of a byte: 2 in e4m3, and far from the smallest in e8m0.
      const std::vector<std::int32_t> bytes(f.mode == affine ? 0 : 1, 0x40404040);
      std::vector<Input> inputs{{{DType::f32, {rows, kDepth}}, {}, false},
                                {{DType::u32, {columns, words}}, {}, false},
                                {{scales, {columns, groups}}, bytes, false}};
      if (f.mode == affine) inputs.push_back(inputs.back());
      cases.push_back({fmt::format("group_matmul {}{}", to_string(f.mode), f.bits),
                       fmt::format("{} x {} -> {}", rows, kDepth, columns), GroupMatmul{f},
                       std::move(inputs), bound, amount});
    };
    const std::int64_t columns = kBeyondCaches / (4 * words) / 64 * 64;
    for (const std::int64_t rows : {1, 4, 8}) add(rows, columns, Bound::read, 0);
    add(kManyRows, kManyColumns, Bound::f32, 2.0 * kManyRows * kManyColumns * kDepth);
  }
}

struct Heads {
  std::int64_t queries, keys, features;
};

/// The last `tokens` positions of sequences of `positions` each.
Case attend(Heads heads, DType dtype, std::int64_t sequences, std::int64_t tokens,
            std::int64_t positions) {
  constexpr std::int64_t kBlock = 32;
  const std::int64_t rows = sequences * positions, all = sequences * tokens;
  std::vector<std::int32_t> sequence, position;
  for (std::int64_t t = 0; t < all; ++t) {
    sequence.push_back(static_cast<std::int32_t>(t / tokens));
    position.push_back(static_cast<std::int32_t>(positions - tokens + t % tokens));
  }
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(sequences),
                                          static_cast<std::int32_t>(positions));
  const Input state{{dtype, {rows, heads.keys, heads.features}}, {}, false};
  Case c{"attend " + name_of_type(dtype),
         fmt::format("{} x {} of {}, {}/{} heads of {}", sequences, tokens, positions,
                     heads.queries, heads.keys, heads.features),
         Attend{.scale = 0.1f, .block_size = kBlock},
         {{{DType::f32, {all, heads.queries, heads.features}}, {}, false},
          state,
          state,
          {{DType::i32, {sequences, positions / kBlock}}, counted(rows / kBlock), false},
          {{DType::i32, {all}}, sequence, false},
          {{DType::i32, {all}}, position, false},
          {{DType::i32, {sequences}}, lengths, false}},
         Bound::read};
  if (tokens <= 8) return c;
  // Two products of two operations for each position that a token sees.
  const double seen = static_cast<double>(positions) - static_cast<double>(tokens - 1) / 2;
  c.bound = Bound::f32;
  c.amount = 4.0 * static_cast<double>(heads.queries * heads.features * all) * seen;
  return c;
}

void add_attention(std::vector<Case>& cases) {
  constexpr Heads kQwenHalfB{14, 2, 64}, kLlama1B{32, 8, 64}, kLlama8B{32, 8, 128};
  for (const DType dtype : {DType::f16, DType::f32, DType::q8_0}) {
    cases.push_back(attend(kLlama8B, dtype, 1, 1, 32'768));
    cases.push_back(attend(kLlama8B, dtype, 8, 1, 4'096));
    cases.push_back(attend(kQwenHalfB, dtype, 8, 1, 32'768));
    for (const Heads heads : {kQwenHalfB, kLlama1B, kLlama8B}) {
      cases.push_back(attend(heads, dtype, 1, 512, 512));
      cases.push_back(attend(heads, dtype, 1, 512, 4'096));
    }
  }
}

void add_elementwise(std::vector<Case>& cases) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const auto add = [&](const std::string& name, Op op, const std::vector<TensorSpec>& specs) {
    Case c{name, to_string(specs.front().shape), std::move(op), {}, Bound::copy};
    for (const TensorSpec& spec : specs) c.inputs.push_back({spec, {}, false});
    cases.push_back(std::move(c));
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const std::string type = " " + name_of_type(dtype);
    const TensorSpec big{dtype, {kBytes / static_cast<std::int64_t>(item_size(dtype))}};
    const TensorSpec one{dtype, {}}, flags{DType::bool_, big.shape};
    add("negative" + type, Unary{UnaryKind::negative}, {big});
    add("exp" + type, Unary{UnaryKind::exp}, {big});
    add("silu" + type, Unary{UnaryKind::silu}, {big});
    add("add" + type, Binary{BinaryKind::add}, {big, big});
    add("multiply" + type, Binary{BinaryKind::multiply}, {big, big});
    add("add scalar" + type, Binary{BinaryKind::add}, {big, one});
    add("less" + type, Compare{CompareKind::less}, {big, big});
    add("select" + type, Select{}, {flags, big, big});
  }
  const TensorSpec numbers{DType::f32, {kBytes / 4}};
  for (int kind = 0; kind <= static_cast<int>(UnaryKind::arcsinh); ++kind) {
    const auto unary = static_cast<UnaryKind>(kind);
    using enum UnaryKind;  // inputs are from 1/2 to 3/2, where these are not numbers throughout
    if (unary == arcsin || unary == arccos || unary == erfinv) continue;
    add(fmt::format("unary {}", to_string(unary)), Unary{unary}, {numbers});
  }
  for (int kind = 0; kind <= static_cast<int>(BinaryKind::logical_or); ++kind) {
    const auto binary = static_cast<BinaryKind>(kind);
    add(fmt::format("binary {}", to_string(binary)), Binary{binary}, {numbers, numbers});
  }
  add("gated_multiply f32", GatedMultiply{}, {numbers, numbers});
  for (const DType half : {DType::f16, DType::bf16}) {
    add("cast f32 to " + name_of_type(half), Cast{half}, {numbers});
    add("cast " + name_of_type(half) + " to f32", Cast{DType::f32}, {{half, numbers.shape}});
  }
  for (const DType dtype : {DType::q8_0, DType::q4_0, DType::q4_K, DType::q6_K}) {
    add("cast " + name_of_type(dtype) + " to f32", Cast{DType::f32}, {{dtype, numbers.shape}});
  }
}

constexpr std::int64_t kRows = 8'192, kWidth = 2'048;

Input floats(const Shape& shape) {
  return {{DType::f32, shape}, {}, false};
}

void add_reductions(std::vector<Case>& cases) {
  constexpr std::int64_t kVocabulary = 151'936;
  const auto add = [&](const std::string& name, Op op, const Shape& shape, Bound bound) {
    cases.push_back({name, to_string(shape), std::move(op), {floats(shape)}, bound});
  };
  const Shape rows{kRows, kWidth};
  add("sum, last axis", Reduce{ReduceKind::sum, {1}}, rows, Bound::read);
  for (const Shape& shape : {rows, Shape{32 * kRows, kWidth / 32}, Shape{8 * kRows, kWidth / 8}}) {
    add("sum, first axis", Reduce{ReduceKind::sum, {0}}, shape, Bound::read);
  }
  add("max, last axis", Reduce{ReduceKind::max, {1}}, rows, Bound::read);
  add("arg_reduce, last axis", ArgReduce{ArgReduceKind::max, 1}, rows, Bound::read);
  add("top_k 40", TopK{40}, {128, kVocabulary}, Bound::read);
  for (const ReduceKind kind :
       {ReduceKind::mean, ReduceKind::min, ReduceKind::prod, ReduceKind::all, ReduceKind::any}) {
    add(fmt::format("{}, last axis", to_string(kind)), Reduce{kind, {1}}, rows, Bound::read);
    add(fmt::format("{}, first axis", to_string(kind)), Reduce{kind, {0}}, rows, Bound::read);
  }
  add("sum, all", Reduce{ReduceKind::sum, {0, 1}}, rows, Bound::read);
  for (int kind = 0; kind <= static_cast<int>(ScanKind::logaddexp); ++kind) {
    const auto scan = static_cast<ScanKind>(kind);
    add(fmt::format("scan {}", to_string(scan)), Scan{scan, 1}, rows, Bound::copy);
    add(fmt::format("scan {}, first axis", to_string(scan)), Scan{scan, 0}, rows, Bound::copy);
  }
  add("softmax", Softmax{}, rows, Bound::copy);
}

void add_norms_and_rope(std::vector<Case>& cases) {
  const Input x = floats({kRows, kWidth}), weight = floats({kWidth});
  const std::string shape = to_string(x.spec.shape);
  cases.push_back({"rms_norm", shape, RmsNorm{}, {x, weight}, Bound::copy});
  cases.push_back({"add_rms_norm", shape, AddRmsNorm{}, {x, x, weight}, Bound::copy});
  cases.push_back({"layer_norm", shape, LayerNorm{}, {x, weight, weight}, Bound::copy});
  constexpr std::int64_t kTokens = 4'096;
  const Input heads = floats({kTokens, 32, 128});
  const Input positions{{DType::i32, {kTokens}}, counted(kTokens), false};
  for (const RopeStyle style : {RopeStyle::split_half, RopeStyle::interleaved}) {
    cases.push_back({fmt::format("rope {}", to_string(style)),
                     to_string(heads.spec.shape),
                     Rope{RopeAngles{.style = style, .dims = 128}},
                     {heads, positions},
                     Bound::copy});
  }
}

/// Bytes of a row in `dtype`, and in f32.
double bytes_of_rows(DType dtype, std::int64_t rows) {
  return static_cast<double>(rows) *
         static_cast<double>(row_bytes(dtype, kWidth) + row_bytes(DType::f32, kWidth));
}

void add_gathers(std::vector<Case>& cases) {
  constexpr std::int64_t kTable = 65'536, kIds = 16'384;
  std::vector<std::int32_t> ids = counted(kIds);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(id * 7'919LL % kTable);
  for (const DType dtype : {DType::f32, DType::f16, DType::q8_0, DType::q4_0, DType::q4_K}) {
    cases.push_back({"gather_rows " + name_of_type(dtype),
                     fmt::format("{} rows of [{}, {}]", kIds, kTable, kWidth),
                     GatherRows{},
                     {{{dtype, {kTable, kWidth}}, {}, false}, {{DType::i32, {kIds}}, ids, false}},
                     Bound::copy,
                     bytes_of_rows(dtype, kIds)});
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::q8_0}) {
    const Input x = floats({kRows, kWidth}), state{{dtype, x.spec.shape}, {}, false};
    cases.push_back({"write_rows " + name_of_type(dtype),
                     to_string(x.spec.shape),
                     WriteRows{},
                     {state, x, {{DType::i32, {kRows}}, counted(kRows), false}},
                     Bound::copy,
                     bytes_of_rows(dtype, kRows),
                     true});
  }
}

std::vector<std::int32_t> random_numbers(std::int64_t count, std::int32_t limit) {
  std::mt19937 random(1);
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (std::int32_t& value : values) value = static_cast<std::int32_t>(random() % limit);
  return values;
}

/// Rows anywhere in a table that is beyond the caches.
void add_slices(std::vector<Case>& cases) {
  constexpr std::int64_t kTable = std::int64_t{256} << 20, kMoved = std::int64_t{64} << 20;
  for (const std::int64_t row : {4, 64, 256, 1024, 4096}) {
    const std::int64_t width = row / 4, rows = kTable / row;
    const std::int64_t count = std::min<std::int64_t>(kMoved / row, 4 << 20);
    const Input table = floats({rows, width}), updates = floats({count, 1, width});
    const Input ids{
        {DType::i32, {count}}, random_numbers(count, static_cast<std::int32_t>(rows)), false};
    const std::string shape = fmt::format("{} rows of {} bytes", count, row);
    const auto add = [&](const std::string& name, Op op, std::vector<Input> inputs, bool written) {
      cases.push_back({name, shape, std::move(op), std::move(inputs), Bound::rows});
      cases.back().row = row;
      cases.back().written = cases.back().in_place = written;
    };
    add("gather_rows slices", GatherRows{}, {table, ids}, false);
    add("gather slices", Gather{{0}, {1, width}}, {table, ids}, false);
    add("scatter slices", Scatter{ScatterKind::none, {0}}, {table, ids, updates}, true);
    add("scatter_add slices", Scatter{ScatterKind::sum, {0}}, {table, ids, updates}, true);
  }
}

void add_order(std::vector<Case>& cases) {
  const auto add = [&](const std::string& name, Op op, DType dtype, const Shape& shape) {
    // Any bits below infinity's are a number.
    const Input x{{dtype, shape}, random_numbers(elements(shape), 0x7f00'0000), false};
    cases.push_back({name, to_string(shape), std::move(op), {x}, Bound::std_sort});
  };
  for (const Shape& shape : {Shape{4096, 1000}, Shape{4 << 20}}) {
    add("sort f32", Sort{SortKind::sort}, DType::f32, shape);
    add("sort i32", Sort{SortKind::sort}, DType::i32, shape);
    add("argsort f32", Sort{SortKind::argsort}, DType::f32, shape);
    add("top_k all", TopK{shape.back()}, DType::f32, shape);
    add("top_k half", TopK{shape.back() / 2}, DType::f32, shape);
  }
}

// ---- Measuring

/// As CpuWork has it, in pages that exist.
Ref<Buffer> filled_memory(std::size_t bytes) {
  Ref<Buffer> memory = allocate_host(bytes);
  std::memset(memory->host(), 1, bytes);
  return memory;
}

class Measurement {
 public:
  Measurement(const Case& c, Team& team)
      : case_(c), team_(team), work_(c.op, c.inputs, c.in_place) {
    work_.run(team_);
    const double taken = seconds([&] { work_.run(team_); });
    runs_ = static_cast<int>(std::max(1.0, std::ceil(kShortest / taken)));
    bytes_ = static_cast<double>(work_.input_bytes()) +
             (c.bound == Bound::copy ? static_cast<double>(work_.output_bytes()) : 0);
    if (c.bound == Bound::copy) target_ = filled_memory(copied().size());
    if (c.bound == Bound::rows) {
      for (const std::int32_t id : c.inputs[1].integers) offsets_.push_back(id * c.row);
      if (c.written) target_ = filled_memory(offsets_.size() * static_cast<std::size_t>(c.row));
    }
  }

  /// Seconds of one run.
  double run() const {
    return seconds([&] {
             for (int i = 0; i < runs_; ++i) work_.run(team_);
           }) /
           runs_;
  }
  /// Seconds that the bound allows for one.
  double bound() {
    const double amount = case_.amount > 0 ? case_.amount : bytes_;
    switch (case_.bound) {
      case Bound::read: {
        double taken = 0;  // for all of them, as caches may hold any one
        for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
          taken += read_seconds(team_, work_.input(i));
        }
        return amount * taken / static_cast<double>(work_.input_bytes());
      }
      case Bound::copy: {
        const auto from = copied();
        return amount * copy_seconds(team_, from, target_->host()) /
               (2 * static_cast<double>(from.size()));
      }
      case Bound::rows: {
        std::byte* packed = case_.written ? target_->host() : work_.output(0).data();
        return row_seconds(team_, work_.input(0).data(), offsets_,
                           static_cast<std::size_t>(case_.row), packed, case_.written);
      }
      case Bound::std_sort: {
        const auto* values = reinterpret_cast<const float*>(work_.input(0).data());
        const Shape& shape = case_.inputs[0].spec.shape;
        const std::int64_t count = elements(shape), length = shape.back();
        const auto sample = std::min<std::int64_t>(count, std::max<std::int64_t>(length, 1 << 20));
        double taken = 0;
        for (std::int64_t at = 0; at < sample; at += length) {
          taken += sort_seconds({values + at, static_cast<std::size_t>(length)});
        }
        return taken * static_cast<double>(count) / static_cast<double>(sample) / team_.size();
      }
      case Bound::f32:
        return amount / best_rate({Arithmetic::f32});
      case Bound::bf16:
        return amount / best_rate({Arithmetic::f32, Arithmetic::bf16, Arithmetic::bf16_tile});
      case Bound::int8:
        break;
    }
    return amount / best_rate({Arithmetic::f32, Arithmetic::int8, Arithmetic::int8_tile});
  }

 private:
  double best_rate(std::initializer_list<Arithmetic> candidates) const {
    double rate = 0;
    for (const Arithmetic arithmetic : candidates) {
      rate = std::max(rate, arithmetic_rate(team_, arithmetic).value_or(0));
    }
    return rate;
  }
  std::span<const std::byte> largest() const {
    std::span<const std::byte> most;
    for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
      if (work_.input(i).size() > most.size()) most = work_.input(i);
    }
    return most;
  }
  std::span<const std::byte> copied() const {
    constexpr std::size_t kMost = std::size_t{64} << 20;
    const std::span<const std::byte> from = largest();
    return from.first(std::min(from.size(), kMost));
  }

  const Case& case_;
  Team& team_;
  CpuWork work_;
  Ref<Buffer> target_;
  std::vector<std::int64_t> offsets_;  // of "rows"
  double bytes_ = 0;
  int runs_ = 1;
};

const char* name_of_bound(Bound bound) {
  switch (bound) {
    case Bound::read:
      return "read";
    case Bound::copy:
      return "copy";
    case Bound::f32:
      return "f32";
    case Bound::rows:
      return "rows";
    case Bound::std_sort:
      return "sort";
    case Bound::bf16:
      return "bf16";
    case Bound::int8:
      break;
  }
  return "int8";
}

void measure(const Case& c, Team& team, int turns) {
  const Team::Session session(team);
  Measurement measurement(c, team);
  std::vector<double> times, bounds, ratios;
  for (int turn = 0; turn < turns; ++turn) {
    bounds.push_back(measurement.bound());
    times.push_back(measurement.run());
    ratios.push_back(bounds.back() / times.back());
  }
  fmt::print("{} {:>10.3f} {:>10.3f} {:<5} {:>6.2f}\n", c.line(), 1e3 * median(times),
             1e3 * median(bounds), name_of_bound(c.bound), median(ratios));
  std::fflush(stdout);
}

void print_machine(Team& team) {
  const Ref<Buffer> source = filled_memory(static_cast<std::size_t>(kBeyondCaches));
  const Ref<Buffer> to = filled_memory(source->size());
  const std::span<const std::byte> from(source->host(), source->size());
  std::vector<double> reads, copies;
  for (int i = 0; i < 9; ++i) {
    reads.push_back(static_cast<double>(from.size()) / read_seconds(team, from));
    copies.push_back(2 * static_cast<double>(from.size()) / copy_seconds(team, from, to->host()));
  }
  fmt::print("{}, {} threads: read {:.1f} GB/s, copy {:.1f} GB/s (read and written)",
             processor_name(), team.size(), median(reads) / 1e9, median(copies) / 1e9);
  for (const Arithmetic arithmetic : kArithmetic) {
    std::vector<double> rates;
    for (int i = 0; i < 9; ++i) rates.push_back(arithmetic_rate(team, arithmetic).value_or(0));
    if (median(rates) > 0)
      fmt::print(", {} {:.0f} GOP/s", name_of(arithmetic), median(rates) / 1e9);
  }
  fmt::print("\n\n{:<22} {:<38} {:>10} {:>16} {:>6}\n", "kernel", "shape", "time ms",
             "bound ms      ", "ratio");
  std::fflush(stdout);
}

struct Arguments {
  int threads = default_threads();
  int turns = 9;
  std::vector<std::string> words;
};

Arguments parse(int count, char** words) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool is_option = (word == "-t" || word == "-r") && i + 1 < count;
    if (!is_option)
      arguments.words.push_back(word);
    else
      (word == "-t" ? arguments.threads : arguments.turns) = std::max(1, std::atoi(words[++i]));
  }
  return arguments;
}

int run(const Arguments& arguments) {
  std::vector<Case> cases;
  add_products(cases);
  add_group_products(cases);
  add_attention(cases);
  add_elementwise(cases);
  add_reductions(cases);
  add_norms_and_rope(cases);
  add_gathers(cases);
  add_slices(cases);
  add_order(cases);
  Team team(arguments.threads);
  const TeamScope scope(team);
  print_machine(team);
  for (const Case& c : cases) {
    const std::string line = c.line();
    const auto has = [&](const std::string& word) { return line.find(word) != std::string::npos; };
    if (std::ranges::all_of(arguments.words, has)) measure(c, team, arguments.turns);
  }
  return 0;
}

}  // namespace
}  // namespace heddle::bench

int main(int count, char** words) {
  return heddle::bench::run(heddle::bench::parse(count, words));
}

#include "support/conformance.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "base/team.h"
#include "heddle/half.h"
#include "tensor/quantize.h"

namespace heddle::test {

// ---- Making inputs

OperandSpec arranged(DType dtype, const Shape& shape, Arrangement arrangement) {
  OperandSpec operand = OperandSpec::contiguous({dtype, shape});
  Dims& strides = operand.layout.strides;
  if (shape.empty() || arrangement == Arrangement::contiguous) return operand;
  if (is_block(dtype)) {  // rows with a gap of a block
    Shape padded = shape;
    if (arrangement != Arrangement::reversed) {
      padded[shape.size() - 1] += info(dtype).block_elements;
    }
    operand.layout = Layout::contiguous(padded);
    for (std::size_t i = 0; arrangement == Arrangement::reversed && i + 1 < shape.size(); ++i) {
      operand.layout.strides[i] *= -1;
    }
    return operand;
  }
  if (arrangement == Arrangement::transposed) {
    std::int64_t stride = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      strides[i] = stride;
      stride *= std::max<std::int64_t>(1, shape[i]);
    }
  } else if (arrangement == Arrangement::sliced) {
    constexpr std::int64_t kStep = 2, kGap = 3;
    std::int64_t stride = shape.back() * kStep + kGap;
    strides[shape.size() - 1] = kStep;
    for (std::size_t i = shape.size() - 1; i-- > 0;) {
      strides[i] = stride;
      stride *= std::max<std::int64_t>(1, shape[i]);
    }
  } else if (arrangement == Arrangement::reversed) {
    for (std::int64_t& stride : strides) stride = -stride;
  } else {
    strides[0] = 0;
  }
  return operand;
}

namespace {

template <class T>
void write(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

/// To an integer, saturated.
template <class T>
T whole(double value) {
  using Limits = std::numeric_limits<T>;
  if (!(value > static_cast<double>(Limits::min()))) return Limits::min();
  return value >= static_cast<double>(Limits::max()) ? Limits::max() : static_cast<T>(value);
}

void encode(DType dtype, std::byte* at, double value) {
  switch (dtype) {
    case DType::bool_:
      return write<std::uint8_t>(at, value > 0);
    case DType::u8:
      return write(at, whole<std::uint8_t>(value));
    case DType::u16:
      return write(at, whole<std::uint16_t>(value));
    case DType::u32:
      return write(at, whole<std::uint32_t>(value));
    case DType::u64:
      return write(at, whole<std::uint64_t>(value));
    case DType::i8:
      return write(at, whole<std::int8_t>(value));
    case DType::i16:
      return write(at, whole<std::int16_t>(value));
    case DType::i32:
      return write(at, whole<std::int32_t>(value));
    case DType::i64:
      return write(at, whole<std::int64_t>(value));
    case DType::f16:
      return write(at, f16(static_cast<float>(value)).bits);
    case DType::bf16:
      return write(at, bf16(static_cast<float>(value)).bits);
    case DType::f64:
      return write(at, value);
    default:
      return write(at, static_cast<float>(value));
  }
}

std::vector<double> special_values(DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (is_integer(dtype)) return {-kInfinity, kInfinity, 0, 1, -1};  // encoded as the extremes
  if (dtype == DType::bool_) return {0, 1};
  return {NAN, kInfinity, -kInfinity, 0.0, -0.0, 1, -1, 1e-40, 3e38, -3e38, 100, -100};
}

double random_value(DType dtype, Random& random, Fill fill) {
  if (fill.special && random() % 4 == 0) {
    const std::vector<double> values = special_values(dtype);
    return values[random() % values.size()];
  }
  const double x = std::uniform_real_distribution<double>(fill.low, fill.high)(random);
  return is_integer(dtype) ? std::floor(x) : x;
}

void fill_blocks(Tensor& tensor, Random& random, Fill fill) {
  const auto& [spec, layout] = tensor.operand;
  const DTypeInfo& type = info(spec.dtype);
  std::vector<float> row(static_cast<std::size_t>(spec.shape.back()));
  Shape rows = spec.shape;
  rows[rows.size() - 1] = 1;
  for_each_index(rows, [&](const Dims& index) {
    const std::int64_t element = element_offset(tensor.operand, index);
    for (float& x : row) x = static_cast<float>(random_value(DType::f32, random, fill));
    quantize_row(spec.dtype, row.data(),
                 tensor.bytes.data() + element / type.block_elements * type.block_bytes,
                 spec.shape.back());
  });
}

}  // namespace

Tensor random_tensor(const OperandSpec& operand, Random& random, Fill fill) {
  Tensor tensor{operand, std::vector<std::byte>(span_bytes(operand))};
  const DType dtype = operand.spec.dtype;
  if (is_block(dtype)) {
    fill_blocks(tensor, random, fill);
    return tensor;
  }
  const bool complex = dtype == DType::complex64;
  const std::size_t item = complex ? sizeof(float) : item_size(dtype);
  for (std::size_t at = 0; at < tensor.bytes.size(); at += item) {
    encode(complex ? DType::f32 : dtype, &tensor.bytes[at], random_value(dtype, random, fill));
  }
  return tensor;
}

Tensor random_tensor(DType dtype, const Shape& shape, Random& random, Fill fill) {
  return random_tensor(OperandSpec::contiguous({dtype, shape}), random, fill);
}

Tensor tensor_of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor tensor{OperandSpec::contiguous({dtype, shape}), {}};
  tensor.bytes.resize(span_bytes(tensor.operand));
  EXPECT_EQ(values.size() * item_size(dtype), tensor.bytes.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    encode(dtype, &tensor.bytes[i * item_size(dtype)], values[i]);
  }
  return tensor;
}

// ---- Comparing

namespace {

struct Precision {
  int digits;  // of the significand, the hidden one included
  int lowest;  // exponent of the smallest normal
  Number highest;
};

Precision precision(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {11, -14, 65504};
    case DType::bf16:
      return {8, -126, 0x1.fep127L};
    case DType::f64:
      return {53, -1022, static_cast<Number>(std::numeric_limits<double>::max())};
    default:
      return {24, -126, static_cast<Number>(std::numeric_limits<float>::max())};
  }
}

bool agrees(DType dtype, Number got, Number want, Tolerance tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (is_integer(dtype) || dtype == DType::bool_) return got == want;
  const Precision p = precision(dtype);
  const int exponent =
      want == 0 || std::isinf(want) ? p.lowest : std::max(p.lowest, std::ilogb(want));
  const Number ulp = std::ldexp(Number{1}, exponent - p.digits + 1);
  const Number allowed =
      std::max(ulp * static_cast<Number>(tolerance.ulps), static_cast<Number>(tolerance.absolute));
  if (std::isinf(got)) return (got > 0) == (want > 0) && std::fabs(want) + allowed > p.highest;
  return std::isfinite(got) && std::isfinite(want) && std::fabs(got - want) <= allowed;
}

/// The dtype whose precision a result has: a complex part is a float.
DType part_dtype(DType dtype) {
  return dtype == DType::complex64 ? DType::f32 : dtype;
}

}  // namespace

std::string difference(const Values& got, const Values& want, Tolerance tolerance) {
  if (got.spec.shape != want.spec.shape) {
    return "shape " + to_string(got.spec.shape) + " instead of " + to_string(want.spec.shape);
  }
  const DType dtype = part_dtype(want.spec.dtype);
  for (std::size_t i = 0; i < want.real.size(); ++i) {
    const bool real = agrees(dtype, got.real[i], want.real[i], tolerance);
    const bool imaginary =
        want.imaginary.empty() || agrees(dtype, got.imaginary[i], want.imaginary[i], tolerance);
    if (real && imaginary) continue;
    const Values& g = got;
    char text[160];
    const bool show_real = !real;
    std::snprintf(text, sizeof text, "element %zu%s of %s: %.12Lg instead of %.12Lg", i,
                  show_real ? "" : " (imaginary)", to_string(want.spec).c_str(),
                  show_real ? g.real[i] : g.imaginary[i],
                  show_real ? want.real[i] : want.imaginary[i]);
    return text;
  }
  return {};
}

// ---- Running

namespace {

Team& team_of(int threads) {
  static std::map<int, Team> teams;
  return teams.try_emplace(threads, threads).first->second;
}

Ref<Buffer> upload(Device& device, std::span<const std::byte> bytes) {
  Ref<Buffer> buffer = device.allocate(bytes.size(), MemoryKind::host_visible);
  if (!bytes.empty()) std::memcpy(buffer->host(), bytes.data(), bytes.size());
  return buffer;
}

/// For each output, the input whose memory it takes, if any.
std::vector<std::optional<std::size_t>> choose_aliases(const KernelTraits& traits,
                                                       std::size_t outputs, bool in_place) {
  std::vector<std::optional<std::size_t>> chosen(outputs);
  std::set<std::size_t> taken;
  for (const KernelTraits::Alias& alias : traits.aliases) {
    if (!alias.required && !in_place) continue;
    if (chosen[alias.output] || taken.contains(alias.input)) continue;
    chosen[alias.output] = alias.input;
    taken.insert(alias.input);
  }
  return chosen;
}

enum class Access { read, write };

View whole_view(Device& device, std::span<const std::byte> bytes, const OperandSpec& operand,
                const RunOptions& options, Access access) {
  Ref<Buffer> buffer;
  if (options.guarded) {
    buffer = guarded_buffer(device, bytes, *options.guarded, access == Access::read);
  }
  return {buffer ? std::move(buffer) : upload(device, bytes), 0, operand};
}

}  // namespace

Ran run_op(Device& device, const Op& op, const std::vector<Tensor>& inputs,
           const RunOptions& options) {
  std::vector<OperandSpec> operands;
  std::vector<TensorSpec> specs;
  std::vector<View> in, out;
  for (const Tensor& input : inputs) {
    operands.push_back(input.operand);
    specs.push_back(input.operand.spec);
  }
  const std::vector<OperandSpec> results = output_operands(op, infer(op, specs));
  const Prepared prepared = device.prepare(op, operands, results);
  Ran ran;
  if (!prepared) {
    ran.refused = prepared.reason;
    return ran;
  }
  ran.traits = prepared.kernel->traits();
  const auto aliases = choose_aliases(ran.traits, results.size(), options.in_place);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool written = std::ranges::find(aliases, std::optional(i)) != aliases.end();
    in.push_back(whole_view(device, inputs[i].bytes, inputs[i].operand, options,
                            written ? Access::write : Access::read));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::vector<std::byte> untouched(span_bytes(results[i]), kUntouched);
    out.push_back(aliases[i] ? View{in[*aliases[i]].buffer, 0, results[i]}
                             : whole_view(device, untouched, results[i], options, Access::write));
  }
  View workspace, extent;
  if (ran.traits.workspace_bytes > 0) {
    const std::vector<std::byte> untouched(ran.traits.workspace_bytes, kUntouched);
    workspace = whole_view(
        device, untouched,
        OperandSpec::contiguous({DType::u8, {static_cast<std::int64_t>(untouched.size())}}),
        options, Access::write);
  }
  if (options.extent >= 0) {
    const Tensor count = tensor_of(DType::i32, {}, {static_cast<double>(options.extent)});
    extent = whole_view(device, count.bytes, count.operand, options, Access::read);
  }
  const TeamScope scope(team_of(options.threads));
  const Ref<Stream> stream = device.default_stream();
  stream->encode(prepared.kernel, in, out, workspace, extent);
  stream->submit()->wait();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::byte* data = out[i].host();
    ran.outputs.push_back({results[i], {data, data + span_bytes(results[i])}});
  }
  return ran;
}

namespace {

std::string describe(const Op& op, const std::vector<Tensor>& inputs) {
  std::string text = to_string(op) + " of";
  for (const Tensor& input : inputs) text += " " + to_string(input.operand);
  return text;
}

void expect_same_bits(const Ran& a, const Ran& b, const std::string& what) {
  ASSERT_EQ(a.refused, b.refused) << what;
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    EXPECT_TRUE(a.outputs[i].bytes == b.outputs[i].bytes) << what << ": other bits in output " << i;
  }
}

}  // namespace

void expect_conformance(Device& device, const Op& op, const std::vector<Tensor>& inputs,
                        Tolerance tolerance) {
  const std::string what = describe(op, inputs);
  const Ran first = run_op(device, op, inputs);
  ASSERT_EQ(first.refused, "") << what;
  std::vector<Values> values;
  for (const Tensor& input : inputs) values.push_back(decode(input.operand, input.bytes.data()));
  const std::vector<Values> want = reference(op, values);
  ASSERT_EQ(want.size(), first.outputs.size()) << what;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const Tensor& output = first.outputs[i];
    EXPECT_EQ(difference(decode(output.operand, output.bytes.data()), want[i], tolerance), "")
        << what << ", output " << i;
  }
  const bool computes_here = &device == &cpu_device();
  for (const int threads : computes_here ? std::vector{2, 8} : std::vector<int>{}) {
    expect_same_bits(first, run_op(device, op, inputs, {.threads = threads}),
                     what + ", again, threads: " + std::to_string(threads));
  }
  expect_same_bits(first, run_op(device, op, inputs, {.in_place = true}), what + ", in place");
  if (computes_here) return;  // the address sanitizer sees more
  for (const Flush flush : {Flush::front, Flush::back}) {
    expect_same_bits(first, run_op(device, op, inputs, {.guarded = flush}), what + ", guarded");
  }
}

namespace {

/// Row `row` of an operand, as a tensor of one row.
Tensor row_of(const Tensor& tensor, std::int64_t row) {
  Tensor one = tensor;
  one.operand.spec.shape[0] = 1;
  const DTypeInfo& type = info(tensor.operand.spec.dtype);
  Dims at(one.operand.spec.shape.size(), 0);
  at[0] = row;
  const std::int64_t begin =
      element_offset(tensor.operand, at) - element_offset(one.operand, Dims(at.size(), 0));
  const std::byte* from = tensor.bytes.data() + begin / type.block_elements * type.block_bytes;
  one.bytes.assign(from, from + span_bytes(one.operand));
  return one;
}

bool row_has_bits(const Tensor& all, std::int64_t row, const std::byte* bits) {
  const std::size_t bytes = all.bytes.size() / static_cast<std::size_t>(all.operand.spec.shape[0]);
  return std::memcmp(all.bytes.data() + static_cast<std::size_t>(row) * bytes, bits, bytes) == 0;
}

void expect_extent(Device& device, const Op& op, const std::vector<Tensor>& inputs,
                   const Ran& whole, std::int64_t extent) {
  const Ran cut = run_op(device, op, inputs, {.threads = 2, .extent = extent});
  for (std::size_t i = 0; i < whole.outputs.size(); ++i) {
    const Tensor& full = whole.outputs[i];
    const std::int64_t rows = full.operand.spec.shape[0];
    const std::vector<std::byte> untouched(full.bytes.size() / static_cast<std::size_t>(rows),
                                           kUntouched);
    for (std::int64_t r = 0; r < rows; ++r) {
      if (r >= extent && !cut.traits.honours_extent) continue;
      const std::byte* wanted =
          r < extent ? full.bytes.data() + static_cast<std::size_t>(r) * untouched.size()
                     : untouched.data();
      EXPECT_TRUE(row_has_bits(cut.outputs[i], r, wanted))
          << describe(op, inputs) << ", extent " << extent << ": row " << r << " of output " << i;
    }
  }
}

}  // namespace

void expect_rows_alone(Device& device, const Op& op, const std::vector<Tensor>& inputs) {
  const Ran whole = run_op(device, op, inputs);
  ASSERT_EQ(whole.refused, "") << describe(op, inputs);
  std::vector<TensorSpec> specs;
  for (const Tensor& input : inputs) specs.push_back(input.operand.spec);
  const std::int64_t rows = whole.outputs[0].operand.spec.shape[0];
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<Tensor> alone;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      alone.push_back(is_row_operand(op, i, specs) ? row_of(inputs[i], r) : inputs[i]);
    }
    const Ran one = run_op(device, op, alone);
    ASSERT_EQ(one.refused, "") << describe(op, alone);
    for (std::size_t i = 0; i < whole.outputs.size(); ++i) {
      EXPECT_TRUE(row_has_bits(whole.outputs[i], r, one.outputs[i].bytes.data()))
          << describe(op, inputs) << ": row " << r << " of output " << i << " differs alone";
    }
  }
  for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{1}, rows / 2, rows}) {
    expect_extent(device, op, inputs, whole, extent);
  }
}

}  // namespace heddle::test

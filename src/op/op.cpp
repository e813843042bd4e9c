#include "heddle/op.h"

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/check.h"

namespace heddle {

namespace {

using nlohmann::json;

// Every node of every graph has one: larger parts go into a Boxed.
static_assert(sizeof(Op) <= 128);

// Names in the order of the enums.
constexpr std::array<std::string_view, 44> kUnaryNames{
    "abs",    "negative", "sign",    "square",      "sqrt",      "rsqrt",          "reciprocal",
    "exp",    "expm1",    "log",     "log2",        "log10",     "log1p",          "sin",
    "cos",    "tan",      "sinh",    "cosh",        "tanh",      "arcsin",         "arccos",
    "arctan", "sigmoid",  "silu",    "gelu",        "gelu_tanh", "relu",           "erf",
    "floor",  "ceil",     "round",   "logical_not", "isnan",     "isinf",          "isfinite",
    "trunc",  "erfinv",   "arcsinh", "arccosh",     "arctanh",   "bitwise_invert", "conjugate",
    "real",   "imag"};
static_assert(kUnaryNames.size() == static_cast<std::size_t>(UnaryKind::imag) + 1);

constexpr std::array<std::string_view, 18> kBinaryNames{
    "add",        "subtract",    "multiply",   "divide",      "floor_divide", "remainder",
    "power",      "maximum",     "minimum",    "logaddexp",   "arctan2",      "logical_and",
    "logical_or", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift",   "right_shift"};
static_assert(kBinaryNames.size() == static_cast<std::size_t>(BinaryKind::right_shift) + 1);

constexpr std::array<std::string_view, 6> kCompareNames{"equal",      "not_equal", "less",
                                                        "less_equal", "greater",   "greater_equal"};
constexpr std::array<std::string_view, 7> kReduceNames{"sum",  "mean", "max", "min",
                                                       "prod", "all",  "any"};
constexpr std::array<std::string_view, 5> kScanNames{"sum", "prod", "max", "min", "logaddexp"};
constexpr std::array<std::string_view, 2> kArgReduceNames{"max", "min"};
constexpr std::array<std::string_view, 5> kScatterNames{"none", "sum", "prod", "max", "min"};
constexpr std::array<std::string_view, 2> kPadNames{"constant", "edge"};
constexpr std::array<std::string_view, 2> kPoolNames{"max", "mean"};
constexpr std::array<std::string_view, 2> kResizeNames{"nearest", "linear"};
constexpr std::array<std::string_view, 2> kRopeStyleNames{"interleaved", "split_half"};
constexpr std::array<std::string_view, 4> kMaskNames{"none", "causal", "boolean", "additive"};
constexpr std::array<std::string_view, 2> kSortNames{"sort", "argsort"};
constexpr std::array<std::string_view, 8> kFactorNames{
    "cholesky", "qr", "svd", "eigh", "eig", "lu", "inverse", "triangular_inverse"};
constexpr std::array<std::string_view, 4> kFftNames{"forward", "inverse", "real_forward",
                                                    "real_inverse"};
constexpr std::array<std::string_view, 4> kQuantModeNames{"affine", "mxfp4", "mxfp8", "nvfp4"};
constexpr std::array<std::string_view, 3> kFeedNames{"whole", "prefix", "row"};

template <class Enum, std::size_t N>
std::string_view name_in(const std::array<std::string_view, N>& names, Enum value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : "unknown";
}

std::string_view to_string(Feed::Kind kind) noexcept {
  return name_in(kFeedNames, kind);
}

template <class T>
concept Enumerator = std::is_enum_v<T>;

template <class T>
concept ElementWise = std::same_as<T, Unary> || std::same_as<T, Binary> || std::same_as<T, Compare>;

// How a field is printed, put in JSON and hashed.

std::string text_of(const std::string& value) {
  return fmt::format("\"{}\"", value);
}
std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(std::int64_t value) {
  return fmt::to_string(value);
}
std::string text_of(float value) {
  return fmt::to_string(value);
}
std::string text_of(double value) {
  return fmt::to_string(value);
}
std::string text_of(const TensorSpec& value) {
  return to_string(value);
}
std::string text_of(const Dims& value) {
  return to_string(value);
}
std::string text_of(Enumerator auto value) {
  return std::string(to_string(value));
}

json json_of(const std::string& value) {
  return value;
}
json json_of(bool value) {
  return value;
}
json json_of(std::int64_t value) {
  return value;
}
json json_of(float value) {
  return value;
}
json json_of(double value) {
  return value;
}
json json_of(const Dims& value) {
  return json(std::vector<std::int64_t>(value.begin(), value.end()));
}
json json_of(Enumerator auto value) {
  return std::string(to_string(value));
}
json json_of(const TensorSpec& value) {
  return {{"dtype", json_of(value.dtype)}, {"shape", json_of(value.shape)}};
}

std::size_t combine(std::size_t seed, std::size_t value) noexcept {
  // The golden ratio's bits, as boost::hash_combine spreads them.
  return seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 12) + (seed >> 4));
}

std::size_t hash_of(const std::string& value) noexcept {
  return std::hash<std::string>()(value);
}
std::size_t hash_of(bool value) noexcept {
  return value;
}
std::size_t hash_of(std::int64_t value) noexcept {
  return static_cast<std::size_t>(value);
}
std::size_t hash_of(float value) noexcept {
  return std::hash<float>()(value);
}
std::size_t hash_of(double value) noexcept {
  return std::hash<double>()(value);
}
std::size_t hash_of(Enumerator auto value) noexcept {
  return static_cast<std::size_t>(value);
}
std::size_t hash_of(const Dims& value) noexcept {
  std::size_t seed = value.size();
  for (const std::int64_t entry : value) seed = combine(seed, hash_of(entry));
  return seed;
}
std::size_t hash_of(const TensorSpec& value) noexcept {
  return combine(hash_of(value.dtype), hash_of(value.shape));
}

}  // namespace

Op::Op() noexcept = default;
Op::Op(const Op&) = default;
Op::Op(Op&&) noexcept = default;
Op& Op::operator=(const Op&) = default;
Op& Op::operator=(Op&&) noexcept = default;
Op::~Op() = default;

bool operator==(const Op& a, const Op& b) {
  return static_cast<const OpVariant&>(a) == static_cast<const OpVariant&>(b);
}

std::string_view to_string(UnaryKind kind) noexcept {
  return name_in(kUnaryNames, kind);
}
std::string_view to_string(BinaryKind kind) noexcept {
  return name_in(kBinaryNames, kind);
}
std::string_view to_string(CompareKind kind) noexcept {
  return name_in(kCompareNames, kind);
}
std::string_view to_string(ReduceKind kind) noexcept {
  return name_in(kReduceNames, kind);
}
std::string_view to_string(ScanKind kind) noexcept {
  return name_in(kScanNames, kind);
}
std::string_view to_string(ArgReduceKind kind) noexcept {
  return name_in(kArgReduceNames, kind);
}
std::string_view to_string(ScatterKind kind) noexcept {
  return name_in(kScatterNames, kind);
}
std::string_view to_string(SortKind kind) noexcept {
  return name_in(kSortNames, kind);
}
std::string_view to_string(FactorKind kind) noexcept {
  return name_in(kFactorNames, kind);
}
std::string_view to_string(FftKind kind) noexcept {
  return name_in(kFftNames, kind);
}
std::string_view to_string(QuantMode mode) noexcept {
  return name_in(kQuantModeNames, mode);
}
std::string_view to_string(Pad::Mode mode) noexcept {
  return name_in(kPadNames, mode);
}
std::string_view to_string(PoolKind kind) noexcept {
  return name_in(kPoolNames, kind);
}
std::string_view to_string(ResizeKind kind) noexcept {
  return name_in(kResizeNames, kind);
}
std::string_view to_string(RopeStyle style) noexcept {
  return name_in(kRopeStyleNames, style);
}
std::string_view to_string(Attention::Mask mask) noexcept {
  return name_in(kMaskNames, mask);
}

std::string_view name(const Op& op) noexcept {
  return std::visit(
      []<class T>(const T& o) -> std::string_view {
        if constexpr (ElementWise<T>) return to_string(o.kind);
        return T::kName;
      },
      op);
}

std::string to_string(const Op& op) {
  std::string fields;
  std::visit(
      [&]<class T>(const T& o) {
        if constexpr (ElementWise<T>) return;  // the name says it all
        o.fields([&](std::string_view field, const auto& value) {
          if (!fields.empty()) fields += ", ";
          (fields += field) += '=';
          fields += text_of(value);
        });
      },
      op);
  std::string text(name(op));
  if (!fields.empty()) (text += '(') += fields += ')';
  return text;
}

std::string to_json(const Op& op) {
  nlohmann::ordered_json object;
  std::visit(
      [&]<class T>(const T& o) {
        object["op"] = T::kName;
        o.fields([&](std::string_view field, const auto& value) {
          object[std::string(field)] = json_of(value);
        });
      },
      op);
  // Names come from files and callers: what is not UTF-8 in them is replaced.
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::size_t hash(const Op& op) noexcept {
  std::size_t seed = op.index();
  std::visit(
      [&]<class T>(const T& o) {
        o.fields(
            [&](std::string_view, const auto& value) { seed = combine(seed, hash_of(value)); });
        if constexpr (std::same_as<T, Constant>) {
          seed = combine(seed, std::hash<const void*>()(o.data.get()));
        }
      },
      op);
  return seed;
}

bool is_leaf(const Op& op) noexcept {
  return std::holds_alternative<Constant>(op) || std::holds_alternative<Parameter>(op) ||
         std::holds_alternative<Input>(op) || std::holds_alternative<StateRef>(op);
}

bool is_view(const Op& op) noexcept {
  return std::holds_alternative<Reshape>(op) || std::holds_alternative<Transpose>(op) ||
         std::holds_alternative<Slice>(op) || std::holds_alternative<Broadcast>(op) ||
         std::holds_alternative<Squeeze>(op) || std::holds_alternative<ExpandDims>(op) ||
         std::holds_alternative<AsStrided>(op);
}

}  // namespace heddle

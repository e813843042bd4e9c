// Bad input of every kind to every function: a clear Error at the call, and never anything else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <regex>
#include <set>

#include "bad_input_walk.h"
#include "support/specs.h"
#include "tensor/format.h"

namespace heddle::test {
namespace {

/// What messages call the function.
std::string name_in_messages(const std::string& function) {
  static const std::map<std::string, std::string> operators = {
      {"operator+", "add"},          {"operator*", "multiply"},
      {"operator/", "divide"},       {"operator%", "remainder"},
      {"operator==", "equal"},       {"operator!=", "not_equal"},
      {"operator<", "less"},         {"operator<=", "less_equal"},
      {"operator>", "greater"},      {"operator>=", "greater_equal"},
      {"operator&", "bitwise_and"},  {"operator|", "bitwise_or"},
      {"operator^", "bitwise_xor"},  {"operator<<", "left_shift"},
      {"operator>>", "right_shift"}, {"operator&&", "logical_and"},
      {"operator||", "logical_or"},  {"operator~", "bitwise_invert"},
  };
  if (const auto found = operators.find(function); found != operators.end()) return found->second;
  return function.substr(function.rfind(':') + 1);
}

bool names_function(const std::string& message, const std::string& function) {
  const auto has = [&](const std::string& name) { return message.starts_with(name + ":"); };
  if (function == "operator-") return has("negative") || has("subtract");
  // These name the op, or speak of the array itself.
  static const std::set<std::string> members = {"apply", "apply_multi", "Array", "item",
                                                "to_vector"};
  // These pass on the error of what they evaluate.
  static const std::set<std::string> evaluating = {"eval",     "async_eval", "check",
                                                   "schedule", "to_string",  "to_bytes"};
  if (members.contains(function) || evaluating.contains(function)) return true;
  // These name the file, where it is what is wrong.
  static const std::set<std::string> filing = {
      "load",  "load_npz",         "load_safetensors", "load_gguf", "save",
      "savez", "savez_compressed", "save_safetensors", "save_gguf"};
  if (filing.contains(function) && message.find("/nowhere/") != std::string::npos) return true;
  if (function == "view" && message.starts_with("gather_rows")) return true;  // Array::view
  return has(name_in_messages(function));
}

/// The message with which `call` refuses, checked; empty if it does not refuse.
template <class Call>
std::string refusal(const std::string& function, const Call& call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    const bool fits = error.code() == ErrorCode::invalid_argument ||
                      error.code() == ErrorCode::unsupported || error.code() == ErrorCode::io;
    EXPECT_TRUE(fits) << to_string(error.code()) << ": " << error.what();
    EXPECT_TRUE(names_function(error.what(), function))
        << function << " is not named: " << error.what();
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "no Error, but: " << error.what();
    return error.what();
  }
}

// ---- Every operand of every type and shape

std::vector<TensorSpec> odd_specs(const TensorSpec& suitable) {
  std::vector<TensorSpec> odd;
  for (int i = 0; i < kDTypeCount; ++i) {
    TensorSpec other{static_cast<DType>(i), suitable.shape};
    if (is_block(other.dtype) && (other.shape.empty() || other.shape.back() % 256 != 0)) {
      other.shape = {2, 256};
    }
    odd.push_back(other);
  }
  const DType plain = is_block(suitable.dtype) ? DType::f32 : suitable.dtype;
  for (const TensorSpec& shape :
       specs("f32[], f32[0], f32[1], f32[3], f32[2, 3], f32[0, 256], f32[2, 0], f32[7, 5], "
             "f32[1, 1, 1], f32[2, 3, 4, 5], f32[0, 0, 0], f32[1, 1, 1, 1, 1, 1, 1, 1]")) {
    odd.push_back({plain, shape.shape});
  }
  return odd;
}

bool mentions(const std::string& message, const TensorSpec& spec) {
  return message.find(to_string(spec.dtype)) != std::string::npos ||
         message.find(to_string(spec.shape)) != std::string::npos ||
         message.find(std::to_string(spec.shape.size()) + " dimensions") != std::string::npos;
}

/// What is accepted at the call works when it is evaluated.
void expect_evaluates(const Walked& row, const Arrays& results) {
  try {
    eval(results);
  } catch (const std::exception& error) {
    const std::string message = error.what();
    const bool of_data = message.find("outside") != std::string::npos ||
                         message.find("matrix") != std::string::npos;  // a singular one, say
    EXPECT_TRUE(row.by_data && of_data) << "accepted, and refused when evaluated: " << error.what();
  }
}

void walk(const Walked& row) {
  Arrays suitable;
  for (const TensorSpec& spec : specs(row.operands)) suitable.push_back(zeros_of(spec));
  ASSERT_EQ(refusal(row.function, [&] { expect_evaluates(row, row.call(suitable)); }), "");
  for (std::size_t i = 0; i < suitable.size(); ++i) {
    for (const TensorSpec& odd : odd_specs(suitable[i].spec())) {
      SCOPED_TRACE(row.function + " of " + row.operands + " with " + to_string(odd) +
                   " as operand " + std::to_string(i));
      Arrays operands = suitable;
      operands[i] = zeros_of(odd);
      Arrays results;
      const std::string message = refusal(row.function, [&] { results = row.call(operands); });
      if (!message.empty()) {
        EXPECT_TRUE(mentions(message, odd)) << "what was wrong? " << message;
      } else {
        expect_evaluates(row, results);
      }
    }
  }
}

TEST(BadInput, EveryOperandIsRefusedAtTheCallOrWorks) {
  for (const Walked& row : walked_functions()) walk(row);
}

// ---- Values

/// The extremes of any plain type, infinities, NaNs and denormals included.
Array extremes_of(const TensorSpec& spec) {
  const std::size_t size = item_size(spec.dtype);
  std::vector<std::byte> bytes(byte_size(spec));
  std::mt19937 random(1);
  const std::uint64_t top = std::uint64_t{1} << (8 * size - 1);
  const std::uint64_t patterns[] = {0, 1, top, top - 1, top | (top - 1), top | 1};
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    std::uint64_t pattern = (std::uint64_t{random()} << 32) | random();
    if (random() % 4 != 0) pattern = patterns[random() % std::size(patterns)];
    std::memcpy(&bytes[i], &pattern, size);  // little-endian, as all of heddle is
  }
  return Array::from_bytes(spec, bytes);
}

TEST(BadInput, NoNumberIsTooMuch) {
  constexpr DType kTypes[] = {DType::u8,  DType::u16,  DType::u32, DType::u64,
                              DType::i8,  DType::i16,  DType::i32, DType::i64,
                              DType::f16, DType::bf16, DType::f32, DType::f64};
  for (const Walked& row : walked_functions()) {
    const std::vector<TensorSpec> suitable = specs(row.operands);
    for (const DType dtype : kTypes) {
      SCOPED_TRACE(row.function + " of " + row.operands + " in " + std::string(to_string(dtype)));
      Arrays operands;
      for (TensorSpec spec : suitable) {
        const bool number = spec.dtype == DType::f32 || suitable[0].dtype == DType::i32;
        if (number) spec.dtype = dtype;
        operands.push_back(number ? extremes_of(spec) : zeros_of(spec));
      }
      Arrays results;
      if (refusal(row.function, [&] { results = row.call(operands); }).empty()) {
        expect_evaluates(row, results);
      }
    }
  }
}

TEST(BadInput, EmptyListsOfArraysAreFineToEvaluate) {
  EXPECT_NO_THROW(eval(std::span<const Array>()));
}

// ---- Axes

void expect_refused(const std::string& function, const std::vector<std::string>& parts,
                    const std::function<void()>& call) {
  const std::string message = refusal(function, call);
  EXPECT_NE(message, "") << function << " should have been refused";
  for (const std::string& part : parts) EXPECT_THAT(message, testing::HasSubstr(part));
}

TEST(BadInput, AxesOutOfRange) {
  const Array matrix = zeros_of({DType::f32, {2, 3}}), scalar = zeros_of({DType::f32, {}});
  constexpr int kLeast = std::numeric_limits<int>::min(), kMost = std::numeric_limits<int>::max();
  for (const TakesAxis& row : functions_of_an_axis()) {
    SCOPED_TRACE(row.function);
    for (const int axis : {3, 7, -4, -7, kLeast, kMost}) {
      expect_refused(row.function, {std::to_string(axis)}, [&] { row.call(matrix, axis); });
    }
    if (!row.of_scalars) {
      for (const int axis : {0, -1}) {
        expect_refused(row.function, {std::to_string(axis)}, [&] { row.call(scalar, axis); });
      }
    }
  }
}

TEST(BadInput, AxesOutOfRangeAndNamedTwice) {
  const Array matrix = zeros_of({DType::f32, {2, 3}});
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const TakesAxes& row : functions_of_axes()) {
    SCOPED_TRACE(row.function);
    for (const Dims& axes : {Dims{0, 7}, Dims{-9, 1}, Dims{kMost, 0}, Dims{0, -kMost - 1}}) {
      const std::int64_t wrong = axes[0] == 0 ? axes[1] : axes[0];
      expect_refused(row.function, {std::to_string(wrong)}, [&] { row.call(matrix, axes); });
    }
    for (const Dims& axes : {Dims{0, 0}, Dims{1, 1}}) {
      expect_refused(row.function, {"twice"}, [&] { row.call(matrix, axes); });
    }
  }
}

TEST(BadInput, MoreThanEightDimensions) {
  try {
    Shape{1, 1, 1, 1, 1, 1, 1, 1, 1};
    ADD_FAILURE() << "a shape of nine";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "9 dimensions; at most 8 are supported");
  }
}

// ---- Numbers, counts, extents

TEST(BadInput, CallsThatNoOperandMakesRight) {
  for (const Refused& row : refused_calls()) {
    SCOPED_TRACE(row.function);
    expect_refused(row.function, row.parts, row.call);
  }
}

// ---- Nothing is left out

const std::filesystem::path kHeaders = HEDDLE_SOURCE_DIR "/include/heddle";

std::set<std::string> declared_functions(const std::string& header) {
  std::ifstream file(kHeaders / header);
  const std::regex declaration(
      R"(^(?:Array|Scheduled|std::vector<Array>|std::pair<Array, Array>|std::tuple<[^>]*>)"
      R"(|std::string|void|ArrayMap|SafetensorsLoad|GGUFLoad|dlpack::\w+\*) )"
      R"((operator[^ (]+|\w+)\()"
      R"(|^class (\w+Scope) )");
  const std::regex opens(R"(^namespace (\w+) \{)"), closes(R"(^\}  // namespace (\w+))");
  std::set<std::string> found;
  std::string line, prefix;
  std::smatch match;
  while (std::getline(file, line)) {
    if (std::regex_search(line, match, opens) && match[1] != "heddle")
      prefix = match[1].str() + "::";
    if (std::regex_search(line, match, closes)) prefix.clear();
    if (std::regex_search(line, match, declaration))
      found.insert(prefix + match[1].str() + match[2].str());
  }
  return found;
}

TEST(BadInput, TheWalkLeavesNoFunctionOut) {
  std::set<std::string> walked;
  for (const Walked& row : walked_functions()) walked.insert(row.function);
  for (const Refused& row : refused_calls()) walked.insert(row.function);
  std::vector<std::string> headers = {"array.h",  "linalg.h", "fft.h",   "einsum.h",
                                      "random.h", "io.h",     "dlpack.h"};
  for (const auto& entry : std::filesystem::directory_iterator(kHeaders)) {
    const std::string header = entry.path().filename().string();
    if (header.starts_with("ops")) headers.push_back(header);
  }
  std::size_t declared = 0;
  for (const std::string& header : headers) {
    for (const std::string& function : declared_functions(header)) {
      EXPECT_TRUE(walked.contains(function))
          << function << " of " << header << " is not in the walk";
      ++declared;
    }
  }
  EXPECT_GT(declared, 200u);
}

}  // namespace
}  // namespace heddle::test

#include "numpy_oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "io/npy.h"
#include "support/python.h"
#include "support/specs.h"
#include "support/temporary_dir.h"
#include "tensor/format.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kOracle = HEDDLE_SOURCE_DIR "/tests/array/numpy_oracle.py";

// ---- Operands

struct Range {
  double low, high;
};

struct Operand {
  TensorSpec spec;
  Range range;
};

Range usual_range(DType dtype) {
  const DTypeKind kind = info(dtype).kind;
  if (kind == DTypeKind::boolean) return {0, 1};
  if (kind == DTypeKind::unsigned_int) return {0, 9};
  return kind == DTypeKind::signed_int ? Range{-9, 9} : Range{-3, 3};
}

std::vector<Operand> operands_of(const std::string& text) {
  const std::regex one(R"((\w+\[[^\]]*\])(?: in ([-+.\de]+?)\.\.([-+.\de]+))?)");
  std::vector<Operand> operands;
  for (std::sregex_iterator at(text.begin(), text.end(), one), end; at != end; ++at) {
    Operand operand{spec((*at)[1].str()), {}};
    operand.range = usual_range(operand.spec.dtype);
    if ((*at)[2].matched) operand.range = {std::stod((*at)[2]), std::stod((*at)[3])};
    operands.push_back(operand);
  }
  return operands;
}

/// Random values, the same for the same seed; complex ones have both parts in the range.
Array random_array(const Operand& operand, std::mt19937_64& random) {
  const DType dtype = operand.spec.dtype;
  const auto [low, high] = operand.range;
  const bool whole = !is_floating(dtype) && dtype != DType::complex64;
  const auto draw = [&] {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    return whole ? std::floor(low + unit * (high - low + 1)) : low + unit * (high - low);
  };
  const auto count = static_cast<std::size_t>(elements(operand.spec.shape));
  if (dtype == DType::complex64) {
    std::vector<std::complex<float>> values(count);
    for (auto& value : values) {
      const auto real = static_cast<float>(draw());
      value = {real, static_cast<float>(draw())};
    }
    return Array(values, operand.spec.shape);
  }
  std::vector<double> values(count);
  for (double& value : values) value = draw();
  const Array result = contiguous(
      astype(Array(std::span<const double>(values.data(), count), operand.spec.shape), dtype));
  result.eval();
  return result;
}

void write(const fs::path& path, const Array& a) {
  const Array known = npy::has(a.dtype()) ? a : astype(a, DType::f32);
  npy::write(path, known.spec(), known.to_bytes());
}

// ---- Answers

double precision_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 2e-3;
    case DType::bf16:
      return 1.6e-2;
    case DType::f64:
      return 1e-13;
    default:
      return 2e-6;
  }
}

bool near(double actual, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected)) return actual == expected;
  return std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

/// Real numbers of a result as NumPy's file has them: parts of complex numbers side by side.
Array as_doubles(const Array& a) {
  if (a.dtype() != DType::complex64) return astype(a, DType::f64);
  Shape shape = a.shape();
  shape.push_back(2);
  return astype(reshape(view(reshape(a, {a.size()}), DType::f32), shape), DType::f64);
}

std::vector<double> doubles_in(const npy::Tensor& tensor) {
  return as_doubles(Array::from_bytes(tensor.spec, tensor.bytes)).to_vector<double>();
}

void expect_equal_values(const Array& actual, const npy::Tensor& expected, const std::string& kind,
                         double slack) {
  const bool exact = is_integer(actual.dtype()) || actual.dtype() == DType::bool_;
  const bool kinds_fit = (kind == "complex") == (actual.dtype() == DType::complex64) &&
                         (kind == "bool") == (actual.dtype() == DType::bool_);
  ASSERT_TRUE(kinds_fit) << to_string(actual.spec()) << ", but NumPy's is " << kind;
  Shape shape = actual.shape();
  if (kind == "complex") shape.push_back(2);
  ASSERT_EQ(to_string(shape), to_string(expected.spec.shape)) << "of " << to_string(actual.spec());
  if (exact && kind == "integer") {
    EXPECT_EQ(astype(actual, DType::i64).to_bytes(), expected.bytes);
    return;
  }
  const std::vector<double> got = as_doubles(actual).to_vector<double>();
  const std::vector<double> wanted = doubles_in(expected);
  ASSERT_EQ(got.size(), wanted.size());
  const double tolerance = exact ? 0.0 : precision_of(actual.dtype()) * slack;
  for (std::size_t i = 0, shown = 0; i < got.size() && shown < 3; ++i) {
    if (near(got[i], wanted[i], tolerance)) continue;
    ADD_FAILURE() << "element " << i << " is " << got[i] << ", but NumPy's is " << wanted[i];
    ++shown;
  }
}

void expect_answer(const TemporaryDir& folder, const NumpyCase& one,
                   const std::vector<Array>& operands, const json& answer) {
  SCOPED_TRACE(one.call_text + " of " + one.operands + " as " + one.numpy);
  if (answer.contains("error")) {
    ADD_FAILURE() << "NumPy says: " << answer["error"].get<std::string>();
    return;
  }
  std::vector<Array> results;
  try {
    results = one.call(operands);
    eval(results);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "threw: " << error.what();
    return;
  }
  const json& expected = answer["results"];
  ASSERT_EQ(results.size(), expected.size()) << "results";
  for (std::size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    expect_equal_values(results[i], npy::read(folder / expected[i]["path"].get<std::string>()),
                        expected[i]["kind"].get<std::string>(), one.slack);
  }
}

void expect_agrees(const std::vector<NumpyCase>& cases, const std::string& modules) {
  const std::string python = python_with(modules);
  if (python.empty()) GTEST_SKIP() << "skipped: python3 with " << modules << " is not there";
  const TemporaryDir folder;
  json questions = json::array();
  std::vector<std::vector<Array>> operands;
  std::mt19937_64 random(1);
  for (const NumpyCase& one : cases) {
    json paths = json::array();
    operands.emplace_back();
    for (const Operand& operand : operands_of(one.operands)) {
      const std::string path =
          std::to_string(questions.size()) + "-" + std::to_string(paths.size()) + ".npy";
      operands.back().push_back(random_array(operand, random));
      write(folder / path, operands.back().back());
      paths.push_back(path);
    }
    questions.push_back({{"operands", paths}, {"numpy", one.numpy}});
  }
  std::ofstream(folder / "cases.json") << questions.dump();
  const std::string command = python + " '" + kOracle + "' '" + folder.path().string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;

  const json answers = json::parse(std::ifstream(folder / "answers.json"));
  ASSERT_EQ(answers.size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    expect_answer(folder, cases[i], operands[i], answers[i]);
  }
}

}  // namespace

bool numpy_is_there() {
  return !python_with("numpy").empty();
}

void expect_numpy_agrees(const std::vector<NumpyCase>& cases) {
  expect_agrees(cases, "numpy");
}

void expect_torch_agrees(const std::vector<NumpyCase>& cases) {
  expect_agrees(cases, "numpy torch");
}

}  // namespace heddle::test

// Whatever can be written is read back the same, and what cannot be written is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "gguf_bytes.h"
#include "heddle/error.h"
#include "io/ggml_types.h"

namespace heddle {
namespace {

using gguf::Array;
using gguf::Value;
using testing::HasSubstr;

/// Equal to the bit: NaNs with their payload, zeros with their sign.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
  } else {
    return a == b;
  }
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same<T>(a[i], b[i])) return false;
  }
  return true;
}

template <class... T>
bool same(const std::variant<T...>& a, const std::variant<T...>& b) {
  if (a.index() != b.index()) return false;
  return std::visit([&](const auto& x) { return same(x, std::get<std::decay_t<decltype(x)>>(b)); },
                    a);
}

struct TensorSpec {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<std::byte> data;
};

struct Model {
  std::vector<std::pair<std::string, Value>> metadata;
  std::vector<TensorSpec> tensors;
};

template <class T>
T arbitrary_plain() {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<T>(*rc::gen::arbitrary<Bits>());
  } else {
    return *rc::gen::arbitrary<T>();
  }
}

template <class T>
Value arbitrary_value_of(bool as_array) {
  if (!as_array) return arbitrary_plain<T>();
  std::vector<T> elements(*rc::gen::inRange<std::size_t>(0, 20));
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = arbitrary_plain<T>();
  return Array(std::move(elements));
}

Value arbitrary_value() {
  const bool as_array = *rc::gen::arbitrary<bool>();
  switch (*rc::gen::inRange(0, 12)) {
    case 0:
      return arbitrary_value_of<std::uint8_t>(as_array);
    case 1:
      return arbitrary_value_of<std::int8_t>(as_array);
    case 2:
      return arbitrary_value_of<std::uint16_t>(as_array);
    case 3:
      return arbitrary_value_of<std::int16_t>(as_array);
    case 4:
      return arbitrary_value_of<std::uint32_t>(as_array);
    case 5:
      return arbitrary_value_of<std::int32_t>(as_array);
    case 6:
      return arbitrary_value_of<float>(as_array);
    case 7:
      return arbitrary_value_of<bool>(as_array);
    case 8:
      return arbitrary_value_of<std::string>(as_array);
    case 9:
      return arbitrary_value_of<std::uint64_t>(as_array);
    case 10:
      return arbitrary_value_of<std::int64_t>(as_array);
    default:
      return arbitrary_value_of<double>(as_array);
  }
}

DType arbitrary_stored_type() {
  std::vector<DType> types;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (gguf::ggml_type_id(dtype)) types.push_back(dtype);
  }
  return *rc::gen::elementOf(types);
}

TensorSpec arbitrary_tensor(std::string name) {
  TensorSpec tensor{std::move(name), arbitrary_stored_type(), {}, {}};
  const DTypeInfo& type = info(tensor.dtype);
  const int rank = *rc::gen::inRange(type.block_elements == 1 ? 0 : 1, 5);
  std::size_t bytes = static_cast<std::size_t>(type.block_bytes);
  for (int i = 0; i < rank; ++i) {
    const int extent = *rc::gen::inRange(1, 5);
    tensor.shape.push_back(i + 1 == rank ? extent * type.block_elements : extent);
    bytes *= static_cast<std::size_t>(extent);
  }
  tensor.data.resize(bytes);
  auto state = *rc::gen::arbitrary<std::uint32_t>();
  for (std::byte& b : tensor.data) {
    state = state * 1664525U + 1013904223U;
    b = static_cast<std::byte>(state >> 24);
  }
  return tensor;
}

Model arbitrary_model() {
  Model model;
  const auto keys = *rc::gen::container<std::set<std::string>>(
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange<char>(0x20, 0x7f))));
  for (const auto& key : keys) {
    if (key != "general.alignment") model.metadata.emplace_back(key, arbitrary_value());
  }
  if (*rc::gen::arbitrary<bool>()) {
    model.metadata.emplace_back("general.alignment", *rc::gen::inRange(1U, 40U) * 8U);
  }
  const auto names = *rc::gen::container<std::set<std::string>>(
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::arbitrary<char>())));
  for (const auto& name : names) {
    if (name.size() <= 64) model.tensors.push_back(arbitrary_tensor(name));
  }
  return model;
}

gguf::Writer writer_of(const Model& model) {
  gguf::Writer writer;
  for (const auto& [key, value] : model.metadata) writer.metadata().set(key, value);
  for (const auto& t : model.tensors) writer.add_tensor(t.name, t.dtype, t.shape, t.data);
  return writer;
}

bool holds(const gguf::File& file, const Model& model) {
  const auto& entries = file.metadata().entries();
  const bool same_metadata = std::equal(
      entries.begin(), entries.end(), model.metadata.begin(), model.metadata.end(),
      [](const auto& a, const auto& b) { return a.first == b.first && same(a.second, b.second); });
  const bool same_tensors =
      std::equal(file.tensors().begin(), file.tensors().end(), model.tensors.begin(),
                 model.tensors.end(), [](const gguf::Tensor& a, const TensorSpec& b) {
                   return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape &&
                          std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end());
                 });
  return same_metadata && same_tensors;
}

RC_GTEST_PROP(GgufRoundTrip, WhatIsWrittenIsReadBack, ()) {
  const Model model = arbitrary_model();
  const auto bytes = writer_of(model).serialize();
  const gguf::File file = test::parse(bytes);
  RC_ASSERT(holds(file, model));
  RC_ASSERT(test::writer_of(file).serialize() == bytes);
}

RC_GTEST_PROP(GgufRoundTrip, TensorsLieAtMultiplesOfTheAlignment, ()) {
  const Model model = arbitrary_model();
  const auto bytes = writer_of(model).serialize();
  const gguf::File file = test::parse(bytes);
  const auto alignment = file.metadata().find_int("general.alignment").value_or(32);
  // The first tensor begins the data section, itself at a multiple of the alignment in the file.
  for (const gguf::Tensor& tensor : file.tensors()) {
    const auto from_first = tensor.data.data() - file.tensors().front().data.data();
    RC_ASSERT(from_first % alignment == 0);
  }
  RC_ASSERT(file.tensors().empty() || bytes.size() % static_cast<std::size_t>(alignment) == 0);
}

RC_GTEST_PROP(GgufRoundTrip, ThroughAFile, ()) {
  const Model model = arbitrary_model();
  const test::TemporaryDir dir;
  writer_of(model).write(dir / "m.gguf");
  RC_ASSERT(holds(gguf::File::open(dir / "m.gguf"), model));
}

TEST(GgufRoundTrip, TheWriterMakesTheFileThatIsBuiltByHand) {
  const auto sample = test::sample_file();
  EXPECT_TRUE(test::writer_of(test::parse(sample.bytes)).serialize() == sample.bytes);
}

TEST(GgufRoundTrip, KeepsEveryBitOfAFloat) {
  const auto signalling = std::bit_cast<float>(0x7fa12345U);
  const auto negative = std::bit_cast<double>(0xfff4000000000001U);
  const Model model{{{"nan", signalling},
                     {"zero", -0.0F},
                     {"nans", Array(std::vector<double>{negative, -0.0, INFINITY})}},
                    {}};
  EXPECT_TRUE(holds(test::parse(writer_of(model).serialize()), model));
}

TEST(GgufRoundTrip, AnEmptyWriterMakesAFileWithNothingInIt) {
  const auto bytes = gguf::Writer().serialize();
  EXPECT_EQ(bytes.size(), 24U);
  EXPECT_TRUE(test::parse(bytes).tensors().empty());
}

template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return error.what();
  }
  return "no error";
}

std::string refused_tensor(std::string name, DType dtype, Shape shape, std::size_t bytes) {
  gguf::Writer writer;
  writer.add_tensor("first", DType::f32, {1}, std::vector<std::byte>(4));
  return refusal(
      [&] { writer.add_tensor(std::move(name), dtype, shape, std::vector<std::byte>(bytes)); });
}

TEST(GgufWriter, RefusesTensorsThatAFileCannotHold) {
  EXPECT_THAT(refused_tensor("", DType::f32, {1}, 4), HasSubstr("name is empty"));
  EXPECT_THAT(refused_tensor(std::string(65, 'x'), DType::f32, {1}, 4),
              HasSubstr("name has 65 bytes, at most 64 are allowed"));
  EXPECT_THAT(refused_tensor("first", DType::f32, {1}, 4), HasSubstr("name occurs twice"));
  EXPECT_THAT(refused_tensor("t", DType::u8, {1}, 1), HasSubstr("GGUF has no such type"));
  EXPECT_THAT(refused_tensor("t", DType::f32, {1, 1, 1, 1, 1}, 4),
              HasSubstr("GGUF has at most 4 dimensions"));
  EXPECT_THAT(refused_tensor("t", DType::f32, {2, 0}, 0),
              HasSubstr("tensor 't' (f32 [2, 0]): every dimension must be positive"));
  EXPECT_THAT(refused_tensor("t", DType::f32, {-1}, 4), HasSubstr("must be positive"));
  EXPECT_THAT(refused_tensor("t", DType::q4_K, {128}, 72), HasSubstr("not made of whole blocks"));
  EXPECT_THAT(refused_tensor("t", DType::q8_0, {}, 34), HasSubstr("not made of whole blocks"));
  EXPECT_THAT(refused_tensor("t", DType::f32, {3}, 8), HasSubstr("data has 8 bytes, must have 12"));
}

TEST(GgufWriter, RefusesMetadataThatAFileCannotHold) {
  const auto refused_entry = [](std::string key, Value value) {
    gguf::Writer writer;
    writer.metadata().set(std::move(key), std::move(value));
    return refusal([&] { (void)writer.serialize(); });
  };
  EXPECT_THAT(refused_entry("", true), HasSubstr("key is empty"));
  EXPECT_THAT(refused_entry(std::string(65536, 'k'), true), HasSubstr("key has 65536 bytes"));
  EXPECT_THAT(refused_entry("k\n", true), HasSubstr("metadata 'k\\x0a': key holds characters"));
  EXPECT_THAT(refused_entry("general.alignment", std::uint32_t{0}),
              HasSubstr("alignment 0 is not a positive multiple of 8"));
  EXPECT_THAT(refused_entry("general.alignment", std::int32_t{32}), HasSubstr("must be u32"));
}

}  // namespace
}  // namespace heddle

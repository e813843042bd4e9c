// Reading: a file built by hand, the typed getters, and the reference files.
#include "heddle/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "gguf_bytes.h"
#include "heddle/error.h"
#include "io/ggml_types.h"
#include "support/shared_files.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class Action>
std::string error_of(ErrorCode code, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

void expect_sample(const gguf::File& file) {
  const gguf::Metadata& metadata = file.metadata();
  std::vector<std::string> keys;
  for (const auto& [key, value] : metadata.entries()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("general.alignment", "flag", "name", "numbers", "words", "flags"));
  EXPECT_EQ(metadata.get_int("general.alignment"), 32);
  EXPECT_EQ(metadata.find_bool("flag"), true);
  EXPECT_EQ(metadata.get_string("name"), "heddle");
  EXPECT_THAT(metadata.get_array<std::int32_t>("numbers"), ElementsAre(1, -2, 3));
  EXPECT_THAT(metadata.get_array<std::string>("words"), ElementsAre("shed", ""));
  EXPECT_THAT(metadata.get_array<bool>("flags"), ElementsAre(false, true));

  ASSERT_EQ(file.tensors().size(), 2U);
  const gguf::Tensor& a = file.tensor("a");
  EXPECT_EQ(a.dtype, DType::f32);
  EXPECT_EQ(a.shape, Shape({2, 4}));
  ASSERT_EQ(a.data.size(), 32U);
  float values[8];
  std::memcpy(values, a.data.data(), sizeof(values));
  EXPECT_THAT(values, ElementsAre(0.5F, 1.5F, 2.5F, 3.5F, 4.5F, 5.5F, 6.5F, 7.5F));
  const gguf::Tensor& b = file.tensor("b");
  EXPECT_EQ(b.dtype, DType::q8_0);
  EXPECT_EQ(b.shape, Shape({64}));
  ASSERT_EQ(b.data.size(), 68U);
  EXPECT_EQ(b.data.front(), std::byte{0});
  EXPECT_EQ(b.data.back(), std::byte{67});
}

TEST(Gguf, ReadsVersion3) {
  const auto sample = test::sample_file();
  const gguf::File file = test::parse(sample.bytes);
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(file.name(), "test.gguf");
  EXPECT_EQ(file.file_bytes(), sample.bytes.size());
  expect_sample(file);
}

TEST(Gguf, ReadsVersion2) {
  auto sample = test::sample_file();
  sample.set("version", 2U);
  const gguf::File file = test::parse(sample.bytes);
  EXPECT_EQ(file.version(), 2U);
  expect_sample(file);
}

TEST(Gguf, ReadsAFileWithNothingInIt) {
  test::MarkedBytes f;
  f.put("magic", 0x46554747U).put("version", 3U);
  f.put("tensors", std::uint64_t{0}).put("metadata", std::uint64_t{0});
  const gguf::File file = test::parse(f.bytes);
  EXPECT_TRUE(file.metadata().entries().empty());
  EXPECT_TRUE(file.tensors().empty());
}

TEST(Gguf, AllowsGapsBetweenTensorsAndAnyOrder) {
  auto sample = test::sample_file();
  sample.set("a.offset", std::uint64_t{192});
  sample.bytes.resize(sample.at("data") + 192 + 32);
  const gguf::File file = test::parse(sample.bytes);
  EXPECT_EQ(file.tensor("b").data.back(), std::byte{67});
  EXPECT_EQ(file.tensor("a").data.size(), 32U);
}

TEST(Gguf, WantsMemoryAlignedTo32Bytes) {
  const auto sample = test::sample_file();
  alignas(32) static std::byte buffer[4096];
  std::memcpy(buffer + 8, sample.bytes.data(), sample.bytes.size());
  EXPECT_THAT(error_of(ErrorCode::invalid_argument,
                       [&] {
                         (void)gguf::File::from_memory({buffer + 8, sample.bytes.size()}, "m");
                       }),
              HasSubstr("must lie at a multiple of 32"));
}

TEST(Gguf, NamesTheFileAndTheTensorThatIsMissing) {
  const gguf::File file = test::parse(test::sample_file().bytes);
  EXPECT_EQ(file.find_tensor("c"), nullptr);
  EXPECT_EQ(error_of(ErrorCode::io, [&] { (void)file.tensor("c"); }),
            "test.gguf: tensor 'c' is missing");
}

TEST(Gguf, KeepsItsBytesAliveThroughCopiesAndTheOwner) {
  const gguf::Tensor* tensor = nullptr;
  std::shared_ptr<const void> owner;
  {
    const gguf::File file = test::parse(test::sample_file().bytes);
    const gguf::File copy = file;  // NOLINT(performance-unnecessary-copy-initialization)
    tensor = copy.find_tensor("b");
    owner = copy.owner();
  }
  EXPECT_EQ(tensor->data.back(), std::byte{67});
}

TEST(GgufMetadata, ConvertsNumbersOfEveryType) {
  gguf::Metadata m;
  m.set("u8", std::uint8_t{200});
  m.set("i8", std::int8_t{-3});
  m.set("u16", std::uint16_t{65535});
  m.set("i16", std::int16_t{-300});
  m.set("u32", std::uint32_t{4000000000});
  m.set("i32", std::int32_t{-70000});
  m.set("u64", std::uint64_t{1} << 62);
  m.set("i64", std::int64_t{-1} << 62);
  m.set("f32", 0.25F);
  m.set("f64", 1e300);
  EXPECT_EQ(m.get_int("u8"), 200);
  EXPECT_EQ(m.get_int("i8"), -3);
  EXPECT_EQ(m.get_int("u16"), 65535);
  EXPECT_EQ(m.get_int("i16"), -300);
  EXPECT_EQ(m.get_int("u32"), 4000000000);
  EXPECT_EQ(m.get_int("i32"), -70000);
  EXPECT_EQ(m.get_int("u64"), std::int64_t{1} << 62);
  EXPECT_EQ(m.get_int("i64"), std::int64_t{-1} * (std::int64_t{1} << 62));
  EXPECT_EQ(m.get_float("i16"), -300.0);
  EXPECT_EQ(m.get_float("f32"), 0.25);
  EXPECT_EQ(m.get_float("f64"), 1e300);
}

TEST(GgufMetadata, NamesTheKeyOfWhatIsMissingOrOfAnotherType) {
  gguf::Metadata m("model.gguf");
  m.set("text", std::string("1"));
  m.set("flag", true);
  m.set("half", 0.5F);
  m.set("huge", std::uint64_t{1} << 63);
  m.set("list", gguf::Array(std::vector<float>{1}));
  const auto io_error = [](auto action) { return error_of(ErrorCode::io, action); };
  EXPECT_EQ(io_error([&] { (void)m.find_int("text"); }),
            "model.gguf: metadata 'text': is string, must be an integer");
  EXPECT_THAT(io_error([&] { (void)m.find_int("flag"); }), HasSubstr("is bool"));
  EXPECT_THAT(io_error([&] { (void)m.find_int("half"); }), HasSubstr("is f32"));
  EXPECT_THAT(io_error([&] { (void)m.find_int("huge"); }),
              HasSubstr("9223372036854775808 does not fit in 63 bits"));
  EXPECT_THAT(io_error([&] { (void)m.find_float("list"); }),
              HasSubstr("is array of f32, must be a number"));
  EXPECT_THAT(io_error([&] { (void)m.find_bool("text"); }), HasSubstr("must be bool"));
  EXPECT_THAT(io_error([&] { (void)m.find_string("flag"); }), HasSubstr("must be string"));
  EXPECT_THAT(io_error([&] { (void)m.find_array<std::string>("list"); }),
              HasSubstr("is array of f32, must be array of string"));
  EXPECT_THAT(io_error([&] { (void)m.find_array<float>("text"); }),
              HasSubstr("is string, must be array of f32"));
  EXPECT_EQ(io_error([&] { (void)m.get_int("none"); }), "model.gguf: metadata 'none': is missing");
  EXPECT_THAT(io_error([&] { (void)m.get_float("none"); }), HasSubstr("'none': is missing"));
  EXPECT_THAT(io_error([&] { (void)m.get_string("none"); }), HasSubstr("'none': is missing"));
  EXPECT_THAT(io_error([&] { (void)m.get_array<float>("none"); }), HasSubstr("'none': is missing"));
  EXPECT_EQ(m.find_int("none"), std::nullopt);
  EXPECT_EQ(m.find_float("none"), std::nullopt);
  EXPECT_EQ(m.find_bool("none"), std::nullopt);
  EXPECT_EQ(m.find_string("none"), std::nullopt);
  EXPECT_EQ(m.find_array<float>("none"), nullptr);
}

TEST(GgufMetadata, SetReplacesInPlace) {
  gguf::Metadata m;
  m.set("a", true);
  m.set("b", std::string("x"));
  m.set("a", std::uint32_t{7});
  ASSERT_EQ(m.entries().size(), 2U);
  EXPECT_EQ(m.entries()[0].first, "a");
  EXPECT_EQ(m.get_int("a"), 7);
}

TEST(GgmlTypes, MapBothWays) {
  int stored = 0;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const auto id = gguf::ggml_type_id(dtype);
    if (!id) continue;
    ++stored;
    const gguf::GgmlType* type = gguf::find_ggml_type(*id);
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(type->dtype, dtype);
    EXPECT_EQ(type->name, to_string(dtype));
  }
  EXPECT_EQ(stored, 20);
  EXPECT_EQ(gguf::ggml_type_id(DType::complex64), std::nullopt);
  EXPECT_EQ(gguf::ggml_type_id(DType::u8), std::nullopt);
  EXPECT_EQ(gguf::find_ggml_type(1000), nullptr);
}

std::vector<std::byte> contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> chars((std::istreambuf_iterator<char>(in)), {});
  const auto* first = reinterpret_cast<const std::byte*>(chars.data());
  return {first, first + chars.size()};
}

// The reference files were written by other programs, so that a writer which gives back their very
// bytes agrees with those programs about the whole format.
TEST(GgufShared, EveryReferenceFileOpensAndIsWrittenBackByteForByte) {
  HEDDLE_SHARED_FILE(shared, "models");
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shared.parent_path())) {
    if (entry.path().extension() != ".gguf") continue;
    ++files;
    const gguf::File file = gguf::File::open(entry.path());
    file.prefetch();
    EXPECT_EQ(file.file_bytes(), entry.file_size());
    EXPECT_FALSE(file.metadata().get_string("general.architecture").empty()) << entry.path();
    EXPECT_TRUE(test::writer_of(file).serialize() == contents(entry.path())) << entry.path();
  }
  EXPECT_EQ(files, 22);
}

TEST(GgufShared, TheBundledModelIsWhatItsMakersSay) {
  HEDDLE_SHARED_FILE(path, "models/fable-1m-f16.gguf");
  const gguf::File file = gguf::File::open(path);
  EXPECT_EQ(file.metadata().get_string("general.architecture"), "qwen2");
  EXPECT_EQ(file.metadata().get_int("qwen2.embedding_length"), 128);
  EXPECT_FLOAT_EQ(file.metadata().get_float("qwen2.attention.layer_norm_rms_epsilon"), 1e-6F);
  EXPECT_EQ(file.metadata().get_array<std::string>("tokenizer.ggml.tokens").size(), 907U);
  EXPECT_EQ(file.metadata().find_bool("tokenizer.ggml.add_bos_token"), false);
  EXPECT_EQ(file.tensors().size(), 50U);
  EXPECT_EQ(file.tensor("token_embd.weight").shape, Shape({907, 128}));
  EXPECT_EQ(file.tensor("token_embd.weight").dtype, DType::f16);
  EXPECT_EQ(file.tensor("output_norm.weight").dtype, DType::f32);
}

}  // namespace
}  // namespace heddle

#include "io/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "heddle/error.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Npy : public testing::Test {
 protected:
  Npy() : path_(fs::path(testing::TempDir()) / ("npy-" + std::to_string(getpid()) + ".npy")) {}
  ~Npy() override { fs::remove(path_); }

  void put(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string contents() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// A file of version 1 with this dictionary, padded as NumPy does, and this data.
  static std::string file(std::string dictionary, const std::string& data) {
    while ((10 + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
    dictionary += '\n';
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(dictionary.size() & 255);
    text += static_cast<char>(dictionary.size() >> 8);
    return text + dictionary + data;
  }
  void expect_refused(const std::string& bytes, const std::string& why) const {
    put(bytes);
    try {
      npy::read(path_);
      ADD_FAILURE() << "was read, though: " << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
      EXPECT_THAT(error.what(), HasSubstr(path_.string()));
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }

  const fs::path path_;
};

/// Byte for byte what NumPy 1.24 saves for numpy.arange(6, dtype='<f4').reshape(2, 3).
TEST_F(Npy, WritesWhatNumPyWrites) {
  const std::vector<float> values{0, 1, 2, 3, 4, 5};
  npy::write(path_, {DType::f32, {2, 3}}, std::as_bytes(std::span(values)));
  std::string data(24, '\0');
  std::memcpy(data.data(), values.data(), 24);
  EXPECT_EQ(contents(), file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data));
  EXPECT_THAT(npy::header({DType::i64, {}}), HasSubstr("'shape': (), }"));
  EXPECT_THAT(npy::header({DType::u8, {7}}),
              HasSubstr("'|u1', 'fortran_order': False, 'shape': (7,), }"));
}

TEST_F(Npy, ReadsWhatItWrites) {
  std::mt19937 random(2);
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto dtype = static_cast<DType>(t);
    EXPECT_EQ(npy::has(dtype), !is_block(dtype) && dtype != DType::bf16);
    if (is_block(dtype)) {
      EXPECT_THROW(npy::header({dtype, {256}}), Error);
      continue;
    }
    for (const Shape& shape :
         {Shape{}, Shape{0, 3}, Shape{5}, Shape{2, 3, 4}, Shape{1, 1, 1, 1, 2, 1, 1, 3}}) {
      const TensorSpec spec{dtype, shape};
      std::vector<std::byte> bytes(byte_size(spec));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 1);
      npy::write(path_, spec, bytes);
      const npy::Tensor back = npy::read(path_);
      EXPECT_EQ(to_string(back.spec), to_string(spec));
      EXPECT_EQ(back.bytes, bytes);
      EXPECT_EQ(npy::header(spec).size() % 64, 0u);
    }
  }
}

TEST_F(Npy, ReadsOtherWaysToSayIt) {
  const std::string data(8, '\1');
  for (const char* dictionary :
       {"{\"descr\": \"<i4\", \"fortran_order\": False, \"shape\": (2,)}",
        "{'shape':(2,),'descr':'<i4','fortran_order':False}",
        "  { 'fortran_order' : False , 'shape' : ( 2 , ) , 'descr' : '<i4' , }  "}) {
    put(file(dictionary, data));
    EXPECT_EQ(to_string(npy::read(path_).spec), "i32[2]") << dictionary;
  }
  std::string second("\x93NUMPY\x02\x00", 8);
  const std::string dictionary = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n";
  second += std::string{static_cast<char>(dictionary.size()), 0, 0, 0} + dictionary + data;
  put(second);
  EXPECT_EQ(npy::read(path_).bytes.size(), 8u);
}

TEST_F(Npy, RefusesWhatMakesNoSense) {
  const std::string good =
      file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", std::string(8, 0));
  expect_refused("", "ends too early");
  expect_refused("PK\x03\x04 not an array", "no .npy file");
  expect_refused(good.substr(0, 9), "ends too early");
  expect_refused(good.substr(0, 60), "ends too early");
  expect_refused(good.substr(0, good.size() - 1), "need 8 bytes; the file has 7");
  expect_refused(good + "x", "need 8 bytes; the file has 9");
  std::string version = good;
  version[6] = 9;
  expect_refused(version, "version 9");
  expect_refused(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12),
                 "a header of 4294967295 bytes");
  const auto with = [](const std::string& dictionary) {
    return file(dictionary, std::string(8, 0));
  };
  expect_refused(with("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }"), "big-endian");
  expect_refused(with("{'descr': '|f4', 'fortran_order': Maybe, 'shape': (2,), }"), "neither");
  expect_refused(with("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }"), "'|O'");
  expect_refused(with("{'descr': '', 'fortran_order': False, 'shape': (2,), }"), "''");
  expect_refused(with("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }"), "C order");
  expect_refused(with("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }"), "shape");
  expect_refused(
      with("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"),
      "shape");
  expect_refused(
      with("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }"),
      "too large");
  expect_refused(with("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2), }"),
                 "8 axes");
  expect_refused(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,"), "shape");
  expect_refused(with("{'descr': '<f4', 'fortran_order': False}"), "does not say");
  expect_refused(with("{'descr': '<f4', 'shape': (2,), 'color': 'red'}"), "'color'");
  expect_refused(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } print(1)"),
                 "behind");
  expect_refused(with("import os"), "'{'");
  expect_refused(with("{'descr"), "lacks a string");
  fs::remove(path_);
  EXPECT_THROW(npy::read(path_), Error);
  EXPECT_THROW(npy::read(testing::TempDir()), Error);
}

TEST_F(Npy, WhereItCannotWriteItSaysSo) {
  try {
    npy::write("/nowhere/at/all.npy", {DType::u8, {}}, std::vector<std::byte>(1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/at/all.npy: cannot write: No such file"));
  }
  EXPECT_THROW(npy::write(path_, {DType::u8, {2}}, std::vector<std::byte>(1)), Error);
}

}  // namespace
}  // namespace heddle::test

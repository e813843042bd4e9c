// A file written piece by piece is the file that Writer makes, or none at all.
#include "io/gguf_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "heddle/error.h"
#include "support/error_message.h"

namespace heddle::gguf {
namespace {

namespace fs = std::filesystem;
using test::expect_refusal;

class Stream : public testing::Test {
 protected:
  Stream() {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    metadata_.set("general.architecture", "none");
    for (std::size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<std::byte>(i * 7);
  }
  ~Stream() override { fs::remove_all(directory_); }

  std::span<const std::byte> bytes_of(const TensorEntry& tensor) const {
    return std::span(data_).first(checked_bytes(tensor));
  }
  std::vector<std::byte> written() const {
    std::ifstream file(path_, std::ios::binary);
    const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(directory_), fs::directory_iterator());
  }

  // One directory a test, as tests run side by side.
  const fs::path directory_ =
      fs::path(testing::TempDir()) /
      (std::string("gguf-stream-") + testing::UnitTest::GetInstance()->current_test_info()->name());
  const fs::path path_ = directory_ / "model.gguf";
  Metadata metadata_;
  std::vector<std::byte> data_ = std::vector<std::byte>(1 << 12);
  const std::vector<TensorEntry> tensors_{{"a", DType::f32, {3}},
                                          {"b.weight", DType::q8_0, {2, 64}},
                                          {"c", DType::bf16, {5, 7, 3}},
                                          {"d", DType::i8, {}}};
};

TEST_F(Stream, WritesWhatWriterWrites) {
  for (const std::uint32_t alignment : {32u, 8u, 4096u}) {
    metadata_.set("general.alignment", alignment);
    Writer whole;
    whole.metadata() = metadata_;
    for (const TensorEntry& t : tensors_) whole.add_tensor(t.name, t.dtype, t.shape, bytes_of(t));
    for (const std::size_t piece : {std::size_t{1}, std::size_t{50}, data_.size()}) {
      StreamWriter stream(path_, metadata_, tensors_);
      for (const TensorEntry& tensor : tensors_) {
        std::span<const std::byte> left = bytes_of(tensor);
        while (!left.empty()) {
          const auto now = left.first(std::min(piece, left.size()));
          stream.write(now);
          left = left.subspan(now.size());
        }
      }
      stream.commit();
      EXPECT_EQ(written(), whole.serialize()) << alignment << ", " << piece;
    }
  }
  EXPECT_EQ(files(), 1);
}

TEST_F(Stream, WritesAFileWithoutTensors) {
  StreamWriter(path_, metadata_, {}).commit();
  Writer whole;
  whole.metadata() = metadata_;
  EXPECT_EQ(written(), whole.serialize());
}

TEST_F(Stream, LeavesNothingBehindWhereItIsNotFinished) {
  {
    StreamWriter stream(path_, metadata_, tensors_);
    stream.write(bytes_of(tensors_[0]));
    expect_refusal([&] { stream.commit(); }, ErrorCode::invalid_argument, "1 tensors of 4");
  }
  EXPECT_EQ(files(), 0);
}

TEST_F(Stream, RefusesBytesThatAreNotTheTensors) {
  StreamWriter stream(path_, metadata_, {tensors_[0]});
  expect_refusal([&] { stream.write(std::span(data_).first(13)); }, ErrorCode::invalid_argument,
                 "13 bytes, where 12 are left");
  stream.write(bytes_of(tensors_[0]));
  expect_refusal([&] { stream.write(std::span(data_).first(1)); }, ErrorCode::invalid_argument,
                 "beyond the last tensor");
}

TEST_F(Stream, RefusesWhatAFileCannotHold) {
  const auto refused = [&](std::vector<TensorEntry> tensors, const std::string& text) {
    expect_refusal([&] { StreamWriter(path_, metadata_, std::move(tensors)); },
                   ErrorCode::invalid_argument, text);
  };
  refused({tensors_[0], tensors_[0]}, "occurs twice");
  refused({{"", DType::f32, {1}}}, "is empty");
  refused({{"a", DType::q8_0, {33}}}, "whole blocks");
  refused({{"a", DType::f32, {0}}}, "positive");
  refused({{"a", DType::bool_, {1}}}, "no such type");
  EXPECT_EQ(files(), 0);
}

TEST_F(Stream, RefusesWhatTheDiskCannotHold) {
  const std::vector<TensorEntry> huge{{"a", DType::f32, {1 << 30, 1 << 20}}};
  expect_refusal([&] { StreamWriter(path_, metadata_, huge); }, ErrorCode::io, "its disk has");
  expect_refusal([&] { StreamWriter("/no/such/place/x", metadata_, {}); }, ErrorCode::io,
                 "/no/such/place/x");
  expect_refusal([&] { StreamWriter(directory_, metadata_, {}); }, ErrorCode::io, "is a directory");
  EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace heddle::gguf

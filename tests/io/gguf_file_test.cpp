// Files on disk: mapping, split models, atomic writing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "gguf_bytes.h"
#include "heddle/error.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"

namespace heddle {
namespace {

using test::TemporaryDir;
using testing::HasSubstr;
using testing::StartsWith;

std::string open_error(const std::filesystem::path& path) {
  try {
    (void)gguf::File::open(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io) << error.what();
    EXPECT_THAT(error.what(), StartsWith(path.parent_path().string()));
    return error.what();
  }
  return "no error";
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(GgufFile, RefusesWhatIsNotARegularFile) {
  const TemporaryDir dir;
  EXPECT_THAT(open_error(dir / "none.gguf"),
              HasSubstr("none.gguf: cannot open: No such file or directory"));
  std::filesystem::create_directory(dir / "d.gguf");
  EXPECT_THAT(open_error(dir / "d.gguf"), HasSubstr("d.gguf: is a directory, not a file"));
  ASSERT_EQ(::mkfifo((dir / "pipe.gguf").c_str(), 0600), 0);
  EXPECT_THAT(open_error(dir / "pipe.gguf"), HasSubstr("pipe.gguf: is not a regular file"));
  write_text(dir / "empty.gguf", "");
  EXPECT_THAT(open_error(dir / "empty.gguf"), HasSubstr("empty.gguf: header: magic needs 4 bytes"));
  write_text(dir / "text.gguf", "once upon a time");
  EXPECT_THAT(open_error(dir / "text.gguf"), HasSubstr("magic is 'once', not 'GGUF'"));
}

/// Writes part `number` (from 0) of `count`, with one tensor "tNUMBER" of the value NUMBER.
struct SplitPart {
  int number;
  int count;
  int tensors_in_all;
  std::string tensor_name;

  SplitPart(int part_number, int part_count)
      : number(part_number),
        count(part_count),
        tensors_in_all(part_count),
        tensor_name("t" + std::to_string(part_number)) {}

  void write(const std::filesystem::path& path) const {
    gguf::Writer writer;
    writer.metadata().set("split.no", static_cast<std::uint16_t>(number));
    writer.metadata().set("split.count", static_cast<std::uint16_t>(count));
    writer.metadata().set("split.tensors.count", static_cast<std::int32_t>(tensors_in_all));
    const auto value = static_cast<float>(number);
    writer.add_tensor(tensor_name, DType::f32, {1}, std::as_bytes(std::span(&value, 1)));
    writer.write(path);
  }
};

class GgufSplit : public testing::Test {
 protected:
  GgufSplit() {
    for (int i = 0; i < 3; ++i) SplitPart(i, 3).write(part(i));
  }
  std::filesystem::path part(int number) const {
    return dir_ / ("m-0000" + std::to_string(number + 1) + "-of-00003.gguf");
  }

  TemporaryDir dir_;
};

TEST_F(GgufSplit, OpensAllParts) {
  const gguf::File file = gguf::File::open(part(0));
  ASSERT_EQ(file.tensors().size(), 3U);
  std::uint64_t bytes = 0;
  for (int i = 0; i < 3; ++i) {
    float value = -1;
    const gguf::Tensor& tensor = file.tensor("t" + std::to_string(i));
    ASSERT_EQ(tensor.data.size(), sizeof(value));
    std::memcpy(&value, tensor.data.data(), sizeof(value));
    EXPECT_EQ(value, static_cast<float>(i));
    bytes += std::filesystem::file_size(part(i));
  }
  EXPECT_EQ(file.file_bytes(), bytes);
  EXPECT_EQ(file.name(), part(0).string());
  file.prefetch();
}

TEST_F(GgufSplit, NamesThePartThatIsMissing) {
  std::filesystem::remove(part(1));
  EXPECT_EQ(open_error(part(0)),
            part(0).string() + ": part 2 of 3 is missing: " + part(1).string());
}

TEST_F(GgufSplit, NamesThePartThatIsBroken) {
  write_text(part(2), "GGUF");
  EXPECT_THAT(open_error(part(0)), HasSubstr(part(2).string() + ": header: version needs"));
}

TEST_F(GgufSplit, MustBeOpenedByItsFirstPart) {
  EXPECT_THAT(open_error(part(1)), HasSubstr("metadata 'split.no': this is part 2 of 3; open part "
                                             "1, whose name ends in -00001-of-00003.gguf"));
}

TEST_F(GgufSplit, MustKeepItsName) {
  std::filesystem::rename(part(0), dir_ / "renamed.gguf");
  EXPECT_THAT(open_error(dir_ / "renamed.gguf"),
              HasSubstr("'split.count': the model has 3 parts, but this name does not end in"));
}

TEST_F(GgufSplit, PartsMustAgree) {
  SplitPart(2, 3).write(part(1));
  EXPECT_THAT(open_error(part(0)), HasSubstr("'split.no': is 2, but part 2 of 3 must have 1"));
  SplitPart(1, 4).write(part(1));
  EXPECT_THAT(open_error(part(0)), HasSubstr("'split.count': is 4, but the first part says 3"));
}

TEST_F(GgufSplit, PartsMustNotShareATensor) {
  SplitPart twin(1, 3);
  twin.tensor_name = "t0";
  twin.write(part(1));
  EXPECT_THAT(open_error(part(0)),
              HasSubstr(part(1).string() + ": tensor 't0': name occurs twice"));
}

TEST_F(GgufSplit, PartsMustHoldTheTensorsPromised) {
  SplitPart first(0, 3);
  first.tensors_in_all = 4;
  first.write(part(0));
  EXPECT_THAT(open_error(part(0)),
              HasSubstr("'split.tensors.count': is 4, but the parts hold 3 tensors"));
}

TEST_F(GgufSplit, KeysMustBeThere) {
  gguf::Writer writer;
  writer.metadata().set("split.count", std::uint16_t{3});
  writer.write(part(0));
  EXPECT_THAT(open_error(part(0)), HasSubstr("metadata 'split.no': is missing"));
}

TEST_F(GgufSplit, CountMustBePossible) {
  gguf::Writer writer;
  writer.metadata().set("split.count", std::int32_t{-1});
  writer.write(part(0));
  EXPECT_THAT(open_error(part(0)), HasSubstr("'split.count': -1 is not between 0 and 99999"));
}

TEST_F(GgufSplit, CannotComeFromMemory) {
  const std::string text = read_text(part(0));
  const auto bytes = bytes_of(text);
  EXPECT_THAT(
      [&] {
        (void)test::parse({bytes.begin(), bytes.end()});
      },
      testing::ThrowsMessage<Error>(HasSubstr("'split.count': one of 3 parts; a split model")));
}

TEST(GgufFile, AMergedModelSaysThatItHasNoParts) {
  const TemporaryDir dir;
  SplitPart merged(0, 0);
  merged.write(dir / "merged.gguf");
  EXPECT_EQ(gguf::File::open(dir / "merged.gguf").tensors().size(), 1U);
}

TEST(GgufFile, AnOpenFileSurvivesBeingReplaced) {
  const TemporaryDir dir;
  const auto sample = test::parse(test::sample_file().bytes);
  test::writer_of(sample).write(dir / "m.gguf");
  const gguf::File before = gguf::File::open(dir / "m.gguf");
  gguf::Writer().write(dir / "m.gguf");
  EXPECT_EQ(test::read_all(before), test::read_all(sample));
  EXPECT_TRUE(gguf::File::open(dir / "m.gguf").tensors().empty());
  EXPECT_EQ(dir.entries(), 1U);
}

TEST(GgufFile, AFailedWriteLeavesTheOldFile) {
  const TemporaryDir dir;
  write_text(dir / "m.gguf", "old");
  gguf::Writer writer;
  writer.metadata().set("general.alignment", std::uint32_t{3});
  EXPECT_THROW(writer.write(dir / "m.gguf"), Error);
  EXPECT_EQ(read_text(dir / "m.gguf"), "old");
  EXPECT_EQ(dir.entries(), 1U);
}

TEST(GgufFile, WritingWhereNothingCanBeWrittenSaysSo) {
  const TemporaryDir dir;
  const auto path = dir / "no/such/m.gguf";
  EXPECT_THAT(
      [&] { gguf::Writer().write(path); },
      testing::ThrowsMessage<Error>(path.string() + ": cannot create: No such file or directory"));
  std::filesystem::create_directory(dir / "taken");
  write_text(dir / "taken/file", "");
  EXPECT_THAT([&] { gguf::Writer().write(dir / "taken"); },
              testing::ThrowsMessage<Error>(HasSubstr("taken: cannot rename the new file to")));
  EXPECT_EQ(dir.entries(), 1U);
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const TemporaryDir dir;
  {
    AtomicFile file(dir / "f");
    file.write(bytes_of("half"));
    EXPECT_FALSE(std::filesystem::exists(dir / "f"));
  }
  EXPECT_EQ(dir.entries(), 0U);
  AtomicFile file(dir / "f");
  file.write(bytes_of("all "));
  file.write({});
  file.write(bytes_of("of it"));
  file.commit();
  EXPECT_EQ(read_text(dir / "f"), "all of it");
  EXPECT_EQ(dir.entries(), 1U);
}

TEST(MappedFile, MovesWithoutMovingItsBytes) {
  const TemporaryDir dir;
  write_text(dir / "f", "weft and warp");
  write_text(dir / "g", "other");
  MappedFile first(dir / "f");
  const std::byte* address = first.bytes().data();
  MappedFile second(std::move(first));
  EXPECT_EQ(second.bytes().data(), address);
  MappedFile third(dir / "g");
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), address);
  EXPECT_EQ(third.bytes()[0], std::byte{'w'});
  EXPECT_EQ(third.bytes().size(), 13U);
  third.prefetch(0, 1000);
  third.prefetch(5000, 1);
  third.prefetch(3, std::numeric_limits<std::size_t>::max());
}

/// Pages of files in this process's memory, in bytes.
std::size_t resident_file_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kib = 0;
    if (word == "RssFile:" && status >> kib) return kib * 1024;
  }
  return 0;
}

TEST(MappedFile, WhatWasReleasedIsReadAgain) {
  constexpr std::size_t kSize = std::size_t{32} << 20;
  const TemporaryDir dir;
  const std::filesystem::path path = dir / "large";
  std::ofstream(path, std::ios::binary) << std::string(kSize, 'a') << "end";
  const MappedFile file(path);
  const auto count = [&] { return std::ranges::count(file.bytes(), std::byte{'a'}); };
  EXPECT_EQ(count(), static_cast<std::ptrdiff_t>(kSize));
  const std::size_t before = resident_file_bytes();
  release_mapped_pages(file.bytes().subspan(5000, kSize - 10000));
  EXPECT_LT(resident_file_bytes(), before - kSize / 2);
  EXPECT_EQ(count(), static_cast<std::ptrdiff_t>(kSize));
  release_mapped_pages(file.bytes().first(10));  // less than a page
  release_mapped_pages({});
  const std::vector<std::byte> elsewhere(20000, std::byte{7});  // memory that is not a file's
  release_mapped_pages(elsewhere);
  EXPECT_EQ(elsewhere[10000], std::byte{7});
  EXPECT_EQ(count(), static_cast<std::ptrdiff_t>(kSize));
}

}  // namespace
}  // namespace heddle

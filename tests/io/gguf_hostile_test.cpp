// Files that are broken on purpose: each must end in an error that names the file and the field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "gguf_bytes.h"
#include "heddle/error.h"

namespace heddle {
namespace {

using test::MarkedBytes;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

struct Broken {
  const char* name;
  void (*break_it)(MarkedBytes&);
  const char* message;  // what the error must say
};

void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.name;
}

std::string error_of(const std::vector<std::byte>& bytes) {
  try {
    (void)test::parse(bytes, "broken.gguf");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    return error.what();
  }
  return "no error";
}

using F = MarkedBytes;

const Broken kHeader[] = {
    {"empty", [](F& f) { f.bytes.clear(); },
     "header: magic needs 4 bytes at offset 0, but the file ends at 0"},
    {"magic_of_ggml", [](F& f) { f.set_text("magic", "lmgg"); }, "header: magic is 'lmgg'"},
    {"magic_unprintable", [](F& f) { f.set_text("magic", "\x1b[2J"); }, "magic is '\\x1b[2J'"},
    {"magic_case", [](F& f) { f.set_text("magic", "gguf"); }, "not a GGUF file"},
    {"version_cut", [](F& f) { f.cut("version", 3); }, "header: version needs 4 bytes"},
    {"version_0", [](F& f) { f.set("version", 0U); }, "header: version 0 is not supported"},
    {"version_1", [](F& f) { f.set("version", 1U); },
     "header: version 1 is not supported, must be 2 or 3"},
    {"version_4", [](F& f) { f.set("version", 4U); }, "header: version 4 is not supported"},
    {"big_endian_3", [](F& f) { f.set("version", 0x03000000U); }, "version 3 in big-endian"},
    {"big_endian_2", [](F& f) { f.set("version", 0x02000000U); }, "version 2 in big-endian"},
    {"tensor_count_max", [](F& f) { f.set("tensor_count", kMax); },
     "header: tensor count is 18446744073709551615, which does not fit"},
    {"tensor_count_wraps", [](F& f) { f.set("tensor_count", kMax / 25 + 1); },
     "header: tensor count is"},
    {"tensor_count_fits_not_after_metadata", [](F& f) { f.set("tensor_count", std::uint64_t{15}); },
     "header: tensor count is 15, which does not fit"},
    {"tensor_count_one_more", [](F& f) { f.set("tensor_count", std::uint64_t{3}); },
     "tensor 2: name is empty"},
    {"tensor_count_cut", [](F& f) { f.cut("tensor_count", 7); }, "tensor count needs 8 bytes"},
    {"metadata_count_max", [](F& f) { f.set("metadata_count", kMax); },
     "header: metadata count is 18446744073709551615, which does not fit"},
    {"metadata_count_negative", [](F& f) { f.set("metadata_count", std::int64_t{-1} << 63); },
     "header: metadata count is 9223372036854775808"},
    {"metadata_count_one_more", [](F& f) { f.set("metadata_count", std::uint64_t{7}); },
     "tensor 0: name needs"},
    {"metadata_count_one_less", [](F& f) { f.set("metadata_count", std::uint64_t{5}); },
     "tensor 'flags': number of dimensions is 9"},
};

const Broken kMetadata[] = {
    {"key_length_past_end", [](F& f) { f.set("flag.length", std::uint64_t{100000}); },
     "metadata 1: key needs 100000 bytes"},
    {"key_length_max", [](F& f) { f.set("flag.length", kMax); },
     "metadata 1: key needs 18446744073709551615 bytes"},
    {"key_empty", [](F& f) { f.set("flag.length", std::uint64_t{0}); }, "metadata 1: key is empty"},
    {"key_too_long", [](F& f) { f.lengthen("flag", 65532); },
     "metadata 1: key has 65536 bytes, at most 65535 are allowed"},
    {"key_twice", [](F& f) { f.set_text("flag", "name"); }, "metadata 'name': key occurs twice"},
    {"key_not_ascii", [](F& f) { f.set_text("flag", "fl\xc3\xa4"); },
     "metadata 1: key holds characters other than printable ASCII"},
    {"key_with_zero", [](F& f) { f.set_text("flag", std::string_view("f\0ag", 4)); },
     "metadata 1: key holds characters other than printable ASCII"},
    {"type_unknown", [](F& f) { f.set("flag.type", 13U); },
     "metadata 'flag': value type 13 is unknown"},
    {"type_max", [](F& f) { f.set("flag.type", ~0U); },
     "metadata 'flag': value type 4294967295 is unknown"},
    {"type_cut",
     [](F& f) {
       f.cut("flag.type", 2);
       f.set("tensor_count", std::uint64_t{0});
       f.set("metadata_count", std::uint64_t{2});
     },
     "metadata 'flag': value type needs 4 bytes"},
    {"bool_2", [](F& f) { f.set("flag.value", std::uint8_t{2}); },
     "metadata 'flag': value is 2, a bool must be 0 or 1"},
    {"bool_255", [](F& f) { f.set("flag.value", std::uint8_t{255}); },
     "metadata 'flag': value is 255"},
    {"value_cut",
     [](F& f) {
       f.cut("alignment.value", 1);
       f.set("tensor_count", std::uint64_t{0});
       f.set("metadata_count", std::uint64_t{1});
     },
     "metadata 'general.alignment': value needs 4 bytes"},
    {"string_past_end", [](F& f) { f.set("name.value.length", std::uint64_t{5000}); },
     "metadata 'name': value needs 5000 bytes"},
    {"string_max", [](F& f) { f.set("name.value.length", kMax); },
     "metadata 'name': value needs 18446744073709551615 bytes"},
    {"array_type_unknown", [](F& f) { f.set("numbers.element", 99U); },
     "metadata 'numbers': array element type 99 is unknown"},
    {"array_of_arrays", [](F& f) { f.set("numbers.element", 9U); },
     "metadata 'numbers': is an array of arrays, which is not supported"},
    {"array_count_wraps", [](F& f) { f.set("numbers.count", std::uint64_t{1} << 62); },
     "metadata 'numbers': array length is 4611686018427387904, which does not fit"},
    {"array_count_past_end", [](F& f) { f.set("numbers.count", std::uint64_t{500}); },
     "metadata 'numbers': array length is 500, which does not fit"},
    {"string_array_count_max", [](F& f) { f.set("words.count", kMax); },
     "metadata 'words': array length is 18446744073709551615"},
    {"string_array_count_past_end", [](F& f) { f.set("words.count", std::uint64_t{60}); },
     "metadata 'words': array length is 60, which does not fit"},
    {"string_array_element_past_end", [](F& f) { f.set("words.1.length", kMax - 7); },
     "metadata 'words' element 1: value needs 18446744073709551608 bytes"},
    {"bool_array_element", [](F& f) { f.set("flags.1", std::uint8_t{7}); },
     "metadata 'flags' element 1: value is 7, a bool must be 0 or 1"},
    {"alignment_0", [](F& f) { f.set("alignment.value", 0U); },
     "metadata 'general.alignment': alignment 0 is not a positive multiple of 8"},
    {"alignment_4", [](F& f) { f.set("alignment.value", 4U); }, "alignment 4 is not a positive"},
    {"alignment_36", [](F& f) { f.set("alignment.value", 36U); }, "alignment 36 is not a positive"},
    {"alignment_type", [](F& f) { f.set("alignment.type", 5U); },
     "metadata 'general.alignment': type is i32, must be u32"},
};

const Broken kTensors[] = {
    {"name_past_end", [](F& f) { f.set("a.length", std::uint64_t{4096}); },
     "tensor 0: name needs 4096 bytes"},
    {"name_empty", [](F& f) { f.set("b.length", std::uint64_t{0}); }, "tensor 1: name is empty"},
    {"name_too_long", [](F& f) { f.lengthen("a", 64); },
     "tensor 0: name has 65 bytes, at most 64 are allowed"},
    {"name_twice", [](F& f) { f.set_text("b", "a"); }, "tensor 'a': name occurs twice"},
    {"dimensions_5", [](F& f) { f.set("a.dims", 5U); },
     "tensor 'a': number of dimensions is 5, at most 4 are allowed"},
    {"dimensions_max", [](F& f) { f.set("a.dims", ~0U); },
     "tensor 'a': number of dimensions is 4294967295"},
    {"dimension_0", [](F& f) { f.set("a.ne1", std::uint64_t{0}); },
     "tensor 'a': dimension 1 is 0, must be between 1 and 2^63 - 1"},
    {"dimension_negative", [](F& f) { f.set("a.ne0", std::int64_t{-4}); },
     "tensor 'a': dimension 0 is 18446744073709551612"},
    {"elements_overflow",
     [](F& f) {
       f.set("a.ne0", std::uint64_t{1} << 62);
       f.set("a.ne1", std::uint64_t{1} << 62);
     },
     "tensor 'a': shape [4611686018427387904, 4611686018427387904] is too large"},
    {"bytes_overflow",
     [](F& f) {
       f.set("a.ne0", std::uint64_t{1} << 62);
       f.set("a.ne1", std::uint64_t{1});
     },
     "tensor 'a': shape [1, 4611686018427387904] is too large"},
    {"elements_overflow_where_bytes_do_not",
     [](F& f) {
       f.set("a.type", 10U);
       f.set("a.ne0", std::uint64_t{1} << 32);
       f.set("a.ne1", std::uint64_t{1} << 31);
     },
     "tensor 'a': shape [2147483648, 4294967296] is too large"},
    {"larger_than_file", [](F& f) { f.set("a.ne1", std::uint64_t{1} << 40); },
     "tensor 'a': 17592186044416 bytes at offset 0 lie outside the"},
    {"partial_block", [](F& f) { f.set("b.ne0", std::uint64_t{33}); },
     "tensor 'b': rows of 33 elements are not made of whole q8_0 blocks of 32"},
    {"scalar_of_blocks", [](F& f) { f.set("b.ne0", std::uint64_t{1}); },
     "tensor 'b': rows of 1 elements are not made of whole q8_0 blocks of 32"},
    {"type_unknown", [](F& f) { f.set("a.type", 42U); }, "tensor 'a': type 42 is unknown"},
    {"type_max", [](F& f) { f.set("a.type", ~0U); }, "tensor 'a': type 4294967295 is unknown"},
    {"offset_misaligned", [](F& f) { f.set("b.offset", std::uint64_t{40}); },
     "tensor 'b': offset 40 is not a multiple of the alignment 32"},
    {"offset_against_other_alignment", [](F& f) { f.set("alignment.value", 64U); },
     "tensor 'b': offset 32 is not a multiple of the alignment 64"},
    {"offset_past_end", [](F& f) { f.set("b.offset", std::uint64_t{1} << 40); },
     "tensor 'b': 68 bytes at offset 1099511627776 lie outside the 128 bytes of tensor data"},
    {"offset_wraps", [](F& f) { f.set("b.offset", kMax - 31); },
     "tensor 'b': 68 bytes at offset 18446744073709551584 lie outside"},
    {"same_data", [](F& f) { f.set("b.offset", std::uint64_t{0}); }, "overlaps tensor"},
    {"overlapping_data", [](F& f) { f.set("a.offset", std::uint64_t{64}); },
     "tensor 'a': data at offset 64 overlaps tensor 'b' at 32 to 100"},
    {"data_one_byte_short", [](F& f) { f.cut("data_end", -1); },
     "tensor 'b': 68 bytes at offset 32 lie outside the 99 bytes of tensor data"},
    {"no_data", [](F& f) { f.cut("data"); }, "tensor 'a': 32 bytes at offset 0 lie outside the 0"},
    {"no_padding", [](F& f) { f.cut("header_end"); }, "header: tensor data must begin at"},
    {"alignment_beyond_file",
     [](F& f) {
       f.set("alignment.value", 0xfffffff8U);
       f.set("tensor_count", std::uint64_t{1});
     },
     "header: tensor data must begin at 4294967288, but the file ends at"},
};

class GgufHostile : public testing::TestWithParam<Broken> {};

TEST_P(GgufHostile, IsRefusedWithTheFieldNamed) {
  MarkedBytes file = test::sample_file();
  GetParam().break_it(file);
  const std::string message = error_of(file.bytes);
  EXPECT_THAT(message, StartsWith("broken.gguf: "));
  EXPECT_THAT(message, HasSubstr(GetParam().message));
}

std::string name_of(const testing::TestParamInfo<Broken>& test) {
  return test.param.name;
}

INSTANTIATE_TEST_SUITE_P(Header, GgufHostile, testing::ValuesIn(kHeader), name_of);
INSTANTIATE_TEST_SUITE_P(Metadata, GgufHostile, testing::ValuesIn(kMetadata), name_of);
INSTANTIATE_TEST_SUITE_P(Tensors, GgufHostile, testing::ValuesIn(kTensors), name_of);

TEST(GgufHostileTypes, TypesThatHeddleLacksAreRefusedByName) {
  const std::pair<std::uint32_t, const char*> types[] = {
      {4, "q4_2"},        {5, "q4_3"},      {9, "q8_1"},      {15, "q8_K"},  {16, "iq2_xxs"},
      {17, "iq2_xs"},     {18, "iq3_xxs"},  {19, "iq1_s"},    {21, "iq3_s"}, {22, "iq2_s"},
      {29, "iq1_m"},      {31, "q4_0_4_4"}, {33, "q4_0_8_8"}, {34, "tq1_0"}, {35, "tq2_0"},
      {36, "iq4_nl_4_4"}, {39, "mxfp4"},    {40, "nvfp4"}};
  for (const auto& [id, name] : types) {
    MarkedBytes file = test::sample_file();
    file.set("b.type", id);
    EXPECT_EQ(error_of(file.bytes),
              "broken.gguf: tensor 'b': type " + std::string(name) + " is not supported");
  }
}

TEST(GgufHostileBytes, EveryTruncationIsRefusedUntilOnlyPaddingIsMissing) {
  const MarkedBytes whole = test::sample_file();
  for (std::size_t size = 0; size < whole.bytes.size(); ++size) {
    const std::vector<std::byte> cut(whole.bytes.begin(),
                                     whole.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    if (size < whole.at("data_end")) {
      EXPECT_THAT(error_of(cut), StartsWith("broken.gguf: ")) << size;
    } else {
      EXPECT_EQ(test::read_all(test::parse(cut)), test::read_all(test::parse(whole.bytes)));
    }
  }
}

TEST(GgufHostileBytes, EveryChangedHeaderByteIsReadOrRefused) {
  MarkedBytes file = test::sample_file();
  int read = 0;
  int refused = 0;
  for (std::size_t place = 0; place < file.at("data"); ++place) {
    const std::byte original = file.bytes[place];
    for (int value = 0; value < 256; ++value) {
      file.bytes[place] = static_cast<std::byte>(value);
      try {
        (void)test::read_all(test::parse(file.bytes));
        ++read;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::io) << place << " = " << value;
        ASSERT_THAT(error.what(), StartsWith("test.gguf: "));
        ++refused;
      }
    }
    file.bytes[place] = original;
  }
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 50000);
}

}  // namespace
}  // namespace heddle

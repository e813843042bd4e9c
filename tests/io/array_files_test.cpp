// Arrays in files, both ways: by heddle alone, and with NumPy on the other side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "array_files_support.h"
#include "heddle/error.h"
#include "heddle/gguf.h"
#include "io/mapped_file.h"
#include "support/file_contents.h"
#include "support/python.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

void expect_same(const Array& got, const Array& wanted, const std::string& what) {
  EXPECT_EQ(to_string(got.spec()), to_string(wanted.spec())) << what;
  EXPECT_EQ(got.to_bytes(), wanted.to_bytes()) << what;
}

void expect_same(const ArrayMap& got, const ArrayMap& wanted) {
  EXPECT_EQ(got.size(), wanted.size());
  for (const auto& [name, array] : wanted) {
    ASSERT_TRUE(got.contains(name)) << name;
    expect_same(got.at(name), array, name);
  }
}

/// Whether the array's memory is a file's.
bool is_mapped(const Array& array) {
  const View view = array.view();
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<std::uintptr_t>(view.host());
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    if (begin <= address && address < end) return line.find("heddle-") != std::string::npos;
  }
  return false;
}

class ArrayFiles : public testing::Test {
 protected:
  fs::path file(const std::string& name) const { return folder_.path / name; }
  const Folder folder_{"array-files"};
};

TEST_F(ArrayFiles, NpyOfEveryTypeAndShape) {
  for (const auto& [name, array] : known_arrays(plain_types())) {
    save(file(name), array);  // the extension is added
    const Array back = load(file(name + ".npy"));
    expect_same(back, array, name);
    EXPECT_EQ(is_mapped(back), array.size() > 0) << name;
  }
}

TEST_F(ArrayFiles, NpyOfOtherLayouts) {
  const Array cube = known_array(DType::i32, {4, 6, 8});
  const std::pair<const char*, Array> layouts[] = {
      {"columns", transpose(cube)},
      {"swapped", swapaxes(cube, 0, 1)},
      {"strided", slice(cube, {0, 0, 1}, {4, 6, 8}, {2, 3, 2})},
      {"reversed", flip(cube)},
      {"broadcast", broadcast_to(known_array(DType::i32, {8}), {3, 8})},
      {"computed", cube * 2},
      {"column", reshape(cube, {192, 1})},
  };
  for (const auto& [name, array] : layouts) {
    save(file(name), array);
    expect_same(load(file(std::string(name) + ".npy")), array, name);
  }
  EXPECT_THAT(contents(file("columns.npy")), HasSubstr("'fortran_order': True"));
  EXPECT_THAT(contents(file("swapped.npy")), HasSubstr("'fortran_order': False"));
  EXPECT_THAT(contents(file("column.npy")), HasSubstr("'fortran_order': False"));
  const Array columns = load(file("columns.npy"));
  EXPECT_TRUE(is_mapped(columns));
  EXPECT_EQ(columns.view().layout().strides, Dims({1, 8, 48}));
  expect_same(columns + 1, transpose(cube) + 1, "read by a kernel");
}

TEST_F(ArrayFiles, NpzOfEveryTypeAndShape) {
  const ArrayMap arrays = known_arrays(plain_types());
  savez(file("stored"), arrays);
  const ArrayMap stored = load_npz(file("stored.npz"));
  expect_same(stored, arrays);
  for (const auto& [name, array] : stored) EXPECT_EQ(is_mapped(array), array.size() > 0) << name;
  savez_compressed(file("deflated.npz"), arrays);
  expect_same(load_npz(file("deflated.npz")), arrays);
  const ArrayMap long_run{{"zeros", zeros({1000, 1000})}};
  savez_compressed(file("zeros.npz"), long_run);
  EXPECT_LT(fs::file_size(file("zeros.npz")), 10000u);
  expect_same(load_npz(file("zeros.npz")), long_run);
  savez(file("nothing.npz"), {});
  EXPECT_TRUE(load_npz(file("nothing.npz")).empty());
  savez(file("names.npz"), {{"", Array(1)}, {"a/b.npy", Array(2)}, {"\xc3\xa4 \n", Array(3)}});
  EXPECT_EQ(load_npz(file("names.npz")).at("a/b.npy").item<int>(), 2);
  EXPECT_EQ(load_npz(file("names.npz")).at("").item<int>(), 1);
}

TEST_F(ArrayFiles, SafetensorsOfEveryTypeAndShape) {
  const ArrayMap arrays = known_arrays(plain_types());
  const std::unordered_map<std::string, std::string> texts{{"format", "pt"}, {"", "\xc3\xa4\"\n"}};
  save_safetensors(file("all"), arrays, texts);
  const auto [back, metadata] = load_safetensors(file("all.safetensors"));
  expect_same(back, arrays);
  EXPECT_EQ(metadata, texts);
  for (const auto& [name, array] : back) EXPECT_EQ(is_mapped(array), array.size() > 0) << name;
  save_safetensors(file("again"), arrays, texts);
  EXPECT_EQ(contents(file("again.safetensors")), contents(file("all.safetensors")));
  save_safetensors(file("nothing"), {});
  EXPECT_TRUE(load_safetensors(file("nothing.safetensors")).first.empty());
  save_safetensors(file("strided"), {{"a", transpose(known_array(DType::f32, {3, 4}))}});
  expect_same(load_safetensors(file("strided.safetensors")).first.at("a"),
              transpose(known_array(DType::f32, {3, 4})), "strided");
}

TEST_F(ArrayFiles, SafetensorsThatAreNotAlignedAreCopied) {
  const std::string header = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("f":{"dtype":"F32","shape":[2],"data_offsets":[1,9]},)"
                             R"("e":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[9,11]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  const float floats[] = {1.5f, -2.0f};
  put(file("odd.safetensors"),
      bytes + header + '\x07' + std::string(reinterpret_cast<const char*>(floats), 8) + "\x38\x39");
  const ArrayMap arrays = load_safetensors(file("odd.safetensors")).first;
  EXPECT_THAT(arrays.at("f").to_vector<float>(), ElementsAre(1.5f, -2.0f));
  EXPECT_FALSE(is_mapped(arrays.at("f")));
  EXPECT_THAT(arrays.at("e").to_vector<std::uint8_t>(), ElementsAre(0x38, 0x39));
}

TEST_F(ArrayFiles, GgufOfEveryTypeItHas) {
  ArrayMap arrays;
  for (const DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16,
                            DType::f32, DType::f64}) {
    arrays.emplace(std::string(to_string(dtype)), known_array(dtype, {3, 4}));
  }
  std::vector<std::byte> blocks(2 * 34);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i);
  arrays.emplace("blocks", Array::from_bytes({DType::q8_0, {2, 32}}, blocks));
  const std::unordered_map<std::string, GGUFMetaData> metadata{
      {"text", std::string("words")},
      {"texts", std::vector<std::string>{"a", "", "c"}},
      {"u8", Array(std::uint8_t{7})},
      {"i64s", Array(std::vector<std::int64_t>{-1, 2}, {2})},
      {"f32", Array(0.5f)},
      {"f64", Array(std::vector<double>{0.1}, {1})},
      {"bool", Array(true)},
      {"bools", Array({true, false, true})},
      {"none", zeros({0}, DType::u32)},
  };
  save_gguf(file("all"), arrays, metadata);
  const auto [back, values] = load_gguf(file("all.gguf"));
  expect_same(back, arrays);
  for (const auto& [name, array] : back) EXPECT_TRUE(is_mapped(array)) << name;
  EXPECT_EQ(values.size(), metadata.size());
  for (const auto& [key, value] : metadata) {
    ASSERT_EQ(values.at(key).index(), value.index()) << key;
    if (const auto* array = std::get_if<Array>(&value)) {
      expect_same(std::get<Array>(values.at(key)), *array, key);
    } else {
      EXPECT_TRUE(std::get_if<std::string>(&value) == nullptr ||
                  std::get<std::string>(values.at(key)) == std::get<std::string>(value));
    }
  }
  EXPECT_EQ(std::get<std::vector<std::string>>(values.at("texts")),
            (std::vector<std::string>{"a", "", "c"}));
  expect_same(dequantize(back.at("blocks")), dequantize(arrays.at("blocks")), "blocks");
}

TEST_F(ArrayFiles, TheBundledModelIsArrays) {
  const auto [arrays, metadata] =
      load_gguf(fs::path(HEDDLE_SOURCE_DIR) / "models" / "fable-1m-f16.gguf");
  EXPECT_EQ(std::get<std::string>(metadata.at("general.architecture")), "qwen2");
  EXPECT_EQ(arrays.at("token_embd.weight").dtype(), DType::f16);
}

// ---- What is shared with the file

TEST_F(ArrayFiles, ArraysOutliveTheFilesNameAndItsReplacement) {
  save(file("a.npy"), known_array(DType::f32, {1000}));
  const Array old = load(file("a.npy"));
  save(file("a.npy"), zeros({1000}));  // in its place, not over it
  expect_same(load(file("a.npy")), zeros({1000}), "the new one");
  fs::remove(file("a.npy"));
  expect_same(old, known_array(DType::f32, {1000}), "the old one");
  Array written = old;
  written = exp(std::move(written));  // not over the mapping, which cannot be written
  written.eval();
}

TEST_F(ArrayFiles, AnArrayMayBeSavedOverTheFileItReads) {
  save(file("a.npy"), known_array(DType::f32, {50000}));
  for (int i = 0; i < 3; ++i) save(file("a.npy"), load(file("a.npy")) + 1.0f);
  expect_same(load(file("a.npy")), known_array(DType::f32, {50000}) + 3.0f, "thrice");
}

TEST_F(ArrayFiles, PagesAreReadAsTheyAreNeeded) {
  // A file with a hole, larger than what memory could hold if it were read.
  const std::int64_t count = std::int64_t{1} << 38;
  save(file("small.npy"), zeros({16}, DType::u8));
  const std::size_t data = fs::file_size(file("small.npy")) - 16;
  std::string header = contents(file("small.npy")).substr(0, data);
  header.replace(header.find("(16,)"), 5, "(" + std::to_string(count) + ",)");
  header.erase(data - 1, header.size() - data);  // of the spaces before the line's end
  header.back() = '\n';
  put(file("large.npy"), header);
  std::error_code error;
  fs::resize_file(file("large.npy"), data + static_cast<std::uintmax_t>(count), error);
  if (error) GTEST_SKIP() << "no file of 256 GiB with a hole can be made here: " << error.message();
  const Array large = load(file("large.npy"));
  EXPECT_EQ(large.size(), count);
  EXPECT_EQ(sum(slice(large, {count - 100}, {count})).item<int>(), 0);
}

// ---- What cannot be written

template <class Call>
void expect_refused(ErrorCode code, const std::vector<std::string>& parts, const Call& call) {
  try {
    call();
    ADD_FAILURE() << "was not refused: " << parts.front();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST_F(ArrayFiles, WhatAFormatLacksIsRefusedAndNothingIsLeftBehind) {
  const Array blocks = Array::from_bytes({DType::q8_0, {32}}, std::vector<std::byte>(34));
  const Array failed = take(Array({1.0f, 2.0f}), Array({5}));
  using enum ErrorCode;
  expect_refused(invalid_argument, {"save: q8_0[32]", "block"}, [&] { save(file("x"), blocks); });
  expect_refused(invalid_argument, {"savez: 'b'", "block"}, [&] {
    savez(file("x"), {{"a", Array(1)}, {"b", blocks}});
  });
  expect_refused(invalid_argument, {"save_safetensors: 'b'"}, [&] {
    save_safetensors(file("x"), {{"b", blocks}});
  });
  expect_refused(invalid_argument, {"__metadata__"}, [&] {
    save_safetensors(file("x"), {{"__metadata__", Array(1)}});
  });
  expect_refused(invalid_argument, {"UTF-8"}, [&] {
    save_safetensors(file("x"), {{"\xff", Array(1)}});
  });
  expect_refused(invalid_argument, {"savez: ", "a name of 70000 bytes"}, [&] {
    savez(file("x"), {{std::string(70000, 'n'), Array(1)}});
  });
  expect_refused(invalid_argument, {"u8"}, [&] {
    save_gguf(file("x"), {{"a", zeros({3}, DType::u8)}});
  });
  expect_refused(invalid_argument, {"save_gguf: metadata 'm' is f32[1, 1]"}, [&] {
    save_gguf(file("x"), {}, {{"m", zeros({1, 1})}});
  });
  expect_refused(invalid_argument, {"save_gguf: metadata 'm' is f16[]"}, [&] {
    save_gguf(file("x"), {}, {{"m", zeros({}, DType::f16)}});
  });
  expect_refused(invalid_argument, {"save_gguf: metadata 'm' has no value"}, [&] {
    save_gguf(file("x"), {}, {{"m", GGUFMetaData()}});
  });
  EXPECT_THROW(save(file("x"), failed), Error);
  EXPECT_THROW(savez(file("x"), {{"a", Array(1)}, {"b", failed}}), Error);
  EXPECT_THROW(save_safetensors(file("x"), {{"b", failed}}), Error);
  EXPECT_THROW(save_gguf(file("x"), {{"b", failed}}), Error);
  EXPECT_TRUE(fs::is_empty(folder_.path));
  expect_refused(io, {"/nowhere/at/all.npy"}, [&] { save("/nowhere/at/all", Array(1)); });
  for (const char* name : {"/nowhere/at/all", "/tmp"}) {
    expect_refused(io, {name}, [&] { load(name); });
    expect_refused(io, {name}, [&] { load_npz(name); });
    expect_refused(io, {name}, [&] { load_safetensors(name); });
    expect_refused(io, {name}, [&] { load_gguf(name); });
  }
}

// ---- NumPy on the other side

class ArrayFileOracle : public ArrayFiles {
 protected:
  static int oracle(const std::string& arguments) {
    const std::string script = HEDDLE_SOURCE_DIR "/tests/io/array_files_oracle.py";
    return std::system((python_with("numpy") + " " + script + " " + arguments).c_str());
  }
  void SetUp() override {
    if (python_with("numpy").empty()) {
      GTEST_SKIP() << "skipped: python3 with numpy is not there";
    }
  }
};

TEST_F(ArrayFileOracle, ReadsWhatNumPyWrites) {
  ASSERT_EQ(oracle("write " + folder_.path.string()), 0);
  const std::vector<DType> types = plain_types();
  int big = 0;
  for (const auto& [name, array] : known_arrays(types)) {
    expect_same(load(file(name + ".npy")), array, name);
    expect_same(load(file(name + ".columns.npy")), array, name + " by columns");
    if (!fs::exists(file(name + ".big.npy"))) continue;
    expect_same(load(file(name + ".big.npy")), array, name + " big-endian");
    ++big;
  }
  EXPECT_EQ(big, 20);
  std::vector<DType> numpys = types;
  std::erase(numpys, DType::bf16);
  expect_same(load_npz(file("stored.npz")), known_arrays(numpys));
  expect_same(load_npz(file("deflated.npz")), known_arrays(numpys));
  const auto [arrays, metadata] = load_safetensors(file("all.safetensors"));
  expect_same(arrays, known_arrays(types));
  EXPECT_EQ(metadata.at("a"), "\xc3\xa4\n");
}

TEST_F(ArrayFileOracle, WritesWhatNumPyReads) {
  const std::vector<DType> types = plain_types();
  for (const auto& [name, array] : known_arrays(types)) {
    save(file(name), array);
    save(file(name + ".columns"), transpose(array));
  }
  std::vector<DType> numpys = types;
  std::erase(numpys, DType::bf16);
  savez(file("stored"), known_arrays(numpys));
  savez_compressed(file("deflated"), known_arrays(numpys));
  save_safetensors(file("all"), known_arrays(types), {{"a", "\xc3\xa4\n"}, {"", ""}});
  EXPECT_EQ(oracle("check " + folder_.path.string()), 0);
}

}  // namespace
}  // namespace heddle::test

#include "io/value_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include "heddle/executable.h"
#include "heddle/ops.h"
#include "io/npy.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Dump : public testing::Test {
 protected:
  Dump() : directory_(fs::path(testing::TempDir()) / ("dump-" + std::to_string(getpid()))) {
    fs::remove_all(directory_);
    GraphBuilder builder;
    const Array x = builder.input("x", {DType::f32, {2, 4}}, "n");
    const Array rows = builder.input("rows", {DType::i32, {2}}, "n");
    const Array half = builder.input("half", {DType::f16, {3}});
    builder.output("y", tanh(x));
    builder.output("z", astype(half, DType::bf16) + astype(half, DType::bf16));
    builder.update("k", write_rows(builder.state("k", {DType::q8_0, {3, 32}}),
                                   concatenate({x, x, x, x, x, x, x, x}, 1), rows));
    executable_ = Executable::compile(builder.build());
  }
  ~Dump() override { fs::remove_all(directory_); }

  void run(float first = 1) const {
    const std::vector<float> x{first, 2, 3, 4, 5, 6, 7, 8};
    const std::vector<std::int32_t> rows{0, 2}, n{1};
    const std::vector<f16> half{f16(0.5f), f16(-1.5f), f16(65504.0f)};
    executable_->run({{"x", {x, {2, 4}}},
                      {"rows", {rows, {2}}},
                      {"half", {half, {3}}},
                      {"n", HostTensor(std::int32_t{1})}});
  }
  std::vector<DumpedValue> dump(ValueDump::Options options, int runs = 1) const {
    options.directory = directory_;
    const auto values = std::make_shared<ValueDump>(options);
    const ObserveScope scope(values);
    for (int i = 0; i < runs; ++i) run(static_cast<float>(i));
    EXPECT_FALSE(scope.error()) << scope.error()->what();
    values->finish();
    return read_dump(directory_);
  }
  std::vector<float> floats(const DumpedValue& value) const {
    const npy::Tensor tensor = npy::read(directory_ / value.file);
    EXPECT_EQ(tensor.spec.dtype, DType::f32);
    EXPECT_EQ(tensor.spec.shape, value.shape);
    std::vector<float> values(tensor.bytes.size() / 4);
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  static const DumpedValue& find(const std::vector<DumpedValue>& values, std::string_view name) {
    const auto found = std::ranges::find(values, name, &DumpedValue::name);
    EXPECT_NE(found, values.end()) << name;
    return *found;
  }

  const fs::path directory_;
  std::shared_ptr<Executable> executable_;
};

TEST_F(Dump, HasEveryValueButStates) {
  const std::vector<DumpedValue> values = dump({});
  EXPECT_THAT(floats(find(values, "x")), ElementsAre(0, 2, 3, 4)) << "the row that counts";
  const std::vector<float> tanhs = floats(find(values, "x/tanh"));
  ASSERT_EQ(tanhs.size(), 4u);
  EXPECT_NEAR(tanhs[1], std::tanh(2.0), 1e-6);
  EXPECT_THAT(floats(find(values, "half")), ElementsAre(0.5f, -1.5f, 65504.0f));
  EXPECT_EQ(find(values, "half").dtype, DType::f16);
  const DumpedValue& sum = find(values, "half/add");
  EXPECT_EQ(sum.dtype, DType::bf16);
  EXPECT_THAT(floats(sum), ElementsAre(1, -3, 131072));
  const npy::Tensor rows = npy::read(directory_ / find(values, "rows").file);
  EXPECT_EQ(to_string(rows.spec), "i32[1]");
  for (const DumpedValue& value : values) EXPECT_NE(value.dtype, DType::q8_0) << value.name;
}

TEST_F(Dump, AFilterChoosesStatesToo) {
  const std::vector<DumpedValue> values = dump({.filter = "^k/|tanh$"});
  std::set<std::string> names;
  for (const DumpedValue& value : values) names.insert(value.name);
  EXPECT_THAT(names, ElementsAre("k/write_rows", "x/tanh"));
  const std::vector<float> state = floats(find(values, "k/write_rows"));
  ASSERT_EQ(state.size(), 96u);
  EXPECT_NEAR(state[1], 2, 0.02);
  EXPECT_EQ(state[64], 0) << "a row that no token counts for";
}

TEST_F(Dump, TheFirstStepsOnly) {
  const std::vector<DumpedValue> values = dump({.filter = "^x$", .runs = 2}, 5);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[1].run, 1u);
  EXPECT_THAT(floats(values[1]), ElementsAre(1, 2, 3, 4));
}

TEST_F(Dump, RefusesADirectoryThatHasSomethingInIt) {
  fs::create_directories(directory_);
  std::ofstream(directory_ / "letter.txt") << "dear";
  EXPECT_THROW(ValueDump({.directory = directory_}), Error);
  EXPECT_THROW(ValueDump({.directory = directory_ / "letter.txt"}), Error);
  EXPECT_THROW(ValueDump({.directory = directory_ / "new", .filter = "(("}), Error);
  EXPECT_FALSE(fs::exists(directory_ / "new"));
}

TEST_F(Dump, AFullDiskEndsTheDumpAndNotTheRun) {
  const auto values = std::make_shared<ValueDump>(ValueDump::Options{.directory = directory_});
  const ObserveScope scope(values);
  fs::remove(directory_);
  std::ofstream(directory_) << "in its place";
  run();
  EXPECT_EQ(executable_->output("y").shape(), (Shape{2, 4}));
  ASSERT_TRUE(scope.error());
  EXPECT_THAT(scope.error()->what(), HasSubstr(directory_.string()));
}

TEST_F(Dump, NamesSuitEveryFileSystem) {
  EXPECT_EQ(file_name_for(12, "blk.0.ffn_down.weight/add#2.1"),
            "0012-blk.0.ffn_down.weight_add_2.1.npy");
  EXPECT_EQ(file_name_for(3, "../../etc/passwd"), "0003-.._.._etc_passwd.npy");
  EXPECT_EQ(file_name_for(3, std::string("a\0b\n\xff:*", 7)), "0003-a_b____.npy");
  EXPECT_LT(file_name_for(3, std::string(5000, 'x')).size(), 200u);
}

TEST_F(Dump, AnIndexThatMakesNoSenseIsRefused) {
  fs::create_directories(directory_);
  const std::string value =
      R"({"run":0,"name":"a","op":"a","device":"","dtype":"f32","shape":[2],"file":"a.npy"})";
  const auto refused = [&](const std::string& text, const std::string& why) {
    std::ofstream(directory_ / "index.json", std::ios::trunc) << text;
    try {
      read_dump(directory_);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
      EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("index.json"), HasSubstr(why)));
    }
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = value;
    changed.replace(changed.find(from), from.size(), to);
    return R"({"heddle_dump":1,"values":[)" + changed + "]}";
  };
  EXPECT_THROW(read_dump(directory_ / "absent"), Error);
  refused("", "");
  refused("[]", "");
  refused("{\"heddle_dump\": 1}", "values");
  refused(R"({"heddle_dump":7,"values":[]})", "version 7");
  refused(with("a.npy", "../../etc/passwd"), "below the directory");
  refused(with("a.npy", "/etc/passwd"), "below the directory");
  refused(with("f32", "f33"), "f33");
  refused(with("\"name\":\"a\"", "\"name\":5"), "");
  refused(with("[2]", "[1,1,1,1,1,1,1,1,1]"), "");
  refused(R"({"heddle_dump":1,"values":[)" + value + "," + value + "]}", "twice");
}

}  // namespace
}  // namespace heddle::test

// Rule 11: memory is written in place only where nobody can see it.
#include "array/launch.h"
#include "array_test_support.h"
#include "test_device.h"

namespace heddle::test {
namespace {

/// Donations that evaluating `a` brings.
std::uint64_t donations(const Array& a) {
  const std::uint64_t before = eval_counts().donations;
  a.eval();
  return eval_counts().donations - before;
}

Array big(float start = 0) {
  return arange(start, start + 4096.0);
}

TEST(Donation, AnIntermediateThatNobodyHoldsIsWrittenOver) {
  const Array chain = exp(sin(cos(big())));
  EXPECT_EQ(donations(chain), 3u);
  const Array sum = big() + 1.0f;
  EXPECT_EQ(donations(sum), 1u);
  EXPECT_FLOAT_EQ(sum.to_vector<float>()[4095], 4096);
}

TEST(Donation, AHandleForbidsIt) {
  const Array x = big();
  x.eval();
  const Array y = x + 1.0f;
  EXPECT_EQ(donations(y), 0u);
  EXPECT_FLOAT_EQ(x.to_vector<float>()[5], 5);
  EXPECT_FLOAT_EQ(y.to_vector<float>()[5], 6);
}

TEST(Donation, AFinishedInputWithoutHandlesIsWrittenOver) {
  Array x = big();
  x.eval();
  Array y = x + 1.0f;
  x = Array(0.0f);
  EXPECT_EQ(donations(y), 1u);
  EXPECT_FLOAT_EQ(y.to_vector<float>()[5], 6);
}

TEST(Donation, AViewForbidsIt) {
  Array x = big();
  const Array part = slice(x, {100}, {200});
  part.eval();
  const Array y = negative(x);
  x = Array(0.0f);
  EXPECT_EQ(donations(y), 0u);
  EXPECT_FLOAT_EQ(part.to_vector<float>()[0], 100);
}

TEST(Donation, AConsumerThatHasNotRunForbidsIt) {
  Array x = big();
  x.eval();
  const Array later = x * 2.0f;
  const Array now = negative(x);
  x = Array(0.0f);
  EXPECT_EQ(donations(now), 0u);
  EXPECT_EQ(donations(later), 1u);  // now it is the last
  EXPECT_FLOAT_EQ(later.to_vector<float>()[7], 14);
}

TEST(Donation, AHostViewForbidsIt) {
  Array x = big();
  const View seen = x.view();
  const Array y = negative(x);
  x = Array(0.0f);
  EXPECT_EQ(donations(y), 0u);
  EXPECT_FLOAT_EQ(reinterpret_cast<const float*>(seen.host())[9], 9);
}

TEST(Donation, OneValueReadTwiceIsNotWrittenOver) {
  Array x = big();
  x.eval();
  const Array y = x - x;
  x = Array(0.0f);
  EXPECT_EQ(donations(y), 0u);
}

TEST(Donation, ConstantsAndForeignMemoryAreNever) {
  std::vector<float> memory(64, 3.0f);
  Ref<Buffer> buffer = cpu_device().import_host(std::as_writable_bytes(std::span(memory)), nullptr);
  Array x = Array::from_view({std::move(buffer), 0, OperandSpec::contiguous({DType::f32, {64}})});
  const Array y = negative(x);
  x = Array(0.0f);
  EXPECT_EQ(donations(y), 0u);
  EXPECT_FLOAT_EQ(memory[0], 3);
  const std::vector<float> source(64, 2.0f);
  const Array negated = negative(Array(source, {64}));
  EXPECT_EQ(donations(negated), 0u);
}

TEST(Donation, OtherShapesAndLayoutsAreNot) {
  const Array turned = exp(transpose(reshape(big(), {64, 64})));
  EXPECT_EQ(donations(turned), 0u);
  const Array repeated = negative(full({64, 64}, arange(64.0)));
  EXPECT_EQ(donations(repeated), 0u);
  const Array outer = arange(64.0) + reshape(arange(64.0), {64, 1});
  EXPECT_EQ(donations(outer), 0u);
}

TEST(Donation, ViewsPassOwnershipOn) {
  const Array y = exp(reshape(big(), {64, 64}));
  EXPECT_EQ(donations(y), 1u);
}

// ---- write_rows

class WriteRowsTest : public testing::Test {
 protected:
  Array rows = Array({1.0f, 2.0f, 3.0f, 4.0f});
  Array x = reshape(rows, {2, 2});
  static Array state() { return exp(zeros({3, 2})); }
};

TEST_F(WriteRowsTest, WritesInPlaceThroughTheOnlyHandle) {
  Array s = state();
  s.eval();
  const std::byte* memory = s.view().host();
  s = write_rows(std::move(s), x, Array({2, 0}));
  EXPECT_THAT(values<float>(s), testing::ElementsAre(3, 4, 1, 1, 1, 2));
  EXPECT_EQ(s.view().host(), memory);
  s = write_rows(std::move(s), x, Array({-1, 1}));
  EXPECT_THAT(values<float>(s), testing::ElementsAre(3, 4, 3, 4, 1, 2));
  EXPECT_EQ(s.view().host(), memory);
}

TEST_F(WriteRowsTest, AnOlderHandleSeesTheOldValue) {
  const Array old = state();
  const Array next = write_rows(old, x, Array({0, 1}));
  EXPECT_THAT(values<float>(next), testing::ElementsAre(1, 2, 3, 4, 1, 1));
  EXPECT_THAT(values<float>(old), testing::ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST_F(WriteRowsTest, ReadersOfTheOldVersionInOneEvaluationSeeIt) {
  for (const bool reader_first : {true, false}) {
    Array s = state();
    const Array reader = sum(s);
    const Array next = write_rows(std::move(s), x, Array({0, 1}));
    reader_first ? eval(reader, next) : eval(next, reader);
    EXPECT_FLOAT_EQ(reader.item<float>(), 6);
    EXPECT_FLOAT_EQ(sum(next).item<float>(), 12);
  }
}

TEST_F(WriteRowsTest, AChainOfVersionsInOneEvaluation) {
  Array s = state();
  for (int i = 0; i < 100; ++i) s = write_rows(std::move(s), x, Array({i % 3, (i + 1) % 3}));
  const std::uint64_t before = eval_counts().launches;
  s.eval();
  // exp of the zeros, its operands, and a write each: no copies
  EXPECT_LE(eval_counts().launches - before, 102u);
  EXPECT_THAT(values<float>(s), testing::ElementsAre(1, 2, 3, 4, 1, 2));
}

TEST_F(WriteRowsTest, AConstantIsCopiedFirst) {
  const std::vector<float> source(6, 9.0f);
  Array s(source, {3, 2});
  const View memory = s.view();
  s = write_rows(std::move(s), x, Array({0, 1}));
  EXPECT_THAT(values<float>(s), testing::ElementsAre(1, 2, 3, 4, 9, 9));
  EXPECT_FLOAT_EQ(reinterpret_cast<const float*>(memory.host())[0], 9);
}

TEST_F(WriteRowsTest, ABroadcastStateIsMadeRealFirst) {
  const Array s = write_rows(zeros({3, 2}), x, Array({1, 2}));
  EXPECT_THAT(values<float>(s), testing::ElementsAre(0, 0, 1, 2, 3, 4));
}

TEST_F(WriteRowsTest, TakesHalfAndQuantizedStates) {
  const Array half = write_rows(zeros({3, 2}, DType::f16), x, Array({0, 2}));
  EXPECT_EQ(half.dtype(), DType::f16);
  expect_near(half, {1, 2, 0, 0, 3, 4});
  const std::vector<std::byte> blocks(2 * row_bytes(DType::q8_0, 32));
  const Array empty = Array::from_bytes({DType::q8_0, {2, 32}}, blocks);
  const Array quantized = write_rows(empty, full({1, 32}, Array(2.0f)), Array({1}));
  const std::vector<double> row = doubles(quantized);
  EXPECT_EQ(row[0], 0);
  EXPECT_NEAR(row[40], 2, 0.02);
}

TEST_F(WriteRowsTest, OnAnotherDeviceTheSameHolds) {
  TestDevice device("later", {.later = true, .hide_memory = true});
  Array s = state(), old = s, next = s;
  {
    const DeviceScope scope(device);
    s = exp(zeros({3, 2}));
    old = s;
    next = write_rows(std::move(s), x, Array({0, 1}));
  }
  EXPECT_THAT(values<float>(next), testing::ElementsAre(1, 2, 3, 4, 1, 1));
  EXPECT_THAT(values<float>(old), testing::ElementsAre(1, 1, 1, 1, 1, 1));
}

}  // namespace
}  // namespace heddle::test

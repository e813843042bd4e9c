// What evaluation does: the order, how often, how much lives at once, and what errors do.
#include "array/eval.h"

#include <numeric>

#include "array/launch.h"
#include "array/order.h"
#include "array_test_support.h"
#include "test_device.h"

namespace heddle::test {
namespace {

Array leaf(const std::string& name, TensorSpec spec) {
  return apply(Input{name, std::move(spec), ""}, {});
}

/// Fails when evaluated: a row that the table does not have.
Array failing(std::int32_t row) {
  return take(Array({1.0f, 2.0f}), Array({row}));
}

std::vector<std::uint64_t> positions(const Tape& tape, const std::vector<Array>& arrays) {
  std::vector<std::uint64_t> result;
  for (const Array& a : arrays) {
    for (std::size_t i = 0; i < tape.order.size(); ++i) {
      if (tape.entries[tape.order[i]].node == a.node()) result.push_back(i);
    }
  }
  return result;
}

// ---- Order

TEST(Order, InputsComeFirstAndEachNodeOnce) {
  const Array x = arange(4.0);
  const Array a = x + x, b = a * x, c = b - a;
  const std::vector<Array> outputs = {c, a, c};
  const Tape tape = make_tape(outputs, 20);
  EXPECT_EQ(tape.order.size(), 4u);
  EXPECT_THAT(positions(tape, {x, a, b, c}), testing::ElementsAre(0, 1, 2, 3));
}

TEST(Order, IndependentChainsLieSideBySideWithinTheWidth) {
  std::vector<Array> first, second;
  for (int i = 0; i < 3; ++i) first.push_back(i == 0 ? exp(Array(1.0f)) : exp(first.back()));
  for (int i = 0; i < 3; ++i) second.push_back(i == 0 ? exp(Array(2.0f)) : exp(second.back()));
  const std::vector<Array> outputs = {first[2] + second[2]};
  const Tape wide = make_tape(outputs, 20);
  // Breadth first: level by level.
  const auto of_first = positions(wide, first), of_second = positions(wide, second);
  for (int level = 0; level < 3; ++level) EXPECT_EQ(of_first[level] / 2, of_second[level] / 2);
  // With a width of one: one chain after the other.
  const Tape narrow = make_tape(outputs, 1);
  const auto a = positions(narrow, first), b = positions(narrow, second);
  EXPECT_TRUE(a[2] < b[0] || b[2] < a[0]);
}

TEST(Order, SettledNodesAreLeftOut) {
  const Array a = exp(Array(0.0f));
  a.eval();
  const std::vector<Array> outputs = {a + a};
  EXPECT_EQ(make_tape(outputs, 20).order.size(), 1u);
  EXPECT_TRUE(make_tape(std::vector<Array>{a}, 20).order.empty());
}

TEST(Order, EveryWidthGivesATopologicalOrderOfARandomGraph) {
  std::uint32_t random = 1;
  const auto next = [&](std::uint32_t below) {
    return (random = random * 1664525u + 1013904223u) / 65536u % below;
  };
  std::vector<Array> nodes = {arange(2.0)};
  for (int i = 0; i < 500; ++i) {
    const auto size = static_cast<std::uint32_t>(nodes.size());
    nodes.push_back(nodes[next(size)] + nodes[next(size)]);
  }
  const std::vector<Array> outputs(nodes.end() - 20, nodes.end());
  for (const std::size_t width : {1u, 2u, 5u, 20u, 1000u}) {
    const Tape tape = make_tape(outputs, width);
    EXPECT_EQ(tape.order.size(), tape.entries.size());
    std::vector<int> place(tape.entries.size(), -1);
    for (std::size_t i = 0; i < tape.order.size(); ++i) {
      EXPECT_EQ(place[tape.order[i]], -1);
      place[tape.order[i]] = static_cast<int>(i);
    }
    for (std::uint32_t e = 0; e < tape.entries.size(); ++e) {
      for (const std::uint32_t source : tape.sources_of(e)) EXPECT_LT(place[source], place[e]);
    }
  }
}

// ---- Depth

TEST(Eval, AChainOfAMillionAdditionsEvaluatesAndDies) {
  const Array one(1);
  Array sum(0);
  for (int i = 0; i < 1'000'000; ++i) sum = sum + one;
  EXPECT_EQ(sum.item<int>(), 1'000'000);
}

TEST(Eval, AChainOfAMillionAdditionsDiesUnevaluated) {
  const Array one(1);
  Array sum(0);
  for (int i = 0; i < 1'000'000; ++i) sum = sum + one;
  EXPECT_FALSE(sum.is_available());
}

TEST(Eval, ADeepGraphThatFailsDiesToo) {
  Array sum = failing(7);
  for (int i = 0; i < 200'000; ++i) sum = sum + sum;
  EXPECT_THROW(sum.eval(), Error);
}

// ---- How often

TEST(Eval, SharedNodesRunOnce) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  Array x = arange(8.0);
  for (int i = 0; i < 40; ++i) x = x * 0.5f + x * 0.5f;  // 2^40 paths
  EXPECT_THAT(values<float>(x), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(device.launches, 1 + 40 * 3);
  x.eval();
  x.to_bytes();
  EXPECT_EQ(device.launches, 1 + 40 * 3);
}

TEST(Eval, LaterEvaluationsStartFromWhatIsThere) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  const Array a = exp(arange(4.0));
  const Array b = a + 1.0f, c = a * 2.0f;
  b.eval();
  EXPECT_EQ(device.launches, 3);
  c.eval();
  EXPECT_EQ(device.launches, 4);
  eval(a, b, c);
  EXPECT_EQ(device.launches, 4);
}

TEST(Eval, OutputsOfOneNodeOutliveEachOther) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  const Array x({1.0f, 2.0f});
  const Array w1 = reshape(Array({1.0f, 0.0f, 0.0f, 1.0f}), {2, 2});
  const Array w2 = reshape(Array({3.0f, 1.0f}), {1, 2});
  std::vector<Array> both = linear(x, {w1, w2});
  const int before = device.launches;
  const Array second = both[1];
  EXPECT_THAT(values<float>(both[0]), testing::ElementsAre(1, 2));
  both.clear();
  EXPECT_THAT(values<float>(second), testing::ElementsAre(5));
  EXPECT_EQ(device.launches, before + 1);
}

// ---- How much at once

TEST(Memory, AChainKeepsOneIntermediate) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  constexpr std::int64_t kBytes = 4096 * 4;
  Array x = arange(4096.0);
  for (int i = 0; i < 100; ++i) x = sin(x);
  const Array total = sum(x);
  x = Array(0.0f);
  total.eval();
  EXPECT_LE(device.peak_bytes, kBytes + 1024);  // each sine in place, and the sum beside the last
}

TEST(Memory, AChainWithoutDonationKeepsTwo) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  constexpr std::int64_t kBytes = 1024 * 4;
  Array x = arange(1024.0);
  for (int i = 0; i < 50; ++i) x = concatenate({slice(x, {512}, {1024}), slice(x, {0}, {512})});
  const Array last = x;
  x = Array(0.0f);
  last.eval();
  EXPECT_LE(device.peak_bytes, 2 * kBytes + 256);
  EXPECT_EQ(device.live_bytes, kBytes);
  EXPECT_FLOAT_EQ(last.to_vector<float>()[0], 0.0f);
}

TEST(Memory, AWideJoinIsBoundedByTheWidthLimit) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  constexpr int kBranches = 300;
  Array total = zeros({1024});
  for (int i = 0; i < kBranches; ++i) {
    Array branch = full({1024}, Array(static_cast<float>(i)));
    for (int step = 0; step < 5; ++step) branch = branch + 1.0f;
    total = total + branch;
  }
  const Array result = total;
  total = Array(0.0f);
  result.eval();
  EXPECT_FLOAT_EQ(result.to_vector<float>()[0], kBranches * (kBranches - 1) / 2 + 5.0f * kBranches);
  EXPECT_LE(device.peak_bytes, 22 * 1024 * 4);
}

TEST(Memory, WhatIsStillHeldIsKept) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  const Array a = arange(16.0);
  const Array b = a + 1.0f;
  const Array c = b + 1.0f;
  c.eval();
  EXPECT_FLOAT_EQ(a.to_vector<float>()[3], 3);
  EXPECT_FLOAT_EQ(b.to_vector<float>()[3], 4);
  EXPECT_FLOAT_EQ(c.to_vector<float>()[3], 5);
}

TEST(Memory, EvaluatedNodesLetGoOfTheirInputs) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  Array b = [] {
    const Array a = exp(arange(1024.0));
    return sum(a);
  }();
  b.eval();
  EXPECT_LE(device.live_bytes, 64);
}

// ---- Errors

TEST(Errors, AreTheSameAtEveryReadAndTravel) {
  const Array bad = failing(5);
  const Array dependent = (bad + 1.0f) * 2.0f;
  const Array independent = exp(Array(0.0f));
  std::vector<std::string> messages;
  for (int read = 0; read < 3; ++read) {
    for (const Array& a : {bad, dependent}) {
      try {
        a.eval();
        ADD_FAILURE();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        messages.push_back(error.what());
      }
    }
  }
  for (const std::string& message : messages) EXPECT_EQ(message, messages[0]);
  EXPECT_THAT(messages[0], testing::HasSubstr("gather_rows"));
  EXPECT_THAT(messages[0], testing::HasSubstr("5"));
  EXPECT_THROW(to_string(dependent), Error);
  EXPECT_THROW(dependent.to_bytes(), Error);
  EXPECT_FALSE(bad.is_available());
  EXPECT_FLOAT_EQ(independent.item<float>(), 1.0f);
  EXPECT_THROW((dependent + 3.0f).eval(), Error);  // built after the failure
}

std::string here(std::source_location where = std::source_location::current()) {
  return "eval_test.cpp:" + std::to_string(where.line()) + "]";
}

TEST(Errors, NameTheLineOfTheCallWhenTheyShow) {
  TestDevice device("faulty");
  device.on_launch = [] { throw std::runtime_error("a fuse blew"); };
  const DeviceScope scope(device);
  const Array x({1.0f, 2.0f}), ids({5});
  struct Made {
    Array array;
    std::string op, line;
  };
  const std::vector<Made> all = {
      {x + x, "add(f32[2], f32[2])", here()},
      {2.0f * x, "multiply(f32[], f32[2])", here()},
      {mean(ids), "cast(i32[1])", here()},  // the line of the call, and not one inside mean
      {concatenate({x, x}), "concatenate(f32[2], f32[2])", here()},
      {arange(4.0), "arange()", here()},
  };
  for (const auto& [array, op, line] : all) {
    expect_error([&] { array.eval(); }, ErrorCode::backend, {op, "a fuse blew", line});
    expect_error([&] { (array + 1.0f).eval(); }, ErrorCode::backend, {op, "a fuse blew", line});
  }
}

TEST(Errors, NameTheLineOfTheCallAtOnce) {
  const Array a = zeros({2}), b = zeros({3});
  expect_invalid([&] { a + b; }, {"add", "[2]", "[3]", here()});
  expect_invalid([&] { sum(a, 3); }, {"sum", "axis 3", here()});
  expect_invalid([&] { reshape(a, {5}); }, {"reshape", here()});
  expect_invalid([&] { concatenate({a, a}, 2); }, {"concatenate", here()});
  expect_invalid([&] { arange(0.0, 1.0, 0.0); }, {"arange", here()});
}

TEST(Errors, TheFirstInArgumentOrderIsThrownAfterAllWereTried) {
  const Array fine = exp(Array(0.0f));
  const Array bad7 = failing(7), bad9 = failing(9);
  expect_invalid([&] { eval(bad9, fine, bad7); }, {"9"});
  EXPECT_TRUE(fine.is_available());
  expect_invalid([&] { eval(bad7, bad9); }, {"7"});
  expect_invalid([&] { eval(bad9 + bad7); }, {"9"});
}

TEST(Errors, LeavesOfGraphsHaveNoValueButAreNotSpoilt) {
  const Array tokens = leaf("tokens", {DType::f32, {3}});
  const Array y = exp(tokens) + 1.0f;
  for (int i = 0; i < 2; ++i) {
    expect_invalid([&] { y.eval(); }, {"input 'tokens' has no value", "belongs to a graph"});
  }
  expect_invalid([&] { tokens.eval(); }, {"input 'tokens'"});
  EXPECT_EQ(y.node()->state(), Node::State::pending);
  EXPECT_EQ(tokens.node()->state(), Node::State::pending);
  const Array weight = apply(Parameter{"w", {DType::f32, {3}}}, {});
  expect_invalid([&] { eval(Array(1.0f) + 1.0f, weight * y); }, {"'w' has no value"});
}

TEST(Errors, MemoryThatThereIsNotEndsInOutOfMemory) {
  const Array huge = arange(1e15);
  expect_error([&] { huge.eval(); }, ErrorCode::out_of_memory, {"arange"});
  expect_error([&] { sum(huge).eval(); }, ErrorCode::out_of_memory, {"arange"});
}

TEST(Errors, ThrownInsideAKernelFailTheNode) {
  TestDevice device("faulty");
  device.on_launch = [] { throw std::runtime_error("a fuse blew"); };
  const DeviceScope scope(device);
  const Array x = exp(Array({1.0f}));
  expect_error([&] { x.eval(); }, ErrorCode::backend, {"exp(f32[1])", "a fuse blew"});
  device.on_launch = nullptr;
  expect_error([&] { x.eval(); }, ErrorCode::backend, {"a fuse blew"});
}

TEST(Errors, EvaluationFromWithinItselfIsAnErrorAndNotADeadlock) {
  TestDevice device("recursive");
  const DeviceScope scope(device);
  const Array x = exp(Array({1.0f}));
  device.on_launch = [&] { x.eval(); };
  expect_invalid([&] { x.eval(); }, {"'exp' is being evaluated by a call that waits for"});
  device.on_launch = nullptr;
}

TEST(Errors, EvaluationOfOtherThingsFromWithinIsFine) {
  TestDevice device("nested");
  const Array other = log(Array(1.0f));  // on the CPU
  const DeviceScope scope(device);
  const Array x = exp(Array({0.0f}));
  device.on_launch = [&] { other.eval(); };
  EXPECT_FLOAT_EQ(x.item<float>(), 1.0f);
  EXPECT_TRUE(other.is_available());
}

}  // namespace
}  // namespace heddle::test

// Graphs, plans and runs for the tests of exec.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "exec/plan.h"
#include "heddle/executable.h"
#include "heddle/graph.h"
#include "heddle/ops.h"
#include "support/async_device.h"
#include "support/interpret.h"

namespace heddle::test {

inline std::vector<float> random_floats(std::mt19937& random, std::size_t count) {
  std::uniform_real_distribution<float> spread(-1.0f, 1.0f);
  std::vector<float> values(count);
  for (float& value : values) value = spread(random);
  return values;
}

inline TensorSpec f32(Shape shape) {
  return {DType::f32, std::move(shape)};
}
inline TensorSpec i32(Shape shape) {
  return {DType::i32, std::move(shape)};
}

/// What `build` makes is pinned to the device.
template <class Build>
auto on(Device& device, const Build& build) {
  const DeviceScope scope(device);
  return build();
}

inline AsyncOptions accepting(std::string name, std::vector<std::string> ops) {
  AsyncOptions options;
  options.name = std::move(name);
  options.accepts = [ops = std::move(ops)](const Op& op) {
    return std::find(ops.begin(), ops.end(), heddle::name(op)) != ops.end();
  };
  return options;
}

/// The CPU comes last, unless it is among `devices`.
inline Plan plan_of(const Graph& graph, std::vector<Device*> devices = {}, bool fuse = false) {
  PassOptions options;
  options.devices = std::move(devices);
  options.fuse = fuse;
  return make_plan(prepare_graph(graph, options));
}

inline std::shared_ptr<Executable> compiled(const Graph& graph, std::vector<Device*> devices = {},
                                            Ref<Parameters> parameters = nullptr) {
  CompileOptions options;
  options.devices = std::move(devices);
  options.devices.push_back(&cpu_device());
  options.fuse = false;
  options.verify = true;
  return Executable::compile(graph, options, std::move(parameters));
}

inline NamedTensor given(std::string_view name, const std::vector<float>& values, Shape shape) {
  return {name, HostTensor(values, std::move(shape))};
}
inline NamedTensor given(std::string_view name, const std::vector<std::int32_t>& values,
                         Shape shape) {
  return {name, HostTensor(values, std::move(shape))};
}

/// Expects Error with `code` whose message contains `part`.
template <class Body>
void expect_error(ErrorCode code, const std::string& part, const Body& body) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

/// Expects f32 bytes that agree but for rounding; NaNs agree with NaNs.
inline void expect_near(const Bytes& actual, const Bytes& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  const auto a = values_of<float>(actual), e = values_of<float>(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(e[i])) continue;
    ASSERT_NEAR(a[i], e[i], 1e-4 * (1 + std::abs(e[i]))) << what << " at " << i;
  }
}

/// Runs a plan without an Executable, `runs` times in a row from the same inputs, and hands out
/// what each left. Plans need not be verified: what goes wrong in a device is thrown.
std::vector<Interpreted> run_plan(const Plan& plan, const NamedBytes& bound, int runs);

/// What as many runs in a row should leave, node by node on the CPU.
std::vector<Interpreted> interpret(const Graph& graph, NamedBytes bound, int runs);

void expect_same(const std::vector<Interpreted>& actual, const std::vector<Interpreted>& expected,
                 const std::string& what);

/// A graph of about `nodes` nodes over all of `devices`, with views, states, feeds and parameters,
/// and something to bind to each of its names.
struct RandomGraph {
  Graph graph;
  NamedBytes bound;
};
RandomGraph random_graph(unsigned seed, const std::vector<Device*>& devices, int nodes);

}  // namespace heddle::test

// Small helpers that the graph tests share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/passes.h"
#include "heddle/error.h"
#include "heddle/graph.h"
#include "heddle/ops.h"

namespace heddle::test {

inline TensorSpec f32(const Shape& shape) {
  return {DType::f32, shape};
}
inline TensorSpec i32(const Shape& shape) {
  return {DType::i32, shape};
}

/// The names of live ops that are neither leaves nor views, in order.
inline std::vector<std::string> kernels_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes) {
    if (!node.dead && !is_leaf(node.op) && !is_view(node.op)) names.emplace_back(name(node.op));
  }
  return names;
}

/// Expects an invalid_argument whose message has all of `parts`.
template <class Function>
void expect_error(ErrorCode code, const std::vector<std::string>& parts, Function&& function) {
  try {
    function();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

}  // namespace heddle::test

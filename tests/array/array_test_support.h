// Comparing arrays with values worked out on the host.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "heddle/ops.h"

namespace heddle::test {

template <class T>
std::vector<T> values(const Array& a) {
  return a.to_vector<T>();
}

/// The values of an array of any float type, as double.
inline std::vector<double> doubles(const Array& a) {
  return astype(a, DType::f64).to_vector<double>();
}

inline void expect_near(const Array& actual, const std::vector<double>& expected,
                        double tolerance = 1e-6) {
  const std::vector<double> got = doubles(actual);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(got[i], expected[i]) << "element " << i;
    } else {
      const double bound = tolerance * std::max(1.0, std::abs(expected[i]));
      EXPECT_NEAR(got[i], expected[i], bound) << "element " << i;
    }
  }
}

/// `body` throws an Error of `code` whose message contains each of `parts`.
inline void expect_error(const std::function<void()>& body, ErrorCode code,
                         const std::vector<std::string>& parts) {
  try {
    body();
    ADD_FAILURE() << "no error, though one about \"" << (parts.empty() ? "" : parts[0])
                  << "\" was due";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

inline void expect_invalid(const std::function<void()>& body,
                           const std::vector<std::string>& parts) {
  expect_error(body, ErrorCode::invalid_argument, parts);
}

}  // namespace heddle::test

#pragma once

#include <gtest/gtest.h>

#include <string>

#include "heddle/error.h"

namespace heddle::test {

/// Fails unless `function` throws invalid_argument with `part_of_message` in what it says.
template <class Function>
void expect_invalid(Function function, const std::string& part_of_message) {
  try {
    function();
    FAIL() << "no error; expected one about: " << part_of_message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(part_of_message), std::string::npos) << error.what();
  }
}

}  // namespace heddle::test

// What an error says, for tests that look into its text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "heddle/error.h"

namespace heddle::test {

/// The text of the Error that `f` throws, which has to be of `code`.
template <class F>
std::string message_of(ErrorCode code, const F& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace heddle::test

// What an error says, for tests that look into its text.
#pragma once

#include <gmock/gmock.h>
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

/// That error's text has `text` in it.
template <class F>
void expect_refusal(const F& body, ErrorCode code, const std::string& text) {
  EXPECT_THAT(message_of(code, body), testing::HasSubstr(text));
}

}  // namespace heddle::test

// The reference data beside the project (../shared), for the tests that use it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace heddle::test {

/// ../shared from the project's root, or where HEDDLE_SHARED points.
inline std::filesystem::path shared_dir() {
  if (const char* dir = std::getenv("HEDDLE_SHARED")) return dir;
  return std::filesystem::path(HEDDLE_SOURCE_DIR).parent_path() / "shared";
}

}  // namespace heddle::test

/// Sets `variable` to ../shared/RELATIVE, or skips the running test with a line that says what is
/// missing.
#define HEDDLE_SHARED_FILE(variable, relative)                                      \
  const std::filesystem::path variable = ::heddle::test::shared_dir() / (relative); \
  if (!std::filesystem::exists(variable)) GTEST_SKIP() << "skipped: " << variable << " is not there"

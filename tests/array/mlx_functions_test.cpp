// Every function of MLX that is not tied to Metal or CUDA exists here under its name.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "mlx_functions.h"
#include "support/shared_files.h"

namespace heddle::test {

NamedFunctions::NamedFunctions(const char* header, std::initializer_list<const char*> names) {
  for (const std::string name : names) {
    by_header()[header].insert(name.substr(name.rfind(':') + 1));
  }
}

std::map<std::string, std::set<std::string>>& NamedFunctions::by_header() {
  static std::map<std::string, std::set<std::string>> functions;
  return functions;
}

namespace {

using Names = std::map<std::string, std::set<std::string>>;

/// Tied to Metal or CUDA; and the class `array`, which is no function.
const std::set<std::string> kForeign = {"cuda_kernel", "metal_kernel", "precompiled_cuda_kernel",
                                        "array"};

Names names_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::regex header(R"((\w+\.h) \(\d+\):)");
  Names names;
  std::string line, current;
  for (std::smatch match; std::getline(file, line);) {
    if (std::regex_match(line, match, header)) {
      current = match[1];
    } else if (!current.empty()) {
      std::istringstream words(line);
      for (std::string word; words >> word;) names[current].insert(word);
    }
  }
  return names;
}

bool contains(const Names& names, const std::string& header, const std::string& name) {
  const auto found = names.find(header);
  return found != names.end() && found->second.contains(name);
}

TEST(MlxFunctions, EachIsThere) {
  HEDDLE_SHARED_FILE(path, "mlx-functions.txt");
  const Names wanted = names_in(path);
  EXPECT_GE(wanted.size(), 9u);
  for (const auto& [header, names] : wanted) {
    for (const std::string& name : names) {
      if (kForeign.contains(name)) continue;
      EXPECT_TRUE(contains(NamedFunctions::by_header(), header, name)) << name << " of " << header;
    }
  }
}

TEST(MlxFunctions, NoneIsNamedThatMlxDoesNotHave) {
  HEDDLE_SHARED_FILE(path, "mlx-functions.txt");
  const Names wanted = names_in(path);
  for (const auto& [header, names] : NamedFunctions::by_header()) {
    for (const std::string& name : names) {
      EXPECT_TRUE(contains(wanted, header, name)) << name << " is not in " << header;
    }
  }
}

}  // namespace
}  // namespace heddle::test

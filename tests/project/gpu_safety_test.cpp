// docs/gpu-safety.md names every family of kernels, every site of a fault and every setting that
// there is.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot(HEDDLE_SOURCE_DIR);

std::string text_of(const fs::path& path) {
  std::ifstream in(kRoot / path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What group 1 of the pattern is in all of the text.
std::set<std::string> all_in(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

const std::string kPage = text_of("docs/gpu-safety.md");

void expect_on_page(const std::set<std::string>& names, const std::string& before) {
  for (const std::string& name : names) {
    EXPECT_NE(kPage.find(before + "`" + name + "`"), std::string::npos)
        << "docs/gpu-safety.md says nothing of " << name;
  }
}

TEST(GpuSafety, EveryFamilyOfKernelsHasItsRow) {
  std::set<std::string> families;
  for (const auto& entry : fs::directory_iterator(kRoot / "src/device/vulkan/kernels")) {
    if (entry.path().extension() == ".cmake") families.insert(entry.path().stem());
  }
  ASSERT_GT(families.size(), 5u);
  expect_on_page(families, "\n| ");
}

TEST(GpuSafety, EverySiteOfAFaultIsListed) {
  const auto sites = all_in(text_of("src/device/vulkan/faults.cpp"), R"re(\{"(\w+)", VK_)re");
  ASSERT_GT(sites.size(), 10u);
  expect_on_page(sites, "");
}

TEST(GpuSafety, EverySettingOfVulkanIsListed) {
  const auto settings = all_in(text_of("src/base/settings.cpp"), R"re("(HEDDLE_VULKAN_\w+)")re");
  ASSERT_GT(settings.size(), 3u);
  for (const std::string& setting : settings) {
    EXPECT_NE(kPage.find(setting), std::string::npos) << setting;
  }
}

}  // namespace

#include "base/settings.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "heddle/error.h"

namespace heddle {
namespace {

using testing::HasSubstr;

std::map<std::string, std::string, std::less<>> variables;

const char* lookup(const char* name) {
  const auto found = variables.find(std::string_view(name));
  return found == variables.end() ? nullptr : found->second.c_str();
}

Settings read(std::map<std::string, std::string, std::less<>> values) {
  variables = std::move(values);
  return read_settings(lookup);
}

TEST(Settings, DefaultsWhereNothingIsSet) {
  const Settings s = read({});
  EXPECT_EQ(s.threads, 0);
  EXPECT_EQ(s.timeout, std::chrono::seconds(10));
  EXPECT_EQ(s.log_level, "warn");
  EXPECT_EQ(s.cpu_isa, "best");
  EXPECT_EQ(s.matmul, "exact");
  EXPECT_EQ(s.vulkan_matmul, "auto");
  EXPECT_FALSE(s.verify);
  EXPECT_TRUE(s.fuse);
  EXPECT_TRUE(s.repack);
  EXPECT_EQ(s.width_limit, 20);
  EXPECT_EQ(s.memory_limit, 0u);
  EXPECT_EQ(s.cache_limit, std::nullopt);
}

TEST(Settings, TakesWhatIsSet) {
  const Settings s = read({{"HEDDLE_THREADS", "3"},
                           {"HEDDLE_TIMEOUT", "0.25"},
                           {"HEDDLE_LOG", "debug"},
                           {"HEDDLE_CPU", "portable"},
                           {"HEDDLE_MATMUL", "bf16"},
                           {"HEDDLE_VULKAN_MATMUL", "tiled"},
                           {"HEDDLE_VERIFY", "1"},
                           {"HEDDLE_FUSE", "off"},
                           {"HEDDLE_REPACK", "no"},
                           {"HEDDLE_WIDTH_LIMIT", "7"},
                           {"HEDDLE_MEMORY_LIMIT", "3G"},
                           {"HEDDLE_CACHE_LIMIT", "0"}});
  EXPECT_EQ(s.threads, 3);
  EXPECT_EQ(s.timeout, std::chrono::milliseconds(250));
  EXPECT_EQ(s.log_level, "debug");
  EXPECT_EQ(s.cpu_isa, "portable");
  EXPECT_EQ(s.matmul, "bf16");
  EXPECT_EQ(s.vulkan_matmul, "tiled");
  EXPECT_TRUE(s.verify);
  EXPECT_FALSE(s.fuse);
  EXPECT_FALSE(s.repack);
  EXPECT_EQ(s.width_limit, 7);
  EXPECT_EQ(s.memory_limit, std::uint64_t{3} << 30);
  EXPECT_EQ(s.cache_limit, 0u);
}

TEST(Settings, BytesTakeUnits) {
  const auto limit = [](const char* text) {
    return read({{"HEDDLE_MEMORY_LIMIT", text}}).memory_limit;
  };
  EXPECT_EQ(limit("1000"), 1000u);
  EXPECT_EQ(limit("500k"), 512000u);
  EXPECT_EQ(limit("64M"), 67108864u);
  EXPECT_EQ(limit("17179869183G"), 18446744072635809792u);
  EXPECT_EQ(limit("18446744073709551615"), 18446744073709551615u);
  EXPECT_EQ(read({{"HEDDLE_CACHE_LIMIT", "auto"}}).cache_limit, std::nullopt);
}

TEST(Settings, EmptyIsNotSet) {
  EXPECT_EQ(read({{"HEDDLE_THREADS", ""}}).threads, 0);
  EXPECT_EQ(read({{"HEDDLE_LOG", ""}}).log_level, "warn");
}

struct Refused {
  const char* name;
  const char* value;
  const char* accepts;
};

class RefusedSettings : public testing::TestWithParam<Refused> {};

TEST_P(RefusedSettings, NameTheVariableAndWhatItTakes) {
  const Refused& c = GetParam();
  try {
    read({{c.name, c.value}});
    FAIL() << c.name << "=" << c.value << " was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(std::string(c.name) + "=" + c.value));
    EXPECT_THAT(error.what(), HasSubstr(c.accepts));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedSettings,
    testing::Values(
        Refused{"HEDDLE_THREADS", "two", "number of threads"},
        Refused{"HEDDLE_THREADS", "-1", "number of threads"},
        Refused{"HEDDLE_THREADS", "1025", "number of threads"},
        Refused{"HEDDLE_THREADS", "2x", "number of threads"},
        Refused{"HEDDLE_THREADS", "99999999999", "number of threads"},
        Refused{"HEDDLE_TIMEOUT", "0", "seconds"}, Refused{"HEDDLE_TIMEOUT", "-3", "seconds"},
        Refused{"HEDDLE_TIMEOUT", "nan", "seconds"}, Refused{"HEDDLE_TIMEOUT", "inf", "seconds"},
        Refused{"HEDDLE_TIMEOUT", "10s", "seconds"},
        Refused{"HEDDLE_LOG", "loud", "debug, info, warn or error"},
        Refused{"HEDDLE_CPU", "mmx",
                "best, portable, avx2, avx_vnni, avx512, amx, neon, neon_dotprod or neon_i8mm"},
        Refused{"HEDDLE_MATMUL", "f16", "exact or bf16"},
        Refused{"HEDDLE_VULKAN_MATMUL", "fast", "auto, vector, tiled or scalar"},
        Refused{"HEDDLE_VERIFY", "maybe", "on or off"}, Refused{"HEDDLE_FUSE", "2", "on or off"},
        Refused{"HEDDLE_REPACK", "ON!", "on or off"}, Refused{"HEDDLE_WIDTH_LIMIT", "0", "from 1"},
        Refused{"HEDDLE_MEMORY_LIMIT", "M", "bytes"}, Refused{"HEDDLE_MEMORY_LIMIT", "-1", "bytes"},
        Refused{"HEDDLE_MEMORY_LIMIT", "1.5G", "bytes"},
        Refused{"HEDDLE_MEMORY_LIMIT", "1T", "bytes"},
        Refused{"HEDDLE_MEMORY_LIMIT", "auto", "or 0"},
        Refused{"HEDDLE_MEMORY_LIMIT", "17179869184G", "bytes"},
        Refused{"HEDDLE_MEMORY_LIMIT", "18446744073709551616", "bytes"},
        Refused{"HEDDLE_CACHE_LIMIT", "much", "or auto"},
        Refused{"HEDDLE_CACHE_LIMIT", "1k1", "bytes"},
        Refused{"HEDDLE_VULKAN_BARRIERS", "some", "hazards, all or none"},
        Refused{"HEDDLE_VULKAN_FEATURES", "none", "full or minimal"},
        Refused{"HEDDLE_VULKAN_RECORDINGS", "maybe", "on or off"},
        Refused{"HEDDLE_VULKAN_VALIDATION", "2", "on or off"}));

TEST(Settings, NamesThatMeanTheDefault) {
  const Settings defaults = read_settings([](const char*) -> const char* { return nullptr; });
  EXPECT_EQ(defaults.cache_directory, "");
  EXPECT_EQ(defaults.fault, "");
  EXPECT_EQ(defaults.vulkan_barriers, "hazards");
  EXPECT_TRUE(defaults.vulkan_recordings);
}

TEST(Settings, ListNamesEverySettingOnce) {
  const std::vector<SettingInfo> all = list_settings();
  ASSERT_EQ(all.size(), 19u);
  for (const SettingInfo& setting : all) {
    EXPECT_THAT(setting.name, testing::StartsWith("HEDDLE_"));
    EXPECT_FALSE(setting.description.empty()) << setting.name;
    EXPECT_FALSE(setting.default_value.empty()) << setting.name;
  }
}

TEST(Settings, UnknownVariablesAreWarnedOf) {
  // The settings of a process are read once: this needs one that has not.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto child = [] {
    setenv("HEDDLE_THRAEDS", "4", 1);
    settings();
    std::exit(0);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "warning: HEDDLE_THRAEDS is not a setting");
}

}  // namespace
}  // namespace heddle

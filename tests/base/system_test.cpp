#include "base/system.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

namespace heddle {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// A made-up root of a file system, removed at the end.
class FakeRoot {
 public:
  FakeRoot()
      : path_(std::filesystem::temp_directory_path() /
              ("heddle_system_test." + std::to_string(getpid()) + "." + std::to_string(count_++))) {
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path whole = path_ / file;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  static inline int count_ = 0;
  std::filesystem::path path_;
};

TEST(System, CpuMax) {
  EXPECT_EQ(parse_cpu_max("max 100000"), 0);
  EXPECT_EQ(parse_cpu_max("150000 100000"), 1.5);
  EXPECT_EQ(parse_cpu_max("50000 100000\n"), 0.5);
  EXPECT_EQ(parse_cpu_max(""), 0);
  EXPECT_EQ(parse_cpu_max("100"), 0);
  EXPECT_EQ(parse_cpu_max("100 0"), 0);
  EXPECT_EQ(parse_cpu_max("100 x"), 0);
  EXPECT_EQ(parse_cpu_max("-1 100000"), 0);
}

TEST(System, NoCgroupsNoLimits) {
  const FakeRoot root;
  EXPECT_EQ(cgroup_processors(root.path()), 0);
  EXPECT_EQ(cgroup_memory_left(root.path()), kUnlimited);
}

TEST(System, Version2TakesTheTightestOnTheWayUp) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/outer/inner\n");
  root.write("sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n");
  root.write("sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
  root.write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  root.write("sys/fs/cgroup/outer/inner/memory.current", "77\n");
  root.write("sys/fs/cgroup/outer/memory.max", "1000\n");
  root.write("sys/fs/cgroup/outer/memory.current", "700\n");
  EXPECT_EQ(cgroup_processors(root.path()), 2.5);
  EXPECT_EQ(cgroup_memory_left(root.path()), 300u);
  root.write("sys/fs/cgroup/outer/memory.stat", "anon 600\nactive_file 3\ninactive_file 90\n");
  EXPECT_EQ(cgroup_memory_left(root.path()), 390u);
}

TEST(System, Version1ByController) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "12:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/x\n0::/\n");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096\n");
  root.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "5000\n");
  EXPECT_EQ(cgroup_processors(root.path()), 0.5);
  EXPECT_EQ(cgroup_memory_left(root.path()), 0u);  // over the limit, not wrapped around
  root.write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 2000\n");
  EXPECT_EQ(cgroup_memory_left(root.path()), 1096u);
}

TEST(System, PathOfAnotherNamespaceFallsBackToTheRoot) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/docker/abc\n");
  root.write("sys/fs/cgroup/memory.max", "500\n");
  root.write("sys/fs/cgroup/memory.current", "100\n");
  root.write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(cgroup_memory_left(root.path()), 400u);
  EXPECT_EQ(cgroup_processors(root.path()), 1);
}

TEST(System, ThisMachine) {
  EXPECT_GE(available_processors(), 1);
  EXPECT_GT(available_memory(), std::uint64_t{1} << 20);
  EXPECT_FALSE(processor_name().empty());
  const std::uint64_t before = peak_memory();
  std::vector<char> block(64 << 20, 1);
  EXPECT_GE(peak_memory(), before + (block.size() >> 1));
}

}  // namespace
}  // namespace heddle

// An installed copy, and a project that finds it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "cli/process.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;

class Installed : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("heddle-install-" + std::to_string(getpid()));
    fs::remove_all(root_);
    ASSERT_TRUE(succeeds({HEDDLE_CMAKE, "--install", HEDDLE_BINARY_DIR, "--prefix", prefix()}));
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string prefix() const { return root_ / "prefix"; }
  std::string build() const { return root_ / "build"; }

  static bool succeeds(const std::vector<std::string>& command) {
    const Finished run = Process(command).finish();
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    return run.exit_code == 0;
  }

  fs::path root_;
};

TEST_F(Installed, ServesAConsumer) {
  ASSERT_TRUE(
      succeeds({HEDDLE_CMAKE, "-S", HEDDLE_SOURCE_DIR "/tests/cli/consumer", "-B", build(), "-G",
                "Ninja", "-DCMAKE_PREFIX_PATH=" + prefix(), "-DCMAKE_CXX_COMPILER=" HEDDLE_COMPILER,
                "-DCMAKE_CXX_FLAGS=" HEDDLE_CONSUMER_FLAGS}));
  ASSERT_TRUE(succeeds({HEDDLE_CMAKE, "--build", build()}));
  const Finished run = Process({build() + "/consumer"}).finish();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "array([ 3.,  6., 11.], dtype=f32)\nfable-1m\n");
  // Nothing that it was given leads back to this source tree.
  const Finished leads =
      Process({"grep", "-rl", HEDDLE_SOURCE_DIR, prefix(), "--include=*.cmake"}).finish();
  EXPECT_EQ(leads.out, "");
}

TEST_F(Installed, HasAProgramThatNeedsNoFile) {
  const std::string program = prefix() + "/bin/heddle";
  ASSERT_TRUE(fs::exists(program));
  const Finished run =
      Process({"sh", "-c", "cd / && '" + program + "' run -p 'Once upon a time' --temp 0 -n 4"})
          .finish();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::StartsWith("Once upon a time"));
}

}  // namespace
}  // namespace heddle::test

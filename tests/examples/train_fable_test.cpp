// train_fable, run as a user runs it, stopped and killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "cli/process.h"
#include "cli/terminal_process.h"
#include "support/file_contents.h"
#include "support/temporary_dir.h"

namespace {

namespace fs = std::filesystem;
using heddle::test::Finished;
using heddle::test::Process;
using heddle::test::TemporaryDir;
using testing::HasSubstr;
using testing::Not;
using Arguments = std::vector<std::string>;

Arguments fast(const fs::path& out, const Arguments& more = {}) {
  Arguments all{HEDDLE_TRAIN_FABLE, "--fast", "--out", out.string(), "--checkpoint-every", "3"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Finished train(const fs::path& out, const Arguments& more = {}) {
  return Process(fast(out, more)).finish();
}

fs::path checkpoint_of(fs::path out) {
  return out.replace_extension(".checkpoints") / "checkpoint.safetensors";
}

bool wait_for(const fs::path& file) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (std::chrono::steady_clock::now() < end) {
    if (fs::exists(file)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

/// A run of a million steps that was told to stop at its first checkpoint.
Finished stopped_run(const fs::path& out, int signal) {
  Process run(fast(out, {"--steps", "1000000"}));
  EXPECT_TRUE(wait_for(checkpoint_of(out)));
  run.signal(signal);
  return run.finish();
}

TEST(TrainFable, TellsHowFarItIsAndLeavesAModelAndALossCurve) {
  const TemporaryDir dir;
  const Finished run = train(dir / "fable.gguf");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("step 20/40  loss "));
  EXPECT_THAT(run.err, HasSubstr("step 40/40  loss "));
  EXPECT_THAT(run.err, Not(HasSubstr("\r")));
  EXPECT_THAT(run.out, HasSubstr("fable.gguf: held-out loss "));
  EXPECT_EQ(dir.entries(), 2u);  // no checkpoint is left
  EXPECT_THAT(heddle::test::contents(dir / "fable.svg"), HasSubstr("held-out fables"));

  const Finished told = heddle::test::heddle_program(
      {"run", (dir / "fable.gguf").string(), "-p", "Once upon a time", "-n", "20", "--temp", "0"});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("Once upon a time"));
  const Finished info = heddle::test::heddle_program({"info", (dir / "fable.gguf").string()});
  EXPECT_THAT(info.out, HasSubstr("CC0-1.0"));
  EXPECT_THAT(info.out, HasSubstr("tokenizer.chat_template"));
}

TEST(TrainFable, ShowsABarOnATerminal) {
  const TemporaryDir dir;
  heddle::test::TerminalProcess run(fast(dir / "fable.gguf"), {});
  int exit_code = -1;
  const std::string shown = run.finish(exit_code);
  EXPECT_EQ(exit_code, 0) << shown;
  EXPECT_THAT(shown, HasSubstr("##] step 40/40  loss "));
  // What a line replaces the one before it with never wraps.
  for (std::size_t at = 0; (at = shown.find("\r\033[K", at)) != std::string::npos;) {
    at += 4;
    EXPECT_LT(std::min(shown.find('\r', at), shown.size()) - at, 80u) << shown;
  }
}

TEST(TrainFable, OneStepIsARunToo) {
  const TemporaryDir dir;
  for (const char* steps : {"1", "2", "5"}) {
    const Finished run = train(dir / "fable.gguf", {"--steps", steps});
    EXPECT_EQ(run.exit_code, 0) << run.err;
  }
}

TEST(TrainFable, ASeedGivesTheSameBytesOnAnyNumberOfThreads) {
  const TemporaryDir dir;
  const auto bytes = [&](const char* name, const Arguments& more) {
    const Finished run = train(dir / name, more);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return heddle::test::contents(dir / name);
  };
  const std::string first = bytes("a.gguf", {"--seed", "5", "--threads", "1"});
  EXPECT_EQ(bytes("b.gguf", {"--seed", "5", "--threads", "3"}), first);
  EXPECT_NE(bytes("c.gguf", {"--seed", "6"}), first);
}

TEST(TrainFable, KilledAtAnyMomentItResumesToTheSameBytes) {
  const TemporaryDir dir;
  const Arguments steps{"--steps", "150", "--resume"};
  ASSERT_EQ(train(dir / "whole.gguf", steps).exit_code, 0);

  const fs::path out = dir / "killed.gguf";
  std::mt19937 random(std::random_device{}());
  int kills = 0;
  for (int round = 0; round < 6; ++round) {
    Process run(fast(out, steps));
    if (round == 0) {  // for certain after a checkpoint, and before the end
      EXPECT_TRUE(wait_for(checkpoint_of(out)));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 250));
    }
    run.signal(SIGKILL);
    kills += run.finish().exit_code == 128 + SIGKILL;
  }
  EXPECT_GT(kills, 0);
  const Finished last = train(out, steps);
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(heddle::test::contents(out), heddle::test::contents(dir / "whole.gguf"));
  EXPECT_EQ(heddle::test::contents(dir / "killed.svg"), heddle::test::contents(dir / "whole.svg"));
}

TEST(TrainFable, StopsWhenAskedAndSaysHowToGoOn) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryDir dir;
    const Finished run = stopped_run(dir / "fable.gguf", signal);
    EXPECT_EQ(run.exit_code, 130) << run.err;
    EXPECT_THAT(run.err, HasSubstr("with --resume goes on"));
    EXPECT_TRUE(fs::exists(checkpoint_of(dir / "fable.gguf")));
    EXPECT_FALSE(fs::exists(dir / "fable.gguf"));
  }
}

TEST(TrainFable, DoesNotThrowAwayOrMixUpRuns) {
  const TemporaryDir dir;
  const fs::path out = dir / "fable.gguf";
  stopped_run(out, SIGINT);
  const Finished anew = train(out, {"--steps", "1000000"});
  EXPECT_EQ(anew.exit_code, 1);
  EXPECT_THAT(anew.err, HasSubstr("--resume goes on with it"));
  const Finished other = train(out, {"--steps", "1000000", "--resume", "--seed", "9"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("whose seed is 1, not 9"));
  const Finished shorter = train(out, {"--steps", "7", "--resume"});
  EXPECT_THAT(shorter.err, HasSubstr("whose steps is 1000000, not 7"));
}

TEST(TrainFable, RefusesDamagedCheckpoints) {
  const TemporaryDir dir;
  const fs::path out = dir / "fable.gguf", checkpoint = checkpoint_of(out);
  stopped_run(out, SIGINT);
  const std::string whole = heddle::test::contents(checkpoint);
  const auto message = [&](const std::string& bytes) {
    std::ofstream(checkpoint, std::ios::binary) << bytes;
    const Finished run = train(out, {"--steps", "1000000", "--resume"});
    EXPECT_EQ(run.exit_code, 1) << run.err;
    return run.err;
  };
  std::string flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 1);
  EXPECT_THAT(message(flipped), HasSubstr("damaged"));
  for (const std::string& bytes : {std::string(), std::string("no checkpoint"),
                                   whole.substr(0, whole.size() / 2), whole.substr(0, 100)}) {
    EXPECT_THAT(message(bytes), HasSubstr("checkpoint.safetensors"));
  }
}

TEST(TrainFable, RefusesWhatItCannotDo) {
  const auto fails = [](const Arguments& more, const std::string& text) {
    Arguments all{HEDDLE_TRAIN_FABLE};
    all.insert(all.end(), more.begin(), more.end());
    const Finished run = Process(all).finish();
    EXPECT_NE(run.exit_code, 0) << text;
    EXPECT_THAT(run.err, HasSubstr(text));
  };
  fails({"--steps", "0"}, "--steps");
  fails({"--steps", "many"}, "--steps");
  fails({"--nonesuch"}, "--nonesuch");
  fails({"--checkpoint-every", "0"}, "--checkpoint-every");
  fails({"--compare", "/nowhere/model.gguf"}, "/nowhere/model.gguf");
  fails({"--fast", "--out", "/dev/null/fable.gguf"}, "/dev/null");
  fails({"--fast", "--out", "/tmp"}, "must be a file");
  fails({"--fast", "--out", "fable.svg"}, "must be a file");
}

TEST(TrainFable, ComparesModelsAndWritesFables) {
  const TemporaryDir dir;
  ASSERT_EQ(train(dir / "fable.gguf").exit_code, 0);
  const Finished compared = Process({HEDDLE_TRAIN_FABLE, "--compare", (dir / "fable.gguf").string(),
                                     (dir / "fable.gguf").string(), "--stories", "10"})
                                .finish();
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("nats a byte"));
  const std::string one = compared.out.substr(0, compared.out.find('\n') + 1);
  EXPECT_EQ(compared.out, one + one);
  const Finished written = Process({HEDDLE_TRAIN_FABLE, "--write", "3"}).finish();
  EXPECT_THAT(written.out, HasSubstr(" named "));
}

}  // namespace

// Trains a language model of a million parameters that tells fables, on fables that a grammar
// writes: vocabulary, model, loss curve, checkpoints, and a GGUF file at the end.
#include <fmt/format.h>
#include <heddle/error.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "chart.h"
#include "compare.h"
#include "model_file.h"
#include "progress.h"
#include "training.h"

namespace {

namespace fs = std::filesystem;
using namespace fable;

constexpr int kInterrupted = 130;  // what shells report of a program that Ctrl-C ended

struct Options {
  fs::path out = "fable.gguf";
  fs::path checkpoints;  // a directory; empty: beside `out`
  std::uint64_t seed = 1;
  int steps = 0;  // 0: the plan's
  int checkpoint_every = 100;
  int threads = 0;
  bool resume = false, fast = false;
  std::vector<fs::path> compare;
  int stories = 2000, write = 0;
};

volatile std::sig_atomic_t stop_asked = 0;

/// From now on the first Ctrl-C, or SIGTERM, asks to stop, and a second one ends the program.
void catch_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_asked = 1; };
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

fs::path with_extension(fs::path path, const char* extension) {
  return path.replace_extension(extension);
}

void write_chart(const fs::path& path, const Training& training) {
  Curve trained{"training", "#7aa6d6", {}}, held_out{"held-out fables", "#c23b22", {}};
  const History& history = training.history();
  for (std::size_t i = 0; i < history.losses.size(); ++i) {
    trained.points.emplace_back(static_cast<double>(i), history.losses[i]);
  }
  for (const auto& [step, loss] : history.held_out) held_out.points.emplace_back(step, loss);
  const std::string title = fmt::format("A model of {} thousand parameters learns to tell fables",
                                        parameter_count(training.model()) / 1000);

  const fs::path temporary = path.string() + ".tmp";
  std::ofstream file(temporary, std::ios::binary);
  file << loss_chart(title, {trained, held_out});
  file.close();
  if (!file) throw heddle::Error(heddle::ErrorCode::io, temporary.string() + ": cannot write");
  fs::rename(temporary, path);
}

/// Steps until the end, or until somebody asks to stop.
void run(Training& training, const fs::path& checkpoint, int checkpoint_every) {
  Progress progress(training);
  while (!training.is_done() && !stop_asked) {
    training.step();
    progress.show();
    const bool is_due = training.steps_done() % checkpoint_every == 0;
    if (is_due && !training.is_done()) training.save(checkpoint);
  }
  if (training.steps_done() > 0) training.save(checkpoint);
}

/// What runs that were killed as they saved have left beside the checkpoint.
void remove_unfinished(const fs::path& checkpoint) {
  const std::string prefix = checkpoint.filename().string() + ".";
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(checkpoint.parent_path())) {
    if (entry.path().filename().string().starts_with(prefix)) unfinished.push_back(entry.path());
  }
  for (const fs::path& path : unfinished) fs::remove(path);
}

void begin(Training& training, const fs::path& checkpoint, bool resume) {
  const bool is_there = fs::exists(checkpoint);
  if (is_there && !resume) {
    throw heddle::Error(heddle::ErrorCode::invalid_argument,
                        checkpoint.string() +
                            ": the checkpoint of an unfinished run is there: --resume goes on with "
                            "it; remove it to begin anew");
  }
  if (is_there) {
    training.load(checkpoint);
    fmt::print(stderr, "going on after step {}\n", training.steps_done());
  } else if (resume) {
    fmt::print(stderr, "{}: no checkpoint yet, so this is the beginning\n", checkpoint.string());
  }
}

/// What would otherwise be noticed after minutes.
void check_output(const fs::path& out) {
  if (!out.has_filename() || fs::is_directory(out) || out.extension() == ".svg") {
    throw heddle::Error(heddle::ErrorCode::invalid_argument,
                        "--out is \"" + out.string() +
                            "\": it must be a file, which does not end in .svg, as the loss curve "
                            "does");
  }
}

int train(const Options& options) {
  check_output(options.out);
  TrainingPlan plan = options.fast ? TrainingPlan::fast() : TrainingPlan::full();
  plan.seed = options.seed;
  if (options.steps > 0) plan.steps = options.steps;
  const fs::path directory = options.checkpoints.empty()
                                 ? with_extension(options.out, ".checkpoints")
                                 : options.checkpoints;
  const fs::path checkpoint = directory / "checkpoint.safetensors";
  fs::create_directories(directory);
  remove_unfinished(checkpoint);

  Training training(plan);
  fmt::print(stderr, "{} parameters, {} tokens in the vocabulary\n",
             parameter_count(training.model()), training.model().shape.n_vocab);
  begin(training, checkpoint, options.resume);
  catch_signals();
  run(training, checkpoint, options.checkpoint_every);
  if (!training.is_done()) {
    fmt::print(stderr, "stopped after step {} of {}; the same command with --resume goes on\n",
               training.steps_done(), plan.steps);
    return kInterrupted;
  }

  const fs::path chart = with_extension(options.out, ".svg");
  write_model(options.out, training.model(), training.corpus());
  write_chart(chart, training);
  fs::remove(checkpoint);
  std::error_code not_empty;  // there is something else in it, which stays
  fs::remove(directory, not_empty);
  fmt::print("{}: held-out loss {:.4f} nats a token; {}: its way there\n", options.out.string(),
             training.history().held_out.back().second, chart.string());
  return 0;
}

int compare(const Options& options) {
  for (const fs::path& model : options.compare) {
    const HeldOutLoss loss = held_out_loss(model, options.seed, options.stories);
    fmt::print(
        "{}: {:.5f} nats a byte ({:.4f} a token) over {} new fables of {} bytes, of which "
        "{:.5f} are the grammar's chance\n",
        model.string(), loss.per_byte(), loss.nats / static_cast<double>(loss.tokens),
        options.stories, loss.bytes, loss.grammar_nats / static_cast<double>(loss.bytes));
  }
  return 0;
}

int write(const Options& options) {
  for (int i = 0; i < options.write; ++i) {
    Random random = Random::of(options.seed, static_cast<std::uint64_t>(Purpose::training),
                               static_cast<std::uint64_t>(i));
    const Fable fable = write_fable(random);
    if (!fable.request.empty()) fmt::print("[{}]\n", fable.request);
    fmt::print("{}\n\n", fable.story);
  }
  return 0;
}

void describe(CLI::App& app, Options& options) {
  app.add_option("-o,--out", options.out, "The GGUF file to write; the loss curve goes beside it")
      ->capture_default_str();
  app.add_option("--steps", options.steps, "Training steps, instead of the usual number")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", options.seed, "Decides fables, first weights, and so the result")
      ->capture_default_str();
  app.add_flag("--resume", options.resume, "Go on from the last checkpoint, if there is one");
  app.add_option("--checkpoint", options.checkpoints,
                 "A directory for checkpoints; without it, OUT with .checkpoints");
  app.add_option("--checkpoint-every", options.checkpoint_every, "Steps between checkpoints")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--threads", options.threads, "Threads; 0: HEDDLE_THREADS, or all processors")
      ->check(CLI::Range(0, 1024));
  app.add_flag("--fast", options.fast, "A tiny model in seconds, to try things out");
  app.add_option("--compare", options.compare,
                 "Instead of training: the loss of these models on new fables of --seed");
  app.add_option("--stories", options.stories, "Fables to compare models on")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--write", options.write, "Instead of training: print so many fables")
      ->check(CLI::Range(1, 1'000'000));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a small language model that tells fables, and writes it as GGUF");
  describe(app, options);
  CLI11_PARSE(app, argc, argv);
  if (options.threads > 0) {
    setenv("HEDDLE_THREADS", std::to_string(options.threads).c_str(), 1);
  }
  try {
    if (options.write > 0) return write(options);
    if (!options.compare.empty()) return compare(options);
    return train(options);
  } catch (const std::exception& error) {
    std::cerr << "train_fable: " << error.what() << "\n";
    return 1;
  }
}

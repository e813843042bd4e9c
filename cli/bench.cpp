// heddle bench: tokens a second, for a prompt and for what is generated one by one.
#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "base/check.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/device_report.h"
#include "cli/model.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace heddle::cli {

namespace {

constexpr std::int64_t kDefaultPrompt = 512;

std::string now_text() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::vector<TokenId> random_tokens(std::int64_t count, std::int64_t n_vocab) {
  std::mt19937_64 random(1);
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(random() % static_cast<std::uint64_t>(n_vocab));
  }
  return tokens;
}

/// The test once, from an empty sequence.
void run_test(llm::Context& context, llm::SequenceId sequence, const BenchTest& test,
              std::span<const TokenId> tokens) {
  context.truncate(sequence, 0);
  if (test.n_gen == 0) {
    context.step(sequence, tokens);
    return;
  }
  for (const TokenId& token : tokens) context.step(sequence, {&token, 1});
}

void measure(llm::Context& context, llm::SequenceId sequence, BenchTest& test, int repetitions,
             Watching& watching, Progress& progress) {
  using Clock = std::chrono::steady_clock;
  const std::vector<TokenId> tokens =
      random_tokens(test.n_prompt + test.n_gen, context.model().config().n_vocab);
  progress.show(fmt::format("{}: warming up", test_name(test)));
  run_test(context, sequence, test, tokens);
  const DeviceReport report(context);
  test.time = now_text();
  for (int i = 0; i < repetitions; ++i) {
    progress.show(fmt::format("{}: {} of {}", test_name(test), i + 1, repetitions));
    const Clock::time_point start = Clock::now();
    watching.during([&] { run_test(context, sequence, test, tokens); });
    const auto taken = std::chrono::nanoseconds(Clock::now() - start).count();
    test.samples.push_back(std::max<std::int64_t>(taken, 1));
  }
  test.report = report.text();
}

std::vector<BenchTest> tests_of(const BenchArguments& arguments, std::int64_t n_ctx_train) {
  const std::int64_t n_prompt =
      arguments.prompt_tokens.value_or(std::min(kDefaultPrompt, n_ctx_train));
  for (const auto& [option, count] :
       {std::pair{"-p", n_prompt}, std::pair{"-n", arguments.generated_tokens}}) {
    require(count <= n_ctx_train, ErrorCode::invalid_argument,
            "{} {}: the model has a context of {} tokens", option, count, n_ctx_train);
  }
  std::vector<BenchTest> tests;
  if (n_prompt > 0) tests.push_back({.n_prompt = n_prompt});
  if (arguments.generated_tokens > 0) tests.push_back({.n_gen = arguments.generated_tokens});
  if (tests.empty()) throw UsageError("-p 0 and -n 0 leave nothing to measure");
  return tests;
}

}  // namespace

int bench(const BenchArguments& arguments) {
  Progress progress;
  progress.show("opening the model");
  const std::shared_ptr<const llm::Model> model = open_model(arguments.model.path);
  show_packing(*model, progress);
  std::vector<BenchTest> tests = tests_of(arguments, model->config().n_ctx_train);
  llm::ContextOptions options = context_options(arguments.model);
  for (const BenchTest& test : tests) {
    options.n_ctx = std::max({options.n_ctx, test.n_prompt, test.n_gen});
  }
  llm::Context context(model, options);
  const llm::SequenceId sequence = context.create();
  Watching watching(context.options(), arguments.observe);
  for (BenchTest& test : tests) {
    measure(context, sequence, test, arguments.repetitions, watching, progress);
  }
  progress.clear();
  for (const BenchTest& test : tests) {
    if (!arguments.report) continue;
    fmt::print(stderr, "{}, {} times\n{}{}\n", test_name(test), arguments.repetitions, test.report,
               splits_of_step(context, test.n_gen > 0 ? 1 : test.n_prompt));
  }
  watching.finish();
  print(arguments.json ? bench_json(context, tests) : bench_table(context, tests));
  return kOk;
}

}  // namespace heddle::cli

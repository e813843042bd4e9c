// heddle run: a prompt, and what the model makes of it.
#include <unistd.h>

#include <utility>

#include "base/check.h"
#include "base/system.h"
#include "cli/commands.h"
#include "cli/device_report.h"
#include "cli/generation.h"
#include "cli/interrupt.h"
#include "cli/model.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace heddle::cli {

namespace {

/// Standard input, without the newline that `echo` and editors put at its end.
std::string prompt_from_input() {
  if (isatty(STDIN_FILENO) == 1) fmt::print(stderr, "prompt (end with Ctrl-D):\n");
  std::string prompt = read_input();
  if (prompt.ends_with('\n')) prompt.pop_back();
  return prompt;
}

std::string prompt_of(const RunArguments& arguments) {
  const std::optional<std::string>& given = arguments.prompt;
  return given && *given != "-" ? *given : prompt_from_input();
}

void print_figures(const llm::Context& context, const llm::GenerateResult& result) {
  const llm::Context::MemoryUse memory = context.memory();
  fmt::print(stderr,
             "prompt {} tokens, {:.1f} tokens/s; generated {} tokens, {:.1f} tokens/s; memory: "
             "weights {}, KV {}, arenas {}, peak {}\n",
             result.prompt_tokens, tokens_per_second(result.prompt_tokens, result.prompt_seconds),
             result.generated_tokens,
             tokens_per_second(result.generated_tokens, result.generate_seconds),
             bytes_text(memory.weights), bytes_text(memory.kv), bytes_text(memory.arenas),
             bytes_text(peak_memory()));
}

/// Standard output: the prompt, if it is echoed, once it has been read, and then the text.
class Story {
 public:
  Story(std::string prompt, Progress& progress)
      : unprinted_(std::move(prompt)), progress_(progress) {}

  void add(std::string_view text) {
    progress_.clear();
    write(std::exchange(unprinted_, {}));
    write(text);
  }
  void end() {
    add("");
    if (last_ != '\n') print_now("\n");
  }

 private:
  void write(std::string_view text) {
    if (text.empty()) return;
    print_now(text);
    last_ = text.back();
  }

  std::string unprinted_;
  Progress& progress_;
  char last_ = '\n';
};

llm::GenerateOptions with_seed(const RunArguments& arguments) {
  llm::GenerateOptions options = arguments.generate;
  options.sampler.seed = arguments.seed ? *arguments.seed : random_seed();
  if (options.sampler.temperature > 0) fmt::print(stderr, "seed {}\n", options.sampler.seed);
  return options;
}

std::shared_ptr<const Grammar> grammar_of(const RunArguments& arguments) {
  if (!arguments.grammar_file.empty()) return Grammar::from_gbnf(read_file(arguments.grammar_file));
  if (!arguments.json_schema_file.empty())
    return Grammar::from_json_schema(read_file(arguments.json_schema_file));
  return nullptr;
}

}  // namespace

int run(const RunArguments& arguments) {
  const std::shared_ptr<const Grammar> grammar = grammar_of(arguments);
  const std::string prompt = prompt_of(arguments);
  Progress progress;
  progress.show("opening the model");
  const std::shared_ptr<const llm::Model> model = open_model(arguments.model.path);
  show_packing(*model, progress);
  llm::Context context(model, context_options(arguments.model));
  const std::vector<TokenId> tokens =
      model->tokenizer().encode(prompt, {.parse_special = arguments.parse_special});
  const llm::SequenceId sequence = context.create();
  warm_up(context, sequence, tokens);

  progress.clear();
  const DeviceReport report(context);
  llm::GenerateOptions options = with_seed(arguments);
  options.grammar = grammar;
  const InterruptScope interrupt;
  options.progress = [&](std::int64_t done, std::int64_t all) {
    progress.show(fmt::format("prompt: {} of {} tokens", done, all));
    return !interrupt.interrupted();
  };
  Story story(arguments.echo ? prompt : "", progress);
  llm::GenerateResult result;
  Watching watching(context.options(), arguments.observe);
  watching.during([&] {
    result = llm::generate(context, sequence, tokens, options, [&](std::string_view text) {
      story.add(text);
      return !interrupt.interrupted();
    });
    story.end();
  });
  if (result.reason == llm::StopReason::context_full) {
    fmt::print(stderr, "the context of {} tokens is full (-c)\n", context.options().n_ctx);
  }
  print_figures(context, result);
  watching.finish();
  if (arguments.report) {
    fmt::print(stderr, "{}{}{}", report.text(),
               splits_of_step(context, std::max<std::int64_t>(result.prompt_tokens, 1)),
               result.generated_tokens > 1 ? splits_of_step(context, 1) : "");
  }
  return result.reason == llm::StopReason::cancelled ? kInterrupted : kOk;
}

}  // namespace heddle::cli

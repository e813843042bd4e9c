#include "cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "cli/commands.h"
#include "cli/output.h"

namespace heddle::cli {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

/// The parser, and what the command that it comes upon is to do.
struct Program {
  CLI::App app{"heddle: language models and tensor programs, on whatever this machine has",
               "heddle"};
  std::function<int()> action;

  /// A command whose arguments outlive this parser.
  template <class Arguments>
  std::pair<CLI::App*, std::shared_ptr<Arguments>> add(const char* name, const char* description,
                                                       int (*command)(const Arguments&)) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* sub = app.add_subcommand(name, description);
    sub->callback([this, arguments, command] {
      action = [arguments, command] { return command(*arguments); };
    });
    return {sub, arguments};
  }

  void add(const char* name, const char* description, int (*command)()) {
    app.add_subcommand(name, description)->callback([this, command] { action = command; });
  }
};

void add_model(CLI::App& app, std::string& path) {
  app.add_option("MODEL", path, "A GGUF file; without it, the model that is built in");
}

/// Refuses what is no number of type T, or not within [least, most], in plain words.
template <class T>
CLI::Validator within(T least, T most, const std::string& wanted) {
  const auto check = [least, most, wanted](const std::string& text) {
    T value{};
    const bool sound = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    return sound ? std::string() : fmt::format("'{}' is not {}", text, wanted);
  };
  return {check, ""};
}

CLI::Validator whole(std::int64_t least, std::int64_t most = kMost) {
  return within(least, most, fmt::format("a whole number from {} to {}", least, most));
}
/// CLI11 would take -1 for the largest there is, and cut what is larger.
CLI::Validator seed() {
  const auto check = [](const std::string& text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    const bool sound = error == std::errc() && stopped == end;
    return sound ? std::string() : fmt::format("'{}' is not a whole number below 2^64", text);
  };
  return {check, ""};
}
CLI::Validator fraction() {
  return within(0.0f, 1.0f, "a number from 0 to 1");
}
CLI::Validator not_negative() {
  return within(0.0f, std::numeric_limits<float>::max(), "a number, 0 or more");
}
CLI::Validator positive() {
  return within(std::numeric_limits<float>::min(), std::numeric_limits<float>::max(),
                "a number above 0");
}

void add_devices(CLI::App& app, ModelArguments& model) {
  app.add_option(
         "--device", model.devices,
         "Devices for the model, with commas between them, such as vulkan:0 (heddle devices "
         "lists them). Several take a run of layers each, in proportion to their memory; "
         "the first has the embedding too, the last the output. Short: -dev")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option(
         "--gpu-layers,--n-gpu-layers", model.context.gpu_layers,
         "Only the first N layers on the devices, or on the first GPU if none is named; the "
         "CPU runs the embedding, the other layers and the output. More than the model has: "
         "all of it, embedding and output too. Short: -ngl")
      ->check(whole(0));
}

void add_report(CLI::App& app, bool& report) {
  app.add_flag("--report", report,
               "Say on standard error what the devices did: dispatches by kernel, submissions, "
               "recordings, barriers, copies, ops that ran on the CPU instead, and the splits of a "
               "step");
}

void add_context(CLI::App& app, ModelArguments& model) {
  llm::ContextOptions& context = model.context;
  add_model(app, model.path);
  app.add_option("-c,--ctx-size", context.n_ctx,
                 "Positions of context; 0: the model's, or 4096 or less if memory is short")
      ->check(whole(0));
  app.add_option("-t,--threads", context.threads,
                 "Threads; 0: HEDDLE_THREADS, or all processors this process may use")
      ->check(whole(0, 1024));
  app.add_option_function<std::string>(
         "--kv-type",
         [&context](const std::string& name) { context.kv_type = *dtype_from_name(name); },
         "What keys and values are kept as: f32, f16 (the default) or q8_0")
      ->check(CLI::IsMember({"f32", "f16", "q8_0"}));
  app.add_option("--chunk", context.chunk, "Tokens of a prompt computed at once")
      ->capture_default_str()
      ->check(whole(1));
  add_devices(app, model);
  app.add_flag("--lazy", context.lazy, "Run the model's array code node by node, without plans");
}

void add_sampling(CLI::App& app, llm::SamplerOptions& sampler) {
  app.add_option("--temp", sampler.temperature, "Temperature; 0: always the likeliest token")
      ->capture_default_str()
      ->check(not_negative());
  app.add_option("--top-k", sampler.top_k, "Choose from the K likeliest tokens; 0: all")
      ->capture_default_str()
      ->check(whole(0));
  app.add_option("--top-p", sampler.top_p, "Of those, the likeliest that make up this probability")
      ->capture_default_str()
      ->check(fraction());
  app.add_option("--min-p", sampler.min_p, "And those at least this likely, against the likeliest")
      ->capture_default_str()
      ->check(fraction());
  app.add_option("--repeat-penalty", sampler.repeat_penalty,
                 "Above 1: makes recent tokens less likely")
      ->capture_default_str()
      ->check(positive());
  app.add_option("--repeat-last-n", sampler.repeat_last_n, "How many tokens are recent")
      ->capture_default_str()
      ->check(whole(0));
}

template <class Seed>
void add_seed(CLI::App& app, Seed& value) {
  app.add_option("--seed", value, "Seed of the choices; random if not given")->check(seed());
}

void add_limits(CLI::App& app, std::int64_t& max_tokens, std::vector<std::string>& stop) {
  app.add_option("-n,--n-predict", max_tokens, "Tokens to generate at most; -1: until the end")
      ->capture_default_str()
      ->check(whole(-1));
  app.add_option("--stop", stop, "Stop before this text; may be given more than once")
      ->allow_extra_args(false);
}

void add_run(Program& program) {
  auto [app, arguments] = program.add("run", "Continue a prompt", run);
  add_context(*app, arguments->model);
  app->add_option("-p,--prompt", arguments->prompt,
                  "The text to continue; without it, or with -, standard input");
  add_limits(*app, arguments->generate.max_tokens, arguments->generate.stop);
  add_sampling(*app, arguments->generate.sampler);
  add_seed(*app, arguments->seed);
  auto* grammar = app->add_option("--grammar-file", arguments->grammar_file,
                                  "Only texts of the grammar (GBNF) in this file");
  app->add_option("--json-schema,--json-schema-file", arguments->json_schema_file,
                  "Only JSON that is valid under the schema in this file")
      ->excludes(grammar);
  app->add_flag_callback(
      "--no-echo", [a = arguments] { a->echo = false; }, "Leave the prompt out of the output");
  app->add_flag("--parse-special", arguments->parse_special,
                "Let text such as <|im_end|> in the prompt be the token it names");
  add_report(*app, arguments->report);
  add_observe(*app, arguments->observe);
}

/// The options that were given, by the names of settings in a conversation's file.
std::set<std::string> given_settings(const CLI::App& app) {
  std::set<std::string> given;
  for (const CLI::Option* option : app.get_options()) {
    std::string name = option->get_single_name();
    std::ranges::replace(name, '-', '_');
    if (option->count() > 0) given.insert(std::move(name));
  }
  return given;
}

void add_chat(Program& program) {
  auto [app, arguments] = program.add("chat", "Talk with a model, turn by turn", chat);
  add_context(*app, arguments->model);
  ChatSettings& settings = arguments->settings.values;
  auto* system = app->add_option("--system", arguments->system,
                                 "What the model is told before the conversation");
  app->add_option_function<std::string>(
         "--system-file", [a = arguments](const std::string& path) { a->system = read_file(path); },
         "The same, from a file")
      ->excludes(system);
  app->add_option("--chat-template", arguments->template_path,
                  "A file with the chat template (Jinja) to use instead of the model's own");
  app->add_option("--session", arguments->session,
                  "Keep the conversation in this file, whatever happens, and go on with what is "
                  "there; settings given here count more than the file's");
  app->add_flag_callback(
      "--no-history", [a = arguments] { a->keeps_history = false; },
      "Keep no history of what is typed");
  add_limits(*app, settings.max_tokens, settings.stop);
  add_sampling(*app, settings.sampler);
  add_seed(*app, settings.sampler.seed);
  app->parse_complete_callback(
      [app = app, a = arguments] { a->settings.given = given_settings(*app); });
  app->footer(
      "Standard input that is no terminal has a message a line. /help lists what can be "
      "typed.");
  add_observe(*app, arguments->observe);
}

void add_info(Program& program) {
  auto [app, arguments] = program.add("info", "Show what a model file holds", info);
  add_model(*app, arguments->path);
  app->add_flag("--json", arguments->json, "As JSON, arrays whole");
}

void add_plan(Program& program) {
  auto [app, arguments] = program.add("plan", "Show what runs where, and in what memory", plan);
  add_context(*app, arguments->model);
  app->add_option("--tokens", arguments->tokens, "Tokens that the planned step takes")
      ->capture_default_str()
      ->check(whole(1));
  auto* json = app->add_flag("--json", arguments->json, "As JSON");
  app->add_flag("--dot", arguments->dot, "As a graph for dot")->excludes(json);
  app->add_flag("--verify", arguments->verify, "Check the plan first");
}

void add_bench(Program& program) {
  auto [app, arguments] = program.add("bench", "Measure tokens a second", bench);
  add_context(*app, arguments->model);
  app->add_option("-p,--n-prompt", arguments->prompt_tokens,
                  "Tokens of the prompt; 0: no such test [512, or the model's context]")
      ->check(whole(0));
  app->add_option("-n,--n-gen", arguments->generated_tokens,
                  "Tokens generated one by one; 0: no such test")
      ->capture_default_str()
      ->check(whole(0));
  app->add_option("-r,--repetitions", arguments->repetitions, "Measurements of each")
      ->capture_default_str()
      ->check(whole(1));
  app->add_flag("--json", arguments->json, "As JSON, with llama-bench's names");
  add_report(*app, arguments->report);
  add_observe(*app, arguments->observe);
}

void add_devices_list(Program& program) {
  auto [app, arguments] = program.add("devices", "List what there is to run on", devices_list);
  app->add_flag("--json", arguments->json, "As JSON");
}

void add_tokenize(Program& program) {
  auto [app, arguments] =
      program.add("tokenize", "Turn text from standard input into token ids", tokenize);
  add_model(*app, arguments->path);
  app->add_flag_callback(
      "--no-bos", [a = arguments] { a->encode.add_special = false; },
      "Add no beginning and end tokens");
  app->add_flag("--parse-special", arguments->encode.parse_special,
                "Let text such as <|im_end|> be the token it names");
}

void add_template(Program& program) {
  auto [app, arguments] =
      program.add("template", "Render a chat template with the JSON context on standard input",
                  render_template);
  app->add_option("FILE", arguments->path, "The template (Jinja)")->required();
  const auto check = [](const std::string& text) {
    return parse_time(text) ? std::string()
                            : fmt::format("'{}' is no time such as 2026-03-14T15:09:26", text);
  };
  app->add_option("--now", arguments->now, "What strftime_now tells; without it, the local time")
      ->check(CLI::Validator(check, ""));
}

void add_logits(Program& program) {
  auto [app, arguments] =
      program.add("logits", "Write the logits of given tokens: float32, one row a token", logits);
  add_context(*app, arguments->model);
  app->add_option("--tokens", arguments->tokens, "Token ids, with commas between them")
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("-o,--output", arguments->output, "The file to write")->required();
  add_observe(*app, arguments->observe);
}

void add_compare(Program& program) {
  auto [app, arguments] =
      program.add("compare", "Say where two dumps, or two devices, part: node by node", compare);
  add_context(*app, arguments->model);
  app->add_option("DUMP", arguments->other,
                  "A second dump (a directory that --dump wrote); MODEL is then the first");
  app->add_option("--tokens", arguments->tokens,
                  "For two devices: the token ids to run, with commas between them")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("-p,--prompt", arguments->prompt, "Or the text")->capture_default_str();
  app->add_option("--filter", arguments->filter,
                  "For two devices: only values whose name this regular expression is found in");
  app->add_option("--atol", arguments->tolerance.absolute,
                  "Values agree if they differ by no more than this")
      ->capture_default_str()
      ->check(not_negative());
  app->add_option("--rtol", arguments->tolerance.relative,
                  "and this times the magnitude of the second")
      ->capture_default_str()
      ->check(not_negative());
}

std::string listed(const std::vector<std::string_view>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

/// A type that weights can have, by its name.
void add_weight_type(CLI::App& app, const char* name, const char* description,
                     std::optional<DType>& type) {
  const auto check = [](const std::string& text) {
    const std::optional<DType> dtype = dtype_from_name(text);
    const bool sound = dtype && (is_block(*dtype) || *dtype == DType::f32 || *dtype == DType::f16 ||
                                 *dtype == DType::bf16);
    return sound ? std::string() : fmt::format("'{}' is no type such as f16, q8_0 or q6_K", text);
  };
  app.add_option_function<std::string>(
         name, [&type](const std::string& text) { type = dtype_from_name(text); }, description)
      ->check(CLI::Validator(check, ""));
}

void add_model_file(CLI::App& app, llm::ModelFileOptions& options) {
  app.add_option("-t,--threads", options.threads,
                 "Threads; 0: HEDDLE_THREADS, or all processors this process may use")
      ->check(whole(0, 1024));
  app.add_flag("--pure", options.pure, "All matrices in the one format, none in a better one");
  add_weight_type(app, "--output-tensor-type",
                  "What output.weight is to be, or the embedding where it serves as output",
                  options.output_type);
  add_weight_type(app, "--token-embedding-type", "What token_embd.weight is to be",
                  options.embedding_type);
}

void add_synth(Program& program) {
  auto [app, arguments] = program.add(
      "synth", "Write a model of random weights in a real one's shape, to measure with", synth);
  app->add_option("SHAPE", arguments->shape, listed(llm::model_shape_names()))->required();
  app->add_option("TYPE", arguments->type, listed(llm::file_type_names()))->required();
  app->add_option("OUT", arguments->output, "The GGUF file to write")->required();
  app->add_option("--seed", arguments->seed, "The same seed, the same weights")
      ->capture_default_str()
      ->check(seed());
  add_model_file(*app, arguments->options);
}

void add_quantize(Program& program) {
  auto [app, arguments] =
      program.add("quantize", "Write a model file with its weights in another type", quantize);
  app->add_option("IN", arguments->input, "A GGUF file; of a split one, the first part")
      ->required();
  app->add_option("OUT", arguments->output, "The GGUF file to write")->required();
  app->add_option("TYPE", arguments->type, listed(llm::file_type_names()))->required();
  add_model_file(*app, arguments->options);
}

void add_serve_limits(CLI::App& app, ServeArguments& arguments) {
  app.add_option("--parallel", arguments.parallel, "Texts in work at once")
      ->capture_default_str()
      ->check(whole(1, 1024));
  app.add_option("--queue", arguments.queue, "Texts that wait; more are refused with status 429")
      ->capture_default_str()
      ->check(whole(0));
  app.add_option("--kv-size", arguments.kv_size,
                 "Positions of KV memory for all texts; 0: a whole context for each of --parallel")
      ->check(whole(0));
  app.add_option("--max-body", arguments.max_body,
                 "Bytes of a request, as 500k or 8M; larger ones are refused with status 413 [8M]")
      ->transform(CLI::AsSizeValue(false))
      ->check(whole(1));
  app.add_option("--connections", arguments.connections,
                 "Connections at once; more are refused with status 503")
      ->capture_default_str()
      ->check(whole(1, 100'000));
  const auto time = within(0.001, 1e6, "a number of seconds above 0");
  app.add_option("--timeout", arguments.timeout,
                 "Seconds that a client may take to send a request, or to take 64 KiB of a reply")
      ->capture_default_str()
      ->check(time);
  app.add_option("--drain", arguments.drain,
                 "Seconds that replies may still take after SIGTERM or Ctrl-C")
      ->capture_default_str()
      ->check(within(0.0, 1e6, "a number of seconds, 0 or more"));
}

void add_serve(Program& program) {
  auto [app, arguments] =
      program.add("serve", "Serve a model over HTTP, for OpenAI's clients", serve);
  add_context(*app, arguments->model);
  app->add_option("--host", arguments->host, "The address to listen on; 0.0.0.0 for all")
      ->capture_default_str();
  app->add_option("--port", arguments->port, "The port to listen on; 0: one that is free")
      ->capture_default_str()
      ->check(whole(0, 65535));
  app->add_option("--alias", arguments->alias, "What clients call the model [its file's name]");
  app->add_option("--api-key", arguments->api_keys,
                  "A key that clients must send; may be given more than once")
      ->allow_extra_args(false);
  app->add_option("--api-key-file", arguments->api_key_file, "A file with a key on each line");
  app->add_option("--chat-template", arguments->chat_template,
                  "A file with a chat template (Jinja), instead of the model's own");
  add_serve_limits(*app, *arguments);
  add_observe(*app, arguments->observe);
}

/// llama.cpp's short names of several letters, which the parser would read as one letter and its
/// value, spelled out. What follows an option that takes any text is left alone.
std::vector<std::string> spelled_out(int argc, char** argv) {
  static const std::map<std::string, std::string> names{
      {"-ngl", "--gpu-layers"}, {"-dev", "--device"}, {"-np", "--parallel"}};
  static const std::set<std::string> any_text{"-p", "--prompt", "--stop", "--system"};
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const auto name = names.find(argv[i]);
    const bool is_text = !arguments.empty() && any_text.contains(arguments.back());
    arguments.push_back(name == names.end() || is_text ? argv[i] : name->second);
  }
  return arguments;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::vector<std::string> unknown = app.remaining();
  std::string command = "heddle", message = error.what();
  if (!chosen.empty())
    command += " " + chosen.front()->get_name();
  else if (!unknown.empty())
    message = fmt::format("there is no command or option '{}'", unknown.front());
  else
    message = "a command is needed";
  fmt::print(stderr, "heddle: {}\ntry: {} --help\n", message, command);
  return kUsage;
}

}  // namespace

std::function<int()> parse_arguments(int argc, char** argv) {
  Program program;
  program.app.set_version_flag("--version", "heddle " HEDDLE_VERSION);
  program.app.require_subcommand(1);
  add_run(program);
  add_chat(program);
  add_info(program);
  add_plan(program);
  add_bench(program);
  add_tokenize(program);
  add_template(program);
  add_logits(program);
  add_synth(program);
  add_quantize(program);
  add_compare(program);
  add_serve(program);
  program.add("settings", "List what the environment can set, and its values now", settings_list);
  add_devices_list(program);
  try {
    std::vector<std::string> arguments = spelled_out(argc, argv);
    std::ranges::reverse(arguments);  // as the parser takes a vector
    program.app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      const int code = usage_error(program.app, error);
      return [code] { return code; };
    }
    std::ostringstream help;
    program.app.exit(error, help, help);
    print(help.str());
    return [] { return kOk; };
  }
  return program.action;
}

}  // namespace heddle::cli

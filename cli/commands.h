// The program's commands, and what each is given. A command returns an exit code, and throws what
// stops it.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "cli/chat_file.h"
#include "cli/compare_dumps.h"
#include "cli/observe.h"
#include "heddle/llm.h"
#include "heddle/model_file.h"

namespace heddle::cli {

// What scripts can rely on.
inline constexpr int kOk = 0;
inline constexpr int kFailure = 1;        // it could not be done; standard error says why
inline constexpr int kUsage = 2;          // the command line makes no sense
inline constexpr int kDifferent = 3;      // `compare` found a difference
inline constexpr int kInterrupted = 130;  // by Ctrl-C, as shells report it

/// What was asked of the command line makes no sense in a way that only the command can see.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A model and the context to run it in. An empty path is the bundled model.
struct ModelArguments {
  std::string path;
  std::vector<std::string> devices;  // names, as find_device takes them; none: what context says
  llm::ContextOptions context;
};

struct RunArguments {
  ModelArguments model;
  std::optional<std::string> prompt;  // none, or "-": from standard input
  llm::GenerateOptions generate;
  std::string grammar_file, json_schema_file;  // one of them at most
  std::optional<std::uint64_t> seed;
  bool echo = true;
  bool parse_special = false;
  bool report = false;  // of what the devices did, on standard error
  ObserveArguments observe;
};
int run(const RunArguments& arguments);

struct ChatArguments {
  ModelArguments model;
  std::string template_path;  // empty: the model's own
  std::optional<std::string> system;
  std::string session;  // a file; empty: none
  GivenSettings settings;
  bool keeps_history = true;
  ObserveArguments observe;
};
int chat(const ChatArguments& arguments);

struct InfoArguments {
  std::string path;
  bool json = false;
};
int info(const InfoArguments& arguments);

struct PlanArguments {
  ModelArguments model;
  std::int64_t tokens = 1;
  bool dot = false, json = false, verify = false;
};
int plan(const PlanArguments& arguments);

struct BenchArguments {
  ModelArguments model;
  std::optional<std::int64_t> prompt_tokens;  // 0: no such test. Default: 512, or the context
  std::int64_t generated_tokens = 64;         // 0: no such test
  int repetitions = 5;
  bool json = false;
  bool report = false;  // as for run
  ObserveArguments observe;
};
int bench(const BenchArguments& arguments);

struct TokenizeArguments {
  std::string path;
  EncodeOptions encode;
};
int tokenize(const TokenizeArguments& arguments);

struct TemplateArguments {
  std::string path;
  std::string now;  // as parse_time takes it; empty: the local time
};
int render_template(const TemplateArguments& arguments);
/// "2026-03-14T15:09:26"; nothing if the text is no such time.
std::optional<std::tm> parse_time(const std::string& text);

struct LogitsArguments {
  ModelArguments model;
  std::vector<TokenId> tokens;
  std::string output;
  ObserveArguments observe;
};
int logits(const LogitsArguments& arguments);

struct SynthArguments {
  std::string shape, type, output;
  std::uint64_t seed = 1;
  llm::ModelFileOptions options;
};
int synth(const SynthArguments& arguments);

struct QuantizeArguments {
  std::string input, output, type;
  llm::ModelFileOptions options;
};
int quantize(const QuantizeArguments& arguments);

struct ServeArguments {
  ModelArguments model;
  std::string host = "127.0.0.1";
  int port = 8080;    // 0: one that is free
  std::string alias;  // what clients call the model; empty: its file's name
  std::vector<std::string> api_keys;
  std::string api_key_file, chat_template;  // paths; empty: none
  std::int64_t parallel = 8, queue = 64;    // texts in work, and waiting
  std::int64_t kv_size = 0;                 // positions for all of them; 0: the most they can use
  std::size_t max_body = std::size_t{8} << 20;  // bytes
  std::size_t connections = 256;
  double timeout = 60, drain = 30;  // seconds
  ObserveArguments observe;
};
int serve(const ServeArguments& arguments);

struct CompareArguments {
  ModelArguments model;  // its path is the first dump if there is a second, `other`
  std::string other;
  std::vector<TokenId> tokens;  // none: those of the prompt
  std::string prompt = "Once upon a time";
  std::string filter;
  Tolerance tolerance;
};
int compare(const CompareArguments& arguments);

int settings_list();

struct DevicesArguments {
  bool json = false;
};
int devices_list(const DevicesArguments& arguments);

}  // namespace heddle::cli

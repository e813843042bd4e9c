// The program's commands, and what each is given. A command returns an exit code, and throws what
// stops it.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "heddle/llm.h"

namespace heddle::cli {

// What scripts can rely on.
inline constexpr int kOk = 0;
inline constexpr int kFailure = 1;        // it could not be done; standard error says why
inline constexpr int kUsage = 2;          // the command line makes no sense
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
};
int run(const RunArguments& arguments);

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
};
int logits(const LogitsArguments& arguments);

int settings_list();

struct DevicesArguments {
  bool json = false;
};
int devices_list(const DevicesArguments& arguments);

}  // namespace heddle::cli

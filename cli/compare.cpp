// heddle compare: where two dumps, or two devices, part.
#include <cstdlib>

#include "base/check.h"
#include "cli/commands.h"
#include "cli/model.h"
#include "cli/output.h"
#include "io/value_dump.h"

namespace heddle::cli {

namespace {

namespace fs = std::filesystem;

/// A new directory that goes with this.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = (fs::temp_directory_path() / "heddle-compare-XXXXXX").string();
    require(mkdtemp(path.data()) != nullptr, ErrorCode::io, "{}: cannot make a directory", path);
    path_ = path;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const fs::path& path() const noexcept { return path_; }

 private:
  fs::path path_;
};

std::vector<TokenId> tokens_of(const CompareArguments& arguments, const llm::Model& model) {
  std::vector<TokenId> tokens = arguments.tokens;
  if (tokens.empty()) tokens = model.tokenizer().encode(arguments.prompt);
  require(!tokens.empty(), ErrorCode::invalid_argument,
          "there are no tokens to run: give --tokens");
  return tokens;
}

/// What the model makes of the tokens on one device.
void dump(const CompareArguments& arguments, const std::shared_ptr<const llm::Model>& model,
          const std::string& device, const fs::path& directory) {
  ModelArguments only = arguments.model;
  only.devices = {device};
  const std::vector<TokenId> tokens = tokens_of(arguments, *model);
  llm::Context context(model, context_options(only));
  const llm::SequenceId sequence = context.create();
  const auto values = std::make_shared<ValueDump>(ValueDump::Options{
      .directory = directory, .filter = arguments.filter, .runs = tokens.size()});
  const ObserveScope scope(values);
  context.step(sequence, tokens, true);
  if (const auto error = scope.error()) throw Error(*error);
  values->finish();
}

Comparison of_devices(const CompareArguments& arguments) {
  const std::vector<std::string>& devices = arguments.model.devices;
  if (devices.size() != 2) {
    throw UsageError("compare takes two dumps, or --device twice: " +
                     std::to_string(devices.size()) + " devices are given");
  }
  const std::shared_ptr<const llm::Model> model = open_model(arguments.model.path);
  const TemporaryDirectory a, b;
  dump(arguments, model, devices[0], a.path());
  dump(arguments, model, devices[1], b.path());
  print(fmt::format("A: {}, B: {}\n", devices[0], devices[1]));
  return compare_dumps(a.path(), b.path(), arguments.tolerance);
}

Comparison of_dumps(const CompareArguments& arguments) {
  if (!arguments.model.devices.empty()) {
    throw UsageError("compare takes two dumps, or --device twice, not both");
  }
  print(fmt::format("A: {}, B: {}\n", arguments.model.path, arguments.other));
  return compare_dumps(arguments.model.path, arguments.other, arguments.tolerance);
}

}  // namespace

int compare(const CompareArguments& arguments) {
  const Comparison comparison =
      arguments.other.empty() ? of_devices(arguments) : of_dumps(arguments);
  print(to_text(comparison, arguments.tolerance));
  return comparison.agree() ? kOk : kDifferent;
}

}  // namespace heddle::cli

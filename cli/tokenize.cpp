// heddle tokenize: text from standard input as token ids.
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/model.h"
#include "cli/output.h"

namespace heddle::cli {

int tokenize(const TokenizeArguments& arguments) {
  const Tokenizer tokenizer(open_file(arguments.path).metadata());
  const std::vector<TokenId> ids = tokenizer.encode(read_input(), arguments.encode);
  print(fmt::format("{}\n", fmt::join(ids, " ")));
  return kOk;
}

}  // namespace heddle::cli

// heddle quantize: a model file with its weights in another type.
#include "cli/commands.h"
#include "cli/model_file.h"

namespace heddle::cli {

int quantize(const QuantizeArguments& arguments) {
  return make_model_file(
      arguments.options, arguments.output, [&](const llm::ModelFileOptions& options) {
        return llm::quantize_model(arguments.input, arguments.output, arguments.type, options);
      });
}

}  // namespace heddle::cli

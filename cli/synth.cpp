// heddle synth: a model of random weights in a real one's shape, to measure with.
#include "cli/commands.h"
#include "cli/model_file.h"

namespace heddle::cli {

int synth(const SynthArguments& arguments) {
  return make_model_file(arguments.options, arguments.output,
                         [&](const llm::ModelFileOptions& options) {
                           return llm::synthesize_model(arguments.shape, arguments.type,
                                                        arguments.output, arguments.seed, options);
                         });
}

}  // namespace heddle::cli

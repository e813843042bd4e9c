// heddle logits: what a model makes of given tokens, for comparing with others.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "cli/commands.h"
#include "cli/model.h"
#include "cli/progress.h"
#include "io/atomic_file.h"

namespace heddle::cli {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

int logits(const LogitsArguments& arguments) {
  Progress progress;
  progress.show("opening the model");
  const std::shared_ptr<const llm::Model> model = open_model(arguments.model.path);
  show_packing(*model, progress);
  const std::size_t count = arguments.tokens.size();
  require(count <= static_cast<std::size_t>(model->config().n_ctx_train),
          ErrorCode::invalid_argument, "--tokens: {} ids; the model has a context of {} tokens",
          count, model->config().n_ctx_train);
  llm::ContextOptions options = context_options(arguments.model);
  options.n_ctx = std::max(options.n_ctx, static_cast<std::int64_t>(count));
  llm::Context context(model, options);
  const llm::SequenceId sequence = context.create();

  AtomicFile file(arguments.output);
  const auto chunk = static_cast<std::size_t>(context.options().chunk);
  Watching watching(context.options(), arguments.observe);
  watching.during([&] {
    // Chunk by chunk, so that no more than a chunk's rows are ever in memory.
    for (std::size_t done = 0; done < count; done += chunk) {
      progress.show(fmt::format("{} of {} tokens", done, count));
      const auto part = std::span(arguments.tokens).subspan(done, std::min(chunk, count - done));
      file.write(std::as_bytes(std::span<const float>(context.step(sequence, part, true))));
    }
  });
  file.commit();
  watching.finish();
  return kOk;
}

}  // namespace heddle::cli

// heddle plan: what will run where, and in what memory.
#include "exec/plan.h"
#include "base/check.h"
#include "cli/commands.h"
#include "cli/device_report.h"
#include "cli/model.h"
#include "cli/output.h"

namespace heddle::cli {

namespace {

std::string heading(const llm::Context& context, std::int64_t tokens) {
  const llm::ContextOptions& options = context.options();
  return fmt::format("{}: steps of {} tokens, {} positions of context, KV in {}\n{}",
                     context.model().file().name(), tokens, options.n_ctx,
                     to_string(options.kv_type), precision_text(context));
}

}  // namespace

int plan(const PlanArguments& arguments) {
  require(arguments.tokens <= arguments.model.context.chunk, ErrorCode::invalid_argument,
          "--tokens {}: a step takes no more than --chunk, which is {}", arguments.tokens,
          arguments.model.context.chunk);
  llm::Context context(open_model(arguments.model.path), context_options(arguments.model));
  const Plan& plan = context.plan_for(arguments.tokens);
  if (arguments.verify) {
    verify(plan);
    fmt::print(stderr, "the plan is verified\n");
  }
  if (!arguments.json && !arguments.dot) print(heading(context, arguments.tokens));
  const std::string text = arguments.json  ? to_json(plan)
                           : arguments.dot ? to_dot(plan)
                                           : to_text(plan);
  print(text);
  if (!text.ends_with('\n')) print("\n");
  return kOk;
}

}  // namespace heddle::cli

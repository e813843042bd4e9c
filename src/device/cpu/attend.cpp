// Attend: a batch of tokens over KV states that are addressed through block tables.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/cpu/attend_share.h"
#include "device/cpu/attention_core.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/quant.h"

namespace heddle::cpu {

namespace {

// Batches of up to this many tokens may share out a long context's splits among threads; more
// tokens keep the threads busy anyway, and their splits' sums would want much memory.
constexpr std::int64_t kFewTokens = 8;
// A row's sums over a split in the workspace: maximum and sum in a panel of their own, then output.
constexpr std::int64_t kSlotHeader = kPanel;
// Two blocks of keys and values, one in use and one being fetched, should fit in a core's second
// level of cache and leave room.
constexpr std::int64_t kBlockBytes = std::int64_t{256} << 10;

/// Tokens [first, first + count) of one sequence, at consecutive positions, and how their work is
/// shared out.
struct TokenRun {
  std::int32_t first, count;
  Share share;
  std::int64_t first_split = 0, first_task = 0;
};

struct AttendPlan {
  Attend op;
  std::int64_t tokens, heads, kv_heads, features;
  std::int64_t sequences, table_width;
  std::size_t kv_head_bytes[2];  // one head of one row of k, of v
  DecodeRow decode[2];
  const HeadLoops* head_loops[2];
  const Products* loops;

  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t padded() const { return round_up_to_panel(features); }
  std::int64_t heads_a_task() const { return std::min(group(), most_rows(features, features)); }
  std::int64_t tokens_a_run() const { return most_rows(features, features) / heads_a_task(); }
  std::int64_t positions() const { return table_width * op.block_size; }
  std::int64_t splits() const { return (positions() + kSplit - 1) / kSplit; }
  bool shares_splits() const { return tokens <= kFewTokens && splits() > 1; }
  std::int64_t most_kv_heads_a_task(std::int64_t tokens_of_run) const {
    if (group() > heads_a_task()) return 1;
    const auto bytes = static_cast<std::int64_t>(kv_head_bytes[0] + kv_head_bytes[1]);
    const std::int64_t room = most_rows(features, features) / (group() * tokens_of_run);
    const std::int64_t near = kBlockBytes / (bytes * position_block(features, features));
    return std::clamp<std::int64_t>(std::min(room, near), 1, kv_heads);
  }
  HeadShape shape_of(const TokenRun& run) const {
    return {kv_heads, group(), features, heads_a_task(), most_kv_heads_a_task(run.count)};
  }
  std::size_t run_bytes() const {
    return (static_cast<std::size_t>(tokens) * sizeof(TokenRun) + 63) / 64 * 64;
  }
  std::size_t slot_floats() const { return static_cast<std::size_t>(kSlotHeader + padded()); }
  std::size_t workspace_bytes() const {
    if (!shares_splits()) return run_bytes();
    return run_bytes() +
           static_cast<std::size_t>(tokens * heads * splits()) * slot_floats() * sizeof(float);
  }
};

enum Input : std::size_t { kQuery, kKeys, kValues, kTable, kSequence, kPosition, kLength };

class AttendRun {
 public:
  AttendRun(const AttendPlan& plan, const Launch& launch)
      : plan_(plan),
        launch_(launch),
        table_(launch.inputs[kTable].as<std::int32_t>()),
        sequence_(launch.inputs[kSequence].as<std::int32_t>()),
        position_(launch.inputs[kPosition].as<std::int32_t>()),
        length_(launch.inputs[kLength].as<std::int32_t>()),
        runs_(reinterpret_cast<TokenRun*>(launch.workspace)),
        slots_(reinterpret_cast<float*>(launch.workspace + plan.run_bytes())) {}

  void run() {
    find_runs();
    if (run_count_ == 0) return;
    const std::int64_t tasks = share_out();
    parallel(launch_.team, tasks, grain(tasks), [this](std::int64_t begin, std::int64_t end) {
      AttentionScratch scratch;
      for (std::int64_t task = begin; task < end; ++task) {
        run_task(task, scratch, {task > begin, task + 1 < end});
      }
    });
    join_splits();
  }

 private:
  Visible seen_by(std::int64_t token) const;
  Visible seen_by(const TokenRun& run) const;
  void check_token(std::int64_t token) const;
  void check_blocks(const TokenRun& run) const;
  std::int64_t state_rows() const;
  bool continues_run(std::int64_t token) const;
  void find_runs();

  std::int64_t share_out();
  std::int64_t grain(std::int64_t tasks) const;

  /// What a task computes: of each token of `run`, `heads` heads from `first_head` on for each of
  /// `kv_heads` heads of keys and values; over one split, or over all if that is negative.
  struct Task {
    TokenRun run;
    std::int64_t kv_head, kv_heads, first_head, heads, split;
    std::int64_t rows() const { return run.count * heads * kv_heads; }
  };
  Task task_at(std::int64_t index) const;
  HeadSource source(std::size_t which, const Task& task) const;
  AttentionRows rows_of(const Task& task, AttentionScratch& scratch) const;
  std::int64_t row_at(const Task& task, std::int64_t row) const;  // token * heads + head
  float* output(std::int64_t row) const {
    return launch_.outputs[0].as<float>() + row * plan_.features;
  }
  RowSums slot(std::int64_t row, std::int64_t split) const {
    float* at =
        slots_ + static_cast<std::size_t>(row * plan_.splits() + split) * plan_.slot_floats();
    return {at, at + 1, at + kSlotHeader};
  }

  void run_task(std::int64_t index, AttentionScratch& scratch, NearSplits near) const;
  void run_split(const Task& task, const AttentionRows& rows, AttentionScratch& scratch,
                 NearSplits near) const;
  void join_splits() const;
  void join_splits(const TokenRun& run, std::int64_t row) const;

  const AttendPlan& plan_;
  const Launch& launch_;
  const std::int32_t *table_, *sequence_, *position_, *length_;
  TokenRun* runs_;
  float* slots_;
  std::int64_t run_count_ = 0;
};

// ---- What each token sees, checked

Visible AttendRun::seen_by(std::int64_t token) const {
  const std::int64_t position = position_[token];
  Visible seen{0, std::min<std::int64_t>(length_[sequence_[token]], position + 1)};
  if (plan_.op.window > 0) seen.begin = std::max<std::int64_t>(0, position + 1 - plan_.op.window);
  return seen.begin < seen.end ? seen : Visible{};
}

Visible AttendRun::seen_by(const TokenRun& run) const {
  Visible all{plan_.positions(), 0};
  for (std::int64_t t = run.first; t < run.first + run.count; ++t) {
    const Visible seen = seen_by(t);
    if (seen.begin >= seen.end) continue;
    all.begin = std::min(all.begin, seen.begin);
    all.end = std::max(all.end, seen.end);
  }
  return all.begin < all.end ? all : Visible{};
}

void AttendRun::check_token(std::int64_t token) const {
  const std::int64_t sequence = sequence_[token], position = position_[token];
  require(sequence < plan_.sequences, ErrorCode::invalid_argument,
          "attend: token {} has sequence {}, the block table has {}", token, sequence,
          plan_.sequences);
  require(position >= 0 && position < plan_.positions(), ErrorCode::invalid_argument,
          "attend: token {} has position {}, outside the block table's {}", token, position,
          plan_.positions());
  const std::int64_t length = length_[sequence];
  require(length >= 0 && length <= plan_.positions(), ErrorCode::invalid_argument,
          "attend: token {}'s sequence {} has length {}, outside the block table's {}", token,
          sequence, length, plan_.positions());
}

std::int64_t AttendRun::state_rows() const {
  std::size_t rows = ~std::size_t{0};
  for (const std::size_t i : {0, 1}) {
    const std::size_t row_bytes = plan_.kv_head_bytes[i] * static_cast<std::size_t>(plan_.kv_heads);
    rows = std::min(rows, launch_.inputs[kKeys + i].bytes / std::max<std::size_t>(1, row_bytes));
  }
  return static_cast<std::int64_t>(rows);
}

void AttendRun::check_blocks(const TokenRun& run) const {
  const Visible all = seen_by(run);
  const std::int64_t size = plan_.op.block_size, rows = state_rows();
  const std::int32_t* table = table_ + sequence_[run.first] * plan_.table_width;
  for (std::int64_t p = all.begin; p < all.end; p = (p / size + 1) * size) {
    const std::int64_t last = std::min((p / size + 1) * size, all.end) - 1;
    const std::int64_t block = table[p / size];
    require(block >= 0 && block * size + last % size < rows, ErrorCode::invalid_argument,
            "attend: token {} reads position {} from block {} of its sequence {}, outside the "
            "state's {} rows",
            run.first, last, block, sequence_[run.first], rows);
  }
}

bool AttendRun::continues_run(std::int64_t token) const {
  if (run_count_ == 0) return false;
  const TokenRun& run = runs_[run_count_ - 1];
  return run.first + run.count == token && run.count < plan_.tokens_a_run() &&
         sequence_[token - 1] == sequence_[token] && position_[token - 1] + 1 == position_[token];
}

void AttendRun::find_runs() {
  std::int64_t tokens = plan_.tokens;
  if (launch_.extent >= 0) tokens = std::min(tokens, launch_.extent);
  for (std::int64_t t = 0; t < tokens; ++t) {
    require(sequence_[t] >= -1, ErrorCode::invalid_argument,
            "attend: token {} has sequence {}; -1 marks an idle one", t, sequence_[t]);
    if (sequence_[t] < 0) {
      std::fill_n(output(t * plan_.heads), plan_.heads * plan_.features, 0.0f);
      continue;
    }
    check_token(t);
    if (continues_run(t)) {
      ++runs_[run_count_ - 1].count;
    } else {
      runs_[run_count_++] = {.first = static_cast<std::int32_t>(t), .count = 1};
    }
  }
  for (std::int64_t i = 0; i < run_count_; ++i) check_blocks(runs_[i]);
}

// ---- Tasks

/// Cuts the runs' work into tasks, and gives their number.
std::int64_t AttendRun::share_out() {
  std::int64_t tasks = 0;
  for (std::int64_t i = 0; i < run_count_; ++i) {
    TokenRun& run = runs_[i];
    const Visible all = seen_by(run);
    const std::int64_t splits =
        all.end > all.begin ? (all.end - 1) / kSplit - all.begin / kSplit + 1 : 0;
    const HeadShape shape = plan_.shape_of(run);
    run.first_split = all.begin / kSplit;
    run.share = share_of(shape, all.end - all.begin, plan_.shares_splits() ? splits : 1, run_count_,
                         launch_.team.size());
    run.first_task = tasks;
    tasks += run.share.tasks(shape);
  }
  return tasks;
}

/// Tasks that are worth another thread, and not so few that neighbours are often torn apart.
std::int64_t AttendRun::grain(std::int64_t tasks) const {
  const Visible all = seen_by(runs_[0]);
  const Share& share = runs_[0].share;
  const std::int64_t rows = share.heads * share.kv_heads * runs_[0].count;
  const std::int64_t work =
      (all.end - all.begin) * plan_.features * rows / std::max<std::int64_t>(1, share.splits);
  const std::int64_t few = enough_tasks(launch_.team.size());
  return std::max(
      {std::int64_t{1}, kAttendChunkWork / std::max<std::int64_t>(1, work), tasks / few});
}

AttendRun::Task AttendRun::task_at(std::int64_t index) const {
  const TokenRun& run =
      *(std::upper_bound(runs_, runs_ + run_count_, index,
                         [](std::int64_t i, const TokenRun& r) { return i < r.first_task; }) -
        1);
  const Share& share = run.share;
  const std::int64_t parts = std::max<std::int64_t>(1, share.splits);
  const std::int64_t part = (index - run.first_task) % parts;
  const std::int64_t heads = (index - run.first_task) / parts;
  const std::int64_t of_kv_head = share.tasks_a_kv_head(plan_.shape_of(run));
  const std::int64_t kv_head = heads / of_kv_head * share.kv_heads;
  const std::int64_t first = heads % of_kv_head * share.heads;
  return {.run = run,
          .kv_head = kv_head,
          .kv_heads = std::min(share.kv_heads, plan_.kv_heads - kv_head),
          .first_head = kv_head * plan_.group() + first,
          .heads = std::min(share.heads, plan_.group() - first),
          .split = share.splits > 0 ? run.first_split + part : -1};
}

std::int64_t AttendRun::row_at(const Task& task, std::int64_t row) const {
  const std::int64_t of_head = task.run.count * task.heads;
  const std::int64_t token = task.run.first + row % of_head / task.heads;
  return token * plan_.heads + task.first_head + row / of_head * plan_.group() + row % task.heads;
}

HeadSource AttendRun::source(std::size_t which, const Task& task) const {
  const std::size_t head_bytes = plan_.kv_head_bytes[which];
  return {
      .data =
          launch_.inputs[kKeys + which].data + static_cast<std::size_t>(task.kv_head) * head_bytes,
      .row_bytes = static_cast<std::int64_t>(head_bytes) * plan_.kv_heads,
      .head_bytes = static_cast<std::int64_t>(head_bytes),
      .features = plan_.features,
      .decode = plan_.decode[which],
      .loops = plan_.head_loops[which],
      .table = table_ + sequence_[task.run.first] * plan_.table_width,
      .block_size = plan_.op.block_size,
  };
}

AttentionRows AttendRun::rows_of(const Task& task, AttentionScratch& scratch) const {
  AttentionRows rows{.loops = *plan_.loops,
                     .keys = source(0, task),
                     .values = source(1, task),
                     .rows = task.run.count * task.heads,
                     .heads = task.kv_heads};
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    rows.visible[r] = seen_by(task.run.first + r / task.heads);
  }
  const auto* queries = launch_.inputs[kQuery].as<float>();
  for (std::int64_t r = 0; r < task.rows(); ++r) {
    const float* query = queries + row_at(task, r) * plan_.features;
    load_query(scratch, r, plan_.loops->decode[static_cast<int>(Stored::f32)],
               reinterpret_cast<const std::byte*>(query), plan_.features, plan_.op.scale);
  }
  return rows;
}

/// `near`: whether the tasks before and after this one are run just before and after.
void AttendRun::run_task(std::int64_t index, AttentionScratch& scratch, NearSplits near) const {
  const Task task = task_at(index);
  const AttentionRows rows = rows_of(task, scratch);
  if (task.split >= 0) return run_split(task, rows, scratch, near);
  sum_all(rows, scratch);
  for (std::int64_t r = 0; r < task.rows(); ++r) {
    const RowSums sums = row_of(scratch.total, r, plan_.padded());
    finish(sums, plan_.features);
    std::copy_n(sums.output, plan_.features, output(row_at(task, r)));
  }
}

// ---- The same, with a context's splits shared out

void AttendRun::run_split(const Task& task, const AttentionRows& rows, AttentionScratch& scratch,
                          NearSplits near) const {
  near.before = near.before && task.split > task.run.first_split;
  near.after = near.after && task.split + 1 < task.run.first_split + task.run.share.splits;
  sum_split(rows, scratch, task.split * kSplit, near);
  for (std::int64_t r = 0; r < task.rows(); ++r) {
    const RowSums from = row_of(scratch.split, r, plan_.padded());
    const RowSums to = slot(row_at(task, r), task.split);
    *to.maximum = *from.maximum;
    *to.sum = *from.sum;
    std::copy_n(from.output, plan_.padded(), to.output);
  }
}

void AttendRun::join_splits(const TokenRun& run, std::int64_t row) const {
  alignas(64) float values[kMostHead];
  float maximum, sum;
  const RowSums total{&maximum, &sum, values};
  clear(total, plan_.padded());
  for (std::int64_t i = 0; i < run.share.splits; ++i) {
    join(*plan_.loops, total, slot(row, run.first_split + i), plan_.padded());
  }
  finish(total, plan_.features);
  std::copy_n(values, plan_.features, output(row));
}

void AttendRun::join_splits() const {
  for (std::int64_t i = 0; i < run_count_; ++i) {
    const TokenRun& run = runs_[i];
    if (run.share.splits == 0) continue;
    const std::int64_t first = run.first * plan_.heads, rows = run.count * plan_.heads;
    const std::int64_t work = run.share.splits * plan_.padded();
    parallel(launch_.team, rows, std::max<std::int64_t>(1, kAttendChunkWork / work),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t row = begin; row < end; ++row) join_splits(run, first + row);
             });
  }
}

/// The decoder of a state's rows, if there is one.
DecodeRow decoder(const Products& loops, DType dtype) {
  if (dtype == DType::q8_0) return quant_loops(isa()).decode_q8_0;
  const std::optional<Stored> stored = stored_type(dtype);
  return stored ? loops.decode[static_cast<std::size_t>(*stored)] : nullptr;
}

}  // namespace

Prepared prepare_attend(const PrepareArgs& args) {
  for (const OperandSpec& input : args.inputs) {
    if (!is_contiguous(input)) {
      return refuse(fmt::format("attend: operand {} must be contiguous", to_string(input)));
    }
  }
  const Shape& q = args.inputs[kQuery].spec.shape;
  const Shape& table = args.inputs[kTable].spec.shape;
  AttendPlan plan{.op = std::get<Attend>(args.op),
                  .tokens = q[0],
                  .heads = q[1],
                  .kv_heads = args.inputs[kKeys].spec.shape[1],
                  .features = q[2],
                  .sequences = table[0],
                  .table_width = table[1],
                  .loops = &products(isa())};
  if (plan.features > kMostHead) {
    return refuse(
        fmt::format("attend: heads of {} features, at most {}", plan.features, kMostHead));
  }
  for (const std::size_t i : {0, 1}) {
    const DType dtype = args.inputs[kKeys + i].spec.dtype;
    plan.kv_head_bytes[i] = row_bytes(dtype, plan.features);
    plan.decode[i] = decoder(*plan.loops, dtype);
    plan.head_loops[i] = head_loops(isa(), dtype);
    if (!plan.decode[i] || !plan.head_loops[i]) {
      return refuse(fmt::format("attend: states of {} have no kernel", to_string(dtype)));
    }
  }
  if (plan.heads == 0 || plan.kv_heads == 0 || plan.features == 0) {
    return refuse("attend: no heads or no features");
  }
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.workspace_bytes = plan.workspace_bytes();
  traits.honours_extent = true;
  return make_kernel(std::move(traits),
                     [plan](const Launch& launch) { AttendRun(plan, launch).run(); });
}

}  // namespace heddle::cpu

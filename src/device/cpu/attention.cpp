// Attention over dense operands: no scores beyond a block of them are ever held.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/cpu/attention_core.h"
#include "device/cpu/block_io.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "heddle/half.h"

namespace heddle::cpu {

namespace {

/// A [B, H, S, D] operand, whichever order its axes lie in; strides in bytes.
struct HeadsView {
  std::int64_t batch_stride, head_stride, row_stride, head_bytes;
  std::int64_t offset(std::int64_t b, std::int64_t h, std::int64_t s) const {
    return b * batch_stride + h * head_stride + s * row_stride;
  }
};

struct AttentionPlan {
  Attention op;
  std::int64_t batch, heads, kv_heads, queries, positions, features, value_features;
  HeadsView q, k, v, out, mask;
  std::int64_t mask_position_stride = 0;  // bytes
  ApplyMask apply_mask = nullptr;
  std::size_t sinks = 0;  // their operand, or 0
  BlockSource sink_values;
  DecodeRow decode_q, decode_k, decode_v;
  const HeadLoops *loops_k, *loops_v;
  void (*store)(const float* from, std::int64_t count, std::byte* to);
  const Products* loops;

  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t rows_a_task() const { return most_rows(features, value_features); }
  std::int64_t heads_a_task() const { return std::min(group(), rows_a_task()); }
  std::int64_t queries_a_task() const { return rows_a_task() / heads_a_task(); }
  std::int64_t head_tasks() const { return (group() + heads_a_task() - 1) / heads_a_task(); }
  std::int64_t query_tasks() const { return (queries + queries_a_task() - 1) / queries_a_task(); }
  std::int64_t tasks() const { return batch * kv_heads * head_tasks() * query_tasks(); }

  Visible seen_by(std::int64_t query) const {
    if (op.mask != Attention::Mask::causal) return {0, positions};
    const std::int64_t position = positions - queries + query;
    Visible seen{0, position + 1};
    if (op.window > 0) seen.begin = std::max<std::int64_t>(0, position + 1 - op.window);
    return seen.begin < seen.end ? seen : Visible{};
  }
};

void hide_where_false(float* scores, const std::byte* mask, std::int64_t stride, std::int64_t begin,
                      std::int64_t end) {
  for (std::int64_t p = begin; p < end; ++p) {
    if (mask[p * stride] == std::byte{0}) scores[p - begin] = -__builtin_inff();
  }
}

template <class T>
void add_mask(float* scores, const std::byte* mask, std::int64_t stride, std::int64_t begin,
              std::int64_t end) {
  for (std::int64_t p = begin; p < end; ++p) {
    scores[p - begin] += static_cast<float>(*reinterpret_cast<const T*>(mask + p * stride));
  }
}

template <class T>
void store_as(const float* from, std::int64_t count, std::byte* to) {
  std::transform(from, from + count, reinterpret_cast<T*>(to),
                 [](float value) { return static_cast<T>(value); });
}

// ---- One task: some queries of the heads that share a head of keys and values

struct Task {
  std::int64_t batch, kv_head, first_head, heads, first_query, queries;
};

Task task_at(const AttentionPlan& plan, std::int64_t index) {
  const std::int64_t first_query = index % plan.query_tasks() * plan.queries_a_task();
  index /= plan.query_tasks();
  const std::int64_t first_head = index % plan.head_tasks() * plan.heads_a_task();
  index /= plan.head_tasks();
  const std::int64_t kv_head = index % plan.kv_heads;
  return {.batch = index / plan.kv_heads,
          .kv_head = kv_head,
          .first_head = kv_head * plan.group() + first_head,
          .heads = std::min(plan.heads_a_task(), plan.group() - first_head),
          .first_query = first_query,
          .queries = std::min(plan.queries_a_task(), plan.queries - first_query)};
}

void run_task(const AttentionPlan& plan, const Launch& launch, const Task& task,
              AttentionScratch& scratch) {
  AttentionRows rows{
      .loops = *plan.loops,
      .keys = {launch.inputs[1].data + plan.k.offset(task.batch, task.kv_head, 0),
               plan.k.row_stride, plan.k.head_bytes, plan.features, plan.decode_k, plan.loops_k},
      .values = {launch.inputs[2].data + plan.v.offset(task.batch, task.kv_head, 0),
                 plan.v.row_stride, plan.v.head_bytes, plan.value_features, plan.decode_v,
                 plan.loops_v},
      .rows = task.queries * task.heads,
      .apply_mask = plan.apply_mask,
      .mask_stride = plan.mask_position_stride,
  };
  const auto head_of = [&](std::int64_t r) { return task.first_head + r % task.heads; };
  const auto query_of = [&](std::int64_t r) { return task.first_query + r / task.heads; };
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    rows.visible[r] = plan.seen_by(query_of(r));
    load_query(scratch, r, plan.decode_q,
               launch.inputs[0].data + plan.q.offset(task.batch, head_of(r), query_of(r)),
               plan.features, plan.op.scale);
    if (plan.apply_mask) {
      rows.mask[r] = launch.inputs[3].data + plan.mask.offset(task.batch, head_of(r), query_of(r));
    }
  }
  sum_all(rows, scratch);
  const std::int64_t padded = round_up_to_panel(plan.value_features);
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    const RowSums sums = row_of(scratch.total, r, padded);
    if (plan.sinks > 0) {
      BlockBuffer one;
      const float sink =
          *plan.sink_values.floats(launch.inputs[plan.sinks].data, head_of(r), 1, one);
      add_sink(*plan.loops, sums, sink, padded);
    }
    finish(sums, plan.value_features);
    plan.store(sums.output, plan.value_features,
               launch.outputs[0].data + plan.out.offset(task.batch, head_of(r), query_of(r)));
  }
}

void run_attention(const AttentionPlan& plan, const Launch& launch) {
  constexpr std::int64_t kChunkWork = std::int64_t{1} << 16;
  const std::int64_t work = plan.rows_a_task() * plan.positions * plan.features;
  const std::int64_t grain =
      std::max<std::int64_t>(1, kChunkWork / std::max<std::int64_t>(1, work));
  parallel(launch.team, plan.tasks(), grain, [&](std::int64_t begin, std::int64_t end) {
    AttentionScratch scratch;
    for (std::int64_t i = begin; i < end; ++i) {
      run_task(plan, launch, task_at(plan, i), scratch);
    }
  });
}

// ---- Preparing

HeadsView heads_view(const OperandSpec& operand, bool sequence_first) {
  const auto item = static_cast<std::int64_t>(item_size(operand.spec.dtype));
  const Dims& strides = operand.layout.strides;
  return {strides[0] * item, strides[sequence_first ? 2 : 1] * item,
          strides[sequence_first ? 1 : 2] * item, operand.spec.shape[3] * item};
}

std::string operand_problem(const OperandSpec& operand) {
  if (!stored_type(operand.spec.dtype)) {
    return fmt::format("attention: operands of {} have no kernel", to_string(operand.spec.dtype));
  }
  const bool rows_are_dense = operand.layout.kind == LayoutKind::strided &&
                              (operand.spec.shape[3] <= 1 || operand.layout.strides[3] == 1);
  if (!rows_are_dense) {
    return fmt::format("attention: the features of {} must be adjacent", to_string(operand));
  }
  return {};
}

ApplyMask mask_loop(const Attention& op, DType dtype) {
  if (op.mask == Attention::Mask::boolean)
    return dtype == DType::bool_ ? hide_where_false : nullptr;
  switch (dtype) {
    case DType::f32:
      return add_mask<float>;
    case DType::f16:
      return add_mask<f16>;
    case DType::bf16:
      return add_mask<bf16>;
    default:
      return nullptr;
  }
}

/// The mask's strides once it is broadcast to [B, Hq, Sq, Sk].
void set_mask(AttentionPlan& plan, const OperandSpec& mask) {
  const auto item = static_cast<std::int64_t>(item_size(mask.spec.dtype));
  const std::size_t rank = mask.spec.shape.size();
  const auto stride = [&](std::size_t axis) {  // of the four
    const std::size_t missing = 4 - rank;
    if (axis < missing || mask.spec.shape[axis - missing] == 1) return std::int64_t{0};
    return mask.layout.strides[axis - missing] * item;
  };
  plan.mask = {stride(0), stride(1), stride(2), item};
  plan.mask_position_stride = stride(3);
}

decltype(AttentionPlan::store) store_loop(DType dtype) {
  if (dtype == DType::f16) return store_as<f16>;
  if (dtype == DType::bf16) return store_as<bf16>;
  return store_as<float>;
}

AttentionPlan make_plan(const PrepareArgs& args) {
  const Attention& op = std::get<Attention>(args.op);
  const OperandSpec &q = args.inputs[0], &k = args.inputs[1], &v = args.inputs[2];
  const std::size_t head_axis = op.sequence_first ? 2 : 1, row_axis = op.sequence_first ? 1 : 2;
  const Products& loops = products(isa());
  const auto decoder = [&](const OperandSpec& operand) {
    return loops.decode[static_cast<std::size_t>(*stored_type(operand.spec.dtype))];
  };
  return {.op = op,
          .batch = q.spec.shape[0],
          .heads = q.spec.shape[head_axis],
          .kv_heads = k.spec.shape[head_axis],
          .queries = q.spec.shape[row_axis],
          .positions = k.spec.shape[row_axis],
          .features = q.spec.shape[3],
          .value_features = v.spec.shape[3],
          .q = heads_view(q, op.sequence_first),
          .k = heads_view(k, op.sequence_first),
          .v = heads_view(v, op.sequence_first),
          .out = heads_view(args.outputs[0], op.sequence_first),
          .mask = {},
          .sink_values = {},
          .decode_q = decoder(q),
          .decode_k = decoder(k),
          .decode_v = decoder(v),
          .loops_k = head_loops(isa(), k.spec.dtype),
          .loops_v = head_loops(isa(), v.spec.dtype),
          .store = store_loop(args.outputs[0].spec.dtype),
          .loops = &loops};
}

}  // namespace

Prepared prepare_attention(const PrepareArgs& args) {
  for (const OperandSpec& operand : args.inputs.first(3)) {
    if (std::string problem = operand_problem(operand); !problem.empty()) return refuse(problem);
  }
  if (!stored_type(args.outputs[0].spec.dtype)) {
    return refuse(fmt::format("attention: no kernel gives {}", to_string(args.outputs[0])));
  }
  AttentionPlan plan = make_plan(args);
  if (std::max(plan.features, plan.value_features) > kMostHead) {
    return refuse(fmt::format("attention: heads of {} features, at most {}",
                              std::max(plan.features, plan.value_features), kMostHead));
  }
  if (plan.op.has_sinks) {
    plan.sinks = args.inputs.size() - 1;
    const OperandSpec& sinks = args.inputs[plan.sinks];
    if (sinks.layout.kind != LayoutKind::strided || !stored_type(sinks.spec.dtype)) {
      return refuse(fmt::format("attention: no kernel takes {} as sinks", to_string(sinks)));
    }
    plan.sink_values = BlockSource(sinks);
  }
  if (plan.op.mask == Attention::Mask::boolean || plan.op.mask == Attention::Mask::additive) {
    const OperandSpec& mask = args.inputs[3];
    plan.apply_mask = mask_loop(plan.op, mask.spec.dtype);
    if (!plan.apply_mask || mask.layout.kind != LayoutKind::strided) {
      return refuse(fmt::format("attention: no kernel takes {} as a {} mask", to_string(mask),
                                to_string(plan.op.mask)));
    }
    set_mask(plan, mask);
  }
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  if (plan.batch == 0 || plan.kv_heads == 0 || plan.heads == 0) {
    return make_kernel(std::move(traits), [](const Launch&) {});
  }
  return make_kernel(std::move(traits),
                     [plan](const Launch& launch) { run_attention(plan, launch); });
}

}  // namespace heddle::cpu

// Offsets in arenas: sound for any lifetimes, tight for the lifetimes of models.
#include <map>

#include "exec_test_support.h"

namespace heddle::test {
namespace {

std::size_t most_alive(const std::vector<ArenaItem>& items) {
  std::size_t most = 0;
  for (const ArenaItem& at : items) {
    std::size_t alive = 0;
    for (const ArenaItem& item : items) {
      if (item.first <= at.first && at.first <= item.last) alive += item.bytes;
    }
    most = std::max(most, alive);
  }
  return most;
}

void expect_sound(const std::vector<ArenaItem>& items, const ArenaLayout& layout,
                  std::size_t alignment) {
  ASSERT_EQ(layout.offsets.size(), items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(layout.offsets[i] % alignment, 0u);
    EXPECT_LE(layout.offsets[i] + items[i].bytes, layout.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool together = items[i].first <= items[j].last && items[j].first <= items[i].last;
      const bool overlap = layout.offsets[i] < layout.offsets[j] + items[j].bytes &&
                           layout.offsets[j] < layout.offsets[i] + items[i].bytes;
      ASSERT_FALSE(together && overlap) << i << " and " << j;
    }
  }
}

TEST(Arena, RandomLifetimes) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::size_t alignment = std::size_t{1} << (random() % 9);
    std::vector<ArenaItem> items(random() % 60);
    for (ArenaItem& item : items) {
      const std::uint32_t first = random() % 50;
      item = {random() % 3000, first,
              first + static_cast<std::uint32_t>(random() % (1 + random() % 40))};
    }
    const ArenaLayout layout = lay_out(items, alignment);
    expect_sound(items, layout, alignment);
    EXPECT_EQ(layout.lower_bound, most_alive(items));
    EXPECT_GE(layout.bytes, layout.lower_bound);
  }
}

TEST(Arena, NothingAndNoBytes) {
  EXPECT_EQ(lay_out({}, 64).bytes, 0u);
  expect_sound({{0, 0, 3}, {0, 1, 1}}, lay_out({{0, 0, 3}, {0, 1, 1}}, 64), 64);
}

TEST(Arena, ManyItemsInLittleTime) {
  std::vector<ArenaItem> items;
  for (std::uint32_t i = 0; i < 20'000; ++i) items.push_back({64 + 64 * (i % 7), i, i + 1 + i % 3});
  const ArenaLayout layout = lay_out(items, 64);
  EXPECT_LE(static_cast<double>(layout.bytes), 1.5 * static_cast<double>(layout.lower_bound));
}

/// Live bytes as they follow from the plan's own steps, worked out without the planner's lifetimes.
std::size_t live_bytes(const Plan& plan, std::uint32_t arena) {
  struct Life {
    std::size_t bytes;
    std::uint32_t first, last;
  };
  std::map<std::size_t, Life> at;  // by offset
  std::vector<ArenaItem> lives;
  std::uint32_t step = 0;
  for (const Split& split : plan.splits) {
    for (const PlannedStep& planned : split.steps) {
      const auto* launch = std::get_if<PlannedLaunch>(&planned);
      if (!launch) continue;
      for (const Location& input : launch->inputs) {
        const auto found = at.upper_bound(input.offset);
        if (input.slot == arena && found != at.begin()) std::prev(found)->second.last = step;
      }
      if (launch->workspace_bytes > 0) lives.push_back({launch->workspace_bytes, step, step});
      for (const Location& output : launch->outputs) {
        if (output.slot != arena) continue;
        const auto old = at.find(output.offset);
        const bool in_place = old != at.end() && old->second.last == step;
        if (in_place) continue;
        if (old != at.end())
          lives.push_back({old->second.bytes, old->second.first, old->second.last});
        at[output.offset] = {output.bytes, step, step};
      }
      ++step;
    }
  }
  for (const auto& [offset, life] : at) lives.push_back({life.bytes, life.first, life.last});
  return most_alive(lives);
}

/// A decoder of a few layers, as a language model's prompt would run through it.
Graph decoder(std::int64_t tokens, std::int64_t width, std::int64_t hidden, int layers) {
  GraphBuilder builder;
  const Array ids = builder.input("ids", i32({tokens})),
              rows = builder.input("rows", i32({tokens}));
  const Array pos = builder.input("pos", i32({tokens})), seq = builder.input("seq", i32({tokens}));
  const Array table = builder.input("table", i32({1, 8})), len = builder.input("len", i32({1}));
  const std::int64_t heads = 4, head = width / heads;
  Array x = take(builder.parameter("embedding", f32({64, width})), ids, 0);
  for (int l = 0; l < layers; ++l) {
    const auto weight = [&](const char* name, std::int64_t out, std::int64_t in) {
      return builder.parameter(name + std::to_string(l), f32({out, in}));
    };
    Array k = builder.state("k" + std::to_string(l), f32({256, heads, head}));
    Array v = builder.state("v" + std::to_string(l), f32({256, heads, head}));
    const Array n =
        fast::rms_norm(x, builder.parameter("n" + std::to_string(l), f32({width})), 1e-5f);
    const auto qkv = linear(
        n, {weight("q", width, width), weight("wk", width, width), weight("wv", width, width)});
    const auto split_heads = [&](const Array& a) { return reshape(a, {tokens, heads, head}); };
    const RopeAngles angles{.dims = head};
    k = write_rows(std::move(k), rope(split_heads(qkv[1]), pos, angles), rows);
    v = write_rows(std::move(v), split_heads(qkv[2]), rows);
    builder.update("k" + std::to_string(l), k);
    builder.update("v" + std::to_string(l), v);
    const Array seen =
        attend(rope(split_heads(qkv[0]), pos, angles), k, v, table, seq, pos, len, Attend{});
    x = x + linear(reshape(seen, {tokens, width}), weight("o", width, width));
    const Array m =
        fast::rms_norm(x, builder.parameter("m" + std::to_string(l), f32({width})), 1e-5f);
    const auto up = linear(m, {weight("gate", hidden, width), weight("up", hidden, width)});
    x = x + linear(silu(up[0]) * up[1], weight("down", width, hidden));
  }
  builder.output("logits", linear(x, builder.parameter("head", f32({64, width}))));
  return builder.build();
}

TEST(Arena, ModelsWithinTheBound) {
  for (const std::int64_t tokens : {1, 7, 128}) {
    for (const bool fuse : {false, true}) {
      const Plan plan = plan_of(decoder(tokens, 128, 344, 4), {}, fuse);
      verify(plan);
      ASSERT_EQ(plan.arenas.size(), 1u);
      const double bytes = static_cast<double>(plan.arenas[0].bytes);
      EXPECT_LE(bytes, 1.05 * static_cast<double>(plan.arenas[0].lower_bound))
          << tokens << (fuse ? " fused" : "");
      EXPECT_LE(bytes, 1.05 * static_cast<double>(live_bytes(plan, plan.arenas[0].slot)))
          << tokens << (fuse ? " fused" : "");
    }
  }
}

}  // namespace
}  // namespace heddle::test

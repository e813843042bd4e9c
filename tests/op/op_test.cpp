#include "heddle/op.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "op/examples.h"

namespace heddle {
namespace {

TEST(Op, EqualOnesHashTheSameAndOthersDiffer) {
  const std::vector<Example> all = examples();
  const std::vector<Example> again = examples();
  std::set<std::size_t> hashes;
  std::vector<Op> different;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].op, again[i].op);
    EXPECT_EQ(hash(all[i].op), hash(again[i].op));
    if (std::find(different.begin(), different.end(), all[i].op) != different.end()) continue;
    different.push_back(all[i].op);
    hashes.insert(hash(all[i].op));
  }
  EXPECT_EQ(hashes.size(), different.size());
}

TEST(Op, EveryFieldCounts) {
  const Op base = Attention{.mask = Attention::Mask::causal, .scale = 0.5f, .window = 3};
  const Op others[] = {
      Attention{.mask = Attention::Mask::none, .scale = 0.5f, .window = 3},
      Attention{.mask = Attention::Mask::causal, .scale = 0.25f, .window = 3},
      Attention{.mask = Attention::Mask::causal, .scale = 0.5f, .window = 4},
      Attention{
          .mask = Attention::Mask::causal, .scale = 0.5f, .window = 3, .sequence_first = true},
      Attention{.mask = Attention::Mask::causal, .scale = 0.5f, .window = 3, .has_sinks = true},
  };
  for (const Op& other : others) {
    EXPECT_NE(base, other);
    EXPECT_NE(hash(base), hash(other)) << to_string(other);
  }
}

TEST(Op, ZerosOfBothSignsAreEqualAndHashSo) {
  const Op plus = Arange{0.0, 1, 4, DType::f32};
  const Op minus = Arange{-0.0, 1, 4, DType::f32};
  EXPECT_EQ(plus, minus);
  EXPECT_EQ(hash(plus), hash(minus));
}

TEST(Op, ConstantsDifferByTheirData) {
  alignas(std::max_align_t) static std::byte no_device[64];
  const auto buffer = [&] {
    return make_ref<Buffer>(reinterpret_cast<Device&>(no_device), std::size_t{4}, nullptr);
  };
  const TensorSpec spec{DType::f32, {1}};
  const Constant a{spec, buffer()}, b{spec, buffer()};
  EXPECT_EQ(Op(a), Op(a));
  EXPECT_NE(Op(a), Op(b));
  EXPECT_NE(hash(a), hash(b));
}

TEST(Op, PrintsAsItIs) {
  const std::pair<Op, const char*> cases[] = {
      {RmsNorm{1e-5f, true, false}, "rms_norm(eps=1e-05, has_weight=true, has_bias=false)"},
      {Unary{UnaryKind::silu}, "silu"},
      {Binary{BinaryKind::floor_divide}, "floor_divide"},
      {Compare{CompareKind::greater_equal}, "greater_equal"},
      {Select{}, "select"},
      {Contiguous{}, "contiguous"},
      {Reduce{ReduceKind::sum, {0, 2}, true}, "reduce(kind=sum, axes=[0, 2], keepdims=true)"},
      {Parameter{"blk.0", {DType::q4_K, {2, 256}}}, "parameter(name=\"blk.0\", spec=q4_K[2, 256])"},
      {Cast{DType::bf16}, "cast(dtype=bf16)"},
      {Repack{LayoutKind::panel16}, "repack(kind=panel16)"},
      {Feed{Feed::Kind::prefix}, "feed(kind=prefix)"},
      {Reinterpret{DType::u8}, "view(dtype=u8)"},
      {AsStrided{{2}, {-1}, 1}, "as_strided(shape=[2], strides=[-1], offset=1)"},
      {SliceUpdate{{0}, {2}, {1}}, "slice_update(start=[0], stop=[2], step=[1])"},
      {Rope{{.style = RopeStyle::interleaved, .dims = 4}, true},
       "rope(style=interleaved, dims=4, base=10000, scale=1, has_factors=false, has_bias=true)"},
      {Scan{ScanKind::logaddexp, 1, true},
       "scan(kind=logaddexp, axis=1, reverse=true, exclusive=false)"},
      {ScatterAxis{1, ScatterKind::none}, "scatter_axis(axis=1, kind=none)"},
      {Pad{Pad::Mode::edge, {1}, {2}}, "pad(mode=edge, low=[1], high=[2])"},
      {Pool{PoolKind::mean, PoolWindows{{2}, {1}, {0}, {1}}},
       "pool(kind=mean, window=[2], stride=[1], padding_low=[0], padding_high=[1], "
       "count_padding=true)"},
      {Resize{ResizeKind::linear, {3}}, "resize(kind=linear, size=[3], align_corners=false)"},
      {ArgReduce{ArgReduceKind::min, 2}, "arg_reduce(kind=min, axis=2, keepdims=false)"},
      {Attend{.scale = 0.125f}, "attend(scale=0.125, block_size=32, window=0)"},
  };
  for (const auto& [op, text] : cases) EXPECT_EQ(to_string(op), text);
}

TEST(Op, EveryOneHasAnObjectInJson) {
  std::set<std::string> texts;
  for (const Example& example : examples()) {
    const nlohmann::json object = nlohmann::json::parse(to_json(example.op));
    ASSERT_TRUE(object.is_object());
    EXPECT_TRUE(object.at("op").is_string());
  }
  const auto object = nlohmann::json::parse(to_json(Binary{BinaryKind::add}));
  EXPECT_EQ(object, (nlohmann::json{{"op", "binary"}, {"kind", "add"}}));
  EXPECT_EQ(to_json(Input{"x", {DType::f32, {2, 3}}, "n"}),
            R"({"op":"input","name":"x","spec":{"dtype":"f32","shape":[2,3]},"extent":"n"})");
}

TEST(Op, NamesThatAreNotUtf8DoNotStopJson) {
  EXPECT_NO_THROW(nlohmann::json::parse(to_json(Parameter{"\xff\xfe", {DType::f32, {}}})));
}

TEST(Op, LeavesAndViews) {
  int leaves = 0, views = 0;
  std::set<std::size_t> seen;
  for (const Example& example : examples()) {
    if (!seen.insert(example.op.index()).second) continue;
    leaves += is_leaf(example.op);
    views += is_view(example.op);
    EXPECT_FALSE(is_leaf(example.op) && is_view(example.op));
  }
  EXPECT_EQ(leaves, 3);
  EXPECT_TRUE(is_leaf(Constant{}));
  EXPECT_EQ(views, 7);
}

}  // namespace
}  // namespace heddle

// What passes return computes what they were given: random graphs, a transformer block, and very
// long graphs, before and after.
#include <cmath>
#include <numeric>
#include <random>

#include "fake_device.h"
#include "graph/simplify.h"
#include "graph_test_support.h"
#include "support/interpret.h"

namespace heddle::test {
namespace {

constexpr std::int64_t kRows = 4, kHeads = 2, kWidth = 4, kFeatures = kHeads * kWidth;

Bytes random_floats(std::mt19937& rng, std::int64_t count, float scale) {
  std::uniform_real_distribution<float> number(-scale, scale);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = number(rng);
  return bytes_of(values);
}

/// Builds expressions at random over tensors [kRows, kFeatures], with two states, old versions of
/// which stay in use, and a fed input.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : rng_(seed) {
    for (const char* name : {"a", "b"}) pool_.push_back(input(name));
    fed_ = input("fed");
    pool_.push_back(*fed_);
    flat_ = builder.state("flat", f32({kRows, kFeatures}));
    heads_ = builder.state("heads", f32({kRows, kHeads, kWidth}));
    bound["flat"] = random_floats(rng_, kRows * kFeatures, 1);
    bound["heads"] = random_floats(rng_, kRows * kFeatures, 1);
    pos_ = builder.input("pos", i32({kRows}));
    bound["pos"] = bytes_of<std::int32_t>({3, 0, 7, 1});
    const int steps = 5 + below(30);
    for (int i = 0; i < steps; ++i) step();
    finish();
  }

  GraphBuilder builder;
  NamedBytes bound;

 private:
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(rng_); }
  const Array& any() {
    return pool_[static_cast<std::size_t>(below(static_cast<int>(pool_.size())))];
  }
  std::string fresh(const char* what) { return what + std::to_string(names_++); }

  Array input(const std::string& name) {
    bound[name] = random_floats(rng_, kRows * kFeatures, 1);
    return builder.input(name, f32({kRows, kFeatures}));
  }
  Array parameter(const Shape& shape) {
    const std::string name = fresh("p");
    bound[name] = random_floats(rng_, elements(shape), 0.5f);
    return builder.parameter(name, f32(shape));
  }
  Array rows() {  // distinct, some of them idle
    std::vector<std::int32_t> values(kRows);
    std::iota(values.begin(), values.end(), 0);
    std::ranges::shuffle(values, rng_);
    values[static_cast<std::size_t>(below(kRows))] = -1;
    const std::string name = fresh("rows");
    bound[name] = bytes_of(values);
    return builder.input(name, i32({kRows}));
  }

  Array activated(const Array& x) {
    switch (below(6)) {
      case 0:
        return silu(x);
      case 1:
        return gelu(x);
      case 2:
        return gelu_tanh(x);
      case 3:
        return relu(x);
      case 4:
        return tanh(x);
      default:
        return sigmoid(x);
    }
  }

  Array in_heads(Array x) {
    if (below(2)) {
      const Array bias = parameter({kFeatures});
      x = below(2) ? x + bias : broadcast_to(bias, {kRows, kFeatures}) + x;
    }
    x = reshape(x, {kRows, kHeads, kWidth});
    return below(3) ? rope(x, *pos_, {.dims = kWidth}) : x;
  }

  Array viewed(const Array& x) {
    switch (below(5)) {
      case 3:
        return slice(x, {kRows, kFeatures}, {-kRows - 1, -kFeatures - 1}, {-1, -1});
      case 4:
        return slice_update(x, slice(x, {1, 0}, {2, kFeatures}), {kRows, 0}, {-2, kFeatures},
                            {-1, 1});
      case 0:
        return reshape(transpose(x), {kRows, kFeatures});  // no strides express it
      case 1:
        return transpose(contiguous(transpose(x)));
      default:
        return concatenate({slice(x, {0, 3}, {kRows, kFeatures}), slice(x, {0, 0}, {kRows, 3})}, 1);
    }
  }

  void step() {
    switch (below(11)) {
      case 0:
        return add(activated(any()));
      case 1:
        return add(tanh(activated(any()) * any()));
      case 2:
        return add(any() + any());
      case 3: {
        const Array sum = any() + any();
        if (below(2)) add(sum);
        return add(fast::rms_norm(sum, parameter({kFeatures}), 1e-5f));
      }
      case 4: {
        const Array x = any();
        for (int i = below(3); i >= 0; --i) add(linear(x, parameter({kFeatures, kFeatures})));
        return;
      }
      case 5:
        return add(viewed(any()));
      case 6:
        return add(softmax(any(), -1));
      case 7:
        return write_flat();
      case 8:
        return write_heads();
      case 9:
        return add(reshape(in_heads(any()), {kRows, kFeatures}));
      default:
        return add(any() - any() * Array(0.5f));
    }
  }

  void add(const Array& x) { pool_.push_back(x); }

  void write_flat() {
    pool_.push_back(*flat_);  // the version that the write replaces
    flat_ = write_rows(*flat_, any(), rows());
    flat_written_ = true;
    pool_.push_back(*flat_);
  }
  void write_heads() {
    pool_.push_back(reshape(*heads_, {kRows, kFeatures}));
    heads_ = write_rows(*heads_, in_heads(any()), rows());
    heads_written_ = true;
    pool_.push_back(reshape(*heads_, {kRows, kFeatures}));
  }

  void finish() {
    for (int i = 0; i < 3; ++i) builder.output(fresh("out"), any());
    builder.output("last", pool_.back());
    if (flat_written_) builder.update("flat", *flat_);
    if (heads_written_) builder.update("heads", *heads_);
    if (below(2)) builder.feed(*fed_, any(), FeedKind::whole);
  }

  std::mt19937 rng_;
  std::vector<Array> pool_;
  std::optional<Array> fed_, flat_, heads_, pos_;
  bool flat_written_ = false, heads_written_ = false;
  int names_ = 0;
};

void expect_close(const NamedBytes& got, const NamedBytes& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, bytes] : wanted) {
    const std::vector<float> a = values_of<float>(got.at(name)), b = values_of<float>(bytes);
    ASSERT_EQ(a.size(), b.size()) << name;
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(double{b[i]})))
          << name << "[" << i << "]";
    }
  }
}

void expect_same_results(const Graph& before, const NamedBytes& bound, const PassOptions& options) {
  const PlacedGraph after = prepare_graph(before, options);
  SCOPED_TRACE(to_text(before) + "\nbecame\n" + to_text(after.graph));
  const Interpreted meant = interpret(before, bound, Writes::to_copies);
  const Interpreted got = interpret(after.graph, bound, Writes::in_place);
  expect_close(got.outputs, meant.outputs, 2e-4);
  expect_close(got.states, meant.states, 2e-4);
}

TEST(Semantics, CapturedGraphsObeyRule2) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    const Graph graph = random.builder.build();
    const Interpreted meant = interpret(graph, random.bound, Writes::to_copies);
    const Interpreted in_place = interpret(graph, random.bound, Writes::in_place);
    ASSERT_EQ(in_place.outputs, meant.outputs) << to_text(graph);
    ASSERT_EQ(in_place.states, meant.states) << to_text(graph);
  }
}

TEST(Semantics, RandomGraphsOnTheCpu) {
  for (unsigned seed = 1000; seed < 1150 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    expect_same_results(random.builder.build(), random.bound, {});
  }
}

TEST(Semantics, ElementsFused) {
  for (unsigned seed = 4000; seed < 4200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    expect_same_results(random.builder.build(), random.bound, {.fuse_elements = true});
  }
}

TEST(Semantics, SimplifiedGraphsHaveTheSameBits) {
  for (unsigned seed = 3000; seed < 3300 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    const Graph before = random.builder.build(), after = simplify(before);
    SCOPED_TRACE(to_text(before) + "\nbecame\n" + to_text(after));
    ASSERT_LE(after.nodes.size(), before.nodes.size());
    const Interpreted meant = interpret(before, random.bound, Writes::to_copies);
    const Interpreted got = interpret(after, random.bound, Writes::in_place);
    ASSERT_EQ(got.outputs, meant.outputs);
    ASSERT_EQ(got.states, meant.states);
  }
}

TEST(Semantics, RandomGraphsOnDevicesThatLackSomeOps) {
  for (unsigned seed = 2000; seed < 2150 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const auto some = [&](int of_ten) {
      std::vector<bool> allowed(kOpCount);
      for (std::size_t i = 0; i < kOpCount; ++i) {
        allowed[i] = std::uniform_int_distribution<int>(0, 9)(rng) < of_ten;
      }
      return [allowed](const Op& op) { return allowed[op.index()]; };
    };
    FakeDevice a("a", some(4)), b("b", some(8));
    a.contiguous_only = seed % 2;
    RandomGraph random(seed);
    expect_same_results(random.builder.build(), random.bound,
                        {.devices = {&a, &b}, .fuse = seed % 4 != 0});
  }
}

// ---- A transformer block

struct Block {
  static constexpr std::int64_t kTokens = 5, kHeadsQ = 4, kHeadsKv = 2, kHead = 8, kHidden = 32,
                                kFf = 48, kCache = 64, kVocabulary = 40;
  GraphBuilder builder;
  NamedBytes bound;
  std::mt19937 rng{7};

  Array parameter(const std::string& name, const Shape& shape) {
    bound[name] = random_floats(rng, elements(shape), 0.3f);
    return builder.parameter(name, f32(shape));
  }
  Array ints(const std::string& name, const std::vector<std::int32_t>& values, const Shape& shape) {
    bound[name] = bytes_of(values);
    return builder.input(name, i32(shape));
  }

  Block() {
    const Array ids = ints("ids", {3, 1, 4, 1, 5}, {kTokens});
    const Array pos = ints("pos", {0, 1, 2, 3, 4}, {kTokens});
    const Array seq = ints("seq", {0, 0, 0, 0, -1}, {kTokens});
    const Array row = ints("row", {32, 33, 34, 35, -1}, {kTokens});
    const Array table = ints("table", {1, -1}, {1, 2});
    const Array len = ints("len", {4}, {1});
    const Array embedding = parameter("embedding", {kVocabulary, kHidden});
    Array x = take(embedding, ids, 0);
    x = x + attention(fast::rms_norm(x, parameter("norm1", {kHidden}), 1e-5f), pos, seq, row, table,
                      len);
    const Array normed = fast::rms_norm(x, parameter("norm2", {kHidden}), 1e-5f);
    const Array gate = linear(normed, parameter("gate", {kFf, kHidden}));
    const Array up = linear(normed, parameter("up", {kFf, kHidden}));
    x = x + linear(silu(gate) * up, parameter("down", {kHidden, kFf}));
    x = fast::rms_norm(x, parameter("norm3", {kHidden}), 1e-5f);
    builder.output("logits", linear(x, embedding));
  }

  Array projected(const Array& x, const std::string& name, std::int64_t heads) {
    const Array y = linear(x, parameter(name, {heads * kHead, kHidden})) +
                    parameter(name + ".bias", {heads * kHead});
    return reshape(y, {kTokens, heads, kHead});
  }

  Array attention(const Array& x, const Array& pos, const Array& seq, const Array& row,
                  const Array& table, const Array& len) {
    const RopeAngles angles{.dims = kHead};
    const Shape cache{kCache, kHeadsKv, kHead};
    const Array q = rope(projected(x, "q", kHeadsQ), pos, angles);
    const Array k = rope(projected(x, "k", kHeadsKv), pos, angles);
    const Array v = projected(x, "v", kHeadsKv);
    for (const char* name : {"cache_k", "cache_v"})
      bound[name] = random_floats(rng, elements(cache), 1);
    const Array keys = write_rows(builder.state("cache_k", f32(cache)), k, row);
    const Array values = write_rows(builder.state("cache_v", f32(cache)), v, row);
    builder.update("cache_k", keys);
    builder.update("cache_v", values);
    const Array seen = attend(q, keys, values, table, seq, pos, len, {.scale = 0.35f});
    return linear(reshape(seen, {kTokens, kHeadsQ * kHead}),
                  parameter("o", {kHidden, kHeadsQ * kHead}));
  }
};

TEST(TransformerBlock, FusesToItsShortestForm) {
  Block block;
  FakeDevice able("able", everything());
  const PlacedGraph placed = prepare_graph(block.builder.build(), {.devices = {&able}});
  EXPECT_THAT(kernels_of(placed.graph),
              testing::ElementsAre("gather_rows", "rms_norm", "linear", "rope", "rope_write_rows",
                                   "rope_write_rows", "attend", "linear", "add_rms_norm", "linear",
                                   "gated_multiply", "linear", "add_rms_norm", "linear"));
}

TEST(TransformerBlock, ComputesTheSame) {
  Block block;
  const Graph graph = block.builder.build();
  FakeDevice few("few", only({"linear", "rms_norm", "add", "contiguous"}));
  expect_same_results(graph, block.bound, {});
  expect_same_results(graph, block.bound, {.fuse = false});
  expect_same_results(graph, block.bound, {.repack = false});
  expect_same_results(graph, block.bound, {.devices = {&few}});
  expect_same_results(graph, block.bound, {.pin = &cpu_device()});
}

// ---- Length

Graph long_graph(int nodes) {
  GraphBuilder builder;
  const Array y = builder.input("y", f32({2, 8}));
  const Array w = builder.parameter("w", f32({8, 8}));
  const Array state = builder.state("s", f32({4, 8}));
  const Array row = builder.input("row", i32({2}));
  Array x = builder.input("x", f32({2, 8})), last = state;
  for (int i = 0; i < nodes / 10; ++i) {
    const Array sum = silu(x) * y + x;
    const Array normed = fast::rms_norm(sum, std::nullopt, 1e-5f);
    const Array mixed = linear(normed, w) + linear(normed, w);
    last = write_rows(last, mixed, row);
    x = reshape(transpose(reshape(mixed, {8, 2})), {2, 8}) + sum;
  }
  builder.update("s", last);
  builder.output("x", x);
  return builder.build();
}

// Quadratic passes would take minutes, and meet the time limit of every test.
TEST(LongGraphs, ArePrepared) {
  const Graph graph = long_graph(100'000);
  FakeDevice able("able", everything());
  const PlacedGraph placed = prepare_graph(graph, {.devices = {&able}});
  EXPECT_GE(placed.graph.nodes.size(), graph.nodes.size());
}

TEST(LongGraphs, AreDumped) {
  const Graph graph = long_graph(20'000);
  EXPECT_GT(to_text(graph).size(), graph.nodes.size());
  EXPECT_GT(to_dot(graph).size(), graph.nodes.size());
  EXPECT_GT(to_json(graph).size(), graph.nodes.size());
}

}  // namespace
}  // namespace heddle::test

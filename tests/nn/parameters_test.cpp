// Names, what trains, and files of parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "heddle/compile.h"
#include "heddle/losses.h"
#include "heddle/nn.h"
#include "heddle/ops.h"
#include "heddle/optimizers.h"
#include "support/error_message.h"
#include "support/file_contents.h"
#include "support/temporary_dir.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Array kKey = random::key(1);

std::vector<std::string> names_of(const nn::NamedArrays& arrays) {
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays) names.push_back(name);
  return names;
}

bool same(const Array& a, const Array& b) {
  return a.spec() == b.spec() && a.to_bytes() == b.to_bytes();
}

struct Part {
  Array weight = 1.0f;
  std::optional<Array> bias;
  auto leaves() const { return nn::named("weight", weight, "bias", bias); }
};
struct Tree {
  std::vector<Part> layers = std::vector<Part>(2);
  std::map<std::string, Array> by_name{{"a", 1.0f}, {"b", 2}};
  std::map<int, Part> by_number{{7, Part()}};
  std::pair<Array, Part> pair{1.0f, Part()};
  std::tuple<Array> loose{3.0f};
  Part table;
  std::variant<Part, Array> either;
  auto leaves() const {
    return nn::named("layers", layers, "by_name", by_name, "by_number", by_number, "pair", pair, "",
                     loose, "table", nn::frozen(table), "either", nn::alternatives(either));
  }
};

TEST(Parameters, HaveTheNamesOfThePartsOnTheWay) {
  Tree tree;
  tree.layers[1].bias = 0.0f;
  EXPECT_THAT(names_of(nn::parameters(tree)),
              ElementsAre("layers.0.weight", "layers.1.weight", "layers.1.bias", "by_name.a",
                          "by_name.b", "by_number.7.weight", "pair.0", "pair.1.weight", "0",
                          "table.weight", "either.weight"));
  EXPECT_THAT(names_of(nn::trainable_parameters(tree)),
              ElementsAre("layers.0.weight", "layers.1.weight", "layers.1.bias", "by_name.a",
                          "by_number.7.weight", "pair.0", "pair.1.weight", "0", "either.weight"));
  tree.either = Array(5.0f);
  EXPECT_EQ(nn::parameters(tree).back().first, "either");
  EXPECT_EQ(nn::parameters(Array(1)).front().first, "");
}

TEST(Parameters, OfAllModulesHaveTheUsualNames) {
  const nn::MultiHeadAttention attention(8, 2, kKey, {.qkv_bias = true});
  EXPECT_THAT(names_of(nn::parameters(attention)),
              ElementsAre("q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias",
                          "v_proj.weight", "v_proj.bias", "o_proj.weight"));
  EXPECT_THAT(names_of(nn::parameters(nn::GatedMLP(4, 8, kKey))),
              ElementsAre("gate_proj.weight", "up_proj.weight", "down_proj.weight"));
  EXPECT_THAT(names_of(nn::parameters(nn::LayerNorm(4))), ElementsAre("weight", "bias"));
  EXPECT_THAT(names_of(nn::parameters(nn::LayerNorm(4, 1e-5f, true, false))),
              ElementsAre("weight"));
  EXPECT_TRUE(nn::parameters(nn::LayerNorm(4, 1e-5f, false)).empty());
  EXPECT_TRUE(nn::parameters(nn::Dropout()).empty());
  const nn::QuantizedLinear groups(nn::Linear(64, 8, kKey));
  EXPECT_THAT(names_of(nn::parameters(groups)), ElementsAre("weight", "scales", "biases", "bias"));
  EXPECT_THAT(names_of(nn::parameters(nn::LoRALinear(groups, 2, kKey))),
              ElementsAre("linear.weight", "linear.scales", "linear.biases", "linear.bias",
                          "lora_a", "lora_b"));
}

/// Visits by tree.h and by names see the same arrays in the same order.
template <class T>
void expect_leaves_are_named(const T& tree) {
  const std::vector<Array> leaves = leaves_of(tree);
  std::vector<Array> named;
  nn::visit_named_leaves(tree, [&](const std::string&, const Array& array, bool trains) {
    if (trains) named.push_back(array);
  });
  ASSERT_EQ(named.size(), leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) EXPECT_EQ(named[i].node(), leaves[i].node()) << i;
}

TEST(Parameters, AreThoseOfTheTreeInItsOrder) {
  expect_leaves_are_named(Tree());
  expect_leaves_are_named(nn::MultiHeadAttention(8, 2, kKey));
  expect_leaves_are_named(nn::LoRALinear(nn::Linear(4, 4, kKey), 2, kKey));
  expect_leaves_are_named(
      nn::select(Tree(), [](const std::string& name) { return name.ends_with("weight"); }));
  expect_leaves_are_named(std::vector<nn::Linear>{nn::Linear(2, 2, kKey), nn::Linear(2, 2, kKey)});
}

TEST(Parameters, GradientsAreOfWhatTrains) {
  struct Model {
    nn::Linear trained{3, 3, kKey}, kept{3, 3, kKey};
    auto leaves() const { return nn::named("trained", trained, "kept", nn::frozen(kept)); }
  } model;
  const auto loss = [](const auto& m, const Array& x) { return sum(m.kept(m.trained(x))); };
  const auto [value, gradients] = value_and_grad(loss, model, ones({2, 3}));
  const Array row = sum(model.kept.weight, 0);
  EXPECT_LT(max(abs(*gradients.trained.bias - 2 * row)).item<float>(), 1e-5f);
  EXPECT_TRUE(same(gradients.kept.weight, model.kept.weight));
}

TEST(Parameters, SelectedOnesAreAllThatTrains) {
  auto layers = nn::select(std::vector<nn::Linear>{nn::Linear(3, 3, kKey), nn::Linear(3, 2, kKey)},
                           [](const std::string& name) { return name.starts_with("1."); });
  EXPECT_THAT(names_of(nn::trainable_parameters(layers)), ElementsAre("1.weight", "1.bias"));
  EXPECT_EQ(nn::parameters(layers).size(), 4u);
  EXPECT_THAT(names_of(nn::trainable_parameters(nn::named("model", layers))),
              ElementsAre("model.1.weight", "model.1.bias"));
  const auto loss = [](const auto& chosen, const Array& x) {
    return sum(square(chosen.tree[1](chosen.tree[0](x))));
  };
  const auto before = layers;
  optim::SGD optimizer(0.01);
  const auto [value, gradients] = value_and_grad(loss, layers, ones({2, 3}));
  optimizer.update(layers, gradients);
  EXPECT_TRUE(same(layers.tree[0].weight, before.tree[0].weight));
  EXPECT_FALSE(same(layers.tree[1].weight, before.tree[1].weight));
  EXPECT_LT(loss(layers, ones({2, 3})).item<float>(), value.item<float>());
  EXPECT_EQ(nn::state_of(layers).size(), 2u);
}

TEST(Parameters, ChangeTheirDtypeTogether) {
  Tree tree;
  nn::set_dtype(tree, DType::f16);
  EXPECT_EQ(tree.layers[0].weight.dtype(), DType::f16);
  EXPECT_EQ(tree.table.weight.dtype(), DType::f16);
  EXPECT_EQ(tree.by_name.at("b").dtype(), DType::i32);
  expect_refusal([&] { nn::set_dtype(tree, DType::i8); }, ErrorCode::invalid_argument,
                 "set_dtype: i8 is no floating dtype");
}

// ---- Loading

struct Model {
  std::vector<nn::Linear> layers{nn::Linear(4, 3, kKey), nn::Linear(3, 2, kKey)};
  nn::QuantizedLinear head{nn::Linear(32, 2, kKey), DType::q8_0};
  Array count = 3;
  auto leaves() const { return nn::named("layers", layers, "head", head, "count", count); }
};

ArrayMap map_of(const nn::NamedArrays& arrays) {
  return {arrays.begin(), arrays.end()};
}

template <class T>
void expect_same(const T& a, const T& b) {
  const nn::NamedArrays one = nn::parameters(a), other = nn::parameters(b);
  ASSERT_EQ(names_of(one), names_of(other));
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(same(one[i].second, other[i].second)) << one[i].first;
  }
}

Model other_model() {
  Model model;
  for (const nn::Parameter& parameter : nn::parameters_in(model)) {
    if (!is_block(parameter.array->dtype())) *parameter.array = *parameter.array + 1;
  }
  return model;
}

TEST(LoadParameters, PutsArraysByName) {
  Model model;
  nn::load_parameters(model, map_of(nn::parameters(other_model())));
  expect_same(model, other_model());
}

TEST(LoadParameters, NamesWhatDoesNotFitAndChangesNothing) {
  Model model;
  ArrayMap arrays = map_of(nn::parameters(other_model()));
  arrays.erase("layers.1.bias");
  arrays.erase("head.bias");
  arrays.emplace("layers.2.weight", 1.0f);
  arrays.at("layers.0.weight") = zeros({3, 4}, DType::f16);
  arrays.at("layers.1.weight") = zeros({3, 2});
  const std::string message =
      message_of(ErrorCode::invalid_argument, [&] { nn::load_parameters(model, arrays); });
  EXPECT_EQ(message,
            "load_parameters: layers.0.weight is f16[3, 4] and must be f32[3, 4], layers.1.weight "
            "is f32[3, 2] and must be f32[2, 3]; missing: layers.1.bias, head.bias; unexpected: "
            "layers.2.weight");
  expect_same(model, Model());
  arrays.at("layers.0.weight") = zeros({3, 4});
  EXPECT_THAT(
      message_of(ErrorCode::invalid_argument, [&] { nn::load_parameters(model, arrays, false); }),
      testing::EndsWith("layers.1.weight is f32[3, 2] and must be f32[2, 3]"));
  arrays.at("layers.1.weight") = zeros({2, 3});
  nn::load_parameters(model, arrays, false);
  EXPECT_EQ(max(abs(model.layers[1].weight)).item<float>(), 0);
  EXPECT_TRUE(same(*model.layers[1].bias, *Model().layers[1].bias));
}

TEST(LoadParameters, NamesOnlySomeOfMany) {
  std::vector<Array> many(100, Array(1.0f));
  const std::string message =
      message_of(ErrorCode::invalid_argument, [&] { nn::load_parameters(many, ArrayMap()); });
  EXPECT_EQ(message, "load_parameters: missing: 0, 1, 2, 3, 4, 5, 6, 7 and 92 more");
}

// ---- Files

TEST(ParameterFiles, KeepEveryBit) {
  const TemporaryDir folder;
  Model model = other_model();
  nn::set_dtype(model.layers[0], DType::bf16);
  nn::set_dtype(model.layers[1], DType::f64);
  Model loaded;
  nn::set_dtype(loaded.layers[0], DType::bf16);
  nn::set_dtype(loaded.layers[1], DType::f64);
  nn::save_parameters(folder / "model.gguf", model, {{"general.name", "fable"}});
  nn::load_parameters(loaded, folder / "model.gguf");
  expect_same(loaded, model);
  EXPECT_EQ(std::get<std::string>(load_gguf(folder / "model.gguf").second.at("general.name")),
            "fable");
}

TEST(ParameterFiles, OfBothKindsHoldWhatTrainsOnly) {
  const TemporaryDir folder;
  for (const char* name : {"a.safetensors", "a.gguf"}) {
    nn::LoRALinear layer(nn::Linear(8, 4, kKey), 2, kKey);
    layer.lora_b = ones({2, 4});
    nn::save_arrays(folder / name, nn::trainable_parameters(layer), {{"rank", "2"}});
    nn::LoRALinear loaded(nn::Linear(8, 4, kKey), 2, random::key(5));
    EXPECT_THAT(message_of(ErrorCode::invalid_argument,
                           [&] { nn::load_parameters(loaded, folder / name); }),
                testing::AllOf(HasSubstr(name), HasSubstr("missing: linear.weight, linear.bias")));
    nn::load_parameters(loaded, folder / name, false);
    expect_same(loaded, layer);
  }
  EXPECT_EQ(load_safetensors(folder / "a.safetensors").second.at("rank"), "2");
}

TEST(ParameterFiles, RefuseWhatTheyCannotHold) {
  const TemporaryDir folder;
  const auto refuse = [&](const std::string& name, const nn::NamedArrays& arrays,
                          const std::string& text) {
    expect_refusal([&] { nn::save_arrays(folder / name, arrays); }, ErrorCode::invalid_argument,
                   text);
  };
  refuse("model.npz", {}, "must end in .safetensors or .gguf");
  refuse("model", {}, "must end in .safetensors or .gguf");
  refuse("model.gguf", {{"a", 1.0f}, {"a", 2.0f}}, "two arrays are called \"a\"");
  refuse("model.safetensors",
         {{"a", nn::QuantizedLinear(nn::Linear(32, 2, kKey), DType::q8_0).weight}}, "q8_0");
  refuse("model.gguf", {{"a", zeros({1}, DType::complex64)}}, "complex64");
  refuse("model.gguf", {{std::string(100, 'a'), 1.0f}}, "aaaa");
  EXPECT_EQ(folder.entries(), 0u);
  Model model;
  expect_refusal([&] { nn::load_parameters(model, folder / "model.bin"); },
                 ErrorCode::invalid_argument, "load_parameters");
  expect_refusal([&] { nn::load_parameters(model, folder / "none.gguf"); }, ErrorCode::io,
                 "none.gguf");
}

/// What the file's bytes say is checked: a broken one is refused, or holds what it says.
TEST(ParameterFiles, BrokenOnesAreRefusedAndChangeNothing) {
  const TemporaryDir folder;
  std::mt19937 random(3);
  for (const char* name : {"model.safetensors", "model.gguf"}) {
    const nn::Linear good(6, 4, kKey);
    nn::save_parameters(folder / name, good);
    const std::string bytes = contents(folder / name), broken = std::string("broken-") + name;
    int refused = 0;
    for (int round = 0; round < 300; ++round) {
      std::string bad = bytes;
      if (round % 2 == 0) {
        bad.resize(random() % bytes.size());
      } else {
        bad[random() % std::min<std::size_t>(bytes.size(), 300)] ^=
            static_cast<char>(1 + random() % 255);
      }
      std::ofstream(folder / broken, std::ios::binary) << bad;
      nn::Linear loaded(6, 4, random::key(2));
      const Array before = loaded.weight;
      try {
        nn::load_parameters(loaded, folder / broken);
      } catch (const Error& error) {
        ++refused;
        EXPECT_THAT(error.what(), HasSubstr(name));
        EXPECT_EQ(loaded.weight.node(), before.node());
      }
    }
    EXPECT_GT(refused, 150);
  }
}

// ---- Checkpoints

struct Training {
  nn::MLP model{4, 8, kKey};
  optim::AdamW optimizer{optim::cosine_decay(1e-2, 30), {.bias_correction = true}};
  Training() { optimizer.init(model); }
  auto leaves() const { return nn::named("model", model, "optimizer", optimizer); }

  void steps(int count) {
    const ArraysFunction step = compile(
        [&](const std::vector<Array>& in) {
          const auto loss = [](const nn::MLP& mlp, const Array& x) {
            return nn::losses::mse_loss(mlp(x), flip(x, 1));
          };
          const auto [value, gradients] = value_and_grad(loss, model, in[0]);
          optimizer.update(model, gradients);
          return std::vector<Array>{value};
        },
        false, nn::state_of(model, optimizer));
    for (int i = 0; i < count; ++i) {
      const int at = optimizer.step.item<int>();
      step({random::normal({5, 4}, random::key(static_cast<unsigned>(at)))});
    }
  }
};

TEST(ParameterFiles, ATrainingThatWasSavedGoesOnAsIfItHadNot) {
  const TemporaryDir folder;
  Training whole;
  whole.steps(12);
  for (const char* name : {"run.safetensors", "run.gguf"}) {
    Training first, second;
    first.steps(5);
    nn::save_parameters(folder / name, first);
    nn::load_parameters(second, folder / name);
    second.steps(7);
    expect_same(second, whole);
  }
  Training third;
  nn::load_parameters(nn::named("model", third.model, "optimizer", third.optimizer),
                      folder / "run.gguf");
  EXPECT_EQ(third.optimizer.step.item<int>(), 5);
}

}  // namespace
}  // namespace heddle::test

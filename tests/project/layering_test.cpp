// A part includes only parts above it, and a device no other device (docs/architecture.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kParts{"base",  "tensor", "op",        "device", "array",
                                      "graph", "exec",   "transform", "io",     "nn",
                                      "text",  "llm",    "server"};

/// Which part each public header belongs to.
const std::map<std::string, std::string> kPublicHeaders{{"error.h", "base"},
                                                        {"ref.h", "base"},
                                                        {"boxed.h", "base"},
                                                        {"completion.h", "base"},
                                                        {"dtype.h", "tensor"},
                                                        {"half.h", "tensor"},
                                                        {"shape.h", "tensor"},
                                                        {"tensor.h", "tensor"},
                                                        {"buffer.h", "tensor"},
                                                        {"op.h", "op"},
                                                        {"op_attention.h", "op"},
                                                        {"op_math.h", "op"},
                                                        {"op_move.h", "op"},
                                                        {"op_spatial.h", "op"},
                                                        {"op_view.h", "op"},
                                                        {"op_fused.h", "op"},
                                                        {"op_index.h", "op"},
                                                        {"op_linalg.h", "op"},
                                                        {"op_order.h", "op"},
                                                        {"op_quantized.h", "op"},
                                                        {"op_random.h", "op"},
                                                        {"ops_elementwise.h", "array"},
                                                        {"ops_reduce.h", "array"},
                                                        {"ops_shape.h", "array"},
                                                        {"ops_index.h", "array"},
                                                        {"ops_order.h", "array"},
                                                        {"ops_product.h", "array"},
                                                        {"ops_quantized.h", "array"},
                                                        {"ops_llm.h", "array"},
                                                        {"linalg.h", "array"},
                                                        {"fft.h", "array"},
                                                        {"einsum.h", "array"},
                                                        {"random.h", "array"},
                                                        {"dlpack.h", "array"},
                                                        {"io.h", "io"},
                                                        {"device.h", "device"},
                                                        {"memory.h", "device"},
                                                        {"array.h", "array"},
                                                        {"ops.h", "array"},
                                                        {"tree.h", "array"},
                                                        {"graph.h", "graph"},
                                                        {"executable.h", "exec"},
                                                        {"state.h", "exec"},
                                                        {"transforms.h", "transform"},
                                                        {"compile.h", "transform"},
                                                        {"gguf.h", "io"},
                                                        {"nn_tree.h", "nn"},
                                                        {"nn.h", "nn"},
                                                        {"losses.h", "nn"},
                                                        {"optimizers.h", "nn"},
                                                        {"tokenizer.h", "text"},
                                                        {"tokenizer_trainer.h", "text"},
                                                        {"chat_template.h", "text"},
                                                        {"grammar.h", "text"},
                                                        {"llm.h", "llm"},
                                                        {"engine.h", "llm"},
                                                        {"model_file.h", "llm"},
                                                        {"observe.h", "exec"},
                                                        {"chat.h", "llm"}};

std::size_t rank(const std::string& part) {
  return static_cast<std::size_t>(std::find(kParts.begin(), kParts.end(), part) - kParts.begin());
}

struct Source {
  fs::path path;
  std::string part, device;  // device: the folder under src/device, if any
};

std::vector<Source> sources() {
  std::vector<Source> all;
  const fs::path root(HEDDLE_SOURCE_DIR);
  for (const auto& entry : fs::recursive_directory_iterator(root / "src")) {
    const std::string extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".h") continue;
    const fs::path relative = fs::relative(entry.path(), root / "src");
    auto step = relative.begin();
    Source source{entry.path(), *step++, ""};
    if (source.part == "device" && std::distance(relative.begin(), relative.end()) > 2)
      source.device = *step;
    all.push_back(source);
  }
  for (const auto& entry : fs::directory_iterator(root / "include/heddle")) {
    const std::string name = entry.path().filename();
    const auto part = kPublicHeaders.find(name);
    EXPECT_NE(part, kPublicHeaders.end()) << name << " belongs to no part: add it to the table";
    if (part != kPublicHeaders.end()) all.push_back({entry.path(), part->second, ""});
  }
  return all;
}

std::vector<std::string> includes(const fs::path& path) {
  static const std::regex quoted(R"re(^\s*#include\s+"([^"]+)")re");
  std::ifstream in(path);
  std::vector<std::string> found;
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_search(line, match, quoted)) found.push_back(match[1]);
  }
  return found;
}

/// The part an include belongs to; empty if it is not one of ours.
std::string part_of(const std::string& include) {
  const std::size_t slash = include.find('/');
  const std::string first = include.substr(0, slash),
                    rest = slash == std::string::npos ? "" : include.substr(slash + 1);
  if (first != "heddle") return rank(first) < kParts.size() ? first : "";
  const auto part = kPublicHeaders.find(rest);
  return part == kPublicHeaders.end() ? "" : part->second;
}

TEST(Layering, PartsIncludeOnlyPartsAboveThem) {
  const std::vector<Source> all = sources();
  ASSERT_GT(all.size(), 50u);
  for (const Source& source : all) {
    ASSERT_LT(rank(source.part), kParts.size())
        << source.path << ": '" << source.part << "' is no part";
    for (const std::string& include : includes(source.path)) {
      const std::string part = part_of(include);
      if (part.empty()) continue;
      EXPECT_LE(rank(part), rank(source.part)) << source.path << " includes " << include;
    }
  }
}

TEST(Layering, DevicesDoNotKnowEachOther) {
  for (const Source& source : sources()) {
    for (const std::string& include : includes(source.path)) {
      if (include.rfind("device/", 0) != 0) continue;
      const fs::path path(include);
      if (std::distance(path.begin(), path.end()) < 3) continue;
      const std::string device = *std::next(path.begin());
      EXPECT_EQ(device, source.device) << source.path << " includes " << include;
    }
  }
}

// Two inline constants of one name and namespace are one to the linker, whatever their values.
// The headers that are built once for each instruction set have a namespace each.
TEST(Headers, InlineConstantsHaveNamesOfTheirOwn) {
  static const std::regex declared(R"re(^inline constexpr [^=]*\b(k\w+)(\[\])?\s*[={])re");
  static const std::regex per_level(
      R"re((simd|quant_int|group_words)_(portable|avx2|avx512|neon)\.h$)re");
  std::map<std::string, fs::path> homes;
  std::smatch match;
  for (const Source& source : sources()) {
    const std::string path = source.path.string();
    if (source.path.extension() != ".h" || std::regex_search(path, per_level)) continue;
    std::ifstream in(source.path);
    for (std::string line; std::getline(in, line);) {
      if (!std::regex_search(line, match, declared)) continue;
      const auto [home, is_new] = homes.emplace(match[1], source.path);
      const bool is_choice = home->second == source.path;  // of the preprocessor's
      EXPECT_TRUE(is_new || is_choice)
          << match[1] << " is in " << home->second << " and in " << source.path;
    }
  }
  EXPECT_GT(homes.size(), 10u);
}

}  // namespace

// What of a model's file stays in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>

#include "heddle/device.h"
#include "heddle/llm.h"
#include "heddle/model_file.h"

namespace heddle::llm {
namespace {

namespace fs = std::filesystem;

/// Bytes of the file that this process has mapped and that are in memory for it, as Linux counts
/// them (proc(5), smaps).
std::size_t resident_bytes(const fs::path& path) {
  std::ifstream maps("/proc/self/smaps");
  std::size_t bytes = 0;
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    const bool is_header = line.find(':') == std::string::npos || line.find('-') < line.find(':');
    if (is_header) ours = line.ends_with(path.string());
    if (!ours || !line.starts_with("Rss:")) continue;
    const std::size_t digits = line.find_first_of("0123456789");
    std::size_t kib = 0;
    std::from_chars(line.data() + digits, line.data() + line.size(), kib);
    bytes += kib * 1024;
  }
  return bytes;
}

class ModelMemory : public testing::Test {
 protected:
  ModelMemory() {
    fs::create_directories(directory_);
    synthesize_model("tiny", "q8_0", path_, 1);
  }
  ~ModelMemory() override { fs::remove_all(directory_); }

  /// What of the file is there after a step.
  std::size_t after_a_step(bool repack) const {
    const std::shared_ptr<Model> model = Model::open(path_);
    EXPECT_LT(resident_bytes(path_), 64u << 10) << "the header has been read";
    ContextOptions options{.n_ctx = 64, .threads = 2, .devices = {&cpu_device()}};
    options.compile.repack = repack;
    Context context(model, options);
    const SequenceId sequence = context.create();
    for (const TokenId token : {1, 2, 3}) context.step(sequence, {&token, 1});
    return resident_bytes(path_);
  }

  const fs::path directory_ = fs::path(testing::TempDir()) / "model-memory";
  const fs::path path_ = directory_ / "model.gguf";
};

TEST_F(ModelMemory, PagesOfPackedWeightsGo) {
  const std::size_t size = fs::file_size(path_);
  ASSERT_GT(size, std::size_t{1} << 20);
  EXPECT_GT(after_a_step(false), size / 2) << "weights are read where they lie";
  EXPECT_LT(after_a_step(true), size / 10) << "packed copies are read";
}

TEST_F(ModelMemory, TheVocabularyIsTheTokenizersAlone) {
  const gguf::File file = gguf::File::open(path_);
  const gguf::Metadata& of_file = file.metadata();
  const std::shared_ptr<Model> model = Model::open(path_);
  const gguf::Metadata& kept = model->file().metadata();
  ASSERT_NE(of_file.find("tokenizer.ggml.tokens"), nullptr);
  EXPECT_EQ(kept.find("tokenizer.ggml.tokens"), nullptr);
  EXPECT_EQ(kept.find("tokenizer.ggml.merges"), nullptr);
  EXPECT_NE(kept.find("tokenizer.ggml.model"), nullptr);
  EXPECT_NE(kept.find("general.architecture"), nullptr);
  EXPECT_EQ(model->file().tensors().size(), file.tensors().size());
  EXPECT_EQ(model->file().name(), path_.string());
  EXPECT_EQ(model->tokenizer().token_text(5),
            of_file.get_array<std::string>("tokenizer.ggml.tokens")[5]);
}

}  // namespace
}  // namespace heddle::llm

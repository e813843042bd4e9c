// Every function of MLX that is not tied to Metal or CUDA exists here under its name.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "mlx_functions.h"
#include "support/shared_files.h"

namespace heddle::test {

NamedFunctions::NamedFunctions(const char* header, std::initializer_list<const char*> names) {
  for (const std::string name : names) {
    by_header()[header].insert(name.substr(name.rfind(':') + 1));
  }
}

std::map<std::string, std::set<std::string>>& NamedFunctions::by_header() {
  static std::map<std::string, std::set<std::string>> functions;
  return functions;
}

namespace {

using Names = std::map<std::string, std::set<std::string>>;

/// Tied to Metal or CUDA.
const std::set<std::string> kForeign = {"cuda_kernel", "metal_kernel", "precompiled_cuda_kernel"};
/// Transformations of functions have a list of their own.
const std::set<std::string> kOtherHeaders = {"transforms.h", "compile.h"};

/// What is still missing, by header: to be empty.
const Names& missing() {
  static const Names names = {
      {"ops.h",
       {"addmm",
        "bartlett",
        "blackman",
        "block_masked_mm",
        "from_fp8",
        "gather_mm",
        "gather_qmm",
        "gather_qqmm",
        "hadamard_transform",
        "hamming",
        "hanning",
        "inner",
        "kron",
        "outer",
        "qqmm",
        "quantize",
        "quantized_matmul",
        "segmented_mm",
        "tensordot",
        "to_fp8",
        "vecdot"}},
      {"random.h",
       {"bernoulli", "bits", "categorical", "gumbel", "key", "laplace", "multivariate_normal",
        "normal", "permutation", "randint", "seed", "split", "truncated_normal", "uniform"}},
      {"fft.h",
       {"fft", "fft2", "fftfreq", "fftn", "fftshift", "ifft", "ifft2", "ifftn", "ifftshift",
        "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"}},
      {"linalg.h",
       {"cholesky", "cholesky_inv", "cross", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv",
        "lu", "lu_factor", "norm", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd",
        "tri_inv"}},
      {"einsum.h", {"einsum", "einsum_path"}},
      {"io.h", {"load", "load_gguf", "load_safetensors", "save", "save_gguf", "save_safetensors"}},
  };
  return names;
}

Names names_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::regex header(R"((\w+\.h) \(\d+\):)");
  Names names;
  std::string line, current;
  for (std::smatch match; std::getline(file, line);) {
    if (std::regex_match(line, match, header)) {
      current = match[1];
    } else if (!current.empty()) {
      std::istringstream words(line);
      for (std::string word; words >> word;) names[current].insert(word);
    }
  }
  return names;
}

bool contains(const Names& names, const std::string& header, const std::string& name) {
  const auto found = names.find(header);
  return found != names.end() && found->second.contains(name);
}

TEST(MlxFunctions, EachIsThereOrKnownToBeMissing) {
  HEDDLE_SHARED_FILE(path, "mlx-functions.txt");
  const Names wanted = names_in(path);
  EXPECT_GE(wanted.size(), 8u);
  for (const auto& [header, names] : wanted) {
    if (kOtherHeaders.contains(header)) continue;
    for (const std::string& name : names) {
      if (kForeign.contains(name)) continue;
      const bool there = contains(NamedFunctions::by_header(), header, name);
      EXPECT_NE(there, contains(missing(), header, name))
          << name << " of " << header << (there ? " is no longer missing" : " is not there");
    }
  }
}

TEST(MlxFunctions, NoneIsNamedThatMlxDoesNotHave) {
  HEDDLE_SHARED_FILE(path, "mlx-functions.txt");
  const Names wanted = names_in(path);
  for (const auto& [header, names] : NamedFunctions::by_header()) {
    for (const std::string& name : names) {
      EXPECT_TRUE(contains(wanted, header, name)) << name << " is not in " << header;
    }
  }
}

}  // namespace
}  // namespace heddle::test

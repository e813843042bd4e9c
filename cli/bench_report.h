// What `heddle bench` found, as a table or as JSON with llama-bench's field names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/llm.h"

namespace heddle::cli {

/// One measured test. Either count may be 0, never both.
struct BenchTest {
  std::int64_t n_prompt = 0, n_gen = 0;
  std::string time;                   // when it began, ISO 8601, UTC
  std::vector<std::int64_t> samples;  // nanoseconds of each repetition
  std::string report;                 // what the devices did in all of them
};

/// "pp512" or "tg64".
std::string test_name(const BenchTest& test);
std::string bench_table(const llm::Context& context, const std::vector<BenchTest>& tests);
std::string bench_json(const llm::Context& context, const std::vector<BenchTest>& tests);

}  // namespace heddle::cli

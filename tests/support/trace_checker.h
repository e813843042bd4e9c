// Whether a trace is what docs/trace.md says, by code that shares nothing with what writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace heddle::test {

/// What is wrong with a trace file's text; nothing if it is sound.
std::vector<std::string> faults_of_trace(const std::string& text);
/// With lines of /trace/live, from the first on.
std::vector<std::string> faults_of_lines(const std::vector<std::string>& lines);

}  // namespace heddle::test

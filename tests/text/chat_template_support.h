// Cases for the chat template tests, and Jinja2 itself to ask about them.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "heddle/chat_template.h"

namespace heddle::test {

struct TemplateCase {
  std::string where;  // for messages
  std::string source;
  nlohmann::ordered_json context;
  std::optional<std::string> output;  // none: an error
};

nlohmann::ordered_json read_json(const std::filesystem::path& path);
std::string read_text(const std::filesystem::path& path);

/// tests/text/chat_template_cases: written by the oracle.
std::vector<TemplateCase> checked_in_cases();
/// ../shared/templates
std::vector<TemplateCase> shared_cases(const std::filesystem::path& folder);

/// The time that all cases are rendered at: 2026-03-14T15:09:26.
std::tm case_time();
/// Nothing if the template is refused, or refuses; `why` then says why.
std::optional<std::string> rendered(const TemplateCase& one, std::string* why = nullptr);

bool oracle_is_there();
/// What Jinja2 makes of them; nothing where it raises.
std::vector<std::optional<std::string>> ask_oracle(const std::vector<TemplateCase>& cases);

}  // namespace heddle::test

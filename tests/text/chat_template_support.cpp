#include "text/chat_template_support.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "heddle/error.h"
#include "support/python.h"

namespace heddle::test {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

const std::string kOracle = std::string(HEDDLE_SOURCE_DIR) + "/tests/text/jinja_oracle.py";

std::optional<std::string> expected_output(const ordered_json& expected) {
  if (!expected.contains("output")) return std::nullopt;
  return expected["output"].get<std::string>();
}

}  // namespace

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(file.good()) << path;
  return text.str();
}

ordered_json read_json(const fs::path& path) {
  return ordered_json::parse(read_text(path));
}

std::vector<TemplateCase> checked_in_cases() {
  std::vector<TemplateCase> cases;
  const fs::path folder = fs::path(HEDDLE_SOURCE_DIR) / "tests/text/chat_template_cases";
  for (const auto& entry : fs::directory_iterator(folder)) {
    const ordered_json file = read_json(entry.path());
    for (const ordered_json& one : file["cases"]) {
      const std::string source = one["template"];
      const bool own = one.contains("context");
      cases.push_back({entry.path().filename().string() + ": " + source, source,
                       own ? one["context"] : file["context"], expected_output(one)});
    }
  }
  return cases;
}

std::vector<TemplateCase> shared_cases(const fs::path& folder) {
  std::vector<TemplateCase> cases;
  const ordered_json inputs = read_json(folder / "cases.json");
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    const ordered_json expected =
        read_json(fs::path(entry.path()).replace_extension(".expected.json"));
    for (const auto& [name, input] : inputs["cases"].items()) {
      ordered_json context = input;
      context["bos_token"] = inputs["bos_token"];
      context["eos_token"] = inputs["eos_token"];
      cases.push_back({entry.path().stem().string() + ": " + name, read_text(entry.path()), context,
                       expected_output(expected[name])});
    }
  }
  return cases;
}

std::tm case_time() {
  std::tm time{};
  time.tm_year = 2026 - 1900;
  time.tm_mon = 2;
  time.tm_mday = 14;
  time.tm_hour = 15;
  time.tm_min = 9;
  time.tm_sec = 26;
  return time;
}

std::optional<std::string> rendered(const TemplateCase& one, std::string* why) {
  try {
    const std::string context = one.context.dump();
    return joined(ChatTemplate(one.source).render({.context = context, .now = case_time()}));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << one.where;
    if (why != nullptr) *why = error.what();
    return std::nullopt;
  }
}

bool oracle_is_there() {
  return !python_with("jinja2").empty();
}

std::vector<std::optional<std::string>> ask_oracle(const std::vector<TemplateCase>& cases) {
  ordered_json questions = ordered_json::array();
  for (const TemplateCase& one : cases)
    questions.push_back({{"template", one.source}, {"context", one.context}});
  const fs::path folder =
      fs::temp_directory_path() / ("heddle-oracle-" + std::to_string(::getpid()));
  fs::create_directory(folder);
  std::ofstream(folder / "questions.json") << questions.dump();
  const std::string command = python_with("jinja2") + " '" + kOracle + "' render <'" +
                              (folder / "questions.json").string() + "' >'" +
                              (folder / "answers.json").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::vector<std::optional<std::string>> answers;
  for (const ordered_json& answer : read_json(folder / "answers.json"))
    answers.push_back(expected_output(answer));
  fs::remove_all(folder);
  return answers;
}

}  // namespace heddle::test

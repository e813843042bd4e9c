// Rendered templates are what Jinja2 makes of them, byte for byte.
#include <gtest/gtest.h>

#include "support/shared_files.h"
#include "text/chat_template_support.h"

namespace heddle::test {
namespace {

void expect_as_expected(const std::vector<TemplateCase>& cases) {
  for (const TemplateCase& one : cases) {
    std::string why;
    EXPECT_EQ(rendered(one, &why), one.output) << one.where << "\n" << why;
  }
}

void expect_as_the_oracle(const std::vector<TemplateCase>& cases) {
  const auto answers = ask_oracle(cases);
  ASSERT_EQ(answers.size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(answers[i], cases[i].output) << cases[i].where << "\nis not what the oracle says now";
}

TEST(ChatTemplateOracle, FeaturesAsRecorded) {
  const auto cases = checked_in_cases();
  ASSERT_GT(cases.size(), 900u);
  expect_as_expected(cases);
}

TEST(ChatTemplateOracle, RecordedIsWhatJinjaSays) {
  if (!oracle_is_there()) GTEST_SKIP() << "skipped: python3 with jinja2 is not there";
  expect_as_the_oracle(checked_in_cases());
}

TEST(ChatTemplateOracle, ReleasedTemplates) {
  HEDDLE_SHARED_FILE(folder, "templates");
  const auto cases = shared_cases(folder);
  ASSERT_EQ(cases.size(), 48u);
  expect_as_expected(cases);
}

TEST(ChatTemplateOracle, ReleasedTemplatesAsJinjaSaysToday) {
  HEDDLE_SHARED_FILE(folder, "templates");
  if (!oracle_is_there()) GTEST_SKIP() << "skipped: python3 with jinja2 is not there";
  expect_as_the_oracle(shared_cases(folder));
}

}  // namespace
}  // namespace heddle::test

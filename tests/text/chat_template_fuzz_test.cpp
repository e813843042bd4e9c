// Templates that a few random changes have broken: they render or are refused, and soon.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>

#include "heddle/error.h"
#include "support/shared_files.h"
#include "text/chat_template_support.h"

namespace heddle::test {
namespace {

int rounds() {
  const char* given = std::getenv("FUZZ_ROUNDS");
  return given == nullptr ? 2000 : std::atoi(given);
}

std::string mutated(std::string source, const std::vector<TemplateCase>& others,
                    std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  static const std::vector<std::string> kPieces{"{{",
                                                "}}",
                                                "{%",
                                                "%}",
                                                "{#",
                                                "#}",
                                                "-",
                                                "+",
                                                "(",
                                                ")",
                                                "[",
                                                "]",
                                                "|",
                                                ".",
                                                "'",
                                                "\"",
                                                "if ",
                                                "{% endif %}",
                                                "{% endfor %}",
                                                "loop",
                                                " in ",
                                                " is ",
                                                "not ",
                                                "*",
                                                "//",
                                                "%",
                                                "~",
                                                "9999999999",
                                                "\\",
                                                "\n",
                                                "range(9)",
                                                "|tojson",
                                                "|list",
                                                "::-1",
                                                "namespace()",
                                                "é",
                                                "{% else %}",
                                                ",",
                                                ":",
                                                "0"};
  for (std::size_t change = 0, changes = 1 + below(4); change < changes; ++change) {
    const std::size_t at = below(source.size() + 1), length = below(20);
    const std::string& other = others[below(others.size())].source;
    switch (below(5)) {
      case 0:
        source.erase(at, length);
        break;
      case 1:
        source.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 2:
        source.insert(at, other.substr(below(other.size() + 1), length * 4));
        break;
      case 3:
        source.insert(at, source.substr(below(source.size() + 1), length));
        break;
      default:
        if (at < source.size()) source[at] = static_cast<char>(below(128));
    }
  }
  return source;
}

void try_mutations(const std::vector<TemplateCase>& cases) {
  std::mt19937 random(20260314);
  const auto start = std::chrono::steady_clock::now();
  int done = 0, refused = 0;
  for (; done < rounds(); ++done) {
    TemplateCase one = cases[random() % cases.size()];
    one.source = mutated(one.source, cases, random);
    one.where = one.source;
    const auto begin = std::chrono::steady_clock::now();
    refused += !rendered(one);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30)) << one.source;
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(200)) break;
  }
  std::cout << done << " templates, " << refused << " of them refused\n";
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, done);
}

TEST(ChatTemplateFuzz, ChangedFeatures) {
  try_mutations(checked_in_cases());
}

TEST(ChatTemplateFuzz, ChangedReleasedTemplates) {
  HEDDLE_SHARED_FILE(folder, "templates");
  try_mutations(shared_cases(folder));
}

}  // namespace
}  // namespace heddle::test

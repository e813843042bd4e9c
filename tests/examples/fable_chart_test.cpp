#include "chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cli/process.h"

namespace fable {
namespace {

using testing::HasSubstr;

/// How many elements of a name there are, by an XML parser; -1 if the text is no XML.
int elements(const std::string& svg, const std::string& name) {
  const std::string program =
      "import sys, xml.etree.ElementTree as t\n"
      "root = t.fromstring(sys.stdin.buffer.read())\n"
      "print(len(root.findall('.//{http://www.w3.org/2000/svg}" +
      name + "')))";
  heddle::test::Process python({"python3", "-c", program});
  const auto finished = python.finish(svg);
  return finished.exit_code == 0 ? std::atoi(finished.out.c_str()) : -1;
}

TEST(FableChart, IsWellFormed) {
  const std::string svg = loss_chart("<loss> & \"more\"", {{"a < b", "red", {{0, 7}, {10, 0.5}}},
                                                           {"c", "blue", {{0, 6}, {10, 0.4}}},
                                                           {"nothing yet", "green", {}}});
  EXPECT_EQ(elements(svg, "polyline"), 2);
  EXPECT_EQ(elements(svg, "title"), 1);
  EXPECT_GT(elements(svg, "text"), 10);
  EXPECT_EQ(elements("<svg>", "text"), -1);
  for (const char* text : {"a &lt; b", "0.4000 at last", "steps", "loss (nats a token)"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST(FableChart, HasAPlaceForAnyLosses) {
  using Points = std::vector<std::pair<double, double>>;
  for (const Points& points : {Points{}, Points{{0, 1}}, Points{{0, 1e-5}, {1, 1e5}},
                               Points{{5, 2}, {5, 2}}, Points{{0, 3}, {100000, 3}}}) {
    const std::string svg = loss_chart("t", {{"c", "red", points}});
    EXPECT_EQ(elements(svg, "polyline"), points.empty() ? 0 : 1);
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
    EXPECT_LT(elements(svg, "text"), 100);
  }
}

}  // namespace
}  // namespace fable

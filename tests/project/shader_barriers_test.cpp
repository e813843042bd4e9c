// Rule 14, held over the shaders as they stand, by a reader that these fixtures hold to its word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "project/barrier_rule.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> findings(const ShaderFiles& files, const std::string& name = "a.comp") {
  std::vector<std::string> text;
  for (const SkippedBarrier& found : skipped_barriers(files, name)) {
    text.push_back(found.file + ":" + std::to_string(found.line) + ": " + found.what);
  }
  return text;
}

/// Of a function body that begins on line 2.
std::vector<std::string> in_body(const std::string& body) {
  return findings({{"a.comp", "void main() {\n" + body + "\n}\n"}});
}

// ---- What must be found

TEST(SkippedBarriers, AReturnBeforeABarrier) {
  EXPECT_THAT(in_body("if (lane > n) return;\nbarrier();"),
              ElementsAre("a.comp:2: return before barrier (a.comp:3)"));
  EXPECT_THAT(in_body("if (lane > n) {\n  x = 1;\n  return;\n}\ny = 2;\nbarrier();"),
              ElementsAre("a.comp:4: return before barrier (a.comp:7)"));
  EXPECT_THAT(in_body("if (a) x = 1; else return;\n{ { barrier(); } }"),
              ElementsAre("a.comp:2: return before barrier (a.comp:3)"));
  EXPECT_THAT(in_body("switch (what) {\ncase 1:\n  return;\ndefault: x = 1;\n}\nbarrier();"),
              ElementsAre("a.comp:4: return before barrier (a.comp:7)"));
}

TEST(SkippedBarriers, AReturnInALoopThatHasOneAnywhere) {
  EXPECT_THAT(in_body("for (uint i = 0u; i < n; ++i) {\n  barrier();\n  if (x) return;\n}"),
              ElementsAre("a.comp:4: return before barrier (a.comp:3)"));
  EXPECT_THAT(in_body("while (a) {\n  barrier();\n  for (;;) {\n    if (x) return;\n  }\n}"),
              ElementsAre("a.comp:5: return before barrier (a.comp:3)"));
}

TEST(SkippedBarriers, AContinueBeforeOneOfTheSameLoop) {
  EXPECT_THAT(in_body("for (;;) {\n  if (idle) continue;\n  barrier();\n}"),
              ElementsAre("a.comp:3: continue before barrier (a.comp:4)"));
  EXPECT_THAT(in_body("do {\n  if (idle) continue;\n  barrier();\n} while (more);"),
              ElementsAre("a.comp:3: continue before barrier (a.comp:4)"));
  EXPECT_THAT(in_body("[[unroll]] for (;;) {\n  if (idle) { continue; }\n  subgroupBarrier();\n}"),
              ElementsAre("a.comp:3: continue before subgroupBarrier (a.comp:4)"));
}

TEST(SkippedBarriers, ABreakOutOfALoopWithOne) {
  EXPECT_THAT(in_body("for (;;) {\n  barrier();\n  if (done) break;\n}"),
              ElementsAre("a.comp:4: break before barrier (a.comp:3)"));
}

TEST(SkippedBarriers, ABarrierThatAnInvocationsOwnIndexLeadsTo) {
  EXPECT_THAT(in_body("if (gl_LocalInvocationIndex < 8u) {\n  barrier();\n}"),
              ElementsAre("a.comp:3: barrier where not all invocations come"));
  EXPECT_THAT(in_body("const uint lane = gl_LocalInvocationIndex, n = 3u;\nuint half_lane;\n"
                      "half_lane = lane / 2u;\nif (n > 2u) barrier();\n"
                      "for (uint i = half_lane; i < n; ++i) {\n  barrier();\n}"),
              ElementsAre("a.comp:7: barrier where not all invocations come"));
  EXPECT_THAT(in_body("uint n = 0u;\nn += gl_LocalInvocationIndex;\nif (n > 2u) barrier();"),
              ElementsAre("a.comp:4: barrier where not all invocations come"));
  const std::string text =
      "void work() { barrier(); }\nvoid main() {\n  if (subgroupElect()) work();\n}\n";
  EXPECT_THAT(findings({{"a.comp", text}}),
              ElementsAre("a.comp:3: work where not all invocations come"));
}

TEST(SkippedBarriers, BarriersOfCalledFunctions) {
  const std::string text =
      "float deep(float x) {\n  barrier();\n  return x;\n}\n"
      "float outer(float x) { return deep(x) + 1.0; }\n"
      "void main() {\n  if (lane == 0u) return;\n  float y = outer(1.0);\n}\n";
  EXPECT_THAT(findings({{"a.comp", text}}),
              ElementsAre("a.comp:7: return before outer (a.comp:8)"));
}

TEST(SkippedBarriers, IncludedAndInMacros) {
  const ShaderFiles files{{"group.glsl",
                           "#define SUM(name, op)    \\\n  float name(float x) {  \\\n"
                           "    if (x > 0.0) return x; /* so soon */ \\\n    barrier();  \\\n"
                           "    return op(x);  \\\n  }\nSUM(group_sum, plus)\n"},
                          {"a.comp",
                           "#include \"group.glsl\"\n#define LEAVE if (idle) return\n"
                           "void main() {\n  LEAVE;\n  group_sum(1.0);\n}\n"}};
  EXPECT_THAT(findings(files), ElementsAre("a.comp:2: return before group_sum (a.comp:5)",
                                           "group.glsl:3: return before barrier (group.glsl:4)"));
}

TEST(SkippedBarriers, EveryBranchOfAConditionIsRead) {
  const std::string text =
      "void main() {\n#ifdef MINIMAL\n  if (x) return;\n#elif WIDTH > 2\n  if (y) return;\n"
      "#else\n  z = 1;\n#endif\n#if !defined(QUIET)\n  barrier();\n#endif\n}\n";
  EXPECT_THAT(findings({{"a.comp", text}}),
              ElementsAre("a.comp:3: return before barrier (a.comp:10)",
                          "a.comp:5: return before barrier (a.comp:10)"));
}

// ---- What must not

TEST(SkippedBarriers, NothingWhereAllComeToEveryBarrier) {
  for (const char* body : {
           "if (group_index() < group_count()) work();",
           "barrier();\nif (lane > 0u) return;\nx = 1;",
           "for (;;) {\n  barrier();\n  if (idle) continue;\n  x = 1;\n}",
           "for (;;) {\n  for (;;) { if (idle) continue; x = 1; }\n  barrier();\n}",
           "for (;;) {\n  for (;;) { if (found) break; }\n  barrier();\n}",
           "for (;;) {\n  switch (kind) { case 1: break; default: x = 1; break; }\n  barrier();\n}",
           "if (lane > n) return;\nx = 1;  // no barrier() here\n/* barrier(); */",
           "if (lane > n) return;\nx = barrier + barriers();",
           "const uint lane = gl_LocalInvocationIndex;\nif (lane > n) x = 1;\nbarrier();",
           "if (n == gl_LocalInvocationIndex || n <= gl_SubgroupID) x = 1;\nif (n > 2u) barrier();",
           "const uint n = params.n, lane = gl_LocalInvocationIndex;\nif (n > 2u) barrier();",
       }) {
    EXPECT_THAT(in_body(body), IsEmpty()) << body;
  }
}

TEST(SkippedBarriers, NothingWhereConstantsAloneDecide) {
  EXPECT_THAT(in_body("if (kOneSubgroup) return;\nbarrier();"), IsEmpty());
  EXPECT_THAT(in_body("if (kWidth <= 2u * kSubgroupSize && !kWide) { return; }\nbarrier();"),
              IsEmpty());
  EXPECT_THAT(in_body("for (;;) { if (kSmall) break; barrier(); }"), IsEmpty());
  EXPECT_THAT(in_body("switch (kKind) { case 1: return; }\nbarrier();"), IsEmpty());
  // But not where something else decides as well.
  EXPECT_THAT(in_body("if (kOneSubgroup && lane > 0u) return;\nbarrier();").size(), 1u);
  EXPECT_THAT(in_body("if (lane > 0u) { if (kOneSubgroup) return; }\nbarrier();").size(), 1u);
  EXPECT_THAT(in_body("for (;;) { if (kSmall) return; barrier(); }").size(), 1u);
}

TEST(SkippedBarriers, TheBarrierInTheReturnedValueIsReached) {
  const std::string text =
      "float sum(float x) { barrier(); return x; }\n"
      "float row(float x) {\n  return sum(x);\n}\nvoid main() { row(1.0); }\n";
  EXPECT_THAT(findings({{"a.comp", text}}), IsEmpty());
}

TEST(SkippedBarriers, FunctionsOfFilesThatAreNotIncludedDoNotCount) {
  const ShaderFiles files{{"b.comp", "void work() { barrier(); }\n"},
                          {"a.comp",
                           "void work() { x = 1; }\nvoid main() {\n"
                           "  if (idle) return;\n  work();\n}\n"}};
  EXPECT_THAT(findings(files), IsEmpty());
}

// ---- Text that is none

TEST(SkippedBarriers, BrokenTextIsSaidToBeBroken) {
  const auto message = [](const ShaderFiles& files) -> std::string {
    try {
      skipped_barriers(files, "a.comp");
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message({}), HasSubstr("a.comp"));
  EXPECT_THAT(message({{"a.comp", "#include \"b.glsl\"\n"}}), HasSubstr("b.glsl"));
  EXPECT_THAT(message({{"a.comp", "#include \"a.comp\"\n"}}), HasSubstr("includes itself"));
  EXPECT_THAT(message({{"a.comp", "#ifdef A\n"}}), HasSubstr("#endif"));
  EXPECT_THAT(message({{"a.comp", "#endif\n"}}), HasSubstr("#endif"));
  EXPECT_THAT(message({{"a.comp", "void main() { if (a) {\n"}}), HasSubstr("no }"));
}

// ---- The shaders

ShaderFiles all_shaders() {
  ShaderFiles files;
  const fs::path folder = fs::path(HEDDLE_SOURCE_DIR) / "src/device/vulkan/shaders";
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".comp" && extension != ".glsl") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return files;
}

TEST(Shaders, SkipNoBarriers) {
  const ShaderFiles files = all_shaders();
  ASSERT_GT(files.size(), 2u);
  std::set<std::string> found;  // a file that many include is read with each
  for (const auto& [name, text] : files) {
    for (const std::string& finding : findings(files, name)) found.insert(finding);
  }
  for (const std::string& finding : found) ADD_FAILURE() << finding;
}

/// So that the test above does not pass because it reads nothing: the barriers are seen.
TEST(Shaders, AReturnPutInFrontOfTheirBarriersIsFound) {
  ShaderFiles files = all_shaders();
  std::size_t with_barriers = 0;
  for (auto& [name, text] : files) {
    const std::size_t at = text.find("  barrier();");
    if (!name.ends_with(".comp") || at == std::string::npos) continue;
    const std::string whole = text;
    text.insert(at, "  if (gl_LocalInvocationIndex > 0u) return;");
    EXPECT_THAT(findings(files, name), testing::Not(IsEmpty())) << name;
    text = whole;
    ++with_barriers;
  }
  EXPECT_GT(with_barriers, 0u);
}

}  // namespace
}  // namespace heddle::test

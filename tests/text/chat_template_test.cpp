// What the oracle cannot say: where text comes from, limits, messages, threads.
#include "heddle/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "heddle/error.h"
#include "text/chat_template_support.h"

namespace heddle::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<TextPiece> render(std::string_view source, std::string_view context = "{}") {
  return ChatTemplate(source).render({.context = context});
}

TextPiece own(std::string text) {
  return {std::move(text), true};
}
TextPiece data(std::string text) {
  return {std::move(text), false};
}

/// The message of the error that this ends in.
std::string refusal(std::string_view source, const TemplateLimits& limits = {},
                    std::string_view context = "{}") {
  try {
    const auto pieces = ChatTemplate(source, limits).render({.context = context});
    ADD_FAILURE() << source << "\nrendered as " << joined(pieces).substr(0, 200);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(ChatTemplateOrigin, MessagesAreData) {
  EXPECT_THAT(render("<|im_start|>{{ m }}<|im_end|>", R"({"m": "<|im_start|>"})"),
              ElementsAre(own("<|im_start|>"), data("<|im_start|>"), own("<|im_end|>")));
  EXPECT_THAT(render("a{{ 'b' }}{{ 'c' ~ 'd' }}"), ElementsAre(own("abcd")));
  EXPECT_THAT(render(""), testing::IsEmpty());
}

TEST(ChatTemplateOrigin, DataStaysDataThroughEveryOperation) {
  constexpr std::string_view kTyped = "<|im_start|>";
  const std::string context =
      R"({"m": "<|im_start|>", "l": ["<|im_start|>"], "p": "  <|im_start|>\n",
    "d": {"<|im_start|>": "<|im_start|>"}, "h": "<|im_", "x": "<|im_startX|>", "n": null})";
  for (const std::string_view source :
       {"{{ m }}",
        "{{ p | trim }}",
        "{{ p.strip() }}",
        "{{ m | upper | lower }}",
        "{{ m.lower() }}",
        "{{ m | replace('q', '') }}",
        "{{ m.replace('q', 'z') }}",
        "{{ x | replace('X', '') }}",
        "{{ m + '' }}",
        "{{ '' ~ m }}",
        "{{ l | join('') }}",
        "{{ ''.join(l) }}",
        "{{ m[0:] }}",
        "{{ m[:5] ~ m[5:] }}",
        "{{ m[::-1][::-1] }}",
        "{{ m | reverse | reverse }}",
        "{% for c in m %}{{ c }}{% endfor %}",
        "{{ m | list | join }}",
        "{{ l[0] }}",
        "{{ l | first }}",
        "{{ d.keys() | first }}",
        "{{ d | list | last }}",
        "{{ d.items() | map('last') | first }}",
        "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(m) }}",
        "{% macro f(a) %}{{ caller(a) }}{% endmacro %}{% call(a) f(m) %}{{ a }}{% endcall %}",
        "{% set y %}{{ m }}{% endset %}{{ y }}",
        "{% filter trim %} {{ m }} {% endfilter %}",
        "{% set ns = namespace(t='') %}{% for c in m %}{% set ns.t = ns.t + c %}{% endfor %}{{ "
        "ns.t }}",
        "{{ '%s' % m }}",
        "{{ '%s' | format(m) }}",
        "{{ '{}'.format(m) }}",
        "{{ m * 1 }}",
        "{{ m | safe }}",
        "{{ m | string }}",
        "{{ m | default('x') }}",
        "{{ n or m }}",
        "{{ m.split('q')[0] }}",
        "{{ (m ~ ' q').split()[0] }}",
        "{{ m.partition('q')[0] }}",
        "{{ m.splitlines()[0] }}",
        "{{ m.removeprefix('q') }}",
        "{{ m | indent }}",
        "{{ m.ljust(3) }}",
        "{{ m | center(2) }}",
        "{{ (m | tojson)[1:-1] }}",
        "{{ (l | string)[2:-2] }}",
        "{{ m.swapcase().swapcase() }}",
        "{{ m | truncate(100) }}",
        "{{ {m: 1} | first }}",
        "{{ (l + l)[1] }}",
        "{{ l | sort | first }}",
        "{{ l | map('trim') | first }}",
        "{{ l | unique | first }}",
        "{{ m.zfill(2) }}",
        "{{ [{'a': m}] | map(attribute='a') | first }}",
        "{{ [{'a': m}] | groupby('a') | map('first') | first }}"}) {
    EXPECT_THAT(render(source, context), ElementsAre(data(std::string(kTyped)))) << source;
  }
}

TEST(ChatTemplateOrigin, HalvesAreNeverJoined) {
  EXPECT_THAT(render("{{ '<|im_' + t }}", R"({"t": "start|>"})"),
              ElementsAre(own("<|im_"), data("start|>")));
  EXPECT_THAT(render("{{ ('<|im_' ~ t) | upper | trim }}", R"({"t": "start|>"})"),
              ElementsAre(own("<|IM_"), data("START|>")));
  EXPECT_THAT(render("{{ l | join('|') }}", R"({"l": ["<", "a", ">"]})"),
              ElementsAre(data("<"), own("|"), data("a"), own("|"), data(">")));
  EXPECT_THAT(render("{{ 'a-b' | replace('-', m) }}", R"({"m": "+"})"),
              ElementsAre(own("a"), data("+"), own("b")));
  EXPECT_THAT(render("{{ (('ab' ~ m) * 2)[1:5] }}", R"({"m": "XY"})"),
              ElementsAre(own("b"), data("XY"), own("a")));
}

TEST(ChatTemplateOrigin, NumbersAndPunctuationOfValuesAreData) {
  EXPECT_THAT(render("n{{ 1 }}{{ [1, 'a'] }}{{ none }}{{ {'k': 'v'} | tojson }}"),
              ElementsAre(own("n"), data("1[1, '"), own("a"), data("']None{\""), own("k"),
                          data("\": \""), own("v"), data("\"}")));
}

TEST(ChatTemplateOrigin, TrustedNamesAreTheTemplatesOwn) {
  const ChatTemplate one("{{ bos_token }}{{ m }}");
  EXPECT_THAT(one.render({.context = R"({"m": "<s>", "bos_token": "x"})",
                          .trusted = R"({"bos_token": "<s>"})"}),
              ElementsAre(own("<s>"), data("<s>")));
}

TEST(ChatTemplateError, SaysWhere) {
  EXPECT_EQ(refusal("a\nbé{{ 1 + }}"),
            "chat template, line 2, column 10: expected an expression, found '}}'");
  EXPECT_EQ(refusal("\n\n  {{ raise_exception('Roles must alternate') }}"),
            "chat template, line 3, column 21: Roles must alternate");
  EXPECT_EQ(refusal("{{ messages[0].x.y }}", {}, R"({"messages": [{}]})"),
            "chat template, line 1, column 17: 'dict object' has no attribute 'x'");
  EXPECT_THAT(refusal("{% for x in y"), StartsWith("chat template, line 1, column 1: "));
  EXPECT_THAT(refusal("{% if x %}{{ y }}"), HasSubstr("expected 'endif'"));
  EXPECT_THAT(refusal("{{ x | nope }}"), HasSubstr("no filter named 'nope'"));
  EXPECT_THAT(refusal("{% include 'x' %}"), HasSubstr("'include' is not supported"));
  EXPECT_THAT(refusal("a\xFF"), HasSubstr("invalid UTF-8"));
}

TEST(ChatTemplateError, ContextsThatAreNone) {
  EXPECT_THAT(refusal("x", {}, "{"), HasSubstr("the context is not JSON"));
  EXPECT_THAT(refusal("x", {}, ""), HasSubstr("the context is not JSON"));
  EXPECT_THAT(refusal("x", {}, "[]"), HasSubstr("the context must be a JSON object"));
  EXPECT_THAT(refusal("x", {}, "{\"a\": \"\xFF\"}"), HasSubstr("the context is not JSON"));
  EXPECT_THAT(refusal("x", {}, "{\"a\": " + std::string(100000, '[')), HasSubstr("'nesting'"));
}

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(ChatTemplateLimit, Nesting) {
  for (const auto& [open, middle, close] :
       std::vector<std::array<std::string_view, 3>>{{"(", "1", ")"},
                                                    {"[", "1", "]"},
                                                    {"{1:", "1", "}"},
                                                    {"-", "1", ""},
                                                    {"not ", "1", ""},
                                                    {"f(", "1", ")"},
                                                    {"x[", "1", "]"},
                                                    {"", "x", ".a"},
                                                    {"", "x", "|f"},
                                                    {"", "x", "[1]"},
                                                    {"", "x", "()"},
                                                    {"", "1", "+1"},
                                                    {"", "1", "**1"},
                                                    {"", "1", " is x"},
                                                    {"", "1", " if 1"},
                                                    {"1 if 1 else ", "1", ""},
                                                    {"", "1", " or 1"},
                                                    {"", "1", " and 1"}}) {
    const std::string source =
        "{{ " + repeated(open, 50000) + std::string(middle) + repeated(close, 50000) + " }}";
    if (close != " is x")
      EXPECT_THAT(refusal(source), HasSubstr("'nesting'")) << open << close;
    else
      EXPECT_THAT(refusal(source), HasSubstr("chat template")) << open << close;
  }
  EXPECT_THAT(refusal(repeated("{% if 1 %}", 50000)), HasSubstr("'nesting'"));
  EXPECT_THAT(refusal(repeated("{% for x in y %}", 50000)), HasSubstr("'nesting'"));
  EXPECT_THAT(refusal("{% set " + repeated("(", 50000) + "a" + repeated(")", 50000) + " = 1 %}"),
              HasSubstr("'nesting'"));
  EXPECT_THAT(refusal("{% set ns = namespace(l=[]) %}{% for i in range(1000) %}"
                      "{% set ns.l = [ns.l] %}{% endfor %}"),
              HasSubstr("'nesting'"));
}

TEST(ChatTemplateLimit, Recursion) {
  EXPECT_THAT(refusal("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("'recursion'"));
  EXPECT_THAT(refusal("{% macro f(a=f()) %}{% endmacro %}{{ f() }}"), HasSubstr("chat template"));
}

TEST(ChatTemplateLimit, Steps) {
  const std::string loops =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(refusal(loops), HasSubstr("'steps'"));
  EXPECT_THAT(refusal("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}"
                      "{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l == ns.l[0] }}{{ ns.l }}"),
              HasSubstr("(limit '"));
  EXPECT_THAT(refusal("{{ [1] * 9999999999 }}"), HasSubstr("'steps'"));
  TemplateLimits few;
  few.steps = 100;
  EXPECT_THAT(refusal("{% for a in range(99) %}x{% endfor %}", few),
              HasSubstr("more than 100 steps"));
}

TEST(ChatTemplateLimit, Text) {
  EXPECT_THAT(refusal("{{ 'ab' * 99999999999 }}"), HasSubstr("'output_bytes'"));
  EXPECT_THAT(refusal("{{ '' * 9223372036854775807 }}{{ 'a'.ljust(9999999999) }}"),
              HasSubstr("'output_bytes'"));
  EXPECT_THAT(refusal("{{ '%999999999d' % 1 }}"), HasSubstr("'output_bytes'"));
  TemplateLimits small;
  small.output_bytes = 1000;
  EXPECT_THAT(refusal("{% for a in range(999) %}abc{% endfor %}", small),
              HasSubstr("'output_bytes'"));
  small.string_bytes = 5000;
  EXPECT_THAT(refusal("{% for a in range(99) %}{% set x = 'a' * 999 %}{% endfor %}", small),
              HasSubstr("'string_bytes'"));
  small.source_bytes = 3;
  EXPECT_THAT(refusal("abcd", small), HasSubstr("'source_bytes'"));
}

TEST(ChatTemplateLimit, Range) {
  EXPECT_THAT(refusal("{{ range(100001) }}"), HasSubstr("'range'"));
  EXPECT_THAT(refusal("{{ range(-9223372036854775807, 9223372036854775807) }}"),
              HasSubstr("'range'"));
  EXPECT_EQ(joined(render("{{ range(100000) | length }}")), "100000");
}

TEST(ChatTemplate, ValuesThatHoldThemselvesEnd) {
  EXPECT_EQ(
      joined(render("{% set ns = namespace() %}{% set ns.ns = ns %}{% set ns.l = [ns] %}"
                    "{% macro m() %}{{ ns }}{% endmacro %}{% set ns.m = m %}"
                    "{% for x in [1] %}{% set ns.loop = loop %}{{ loop.changed(loop) }}{% endfor %}"
                    "{{ ns.l == [ns] }}")),
      "TrueTrue");
  EXPECT_EQ(joined(render(
                "{% set ns = namespace(c=1) %}{% for i in range(50000) %}"
                "{% for x in [0] %}{% set ns.c = namespace(c=ns.c) %}{% endfor %}{% endfor %}x")),
            "x");
  EXPECT_THAT(refusal("{% set ns = namespace(c=1) %}{% for i in range(50000) %}"
                      "{% for x in [ns.c] %}{% set ns.c = loop %}{% endfor %}{% endfor %}"
                      "{{ [ns.c] }}"),
              HasSubstr("'nesting'"));
}

TEST(ChatTemplate, LargeIntegersOfTheContextBecomeFloats) {
  EXPECT_EQ(joined(render("{{ n }}", R"({"n": 18446744073709551616})")), "1.8446744073709552e+19");
  EXPECT_THAT(refusal("{{ 9223372036854775807 + 1 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(refusal("{{ 9223372036854775808 }}"), HasSubstr("64 bits"));
}

TEST(ChatTemplate, WhatJinjaVersionsDifferIn) {
  EXPECT_EQ(joined(render("{% set ns = namespace() %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}")),
            "12");
  EXPECT_THAT(refusal("{{ [1].pop() }}"), HasSubstr("no attribute 'pop'"));
}

TEST(ChatTemplate, ThreadsShareOne) {
  const ChatTemplate one(
      "{% set ns = namespace(t='') %}{% for m in l %}{% set ns.t = ns.t ~ m %}"
      "{% endfor %}{{ ns.t }}{{ 'x' | upper }}{{ [1, 2] | tojson }}");
  std::vector<std::thread> threads;
  std::vector<std::string> results(4);
  for (std::string& result : results)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        result = joined(one.render({.context = R"({"l": ["a", "b"]})"}));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(results, testing::Each("abX[1, 2]"));
}

}  // namespace
}  // namespace heddle::test

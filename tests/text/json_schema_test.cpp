// What each keyword of a JSON schema lets through, and that what comes out is always valid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "heddle/error.h"
#include "text/json_schema_support.h"

namespace heddle::test {
namespace {

using testing::HasSubstr;

void expect_instances(const std::string& schema, const std::vector<std::string>& inside,
                      const std::vector<std::string>& outside) {
  const auto grammar = Grammar::from_json_schema(schema);
  for (const std::string& text : inside)
    EXPECT_TRUE(has_text(grammar, text)) << schema << ": " << text;
  for (const std::string& text : outside)
    EXPECT_FALSE(has_text(grammar, text)) << schema << ": " << text;
}

TEST(JsonSchema, Types) {
  expect_instances(R"({"type": "null"})", {"null"}, {"nul", "true", ""});
  expect_instances(R"({"type": ["boolean", "null"]})", {"true", "false", "null"}, {"0"});
  expect_instances(R"({"type": "boolean", "nullable": true})", {"true", "null"}, {"0"});
  expect_instances(R"({"type": "integer"})", {"0", "-7", "123456789012345"},
                   {"01", "-0", "1.0", "1e3", "1234567890123456"});
  expect_instances(R"({"type": "number"})", {"0", "-7.25", "1e9", "2.5E-07"},
                   {"01", ".5", "1.", "1e999"});
  expect_instances(R"({"type": "string"})", {R"("")", R"("é\n\"\u00e9\/")", R"("\ud83d\uDE00")"},
                   {"\"\n\"", R"("\q")", R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")", "\""});
  expect_instances("true", {"[1, {\"a\":null}]", "1"}, {"", "[1,]", "[1 ]", "[1,  2]"});
  expect_instances("{}", {R"({"a": [], "b":{}})"}, {"{a:1}"});
}

TEST(JsonSchema, Strings) {
  expect_instances(R"({"type": "string", "minLength": 2, "maxLength": 3})",
                   {R"("ab")", R"("é\u00e9\n")", R"("\ud83d\ude00a")"}, {R"("a")", R"("abcd")"});
  expect_instances(R"({"pattern": "b+$", "maxLength": 4})", {R"("abbb")", R"("b")"},
                   {R"("ba")", R"("aabbb")"});
  expect_instances(R"({"pattern": "^\"\\\\$"})", {R"("\"\\")"}, {R"(""\")"});
  expect_instances(R"({"format": "date"})", {R"("2024-02-29")", R"("2023-12-31")"},
                   {R"("2023-02-29")", R"("1900-02-29")", R"("2023-04-31")", R"("2023-13-01")"});
  expect_instances(R"({"format": "date-time"})", {R"("2024-02-29T23:59:59.5+05:30")"},
                   {R"("2024-02-29T24:00:00Z")", R"("2024-02-29")"});
  expect_instances(R"({"format": "ipv6"})",
                   {R"("::")", R"("::1")", R"("1:2:3:4:5:6:7:8")", R"("fe80::12:a")"},
                   {R"("1:2:3")", R"("1::2::3")", R"("1:2:3:4:5:6:7:8:9")"});
}

TEST(JsonSchema, Numbers) {
  expect_instances(R"({"type": "integer", "minimum": -3, "exclusiveMaximum": 12})",
                   {"-3", "-1", "0", "9", "11"}, {"-4", "12", "100", "-10"});
  expect_instances(R"({"type": "number", "minimum": 0.25, "maximum": 10})",
                   {"0.25", "0.250", "0.3", "1", "9.99", "10", "10.00"},
                   {"0.2", "0.249", "0", "10.01", "11", "-1", "1e0"});
  expect_instances(R"({"type": "number", "exclusiveMinimum": -0.5, "exclusiveMaximum": 0})",
                   {"-0.4", "-0.001"}, {"0", "-0.5", "-0.50", "-1", "-0", "-0.0"});
  expect_instances(R"({"type": "integer", "multipleOf": 15})", {"0", "15", "-30", "150"},
                   {"5", "10", "16"});
  expect_instances(R"({"type": "number", "multipleOf": 1})", {"0", "15", "-3"}, {"0.5", "-1.25"});
  expect_instances(R"({"type": "number", "multipleOf": 1, "maximum": 9})", {"0", "9"}, {"0.5"});
  expect_instances(R"({"type": "integer", "format": "int32"})", {"2147483647"}, {"2147483648"});
  expect_instances(R"({"type": "integer", "minimum": 10, "exclusiveMinimum": true})", {"11"},
                   {"10"});
}

TEST(JsonSchema, Values) {
  expect_instances(R"({"enum": ["a", 1, null, {"x": [1, 2]}, "\n"]})",
                   {R"("a")", "1", "null", R"({"x":[1, 2]})", R"("\n")"}, {"2", R"("b")", "{}"});
  expect_instances(R"({"const": {"a": 1}})", {R"({"a": 1})"}, {"{}"});
  expect_instances(
      R"({"type": "string", "enum": ["ab", "abc", 3, "x"], "minLength": 2, "pattern": "b$"})",
      {R"("ab")"}, {R"("abc")", "3", R"("x")"});
  expect_instances(R"({"enum": [1, 2.5, 7], "type": "integer", "maximum": 5})", {"1"},
                   {"2.5", "7"});
}

TEST(JsonSchema, Objects) {
  const std::string two = R"({"type": "object", "properties": {"b": {"type": "integer"},
    "a": {"type": "null"}, "c": {"const": 1}}, "required": ["a"]})";
  expect_instances(
      two, {R"({"a":null})", R"({"b": 1, "a":null})", R"({"b":1,"a": null, "c":1})"},
      {"{}", R"({"b":1})", R"({"a":null,"b":1})", R"({"a":null,"d":1})", R"({"a":null,})"});
  expect_instances(
      R"({"properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "integer"}})",
      {"{}", R"({"a":null,"x":1,"ab":2})", R"({"x":1})", R"({"":1})"},
      {R"({"a":1})", R"({"x":1,"a":null})", R"({"x":"y"})"});
  expect_instances(R"({"type": "object"})", {"{}", R"({"a":[{}]})"}, {"[]"});
}

TEST(JsonSchema, PropertyCounts) {
  expect_instances(R"({"properties": {"a": {"const": 1}, "b": {"const": 1}, "c": {"const": 1}},
    "minProperties": 2})",
                   {R"({"a":1,"c":1})", R"({"a":1,"b":1,"c":1})"}, {"{}", R"({"b":1})"});
  expect_instances(R"({"properties": {"a": {"const": 1}, "b": {"const": 1}}, "maxProperties": 1})",
                   {"{}", R"({"a":1})", R"({"b":1})"}, {R"({"a":1,"b":1})"});
  expect_instances(R"({"type": "object", "additionalProperties": {"const": 1}, "minProperties": 1,
    "maxProperties": 2})",
                   {R"({"a":1})", R"({"a":1,"b":1})"}, {"{}", R"({"a":1,"b":1,"c":1})"});
}

TEST(JsonSchema, Arrays) {
  expect_instances(R"({"type": "array", "items": {"const": 1}, "minItems": 1, "maxItems": 3})",
                   {"[1]", "[1,1, 1]"}, {"[]", "[1,1,1,1]", "[2]", "[1,]"});
  expect_instances(R"({"prefixItems": [{"const": 1}, {"const": 2}]})", {"[]", "[1]", "[1,2]"},
                   {"[2]", "[1,2,3]"});
  expect_instances(R"({"prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 2})",
                   {"[1,2]", "[1,2,2]"}, {"[1]", "[]", "[2]"});
  expect_instances(R"({"type": "array", "items": [{"const": 1}], "additionalItems": false})",
                   {"[]", "[1]"}, {"[1,1]"});
  expect_instances(R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"});
  expect_instances(R"({"type": "array", "items": false})", {"[]"}, {"[1]"});
  expect_instances(R"({"type": "array", "uniqueItems": false})", {"[1,[2]]"}, {});
}

TEST(JsonSchema, Combinations) {
  expect_instances(R"({"anyOf": [{"type": "null"}, {"type": "integer"}], "maximum": 5})",
                   {"null", "5"}, {"6"});
  expect_instances(R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {"properties": {"b": {"const": 2}, "a": {"minimum": 3}}}]})",
                   {R"({"a":3})", R"({"a":4,"b":2})"}, {"{}", R"({"a":2})"});
  expect_instances(R"({"type": "object", "properties": {"x": {"const": 1}}, "required": ["x"],
    "anyOf": [{"properties": {"y": {"const": 2}}, "required": ["y"]}, {"properties": {"z": {"const": 3}}, "required": ["z"]}]})",
                   {R"({"x":1,"y":2})", R"({"x":1,"z":3})"},
                   {R"({"x":1})", R"({"x":1,"y":2,"z":3})"});
  expect_instances(
      R"({"oneOf": [{"properties": {"k": {"const": "a"}, "v": {"type": "integer"}}, "required": ["k"]},
    {"properties": {"k": {"const": "b"}}, "required": ["k"]}]})",
      {R"({"k":"a","v":1})", R"({"k":"b"})"}, {R"({"k":"b","v":1})", "{}"});
  expect_instances(
      R"({"oneOf": [{"type": "string"}, {"type": "integer"}, {"enum": [null, true]}]})",
      {R"("a")", "1", "null"}, {"false"});
  expect_instances(R"({"allOf": [{"properties": {"a": true}, "additionalProperties": false},
    {"properties": {"a": {"const": 1}, "b": true}}]})",
                   {R"({"a":1})"}, {R"({"a":1,"b":2})", R"({"a":2})"});
}

TEST(JsonSchema, References) {
  expect_instances(R"({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"const": 1}}})", {"1"}, {"2"});
  expect_instances(R"({"$ref": "#/definitions/list", "definitions": {"list": {"type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/definitions/list"},
    {"type": "null"}]}}, "required": ["value", "next"]}}})",
                   {R"({"value":1,"next":{"value":2,"next":null}})"},
                   {R"({"value":1})", R"({"value":1,"next":{}})"});
  expect_instances(R"({"type": "array", "items": {"$ref": "#"}})", {"[]", "[[],[[]]]"}, {"[1]"});
}

TEST(JsonSchema, RefusalsNameThePointer) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "no valid JSON"},
      {"{", "no valid JSON"},
      {"3", "JSON schema, #: a schema is an object, true or false; this is number"},
      {R"({"properties": {"a/b": {"not": {}}}})",
       "#/properties/a~1b/not: this keyword is not supported"},
      {R"({"items": {"items": {"uniqueItems": true}}})", "#/items/items/uniqueItems"},
      {R"({"type": "object", "patternProperties": {"a": {}}})", "#/patternProperties"},
      {R"({"if": {}, "then": {}})", "#/if"},
      {R"({"type": "text"})", "#/type: \"text\" is no type"},
      {R"({"type": "number", "multipleOf": 0.01})", "#/multipleOf: 0.01 is not supported"},
      {R"({"multipleOf": 0})", "#/multipleOf: 0 is not above 0"},
      {R"({"minLength": -1})", "#/minLength: expected a whole number"},
      {R"({"minLength": "a"})", "#/minLength: expected a whole number"},
      {R"({"maxItems": 1e30})", "#/maxItems: 1e+30 is too large"},
      {R"({"minimum": "a"})", "#/minimum: expected a number"},
      {R"({"type": "string", "format": "iri"})", "#/format: \"iri\" is not supported; date, time"},
      {R"~({"pattern": "(?=a)"})~", "#/pattern: pattern \"(?=a)\", at byte 1: look-ahead"},
      {R"~({"pattern": "a("})~", "this ( is never closed"},
      {R"~({"pattern": "\\bx"})~", "word boundaries"},
      {R"~({"pattern": "(a)\\1"})~", "back references"},
      {R"~({"pattern": "^(((a?){100}){100}){100}$"})~", "too large"},
      {R"~({"pattern": "(a|b)*a(a|b){30}$"})~", "too complex"},
      {R"({"$ref": "#/nowhere"})", "#/$ref: there is nothing at \"#/nowhere\""},
      {R"({"$ref": "http://x/y"})", "#/$ref: \"http://x/y\" is not supported"},
      {R"({"$ref": "#"})", "refers to itself"},
      {R"({"anyOf": [{"$ref": "#"}, {"const": 1}]})", "refers to itself"},
      {R"({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}})",
       "refers to itself"},
      {R"({"oneOf": [{"type": "string"}, {"minLength": 3}]})",
       "#/oneOf: a value made for branch 0"},
      {R"({"oneOf": [{"type": "number"}, {"type": "integer"}]})",
       "made for branch 0 might be valid under branch 1"},
      {R"({"properties": 3})", "#/properties: expected an object"},
      {R"({"required": "a"})", "#/required: expected an array"},
      {R"({"required": [1]})", "#/required: expected strings"},
      {R"({"properties": {"a": []}})", "#/properties/a: a schema is an object"},
      {R"({"enum": [{}], "properties": {}})", "#/properties: not supported together with an enum"},
      {"false", "no finite text"},
      {R"({"type": "object", "required": ["z"], "additionalProperties": false})", "no finite text"},
      {R"({"type": "string", "enum": []})", "no finite text"},
      {R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})",
       "no finite text"},
      {R"({"minimum": 3, "maximum": 2})", "no finite text"},
  };
  for (const auto& [schema, message] : cases) {
    const std::string said = refusal([&] { Grammar::from_json_schema(schema); });
    EXPECT_THAT(said, HasSubstr(message)) << schema;
  }
}

TEST(JsonSchema, DeepAndWideIsBounded) {
  std::string deep, close;
  for (int i = 0; i < 100000; ++i) {
    deep += R"({"items":)";
    close += "}";
  }
  EXPECT_THAT(refusal([&] { Grammar::from_json_schema(deep + "true" + close); }),
              HasSubstr("nests more than"));
  std::string fits = "true";
  for (int i = 0; i < 127; ++i) fits = R"({"items":)" + fits + "}";
  EXPECT_TRUE(has_text(Grammar::from_json_schema(fits), "[[[]]]"));
  Schema wide{{"type", "object"}, {"properties", Schema::object()}};
  for (int i = 0; i < 2000; ++i)
    wide["properties"]["p" + std::to_string(i)] = {{"type", "integer"}};
  EXPECT_TRUE(has_text(Grammar::from_json_schema(wide.dump()), R"({"p7":1,"p1999":2})"));
  Schema product{{"allOf", Schema::array()}};
  for (int i = 0; i < 30; ++i) {
    product["allOf"].push_back(
        {{"anyOf",
          Schema::array({{{"minLength", i}}, {{"maxLength", 100 + i}}, {{"minLength", 1}}})}});
  }
  EXPECT_THAT(refusal([&] { Grammar::from_json_schema(product.dump()); }),
              HasSubstr("combinations"));
  Schema many{{"enum", Schema::array()}};
  for (int i = 0; i < 20000; ++i) many["enum"].push_back("value " + std::to_string(i));
  EXPECT_TRUE(has_text(Grammar::from_json_schema(many.dump()), R"("value 19999")"));
  EXPECT_TRUE(
      has_prefix(Grammar::from_json_schema(R"({"type": "string", "maxLength": 1000000000})"),
                 "\"" + std::string(5000, 'x')));
}

TEST(JsonSchema, OpenJsonNestsTo32) {
  const auto grammar = Grammar::json_object();
  const std::string open = "{\"a\":" + std::string(31, '['), close(31, ']');
  EXPECT_TRUE(has_text(grammar, open + close + "}"));
  EXPECT_FALSE(has_prefix(grammar, open + "["));
}

/// Random schemas, and texts made under them by random tokens of several vocabularies.
TEST(JsonSchema, WhatComesOutIsValid) {
  if (!validator_is_there()) GTEST_SKIP() << "skipped: python3 with jsonschema is not there";
  const std::vector<std::string> names = vocabulary_names();
  ASSERT_FALSE(names.empty());
  Random random(31415);
  std::vector<Document> documents;
  int made = 0, without_instance = 0;
  const int rounds = rounds_or(400);
  while (made < rounds) {
    const Schema schema = random_schema(random);
    std::shared_ptr<const Grammar> grammar;
    try {
      grammar = Grammar::from_json_schema(schema.dump());
    } catch (const Error& error) {
      const std::string what = error.what();
      const bool expected = what.find("no finite text") != what.npos ||
                            what.find("oneOf: a value made") != what.npos ||
                            what.find("together with an enum") != what.npos;
      ASSERT_TRUE(expected) << what << "\n" << schema.dump(2);
      ++without_instance;
      ASSERT_LT(without_instance, 200 + made);
      continue;
    }
    ++made;
    for (int i = 0; i < 4; ++i) {
      const bool large = i == 3 && made % 10 == 0;
      const Indexed& v =
          i == 0 ? bytes_vocabulary()
                 : vocabulary(large ? names.back()
                                    : names[made % std::min<std::size_t>(names.size(), 2)]);
      documents.push_back({schema, sample(grammar, v, random)});
    }
  }
  const auto answers = ask_validator(documents);
  ASSERT_EQ(answers.size(), documents.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_FALSE(answers[i].has_value()) << *answers[i] << "\n"
                                         << documents[i].text << "\n"
                                         << documents[i].schema.dump(2);
  }
  std::cout << documents.size() << " documents of " << made << " schemas; " << without_instance
            << " schemas were refused\n";
}

TEST(JsonSchema, TheValidatorNotices) {
  if (!validator_is_there()) GTEST_SKIP() << "skipped: python3 with jsonschema is not there";
  const auto answers = ask_validator({{{{"type", "integer"}}, "1"},
                                      {{{"type", "integer"}}, "\"a\""},
                                      {{{"type", "integer"}}, "1,"},
                                      {{{"format", "date"}}, "\"2023-02-29\""},
                                      {{{"type", "string"}}, R"("\ud800")"}});
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_FALSE(answers[0].has_value());
  for (std::size_t i = 1; i < 5; ++i) EXPECT_TRUE(answers[i].has_value()) << i;
}

}  // namespace
}  // namespace heddle::test

#include "text/json_schema_support.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/python.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;

/// One schema, with definitions that it may refer to.
class SchemaMaker {
 public:
  explicit SchemaMaker(Random& random) : random_(random) {}

  Schema make() {
    Schema schema = any(3);
    schema["$defs"] = {
        {"leaf", scalar()},
        {"tree",
         {{"type", "object"},
          {"properties",
           {{"value", scalar()},
            {"children",
             {{"type", "array"}, {"items", {{"$ref", "#/$defs/tree"}}}, {"maxItems", 2}}}}},
          {"required", {"value"}},
          {"additionalProperties", false}}}};
    schema["title"] = "made at random";
    return schema;
  }

 private:
  bool chance(int percent) { return below(random_, 100) < static_cast<std::size_t>(percent); }
  int number(int from, int to) {
    return from + static_cast<int>(below(random_, static_cast<std::size_t>(to - from + 1)));
  }
  std::string name() {
    static const std::vector<std::string> names{"a",   "b",    "name", "größe",
                                                "x y", "q\"t", "id",   "\n"};
    return names[below(random_, names.size())];
  }

  Schema string() {
    Schema s{{"type", "string"}};
    switch (below(random_, 4)) {
      case 0: {
        static const std::vector<std::string> patterns{"^[a-z]{1,5}$",
                                                       "^\\d{3}-\\d{4}$",
                                                       "^(foo|bar)+",
                                                       "^[à-ÿ]*$",
                                                       "^\\S{1,3}@\\w{1,4}\\.(com|org)$",
                                                       "[A-Z]",
                                                       "^$|^x[^\\d\"]*$",
                                                       "^.{2,4}$",
                                                       "\\\\|[n-z]",
                                                       "^(?:[a-f]|\\x41)*?$"};
        s["pattern"] = patterns[below(random_, patterns.size())];
        if (chance(40)) s["maxLength"] = number(8, 30);
        if (chance(20)) s["minLength"] = number(0, 6);
        break;
      }
      case 1: {
        static const std::vector<std::string> formats{"date",  "time",    "date-time", "uuid",
                                                      "email", "ipv4",    "ipv6",      "hostname",
                                                      "uri",   "duration"};
        s["format"] = formats[below(random_, formats.size())];
        break;
      }
      case 2:
        if (chance(60)) s["minLength"] = number(0, 5);
        if (chance(80)) s["maxLength"] = chance(20) ? number(100, 300) : number(5, 20);
        break;
      default:
        break;
    }
    return s;
  }

  Schema numeric() {
    const bool integer = chance(50);
    Schema s{{"type", integer ? "integer" : "number"}};
    const auto bound = [&]() -> Schema {
      if (integer || chance(50)) return number(-1200, 1200);
      return number(-30000, 30000) / 128.0;
    };
    if (chance(50)) s[chance(50) ? "minimum" : "exclusiveMinimum"] = bound();
    if (chance(50)) s[chance(50) ? "maximum" : "exclusiveMaximum"] = bound();
    if (chance(15)) s["multipleOf"] = number(1, 12);
    return s;
  }

  Schema value() {
    switch (below(random_, 7)) {
      case 0:
        return nullptr;
      case 1:
        return chance(50);
      case 2:
        return number(-5, 5);
      case 3:
        return 0.5 * number(-5, 5);
      case 4:
        return Schema::array({number(0, 3), name()});
      case 5:
        return Schema{{name(), number(0, 3)}};
      default:
        return name();
    }
  }

  Schema scalar() {
    switch (below(random_, 8)) {
      case 0:
      case 1:
        return string();
      case 2:
      case 3:
        return numeric();
      case 4:
        return {{"type", chance(50) ? "boolean" : "null"}};
      case 5: {
        Schema s;
        s["enum"] = Schema::array();
        for (int i = 0, n = number(1, 4); i < n; ++i) s["enum"].push_back(value());
        return s;
      }
      case 6:
        return {{"const", value()}};
      default: {
        Schema s = string();
        s["type"] = Schema::array({"string", "integer", "null"});
        s["minimum"] = number(-10, 10);
        return s;
      }
    }
  }

  Schema object(int depth) {
    Schema s{{"type", "object"}};
    s["properties"] = Schema::object();
    s["required"] = Schema::array();
    for (int i = 0, n = number(0, 4); i < n; ++i) {
      const std::string key = name();
      s["properties"][key] = any(depth - 1);
      if (chance(50)) s["required"].push_back(key);
    }
    if (chance(10)) s["required"].push_back("more");
    if (chance(60)) s["additionalProperties"] = chance(60) ? Schema(false) : any(depth - 2);
    if (chance(15)) s["maxProperties"] = number(2, 5);
    if (chance(15)) s["minProperties"] = number(0, 2);
    return s;
  }

  Schema array(int depth) {
    Schema s{{"type", "array"}};
    if (chance(30)) {
      s["prefixItems"] = Schema::array();
      for (int i = 0, n = number(1, 3); i < n; ++i) s["prefixItems"].push_back(any(depth - 1));
    }
    if (chance(80)) s["items"] = chance(10) ? Schema(chance(50)) : any(depth - 1);
    if (chance(40)) s["minItems"] = number(0, 3);
    if (chance(50)) s["maxItems"] = number(2, 5);
    return s;
  }

  Schema tagged(int depth) {
    Schema s{{"oneOf", Schema::array()}};
    for (const char* kind : {"circle", "square", "line"}) {
      Schema branch = object(depth - 1);
      branch.erase("maxProperties");
      branch["properties"]["kind"] = {{"const", kind}};
      branch["required"].push_back("kind");
      s["oneOf"].push_back(branch);
    }
    return s;
  }

  Schema any(int depth) {
    if (depth <= 0) return scalar();
    switch (below(random_, 10)) {
      case 0:
      case 1:
      case 2:
        return object(depth);
      case 3:
      case 4:
        return array(depth);
      case 5: {
        Schema s{{"anyOf", Schema::array()}};
        for (int i = 0, n = number(1, 3); i < n; ++i) s["anyOf"].push_back(any(depth - 1));
        return s;
      }
      case 6:
        return {{"$ref", chance(50) ? "#/$defs/tree" : "#/$defs/leaf"}};
      case 7:
        return {{"allOf", Schema::array({object(depth), object(depth)})}};
      case 8:
        return chance(50) ? tagged(depth) : Schema::object();
      default:
        return scalar();
    }
  }

  Random& random_;
};

}  // namespace

Schema random_schema(Random& random) {
  return SchemaMaker(random).make();
}

bool validator_is_there() {
  return !python_with("jsonschema").empty();
}

std::vector<std::optional<std::string>> ask_validator(const std::vector<Document>& documents) {
  Schema questions = Schema::array();
  for (const Document& d : documents) questions.push_back({{"schema", d.schema}, {"text", d.text}});
  const fs::path folder =
      fs::temp_directory_path() / ("heddle-schemas-" + std::to_string(::getpid()));
  fs::create_directory(folder);
  std::ofstream(folder / "questions.json") << questions.dump();
  const std::string oracle = std::string(HEDDLE_SOURCE_DIR) + "/tests/text/json_schema_oracle.py";
  const std::string command = python_with("jsonschema") + " -W ignore '" + oracle + "' <'" +
                              (folder / "questions.json").string() + "' >'" +
                              (folder / "answers.json").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream file(folder / "answers.json");
  std::vector<std::optional<std::string>> answers;
  for (const Schema& answer : Schema::parse(file)) {
    answers.push_back(answer.is_null() ? std::nullopt : std::optional(answer.get<std::string>()));
  }
  fs::remove_all(folder);
  return answers;
}

}  // namespace heddle::test

// Schemas made at random, and what an independent validator says of documents.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "text/grammar_support.h"

namespace heddle::test {

using Schema = nlohmann::ordered_json;

/// Schemas of all supported keywords, some of which have no instance.
Schema random_schema(Random& random);

struct Document {
  Schema schema;
  std::string text;
};
bool validator_is_there();
/// For each document, what is wrong with it, if anything.
std::vector<std::optional<std::string>> ask_validator(const std::vector<Document>& documents);

}  // namespace heddle::test

// Schemas joined: what a value must be valid under all at once.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::text::grammar {

using Json = nlohmann::ordered_json;

/// One of the schemas that a value must be valid under.
struct Source {
  const Json* schema;   // part of the document, or `true`
  std::string pointer;  // "#/properties/a", for errors
  /// The source that led here by $ref, allOf, anyOf or oneOf; kNone for those of the beginning.
  std::size_t via = kNone;
  bool any_of_chosen = false, one_of_chosen = false;  // a branch of it is among the sources

  static constexpr std::size_t kNone = ~std::size_t{0};
  bool has(const char* keyword) const { return schema->is_object() && schema->contains(keyword); }
  const Json* find(const char* keyword) const {
    const auto at = schema->is_object() ? schema->find(keyword) : schema->end();
    return at == schema->end() ? nullptr : &*at;
  }
  std::string pointer_to(const char* keyword) const { return pointer + "/" + keyword; }
};
using Sources = std::vector<Source>;

/// A JSON schema document.
class SchemaReader {
 public:
  /// Throws invalid_argument for what is no JSON, or nests too deep.
  explicit SchemaReader(std::string_view text);

  Sources root() const;
  Source child(const Source& parent, const char* keyword, std::string_view key = {}) const;
  Source item(const Source& parent, const char* keyword, std::size_t index) const;
  /// Adds what `$ref` and `allOf` lead to. Throws invalid_argument for a reference to what is not
  /// there, or to where it came from.
  void follow(Sources& sources) const;
  /// Adds a branch of an anyOf or oneOf, and what it leads to.
  void add(Sources& sources, Source source) const;

 private:
  Source target(const Source& source) const;
  Json document_;
};

/// Checked getters: nothing if the keyword is not there. Throw invalid_argument naming the pointer.
const Json* find_object(const Source& source, const char* keyword);
const Json* find_array(const Source& source, const char* keyword);
std::uint32_t count_or(const Source& source, const char* keyword, std::uint32_t fallback);

}  // namespace heddle::text::grammar

// What the keywords of schemas say about values of each type.
#pragma once

#include <cstdint>
#include <string>

#include "text/grammar/char_dfa.h"
#include "text/grammar/number_range.h"
#include "text/grammar/schema_reader.h"
#include "text/grammar/schema_work.h"

namespace heddle::text::grammar {

/// A set of types, a bit for each.
using Types = std::uint8_t;
inline constexpr Types kNull = 1, kBoolean = 2, kObject = 4, kArray = 8, kString = 16,
                       kInteger = 32, kFraction = 64, kNumber = kInteger | kFraction,
                       kAllTypes = 127;

/// The types that values may have under all of `sources`. Where none says, those that their
/// keywords are about.
Types types_of(const Sources& sources);
/// Those that `type` allows.
Types declared_types(const Sources& sources);
Types type_of(const Json& value);
/// Whether any keyword is about values of some type.
bool says_anything(const Sources& sources);

/// Throws unsupported for a keyword that constrains values of these types and is not enforced.
void check_keywords(const Sources& sources, Types types);

struct StringRules {
  std::uint32_t min = 0, max = ~std::uint32_t{0};  // characters
  std::vector<const CharDfa*> languages;           // of patterns and formats
};
StringRules string_rules(const Sources& sources, SchemaWork& work);
NumberRange number_range(const Sources& sources, bool integer);

/// The values that `enum` and `const` of all sources leave, with the other keywords kept to.
/// Nothing if there is neither.
std::optional<std::vector<Json>> enumerated(const Sources& sources, Types types, SchemaWork& work);

/// Whether no value that is made for `made` is valid under `other`; false where that is not plain
/// to see.
bool never_valid_under(const SchemaReader& reader, const Sources& made, const Sources& other,
                       SchemaWork& work);

}  // namespace heddle::text::grammar

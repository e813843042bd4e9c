// Whether the branches of a oneOf can be told apart.
#include <algorithm>

#include "text/grammar/schema_types.h"

namespace heddle::text::grammar {
namespace {

constexpr int kDepth = 4;  // of discriminating properties in properties

/// How much there is to look through for a property.
std::size_t size_of(const Sources& sources) {
  std::size_t size = 0;
  for (const Source& source : sources) {
    for (const char* keyword : {"properties", "required"}) {
      if (const Json* value = source.find(keyword)) size += value->size();
    }
  }
  return size;
}

bool is_required(const Sources& sources, const std::string& name) {
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const Json* required = find_array(source, "required");
    return required != nullptr &&
           std::find(required->begin(), required->end(), Json(name)) != required->end();
  });
}

bool has_open_choice(const Sources& sources) {
  return std::any_of(sources.begin(), sources.end(), [](const Source& s) {
    return (s.has("anyOf") && !s.any_of_chosen) || (s.has("oneOf") && !s.one_of_chosen);
  });
}

/// What the sources say of a property, so far as they name it or forbid what they do not name.
Sources property_sources(const SchemaReader& reader, const Sources& sources,
                         const std::string& name) {
  Sources found;
  for (const Source& source : sources) {
    const Json* properties = find_object(source, "properties");
    if (properties != nullptr && properties->contains(name)) {
      found.push_back(reader.child(source, "properties", name));
    } else if (source.has("additionalProperties")) {
      found.push_back(reader.child(source, "additionalProperties"));
    }
  }
  return found;
}

/// Whether objects made for the sources never have the property.
bool is_never_made(const Sources& sources, const std::string& name) {
  bool names_some = false;
  for (const Source& source : sources) {
    const Json* properties = find_object(source, "properties");
    names_some |= properties != nullptr;
    if (properties != nullptr && properties->contains(name)) return false;
    const Json* additional = source.find("additionalProperties");
    if (additional != nullptr && *additional != false) return false;
  }
  return names_some && !has_open_choice(sources);
}

bool never(const SchemaReader& reader, const Sources& made, const Sources& other, int depth,
           SchemaWork& work);

/// Whether `is_so` holds of a property that the sources require.
template <class F>
bool any_required(const Sources& sources, const F& is_so) {
  for (const Source& source : sources) {
    const Json* required = find_array(source, "required");
    for (std::size_t i = 0; required != nullptr && i < required->size(); ++i) {
      const Json& name = (*required)[i];
      if (name.is_string() && is_so(name.get_ref<const std::string&>())) return true;
    }
  }
  return false;
}

bool objects_never(const SchemaReader& reader, const Sources& made, const Sources& other, int depth,
                   SchemaWork& work) {
  const std::size_t cost = size_of(made) + size_of(other);
  const auto is_missing = [&](const std::string& name) {
    work.spend(cost);
    return !is_required(made, name) && is_never_made(made, name);
  };
  const auto never_suits = [&](const std::string& name) {
    work.spend(cost);
    Sources mine = property_sources(reader, made, name),
            theirs = property_sources(reader, other, name);
    reader.follow(mine);
    reader.follow(theirs);
    return never(reader, mine, theirs, depth + 1, work);
  };
  return any_required(other, is_missing) || any_required(made, never_suits);
}

bool never(const SchemaReader& reader, const Sources& made, const Sources& other, int depth,
           SchemaWork& work) {
  const auto is_false = [](const Source& s) { return *s.schema == false; };
  if (std::any_of(other.begin(), other.end(), is_false)) return true;
  if (depth > kDepth) return false;
  // What keywords are about limits what is made, and says nothing of what else is valid; a choice
  // that is yet to be made may bring a type.
  const Types types = has_open_choice(made) ? declared_types(made) : types_of(made);
  const Types common = types & declared_types(other);
  if (common == 0) return true;
  const auto mine = enumerated(made, types, work), theirs = enumerated(other, kAllTypes, work);
  if (mine && theirs) {
    return std::none_of(mine->begin(), mine->end(), [&](const Json& v) {
      return std::find(theirs->begin(), theirs->end(), v) != theirs->end();
    });
  }
  const auto none_is = [](const std::vector<Json>& values, Types of) {
    return std::none_of(values.begin(), values.end(),
                        [&](const Json& v) { return (type_of(v) & of) != 0; });
  };
  if (mine) return none_is(*mine, declared_types(other));
  if (theirs && none_is(*theirs, types)) return true;
  return common == kObject && !theirs && objects_never(reader, made, other, depth, work);
}

}  // namespace

bool never_valid_under(const SchemaReader& reader, const Sources& made, const Sources& other,
                       SchemaWork& work) {
  return never(reader, made, other, 0, work);
}

}  // namespace heddle::text::grammar

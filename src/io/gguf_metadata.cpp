#include <fmt/format.h>

#include <limits>
#include <type_traits>

#include "base/check.h"
#include "io/gguf_format.h"

namespace heddle::gguf {
namespace {

template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

std::string type_text(const Value& value) {
  if (const auto* array = std::get_if<Array>(&value)) {
    return fmt::format("array of {}", to_string(element_type(*array)));
  }
  return std::string(to_string(type_of(value)));
}

std::string where(const std::string& source, std::string_view key) {
  return source.empty() ? fmt::format("metadata {}", quote_name(key))
                        : fmt::format("{}: metadata {}", source, quote_name(key));
}

[[noreturn]] void fail_type(const std::string& source, std::string_view key, const Value& value,
                            std::string_view wanted) {
  fail(ErrorCode::io, "{}: is {}, must be {}", where(source, key), type_text(value), wanted);
}

[[noreturn]] void fail_absent(const std::string& source, std::string_view key) {
  fail(ErrorCode::io, "{}: is missing", where(source, key));
}

}  // namespace

const Value* Metadata::find(std::string_view key) const noexcept {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

void Metadata::set(std::string key, Value value) {
  const auto [place, is_new] = index_.try_emplace(key, entries_.size());
  if (is_new) {
    entries_.emplace_back(std::move(key), std::move(value));
  } else {
    entries_[place->second].second = std::move(value);
  }
}

std::optional<std::int64_t> Metadata::find_int(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  return std::visit(
      [&](const auto& v) -> std::int64_t {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_integral_v<T> && is_number<T>) {
          if constexpr (std::is_same_v<T, std::uint64_t>) {
            require(v <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}, ErrorCode::io,
                    "{}: {} does not fit in 63 bits", where(source_, key), v);
          }
          return static_cast<std::int64_t>(v);
        } else {
          fail_type(source_, key, *value, "an integer");
        }
      },
      *value);
}

std::optional<double> Metadata::find_float(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  return std::visit(
      [&](const auto& v) -> double {
        using T = std::decay_t<decltype(v)>;
        if constexpr (is_number<T>) {
          return static_cast<double>(v);
        } else {
          fail_type(source_, key, *value, "a number");
        }
      },
      *value);
}

std::optional<bool> Metadata::find_bool(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* v = std::get_if<bool>(value)) return *v;
  fail_type(source_, key, *value, "bool");
}

std::optional<std::string_view> Metadata::find_string(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* v = std::get_if<std::string>(value)) return *v;
  fail_type(source_, key, *value, "string");
}

template <class T>
const std::vector<T>* Metadata::find_array(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return nullptr;
  if (const auto* array = std::get_if<Array>(value)) {
    if (const auto* elements = std::get_if<std::vector<T>>(array)) return elements;
  }
  fail_type(source_, key, *value, type_text(Array(std::vector<T>())));
}

std::int64_t Metadata::get_int(std::string_view key) const {
  if (const auto value = find_int(key)) return *value;
  fail_absent(source_, key);
}

double Metadata::get_float(std::string_view key) const {
  if (const auto value = find_float(key)) return *value;
  fail_absent(source_, key);
}

std::string_view Metadata::get_string(std::string_view key) const {
  if (const auto value = find_string(key)) return *value;
  fail_absent(source_, key);
}

template <class T>
const std::vector<T>& Metadata::get_array(std::string_view key) const {
  if (const auto* elements = find_array<T>(key)) return *elements;
  fail_absent(source_, key);
}

#define HEDDLE_GGUF_ARRAY(T)                                                      \
  template const std::vector<T>* Metadata::find_array<T>(std::string_view) const; \
  template const std::vector<T>& Metadata::get_array<T>(std::string_view) const;
HEDDLE_GGUF_ARRAY(std::uint8_t)
HEDDLE_GGUF_ARRAY(std::int8_t)
HEDDLE_GGUF_ARRAY(std::uint16_t)
HEDDLE_GGUF_ARRAY(std::int16_t)
HEDDLE_GGUF_ARRAY(std::uint32_t)
HEDDLE_GGUF_ARRAY(std::int32_t)
HEDDLE_GGUF_ARRAY(float)
HEDDLE_GGUF_ARRAY(bool)
HEDDLE_GGUF_ARRAY(std::string)
HEDDLE_GGUF_ARRAY(std::uint64_t)
HEDDLE_GGUF_ARRAY(std::int64_t)
HEDDLE_GGUF_ARRAY(double)
#undef HEDDLE_GGUF_ARRAY

}  // namespace heddle::gguf

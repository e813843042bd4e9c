// How byte-level vocabularies write bytes.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::text {

/// The character, in UTF-8, that stands for a byte in the texts of a byte-level vocabulary.
std::string byte_character(std::uint8_t byte);

}  // namespace heddle::text

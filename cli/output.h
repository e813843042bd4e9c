// Standard output, standard input and files, with every failure reported.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::cli {

/// Writes to standard output; throws Error(io) saying why when that fails.
void print(std::string_view text);
/// As print, and has it appear at once.
void print_now(std::string_view text);
void flush_output();

/// All of standard input.
std::string read_input();
/// All of a file.
std::string read_file(const std::string& path);

std::string bytes_text(std::uint64_t bytes);  // "1.7 MiB"
std::string count_text(std::int64_t count);   // "0.86 M"

}  // namespace heddle::cli

// Logging to standard error, at the level HEDDLE_LOG sets (warn by default).
#pragma once

#include <string>

namespace heddle {

enum class LogLevel { debug, info, warn, error };
void log(LogLevel level, const std::string& message) noexcept;

}  // namespace heddle

#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include "base/settings.h"

namespace heddle {

namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

spdlog::level::level_enum level_of_settings() {
  try {
    return spdlog::level::from_str(settings().log_level);
  } catch (const std::exception&) {
    return spdlog::level::warn;  // whoever needs the settings reports what is wrong with them
  }
}

std::shared_ptr<spdlog::logger> make_logger() {
  auto logger = std::make_shared<spdlog::logger>(
      "heddle", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("heddle: %^%l%$: %v");
  logger->set_level(level_of_settings());
  return logger;
}

}  // namespace

void log(LogLevel level, const std::string& message) noexcept {
  try {
    static const std::shared_ptr<spdlog::logger> logger = make_logger();
    logger->log(spdlog_level(level), message);
  } catch (...) {  // a message that cannot be printed must not stop the work it is about
  }
}

}  // namespace heddle

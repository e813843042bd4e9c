#include "heddle/error.h"

namespace heddle {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::device_lost:
      return "device_lost";
    case ErrorCode::backend:
      return "backend";
    case ErrorCode::io:
      return "io";
    case ErrorCode::cancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace heddle

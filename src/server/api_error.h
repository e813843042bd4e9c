// What the HTTP API refuses, as OpenAI's clients expect it.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "server/http.h"

namespace heddle::server {

/// Thrown while a request is read, and told to its client.
class ApiError : public std::runtime_error {
 public:
  ApiError(int http_status, const std::string& message)
      : std::runtime_error(message), status(http_status) {}

  int status;
  std::string param;       // the field at fault
  std::string code;        // what programs can act on, such as context_length_exceeded
  double retry_after = 0;  // seconds; 0: says nothing of it
  std::string allow;       // methods, with status 405
};

/// Status 400, for a field named as "messages[2].content".
template <class... Args>
[[noreturn]] void refuse_field(const std::string& field, fmt::format_string<Args...> format,
                               Args&&... args) {
  ApiError error(400, fmt::format(format, std::forward<Args>(args)...));
  error.param = field;
  throw error;
}

/// The error that is being handled as one for the client: an ApiError as it is; a full queue 429;
/// an engine that drains 503; other refusals 400; what else failed 500 with its cause.
ApiError current_api_error();

/// {"error": {"message", "type", "param", "code"}}
std::string error_body(const ApiError& error);
HttpResponse error_response(const ApiError& error);

}  // namespace heddle::server

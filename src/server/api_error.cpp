#include "server/api_error.h"

#include <cmath>
#include <new>
#include <nlohmann/json.hpp>

#include "heddle/engine.h"
#include "server/json.h"

namespace heddle::server {

namespace {

std::string type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

ApiError from(const Error& error) {
  switch (error.code()) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
      return {400, error.what()};
    case ErrorCode::cancelled:
      return {503, error.what()};
    default:
      return {500, error.what()};
  }
}

}  // namespace

ApiError current_api_error() {
  try {
    throw;
  } catch (const ApiError& error) {
    return error;
  } catch (const llm::QueueFull& error) {
    ApiError busy(429, error.what());
    busy.code = "queue_full";
    busy.retry_after = std::max(1.0, error.retry_after());
    return busy;
  } catch (const Error& error) {
    return from(error);
  } catch (const std::bad_alloc&) {
    return {500, "out of memory"};
  } catch (const std::exception& error) {
    return {500, error.what()};
  }
}

std::string error_body(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return json_text({{"error",
                     {{"message", error.what()},
                      {"type", type_of(error.status)},
                      {"param", or_null(error.param)},
                      {"code", or_null(error.code)}}}});
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response;
  response.status = error.status;
  response.body = error_body(error);
  if (error.retry_after > 0)
    response.headers.push_back(
        {"Retry-After", fmt::format("{}", static_cast<int>(std::ceil(error.retry_after)))});
  if (!error.allow.empty()) response.headers.push_back({"Allow", error.allow});
  if (error.status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  return response;
}

}  // namespace heddle::server

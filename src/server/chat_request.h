// A request of /v1/chat/completions.
#pragma once

#include <set>
#include <string>

#include "server/generation.h"
#include "server/json.h"

namespace heddle::server {

enum class ToolChoice { none, automatic, required };

struct ChatRequest {
  GenerationOptions generation;
  /// As chat templates want them: contents are strings, a call's arguments are objects.
  Json messages;
  Json tools = Json::array();  // empty too if the choice is none; only one if it is named
  std::set<std::string> tool_names;
  ToolChoice tool_choice = ToolChoice::automatic;
  bool parallel_calls = true;
  Json template_names = Json::object();  // more names for the template
};

/// Throws ApiError 400 for what is not as it should be.
ChatRequest read_chat_request(const Json& body, std::size_t vocabulary);

}  // namespace heddle::server

// What requests for text have in common: how it is sampled, when it ends, and how it is sent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/engine.h"
#include "server/json.h"

namespace heddle {
class Grammar;
}

namespace heddle::server {

struct GenerationOptions {
  llm::Request request;  // all but the prompt
  std::int64_t n = 1;    // replies to each prompt
  bool stream = false;
  bool include_usage = false;  // in a stream
};

/// Reads them from a request's fields, but for logprobs, whose form differs. `vocabulary` is its
/// size.
GenerationOptions read_generation(Fields& fields, std::size_t vocabulary);

/// The grammar that `grammar`, or `response_format`, asks for; none if neither does.
std::shared_ptr<const Grammar> read_grammar(Fields& fields);

}  // namespace heddle::server

// A grammar that writes fables: two animals, an object, a trouble, its end, and what it teaches.
#pragma once

#include <string>

#include "random.h"

namespace fable {

struct Fable {
  std::string request;  // what somebody asked for; empty for a fable told unasked
  std::string story;
  /// -log of the probability of the choices that made the story, once the request was made: no
  /// model can foretell stories with a smaller loss on average.
  double nats = 0;
};

/// Every second one was asked for.
Fable write_fable(Random& random);
Fable write_fable_unasked(Random& random);
Fable write_fable_on_request(Random& random);

}  // namespace fable

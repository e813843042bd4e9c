#include "llm/chat_window.h"

namespace heddle::llm {

std::size_t first_that_fits(std::size_t from, std::size_t last, std::int64_t most,
                            const std::function<std::int64_t(std::size_t)>& tokens_from) {
  std::size_t fits = last, step = 1;
  while (fits > from) {
    const std::size_t next = fits - from > step ? fits - step : from;
    if (tokens_from(next) <= most) {
      fits = next;
      step *= 2;
      continue;
    }
    for (std::size_t too_long = next; fits - too_long > 1;) {
      const std::size_t middle = too_long + (fits - too_long) / 2;
      (tokens_from(middle) <= most ? fits : too_long) = middle;
    }
    break;
  }
  return fits;
}

}  // namespace heddle::llm

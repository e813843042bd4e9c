// Which turns of a conversation a context has room for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace heddle::llm {

/// The first of the turns `from` to `last` from which on they take at most `most` tokens; `last` if
/// even that alone takes more. `tokens_from(i)`, which falls with i, is asked about a number of
/// turns that grows with what fits, not with how many there are.
std::size_t first_that_fits(std::size_t from, std::size_t last, std::int64_t most,
                            const std::function<std::int64_t(std::size_t)>& tokens_from);

}  // namespace heddle::llm

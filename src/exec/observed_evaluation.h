// Lazy evaluations, for observers.
#pragma once

namespace heddle {

/// From now on evaluations look for watchers as they begin.
void watch_evaluations() noexcept;

}  // namespace heddle

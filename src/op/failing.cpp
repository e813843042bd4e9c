#include "op/failing.h"

namespace heddle {

bool always_succeeds(const Op& op) noexcept {
  return std::visit(
      []<class T>(const T&) {
        return std::is_same_v<T, Unary> || std::is_same_v<T, Binary> ||
               std::is_same_v<T, Compare> || std::is_same_v<T, Select> || std::is_same_v<T, Cast> ||
               std::is_same_v<T, Fused> || std::is_same_v<T, GatedMultiply> ||
               std::is_same_v<T, Contiguous> || std::is_same_v<T, Reduce> ||
               std::is_same_v<T, Matmul> || std::is_same_v<T, Concatenate>;
      },
      op);
}

}  // namespace heddle

// Parses one GGUF file in memory, trusting nothing in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/gguf.h"

namespace heddle::gguf {

/// The tensors of a model, of all its parts, with names that occur once.
class TensorTable {
 public:
  /// False, and nothing added, when the name is taken.
  bool add(Tensor tensor);
  const Tensor* find(std::string_view name) const noexcept;
  const std::vector<Tensor>& list() const noexcept { return list_; }

 private:
  std::vector<Tensor> list_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

struct Part {
  std::uint32_t version = 0;
  Metadata metadata;
};

/// Reads the file `bytes`, called `name` in errors, and adds its tensors, whose data view `bytes`,
/// to `tensors`. Throws Error(io) naming the file and the field.
Part parse_part(std::span<const std::byte> bytes, const std::string& name, TensorTable& tensors);

}  // namespace heddle::gguf

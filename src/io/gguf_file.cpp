#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.h"
#include "io/gguf_format.h"
#include "io/gguf_reader.h"
#include "io/mapped_file.h"

namespace heddle::gguf {
namespace {

constexpr std::string_view kSplitNumber = "split.no";  // counted from 0; file names count from 1
constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitTensors = "split.tensors.count";
constexpr std::int64_t kMaxSplits = 99999;  // five digits in the file name
constexpr std::size_t kMemoryAlignment = 32;
constexpr std::size_t kHeaderPrefetch = std::size_t{1}
                                        << 20;  // most headers; vocabularies dominate

/// "-00002-of-00003.gguf", the end of part 2's name.
std::string split_suffix(std::int64_t number, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number, count);
}

/// How many parts the model has by `metadata`. Files that were never split do not say; merged ones
/// say 0.
std::int64_t split_count(const Metadata& metadata, const std::string& name) {
  const std::int64_t count = metadata.find_int(kSplitCount).value_or(1);
  require(count >= 0 && count <= kMaxSplits, ErrorCode::io,
          "{}: metadata '{}': {} is not between 0 and {}", name, kSplitCount, count, kMaxSplits);
  return count == 0 ? 1 : count;
}

void check_split_number(const Metadata& metadata, const std::string& name, std::int64_t number,
                        std::int64_t count) {
  const std::int64_t found = metadata.get_int(kSplitNumber);
  require(found == number, ErrorCode::io,
          "{}: metadata '{}': is {}, but part {} of {} must have {}", name, kSplitNumber, found,
          number + 1, count, number);
}

/// The path of the first part without its split suffix.
std::string split_prefix(const std::filesystem::path& first, const Metadata& metadata,
                         std::int64_t count) {
  const std::string name = first.string();
  const std::int64_t number = metadata.get_int(kSplitNumber);
  require(number == 0, ErrorCode::io,
          "{}: metadata '{}': this is part {} of {}; open part 1, whose name ends in {}", name,
          kSplitNumber, number + 1, count, split_suffix(1, count));
  const std::string suffix = split_suffix(1, count);
  require(name.ends_with(suffix), ErrorCode::io,
          "{}: metadata '{}': the model has {} parts, but this name does not end in {}, so the "
          "others cannot be found",
          name, kSplitCount, count, suffix);
  return name.substr(0, name.size() - suffix.size());
}

void check_tensor_total(const Metadata& metadata, const std::string& name, std::size_t found) {
  const std::int64_t expected = metadata.get_int(kSplitTensors);
  require(expected >= 0 && static_cast<std::uint64_t>(expected) == found, ErrorCode::io,
          "{}: metadata '{}': is {}, but the parts hold {} tensors", name, kSplitTensors, expected,
          found);
}

MappedFile map_for_reading(const std::filesystem::path& path) {
  MappedFile file(path);
  file.prefetch(0, kHeaderPrefetch);
  return file;
}

}  // namespace

/// What keeps tensors' data where it is.
struct Keeper {
  std::vector<MappedFile> parts;
  std::shared_ptr<const void> memory;  // what `from_memory` was given to keep alive
};

struct File::Impl {
  std::string name;
  std::uint32_t version = 0;
  Metadata metadata;
  TensorTable tensors;
  std::uint64_t bytes = 0;
  std::shared_ptr<Keeper> keeper = std::make_shared<Keeper>();

  /// Adds part `number` of `count`, counted from 0, whose own split keys must agree.
  void add_part(const std::filesystem::path& path, std::int64_t number, std::int64_t count) {
    std::error_code ignored;
    require(std::filesystem::exists(path, ignored), ErrorCode::io,
            "{}: part {} of {} is missing: {}", name, number + 1, count, path.string());
    const MappedFile& file = keeper->parts.emplace_back(map_for_reading(path));
    const std::string part_name = path.string();
    const Part part = parse_part(file.bytes(), part_name, tensors);
    const std::int64_t own_count = split_count(part.metadata, part_name);
    require(own_count == count, ErrorCode::io,
            "{}: metadata '{}': is {}, but the first part says {}", part_name, kSplitCount,
            own_count, count);
    check_split_number(part.metadata, part_name, number, count);
    bytes += file.bytes().size();
  }

  void add_other_parts(const std::filesystem::path& first) {
    const std::int64_t count = split_count(metadata, name);
    if (count == 1) return;
    const std::string prefix = split_prefix(first, metadata, count);
    for (std::int64_t number = 1; number < count; ++number) {
      add_part(prefix + split_suffix(number + 1, count), number, count);
    }
    check_tensor_total(metadata, name, tensors.list().size());
  }

  void parse_first(std::span<const std::byte> content) {
    Part part = parse_part(content, name, tensors);
    version = part.version;
    metadata = std::move(part.metadata);
    bytes = content.size();
  }
};

File File::open(const std::filesystem::path& path) {
  auto impl = std::make_shared<Impl>();
  impl->name = path.string();
  impl->keeper->parts.push_back(map_for_reading(path));
  impl->parse_first(impl->keeper->parts.front().bytes());
  impl->add_other_parts(path);
  // Headers were copied as they were parsed.
  for (const MappedFile& part : impl->keeper->parts) release_mapped_pages(part.bytes());
  File file;
  file.impl_ = std::move(impl);
  return file;
}

File File::from_memory(std::span<const std::byte> bytes, std::string name,
                       std::shared_ptr<const void> owner) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  require(address % kMemoryAlignment == 0, ErrorCode::invalid_argument,
          "{}: the bytes of a GGUF file must lie at a multiple of {}", name, kMemoryAlignment);
  auto impl = std::make_shared<Impl>();
  impl->name = std::move(name);
  impl->keeper->memory = std::move(owner);
  impl->parse_first(bytes);
  const std::int64_t parts = split_count(impl->metadata, impl->name);
  require(parts == 1, ErrorCode::io,
          "{}: metadata '{}': one of {} parts; a split model can only be opened from files",
          impl->name, kSplitCount, parts);
  File file;
  file.impl_ = std::move(impl);
  return file;
}

const std::string& File::name() const noexcept {
  return impl_->name;
}
std::uint32_t File::version() const noexcept {
  return impl_->version;
}
const Metadata& File::metadata() const noexcept {
  return impl_->metadata;
}
const std::vector<Tensor>& File::tensors() const noexcept {
  return impl_->tensors.list();
}
const Tensor* File::find_tensor(std::string_view name) const noexcept {
  return impl_->tensors.find(name);
}

const Tensor& File::tensor(std::string_view name) const {
  const Tensor* found = find_tensor(name);
  require(found != nullptr, ErrorCode::io, "{}: tensor {} is missing", impl_->name,
          quote_name(name));
  return *found;
}

std::uint64_t File::file_bytes() const noexcept {
  return impl_->bytes;
}

void File::prefetch() const noexcept {
  for (const MappedFile& part : impl_->keeper->parts) part.prefetch(0, part.bytes().size());
}

std::shared_ptr<const void> File::owner() const noexcept {
  return impl_->keeper;
}

File File::without(std::span<const std::string_view> keys) const {
  auto impl = std::make_shared<Impl>(Impl{.name = impl_->name,
                                          .version = impl_->version,
                                          .metadata = Metadata(impl_->name),
                                          .tensors = impl_->tensors,
                                          .bytes = impl_->bytes,
                                          .keeper = impl_->keeper});
  for (const auto& [key, value] : impl_->metadata.entries()) {
    if (std::ranges::find(keys, key) == keys.end()) impl->metadata.set(key, value);
  }
  File file;
  file.impl_ = std::move(impl);
  return file;
}

}  // namespace heddle::gguf

#include "io/gguf_stream.h"

#include <system_error>

#include "base/check.h"
#include "io/gguf_format.h"

namespace heddle::gguf {

namespace {

std::uint64_t file_size(std::size_t header, std::span<const TensorEntry> tensors,
                        std::uint32_t alignment) {
  std::uint64_t size = align_up(header, alignment);
  for (const TensorEntry& tensor : tensors) size += align_up(checked_bytes(tensor), alignment);
  return size;
}

/// Better now than after minutes of work. Where the system does not tell, writing will.
void require_room(const std::filesystem::path& path, std::uint64_t bytes) {
  std::error_code unknown;
  require(!std::filesystem::is_directory(path, unknown), ErrorCode::io,
          "{}: is a directory, not a file", path.string());
  const std::filesystem::path parent = path.parent_path();
  const auto room = std::filesystem::space(parent.empty() ? "." : parent, unknown);
  if (unknown) return;
  require(bytes <= room.available, ErrorCode::io, "{}: needs {} bytes, but its disk has {} left",
          path.string(), bytes, room.available);
}

}  // namespace

StreamWriter::StreamWriter(const std::filesystem::path& path, const Metadata& metadata,
                           std::vector<TensorEntry> tensors)
    : tensors_(std::move(tensors)), alignment_(checked_alignment(metadata)), file_(path) {
  const std::vector<std::byte> header = header_bytes(metadata, tensors_);
  require_room(path, file_size(header.size(), tensors_, alignment_));
  file_.write(header);
  if (!tensors_.empty()) pad_from(header.size());
}

void StreamWriter::pad_from(std::uint64_t position) {
  pad([&](std::span<const std::byte> zeros) { file_.write(zeros); }, position, alignment_);
}

void StreamWriter::write(std::span<const std::byte> bytes) {
  require(current_ < tensors_.size(), ErrorCode::invalid_argument,
          "gguf::StreamWriter: {} bytes beyond the last tensor", bytes.size());
  const std::size_t size = checked_bytes(tensors_[current_]);
  require(bytes.size() <= size - written_, ErrorCode::invalid_argument,
          "gguf::StreamWriter: tensor {}: {} bytes, where {} are left of it",
          quote_name(tensors_[current_].name), bytes.size(), size - written_);
  file_.write(bytes);
  written_ += bytes.size();
  if (written_ == size) end_tensor();
}

void StreamWriter::end_tensor() {
  pad_from(written_);
  written_ = 0;
  ++current_;
}

void StreamWriter::commit() {
  require(current_ == tensors_.size(), ErrorCode::invalid_argument,
          "gguf::StreamWriter: {} tensors of {} were written", current_, tensors_.size());
  file_.commit();
}

}  // namespace heddle::gguf

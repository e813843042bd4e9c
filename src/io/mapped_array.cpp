#include "io/mapped_array.h"

#include <cstring>
#include <utility>

#include "array/external.h"
#include "array/ops_common.h"
#include "heddle/io.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"

namespace heddle {

namespace {

/// Strides of the first axis fastest.
Layout column_major(const Shape& shape) {
  Layout layout = Layout::contiguous(shape);
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    layout.strides[i] = stride;
    stride *= shape[i];
  }
  return layout;
}

bool is_column_major(const OperandSpec& operand) {
  const Layout wanted = column_major(operand.spec.shape);
  for (std::size_t i = 0; i < operand.spec.shape.size(); ++i) {
    const bool matters = operand.spec.shape[i] > 1;
    if (matters && operand.layout.strides[i] != wanted.strides[i]) return false;
  }
  return true;
}

}  // namespace

Ref<Buffer> copied(std::span<const std::byte> bytes) {
  Ref<Buffer> buffer = allocate_host(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer->host(), bytes.data(), bytes.size());
  return buffer;
}

Array file_array(std::span<const std::byte> data, const OperandSpec& operand,
                 std::shared_ptr<const void> owner) {
  const auto address = reinterpret_cast<std::uintptr_t>(data.data());
  if (address % alignment_of(operand.spec.dtype) != 0 || data.empty()) {
    return Array::from_view({copied(data), 0, operand});
  }
  return array_over(data.data(), operand, std::move(owner));
}

Array npy_array(std::span<const std::byte> bytes, const std::string& name,
                std::shared_ptr<const void> owner) {
  const npy::Description what = npy::describe(bytes, name);
  OperandSpec operand = OperandSpec::contiguous(what.spec);
  if (what.column_major) operand.layout = column_major(what.spec.shape);
  const std::span<const std::byte> data = bytes.subspan(what.data);
  if (!what.big_endian) return file_array(data, operand, std::move(owner));
  Ref<Buffer> swapped = copied(data);
  npy::swap_bytes(what.spec.dtype, {swapped->host(), data.size()});
  return Array::from_view({std::move(swapped), 0, std::move(operand)});
}

std::filesystem::path with_extension(std::filesystem::path file, const std::string& extension) {
  if (!file.string().ends_with(extension)) file += extension;
  return file;
}

NpyContents npy_contents(const Array& array) {
  require(!is_block(array.dtype()), ErrorCode::invalid_argument,
          "{} is of a block type, which .npy lacks; dequantize it, or save it as .gguf",
          to_string(array.spec()));
  View view = host_view(array);
  const bool rows = is_contiguous(view.operand);
  const bool columns = !rows && is_column_major(view.operand);
  if (!rows && !columns) view = row_major_view(array);
  const std::span<const std::byte> data(view.host(), array.nbytes());
  return {npy::header(array.spec(), columns), std::move(view), data};
}

Array load(const std::filesystem::path& file) {
  const auto mapped = std::make_shared<const MappedFile>(file);
  return npy_array(mapped->bytes(), file.string(), mapped);
}

void save(const std::filesystem::path& file, const Array& array) {
  const NpyContents contents = within("save", [&] { return npy_contents(array); });
  AtomicFile out(with_extension(file, ".npy"));
  out.write(std::as_bytes(std::span(contents.header)));
  out.write(contents.data);
  out.commit();
}

}  // namespace heddle

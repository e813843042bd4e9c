// Source of the format: NumPy's documentation of numpy.lib.format.
#include "io/npy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "io/mapped_file.h"

namespace heddle::npy {

namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kAlignment = 64;  // of the data, from the file's start
constexpr std::size_t kMostHeader = std::size_t{1} << 20;

constexpr std::array<std::pair<DType, std::string_view>, 14> kTypes{{{DType::bool_, "|b1"},
                                                                     {DType::u8, "|u1"},
                                                                     {DType::u16, "<u2"},
                                                                     {DType::u32, "<u4"},
                                                                     {DType::u64, "<u8"},
                                                                     {DType::i8, "|i1"},
                                                                     {DType::i16, "<i2"},
                                                                     {DType::i32, "<i4"},
                                                                     {DType::i64, "<i8"},
                                                                     {DType::f16, "<f2"},
                                                                     {DType::f32, "<f4"},
                                                                     {DType::f64, "<f8"},
                                                                     {DType::complex64, "<c8"},
                                                                     {DType::bf16, "<V2"}}};

std::optional<std::string_view> descriptor(DType dtype) noexcept {
  for (const auto& [type, text] : kTypes) {
    if (type == dtype) return text;
  }
  return std::nullopt;
}

/// The header's Python dictionary, of which only the three entries that it has are understood.
class Header {
 public:
  Header(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Description parse() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        read_type(quoted());
      } else if (key == "fortran_order") {
        read_order();
      } else if (key == "shape") {
        read_shape();
      } else {
        refuse(fmt::format("'{}' in its header is not known", key));
      }
      accept(',');
    }
    skip_space();
    if (!text_.empty()) refuse("there is something behind its header's dictionary");
    if (!type_ || !shape_) refuse("its header does not say 'descr' and 'shape'");
    return {{*type_, *shape_}, column_major_, big_endian_};
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorCode::io, "{}: {}", path_, what);
  }

  void skip_space() {
    const std::size_t end = text_.find_first_not_of(" \n\t");
    text_.remove_prefix(std::min(end, text_.size()));
  }
  bool accept(char c) {
    skip_space();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(fmt::format("its header lacks a '{}'", c));
  }
  std::string_view quoted() {
    skip_space();
    const char quote = text_.empty() ? '\0' : text_[0];
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : text_.npos;
    if (end == text_.npos) refuse("its header lacks a string");
    const std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }

  void read_type(std::string_view descr) {
    const char order = descr.empty() ? '\0' : descr[0];
    const bool has_order = std::string_view("<>=|").find(order) != std::string_view::npos;
    for (const auto& [type, text] : kTypes) {
      if (has_order && descr.substr(1) == text.substr(1)) type_ = type;
    }
    if (!type_) refuse(fmt::format("its type '{}' is not known", descr));
    big_endian_ = order == '>' && item_size(*type_) > 1;
  }
  void read_order() {
    skip_space();
    column_major_ = text_.starts_with("True");
    const std::string_view word = column_major_ ? "True" : "False";
    if (!text_.starts_with(word)) refuse("its 'fortran_order' is neither True nor False");
    text_.remove_prefix(word.size());
  }
  void read_shape() {
    expect('(');
    Shape shape;
    while (!accept(')')) {
      skip_space();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) refuse("its shape is none");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      if (shape.size() == kMaxRank) refuse(fmt::format("it has more than {} axes", kMaxRank));
      shape.push_back(extent);
      accept(',');
    }
    shape_ = shape;
  }

  std::string_view text_;
  const std::string& path_;
  std::optional<DType> type_;
  std::optional<Shape> shape_;
  bool column_major_ = false, big_endian_ = false;
};

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

/// The next `count` bytes of what is left, `rest`.
std::string_view take(std::string_view& rest, std::size_t count, const std::string& name) {
  require(rest.size() >= count, ErrorCode::io, "{}: it ends too early", name);
  const std::string_view taken = rest.substr(0, count);
  rest.remove_prefix(count);
  return taken;
}

}  // namespace

bool has(DType dtype) noexcept {
  return dtype != DType::bf16 && descriptor(dtype).has_value();
}

std::string header(const TensorSpec& spec, bool column_major) {
  const std::optional<std::string_view> type = descriptor(spec.dtype);
  require(type.has_value(), ErrorCode::invalid_argument, "npy has no type for {}",
          to_string(spec.dtype));
  std::string shape;
  for (const std::int64_t extent : spec.shape) shape += fmt::format("{}, ", extent);
  if (spec.shape.size() > 1) shape.resize(shape.size() - 2);
  if (spec.shape.size() == 1) shape.pop_back();
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}",
                                       *type, column_major ? "True" : "False", shape);
  const std::size_t before = kMagic.size() + 4;
  const std::size_t all =
      (before + dictionary.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  dictionary.append(all - before - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string text(kMagic);
  text += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff),
           static_cast<char>(dictionary.size() >> 8)};
  return text + dictionary;
}

void write(const std::filesystem::path& path, const TensorSpec& spec,
           std::span<const std::byte> bytes) {
  require(bytes.size() == byte_size(spec), ErrorCode::invalid_argument,
          "npy: {} are {} bytes, not {}", to_string(spec), byte_size(spec), bytes.size());
  const std::string begin = header(spec);
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(begin.data(), static_cast<std::streamsize>(begin.size()));
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  require(out.good(), ErrorCode::io, "{}: cannot write: {}", path.string(),
          std::generic_category().message(errno));
}

Description describe(std::span<const std::byte> bytes, const std::string& name) {
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  require(take(rest, kMagic.size(), name) == kMagic, ErrorCode::io, "{}: no .npy file", name);
  const int version = take(rest, 2, name)[0];
  require(1 <= version && version <= 3, ErrorCode::io,
          "{}: version {} of .npy; 1, 2 and 3 are known", name, version);
  const std::uint64_t length = little_endian(take(rest, version == 1 ? 2 : 4, name));
  require(length <= kMostHeader, ErrorCode::io, "{}: a header of {} bytes", name, length);
  Description what = Header(take(rest, length, name), name).parse();
  what.data = bytes.size() - rest.size();
  std::size_t needed = 0;
  try {
    needed = byte_size(what.spec);
  } catch (const Error&) {
    fail(ErrorCode::io, "{}: its shape is too large", name);
  }
  require(rest.size() == needed, ErrorCode::io, "{}: {} need {} bytes; the file has {}", name,
          to_string(what.spec), needed, rest.size());
  return what;
}

void swap_bytes(DType dtype, std::span<std::byte> bytes) {
  const std::size_t item = dtype == DType::complex64 ? sizeof(float) : item_size(dtype);
  for (std::size_t i = 0; i < bytes.size(); i += item) {
    std::reverse(bytes.data() + i, bytes.data() + i + item);
  }
}

Tensor read(const std::filesystem::path& path) {
  const std::string name = path.string();
  const MappedFile file(path);
  const Description what = describe(file.bytes(), name);
  require(!what.big_endian, ErrorCode::io, "{}: its numbers are big-endian", name);
  require(!what.column_major, ErrorCode::io, "{}: it is not in C order", name);
  const auto data = file.bytes().subspan(what.data);
  return {what.spec, {data.begin(), data.end()}};
}

}  // namespace heddle::npy

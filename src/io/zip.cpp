#include "io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "base/check.h"
#include "io/gguf_format.h"

namespace heddle::zip {

namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kLocalHeader = 0x04034b50, kDirectoryHeader = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::size_t kLocalBytes = 30, kDirectoryBytes = 46;
constexpr std::size_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr std::size_t kMostComment = 0xffff;
constexpr std::uint16_t kSizes64 = 0x0001;    // id of the extra field with 64-bit sizes
constexpr std::uint16_t kAlignment = 0xd935;  // of the one that Android's zipalign pads with
constexpr std::uint32_t kIn64 = 0xffffffff;   // the real value is in that field
constexpr std::uint16_t kIn64Short = 0xffff;
constexpr std::uint16_t kEncrypted = 1, kUtf8 = 1 << 11;  // flags
constexpr std::uint16_t kStored = 0, kDeflated = 8;       // methods
constexpr std::uint16_t kVersion = 45;                    // 4.5, for 64-bit sizes
constexpr std::uint16_t kFirstDay = 1 << 5 | 1;           // 1980-01-01, as NumPy's files say
// No deflated byte stands for more than this many.
constexpr std::uint64_t kMostRatio = 1032;
constexpr std::size_t kDataAlignment = 64;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // zlib counts in 32 bits

template <class T>
T read_at(Bytes bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);  // little-endian, as all of heddle is
  return value;
}

std::uint32_t checksum(std::uint32_t before, Bytes bytes) {
  uLong sum = before;
  for (std::size_t i = 0; i < bytes.size(); i += kMostAtOnce) {
    const std::size_t n = std::min(kMostAtOnce, bytes.size() - i);
    sum = ::crc32(sum, reinterpret_cast<const Bytef*>(bytes.data() + i), static_cast<uInt>(n));
  }
  return static_cast<std::uint32_t>(sum);
}

// ---- Reading

struct Directory {
  std::uint64_t count = 0, bytes = 0, offset = 0;
};

class Reader {
 public:
  Reader(Bytes bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  std::vector<Member> members() {
    const Directory directory = find_directory();
    check(directory.offset <= bytes_.size() && directory.bytes <= bytes_.size() - directory.offset,
          "its directory lies beyond its end");
    check(directory.count <= directory.bytes / kDirectoryBytes,
          "its directory is too small for its members");
    Bytes rest = bytes_.subspan(directory.offset, directory.bytes);
    std::vector<Member> members;
    std::set<std::string_view> names;
    for (std::uint64_t i = 0; i < directory.count; ++i) {
      members.push_back(read_member(rest, directory.offset));
    }
    for (const Member& member : members) {
      check(names.insert(member.name).second, "{} occurs twice", gguf::quote_name(member.name));
    }
    check_overlaps();
    return members;
  }

 private:
  struct Place {
    std::uint64_t begin, end;
  };

  template <class... Args>
  void check(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (condition) [[likely]]
      return;
    fail(ErrorCode::io, "{}: {}", name_, fmt::format(format, std::forward<Args>(args)...));
  }

  std::size_t find_end() const {
    check(bytes_.size() >= kEndBytes, "no .npz file: it has {} bytes", bytes_.size());
    const std::size_t last = bytes_.size() - kEndBytes;
    for (std::size_t comment = 0; comment <= std::min(last, kMostComment); ++comment) {
      const std::size_t at = last - comment;
      if (read_at<std::uint32_t>(bytes_, at) != kEnd) continue;
      if (read_at<std::uint16_t>(bytes_, at + 20) == comment) return at;
    }
    check(false, "no .npz file: its end is no ZIP archive's");
    return 0;
  }

  Directory find_directory() const {
    const std::size_t end = find_end();
    Directory directory{read_at<std::uint16_t>(bytes_, end + 10),
                        read_at<std::uint32_t>(bytes_, end + 12),
                        read_at<std::uint32_t>(bytes_, end + 16)};
    const std::uint32_t disks = read_at<std::uint32_t>(bytes_, end + 4);
    check(disks == 0 || disks == kIn64, "an archive in several parts cannot be read");
    const bool is_64 =
        directory.count == kIn64Short || directory.bytes == kIn64 || directory.offset == kIn64;
    if (!is_64) return directory;
    const bool has_locator =
        end >= kLocatorBytes && read_at<std::uint32_t>(bytes_, end - kLocatorBytes) == kLocator64;
    if (!has_locator) return directory;  // as many members as that
    const auto at = read_at<std::uint64_t>(bytes_, end - kLocatorBytes + 8);
    check(end >= kLocatorBytes + kEnd64Bytes && at <= end - kLocatorBytes - kEnd64Bytes &&
              read_at<std::uint32_t>(bytes_, at) == kEnd64,
          "its 64-bit end is not where it should be");
    return {read_at<std::uint64_t>(bytes_, at + 32), read_at<std::uint64_t>(bytes_, at + 40),
            read_at<std::uint64_t>(bytes_, at + 48)};
  }

  /// The member whose entry `rest` begins with, which then begins with the next.
  Member read_member(Bytes& rest, std::uint64_t directory) {
    check(rest.size() >= kDirectoryBytes && read_at<std::uint32_t>(rest, 0) == kDirectoryHeader,
          "an entry of its directory is damaged");
    const std::size_t name_bytes = read_at<std::uint16_t>(rest, 28);
    const std::size_t extra_bytes = read_at<std::uint16_t>(rest, 30);
    const std::size_t all =
        kDirectoryBytes + name_bytes + extra_bytes + read_at<std::uint16_t>(rest, 32);
    check(all <= rest.size(), "an entry of its directory is damaged");
    Member member;
    const Bytes text = rest.subspan(kDirectoryBytes, name_bytes);
    member.name.assign(reinterpret_cast<const char*>(text.data()), text.size());
    const std::string shown = gguf::quote_name(member.name);
    check((read_at<std::uint16_t>(rest, 8) & kEncrypted) == 0, "{} is encrypted", shown);
    const auto method = read_at<std::uint16_t>(rest, 10);
    check(method == kStored || method == kDeflated,
          "{} is compressed by method {}; stored and deflated data can be read", shown, method);
    member.deflated = method == kDeflated;
    member.checksum = read_at<std::uint32_t>(rest, 16);
    std::uint64_t stored = read_at<std::uint32_t>(rest, 20);
    member.size = read_at<std::uint32_t>(rest, 24);
    std::uint64_t offset = read_at<std::uint32_t>(rest, 42);
    Bytes extra = rest.subspan(kDirectoryBytes + name_bytes, extra_bytes);
    take_sizes(find_extra(extra), {&member.size, &stored, &offset}, shown);
    check_size(member, stored, shown);
    member.data = locate(member.name, offset, stored, directory, shown);
    rest = rest.subspan(all);
    return member;
  }

  void check_size(const Member& member, std::uint64_t stored, const std::string& shown) const {
    const bool fits = member.deflated ? member.size / kMostRatio <= stored : member.size == stored;
    check(fits, "{}: {} bytes cannot become {}", shown, stored, member.size);
  }

  /// The extra field of 64-bit sizes; empty if there is none.
  static Bytes find_extra(Bytes extra) {
    while (extra.size() >= 4) {
      const std::size_t bytes =
          std::min<std::size_t>(read_at<std::uint16_t>(extra, 2), extra.size() - 4);
      if (read_at<std::uint16_t>(extra, 0) == kSizes64) return extra.subspan(4, bytes);
      extra = extra.subspan(4 + bytes);
    }
    return {};
  }

  void take_sizes(Bytes field, std::initializer_list<std::uint64_t*> values,
                  const std::string& shown) const {
    for (std::uint64_t* value : values) {
      if (*value != kIn64 || field.empty()) continue;
      check(field.size() >= 8, "{}: its 64-bit sizes are damaged", shown);
      *value = read_at<std::uint64_t>(field, 0);
      field = field.subspan(8);
    }
  }

  /// The data behind the local header at `offset`, which must lie before the directory.
  Bytes locate(std::string_view name, std::uint64_t offset, std::uint64_t stored,
               std::uint64_t directory, const std::string& shown) {
    check(offset <= directory && directory - offset >= kLocalBytes &&
              read_at<std::uint32_t>(bytes_, offset) == kLocalHeader,
          "{} is not where the directory says", shown);
    const std::size_t name_bytes = read_at<std::uint16_t>(bytes_, offset + 26);
    const std::uint64_t before =
        kLocalBytes + name_bytes + read_at<std::uint16_t>(bytes_, offset + 28);
    const std::uint64_t room = directory - offset;
    check(before <= room && stored <= room - before, "{} lies beyond the archive's end", shown);
    const Bytes text = bytes_.subspan(offset + kLocalBytes, name_bytes);
    check(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()) == name,
          "{} has another name where it lies", shown);
    places_.push_back({offset, offset + before + stored});
    return bytes_.subspan(offset + before, stored);
  }

  /// Else a small archive could hold the same data any number of times.
  void check_overlaps() {
    std::sort(places_.begin(), places_.end(),
              [](const Place& a, const Place& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < places_.size(); ++i) {
      check(places_[i - 1].end <= places_[i].begin, "two of its members overlap");
    }
  }

  Bytes bytes_;
  const std::string& name_;
  std::vector<Place> places_;
};

/// A zlib stream of raw deflated data, ended whatever happens.
template <int (*kEndStream)(z_streamp)>
struct Stream {
  z_stream state{};
  bool open = false;
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (open) kEndStream(&state);
  }
};

constexpr int kRaw = -MAX_WBITS;

void give_input(z_stream& state, Bytes& rest) {
  const std::size_t n = std::min(kMostAtOnce, rest.size());
  state.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest.data()));
  state.avail_in = static_cast<uInt>(n);
  rest = rest.subspan(n);
}

// ---- Writing

/// What a header is made of.
class Fields {
 public:
  template <class T>
  Fields& add(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Fields& add_text(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Fields& add_zeros(std::size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  Bytes bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

void deflate_part(z_stream& state, Bytes part, int flush, std::vector<std::byte>& out) {
  Bytes rest = part;
  do {
    give_input(state, rest);
    const int now = rest.empty() ? flush : Z_NO_FLUSH;
    do {
      std::byte piece[1 << 16];
      state.next_out = reinterpret_cast<Bytef*>(piece);
      state.avail_out = sizeof piece;
      ::deflate(&state, now);
      out.insert(out.end(), piece, piece + sizeof piece - state.avail_out);
    } while (state.avail_out == 0);
  } while (!rest.empty());
}

std::vector<std::byte> deflated_bytes(Bytes first, Bytes rest) {
  Stream<deflateEnd> stream;
  const int status =
      ::deflateInit2(&stream.state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRaw, 8, Z_DEFAULT_STRATEGY);
  require(status == Z_OK, ErrorCode::out_of_memory, "zlib cannot begin to compress");
  stream.open = true;
  std::vector<std::byte> out;
  deflate_part(stream.state, first, Z_NO_FLUSH, out);
  deflate_part(stream.state, rest, Z_FINISH, out);
  return out;
}

}  // namespace

std::vector<Member> members(Bytes bytes, const std::string& name) {
  return Reader(bytes, name).members();
}

Ref<Buffer> inflate(const Member& member, const std::string& archive) {
  const std::string what = archive + ": " + gguf::quote_name(member.name);
  Stream<inflateEnd> stream;
  require(::inflateInit2(&stream.state, kRaw) == Z_OK, ErrorCode::out_of_memory,
          "{}: zlib cannot begin to read it", what);
  stream.open = true;
  Ref<Buffer> buffer = allocate_host(member.size);
  Bytes in = member.data;
  std::span<std::byte> out(buffer->host(), member.size);
  std::byte beyond;  // where a stream that is longer than it says would show
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.state.avail_in == 0) give_input(stream.state, in);
    const std::size_t room = out.empty() ? 1 : std::min(kMostAtOnce, out.size());
    stream.state.next_out = reinterpret_cast<Bytef*>(out.empty() ? &beyond : out.data());
    stream.state.avail_out = static_cast<uInt>(room);
    status = ::inflate(&stream.state, Z_NO_FLUSH);
    const std::size_t made = room - stream.state.avail_out;
    require(made <= out.size(), ErrorCode::io, "{}: it holds more than the {} bytes it says", what,
            member.size);
    out = out.subspan(made);
  }
  const bool whole = status == Z_STREAM_END && out.empty() && in.empty();
  require(whole && stream.state.avail_in == 0, ErrorCode::io, "{}: its data is damaged", what);
  const std::uint32_t sum = checksum(0, {buffer->host(), member.size});
  require(sum == member.checksum, ErrorCode::io, "{}: its checksum is {:08x}, not {:08x}", what,
          sum, member.checksum);
  return buffer;
}

// ---- Writer

void Writer::write(Bytes bytes) {
  file_.write(bytes);
  position_ += bytes.size();
}

void Writer::write_header(const Entry& entry) {
  constexpr std::size_t kExtra = 20, kPadding = 6;  // the sizes; the least of what aligns
  const std::uint64_t before = position_ + kLocalBytes + entry.name.size() + kExtra + kPadding;
  const std::size_t padding = static_cast<std::size_t>(-before % kDataAlignment);
  Fields header;
  header.add(kLocalHeader).add(kVersion).add(kUtf8);
  header.add(entry.deflated ? kDeflated : kStored).add(std::uint16_t{0}).add(kFirstDay);
  header.add(entry.checksum).add(kIn64).add(kIn64);
  header.add(static_cast<std::uint16_t>(entry.name.size()));
  header.add(static_cast<std::uint16_t>(kExtra + kPadding + padding)).add_text(entry.name);
  header.add(kSizes64).add(std::uint16_t{16}).add(entry.size).add(entry.stored);
  header.add(kAlignment).add(static_cast<std::uint16_t>(2 + padding));
  header.add(static_cast<std::uint16_t>(kDataAlignment)).add_zeros(padding);
  write(header.bytes());
}

void Writer::add(const std::string& name, Bytes first, Bytes rest, bool deflated) {
  Entry entry{name, deflated, checksum(checksum(0, first), rest), first.size() + rest.size(),
              0,    position_};
  std::vector<std::byte> packed;
  if (deflated) {
    packed = deflated_bytes(first, rest);
    first = packed;
    rest = {};
  }
  entry.stored = first.size() + rest.size();
  write_header(entry);
  write(first);
  write(rest);
  entries_.push_back(std::move(entry));
}

void Writer::finish() {
  const std::uint64_t begin = position_;
  for (const Entry& entry : entries_) {
    Fields header;
    header.add(kDirectoryHeader).add(kVersion).add(kVersion).add(kUtf8);
    header.add(entry.deflated ? kDeflated : kStored).add(std::uint16_t{0}).add(kFirstDay);
    header.add(entry.checksum).add(kIn64).add(kIn64);
    header.add(static_cast<std::uint16_t>(entry.name.size())).add(std::uint16_t{28});
    header.add_zeros(10).add(kIn64).add_text(entry.name);
    header.add(kSizes64).add(std::uint16_t{24});
    header.add(entry.size).add(entry.stored).add(entry.offset);
    write(header.bytes());
  }
  const std::uint64_t end = position_, count = entries_.size();
  Fields tail;
  tail.add(kEnd64).add(std::uint64_t{kEnd64Bytes - 12}).add(kVersion).add(kVersion);
  tail.add(std::uint64_t{0}).add(count).add(count).add(end - begin).add(begin);
  tail.add(kLocator64).add(std::uint32_t{0}).add(end).add(std::uint32_t{1});
  tail.add(kEnd).add(std::uint32_t{0}).add(kIn64Short).add(kIn64Short).add(kIn64).add(kIn64);
  tail.add(std::uint16_t{0});
  write(tail.bytes());
}

}  // namespace heddle::zip

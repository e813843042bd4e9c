// ZIP archives, as .npz files are: members that are stored or deflated, with 64-bit sizes.
//
// Format: PKWARE's APPNOTE.TXT 6.3.10. Of our own, on zlib, since the libraries do not tell where a
// stored member lies in the file, which is what mapping it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/buffer.h"
#include "io/atomic_file.h"

namespace heddle::zip {

inline constexpr std::size_t kMostName = 0xffff;

struct Member {
  std::string name;
  bool deflated = false;
  std::uint32_t checksum = 0;       // CRC-32 of the contents
  std::uint64_t size = 0;           // of the contents
  std::span<const std::byte> data;  // as stored: in the archive, and in no other member's
};

/// The members of the archive `bytes`, called `name` in errors. Everything is checked but the data:
/// sizes, places, overlaps, names that occur twice, sizes that no deflated data can have. Throws
/// Error(io).
std::vector<Member> members(std::span<const std::byte> bytes, const std::string& name);

/// The contents of a deflated member, checked against its size and checksum. `archive` is what
/// errors call the file. Throws Error(io).
Ref<Buffer> inflate(const Member& member, const std::string& archive);

/// Writes an archive, member by member. Stored data begins at multiples of 64.
class Writer {
 public:
  explicit Writer(AtomicFile& file) : file_(file) {}

  /// A member whose contents are `first`, then `rest`. Its name has at most kMostName bytes.
  void add(const std::string& name, std::span<const std::byte> first,
           std::span<const std::byte> rest, bool deflated);
  /// The directory, after which nothing can be added.
  void finish();

 private:
  struct Entry {
    std::string name;
    bool deflated;
    std::uint32_t checksum;
    std::uint64_t size, stored, offset;
  };

  void write(std::span<const std::byte> bytes);
  void write_header(const Entry& entry);

  AtomicFile& file_;
  std::uint64_t position_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace heddle::zip

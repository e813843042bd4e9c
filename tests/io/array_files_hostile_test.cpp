// Files of arrays that are broken: cut at every byte, changed in every byte, and changed in ways
// that a careless reader would believe. FUZZ_ROUNDS says how many random changes are tried.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <functional>
#include <random>

#include "array_files_support.h"
#include "heddle/error.h"
#include "support/environment.h"
#include "support/file_contents.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

using Loader = ArrayMap (*)(const fs::path&);
struct Format {
  const char* extension;
  Loader load;
  void (*save)(const fs::path&, const ArrayMap&);
};
const Format kFormats[] = {
    {".npy",
     [](const fs::path& file) {
       return ArrayMap{{"a", load(file)}};
     },
     [](const fs::path& file, const ArrayMap& arrays) { save(file, arrays.begin()->second); }},
    {".npz", load_npz, savez},
    {".npz", load_npz, savez_compressed},
    {".safetensors", [](const fs::path& file) { return load_safetensors(file).first; },
     [](const fs::path& file, const ArrayMap& arrays) {
       save_safetensors(file, arrays, {{"text", "words"}});
     }},
    {".gguf", [](const fs::path& file) { return load_gguf(file).first; },
     [](const fs::path& file, const ArrayMap& arrays) {
       save_gguf(file, arrays, {{"text", std::string("words")}, {"numbers", Array({1, 2})}});
     }},
};

class HostileArrayFiles : public testing::Test {
 protected:
  fs::path file(const std::string& name) const { return folder_.path / name; }

  std::string good_bytes(const Format& format) const {
    const fs::path path = file(std::string("good") + format.extension);
    format.save(path,
                {{"a", known_array(DType::f32, {2, 3})}, {"b", known_array(DType::i16, {5})}});
    return contents(path);
  }

  /// Empty if `bytes` could be read, and everything in them; else why not.
  std::string error_of(const Format& format, const std::string& bytes) const {
    const fs::path path = file(std::string("bad") + format.extension);
    put(path, bytes);
    try {
      for (const auto& [name, array] : format.load(path)) (void)array.to_bytes();
      return {};
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(path.string()));
      return error.what();
    }
  }

  const Folder folder_{"hostile-arrays"};
};

TEST_F(HostileArrayFiles, CutAtEveryByte) {
  for (const Format& format : kFormats) {
    const std::string good = good_bytes(format);
    EXPECT_EQ(error_of(format, good), "");
    for (std::size_t size = 0; size < good.size(); ++size) {
      // Zeros that pad the end of a .gguf may be missing.
      const bool padding = good.find_first_not_of('\0', size) == std::string::npos;
      if (padding && format.extension == std::string(".gguf")) break;
      EXPECT_NE(error_of(format, good.substr(0, size)), "") << format.extension << " of " << size;
    }
  }
}

TEST_F(HostileArrayFiles, EveryByteChanged) {
  for (const Format& format : kFormats) {
    const std::string good = good_bytes(format);
    for (std::size_t i = 0; i < good.size(); ++i) {
      for (const int change : {0x01, 0x80, 0xff}) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ change);
        error_of(format, bad);
      }
    }
  }
}

TEST_F(HostileArrayFiles, RandomChanges) {
  std::mt19937 random(1);
  const int rounds = number_from("FUZZ_ROUNDS", 500);
  for (const Format& format : kFormats) {
    const std::string good = good_bytes(format);
    for (int round = 0; round < rounds; ++round) {
      std::string bad = good;
      for (std::size_t n = 1 + random() % 4; n > 0 && !bad.empty(); --n) {
        const std::size_t at = random() % bad.size();
        const std::size_t count = std::min<std::size_t>(1 + random() % 12, bad.size() - at);
        switch (random() % 4) {
          case 0:
            bad.erase(at, count);
            break;
          case 1:
            bad.insert(at, bad.substr(random() % bad.size(), count));
            break;
          case 2:
            std::memset(&bad[at], random() % 2 ? 0xff : 0, count);
            break;
          default:
            bad[at] = static_cast<char>(random());
        }
      }
      error_of(format, bad);
    }
  }
}

// ---- Safetensors

class HostileSafetensors : public HostileArrayFiles {
 protected:
  std::string error_of_header(const std::string& header, std::size_t data = 8) const {
    const std::uint64_t length = header.size();
    const std::string bytes(reinterpret_cast<const char*>(&length), 8);
    return error_of(kFormats[3], bytes + header + std::string(data, '\0'));
  }
};

TEST_F(HostileSafetensors, SayWhatIsWrong) {
  const std::string good = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_EQ(error_of_header("{" + good + "}"), "");
  EXPECT_EQ(error_of_header("{" + good + "}      "), "");
  const std::pair<std::string, const char*> cases[] = {
      {"", "no JSON"},
      {"[]", "no JSON object"},
      {"{" + good, "no JSON"},
      {"{" + good + "," + good + "}", "'a' occurs twice"},
      {"{" + good + R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "begins at 0"},
      {"{" + good + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "begins at 4"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "begins at 4"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "take 4 bytes, and 8"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", "take 12 bytes, and 8"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "bytes from 0 to 8"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "bytes from 8 to 0"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", "not two numbers"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8.0]}})", "not two numbers"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "not two numbers"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "an extent"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", "extent"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", "bytes"},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})", "at most 8"},
      {R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", "no list"},
      {R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", "of type 'F33'"},
      {R"({"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}})", "no text"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "must have"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", "must have"},
      {R"({"a":7})", "must have"},
      {"{" + good + R"(,"__metadata__":7})", "no object"},
      {"{" + good + R"(,"__metadata__":{"k":7}})", "metadata 'k'"},
      {"{" + good + R"(,"__metadata__":{"k":"","k":""}})", "'k' occurs twice"},
      {"{" + good + R"(,"b":[[[[[[)", "nested deeper"},
      {std::string(100000, '['), "nested deeper"},
      {R"({"a\u001b[2J":7})", "a\\x1b[2J"},
  };
  for (const auto& [header, why] : cases) {
    EXPECT_THAT(error_of_header(header), HasSubstr(why)) << header.substr(0, 100);
  }
  const std::string huge("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
  EXPECT_THAT(error_of(kFormats[3], huge), HasSubstr("a header of 9223372036854775807 bytes"));
}

// ---- ZIP archives

std::string le(std::uint64_t value, std::size_t bytes) {
  return std::string(reinterpret_cast<const char*>(&value), bytes);
}

/// A member as the headers tell it, which need not be true.
struct ZipMember {
  std::string name, data;
  std::uint64_t size, stored, offset = 0;
  std::uint16_t method = 0, flags = 0;
  std::uint32_t checksum = 0;
};

ZipMember honest(const std::string& name, const std::string& data) {
  ZipMember member{name, data, data.size(), data.size()};
  member.checksum = static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
  return member;
}

std::string local_of(const ZipMember& m) {
  return le(0x04034b50, 4) + le(20, 2) + le(m.flags, 2) + le(m.method, 2) + le(0, 4) +
         le(m.checksum, 4) + le(m.stored, 4) + le(m.size, 4) + le(m.name.size(), 2) + le(0, 2) +
         m.name + m.data;
}
std::string entry_of(const ZipMember& m) {
  return le(0x02014b50, 4) + le(20, 2) + le(20, 2) + le(m.flags, 2) + le(m.method, 2) + le(0, 4) +
         le(m.checksum, 4) + le(m.stored, 4) + le(m.size, 4) + le(m.name.size(), 2) + le(0, 2) +
         le(0, 2) + le(0, 8) + le(m.offset, 4) + m.name;
}
std::string archive_of(const std::string& locals, const std::string& directory,
                       std::uint64_t count) {
  return locals + directory + le(0x06054b50, 4) + le(0, 4) + le(count, 2) + le(count, 2) +
         le(directory.size(), 4) + le(locals.size(), 4) + le(0, 2);
}
/// One member after the other.
std::string archive_of(std::vector<ZipMember> members) {
  std::string locals, directory;
  for (ZipMember& member : members) {
    member.offset = locals.size();
    locals += local_of(member);
    directory += entry_of(member);
  }
  return archive_of(locals, directory, members.size());
}

std::string deflated(const std::string& data) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, data.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
ZipMember packed(const std::string& name, const std::string& data) {
  ZipMember member = honest(name, data);
  member.data = deflated(data);
  member.stored = member.data.size();
  member.method = 8;
  return member;
}

class HostileZip : public HostileArrayFiles {
 protected:
  std::string error(const std::string& bytes) const { return error_of(kFormats[1], bytes); }
  std::string npy() const { return good_bytes(kFormats[0]); }
  /// The error of an archive of one member, changed.
  std::string error_with(ZipMember member, const std::function<void(ZipMember&)>& change) const {
    change(member);
    return error(archive_of({member}));
  }
};

TEST_F(HostileZip, PlainArchivesAreRead) {
  const std::string data = npy();
  EXPECT_EQ(error(archive_of({honest("a.npy", data), packed("b.npy", data)})), "");
  EXPECT_EQ(error(archive_of({honest("readme", "no array"), honest("a.npy", data)})), "");
  EXPECT_EQ(error(archive_of({})), "");
  std::string comment = archive_of({honest("a.npy", data)});
  comment[comment.size() - 2] = 5;
  EXPECT_EQ(error(comment + "words"), "");
}

TEST_F(HostileZip, SayWhatIsWrong) {
  const ZipMember plain = honest("a.npy", npy()), packed_one = packed("a.npy", npy());
  using M = ZipMember;
  const auto damaged = HasSubstr("damaged"), cannot = HasSubstr("cannot become");
  EXPECT_THAT(error_with(plain, [](M& m) { m.flags = 1; }), HasSubstr("encrypted"));
  EXPECT_THAT(error_with(plain, [](M& m) { m.method = 12; }), HasSubstr("method 12"));
  EXPECT_THAT(error_with(plain, [](M& m) { ++m.size; }), cannot);
  EXPECT_THAT(error_with(plain, [](M& m) { m.size = m.stored = 1 << 30; }),
              HasSubstr("beyond the archive's end"));
  EXPECT_THAT(error_with(packed_one, [](M& m) { m.size = 0xfffffffe; }), cannot);
  EXPECT_THAT(error_with(packed_one, [](M& m) { ++m.size; }), damaged);
  EXPECT_THAT(error_with(packed_one, [](M& m) { --m.size; }), HasSubstr("holds more than"));
  EXPECT_THAT(error_with(packed_one, [](M& m) { m.data[3] ^= 1; }),
              testing::AnyOf(damaged, HasSubstr("checksum"), HasSubstr("holds more")));
  EXPECT_THAT(error_with(packed_one, [](M& m) { m.checksum ^= 1; }), HasSubstr("checksum"));
  EXPECT_THAT(error_with(packed_one, [](M& m) { m.data += 'x', ++m.stored; }), damaged);
  EXPECT_THAT(error_with(plain, [](M& m) { m.data[0] = 'x'; }), HasSubstr("no .npy file"));
  EXPECT_THAT(error(archive_of({plain, plain})), HasSubstr("'a.npy' occurs twice"));
  EXPECT_THAT(error("PK nothing"), HasSubstr("no .npz file"));
  EXPECT_THAT(error(std::string(100, 'x')), HasSubstr("no .npz file"));
}

TEST_F(HostileZip, DirectoriesThatLie) {
  ZipMember plain = honest("a.npy", npy());
  const std::string local = local_of(plain), entry = entry_of(plain);
  EXPECT_THAT(error(archive_of(local, entry, 2)), HasSubstr("too small for its members"));
  EXPECT_THAT(error(archive_of(local, "", 1)), HasSubstr("too small"));
  EXPECT_THAT(error(archive_of(local, entry.substr(0, 49), 1)), HasSubstr("damaged"));
  plain.offset = 7;
  EXPECT_THAT(error(archive_of(local, entry_of(plain), 1)), HasSubstr("not where"));
  plain.offset = 0xfffffff0;
  EXPECT_THAT(error(archive_of(local, entry_of(plain), 1)), HasSubstr("not where"));
  plain.offset = 0;
  plain.name = "b.npy";
  EXPECT_THAT(error(archive_of(local, entry_of(plain), 1)), HasSubstr("another name"));
  std::string far = archive_of(local, entry, 1);
  std::memset(&far[far.size() - 6], 0xfe, 4);  // where the directory is
  EXPECT_THAT(error(far), HasSubstr("beyond its end"));
  std::memset(&far[far.size() - 6], 0xff, 4);  // in the 64-bit end, which is not there
  EXPECT_THAT(error(far), HasSubstr("beyond its end"));
}

/// David Fifield's kind of bomb: members that share their data.
TEST_F(HostileZip, MembersThatOverlapAreRefused) {
  ZipMember inner = packed("b.npy", npy());
  const std::string quoted = local_of(inner);
  ZipMember outer = honest("a.npy", quoted);
  const std::string locals = local_of(outer);
  inner.offset = locals.size() - quoted.size();
  EXPECT_THAT(error(archive_of(locals, entry_of(outer) + entry_of(inner), 2)),
              HasSubstr("overlap"));
}

}  // namespace
}  // namespace heddle::test

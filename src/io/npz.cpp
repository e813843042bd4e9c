#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "heddle/io.h"
#include "io/gguf_format.h"
#include "io/mapped_array.h"
#include "io/mapped_file.h"
#include "io/sorted_arrays.h"
#include "io/zip.h"

namespace heddle {

namespace {

constexpr std::string_view kMember = ".npy";

void save_members(const char* function, const std::filesystem::path& file, const ArrayMap& arrays,
                  bool deflated) {
  const SortedArrays sorted = sorted_arrays(arrays);
  for (const auto& [name, array] : sorted) {
    require(!is_block(array->dtype()), ErrorCode::invalid_argument,
            "{}: {}: {} is of a block type, which .npy lacks; dequantize it, or save it as .gguf",
            function, gguf::quote_name(*name), to_string(array->spec()));
    require(name->size() + kMember.size() <= zip::kMostName, ErrorCode::invalid_argument,
            "{}: a name of {} bytes; an archive's have at most {}", function, name->size(),
            zip::kMostName - kMember.size());
  }
  AtomicFile out(with_extension(file, ".npz"));
  zip::Writer writer(out);
  for (const auto& [name, array] : sorted) {
    const NpyContents contents = npy_contents(*array);
    writer.add(*name + std::string(kMember), std::as_bytes(std::span(contents.header)),
               contents.data, deflated);
  }
  writer.finish();
  out.commit();
}

Array member_array(const zip::Member& member, const std::string& file,
                   const std::shared_ptr<const MappedFile>& mapped) {
  const std::string name = file + ": " + gguf::quote_name(member.name);
  if (!member.deflated) return npy_array(member.data, name, mapped);
  // The buffer is the owner: what is inflated lies there for good.
  const auto owner = std::make_shared<const Ref<Buffer>>(zip::inflate(member, file));
  return npy_array({(*owner)->host(), (*owner)->size()}, name, owner);
}

}  // namespace

SortedArrays sorted_arrays(const ArrayMap& arrays) {
  SortedArrays sorted;
  sorted.reserve(arrays.size());
  for (const auto& [name, array] : arrays) sorted.emplace_back(&name, &array);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return *a.first < *b.first; });
  return sorted;
}

void savez(const std::filesystem::path& file, const ArrayMap& arrays) {
  save_members("savez", file, arrays, false);
}

void savez_compressed(const std::filesystem::path& file, const ArrayMap& arrays) {
  save_members("savez_compressed", file, arrays, true);
}

ArrayMap load_npz(const std::filesystem::path& file) {
  const std::string name = file.string();
  const auto mapped = std::make_shared<const MappedFile>(file);
  ArrayMap arrays;
  for (const zip::Member& member : zip::members(mapped->bytes(), name)) {
    if (!member.name.ends_with(kMember)) continue;
    arrays.emplace(member.name.substr(0, member.name.size() - kMember.size()),
                   member_array(member, name, mapped));
  }
  return arrays;
}

}  // namespace heddle

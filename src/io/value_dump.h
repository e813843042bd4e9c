// The values of runs, as .npy files in a directory with an index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "heddle/observe.h"

namespace heddle {

/// A value in a dump. Its name is its node's, with ".1", ".2" for outputs after the first.
struct DumpedValue {
  std::uint64_t run = 0;  // counted from 0
  std::string name, op, device;
  DType dtype = DType::f32;  // as the run had it
  Shape shape;               // as dumped: the rows that count
  std::string file;          // below the directory
};

/// Writes what runs make: each value that is wanted as a file of its own, f16, bf16 and block types
/// as the f32 that they stand for. States come as the whole state that a write leaves.
class ValueDump final : public Observer {
 public:
  struct Options {
    std::filesystem::path directory;  // made if need be; otherwise empty
    std::string filter;      // a regular expression (ECMAScript) that a part of the name matches;
                             // empty: all values but states
    std::uint64_t runs = 1;  // the first so many
  };
  /// Throws invalid_argument for a filter that is no expression, or a directory that has anything
  /// in it, and io if it cannot be made.
  explicit ValueDump(Options options);
  ~ValueDump() override;

  /// Writes index.json, which makes the dump complete.
  void finish() const;
  std::size_t values() const noexcept { return values_.size(); }
  std::uint64_t runs() const noexcept { return run_numbers_.size(); }

  void run_began(const ObservedRun& run) override;
  bool wants(const ObservedRun& run, const ObservedNode& node, std::uint32_t output) override;
  void node_ran(const ObservedRun& run, const ObservedRecord& record) override;

 private:
  struct Filter;
  void write(std::uint64_t run, const ObservedRecord& record, const ObservedValue& value);

  const Options options_;
  const std::unique_ptr<const Filter> filter_;
  std::map<std::uint64_t, std::uint64_t> run_numbers_;  // from 0, of those that are dumped
  std::vector<DumpedValue> values_;
};

/// The index of a dump, in the order in which the values were made. Throws Error(io) naming the
/// file and the field that makes no sense.
std::vector<DumpedValue> read_dump(const std::filesystem::path& directory);

/// "0012-blk.0.ffn_down.weight_add.1.npy": a name that any file system takes.
std::string file_name_for(std::uint32_t node, const std::string& value_name);

}  // namespace heddle

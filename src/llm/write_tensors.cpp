#include "llm/write_tensors.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/check.h"
#include "base/system.h"
#include "base/team.h"

namespace heddle::llm {

namespace {

// Long enough that handing out pieces costs nothing, short enough that a few of them are little
// memory; a multiple of every block.
constexpr std::int64_t kPieceElements = 1 << 16;
constexpr std::size_t kBatchBytes = std::size_t{8} << 20;  // two batches are in memory

/// Pieces that are made together and written at once: of one tensor.
struct Batch {
  std::vector<Piece> pieces;
  std::vector<std::byte> bytes;
};

/// Cuts the tensors into batches, in order.
class Cutter {
 public:
  explicit Cutter(const std::vector<gguf::TensorEntry>& tensors) : tensors_(tensors) {}

  /// False when nothing is left. `batch` keeps its memory.
  bool next(Batch& batch) {
    batch.pieces.clear();
    if (tensor_ == tensors_.size()) return false;
    const gguf::TensorEntry& tensor = tensors_[tensor_];
    const std::int64_t count = elements(tensor.shape);
    const std::int64_t first = at_;
    std::size_t bytes = 0;
    while (at_ < count && bytes < kBatchBytes) {
      const std::int64_t end = std::min(count, at_ + kPieceElements);
      batch.pieces.push_back({tensor_, at_, end});
      at_ = end;
      bytes = row_bytes(tensor.dtype, at_ - first);
    }
    batch.bytes.resize(bytes);
    if (at_ == count) {
      at_ = 0;
      ++tensor_;
    }
    return true;
  }

 private:
  const std::vector<gguf::TensorEntry>& tensors_;
  std::size_t tensor_ = 0;
  std::int64_t at_ = 0;
};

std::uint64_t total_bytes(const std::vector<gguf::TensorEntry>& tensors) {
  std::uint64_t bytes = 0;
  for (const gguf::TensorEntry& tensor : tensors) bytes += gguf::checked_bytes(tensor);
  return bytes;
}

class Pipeline {
 public:
  Pipeline(gguf::StreamWriter& file, const std::vector<gguf::TensorEntry>& tensors,
           const PieceMaker& make, const ModelFileOptions& options)
      : file_(file),
        tensors_(tensors),
        make_(make),
        options_(options),
        team_(options.threads > 0 ? options.threads : default_threads()),
        total_(total_bytes(tensors)) {}

  /// While a batch is made, the one before is written.
  void run() {
    Cutter cutter(tensors_);
    Batch making, written;
    while (cutter.next(making)) {
      team_.parallel_for(std::ssize(making.pieces) + 1, 1,
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t i = begin; i < end; ++i) {
                             if (i == 0)
                               write(written);
                             else
                               make_piece(making, static_cast<std::size_t>(i - 1));
                           }
                         });
      std::swap(making, written);
    }
    write(written);
  }

 private:
  void make_piece(Batch& batch, std::size_t i) const {
    const Piece& piece = batch.pieces[i];
    const DType dtype = tensors_[piece.tensor].dtype;
    const std::int64_t first = batch.pieces.front().begin;
    make_(piece, batch.bytes.data() + row_bytes(dtype, piece.begin - first));
  }

  void write(const Batch& batch) {
    if (batch.pieces.empty()) return;
    file_.write(batch.bytes);
    done_ += batch.bytes.size();
    const std::string& tensor = tensors_[batch.pieces.front().tensor].name;
    const bool goes_on = !options_.progress || options_.progress({done_, total_, tensor});
    require(goes_on, ErrorCode::cancelled, "stopped while tensor '{}' was written", tensor);
  }

  gguf::StreamWriter& file_;
  const std::vector<gguf::TensorEntry>& tensors_;
  const PieceMaker& make_;
  const ModelFileOptions& options_;
  Team team_;
  std::uint64_t total_, done_ = 0;
};

}  // namespace

void write_model(const std::filesystem::path& path, const gguf::Metadata& metadata,
                 const std::vector<gguf::TensorEntry>& tensors, const PieceMaker& make,
                 const ModelFileOptions& options) {
  gguf::StreamWriter file(path, metadata, tensors);
  Pipeline(file, tensors, make, options).run();
  file.commit();
}

}  // namespace heddle::llm

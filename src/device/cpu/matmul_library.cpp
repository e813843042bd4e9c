// Matmul through oneDNN: bf16, whose products its kernels take two at a time, where pair_matmul
// does not.
//
// oneDNN may choose another order of summation for another number of rows. So that a row's result
// does not depend on its company, every product is made of tiles that have the same number of rows
// and lie side by side, the last one padded with zeros. b is laid out as these products want it,
// once for all rows.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/cpu/dnnl_run.h"
#include "device/cpu/isa.h"
#include "device/cpu/matmul.h"
#include "device/cpu/parallel.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kTileRows = 32;
// Columns whose part of b a core's second level of caches keeps, for all tiles of rows. They depend
// on b alone.
constexpr std::int64_t kLeastTileColumns = 64, kMostTileColumns = 1024;
constexpr std::int64_t kTileBytes = std::int64_t{1} << 20;
// With up to so many tiles of rows, and at least so many of columns, each of these lays out its
// part of b when it wants it: laid out at once, b would be written to memory and read again.
constexpr std::int64_t kFewRowTiles = 8, kEnoughColumnTiles = 8;
// Below these, what a call costs outweighs what oneDNN's kernels save.
constexpr std::int64_t kLeastDepth = 64, kLeastColumns = 64;
// Slices that can run at once: each has its part of the workspace.
constexpr std::int64_t kMostSlots = 16;

using Dnnl = dnnl::memory;

/// kTileRows dense rows of a times `columns` columns of b, into dense rows. A primitive may run on
/// any number of threads at once, each with a scratchpad of its own.
struct TileProduct {
  Dnnl::desc a, plain_b, b, out, scratchpad;
  dnnl::matmul primitive;
  dnnl::reorder lay_out_b;

  TileProduct(const MatmulShape& s, std::int64_t columns) {
    const OneOpenMpThread one_thread;
    constexpr auto kType = Dnnl::data_type::bf16;
    a = {{kTileRows, s.depth}, kType, Dnnl::dims{s.depth, 1}};
    plain_b = {{s.depth, columns}, kType, Dnnl::dims{s.b_depth, s.b_column}};
    const Dnnl::desc any_b({s.depth, columns}, kType, Dnnl::format_tag::any);
    out = {{kTileRows, columns}, kType, Dnnl::dims{columns, 1}};
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc description({a, any_b, out}, attributes, dnnl_engine());
    b = description.weights_desc();
    scratchpad = description.scratchpad_desc();
    primitive = dnnl::matmul(description);
    lay_out_b =
        dnnl::reorder(dnnl::reorder::primitive_desc(dnnl_engine(), plain_b, dnnl_engine(), b));
  }

  std::size_t b_bytes() const { return dnnl_aligned(b.get_size()); }

  void lay_out(std::byte* from, std::byte* to) const {
    lay_out_b.execute(dnnl_thread_stream(), {{DNNL_ARG_FROM, Dnnl(plain_b, dnnl_engine(), from)},
                                             {DNNL_ARG_TO, Dnnl(b, dnnl_engine(), to)}});
  }

  void run(std::byte* from_a, std::byte* from_b, std::byte* to, std::byte* scratch) const {
    primitive.execute(dnnl_thread_stream(),
                      {{DNNL_ARG_SRC, Dnnl(a, dnnl_engine(), from_a)},
                       {DNNL_ARG_WEIGHTS, Dnnl(b, dnnl_engine(), from_b)},
                       {DNNL_ARG_DST, Dnnl(out, dnnl_engine(), to)},
                       {DNNL_ARG_SCRATCHPAD, Dnnl(scratchpad, dnnl_engine(), scratch)}});
  }
};

class LibraryProduct {
 public:
  explicit LibraryProduct(const MatmulShape& shape)
      : shape_(shape),
        tile_columns_(tile_columns(shape.depth)),
        row_tiles_((shape.rows + kTileRows - 1) / kTileRows),
        column_tiles_((shape.columns + tile_columns_ - 1) / tile_columns_) {
    const std::int64_t widest = std::min(tile_columns_, shape.columns);
    const std::int64_t rest = shape.columns % tile_columns_;
    products_.emplace_back(shape, widest);
    if (rest > 0 && rest < widest) products_.emplace_back(shape, rest);
    for (const TileProduct& product : products_) {
      scratch_bytes_ = std::max(scratch_bytes_, dnnl_aligned(product.scratchpad.get_size()));
    }
    a_bytes_ = dnnl_aligned(bytes(kTileRows * shape.depth));
    out_bytes_ = dnnl_aligned(bytes(kTileRows * widest));
    for (std::size_t i = 0; i < shape.b_batch.size(); ++i) {
      if (shape.b_batch[i] != 0) b_count_ *= shape.batch_shape[i];
    }
    lays_out_by_tile_ = b_count_ == shape.batch && row_tiles_ <= kFewRowTiles &&
                        b_count_ * column_tiles_ >= kEnoughColumnTiles;
    slots_ = std::min(lays_out_by_tile_ ? b_count_ * column_tiles_ : slices(), kMostSlots);
  }

  std::size_t workspace_bytes() const {
    const auto slots = static_cast<std::size_t>(slots_);
    if (lays_out_by_tile_) return slots * (slot_bytes() + products_.front().b_bytes());
    return static_cast<std::size_t>(b_count_) * b_bytes() + slots * slot_bytes();
  }

  void run(const Launch& launch) const {
    if (lays_out_by_tile_) return run_by_tile(launch);
    lay_out_b(launch);
    std::byte* slots = launch.workspace + static_cast<std::size_t>(b_count_) * b_bytes();
    parallel(launch.team, slots_, 1, [&](std::int64_t begin, std::int64_t end) {
      const OneOpenMpThread one_thread;
      for (std::int64_t slot = begin; slot < end; ++slot) {
        std::byte* workspace = slots + static_cast<std::size_t>(slot) * slot_bytes();
        for (std::int64_t i = slot; i < slices(); i += slots_) {
          const std::int64_t tile = i / row_tiles_ % column_tiles_;
          const std::int64_t batch = i / row_tiles_ / column_tiles_;
          run_slice(launch, {batch, i % row_tiles_, tile},
                    laid_out_b(launch, b_matrix(batch), tile), workspace);
        }
      }
    });
  }

 private:
  struct Slice {
    std::int64_t batch, row_tile, column_tile;
  };

  static std::int64_t tile_columns(std::int64_t depth) {
    const std::int64_t fit = kTileBytes / (2 * depth) / kLeastTileColumns * kLeastTileColumns;
    return std::clamp(fit, kLeastTileColumns, kMostTileColumns);
  }

  static std::size_t bytes(std::int64_t elements) { return static_cast<std::size_t>(elements) * 2; }

  std::int64_t slices() const { return shape_.batch * row_tiles_ * column_tiles_; }
  std::size_t slot_bytes() const { return scratch_bytes_ + a_bytes_ + out_bytes_; }

  /// Of one matrix: its tiles of columns, one after the other.
  std::size_t b_bytes() const {
    return static_cast<std::size_t>(column_tiles_ - 1) * products_.front().b_bytes() +
           products_.back().b_bytes();
  }
  const TileProduct& product(std::int64_t column) const {
    const bool widest = column + tile_columns_ <= shape_.columns;
    return widest ? products_.front() : products_.back();
  }
  std::byte* laid_out_b(const Launch& launch, std::int64_t matrix, std::int64_t tile) const {
    return launch.workspace + static_cast<std::size_t>(matrix) * b_bytes() +
           static_cast<std::size_t>(tile) * products_.front().b_bytes();
  }

  /// Which of b's matrices, in the order of their batches, serves a batch.
  std::int64_t b_matrix(std::int64_t batch) const {
    std::int64_t matrix = 0, each = 1;
    for (std::size_t i = shape_.b_batch.size(); i-- > 0; batch /= shape_.batch_shape[i]) {
      if (shape_.b_batch[i] == 0) continue;
      matrix += batch % shape_.batch_shape[i] * each;
      each *= shape_.batch_shape[i];
    }
    return matrix;
  }
  std::int64_t b_offset(std::int64_t matrix) const {
    std::int64_t offset = 0;
    for (std::size_t i = shape_.b_batch.size(); i-- > 0;) {
      if (shape_.b_batch[i] == 0) continue;
      offset += matrix % shape_.batch_shape[i] * shape_.b_batch[i];
      matrix /= shape_.batch_shape[i];
    }
    return offset;
  }

  void lay_out(const Launch& launch, std::int64_t matrix, std::int64_t tile, std::byte* to) const {
    const std::int64_t column = tile * tile_columns_;
    product(column).lay_out(
        launch.inputs[1].data + bytes(b_offset(matrix)) + bytes(column * shape_.b_column), to);
  }

  void lay_out_b(const Launch& launch) const {
    parallel(launch.team, b_count_ * column_tiles_, 1, [&](std::int64_t begin, std::int64_t end) {
      const OneOpenMpThread one_thread;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t matrix = i / column_tiles_, tile = i % column_tiles_;
        lay_out(launch, matrix, tile, laid_out_b(launch, matrix, tile));
      }
    });
  }

  void run_by_tile(const Launch& launch) const {
    const std::size_t b_bytes = products_.front().b_bytes();
    parallel(launch.team, slots_, 1, [&](std::int64_t begin, std::int64_t end) {
      const OneOpenMpThread one_thread;
      for (std::int64_t slot = begin; slot < end; ++slot) {
        std::byte* b = launch.workspace + static_cast<std::size_t>(slot) * (slot_bytes() + b_bytes);
        for (std::int64_t i = slot; i < b_count_ * column_tiles_; i += slots_) {
          const std::int64_t batch = i / column_tiles_, tile = i % column_tiles_;
          lay_out(launch, b_matrix(batch), tile, b);
          for (std::int64_t row_tile = 0; row_tile < row_tiles_; ++row_tile) {
            run_slice(launch, {batch, row_tile, tile}, b, b + b_bytes);
          }
        }
      }
    });
  }

  void run_slice(const Launch& launch, const Slice& slice, std::byte* b,
                 std::byte* workspace) const {
    const std::int64_t batch = slice.batch, row = slice.row_tile * kTileRows;
    const std::int64_t column = slice.column_tile * tile_columns_;
    const std::int64_t rows = std::min(kTileRows, shape_.rows - row);
    const std::int64_t columns = std::min(tile_columns_, shape_.columns - column);
    std::byte* a = launch.inputs[0].data + bytes(shape_.a_offset(batch) + row * shape_.a_row);
    std::byte* out =
        launch.outputs[0].data + bytes((batch * shape_.rows + row) * shape_.columns + column);

    std::byte* tile_a = workspace + scratch_bytes_;
    std::byte* tile_out = tile_a + a_bytes_;
    const std::size_t a_row = bytes(shape_.depth), out_row = bytes(columns);
    if (rows == kTileRows && shape_.a_row == shape_.depth) {
      tile_a = a;
    } else {
      for (std::int64_t r = 0; r < rows; ++r) {
        std::memcpy(tile_a + static_cast<std::size_t>(r) * a_row, a + bytes(r * shape_.a_row),
                    a_row);
      }
      std::memset(tile_a + static_cast<std::size_t>(rows) * a_row, 0,
                  static_cast<std::size_t>(kTileRows - rows) * a_row);
    }
    product(column).run(tile_a, b, tile_out, workspace);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(out + bytes(r * shape_.columns), tile_out + static_cast<std::size_t>(r) * out_row,
                  out_row);
    }
  }

  MatmulShape shape_;
  std::int64_t tile_columns_, row_tiles_, column_tiles_, slots_ = 0, b_count_ = 1;
  bool lays_out_by_tile_ = false;
  std::size_t scratch_bytes_ = 0, a_bytes_ = 0, out_bytes_ = 0;
  std::vector<TileProduct> products_;  // for the widest tiles, and for the last if it is narrower
};

}  // namespace

std::optional<MatmulRun> library_matmul(DType dtype, const MatmulShape& shape) {
  const bool worthwhile = shape.depth >= kLeastDepth && shape.columns >= kLeastColumns;
  const bool is_quicker = has_level(Isa::avx512) && isa() >= Isa::avx512;
  if (dtype != DType::bf16 || !is_quicker || !worthwhile || shape.a_depth != 1) {
    return std::nullopt;
  }
  try {
    const auto product = std::make_shared<const LibraryProduct>(shape);
    const std::size_t bytes = product->workspace_bytes();
    return MatmulRun{[product](const Launch& launch) {
                       try {
                         product->run(launch);
                       } catch (const dnnl::error& error) {
                         fail(ErrorCode::backend, "matmul: oneDNN: {}", error.message);
                       }
                     },
                     bytes};
  } catch (const dnnl::error&) {
    return std::nullopt;  // it has no kernel for these on this processor; ours has
  }
}

}  // namespace heddle::cpu

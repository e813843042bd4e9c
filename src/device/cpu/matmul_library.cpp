// Matmul through oneDNN: bf16, whose products its kernels take two at a time.
//
// oneDNN may choose another order of summation for another number of rows. So that a row's result
// does not depend on its company, every product is made of tiles that have the same number of rows
// and lie the same way in the workspace, the last one padded with zeros.
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
constexpr std::int64_t kTileColumns = 512;
// Below these, what a call costs outweighs what oneDNN's kernels save.
constexpr std::int64_t kLeastDepth = 64, kLeastColumns = 64;
// Slices that can run at once: each has its part of the workspace.
constexpr std::int64_t kMostSlots = 16;

using Dnnl = dnnl::memory;

/// kTileRows dense rows of a times `columns` columns of b, into dense rows. A primitive may run on
/// any number of threads at once, each with a scratchpad of its own.
struct TileProduct {
  Dnnl::desc a, b, out, scratchpad;
  dnnl::matmul primitive;

  TileProduct(const MatmulShape& s, std::int64_t columns) {
    const OneOpenMpThread one_thread;
    constexpr auto kType = Dnnl::data_type::bf16;
    a = {{kTileRows, s.depth}, kType, Dnnl::dims{s.depth, 1}};
    b = {{s.depth, columns}, kType, Dnnl::dims{s.b_depth, s.b_column}};
    out = {{kTileRows, columns}, kType, Dnnl::dims{columns, 1}};
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc description({a, b, out}, attributes, dnnl_engine());
    scratchpad = description.scratchpad_desc();
    primitive = dnnl::matmul(description);
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
        row_tiles_((shape.rows + kTileRows - 1) / kTileRows),
        column_tiles_((shape.columns + kTileColumns - 1) / kTileColumns) {
    const std::int64_t widest = std::min(kTileColumns, shape.columns);
    const std::int64_t rest = shape.columns % kTileColumns;
    products_.emplace_back(shape, widest);
    if (rest > 0 && rest < widest) products_.emplace_back(shape, rest);
    for (const TileProduct& product : products_) {
      scratch_bytes_ = std::max(scratch_bytes_, dnnl_aligned(product.scratchpad.get_size()));
    }
    a_bytes_ = dnnl_aligned(bytes(kTileRows * shape.depth));
    out_bytes_ = dnnl_aligned(bytes(kTileRows * widest));
    slots_ = std::min(slices(), kMostSlots);
  }

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(slots_) * slot_bytes(); }

  void run(const Launch& launch) const {
    parallel(launch.team, slots_, 1, [&](std::int64_t begin, std::int64_t end) {
      const OneOpenMpThread one_thread;
      for (std::int64_t slot = begin; slot < end; ++slot) {
        std::byte* workspace = launch.workspace + static_cast<std::size_t>(slot) * slot_bytes();
        for (std::int64_t i = slot; i < slices(); i += slots_) run_slice(launch, i, workspace);
      }
    });
  }

 private:
  static std::size_t bytes(std::int64_t elements) { return static_cast<std::size_t>(elements) * 2; }

  std::int64_t slices() const { return shape_.batch * row_tiles_ * column_tiles_; }
  std::size_t slot_bytes() const { return scratch_bytes_ + a_bytes_ + out_bytes_; }

  void run_slice(const Launch& launch, std::int64_t index, std::byte* workspace) const {
    const std::int64_t row = index % row_tiles_ * kTileRows;
    const std::int64_t column = index / row_tiles_ % column_tiles_ * kTileColumns;
    const std::int64_t batch = index / row_tiles_ / column_tiles_;
    const std::int64_t rows = std::min(kTileRows, shape_.rows - row);
    const std::int64_t columns = std::min(kTileColumns, shape_.columns - column);
    const std::byte* a = launch.inputs[0].data + bytes(shape_.a_offset(batch) + row * shape_.a_row);
    std::byte* b = launch.inputs[1].data + bytes(shape_.b_offset(batch) + column * shape_.b_column);
    std::byte* out =
        launch.outputs[0].data + bytes((batch * shape_.rows + row) * shape_.columns + column);

    std::byte* tile_a = workspace + scratch_bytes_;
    std::byte* tile_out = tile_a + a_bytes_;
    const std::size_t a_row = bytes(shape_.depth), out_row = bytes(columns);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(tile_a + static_cast<std::size_t>(r) * a_row, a + bytes(r * shape_.a_row), a_row);
    }
    std::memset(tile_a + static_cast<std::size_t>(rows) * a_row, 0,
                static_cast<std::size_t>(kTileRows - rows) * a_row);
    const bool widest = column + kTileColumns <= shape_.columns;
    (widest ? products_.front() : products_.back()).run(tile_a, b, tile_out, workspace);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(out + bytes(r * shape_.columns), tile_out + static_cast<std::size_t>(r) * out_row,
                  out_row);
    }
  }

  MatmulShape shape_;
  std::int64_t row_tiles_, column_tiles_, slots_ = 0;
  std::size_t scratch_bytes_ = 0, a_bytes_ = 0, out_bytes_ = 0;
  std::vector<TileProduct> products_;  // for the widest tiles, and for the last if it is narrower
};

}  // namespace

std::optional<LibraryMatmul> library_matmul(DType dtype, const MatmulShape& shape) {
  const bool worthwhile = shape.depth >= kLeastDepth && shape.columns >= kLeastColumns;
  if (dtype != DType::bf16 || isa() != Isa::avx512 || !worthwhile || shape.a_depth != 1) {
    return std::nullopt;
  }
  try {
    const auto product = std::make_shared<const LibraryProduct>(shape);
    const std::size_t bytes = product->workspace_bytes();
    return LibraryMatmul{[product](const Launch& launch) {
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

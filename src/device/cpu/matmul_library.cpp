// Matmul through oneDNN: bf16, whose products its kernels take two at a time.
//
// oneDNN may choose another order of summation for another number of rows. So that a row's result
// does not depend on its company, every product is made of tiles with the same number of rows, the
// last one padded with zeros.
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/check.h"
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
constexpr std::size_t kAlignment = 64;

using Dnnl = dnnl::memory;

/// oneDNN's build uses OpenMP. Our pool hands out the slices, so that each call must keep to its
/// thread; the caller's own setting comes back afterwards.
class OneOpenMpThread {
 public:
  OneOpenMpThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneOpenMpThread() { omp_set_num_threads(before_); }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int before_;
};

dnnl::engine& engine() {
  static dnnl::engine& cpu = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& thread_stream() {
  thread_local dnnl::stream stream(engine());
  return stream;
}

/// kTileRows rows of a times `columns` columns of b. A primitive may run on any number of threads
/// at once, each with a scratchpad of its own.
struct TileProduct {
  Dnnl::desc a, b, out, scratchpad;
  dnnl::matmul primitive;

  TileProduct(const MatmulShape& s, std::int64_t a_row, std::int64_t columns,
              std::int64_t out_row) {
    constexpr auto kType = Dnnl::data_type::bf16;
    a = {{kTileRows, s.depth}, kType, Dnnl::dims{a_row, 1}};
    b = {{s.depth, columns}, kType, Dnnl::dims{s.b_depth, s.b_column}};
    out = {{kTileRows, columns}, kType, Dnnl::dims{out_row, 1}};
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc description({a, b, out}, attributes, engine());
    scratchpad = description.scratchpad_desc();
    primitive = dnnl::matmul(description);
  }

  void run(std::byte* from_a, std::byte* from_b, std::byte* to, std::byte* scratch) const {
    primitive.execute(thread_stream(),
                      {{DNNL_ARG_SRC, Dnnl(a, engine(), from_a)},
                       {DNNL_ARG_WEIGHTS, Dnnl(b, engine(), from_b)},
                       {DNNL_ARG_DST, Dnnl(out, engine(), to)},
                       {DNNL_ARG_SCRATCHPAD, Dnnl(scratchpad, engine(), scratch)}});
  }
};

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class LibraryProduct {
 public:
  explicit LibraryProduct(const MatmulShape& shape)
      : shape_(shape),
        row_tiles_((shape.rows + kTileRows - 1) / kTileRows),
        column_tiles_((shape.columns + kTileColumns - 1) / kTileColumns) {
    const std::int64_t widest = std::min(kTileColumns, shape.columns);
    // Where whole tiles lie in a and out; padded ones lie densely in the workspace.
    add(whole_, shape.a_row, shape.columns);
    add(padded_, shape.depth, widest);
    a_bytes_ = aligned(static_cast<std::size_t>(kTileRows * shape.depth) * kItem);
    out_bytes_ = aligned(static_cast<std::size_t>(kTileRows * widest) * kItem);
    slots_ = std::min(shape.batch * row_tiles_ * column_tiles_, kMostSlots);
  }

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(slots_) * slot_bytes(); }

  void run(const Launch& launch) const {
    const std::int64_t slices = shape_.batch * row_tiles_ * column_tiles_;
    parallel(launch.team, slots_, 1, [&](std::int64_t begin, std::int64_t end) {
      const OneOpenMpThread one_thread;
      for (std::int64_t slot = begin; slot < end; ++slot) {
        std::byte* workspace = launch.workspace + static_cast<std::size_t>(slot) * slot_bytes();
        for (std::int64_t i = slots_ == 0 ? slices : slot; i < slices; i += slots_) {
          run_slice(launch, i, workspace);
        }
      }
    });
  }

 private:
  static constexpr std::size_t kItem = 2;

  void add(std::vector<TileProduct>& products, std::int64_t a_row, std::int64_t out_row) {
    const OneOpenMpThread one_thread;
    for (std::int64_t column = 0; column < shape_.columns; column += kTileColumns) {
      const std::int64_t columns = std::min(kTileColumns, shape_.columns - column);
      if (column > 0 && columns == kTileColumns) continue;
      products.emplace_back(shape_, a_row, columns, out_row);
      scratch_bytes_ = std::max(scratch_bytes_, aligned(products.back().scratchpad.get_size()));
    }
  }

  std::size_t slot_bytes() const { return scratch_bytes_ + a_bytes_ + out_bytes_; }

  void run_slice(const Launch& launch, std::int64_t index, std::byte* workspace) const {
    const std::int64_t row = index % row_tiles_ * kTileRows;
    const std::int64_t tile = index / row_tiles_ % column_tiles_;
    const std::int64_t batch = index / row_tiles_ / column_tiles_;
    const std::int64_t column = tile * kTileColumns;
    const auto bytes = [](std::int64_t count) { return static_cast<std::size_t>(count) * kItem; };
    std::byte* a = launch.inputs[0].data + bytes(shape_.a_offset(batch) + row * shape_.a_row);
    std::byte* b = launch.inputs[1].data + bytes(shape_.b_offset(batch) + column * shape_.b_column);
    std::byte* out =
        launch.outputs[0].data + bytes((batch * shape_.rows + row) * shape_.columns + column);
    const std::size_t which = column + kTileColumns <= shape_.columns ? 0 : whole_.size() - 1;
    if (row + kTileRows <= shape_.rows) return whole_[which].run(a, b, out, workspace);

    const std::int64_t columns = std::min(kTileColumns, shape_.columns - column);
    const std::int64_t rows = shape_.rows - row;
    std::byte* padded_a = workspace + scratch_bytes_;
    std::byte* padded_out = padded_a + a_bytes_;
    std::memset(padded_a, 0, a_bytes_);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(padded_a + bytes(r * shape_.depth), a + bytes(r * shape_.a_row),
                  bytes(shape_.depth));
    }
    padded_[which].run(padded_a, b, padded_out, workspace);
    const std::int64_t stride = std::min(kTileColumns, shape_.columns);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(out + bytes(r * shape_.columns), padded_out + bytes(r * stride), bytes(columns));
    }
  }

  MatmulShape shape_;
  std::int64_t row_tiles_, column_tiles_, slots_ = 0;
  std::size_t scratch_bytes_ = 0, a_bytes_ = 0, out_bytes_ = 0;
  std::vector<TileProduct> whole_, padded_;  // for tiles of kTileColumns, and the last if narrower
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

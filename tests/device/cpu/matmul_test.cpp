#include "device/cpu/matmul.h"
#include "device/cpu/kernel_run.h"

namespace heddle::cpu {
namespace {

/// The operand as it would be contiguously, with strides that put its last two axes the other way.
OperandSpec swapped(DType dtype, const Shape& shape) {
  OperandSpec operand = OperandSpec::contiguous({dtype, shape});
  const std::size_t rank = shape.size();
  operand.layout.strides[rank - 1] = shape[rank - 2];
  operand.layout.strides[rank - 2] = 1;
  return operand;
}

double at(const HostTensor& t, std::int64_t batch, std::int64_t row, std::int64_t column) {
  const Dims& strides = t.operand.layout.strides;
  const std::size_t rank = strides.size();
  std::int64_t offset = row * strides[rank - 2] + column * strides[rank - 1];
  if (rank == 3 && t.operand.spec.shape[0] > 1) offset += batch * strides[0];
  return element(t, static_cast<std::size_t>(offset));
}

/// Half a unit in the last place of the result, relative to it, and what sums may lose.
struct Tolerance {
  double rounding, sums;
};
Tolerance tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {1e-15, 1e-14};
    case DType::f32:
      return {1e-7, 1e-6};
    case DType::f16:
      return {0x1p-11, 1e-6};
    default:
      return {0x1p-8, 1e-6};
  }
}

void expect_product(const HostTensor& a, const HostTensor& b, const HostTensor& out) {
  const Shape& shape = out.operand.spec.shape;
  const std::size_t rank = shape.size();
  const std::int64_t batch = rank == 3 ? shape[0] : 1, depth = a.operand.spec.shape.back();
  const Tolerance allowed = tolerance(out.operand.spec.dtype);
  std::size_t i = 0;
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t r = 0; r < shape[rank - 2]; ++r) {
      for (std::int64_t c = 0; c < shape[rank - 1]; ++c, ++i) {
        double sum = 0, magnitude = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          const double term = at(a, n, r, k) * at(b, n, k, c);
          sum += term;
          magnitude += std::abs(term);
        }
        ASSERT_NEAR(element(out, i), sum,
                    std::abs(sum) * allowed.rounding + magnitude * allowed.sums + 1e-7)
            << to_string(a.operand) << " x " << to_string(b.operand) << " element " << i;
      }
    }
  }
}

class MatmulTypes : public testing::TestWithParam<DType> {};

TEST_P(MatmulTypes, AgreeWithFloat64AtEveryLevelAndWayRound) {
  std::uint32_t seed = 1;
  for (const std::int64_t rows : {1, 5, 33, 98}) {
    for (const std::int64_t depth : {0, 1, 17, 64, 130}) {
      for (const std::int64_t columns : {1, 15, 33, 64, 80, 515}) {
        if (rows * depth * columns > 1'000'000) continue;
        for (const int way : {0, 1, 2, 3}) {
          const Shape shape_a{rows, depth}, shape_b{depth, columns};
          const OperandSpec a = way & 1 ? swapped(GetParam(), shape_a)
                                        : OperandSpec::contiguous({GetParam(), shape_a});
          const OperandSpec b = way & 2 ? swapped(GetParam(), shape_b)
                                        : OperandSpec::contiguous({GetParam(), shape_b});
          const HostTensor x = random_tensor(a, ++seed), y = random_tensor(b, ++seed);
          for (const Isa level : levels()) {
            const IsaScope scope(level);
            expect_product(x, y, run_kernel(prepare_matmul, Matmul{}, {x, y})[0]);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(MatmulTypes, RowsLieApart) {
  std::uint32_t seed = 1;
  for (const std::int64_t depth : {16, 17, 300}) {
    for (const std::int64_t gap : {1, 2, 7}) {
      for (const bool swap_b : {false, true}) {
        OperandSpec a = OperandSpec::contiguous({GetParam(), {20, depth}});
        OperandSpec b = swap_b ? swapped(GetParam(), {depth, 70})
                               : OperandSpec::contiguous({GetParam(), {depth, 70}});
        a.layout.strides[0] += gap;
        b.layout.strides[swap_b ? 1 : 0] += gap;
        const HostTensor x = random_tensor(a, ++seed), y = random_tensor(b, ++seed);
        for (const Isa level : levels()) {
          const IsaScope scope(level);
          expect_product(x, y, run_kernel(prepare_matmul, Matmul{}, {x, y})[0]);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(MatmulTypes, BatchesBroadcast) {
  const std::vector<std::pair<Shape, Shape>> cases = {
      {{3, 4, 20}, {3, 20, 7}}, {{1, 4, 20}, {3, 20, 7}}, {{3, 4, 20}, {20, 7}},
      {{4, 20}, {3, 20, 7}},    {{0, 4, 20}, {0, 20, 7}}, {{3, 70, 100}, {3, 100, 90}}};
  for (const auto& [shape_a, shape_b] : cases) {
    const HostTensor a = random_tensor(GetParam(), shape_a, 1);
    const HostTensor b = random_tensor(GetParam(), shape_b, 2);
    for (const int threads : {1, 2}) {
      expect_product(a, b, run_kernel(prepare_matmul, Matmul{}, {a, b}, {threads})[0]);
    }
  }
}

TEST_P(MatmulTypes, ARowHasTheSameBitsAloneAndInCompany) {
  for (const auto& [depth, columns] : {std::pair{40, 70}, {300, 530}, {130, 64}}) {
    for (const bool swap_b : {false, true}) {
      const HostTensor a = random_tensor(GetParam(), {67, depth}, 1);
      const HostTensor b =
          random_tensor(swap_b ? swapped(GetParam(), {depth, columns})
                               : OperandSpec::contiguous({GetParam(), {depth, columns}}),
                        2);
      const std::size_t a_row = row_bytes(GetParam(), depth);
      const std::size_t out_row = row_bytes(GetParam(), columns);
      for (const Isa level : levels()) {
        if (GetParam() == DType::f64 && level != Isa::portable) continue;  // one loop serves all
        const IsaScope scope(level);
        const HostTensor all = run_kernel(prepare_matmul, Matmul{}, {a, b})[0];
        for (const int threads : {1, 2, 8}) {
          for (std::int64_t count = 1; count <= 67; count += threads == 2 ? 1 : 6) {
            const auto first = static_cast<std::size_t>((count * 7) % (68 - count));
            HostTensor part = make_tensor(GetParam(), {count, depth});
            std::memcpy(part.bytes.data(), a.bytes.data() + first * a_row, part.bytes.size());
            const HostTensor some = run_kernel(prepare_matmul, Matmul{}, {part, b}, {threads})[0];
            ASSERT_TRUE(same_bytes(all, first * out_row, some, 0, some.bytes.size()))
                << "rows " << first << " + " << count << " threads " << threads << " level "
                << static_cast<int>(level);
          }
        }
      }
    }
  }
}

// Threads decide into how many tasks a product is cut.
TEST_P(MatmulTypes, HowItIsCutDecidesNothing) {
  struct Size {
    std::int64_t rows, depth, columns;
  };
  for (const Size& s :
       {Size{1000, 130, 600}, {250, 512, 300}, {40, 70, 1100}, {14, 4096, 70}, {40, 2048, 2100}}) {
    for (const bool swap_b : {false, true}) {
      const HostTensor a = random_tensor(GetParam(), {s.rows, s.depth}, 1);
      const HostTensor b =
          random_tensor(swap_b ? swapped(GetParam(), {s.depth, s.columns})
                               : OperandSpec::contiguous({GetParam(), {s.depth, s.columns}}),
                        2);
      const HostTensor all = run_kernel(prepare_matmul, Matmul{}, {a, b})[0];
      for (const int threads : {2, 8, 40}) {
        const HostTensor same = run_kernel(prepare_matmul, Matmul{}, {a, b}, {threads})[0];
        ASSERT_EQ(same.bytes, all.bytes) << threads << " threads";
      }
      // Few rows, which are checked in full, are cut otherwise again.
      HostTensor last = make_tensor(GetParam(), {3, s.depth});
      const std::size_t skipped = (a.bytes.size() / static_cast<std::size_t>(s.rows)) *
                                  static_cast<std::size_t>(s.rows - 3);
      std::memcpy(last.bytes.data(), a.bytes.data() + skipped, last.bytes.size());
      const HostTensor few = run_kernel(prepare_matmul, Matmul{}, {last, b})[0];
      expect_product(last, b, few);
      ASSERT_TRUE(same_bytes(all, all.bytes.size() - few.bytes.size(), few, 0, few.bytes.size()));
    }
  }
}

TEST_P(MatmulTypes, EmptyOnesAreEmptyAndSumsOfNothingAreZero) {
  for (const auto& [rows, columns] : {std::pair{0, 3}, {3, 0}}) {
    EXPECT_TRUE(
        run_kernel(prepare_matmul, Matmul{},
                   {make_tensor(GetParam(), {rows, 4}), make_tensor(GetParam(), {4, columns})})[0]
            .bytes.empty());
  }
  const HostTensor out =
      run_kernel(prepare_matmul, Matmul{},
                 {make_tensor(GetParam(), {70, 0}), make_tensor(GetParam(), {0, 70})})[0];
  for (std::size_t i = 0; i < 70 * 70; ++i) ASSERT_EQ(element(out, i), 0.0);
}

INSTANTIATE_TEST_SUITE_P(Types, MatmulTypes,
                         testing::Values(DType::f16, DType::bf16, DType::f32, DType::f64),
                         [](const auto& type) { return std::string(to_string(type.param)); });

Prepared prepare_by_library(const PrepareArgs& args) {
  auto library = library_matmul(DType::bf16, matmul_shape(args));
  if (!library) return refuse("nothing that oneDNN is quicker with");
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.workspace_bytes = library->workspace_bytes;
  return make_kernel(std::move(traits), std::move(library->run));
}

// Also where the processor has what pair_matmul wants.
TEST(Matmul, ByTheLibraryIsRightAndRowsAreTheSameAlone) {
  if (!has_level(Isa::avx512)) GTEST_SKIP() << "oneDNN serves no matmul without AVX-512";
  std::uint32_t seed = 1;
  for (const std::int64_t depth : {64, 130, 600}) {
    for (const std::int64_t columns : {64, 83, 1100}) {
      if (depth * columns > 200'000) continue;
      for (const bool swap_b : {false, true}) {
        const HostTensor a = random_tensor(DType::bf16, {98, depth}, ++seed);
        const HostTensor b =
            random_tensor(swap_b ? swapped(DType::bf16, {depth, columns})
                                 : OperandSpec::contiguous({DType::bf16, {depth, columns}}),
                          ++seed);
        const HostTensor all = run_kernel(prepare_by_library, Matmul{}, {a, b}, {2})[0];
        expect_product(a, b, all);
        if (HasFatalFailure()) return;
        HostTensor last = make_tensor(DType::bf16, {3, depth});
        std::memcpy(last.bytes.data(), a.bytes.data() + 95 * row_bytes(DType::bf16, depth),
                    last.bytes.size());
        const HostTensor few = run_kernel(prepare_by_library, Matmul{}, {last, b})[0];
        ASSERT_TRUE(same_bytes(all, all.bytes.size() - few.bytes.size(), few, 0, few.bytes.size()));
      }
    }
  }
}

TEST(Matmul, RefusesGapsOnBothAxes) {
  const OperandSpec gaps{{DType::f32, {3, 4}}, {LayoutKind::strided, {16, 2}}};
  EXPECT_THAT(
      prepare(prepare_matmul, Matmul{}, {make_tensor(gaps), make_tensor(DType::f32, {4, 3})})
          .reason,
      testing::HasSubstr("an axis of adjacent elements"));
}

}  // namespace
}  // namespace heddle::cpu

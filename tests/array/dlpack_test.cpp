// Arrays over a caller's memory, and DLPack both ways: what is shared, and when it is let go.
#include "heddle/dlpack.h"

#include <atomic>
#include <memory>
#include <thread>

#include "array/launch.h"
#include "array_test_support.h"
#include "heddle/device.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

// The layout of dlpack.h on 64-bit systems.
static_assert(sizeof(dlpack::Tensor) == 48 && offsetof(dlpack::Tensor, ndim) == 16);
static_assert(offsetof(dlpack::Tensor, dtype) == 20 && offsetof(dlpack::Tensor, shape) == 24);
static_assert(offsetof(dlpack::Tensor, strides) == 32 &&
              offsetof(dlpack::Tensor, byte_offset) == 40);
static_assert(sizeof(dlpack::ManagedTensor) == 64 &&
              offsetof(dlpack::ManagedTensor, deleter) == 56);
static_assert(sizeof(dlpack::ManagedTensorVersioned) == 80);
static_assert(offsetof(dlpack::ManagedTensorVersioned, manager) == 8 &&
              offsetof(dlpack::ManagedTensorVersioned, flags) == 24 &&
              offsetof(dlpack::ManagedTensorVersioned, tensor) == 32);

/// Someone else's tensor, which counts how often it is deleted.
template <class Managed>
struct Foreign {
  std::vector<float> data;
  std::vector<std::int64_t> shape, strides;
  Managed managed{};
  std::atomic<int> deleted{0};

  Foreign(std::vector<float> values, std::vector<std::int64_t> extents,
          std::vector<std::int64_t> steps = {})
      : data(std::move(values)), shape(std::move(extents)), strides(std::move(steps)) {
    managed.tensor = {.data = data.data(),
                      .device = {dlpack::kDeviceCpu, 0},
                      .ndim = static_cast<std::int32_t>(shape.size()),
                      .dtype = {dlpack::kFloat, 32, 1},
                      .shape = shape.data(),
                      .strides = strides.empty() ? nullptr : strides.data(),
                      .byte_offset = 0};
    managed.manager = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager)->deleted; };
    if constexpr (requires { managed.major; }) managed.major = dlpack::kMajorVersion;
  }
  dlpack::Tensor& tensor() { return managed.tensor; }
};
using Legacy = Foreign<dlpack::ManagedTensor>;
using Versioned = Foreign<dlpack::ManagedTensorVersioned>;

TEST(FromMemory, ReadsWithoutACopyAndLetsGoOnce) {
  std::vector<float> data{1, 2, 3, 4, 5, 6};
  std::atomic<int> deleted{0};
  void* seen = nullptr;
  {
    const Array a = from_memory(data.data(), {2, 3}, DType::f32, [&](void* p) {
      seen = p;
      ++deleted;
    });
    EXPECT_EQ(a.view().host(), reinterpret_cast<std::byte*>(data.data()));
    EXPECT_THAT(values<float>(a), ElementsAre(1, 2, 3, 4, 5, 6));
    const Array b = transpose(a) + 1.0f;
    EXPECT_THAT(values<float>(b), ElementsAre(2, 5, 3, 6, 4, 7));
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(seen, data.data());
}

TEST(FromMemory, LivesAsLongAsWhatStillReadsIt) {
  std::vector<float> data{1, 2, 3, 4};
  std::atomic<int> deleted{0};
  Array later = [&] {
    const Array a = from_memory(data.data(), {4}, DType::f32, [&](void*) { ++deleted; });
    return a * 2.0f;
  }();
  EXPECT_EQ(deleted, 0);  // not computed yet
  EXPECT_THAT(values<float>(later), ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(deleted, 1);

  Array part =
      slice(from_memory(data.data(), {4}, DType::f32, [&](void*) { ++deleted; }), {1}, {3});
  part.eval();  // a view of it
  EXPECT_EQ(deleted, 1);
  EXPECT_THAT(values<float>(part), ElementsAre(2, 3));
  part = Array(0);
  EXPECT_EQ(deleted, 2);
}

TEST(FromMemory, IsNeverWrittenInPlaceOfAnythingElse) {
  std::vector<float> data(1000, 1);
  {
    Array a = from_memory(data.data(), {1000}, DType::f32, nullptr);
    for (int i = 0; i < 5; ++i) a = exp(std::move(a)) * 0.1f;
    a.eval();
    Array b =
        slice_update(from_memory(data.data(), {1000}, DType::f32, nullptr), 7.0f, {0}, {1000});
    b.eval();
    EXPECT_EQ(b.to_vector<float>()[3], 7);
  }
  EXPECT_EQ(data, std::vector<float>(1000, 1));
}

TEST(FromMemory, IsLetGoOnWhicheverThreadIsLast) {
  std::vector<float> data(64, 2);
  std::atomic<int> deleted{0};
  Array a = from_memory(data.data(), {64}, DType::f32, [&](void*) { ++deleted; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([copy = a]() mutable {
      for (int i = 0; i < 50; ++i) sum(copy + static_cast<float>(i)).eval();
      copy = Array(0);
    });
  }
  a = Array(0);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(deleted, 1);
}

TEST(FromMemory, WhatCannotBeAnArrayStaysTheCallers) {
  alignas(8) std::byte bytes[64] = {};
  int deleted = 0;
  const auto deleter = [&](void*) { ++deleted; };
  expect_invalid([&] { from_memory(bytes + 1, {2}, DType::f32, deleter); },
                 {"from_memory: f32[2] lies at ", "no multiple of 4 bytes"});
  expect_invalid([&] { from_memory(nullptr, {2}, DType::f32, deleter); },
                 {"from_memory: f32[2] has no memory"});
  expect_invalid([&] { from_memory(bytes, {-2}, DType::f32, deleter); }, {"negative"});
  expect_invalid(
      [&] {
        from_memory(bytes, {std::int64_t{1} << 62, 8}, DType::f32, deleter);
      },
      {"overflow"});
  expect_invalid([&] { from_memory(bytes, {32}, DType::q8_0, deleter); }, {"q8_0", "block"});
  EXPECT_EQ(deleted, 0);
  EXPECT_EQ(from_memory(nullptr, {0, 3}, DType::f32, deleter).size(), 0);
  EXPECT_EQ(deleted, 1);
}

// ---- DLPack in

template <class F>
class DlpackIn : public testing::Test {};
using Forms = testing::Types<Legacy, Versioned>;
TYPED_TEST_SUITE(DlpackIn, Forms);

TYPED_TEST(DlpackIn, SharesTheMemoryAndDeletesOnce) {
  TypeParam foreign({1, 2, 3, 4, 5, 6}, {2, 3});
  {
    const Array a = from_dlpack(&foreign.managed);
    EXPECT_EQ(a.spec(), (TensorSpec{DType::f32, {2, 3}}));
    EXPECT_EQ(a.view().host(), reinterpret_cast<std::byte*>(foreign.data.data()));
    EXPECT_THAT(values<float>(a), ElementsAre(1, 2, 3, 4, 5, 6));
    Array b = a;
    b = square(std::move(b));
    EXPECT_THAT(values<float>(b), ElementsAre(1, 4, 9, 16, 25, 36));
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
  EXPECT_THAT(foreign.data, ElementsAre(1, 2, 3, 4, 5, 6));
}

TYPED_TEST(DlpackIn, StridesOfEitherSignAndOffsets) {
  const std::vector<float> data{0, 1, 2, 3, 4, 5, 6, 7};
  TypeParam transposed(data, {2, 3}, {1, 2});
  EXPECT_THAT(values<float>(from_dlpack(&transposed.managed)), ElementsAre(0, 2, 4, 1, 3, 5));
  TypeParam backwards(data, {4}, {-2});
  backwards.tensor().byte_offset = 7 * sizeof(float);
  EXPECT_THAT(values<float>(from_dlpack(&backwards.managed)), ElementsAre(7, 5, 3, 1));
  EXPECT_THAT(values<float>(from_dlpack(&backwards.managed) + 1.0f), ElementsAre(8, 6, 4, 2));
  TypeParam repeated(data, {2, 3}, {0, 1});
  repeated.tensor().byte_offset = sizeof(float);
  EXPECT_THAT(values<float>(from_dlpack(&repeated.managed)), ElementsAre(1, 2, 3, 1, 2, 3));
  TypeParam scalar(data, {});
  EXPECT_EQ(from_dlpack(&scalar.managed).template item<float>(), 0);
  TypeParam empty({}, {0, 3});
  empty.tensor().data = nullptr;
  EXPECT_EQ(from_dlpack(&empty.managed).shape(), Shape({0, 3}));
  EXPECT_EQ(empty.deleted, 1);
  TypeParam no_deleter(data, {8});
  no_deleter.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&no_deleter.managed).size(), 8);
}

TYPED_TEST(DlpackIn, WhatIsRefusedStaysTheCallers) {
  TypeParam foreign({1, 2, 3, 4}, {2, 2});
  const dlpack::Tensor good = foreign.tensor();
  using Change = std::function<void(dlpack::Tensor&)>;
  std::int64_t negative[] = {2, -2}, huge[] = {std::int64_t{1} << 62, 4};
  std::int64_t far[] = {std::int64_t{1} << 62, 1}, farthest[] = {INT64_MIN, 1};
  std::int64_t before[] = {-(std::int64_t{1} << 59), 1};
  const std::vector<std::pair<Change, std::string>> changes = {
      {[](dlpack::Tensor& t) { t.device.type = 2; }, "a device of type 2"},
      {[](dlpack::Tensor& t) { t.ndim = -1; }, "-1 dimensions"},
      {[](dlpack::Tensor& t) { t.ndim = 9; }, "9 dimensions"},
      {[](dlpack::Tensor& t) { t.shape = nullptr; }, "no shape"},
      {[](dlpack::Tensor& t) { t.data = nullptr; }, "no memory"},
      {[](dlpack::Tensor& t) { t.byte_offset = 2; }, "no multiple of 4 bytes"},
      {[](dlpack::Tensor& t) { t.byte_offset = ~std::uint64_t{0}; }, "leads out of memory"},
      {[](dlpack::Tensor& t) { t.dtype.lanes = 4; }, "4 lanes"},
      {[](dlpack::Tensor& t) { t.dtype.bits = 24; }, "24 bits"},
      {[](dlpack::Tensor& t) { t.dtype.code = dlpack::kBfloat; }, "code 4, 32 bits"},
      {[](dlpack::Tensor& t) { t.dtype.code = 200; }, "code 200"},
      {[&](dlpack::Tensor& t) { t.shape = negative; }, "negative"},
      {[&](dlpack::Tensor& t) { t.shape = huge; }, "overflow"},
      {[&](dlpack::Tensor& t) { t.strides = far; }, ""},
      {[&](dlpack::Tensor& t) { t.strides = farthest; }, ""},
      {[&](dlpack::Tensor& t) { t.strides = before; }, ""},
  };
  for (const auto& [change, why] : changes) {
    foreign.tensor() = good;
    change(foreign.tensor());
    try {
      from_dlpack(&foreign.managed);
      ADD_FAILURE() << "was taken, though: " << why;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("from_dlpack: "));
      EXPECT_THAT(error.what(), testing::HasSubstr(why));
    }
  }
  EXPECT_EQ(foreign.deleted, 0);
  foreign.tensor() = good;
  EXPECT_EQ(from_dlpack(&foreign.managed).size(), 4);
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(Dlpack, OtherMajorVersionsAndNoTensorAreRefused) {
  Versioned foreign({1}, {1});
  foreign.managed.minor = 9;
  EXPECT_EQ(from_dlpack(&foreign.managed).size(), 1);
  foreign.managed.major = 2;
  expect_error([&] { from_dlpack(&foreign.managed); }, ErrorCode::unsupported,
               {"from_dlpack: a tensor of DLPack 2.9"});
  EXPECT_EQ(foreign.deleted, 1);
  expect_invalid([] { from_dlpack(static_cast<dlpack::ManagedTensor*>(nullptr)); }, {"no tensor"});
  expect_invalid([] { from_dlpack(static_cast<dlpack::ManagedTensorVersioned*>(nullptr)); },
                 {"no tensor"});
}

// ---- DLPack out

struct Deleted {
  void operator()(auto* managed) const { managed->deleter(managed); }
};
template <class Managed>
using Owned = std::unique_ptr<Managed, Deleted>;

TEST(DlpackOut, IsTheArraysOwnMemory) {
  const Array a = Array({1.0f, 2.0f, 3.0f}) * 2.0f;
  const Owned<dlpack::ManagedTensorVersioned> out(to_dlpack_versioned(a));
  EXPECT_EQ(out->tensor.data, a.view().host());
  EXPECT_EQ(out->major, 1u);
  EXPECT_EQ(out->flags, dlpack::kReadOnly);
  EXPECT_EQ(out->tensor.ndim, 1);
  EXPECT_EQ(out->tensor.shape[0], 3);
  EXPECT_EQ(out->tensor.strides[0], 1);
  EXPECT_EQ(out->tensor.byte_offset, 0u);
  EXPECT_EQ(out->tensor.device.type, dlpack::kDeviceCpu);
  EXPECT_EQ(static_cast<const float*>(out->tensor.data)[2], 6);
}

TEST(DlpackOut, OutlivesTheArrayAndKeepsItsValue) {
  Owned<dlpack::ManagedTensor> out;
  {
    Array a = Array(std::vector<float>(1000, 3), {1000}) + 1.0f;
    out.reset(to_dlpack(a));
    for (int i = 0; i < 3; ++i) a = square(std::move(a));  // else in the same memory
    a.eval();
  }
  for (int i = 0; i < 10; ++i) (zeros({1000}) + 9.0f).eval();  // what else would take it
  const auto* values = static_cast<const float*>(out->tensor.data);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(values[i], 4);
  std::thread([&] { out.reset(); }).join();
}

TEST(DlpackOut, EveryTypeAndLayoutComesBack) {
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto dtype = static_cast<DType>(t);
    if (is_block(dtype)) continue;
    const Array a = astype(arange(24, DType::f32) + 1.0f, dtype);
    for (const Array& shaped :
         {reshape(a, {2, 3, 4}), transpose(reshape(a, {4, 6})), flip(a), slice(a, {20}, {2}, {-3}),
          broadcast_to(a, {2, 24}), slice(a, {0}, {0}), reshape(slice(a, {5}, {6}), {})}) {
      const Array back = from_dlpack(to_dlpack_versioned(shaped));
      EXPECT_EQ(back.spec(), shaped.spec());
      EXPECT_EQ(back.to_bytes(), shaped.to_bytes()) << to_string(shaped.spec());
      if (shaped.size() > 0) {
        EXPECT_EQ(back.view().host(), shaped.view().host());
      }
      EXPECT_EQ(from_dlpack(to_dlpack(shaped)).to_bytes(), shaped.to_bytes());
    }
  }
}

TEST(DlpackOut, WhatFailedAndWhatHasNoTypeIsRefused) {
  const Array failed = take(Array({1.0f, 2.0f}), Array({5}));
  expect_error([&] { to_dlpack(failed); }, ErrorCode::invalid_argument, {"to_dlpack: "});
  const Array blocks = Array::from_bytes({DType::q8_0, {32}}, std::vector<std::byte>(34));
  expect_invalid([&] { to_dlpack_versioned(blocks); }, {"to_dlpack_versioned: q8_0[32]"});
}

}  // namespace
}  // namespace heddle::test

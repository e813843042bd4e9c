// The registry, the kernel cache, and the CPU's memory, streams and recordings.
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/team.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernel.h"
#include "device/cpu_levels.h"
#include "device/lower.h"
#include "support/allocations.h"

namespace heddle::test {
namespace {

template <class F>
std::string error_of(const F& f, ErrorCode code) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

OperandSpec floats(const Shape& shape) {
  return OperandSpec::contiguous({DType::f32, shape});
}

View view_of_floats(const std::vector<float>& values, const Shape& shape) {
  View view{cpu_device().allocate(values.size() * sizeof(float)), 0, floats(shape)};
  if (!values.empty()) std::memcpy(view.host(), values.data(), values.size() * sizeof(float));
  return view;
}

View view_of_int(std::int32_t value) {
  View view{cpu_device().allocate(sizeof value), 0, OperandSpec::contiguous({DType::i32, {}})};
  std::memcpy(view.host(), &value, sizeof value);
  return view;
}

std::vector<float> floats_in(const Buffer& buffer) {
  std::vector<float> values(buffer.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), buffer.host(), values.size() * sizeof(float));
  return values;
}

std::shared_ptr<const Kernel> kernel_for(const Op& op, const std::vector<OperandSpec>& inputs) {
  std::vector<TensorSpec> specs;
  for (const OperandSpec& input : inputs) specs.push_back(input.spec);
  const Prepared prepared =
      cpu_device().prepare_cached(op, inputs, output_operands(op, infer(op, specs)));
  EXPECT_TRUE(prepared) << prepared.reason;
  return prepared.kernel;
}

// ---- The registry

/// A device that can do nothing.
class IdleDevice final : public Device {
 public:
  explicit IdleDevice(std::string name) : name_(std::move(name)) {}
  std::string_view name() const noexcept override { return name_; }
  std::size_t alignment() const noexcept override { return 1; }
  Prepared prepare(const Op&, std::span<const OperandSpec>, std::span<const OperandSpec>) override {
    return {nullptr, "idle"};
  }
  Ref<Buffer> allocate(std::size_t, MemoryKind) override { return nullptr; }
  Ref<Stream> default_stream() override { return nullptr; }
  std::unique_ptr<Recording> record(std::span<const RecordedStep>) override { return nullptr; }
  std::unique_ptr<BindingTable> make_binding_table(std::size_t) override { return nullptr; }

 private:
  std::string name_;
};

TEST(Registry, TheCpuIsLastAndNamesAreUnique) {
  const std::size_t before = devices().size();
  EXPECT_EQ(devices().back(), &cpu_device());
  register_device(std::make_unique<IdleDevice>("idle:0"));
  ASSERT_EQ(devices().size(), before + 1);
  EXPECT_EQ(devices().back(), &cpu_device());
  EXPECT_EQ(find_device("idle:0").name(), "idle:0");
  EXPECT_EQ(&find_device("cpu"), &cpu_device());
  EXPECT_THROW(register_device(std::make_unique<IdleDevice>("idle:0")), Error);
  EXPECT_THROW(register_device(std::make_unique<IdleDevice>("cpu")), Error);
  EXPECT_THROW(register_device(nullptr), Error);
  const std::string what = error_of([] { find_device("tpu"); }, ErrorCode::invalid_argument);
  EXPECT_MENTIONS(what, "tpu");
  EXPECT_MENTIONS(what, "idle:0, ");
  EXPECT_MENTIONS(what, ", cpu");
}

TEST(Registry, DefaultsOfADevice) {
  IdleDevice device("idle");
  const TensorSpec x{DType::f32, {1, 4}}, w{DType::f32, {2, 4}};
  EXPECT_EQ(device.preferred_layout(Linear{}, 1, std::vector{x, w}), std::nullopt);
  EXPECT_FALSE(device.import_host({}, nullptr));
}

// ---- Kernels

TEST(KernelCache, OneKernelForOneQuestion) {
  const auto a = kernel_for(Unary{UnaryKind::exp}, {floats({3, 4})});
  EXPECT_EQ(a, kernel_for(Unary{UnaryKind::exp}, {floats({3, 4})}));
  EXPECT_NE(a, kernel_for(Unary{UnaryKind::log}, {floats({3, 4})}));
  EXPECT_NE(a, kernel_for(Unary{UnaryKind::exp}, {floats({4, 3})}));
  OperandSpec strided = floats({3, 4});
  strided.layout.strides = {1, 3};
  EXPECT_NE(a, kernel_for(Unary{UnaryKind::exp}, {strided}));
  const OperandSpec double_spec = OperandSpec::contiguous({DType::f64, {3, 4}});
  EXPECT_NE(a, kernel_for(Unary{UnaryKind::exp}, {double_spec}));
}

TEST(KernelCache, AnyThreadMayAsk) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (std::int64_t i = 0; i < 200; ++i) kernel_for(Unary{UnaryKind::sin}, {floats({i % 50})});
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(KernelCache, ForgetsBeforeItGrowsForEver) {
  const auto first = kernel_for(Unary{UnaryKind::cos}, {floats({1})});
  for (std::int64_t i = 2; i < 9000; ++i) kernel_for(Unary{UnaryKind::cos}, {floats({i})});
  EXPECT_NE(first, kernel_for(Unary{UnaryKind::cos}, {floats({1})}));
}

TEST(Prepare, RefusesOrThrowsSayingWhy) {
  const std::vector in{floats({2, 3})};
  const Prepared view = cpu_device().prepare(Reshape{{6}}, in, std::vector{floats({6})});
  EXPECT_FALSE(view);
  EXPECT_MENTIONS(view.reason, "reshape");
  OperandSpec transposed = floats({2, 3});
  transposed.layout.strides = {1, 2};
  const Prepared strided = cpu_device().prepare(Unary{UnaryKind::exp}, in, std::vector{transposed});
  EXPECT_FALSE(strided);
  EXPECT_MENTIONS(strided.reason, "contiguous");
  const std::string what = error_of(
      [&] {
        cpu_device().prepare(Unary{UnaryKind::exp}, in, std::vector{floats({3, 2})});
      },
      ErrorCode::invalid_argument);
  EXPECT_MENTIONS(what, "f32[2, 3]");
  EXPECT_MENTIONS(what, "f32[3, 2]");
  EXPECT_THROW(cpu_device().prepare(Unary{UnaryKind::exp}, in, {}), Error);
}

TEST(Prepare, WhatIsWalkedBackwardsIsReadSoOrCopiedFirst) {
  OperandSpec x = floats({4, 8});
  x.layout.strides = {-8, 1};
  const std::vector in{x, floats({3, 8})}, out{floats({4, 3})};
  const Prepared linear = cpu_device().prepare(Linear{}, in, out);
  EXPECT_FALSE(linear);
  EXPECT_MENTIONS(linear.reason, "linear: f32[4, 8] strides [-8, 1] is walked backwards");
  const Legal legal = legalize(cpu_device(), Linear{}, in);
  EXPECT_EQ(legal.how, Legal::How::contiguous);
  EXPECT_EQ(legal.copy, (std::vector<bool>{true, false}));
  EXPECT_EQ(legalize(cpu_device(), Unary{UnaryKind::exp}, std::span(in).first(1)).how,
            Legal::How::direct);
  // An axis of one element has no direction.
  OperandSpec one = floats({1, 8});
  one.layout.strides = {-8, 1};
  EXPECT_TRUE(cpu_device().prepare(Linear{}, std::vector{one, floats({3, 8})},
                                   std::vector{floats({1, 3})}));
}

TEST(Prepare, OutputsAreContiguousOrPacked) {
  const TensorSpec spec{DType::f32, {17, 4}};
  EXPECT_TRUE(is_contiguous(output_operands(Contiguous{}, std::vector{spec})[0]));
  const auto packed = output_operands(Repack{LayoutKind::panel16}, std::vector{spec});
  EXPECT_EQ(packed[0].layout.kind, LayoutKind::panel16);
}

TEST(Prepare, TraitsSayWhatIsTouched) {
  OperandSpec x = floats({3, 4});
  x.layout.strides = {10, 2};
  const KernelTraits traits = kernel_for(Unary{UnaryKind::abs}, {x})->traits();
  EXPECT_EQ(traits.reads[0].end, span_bytes(x));
  EXPECT_EQ(traits.writes[0].end, 48u);
  EXPECT_TRUE(traits.aliases.empty());  // strided: not in place
  const KernelTraits write = kernel_for(WriteRows{}, {floats({5, 2}), floats({1, 2}),
                                                      OperandSpec::contiguous({DType::i32, {1}})})
                                 ->traits();
  ASSERT_EQ(write.aliases.size(), 1u);
  EXPECT_TRUE(write.aliases[0].required);
}

// ---- Memory

TEST(Memory, AllocatesAlignedAndRefusesWhatCannotBe) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{1} << 20}) {
    const Ref<Buffer> buffer = cpu_device().allocate(bytes);
    EXPECT_EQ(buffer->size(), bytes);
    EXPECT_EQ(&buffer->device(), &cpu_device());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->host()) % cpu_device().alignment(), 0u);
    std::memset(buffer->host(), 1, bytes);
  }
  EXPECT_EQ(allocate_host(8)->size(), 8u);
  const std::string what =
      error_of([] { cpu_device().allocate(std::size_t{1} << 60); }, ErrorCode::out_of_memory);
  EXPECT_MENTIONS(what, "cpu");
  EXPECT_MENTIONS(what, "1152921504606846976");
}

TEST(Memory, ImportKeepsItsOwner) {
  auto owner = std::make_shared<std::vector<std::byte>>(10);
  const std::weak_ptr<void> watch = owner;
  Ref<Buffer> buffer = cpu_device().import_host(std::span(*owner).subspan(1), owner);
  EXPECT_EQ(buffer->host(), owner->data() + 1);
  owner.reset();
  EXPECT_FALSE(watch.expired());
  buffer = nullptr;
  EXPECT_TRUE(watch.expired());
}

// ---- Streams

TEST(Stream, ChecksWhatItIsGiven) {
  const Ref<Stream> stream = cpu_device().default_stream();
  EXPECT_EQ(&stream->device(), &cpu_device());
  const auto kernel = kernel_for(Unary{UnaryKind::exp}, {floats({4})});
  const View good = view_of_floats({1, 2, 3, 4}, {4}), out = view_of_floats({0, 0, 0, 0}, {4});
  const auto encode = [&](std::vector<View> in, std::vector<View> to, View extent = {}) {
    stream->encode(kernel, in, to, {}, extent);
  };
  EXPECT_NO_THROW(encode({good}, {out}));
  EXPECT_THROW(encode({}, {out}), Error);
  EXPECT_THROW(encode({good}, {out, out}), Error);
  EXPECT_THROW(encode({View{}}, {out}), Error);
  EXPECT_THROW(encode({view_of_floats({1, 2, 3}, {3})}, {out}), Error);
  View shifted = good;
  shifted.offset = 4;
  EXPECT_MENTIONS(error_of([&] { encode({shifted}, {out}); }, ErrorCode::invalid_argument), "16");
  EXPECT_THROW(encode({good}, {out}, view_of_int(-1)), Error);
  EXPECT_THROW(stream->encode(nullptr, {}, {}, {}, {}), Error);
  EXPECT_TRUE(stream->submit()->done());
}

TEST(Stream, ExtentsAreReadWhenEncoded) {
  const auto kernel = kernel_for(Unary{UnaryKind::negative}, {floats({3, 2})});
  const View in = view_of_floats({1, 2, 3, 4, 5, 6}, {3, 2});
  const View out = view_of_floats(std::vector<float>(6, 9), {3, 2});
  cpu_device().default_stream()->encode(kernel, std::vector{in}, std::vector{out}, {},
                                        view_of_int(2));
  EXPECT_EQ(floats_in(*out.buffer), (std::vector<float>{-1, -2, -3, -4, 9, 9}));
}

TEST(Stream, CopiesBytes) {
  const Ref<Stream> stream = cpu_device().default_stream();
  const View from = view_of_floats({1, 2, 3, 4}, {4}), to = view_of_floats({0, 0, 0, 0}, {4});
  stream->copy(from.buffer, 4, to.buffer, 8, 8);
  EXPECT_EQ(floats_in(*to.buffer), (std::vector<float>{0, 0, 2, 3}));
  stream->copy(from.buffer, 16, to.buffer, 0, 0);
  EXPECT_THROW(stream->copy(from.buffer, 12, to.buffer, 0, 8), Error);
  EXPECT_THROW(stream->copy(from.buffer, 0, to.buffer, 12, 8), Error);
  EXPECT_THROW(stream->copy(nullptr, 0, to.buffer, 0, 4), Error);
}

/// Work that failed.
class Failed final : public Completion {
 public:
  bool done() const noexcept override { return true; }
  void wait(std::chrono::nanoseconds) override { throw Error(ErrorCode::device_lost, "gone"); }
};

TEST(Stream, WaitsForOthersAndTakesTheirErrors) {
  const Ref<Stream> stream = cpu_device().default_stream();
  EXPECT_NO_THROW(stream->wait_for(completed()));
  EXPECT_NO_THROW(stream->wait_for(nullptr));
  error_of([&] { stream->wait_for(make_ref<Failed>()); }, ErrorCode::device_lost);
}

// ---- Recordings

/// y = exp(x) + x over slots: x in 0, y in 1, a temporary in 2; the extent, if any, in 3.
std::vector<RecordedStep> exp_plus_x(std::size_t rows, bool with_extent) {
  const Shape shape{static_cast<std::int64_t>(rows), 2};
  const std::size_t bytes = rows * 2 * sizeof(float);
  const SlotView x{0, 0, bytes}, y{1, 0, bytes}, temporary{2, 0, bytes};
  RecordedLaunch exp{kernel_for(Unary{UnaryKind::exp}, {floats(shape)}),
                     {x},
                     {temporary},
                     {},
                     {},
                     {0, Unary{UnaryKind::exp}, {}}};
  RecordedLaunch add{kernel_for(Binary{BinaryKind::add}, {floats(shape), floats(shape)}),
                     {temporary, x},
                     {y},
                     {},
                     {},
                     {1, Binary{BinaryKind::add}, {}}};
  if (with_extent) exp.extent = add.extent = SlotView{3, 0, sizeof(std::int32_t)};
  return {exp, RecordedBarrier{}, add};
}

TEST(Recording, ReplaysWithWhatIsBound) {
  Device& cpu = cpu_device();
  const auto recording = cpu.record(exp_plus_x(3, true));
  const auto table = cpu.make_binding_table(4), other = cpu.make_binding_table(4);
  const Ref<Stream> stream = cpu.default_stream();
  for (const auto& bindings : {table.get(), other.get()}) {
    for (const int rows : {3, 1, 0}) {
      const View x = view_of_floats({0, 0, 0, 0, 0, 0}, {3, 2});
      const View y = view_of_floats(std::vector<float>(6, 9), {3, 2});
      const View extent = view_of_int(rows);
      bindings->set(0, x.buffer, 0, 24);
      bindings->set(1, y.buffer, 0, 24);
      bindings->set(2, cpu.allocate(64), 32, 32);
      bindings->set(3, extent.buffer, 0, 4);
      stream->replay(*recording, *bindings);
      stream->submit()->wait();
      std::vector<float> want(6, 9);
      std::fill_n(want.begin(), rows * 2, 1.0f);
      EXPECT_EQ(floats_in(*y.buffer), want);
    }
  }
}

TEST(Recording, StatesMayGrowPastTheirSpec) {
  Device& cpu = cpu_device();
  const std::vector specs{floats({2, 2}), floats({1, 2}),
                          OperandSpec::contiguous({DType::i32, {1}})};
  const SlotView state{0, 0, kWholeSlot};
  const RecordedLaunch write{
      kernel_for(WriteRows{}, specs),   {state, {1, 0, 8}, {2, 0, 4}}, {state}, {}, {},
      {2, WriteRows{}, {specs[0].spec}}};
  const auto recording = cpu.record(std::vector<RecordedStep>{write});
  const auto table = cpu.make_binding_table(3);
  const View grown = view_of_floats(std::vector<float>(10, 0), {5, 2});
  table->set(0, grown.buffer, 0, 40);
  table->set(1, view_of_floats({7, 8}, {1, 2}).buffer, 0, 8);
  table->set(2, view_of_int(4).buffer, 0, 4);
  cpu.default_stream()->replay(*recording, *table);
  EXPECT_EQ(floats_in(*grown.buffer), (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 7, 8}));

  table->set(0, grown.buffer, 0, 32);  // four rows: row 4 is one too many
  const std::string what = error_of([&] { cpu.default_stream()->replay(*recording, *table); },
                                    ErrorCode::invalid_argument);
  EXPECT_MENTIONS(what, "node 2: write_rows f32[2, 2]");
  EXPECT_MENTIONS(what, "row 4");
}

TEST(Recording, CopiesBetweenSlots) {
  Device& cpu = cpu_device();
  const auto recording = cpu.record(std::vector<RecordedStep>{RecordedCopy{{0, 4, 8}, {1, 8, 8}}});
  const auto table = cpu.make_binding_table(2);
  const View from = view_of_floats({1, 2, 3}, {3}), to = view_of_floats({0, 0, 0, 0}, {4});
  table->set(0, from.buffer, 0, 12);
  table->set(1, to.buffer, 0, 16);
  cpu.default_stream()->replay(*recording, *table);
  EXPECT_EQ(floats_in(*to.buffer), (std::vector<float>{0, 0, 2, 3}));
}

TEST(Recording, ErrorsNameTheStepOrTheSlot) {
  Device& cpu = cpu_device();
  const Ref<Stream> stream = cpu.default_stream();
  std::vector<RecordedStep> steps = exp_plus_x(3, false);
  const auto recording = cpu.record(steps);
  const auto table = cpu.make_binding_table(3);
  const auto replay_error = [&] {
    return error_of([&] { stream->replay(*recording, *table); }, ErrorCode::invalid_argument);
  };
  EXPECT_MENTIONS(replay_error(), "node 0: exp: slot 0 is not bound");
  const Ref<Buffer> memory = cpu.allocate(64);
  for (const std::uint32_t slot : {0u, 1u, 2u}) table->set(slot, memory, 0, 24);
  EXPECT_NO_THROW(stream->replay(*recording, *table));
  table->set(1, memory, 0, 20);
  EXPECT_MENTIONS(replay_error(), "node 1: add: slot 1 holds 20 bytes, 24 are needed");
  EXPECT_THROW(table->set(3, memory, 0, 8), Error);
  EXPECT_THROW(table->set(0, memory, 60, 8), Error);

  std::get<RecordedLaunch>(steps[0]).inputs[0].bytes = 20;
  EXPECT_MENTIONS(error_of([&] { cpu.record(steps); }, ErrorCode::invalid_argument), "exp");
  std::get<RecordedLaunch>(steps[0]).inputs.clear();
  EXPECT_THROW(cpu.record(steps), Error);
}

TEST(Recording, AnythingThrownByAKernelIsAnErrorWithTheStep) {
  auto kernel = std::make_shared<cpu::CpuKernel>(
      KernelTraits{}, [](const cpu::Launch&) { throw std::runtime_error("broken"); });
  const auto recording = cpu_device().record(
      std::vector<RecordedStep>{RecordedLaunch{kernel, {}, {}, {}, {}, {3, Softmax{}, {}}}});
  const auto table = cpu_device().make_binding_table(0);
  const std::string what = error_of(
      [&] { cpu_device().default_stream()->replay(*recording, *table); }, ErrorCode::backend);
  EXPECT_EQ(what, "node 3: softmax: broken");
}

TEST(Recording, ReplayAndEncodeAllocateNothing) {
  Device& cpu = cpu_device();
  Team team(2);
  const TeamScope scope(team);
  const auto recording = cpu.record(exp_plus_x(20000, false));
  const auto table = cpu.make_binding_table(3);
  for (const std::uint32_t slot : {0u, 1u, 2u}) table->set(slot, cpu.allocate(160000), 0, 160000);
  const Ref<Stream> stream = cpu.default_stream();
  const auto kernel = kernel_for(Softmax{}, {floats({500, 80})});
  const std::vector<float> zeros(40000);
  const std::vector in{view_of_floats(zeros, {500, 80})}, out{view_of_floats(zeros, {500, 80})};
  const View none;
  stream->submit()->wait();  // makes what the process makes once
  const AllocationCount count;
  stream->replay(*recording, *table);
  stream->encode(kernel, in, out, none, none);
  stream->submit()->wait();
  EXPECT_EQ(count.so_far(), 0);
}

// ---- Instructions

TEST(Isa, IsWhatTheProcessorIsKnownToHave) {
  const char* expected = std::getenv("EXPECTED_LEVEL");
  if (!expected) GTEST_SKIP() << "EXPECTED_LEVEL does not say which level this processor has";
  EXPECT_EQ(cpu::setting_of(cpu::processor_isa()), expected);
  EXPECT_EQ(cpu::processor_levels().back(), cpu::processor_isa());
}

TEST(Isa, ScopesNestAndEnd) {
  const cpu::Isa best = cpu::isa();
  {
    const cpu::IsaScope outer(cpu::Isa::portable);
    EXPECT_EQ(cpu::isa(), cpu::Isa::portable);
    {
      const cpu::IsaScope inner(best);
      EXPECT_EQ(cpu::isa(), best);
    }
    EXPECT_EQ(cpu::isa(), cpu::Isa::portable);
  }
  EXPECT_EQ(cpu::isa(), best);
}

}  // namespace
}  // namespace heddle::test

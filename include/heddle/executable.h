// Executables: graphs compiled to plans, and run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/graph.h"
#include "heddle/state.h"

namespace heddle {

struct Plan;

/// Weights by name, shared by Executables: each is converted to a packed layout, or carried to
/// another device, once for all of them. Thread-safe.
class Parameters : public RefCounted {
 public:
  Parameters();
  ~Parameters() override;

  /// Sets or replaces a weight; its packed forms and copies are made anew when next needed.
  /// Executables see it from their next run on.
  void set(const std::string& name, const Array& value);
  /// As `set`, over memory that `owner` keeps (a mapped file), without a copy where the device can
  /// read it.
  void set_mapped(const std::string& name, TensorSpec spec, std::span<const std::byte> bytes,
                  std::shared_ptr<const void> owner);
  /// Throws invalid_argument if there is none.
  TensorSpec spec(std::string_view name) const;
  bool contains(std::string_view name) const;

  // For executors.
  struct Impl;
  Impl& impl() const noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

struct CompileOptions {
  std::vector<Device*> devices;  // priority order; empty: default_devices(). The CPU is always last
  Device* pin = nullptr;         // run everything there, or fail listing what it cannot run
  /// Whether a node that its pinned device cannot run stops compiling. Otherwise the CPU runs it,
  /// as in lazy evaluation.
  bool strict_pins = true;
  bool fuse = true;
  bool fuse_elements = false;  // element-wise ops into programs, too (see the op Fused)
  bool repack = true;
  std::optional<bool> verify;  // default: in debug builds, tests, and with HEDDLE_VERIFY
};

/// A tensor in host memory that the caller keeps, as input to a run: contiguous.
struct HostTensor {
  TensorSpec spec;
  std::span<const std::byte> bytes;

  template <class T>
  HostTensor(std::span<const T> values, Shape shape)
      : spec{dtype_of<T>(), shape}, bytes(std::as_bytes(values)) {}
  template <class T>
  HostTensor(const std::vector<T>& values, Shape shape)
      : HostTensor(std::span<const T>(values), shape) {}
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit HostTensor(const T& scalar) : HostTensor(std::span<const T>(&scalar, 1), Shape{}) {}
  HostTensor(TensorSpec s, std::span<const std::byte> b) : spec(std::move(s)), bytes(b) {}
};

struct NamedTensor {
  std::string_view name;
  HostTensor tensor;
};

struct NamedArray {
  std::string_view name;
  Array array;
  /// Whether an output may take the array's memory, if nobody else holds the array or the memory:
  /// it then holds nothing in particular when the call has returned. A call that throws leaves it
  /// as it was.
  bool overwrite = false;
};

/// Which outputs a run hands out. Results are copied out only if asked for.
struct OutputRequest {
  std::string_view name;
  std::optional<std::int64_t> row;  // only this row of axis 0
};

/// A compiled graph with its bindings. Any thread may call anything: one run goes at a time, and a
/// second caller waits. Runs that share states take turns too.
///
/// When a device is lost, the run that it was lost in fails, and so do those that need a state
/// which lived there, until that is reset. Apart from that the next run works: what the Executable
/// had on the device is made anew, weights included.
class Executable {
 public:
  /// Places, legalizes, fuses, plans, verifies and records. Throws unsupported if a pin cannot be
  /// kept.
  static std::shared_ptr<Executable> compile(Graph graph, const CompileOptions& options = {},
                                             Ref<Parameters> parameters = nullptr);
  ~Executable();

  /// Another with the same plan and parameters, its own arena, inputs and outputs, and new states
  /// (zeros) or, with `share_states`, the same ones. Both may run at once.
  std::shared_ptr<Executable> clone(bool share_states = false) const;

  const Ref<Parameters>& parameters() const noexcept;
  /// Binds a state object; throws invalid_argument when the name is unknown, or dtype, rows or
  /// device do not suit. Unbound states begin as zeros.
  void bind_state(std::string_view name, Ref<State> state);
  Ref<State> state(std::string_view name) const;

  /// Starts a run: checks the inputs (names, dtypes, shapes, bounds of indices; all inputs but fed
  /// ones must be there), binds, and submits every split. The inputs' memory is not needed after
  /// this returns. The completion ends when every device that took part has, feeds included.
  Ref<Completion> submit(std::span<const NamedTensor> inputs);
  /// submit, and wait for each submission in bounded time. After it every output can be read.
  void run(std::span<const NamedTensor> inputs);
  void run(std::initializer_list<NamedTensor> inputs);

  /// A run on arrays, which are evaluated and then read where they lie, if that is the plan's
  /// device and they are contiguous (else copied). Gives the outputs, in the order of the graph, in
  /// memory of their own: nothing is left for `output`, and later runs do not change them. An
  /// output that is an input as it came is that array.
  std::vector<Array> call(std::span<const NamedArray> inputs);

  /// An output of the last run, once it has ended; throws its error, or device_lost if it went with
  /// its device since. Copied, so later runs do not change it.
  Array output(std::string_view name) const;
  /// One row (axis 0) of it, copied into `out`.
  void copy_output_row(std::string_view name, std::int64_t row, std::span<std::byte> out) const;
  /// The outputs asked for, in order.
  std::vector<Array> outputs(std::span<const OutputRequest> requests) const;

  const Plan& plan() const noexcept;
  /// Bytes this Executable holds beyond parameters and states: arenas, inputs, outputs, staging.
  std::size_t memory_bytes() const noexcept;

 private:
  struct Impl;
  explicit Executable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Bytes that an Executable of the graph would allocate, without making it.
std::size_t planned_bytes(const Plan& plan);

}  // namespace heddle

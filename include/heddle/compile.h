// Functions of arrays, compiled: traced once for each signature, simplified, planned, and run
// through a plan.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/transforms.h"

namespace heddle {

enum class CompileMode : std::uint8_t {
  disabled,     // compiled functions call the functions they were made of
  no_simplify,  // graphs are planned as they were traced, and nothing is fused
  no_fuse,      // simplified, but nothing is fused
  enabled,
};
/// For all compiled functions of the process, from their next call on. A signature that was traced
/// in another mode is traced again. Thread-safe.
void set_compile_mode(CompileMode mode) noexcept;
void disable_compile() noexcept;
void enable_compile() noexcept;

/// A function that gives what `fun` gives. `fun` itself is called once for each signature: the
/// dtypes and shapes of the arguments, and the device in scope. What it computes becomes a plan.
/// Arrays that it captured and that have values are constants of that plan, as are numbers; it may
/// look at the values of those, but not at its arguments' (invalid_argument).
///
/// `shapeless`: one call for all shapes of one rank. Shapes that `fun` computes with, such as those
/// of reshape and broadcast_to, stay as they were at that call; where they no longer fit, the call
/// throws invalid_argument.
///
/// `state`: arrays that the function reads and writes beside its arguments (parameters that a step
/// replaces, say), each named once. They count as arguments, and what the function leaves in them
/// as outputs. They must outlive the compiled function, and have the same dtypes and shapes after a
/// call as before; an error leaves them as they were. On the CPU, what the end of the function
/// computes element by element from a state goes into that state's memory, unless somebody else
/// holds the array.
///
/// Arguments are evaluated, and results have been computed when the call returns. Inside a
/// transform or another compiled function, `fun` is called, so that what surrounds it sees its ops.
/// Any thread may call; calls of one signature take turns.
ArraysFunction compile(const ArraysFunction& fun, bool shapeless = false,
                       const std::vector<Array*>& state = {});
ArrayFunction compile(const ArrayFunction& fun, bool shapeless = false);

}  // namespace heddle

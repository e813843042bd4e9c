// Values on their way into an op or out of it.
#pragma once

#include "base/inline_vector.h"
#include "heddle/buffer.h"

namespace heddle {

struct Batch;

struct Operand {
  View view;
  Batch* batch = nullptr;  // the open batch that makes it, or null
  bool unshared = false;   // nobody else can see the memory: it may be written over
  bool written = false;    // the memory was written by the work of the op being run
};
using OperandList = InlineVector<Operand, 3>;

}  // namespace heddle

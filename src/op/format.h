// Ops as arguments of fmt, as tensor/format.h has specs.
#pragma once

#include "heddle/op.h"
#include "tensor/format.h"

template <>
struct fmt::formatter<heddle::Op> : heddle::ToStringFormatter<heddle::Op> {};

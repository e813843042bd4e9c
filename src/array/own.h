// Results that were not computed by evaluation.
#pragma once

#include "heddle/array.h"

namespace heddle {

/// An array over memory that holds its values, and that evaluation may write over once nobody else
/// holds it, as it does with what it has computed itself. (It never does with Array::from_view.)
Array own_array(View view);

}  // namespace heddle

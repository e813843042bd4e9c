// What a Depends says about how transforms take it.
#pragma once

#include "heddle/transforms.h"

namespace heddle {

struct TransformRules {
  bool stops = false;  // its values are constants
  CustomRules custom;
};

}  // namespace heddle

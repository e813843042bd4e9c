// Which loops multiply activations with weights: chosen when a kernel is prepared, by the level of
// instructions and HEDDLE_MATMUL.
#pragma once

#include <string>
#include <vector>

#include "device/cpu/products.h"
#include "device/cpu/quant.h"

namespace heddle::cpu {

struct LinearForms {
  const Products* exact = nullptr;           // f32, f16, bf16
  const RoundedProducts* rounded = nullptr;  // what serves these instead, with HEDDLE_MATMUL=bf16
  const QuantLoops* blocks = nullptr;        // block types, row by row
  const QuantPanelLoops* panels = nullptr;   // and in panels
};

LinearForms forms_for(Isa level, bool rounds_to_bf16);
/// Those of isa() and HEDDLE_MATMUL, unless a FormsScope sets others.
LinearForms linear_forms();

/// Sets the forms for tests until the end of the scope. Kernels prepared before keep theirs.
class FormsScope {
 public:
  explicit FormsScope(const LinearForms& forms);
  ~FormsScope();
  FormsScope(const FormsScope&) = delete;
  FormsScope& operator=(const FormsScope&) = delete;

 private:
  LinearForms forms_;
  const LinearForms* previous_;
};

struct FormInfo {
  std::string weights;  // of which types
  std::string form;     // what multiplies them, and why nothing better does
};
/// For every type of weight that has a kernel.
std::vector<FormInfo> describe_forms();

}  // namespace heddle::cpu

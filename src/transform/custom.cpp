#include "transform/custom.h"

#include <memory>
#include <utility>

#include "array/ops_common.h"
#include "transform/record.h"

namespace heddle {

namespace {

std::vector<Array> with_rules(std::vector<Array> values, const std::vector<Array>& arguments,
                              const std::shared_ptr<const TransformRules>& rules) {
  Depends op{static_cast<std::int64_t>(values.size()), rules};
  values.insert(values.end(), arguments.begin(), arguments.end());
  return apply_multi(std::move(op), std::move(values));
}

}  // namespace

// Declared among the functions on arrays, where MLX has it.
Array stop_gradient(const Arg& a) {
  return within("stop_gradient", a, [&]() -> Array {
    static const auto rules = std::make_shared<const TransformRules>(TransformRules{true, {}});
    return with_rules({a}, {}, rules).front();
  });
}

ArraysFunction custom_function(const ArraysFunction& fun, const CustomRules& rules) {
  const auto shared = std::make_shared<const TransformRules>(TransformRules{false, rules});
  return [fun, shared](const std::vector<Array>& arguments) {
    return with_rules(fun(arguments), arguments, shared);
  };
}

ArraysFunction custom_vjp(const ArraysFunction& fun, const decltype(CustomRules::vjp)& fun_vjp) {
  return custom_function(fun, {fun_vjp, nullptr, nullptr});
}

ArraysFunction checkpoint(const ArraysFunction& fun) {
  CustomRules rules;
  rules.vjp = [fun](const std::vector<Array>& arguments, const std::vector<Array>& cotangents,
                    const std::vector<Array>&) {
    // Not before the cotangents are there: so nothing of it lives from the way out to the way back.
    return vjp(fun, depends(arguments, cotangents), cotangents).second;
  };
  return custom_function(fun, rules);
}

}  // namespace heddle

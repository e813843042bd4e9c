// Plans as observers see them.
#pragma once

#include <memory>
#include <mutex>

#include "exec/plan.h"
#include "heddle/observe.h"

namespace heddle {

/// The nodes of a split are its launches and copies, in their order; feeds come after the others.
ObservedPlan describe(const Plan& plan);

/// A plan's description, made when somebody first asks. Thread-safe.
class DescribedOnce {
 public:
  std::shared_ptr<const ObservedPlan> of(const Plan& plan) const {
    std::call_once(once_,
                   [&] { described_ = std::make_shared<const ObservedPlan>(describe(plan)); });
    return described_;
  }

 private:
  mutable std::once_flag once_;
  mutable std::shared_ptr<const ObservedPlan> described_;
};

/// The op's struct, as its name.
std::string family_name(const Op& op);

}  // namespace heddle

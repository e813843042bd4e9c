// The objects of docs/trace.md.
#pragma once

#include <nlohmann/json.hpp>

#include "heddle/observe.h"

namespace heddle::trace_json {

using Json = nlohmann::ordered_json;

Json of(const ObservedPlan& plan);
/// Times count from `start`.
Json of(const ObservedRun& run, const ObservedRecord& record, ObservedTime start);
/// Chrome's event for it.
Json event_of(const ObservedRun& run, const ObservedRecord& record, ObservedTime start, int thread);
double microseconds(ObservedTime since, ObservedTime until);
/// Names that come from files may be anything; what is no UTF-8 is replaced.
std::string text(const Json& json);

}  // namespace heddle::trace_json

// What --profile prints.
#pragma once

#include <map>
#include <string>

#include "exec/profile.h"

namespace heddle::cli {

std::string profile_text(const ProfileResult& profile,
                         const std::map<std::string, DeviceBounds>& bounds);

}  // namespace heddle::cli

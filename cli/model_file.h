// What the commands that make model files share.
#pragma once

#include <functional>
#include <string>

#include "heddle/model_file.h"

namespace heddle::cli {

/// Does `make` with progress on a terminal and Ctrl-C heeded, and says on standard error what it
/// made at `path`. Returns the exit code.
int make_model_file(llm::ModelFileOptions options, const std::string& path,
                    const std::function<llm::ModelFileSummary(const llm::ModelFileOptions&)>& make);

}  // namespace heddle::cli

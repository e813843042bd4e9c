// heddle template: a chat template file rendered with the JSON context from standard input.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "base/check.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "heddle/chat_template.h"

namespace heddle::cli {

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  require(file.good() && text.good(), ErrorCode::io, "{}: {}", path,
          errno != 0 ? std::strerror(errno) : "cannot be read");
  return text.str();
}

}  // namespace

std::optional<std::tm> parse_time(const std::string& text) {
  std::tm time{};
  std::istringstream stream(text);
  stream >> std::get_time(&time, "%Y-%m-%dT%H:%M:%S");
  if (stream.fail() || stream.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
  return time;
}

int render_template(const TemplateArguments& arguments) {
  const ChatTemplate chat_template(read_file(arguments.path));
  const std::string context = read_input();
  print(joined(chat_template.render(
      {.context = context,
       .now = arguments.now.empty() ? std::nullopt : parse_time(arguments.now)})));
  return kOk;
}

}  // namespace heddle::cli

// heddle template: a chat template file rendered with the JSON context from standard input.
#include <string_view>

#include "cli/commands.h"
#include "cli/output.h"
#include "heddle/chat_template.h"

namespace heddle::cli {

std::optional<std::tm> parse_time(const std::string& text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (text.size() != kShape.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == '0' ? !digit : text[i] != kShape[i]) return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t size) {
    return std::stoi(text.substr(at, size));
  };
  std::tm time{};
  time.tm_year = number(0, 4) - 1900;
  time.tm_mon = number(5, 2) - 1;
  time.tm_mday = number(8, 2);
  time.tm_hour = number(11, 2);
  time.tm_min = number(14, 2);
  time.tm_sec = number(17, 2);
  std::tm normal = time;
  timegm(&normal);
  const bool exists = normal.tm_mon == time.tm_mon && normal.tm_mday == time.tm_mday &&
                      normal.tm_hour == time.tm_hour && normal.tm_min == time.tm_min &&
                      normal.tm_sec == time.tm_sec;
  return exists ? std::optional(time) : std::nullopt;
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

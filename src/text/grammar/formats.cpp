#include "text/grammar/formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace heddle::text::grammar {
namespace {

struct Format {
  std::string_view name;
  std::string pattern;  // of the whole string
};

/// RFC 3339, days that there are only.
std::string date() {
  const std::string year = "(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})";
  const std::string leap_year =
      "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)";
  return "(" + year +
         "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
         "02-(0[1-9]|1[0-9]|2[0-8]))|" +
         leap_year + "-02-29)";
}

/// RFC 3339 without leap seconds, fractions up to nanoseconds.
std::string time() {
  return "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?"
         "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
}

std::string ipv4() {
  const std::string byte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return byte + "(\\." + byte + "){3}";
}

/// RFC 4291, without dotted endings.
std::string ipv6() {
  const std::string group = "[0-9a-fA-F]{1,4}";
  std::string all = "(" + group + ":){7}" + group;
  for (int before = 0; before <= 6; ++before) {
    const std::string head =
        before == 0 ? "" : fmt::format("{}(:{}){{{}}}", group, group, before - 1);
    const int after = 6 - before;
    const std::string tail =
        after == 0 ? "" : fmt::format("({}(:{}){{0,{}}})?", group, group, after - 1);
    all += "|" + head + "::" + tail;
  }
  return all;
}

/// RFC 1123: a label is at most 63 long, and here there are at most four.
std::string hostname() {
  const std::string label = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
  return label + "(\\." + label + "){0,3}";
}

/// RFC 5321 without quoted local parts and address literals.
std::string email() {
  const std::string atom = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]{1,30}";
  return atom + "(\\." + atom +
         ")?@[a-zA-Z0-9]([a-zA-Z0-9-]{0,30}[a-zA-Z0-9])?"
         "(\\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,30}[a-zA-Z0-9])?){1,3}";
}

/// RFC 3986, those with an authority.
std::string uri() {
  const std::string path = "([a-zA-Z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2})";
  return "[a-z][a-z0-9+.-]{1,20}://[a-zA-Z0-9]([a-zA-Z0-9.-]{0,60}[a-zA-Z0-9])?(:[0-9]{1,4})?"
         "(/" +
         path + "*)*(\\?(" + path + "|[/?])*)?(#(" + path + "|[/?])*)?";
}

/// RFC 3339, appendix A.
std::string duration() {
  const std::string n = "[0-9]{1,9}";
  const std::string time =
      "T(" + n + "H(" + n + "M(" + n + "S)?)?|" + n + "M(" + n + "S)?|" + n + "S)";
  const std::string day = n + "D(" + time + ")?";
  const std::string month = n + "M(" + day + "|" + time + ")?";
  const std::string year = n + "Y(" + month + "|" + time + ")?";
  return "P(" + n + "W|" + year + "|" + month + "|" + day + "|" + time + ")";
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all{
      {"date", date()},
      {"time", time()},
      {"date-time", date() + "T" + time()},
      {"duration", duration()},
      {"uuid", "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"},
      {"email", email()},
      {"hostname", hostname()},
      {"ipv4", ipv4()},
      {"ipv6", ipv6()},
      {"uri", uri()},
  };
  return all;
}

}  // namespace

std::optional<std::string> format_pattern(std::string_view format) {
  for (const Format& one : formats()) {
    if (one.name == format) return "^(" + one.pattern + ")$";
  }
  return std::nullopt;
}

std::string known_formats() {
  std::vector<std::string_view> names;
  for (const Format& one : formats()) names.push_back(one.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace heddle::text::grammar

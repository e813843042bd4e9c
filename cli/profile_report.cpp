#include "cli/profile_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::cli {

namespace {

constexpr std::size_t kMostNodes = 40;

std::string milliseconds(double seconds) {
  return fmt::format("{:.3f}", 1e3 * seconds);
}

std::string amount(double value) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  int prefix = 0;
  for (; value >= 9999.5 && prefix < 5; ++prefix) value /= 1000;
  return fmt::format("{:.4g} {}", value, kPrefixes[prefix]);
}

std::string share(double seconds, double wall) {
  return fmt::format("{:.1f}%", wall > 0 ? 100 * seconds / wall : 0);
}

/// How many times as long as the bound allows.
std::string over_bound(const ProfileRow& row) {
  return row.bound > 0 ? fmt::format("{:.2f}", row.seconds() / row.bound) : "-";
}

std::string line(const ProfileRow& row, double wall, std::size_t width) {
  return fmt::format("{:<{}}  {:<9} {:>7} {:>10} {:>10} {:>10} {:>7} {:>10}B {:>10}op {:>7}\n",
                     row.name, width, row.device, row.count, milliseconds(row.seconds()),
                     milliseconds(row.encode), milliseconds(row.wait), share(row.seconds(), wall),
                     amount(row.bytes), amount(row.operations), over_bound(row));
}

std::string line(const char* name, double seconds, double wall, std::size_t width) {
  return fmt::format("{:<{}}  {:<9} {:>7} {:>10} {:>10} {:>10} {:>7}\n", name, width, "", "",
                     milliseconds(seconds), "", "", share(seconds, wall));
}

void add(ProfileRow& sum, const ProfileRow& row) {
  sum.count += row.count;
  sum.encode += row.encode;
  sum.wait += row.wait;
  sum.bytes += row.bytes;
  sum.operations += row.operations;
  sum.bound += row.bound;
}

/// The slowest ones, and the others in one row.
std::vector<ProfileRow> shortened(const std::vector<ProfileRow>& rows) {
  if (rows.size() <= kMostNodes) return rows;
  std::vector<ProfileRow> list(rows.begin(), rows.begin() + kMostNodes);
  ProfileRow others;
  others.name = fmt::format("{} others", rows.size() - kMostNodes);
  for (std::size_t i = kMostNodes; i < rows.size(); ++i) add(others, rows[i]);
  list.push_back(others);
  return list;
}

std::string table(const char* title, const std::vector<ProfileRow>& rows,
                  const ProfileResult& profile) {
  static constexpr const char *kWithin = "between nodes", *kOutside = "outside steps";
  std::size_t width = std::max({std::string_view(title).size(), std::string_view(kWithin).size()});
  for (const ProfileRow& row : rows) width = std::max(width, row.name.size());
  std::string text = fmt::format(
      "{:<{}}  {:<9} {:>7} {:>10} {:>10} {:>10} {:>7} {:>11} {:>12} {:>7}\n", title, width,
      "device", "times", "ms", "encode", "wait", "share", "bytes", "operations", "x bound");
  for (const ProfileRow& row : rows) text += line(row, profile.wall, width);
  text += line(kWithin, profile.within_runs, profile.wall, width);
  text += line(kOutside, profile.outside_runs, profile.wall, width);
  return text + line("all", profile.wall, profile.wall, width);
}

}  // namespace

std::string profile_text(const ProfileResult& profile,
                         const std::map<std::string, DeviceBounds>& bounds) {
  std::string text = fmt::format("{} steps, node by node\n", profile.runs);
  for (const auto& [device, bound] : bounds) {
    text += fmt::format("bounds of {}: {}B/s, {}op/s\n", device, amount(bound.bytes_per_second),
                        amount(bound.operations_per_second));
  }
  text += "\n" + table("op family", profile.families, profile);
  return text + "\n" + table("node", shortened(profile.nodes), profile);
}

}  // namespace heddle::cli

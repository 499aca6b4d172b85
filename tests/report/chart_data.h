#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace braid::test {

/// What a page's charts of a kind are drawn from, in the order of the page.
inline std::vector<nlohmann::json> charts_of(const std::string& page, const std::string& kind) {
  const std::string begin =
      "<figure class=\"chart\" data-kind=\"" + kind + "\"><script type=\"application/json\">";
  std::vector<nlohmann::json> charts;
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const std::size_t data = at + begin.size();
    charts.push_back(nlohmann::json::parse(page.substr(data, page.find("</script>", data) - data)));
  }
  return charts;
}

/// An event of a lane as page/charts.js reads it.
struct DrawnEvent {
  int kind = 0, chunk = 0, round = 0;
  long batch = 0;
  double begin_s = 0, end_s = 0;
};

inline std::vector<DrawnEvent> events_of(const nlohmann::json& lane, double tick_s) {
  std::vector<DrawnEvent> events;
  std::vector<std::pair<nlohmann::json, long>> next;  // By kind, chunk, peer and direction.
  double end_s = 0;
  for (const nlohmann::json& entry : lane["events"]) {
    const bool plain = entry.is_number();
    const nlohmann::json& of = lane["classes"][(plain ? entry : entry[0]).get<std::size_t>()];
    const nlohmann::json series = {of[0], of[1], of[3], of[4]};
    auto found = next.begin();
    while (found != next.end() && found->first != series) ++found;
    if (found == next.end()) found = next.insert(found, {series, 0});
    if (!plain && entry.size() > 2) found->second = entry[2].get<long>();
    const double begin_s = end_s + (plain ? 0 : entry[1].get<double>() * tick_s);
    end_s = begin_s + of[5].get<double>();
    events.push_back({of[0], of[1], of[2], found->second++, begin_s, end_s});
  }
  return events;
}

}  // namespace braid::test

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "braid/backend/report/placement_report.h"
#include "braid/base/counted.h"
#include "braid/report/html_parts.h"
#include "braid/report/table.h"

namespace braid {
namespace {

struct KindOfGroup {
  std::string name;
  std::int64_t groups = 0, operators = 0;
  double cost_s = 0;
};

std::vector<KindOfGroup> kinds_of(const ProgramPlacement& placement) {
  std::map<std::string, KindOfGroup> by_name;
  for (const PlacedGroup& group : placement.groups) {
    const std::string name = group.backend + ": " + group.pattern;
    KindOfGroup& kind = by_name[name];
    kind.name = name;
    ++kind.groups;
    kind.operators += static_cast<std::int64_t>(group.nodes.size());
    kind.cost_s += group.cost_s;
  }
  for (const PlacedTurn& turn : placement.turns) {
    const std::string name = fmt::format("layout: {} to {}", name_of(turn.from), name_of(turn.to));
    KindOfGroup& kind = by_name[name];
    kind.name = name;
    ++kind.groups;
    kind.cost_s += turn.cost_s;
  }
  std::vector<KindOfGroup> kinds;
  kinds.reserve(by_name.size());
  for (auto& [name, kind] : by_name) kinds.push_back(std::move(kind));
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.cost_s > b.cost_s; });
  return kinds;
}

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }

/// What was looked at and measured for the mix.
std::string search_text(const PlacementReport& report) {
  const ProgramPlacement& mix = report.answer.ways.front().placement;
  std::int64_t present = 0;
  for (const FoundBackend& each : report.backends) present += each.backend ? 1 : 0;
  std::string text =
      fmt::format("{}: {} on {}, {} of {}.\n", report.model,
                  counted(static_cast<std::int64_t>(report.fixed.program.nodes.size()), "operator"),
                  counted(present, "backend"), counted(report.threads, "thread"), report.machine);
  text += fmt::format("{} could run parts of it: {} measured now, {} known from before",
                      counted(mix.kernels, "kernel"), mix.measured, mix.known);
  if (mix.refused > 0) text += fmt::format(", {} refused by their library", mix.refused);
  const std::int64_t skipped = mix.kernels - mix.measured - mix.known - mix.refused -
                               static_cast<std::int64_t>(mix.wrong.size());
  if (skipped > 0) text += fmt::format(", {} that no fastest mix can hold not measured", skipped);
  text += ".\n";
  if (report.answer.region_kernels > 0) {
    text += fmt::format(
        "So could {}: {} measured now{}.\n", counted(report.answer.region_kernels, "region"),
        report.answer.regions_measured,
        report.answer.evolved_measured == 0 ? ""
                                            : fmt::format(", and {} of smaller parts, by evolution",
                                                          report.answer.evolved_measured));
  }
  return text;
}

/// How the time of the whole compares with the sum of its parts.
std::string sum_text(const PlacementReport& report) {
  const NetworkWay& way = report.chosen();
  if (!way.measured) return "";
  const double share = way.measured->median_s / way.placement.predicted_s - 1;
  return fmt::format("Its parts add up to {} ms; the whole takes {} ms, {:.0f} % {}.\n",
                     milliseconds(way.placement.predicted_s), milliseconds(way.measured->median_s),
                     100 * std::abs(share), share < 0 ? "less" : "more");
}

}  // namespace

std::string groups_table(const PlacementReport& report) {
  const ProgramPlacement& placement = report.chosen().placement;
  std::vector<std::vector<std::string>> rows{
      {"backend: kernel", "kernels", "operators", "time, ms", "share"}};
  for (const KindOfGroup& kind : kinds_of(placement)) {
    rows.push_back({kind.name, std::to_string(kind.groups), std::to_string(kind.operators),
                    milliseconds(kind.cost_s),
                    fmt::format("{:.1f} %", 100 * kind.cost_s / placement.predicted_s)});
  }
  return text_table(rows);
}

std::string ways_table(const PlacementReport& report) {
  std::vector<std::vector<std::string>> rows{
      {"way", "by its parts, ms", "measured, ms", "95 % interval", "slower than the chosen"}};
  const NetworkWay& chosen = report.chosen();
  for (const NetworkWay& way : report.answer.ways) {
    const bool is_chosen = &way == &chosen;
    std::string name = way.name + (way.kind == NetworkWay::Kind::backend ? " alone" : "");
    if (is_chosen) name += " (chosen)";
    std::string interval, slower;
    if (way.measured) {
      interval = fmt::format("{} to {}", milliseconds(way.measured->low_s),
                             milliseconds(way.measured->high_s));
      slower = is_chosen ? ""
                         : fmt::format("{:.2f} times",
                                       way.measured->median_s / chosen.measured->median_s);
    } else if (way.wrong.empty()) {
      interval = "not run: far slower by its parts";
    } else {
      interval = "not run: its answer is wrong";
    }
    rows.push_back({name, milliseconds(way.placement.predicted_s),
                    way.measured ? milliseconds(way.measured->median_s) : "", interval, slower});
  }
  return text_table(rows);
}

std::string placement_report_text(const PlacementReport& report) {
  std::string text = search_text(report);
  for (const FoundBackend& each : report.backends) {
    if (!each.backend) text += fmt::format("Without {}: {}.\n", each.name, each.missing);
  }
  const NetworkWay& mix = report.answer.ways.front();
  for (const std::string& wrong : mix.placement.wrong) {
    text += fmt::format("Left out: {}\n", wrong);
  }
  for (const std::string& each : report.answer.left_out) {
    text += fmt::format("Left out: {}\n", each);
  }
  text += "\n" + groups_table(report) + "\n" + ways_table(report);
  text +=
      "\nalone: what the backend has no kernel for is run by braid's own: copies, and reference "
      "kernels, which are slow.\n";
  for (const NetworkWay& way : report.answer.ways) {
    if (way.kind != NetworkWay::Kind::network) continue;
    text += "libtorch eager, frozen, mobile: the whole network as libtorch runs it.\n";
    break;
  }
  return text + sum_text(report);
}

}  // namespace braid

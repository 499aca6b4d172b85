#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "braid/report/core_gantt.h"
#include "braid/report/html_chart.h"
#include "braid/report/html_parts.h"

namespace braid {
namespace {

// Of CorePart, as page/charts.js has them.
constexpr std::array<std::pair<const char*, const char*>, 4> kPartKeys = {
    {{"forward", "#2f6aa8"},
     {"input gradients", "#e08e3c"},
     {"weight gradients", "#c9b037"},
     {"optimizer", "#2f7049"}}};

std::string part_keys(const std::vector<CoreName>& names) {
  std::string text = "<div class=\"keys\">";
  for (std::size_t part = 0; part < kPartKeys.size(); ++part) {
    const bool any = std::any_of(names.begin(), names.end(), [&](const CoreName& name) {
      return static_cast<std::size_t>(name.part) == part;
    });
    if (!any) continue;
    text += fmt::format("<span><i class=\"key\" style=\"background:{}\"></i>{}</span>",
                        kPartKeys[part].second, kPartKeys[part].first);
  }
  return text + "</div>\n";
}

Json rows_json(const CoreRows& rows) {
  Json json = Json::array();
  for (const CoreRow& row : rows.rows) {
    Json busy = Json::array();
    for (const auto& [time_s, cores] : row.busy) busy.push_back({time_s, cores});
    json.push_back({{"name", row.name},
                    {"kind", row.kind == CoreKind::tensor ? "tensor" : "vector"},
                    {"cores", row.cores},
                    {"busy", std::move(busy)}});
  }
  return json;
}

}  // namespace

std::string core_section(const CoreDrawing& drawing) {
  const CoreSchedule& schedule = drawing.outcome.schedule;
  if (!(schedule.makespan_s > 0)) return "";
  const CoreRows rows = core_rows(drawing.problem, schedule);
  Json boxes = Json::array();
  for (const CoreBox& box : rows.boxes) {
    const PlacedOperator& placed = schedule.operators[box.op];
    if (placed.end_s <= placed.start_s) continue;
    boxes.push_back({box.first_row, box.last_row, placed.start_s, placed.end_s,
                     static_cast<int>(drawing.names[box.op].part), drawing.names[box.op].name,
                     placed.all_cores});
  }
  const Json data = {
      {"end_s", schedule.makespan_s}, {"rows", rows_json(rows)}, {"boxes", std::move(boxes)}};
  return section(
      drawing.title,
      fmt::format("<p class=\"note\">{}. A row for each core that operators are on by "
                  "themselves; an operator on all cores of its kind is as high as all of "
                  "their rows.</p>\n",
                  core_summary(drawing)) +
          part_keys(drawing.names) + chart("cores", data));
}

std::string core_page(const CoreDrawing& drawing) {
  return page_head(drawing.title) + core_section(drawing) + page_end();
}

}  // namespace braid

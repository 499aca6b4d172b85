#include "braid/report/run_costs_text.h"

#include <fmt/format.h>

#include "braid/base/quantity.h"

namespace braid {
namespace {

constexpr const char* kUnknown = "-";

/// "12.3 MWh".
std::string energy_text(double kwh) {
  if (kwh < 1e3) return fmt::format("{:.3g} kWh", kwh);
  return kwh < 1e6 ? fmt::format("{:.4g} MWh", kwh / 1e3) : fmt::format("{:.4g} GWh", kwh / 1e6);
}

/// "7.0 years", "12.3 days", "5.2 h", "15.4 s".
std::string duration_text(double time_s) {
  constexpr double kHour = 3600, kDay = 24 * kHour, kYear = 365.25 * kDay;
  if (time_s >= 2 * kYear) {
    const double years = time_s / kYear;
    return years < 1e6 ? fmt::format("{:.1f} years", years) : fmt::format("{:.3g} years", years);
  }
  if (time_s >= 2 * kDay) return fmt::format("{:.1f} days", time_s / kDay);
  return time_s >= 2 * kHour ? fmt::format("{:.1f} h", time_s / kHour) : format_seconds(time_s);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> run_figures(const RunCosts& costs) {
  return {{"time", duration_text(costs.wall_s)},
          {"goodput", fmt::format("{:.1f} %", 100 * costs.goodput)},
          {"device-hours", format_count(costs.device_hours)},
          {"USD", costs.usd ? format_count(*costs.usd) : kUnknown},
          {"energy", costs.kwh ? energy_text(*costs.kwh) : kUnknown}};
}

std::vector<std::pair<std::string, std::string>> known_run_figures(const RunCosts& costs) {
  auto figures = run_figures(costs);
  std::erase_if(figures, [](const auto& figure) { return figure.second == kUnknown; });
  return figures;
}

std::string run_costs_text(const RunCosts& costs) {
  std::string text =
      fmt::format("A run of {} {} ({} iteration{})\n", format_count(costs.tokens), costs.unit,
                  format_count(costs.iterations), costs.iterations == 1 ? "" : "s");
  for (const auto& [name, value] : known_run_figures(costs)) {
    text += fmt::format("  {:<14}{:>12}\n", name, value);
  }
  for (const std::string& assumption : costs.assumptions) text += "  " + assumption + "\n";
  return text;
}

}  // namespace braid

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

}  // namespace

std::vector<std::pair<std::string, std::string>> run_figures(const RunCosts& costs) {
  constexpr double kDay = 86400;
  const double days = costs.wall_s / kDay;
  const bool many = days >= 10 && days < 1e6;
  return {{"days", many ? fmt::format("{:.1f}", days) : fmt::format("{:.3g}", days)},
          {"goodput", fmt::format("{:.1f} %", 100 * costs.goodput)},
          {"device-hours", format_count(costs.device_hours)},
          {"USD", costs.usd ? format_count(*costs.usd) : kUnknown},
          {"energy", costs.kwh ? energy_text(*costs.kwh) : kUnknown}};
}

std::string run_costs_text(const RunCosts& costs) {
  std::string text = fmt::format("A run of {} {} ({} iterations)\n", format_count(costs.tokens),
                                 costs.unit, format_count(costs.iterations));
  for (const auto& [name, value] : run_figures(costs)) {
    if (value == kUnknown) continue;
    text += fmt::format("  {:<14}{:>12}\n", name, value);
  }
  for (const std::string& assumption : costs.assumptions) text += "  " + assumption + "\n";
  return text;
}

}  // namespace braid

#include "braid/explore/findings_csv.h"

#include <fmt/format.h>

#include "braid/base/text.h"

namespace braid {
namespace {

// Names of values need no quotes; what people write may.
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::string points_csv(const Space& space, std::span<const PointResult> results,
                       std::span<const std::size_t> numbers) {
  const ResultColumns& columns = columns_of(space);
  const std::string rate = unit_of(space) + "s_per_s";
  std::string csv;
  for (const SpaceAxis& axis : space.axes) csv += axis.name + ",";
  csv += fmt::format("status,time_s,lower_bound_s,utilisation,{}", lowered(rate));
  if (space.has_prices) csv += fmt::format(",price_usd,{}_per_usd", lowered(rate));
  if (space.has_powers) csv += fmt::format(",power_w,{}_per_w", lowered(rate));
  if (space.has_energies) csv += fmt::format(",energy_j,{}s_per_j", lowered(unit_of(space)));
  for (const std::vector<std::string>* names :
       {&columns.words, &columns.counts, &columns.figures}) {
    for (const std::string& name : *names) csv += "," + name;
  }
  for (const std::string& part : columns.parts) csv += fmt::format(",{}_s", part);
  csv += ",work,reason\n";
  const std::size_t values = 4 + (space.has_prices ? 2U : 0U) + (space.has_powers ? 2U : 0U) +
                             (space.has_energies ? 2U : 0U) + columns.words.size() +
                             columns.counts.size() + columns.figures.size() + columns.parts.size();
  for (const std::size_t number : numbers) {
    const SpacePoint point = point_of(space, number);
    const PointResult& r = results[number];
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      csv += value_name(space, point, axis) + ",";
    }
    csv += name_of(r.status);
    if (is_found(r)) {
      csv += fmt::format(",{},{},{},{}", r.time_s, r.lower_bound_s, r.utilisation, r.throughput);
      if (space.has_prices) {
        csv += fmt::format(",{},{}", r.usd, figure_of(r, SpaceFigure::per_usd));
      }
      if (space.has_powers) {
        csv += fmt::format(",{},{}", r.watts, figure_of(r, SpaceFigure::per_w));
      }
      if (space.has_energies) {
        csv += fmt::format(",{},{}", r.joules, figure_of(r, SpaceFigure::per_j));
      }
      for (const std::string& word : r.words) csv += "," + field(word);
      for (const std::int64_t count : r.counts) csv += fmt::format(",{}", count);
      for (const double figure : r.figures) csv += fmt::format(",{}", figure);
      for (const double part : r.parts_s) csv += fmt::format(",{}", part);
    } else {
      csv += std::string(values, ',');
    }
    csv += fmt::format(",{},{}\n", r.work, field(r.reason));
  }
  return csv;
}

std::string ratios_csv(const Space& space, std::span<const RatioFinding> findings) {
  const SpaceAxis& methods = space.axes[kMethodAxis];
  std::string csv =
      fmt::format("ratio,figure,{},value,published,points_above,points_below\n", methods.name);
  for (const RatioFinding& finding : findings) {
    const SpaceRatio& ratio = space.ratios[finding.ratio];
    csv += fmt::format("{},{},{},{},{},{},{}\n", field(ratio.name), name_of(ratio.figure),
                       finding.method ? methods.values[*finding.method] : "across",
                       finding.value ? fmt::format("{}", *finding.value) : "",
                       ratio.published > 0 ? fmt::format("{}", ratio.published) : "", finding.above,
                       finding.below);
  }
  return csv;
}

}  // namespace braid

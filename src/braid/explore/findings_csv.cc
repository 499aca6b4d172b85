#include "braid/explore/findings_csv.h"

#include <fmt/format.h>

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
  std::string csv =
      "workload,parallelism,chip,memory,topology,links,status,time_s,lower_bound_s,utilisation,"
      "flops_per_s,price_usd,power_w,flops_per_s_per_usd,flops_per_s_per_w,tp,pp,dp,network,"
      "partitions,layer_s,compute_s,memory_s,network_s,networks\n";
  for (const std::size_t number : numbers) {
    const SpacePoint point = point_of(space, number);
    const PointResult& r = results[number];
    for (std::size_t axis = 0; axis < kSpaceAxes; ++axis) {
      csv += std::string(value_name(space, static_cast<SpaceAxis>(axis), point[axis])) + ",";
    }
    csv += name_of(r.status);
    if (is_found(r)) {
      csv +=
          fmt::format(",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", r.time_s,
                      r.lower_bound_s, r.utilisation, figure_of(r, SpaceFigure::throughput), r.usd,
                      r.watts, figure_of(r, SpaceFigure::per_usd), figure_of(r, SpaceFigure::per_w),
                      r.tensor, r.pipeline, r.data, field(r.network), r.partitions, r.layer_s,
                      r.compute_s, r.memory_s, r.network_s);
    } else {
      csv += std::string(17, ',');
    }
    csv += fmt::format(",{}\n", r.networks);
  }
  return csv;
}

std::string ratios_csv(const Space& space, std::span<const RatioFinding> findings) {
  std::string csv = "ratio,figure,parallelism,value,published,points_above,points_below\n";
  for (const RatioFinding& finding : findings) {
    const SpaceRatio& ratio = space.ratios[finding.ratio];
    csv += fmt::format(
        "{},{},{},{},{},{},{}\n", field(ratio.name), name_of(ratio.figure),
        finding.parallelism ? name_of(space.parallelisms[*finding.parallelism]) : "across",
        finding.value ? fmt::format("{}", *finding.value) : "",
        ratio.published > 0 ? fmt::format("{}", ratio.published) : "", finding.above,
        finding.below);
  }
  return csv;
}

}  // namespace braid

#include "braid/report/confidence_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/infinity.h"
#include "braid/base/quantity.h"
#include "braid/plan/stage_context.h"
#include "braid/report/html_parts.h"
#include "braid/report/plan_text.h"
#include "braid/system/defaults.h"
#include "braid/system/links.h"
#include "braid/trust/ratios.h"

namespace braid {
namespace {

/// Of a stage's devices, the least that one can hold, whatever the user lets plans use of it.
double room_bytes_of_stage(const Plan& plan, std::size_t stage) {
  double least = kInfinity;
  for (const std::size_t group : groups_of(plan.system, plan.stages[stage].devices)) {
    const Chip& chip = plan.system.groups[group].chip;
    least = std::min(least, chip.memory.bytes - usual_reserve_bytes(chip));
  }
  return least;
}

/// "74 GiB": what plans may use so that `ratio` times as much is within `room_bytes`.
std::string limit_text(double room_bytes, double ratio) {
  const double unit = room_bytes / ratio >= kGiB ? kGiB : kGiB / 1024;
  return fmt::format("{:.0f} {}", std::floor(room_bytes / ratio / unit),
                     unit == kGiB ? "GiB" : "MiB");
}

std::string memory_line(const Confidence& confidence, const Plan& plan, const Metrics& metrics) {
  const std::string& trainer = plan.trainer.name;
  if (!confidence.memory) {
    return "memory: no interval, as too few peaks were measured" +
           (trainer.empty() ? "" : " with " + trainer);
  }
  const double most_bytes = metrics.peak_memory_bytes * confidence.memory->high;
  const std::size_t stage = metrics.tightest_stage;
  const double usable_bytes = usable_bytes_of_stage(plan, stage);
  const bool is_near = metrics.peak_memory_bytes <= usable_bytes && most_bytes > usable_bytes;
  // It reads the catalogue, and is not below what is usable.
  const double room_bytes = is_near ? room_bytes_of_stage(plan, stage) : kInfinity;
  const bool may_not_fit = most_bytes > room_bytes;
  return fmt::format(
      "memory: {}, from {} by {}{}",
      memory_range_text(metrics.peak_memory_bytes * confidence.memory->low, most_bytes),
      confidence.memory_from, trainer,
      may_not_fit ? fmt::format("; the device has {:.1f} GiB, so it may not fit: "
                                "--max-memory '{}' leaves room",
                                room_bytes / kGiB, limit_text(room_bytes, confidence.memory->high))
                  : "");
}

std::optional<ErrorInterval> ratio_of(const Candidate& a, const Candidate& b) {
  if (a.plan.profile.provenance != "estimated") return std::nullopt;
  return ratio_interval(traits_of(a.plan, a.metrics), traits_of(b.plan, b.metrics), ratio_errors());
}

/// "fp8, TP 2, PP 4, DP 8": degrees of 1 are left out.
std::string form_of_run(const JobTraits& run) {
  std::string text = run.format;
  for (const auto& [name, degree] :
       {std::pair{"TP", run.tp}, {"CP", run.cp}, {"PP", run.pp}, {"EP", run.ep}, {"DP", run.dp}}) {
    if (degree > 1) text += fmt::format(", {} {:.0f}", name, degree);
  }
  return text;
}

std::string run_text(const RunError& run) {
  const double longer = std::exp(run.error) - 1;
  return fmt::format(
      "{} ({} parameters) on {:.0f} {} by {}, {} (dataset {}): {:.1f} % {} than predicted",
      run.model, format_count(run.traits.parameters), run.traits.devices, run.traits.chip,
      run.traits.trainer, form_of_run(run.traits), run.source, 100 * std::abs(longer),
      longer < 0 ? "shorter" : "longer");
}

}  // namespace

std::string time_range_text(double least_s, double most_s) {
  return four_figures(least_s) + " to " + four_figures(most_s) + " s";
}

std::string memory_range_text(double least_bytes, double most_bytes) {
  for (int decimals = 1; decimals <= 3; ++decimals) {
    const std::string least = fmt::format("{:.{}f}", least_bytes / kGiB, decimals);
    const std::string most = fmt::format("{:.{}f}", most_bytes / kGiB, decimals);
    if (least != most) return fmt::format("{} to {} GiB", least, most);
  }
  return gib_text(most_bytes);
}

std::string interval_text(const Confidence& confidence, const Metrics& metrics) {
  if (!confidence.time) return "";
  return time_range_text(metrics.iteration_time_s * confidence.time->low,
                         metrics.iteration_time_s * confidence.time->high);
}

std::vector<std::string> confidence_lines(const Candidate& candidate) {
  const auto confidence = confidence_of(candidate.plan, candidate.metrics);
  if (!confidence || !confidence->time) return {};
  std::vector<std::string> lines;
  lines.push_back("time: " + interval_text(*confidence, candidate.metrics));
  lines.push_back(memory_line(*confidence, candidate.plan, candidate.metrics));
  if (!confidence->beyond.empty()) {
    lines.push_back(
        fmt::format("beyond what was measured: {}", fmt::join(confidence->beyond, "; ")));
  }
  for (const RunError& run : confidence->nearest) {
    lines.push_back("nearest measured: " + run_text(run));
  }
  return lines;
}

std::vector<std::size_t> not_told_apart(const std::vector<Candidate>& candidates) {
  std::vector<std::size_t> found;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const auto ratio = ratio_of(candidates[0], candidates[i]);
    if (!ratio) continue;
    const double longer =
        candidates[i].metrics.iteration_time_s / candidates[0].metrics.iteration_time_s;
    if (longer * ratio->low <= 1 && longer * ratio->high >= 1) found.push_back(i);
  }
  return found;
}

std::string not_told_apart_text(const std::vector<Candidate>& candidates) {
  const std::vector<std::size_t> found = not_told_apart(candidates);
  if (found.empty()) return "";
  double most = 0;
  std::vector<std::int32_t> rows;
  for (const std::size_t i : found) {
    most = std::max(most, ratio_of(candidates[0], candidates[i])->high - 1);
    rows.push_back(static_cast<std::int32_t>(i + 1));
  }
  return fmt::format(
      "{} {} may turn out faster than the first when measured: ratios of these times may be off by "
      "{:.0f} % (80 % interval); see braid tune.\n",
      rows.size() == 1 ? "Plan" : "Plans", ranges_text(rows), 100 * most);
}

}  // namespace braid

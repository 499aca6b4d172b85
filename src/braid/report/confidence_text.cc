#include "braid/report/confidence_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/quantity.h"
#include "braid/plan/stage_context.h"
#include "braid/report/html_parts.h"
#include "braid/report/plan_text.h"
#include "braid/trust/ratios.h"

namespace braid {
namespace {

/// `usable_bytes`: of a device of the tightest stage.
std::string memory_line(const Confidence& confidence, const Metrics& metrics, double usable_bytes,
                        const std::string& trainer) {
  if (!confidence.memory) {
    return "memory: no interval, as too few peaks were measured" +
           (trainer.empty() ? "" : " with " + trainer);
  }
  const double most_bytes = metrics.peak_memory_bytes * confidence.memory->high;
  const bool may_not_fit = metrics.peak_memory_bytes <= usable_bytes && most_bytes > usable_bytes;
  return fmt::format(
      "memory: {}, from {} by {}{}",
      memory_range_text(metrics.peak_memory_bytes * confidence.memory->low, most_bytes),
      confidence.memory_from, trainer,
      may_not_fit ? fmt::format("; of {:.1f} GiB, so it may not fit: --max-memory "
                                "leaves room",
                                usable_bytes / kGiB)
                  : "");
}

std::optional<ErrorInterval> ratio_of(const Candidate& a, const Candidate& b) {
  if (a.plan.profile.provenance != "estimated") return std::nullopt;
  return ratio_interval(traits_of(a.plan, a.metrics), traits_of(b.plan, b.metrics), ratio_errors());
}

std::string run_text(const RunError& run) {
  const double longer = std::exp(run.error) - 1;
  return fmt::format(
      "{} ({} parameters) on {:.0f} {} by {} (dataset {}): {:.1f} % {} than predicted", run.model,
      format_count(run.traits.parameters), run.traits.devices, run.traits.chip, run.traits.trainer,
      run.source, 100 * std::abs(longer), longer < 0 ? "shorter" : "longer");
}

}  // namespace

std::string time_range_text(double least_s, double most_s) {
  return four_figures(least_s) + " to " + four_figures(most_s) + " s";
}

std::string memory_range_text(double least_bytes, double most_bytes) {
  for (int decimals = 1; decimals <= 3; ++decimals) {
    const std::string least = fmt::format("{:.{}f}", least_bytes / kGiB, decimals);
    const std::string most = fmt::format("{:.{}f}", most_bytes / kGiB, decimals);
    if (least != most) return least + " to " + most + " GiB";
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
  lines.push_back(
      memory_line(*confidence, candidate.metrics,
                  usable_bytes_of_stage(candidate.plan, candidate.metrics.tightest_stage),
                  candidate.plan.trainer.name));
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
      "{} {} may turn out faster than the first when measured: one in five predicted ratios of "
      "two times is off by more than {:.0f} %; see braid tune.\n",
      rows.size() == 1 ? "Plan" : "Plans", ranges_text(rows), 100 * most);
}

}  // namespace braid

#include "braid/report/confidence_text.h"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/quantity.h"

namespace braid {
namespace {

std::string memory_line(const Confidence& confidence, const Metrics& metrics,
                        const std::string& trainer) {
  if (!confidence.memory) {
    return "memory: no interval, as too few peaks were measured" +
           (trainer.empty() ? "" : " with " + trainer);
  }
  return fmt::format("memory: {:.1f} to {:.1f} GiB, from {} by {}",
                     metrics.peak_memory_bytes * confidence.memory->low / kGiB,
                     metrics.peak_memory_bytes * confidence.memory->high / kGiB,
                     confidence.memory_from, trainer);
}

std::string run_text(const RunError& run) {
  const double longer = std::exp(run.error) - 1;
  return fmt::format("{} ({} parameters) on {:.0f} {} by {}, of {}: {:.1f}% {} than predicted",
                     run.model, format_count(run.traits.parameters), run.traits.devices,
                     run.traits.chip, run.traits.trainer, run.source, 100 * std::abs(longer),
                     longer < 0 ? "shorter" : "longer");
}

}  // namespace

std::string interval_text(const Confidence& confidence, const Metrics& metrics) {
  if (!confidence.time) return "";
  return fmt::format("{:.4g} to {:.4g} s", metrics.iteration_time_s * confidence.time->low,
                     metrics.iteration_time_s * confidence.time->high);
}

std::vector<std::string> confidence_lines(const Candidate& candidate) {
  const auto confidence = confidence_of(candidate.plan, candidate.metrics);
  if (!confidence || !confidence->time) return {};
  std::vector<std::string> lines;
  lines.push_back("time: " + interval_text(*confidence, candidate.metrics));
  lines.push_back(memory_line(*confidence, candidate.metrics, candidate.plan.trainer.name));
  if (!confidence->beyond.empty()) {
    lines.push_back(
        fmt::format("beyond what was measured: {}", fmt::join(confidence->beyond, "; ")));
  }
  const char* head = "nearest: ";
  for (const RunError& run : confidence->nearest) {
    lines.push_back(head + run_text(run));
    head = "         ";
  }
  return lines;
}

}  // namespace braid

#include "braid/cli/checked_plan.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/quantity.h"
#include "braid/cli/verbs.h"
#include "braid/verify/verify.h"

namespace braid {
namespace {

/// What a plan that uses host memory rests on; empty for others.
std::string host_assumption(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  std::vector<std::string> kept;
  if (p.offload_optimizer) kept.emplace_back("optimizer state");
  if (p.offload_activations) kept.emplace_back("activations");
  if (p.offload_weights) kept.emplace_back("weights");
  const auto& host = plan.system.groups.front().chip.host;
  if (kept.empty() || !host) return "";
  return fmt::format(
      "offload: the best plan keeps {} in host memory, {} a device behind a link of {}; "
      "--no-offload plans without",
      fmt::join(kept, " and "), format_bytes(host->bytes), format_bytes_per_s(host->bytes_per_s));
}

}  // namespace

CheckedOutcome plan_and_check(const LoadedJob& loaded, const PlannerEntry& planner,
                              const Progress& progress) {
  CheckedOutcome checked;
  const auto start = std::chrono::steady_clock::now();
  checked.outcome = planner.plan(loaded.job, loaded.system, loaded.space, loaded.budget, progress);
  checked.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::vector<std::string>& assumptions = checked.outcome.assumptions;
  assumptions.insert(assumptions.begin(), loaded.assumptions.begin(), loaded.assumptions.end());
  if (!checked.outcome.candidates.empty()) {
    const std::string host = host_assumption(checked.outcome.candidates.front().plan);
    if (!host.empty()) assumptions.insert(assumptions.begin(), host);
  }
  const LowerBound& bound = checked.outcome.physical_bound;
  for (Candidate& candidate : checked.outcome.candidates) {
    candidate.plan.claims =
        Claims{candidate.metrics.iteration_time_s, candidate.metrics.peak_memory_bytes,
               bound.compute_s, bound.memory_s, bound.network_s};
    const Verification verification = verify(candidate.plan);
    for (const Check& check : verification.checks) {
      if (check.holds || !checked.failure.empty()) continue;
      checked.failure = fmt::format("a plan of {} fails the check '{}': {}", planner.name,
                                    check.name, check.detail);
    }
  }
  return checked;
}

CheckedOutcome plan_checked(const LoadedJob& loaded, const PlannerEntry& planner,
                            const Progress& progress) {
  CheckedOutcome checked = plan_and_check(loaded, planner, progress);
  if (!checked.failure.empty()) throw std::logic_error(checked.failure);
  return checked;
}

int status_of(const Outcome& outcome) {
  if (!outcome.candidates.empty()) return kFound;
  return outcome.status == Status::budget_exhausted ? kExhausted : kInfeasible;
}

}  // namespace braid

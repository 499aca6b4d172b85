#include "braid/cli/checked_plan.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/index.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/cli/verbs.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/mapped_layer.h"
#include "braid/verify/check_candidates.h"

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

/// How far the layers of a plan for dataflow chips may be from the best mappings of their kernels;
/// empty for other chips.
std::string mapping_assumption(const Graph& graph, const Plan& plan) {
  const bool mapped = std::any_of(
      plan.system.groups.begin(), plan.system.groups.end(),
      [](const DeviceGroup& group) { return group.chip.execution == ChipExecution::dataflow; });
  if (!mapped) return "";
  const std::vector<std::vector<TensorId>> leaving = leaving_tensors(graph);
  std::vector<bool> seen(plan.profile.kinds.size(), false);
  std::string chips;
  double gap = 0;
  for (std::size_t l = 0; l < plan.profile.layers.size(); ++l) {
    const std::size_t kind = at(plan.profile.layers[l].kind);
    if (seen[kind]) continue;
    seen[kind] = true;
    const auto layer = static_cast<LayerId>(l);
    const std::vector<OperatorWork> works = layer_work(graph, layer);
    for (const Option& option : plan.profile.kinds[kind]) {
      const Chip& chip = plan.system.groups[at(std::max(0, option.device_group))].chip;
      if (chip.execution != ChipExecution::dataflow || !option.divided.empty()) continue;
      const MappedTimes times =
          mapped_times(graph, layer, works, option.how, plan.precision, chip, leaving[l]);
      if (times.least_s > 0) {
        gap = std::max(gap, 1 - times.least_s / (times.forward_s + times.backward_s));
      }
      if (!contains(chips, chip.name)) chips += (chips.empty() ? "" : ", ") + chip.name;
    }
  }
  if (chips.empty()) return "";
  return fmt::format("{}: layers run by the best mapping of their kernels onto the chip, {}", chips,
                     gap < 1e-6 ? "proven" : fmt::format("within {:.1f}%", 100 * gap));
}

}  // namespace

std::string fault_of(Candidate& candidate, const LowerBound& bound, std::string_view planner) {
  const std::string failure = claim_and_check(candidate, bound);
  return failure.empty() ? "" : fmt::format("a plan of {} {}", planner, failure);
}

CheckedOutcome plan_and_check(const LoadedJob& loaded, const PlannerEntry& planner,
                              const Progress& progress) {
  CheckedOutcome checked;
  const auto start = std::chrono::steady_clock::now();
  checked.outcome = planner.plan(loaded.job, loaded.system, loaded.space, loaded.budget, progress);
  checked.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::vector<std::string>& assumptions = checked.outcome.assumptions;
  assumptions.insert(assumptions.begin(), loaded.assumptions.begin(), loaded.assumptions.end());
  if (!checked.outcome.candidates.empty()) {
    const Plan& best = checked.outcome.candidates.front().plan;
    const Graph* graph = loaded.job.graph;
    for (const std::string& said :
         {graph != nullptr ? mapping_assumption(*graph, best) : "", host_assumption(best)}) {
      if (!said.empty()) assumptions.insert(assumptions.begin(), said);
    }
  }
  const std::string failure = claim_and_check(checked.outcome);
  if (!failure.empty()) checked.failure = fmt::format("a plan of {} {}", planner.name, failure);
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

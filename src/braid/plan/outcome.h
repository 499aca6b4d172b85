#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/plan/bound.h"
#include "braid/plan/ease.h"
#include "braid/plan/plan.h"

namespace braid {

enum class Status : std::uint8_t { optimal, feasible, infeasible, budget_exhausted };
std::string_view name_of(Status status);

/// Limit on a search, in work units (evaluated configurations), never seconds.
struct Budget {
  std::int64_t work = 0;  ///< 0: none.

  /// This budget, or `default_work` where there is none.
  Budget or_by_default(std::int64_t default_work) const {
    return work > 0 ? *this : Budget{default_work};
  }
};

/// Figures of merit of a plan, from the shared simulator.
struct Metrics {
  double iteration_time_s = 0;
  double compute_s = 0, tp_comm_s = 0, cp_comm_s = 0, ep_comm_s = 0, pp_comm_s = 0, dp_comm_s = 0;
  double bubble_s = 0, recompute_s = 0, optimizer_s = 0,
         offload_s = 0;           ///< Of the busiest stage; they sum to the iteration time.
  std::size_t busiest_stage = 0;  ///< That with most to do.
  double tokens_per_s = 0;
  double model_flops_per_s_per_device = 0;
  double mfu = 0;
  double peak_memory_bytes = 0;  ///< Over stages.
  std::size_t tightest_stage = 0;
  MemoryBreakdown tightest_memory;
};

/// Why nothing fits: the best that could be done.
struct Infeasibility {
  std::string reason;       ///< One line.
  std::int64_t stage = -1;  ///< -1: not about memory.
  double needed_bytes = 0, available_bytes = 0;
  Parallelism parallel;  ///< The configuration that came nearest.
  /// Of a device's share of host memory, where that configuration keeps something there.
  double host_needed_bytes = 0, host_available_bytes = 0;
  bool names_options = false;  ///< The reason says which of the user's options are at fault.
};

/// What it lacks of the device's memory and of the host's.
inline double missing_bytes(const Infeasibility& why) {
  return std::max(0.0, why.needed_bytes - why.available_bytes) +
         std::max(0.0, why.host_needed_bytes - why.host_available_bytes);
}

struct Candidate {
  Plan plan;
  Metrics metrics;
};

/// A time that a planner's own model has for its plan.
struct OwnTime {
  std::string key;    ///< In JSON, with the unit: "flush_s".
  std::string words;  ///< For people, to be followed by the time: "by its formula".
  double time_s = 0;
};

/// How the first candidate of an outcome was chosen where that need not be the fastest plan.
struct Recommendation {
  std::optional<Candidate> fastest;  ///< Where that is another plan.
  Ease ease, ease_of_fastest;
  /// Of the fastest plan without offload, where the fastest one has some: infinite, nothing fits.
  std::optional<double> without_offload_s;
  /// Chosen of all plans of the searched space; else of those that the search met.
  bool of_all = true;
};

struct Outcome {
  Status status = Status::infeasible;  ///< Of the search for the fastest plan.
  /// The plan is candidates[0]; the others, and without a recommendation that too, best first.
  std::vector<Candidate> candidates;
  std::optional<Recommendation> recommendation;
  LowerBound physical_bound;  ///< No plan at all can be faster.
  double search_bound_s = 0;  ///< No plan in the planner's space is faster (= best when optimal).
  /// Where the space leaves out assignments of layers to stages: with them in it, no plan is
  /// faster.
  double assignments_bound_s = 0;
  /// What that space is, for people, to follow a colon; may be empty.
  std::string space;
  /// Whether plans on any number of devices, up to all, were searched.
  bool any_device_count = false;
  /// Then, which plans are on no more devices than the first candidate, "with --tp 2 and --dp 1",
  /// what is fixed, or "of this job"; empty: there are plans on more.
  std::string device_limit;
  std::string objective_name;
  double objective = 0;
  std::vector<OwnTime> own_times;  ///< What the planner's model has for the best plan besides.
  std::int64_t work = 0;           ///< Configurations, or groups of them, bounded.
  std::int64_t evaluated = 0;      ///< Configurations evaluated in full.
  std::optional<Infeasibility> infeasibility;
  std::vector<std::string> assumptions;  ///< Assumptions, for the user.
  /// What a reader has to know of the trainer before the figures, a sentence each.
  std::vector<std::string> trainer_notes;
};

/// Leaves out the candidates that trade time for memory and get none: those of the degrees and the
/// memory, within a thousandth, of another candidate that is faster. The first one stays, and so
/// does the fastest.
void leave_out_idle_trades(Outcome& outcome);

/// What the search is for. There is at least one candidate.
inline const Candidate& fastest_of(const Outcome& outcome) {
  const auto& recommendation = outcome.recommendation;
  return recommendation && recommendation->fastest ? *recommendation->fastest
                                                   : outcome.candidates.front();
}

}  // namespace braid

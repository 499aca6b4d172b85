#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/job/one_form_job.h"

namespace braid {

inline constexpr const char* kAmpObjective = "AMP's cost (s)";

/// Bytes that each replica's link carries for a parameter in the ring all-reduce of the gradients
/// over `dp` of them.
double ring_bytes_per_parameter(std::int64_t dp, const Precision& precision);

/// A job as AMP plans it on a homogeneous system: layers assigned exactly for AMP's whole cost,
/// with the profile's times and the gradients' ring all-reduce on its slowest link. Unlike AMP,
/// within memory, without and with full recomputation.
class AmpJob : public OneFormJob {
 public:
  static constexpr double kUnlimited = kInfinity;

  using OneFormJob::OneFormJob;

  /// With its best split of experts, as it is or with full recomputation, where that is allowed,
  /// whichever costs less. nullopt when none fits, or costs less than `below_s`. If is_graph(),
  /// this may take long, and finds more than the next.
  std::optional<OneFormAssignment> evaluate(const Configuration& configuration,
                                            double below_s = kUnlimited);
  /// The same with layers cut in order, at once.
  std::optional<OneFormAssignment> evaluate_in_order(const Configuration& configuration);

  /// The outcome of a search, as OneFormJob has it.
  Outcome outcome(std::vector<OneFormAssignment> found, std::int64_t work, bool complete) {
    return OneFormJob::outcome(std::move(found), work, complete, kAmpObjective);
  }

 private:
  /// The best of all splits of experts with one or both kinds of recomputation, by
  /// `assign(configuration, below_s)`.
  template <typename Assign>
  std::optional<OneFormAssignment> best_choice(const Configuration& configuration, double below_s,
                                               Assign assign);
  std::optional<OneFormAssignment> assign_in_order(const Configuration& configuration);
  std::optional<OneFormAssignment> assign_branches(const Configuration& configuration,
                                                   double below_s);
  /// With what AMP's model charges for handing over and synchronising.
  AssignmentGraph priced_graph(const Configuration& configuration);
  /// No assignment costs less. O(layers).
  double bound_s(const Configuration& configuration);
  /// Of the ring over a stage's replicas.
  double sync_s_per_parameter(const Configuration& configuration) const;
};

}  // namespace braid

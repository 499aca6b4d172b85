#pragma once

#include <memory>
#include <vector>

#include "braid/profile/layer_options.h"

namespace braid {

/// Layers with the finite list of options that a profile has: what braid, Piper's or Phaze's
/// planner, or a measurement wrote. Times are in seconds, passes apart (pass_split.h). Of several
/// options of a kind that run alike, the quickest counts. Costs do not depend on groups and
/// devices: they are those that the profile was made for.
class ListedLayers : public LayerOptions {
 public:
  explicit ListedLayers(Profile profile);
  ListedLayers(const ListedLayers&) = delete;  // Limits refer to the list.
  ListedLayers& operator=(const ListedLayers&) = delete;

  const Profile& layers() const override { return layers_; }
  double parameters() const override;
  double least_work_s() const override;
  SplitLimits limits(std::int64_t most_tp) const override;
  bool searches_shardings() const override { return finds_; }
  /// Where an option states its memory or its gradients, both count in place of its parameters:
  /// what it leaves open follows from these with the number formats of `precision`, not sharded.
  ///
  /// An execution that is not in the list costs more time than anything, and the least that any
  /// option of its kind takes of all else: a bound, and nothing to plan with.
  std::unique_ptr<LayerCosts> on(const System& system, const Precision& precision) const override;

  const Profile* listed() const override { return &profile_; }

 private:
  Profile profile_;
  Profile layers_;  ///< Without.
  ListedExecutions executions_;
  bool finds_ = false;
};

/// The cost with what is stated of memory or gradients in place of parameters: both, or neither.
LayerCost with_stated_memory(LayerCost cost, const Precision& precision);

}  // namespace braid

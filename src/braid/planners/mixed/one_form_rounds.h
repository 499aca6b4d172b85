#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "braid/planners/mixed/mixed_planner.h"

namespace braid {

/// Pipelines of one number of stages (`form.pp`), all in this form.
struct OneFormRound {
  double bound_s = 0;  ///< None takes less.
  Configuration form;
  /// By rising bound.
  friend bool operator<(const OneFormRound& a, const OneFormRound& b);
};

/// Adds the rounds of so many samples that the trainer (SpaceOptions::can) can be told. Cost: one
/// or two families for each form.
void add_one_form_rounds(MixedJob& job, const SpaceOptions& space, std::int64_t samples,
                         MixedFamily::Known& known, std::vector<OneFormRound>& rounds);

/// The pipelines of a round as a problem. Keeps references, but to the form.
std::unique_ptr<MixedFamily> one_form_family(const Configuration& form, MixedJob& job,
                                             const SpaceOptions& space, MixedFamily::Known& known);

}  // namespace braid

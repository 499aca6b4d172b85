#pragma once

#include <functional>
#include <optional>

#include "braid/plan/ease.h"
#include "braid/planners/job/chain_job.h"
#include "braid/planners/job/job.h"
#include "braid/planners/uniform/best_plans.h"
#include "braid/planners/uniform/space_part.h"

namespace braid {

/// The ease of a plan of braid's space. Layers lie as trainers put them where these deal them out
/// so and each chunk has as many (is_dealt_evenly()).
Ease ease_of(const ChainJob& chain, const FoundPlan& found);

/// The part of a space with nothing less easy than that in any of the respects that Ease has.
SpacePart space_within(const Ease& most, std::int64_t seq_len, const SpaceOptions& space);

/// What a search of a part of the space ended with.
struct PartResult {
  std::optional<FoundPlan> fastest;  ///< Of the part; nothing where none takes less than asked.
  bool proven = true;
};
/// Searches a part of the space for the fastest plan that takes less than `below_s`.
using PartSearch = std::function<PartResult(const SpacePart& part, double below_s)>;

struct EasiestPlan {
  FoundPlan plan;
  /// Of the fastest plan without offload, where the fastest one has some: infinite, nothing fits.
  std::optional<double> without_offload_s;
  bool proven = true;  ///< All searches were.
};

/// Of all plans of the space the one to recommend, as easiest_of() would choose it. Most of the
/// space is never looked at: the fastest plan, or the fastest without offload, is as easy as can be
/// unless a smaller part of the space has a plan within the limit, and few parts are asked for: one
/// for each number of dimensions that there is a plan with, one more for those that there is none
/// with, then one for layout and one for extremes, where the plan has these. Each search's limit is
/// known beforehand. `limits_of`: what may be recommended.
EasiestPlan easiest_plan(const ChainJob& chain, const FoundPlan& fastest, const SpaceOptions& space,
                         const PartSearch& search,
                         EaseLimits (*limits_of)(double fastest_s,
                                                 double without_offload_s) = ease_limits);

}  // namespace braid

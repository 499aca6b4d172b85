#include "braid/profile/pass_split.h"

#include <algorithm>

namespace braid {
namespace {

/// Of the options that run as `option` does but for their recomputation, which is `recompute`, the
/// quickest; null: there is none.
const Option* sibling_of(const Option& option, Recompute recompute,
                         const std::vector<Option>& options) {
  const Option* found = nullptr;
  Execution how = option.how;
  how.recompute = recompute;
  for (const Option& other : options) {
    if (other.how != how || other.sharded != option.sharded) continue;
    if (found == nullptr || other.cost.time_s() < found->cost.time_s()) found = &other;
  }
  return found;
}

bool in_one_figure(const Option& option) {
  return option.cost.backward_s() <= 0 && option.cost.forward.total_s() > 0;
}

/// The option's own times, its passes apart.
LayerCost with_passes_apart(const Option& option, const std::vector<Option>& options) {
  LayerCost cost = option.cost;
  const double all_s = option.cost.forward.total_s();
  double forward_s = 0, again_s = 0;
  if (option.how.recompute == Recompute::none) {
    forward_s = forward_pass_s(option, sibling_of(option, Recompute::full, options));
  } else if (const Option* plain = sibling_of(option, Recompute::none, options)) {
    const Option* full = sibling_of(option, Recompute::full, options);
    forward_s = std::min(all_s, forward_pass_s(*plain, full));
    again_s = std::clamp(all_s - plain->cost.time_s(), 0.0, all_s - forward_s);
  } else {
    forward_s = again_s = all_s / 4;
  }
  cost.forward = cost.recompute = cost.backward_input = cost.backward_weight = {};
  cost.forward.compute_s = forward_s;
  cost.recompute.compute_s = again_s;
  cost.backward_input.compute_s = all_s - forward_s - again_s;
  return cost;
}

}  // namespace

double forward_pass_s(const Option& plain, const Option* recomputed) {
  if (plain.cost.backward_s() > 0) return plain.cost.forward.total_s();
  const double both_s = plain.cost.time_s();
  if (recomputed == nullptr) return both_s / 3;
  return std::clamp(recomputed->cost.time_s() - both_s, 0.0, both_s);
}

Profile with_passes_apart(Profile profile) {
  for (std::vector<Option>& options : profile.kinds) {
    const std::vector<Option> given = options;
    for (Option& option : options) {
      if (in_one_figure(option)) option.cost = with_passes_apart(option, given);
    }
  }
  return profile;
}

Profile in_seconds(Profile profile, double time_unit_s) {
  for (std::vector<Option>& options : profile.kinds) {
    for (Option& option : options) {
      LayerCost& cost = option.cost;
      for (PassTime* pass :
           {&cost.forward, &cost.recompute, &cost.backward_input, &cost.backward_weight}) {
        for (double PassTime::*part :
             {&PassTime::compute_s, &PassTime::tp_comm_s, &PassTime::cp_comm_s,
              &PassTime::ep_comm_s, &PassTime::offload_s}) {
          pass->*part *= time_unit_s;
        }
      }
      cost.hidden_tp_s *= time_unit_s;
    }
  }
  profile.time_unit_s = 1;
  return profile;
}

}  // namespace braid

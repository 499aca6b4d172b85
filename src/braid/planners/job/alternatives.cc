#include "braid/planners/job/alternatives.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "braid/base/order_statistic.h"

namespace braid {
namespace {

/// What all of the class have, and by default what they do not share.
Configuration class_of(const Configuration& c) {
  Configuration shared;
  shared.tp = c.tp;
  shared.cp = c.cp;
  shared.ep = c.ep;
  shared.whole_experts = c.whole_experts;
  shared.pp = c.pp;
  shared.dp = c.dp;
  shared.recompute = c.recompute;
  shared.zero = c.zero == Zero::parameters ? c.zero : Zero::none;
  shared.offload_optimizer = c.offload_optimizer;
  shared.offload_weights = c.offload_weights;
  shared.offload_activations = c.offload_activations;
  return shared;
}

}  // namespace

bool is_same_class(const Configuration& a, const Configuration& b) {
  return class_of(a) == class_of(b);
}

void ClassCosts::add(const Configuration& configuration, double cost_s) {
  double& least_s = least_s_.try_emplace(class_of(configuration), cost_s).first->second;
  least_s = std::min(least_s, cost_s);
}

double ClassCosts::kth_least_s(std::size_t k) const {
  std::vector<double> costs_s;
  costs_s.reserve(least_s_.size());
  for (const auto& [known, least_s] : least_s_) costs_s.push_back(least_s);
  return kth_least(std::move(costs_s), k);
}

}  // namespace braid

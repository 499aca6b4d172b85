#include "braid/planners/mixed/stage_times.h"

#include <algorithm>
#include <cassert>

#include "braid/base/infinity.h"
#include "braid/plan/totals.h"
#include "braid/search/amp_window.h"
#include "braid/search/fitting_layers.h"

namespace braid {
MixedStageTimes::MixedStageTimes(const MixedProblem& problem) : problem_(problem) {
  assert(!problem.configs.empty());
  layers_ = problem.configs.front().variants.front().layers.size();
  for (const MixedConfig& config : problem.configs)
    variants_ = std::max(variants_, config.variants.size());
  fitting_.resize(problem.configs.size() * variants_);
  std::vector<double> forward_s(layers_, kInfinity), backward_s(layers_, kInfinity);
  std::vector<double> time_s(layers_, kInfinity);
  for (const MixedConfig& config : problem.configs) {
    std::vector<Sums>& of_form = sums_.emplace_back();
    for (const MixedVariant& variant : config.variants) {
      Sums& sums = of_form.emplace_back();
      for (std::vector<double>* values :
           {&sums.forward_s, &sums.backward_s, &sums.dense, &sums.expert}) {
        values->assign(layers_ + 1, 0);
      }
      for (std::size_t l = 0; l < layers_; ++l) {
        const ChainLayer& layer = variant.layers[l];
        sums.forward_s[l + 1] = sums.forward_s[l] + layer.forward_s;
        sums.backward_s[l + 1] = sums.backward_s[l] + layer.backward_s;
        sums.dense[l + 1] = sums.dense[l] + layer.dense_parameters;
        sums.expert[l + 1] = sums.expert[l] + layer.expert_parameters;
        forward_s[l] = std::min(forward_s[l], layer.forward_s);
        backward_s[l] = std::min(backward_s[l], layer.backward_s);
        time_s[l] = std::min(time_s[l], layer.time_s());
      }
    }
  }
  least_forward_s_ = running_sums(forward_s);
  least_backward_s_ = running_sums(backward_s);
  least_s_ = running_sums(time_s);
}

MixedStageTimes::Time MixedStageTimes::plain(std::size_t config, std::size_t variant,
                                             std::int32_t left, std::int32_t right) const {
  const Sums& sums = sums_[config][variant];
  Time time;
  time.forward_s = time.plain_forward_s = sums.forward_s[at(right)] - sums.forward_s[at(left)];
  time.backward_s = time.plain_backward_s = sums.backward_s[at(right)] - sums.backward_s[at(left)];
  return time;
}

void MixedStageTimes::synchronise(Time& time, std::size_t config, std::size_t variant,
                                  std::int32_t left, std::int32_t right,
                                  const SyncRates& rates) const {
  const Sums& sums = sums_[config][variant];
  const double dense = sums.dense[at(right)] - sums.dense[at(left)];
  const double expert = sums.expert[at(right)] - sums.expert[at(left)];
  const int layers = right - left;
  time.forward_s +=
      pass_sync_s(rates.forward.of(dense, expert), time.forward_s, layers, rates.overlap_loss);
  time.backward_s +=
      pass_sync_s(rates.backward.of(dense, expert), time.backward_s, layers, rates.overlap_loss);
  // A pass that may end no earlier than its parameters allow is one that starts later.
  time.head_s = exposed_gradient_sync_s(rates.gather.of(dense, expert), time.forward_s, layers);
  time.tail_s = exposed_gradient_sync_s(rates.reduce.of(dense, expert), time.backward_s, layers) +
                rates.optimizer_s + rates.optimizer.of(dense, expert);
}

MixedStageTimes::Time MixedStageTimes::of(std::size_t config, std::size_t variant,
                                          std::int32_t left, std::int32_t right,
                                          const SyncRates& rates) const {
  Time time = plain(config, variant, left, right);
  synchronise(time, config, variant, left, right, rates);
  return time;
}

const std::vector<std::int32_t>& MixedStageTimes::first_fitting(std::size_t config,
                                                                std::size_t variant,
                                                                std::int64_t in_flight) {
  auto& by_in_flight = fitting_[config * variants_ + variant];
  if (by_in_flight.size() <= at(in_flight)) by_in_flight.resize(at(in_flight) + 1);
  std::vector<std::int32_t>& first = by_in_flight[at(in_flight)];
  if (!first.empty()) return first;
  const MixedVariant& run = problem_.configs[config].variants[variant];
  first = first_fitting_layers(run.layers, run.memory, static_cast<double>(in_flight));
  return first;
}

}  // namespace braid

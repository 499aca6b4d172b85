#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "braid/planners/mixed/problem.h"

namespace braid {

/// What follows from where the ends of a pipeline may lie: they sum gradients that they share.
class MixedEndExchange {
 public:
  /// `last_configs` [config]: whether the last stage may have it; empty: any. `problem` outlives
  /// this.
  MixedEndExchange(const MixedProblem& problem, std::vector<std::uint8_t> last_configs);

  bool may_be_last(std::size_t config) const {
    return last_configs_.empty() || last_configs_[config] != 0;
  }

  /// What a first stage behind which at least `used` devices of each kind are taken has to exchange
  /// with the last one at the least; 0 where there are too many places to ask for. Cost: each place
  /// further on, once, times the pairs of configs that take different devices.
  double exchange_ahead_s(const std::vector<std::int32_t>& used);

 private:
  const MixedProblem& problem_;
  const std::vector<std::uint8_t> last_configs_;
  /// Forms of which each takes other devices, and those of them that the last stage may take.
  std::vector<std::size_t> takers_, last_takers_;
  std::map<std::vector<std::int32_t>, double> ahead_s_;  ///< By the devices used.
};

}  // namespace braid

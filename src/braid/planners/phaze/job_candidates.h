#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "braid/planners/job/one_form_job.h"
#include "braid/planners/phaze/table.h"

namespace braid {

/// What Phaze's stages of a job on a flat network are charged for what they send.
struct PhazeJobNetwork {
  double bytes_per_s = 1;
  double gradient_bytes = 0;  ///< Of a parameter.
};

/// Stages of a configuration's layers in order that fit memory: cut n lies behind the first n
/// layers. A stage takes its passes and, before and behind them, what crosses its cuts.
PhazeCandidates phaze_chain_candidates(OneFormJob& job, const Configuration& configuration,
                                       const PhazeJobNetwork& network);

/// Stages between any two of the job's cuts (it is_graph()) that fit memory, take at most
/// `longest_s` and leave no more to the other stages of the configuration than these can do in as
/// long. nullopt when there are more than `most`. Cost: a step for each and for each layer beyond
/// it.
std::optional<PhazeCandidates> phaze_graph_candidates(OneFormJob& job,
                                                      const Configuration& configuration,
                                                      const PhazeJobNetwork& network,
                                                      double longest_s, std::size_t most);

/// A pipeline of a job cut as a graph.
struct PhazeJobStages {
  std::vector<std::vector<std::int32_t>> layers;
  std::vector<PhazeCandidate> stages;  ///< Their costs; cuts are left out.
  /// No pipeline of the configuration has less (m - 1) · longest load + sum of the loads.
  double bound_s = 0;
};

/// That for which (m - 1) · longest time but for what stages send + sum of the loads is least:
/// nullopt when it is not below `below_s`. As assign_graph(), to `steps` of which it adds.
std::optional<PhazeJobStages> phaze_graph_start(OneFormJob& job, const Configuration& configuration,
                                                const PhazeJobNetwork& network, double below_s,
                                                std::int64_t& steps);

}  // namespace braid

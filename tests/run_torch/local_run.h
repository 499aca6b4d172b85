#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/plan/plan.h"
#include "braid/run/checkpoint.h"
#include "braid/run/rank_link.h"
#include "braid/run/torch/torch_training.h"

namespace braid::test {

/// May put something between a rank and its link.
using LinkChange = std::function<std::unique_ptr<RankLink>(std::int32_t rank, RankLink& link)>;

/// Trains by the plan with a thread for each rank. Throws std::runtime_error when two ranks that
/// hold a parameter end with different numbers or losses, and when a rank computes other passes
/// than the plan's, or in another order, or keeps more or fewer at once.
TrainedModel train_by_threads(const Graph& graph, const Plan& plan, const std::string& schedule,
                              const TrainingSettings& settings, const LinkChange& change = {});

/// The same from a checkpoint on (null: from the start), and what is kept after it.
TrainedModel train_on(const Graph& graph, const Plan& plan, const TrainingSettings& settings,
                      const Checkpoint* from, Checkpoint& kept);

/// The greatest difference of any loss or weight, as a part of the larger of 1 and the weight.
double difference(const TrainedModel& a, const TrainedModel& b);

}  // namespace braid::test

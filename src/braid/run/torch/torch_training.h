#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/run/parameter_groups.h"
#include "braid/run/rank_link.h"
#include "braid/run/stage_math.h"
#include "braid/run/staged_model.h"
#include "braid/run/training_settings.h"

namespace braid {

// What libtorch computes, behind headers that do not need it.

/// The parts of one rank, which meets those that it shares passes with by `link` (its groups are
/// those of meeting_ranks()). All outlive it.
std::unique_ptr<StageMath> torch_stage_math(const StagedModel& staged,
                                            std::span<const ParameterGroup> groups,
                                            std::int32_t rank, const TrainingSettings& settings,
                                            RankLink& link);

/// Of tensors of any rank.
const TensorArithmetic& torch_arithmetic();

/// The operations that nodes may have, sorted.
std::vector<std::string> computed_operations();

/// Threads that operations of this process use.
void set_torch_threads(int threads);

/// Losses of all iterations, and parameters in the model's order as f64.
struct TrainedModel {
  std::vector<double> losses;
  std::vector<DenseTensor> parameters;
};

/// The same training by one process that knows nothing of plans: every iteration one forward and
/// one backward pass of the whole model over all samples. What plans are held against.
TrainedModel train_whole(const LayeredProgram& model, std::int64_t batch,
                         const TrainingSettings& settings);

}  // namespace braid

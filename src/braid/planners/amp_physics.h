#pragma once

#include <cstdint>
#include <vector>

#include "braid/planners/amp_cost.h"
#include "braid/planners/amp_model.h"

namespace braid {

/// What AMP's model leaves out, in figures that do not depend on the strategy.
///
/// Layer times are measured with one sample, one layer at a time, so that they hold a part that a
/// larger micro-batch does not repeat: a millisecond or so to launch some hundred kernels of ten
/// microseconds, and with tensor parallelism the ranks' waiting for each other. The published times
/// of TransGAN's layers of 81 tokens, which compute next to nothing, are 2.3 to 2.5 ms then.
struct AmpPhysics {
  double launch_s = 1.0e-3;        ///< Of a layer, at most its whole time; for tp = 1.
  double split_launch_s = 2.4e-3;  ///< For tp > 1.
  /// Bytes per element: activations travel in half precision, gradients are reduced in single
  /// precision, those of a table shared by two stages in half.
  double activation_element_bytes = 2;
  double gradient_element_bytes = 4;
  double shared_table_element_bytes = 2;
  /// Weights and gradients in half precision, a copy of weights and gradients in single precision
  /// and two moments.
  double state_bytes_per_parameter = 20;
};

/// What a strategy costs.
struct AmpForecast {
  double iteration_s = 0;
  std::vector<double> peak_bytes;  ///< Of a device of each stage.
  /// By how much the worst device lacks memory; 0 or less: all fits.
  double missing_bytes = 0;

  bool fits() const { return missing_bytes <= 0; }
};

/// Pipelines by simulation of 1F1B, each stage of each replica at the speed of its own devices,
/// transfers beside the computation; then the synchronisation. Flows that leave a node at the same
/// time share its network card: those of one cut during the pipeline, all rings that cross the node
/// afterwards. A table that the first and the last stage share is reduced over the two.
/// Memory: state and the activations of min(m, pp - stage) micro-batches.
/// Costs O(replicas that differ · pp · micro-batches + pp · dp · tp · nodes).
AmpForecast amp_forecast(const AmpModel& model, const AmpCluster& cluster,
                         const AmpStrategy& strategy, std::int64_t global_batch, const Ends& ends,
                         const AmpPhysics& physics);

/// The pipeline of the same figures for assign_layers: the slowest replica's times and handovers,
/// within memory.
AmpPipeline amp_physical_pipeline(const AmpModel& model, const AmpCluster& cluster,
                                  const AmpStrategy& strategy, std::int64_t global_batch,
                                  const AmpPhysics& physics);

}  // namespace braid

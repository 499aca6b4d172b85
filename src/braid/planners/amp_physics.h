#pragma once

#include <cstdint>
#include <vector>

#include "braid/planners/amp_cost.h"
#include "braid/planners/amp_model.h"

namespace braid {

/// What AMP's model leaves out and that no cluster or layer says.
///
/// A layer's times are measured with one sample at one or more tensor-parallel degrees t. Of such a
/// time, issuing the operators (AmpLayer::operators · AmpCluster::operator_s) does not grow with
/// the micro-batch; the rest at t = 1 is work, which is divided by t; what is left at t > 1 is
/// communication, which takes as long as its messages and AmpCluster::half_bytes. The backward pass
/// has twice the work, but communicates as much and is issued in the same time: twice the operators
/// without the interpreter (Paszke et al. 2019, section 5.1). Times at t = 1 are needed to tell
/// work from communication; without them all is work.
struct AmpPhysics {
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

#include "braid/planners/job/configuration.h"

#include "braid/plan/execution_of.h"

namespace braid {

Parallelism to_parallelism(const Configuration& configuration) {
  Parallelism parallel;
  parallel.tp = configuration.tp;
  parallel.cp = configuration.cp;
  parallel.ep = configuration.ep;
  parallel.pp = configuration.pp;
  parallel.dp = configuration.dp;
  parallel.vp = configuration.vp;
  parallel.micro_batch = configuration.micro_batch;
  parallel.num_micro_batches = configuration.num_micro_batches;
  parallel.sequence_parallel = configuration.sequence_parallel;
  parallel.recompute = configuration.recompute;
  parallel.zero = configuration.zero;
  parallel.schedule = configuration.schedule;
  parallel.offload_optimizer = configuration.offload_optimizer;
  parallel.offload_weights = configuration.offload_weights;
  parallel.offload_activations = configuration.offload_activations;
  if (configuration.order == AxisOrder::data_outermost) {
    parallel.order = {Axis::tp, Axis::cp, Axis::pp, Axis::dp};
  }
  return parallel;
}

Execution to_execution(const Configuration& configuration) { return execution_of(configuration); }

}  // namespace braid

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
  parallel.whole_experts = configuration.whole_experts;
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

Configuration stage_configuration(const Parallelism& form) {
  Configuration how;
  how.tp = form.tp;
  how.cp = form.cp;
  how.ep = form.ep;
  how.dp = form.dp;
  how.micro_batch = form.micro_batch;
  how.sequence_parallel = form.sequence_parallel;
  how.whole_experts = form.whole_experts;
  how.zero = form.zero;
  how.offload_optimizer = form.offload_optimizer;
  how.offload_weights = form.offload_weights;
  return how;
}

Configuration with_execution(Configuration stage, const Execution& how) {
  stage.tp = how.tp;
  stage.cp = how.cp;
  stage.ep = how.ep;
  stage.micro_batch = how.micro_batch;
  stage.sequence_parallel = how.sequence_parallel;
  stage.whole_experts = how.whole_experts;
  stage.recompute = how.recompute;
  stage.offload_activations = how.offload_activations;
  stage.offload_weights = how.offload_weights;
  return stage;
}

}  // namespace braid

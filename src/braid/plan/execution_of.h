#pragma once

#include "braid/profile/profile.h"

namespace braid {

/// How layers run in a stage or plan of such a form: Parallelism, or planners' Configuration.
template <typename Form>
Execution execution_of(const Form& form) {
  Execution how;
  how.micro_batch = form.micro_batch;
  how.tp = form.tp;
  how.sequence_parallel = form.sequence_parallel;
  how.cp = form.cp;
  how.ep = form.ep;
  how.whole_experts = form.whole_experts;
  how.recompute = form.recompute;
  how.offload_activations = form.offload_activations;
  how.offload_weights = form.offload_weights;
  return how;
}

}  // namespace braid

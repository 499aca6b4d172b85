#include "braid/plan/blank_plan.h"

namespace braid {

Plan blank_plan(const Graph& graph, const Precision& precision, std::int64_t global_batch,
                const System& system) {
  Plan plan;
  plan.model = graph.name;
  plan.model_parameters = static_cast<double>(parameter_count(graph));
  plan.shape = model_shape(graph);
  plan.seq_len = graph.seq_len;
  plan.global_batch = global_batch;
  plan.precision = precision;
  plan.system = system;
  return plan;
}

}  // namespace braid

#pragma once

#include <cstdint>
#include <vector>

#include "braid/planners/layer_table.h"
#include "braid/planners/piper_problem.h"
#include "braid/planners/planner.h"

namespace braid {

/// A way to run layers that stages of a job may choose: `form` has tp, micro-batch, sequence
/// parallelism, recomputation and ZeRO stage.
struct PiperForm {
  Configuration form;
  double working_bytes = 0;  ///< Largest transient of any layer run so.
  double time_s = 0;         ///< Of all layers, for one sample.
};

/// What a job's piper problems have in common.
struct PiperJob {
  const Job* job = nullptr;
  const System* system = nullptr;
  LayerTables* tables = nullptr;
  std::vector<PiperEdge> edges;  ///< Bytes of one sample.
  double bandwidth = 0;          ///< Of a device, the network being flat.
};

/// The layer graph; as a chain when it has more than some thousands of downsets.
PiperJob piper_job(const Job& job, const System& system, LayerTables& tables);

/// All forms of micro-batches of `micro_batch` samples that the model and `space` allow, with
/// tensor parallelism up to `most_tp` and with recomputation if asked. Cost: that of the layers'
/// tables.
std::vector<PiperForm> piper_forms(const PiperJob& job, const SpaceOptions& space, int micro_batch,
                                   std::int64_t most_tp, bool recompute);

/// The problem in which stages choose among `forms`, all of one micro-batch size: an option for
/// each form, a degree for each tp. Memory is the shared model's: `dp` is what ZeRO shards over (1
/// without), `working_bytes` stay free on every device. An edge costs a stage what one of its
/// devices sends, less under sequence parallelism.
PiperProblem piper_problem_of(const PiperJob& job, const std::vector<PiperForm>& forms,
                              std::int64_t dp, double working_bytes);

/// The plan of stages found for that problem: uniform when they share degrees and recomputation,
/// else with forms of their own; stages of higher tp come first on the devices, so that powers of
/// two stay within nodes.
Plan plan_of_piper(const PiperJob& job, const std::vector<PiperForm>& forms,
                   const std::vector<PiperStage>& stages, const std::string& planner);

}  // namespace braid

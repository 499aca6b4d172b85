#pragma once

#include <string>

#include "braid/frontend/model.h"
#include "braid/planners/graphpipe_job.h"
#include "braid/system/system.h"

namespace braid {

/// A model on V100s as in Jeon's thesis (CMU-CS-24-122, 2024), §3.7: nodes of four, NVLink inside,
/// 100 Gb/s a node between.
inline GraphPipeProblem thesis_problem(const std::string& model, std::int64_t devices,
                                       std::int64_t batch) {
  System system = load_system("p3.8xlarge:" + std::to_string(devices));
  for (NetworkLevel& level : system.levels) {
    level.unit_bytes_per_s = 100e9 / 8;
    level.bytes_per_s = level.unit_bytes_per_s / 4;
  }
  const Graph graph = load_model(model, {});
  Job job;
  job.graph = &graph;
  job.model_source = model;
  job.precision = parse_precision("fp32");
  job.global_batch = batch;
  return graphpipe_problem(job, system);
}

/// Its models, and their mini-batches on four devices; in proportion on more.
struct ThesisModel {
  const char* name;
  std::int64_t batch;
};
inline constexpr ThesisModel kThesisModels[] = {
    {"multi-modal-transformer", 64}, {"dlrm-thesis", 256}, {"candle-uno", 4096}};

}  // namespace braid

#pragma once

#include <algorithm>
#include <string>

#include "braid/base/document.h"
#include "braid/frontend/candle_uno.h"
#include "braid/frontend/model.h"
#include "braid/frontend/multi_modal.h"
#include "braid/graph/repeated_layers.h"
#include "braid/planners/graphpipe/graphpipe_planner.h"
#include "braid/planners/graphpipe/job.h"
#include "braid/system/system.h"

namespace braid {

/// V100s as in Jeon's thesis (CMU-CS-24-122, 2024), §3.7: nodes of four, NVLink inside, 100 Gb/s a
/// node between.
inline System thesis_system(std::int64_t devices) {
  System system = load_system("p3.8xlarge:" + std::to_string(devices));
  system.groups.front().intra_node.efficiency = 1;
  for (NetworkLevel& level : system.levels) {
    level.efficiency = 1;
    level.unit_bytes_per_s = 100e9 / 8;
    level.bytes_per_s = level.unit_bytes_per_s / 4;
  }
  return system;
}

/// Single precision, as the thesis' program trains.
inline Job thesis_job(const Graph& graph, std::int64_t batch) {
  Job job;
  job.graph = &graph;
  job.model_source = graph.name;
  job.precision = parse_precision("fp32");
  job.global_batch = batch;
  return job;
}

inline GraphPipeProblem thesis_problem_of(const Graph& graph, std::int64_t devices,
                                          std::int64_t batch, const GraphPipeSpace& space) {
  const Job job = thesis_job(graph, batch);
  const System system = thesis_system(devices);
  GroupTables tables(job, system);
  return graphpipe_job(job, system, tables, space).problem;
}

inline GraphPipeProblem thesis_problem(const std::string& model, std::int64_t devices,
                                       std::int64_t batch, StageOptions options) {
  const Graph graph = load_model(model, {});
  GraphPipeSpace space;
  space.stage_options = options;
  return thesis_problem_of(graph, devices, batch, space);
}

/// Its models, and their mini-batches on four devices; in proportion on more.
struct ThesisModel {
  const char* name;
  std::int64_t batch;
};
inline constexpr ThesisModel kThesisModels[] = {
    {"multi-modal-transformer", 64}, {"dlrm-thesis", 256}, {"candle-uno", 4096}};

/// Its multi-modal transformer with other numbers of branches and layers in each.
inline Graph multi_modal(int branches, int layers) {
  const std::string config =
      R"({"num_branches": )" + std::to_string(branches) + R"(, "num_hidden_layers": )" +
      std::to_string(layers) +
      R"(, "hidden_size": 1024, "embedding_size": 1024, "num_attention_heads": 16,
          "intermediate_size": 4096, "max_position_embeddings": 256, "num_labels": 1})";
  const Document document = Document::parse(config, Document::Syntax::json, "config");
  Graph graph = multi_modal_from_config(document.root(), "multi-modal", {});
  find_repeated_layers(graph);
  return graph;
}

/// Its CANDLE-Uno with branches of four layers of 4096 that all read as many features.
inline Graph candle(int branches) {
  std::string features;
  for (int i = 0; i < branches; ++i) {
    features += (i > 0 ? ", " : "") + ("\"f" + std::to_string(i)) + "\": 4096";
  }
  const Document document =
      Document::parse(R"({"features": {)" + features +
                          R"(}, "feature_layers": [4096, 4096, 4096, 4096], "dense_layers": [],
                             "num_labels": 1})",
                      Document::Syntax::json, "config");
  Graph graph = candle_uno_from_config(document.root(), "candle", {});
  find_repeated_layers(graph);
  return graph;
}

}  // namespace braid

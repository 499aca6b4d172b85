#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "braid/run/staged_model.h"
#include "braid/run/training_settings.h"

namespace braid {

/// What every process of a run is told.
struct RunJob {
  std::string plan;      ///< The plan's file.
  std::string model;     ///< As for load_model(); empty: the plan's own.
  std::string schedule;  ///< A name of plan_order_names(); empty: the plan's own.
  std::string folder;    ///< Where the processes find each other and leave their records.
  TrainingSettings settings;
  std::string checkpoint;             ///< The file that rank 0 keeps; empty: none.
  std::int64_t checkpoint_every = 0;  ///< Iterations; 0: after the last alone.
  std::string resume;                 ///< The checkpoint to go on from; empty: from the start.
  int threads = 1;                    ///< That the operations of one process use.
  double timeout_s = 300;             ///< For the others to come, and for a message.
};

/// A job as its processes see it, loaded and checked.
struct LoadedRun {
  OrderedPlan ordered;
  StagedModel staged;
};

/// Reads plan and model. Throws Error in one line for what cannot be run: as read_plan(),
/// load_model(), ordered_plan() and staged_model().
LoadedRun load_run(const RunJob& job);

/// The model of a plan again, with as many tokens a sample. `source`: as for load_model(). Throws
/// Error as load_model(), and for ONNX files.
Graph graph_of_plan(const Plan& plan, const std::string& source);

std::string run_job_text(const RunJob& job);
/// Throws Error.
RunJob read_run_job(const std::string& file);

/// "f64", "f32" and "bf16" (also "float64" …). Throws Error for others.
ElementType training_type(std::string_view name);

// Files in the job's folder.
std::string rank_record_file(const RunJob& job, std::int32_t rank);
std::string rank_weights_file(const RunJob& job, std::int32_t rank);
std::string whole_record_file(const RunJob& job);
std::string whole_weights_file(const RunJob& job);

}  // namespace braid

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/plan/direct_plan.h"
#include "braid/plan/direct_stages.h"
#include "braid/plan/trainer_fit.h"
#include "braid/planners/registry.h"
#include "braid/schedule/timeline.h"
#include "braid/validate/predict.h"
#include "braid/validate/run_trainer.h"

#include "base/reference_files.h"
#include "support/source_path.h"
#include "validate/read_runs.h"

namespace braid {
namespace {

/// The row's form and nothing else.
SpaceOptions fixed_space(const Parallelism& p, const TrainerFile& trainer) {
  SpaceOptions space;
  space.tp = p.tp;
  space.pp = p.pp;
  space.dp = p.dp;
  space.cp = p.cp;
  space.ep = p.ep;
  space.vp = p.vp;
  space.micro_batch = p.micro_batch;
  if (p.tp > 1) space.sequence_parallel = p.sequence_parallel;
  space.recompute = p.recompute;
  space.zero = p.zero;
  if (p.pp > 1) space.schedule = p.schedule;
  space.allow_offload = false;
  space.can = trainer.can;
  return space;
}

/// Plans each run that its trainer can express with all degrees fixed to the row's, and holds what
/// validation says of the plan's own configuration to the planner's figures, bit for bit. Returns
/// how many plans there were.
int compare_plans(const std::vector<MeasuredRun>& runs) {
  int compared = 0;
  for (const MeasuredRun& run : runs) {
    PreparedRun prepared = prepare(run);
    if (!prepared.reason.empty() || prepared.frozen_weights) continue;
    const TrainerFile& trainer = trainer_of_run(subject_of(run));
    if (!is_homogeneous(prepared.system) || prepared.parallel.whole_experts ||
        prepared.parallel.offload_optimizer || !refusal(trainer.can, prepared.parallel).empty()) {
      continue;
    }
    Job job;
    job.graph = &prepared.graph;
    job.precision = prepared.precision;
    job.trainer = prepared.trainer;
    job.global_batch = prepared.global_batch;
    Outcome outcome;
    try {
      outcome = find_planner("braid").plan(job, prepared.system,
                                           fixed_space(prepared.parallel, trainer), {}, {});
    } catch (const Error&) {
      continue;  // The row's form is outside of the planner's space.
    }
    if (outcome.candidates.empty()) continue;
    const Candidate& best = outcome.candidates.front();
    PreparedRun own = std::move(prepared);
    own.parallel = best.plan.parallel;
    own.stage_layers = layer_counts(best.plan);
    const Metrics metrics = metrics_of(own, own.system);
    EXPECT_EQ(metrics.iteration_time_s, best.metrics.iteration_time_s) << run.line;
    EXPECT_EQ(metrics.peak_memory_bytes, best.metrics.peak_memory_bytes) << run.line;
    ++compared;
  }
  return compared;
}

TEST(PlansAsValidated, OfPublishedRunsTakeWhatValidationSaysBitForBit) {
  const MeasuredRuns runs = test::read_runs(test::source_path("tests/validate/published_runs.csv"));
  EXPECT_GT(compare_plans(runs.runs), 30);
}

TEST(PlansAsValidated, OfAllMeasuredRunsTakeWhatValidationSaysBitForBit) {
  const std::string file = reference_file("data/measured_training_runs.csv");
  if (file.empty()) GTEST_SKIP() << "the measured runs are not here";
  EXPECT_GT(compare_plans(test::read_runs(file).runs), 700);
}

}  // namespace
}  // namespace braid

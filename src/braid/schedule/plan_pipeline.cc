#include "braid/schedule/plan_pipeline.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/schedule/pipeline_time.h"

namespace braid {

PlanPipeline pipeline_of(const Plan& plan, std::int64_t most_passes) {
  if (plan.stages.empty()) throw Error("the plan has no stages");
  const std::size_t chunks = plan.stages.front().chunks.size();
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    if (plan.stages[s].chunks.size() != chunks || chunks == 0) {
      throw Error("stage " + std::to_string(s + 1) + " has " +
                      std::to_string(plan.stages[s].chunks.size()) + " chunks, the first stage " +
                      std::to_string(chunks),
                  "give every stage the same number of chunks, at least one");
    }
  }
  PlanPipeline result;
  result.loads = stage_loads(plan);
  result.pipeline = make_pipeline(plan.parallel.schedule, result.loads, edge_loads(plan),
                                  plan.parallel.num_micro_batches);
  if (!is_uniform(plan)) {
    std::vector<StageRounds> rounds = stage_rounds(plan);
    const bool alike = std::all_of(rounds.begin(), rounds.end(), [&](const StageRounds& round) {
      return round == rounds.front();
    });
    result.pipeline.num_micro_batches = rounds.front().count;
    if (!alike) result.pipeline.rounds = std::move(rounds);
    const auto any_stage = [&](const auto& has) {
      return std::any_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& stage) {
        return stage.own.has_value() && has(*stage.own);
      });
    };
    const bool passes = any_stage([](const StageConfig& own) { return !own.passes.empty(); });
    if (passes || any_stage([](const StageConfig& own) { return own.warm_up.has_value(); })) {
      result.pipeline.warm_ups = forwards_first(plan);
    }
    if (passes) result.pipeline.passes.resize(plan.stages.size());
    for (std::size_t s = 0; s < result.pipeline.passes.size(); ++s) {
      const std::optional<StageConfig>& own = plan.stages[s].own;
      if (own) result.pipeline.passes[s] = own->passes;
    }
  }
  if (plan.trainer.does.blocking_sends) hold_for_sends(result.pipeline);
  check_pipeline(result.pipeline, most_passes);
  return result;
}

void leave_out_transfers(PlanPipeline& timed) {
  Pipeline& pipeline = timed.pipeline;
  std::size_t chunk = 0;
  for (const StageLoad& load : timed.loads) {
    for (const ChunkLoad& part : load.chunks) {
      pipeline.forward_s[chunk] = part.forward_s();
      pipeline.backward_s[chunk++] = part.backward_s();
    }
  }
  for (Transfer& transfer : pipeline.transfers) {
    transfer = {transfer.source, transfer.target};
  }
}

PlanPipeline pipeline_to_time(const Plan& plan) {
  PlanPipeline result = pipeline_of(plan, kMostPassesOfChains);
  if (!has_chain_timer(result.pipeline)) check_pipeline(result.pipeline, kMostPassesOfGraphs);
  return result;
}

double checked_time_s(double time_s) {
  if (!std::isfinite(time_s)) {
    throw Error("the plan's times add up to more than a number can hold",
                "check the layers' times and the number of micro-batches");
  }
  return time_s;
}

}  // namespace braid

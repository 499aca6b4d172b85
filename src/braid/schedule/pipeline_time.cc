#include "braid/schedule/pipeline_time.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/schedule/evaluate.h"

namespace braid {
namespace {

/// Position of a chunk in pipeline order, and back.
std::int64_t position_of(std::int64_t chunk_id, int pp, int vp) {
  return chunk_id % vp * pp + chunk_id / vp;
}

/// The chain that is_chain(pipeline) promises.
void fill_chain(const Pipeline& pipeline, ChainTimes& chain) {
  const std::size_t pp = at(pipeline.pp);
  const std::size_t vp = at(pipeline.vp);
  chain.schedule = pipeline.schedule;
  chain.pp = pipeline.pp;
  chain.vp = pipeline.vp;
  chain.num_micro_batches = pipeline.num_micro_batches;
  chain.forward_s.resize(pp * vp);
  chain.backward_s.resize(pp * vp);
  for (std::size_t s = 0; s < pp; ++s) {
    for (std::size_t c = 0; c < vp; ++c) {
      chain.forward_s[c * pp + s] = pipeline.forward_s[s * vp + c];
      chain.backward_s[c * pp + s] = pipeline.backward_s[s * vp + c];
    }
  }
  chain.hop_s.assign(pp * vp, 0);
  for (const Transfer& transfer : pipeline.transfers) {
    if (transfer.source / pipeline.vp == transfer.target / pipeline.vp) continue;
    chain.hop_s[at(position_of(transfer.source, pipeline.pp, pipeline.vp))] = transfer.time_s;
  }
  chain.sync.assign(pipeline.sync.begin(), pipeline.sync.end());
}

void check_times(std::span<const double> times, const char* what) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!(times[i] >= 0) || !std::isfinite(times[i])) {
      throw Error(std::string(what) + " of chunk " + std::to_string(i) +
                  " is negative or not a finite time");
    }
  }
}

/// Throws for rounds of different samples, and for more passes than that.
void check_passes(const Pipeline& pipeline, std::int64_t most_passes) {
  [[maybe_unused]] const std::int64_t chunks = std::int64_t{pipeline.pp} * pipeline.vp;
  const auto refuse = [&](std::int64_t most) {
    throw Error(std::to_string(most) + " micro-batches over " + std::to_string(chunks) +
                    " chunks are too many passes to simulate",
                "use larger micro-batches");
  };
  if (pipeline.rounds.empty()) {
    const std::int64_t m = pipeline.num_micro_batches;
    if (m > most_passes / chunks) refuse(m);
    return;
  }
  assert(pipeline.rounds.size() == at(pipeline.pp) && pipeline.vp == 1);
  std::int64_t passes = 0;
  std::int64_t samples = 0;
  for (std::size_t s = 0; s < pipeline.rounds.size(); ++s) {
    const StageRounds& round = pipeline.rounds[s];
    std::int64_t all = 0;
    if (round.samples < 1 || round.count < 1 ||
        __builtin_mul_overflow(round.samples, round.count, &all) || (s > 0 && all != samples)) {
      throw Error("stage " + std::to_string(s + 1) + " takes other samples than the first",
                  "let dp x micro-batch of every stage divide the global batch");
    }
    samples = all;
    passes = round.count > most_passes - passes ? most_passes + 1 : passes + round.count;
    if (passes > most_passes) refuse(round.count);
  }
}

}  // namespace

bool is_chain(const Pipeline& pipeline) {
  [[maybe_unused]] const std::int64_t chunks = std::int64_t{pipeline.pp} * pipeline.vp;
  if (static_cast<std::int64_t>(pipeline.transfers.size()) != chunks - 1) return false;
  // As many transfers as hops, each a hop, no two alike: every hop once.
  for (const Transfer& transfer : pipeline.transfers) {
    if (position_of(transfer.target, pipeline.pp, pipeline.vp) !=
        position_of(transfer.source, pipeline.pp, pipeline.vp) + 1) {
      return false;
    }
  }
  return true;
}

void check_pipeline(const Pipeline& pipeline, std::int64_t most_passes) {
  [[maybe_unused]] const std::int64_t chunks = std::int64_t{pipeline.pp} * pipeline.vp;
  const std::int64_t m = pipeline.num_micro_batches;
  if (pipeline.pp < 1 || pipeline.vp < 1) throw Error("the plan has no stages");
  if (m < 1) throw Error("the plan has no micro-batches");
  if (pipeline.schedule == ScheduleKind::one_f_one_b && pipeline.vp > 1) {
    throw Error("1f1b runs one chunk per stage, the plan has " + std::to_string(pipeline.vp),
                "use the interleaved schedule");
  }
  if (pipeline.schedule == ScheduleKind::interleaved && pipeline.vp > 1 && m % pipeline.pp != 0) {
    throw Error("interleaving needs a multiple of " + std::to_string(pipeline.pp) +
                    " micro-batches, the plan has " + std::to_string(m),
                "change the micro-batch size or the pipeline depth");
  }
  check_passes(pipeline, most_passes);
  assert(pipeline.warm_ups.empty() || pipeline.warm_ups.size() == at(pipeline.pp));
  assert(pipeline.passes.empty() || pipeline.passes.size() == at(pipeline.pp));
  assert(static_cast<std::int64_t>(pipeline.forward_s.size()) == chunks &&
         static_cast<std::int64_t>(pipeline.backward_s.size()) == chunks &&
         static_cast<std::int64_t>(pipeline.sync.size()) == pipeline.pp);
  check_times(pipeline.forward_s, "the forward pass");
  check_times(pipeline.backward_s, "the backward pass");
  for (const StageSync& sync : pipeline.sync) {
    assert(sync.buckets >= 1);
    check_times({{sync.gradient_sync_s, sync.parameter_sync_s, sync.optimizer_s,
                  sync.shared_gradient_sync_s, sync.earlier_gradient_sync_s, sync.earlier_late_s}},
                "the synchronisation");
  }
  for (const Transfer& transfer : pipeline.transfers) {
    assert(transfer.source >= 0 && transfer.source < chunks && transfer.target >= 0 &&
           transfer.target < chunks && transfer.source != transfer.target);
    check_times({{transfer.time_s, transfer.back_s()}}, "the transfer");
  }
}

bool has_chain_timer(const Pipeline& pipeline) {
  if (pipeline.vp > 1 && pipeline.schedule != ScheduleKind::interleaved) return false;
  if (!pipeline.rounds.empty() || !pipeline.warm_ups.empty() || !pipeline.passes.empty()) {
    return false;
  }
  const bool even =
      std::all_of(pipeline.transfers.begin(), pipeline.transfers.end(),
                  [](const Transfer& transfer) { return transfer.back_s() == transfer.time_s; });
  return even && is_chain(pipeline);
}

double pipeline_time_s(const Pipeline& pipeline, PipelineWorkspace& workspace) {
  if (!has_chain_timer(pipeline)) {
    const double time_s = graph_time_s(pipeline, workspace.graph);
    if (time_s >= 0) {
      workspace.chain.stages.swap(workspace.graph.stages);
      return time_s;
    }
    Evaluation evaluation = evaluate(pipeline, schedule_of(pipeline), Record::times);
    workspace.chain.stages = std::move(evaluation.stages);
    return evaluation.iteration_time_s;
  }
  fill_chain(pipeline, workspace.chain_times);
  return chain_time_s(workspace.chain_times, workspace.chain);
}

double pipeline_time_s(ScheduleKind schedule, std::span<const StageLoad> loads,
                       std::span<const EdgeLoad> edges, std::int64_t num_micro_batches,
                       PipelineWorkspace& workspace) {
  fill_pipeline(schedule, loads, edges, num_micro_batches, workspace.pipeline);
  return pipeline_time_s(workspace.pipeline, workspace);
}

}  // namespace braid

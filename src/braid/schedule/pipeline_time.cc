#include "braid/schedule/pipeline_time.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

#include "braid/base/error.h"
#include "braid/schedule/evaluate.h"

namespace braid {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Position of a chunk in pipeline order, and back.
std::int64_t position_of(std::int64_t chunk_id, int pp, int vp) {
  return chunk_id % vp * pp + chunk_id / vp;
}

/// State of a chain that is timed pass by pass. Every array is indexed by stage; a value that
/// arrives at a stage is used by its next pass in that direction, so one slot holds it.
class ChainTimer {
 public:
  ChainTimer(const Pipeline& pipeline, PipelineWorkspace& w)
      : p_(pipeline), w_(w), stages_(pipeline.pp) {
    const std::size_t pp = at(p_.pp);
    const std::size_t chunks = pp * at(p_.vp);
    w_.device.assign(pp, 0);
    w_.link.assign(2 * pp, 0);
    w_.arrived_forward.assign(pp, 0);
    w_.arrived_backward.assign(pp, 0);
    w_.hop_forward.assign(chunks, 0);
    w_.hop_backward.assign(chunks, 0);
    for (const Transfer& transfer : p_.transfers) {
      if (transfer.source / p_.vp == transfer.target / p_.vp) continue;
      w_.hop_forward[at(transfer.source)] = transfer.time_s;
      w_.hop_backward[at(transfer.target)] = transfer.time_s;
    }
    w_.ready.resize(pp);
    w_.stages.assign(pp, {});
    for (std::size_t s = 0; s < pp; ++s) {
      w_.ready[s] = parameters_ready_s(p_.sync[s], p_.forward_s[s * at(p_.vp)]);
    }
  }

  void run_gpipe() {
    const std::int64_t m = p_.num_micro_batches;
    for (std::int64_t k = 0; k < m; ++k) forward_sweep(k == 0);
    for (std::int64_t k = 0; k < m; ++k) {
      double arrived = 0;
      for (int s = stages_ - 1; s >= 0; --s) arrived = backward(s, s, arrived, backward_link(s));
    }
  }

  /// Round r runs forward pass r of all stages, and before it the backward pass r - pp + s of each
  /// stage s: the one that precedes it on the device. What a backward pass hands on is used in the
  /// next round.
  void run_1f1b() {
    const std::int64_t m = p_.num_micro_batches;
    std::vector<double>& arrived = w_.arrived_backward;
    for (std::int64_t round = 0; round < m + stages_; ++round) {
      const std::int64_t first = std::max<std::int64_t>(0, stages_ - round);
      const std::int64_t last = std::min<std::int64_t>(stages_, m + stages_ - round);
      for (std::int64_t s = first; s < last; ++s) {
        const double next = backward(s, s, arrived[at(s)], backward_link(s));
        if (s > 0) arrived[at(s - 1)] = next;
      }
      if (round < m) forward_sweep(round == 0);
    }
  }

  /// Round r runs forward pass r - s of each stage s and then the backward pass that follows it
  /// there, r - (vp + 1)·pp + 2 + s: every pass then needs only results of the round before.
  void run_interleaved() {
    const std::int64_t passes = p_.num_micro_batches * p_.vp;
    const std::int64_t lag = std::int64_t{p_.vp + 1} * p_.pp - 2;
    for (auto* counter : {&w_.forward_step, &w_.forward_chunk, &w_.backward_step}) {
      counter->assign(at(stages_), 0);
    }
    w_.backward_chunk.assign(at(stages_), p_.vp - 1);
    for (std::int64_t round = 0; round < passes + lag; ++round) {
      interleaved_forwards(round, passes);
      interleaved_backwards(round - lag, passes);
    }
  }

  /// Adds what follows the passes; the iteration's time.
  double finish() {
    double time_s = 0;
    for (std::size_t s = 0; s < at(stages_); ++s) {
      StageTiming& stage = w_.stages[s];
      stage.passes_end_s = w_.device[s];
      stage.end_s = stage.passes_end_s + tail_s(p_.sync[s], p_.backward_s[s * at(p_.vp)]);
      time_s = std::max(time_s, stage.end_s);
    }
    return time_s;
  }

 private:
  // Links are one per ordered pair of stages: with two stages, the hop that wraps around to the
  // next chunk shares the way with the gradients.
  std::int64_t forward_link(std::int64_t s) const { return s; }
  std::int64_t backward_link(std::int64_t s) const {
    if (stages_ == 2) return s;
    return stages_ + s;
  }

  /// Runs a pass; the time at which its result reaches the neighbour.
  double forward(std::int64_t s, std::int64_t chunk, double arrived) {
    double& device = w_.device[at(s)];
    // The parameters' arrival can only delay the first pass: later ones end after it.
    device = std::max(std::max(device, arrived) + p_.forward_s[at(chunk)], w_.ready[at(s)]);
    double& link = w_.link[at(forward_link(s))];
    link = std::max(link, device) + w_.hop_forward[at(chunk)];
    return link;
  }
  double first_forward(std::int64_t s, std::int64_t chunk, double arrived) {
    const double unhindered = std::max(w_.device[at(s)], arrived) + p_.forward_s[at(chunk)];
    const double next = forward(s, chunk, arrived);
    w_.stages[at(s)].parameter_wait_s = w_.device[at(s)] - unhindered;
    return next;
  }
  double backward(std::int64_t s, std::int64_t chunk, double arrived, std::int64_t link_id) {
    double& device = w_.device[at(s)];
    device = std::max(device, arrived) + p_.backward_s[at(chunk)];
    double& link = w_.link[at(link_id)];
    link = std::max(link, device) + w_.hop_backward[at(chunk)];
    return link;
  }

  void forward_sweep(bool first) {
    double arrived = 0;
    for (int s = 0; s < stages_; ++s) {
      arrived = first ? first_forward(s, s, arrived) : forward(s, s, arrived);
    }
  }

  void interleaved_forwards(std::int64_t round, std::int64_t passes) {
    const std::int64_t first = std::max<std::int64_t>(0, round - passes + 1);
    const std::int64_t last = std::min<std::int64_t>(stages_ - 1, round);
    double wrapped = w_.arrived_forward[0];
    for (std::int64_t s = last; s >= first; --s) {
      std::int32_t& chunk = w_.forward_chunk[at(s)];
      const double arrived = s == 0 && chunk == 0 ? 0 : w_.arrived_forward[at(s)];
      const std::int64_t id = s * p_.vp + chunk;
      const double next = round == s ? first_forward(s, id, arrived) : forward(s, id, arrived);
      if (s + 1 < stages_) {
        w_.arrived_forward[at(s + 1)] = next;
      } else {
        wrapped = next;
      }
      if (++w_.forward_step[at(s)] == p_.pp) {
        w_.forward_step[at(s)] = 0;
        chunk = chunk + 1 == p_.vp ? 0 : chunk + 1;
      }
    }
    w_.arrived_forward[0] = wrapped;
  }

  void interleaved_backwards(std::int64_t offset, std::int64_t passes) {
    const std::int64_t first = std::max<std::int64_t>(0, -offset);
    const std::int64_t last = std::min<std::int64_t>(stages_, passes - offset);
    double wrapped = w_.arrived_backward[at(stages_ - 1)];
    for (std::int64_t s = first; s < last; ++s) {
      std::int32_t& chunk = w_.backward_chunk[at(s)];
      const bool source = s == stages_ - 1 && chunk == p_.vp - 1;
      const double arrived = source ? 0 : w_.arrived_backward[at(s)];
      const double next = backward(s, s * p_.vp + chunk, arrived, backward_link(s));
      if (s > 0) {
        w_.arrived_backward[at(s - 1)] = next;
      } else {
        wrapped = next;
      }
      if (++w_.backward_step[at(s)] == p_.pp) {
        w_.backward_step[at(s)] = 0;
        chunk = chunk == 0 ? p_.vp - 1 : chunk - 1;
      }
    }
    w_.arrived_backward[at(stages_ - 1)] = wrapped;
  }

  const Pipeline& p_;
  PipelineWorkspace& w_;
  const std::int64_t stages_;
};

void check_times(std::span<const double> times, const char* what) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!(times[i] >= 0) || !std::isfinite(times[i])) {
      throw Error(std::string(what) + " of chunk " + std::to_string(i) +
                  " is negative or not a finite time");
    }
  }
}

}  // namespace

bool is_chain(const Pipeline& pipeline) {
  const std::int64_t chunks = std::int64_t{pipeline.pp} * pipeline.vp;
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
  const std::int64_t chunks = std::int64_t{pipeline.pp} * pipeline.vp;
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
  if (m > most_passes / chunks) {
    throw Error(std::to_string(m) + " micro-batches over " + std::to_string(chunks) +
                    " chunks are too many passes to simulate",
                "use larger micro-batches");
  }
  assert(static_cast<std::int64_t>(pipeline.forward_s.size()) == chunks &&
         static_cast<std::int64_t>(pipeline.backward_s.size()) == chunks &&
         static_cast<std::int64_t>(pipeline.sync.size()) == pipeline.pp);
  check_times(pipeline.forward_s, "the forward pass");
  check_times(pipeline.backward_s, "the backward pass");
  for (const StageSync& sync : pipeline.sync) {
    assert(sync.buckets >= 1);
    check_times({{sync.gradient_sync_s, sync.parameter_sync_s, sync.optimizer_s}},
                "the synchronisation");
  }
  for (const Transfer& transfer : pipeline.transfers) {
    assert(transfer.source >= 0 && transfer.source < chunks && transfer.target >= 0 &&
           transfer.target < chunks && transfer.source != transfer.target);
    check_times({{transfer.time_s}}, "the transfer");
  }
}

bool has_chain_timer(const Pipeline& pipeline) {
  return (pipeline.vp == 1 || pipeline.schedule == ScheduleKind::interleaved) && is_chain(pipeline);
}

double pipeline_time_s(const Pipeline& pipeline, PipelineWorkspace& workspace) {
  if (!has_chain_timer(pipeline)) {
    Evaluation evaluation = evaluate(pipeline, schedule_of(pipeline), Record::times);
    workspace.stages = std::move(evaluation.stages);
    return evaluation.iteration_time_s;
  }
  ChainTimer timer(pipeline, workspace);
  if (pipeline.schedule == ScheduleKind::gpipe) {
    timer.run_gpipe();
  } else if (pipeline.vp == 1) {
    timer.run_1f1b();
  } else {
    timer.run_interleaved();
  }
  return timer.finish();
}

double pipeline_time_s(ScheduleKind schedule, std::span<const StageLoad> loads,
                       std::span<const EdgeLoad> edges, std::int64_t num_micro_batches,
                       PipelineWorkspace& workspace) {
  fill_pipeline(schedule, loads, edges, num_micro_batches, workspace.pipeline);
  return pipeline_time_s(workspace.pipeline, workspace);
}

}  // namespace braid

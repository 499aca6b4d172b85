#include "braid/schedule/evaluate.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/schedule/sync_events.h"

namespace braid {
namespace {

/// One way of a transfer, as seen from the chunk whose pass starts it.
struct Hop {
  std::int32_t target = 0;  ///< Chunk.
  std::int32_t link = -1;   ///< -1: within a stage.
  double time_s = 0;
  double held_s = 0;  ///< At the end of the pass.
};

/// Hops grouped by the chunk they start from.
class HopTable {
 public:
  HopTable(const Pipeline& pipeline, bool backward,
           std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t>& links)
      : first_(pipeline.forward_s.size() + 1, 0), hops_(pipeline.transfers.size()) {
    const auto ends = [&](const Transfer& transfer) {
      return backward ? std::pair{transfer.target, transfer.source}
                      : std::pair{transfer.source, transfer.target};
    };
    for (const Transfer& transfer : pipeline.transfers) ++first_[at(ends(transfer).first) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (const Transfer& transfer : pipeline.transfers) {
      const auto [from, to] = ends(transfer);
      const std::pair stages{from / pipeline.vp, to / pipeline.vp};
      Hop hop{to, -1, 0, 0};
      if (stages.first != stages.second) {
        hop.link = links.try_emplace(stages, static_cast<std::int32_t>(links.size())).first->second;
        hop.time_s = backward ? transfer.back_s() : transfer.time_s;
        hop.held_s = backward ? transfer.backward_held_s : transfer.held_s;
      }
      hops_[next[at(from)]++] = hop;
    }
  }

  std::span<const Hop> from(std::int64_t chunk) const {
    return std::span(hops_).subspan(first_[at(chunk)], first_[at(chunk) + 1] - first_[at(chunk)]);
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<Hop> hops_;
};

/// Runs stages as far as they get, waking those whose next pass has got its last input. Transfers
/// on a link all start on one device, so that their order is that of its passes and no queue of
/// events is needed.
class Evaluator {
 public:
  Evaluator(const Pipeline& pipeline, const Schedule& schedule, Record record)
      : p_(pipeline),
        schedule_(schedule),
        record_(record),
        forward_hops_(pipeline, false, links_),
        backward_hops_(pipeline, true, links_),
        link_free_(links_.size(), 0),
        stages_(at(pipeline.pp)) {
    const auto chunks = static_cast<std::int64_t>(p_.forward_s.size());
    std::size_t passes = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      first_pass_.push_back(passes);
      passes += at(micro_batches_of(chunk));
    }
    inputs_.resize(2 * passes);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::int64_t k = 0; k < micro_batches_of(chunk); ++k) {
        // A backward pass also waits for its own forward pass.
        ++inputs_[task_id(TaskKind::backward, chunk, k)].missing;
      }
      for (const Hop& hop : forward_hops_.from(chunk)) expect(TaskKind::forward, chunk, hop.target);
      for (const Hop& hop : backward_hops_.from(chunk)) {
        expect(TaskKind::backward, chunk, hop.target);
      }
    }
  }

  Evaluation run() {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      assert(schedule_.order[s].size() == 2 * at(p_.vp) * at(p_.micro_batches_of(s)));
      awake_.push_back(s);
    }
    while (!awake_.empty()) {
      const std::size_t stage = awake_.back();
      awake_.pop_back();
      advance(stage);
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s].next < schedule_.order[s].size()) fail_stuck(s);
    }
    finish();
    return std::move(result_);
  }

 private:
  struct Inputs {
    double ready_s = 0;
    std::int32_t missing = 0;
  };
  struct StageState {
    std::size_t next = 0;
    double free_s = 0;
    double last_backward_s = 0;
    double parameter_wait_s = 0;
    bool started = false;
  };

  std::int64_t micro_batches_of(std::int64_t chunk) const {
    return p_.micro_batches_of(at(chunk / p_.vp));
  }

  std::size_t task_id(TaskKind kind, std::int64_t chunk, std::int64_t micro_batch) const {
    const std::size_t row =
        first_pass_[at(chunk)] + (kind == TaskKind::forward ? 0 : inputs_.size() / 2);
    return row + at(micro_batch);
  }

  /// Calls visit(k) for the micro-batches of chunk `to` that share samples with micro-batch
  /// `micro_batch` of chunk `from`.
  template <typename Visit>
  void for_each_sharing(std::int64_t from, std::int64_t micro_batch, std::int64_t to,
                        const Visit& visit) const {
    if (p_.rounds.empty()) {
      visit(micro_batch);
      return;
    }
    // vp = 1: chunks are stages.
    const std::int64_t samples = p_.rounds[at(from)].samples;
    const std::int64_t others = p_.rounds[at(to)].samples;
    const std::int64_t last = ((micro_batch + 1) * samples - 1) / others;
    for (std::int64_t k = micro_batch * samples / others; k <= last; ++k) visit(k);
  }

  /// Counts what chunk `to` will get from chunk `from`.
  void expect(TaskKind kind, std::int64_t from, std::int64_t to) {
    for (std::int64_t k = 0; k < micro_batches_of(from); ++k) {
      for_each_sharing(from, k, to,
                       [&](std::int64_t other) { ++inputs_[task_id(kind, to, other)].missing; });
    }
  }

  void advance(std::size_t stage) {
    StageState& state = stages_[stage];
    const std::vector<PassTask>& order = schedule_.order[stage];
    for (; state.next < order.size(); ++state.next) {
      const PassTask& task = order[state.next];
      const std::int64_t chunk = static_cast<std::int64_t>(stage) * p_.vp + task.chunk;
      const Inputs& inputs = inputs_[task_id(task.kind, chunk, task.micro_batch)];
      if (inputs.missing > 0) return;
      run_pass(static_cast<std::int32_t>(stage), chunk, task, inputs.ready_s);
    }
  }

  void run_pass(std::int32_t stage, std::int64_t chunk, const PassTask& task, double ready_s) {
    StageState& state = stages_[at(stage)];
    const bool forward = task.kind == TaskKind::forward;
    const double duration_s = (forward ? p_.forward_s : p_.backward_s)[at(chunk)];
    const double start_s = std::max(state.free_s, ready_s);
    double end_s = start_s + duration_s;
    if (forward && !state.started) {
      state.started = true;
      const double waited_s = std::max(end_s, parameters_ready_s(p_.sync[at(stage)], duration_s));
      state.parameter_wait_s = waited_s - end_s;
      end_s = waited_s;
    }
    state.free_s = end_s;
    if (!forward) state.last_backward_s = duration_s;
    if (record_ == Record::events) record_pass(stage, chunk, task, start_s, end_s);
    if (forward) arrive(TaskKind::backward, chunk, task.micro_batch, end_s);
    for (const Hop& hop : (forward ? forward_hops_ : backward_hops_).from(chunk)) {
      double arrived_s = end_s;
      if (hop.link >= 0) {
        double& link_free_s = link_free_[at(hop.link)];
        const double sent_s = std::max(link_free_s, end_s);
        arrived_s = link_free_s = sent_s + hop.time_s;
        if (record_ == Record::events && hop.time_s > 0) {
          record_send(stage, chunk, task, hop, sent_s, arrived_s);
        }
      }
      for_each_sharing(chunk, task.micro_batch, hop.target, [&](std::int64_t other) {
        arrive(task.kind, hop.target, other, arrived_s);
      });
    }
  }

  /// The pass, and behind it the sends that it waits for.
  void record_pass(std::int32_t stage, std::int64_t chunk, const PassTask& task, double start_s,
                   double end_s) {
    const bool forward = task.kind == TaskKind::forward;
    const std::span<const Hop> hops = (forward ? forward_hops_ : backward_hops_).from(chunk);
    double held_s = 0;
    for (const Hop& hop : hops) held_s += hop.held_s;
    double sent_s = end_s - held_s;
    result_.events.push_back({start_s, sent_s, forward ? EventKind::forward : EventKind::backward,
                              stage, task.chunk, -1, task.micro_batch});
    for (const Hop& hop : hops) {
      if (hop.held_s <= 0) continue;
      record_send(stage, chunk, task, hop, sent_s, std::min(end_s, sent_s + hop.held_s));
      sent_s += hop.held_s;
    }
  }

  void record_send(std::int32_t stage, std::int64_t chunk, const PassTask& task, const Hop& hop,
                   double sent_s, double arrived_s) {
    std::int64_t receiver = -1;
    for_each_sharing(chunk, task.micro_batch, hop.target, [&](std::int64_t other) {
      if (receiver < 0) receiver = other;
    });
    result_.events.push_back({sent_s, arrived_s, EventKind::send, stage, task.chunk,
                              hop.target / p_.vp, task.micro_batch, task.kind == TaskKind::backward,
                              hop.target % p_.vp, receiver});
  }

  void arrive(TaskKind kind, std::int64_t chunk, std::int64_t micro_batch, double time_s) {
    Inputs& inputs = inputs_[task_id(kind, chunk, micro_batch)];
    inputs.ready_s = std::max(inputs.ready_s, time_s);
    if (--inputs.missing > 0) return;
    const std::size_t stage = at(chunk / p_.vp);
    const StageState& state = stages_[stage];
    if (state.next >= schedule_.order[stage].size()) return;
    const PassTask& next = schedule_.order[stage][state.next];
    if (next == PassTask{kind, static_cast<std::int32_t>(chunk % p_.vp), micro_batch}) {
      awake_.push_back(stage);
    }
  }

  void finish() {
    result_.stages.resize(stages_.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const StageState& state = stages_[s];
      StageTiming& timing = result_.stages[s];
      timing.passes_end_s = state.free_s;
      timing.parameter_wait_s = state.parameter_wait_s;
      timing.end_s = state.free_s + tail_s(p_.sync[s], state.last_backward_s);
      result_.iteration_time_s = std::max(result_.iteration_time_s, timing.end_s);
      if (record_ == Record::events) record_sync(static_cast<std::int32_t>(s), timing);
    }
    sort_events(result_.events);
  }

  void record_sync(std::int32_t stage, const StageTiming& timing) {
    const StageSync& sync = p_.sync[at(stage)];
    const StageState& state = stages_[at(stage)];
    if (sync.parameter_sync_s > 0) {
      result_.events.push_back(
          {0, sync.parameter_sync_s, EventKind::parameter_sync, stage, 0, -1, 0});
    }
    append_sync_events(sync, stage, {state.last_backward_s, state.free_s, timing.end_s},
                       result_.events);
  }

  [[noreturn]] void fail_stuck(std::size_t stage) const {
    const PassTask& task = schedule_.order[stage][stages_[stage].next];
    throw Error("stage " + std::to_string(stage + 1) + " waits for ever before the " +
                    (task.kind == TaskKind::forward ? "forward" : "backward") +
                    " pass of micro-batch " + std::to_string(task.micro_batch) + ", chunk " +
                    std::to_string(task.chunk),
                "the order of passes contradicts the flow of data between the stages");
  }

  const Pipeline& p_;
  const Schedule& schedule_;
  const Record record_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> links_;
  HopTable forward_hops_, backward_hops_;
  std::vector<std::size_t> first_pass_;  ///< [chunk], among the forward passes.
  std::vector<Inputs> inputs_;           ///< By task_id.
  std::vector<double> link_free_;
  std::vector<StageState> stages_;
  std::vector<std::size_t> awake_;
  Evaluation result_;
};

}  // namespace

Schedule schedule_of(const Pipeline& pipeline) {
  if (pipeline.vp > 1) {
    return make_schedule(pipeline.schedule, pipeline.pp, pipeline.vp, pipeline.num_micro_batches);
  }
  std::vector<ChunkEdge> edges;
  edges.reserve(pipeline.transfers.size());
  for (const Transfer& transfer : pipeline.transfers) {
    edges.push_back({transfer.source, 0, transfer.target, 0, 0});
  }
  if (!pipeline.warm_ups.empty()) {
    const std::vector<StageRounds> like(at(pipeline.pp), {1, pipeline.num_micro_batches});
    Schedule schedule = make_graph_schedule(
        pipeline.schedule, pipeline.rounds.empty() ? like : pipeline.rounds, pipeline.warm_ups);
    for (std::size_t s = 0; s < pipeline.passes.size(); ++s) {
      if (!pipeline.passes[s].empty()) schedule.order[s] = passes_of(pipeline.passes[s]);
    }
    return schedule;
  }
  if (!pipeline.rounds.empty()) {
    return make_graph_schedule(pipeline.schedule, pipeline.rounds,
                               forwards_first(pipeline.schedule, pipeline.rounds, edges));
  }
  return make_graph_schedule(pipeline.schedule, stage_depths(pipeline.pp, edges),
                             pipeline.num_micro_batches);
}

Evaluation evaluate(const Pipeline& pipeline, const Schedule& schedule, Record record) {
  return Evaluator(pipeline, schedule, record).run();
}

}  // namespace braid

#include "braid/schedule/evaluate.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/schedule/order_run.h"
#include "braid/schedule/sync_events.h"

namespace braid {
namespace {

/// The pipeline's chunks as stages of a graph, with the times of activations.
TimedGraph graph_of(const Pipeline& pipeline, const WorkOrder& order) {
  TimedGraph timed;
  StageGraph& graph = timed.graph;
  graph.batch = pipeline.num_micro_batches;
  if (!pipeline.rounds.empty()) {
    graph.batch = pipeline.rounds.front().samples * pipeline.rounds.front().count;
  }
  const std::size_t chunks = pipeline.forward_s.size();
  graph.stages.reserve(chunks);
  timed.costs.resize(chunks);
  for (std::size_t c = 0; c < chunks; ++c) {
    const auto stage = static_cast<std::int32_t>(c) / pipeline.vp;
    graph.stages.push_back(
        {stage, pipeline.rounds.empty() ? 1 : pipeline.rounds[at(stage)].samples});
    timed.costs[c].forward_s = pipeline.forward_s[c];
    timed.costs[c].input_gradient_s = pipeline.backward_s[c];
  }
  graph.edges.reserve(pipeline.transfers.size());
  timed.transfer_s.reserve(pipeline.transfers.size());
  for (const Transfer& transfer : pipeline.transfers) {
    graph.edges.push_back({transfer.source, transfer.target});
    timed.transfer_s.push_back(transfer.time_s);
  }
  for (std::size_t s = 0; s < order.devices.size(); ++s) {
    // A stage's parameters hold up its first pass, whichever chunk that is of.
    const std::vector<Work>& works = order.devices[s];
    const auto first = std::find_if(works.begin(), works.end(), [](const Work& work) {
      return work.kind == WorkKind::forward;
    });
    if (first == works.end()) continue;
    StageCost& cost = timed.costs[at(first->stage)];
    cost.parameters_s = parameters_ready_s(pipeline.sync[s], cost.forward_s);
  }
  return timed;
}

/// Makes events of passes and of what they send.
class EventRecorder : public RunObserver {
 public:
  EventRecorder(const Pipeline& pipeline, const StageGraph& graph, std::vector<Event>& events)
      : p_(pipeline),
        graph_(graph),
        outgoing_(edges_by_source(graph)),
        incoming_(edges_by_target(graph)),
        events_(events) {
    // Of every pass, and of every transfer.
    std::int64_t most = 0;
    for (std::size_t s = 0; s < graph.stages.size(); ++s) {
      const auto edges = std::ssize(outgoing_.of(s)) + std::ssize(incoming_.of(s));
      most += (2 + edges) * graph.micro_batches(s);
    }
    events.reserve(at(most));
  }

  /// The pass, and behind it the sends that it waits for.
  void worked(std::size_t device, const Work& work, double start_s, double end_s) override {
    const bool backward = work.kind == WorkKind::backward;
    const std::span<const std::size_t> edges =
        (backward ? incoming_ : outgoing_).of(at(work.stage));
    const auto held_s = [&](std::size_t edge) {
      const Transfer& transfer = p_.transfers[edge];
      return backward ? transfer.backward_held_s : transfer.held_s;
    };
    double all_held_s = 0;
    for (const std::size_t edge : edges) all_held_s += held_s(edge);
    double sent_s = end_s - all_held_s;
    events_.push_back({start_s, sent_s, backward ? EventKind::backward : EventKind::forward,
                       static_cast<std::int32_t>(device), work.stage % p_.vp, -1, work.index});
    for (const std::size_t edge : edges) {
      if (held_s(edge) <= 0) continue;
      add_send({sent_s, std::min(end_s, sent_s + held_s(edge)), static_cast<std::int32_t>(edge),
                backward, work.index});
      sent_s += held_s(edge);
    }
  }

  void sent(const PartEvent& part) override {
    const Transfer& transfer = p_.transfers[at(part.edge)];
    if ((part.backward ? transfer.back_s() : transfer.time_s) > 0) add_send(part);
  }

 private:
  void add_send(const PartEvent& part) {
    const Transfer& transfer = p_.transfers[at(part.edge)];
    const std::int32_t from = part.backward ? transfer.target : transfer.source;
    const std::int32_t to = part.backward ? transfer.source : transfer.target;
    const GraphStage& source = graph_.stages[at(from)];
    const GraphStage& target = graph_.stages[at(to)];
    events_.push_back({part.start_s, part.end_s, EventKind::send, source.device, from % p_.vp,
                       target.device, part.part, part.backward, to % p_.vp,
                       first_sharing(part.part, source.micro_batch, target.micro_batch)});
  }

  const Pipeline& p_;
  const StageGraph& graph_;
  const EdgeGroups outgoing_, incoming_;
  std::vector<Event>& events_;
};

/// What the stage's last backward pass takes, 0 if it has none.
double last_backward_s(const TimedGraph& timed, const std::vector<Work>& works) {
  const auto last = std::find_if(works.rbegin(), works.rend(),
                                 [](const Work& work) { return work.kind == WorkKind::backward; });
  return last == works.rend() ? 0 : timed.costs[at(last->stage)].backward_s();
}

void append_sync(const StageSync& sync, std::int32_t stage, const StageEnd& end,
                 std::vector<Event>& events) {
  if (sync.parameter_sync_s > 0) {
    events.push_back({0, sync.parameter_sync_s, EventKind::parameter_sync, stage, 0, -1, 0});
  }
  append_sync_events(sync, stage, end, events);
}

}  // namespace

WorkOrder schedule_of(const Pipeline& pipeline) {
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
    WorkOrder order = make_graph_schedule(
        pipeline.schedule, pipeline.rounds.empty() ? like : pipeline.rounds, pipeline.warm_ups);
    for (std::size_t s = 0; s < pipeline.passes.size(); ++s) {
      if (!pipeline.passes[s].empty())
        order.devices[s] = passes_of(static_cast<std::int32_t>(s), pipeline.passes[s]);
    }
    return order;
  }
  if (!pipeline.rounds.empty()) {
    return make_graph_schedule(pipeline.schedule, pipeline.rounds,
                               forwards_first(pipeline.schedule, pipeline.rounds, edges));
  }
  return make_graph_schedule(pipeline.schedule, stage_depths(pipeline.pp, edges),
                             pipeline.num_micro_batches);
}

Evaluation evaluate(const Pipeline& pipeline, const WorkOrder& order, Record record) {
  const TimedGraph timed = graph_of(pipeline, order);
  std::vector<double> backward_s;
  backward_s.reserve(pipeline.transfers.size());
  for (const Transfer& transfer : pipeline.transfers) backward_s.push_back(transfer.back_s());
  RunSettings form{.whole_micro_batches = true, .backward_transfer_s = backward_s};
  Evaluation result;
  std::optional<EventRecorder> recorder;
  if (record == Record::events) {
    recorder.emplace(pipeline, timed.graph, result.events);
    form.observer = &*recorder;
  }
  const std::vector<DeviceProgress> run = run_order(timed, order, form);
  if (const Work* work = stuck_at(order, run)) {
    throw_stuck(work->stage / pipeline.vp + 1, *work,
                ", chunk " + std::to_string(work->stage % pipeline.vp));
  }
  result.stages.resize(run.size());
  for (std::size_t s = 0; s < run.size(); ++s) {
    const StageSync& sync = pipeline.sync[s];
    const double last_s = last_backward_s(timed, order.devices[s]);
    StageTiming& timing = result.stages[s];
    timing.passes_end_s = run[s].free_s;
    timing.parameter_wait_s = run[s].parameter_wait_s;
    timing.end_s = run[s].free_s + tail_s(sync, last_s);
    result.iteration_time_s = std::max(result.iteration_time_s, timing.end_s);
    if (record == Record::events) {
      append_sync(sync, static_cast<std::int32_t>(s), {last_s, timing.passes_end_s, timing.end_s},
                  result.events);
    }
  }
  sort_events(result.events);
  return result;
}

}  // namespace braid

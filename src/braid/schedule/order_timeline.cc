#include "braid/schedule/order_timeline.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "braid/base/index.h"
#include "braid/schedule/sync_events.h"

namespace braid {
namespace {

EventKind kind_of(WorkKind kind) {
  switch (kind) {
    case WorkKind::forward:
      return EventKind::forward;
    case WorkKind::backward:
      return EventKind::backward;
    case WorkKind::input_gradient:
      return EventKind::input_gradient;
    case WorkKind::weight_gradient:
      return EventKind::weight_gradient;
    case WorkKind::reduce_gradients:
      return EventKind::gradient_sync;
    case WorkKind::optimizer:
      break;
  }
  return EventKind::optimizer;
}

void append_sample(std::vector<MemorySample>& samples, double time_s, double bytes) {
  MemorySample& last = samples.back();
  if (last.bytes == bytes) return;
  // A fall at the moment of a rise is that of a pass that takes no time: its peak stays.
  if (last.time_s == time_s && last.bytes < bytes) {
    last.bytes = bytes;
  } else {
    samples.push_back({time_s, bytes});
  }
}

class Maker {
 public:
  Maker(const TimedGraph& timed, const OrderTiming& timing, std::span<const StageLoad> loads)
      : timed_(timed), graph_(timed.graph), timing_(timing), loads_(loads) {
    assert(timing.work.size() == loads.size());
  }

  Timeline make() {
    result_.rounds = graph_.rounds;
    result_.iteration_time_s = result_.end_s = timing_.time_s;
    result_.memory.resize(loads_.size());
    for (std::size_t d = 0; d < loads_.size(); ++d) {
      const double gather_s = loads_[d].sync.parameter_sync_s;
      if (gather_s > 0) {
        result_.events.push_back(
            {0, gather_s, EventKind::parameter_sync, static_cast<std::int32_t>(d), 0, -1, 0});
      }
      append_work(d);
    }
    for (const PartEvent& part : timing_.parts) append_part(part);
    sort_events(result_.events);
    return std::move(result_);
  }

 private:
  std::int32_t device_of(std::int32_t stage) const { return graph_.stages[at(stage)].device; }
  std::int32_t chunk_of(std::int32_t stage) const {
    return stage / static_cast<std::int32_t>(loads_.size());
  }
  std::int64_t round_of(std::int32_t stage, std::int64_t micro_batch) const {
    return micro_batch / graph_.round_micro_batches(at(stage));
  }

  void append_work(std::size_t device) {
    std::vector<MemorySample>& samples = result_.memory[device];
    const std::vector<WorkEvent>& works = timing_.work[device];
    double fixed_bytes = 0;
    for (std::size_t s = 0; s < graph_.stages.size(); ++s) {
      if (at(graph_.stages[s].device) == device) fixed_bytes += timed_.costs[s].fixed_bytes;
    }
    samples.push_back({0, fixed_bytes});
    for (const WorkEvent& event : works) {
      const Work& work = event.work;
      const std::int32_t chunk = chunk_of(work.stage);
      if (work.kind == WorkKind::reduce_gradients) {
        if (chunk == 0) append_update(event);
        continue;
      }
      if (work.kind == WorkKind::optimizer) continue;
      append_sample(samples, event.start_s, event.bytes);
      append_sample(samples, event.end_s, event.left_bytes);
      Event pass{event.start_s, event.end_s, kind_of(work.kind), device_of(work.stage),
                 chunk,         -1,          work.index};
      pass.round = round_of(work.stage, work.index);
      result_.events.push_back(pass);
    }
  }

  /// A round's reduction with the optimizer step that follows it.
  void append_update(const WorkEvent& reduction) {
    const std::int32_t device = device_of(reduction.work.stage);
    const StageCost& cost = timed_.costs[at(reduction.work.stage)];
    const std::size_t first = result_.events.size();
    append_sync_events(loads_[at(device)].sync, device,
                       {cost.backward_s(), reduction.start_s, reduction.end_s + cost.optimizer_s},
                       result_.events);
    for (std::size_t i = first; i < result_.events.size(); ++i) {
      result_.events[i].round = reduction.work.index;
    }
  }

  void append_part(const PartEvent& part) {
    if (part.end_s == part.start_s) return;
    const StageEdge& edge = graph_.edges[at(part.edge)];
    const std::int32_t from = part.backward ? edge.target : edge.source;
    const std::int32_t to = part.backward ? edge.source : edge.target;
    const std::int64_t sent = graph_.stages[at(from)].micro_batch;
    const std::int64_t received = graph_.stages[at(to)].micro_batch;
    const std::int64_t samples = std::min(sent, received);
    Event event{part.start_s,   part.end_s,    EventKind::send,           device_of(from),
                chunk_of(from), device_of(to), part.part * samples / sent};
    event.gradients = part.backward;
    event.peer_chunk = chunk_of(to);
    event.peer_micro_batch = part.part * samples / received;
    event.round = round_of(from, event.micro_batch);
    result_.events.push_back(event);
  }

  const TimedGraph& timed_;
  const StageGraph& graph_;
  const OrderTiming& timing_;
  const std::span<const StageLoad> loads_;
  Timeline result_;
};

}  // namespace

Timeline timeline_of(const TimedGraph& timed, const OrderTiming& timing,
                     std::span<const StageLoad> loads) {
  return Maker(timed, timing, loads).make();
}

}  // namespace braid

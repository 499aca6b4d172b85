#include "schedule/stage_graphs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "braid/base/index.h"

namespace braid {
namespace {

bool is_backward(WorkKind kind) {
  return kind == WorkKind::backward || kind == WorkKind::input_gradient;
}

double duration_s(const StageCost& cost, WorkKind kind) {
  switch (kind) {
    case WorkKind::forward:
      return cost.forward_s;
    case WorkKind::backward:
      return cost.backward_s();
    case WorkKind::input_gradient:
      return cost.input_gradient_s;
    case WorkKind::weight_gradient:
      return cost.weight_gradient_s;
    case WorkKind::reduce_gradients:
      return cost.reduce_gradients_s;
    case WorkKind::optimizer:
      return cost.optimizer_s;
  }
  return 0;
}

}  // namespace

StageGraph chain_graph(std::span<const std::int32_t> devices, std::int64_t batch,
                       std::int64_t micro_batch) {
  StageGraph graph;
  graph.batch = batch;
  graph.stages.reserve(devices.size());
  graph.edges.reserve(devices.size());
  for (const std::int32_t device : devices) {
    if (!graph.stages.empty()) {
      const auto stage = static_cast<std::int32_t>(graph.stages.size());
      graph.edges.push_back({stage - 1, stage});
    }
    graph.stages.push_back({device, micro_batch});
  }
  return graph;
}

StageGraph random_stage_graph(Random& random, const GraphForm& form) {
  StageGraph graph;
  const std::int64_t stages = pick(random, 1, form.most_stages);
  const std::int64_t micro_batches = pick(random, 1, form.most_micro_batches);
  const std::int64_t base = pick(random, 0, 3) == 0 ? 3 : 2;
  graph.batch = form.sizes ? base * base * micro_batches : micro_batches;
  std::vector<std::int32_t> label(at(stages));
  std::iota(label.begin(), label.end(), 0);
  std::shuffle(label.begin(), label.end(), random);
  std::vector<std::int32_t> device(label);
  std::shuffle(device.begin(), device.end(), random);
  for (std::int64_t s = 0; s < stages; ++s) {
    std::int64_t size = 1;
    if (form.sizes) {
      for (std::int64_t i = pick(random, 0, 2); i > 0; --i) size *= base;
    }
    graph.stages.push_back({device[at(s)], size});
  }
  if (form.shared_devices) {
    const std::int64_t devices = pick(random, 1, stages);
    // Each device has a stage, so that device numbers have no holes.
    for (std::int64_t s = 0; s < stages; ++s) {
      graph.stages[at(s)].device =
          static_cast<std::int32_t>(s < devices ? s : pick(random, 0, devices - 1));
    }
  }
  const std::int64_t density = pick(random, 0, 4);
  for (std::int64_t to = 1; to < stages; ++to) {
    for (std::int64_t from = 0; from < to; ++from) {
      if (pick(random, 0, 4) > density) continue;
      graph.edges.push_back({label[at(from)], label[at(to)]});
      if (pick(random, 0, 15) == 0) graph.edges.push_back(graph.edges.back());
    }
  }
  std::shuffle(graph.edges.begin(), graph.edges.end(), random);
  return graph;
}

TimedGraph random_costs(Random& random, StageGraph graph) {
  TimedGraph timed = timeless(std::move(graph));
  for (StageCost& cost : timed.costs) {
    cost.forward_s = pick_time(random, 1, 24);
    cost.input_gradient_s = pick_time(random, 1, 24);
    cost.weight_gradient_s = pick_time(random, 1, 24);
    cost.reduce_gradients_s = pick_time(random, 0, 30);
    cost.optimizer_s = pick_time(random, 0, 10);
    cost.fixed_bytes = static_cast<double>(pick(random, 0, 100));
    cost.weight_stash_bytes = static_cast<double>(pick(random, 0, 10));
    cost.stash_bytes = cost.weight_stash_bytes + static_cast<double>(pick(random, 0, 10));
  }
  const std::int64_t most = pick(random, 0, 30);
  for (double& time_s : timed.transfer_s) time_s = pick_time(random, 0, most);
  return timed;
}

TimedGraph even_stages(StageGraph graph, double forward_s, double input_s, double weight_s) {
  TimedGraph timed = timeless(std::move(graph));
  for (StageCost& cost : timed.costs) {
    cost.forward_s = forward_s;
    cost.input_gradient_s = input_s;
    cost.weight_gradient_s = weight_s;
    cost.stash_bytes = 1;
    cost.weight_stash_bytes = 1;
  }
  return timed;
}

namespace {

struct Span {
  double start_s = -1, end_s = -1;
};
using Spans = std::vector<std::vector<Span>>;  // [stage][sample]

struct SpansByKind {
  Spans forward, backward, weight;
};

/// What a pass changes in memory when it starts or ends.
struct Change {
  double time_s;
  bool release;
  double bytes;
  std::int64_t in_flight;  ///< Backward passes and first halves end it.
  std::int64_t stashes;    ///< Backward passes and second halves do.
  std::int32_t stage;
};

Change change_of(const WorkEvent& event, const StageCost& cost) {
  const Work& work = event.work;
  const bool forwards = work.kind == WorkKind::forward;
  const double halved = cost.weight_stash_bytes;
  const double change = forwards                                ? cost.stash_bytes
                        : work.kind == WorkKind::backward       ? -cost.stash_bytes
                        : work.kind == WorkKind::input_gradient ? halved - cost.stash_bytes
                                                                : -halved;
  const std::int64_t flight = forwards ? 1 : is_backward(work.kind) ? -1 : 0;
  const std::int64_t stash = forwards ? 1 : work.kind == WorkKind::input_gradient ? 0 : -1;
  return {forwards ? event.start_s : event.end_s, !forwards, change, flight, stash, work.stage};
}

/// Which rule the events of device `d` break by themselves; notes their spans and what they change.
std::string broken_on_device(const TimedGraph& timed, const std::vector<WorkEvent>& events,
                             std::size_t d, SpansByKind& spans, std::vector<Change>& changes) {
  double free_s = 0;
  for (const WorkEvent& event : events) {
    const Work& work = event.work;
    if (work.kind == WorkKind::reduce_gradients) continue;
    if (event.start_s < free_s) return "two at a time on a device";
    free_s = event.end_s;
    const GraphStage& stage = timed.graph.stages[at(work.stage)];
    if (at(stage.device) != d) return "on another's device";
    const StageCost& cost = timed.costs[at(work.stage)];
    double end_s = event.start_s + duration_s(cost, work.kind);
    const bool first = work.kind == WorkKind::forward && work.index == 0;
    if (first) end_s = std::max(end_s, cost.parameters_s);
    if (event.end_s != end_s) return "wrong duration";
    if (work.kind == WorkKind::optimizer) continue;
    Spans& of_kind = work.kind == WorkKind::forward ? spans.forward
                     : is_backward(work.kind)       ? spans.backward
                                                    : spans.weight;
    for (std::int64_t i = work.index * stage.micro_batch; i < (work.index + 1) * stage.micro_batch;
         ++i) {
      Span& pass = of_kind[at(work.stage)][at(i)];
      if (pass.end_s >= 0) return "a pass twice";
      pass = {event.start_s, event.end_s};
    }
    changes.push_back(change_of(event, cost));
  }
  return {};
}

/// Whether the peaks of device `d` are other than what the changes there add up to.
std::string broken_peak(const TimedGraph& timed, const OrderTiming& timing, std::size_t d,
                        std::vector<Change> changes) {
  double bytes = 0;
  double offloaded = 0;
  for (std::size_t s = 0; s < timed.graph.stages.size(); ++s) {
    if (at(timed.graph.stages[s].device) != d) continue;
    bytes += timed.costs[s].fixed_bytes;
    offloaded = std::max(offloaded, timed.costs[s].offloaded_bytes);
  }
  // What ends at a moment ends before what starts.
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tuple(a.time_s, !a.release) < std::tuple(b.time_s, !b.release);
  });
  double peak = bytes;
  std::int64_t stashes = 0;
  std::map<std::int32_t, std::int64_t> in_flight, peaks;
  for (const Change& change : changes) {
    bytes += change.bytes;
    stashes += change.stashes;
    peak =
        std::max(peak, bytes + offloaded * static_cast<double>(std::min<std::int64_t>(2, stashes)));
    in_flight[change.stage] += change.in_flight;
    peaks[change.stage] = std::max(peaks[change.stage], in_flight[change.stage]);
  }
  if (peak != timing.devices[d].peak_bytes) return "peak of memory";
  for (const auto& [stage, count] : peaks) {
    if (count != timing.peak_in_flight[at(stage)]) return "peak in flight";
  }
  return {};
}

/// Which rule the passes of a stage break.
std::string broken_order(const std::vector<Span>& forward, const std::vector<Span>& backward,
                         const std::vector<Span>& weight) {
  for (std::size_t i = 0; i < forward.size(); ++i) {
    if (forward[i].end_s < 0 || backward[i].end_s < 0) return "a pass is missing";
    if (backward[i].start_s < forward[i].end_s) return "backward before forward";
    if (weight[i].end_s >= 0 && weight[i].start_s < backward[i].end_s) {
      return "weight gradients before input gradients";
    }
    if (i == 0) continue;
    if (forward[i].start_s < forward[i - 1].start_s) return "forward passes swap";
    if (backward[i].start_s < backward[i - 1].start_s) return "backward swap";
  }
  return {};
}

struct RelaxedTask {
  Work work;
  double start_s = 0, end_s = 0;
};

struct RelaxedSending {
  std::size_t from = 0, to = 0;  // Tasks.
  double time_s = 0, arrival_s = 0;
};

/// The tasks of an order and what is sent between them, all at time 0.
struct RelaxedOrder {
  std::vector<RelaxedTask> tasks;
  std::vector<std::vector<std::size_t>> lines;  // Tasks of each device, in order.
  /// Parts on each link, in the order in which the passes that make them run.
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<RelaxedSending>> links;
};

using TaskOfSample = std::map<std::tuple<bool, std::int64_t, std::int64_t>, std::size_t>;

void add_sendings(const TimedGraph& timed, const TaskOfSample& of_sample, std::size_t task,
                  RelaxedOrder& relaxed) {
  const StageGraph& graph = timed.graph;
  const Work& work = relaxed.tasks[task].work;
  if (work.kind != WorkKind::forward && !is_backward(work.kind)) return;
  const bool back = is_backward(work.kind);
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const std::int32_t from = back ? graph.edges[e].target : graph.edges[e].source;
    const std::int32_t to = back ? graph.edges[e].source : graph.edges[e].target;
    if (from != work.stage) continue;
    const GraphStage& a = graph.stages[at(from)];
    const GraphStage& b = graph.stages[at(to)];
    const std::int64_t part = std::min(a.micro_batch, b.micro_batch);
    for (std::int64_t i = work.index * a.micro_batch; i < (work.index + 1) * a.micro_batch;
         i += part) {
      const bool moved = a.device != b.device;
      relaxed.links[{a.device, b.device}].push_back(
          {task, of_sample.at({back, to, i}), moved ? timed.transfer_s[e] : 0, 0});
    }
  }
}

RelaxedOrder relaxed_order(const TimedGraph& timed, const WorkOrder& order) {
  RelaxedOrder relaxed;
  TaskOfSample of_sample;
  for (const std::vector<Work>& device : order.devices) {
    relaxed.lines.emplace_back();
    for (const Work& work : device) {
      if (work.kind == WorkKind::forward || is_backward(work.kind)) {
        const std::int64_t b = timed.graph.stages[at(work.stage)].micro_batch;
        for (std::int64_t i = work.index * b; i < (work.index + 1) * b; ++i) {
          of_sample[{is_backward(work.kind), work.stage, i}] = relaxed.tasks.size();
        }
      }
      relaxed.lines.back().push_back(relaxed.tasks.size());
      relaxed.tasks.push_back({work, 0, 0});
    }
  }
  for (const std::vector<std::size_t>& line : relaxed.lines) {
    for (const std::size_t t : line) add_sendings(timed, of_sample, t, relaxed);
  }
  return relaxed;
}

bool raised(double& value, double least) {
  if (value >= least) return false;
  value = least;
  return true;
}

/// Moves the tasks of a device behind one another. Whether any moved.
bool relax_line(const TimedGraph& timed, const std::vector<std::size_t>& line,
                std::vector<RelaxedTask>& tasks) {
  bool changed = false;
  double compute_s = 0;
  double network_s = 0;
  std::map<std::int32_t, double> reduced_s;
  for (const std::size_t t : line) {
    RelaxedTask& task = tasks[t];
    const double length = duration_s(timed.costs[at(task.work.stage)], task.work.kind);
    changed |= raised(task.start_s, compute_s);
    if (task.work.kind == WorkKind::reduce_gradients) {
      changed |= raised(task.start_s, network_s);
      changed |= raised(task.end_s, task.start_s + length);
      network_s = reduced_s[task.work.stage] = task.end_s;
      continue;
    }
    if (task.work.kind == WorkKind::optimizer) {
      changed |= raised(task.start_s, reduced_s[task.work.stage]);
    }
    changed |= raised(task.end_s, task.start_s + length);
    if (task.work.kind == WorkKind::forward && task.work.index == 0) {
      changed |= raised(task.end_s, timed.costs[at(task.work.stage)].parameters_s);
    }
    compute_s = task.end_s;
  }
  return changed;
}

/// Moves what is sent behind what makes it, and tasks behind what they receive. Whether any moved.
bool relax_links(RelaxedOrder& relaxed) {
  bool changed = false;
  for (auto& [ends, list] : relaxed.links) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      RelaxedSending& sending = list[i];
      changed |= raised(sending.arrival_s, relaxed.tasks[sending.from].end_s + sending.time_s);
      if (i > 0 && ends.first != ends.second) {
        changed |= raised(sending.arrival_s, list[i - 1].arrival_s + sending.time_s);
      }
      changed |= raised(relaxed.tasks[sending.to].start_s, sending.arrival_s);
    }
  }
  return changed;
}

}  // namespace

std::string broken_rule(const TimedGraph& timed, const OrderTiming& timing) {
  const StageGraph& graph = timed.graph;
  const std::int64_t samples = graph.batch * graph.rounds;
  const Spans none(graph.stages.size(), std::vector<Span>(at(samples)));
  SpansByKind spans{none, none, none};
  for (std::size_t d = 0; d < timing.work.size(); ++d) {
    std::vector<Change> changes;
    std::string broken = broken_on_device(timed, timing.work[d], d, spans, changes);
    if (broken.empty()) broken = broken_peak(timed, timing, d, std::move(changes));
    if (!broken.empty()) return broken;
  }
  for (std::size_t s = 0; s < graph.stages.size(); ++s) {
    std::string broken = broken_order(spans.forward[s], spans.backward[s], spans.weight[s]);
    if (!broken.empty()) return broken;
  }
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const auto [x, y] = graph.edges[e];
    const bool moved = graph.stages[at(x)].device != graph.stages[at(y)].device;
    const double crossing_s = moved ? timed.transfer_s[e] : 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      if (spans.forward[at(y)][at(i)].start_s < spans.forward[at(x)][at(i)].end_s + crossing_s) {
        return "activations used before they are there";
      }
      if (spans.backward[at(x)][at(i)].start_s < spans.backward[at(y)][at(i)].end_s + crossing_s) {
        return "gradients used before they are there";
      }
    }
  }
  return {};
}

double relaxed_time_s(const TimedGraph& timed, const WorkOrder& order) {
  RelaxedOrder relaxed = relaxed_order(timed, order);
  std::size_t steps = relaxed.tasks.size();
  for (const auto& [ends, list] : relaxed.links) steps += list.size();
  bool changed = true;
  for (std::size_t round = 0; changed; ++round) {
    if (round > 2 * steps + 2) return -1;
    changed = false;
    for (const std::vector<std::size_t>& line : relaxed.lines) {
      changed |= relax_line(timed, line, relaxed.tasks);
    }
    changed |= relax_links(relaxed);
  }
  double time_s = 0;
  for (const RelaxedTask& task : relaxed.tasks) time_s = std::max(time_s, task.end_s);
  return time_s;
}

WorkOrder random_order(Random& random, const StageGraph& graph, bool halves) {
  struct State {
    std::int64_t forwards = 0, backwards = 0, weights = 0, reduced = 0, updated = 0;
  };
  std::vector<State> states(graph.stages.size());
  WorkOrder order;
  order.devices.resize(device_count(graph));
  const auto done = [&](std::int32_t stage, bool back) {
    const State& state = states[at(stage)];
    return (back ? state.backwards : state.forwards) * graph.stages[at(stage)].micro_batch;
  };
  std::vector<Work> possible;
  do {
    possible.clear();
    for (std::size_t s = 0; s < states.size(); ++s) {
      const auto stage = static_cast<std::int32_t>(s);
      State& state = states[s];
      const std::int64_t b = graph.stages[s].micro_batch;
      const std::int64_t m = graph.micro_batches(s);
      bool forward = state.forwards < m;
      bool backward = state.backwards < state.forwards;
      for (const StageEdge& edge : graph.edges) {
        if (edge.target == stage) {
          forward = forward && done(edge.source, false) >= (state.forwards + 1) * b;
        }
        if (edge.source == stage) {
          backward = backward && done(edge.target, true) >= (state.backwards + 1) * b;
        }
      }
      if (forward) possible.push_back({WorkKind::forward, stage, state.forwards});
      const WorkKind kind = halves ? WorkKind::input_gradient : WorkKind::backward;
      if (backward) possible.push_back({kind, stage, state.backwards});
      if (halves && state.weights < state.backwards) {
        possible.push_back({WorkKind::weight_gradient, stage, state.weights});
      }
      const std::int64_t complete =
          (halves ? state.weights : state.backwards) / graph.round_micro_batches(s);
      if (state.reduced < complete) {
        possible.push_back({WorkKind::reduce_gradients, stage, state.reduced});
      }
      if (state.updated < state.reduced) {
        possible.push_back({WorkKind::optimizer, stage, state.updated});
      }
    }
    if (possible.empty()) break;
    const Work work = possible[at(pick(random, 0, static_cast<std::int64_t>(possible.size()) - 1))];
    State& state = states[at(work.stage)];
    if (work.kind == WorkKind::forward) ++state.forwards;
    if (is_backward(work.kind)) ++state.backwards;
    if (work.kind == WorkKind::weight_gradient) ++state.weights;
    if (work.kind == WorkKind::reduce_gradients) ++state.reduced;
    if (work.kind == WorkKind::optimizer) ++state.updated;
    order.devices[at(graph.stages[at(work.stage)].device)].push_back(work);
  } while (true);
  return order;
}

}  // namespace braid

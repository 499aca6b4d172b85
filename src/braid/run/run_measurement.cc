#include "braid/run/run_measurement.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "braid/base/index.h"

namespace braid {
namespace {

struct Span {
  double start_s = std::numeric_limits<double>::infinity();
  double end_s = -std::numeric_limits<double>::infinity();
  double length_s() const { return end_s - start_s; }
};

/// From the first rank's start to the last one's end, of a recorded iteration.
Span span_of(std::span<const RankRecord> records, std::size_t iteration) {
  Span span;
  for (const RankRecord& record : records) {
    span.start_s = std::min(span.start_s, record.iterations[iteration].start_s);
    span.end_s = std::max(span.end_s, record.iterations[iteration].end_s);
  }
  return span;
}

std::size_t median_iteration(std::span<const RankRecord> records) {
  const RankRecord& any = records.front();
  std::vector<std::size_t> candidates;
  const bool has_first = any.losses.size() == any.iterations.size();
  for (std::size_t i = has_first && any.iterations.size() > 1 ? 1 : 0; i < any.iterations.size();
       ++i) {
    candidates.push_back(i);
  }
  std::sort(candidates.begin(), candidates.end(), [&](std::size_t a, std::size_t b) {
    return span_of(records, a).length_s() < span_of(records, b).length_s();
  });
  return candidates[candidates.size() / 2];
}

RankTimes times_of(const std::vector<Instruction>& instructions, const RankIteration& iteration) {
  RankTimes times;
  double sum_s = 0;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const double took_s = iteration.times[i].end_s - iteration.times[i].start_s;
    sum_s += took_s;
    switch (instructions[i].kind) {
      case InstructionKind::forward:
      case InstructionKind::backward:
      case InstructionKind::input_gradient:
      case InstructionKind::weight_gradient:
        times.passes_s += took_s;
        break;
      case InstructionKind::send:
      case InstructionKind::receive:
        times.handover_s += took_s;
        break;
      case InstructionKind::gather:
      case InstructionKind::reduce:
        times.gradients_s += took_s;
        break;
      case InstructionKind::release:
      case InstructionKind::step:
        times.optimizer_s += took_s;
        break;
    }
  }
  times.rest_s = std::max(0.0, iteration.end_s - iteration.start_s - sum_s);
  return times;
}

EventKind event_kind(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::forward:
      return EventKind::forward;
    case InstructionKind::backward:
      return EventKind::backward;
    case InstructionKind::input_gradient:
      return EventKind::input_gradient;
    case InstructionKind::weight_gradient:
      return EventKind::weight_gradient;
    case InstructionKind::gather:
      return EventKind::parameter_sync;
    case InstructionKind::reduce:
      return EventKind::gradient_sync;
    case InstructionKind::step:
      return EventKind::optimizer;
    case InstructionKind::send:
    case InstructionKind::receive:
    case InstructionKind::release:
      break;
  }
  return EventKind::send;
}

/// Appends what a rank, the first replica of `stage`, did.
void add_events(const StagedModel& staged, std::int32_t stage,
                const std::vector<Instruction>& instructions, const RankIteration& iteration,
                double start_s, std::vector<Event>& events) {
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& each = instructions[i];
    // These end at once, and receives are gaps between passes.
    if (each.kind == InstructionKind::send || each.kind == InstructionKind::release) continue;
    if (each.kind == InstructionKind::receive) continue;
    Event event;
    event.start_s = iteration.start_s - start_s + iteration.times[i].start_s;
    event.end_s = iteration.start_s - start_s + iteration.times[i].end_s;
    event.kind = event_kind(each.kind);
    event.stage = stage;
    if (each.part >= 0) event.chunk = staged.parts[at(each.part)].chunk;
    event.micro_batch = each.group >= 0 ? each.group : each.micro_batch;
    events.push_back(event);
  }
}

}  // namespace

RunMeasurement measurement_of(const StagedModel& staged,
                              std::span<const std::vector<Instruction>> ranks,
                              std::span<const RankRecord> records) {
  RunMeasurement result;
  const std::size_t chosen = median_iteration(records);
  const Span span = span_of(records, chosen);
  result.iteration_time_s = span.length_s();
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    result.ranks.push_back(times_of(ranks[r], records[r].iterations[chosen]));
    result.memory_bytes.push_back(records[r].peak_memory_bytes);
    if (result.ranks[r].passes_s > result.ranks[result.busiest_rank].passes_s) {
      result.busiest_rank = r;
    }
  }
  result.peak_memory_bytes =
      *std::max_element(result.memory_bytes.begin(), result.memory_bytes.end());
  for (const StagePart& part : staged.parts) {
    if (part.chunk > 0) continue;
    const std::size_t first = at(part.ranks.front());
    add_events(staged, part.stage, ranks[first], records[first].iterations[chosen], span.start_s,
               result.timeline.events);
  }
  std::sort(result.timeline.events.begin(), result.timeline.events.end(),
            [](const Event& a, const Event& b) {
              return std::tuple(a.start_s, a.stage, a.end_s) <
                     std::tuple(b.start_s, b.stage, b.end_s);
            });
  const auto stages = std::count_if(staged.parts.begin(), staged.parts.end(),
                                    [](const StagePart& part) { return part.chunk == 0; });
  result.timeline.memory.resize(at(stages));
  result.timeline.iteration_time_s = result.timeline.end_s = result.iteration_time_s;
  return result;
}

}  // namespace braid

#include "braid/plan/stage_rounds.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// Stages with those that hand over to them; every stage after all that it hands over to.
struct StageOrder {
  std::vector<std::vector<std::int32_t>> sources;
  std::vector<std::size_t> from_sinks;
};

/// Throws Error for a circle.
StageOrder order_stages(std::size_t stages, std::span<const ChunkEdge> edges) {
  StageOrder order;
  order.sources.resize(stages);
  order.from_sinks.reserve(stages);
  std::vector<int> successors(stages, 0);
  for (const ChunkEdge& edge : edges) {
    if (edge.source_stage == edge.target_stage) continue;
    order.sources[at(edge.target_stage)].push_back(edge.source_stage);
    ++successors[at(edge.source_stage)];
  }
  for (std::size_t s = 0; s < stages; ++s) {
    if (successors[s] == 0) order.from_sinks.push_back(s);
  }
  for (std::size_t next = 0; next < order.from_sinks.size(); ++next) {
    for (const std::int32_t source : order.sources[order.from_sinks[next]]) {
      if (--successors[at(source)] == 0) order.from_sinks.push_back(at(source));
    }
  }
  if (order.from_sinks.size() == stages) return order;
  const auto stuck =
      std::find_if(successors.begin(), successors.end(), [](int waiting) { return waiting > 0; });
  throw Error(
      "stage " + std::to_string(stuck - successors.begin() + 1) + " leads to a circle of stages",
      "cut the layers so that data flows between stages in one direction");
}

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::vector<int> stage_depths(int stages, std::span<const ChunkEdge> edges) {
  const StageOrder order = order_stages(at(stages), edges);
  std::vector<int> depths(at(stages), 1);
  for (const std::size_t target : order.from_sinks) {
    for (const std::int32_t source : order.sources[target]) {
      depths[at(source)] = std::max(depths[at(source)], depths[target] + 1);
    }
  }
  return depths;
}

std::vector<StageRounds> stage_rounds(const Plan& plan) {
  std::vector<StageRounds> rounds;
  rounds.reserve(plan.stages.size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Parallelism form = form_of(plan, s);
    const StageRounds round{std::int64_t{form.dp} * form.micro_batch, form.num_micro_batches};
    std::int64_t samples = 0;
    if (round.count < 1 || __builtin_mul_overflow(round.samples, round.count, &samples) ||
        (plan.stages[s].own && samples != plan.global_batch)) {
      throw Error("stage " + std::to_string(s + 1) + " takes " + std::to_string(round.samples) +
                      " samples a round, which do not make up the global batch of " +
                      std::to_string(plan.global_batch),
                  "let dp x micro-batch of every stage divide the global batch");
    }
    rounds.push_back(round);
  }
  return rounds;
}

std::vector<std::int64_t> forwards_first(ScheduleKind schedule, std::span<const StageRounds> rounds,
                                         std::span<const ChunkEdge> edges) {
  const StageOrder order = order_stages(rounds.size(), edges);
  std::vector<std::int64_t> first(rounds.size(), 1);
  if (schedule == ScheduleKind::gpipe) {
    for (std::size_t s = 0; s < rounds.size(); ++s) first[s] = rounds[s].count;
    return first;
  }
  // Samples by which the rounds of other stages can reach beyond a stage's own.
  const auto overhang = [&](std::size_t of, std::size_t over) {
    return rounds[of].samples - std::gcd(rounds[of].samples, rounds[over].samples);
  };
  std::vector<std::int64_t> before(rounds.size(), 0);
  for (auto target = order.from_sinks.rbegin(); target != order.from_sinks.rend(); ++target) {
    for (const std::int32_t source : order.sources[*target]) {
      before[*target] =
          std::max(before[*target], before[at(source)] + overhang(at(source), *target));
    }
  }
  std::vector<std::int64_t> way(rounds.size(), 0);
  std::vector<std::int64_t> behind(rounds.size(), 0);
  for (const std::size_t s : order.from_sinks) {
    const std::int64_t samples = rounds[s].samples;
    way[s] += samples;
    behind[s] = std::max(behind[s], before[s] + (divided_up(way[s], samples) - 1) * samples);
    first[s] = std::min(rounds[s].count, (behind[s] - before[s]) / samples + 1);
    for (const std::int32_t source : order.sources[s]) {
      way[at(source)] = std::max(way[at(source)], way[s]);
      behind[at(source)] = std::max(behind[at(source)], behind[s] + overhang(s, at(source)));
    }
  }
  return first;
}

std::string own_order_fault(ScheduleKind schedule, std::size_t stage, const StageConfig& own,
                            std::int64_t micro_batches) {
  const std::string name = "stage " + std::to_string(stage + 1);
  if (own.passes.empty() && !own.warm_up) return "";
  const char* what = own.passes.empty() ? "a warm-up" : "an order of passes of its own";
  if (schedule == ScheduleKind::gpipe) return name + " has " + what + ", which GPipe does not know";
  if (!own.passes.empty()) {
    if (own.warm_up) return name + " has an order of passes, and so no warm-up";
    const std::string fault = passes_fault(own.passes, micro_batches);
    return fault.empty() ? "" : name + " " + fault;
  }
  if (*own.warm_up >= 1 && *own.warm_up <= micro_batches) return "";
  return name + " has a warm-up of " + std::to_string(*own.warm_up) +
         " forward passes, not of 1 to " + std::to_string(micro_batches) + ", its micro-batches";
}

std::vector<std::int64_t> forwards_first(const Plan& plan) {
  const ScheduleKind schedule = plan.parallel.schedule;
  const std::vector<StageRounds> rounds = stage_rounds(plan);
  std::vector<std::int64_t> first = forwards_first(schedule, rounds, chunk_edges(plan));
  for (std::size_t s = 0; s < first.size(); ++s) {
    const auto& own = plan.stages[s].own;
    if (!own) continue;
    const std::string fault = own_order_fault(schedule, s, *own, rounds[s].count);
    if (!fault.empty()) {
      throw Error(fault, own->passes.empty() ? "leave the warm-up out or put it right"
                                             : "leave the order of passes out or put it right");
    }
    if (own->warm_up) first[s] = *own->warm_up;
    if (!own->passes.empty()) first[s] = own->passes.front().forwards;
  }
  return first;
}

std::vector<std::int64_t> micro_batches_held(const Plan& plan) {
  std::vector<std::int64_t> held = forwards_first(plan);
  for (std::size_t s = 0; s < held.size(); ++s) {
    const auto& own = plan.stages[s].own;
    if (own && !own->passes.empty()) held[s] = most_in_flight(own->passes);
  }
  return held;
}

}  // namespace braid

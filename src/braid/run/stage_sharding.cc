#include "braid/run/stage_sharding.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/run/rank_divider.h"

namespace braid {

bool is_exchange(const ProgramNode& node) {
  constexpr std::array<std::string_view, 6> kExchanges = {"GatherAlike", "GatherShare", "Share",
                                                          "Sum",         "SumTake",     "Take"};
  return node.domain == kBraidDomain &&
         std::find(kExchanges.begin(), kExchanges.end(), node.operation) != kExchanges.end();
}

std::vector<std::int64_t> held_list(const std::vector<std::vector<Interval>>& held) {
  std::vector<std::int64_t> list;
  for (const std::vector<Interval>& each : held) {
    list.push_back(std::ssize(each));
    for (const Interval& interval : each) {
      list.push_back(interval.first);
      list.push_back(interval.last);
    }
  }
  return list;
}

std::vector<std::vector<Interval>> held_of_list(const std::vector<std::int64_t>& list) {
  std::vector<std::vector<Interval>> held;
  for (std::size_t i = 0; i < list.size();) {
    held.emplace_back();
    const std::int64_t count = list[i++];
    for (std::int64_t k = 0; k < count; ++k, i += 2) {
      held.back().push_back({list[i], list[i + 1]});
    }
  }
  return held;
}

Interval StageSharding::rows_of(ValueId value, const Shape& shape, int rank) const {
  const std::int64_t rows = shape.empty() ? 1 : shape.front();
  if (sharers == 1 || layouts[at(value)].is_whole()) return {0, rows};
  return {rank * rows / sharers, (rank + 1) * rows / sharers};
}

std::vector<bool> sample_values(const Program& program) {
  std::vector<bool> varies(program.values.size(), false);
  for (const ProgramInput& input : program.inputs) varies[at(input.value)] = true;
  for (const ProgramNode& node : program.nodes) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId id) { return id >= 0 && varies[at(id)]; });
    for (const ValueId id : node.outputs) varies[at(id)] = any;
  }
  return varies;
}

namespace {

/// The program of a rank that has the experts [rank] of `stage.ep` parts. Its nodes keep their
/// numbers.
RankProgram with_own_experts(const StageToShard& stage, RankProgram of, int rank) {
  std::set<NodeId> computed;
  for (const std::vector<NodeId>* segment : stage.segments) {
    computed.insert(segment->begin(), segment->end());
  }
  for (const NodeId number : computed) {
    ProgramNode& node = of.program.nodes[at(number)];
    if (node.operation != "Experts") continue;
    for (std::size_t i = 2; i < node.inputs.size(); ++i) {
      const auto& missing = of.program.missing;
      const auto weight =
          std::find_if(missing.begin(), missing.end(),
                       [&](const MissingWeight& each) { return each.value == node.inputs[i]; });
      if (weight == missing.end() || weight->shape.front() % stage.ep != 0 ||
          of.parts.contains(weight->value)) {
        throw Error(fmt::format("{} has expert parallelism {}, which does not go with how {} is "
                                "sharded",
                                stage.name, stage.ep, of.program.values[at(node.inputs[i])].name),
                    "plan with --ep 1, or with whole experts");
      }
      const std::int64_t experts = weight->shape.front() / stage.ep;
      of.parts[weight->value] = {0, {{rank * experts, (rank + 1) * experts}}};
    }
    node.operation = "ExpertsOfGroup";
  }
  return of;
}

void divide_experts(const StageToShard& stage, StageSharding& sharding) {
  sharding.ep = stage.ep;
  if (stage.ep == 1) return;
  std::vector<RankProgram> all;
  for (int rank = 0; rank < stage.ep; ++rank) {
    for (const RankProgram& each : sharding.ranks) {
      all.push_back(with_own_experts(stage, each, rank));
    }
  }
  sharding.ranks = std::move(all);
}

}  // namespace

StageSharding sharded_stage(const StageToShard& stage) {
  StageSharding sharding;
  sharding.sharers = stage.sharers();
  if (sharding.sharers == 1) {
    sharding.layouts.resize(stage.model->program.values.size());
    sharding.ranks.push_back({stage.model->program, {}});
    divide_experts(stage, sharding);
    return sharding;
  }
  std::vector<std::vector<NodeId>> sharded;
  for (int rank = 0; rank < sharding.sharers; ++rank) {
    RankDivider divider(stage, rank);
    for (const std::vector<NodeId>* segment : stage.segments) divider.add_segment(*segment);
    std::vector<std::vector<NodeId>> segments = divider.hold_parts();
    assert(sharded.empty() || sharded == segments);
    sharded = std::move(segments);
    if (rank == 0) sharding.layouts = divider.layouts();
    sharding.ranks.push_back(divider.take());
  }
  for (std::size_t s = 0; s < sharded.size(); ++s) *stage.segments[s] = std::move(sharded[s]);
  divide_experts(stage, sharding);
  return sharding;
}

}  // namespace braid

#include "planners/every_plan.h"

#include <algorithm>
#include <set>

#include "braid/plan/dealt_layers.h"
#include "braid/planners/job/assess.h"
#include "braid/planners/job/outcomes.h"
#include "braid/schedule/timeline.h"

namespace braid::test {
namespace {

void each_split(int layers, int pieces, Ends& prefix,
                const std::function<void(const Ends&)>& visit) {
  const int begin = prefix.empty() ? 0 : prefix.back();
  if (static_cast<int>(prefix.size()) + 1 == pieces) {
    if (begin >= layers) return;
    prefix.push_back(layers);
    visit(prefix);
    prefix.pop_back();
    return;
  }
  for (int end = begin + 1; end < layers; ++end) {
    prefix.push_back(end);
    each_split(layers, pieces, prefix, visit);
    prefix.pop_back();
  }
}

/// Ends of the assignments that are tried where not all of them are looked at.
std::vector<Ends> dealt_ends(const LayerTable& table, int pieces) {
  const auto layers = static_cast<std::int32_t>(table.chain.size());
  std::vector<Ends> all = {*partition_min_max(table.chain, pieces)};
  Ends& by_number = all.emplace_back();
  for (std::int32_t piece = 0, end = 0; piece < pieces; ++piece) {
    by_number.push_back(end += layers / pieces + (piece < layers % pieces ? 1 : 0));
  }
  Ends& as_trainers = all.emplace_back();
  for (const std::int32_t count : layers_of_chunks(layers, pieces)) {
    as_trainers.push_back((as_trainers.empty() ? 0 : as_trainers.back()) + count);
  }
  return all;
}

}  // namespace

void each_plan(const Job& job, const System& system, const SpaceOptions& space,
               const std::function<void(const EveryPlan&)>& visit) {
  const SpaceLimits limits = space_limits(job, system);
  std::vector<Configuration> all = base_configurations(limits, space);
  std::set<Configuration> seen(all.begin(), all.end());
  const bool has_host = system.groups.front().chip.host.has_value();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const Configuration& next : relaxations(all[i], limits, space, has_host)) {
      if (seen.insert(next).second) all.push_back(next);
    }
  }
  const ChainJob chain = chain_job(job, system);
  LayerTables tables(job, system);
  for (const Configuration& configuration : all) {
    const std::vector<Ends> dealt =
        dealt_ends(tables.at(configuration), configuration.pp * configuration.vp);
    const auto consider = [&](const Ends& ends) {
      const Plan plan = build_plan(chain, tables, configuration, ends, "exhaustive");
      for (std::size_t s = 0; s < plan.stages.size(); ++s) {
        const Chip& chip = system.groups.front().chip;
        const MemoryBreakdown memory = memory_of_stages(plan)[s];
        if (memory.device_total() > usable_bytes(chip)) return;
        if (chip.host && memory.host > chip.host->bytes) return;
      }
      const bool tried = configuration.schedule == ScheduleKind::one_f_one_b ||
                         std::find(dealt.begin(), dealt.end(), ends) != dealt.end();
      visit({configuration, ends, plan, simulate_time_s(plan), tried});
    };
    Ends prefix;
    each_split(limits.layers, configuration.pp * configuration.vp, prefix, consider);
  }
}

}  // namespace braid::test

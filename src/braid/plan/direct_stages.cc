#include "braid/plan/direct_stages.h"

#include <cassert>
#include <utility>
#include <vector>

#include "braid/plan/totals.h"
#include "braid/system/links.h"

namespace braid {
namespace {

/// Of the options for these groups, the one that takes longest.
std::int32_t slowest_option(const std::vector<Option>& options,
                            const std::vector<std::size_t>& groups) {
  if (options.size() == 1) return 0;
  return static_cast<std::int32_t>(slowest_of(
      groups, [&](std::size_t group) -> const LayerCost& { return options[group].cost; }));
}

}  // namespace

void fill_direct_stages(Plan& plan, std::span<const std::int32_t> counts) {
  const Parallelism& parallel = plan.parallel;
  assert(std::ssize(counts) == std::int64_t{parallel.pp} * parallel.vp);
  plan.stages.assign(static_cast<std::size_t>(parallel.pp), {});
  for (int s = 0; s < parallel.pp; ++s) {
    Stage& stage = plan.stages[static_cast<std::size_t>(s)];
    stage.dp = parallel.dp;
    stage.tp = parallel.tp;
    stage.cp = parallel.cp;
    stage.devices = stage_devices(parallel, s);
  }
  std::int32_t layer = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    Stage& stage = plan.stages[c % plan.stages.size()];
    const std::vector<std::size_t> groups = groups_of(plan.system, stage.devices);
    Chunk chunk;
    for (std::int32_t i = 0; i < counts[c]; ++i, ++layer) {
      chunk.layers.push_back(layer);
      chunk.options.push_back(slowest_option(options_of(plan.profile, layer), groups));
    }
    stage.chunks.push_back(std::move(chunk));
  }
}

std::vector<std::int32_t> layer_counts(const Plan& plan) {
  std::vector<std::int32_t> counts;
  for (std::size_t c = 0; !plan.stages.empty() && c < plan.stages.front().chunks.size(); ++c) {
    for (const Stage& stage : plan.stages) {
      counts.push_back(static_cast<std::int32_t>(stage.chunks[c].layers.size()));
    }
  }
  return counts;
}

}  // namespace braid

#include <algorithm>
#include <limits>
#include <utility>

#include "braid/planners/graphpipe_target.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

/// Plans of a block's branches, but for those that are absorbed, all in front of `label`.
void GraphPipeTargetSearch::put_block(std::int32_t block_index, std::int32_t absorption,
                                      const GraphPipeLabel& label, double limit,
                                      GraphPipeFrontier& frontier) {
  GraphPipeLabel start = label;
  start.devices = 0;
  start.choice = -1;
  const auto [known, added] = known_blocks_.try_emplace(
      {block_index, absorption, 0, values_of(start)}, GraphPipeFrontier{});
  if (added) known->second = plan_block(block_index, absorption, start);
  for (const GraphPipeLabel& part : known->second) {
    GraphPipeLabel made = part;
    made.devices += label.devices;
    if (made.devices > limit) continue;
    if (ranking_.is_useless(made, frontier)) continue;
    made.choice = add({GraphPipeChoice::Kind::block, block_index, 0, 0, 0, absorption, part.choice,
                       label.choice});
    ranking_.insert(made, frontier);
  }
}

GraphPipeFrontier GraphPipeTargetSearch::plan_block(std::int32_t block_index,
                                                    std::int32_t absorption,
                                                    const GraphPipeLabel& start) {
  const GraphPipeBlock& block = form_.blocks[at(block_index)];
  const Absorption none;
  const Absorption& absorbed = absorption < 0 ? none : block.absorptions[at(absorption)];
  std::vector<int> counts = block.counts;
  for (std::size_t j = 0; j < absorbed.whole.size(); ++j) counts[j] -= absorbed.whole[j];
  // Without any branch planned yet; those absorbed behind are reached from before directly.
  GraphPipeLabel base;
  if (!absorbed.whole.empty()) base = start;
  std::vector<Seed> seeds = {{std::vector<int>(counts.size(), 0), {base}}};
  double partial_need = 0;
  if (absorbed.partial >= 0) {
    const auto j = at(absorbed.partial);
    --counts[j];
    partial_need = need(form_.series[at(block.classes[j])], absorbed.first, absorbed.last);
    for (std::size_t i = 0; i < absorbed.rest.size(); ++i) {
      GraphPipeFrontier rest;
      put_stage(absorbed.rest[i].shape, start,
                slack_ + partial_need + group_need(block, absorbed.rest[i].counts), rest);
      if (rest.empty()) continue;
      seeds.push_back({absorbed.rest[i].counts, with_part({base}, rest, GraphPipeChoice::Kind::rest,
                                                          static_cast<std::int32_t>(i))});
    }
    seeds[0].second =
        with_part({base}, front(block.classes[j], absorbed.first, absorbed.last, start),
                  GraphPipeChoice::Kind::partial, absorbed.partial);
  }
  return cover(block, counts, parts_of(block_index, start), std::move(seeds),
               slack_ + partial_need);
}

double GraphPipeTargetSearch::branch_need(const GraphPipeBlock& block,
                                          std::size_t branch_class) const {
  const GraphPipeSeries& branch = form_.series[at(block.classes[branch_class])];
  return need(branch, 0, static_cast<int>(branch.items.size()));
}

double GraphPipeTargetSearch::group_need(const GraphPipeBlock& block,
                                         const std::vector<int>& counts) const {
  double needed = 0;
  for (std::size_t j = 0; j < counts.size(); ++j) needed += counts[j] * branch_need(block, j);
  return needed;
}

const std::vector<GraphPipeTargetSearch::Part>& GraphPipeTargetSearch::parts_of(
    std::int32_t block_index, const GraphPipeLabel& start) {
  const auto [known, added] =
      known_parts_.try_emplace({block_index, 0, 0, values_of(start)}, std::vector<Part>{});
  if (added) known->second = plan_parts(form_.blocks[at(block_index)], start);
  return known->second;
}

std::vector<GraphPipeTargetSearch::Part> GraphPipeTargetSearch::plan_parts(
    const GraphPipeBlock& block, const GraphPipeLabel& start) {
  std::vector<Part> parts;
  for (std::size_t j = 0; j < block.classes.size(); ++j) {
    const GraphPipeSeries& branch = form_.series[at(block.classes[j])];
    std::vector<int> one(block.classes.size(), 0);
    one[j] = 1;
    parts.push_back({std::move(one),
                     front(block.classes[j], 0, static_cast<int>(branch.items.size()), start),
                     GraphPipeChoice::Kind::part, static_cast<std::int32_t>(j)});
  }
  for (std::size_t i = 0; i < block.groups.size(); ++i) {
    const std::vector<int>& taken = block.groups[i].counts;
    GraphPipeFrontier plans;
    put_stage(block.groups[i].shape, start, slack_ + group_need(block, taken), plans);
    if (plans.empty()) continue;
    parts.push_back(
        {taken, std::move(plans), GraphPipeChoice::Kind::group, static_cast<std::int32_t>(i)});
  }
  return parts;
}

GraphPipeFrontier GraphPipeTargetSearch::with_part(const GraphPipeFrontier& others,
                                                   const GraphPipeFrontier& parts,
                                                   GraphPipeChoice::Kind kind, std::int32_t what) {
  GraphPipeFrontier result;
  put_parts(others, parts, kind, what, kInfinity, result);
  return result;
}

void GraphPipeTargetSearch::put_parts(const GraphPipeFrontier& others,
                                      const GraphPipeFrontier& parts, GraphPipeChoice::Kind kind,
                                      std::int32_t what, double limit, GraphPipeFrontier& result) {
  for (const GraphPipeLabel& other : others) {
    for (const GraphPipeLabel& part : parts) {
      if (other.devices + part.devices > limit) continue;
      GraphPipeLabel both = ranking_.join(other, part);
      if (ranking_.is_useless(both, result)) continue;
      both.choice = add({kind, what, 0, 0, 0, -1, part.choice, other.choice});
      ranking_.insert(both, result);
    }
  }
}

/// Plans for so many branches of each class, beginning with those of the seeds: one at a time,
/// each on its own or in a stage of several whole ones. `spare`: devices that may be used beyond
/// what the branches need.
GraphPipeFrontier GraphPipeTargetSearch::cover(const GraphPipeBlock& block,
                                               const std::vector<int>& counts,
                                               const std::vector<Part>& all_parts,
                                               std::vector<Seed> seeds, double spare) {
  const std::size_t classes = counts.size();
  std::vector<std::size_t> stride;
  stride.reserve(classes);
  std::size_t states = 1;
  for (const int count : counts) {
    stride.push_back(states);
    states *= at(count) + 1;
  }
  const auto state_of = [&](const std::vector<int>& some) {
    std::size_t state = 0;
    for (std::size_t j = 0; j < classes; ++j) state += at(some[j]) * stride[j];
    return state;
  };
  std::vector<std::vector<std::pair<std::size_t, const Part*>>> parts(
      classes);  // By the highest class in them.
  for (const Part& part : all_parts) {
    bool inside = true;
    std::size_t last = 0;
    for (std::size_t j = 0; j < classes; ++j) {
      inside = inside && part.counts[j] <= counts[j];
      if (part.counts[j] > 0) last = j;
    }
    if (inside) parts[last].emplace_back(state_of(part.counts), &part);
  }
  std::vector<GraphPipeFrontier> covered;
  covered.resize(states);
  for (Seed& seed : seeds) covered[state_of(seed.first)] = std::move(seed.second);
  std::vector<int> have(classes, 0);
  for (std::size_t state = 1; state < covered.size(); ++state) {
    std::size_t last = 0;  // One branch of the highest class in it is in the part put last.
    for (std::size_t j = 0; j < classes; ++j) {
      have[j] = static_cast<int>(state / stride[j] % (at(counts[j]) + 1));
      if (have[j] > 0) last = j;
    }
    const double limit = spare + group_need(block, have);
    for (const auto& [own, part] : parts[last]) {
      bool inside = true;
      for (std::size_t j = 0; j <= last; ++j) inside = inside && part->counts[j] <= have[j];
      if (!inside) continue;
      put_parts(covered[state - own], part->plans, part->kind, part->what, limit, covered[state]);
    }
  }
  return std::move(covered.back());
}

}  // namespace braid

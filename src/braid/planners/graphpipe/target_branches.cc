#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/planners/graphpipe/target.h"

namespace braid {
namespace {

constexpr std::int32_t kAny = std::numeric_limits<std::int32_t>::max();

/// Counts of branches of each class are states: what one more of a class adds to a state, …
std::vector<std::size_t> strides_of(const std::vector<int>& counts) {
  std::vector<std::size_t> strides;
  strides.reserve(counts.size());
  std::size_t states = 1;
  for (const int count : counts) {
    strides.push_back(states);
    states *= at(count) + 1;
  }
  return strides;
}

/// … and the state of some.
std::size_t state_of(const std::vector<int>& some, const std::vector<std::size_t>& strides) {
  std::size_t state = 0;
  for (std::size_t j = 0; j < strides.size(); ++j) state += at(some[j]) * strides[j];
  return state;
}

}  // namespace

/// Plans of a block's branches, but for those that are absorbed, all in front of `label`.
void GraphPipeTargetSearch::put_block(std::int32_t block_index, std::int32_t absorption,
                                      const GraphPipeLabel& label, std::int32_t limit,
                                      GraphPipeFrontier& frontier) {
  if (label.devices + floor_.left_of(block_index, absorption) > limit) return;
  GraphPipeLabel start = label;
  start.devices = 0;
  start.of_pool.fill(0);
  start.choice = -1;
  start.out_s = start.back_s = 0;
  if (!label.empty) start.behind_s = label.round_s;
  start.inside = true;
  const auto [known, added] = known_blocks_.try_emplace(
      {block_index, absorption, 0, values_of(start)}, GraphPipeFrontier{});
  if (added) known->second = plan_block(block_index, absorption, start);
  for (const GraphPipeLabel& part : known->second) {
    GraphPipeLabel made = part;
    made.devices += label.devices;
    for (std::size_t p = 0; p < kMostGraphPipePools; ++p) made.of_pool[p] += label.of_pool[p];
    made.inside = label.inside;
    made.out_s = label.inside ? label.out_s + part.out_s : 0;
    made.back_s = label.inside ? label.back_s + part.back_s : 0;
    made.behind_s = label.behind_s;
    if (made.devices > limit || !within(made.of_pool, most_)) continue;
    if (is_too_long(made) || ranking_.is_useless(made, frontier)) continue;
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
  base.inside = true;
  base.empty = start.empty;
  base.behind_s = start.behind_s;
  if (!absorbed.whole.empty()) base = start;
  if (absorbed.partial >= 0) --counts[at(absorbed.partial)];
  std::vector<GraphPipeFrontier> covered =
      cover(block_index, counts, parts_of(block_index, start), base);
  if (absorbed.partial < 0) return std::move(covered.back());
  GraphPipeFrontier result;
  put_partial(block_index, absorbed, start, counts, covered, result);
  return result;
}

/// Puts what is left of a partial branch, by itself or in a stage with whole ones, beside plans of
/// the other branches, `covered` for up to `counts` of each class.
void GraphPipeTargetSearch::put_partial(std::int32_t block_index, const Absorption& absorbed,
                                        const GraphPipeLabel& start, const std::vector<int>& counts,
                                        const std::vector<GraphPipeFrontier>& covered,
                                        GraphPipeFrontier& result) {
  const GraphPipeBlock& block = form_.blocks[at(block_index)];
  const std::int32_t branch = block.classes[at(absorbed.partial)];
  const std::vector<std::size_t> strides = strides_of(counts);
  const auto put = [&](std::vector<int> taken, GraphPipeFrontier plans, GraphPipeChoice::Kind kind,
                       std::int32_t what) {
    if (plans.empty()) return;
    const GraphPipeLabel ideal = ranking_.ideal(plans);
    const std::size_t others = covered.size() - 1 - state_of(taken, strides);
    put_part(covered[others], {std::move(taken), std::move(plans), ideal, kind, what}, kAny,
             result);
  };
  put(std::vector<int>(counts.size(), 0), front(branch, absorbed.first, absorbed.last, start),
      GraphPipeChoice::Kind::partial, absorbed.partial);
  const std::int32_t spare = slack_ + floor_.piece(branch, absorbed.first, absorbed.last);
  for (std::size_t i = 0; i < absorbed.remaining.size(); ++i) {
    const std::vector<int>& taken = absorbed.remaining[i].counts;
    GraphPipeFrontier remaining;
    put_stage(absorbed.remaining[i].shape, start, spare + floor_.branches(block_index, taken),
              remaining);
    put(taken, std::move(remaining), GraphPipeChoice::Kind::remaining,
        static_cast<std::int32_t>(i));
  }
}

const std::vector<GraphPipeTargetSearch::Part>& GraphPipeTargetSearch::parts_of(
    std::int32_t block_index, const GraphPipeLabel& start) {
  const auto [known, added] =
      known_parts_.try_emplace({block_index, 0, 0, values_of(start)}, std::vector<Part>{});
  if (added) known->second = plan_parts(block_index, start);
  return known->second;
}

std::vector<GraphPipeTargetSearch::Part> GraphPipeTargetSearch::plan_parts(
    std::int32_t block_index, const GraphPipeLabel& start) {
  const GraphPipeBlock& block = form_.blocks[at(block_index)];
  std::vector<Part> parts;
  const auto put = [&](const std::vector<int>& counts, GraphPipeFrontier plans,
                       GraphPipeChoice::Kind kind, std::size_t what) {
    if (plans.empty()) return;
    const GraphPipeLabel ideal = ranking_.ideal(plans);
    parts.push_back({counts, std::move(plans), ideal, kind, static_cast<std::int32_t>(what)});
  };
  for (std::size_t j = 0; j < block.classes.size(); ++j) {
    const GraphPipeSeries& branch = form_.series[at(block.classes[j])];
    std::vector<int> one(block.classes.size(), 0);
    one[j] = 1;
    put(one, front(block.classes[j], 0, static_cast<int>(branch.items.size()), start),
        GraphPipeChoice::Kind::part, j);
  }
  for (std::size_t i = 0; i < block.groups.size(); ++i) {
    const std::vector<int>& taken = block.groups[i].counts;
    GraphPipeFrontier plans;
    put_stage(block.groups[i].shape, start, slack_ + floor_.branches(block_index, taken), plans);
    put(taken, std::move(plans), GraphPipeChoice::Kind::group, i);
  }
  return parts;
}

/// Puts each plan of a part beside each of the others. Most are useless, many at once.
void GraphPipeTargetSearch::put_part(const GraphPipeFrontier& others, const Part& part,
                                     std::int32_t limit, GraphPipeFrontier& result) {
  for (const GraphPipeLabel& other : others) {
    const GraphPipeLabel ideal = ranking_.join(other, part.ideal);
    if (ideal.devices > limit || is_too_long(ideal) || ranking_.is_useless(ideal, result)) continue;
    for (const GraphPipeLabel& plan : part.plans) {
      if (other.devices + plan.devices > limit) continue;
      GraphPipeLabel both = ranking_.join(other, plan);
      if (!within(both.of_pool, most_)) continue;
      if (is_too_long(both) || ranking_.is_useless(both, result)) continue;
      both.choice = add({part.kind, part.what, 0, 0, 0, -1, plan.choice, other.choice});
      ranking_.insert(both, result);
    }
  }
}

/// Plans for up to so many branches of each class, [state_of] each: one at a time, each on its own
/// or in a stage of several whole ones, beside `base`.
std::vector<GraphPipeFrontier> GraphPipeTargetSearch::cover(std::int32_t block_index,
                                                            const std::vector<int>& counts,
                                                            const std::vector<Part>& all_parts,
                                                            const GraphPipeLabel& base) {
  const std::size_t classes = counts.size();
  const std::vector<std::size_t> strides = strides_of(counts);
  const std::size_t states = state_of(counts, strides) + 1;
  std::vector<std::vector<std::pair<std::size_t, const Part*>>> parts(
      classes);  // By the highest class in them.
  for (const Part& part : all_parts) {
    bool inside = true;
    std::size_t last = 0;
    for (std::size_t j = 0; j < classes; ++j) {
      inside = inside && part.counts[j] <= counts[j];
      if (part.counts[j] > 0) last = j;
    }
    if (inside) parts[last].emplace_back(state_of(part.counts, strides), &part);
  }
  std::vector<GraphPipeFrontier> covered(states);
  covered[0] = {base};
  std::vector<GraphPipeLabel> ideals(states);
  std::vector<int> have(classes, 0);
  for (std::size_t state = 0; state < states; ++state) {
    GraphPipeFrontier& here = covered[state];
    const std::int32_t limit = slack_ + floor_.branches(block_index, have);
    std::size_t last = classes - 1;  // One branch of the highest class is in the part put last.
    while (last > 0 && have[last] == 0) --last;
    for (const auto& [own, part] : parts[last]) {
      bool inside = true;
      for (std::size_t j = 0; j <= last; ++j) inside = inside && part->counts[j] <= have[j];
      if (!inside || covered[state - own].empty()) continue;
      const GraphPipeLabel ideal = ranking_.join(ideals[state - own], part->ideal);
      if (ideal.devices > limit || is_too_long(ideal) || ranking_.is_useless(ideal, here)) continue;
      put_part(covered[state - own], *part, limit, here);
    }
    if (!here.empty()) ideals[state] = ranking_.ideal(here);
    for (std::size_t j = 0; j < classes && ++have[j] > counts[j]; ++j) have[j] = 0;
  }
  return covered;
}

}  // namespace braid

#include "braid/planners/graphpipe/floor.h"

#include <algorithm>

#include "braid/base/index.h"

namespace braid {
namespace {

/// Sums of two never exceed what an integer holds, and are never again.
std::int32_t sum(std::int32_t a, std::int32_t b) { return std::min(a + b, GraphPipeFloor::kNever); }

void lower(std::int32_t& least, std::int32_t other) { least = std::min(least, other); }

}  // namespace

GraphPipeFloor::GraphPipeFloor(const GraphPipeShapes& form, const GraphPipeRuns& runs)
    : form_(form), runs_(runs), stages_(form.shapes.size(), kNever) {
  blocks_.reserve(form.blocks.size());
  for (const GraphPipeBlock& block : form.blocks) blocks_.push_back(block_of(block));
  pieces_.reserve(form.series.size());
  for (const GraphPipeSeries& series : form.series) {
    const std::size_t cuts = series.items.size() + 1;
    pieces_.emplace_back(&series == &form.series.back() ? 0 : cuts * cuts, kNever);
  }
  before_.resize(form.series.back().items.size() + 1);
}

GraphPipeFloor::Block GraphPipeFloor::block_of(const GraphPipeBlock& form) const {
  const std::size_t classes = form.counts.size();
  Block block;
  std::size_t states = 1;
  block.stride.reserve(classes);
  for (const int count : form.counts) {
    block.stride.push_back(states);
    states *= at(count) + 1;
  }
  block.needed.resize(states);
  block.left.resize(form.absorptions.size() + 1);
  block.parts.resize(classes);
  for (std::size_t j = 0; j < classes; ++j) {
    std::vector<int> one(classes, 0);
    one[j] = 1;
    block.parts[j].push_back({std::move(one), block.stride[j], form.classes[j], -1, kNever});
  }
  for (const BranchGroup& group : form.groups) {
    std::size_t highest = classes - 1;
    while (group.counts[highest] == 0) --highest;
    block.parts[highest].push_back(
        {group.counts, state_of(block, group.counts), -1, group.shape, kNever});
  }
  return block;
}

std::int32_t GraphPipeFloor::count(double time_s, bool passes_alone) {
  count_stages(time_s, passes_alone);
  for (std::size_t s = 0; s < form_.series.size(); ++s) {
    // The branches of its blocks are series before it.
    for (const SeriesItem& item : form_.series[s].items) {
      if (item.block >= 0) count_block(at(item.block));
    }
    if (s + 1 < form_.series.size()) count_pieces(s);
  }
  count_before(form_.series.back());
  return all();
}

void GraphPipeFloor::count_stages(double time_s, bool passes_alone) {
  const std::vector<std::int32_t>& levels = runs_.devices();
  for (std::size_t shape = 0; shape < stages_.size(); ++shape) {
    const double* const least_s = passes_alone ? runs_.least_passes_s(shape) : runs_.least_s(shape);
    std::size_t level = 0;
    while (level < levels.size() && least_s[level] > time_s) ++level;
    stages_[shape] = level < levels.size() ? levels[level] : kNever;
  }
}

std::size_t GraphPipeFloor::state_of(const Block& block, const std::vector<int>& counts) const {
  std::size_t state = 0;
  for (std::size_t j = 0; j < counts.size(); ++j) state += at(counts[j]) * block.stride[j];
  return state;
}

/// Of branches in every number: parts follow each other by the highest class in them.
void GraphPipeFloor::cover(const GraphPipeBlock& form, Block& block) const {
  const std::size_t classes = form.counts.size();
  std::fill(block.needed.begin(), block.needed.end(), kNever);
  block.needed[0] = 0;
  std::vector<int> have(classes, 0);
  for (std::size_t state = 0; state < block.needed.size(); ++state) {
    std::size_t highest = classes - 1;
    while (highest > 0 && have[highest] == 0) --highest;
    const std::int32_t here = block.needed[state];
    for (std::size_t h = highest; h < classes && here < kNever; ++h) {
      for (const Part& part : block.parts[h]) {
        bool room = true;
        for (std::size_t j = 0; j <= h; ++j) room &= have[j] + part.counts[j] <= form.counts[j];
        if (room) lower(block.needed[state + part.grows], sum(here, part.devices));
      }
    }
    for (std::size_t j = 0; j < classes && ++have[j] > form.counts[j]; ++j) have[j] = 0;
  }
}

void GraphPipeFloor::count_block(std::size_t index) {
  const GraphPipeBlock& form = form_.blocks[index];
  Block& block = blocks_[index];
  for (std::vector<Part>& parts : block.parts) {
    for (Part& part : parts) part.devices = devices_of(part);
  }
  cover(form, block);
  for (std::size_t i = 0; i < form.absorptions.size(); ++i) {
    const Absorption& absorbed = form.absorptions[i];
    block.left[i] = absorbed.partial >= 0
                        ? left_of_partial(index, absorbed)
                        : block.needed[block.needed.size() - 1 - state_of(block, absorbed.whole)];
  }
  block.left.back() = block.needed.back();
}

std::int32_t GraphPipeFloor::devices_of(const Part& part) const {
  if (part.branch < 0) return stage(part.shape);
  const auto items = static_cast<int>(form_.series[at(part.branch)].items.size());
  return piece(part.branch, 0, items);
}

std::int32_t GraphPipeFloor::left_of_partial(std::size_t block_index,
                                             const Absorption& absorbed) const {
  const GraphPipeBlock& form = form_.blocks[block_index];
  const Block& block = blocks_[block_index];
  const std::size_t others = block.needed.size() - 1 - block.stride[at(absorbed.partial)];
  std::int32_t least = sum(piece(form.classes[at(absorbed.partial)], absorbed.first, absorbed.last),
                           block.needed[others]);
  for (const BranchGroup& group : absorbed.remaining) {
    lower(least, sum(stage(group.shape), block.needed[others - state_of(block, group.counts)]));
  }
  return least;
}

/// Every piece of a series: for each end from there to the front.
void GraphPipeFloor::count_pieces(std::size_t series_index) {
  const GraphPipeSeries& series = form_.series[series_index];
  const auto items = static_cast<int>(series.items.size());
  const std::size_t cuts = at(items) + 1;
  std::vector<std::int32_t>& pieces = pieces_[series_index];
  std::fill(pieces.begin(), pieces.end(), kNever);
  for (int last = 0; last <= items; ++last) {
    const auto from = [&](int first) -> std::int32_t& {
      return pieces[at(first) * cuts + at(last)];
    };
    from(last) = 0;
    for (int e = last; e > 0; --e) {
      const std::int32_t here = from(e);
      if (here >= kNever) continue;
      for (const SeriesStage& ending : series.ending[at(e)]) {
        lower(from(ending.to), sum(here, stage(ending.shape)));
      }
      for (const SeriesStage& closing : series.closing[at(e)]) {
        const int p = closing.to - 1;
        lower(from(p), sum(here, sum(stage(closing.shape),
                                     left_of(series.items[at(p)].block, closing.absorption))));
      }
      const std::int32_t block = series.items[at(e - 1)].block;
      if (block < 0) continue;
      lower(from(e - 1), sum(here, left_of(block, -1)));
      for (const SeriesStage& opening : series.opening[at(e - 1)]) {
        lower(from(opening.to),
              sum(here, sum(stage(opening.shape), left_of(block, opening.absorption))));
      }
    }
  }
}

void GraphPipeFloor::count_before(const GraphPipeSeries& series) {
  std::fill(before_.begin(), before_.end(), kNever);
  before_[0] = 0;
  for (std::size_t e = 1; e < before_.size(); ++e) {
    std::int32_t& least = before_[e];
    for (const SeriesStage& ending : series.ending[e]) {
      lower(least, sum(before_[at(ending.to)], stage(ending.shape)));
    }
    for (const SeriesStage& closing : series.closing[e]) {
      const std::size_t p = at(closing.to) - 1;
      lower(least, sum(before_[p], sum(stage(closing.shape),
                                       left_of(series.items[p].block, closing.absorption))));
    }
    const std::int32_t block = series.items[e - 1].block;
    if (block < 0) continue;
    lower(least, sum(before_[e - 1], left_of(block, -1)));
    for (const SeriesStage& opening : series.opening[e - 1]) {
      lower(least, sum(before_[at(opening.to)],
                       sum(stage(opening.shape), left_of(block, opening.absorption))));
    }
  }
}

std::int32_t GraphPipeFloor::piece(std::int32_t series, int first, int last) const {
  const std::size_t cuts = form_.series[at(series)].items.size() + 1;
  return pieces_[at(series)][at(first) * cuts + at(last)];
}

std::int32_t GraphPipeFloor::branches(std::int32_t block, const std::vector<int>& counts) const {
  return blocks_[at(block)].needed[state_of(blocks_[at(block)], counts)];
}

std::int32_t GraphPipeFloor::left_of(std::int32_t block, std::int32_t absorption) const {
  const std::vector<std::int32_t>& left = blocks_[at(block)].left;
  return absorption < 0 ? left.back() : left[at(absorption)];
}

}  // namespace braid

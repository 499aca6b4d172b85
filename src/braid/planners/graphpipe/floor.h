#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "braid/planners/graphpipe/runs.h"
#include "braid/planners/graphpipe/shapes.h"

namespace braid {

/// Fewest devices with which parts of a graph keep a target time, if no stage had more in flight
/// than a sink and all had neighbours with the fewest copies: no plan does with fewer. Devices of
/// several kinds are weighed (graphpipe_weights), as if there were enough of each. Dynamic
/// programming over the same stages as GraphPipeTargetSearch, but with one number for each part, so
/// that a target costs a few operations for each stage of the form. Refers to form and runs.
class GraphPipeFloor {
 public:
  /// More than any plan may have: a part that does not keep the target.
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max() / 8;

  GraphPipeFloor(const GraphPipeShapes& form, const GraphPipeRuns& runs);

  /// Counts for a target time, or for one that only passes have to keep. Returns what the whole
  /// graph needs.
  std::int32_t count(double time_s, bool passes_alone = false);

  // Of the target counted last.
  std::int32_t all() const { return before_.back(); }
  /// A stage of a shape.
  std::int32_t stage(std::int32_t shape) const { return stages_[static_cast<std::size_t>(shape)]; }
  /// Items before `cut` of the whole graph's series.
  std::int32_t before(int cut) const { return before_[static_cast<std::size_t>(cut)]; }
  /// Items [first, last) of the series of a branch.
  std::int32_t piece(std::int32_t series, int first, int last) const;
  /// So many branches of each class of a block.
  std::int32_t branches(std::int32_t block, const std::vector<int>& counts) const;
  /// What an absorption, an index in the block's or -1, leaves of a block.
  std::int32_t left_of(std::int32_t block, std::int32_t absorption) const;

 private:
  /// Branches planned at once: one by itself, or several as a stage.
  struct Part {
    std::vector<int> counts;
    std::size_t grows = 0;                 ///< A state by so much.
    std::int32_t branch = -1, shape = -1;  ///< One of them: a class' series, or a stage's shape.
    std::int32_t devices = kNever;
  };
  struct Block {
    std::vector<std::size_t> stride;       ///< [class]: of states, which are counts of each class.
    std::vector<std::vector<Part>> parts;  ///< [highest class in them]
    std::vector<std::int32_t> needed;      ///< [state]
    std::vector<std::int32_t> left;        ///< [absorption], the last one without any.
  };

  void count_stages(double time_s, bool passes_alone);
  Block block_of(const GraphPipeBlock& form) const;
  void count_block(std::size_t index);
  std::int32_t devices_of(const Part& part) const;
  void cover(const GraphPipeBlock& form, Block& block) const;
  std::int32_t left_of_partial(std::size_t block_index, const Absorption& absorbed) const;
  std::size_t state_of(const Block& block, const std::vector<int>& counts) const;
  void count_pieces(std::size_t series_index);
  void count_before(const GraphPipeSeries& series);

  const GraphPipeShapes& form_;
  const GraphPipeRuns& runs_;
  std::vector<std::int32_t> stages_;               ///< [shape]
  std::vector<Block> blocks_;                      ///< As in the form.
  std::vector<std::vector<std::int32_t>> pieces_;  ///< [series]: [first · (items + 1) + last]
  std::vector<std::int32_t> before_;               ///< [cut]
};

}  // namespace braid

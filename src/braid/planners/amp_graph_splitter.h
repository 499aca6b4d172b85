#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "braid/planners/amp_graph_assignment.h"
#include "braid/planners/bottleneck_search.h"

namespace braid {

/// The dynamic program of assign_graph() over (cut, stages before it).
class GraphSplitter {
 public:
  /// Keeps references.
  GraphSplitter(const AssignmentGraph& graph, const GraphCuts& cuts);

  /// No stage of any split takes longest with less.
  double least_bottleneck_s() const { return least_bottleneck_s_; }
  /// No split synchronises in less.
  double least_sync_s() const { return least_sync_s_; }

  /// From here on only splits count whose stages' gradients each take less than `sync_below_s` and
  /// whose pipeline takes less than `pipeline_below_s`. False when it is seen that there is none.
  bool limit(double sync_below_s, double pipeline_below_s);
  /// The least sum of stage and handover times where no stage takes longer than `threshold_s`.
  /// Nullopt when no such split counts or beats the answers since limit().
  std::optional<ThresholdAnswer> solve(double threshold_s);
  /// The least threshold above that of the last solve() with another answer; infinity: none.
  double next_threshold_s() const { return next_threshold_s_; }
  // Of the last solve(), which had an answer.
  double longest_sync_s() const;
  std::vector<std::vector<std::int32_t>> stages() const;

 private:
  std::size_t at(std::size_t cut, std::size_t stage) const { return cut * (stages_ + 1) + stage; }
  std::size_t left(std::size_t cut) const { return layers_ - size_[cut]; }

  /// Appends stages that begin at `inner` and have one behind them: places [first, last].
  void extend(std::size_t inner, std::size_t first, std::size_t last);
  /// One of those, ending at `outer`. Whether a larger one might do at any place.
  bool append(std::size_t inner, std::size_t outer, std::size_t first, std::size_t last);
  /// Appends the last stage, with all that is left.
  void finish(std::size_t inner);
  void take(std::size_t inner, std::size_t outer, std::size_t stage, double stage_s);
  bool is_too_long(double stage_s);
  bool fits(std::size_t stage, std::size_t inner, std::size_t outer) const;
  /// Whether what is left at a cut may fit the stages from `stage` on.
  bool has_room(std::size_t cut, std::size_t stage) const;
  bool syncs(std::size_t inner, std::size_t outer) const;
  void grow_largest(std::size_t from, std::size_t to, std::size_t layer);
  double handover_s(std::size_t cut, std::size_t stage) const;
  void find_crossing_bytes();
  /// Fills handing_on_s_ for stages of at most `threshold_s`.
  void bound_handovers(double threshold_s);
  /// Calls `visit(stage, inner, outer)` for the stages of the answer, the last one first.
  template <typename Visit>
  void for_each_stage(Visit visit) const {
    std::size_t outer = size_.size() - 1;
    for (std::size_t stage = stages_; stage-- > 0;) {
      const std::size_t inner = inner_[at(outer, stage + 1)];
      visit(stage, inner, outer);
      outer = inner;
    }
  }

  const AssignmentGraph& graph_;
  const GraphCuts& cuts_;
  std::size_t stages_, layers_;
  double repeats_;                             ///< Micro-batches but the first.
  std::vector<std::size_t> size_;              ///< By cut, layers before it.
  std::vector<std::size_t> kind_;              ///< Of each stage: stages of equal times share it.
  std::vector<std::vector<double>> before_s_;  ///< [kind][cut]: time of the layers before it.
  std::vector<double> least_behind_s_;    ///< By cut, what is left takes on the fastest stages.
  std::vector<std::size_t> memory_kind_;  ///< Of each stage, if memory is limited.
  std::vector<std::vector<double>> before_bytes_;  ///< [memory kind][cut].
  std::vector<double> least_bytes_before_;  ///< By cut, what it holds where that needs least.
  std::vector<double> room_behind_bytes_;   ///< By stage, of it and those behind it.
  std::vector<double> sync_before_s_;       ///< By cut; empty: no synchronisation.
  std::vector<double> crossing_bytes_;      ///< By cut; empty until limit() needs it.
  double least_bottleneck_s_ = 0, least_sync_s_ = 0;

  double sync_below_s_ = 0;
  double pipeline_below_s_ = 0;  ///< Also of answers so far.
  double most_threshold_s_ = 0;  ///< With a longer stage no split counts.
  /// By stage, the least that it and those behind it take to hand over to, with its cut wherever
  /// the times of the stages before and behind allow.
  std::vector<double> handing_on_s_;

  std::vector<double> cost_s_;        ///< at(cut, stages before it).
  std::vector<std::uint32_t> inner_;  ///< The cut before that.
  double threshold_s_ = 0, next_threshold_s_ = 0;
  std::vector<std::uint32_t> open_;    ///< Cuts that extend() has still to look behind.
  std::vector<std::size_t> seen_for_;  ///< By cut, 1 + the last inner cut it was reached from.
  std::vector<double> largest_;        ///< By cut and purpose, of the layers since `inner`.
};

}  // namespace braid

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "braid/search/bottleneck_search.h"
#include "braid/search/graph_assignment.h"

namespace braid {

/// The dynamic program of assign_graph() over (cut, stages before it).
class GraphSplitter {
 public:
  /// Keeps references. `crossing_bytes`: by cut, as assign_graph() has it.
  GraphSplitter(const AssignmentGraph& graph, const GraphCuts& cuts,
                std::span<const double> crossing_bytes);

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
  /// Pairs of cuts looked at so far.
  std::int64_t steps() const { return steps_; }
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
  bool syncs(std::size_t stage, std::size_t inner, std::size_t outer) const;
  void grow_largest(std::size_t from, std::size_t to, std::size_t layer);
  /// With `cut` before `stage`.
  double handover_s(std::size_t cut, std::size_t stage) const {
    return stage == 0 ? 0 : hop_s_[(stage - 1) * hop_classes_ + hop_class_[cut]];
  }
  /// What the layers behind a cut take at least on the stages from `stage` on.
  double least_behind_s(std::size_t cut, std::size_t stage) const {
    return least_behind_s_[behind_kind_[stage]][cut];
  }
  double sync_s(std::size_t stage, std::size_t inner, std::size_t outer) const {
    const double pace = graph_.sync_pace.empty() ? 1 : graph_.sync_pace[stage];
    return (sync_before_s_[outer] - sync_before_s_[inner]) * pace;
  }
  void find_least_sync();
  void find_handovers(std::span<const double> crossing_bytes);
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
  std::vector<std::size_t> behind_kind_;       ///< Of each stage: those to come are as fast.
  std::vector<std::vector<double>> least_behind_s_;  ///< [kind of what is to come][cut].
  std::vector<std::size_t> memory_kind_;             ///< Of each stage, if memory is limited.
  std::vector<std::vector<double>> before_bytes_;    ///< [memory kind][cut].
  std::vector<double> least_bytes_before_;  ///< By cut, what it holds where that needs least.
  std::vector<double> room_behind_bytes_;   ///< By stage, of it and those behind it.
  std::vector<double> sync_before_s_;       ///< By cut; empty: no synchronisation.
  std::vector<std::size_t> hop_class_;      ///< By cut: cuts that hand over as much share it.
  std::size_t hop_classes_ = 0;
  std::vector<double> hop_s_;  ///< [stage · classes + class], from that stage to the next.
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
  std::int64_t steps_ = 0;
  std::vector<std::uint32_t> open_;    ///< Cuts that extend() has still to look behind.
  std::vector<std::size_t> seen_for_;  ///< By cut, 1 + the last inner cut it was reached from.
  std::vector<double> largest_;        ///< By cut and purpose, of the layers since `inner`.
};

}  // namespace braid

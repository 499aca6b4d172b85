#include "braid/planners/job/even_stages.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "braid/base/index.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

class StagePaths {
 public:
  StagePaths(const InterleavedLoads& loads, Ends& ends)
      : loads_(loads),
        rounds_(static_cast<int>(ends.size()) / loads.pp - 1),
        ends_(ends),
        stages_(at(loads.pp)),
        next_round_(at(loads.pp)),
        path_s_(at(loads.pp)),
        by_path_(at(loads.pp)) {
    std::int32_t layer = 0;
    for (std::size_t chunk = 0; chunk < ends.size(); ++chunk) {
      Stage& stage = stages_[chunk % stages_.size()];
      for (; layer < ends[chunk]; ++layer) stage.all_s += loads.layer_s[at(layer)];
      if (chunk < stages_.size()) stage.first_s = stage.all_s;
    }
    fill_paths();
  }

  /// Whether a layer of the stage of the longest path went to another one.
  bool move() {
    const auto from = static_cast<int>(std::ranges::max_element(path_s_) - path_s_.begin());
    const double below_s = path_s_[at(from)] * kBelowTolerance;
    std::iota(by_path_.begin(), by_path_.end(), 0);
    std::ranges::stable_sort(by_path_, {}, [&](int stage) { return path_s_[at(stage)]; });
    for (const int to : by_path_) {
      if (path_s_[at(to)] >= below_s) return false;
      if (move(from, to, below_s)) return true;
    }
    return false;
  }

 private:
  struct Stage {
    double all_s = 0, first_s = 0;  ///< Of all chunks and of the first.
  };

  void fill_paths() {
    double before_s = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      path_s_[s] = before_s + static_cast<double>(loads_.num_micro_batches) * stages_[s].all_s;
      if (loads_.fills_in_order) before_s += stages_[s].first_s;
    }
  }

  /// A layer of each stage on the way from `from` to `to`, over a cut of some round, to the next.
  bool move(int from, int to, double below_s) {
    const int step = from < to ? 1 : -1;
    moved_.clear();
    kept_ = stages_;
    bool all = true;
    for (int stage = from; stage != to && all; stage += step) {
      all = cross(std::min(stage, stage + step), step);
    }
    fill_paths();
    if (all && *std::ranges::max_element(path_s_) < below_s) {
      for (const std::size_t cut : moved_) ++next_round_[cut % stages_.size()];
      return true;
    }
    for (const std::size_t cut : moved_) ends_[cut] += step;
    stages_ = kept_;
    fill_paths();
    return false;
  }

  /// Over a cut behind `stage`: to the stage behind it for step 1, from there for -1.
  bool cross(int stage, int step) {
    for (int tried = 0; tried < rounds_; ++tried) {
      const int round = (next_round_[at(stage)] + tried) % rounds_;
      const std::size_t cut = at(round * loads_.pp + stage);
      const std::int32_t begin = cut == 0 ? 0 : ends_[cut - 1];
      const std::int32_t left = step > 0 ? ends_[cut] - begin : ends_[cut + 1] - ends_[cut];
      if (left < 2) continue;
      const double moved_s = step * loads_.layer_s[at(step > 0 ? ends_[cut] - 1 : ends_[cut])];
      Stage& before = stages_[at(stage)];
      Stage& behind = stages_[at(stage + 1)];
      before.all_s -= moved_s;
      behind.all_s += moved_s;
      if (round == 0) {
        before.first_s -= moved_s;
        behind.first_s += moved_s;
      }
      ends_[cut] -= step;
      moved_.push_back(cut);
      return true;
    }
    return false;
  }

  const InterleavedLoads& loads_;
  const int rounds_;  ///< Whose cuts move.
  Ends& ends_;
  std::vector<Stage> stages_, kept_;
  std::vector<int> next_round_;  ///< By stage: whose cut behind it moves next.
  std::vector<double> path_s_;
  std::vector<int> by_path_;  ///< Stages, that of the shortest first.
  std::vector<std::size_t> moved_;
};

}  // namespace

void even_stages(const InterleavedLoads& loads, Ends& ends) {
  if (loads.pp < 2 || std::ssize(ends) < 2 * std::int64_t{loads.pp}) return;
  StagePaths paths(loads, ends);
  for (int moves = 0; moves < 4 * loads.pp && paths.move(); ++moves) {
  }
}

}  // namespace braid

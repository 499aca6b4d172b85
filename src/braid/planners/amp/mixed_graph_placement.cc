#include "braid/planners/amp/mixed_graph_placement.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/planners/job/alternatives.h"
#include "braid/search/graph_bound.h"

namespace braid {
namespace {

class GraphPlacement : public PlacementCosts {
 public:
  GraphPlacement(AmpMixedParts& parts, std::int64_t most_steps, std::int64_t steps, double best_s)
      : parts_(parts), job_(parts.job()), most_steps_(most_steps), steps_(steps), best_s_(best_s) {
    for (const Configuration& configuration : job_.configurations()) {
      const std::vector<double> bytes = job_.least_handover_bytes(configuration);
      const auto stages = static_cast<std::size_t>(configuration.pp);
      auto& least_bytes = least_bytes_.emplace_back();
      // A layer at least for each stage before and behind.
      for (std::size_t stage = 1; stage < stages && stages <= job_.layers(); ++stage) {
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(stage);
        const auto last = bytes.end() - static_cast<std::ptrdiff_t>(stages - stage);
        least_bytes.push_back(*std::min_element(first, last));
      }
    }
  }

  AmpMixedPlacements run(std::int64_t most_states, const Progress& progress) {
    const PlacementSearchResult searched = parts_.search(*this, best_s_, most_states, progress);
    AmpMixedPlacements placements;
    placements.found = std::move(found_);
    placements.states = searched.states;
    placements.bound_s = std::min(searched.bound_s, left_out_s_);
    return placements;
  }

  double bound_s(const PartialPlacement& partial) override {
    const Configuration& configuration = job_.configurations()[partial.shape];
    const auto stages = static_cast<std::size_t>(configuration.pp);
    if (stages > job_.layers()) return kInfinity;
    std::vector<StagePace> paces;
    double sync_s = 0;
    if (partial.stages.empty()) {
      const std::vector<AmpMixedParts::Pace> of_groups = parts_.paces(partial.shape);
      for (const AmpMixedParts::Pace& pace : of_groups) {
        paces.push_back({pace.table->times_s, pace.count});
      }
      sync_s = parts_.least_sync_s(partial.shape, of_groups.front().table->synced_parameters);
    } else {
      const AmpMixedParts::Stages placed = parts_.stages(partial);
      for (const AmpMixedJob::StageTable* table : placed.tables) {
        const auto known = std::find_if(paces.begin(), paces.end(), [&](const StagePace& pace) {
          return pace.layer_s.data() == table->times_s.data();
        });
        if (known != paces.end()) {
          ++known->count;
        } else {
          paces.push_back({table->times_s, 1});
        }
      }
      sync_s = placed.sync_s;
    }
    double least_s =
        sync_s +
        least_pipeline_s(paces, 1, static_cast<double>(configuration.num_micro_batches - 1));
    for (std::size_t stage = 0; stage + 1 < stages; ++stage) {
      least_s += parts_.hop_s(partial, stage, least_bytes_[partial.shape][stage]);
    }
    return least_s;
  }

  double complete_s(const PartialPlacement& placement) override {
    if (steps_ >= most_steps_) {
      left_out_s_ = std::min(left_out_s_, placement.bound_s);
      return kInfinity;
    }
    const Configuration& configuration = job_.configurations()[placement.shape];
    const std::vector<std::int64_t> devices = parts_.devices_of(placement);
    auto found = job_.evaluate_as_graph(
        configuration, AmpMixedJob::placement_of(configuration, devices), best_s_, steps_);
    if (!found.has_value()) return kInfinity;
    best_s_ = found->cost_s;
    found_.push_back(std::move(*found));
    return best_s_;
  }

 private:
  AmpMixedParts& parts_;
  AmpMixedJob& job_;
  std::int64_t most_steps_, steps_;
  double best_s_;
  double left_out_s_ = kInfinity;
  std::vector<std::vector<double>> least_bytes_;  ///< [configuration][hop], of a flow.
  std::vector<AmpMixedAssignment> found_;
};

double least_cost_s(const std::vector<AmpMixedAssignment>& found) {
  double least_s = kInfinity;
  for (const AmpMixedAssignment& one : found) least_s = std::min(least_s, one.cost_s);
  return least_s;
}

}  // namespace

std::int64_t cut_branches(AmpMixedJob& job, std::vector<AmpMixedAssignment>& found,
                          std::int64_t& steps, std::int64_t most_steps) {
  std::stable_sort(
      found.begin(), found.end(),
      [](const AmpMixedAssignment& a, const AmpMixedAssignment& b) { return a.cost_s < b.cost_s; });
  std::vector<std::size_t> best_of;  // Of each configuration, the cheapest first.
  ClassCosts costs;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool known = std::any_of(best_of.begin(), best_of.end(), [&](std::size_t other) {
      return found[other].stages.front().config == found[i].stages.front().config;
    });
    if (known) continue;
    best_of.push_back(i);
    costs.add(found[i].stages.front().config, found[i].cost_s);
  }
  std::int64_t tries = 0;
  for (std::size_t i = 0; i < best_of.size() && steps < most_steps; ++i) {
    const AmpMixedAssignment& in_order = found[best_of[i]];
    const Configuration form = in_order.stages.front().config;
    if (form.pp == 1) continue;
    AmpMixedJob::Placement placement;
    for (const PlacedStage& stage : in_order.stages) placement.push_back(stage.devices);
    ++tries;
    const double below_s = std::min(in_order.cost_s, costs.kth_least_s(job.shown()));
    auto better = job.evaluate_as_graph(form, placement, below_s, steps);
    if (!better.has_value()) continue;
    costs.add(form, better->cost_s);
    found.push_back(std::move(*better));
  }
  return tries;
}

AmpMixedPlacements place_amp_mixed_as_graph(AmpMixedParts& parts, AmpMixedPlacements in_order,
                                            std::int64_t most_states, const Progress& progress,
                                            std::int64_t most_steps) {
  std::int64_t steps = 0;
  cut_branches(parts.job(), in_order.found, steps, most_steps);
  GraphPlacement search(parts, most_steps, steps, least_cost_s(in_order.found));
  AmpMixedPlacements placements = search.run(most_states, progress);
  placements.states += in_order.states;
  placements.found.insert(placements.found.end(), in_order.found.begin(), in_order.found.end());
  return placements;
}

}  // namespace braid

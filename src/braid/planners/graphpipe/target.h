#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "braid/planners/graphpipe/floor.h"
#include "braid/planners/graphpipe/frontier.h"
#include "braid/planners/graphpipe/problem.h"
#include "braid/planners/graphpipe/runs.h"
#include "braid/planners/graphpipe/shapes.h"

namespace braid {

/// How far a search for plans goes.
enum class GraphPipeEffort : std::uint8_t {
  relaxed,  ///< As if no stage had more in flight than a sink: where there is no plan, there is
            ///< none.
  quick,    ///< Stages on the fewest devices that they fit on, partial plans by their rounds alone.
  full,     ///< There is a plan if any keeps the target. Only the least counts need it.
};

/// Plans whose stages keep a target time per sample: dynamic programming from the sink over the
/// series and blocks of a problem's shapes. Each of `groups` may be any stage's. Refers to problem
/// and shapes.
class GraphPipeTargetSearch {
 public:
  GraphPipeTargetSearch(const GraphPipeProblem& problem, const GraphPipeShapes& form,
                        std::vector<PassGroup> groups);
  GraphPipeTargetSearch(const GraphPipeTargetSearch&) = delete;  // Its floor refers to its runs.
  GraphPipeTargetSearch& operator=(const GraphPipeTargetSearch&) = delete;

  /// The Pareto-optimal plans of the whole graph that were found, with InFlight::least at least the
  /// one with the shortest path through the stages and back. `keep_long`: partial plans whose path
  /// is longer than that of a plan found are not left out, to hold the search against.
  GraphPipeFrontier plans_at(double time_s, GraphPipeEffort effort, bool keep_long = false);

  /// Whether there are as many devices as any plan at that time needs (GraphPipeFloor): without,
  /// there is none. `passes_alone`: a plan whose stages' passes take no longer.
  bool has_devices(double time_s, bool passes_alone = false);

  const GraphPipeRuns& runs() const { return runs_; }
  /// What the plans returned last are made of.
  const std::vector<GraphPipeChoice>& choices() const { return choices_; }
  void swap_choices(std::vector<GraphPipeChoice>& other) { choices_.swap(other); }
  /// Stages examined so far.
  std::int64_t work() const { return work_; }

 private:
  /// What a partial plan in front of a label depends on, besides devices.
  using Values =
      std::tuple<double, std::int32_t, std::int32_t, std::array<std::int64_t, kMostMixedGroups>>;
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, Values>;

  /// Branches planned at once: one by itself, or several whole ones as a stage.
  struct Part {
    std::vector<int> counts;
    GraphPipeFrontier plans;
    GraphPipeLabel ideal;  ///< Of the plans.
    GraphPipeChoice::Kind kind = GraphPipeChoice::Kind::part;
    std::int32_t what = 0;
  };

  // Stages and series (planners/graphpipe/target.cc).
  GraphPipeLabel sink() const;
  std::int32_t add(const GraphPipeChoice& choice);
  Values values_of(const GraphPipeLabel& label) const;
  bool is_too_long(const GraphPipeLabel& label) const;
  void put_stage(std::int32_t shape_index, const GraphPipeLabel& label, std::int32_t limit,
                 GraphPipeFrontier& frontier);
  void put_stage(std::int32_t shape_index, std::size_t group, std::size_t strategy,
                 const GraphPipeLabel& label, std::int32_t limit, GraphPipeFrontier& frontier);
  bool extend(const GraphPipeShape& shape, std::size_t group, std::size_t strategy,
              const GraphPipeShare& share, GraphPipeLabel& label) const;
  bool hand_over(const GraphPipeShape& shape, double compute_s, const GraphPipeShare& share,
                 std::size_t strategy, GraphPipeLabel& label) const;
  const GraphPipeFrontier& front(std::int32_t series_index, int first, int last,
                                 const GraphPipeLabel& start);
  GraphPipeFrontier plan_series(std::int32_t series_index, int first, int last,
                                const GraphPipeLabel& start);

  // Blocks of branches (planners/graphpipe/target_branches.cc).
  void put_block(std::int32_t block_index, std::int32_t absorption, const GraphPipeLabel& label,
                 std::int32_t limit, GraphPipeFrontier& frontier);
  GraphPipeFrontier plan_block(std::int32_t block_index, std::int32_t absorption,
                               const GraphPipeLabel& start);
  const std::vector<Part>& parts_of(std::int32_t block_index, const GraphPipeLabel& start);
  std::vector<Part> plan_parts(std::int32_t block_index, const GraphPipeLabel& start);
  void put_partial(std::int32_t block_index, const Absorption& absorbed,
                   const GraphPipeLabel& start, const std::vector<int>& counts,
                   const std::vector<GraphPipeFrontier>& covered, GraphPipeFrontier& result);
  void put_part(const GraphPipeFrontier& others, const Part& part, std::int32_t limit,
                GraphPipeFrontier& result);
  std::vector<GraphPipeFrontier> cover(std::int32_t block_index, const std::vector<int>& counts,
                                       const std::vector<Part>& all_parts,
                                       const GraphPipeLabel& base);

  const GraphPipeProblem& problem_;
  const GraphPipeShapes& form_;
  std::vector<PassGroup> groups_;
  GraphPipeRuns runs_;
  GraphPipeRanking ranking_;
  bool table_;
  GraphPipeFloor floor_;
  std::pair<double, bool> floor_target_{-1, false};  ///< The target that it is counted for.
  bool keep_long_ = false;
  GraphPipeEffort effort_ = GraphPipeEffort::quick;
  double time_s_ = 0;                                     ///< The target.
  std::array<std::int32_t, kMostGraphPipePools> most_{};  ///< Devices of each kind.
  /// Weighed devices to spare beyond the fewest: what a part of a plan may use more than its own
  /// fewest.
  std::int32_t slack_ = 0;
  /// The shortest path through the stages and back among plans of the whole graph found so far, if
  /// plans are ranked by it: others are not needed.
  double shortest_s_ = 0;
  std::vector<GraphPipeChoice> choices_;
  std::map<Key, GraphPipeFrontier> known_series_, known_blocks_;
  std::map<Key, std::vector<Part>> known_parts_;
  std::int64_t work_ = 0;
};

}  // namespace braid

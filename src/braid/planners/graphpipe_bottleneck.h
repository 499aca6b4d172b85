#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "braid/planners/graphpipe_problem.h"
#include "braid/planners/graphpipe_shapes.h"
#include "braid/planners/graphpipe_target.h"

namespace braid {

/// The least stage time at which there is a plan with some of a problem's micro-batch sizes, among
/// those that a stage attains.
class GraphPipeBottleneckSearch {
 public:
  GraphPipeBottleneckSearch(const GraphPipeProblem& problem, const GraphPipeShapes& form,
                            std::vector<PassGroup> groups);

  /// The least time below `limit_s` at which there is a plan; infinite when there is none.
  double least_time_s(double limit_s);
  /// The plan with the shortest way through the stages and back among those found at that time, as
  /// price_graphpipe has it for `priced`, the search's problem or one that differs in edges.
  std::optional<GraphPipeSolution> plan_at(double time_s, const GraphPipeProblem& priced);
  /// Whether there would be a plan if a stage never had more in flight than a sink.
  bool has_relaxed(double time_s);
  /// Whether there may be a plan whose stages' passes take less than that per sample, which no
  /// network changes.
  bool may_pass_in(double time_s);
  /// Stages examined so far.
  std::int64_t work() const { return search_ ? search_->work() : 0; }

 private:
  GraphPipeTargetSearch& search();
  bool find(double time_s);

  const GraphPipeProblem& problem_;
  const GraphPipeShapes& form_;
  std::vector<PassGroup> groups_;
  double bound_s_;                                 ///< No plan's slowest stage is faster.
  std::unique_ptr<GraphPipeTargetSearch> search_;  ///< Made when bounds alone do not answer.
  double found_s_ = -1;                            ///< Of the plans found last …
  GraphPipeFrontier found_;                        ///< … these …
  std::vector<GraphPipeChoice> choices_;           ///< … and what they are made of.
};

/// One search for all of a problem's groups if they may be mixed, else one for each, the largest
/// first: its plans are mostly the fastest, and the others then only have to be ruled out.
std::vector<GraphPipeBottleneckSearch> graphpipe_searches(const GraphPipeProblem& problem,
                                                          const GraphPipeShapes& form);

}  // namespace braid

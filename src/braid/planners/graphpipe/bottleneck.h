#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/graphpipe/problem.h"
#include "braid/planners/graphpipe/shapes.h"
#include "braid/planners/graphpipe/target.h"

namespace braid {

/// The least rate at which there is a plan with some of a problem's micro-batch sizes: with the
/// table among the times that stages attain, with the least counts among all, exactly or, where it
/// is none of a plan that is found, to a share of 1e-9. More rate never costs a plan, so that the
/// quick search (GraphPipeEffort) needs to be checked by the full one only right below its answer,
/// and only where there might be a plan if stages had no more in flight than sinks.
class GraphPipeBottleneckSearch {
 public:
  GraphPipeBottleneckSearch(const GraphPipeProblem& problem, const GraphPipeShapes& form,
                            std::vector<PassGroup> groups);

  /// The least time that a stage attains, below `limit_s`, at which the quick search finds a plan;
  /// infinite when there is none.
  double quick_time_s(double limit_s);
  /// The least rate at which there is a plan, if it is below `limit_s` or plans were found at that;
  /// infinite when there is none. The quick search goes first if it has not; if it has, with a
  /// limit that was no lower.
  double least_time_s(double limit_s);
  /// The plan with the shortest path through the stages and back among those found at that rate, by
  /// the quick search if nothing else was, as price_graphpipe has it for `priced`, the search's
  /// problem or one that differs in edges.
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
  bool find(double time_s, GraphPipeEffort effort);
  double least_below_s(double low_s, double high_s);
  double rate_of_found_s() const;
  GraphPipeSolution shortest_found() const;

  const GraphPipeProblem& problem_;
  const GraphPipeShapes& form_;
  std::vector<PassGroup> groups_;
  double bound_s_;                                 ///< No plan's slowest stage is faster.
  double quick_s_ = kInfinity;                     ///< What the quick search found.
  double relaxed_s_ = -1;                          ///< Below there is nothing; -1: not known yet.
  double longest_s_ = 0;                           ///< Of times that stages attain.
  std::unique_ptr<GraphPipeTargetSearch> search_;  ///< Made when bounds alone do not answer.
  double found_s_ = -1;                            ///< Rate of the plans found last …
  GraphPipeFrontier found_;                        ///< … these …
  std::vector<GraphPipeChoice> choices_;           ///< … and what they are made of.
};

/// One search for all of a problem's groups if they may be mixed, else one for each, the largest
/// first: its plans are mostly the fastest, and the others then only have to be ruled out.
std::vector<GraphPipeBottleneckSearch> graphpipe_searches(const GraphPipeProblem& problem,
                                                          const GraphPipeShapes& form);

}  // namespace braid

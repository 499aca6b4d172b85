#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/planners/phaze/objective.h"
#include "braid/planners/phaze/problem.h"
#include "braid/search/progress.h"

namespace braid {

struct PhazeStage {
  std::vector<std::int32_t> layers;  ///< Ascending.
  std::int32_t branches = 1;         ///< Groups of devices that share the stage's layers.
  std::int64_t devices = 1;          ///< Of one pipeline.
  double forward_s = 0, backward_s = 0;
  double weight_bytes = 0;  ///< Of the group that has most.
  double peak_bytes = 0;    ///< Of the fullest device.
};

/// Stages in pipeline order, the same in each of dp pipelines, tensor parallelism tp throughout.
struct PhazePlacement {
  std::int32_t tp = 1;
  std::int64_t dp = 1;
  std::int64_t micro_batches = 1;  ///< Of the busiest pipeline: ⌈micro-batches / dp⌉.
  std::vector<PhazeStage> stages;
  double program_s = 0;  ///< By PhazeObjective::program.
  double flush_s = 0;    ///< By PhazeObjective::flush.
  double bound_s = 0;    ///< As place_phaze() found it: no placement's objective is less.
  bool all_cuts = true;  ///< Whether place_phaze() looked at all ways to cut the graph.

  bool fits(const PhazeProblem& problem) const;  ///< Memory and number of devices.
};

struct PhazeOptions {
  PhazeObjective objective = PhazeObjective::flush;
  /// Whether parallel branches of a stage may have devices of their own, as in the paper; the
  /// program knows linear graphs only.
  bool branches = true;
  /// Only as many pipelines as divide the micro-batches (not for `program`).
  bool dividing = false;
  std::size_t most_cuts = 100'000;      ///< Downsets of the layer graph.
  std::size_t most_stages = 2'000'000;  ///< Pairs of them; seconds of work.
  /// Partial plans that `simulated` looks through beyond what its bounds settle.
  std::int64_t most_plans = 1'000'000;
  Progress progress = {};  ///< Told of each combination tried; may be empty.
};

/// The placement whose objective is least over widths, dp, number of stages, stages and branches,
/// within memory and devices. nullopt when none fits. Exact for `program` and `flush`, and for
/// `simulated` unless it would take more than `most_plans`: then `bound_s` is below its time.
/// Among equals by `program`: the lowest width, then dp. Of a graph with more cuts or stages than
/// the options allow only cuts along some topological orders are looked at (downset_lattice.h), and
/// `bound_s` is what devices and the longest way through the layers allow.
///
/// A table over (stages from the end, cut, devices used) of the least longest load, made once for
/// each width, serves all dp; `flush` and `simulated` then go through (width, dp, stages) by rising
/// lower bound and keep the undominated partial plans of those whose bound is below the best
/// (planners/phaze/search.h). Cost: O(widths · stages · pairs of cuts).
std::optional<PhazePlacement> place_phaze(const PhazeProblem& problem, const PhazeOptions& options);

/// The placement with these stages (layers and branches are read), with all its figures.
PhazePlacement phaze_placement(const PhazeProblem& problem, const PhazeWidth& width,
                               std::int64_t dp, const std::vector<PhazeStage>& stages);

/// Time of one iteration by simulation of flushed 1F1B. O(stages · micro-batches).
double phaze_simulated_s(const PhazeProblem& problem, const PhazePlacement& placement);

/// The expert's plan of the input, as the program cuts it: transformer layers in equal runs. Its
/// numbering counts the layer listed first (an embedding) as the first transformer layer and
/// leaves the last layer over, which goes to the last stage. nullopt when there is no expert or no
/// such width. It need not fit: the program then discards its own plan too, this planner does not.
std::optional<PhazePlacement> phaze_expert_placement(const PhazeProblem& problem);

/// Why place_phaze() finds nothing.
struct PhazeShortfall {
  /// Which layer cannot be placed and how many bytes it misses; or how many all devices miss
  /// together; or, when each layer would fit alone, how many bytes more of each device the most
  /// frugal plan needs, and in which of its stages.
  std::string reason;
  bool proven = true;  ///< That there is no plan: not when only some cuts were looked at.
};
PhazeShortfall phaze_shortfall(const PhazeProblem& problem, const PhazeOptions& options);

}  // namespace braid

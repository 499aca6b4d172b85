#include "braid/planners/phaze/placement.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/planners/phaze/search.h"
#include "braid/planners/phaze/stage.h"
#include "braid/planners/phaze/table.h"
#include "braid/schedule/pipeline_time.h"

namespace braid {
namespace {

double sync_s(const PhazeProblem& problem, std::int64_t dp, double weight_bytes) {
  return 4 * static_cast<double>(dp - 1) / static_cast<double>(dp) *
         (weight_bytes / problem.bytes_per_s);
}

PhazePlacement placement_of(const PhazeProblem& problem, const PhazeWidth& width,
                            const PhazeLattice& lattice, const PhazeSequence& found) {
  std::vector<PhazeStage> stages;
  for (const PhazeCandidate& candidate : found.stages) {
    PhazeStage stage;
    stage.branches = candidate.branches;
    (lattice.sets[candidate.outer] - lattice.sets[candidate.inner]).for_each([&](std::size_t l) {
      stage.layers.push_back(static_cast<std::int32_t>(l));
    });
    stages.push_back(std::move(stage));
  }
  return phaze_placement(problem, width, found.dp, stages);
}

}  // namespace

bool PhazePlacement::fits(const PhazeProblem& problem) const {
  std::int64_t devices = 0;
  for (const PhazeStage& stage : stages) {
    devices += stage.devices;
    if (!(stage.peak_bytes <= problem.memory_bytes)) return false;
  }
  return devices <= problem.devices / dp;
}

PhazePlacement phaze_placement(const PhazeProblem& problem, const PhazeWidth& width,
                               std::int64_t dp, const std::vector<PhazeStage>& stages) {
  PhazePlacement placement;
  placement.tp = width.tp;
  placement.dp = dp;
  placement.micro_batches = (problem.micro_batches - 1) / dp + 1;
  placement.stages = stages;
  PhazeStageCoster coster(problem);
  std::vector<PhazeCandidate> costs;
  costs.reserve(stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    PhazeStage& stage = placement.stages[i];
    Bitset layers(problem.names.size());
    for (const std::int32_t layer : stage.layers) layers.set(static_cast<std::size_t>(layer));
    const PhazeStageCost cost = coster.cost(width, layers, stage.branches);
    const auto from_end = static_cast<std::int64_t>(stages.size() - i);
    costs.push_back(phaze_candidate(problem, cost, 0, 0, stage.branches));
    stage.devices = cost.devices;
    stage.forward_s = cost.forward_s;
    stage.backward_s = backward_of(costs.back(), from_end);
    stage.weight_bytes = cost.weight_bytes;
    stage.peak_bytes = cost.peak_bytes(from_end);
  }
  const PhazeFormulas formulas = phaze_formulas(problem, dp, costs);
  placement.program_s = formulas.program_s;
  placement.flush_s = formulas.flush_s;
  return placement;
}

namespace {

/// All that is made once for each width.
struct WidthSearch {
  const PhazeWidth* width = nullptr;
  PhazeCandidates candidates;
  PhazeTable table;
  PhazeSums sums;
  PhazeSpace space;

  WidthSearch(const PhazeProblem& problem, const PhazeWidth& of_width, const PhazeLattice& lattice,
              bool branches)
      : width(&of_width),
        candidates(phaze_candidates(problem, of_width, lattice, branches)),
        table(candidates, lattice.size(),
              std::min(static_cast<std::int64_t>(problem.names.size()), problem.devices),
              problem.devices),
        sums(phaze_sums(candidates, lattice.size())),
        space{&problem, &candidates, &table, &sums, lattice.size()} {}
};

std::optional<PhazePlacement> place_by_program(const PhazeProblem& problem,
                                               const PhazeLattice& lattice, bool branches) {
  std::optional<PhazePlacement> best;
  double best_s = kInfinity;
  for (const PhazeWidth& width : problem.widths) {
    const WidthSearch search(problem, width, lattice, branches);
    const auto found = best_by_program(search.space, best_s);
    if (!found.has_value()) continue;
    best_s = found->objective_s;
    best = placement_of(problem, width, lattice, *found);
    best->bound_s = best->program_s;
  }
  return best;
}

/// Least time of a batch however the layers are cut, branch and are replicated: all devices busy
/// all the time, or a single micro-batch all the way.
double least_batch_s(const PhazeProblem& problem) {
  std::vector<std::vector<std::size_t>> sources(problem.names.size());
  for (const auto& [source, target] : problem.edges) {
    sources[static_cast<std::size_t>(target)].push_back(static_cast<std::size_t>(source));
  }
  double least_s = kInfinity;
  for (const PhazeWidth& width : problem.widths) {
    double work_s = 0;  // Of all devices.
    double longest_s = 0;
    std::vector<double> done_s(problem.names.size(), 0);
    for (std::size_t layer = 0; layer < width.layers.size(); ++layer) {
      const PhazeLayer& values = width.layers[layer];
      const double time_s = values.forward_s + values.backward_s;
      work_s += time_s * (values.tensor_parallel ? width.tp : 1);
      for (const std::size_t source : sources[layer]) {
        done_s[layer] = std::max(done_s[layer], done_s[source]);
      }
      done_s[layer] += time_s;
      longest_s = std::max(longest_s, done_s[layer]);
    }
    const double busy_s =
        work_s * static_cast<double>(problem.micro_batches) / static_cast<double>(problem.devices);
    least_s = std::min(least_s, std::max(busy_s, longest_s));
  }
  return least_s * kBelowRounding;
}

/// A combination to be tried, numbered as they were made.
struct SearchNode {
  PhazeCombination combination;
  const WidthSearch* search = nullptr;
  std::size_t number = 0;
};

std::optional<PhazePlacement> place_among(const PhazeProblem& problem, const PhazeOptions& options,
                                          const PhazeLattice& lattice) {
  if (options.objective == PhazeObjective::program) {
    return place_by_program(problem, lattice, options.branches);
  }
  std::vector<std::unique_ptr<WidthSearch>> searches;
  std::vector<SearchNode> open;
  for (const PhazeWidth& width : problem.widths) {
    searches.push_back(std::make_unique<WidthSearch>(problem, width, lattice, options.branches));
    for (const PhazeCombination& combination :
         phaze_combinations(searches.back()->space, options.objective)) {
      if (options.dividing && problem.micro_batches % combination.dp != 0) continue;
      open.push_back({combination, searches.back().get(), open.size()});
    }
  }
  // Of thousands, few are tried.
  const auto later = [](const SearchNode& a, const SearchNode& b) {
    return std::pair(a.combination.bound_s, a.number) > std::pair(b.combination.bound_s, b.number);
  };
  std::make_heap(open.begin(), open.end(), later);
  std::optional<PhazePlacement> best;
  double best_s = kInfinity, bound_s = kInfinity;
  std::int64_t plans_left = options.most_plans, combinations = 0;
  for (; !open.empty(); open.pop_back()) {
    std::pop_heap(open.begin(), open.end(), later);
    const auto& [combination, search, number] = open.back();
    if (!(combination.bound_s < best_s)) break;
    if (options.progress) {
      options.progress(best_s, std::min({combination.bound_s, best_s, bound_s}), ++combinations);
    }
    std::optional<PhazeSequence> found;
    if (options.objective == PhazeObjective::simulated) {
      PhazeSimulated simulated = best_by_simulation(search->space, combination, best_s, plans_left);
      bound_s = std::min(bound_s, simulated.bound_s);
      plans_left -= simulated.plans;
      found = std::move(simulated.best);
    } else {
      found = best_by_flush(search->space, combination, best_s);
    }
    if (!found.has_value()) continue;
    best_s = found->objective_s;
    best = placement_of(problem, *search->width, lattice, *found);
  }
  if (best.has_value()) best->bound_s = std::min(best_s, bound_s);
  return best;
}

}  // namespace

std::optional<PhazePlacement> place_phaze(const PhazeProblem& problem,
                                          const PhazeOptions& options) {
  const PhazeLattice lattice = phaze_lattice(problem, options);
  auto best = place_among(problem, options, lattice);
  if (lattice.complete || !best.has_value()) return best;
  best->all_cuts = false;
  best->bound_s = std::min(best->bound_s, least_batch_s(problem));
  return best;
}

double phaze_simulated_s(const PhazeProblem& problem, const PhazePlacement& placement) {
  PipelineWorkspace workspace;
  Pipeline pipeline;
  pipeline.schedule = ScheduleKind::one_f_one_b;
  pipeline.pp = static_cast<int>(placement.stages.size());
  pipeline.num_micro_batches = placement.micro_batches;
  for (std::size_t i = 0; i < placement.stages.size(); ++i) {
    const PhazeStage& stage = placement.stages[i];
    pipeline.forward_s.push_back(stage.forward_s);
    pipeline.backward_s.push_back(stage.backward_s);
    StageSync sync;
    sync.gradient_sync_s = sync_s(problem, placement.dp, stage.weight_bytes);
    pipeline.sync.push_back(sync);
    const auto at = static_cast<std::int32_t>(i);
    if (i > 0) pipeline.transfers.push_back({at - 1, at, 0});
  }
  return pipeline_time_s(pipeline, workspace);
}

std::optional<PhazePlacement> phaze_expert_placement(const PhazeProblem& problem) {
  if (!problem.expert.has_value()) return std::nullopt;
  const PhazeExpert& expert = *problem.expert;
  const auto width =
      std::find_if(problem.widths.begin(), problem.widths.end(),
                   [&](const PhazeWidth& candidate) { return candidate.tp == expert.tp; });
  const auto layers = static_cast<std::int64_t>(problem.names.size());
  if (width == problem.widths.end() || expert.pp > expert.transformer_layers ||
      expert.transformer_layers > layers) {
    return std::nullopt;
  }
  std::vector<PhazeStage> stages(static_cast<std::size_t>(expert.pp));
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::int64_t stage =
        std::min(layer * expert.pp / expert.transformer_layers, expert.pp - 1);
    stages[static_cast<std::size_t>(stage)].layers.push_back(static_cast<std::int32_t>(layer));
  }
  return phaze_placement(problem, *width, expert.dp, stages);
}

namespace {

/// A plan that needs least memory of a device, at most a millionth too much; nullopt when there is
/// none whatever the memory.
std::optional<PhazePlacement> most_frugal(PhazeProblem problem, PhazeOptions options,
                                          const PhazeLattice& lattice) {
  options.objective = PhazeObjective::program;
  const auto placed = [&](double memory_bytes) {
    problem.memory_bytes = memory_bytes;
    return place_among(problem, options, lattice);
  };
  const double given_bytes = std::max(1.0, problem.memory_bytes);
  ThresholdRange tried{given_bytes, given_bytes};
  std::optional<PhazePlacement> found = first_within(tried, 4, placed);
  if (!found) return std::nullopt;
  const auto next = [](const ThresholdRange& range) { return range.next_by_half(kExactThreshold); };
  return least_memory(tried, std::move(*found), next, placed,
                      [&tried](const PhazePlacement&) { return tried.high; });
}

const PhazeStage& fullest(const PhazePlacement& placement) {
  return *std::max_element(
      placement.stages.begin(), placement.stages.end(),
      [](const PhazeStage& a, const PhazeStage& b) { return a.peak_bytes < b.peak_bytes; });
}

/// What some layer lacks on devices of its own; empty when each fits there.
std::string shortfall_of_layers(const PhazeProblem& problem) {
  PhazeStageCoster coster(problem);
  for (std::size_t layer = 0; layer < problem.names.size(); ++layer) {
    Bitset alone(problem.names.size());
    alone.set(layer);
    double least_bytes = kInfinity;
    std::int64_t least_devices = problem.devices + 1;
    for (const PhazeWidth& width : problem.widths) {
      const PhazeStageCost cost = coster.cost(width, alone, 1);
      least_devices = std::min(least_devices, cost.devices);
      if (cost.devices <= problem.devices) least_bytes = std::min(least_bytes, cost.peak_bytes(1));
    }
    if (least_devices > problem.devices) {
      return fmt::format("layer {} needs more than the {} devices at every width",
                         problem.names[layer], problem.devices);
    }
    if (least_bytes > problem.memory_bytes) {
      return fmt::format("layer {} alone needs {:.0f} bytes more than a device has",
                         problem.names[layer], least_bytes - problem.memory_bytes);
    }
  }
  return {};
}

/// Least bytes that the layers hold on all devices of a pipeline together, however they are cut.
double least_bytes_of_all(const PhazeProblem& problem) {
  double least_bytes = kInfinity;
  for (const PhazeWidth& width : problem.widths) {
    double bytes = 0;
    for (const PhazeLayer& layer : width.layers) {
      bytes += (problem.held_bytes(layer) + layer.activation_bytes) *
               (layer.tensor_parallel ? width.tp : 1);
    }
    least_bytes = std::min(least_bytes, bytes);
  }
  return least_bytes * kBelowRounding;
}

std::string name_of_stage(const PhazeProblem& problem, const PhazeStage& stage) {
  const auto name = [&](std::int32_t layer) {
    return problem.names[static_cast<std::size_t>(layer)];
  };
  if (stage.layers.size() == 1) return "layer " + name(stage.layers.front());
  return fmt::format("{} layers from {} to {}", stage.layers.size(), name(stage.layers.front()),
                     name(stage.layers.back()));
}

}  // namespace

PhazeShortfall phaze_shortfall(const PhazeProblem& problem, const PhazeOptions& options) {
  std::string of_layers = shortfall_of_layers(problem);
  if (!of_layers.empty()) return {std::move(of_layers)};
  const PhazeLattice lattice = phaze_lattice(problem, options);
  const double all_bytes = static_cast<double>(problem.devices) * problem.memory_bytes;
  const double least_bytes = least_bytes_of_all(problem);
  if (!lattice.complete && least_bytes > all_bytes) {
    return {
        fmt::format("each layer would fit alone, but all layers together hold {:.0f} bytes, "
                    "{:.0f} more than all devices together",
                    least_bytes, least_bytes - all_bytes)};
  }
  const auto frugal = most_frugal(problem, options, lattice);
  const std::string which =
      lattice.complete ? "of every plan"
                       : fmt::format(
                             "cut along four topological orders (there are more than {} cuts or {} "
                             "stages)",
                             options.most_cuts, options.most_stages);
  if (!frugal.has_value()) {
    return {fmt::format("no stages {} fit on {} devices, whatever their memory", which,
                        problem.devices),
            lattice.complete};
  }
  const PhazeStage& stage = fullest(*frugal);
  return {fmt::format("each layer would fit alone, but the stages {} need more: stage {} of the "
                      "most frugal one ({}) needs {:.0f} bytes of a device, {:.0f} more than it "
                      "has",
                      which, &stage - frugal->stages.data() + 1, name_of_stage(problem, stage),
                      stage.peak_bytes, stage.peak_bytes - problem.memory_bytes),
          lattice.complete};
}

}  // namespace braid

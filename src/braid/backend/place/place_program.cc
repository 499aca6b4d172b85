#include "braid/backend/place/place_program.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "braid/backend/executor.h"
#include "braid/backend/measure/kernel_problem.h"
#include "braid/backend/place/candidates.h"
#include "braid/backend/placement/cheapest_placement.h"
#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// A kernel on its way to be measured, with what it works on.
struct Trial {
  CostKey key;
  KernelJob job;
  std::unique_ptr<Kernel> kernel;
  std::vector<DenseTensor> inputs;
  std::vector<const DenseTensor*> pointers;
  DenseTensor output;
};

class Measurer {
 public:
  Measurer(const FixedProgram& fixed, const ProgramOpGraph& graph,
           const std::vector<KernelCandidate>& candidates, CostStore* store,
           const PlaceOptions& options, ProgramPlacement& result)
      : fixed_(fixed),
        graph_(graph),
        candidates_(candidates),
        store_(store),
        options_(options),
        result_(result),
        costs_s_(candidates.size(), std::nan("")),
        machine_(machine_name()) {}

  double cost_s(std::size_t candidate) {
    if (std::isnan(costs_s_[candidate])) find_costs(candidates_[candidate].nodes.front());
    return costs_s_[candidate];
  }

 private:
  static constexpr double infinite_s = std::numeric_limits<double>::infinity();

  using Key = std::pair<const BackendPattern*, std::string>;

  /// The costs of all candidates that begin at a node.
  void find_costs(NodeId first) {
    std::vector<std::unique_ptr<Trial>> trials;
    std::map<Key, std::size_t> trial_of;  // In `trials`; equal jobs are measured once.
    std::map<std::size_t, Key> waiting;   // Candidates by their number.
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const KernelCandidate& candidate = candidates_[c];
      if (candidate.nodes.front() != first) continue;
      if (candidate.backend == nullptr) {
        costs_s_[c] = fixed_.reference_s[at(first)];
        continue;
      }
      KernelJob job = kernel_job(fixed_.program, graph_, candidate.match, fixed_.forms);
      Key key(candidate.pattern, job_text(job));
      if (const auto known = known_s_.find(key); known != known_s_.end()) {
        costs_s_[c] = known->second;
        continue;
      }
      waiting.emplace(c, key);
      if (trial_of.contains(key)) continue;
      if (auto trial = trial_for(candidate, std::move(job), key)) {
        trial_of.emplace(key, trials.size());
        trials.push_back(std::move(trial));
      }
    }
    measure_trials(trials, trial_of);
    for (const auto& [candidate, key] : waiting) costs_s_[candidate] = known_s_.at(key);
  }

  /// nullptr where the cost is known now, if only as infinite.
  std::unique_ptr<Trial> trial_for(const KernelCandidate& candidate, KernelJob job,
                                   const Key& key) {
    auto trial = std::make_unique<Trial>();
    trial->key = {candidate.backend->name, candidate.backend->version,
                  candidate.pattern->name, key.second,
                  options_.threads,        machine_};
    if (store_ != nullptr) {
      if (const auto found = store_->find(trial->key)) {
        known_s_[key] = found->median_s;
        ++result_.known;
        return nullptr;
      }
    }
    trial->job = std::move(job);
    known_s_[key] = infinite_s;
    const auto leave_out = [&](const std::string& problem) {
      result_.wrong.push_back(fmt::format("{}: {}: {}: {}", trial->key.backend, trial->key.pattern,
                                          trial->key.job, problem));
    };
    try {
      trial->kernel = candidate.pattern->make(trial->job);
      if (trial->kernel == nullptr) return nullptr;
      trial->inputs = random_inputs(trial->job.region, 1);
      const std::string problem = kernel_problem(*trial->kernel, trial->job, trial->inputs);
      if (!problem.empty()) {
        leave_out(problem);
        return nullptr;
      }
    } catch (const Error& error) {
      leave_out(error.what());
      return nullptr;
    }
    for (const DenseTensor& each : trial->inputs) trial->pointers.push_back(&each);
    trial->output = DenseTensor(trial->job.output_form().type, trial->job.output_form().shape);
    return trial;
  }

  void measure_trials(const std::vector<std::unique_ptr<Trial>>& trials,
                      const std::map<Key, std::size_t>& trial_of) {
    std::vector<std::function<void()>> tasks;
    tasks.reserve(trials.size());
    for (const auto& trial : trials) {
      tasks.emplace_back([t = trial.get()] { t->kernel->run(t->pointers, t->output); });
    }
    const std::vector<Measurement> measured = measure(tasks, options_.measure);
    for (const auto& [key, number] : trial_of) {
      known_s_[key] = measured[number].median_s;
      if (store_ != nullptr) store_->add(trials[number]->key, measured[number]);
      ++result_.measured;
    }
  }

  const FixedProgram& fixed_;
  const ProgramOpGraph& graph_;
  const std::vector<KernelCandidate>& candidates_;
  CostStore* store_;
  const PlaceOptions& options_;
  ProgramPlacement& result_;
  std::vector<double> costs_s_;  ///< By candidate; NaN where not asked for.
  std::map<Key, double> known_s_;
  std::string machine_;
};

}  // namespace

ProgramPlacement place_program(const FixedProgram& fixed, const std::vector<FoundBackend>& backends,
                               CostStore* store, const PlaceOptions& options) {
  ProgramPlacement result;
  const ProgramOpGraph graph = op_graph_of(fixed.program);
  const std::vector<KernelCandidate> candidates = kernel_candidates(fixed, graph, backends);
  result.candidates = static_cast<std::int64_t>(candidates.size());
  Measurer measurer(fixed, graph, candidates, store, options, result);
  PlacementProblem problem;
  problem.node_count = static_cast<std::int32_t>(fixed.program.nodes.size());
  for (const KernelCandidate& each : candidates) problem.candidates.push_back({each.nodes});
  problem.cost_s = [&](std::size_t candidate) { return measurer.cost_s(candidate); };
  problem.cost_per_kernel_s = options.cost_per_kernel_s;
  const auto placement = cheapest_placement(problem);
  assert(placement);  // Reference kernels cover every node.
  for (const std::size_t chosen : placement->candidates) {
    const KernelCandidate& each = candidates[chosen];
    const bool reference = each.backend == nullptr;
    result.groups.push_back(
        {reference ? "reference" : each.backend->name,
         reference ? fixed.program.nodes[at(each.nodes.front())].operation : each.pattern->name,
         each.nodes, measurer.cost_s(chosen)});
    result.predicted_s += result.groups.back().cost_s;
  }
  // A group runs when its root does: all that it reads are roots before.
  std::sort(
      result.groups.begin(), result.groups.end(),
      [](const PlacedGroup& a, const PlacedGroup& b) { return a.nodes.back() < b.nodes.back(); });
  return result;
}

}  // namespace braid

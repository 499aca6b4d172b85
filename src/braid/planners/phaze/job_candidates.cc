#include "braid/planners/phaze/job_candidates.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "braid/planners/phaze/search.h"

namespace braid {
namespace {

/// Largest number of micro-batches in flight that a stage has memory for.
std::int64_t most_in_flight(const RunSums& sums, const MemoryForm& form) {
  const double held_bytes = device_bytes(sums, 0, form);
  const double each_bytes = device_bytes(sums, 1, form) - held_bytes;
  const double free_bytes = form.available_bytes - held_bytes;
  if (!(free_bytes >= 0)) return 0;
  constexpr double kMostInFlight = 1e9;
  auto most = static_cast<std::int64_t>(
      each_bytes > 0 ? std::min(kMostInFlight, free_bytes / each_bytes) : kMostInFlight);
  while (most > 0 && device_bytes(sums, static_cast<double>(most), form) > form.available_bytes) {
    --most;
  }
  return most;
}

/// A stage of layers with these sums, but for its cuts and how many micro-batches it has room for.
PhazeCandidate candidate_of(const RunSums& sums, const Configuration& configuration,
                            const PhazeJobNetwork& network, double entering_s, double leaving_s) {
  PhazeCandidate candidate;
  candidate.devices = configuration.tp;
  candidate.backward_s = candidate.last_backward_s = leaving_s + sums.backward_s;
  candidate.load_s = candidate.last_load_s = entering_s + sums.forward_s + candidate.backward_s;
  // Phaze charges 4·(dp - 1)/dp times the bytes; a ring moves half of that.
  candidate.gradients_s =
      ((sums.dense_parameters + sums.expert_parameters * expert_sync_share(configuration)) *
           network.gradient_bytes +
       sums.gradient_bytes) /
      2 / network.bytes_per_s;
  return candidate;
}

double transfer_s(double bytes_of_sample, const Configuration& configuration,
                  const PhazeJobNetwork& network) {
  return boundary_bytes({0, 0, bytes_of_sample}, to_parallelism(configuration)) /
         network.bytes_per_s;
}

/// Stages that begin at one cut after another, grown layer by layer.
class StageGrowth {
 public:
  StageGrowth(OneFormJob& job, const Configuration& configuration, const PhazeJobNetwork& network,
              double longest_s)
      : configuration_(configuration),
        network_(network),
        cuts_(job.cuts().cuts),
        layers_(job.table(configuration).chain),
        memory_(job.memory(configuration)),
        longest_s_(longest_s),
        sums_(cuts_.sets.size()),
        seen_for_(cuts_.sets.size()) {
    for (const double bytes : job.cuts().crossing_bytes) {
      crossing_s_.push_back(transfer_s(bytes, configuration, network));
    }
    std::vector<double> times_s;
    for (const ChainLayer& layer : layers_) times_s.push_back(layer.time_s());
    before_s_ = cuts_.sums(times_s);
  }

  /// Appends those that begin at `inner`.
  void append(std::uint32_t inner, std::vector<PhazeCandidate>& found) {
    // The other stages do what is before or behind.
    const double most_elsewhere_s =
        configuration_.pp == 1 ? 0 : (configuration_.pp - 1) * longest_s_ / kBelowRounding;
    if (before_s_[inner] > most_elsewhere_s) return;
    sums_[inner] = {};
    open_.assign(1, inner);
    while (!open_.empty()) {
      const std::uint32_t from = open_.back();
      open_.pop_back();
      for (std::size_t s = cuts_.first_step[from]; s < cuts_.first_step[from + 1]; ++s) {
        const auto [layer, outer] = cuts_.steps[s];
        if (seen_for_[outer] == inner + 1) continue;
        seen_for_[outer] = inner + 1;
        RunSums& sums = sums_[outer];
        sums = sums_[from];
        sums.add(layers_[layer]);
        if (crossing_s_[inner] + sums.time_s() > longest_s_) continue;
        const std::int64_t in_flight = most_in_flight(sums, memory_);
        if (in_flight == 0) continue;
        open_.push_back(outer);
        const double elsewhere_s = before_s_.back() - before_s_[outer] + before_s_[inner];
        if (elsewhere_s > most_elsewhere_s) continue;
        PhazeCandidate candidate =
            candidate_of(sums, configuration_, network_, crossing_s_[inner], crossing_s_[outer]);
        if (candidate.load_s > longest_s_) continue;
        candidate.inner = inner;
        candidate.outer = outer;
        candidate.most_from_end = static_cast<std::int32_t>(in_flight);
        found.push_back(candidate);
      }
    }
  }

 private:
  const Configuration& configuration_;
  const PhazeJobNetwork& network_;
  const GraphCuts& cuts_;
  const std::span<const ChainLayer> layers_;
  MemoryForm memory_;
  double longest_s_;
  std::vector<double> crossing_s_, before_s_;  ///< By cut.
  std::vector<RunSums> sums_;                  ///< By cut, of the layers since `inner`.
  std::vector<std::size_t> seen_for_;  ///< By cut, 1 + the last inner cut it was reached from.
  std::vector<std::uint32_t> open_;
};

}  // namespace

PhazeCandidates phaze_chain_candidates(OneFormJob& job, const Configuration& configuration,
                                       const PhazeJobNetwork& network) {
  const std::span<const ChainLayer> layers = job.table(configuration).chain;
  const MemoryForm form = job.memory(configuration);
  std::vector<double> crossing_s(layers.size() + 1, 0);  // In front of each layer.
  for (std::size_t l = 1; l < layers.size(); ++l) {
    crossing_s[l] = transfer_s(job.cut_bytes()[l - 1], configuration, network);
  }
  PhazeCandidates candidates;
  for (std::size_t left = 0; left < layers.size(); ++left) {
    candidates.offset.push_back(candidates.all.size());
    RunSums sums;
    for (std::size_t right = left + 1; right <= layers.size(); ++right) {
      sums.add(layers[right - 1]);
      const std::int64_t in_flight = most_in_flight(sums, form);
      if (in_flight == 0) break;
      PhazeCandidate candidate =
          candidate_of(sums, configuration, network, crossing_s[left], crossing_s[right]);
      candidate.inner = static_cast<std::uint32_t>(left);
      candidate.outer = static_cast<std::uint32_t>(right);
      candidate.most_from_end = static_cast<std::int32_t>(in_flight);
      candidates.all.push_back(candidate);
    }
  }
  candidates.offset.push_back(candidates.all.size());
  candidates.offset.push_back(candidates.all.size());
  candidates.rising = is_rising(candidates);
  return candidates;
}

std::optional<PhazeCandidates> phaze_graph_candidates(OneFormJob& job,
                                                      const Configuration& configuration,
                                                      const PhazeJobNetwork& network,
                                                      double longest_s, std::size_t most) {
  StageGrowth stages(job, configuration, network, longest_s);
  PhazeCandidates candidates;
  const std::size_t cuts = job.cuts().cuts.sets.size();
  for (std::size_t cut = 0; cut < cuts; ++cut) {
    candidates.offset.push_back(candidates.all.size());
    stages.append(static_cast<std::uint32_t>(cut), candidates.all);
    if (candidates.all.size() > most) return std::nullopt;
  }
  candidates.offset.push_back(candidates.all.size());
  return candidates;
}

std::optional<PhazeJobStages> phaze_graph_start(OneFormJob& job, const Configuration& configuration,
                                                const PhazeJobNetwork& network, double below_s,
                                                std::int64_t& steps) {
  // Both neighbours are charged for what crosses a cut.
  AssignmentGraph graph = job.assignment_graph(configuration);
  graph.s_per_byte.assign(static_cast<std::size_t>(configuration.pp - 1),
                          2 * transfer_s(1, configuration, network));
  auto assignment =
      assign_graph(graph, job.cuts().cuts, job.cuts().crossing_bytes, below_s, &steps);
  if (!assignment.has_value()) return std::nullopt;
  PhazeJobStages found;
  found.bound_s = assignment->pipeline_s * kBelowRounding;
  found.layers = std::move(assignment->stages);
  const std::vector<double> handed_on = handed_on_bytes(graph, found.layers);
  const std::span<const ChainLayer> layers = job.table(configuration).chain;
  const MemoryForm form = job.memory(configuration);
  for (std::size_t s = 0; s < found.layers.size(); ++s) {
    RunSums sums;
    for (const std::int32_t l : found.layers[s]) sums.add(layers[static_cast<std::size_t>(l)]);
    found.stages.push_back(
        candidate_of(sums, configuration, network,
                     transfer_s(s == 0 ? 0 : handed_on[s - 1], configuration, network),
                     transfer_s(handed_on[s], configuration, network)));
    found.stages.back().most_from_end = static_cast<std::int32_t>(most_in_flight(sums, form));
  }
  return found;
}

}  // namespace braid

#include "braid/planners/phaze/table.h"

#include <algorithm>

#include <fmt/format.h>

#include "braid/base/infinity.h"
#include "braid/base/pareto_front.h"
#include "braid/planners/phaze/linear.h"

namespace braid {
namespace {

/// Steps of a table, a few nanoseconds each.
constexpr std::int64_t kMostTableSteps = 5'000'000'000;

}  // namespace

PhazeLattice phaze_lattice(const PhazeProblem& problem, const PhazeOptions& options) {
  const Dag dag = make_dag(problem.names.size(), problem.edges);
  const std::size_t layers = problem.names.size();
  auto cuts = downset_lattice(dag, options.most_cuts);
  auto pairs = cuts ? downset_pairs(cuts->sets, layers, options.most_stages) : std::nullopt;
  if (!pairs.has_value()) {
    cuts = order_lattice(dag);
    pairs = downset_pairs(cuts->sets, layers, options.most_stages);
  }
  if (!pairs.has_value()) {
    throw Error(fmt::format("the graph can be cut into more than {} stages", options.most_stages),
                "join layers that follow each other");
  }
  const auto stages = std::min(static_cast<std::int64_t>(problem.names.size()), problem.devices);
  if (static_cast<std::int64_t>(pairs->size()) > kMostTableSteps / stages) {
    throw Error(fmt::format("{} layers with {} possible stages are too many to place",
                            problem.names.size(), pairs->size()),
                "join layers that follow each other");
  }
  std::stable_sort(pairs->begin(), pairs->end(),
                   [](const DownsetPair& a, const DownsetPair& b) { return a.inner < b.inner; });
  return {std::move(*cuts), std::move(*pairs)};
}

PhazeCandidate phaze_candidate(const PhazeProblem& problem, const PhazeStageCost& cost,
                               std::size_t inner, std::size_t outer, std::int32_t branches) {
  PhazeCandidate candidate;
  candidate.inner = static_cast<std::uint32_t>(inner);
  candidate.outer = static_cast<std::uint32_t>(outer);
  candidate.branches = branches;
  candidate.most_from_end = static_cast<std::int32_t>(cost.most_from_end(problem.memory_bytes));
  candidate.devices = cost.devices;
  candidate.load_s = cost.load_s(false);
  candidate.last_load_s = cost.load_s(true);
  candidate.backward_s = cost.backward_s;
  candidate.last_backward_s = cost.last_backward_s;
  candidate.gradients_s = cost.weight_bytes / problem.bytes_per_s;
  return candidate;
}

bool is_rising(const PhazeCandidates& candidates) {
  for (std::size_t i = 1; i < candidates.all.size(); ++i) {
    const PhazeCandidate &a = candidates.all[i - 1], &b = candidates.all[i];
    if (a.inner == b.inner &&
        !(a.outer < b.outer && a.load_s <= b.load_s && a.last_load_s <= b.last_load_s &&
          a.devices <= b.devices && a.most_from_end >= b.most_from_end)) {
      return false;
    }
  }
  return true;
}

PhazeCandidates phaze_candidates(const PhazeProblem& problem, const PhazeWidth& width,
                                 const PhazeLattice& lattice, bool branches) {
  if (lattice.complete && lattice.size() == problem.names.size() + 1) {
    PhazeCandidates linear = phaze_linear_candidates(problem, width);
    linear.rising = is_rising(linear);
    return linear;
  }
  PhazeCandidates candidates;
  candidates.offset.assign(lattice.size() + 1, 0);
  candidates.all.reserve(lattice.pairs.size());
  PhazeStageCoster coster(problem);
  for (const DownsetPair& pair : lattice.pairs) {
    const Bitset layers = lattice.sets[pair.outer] - lattice.sets[pair.inner];
    const std::int32_t most = branches ? coster.useful_branches(layers) : 1;
    for (std::int32_t count = 1; count <= most; ++count) {
      const PhazeStageCost cost = coster.cost(width, layers, count);
      if (cost.devices > problem.devices || !(cost.peak_bytes(1) <= problem.memory_bytes)) continue;
      candidates.all.push_back(phaze_candidate(problem, cost, pair.inner, pair.outer, count));
      ++candidates.offset[pair.inner + 1];
    }
  }
  for (std::size_t cut = 0; cut < lattice.size(); ++cut) {
    candidates.offset[cut + 1] += candidates.offset[cut];
  }
  return candidates;
}

namespace {

/// Adds an entry to the few that have different numbers of devices.
void offer(std::vector<PhazeEntry>& found, std::int64_t devices, double longest_s) {
  for (PhazeEntry& entry : found) {
    if (entry.devices != devices) continue;
    entry.longest_s = std::min(entry.longest_s, longest_s);
    return;
  }
  found.push_back({devices, longest_s});
}

}  // namespace

PhazeTable::PhazeTable(const PhazeCandidates& candidates, std::size_t cuts,
                       std::int64_t most_stages, std::int64_t most_devices) {
  // No stages: nothing is left behind the last cut.
  entries_.push_back({{0, 0}});
  offsets_.emplace_back(cuts + 1, 0);
  offsets_.back().back() = 1;
  std::vector<PhazeEntry> found;
  std::size_t last = cuts - 1;
  for (std::int64_t s = 1; s <= most_stages; ++s) {
    std::vector<PhazeEntry> entries;
    std::vector<std::size_t> offset(cuts + 1, 0);
    // Behind later cuts there are not as many stages as are to come.
    while (last > 0 && at(s - 1, last).empty()) --last;
    for (std::size_t cut = 0; cut < cuts; ++cut) {
      found.clear();
      for (const PhazeCandidate& candidate : candidates.from(cut)) {
        if (candidate.outer > last) {
          if (candidates.rising) break;
          continue;
        }
        const double load_s = s == 1 ? candidate.last_load_s : candidate.load_s;
        // Each stage behind takes a device at least.
        if (candidate.most_from_end < s ||
            is_dominated(found, PhazeEntry{candidate.devices + s - 1, load_s},
                         PhazeEntry::no_worse)) {
          if (candidates.rising) break;
          continue;
        }
        for (const PhazeEntry& behind : at(s - 1, candidate.outer)) {
          const std::int64_t devices = candidate.devices + behind.devices;
          if (devices > most_devices) break;
          offer(found, devices, std::max(load_s, behind.longest_s));
        }
      }
      std::sort(found.begin(), found.end(),
                [](const PhazeEntry& a, const PhazeEntry& b) { return a.devices < b.devices; });
      double least_s = kInfinity;
      for (const PhazeEntry& entry : found) {
        if (!(entry.longest_s < least_s)) continue;
        least_s = entry.longest_s;
        entries.push_back(entry);
      }
      offset[cut + 1] = entries.size();
    }
    if (entries.empty()) return;
    entries_.push_back(std::move(entries));
    offsets_.push_back(std::move(offset));
  }
}

double PhazeTable::least_longest_s(std::int64_t stages, std::int64_t devices) const {
  double least_s = kInfinity;
  for (const PhazeEntry& entry : at(stages, 0)) {
    if (entry.devices <= devices) least_s = entry.longest_s;
  }
  return least_s;
}

}  // namespace braid

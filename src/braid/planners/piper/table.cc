#include "braid/planners/piper/table.h"

#include <algorithm>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/planners/piper/tables.h"

namespace braid {
namespace {

/// A sum of data-parallel degrees, and the least time with it.
struct Corner {
  std::int32_t suffix;
  double time;
};

class TableRun {
 public:
  TableRun(const PiperProblem& problem, const DownsetLattice& prefixes)
      : tables_(problem, prefixes) {
    table_.devices = problem.devices;
    table_.suffixes = std::min(problem.devices, problem.micro_batches);
    corners_.resize(tables_.size());
    for (auto& of_suffix : corners_) {
      of_suffix.resize(static_cast<std::size_t>(problem.devices) + 1);
    }
    for (std::vector<Corner>& none : corners_[0]) none = {{0, 0}};
  }

  PiperTable run() {
    const std::size_t sets = tables_.size();
    for (std::size_t outer = 1; outer < sets; ++outer) {
      table_.time.assign(static_cast<std::size_t>(table_.devices * table_.suffixes), kInfinity);
      for (std::size_t inner = 0; inner < outer; ++inner) {
        if (!tables_.is_subset(inner, outer)) continue;
        for (std::size_t t = 0; t < tables_.degrees().size(); ++t) {
          PiperStageSums stage = tables_.sums(inner, outer, static_cast<std::int32_t>(t));
          if (stage.possible) put_in_front(stage);
        }
      }
      settle(corners_[outer]);
    }
    table_.proven = tables_.proven();
    return std::move(table_);
  }

 private:
  double& entry(std::int64_t devices, std::int64_t suffix) {
    return table_.time[static_cast<std::size_t>((devices - 1) * table_.suffixes + suffix - 1)];
  }

  /// Tries the stage in front of all that is kept of the suffix behind it.
  void put_in_front(PiperStageSums& stage) {
    const auto dps = tables_.dp_degrees();
    const std::int64_t tp = tables_.degrees()[static_cast<std::size_t>(stage.degree)];
    const auto& behind = corners_[static_cast<std::size_t>(stage.inner)];
    for (std::size_t dp = 0; dp < dps.size() && dps[dp] * tp <= table_.devices; ++dp) {
      times_.assign(1, 0);  // By how many are in flight; filled in as they are needed.
      for (std::int64_t devices = 0; devices + dps[dp] * tp <= table_.devices; ++devices) {
        for (const Corner& corner : behind[static_cast<std::size_t>(devices)]) {
          const std::int64_t suffix = corner.suffix + dps[dp];
          if (suffix > table_.suffixes) break;
          const double time = time_of(stage, dp, 1 + (corner.suffix + dps[dp] - 1) / dps[dp]);
          if (time == kInfinity) break;
          double& best = entry(devices + dps[dp] * tp, suffix);
          best = std::min(best, std::max(time, corner.time));
          if (time >= corner.time) break;
        }
      }
    }
  }

  double time_of(PiperStageSums& stage, std::size_t dp, std::int64_t in_flight) {
    if (in_flight > stage.most_in_flight_fast && in_flight > tables_.most_in_flight(stage)) {
      return kInfinity;
    }
    const auto place = static_cast<std::size_t>(in_flight);
    if (times_.size() <= place) times_.resize(place + 1, -1);
    if (times_[place] < 0) {
      times_[place] = tables_.least_time(stage, dp, in_flight);
    }
    return times_[place];
  }

  /// Makes the entries those for at most so many of both, and keeps the corners.
  void settle(std::vector<std::vector<Corner>>& corners) {
    for (std::int64_t k = 1; k <= table_.devices; ++k) {
      double last = kInfinity;
      for (std::int64_t s = 1; s <= table_.suffixes; ++s) {
        double& time = entry(k, s);
        if (k > 1) time = std::min(time, entry(k - 1, s));
        if (s > 1) time = std::min(time, entry(k, s - 1));
        if (time < last) {
          corners[static_cast<std::size_t>(k)].push_back({static_cast<std::int32_t>(s), time});
          last = time;
        }
      }
    }
  }

  PiperTables tables_;
  PiperTable table_;
  std::vector<std::vector<std::vector<Corner>>> corners_;  ///< [suffix][devices]
  std::vector<double> times_;
};

}  // namespace

PiperTable piper_table(const PiperProblem& problem, const PiperSearchLimits& limits) {
  if (problem.rules.knapsack == PiperKnapsack::heuristic) {
    throw Error("a table goes with the exact knapsack only", "leave out --knapsack heuristic");
  }
  const std::int64_t suffixes = std::min(problem.devices, problem.micro_batches);
  if (problem.devices > kMostPiperTableEntries / suffixes) {
    throw Error("a table of " + std::to_string(problem.devices) + " devices times " +
                    std::to_string(suffixes) + " data-parallel degrees is too large",
                "use fewer devices or micro-batches");
  }
  if (!has_options(problem)) {
    PiperTable none{problem.devices, suffixes, {}, true};
    none.time.assign(static_cast<std::size_t>(problem.devices * suffixes), kInfinity);
    return none;
  }
  return TableRun(problem, piper_prefixes(problem, limits)).run();
}

}  // namespace braid

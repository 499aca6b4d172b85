#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/base/index.h"
#include "braid/planners/piper/problem.h"
#include "braid/search/downset_lattice.h"
#include "braid/search/knapsack.h"

namespace braid {

/// What a stage's layers cost together at one tensor-parallel degree, whatever its data-parallel
/// degree: bounds, or exact for the fastest options when PiperTables::is_simple(degree).
struct PiperStageSums {
  std::int32_t inner = 0, outer = 0;  ///< The stage is suffix `outer` without suffix `inner`.
  std::int32_t degree = 0;            ///< Index in PiperTables::degrees().
  bool possible = false;              ///< Every layer has an option for the degree.
  double time = 0;                    ///< For one micro-batch, border included.
  double sync_time = 0;               ///< Parameter bytes over bandwidth.
  double in_flight_bytes = 0, fixed_bytes = 0;  ///< Of the fastest options.
  /// Most micro-batches in flight with which the fastest options fit memory, and any do; the latter
  /// -1 until PiperTables::most_in_flight() finds it.
  std::int64_t most_in_flight_fast = 0, most_in_flight = -1;
};

/// What counts of stages for the layers before them; less of both is never worse.
struct PiperUse {
  std::int64_t devices = 0;
  std::int64_t replicas = 0;  ///< Sum of data-parallel degrees.

  static bool no_worse(const PiperUse& a, const PiperUse& b) {
    return a.devices <= b.devices && a.replicas <= b.replicas;
  }
};

/// A piper problem over its suffixes (sets of layers closed under successors: what is left to the
/// stages from some point on), with the sums that price any stage in a few steps. The problem has
/// to outlive it. Not to be shared between threads.
class PiperTables {
 public:
  /// `prefixes`: the complements of the suffixes.
  PiperTables(const PiperProblem& problem, const DownsetLattice& prefixes);

  /// Suffixes are numbered by size from the empty one, 0, to the whole one, size() - 1.
  std::size_t size() const { return suffixes_; }
  bool is_subset(std::size_t inner, std::size_t outer) const {
    for (std::size_t w = 0; w < words_; ++w) {
      if ((bits_[inner * words_ + w] & ~bits_[outer * words_ + w]) != 0) return false;
    }
    return true;
  }
  std::span<const int> degrees() const { return degrees_; }
  std::span<const std::int64_t> dp_degrees() const { return dp_; }
  /// Index of the first data-parallel degree of at least `dp`.
  std::size_t first_dp(std::int64_t dp) const {
    return dp >= static_cast<std::int64_t>(first_dp_.size())
               ? dp_.size()
               : static_cast<std::size_t>(first_dp_[at(std::max(dp, std::int64_t{0}))]);
  }
  double share(std::size_t dp) const { return share_[dp]; }
  double sync_factor(std::size_t dp) const { return sync_[dp]; }

  /// Device time that the layers of a suffix take at least, over all degrees; and time alone.
  double least_work(std::size_t suffix) const { return least_work_[suffix]; }
  double least_time(std::size_t suffix) const { return least_time_[suffix]; }
  /// What the slowest stage of any solution takes at least with all devices at work and
  /// data-parallel degrees of `most_sum` together.
  double least_limit(std::int64_t most_sum) const;
  /// Time that any solution's slowest stage takes at least for some single layer's sake, when that
  /// has all devices.
  double least_layer_time() const { return least_layer_time_; }

  /// Do all options of every layer have the same parameter bytes and re-layouts at this degree?
  bool is_simple(std::int32_t degree) const { return simple_[at(degree)]; }
  PiperStageSums sums(std::size_t inner, std::size_t outer, std::int32_t degree) const;
  /// Bytes that the stage takes at least with so many micro-batches in flight.
  double least_bytes(const PiperStageSums& stage, std::int64_t in_flight) const;
  /// Most micro-batches in flight with which the stage may fit memory, up to min(devices,
  /// micro_batches); remembered in it.
  std::int64_t most_in_flight(PiperStageSums& stage) const;
  /// Can the stage fit memory in at most `limit` time, by the rules' knapsack? Answers about a
  /// simple degree are remembered for other limits and data-parallel degrees.
  KnapsackAnswer fits(const PiperStageSums& stage, std::size_t dp, std::int64_t in_flight,
                      double limit) {
    return fits(stage, share_[dp], sync_[dp], in_flight, limit);
  }
  KnapsackAnswer fits(const PiperStageSums& stage, double share, double sync_factor,
                      std::int64_t in_flight, double limit);
  /// Does it certainly, when its fastest options are known to keep the limit?
  bool keeps(PiperStageSums& stage, double share, double sync_factor, std::int64_t in_flight,
             double limit);
  /// The stage's least time by the exact knapsack; infinity when it does not fit.
  double least_time(const PiperStageSums& stage, std::size_t dp, std::int64_t in_flight);
  /// False once a knapsack has been too large: keeps() may then be wrong to say no, and
  /// least_time() too much.
  bool proven() const { return proven_; }
  /// What replaces stage.time when memory is looked at: no selection that fits takes less.
  double least_time_within(const PiperStageSums& stage, std::int64_t in_flight);
  /// The stage with its best options by the rules' knapsack (or as good as they were found, when
  /// the knapsack is too large); it has to fit at all. Not priced.
  PiperStage choose(const PiperStageSums& stage, std::size_t dp, std::int64_t in_flight) {
    PiperStage chosen = choose(stage, share_[dp], sync_[dp], in_flight);
    chosen.dp = dp_[dp];
    return chosen;
  }
  PiperStage choose(const PiperStageSums& stage, double share, double sync_factor,
                    std::int64_t in_flight);

 private:
  struct Choice {
    double time, sync_time, in_flight_bytes, fixed_bytes;
  };
  struct Kind {  ///< Layers that cost the same but for re-layouts at a stage's border.
    std::vector<std::vector<Choice>> choices;  ///< By degree.
  };
  struct Group {  ///< Of the knapsack: layers of a kind, or one layer with its own re-layouts.
    std::int32_t kind;
    std::vector<std::int32_t> nodes;
  };

  void read_kinds();
  void read_suffixes(const DownsetLattice& prefixes);
  void read_edges();
  void sum_suffixes();
  void bound_layers();
  template <typename Visit>
  void for_each_border_edge(std::size_t inner, std::size_t outer, Visit&& visit) const;
  bool has(std::size_t suffix, std::int32_t node) const {
    return (bits_[suffix * words_ + at(node) / 64] >> (at(node) % 64) & 1) != 0;
  }
  const PiperDegree* degree_of(std::size_t node, std::int32_t degree) const;
  /// Bounds of the least time of a stage's layers within memory, border left out.
  struct Within {
    std::uint64_t key = 0;
    double low = 0;
    double high = 0;  ///< Of a selection: the greedy one, or a better one found since.
  };
  struct Step {  ///< From a choice to the next lighter one, for each layer of a kind.
    double ratio, time, saved;
    std::int32_t kind;
  };

  const double* memory_row(std::int32_t degree, std::int64_t in_flight) const;
  const std::vector<Step>& steps_row(std::int32_t degree, std::int64_t in_flight);
  Within relax(const PiperStageSums& stage, std::int64_t in_flight);
  Within& within(const PiperStageSums& stage, std::int64_t in_flight);
  void grow_known();
  double border_time(const PiperStageSums& stage) const;
  void fill_groups(const PiperStageSums& stage, double share, double sync, std::int64_t in_flight,
                   bool with_nodes);

  const PiperProblem* problem_;
  std::size_t suffixes_ = 0, words_ = 0;
  std::vector<std::uint64_t> bits_;
  std::vector<int> degrees_;
  std::vector<std::int64_t> dp_;
  std::vector<std::int32_t> first_dp_;  ///< By degree.
  std::vector<double> share_, sync_;
  std::vector<std::int32_t> kind_of_;
  std::vector<Kind> kinds_;
  std::vector<bool> simple_;
  std::vector<std::int32_t> kind_counts_;             ///< [suffix][kind]
  std::vector<std::vector<std::int32_t>> missing_;    ///< [degree][suffix]: layers without options.
  std::vector<std::vector<Choice>> fastest_;          ///< [degree][suffix]
  std::vector<std::vector<Choice>> fastest_of_kind_;  ///< [degree][kind]
  std::vector<double> least_work_, least_time_;
  double least_layer_time_ = 0;
  std::vector<std::vector<std::int32_t>> crossing_;  ///< [suffix]: edges that enter it, by tensor.
  std::vector<std::int32_t> tensor_of_;              ///< Of an edge.
  std::vector<std::int32_t> in_place_, out_place_;   ///< Of an edge among its layer's.
  std::vector<std::vector<double>> in_bytes_, out_bytes_;  ///< [degree][edge], least of options.
  mutable std::vector<std::vector<std::vector<double>>> memory_rows_;  ///< [degree][in_flight]
  std::vector<std::vector<std::vector<Step>>> steps_rows_;  ///< [degree][in_flight], by ratio.
  std::vector<Within> known_;                               ///< Open hash table; key 0 is empty.
  std::size_t known_count_ = 0;
  Within unknown_;  ///< Handed out when the table is full.
  bool proven_ = true;
  // Scratch of the knapsack.
  Knapsack knapsack_;
  std::vector<KnapsackGroup> groups_;
  std::vector<KnapsackChoice> group_choices_;
  std::vector<Group> members_;
};

/// Calls visit(edge, enters) for each edge that crosses the stage's border and is to be paid for.
template <typename Visit>
void PiperTables::for_each_border_edge(std::size_t inner, std::size_t outer, Visit&& visit) const {
  const bool once = problem_->rules.tensors == PiperTensors::once;
  std::int32_t paid = -1;
  for (const std::int32_t e : crossing_[outer]) {
    if (once && tensor_of_[at(e)] == paid) continue;
    if (has(inner, problem_->edges[at(e)].target)) continue;
    paid = tensor_of_[at(e)];
    visit(at(e), true);
  }
  paid = -1;
  for (const std::int32_t e : crossing_[inner]) {
    if (once && tensor_of_[at(e)] == paid) continue;
    if (!has(outer, problem_->edges[at(e)].source)) continue;
    paid = tensor_of_[at(e)];
    visit(at(e), false);
  }
}

}  // namespace braid

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/plan/chain_layer.h"
#include "braid/plan/memory_form.h"

namespace braid {

//   const std::vector<double> handover_s = {1e-4, 1e-4, 1e-4};  // between four stages
//   const auto split = partition_one_f_one_b(layers, handover_s, 8, memory);
//   if (split) split->ends;                                     // {8, 16, 24, 32} of equal layers

/// What the stages of a chain hand over, each to the next.
struct Handovers {
  std::span<const double> time_s;  ///< From each stage to the next, one direction.
  bool blocking = false;           ///< The pass that sends lasts until the transfer is done.

  Handovers(std::span<const double> each_s, bool sends_block = false)
      : time_s(each_s), blocking(sends_block) {}
  Handovers(const std::vector<double>& each_s, bool sends_block = false)
      : time_s(each_s), blocking(sends_block) {}
  std::size_t size() const { return time_s.size(); }
};

/// Ends of the stages: stage i holds layers [ends[i-1], ends[i]), ends[-1] = 0.
using Ends = std::vector<std::int32_t>;

struct Partition {
  Ends ends;
  /// Length of the longest path through the 1F1B schedule that the objective counts; no simulation
  /// of this partition can be shorter.
  double path_s = 0;
  double excess_s = 0;        ///< What the path has more than all stages and handovers together.
  bool memory_bound = false;  ///< Some stage was cut short by memory, not by time.
};

/// Splits the chain into non-empty runs, one more than there are handovers, for flushed 1F1B with
/// `micro_batches` so that the path bound (see one_f_one_b_path_s) is least, each stage within
/// memory with min(m, p - i) stashes. Exact when all handover times are equal. nullopt when no
/// split fits memory or there are fewer layers than stages. Cost per bound tried: O(layers), or
/// O(stages·layers) where memory stops a stage.
///
/// Feasibility of a bound is decided greedily from the last stage to the first: with stage i's
/// right end fixed, the constraint on its left end only relaxes as that right end moves left, so
/// taking as many layers as fit is optimal — unless a stage then finds its first layer too big, in
/// which case all reachable ends are kept instead. The optimum is found among attained values: each
/// infeasible bound is raised to the least value at which some stage could take one layer more.
std::optional<Partition> partition_one_f_one_b(std::span<const ChainLayer> layers,
                                               const Handovers& handovers,
                                               std::int64_t micro_batches,
                                               const MemoryForm& memory);

/// Which splits are worth looking at, and how many of them.
struct PartitionLimits {
  double path_below_s = kInfinity;  ///< The path bound.
  /// m passes of each stage and its optimizer.
  double load_below_s = kInfinity;
  double optimizer_s_per_dense_parameter = 0, optimizer_s_per_expert_parameter = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  /// How many to look at when there are more than that.
  std::int64_t most_of_more = 0;
};

/// Calls visit(ends) for every split of the chain as above that fits memory and keeps within
/// `limits`. Returns false when there are more than `limits.most` of them, having visited
/// `limits.most_of_more`. Cost: O(stages·layers²) plus O(stages) per split.
bool for_each_partition_below(std::span<const ChainLayer> layers, const Handovers& handovers,
                              std::int64_t micro_batches, const MemoryForm& memory,
                              const PartitionLimits& limits,
                              const std::function<void(const Ends&)>& visit);

/// Splits the chain into `pieces` non-empty runs with the least largest time, memory ignored; among
/// those, later pieces are filled first. Exact. nullopt when there are fewer layers than pieces.
std::optional<Ends> partition_min_max(std::span<const ChainLayer> layers, int pieces);

/// A lower bound on the makespan of flushed 1F1B with the given stage times (forward, backward) and
/// handover times (of stage i to i+1, one direction): the longest of these paths through the
/// schedule, with t = f + b and D_i = Σ_{j≥i} t_j + 2·Σ_{j≥i} handover_j, the longest over all i of
///   m > p - i:  D_0 + (m - p + i)·t_i + (D_i - t_i)     (a second dive below stage i at the end)
///   m > p - i:  D_0 + q·D_i + r·t_i,  m - 1 = q·(p - i) + r   (dives all along)
///   any i:      D_0 + (m - 1)·max(f_i, b_i)
/// Equal to the makespan when all stages are equal and there is no handover time. Sends that block
/// count in the times of the stages that send, in place of handovers.
double one_f_one_b_path_s(std::span<const double> forward_s, std::span<const double> backward_s,
                          const Handovers& handovers, std::int64_t micro_batches);

}  // namespace braid

#pragma once

#include <cstdint>
#include <vector>

#include "braid/graph/bitset.h"
#include "braid/planners/phaze/problem.h"

namespace braid {

/// What Phaze's model says of a set of layers run as one stage, for one micro-batch.
struct PhazeStageCost {
  std::int64_t devices = 1;  ///< Branches · width, or branches when no layer is tensor parallel.
  double forward_s = 0;
  double backward_s = 0;       ///< With the repeated forward pass, if there is one.
  double last_backward_s = 0;  ///< As the last stage of a pipeline, which repeats nothing.
  double weight_bytes = 0;     ///< Of the branch that has most.
  /// Memory by branch: what the stage holds anyway, and what it keeps for each micro-batch that
  /// waits for its backward pass.
  std::vector<std::pair<double, double>> memory_bytes;

  double load_s(bool last) const { return forward_s + (last ? last_backward_s : backward_s); }
  /// As the s-th stage from the end, which keeps the data of s - 1 waiting micro-batches.
  double peak_bytes(std::int64_t from_end) const;
  /// The largest s that fits; 0 when none does.
  std::int64_t most_from_end(double available_bytes) const;
};

/// Costs the stages of one problem, with memory that calls share.
class PhazeStageCoster {
 public:
  /// Keeps a reference to `problem`.
  explicit PhazeStageCoster(const PhazeProblem& problem);

  /// Runs layers one after another on each of `branches` groups of devices, in topological order; a
  /// layer goes to the group where it can begin first. It begins when its inputs are there: from
  /// other stages and groups they take bytes / bandwidth, transfers do not delay each other. The
  /// backward pass runs the same groups in reverse. Memory (§5.1): 2·weights + optimizer +
  /// activations + (s - 1)·stash, where the stash is the activations or, with recomputation, the
  /// inputs. O(layers + edges) per branch.
  PhazeStageCost cost(const PhazeWidth& width, const Bitset& layers, std::int32_t branches);

  /// How many branches can be of use: the most layers of the set that have the same number of
  /// layers before them on their longest path within the set.
  std::int32_t useful_branches(const Bitset& layers);

 private:
  double forward_s(const PhazeWidth& width, const Bitset& layers);
  double backward_s(const PhazeWidth& width, const Bitset& layers, bool repeat);
  double inputs_s(const PhazeWidth& width, const Bitset& layers, std::size_t layer,
                  std::size_t group, bool from_outside) const;
  void add_memory(const PhazeWidth& width, const Bitset& layers, PhazeStageCost& cost);
  double transfer_s(const PhazeWidth& width, std::size_t edge) const {
    return width.edge_bytes[edge] / problem_.bytes_per_s;
  }

  const PhazeProblem& problem_;
  std::vector<std::vector<std::size_t>> in_, out_;  ///< Edges by layer.
  std::vector<std::size_t> order_;                  ///< Layers of the stage.
  std::vector<std::size_t> group_;                  ///< By layer.
  std::vector<double> done_s_;                      ///< By layer.
  std::vector<double> free_s_;                      ///< By group.
  std::vector<std::int32_t> depth_, at_depth_;
};

}  // namespace braid

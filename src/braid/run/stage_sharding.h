#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/frontend/graph_program.h"
#include "braid/graph/graph.h"
#include "braid/run/value_layout.h"

namespace braid {

// Operations of kBraidDomain that a rank of a tensor-parallel group does beside the model's. A
// value is whole on each rank or sharded, and so is its gradient. A parameter's gradient is a
// rank's share of a sum over all ranks that hold it.
//
//   operation       forward                         backward
//   "Share"         what it is                      sum over ranks     read by sharded work
//   "Sum"           sum over ranks                  what it is         of partial results
//   "Take"          the rank's part                 gather
//   "GatherAlike"   gather                          the rank's part    read by unsharded work
//   "GatherShare"   gather                          sum, rank's part   read by sharded work
//   "SumTake"       sum, rank's part                gather             of partial results
//   "TakeStored"    the rank's part of a parameter  into its place
//   "OfFirst"       a parameter as it is            zero but on the first rank
//   "GatherPart"    rows of a table that begins at the row `first`; 0 for ids of others
//   "ExpertsOfGroup"  "Experts", of which this rank has some and others of a group have the rest
//
// Attributes: `axis`, `size` (of the whole dimension), and `held` (held_list()).
bool is_exchange(const ProgramNode& node);

/// Number of intervals, their bounds, rank by rank.
std::vector<std::int64_t> held_list(const std::vector<std::vector<Interval>>& held);
std::vector<std::vector<Interval>> held_of_list(const std::vector<std::int64_t>& list);

/// The part of a stored tensor that a rank holds: some indices of a dimension.
struct StoredPart {
  std::int32_t axis = 0;
  std::vector<Interval> held;
  friend bool operator==(const StoredPart&, const StoredPart&) = default;
};

/// What one rank of a stage's tensor-parallel group computes: the model's nodes with the sizes that
/// it has of them, and exchanges between. Values are the model's, under their numbers, and its own
/// behind these.
struct RankProgram {
  Program program;
  std::map<ValueId, StoredPart> parts;  ///< Of stored tensors that it has not all of.
};

/// How the ranks of a stage's replica divide its work, and its replicas the experts.
struct StageSharding {
  int sharers = 1;  ///< Ranks of a replica.
  int ep = 1;       ///< Ranks that share experts.
  std::vector<ValueLayout>
      layouts;                     ///< By value of the model: of those the stage computes or reads.
  std::vector<RankProgram> ranks;  ///< [rank among those that share experts · sharers + of replica]

  /// Rows (indices of the first dimension) of a value that a rank has. The value is whole, or
  /// sharded evenly by rows.
  Interval rows_of(ValueId value, const Shape& shape, int rank) const;
};

/// What sharded_stage() is told.
struct StageToShard {
  const Graph* graph = nullptr;  ///< The model's, …
  const LayeredProgram* model = nullptr;
  int tp = 1;
  bool sequence_parallel = false;
  bool whole_experts = false;
  int cp = 1;  ///< 1 where tp is more.
  int ep = 1;
  int sharers() const { return tp * cp; }
  std::string name;  ///< "stage 1", for messages.
  /// The stage's segments: nodes of the model, in its order. They become nodes of the ranks'
  /// programs, the same for all.
  std::vector<std::vector<NodeId>*> segments;
};

/// Divides the operators as the graph says (Operator::split; Shoeybi et al. 2019, §3; Korthikanti
/// et al. 2022, §4): GEMMs by columns and rows, attention by heads, tables and logits by
/// entries, experts by their inner width, and, under sequence parallelism, what is between by rows.
/// Under context parallelism everything is sharded by rows, and attention gathers keys and values.
/// Ranks that share experts have as many each. Stored tensors of which a rank needs one part alone
/// are held as that part. Throws Error, naming stage and operator, for what cannot be sharded so.
/// Linear in nodes, times ranks.
StageSharding sharded_stage(const StageToShard& stage);

/// Of each value: whether it changes from sample to sample. Others depend on stored tensors alone.
std::vector<bool> sample_values(const Program& program);

}  // namespace braid

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/plan/outcome.h"

namespace braid {

/// How a stage's replicas share the micro-batches of a batch.
enum class PiperSplit : std::uint8_t {
  even,    ///< The data-parallel degree d divides the batch's N micro-batches: 1/d each.
  ideal,   ///< Any d, 1/d each, as if micro-batches could be cut.
  uneven,  ///< Any d; the busiest replica has ⌈N/d⌉ of the N.
};

/// How often the replicas of a stage synchronise their gradients.
enum class PiperSync : std::uint8_t {
  per_batch,  ///< Once in N micro-batches, as Piper's published program counts it.
  per_round,  ///< Once in d micro-batches, as the paper's text has it (§3.4).
};

/// What crossing a stage's border costs a tensor that several layers read.
enum class PiperTensors : std::uint8_t {
  per_edge,  ///< Once for each reader, wherever it is.
  once,      ///< Once in every stage that reads it and once in the stage that makes it. The edges
             ///< of a layer that carry equally many bytes are taken for one tensor; the first
             ///< reader's re-layout is charged.
};

enum class PiperKnapsack : std::uint8_t {
  exact,
  heuristic,  ///< Piper's bang per buck (§4): from the fastest options, the best ratio of memory
              ///< saved to time lost, until the stage fits.
};

/// How the sum of all stages' data-parallel degrees relates to the micro-batches of a batch.
enum class PiperSum : std::uint8_t {
  at_most,  ///< As the published program has it.
  exact,    ///< As the paper has it (§3.6).
};

/// What a stage costs. The default is what Piper's published program computes, with the exact
/// knapsack.
struct PiperRules {
  PiperSplit split = PiperSplit::even;
  PiperSync sync = PiperSync::per_batch;
  PiperTensors tensors = PiperTensors::per_edge;
  PiperKnapsack knapsack = PiperKnapsack::exact;
  PiperSum sum = PiperSum::at_most;
  friend bool operator==(const PiperRules&, const PiperRules&) = default;
};

/// One way to run a layer on `tp` devices (a TMPC, Tarnawski et al. 2021, §3.3). Times are in the
/// profile's unit, whatever it is.
struct PiperOption {
  std::string name;
  double time = 0;             ///< Forward and backward, for one micro-batch.
  double parameter_bytes = 0;  ///< On one device; what gradients synchronise.
  double in_flight_bytes = 0;  ///< Memory for each micro-batch in flight (a).
  double fixed_bytes = 0;      ///< Memory besides (b).
  /// Re-layout of the tensor of each edge that enters or leaves the layer, in the order of
  /// PiperProblem::edges, charged where the edge crosses the stage's border. Empty: zero.
  std::vector<double> in_sync_bytes;
  std::vector<double> out_sync_bytes;
  bool recompute = false;  ///< Repeats forward work to save memory.
  friend bool operator==(const PiperOption&, const PiperOption&) = default;
};

/// Options of one tensor-parallel degree.
struct PiperDegree {
  int tp = 1;
  std::vector<PiperOption> options;
  friend bool operator==(const PiperDegree&, const PiperDegree&) = default;
};

struct PiperNode {
  std::string name;
  std::vector<PiperDegree> degrees;  ///< Ascending; each has an option.
  friend bool operator==(const PiperNode&, const PiperNode&) = default;
};

struct PiperEdge {
  std::int32_t source = 0, target = 0;
  double bytes = 0;  ///< Of the tensor for one micro-batch; its gradient is as large.
  /// Where `bytes` are what one of several devices sends: of the whole tensor, which the levels
  /// above the lowest carry. Negative: `bytes`.
  double whole_bytes = -1;
  friend bool operator==(const PiperEdge&, const PiperEdge&) = default;
};

/// A level of a hierarchical network (Tarnawski et al. 2021, Appendix E): devices of the level
/// below, joined into one of this level; the lowest joins accelerators.
struct PiperLevel {
  std::int64_t devices = 1;    ///< How many are joined.
  double bandwidth_bytes = 0;  ///< Of each of them on this level's network, per time unit.
  friend bool operator==(const PiperLevel&, const PiperLevel&) = default;
};

/// Piper's planning problem (Tarnawski et al. 2021, §3.6): cut the layer graph into contiguous
/// stages, each with a data-parallel degree d, a tensor-parallel degree t and an option for every
/// layer, such that the slowest stage's time for one micro-batch is least, where
///   Σ d·t ≤ devices,  Σ d ≤ micro_batches (or =, see PiperSum),
///   Σ (a·⌈s/d⌉ + b) ≤ memory_bytes for the layers of a stage, s being the sum of the degrees d of
///   this stage and all later ones, and
///   a stage's time is share·(Σ time + border bytes / bandwidth) + sync·Σ parameter_bytes /
///   bandwidth with share = 1/d (or ⌈N/d⌉/N), sync = 4·(d-1)/d/N (or ·share instead of /N), and
///   2·(bytes + re-layout) for every edge that crosses the stage's border, at both its ends.
/// With levels, superstages on the devices of each level hold those of the level below, and the
/// slowest time of a stage or a superstage is least; see planners/piper/levels.h.
struct PiperProblem {
  std::vector<PiperNode> nodes;  ///< In topological order.
  std::vector<PiperEdge> edges;  ///< Sorted by (source, target), each pair once, source < target.
  std::int64_t devices = 1;
  std::int64_t micro_batches = 1;
  double memory_bytes = 0;
  double bandwidth_bytes = 0;  ///< Per time unit.
  /// Lowest first; none: the network is flat. All devices together are `devices`, and the lowest
  /// level's bandwidth is `bandwidth_bytes`.
  std::vector<PiperLevel> levels;
  PiperRules rules;
  std::int64_t least_dp = 1;                     ///< Data-parallel degrees of stages, from …
  std::int64_t most_dp = std::int64_t{1} << 40;  ///< … to.
  std::int64_t dp_multiple = 1;                  ///< All are multiples of it.
  bool one_stage = false;                        ///< Do not cut the graph at all.
  friend bool operator==(const PiperProblem&, const PiperProblem&) = default;
};

/// Most devices and micro-batches that are accepted.
constexpr std::int64_t kMostPiperDevices = 1'000'000;

/// Throws Error that names `file` and the layer or limit when the problem is not as described
/// above: no devices, a bandwidth that is not positive and finite, a negative cost, a layer without
/// options, an edge that leads backwards …
void check_piper_problem(const PiperProblem& problem, const std::string& file);

/// Throws Error that names the planner when the network has levels.
void check_flat(const PiperProblem& problem, const char* planner);

/// Part of a batch's micro-batches that the busiest of d replicas runs, times d being at least 1.
double piper_share(const PiperProblem& problem, std::int64_t dp);
/// Bytes that a replica sends for each parameter byte and micro-batch to synchronise gradients.
double piper_sync_factor(const PiperProblem& problem, std::int64_t dp);
/// The same on one level of the network, where `local_dp` of all dp replicas synchronise.
double piper_sync_factor(const PiperProblem& problem, std::int64_t dp, std::int64_t local_dp);
/// Bytes of an edge's tensor on levels above the lowest.
double whole_bytes(const PiperEdge& edge);
/// Bytes of one whole copy of a layer's weights: the least that its options' devices hold together.
double piper_weight_bytes(const PiperNode& node);
/// The data-parallel degrees that the rules allow, ascending, up to min(devices, micro_batches).
std::vector<std::int64_t> piper_dp_degrees(const PiperProblem& problem);

struct PiperStage {
  std::vector<std::int32_t> nodes;    ///< Ascending.
  std::vector<std::int32_t> options;  ///< For each: index in its degree's options.
  int tp = 1;
  std::int64_t dp = 1;
  std::int64_t local_dp = 0;  ///< How many of the replicas share a device of level 2; 0: all.
  std::int64_t suffix = 1;  ///< Sum of the data-parallel degrees of this stage and all later ones.
  double time = 0;
  double memory_bytes = 0;  ///< On one device.
  friend bool operator==(const PiperStage&, const PiperStage&) = default;
};

/// Prices stages of one problem, each in the order of its layers and their edges.
class PiperStagePricer {
 public:
  /// The problem must outlive it. O(layers + edges).
  explicit PiperStagePricer(const PiperProblem& problem);
  /// Fills in time and memory of a stage from its other fields, straight from the definition.
  void price(PiperStage& stage);

 private:
  /// An end of an edge at a layer.
  struct End {
    std::int32_t edge = 0;
    std::int32_t number = 0;  ///< Of the edges into the layer, or out of it.
  };
  const PiperOption& chosen(const PiperStage& stage, std::size_t i) const;
  double border_bytes(const PiperStage& stage);

  const PiperProblem& problem_;
  std::vector<std::vector<End>> ins_, outs_;  ///< By layer, edges ascending.
  std::vector<std::int32_t> place_;           ///< By layer: in the stage that is priced, or -1.
};

/// Consecutive stages that share devices of a level above the lowest, and are replicated on them.
struct PiperSuperstage {
  std::int32_t level = 1;  ///< Index in PiperProblem::levels.
  std::int32_t first = 0;  ///< Stage.
  std::int32_t count = 0;
  std::int64_t dp = 1;      ///< Replicas, each on one device of the level.
  std::int64_t all_dp = 1;  ///< Times those of the superstages around it.
  double time = 0;          ///< What such a device communicates takes, for one micro-batch.
  friend bool operator==(const PiperSuperstage&, const PiperSuperstage&) = default;
};

/// Fills in a superstage's time from its other fields and its stages', straight from the
/// definition.
void price_piper_superstage(const PiperProblem& problem, const std::vector<PiperStage>& stages,
                            PiperSuperstage& superstage);

struct PiperSolution {
  Status status = Status::infeasible;
  double time = 0;                 ///< Of the slowest stage: Piper's time per sample.
  double bound = 0;                ///< No solution is faster.
  std::vector<PiperStage> stages;  ///< First to last.
  /// With levels: by first stage, outer before inner.
  std::vector<PiperSuperstage> superstages;
  std::int64_t downsets = 0;
  std::int64_t work = 0;  ///< Stages examined.
  /// Of an infeasible problem: why, and when memory is short, the least that would do and the stage
  /// that needs it.
  std::string reason;
  double needed_bytes = 0;

  std::int64_t devices_used() const;
};

/// The solution of these priced stages: its time is the slowest one's.
PiperSolution piper_solution_of(std::vector<PiperStage> stages);

}  // namespace braid

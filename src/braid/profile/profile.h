#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/profile/layer_cost.h"

namespace braid {

/// Ways to run a layer that a planner chooses among.
struct Execution {
  int micro_batch = 1;  ///< Samples per micro-batch and data-parallel rank.
  int tp = 1;           ///< Tensor parallel degree.
  bool sequence_parallel = false;
  int cp = 1;  ///< Context parallel degree.
  int ep = 1;  ///< Expert parallel degree (experts over ep devices taken from dp·cp, or dp·cp·tp).
  Recompute recompute = Recompute::none;
  bool offload_activations = false;
  bool offload_weights = false;
  /// tp does not divide experts: the ep devices are taken from dp·cp·tp (an expert tensor parallel
  /// size of 1 in Megatron-LM and torchtitan, in place of tp). Under sequence parallelism only, and
  /// nothing else where tp is 1.
  bool whole_experts = false;
  friend bool operator==(const Execution&, const Execution&) = default;
};

/// Bytes that a layer run with this option adds to a boundary edge (re-layout of the tensor), as in
/// Piper's syncTimeFw / syncTimeBw.
struct EdgeSync {
  std::int32_t edge = 0;  ///< Index in Profile::edges.
  double forward_bytes = 0;
  double backward_bytes = 0;
  friend bool operator==(const EdgeSync&, const EdgeSync&) = default;
};

/// An operator of a layer and how tensor parallelism divides it.
struct ShardedOperator {
  std::string name;
  Split split = Split::replicated;
  friend bool operator==(const ShardedOperator&, const ShardedOperator&) = default;
};

struct Option {
  std::string name;  ///< "vanilla", "activation recomp", "tp8 sp selective", "tp4:sharded".
  Execution how;
  LayerCost cost;
  std::vector<EdgeSync> edge_syncs;
  /// Index into System::groups of the devices that the times are for; negative: of any.
  std::int32_t device_group = -1;
  /// Where a sharding is automatic, not the model's own: the operators that are sharded.
  std::vector<ShardedOperator> sharded;
  friend bool operator==(const Option&, const Option&) = default;
};

struct ProfileLayer {
  std::string name;
  std::int32_t kind = 0;  ///< Index in Profile::kinds: layers of a kind share their options.
  /// Per sample that it puts out for others, every tensor once; negative: as its edges have it,
  /// where those of equal bytes are one tensor (output_bytes_of).
  double output_bytes = -1;
  friend bool operator==(const ProfileLayer&, const ProfileLayer&) = default;
};

struct ProfileEdge {
  std::int32_t source = 0, target = 0;  ///< Layers.
  double bytes = 0;                     ///< Per sample, forward; the gradient is as large.
  friend bool operator==(const ProfileEdge&, const ProfileEdge&) = default;
};

/// A parameter that several layers read, such as the table of tied embeddings. Every stage that
/// holds one of them keeps a copy, and once an iteration these sum their gradients.
struct SharedParameter {
  std::vector<std::int32_t> layers;  ///< Ascending, at least two.
  double elements = 0;               ///< Of the whole parameter.
  bool sharded = false;              ///< Over tensor parallel ranks.
  friend bool operator==(const SharedParameter&, const SharedParameter&) = default;
};

/// A layer graph in which every layer carries its options: the input of every planner.
struct Profile {
  std::string model;
  std::string chip;                        ///< What the times are for; empty when unknown.
  std::string trainer;                     ///< Whose kernels the times are of; empty: not said.
  std::string provenance;                  ///< "estimated", "measured: …", "file: …".
  std::vector<ProfileLayer> layers;        ///< In topological order.
  std::vector<ProfileEdge> edges;          ///< Sorted by (source, target).
  std::vector<std::vector<Option>> kinds;  ///< Options of each kind of layer.
  std::vector<SharedParameter> shared;     ///< Parameters of several layers.
  double time_unit_s = 1;                  ///< 1e-3 for a profile in milliseconds.
  std::int64_t seq_len = 0;                ///< Tokens per sample; 0: not a sequence model.
  friend bool operator==(const Profile&, const Profile&) = default;
};

inline const std::vector<Option>& options_of(const Profile& profile, std::int32_t layer) {
  return profile
      .kinds[static_cast<std::size_t>(profile.layers[static_cast<std::size_t>(layer)].kind)];
}

/// Bytes per sample that each layer puts out for others, every tensor once. Linear in the edges.
std::vector<double> output_bytes_of(const Profile& profile);

/// Whether an option states memory or gradients in place of parameters.
bool states_some_memory(const Profile& profile);

/// Checks ids, acyclicity, finiteness and signs. Throws Error naming the layer and `file`.
void check_profile(const Profile& profile, const std::string& file);

}  // namespace braid

#pragma once

#include "braid/chip/chip_work.h"
#include "braid/chip/mapping.h"
#include "braid/dataflow/dataflow_setup.h"
#include "braid/dataflow/sharding.h"

namespace braid {

/// What a job is charged besides its mapping. The defaults are what a trainer pays; `published` is
/// what DFModel's runs pay.
struct JobRules {
  CollectiveRules collectives;
  /// A kernel is sharded as sends least time; false: fewest bytes.
  bool time_sharding = true;
  /// A kernel may be sharded along another of its dimensions by each dimension of the network, as
  /// takes least time, GEMMs counted.
  bool grid_sharding = false;
  /// Shardings are searched together with their mappings, beginning with these; false: these are
  /// mapped and the fastest kept.
  bool joint_sharding = true;
  /// Gradients, optimizer state (fp32 copy and two moments: 12 bytes a parameter) and stashed
  /// activations of micro-batches in flight lie in DRAM; false: parameters alone.
  bool training_state = true;
  /// The pipeline fills and drains once per batch without interleaving, and each micro-batch pays
  /// its way between stages; false: interleaved by layers, messages paid once per batch.
  bool plain_pipeline = true;
};

JobRules published_job_rules(const DataflowSetup& setup);
JobRules default_job_rules();

/// Rules of mappings for a setup: as published, or with everything charged (whole tiles, weight
/// traffic, shared tensors) and the overlap and sustained fraction that the file gives.
MappingRules default_mapping_rules(const DataflowSetup& setup);

/// The sharding of kernels that a job's rules choose; for other workloads than layers the fixed one
/// is not a choice and all are `none`.
Sharding choose_sharding(const DataflowSetup& setup, const JobRules& rules);

/// What one chip does for one micro-batch of one layer.
/// - layers: kernels sharded as `dims` says.
/// - recommendation: every chip its own samples; all-to-all of the fetched rows between all chips;
///   gradients over all chips (the published program takes their bytes for nanoseconds).
/// - linpack: M over x, K over the further dimensions; broadcast along theirs and shift along x's
///   links, the slower counts.
/// - fourier: N over all chips; all-to-all of the signal.
ChipWork chip_work(const DataflowSetup& setup, const Sharding& dims, const JobRules& rules);

/// Adds what lies in DRAM throughout, and how many micro-batches wait there, to the work of one
/// chip: the more the larger its parameters and tensors are.
void add_state(const DataflowSetup& setup, const JobRules& rules, ChipWork& work);

struct JobTime {
  double tensor = 1, pipeline = 1, data = 1;  ///< Degrees.
  double micro_batches = 1;                   ///< Of one pipeline.
  double layers_per_stage = 1;
  double bubble = 0;     ///< Idle time over busy time: (PP - 1) / (micro-batches x interleaving).
  double message_s = 0;  ///< Between stages, not hidden.
  double time_s = 0;     ///< Of a global batch, or of the whole for linpack and fourier.
  double flops = 0;      ///< Of the whole graph and batch, as written: no recomputation.
  double utilisation = 0;
};

/// Time of the whole job from the time of a micro-batch through one layer on one chip:
/// layers · batch/DP · (1 + bubble) · layer_s + messages (the notes of `chip_work` for the rest).
JobTime job_time(const DataflowSetup& setup, double layer_s, const JobRules& rules);

/// Price and power of the machine: chips, DRAM, and the links and switch ports of its network.
struct MachineCost {
  double usd = 0;
  double watts = 0;
};
MachineCost machine_cost(const DataflowSetup& setup);

}  // namespace braid

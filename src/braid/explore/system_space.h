#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/chip/accelerator/architectures.h"
#include "braid/explore/priced_memory.h"
#include "braid/explore/search_aim.h"
#include "braid/explore/space_axis.h"
#include "braid/graph/graph.h"
#include "braid/plan/outcome.h"
#include "braid/plan/trainer_file.h"
#include "braid/planners/registry.h"
#include "braid/system/system.h"

namespace braid {

/// A model to be trained on every system.
struct SystemWorkload {
  std::string name;
  std::string model;      ///< Where the graph is from.
  Graph graph;            ///< As its file has it, in no working precision yet.
  std::string precision;  ///< Empty: the usual one of each system.
  std::int64_t global_batch = 1;
  std::vector<std::string> assumptions;  ///< For what was not given.
};

/// A chip with its memory, and what one costs.
struct SystemChip {
  std::string name;
  Chip chip;
  double usd = 0, watts = 0;
};

/// Every architecture of a space as a chip: cores and buffers are the architecture's, all else is
/// that of `rest`, an accelerator.
struct SystemArchitectures {
  Chip rest;
  ArchitectureSpace space;
  std::vector<Architecture> all;  ///< architectures(space).
};

/// "2-512-256x256-32MiB": tensor cores, vector cores, array, global buffer.
std::string name_of(const Architecture& architecture);

/// The chip of an architecture.
Chip chip_of(const SystemArchitectures& architectures, const Architecture& architecture);

/// What joins the devices: a cluster whose chips are replaced.
struct SystemNetwork {
  std::string name;
  std::vector<System> by_devices;  ///< For each number of devices.
  /// For the bandwidth of a device into a network, innermost first; the last holds for all further.
  std::vector<double> usd_per_gb_per_s{0}, w_per_gb_per_s{0};
};

/// Bandwidths in place of the network's. Of values per network, innermost first, the last holds for
/// all further.
struct SystemLinks {
  std::string name;
  std::vector<double> bytes_per_s;  ///< Of a device; what a node sends in all changes with it.
  std::vector<double> latency_s;    ///< Empty: the network's.
  std::vector<double> usd_per_gb_per_s{0}, w_per_gb_per_s{0};
};

/// A cluster as it is.
struct SystemCluster {
  std::string name;
  std::vector<System> by_devices;
  double usd = 0, watts = 0;  ///< Of a device; 0: those of its chips.
};

/// A space of clusters, each planned by planners of the registry. Axes: workload, planner, then
/// chip (or architecture), memory, network, links and devices, or cluster and devices; memory and
/// links may have no values, which stands for one that leaves chips and networks as they are, and
/// is no axis.
struct SystemSpace {
  std::vector<SystemWorkload> workloads;
  std::vector<std::string> planners;   ///< Names in the registry.
  std::optional<TrainerFile> trainer;  ///< Nullopt: the usual one of each point.
  std::vector<SystemChip> chips;       ///< Empty: clusters, or architectures.
  std::optional<SystemArchitectures> architectures;
  std::vector<PricedMemory> memories;
  std::vector<SystemNetwork> networks;
  std::vector<SystemLinks> links;
  std::vector<SystemCluster> clusters;
  std::vector<std::string> devices;  ///< Names of the values of that axis; empty: no axis.
  SpaceOptions options;              ///< For all planners.
  Budget budget;                     ///< Of each search.
  ShardingSource sharding = ShardingSource::manual;
  FamilyWords own;                              ///< Of single planners, for all of them.
  std::optional<SystemSearch> search;           ///< Nullopt: all points are planned.
  bool has_prices = false, has_powers = false;  ///< Of every system, or counted nowhere.
  bool counts_energy = false;                   ///< Of every plan: all devices are accelerators.
};

std::vector<SpaceAxis> axes_of(const SystemSpace& space);

/// The system of a point; with `chip` in place of the point's.
System system_of(const SystemSpace& space, const SpacePoint& point);
System system_of(const SystemSpace& space, const SpacePoint& point, const Chip& chip);

/// Price and power of a point's system: its devices with their memory and their bandwidth into each
/// network, whether a plan uses them or not. What the space gives no figures for counts nothing.
struct SystemCost {
  double usd = 0, watts = 0;
};
SystemCost cost_of(const SystemSpace& space, const SpacePoint& point);

/// Everything that results depend on, as text.
std::string canonical_text(const SystemSpace& space);

}  // namespace braid

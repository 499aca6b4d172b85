#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/dataflow/dataflow_setup.h"
#include "braid/explore/priced_memory.h"
#include "braid/explore/space_axis.h"

namespace braid {

/// An accelerator of a space, without its main memory.
struct DataflowSpaceChip {
  std::string name;
  DataflowChip chip;  ///< Its DRAM is left 0.
  std::optional<double> usd, watts;
  bool kernel_by_kernel = false;  ///< Each kernel alone on the chip; else partitions of several.
  /// Forward and backward kernels may share a partition, as DFModel's inputs of one partition have
  /// it.
  bool joint_passes = false;
  /// Rows of a streamed dimension on chip at once; 0: all of them kernel by kernel, else one.
  std::int64_t rows_at_once = 0;
};

/// A network's shape; its bandwidths are the links'.
struct DataflowTopology {
  std::string name;
  std::vector<FabricShape> shapes;  ///< One to four dimensions.
  std::vector<std::int64_t> sizes;  ///< Empty: only searched.
  std::vector<FabricRole> roles;    ///< Empty: not given.
};

/// A technology of links. Of values per dimension of the network the last holds for all further.
struct DataflowLinks {
  std::string name;
  std::vector<double> bytes_per_s;  ///< Of a chip into each dimension.
  std::vector<double> w_per_gb_per_s;
  double usd_per_gb_per_s = 0;
  double port_usd_per_gb_per_s = 0, port_w_per_gb_per_s = 0;  ///< Of switches.
  double latency_s = 0;
};

struct DataflowSpaceWorkload {
  std::string name;
  KernelGraph graph;
  DataflowJob job;
};

/// How the sizes and roles of a network's dimensions come about.
enum class FabricParallelism : std::uint8_t {
  given,  ///< As the topology says.
  roles,  ///< Its sizes; what each dimension divides is searched.
  shapes  ///< Sizes are searched as well.
};
std::string_view name_of(FabricParallelism parallelism);

/// A space of systems as DFModel has them (compatibility): its kernel graphs, its cluster model.
/// Axes: workload, parallelism, chip, memory, topology, links.
struct DataflowSpace {
  std::int64_t devices = 1;
  bool published_rules = false;  ///< Charge what DFModel's published runs do; else everything.
  PartitionOverlap overlap = PartitionOverlap::all;
  double compute_fraction = 0.9;
  double all_reduce_passes = 2;
  double switch_bisection = 0.5;  ///< As in Fabric.
  std::int64_t budget = 0;        ///< Sets of kernels that one mapping may look at; 0: the default.
  bool has_prices = false, has_powers = false;  ///< Of every system, or counted nowhere.
  std::vector<DataflowSpaceWorkload> workloads;
  std::vector<FabricParallelism> parallelisms;
  std::vector<DataflowSpaceChip> chips;
  std::vector<PricedMemory> memories;
  std::vector<DataflowTopology> topologies;
  std::vector<DataflowLinks> links;
};

std::vector<SpaceAxis> axes_of(const DataflowSpace& space);

/// The machine, workload and rules of a point as one input of the dataflow planner, with sizes and
/// roles as the topology gives them (1 and none where it does not).
DataflowSetup setup_of(const DataflowSpace& space, const SpacePoint& point);

/// Everything that results depend on, as text.
std::string canonical_text(const DataflowSpace& space);

}  // namespace braid

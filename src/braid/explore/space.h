#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/chip/dataflow_setup.h"

namespace braid {

/// An accelerator of a space, without its main memory.
struct SpaceChip {
  std::string name;
  DataflowChip chip;  ///< Its DRAM is left 0.
  double usd = 0, watts = 0;
  bool kernel_by_kernel = false;  ///< Each kernel alone on the chip; else partitions of several.
  /// Forward and backward kernels may share a partition, as DFModel's inputs of one partition have
  /// it.
  bool joint_passes = false;
  /// Rows of a streamed dimension on chip at once; 0: all of them kernel by kernel, else one.
  std::int64_t rows_at_once = 0;
};

/// A network's shape; its bandwidths are the links'.
struct SpaceTopology {
  std::string name;
  std::vector<FabricShape> shapes;  ///< One to four dimensions.
  std::vector<std::int64_t> sizes;  ///< Empty: only searched.
  std::vector<FabricRole> roles;    ///< Empty: not given.
};

struct SpaceMemory {
  std::string name;
  double bytes = 0, bytes_per_s = 0;
  double usd_per_gb_per_s = 0, w_per_gb_per_s = 0;
};

/// A technology of links. Of values per dimension of the network the last holds for all further.
struct SpaceLinks {
  std::string name;
  std::vector<double> bytes_per_s;  ///< Of a chip into each dimension.
  std::vector<double> w_per_gb_per_s;
  double usd_per_gb_per_s = 0;
  double port_usd_per_gb_per_s = 0, port_w_per_gb_per_s = 0;  ///< Of switches.
  double latency_s = 0;
};

struct SpaceWorkload {
  std::string name;
  KernelGraph graph;
  DataflowJob job;
};

/// How the sizes and roles of a network's dimensions come about.
enum class SpaceParallelism : std::uint8_t {
  given,  ///< As the topology says.
  roles,  ///< Its sizes; what each dimension divides is searched.
  shapes  ///< Sizes are searched as well.
};
std::string_view name_of(SpaceParallelism parallelism);

/// The axes that a space is a product of, slowest first.
enum class SpaceAxis : std::uint8_t { workload, parallelism, chip, memory, topology, links };
inline constexpr std::size_t kSpaceAxes = 6;
std::string_view name_of(SpaceAxis axis);

/// Which value of each axis: indices by SpaceAxis.
using SpacePoint = std::array<std::size_t, kSpaceAxes>;

enum class SpaceFigure : std::uint8_t { utilisation, throughput, per_usd, per_w };
std::string_view name_of(SpaceFigure figure);

/// The values of each axis that a mean is over; an empty list is all of them.
using SpaceSubset = std::array<std::vector<std::size_t>, kSpaceAxes>;

/// A ratio of geometric means of a figure over two parts of the space.
struct SpaceRatio {
  std::string name;
  SpaceFigure figure = SpaceFigure::utilisation;
  SpaceSubset above, below;
  double published = 0;  ///< 0: none.
};

/// A space of systems and workloads to explore.
struct Space {
  std::string name;
  std::int64_t devices = 1;
  bool published_rules = false;  ///< Charge what DFModel's published runs do.
  PartitionOverlap overlap = PartitionOverlap::all;
  double compute_fraction = 0.9;
  double all_reduce_passes = 2;
  double switch_bisection = 0.5;  ///< As in Fabric.
  std::int64_t budget = 0;        ///< Sets of kernels that one mapping may look at; 0: the default.
  std::vector<SpaceWorkload> workloads;
  std::vector<SpaceParallelism> parallelisms;
  std::vector<SpaceChip> chips;
  std::vector<SpaceMemory> memories;
  std::vector<SpaceTopology> topologies;
  std::vector<SpaceLinks> links;
  std::vector<SpaceRatio> ratios;
};

/// Values of an axis, and their names.
std::size_t size_of(const Space& space, SpaceAxis axis);
std::string_view value_name(const Space& space, SpaceAxis axis, std::size_t index);

/// Number of points; at most kMostPoints in a space that was read.
inline constexpr std::size_t kMostPoints = 1'000'000;
std::size_t point_count(const Space& space);
/// The number-th point, the last axis fastest. Needs number < point_count.
SpacePoint point_of(const Space& space, std::size_t number);

/// The machine, workload and rules of a point as one input of the dataflow planner, with sizes and
/// roles as the topology gives them (1 and none where it does not).
DataflowSetup setup_of(const Space& space, const SpacePoint& point);

/// Everything that results of the space depend on, as text: equal texts, equal results. Ratios are
/// not in it.
std::string canonical_text(const Space& space);

}  // namespace braid

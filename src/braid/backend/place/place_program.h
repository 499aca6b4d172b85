#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "braid/backend/kernel/backend.h"
#include "braid/backend/measure/cost_store.h"
#include "braid/backend/place/fixed_program.h"

namespace braid {

struct PlaceOptions {
  MeasureOptions measure;
  std::int64_t threads = 1;      ///< As the backends were told, for the store.
  double cost_per_kernel_s = 0;  ///< What starting a kernel takes beside its measured time.
  double kernel_limit_s = 30;    ///< After which a kernel that is measured is taken to hang.
  /// Into how many parts a program is cut at most for regions of backends
  /// (region_candidates()), all of which are measured; 0: kernels alone.
  std::int64_t region_parts = 0;
  /// So many regions of smaller parts are measured at most (region_search.h).
  std::int64_t evolved_regions = 0;
  /// Told, before more are measured, how many kernels have been so far; empty: nobody is.
  std::function<void(std::int64_t measured)> progress = {};
};

/// Some nodes of a program and the kernel that computes them together.
struct PlacedGroup {
  std::string backend, pattern;  ///< "reference" and the operation where no backend has one.
  std::vector<NodeId> nodes;     ///< Of the fixed program, ascending.
  double cost_s = 0;
  KernelLayouts layouts = {};
};

/// A tensor that is written in one more layout.
struct PlacedTurn {
  ValueId value = -1;  ///< Of the fixed program.
  ImageLayout from = ImageLayout::plain, to = ImageLayout::plain;
  double cost_s = 0;
};

/// The names of its nodes.
std::vector<std::string> operator_names(const FixedProgram& fixed, const PlacedGroup& group);

/// Which library runs what.
struct ProgramPlacement {
  std::vector<PlacedGroup> groups;  ///< In an order in which they can run.
  /// Each is done before the first group that needs it, or at the end for outputs; those of one
  /// value in this order.
  std::vector<PlacedTurn> turns;
  double predicted_s = 0;  ///< The sum of the measured times of groups and turns.
  // What was done for it.
  std::int64_t candidates = 0;  ///< Matches that a backend accepts, and reference kernels.
  std::int64_t kernels = 0;     ///< Different ones among those of backends, and turns asked for.
  std::int64_t measured = 0;    ///< Kernels measured: equal ones once.
  std::int64_t known = 0;       ///< Kernels whose times were in the store.
  std::int64_t refused = 0;     ///< Kernels that the library does not make.
  std::vector<std::string>
      wrong;  ///< Kernels that fail or whose answer is wrong, which are left out.
};

/// The fastest placement of a program's nodes on the backends (Jeon 2024, chapter 2): candidates
/// are all matches of their patterns, and the reference kernel for each node, measured only where
/// the search reaches them, together with those that begin at the same node; what is fastest
/// together is found by cheapest_placement(), exact where times add up, with the layout of every
/// tensor and what it takes to turn it in the search. Every kernel's answer is held against the
/// reference kernels' before it is measured, in a child process (measure_kernels.h).
///
/// With `region_parts` regions of several parts of the program are candidates, too, as backends
/// compile them, measured as regions.
///
/// `store` keeps the times, and has them for the next time; without one (nullptr) all are measured.
ProgramPlacement place_program(const FixedProgram& fixed, const std::vector<FoundBackend>& backends,
                               CostStore* store, const PlaceOptions& options = {});

/// The whole program as one region of a backend, by the name that its pattern has there; nullopt
/// where the backend does not take the program, and where its kernel cannot be made, fails or is
/// wrong, of which `problem` says what is known.
std::optional<ProgramPlacement> whole_placement(const FixedProgram& fixed, const Backend& backend,
                                                const BackendPattern& region, CostStore* store,
                                                const PlaceOptions& options, std::string& problem);

}  // namespace braid

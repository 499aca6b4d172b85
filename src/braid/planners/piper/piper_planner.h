#pragma once

#include <cstdint>
#include <string_view>

#include "braid/planners/job/family_options.h"
#include "braid/planners/job/job.h"

namespace braid {

/// What piper and those of its variants that can take a cluster's network for.
enum class PiperNetwork : std::uint8_t {
  flat,    ///< Every device as far from all others as over the outermost level.
  levels,  ///< Nodes of devices, and the levels above (planners/piper/network.h).
};

struct PiperSpace : SpaceOptions {
  PiperNetwork network = PiperNetwork::flat;
};

inline constexpr std::string_view kPiperNetworkWords[] = {"flat", "levels"};
inline constexpr FamilyOption kPiperOptionList[] = {
    {"network",
     "The network that piper and its variants plan for: flat (the default) or levels, nodes and "
     "what joins them",
     kPiperNetworkWords}};
inline constexpr FamilyOptions kPiperOptions{"Planner piper and its variants", kPiperOptionList};

/// The space with what words for kPiperOptions say.
PiperSpace piper_space(const SpaceOptions& space, const FamilyWords& words);

/// Plans a job for Piper's time per sample (planners/piper/problem.h, the published program's
/// rules) by the variant of that name (planners/piper/variants.h).
///
/// Stages have a data- and a tensor-parallel degree each, layers a recomputation each;
/// micro-batches (powers of two up to 16, or the one asked for) and the ZeRO stage asked for are
/// the same everywhere, and with ZeRO so is the data-parallel degree. Solved exactly for any
/// contiguous sets of the layer graph, 1F1B, any number of stages; equi and pipedream go their own
/// ways, one tensor-parallel degree and recomputation at a time. A plan whose stages turn out alike
/// is uniform.
///
/// Memory is the shared model's. The largest transient of any layer, run in any of the ways that
/// the stages choose among, is kept free on every device: all sets of ways below a level are tried.
/// Where rounds that do not nest keep more in flight than Piper counts, memory is lowered until the
/// plan fits, and the outcome is no longer `optimal`. The network is as space.network says:
/// flat at the rate of its outermost level, or its levels, where a stage has a device's replicas on
/// each level and tensor parallelism stays inside nodes (planners/piper/levels.h). Throws Error for
/// mixed clusters, and for equi and pipedream with levels; with restrictions that leave this space
/// nothing is feasible.
Outcome plan_piper(std::string_view name, const Job& job, const System& system,
                   const PiperSpace& space, const Budget& budget, const Progress& progress = {});

}  // namespace braid

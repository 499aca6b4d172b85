#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/backend/place/place_program.h"

namespace braid {

/// One way to run a whole network.
struct NetworkWay {
  std::string name;  ///< "mix", or the one backend that runs what it can.
  ProgramPlacement placement;
  /// Of whole runs. nullopt: not run, as its parts alone take too long.
  std::optional<Measurement> measured;
  std::string wrong;  ///< How its answer differs from the reference's; it is not measured then.
};

struct NetworkAnswer {
  std::vector<NetworkWay> ways;  ///< The mix, then each backend by itself, by predicted time.
  std::size_t chosen = 0;        ///< The fastest as a whole.
};

/// Places a network on all backends together and on each by itself, with reference kernels for what
/// these lack, and runs the results as wholes, interleaved. Times of kernels leave out what one
/// does to the caches of the next, so the mix that is best by its parts need not be best as a
/// whole: the fastest measured is chosen, and is never slower than a backend by itself.
///
/// Ways that should take over `hopeless` times what the best does are not run. Throws Error where
/// no way gives the reference's answer.
NetworkAnswer place_network(const FixedProgram& fixed, std::span<const DenseTensor> inputs,
                            const std::vector<FoundBackend>& backends, CostStore* store,
                            const PlaceOptions& options = {}, double hopeless = 3);

/// How the outputs differ from the reference's, or "": within 1e-4 of each number and of the
/// greatest of its tensor.
std::string answer_difference(std::span<const DenseTensor> outputs,
                              std::span<const DenseTensor> expected);

}  // namespace braid

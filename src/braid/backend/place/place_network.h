#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/backend/place/place_program.h"

namespace braid {

/// One way to run a whole network.
struct NetworkWay {
  enum class Kind : std::uint8_t {
    mix,      ///< Of all backends' kernels; with regions or without.
    backend,  ///< The kernels of one backend, and braid's own for what it lacks.
    network,  ///< The whole network as a library runs networks.
  } kind = Kind::mix;
  std::string name;  ///< "mix", "mix with regions", "onednn", "libtorch frozen".
  ProgramPlacement placement;
  /// Of whole runs. nullopt: not run, as its parts alone take too long.
  std::optional<Measurement> measured;
  std::string wrong;  ///< How its answer differs from the reference's; it is not measured then.
};

struct NetworkAnswer {
  /// The mix of kernels first, then the others by predicted time.
  std::vector<NetworkWay> ways;
  std::size_t chosen = 0;             ///< The fastest as a whole.
  std::vector<std::string> left_out;  ///< Libraries that do not run the whole network, and why.
  std::int64_t region_kernels = 0;    ///< Regions that the mix with regions could hold.
  std::int64_t regions_measured = 0;  ///< Of these, measured now.
  std::int64_t evolved_measured = 0;  ///< Of smaller parts (region_search.h), measured now.
};

/// Places a network on all backends together, on these and regions of them (`region_parts` of the
/// options), on each backend by itself with reference kernels for what it lacks, and on each
/// library that runs whole networks. Runs the results as wholes, interleaved. Times of kernels
/// leave out what one does to the caches of the next, so the mix that is best by its parts need not
/// be best as a whole: the fastest measured is chosen, and is never slower than any of these.
///
/// Ways whose parts take over `hopeless` times what those of the best do are not run; libraries
/// that run whole networks are, since theirs are no sums. Throws Error where no way gives the
/// reference's answer.
NetworkAnswer place_network(const FixedProgram& fixed, std::span<const DenseTensor> inputs,
                            const std::vector<FoundBackend>& backends, CostStore* store,
                            const PlaceOptions& options = {}, double hopeless = 3);

/// How the outputs differ from the reference's, or "": within 1e-4 of each number and of the
/// greatest of its tensor.
std::string answer_difference(std::span<const DenseTensor> outputs,
                              std::span<const DenseTensor> expected);

}  // namespace braid

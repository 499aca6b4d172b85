// Not a benchmark of speed alone: what each part of placing adds on one of the networks that
// Collage was published with (JSON). Times of kernels come from the store, where place_network has
// left them; what is missing is measured.
//
//   place_ablation NETWORK.json COSTS.sqlite

#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "braid/backend/backends.h"
#include "braid/backend/executor.h"
#include "braid/backend/place/place_network.h"
#include "braid/backend/place/region_search.h"
#include "braid/base/error.h"

#include "collage_network.h"

namespace braid {
namespace {

void row(const std::string& what, const ProgramPlacement& placement) {
  fmt::print("{:40} {:10.3f} ms\n", what, 1e3 * placement.predicted_s);
}

/// Backends whose kernels all read and write plain tensors.
std::vector<FoundBackend> plain_alone(std::vector<FoundBackend> backends) {
  for (FoundBackend& each : backends) {
    if (!each.backend) continue;
    std::erase_if(each.backend->patterns,
                  [](const BackendPattern& pattern) { return pattern.layouts != KernelLayouts{}; });
  }
  return backends;
}

void add_one_by_one(const FixedProgram& fixed, const std::vector<FoundBackend>& backends,
                    CostStore& store) {
  std::vector<FoundBackend> so_far;
  for (const FoundBackend& each : backends) {
    if (!each.backend) continue;
    so_far.push_back(each);
    row("+ " + each.name, place_program(fixed, so_far, &store, {}));
  }
}

void evolve(const FixedProgram& fixed, const std::vector<FoundBackend>& backends, CostStore& store,
            const ProgramPlacement& kernels) {
  PlaceOptions options;
  options.evolved_regions = 40;
  for (const std::size_t elites : {std::size_t{2}, std::size_t{0}}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      EvolutionOptions evolution;
      evolution.elites = elites;
      evolution.seed = seed;
      row(fmt::format("regions by evolution, {} elites, seed {}", elites, seed),
          evolved_placement(fixed, backends, &store, options, kernels, evolution));
    }
  }
}

int ablate(const std::string& path, const std::string& store_path) {
  const Program program = collage_network(path);
  const FixedProgram fixed = fixed_program(program, random_inputs(program, 1));
  const std::vector<FoundBackend> backends = find_backends({});
  CostStore store(store_path);
  add_one_by_one(fixed, backends, store);
  const ProgramPlacement kernels = place_program(fixed, backends, &store, {});
  row("all backends", kernels);
  row("all, every tensor plain", place_program(fixed, plain_alone(backends), &store, {}));
  PlaceOptions options;
  options.region_parts = 6;
  row("all, with regions of up to 6 parts", place_program(fixed, backends, &store, options));
  evolve(fixed, backends, store, kernels);
  return 0;
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: place_ablation NETWORK.json COSTS.sqlite\n";
    return 2;
  }
  try {
    return braid::ablate(argv[1], argv[2]);
  } catch (const braid::Error& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}

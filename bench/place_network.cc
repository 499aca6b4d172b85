// Not a benchmark of speed alone: places one of the networks that Collage was published with
// (JSON), as `braid place` does a model, and prints the same.
//
//   place_network NETWORK.json COSTS.sqlite

#include "braid/backend/place/place_network.h"

#include <iostream>

#include "braid/backend/backends.h"
#include "braid/backend/executor.h"
#include "braid/backend/report/placement_report.h"
#include "braid/base/error.h"

#include "collage_network.h"

namespace braid {
namespace {

int place(const std::string& path, const std::string& store_path) {
  const Program program = collage_network(path);
  const std::vector<DenseTensor> inputs = random_inputs(program, 1);
  const FixedProgram fixed = fixed_program(program, inputs);
  const std::vector<FoundBackend> backends = find_backends({});
  CostStore store(store_path);
  PlaceOptions options;
  options.region_parts = 6;
  const NetworkAnswer answer = place_network(fixed, inputs, backends, &store, options);
  std::cout << placement_report_text({program.name, machine_name(), 1, fixed, backends, answer});
  return 0;
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: place_network NETWORK.json COSTS.sqlite\n";
    return 2;
  }
  try {
    return braid::place(argv[1], argv[2]);
  } catch (const braid::Error& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}

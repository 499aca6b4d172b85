// Not a benchmark of speed alone: places a network (an ONNX file, or one of Collage's as JSON) on
// the backends that are here, and prints which library runs what, what that takes by its measured
// parts and as a whole, and what each backend with the reference kernels for the rest would take.
//
//   place_network model.onnx costs.sqlite

#include <chrono>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include "braid/backend/backends.h"
#include "braid/backend/executor.h"
#include "braid/backend/place/placed_program.h"
#include "braid/base/error.h"
#include "braid/frontend/onnx_program.h"
#include "braid/program/random_tensor.h"

#include "collage_network.h"

namespace braid {
namespace {

Program read_program(const std::string& path) {
  if (path.ends_with(".json")) return collage_network(path);
  Program program = program_from_onnx(path, {});
  fill_missing_weights(program, 1);
  return program;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void print_groups(const ProgramPlacement& placement) {
  std::map<std::string, std::pair<int, double>> by_backend;
  for (const PlacedGroup& group : placement.groups) {
    auto& [count, cost_s] = by_backend[group.backend + ": " + group.pattern];
    ++count;
    cost_s += group.cost_s;
  }
  for (const auto& [name, sum] : by_backend) {
    std::cout << fmt::format("  {:<34} {:>4} groups {:>9.3f} ms\n", name, sum.first,
                             sum.second * 1e3);
  }
}

int place(const std::string& path, const std::string& store_path) {
  const Program program = read_program(path);
  const std::vector<DenseTensor> inputs = random_inputs(program, 1);
  const FixedProgram fixed = fixed_program(program, inputs);
  const std::vector<FoundBackend> backends = find_backends({});
  for (const FoundBackend& each : backends) {
    if (!each.backend) std::cout << each.name << " is missing: " << each.missing << "\n";
  }
  CostStore store(store_path);
  const auto begin = std::chrono::steady_clock::now();
  const ProgramPlacement mixed = place_program(fixed, backends, &store);
  const double first_s = seconds_since(begin);
  const auto again = std::chrono::steady_clock::now();
  static_cast<void>(place_program(fixed, backends, &store));
  std::cout << fmt::format(
      "{}: {} nodes, {} candidates, {} measured, {} known, {:.1f} s; {:.1f} ms with all known\n",
      program.name, fixed.program.nodes.size(), mixed.candidates, mixed.measured, mixed.known,
      first_s, seconds_since(again) * 1e3);
  for (const std::string& wrong : mixed.wrong) std::cout << "  LEFT OUT " << wrong << "\n";
  print_groups(mixed);
  PlacedProgram placed(fixed, mixed, backends);
  const std::vector<std::function<void()>> tasks{[&] { placed.run(inputs); }};
  const Measurement whole = measure(tasks).front();
  std::cout << fmt::format(
      "  mixed: {:.3f} ms by its parts, {:.3f} ms measured ({:.3f} to {:.3f})\n",
      mixed.predicted_s * 1e3, whole.median_s * 1e3, whole.low_s * 1e3, whole.high_s * 1e3);
  for (const FoundBackend& each : backends) {
    if (!each.backend) continue;
    const ProgramPlacement alone = place_program(fixed, {each}, &store);
    double reference_s = 0;
    for (const PlacedGroup& group : alone.groups) {
      if (group.backend == "reference") reference_s += group.cost_s;
    }
    std::cout << fmt::format("  {} alone: {:.3f} ms by its parts, {:.3f} ms of them reference\n",
                             each.name, alone.predicted_s * 1e3, reference_s * 1e3);
  }
  return 0;
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: place_network NETWORK COSTS.sqlite\n";
    return 2;
  }
  try {
    return braid::place(argv[1], argv[2]);
  } catch (const braid::Error& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}

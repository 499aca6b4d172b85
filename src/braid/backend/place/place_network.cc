#include "braid/backend/place/place_network.h"

#include <algorithm>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "braid/backend/place/placed_program.h"
#include "braid/base/error.h"
#include "braid/program/tensor_difference.h"

namespace braid {
namespace {

std::vector<NetworkWay> all_ways(const FixedProgram& fixed,
                                 const std::vector<FoundBackend>& backends, CostStore* store,
                                 const PlaceOptions& options) {
  std::vector<NetworkWay> ways;
  ways.push_back({"mix", place_program(fixed, backends, store, options), {}, {}});
  std::size_t present = 0;
  for (const FoundBackend& each : backends) present += each.backend ? 1U : 0U;
  for (const FoundBackend& each : backends) {
    if (!each.backend || present < 2) continue;
    ways.push_back({each.name, place_program(fixed, {each}, store, options), {}, {}});
  }
  std::stable_sort(ways.begin() + 1, ways.end(), [](const NetworkWay& a, const NetworkWay& b) {
    return a.placement.predicted_s < b.placement.predicted_s;
  });
  return ways;
}

}  // namespace

std::string answer_difference(std::span<const DenseTensor> outputs,
                              std::span<const DenseTensor> expected) {
  constexpr double share = 1e-4;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string problem =
        tensor_difference(outputs[i], expected[i], {share, share * greatest_size(expected[i])});
    if (!problem.empty()) return fmt::format("output {}: {}", i, problem);
  }
  return "";
}

NetworkAnswer place_network(const FixedProgram& fixed, std::span<const DenseTensor> inputs,
                            const std::vector<FoundBackend>& backends, CostStore* store,
                            const PlaceOptions& options, double hopeless) {
  NetworkAnswer answer{all_ways(fixed, backends, store, options), 0};
  const double best_s = answer.ways.front().placement.predicted_s;
  std::vector<std::unique_ptr<PlacedProgram>> programs;
  std::vector<std::function<void()>> tasks;
  std::vector<std::size_t> way_of;
  for (std::size_t w = 0; w < answer.ways.size(); ++w) {
    NetworkWay& way = answer.ways[w];
    if (w > 0 && way.placement.predicted_s > hopeless * best_s) continue;
    auto program = std::make_unique<PlacedProgram>(fixed, way.placement, backends);
    way.wrong = answer_difference(program->run(inputs), fixed.expected);
    if (!way.wrong.empty()) continue;
    tasks.emplace_back([p = program.get(), inputs] { p->run(inputs); });
    programs.push_back(std::move(program));
    way_of.push_back(w);
  }
  if (tasks.empty()) {
    throw Error("no mix of backends gives the answer of the reference kernels: " +
                answer.ways.front().wrong);
  }
  const std::vector<Measurement> measured = measure(tasks, options.measure);
  std::size_t best = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    answer.ways[way_of[i]].measured = measured[i];
    if (measured[i].median_s < measured[best].median_s) best = i;
  }
  answer.chosen = way_of[best];
  return answer;
}

}  // namespace braid

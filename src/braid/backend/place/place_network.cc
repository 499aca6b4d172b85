#include "braid/backend/place/place_network.h"

#include <algorithm>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "braid/backend/place/placed_program.h"
#include "braid/backend/place/region_search.h"
#include "braid/base/error.h"
#include "braid/program/tensor_difference.h"

namespace braid {
namespace {

bool has_regions(const FoundBackend& found) {
  return found.backend && !found.backend->regions.empty();
}

/// Whether a group is a region of its backend.
bool holds_region(const ProgramPlacement& placement, const std::vector<FoundBackend>& backends) {
  for (const FoundBackend& found : backends) {
    if (!has_regions(found)) continue;
    for (const BackendPattern& region : found.backend->regions) {
      for (const PlacedGroup& group : placement.groups) {
        if (group.backend == found.name && group.pattern == region.name) return true;
      }
    }
  }
  return false;
}

/// Each library that runs whole networks.
void add_networks(const FixedProgram& fixed, const std::vector<FoundBackend>& backends,
                  CostStore* store, const PlaceOptions& options, NetworkAnswer& answer) {
  for (const FoundBackend& each : backends) {
    if (!has_regions(each)) continue;
    for (const BackendPattern& region : each.backend->regions) {
      const std::string name = each.name + " " + region.name;
      std::string problem;
      auto placement = whole_placement(fixed, *each.backend, region, store, options, problem);
      if (placement) {
        answer.ways.push_back({NetworkWay::Kind::network, name, std::move(*placement), {}, {}});
      } else {
        answer.left_out.push_back(fmt::format("{} of the whole network: {}", name, problem));
      }
    }
  }
}

NetworkAnswer all_ways(const FixedProgram& fixed, const std::vector<FoundBackend>& backends,
                       CostStore* store, const PlaceOptions& options) {
  using Kind = NetworkWay::Kind;
  NetworkAnswer answer;
  PlaceOptions kernels = options;
  kernels.region_parts = 0;
  answer.ways.push_back({Kind::mix, "mix", place_program(fixed, backends, store, kernels), {}, {}});
  std::size_t present = 0;
  for (const FoundBackend& each : backends) present += each.backend ? 1U : 0U;
  for (const FoundBackend& each : backends) {
    if (!each.backend || present < 2) continue;
    answer.ways.push_back(
        {Kind::backend, each.name, place_program(fixed, {each}, store, kernels), {}, {}});
  }
  add_networks(fixed, backends, store, options, answer);
  if (options.region_parts > 0 && std::any_of(backends.begin(), backends.end(), has_regions)) {
    ProgramPlacement mixed = place_program(fixed, backends, store, options);
    answer.region_kernels = mixed.kernels - answer.ways.front().placement.kernels;
    answer.regions_measured = mixed.measured;
    if (options.evolved_regions > 0) {
      mixed = evolved_placement(fixed, backends, store, options, mixed);
      answer.evolved_measured = mixed.measured;
    }
    if (holds_region(mixed, backends)) {
      answer.ways.push_back({Kind::mix, "mix with regions", std::move(mixed), {}, {}});
    }
  }
  std::stable_sort(answer.ways.begin() + 1, answer.ways.end(),
                   [](const NetworkWay& a, const NetworkWay& b) {
                     return a.placement.predicted_s < b.placement.predicted_s;
                   });
  return answer;
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
  NetworkAnswer answer = all_ways(fixed, backends, store, options);
  double best_s = answer.ways.front().placement.predicted_s;
  for (const NetworkWay& way : answer.ways) best_s = std::min(best_s, way.placement.predicted_s);
  std::vector<std::unique_ptr<PlacedProgram>> programs;
  std::vector<std::function<void()>> tasks;
  std::vector<std::size_t> way_of;
  for (std::size_t w = 0; w < answer.ways.size(); ++w) {
    NetworkWay& way = answer.ways[w];
    const bool is_sum = way.kind != NetworkWay::Kind::network;
    if (w > 0 && is_sum && way.placement.predicted_s > hopeless * best_s) continue;
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
  MeasureOptions wholes = options.measure;
  wholes.runs_before_sample = 1;
  const std::vector<Measurement> measured = measure(tasks, wholes);
  std::size_t best = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    answer.ways[way_of[i]].measured = measured[i];
    if (measured[i].median_s < measured[best].median_s) best = i;
  }
  answer.chosen = way_of[best];
  return answer;
}

}  // namespace braid

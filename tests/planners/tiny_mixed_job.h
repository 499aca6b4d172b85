#pragma once

#include <cstdint>
#include <random>

#include "braid/graph/graph.h"
#include "braid/planners/job/job.h"
#include "braid/system/system.h"

#include "planners/tiny_branches.h"
#include "planners/two_kinds.h"

namespace braid::test {

/// A random job: a chain of layers, some with tied ends, or any graph; two kinds of devices, at
/// times with little memory; several variants to run each layer, or one.
struct TinyMixedJob {
  explicit TinyMixedJob(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const int layers = pick(random, 2, seed % 8 == 1 ? 5 : 4);
    graph = seed % 2 == 0 ? tiny_graph(random, layers) : tiny_branched_graph(random, layers);
    if (seed % 8 == 2) tie_layers(graph, 0, graph.layers.size() - 1);
    const double memory = pick(random, 0, 2) == 0 ? 1e6 * pick(random, 1, 4) : 1e9;
    const int first = pick(random, 1, 2);
    system = two_kinds(random, first, pick(random, 1, 2), memory);
    job.graph = &graph;
    job.global_batch = pick(random, 1, 2) * 2;
    if (pick(random, 0, 2) > 0) {
      space.recompute = pick(random, 0, 1) == 0 ? Recompute::none : Recompute::full;
    }
    if (pick(random, 0, 2) > 0) space.zero = pick(random, 0, 1) == 0 ? Zero::none : Zero::optimizer;
    space.allow_offload = false;
  }
  TinyMixedJob(const TinyMixedJob&) = delete;
  TinyMixedJob& operator=(const TinyMixedJob&) = delete;
  TinyMixedJob(TinyMixedJob&&) = delete;
  TinyMixedJob& operator=(TinyMixedJob&&) = delete;
  ~TinyMixedJob() = default;

  Graph graph;
  System system;
  Job job;
  SpaceOptions space;
};

}  // namespace braid::test

#pragma once

#include <cstdint>
#include <string>

#include "braid/plan/plan.h"
#include "braid/plan/totals.h"

namespace braid::test {

/// A plan of `blocks` equal blocks between an embedding and a head, dealt to stages and chunks as
/// evenly as they go with the rest up front, on a small made-up cluster.
inline Plan made_plan(const Parallelism& parallel, int blocks) {
  Plan plan;
  plan.planner = "test";
  plan.model = "toy";
  plan.model_source = "toy.json";
  plan.model_parameters = 1e6;
  plan.seq_len = 128;
  plan.parallel = parallel;
  plan.global_batch = parallel.num_micro_batches * parallel.micro_batch * parallel.dp;
  DeviceGroup group;
  group.chip.name = "toy-chip";
  group.chip.peaks = {{Dtype::bf16, 1e12}};
  group.chip.vector_flops_per_s = 1e11;
  group.chip.memory = {"HBM", 1e9, 1e11};
  group.devices_per_node = 4;
  group.nodes = (parallel.devices() + 3) / 4;
  group.intra_node.name = "link";
  group.intra_node.size = 4;
  group.intra_node.bytes_per_s = 1e10;
  group.intra_node.unit_bytes_per_s = 1e10;
  plan.system.name = "toy-cluster";
  plan.system.groups = {group};
  if (group.nodes > 1) {
    NetworkLevel level;
    level.name = "network";
    level.size = group.nodes;
    level.bytes_per_s = 1e9;
    level.unit_bytes_per_s = 4e9;
    plan.system.levels = {level};
  }
  plan.system.device_count = parallel.devices();

  plan.profile.model = plan.model;
  plan.profile.chip = group.chip.name;
  plan.profile.provenance = "estimated";
  plan.profile.seq_len = plan.seq_len;
  Option option;
  option.how = {parallel.micro_batch,
                parallel.tp,
                parallel.sequence_parallel,
                parallel.cp,
                parallel.ep,
                parallel.recompute,
                parallel.offload_activations,
                parallel.offload_weights};
  option.cost.forward.compute_s = 1e-3;
  option.cost.backward_input.compute_s = 2e-3;
  option.cost.model_flops = 1e6;
  option.cost.dense_parameters = 1e4;
  option.cost.stash_bytes = 1e5;
  plan.profile.kinds = {{option}, {option}, {option}};
  plan.profile.layers.push_back({"embedding", 0});
  for (int b = 0; b < blocks; ++b) plan.profile.layers.push_back({"block" + std::to_string(b), 1});
  plan.profile.layers.push_back({"head", 2});
  const int layers = blocks + 2;
  for (int l = 0; l + 1 < layers; ++l) plan.profile.edges.push_back({l, l + 1, 1e4});

  const int pieces = parallel.pp * parallel.vp;
  plan.stages.resize(static_cast<std::size_t>(parallel.pp));
  for (int s = 0; s < parallel.pp; ++s) {
    Stage& stage = plan.stages[static_cast<std::size_t>(s)];
    stage.dp = parallel.dp;
    stage.tp = parallel.tp;
    stage.cp = parallel.cp;
    stage.devices = stage_devices(parallel, s);
    stage.chunks.resize(static_cast<std::size_t>(parallel.vp));
  }
  int layer = 0;
  for (int piece = 0; piece < pieces; ++piece) {
    int count = blocks / pieces + (piece < blocks % pieces ? 1 : 0);
    count += (piece == 0 ? 1 : 0) + (piece + 1 == pieces ? 1 : 0);
    auto& stage = plan.stages[static_cast<std::size_t>(piece % parallel.pp)];
    Chunk& chunk = stage.chunks[static_cast<std::size_t>(piece / parallel.pp)];
    for (int i = 0; i < count; ++i) {
      chunk.layers.push_back(layer++);
      chunk.options.push_back(0);
    }
  }
  return plan;
}

}  // namespace braid::test

#include "schedule/plans.h"

namespace braid {

Plan small_plan(ScheduleKind schedule, int pp, int vp, std::int64_t num_micro_batches) {
  Plan plan;
  plan.planner = "hand";
  plan.model = "a \"small\" model";
  plan.seq_len = 10;
  plan.parallel.pp = pp;
  plan.parallel.vp = vp;
  plan.parallel.dp = 2;
  plan.parallel.num_micro_batches = num_micro_batches;
  plan.parallel.schedule = schedule;
  plan.global_batch = 2 * num_micro_batches;

  Option option;
  option.cost.forward.compute_s = 0.75;
  option.cost.forward.tp_comm_s = 0.25;
  option.cost.recompute.compute_s = 0.5;
  option.cost.backward_input.compute_s = 1;
  option.cost.backward_weight.compute_s = 1;
  option.cost.model_flops = 3e11;
  option.cost.stash_bytes = 8;
  plan.profile.kinds = {{option}};
  const int layers = pp * vp;
  for (int i = 0; i < layers; ++i) {
    plan.profile.layers.push_back({"layer", 0});
    if (i > 0) plan.profile.edges.push_back({i - 1, i, 0});
  }

  DeviceGroup group;
  group.chip.name = "chip";
  group.chip.peaks = {{Dtype::bf16, 1e12}};
  group.chip.memory = {"memory", 1e9, 1e12};
  const std::int64_t devices = std::int64_t{2} * pp;
  group.devices_per_node = devices;
  group.intra_node.size = devices;
  group.intra_node.bytes_per_s = 1e9;
  group.intra_node.unit_bytes_per_s = 1e9;
  group.intra_node.efficiency = 1;
  plan.system.name = "node";
  plan.system.device_count = group.devices_per_node;
  plan.system.groups = {group};

  for (int s = 0; s < pp; ++s) {
    Stage stage;
    stage.dp = 2;
    const std::int64_t first = std::int64_t{2} * s;
    stage.devices = {first, first + 1};
    for (int c = 0; c < vp; ++c) stage.chunks.push_back({{c * pp + s}, {0}});
    plan.stages.push_back(stage);
  }
  return plan;
}

void set_parameters(Plan& plan, double parameters) {
  for (auto& options : plan.profile.kinds) {
    for (Option& option : options) option.cost.dense_parameters = parameters;
  }
}

void set_boundary_bytes(Plan& plan, double bytes) {
  for (ProfileEdge& edge : plan.profile.edges) edge.bytes = bytes;
}

}  // namespace braid

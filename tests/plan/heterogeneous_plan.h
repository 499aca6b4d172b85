#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "braid/plan/plan.h"

namespace braid::test {

inline int draw(std::mt19937_64& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

/// Times of some milliseconds, all a multiple of a small step.
inline double draw_time_s(std::mt19937_64& random) { return draw(random, 0, 40) * 0.25e-3; }

/// Nodes of four devices: one kind, or two kinds of chips.
inline System heterogeneous_system(std::mt19937_64& random, std::int64_t nodes, bool mixed) {
  System system;
  system.name = "heterogeneous";
  for (int kind = 0; kind < (mixed ? 2 : 1); ++kind) {
    DeviceGroup group;
    group.chip.name = kind == 0 ? "fast" : "slow";
    group.chip.peaks = {{Dtype::bf16, kind == 0 ? 4e14 : 1e14}};
    group.chip.vector_flops_per_s = 1e13;
    group.chip.memory = {"HBM", 8e10, kind == 0 ? 2e12 : 5e11};
    group.devices_per_node = 4;
    group.nodes = mixed ? (kind == 0 ? nodes / 2 : nodes - nodes / 2) : nodes;
    group.intra_node.name = "link";
    group.intra_node.size = 4;
    group.intra_node.bytes_per_s = kind == 0 ? 1e11 : 1e10;
    group.intra_node.unit_bytes_per_s = group.intra_node.bytes_per_s;
    group.intra_node.latency_s = 2e-6;
    system.groups.push_back(group);
  }
  NetworkLevel level;
  level.name = "network";
  level.size = nodes;
  level.bytes_per_s = 5e9;
  level.unit_bytes_per_s = 1e10 * draw(random, 1, 2);
  level.latency_s = 1e-5;
  level.half_bytes = draw(random, 0, 1) * 1e5;
  system.levels = {level};
  system.device_count = 4 * nodes;
  return system;
}

/// Lets one to three parameters be read by two layers or more.
inline void share_parameters(std::mt19937_64& random, Profile& profile) {
  const auto layers = static_cast<std::int32_t>(profile.layers.size());
  for (int count = draw(random, 1, 3); layers > 1 && count > 0; --count) {
    SharedParameter parameter;
    while (parameter.layers.size() < 2) {
      parameter.layers.clear();
      for (std::int32_t l = 0; l < layers; ++l) {
        if (draw(random, 0, 2) == 0) parameter.layers.push_back(l);
      }
    }
    parameter.elements = draw(random, 0, 9) * 1e5;
    parameter.sharded = draw(random, 0, 1) == 0;
    profile.shared.push_back(parameter);
  }
}

/// A stage with degrees of its own that takes in `round` samples at a time, or any number if 0.
inline Stage random_stage(std::mt19937_64& random, int round) {
  constexpr int kRounds[] = {1, 2, 3, 4, 6, 8, 12, 24};
  Stage stage;
  stage.own.emplace();
  const int samples = round > 0 ? round : kRounds[draw(random, 0, 7)];
  do {
    stage.dp = draw(random, 1, 4);
  } while (samples % stage.dp != 0);
  stage.own->micro_batch = samples / stage.dp;
  stage.tp = draw(random, 1, 3);
  stage.cp = draw(random, 1, 2);
  stage.own->ep = (stage.dp * stage.cp) % 2 == 0 ? draw(random, 1, 2) : 1;
  stage.own->sequence_parallel = stage.tp > 1 && draw(random, 0, 1) == 0;
  stage.own->zero = static_cast<Zero>(draw(random, 0, 3));
  stage.own->offload_optimizer = draw(random, 0, 4) == 0;
  stage.chunks.emplace_back();
  return stage;
}

/// Two options that layers of the stage may have.
inline std::vector<Option> random_options(std::mt19937_64& random, const Stage& stage) {
  std::vector<Option> options;
  for (int o = 0; o < 2; ++o) {
    Option option;
    option.how = {stage.own->micro_batch, stage.tp, stage.own->sequence_parallel, stage.cp,
                  stage.own->ep};
    option.how.recompute = static_cast<Recompute>(draw(random, 0, 2));
    option.name = o == 0 ? "one" : "another";
    option.cost.forward.compute_s = draw_time_s(random);
    option.cost.forward.tp_comm_s = draw_time_s(random);
    option.cost.recompute.compute_s = draw_time_s(random);
    option.cost.backward_input.compute_s = draw_time_s(random);
    option.cost.backward_weight.compute_s = draw_time_s(random);
    option.cost.dense_parameters = draw(random, 0, 4) * 1e5;
    option.cost.expert_parameters = draw(random, 0, 1) * 1e5;
    option.cost.stash_bytes = draw(random, 1, 9) * 1e6;
    option.cost.working_bytes = draw(random, 0, 9) * 1e6;
    option.cost.model_flops = 1e6;
    options.push_back(option);
  }
  return options;
}

/// A plan whose stages have degrees, micro-batches, devices and options of their own. Layers form a
/// random graph; `chain` joins each to the next alone. About one in three has stages of like
/// rounds.
inline Plan heterogeneous_plan(std::mt19937_64& random, bool mixed = false, bool chain = false) {
  Plan plan;
  plan.planner = "test";
  plan.model = "heterogeneous";
  plan.seq_len = 64;
  plan.global_batch = 24;
  const int stages = draw(random, 1, 5);
  const bool like_rounds = draw(random, 0, 2) == 0;
  const int round = like_rounds ? 4 : 0;
  plan.parallel.pp = stages;
  plan.parallel.schedule =
      draw(random, 0, 3) == 0 ? ScheduleKind::gpipe : ScheduleKind::one_f_one_b;
  if (draw(random, 0, 1) == 0) {
    plan.parallel.order = {Axis::dp, Axis::cp, Axis::pp, Axis::tp};
  }
  std::int64_t devices = 0;
  for (int s = 0; s < stages; ++s) {
    const Stage& stage = plan.stages.emplace_back(random_stage(random, round));
    devices += std::int64_t{stage.dp} * stage.tp * stage.cp;
  }
  plan.system = heterogeneous_system(random, std::max<std::int64_t>(2, (devices + 3) / 4), mixed);
  for (DeviceGroup& group : plan.system.groups) group.chip.host = Memory{"DDR", 1e12, 2e10};
  std::vector<std::int64_t> free;
  for (std::int64_t d = 0; d < plan.system.device_count; ++d) free.push_back(d);
  if (draw(random, 0, 1) == 0) std::shuffle(free.begin(), free.end(), random);
  std::size_t taken = 0;
  std::int32_t layer = 0;
  for (Stage& stage : plan.stages) {
    for (int i = 0; i < stage.dp * stage.tp * stage.cp; ++i) stage.devices.push_back(free[taken++]);
    std::sort(stage.devices.begin(), stage.devices.end());
    const int layers = draw(random, 1, 3);
    for (int l = 0; l < layers; ++l, ++layer) {
      plan.profile.layers.push_back({"layer" + std::to_string(layer), layer});
      plan.profile.kinds.push_back(random_options(random, stage));
      stage.chunks.front().layers.push_back(layer);
      stage.chunks.front().options.push_back(draw(random, 0, 1));
    }
  }
  for (std::int32_t to = 1; to < layer; ++to) {
    for (std::int32_t from = chain ? to - 1 : 0; from < to; ++from) {
      if (chain || draw(random, 0, to) <= 1) {
        plan.profile.edges.push_back({from, to, draw(random, 0, 8) * 1e5});
      }
    }
  }
  std::sort(plan.profile.edges.begin(), plan.profile.edges.end(),
            [](const ProfileEdge& a, const ProfileEdge& b) {
              return std::pair(a.source, a.target) < std::pair(b.source, b.target);
            });
  return plan;
}

/// Gives stages of a 1F1B plan warm-ups of their own, any at all or, if `ample`, at least as many
/// samples as any stage that they hand over to and a round of it more.
inline void draw_warm_ups(std::mt19937_64& random, Plan& plan, bool ample) {
  plan.parallel.schedule = ScheduleKind::one_f_one_b;
  const std::vector<ChunkEdge> edges = chunk_edges(plan);
  std::vector<std::int64_t> samples(plan.stages.size(), 0);
  for (std::size_t s = plan.stages.size(); s-- > 0;) {
    const Parallelism form = form_of(plan, s);
    const std::int64_t round = std::int64_t{form.dp} * form.micro_batch;
    std::int64_t count = draw(random, 1, static_cast<int>(form.num_micro_batches));
    for (const ChunkEdge& edge : edges) {
      if (!ample || edge.source_stage != static_cast<std::int32_t>(s)) continue;
      const std::int64_t behind = samples[static_cast<std::size_t>(edge.target_stage)];
      count = std::max(count, behind / round + 1);
    }
    count = std::min(count, form.num_micro_batches);
    samples[s] = count * round;
    // Without a count of its own the rule's may be too small for those behind.
    if (ample || draw(random, 0, 2) > 0) plan.stages[s].own->warm_up = count;
  }
}

/// Gives stages of a 1F1B plan an order of passes of their own: each any at all or, if `together`,
/// those of a run of the whole plan that starts at random one of the passes that could be next.
inline void draw_passes(std::mt19937_64& random, Plan& plan, bool together) {
  plan.parallel.schedule = ScheduleKind::one_f_one_b;
  const std::vector<ChunkEdge> edges = chunk_edges(plan);
  struct Passes {
    std::int64_t round = 0, count = 0, forwards = 0, backwards = 0, run = 0, back = 0;
    std::vector<PassRun> runs = {};
  };
  std::vector<Passes> stages;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Parallelism form = form_of(plan, s);
    stages.push_back({std::int64_t{form.dp} * form.micro_batch, form.num_micro_batches});
  }
  const auto ready = [&](std::size_t s, bool forward) {
    const Passes& own = stages[s];
    const std::int64_t next = forward ? own.forwards : own.backwards;
    if (next == (forward ? own.count : own.forwards)) return false;
    for (const ChunkEdge& edge : edges) {
      if (!together || (forward ? edge.target_stage : edge.source_stage) != static_cast<int>(s)) {
        continue;
      }
      const Passes& other =
          stages[static_cast<std::size_t>(forward ? edge.source_stage : edge.target_stage)];
      const std::int64_t done = forward ? other.forwards : other.backwards;
      if (done * other.round < (next + 1) * own.round) return false;
    }
    return true;
  };
  for (;;) {
    std::vector<std::pair<std::size_t, bool>> next;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      for (const bool forward : {true, false}) {
        if (ready(s, forward)) next.emplace_back(s, forward);
      }
    }
    if (next.empty()) break;
    const auto [s, forward] =
        next[static_cast<std::size_t>(draw(random, 0, static_cast<int>(next.size()) - 1))];
    Passes& own = stages[s];
    if (forward && own.back > 0) {
      append_passes(own.runs, own.run, own.back);
      own.run = own.back = 0;
    }
    ++(forward ? own.forwards : own.backwards);
    ++(forward ? own.run : own.back);
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    append_passes(stages[s].runs, stages[s].run, stages[s].back);
    plan.stages[s].own->passes = stages[s].runs;
  }
}

}  // namespace braid::test

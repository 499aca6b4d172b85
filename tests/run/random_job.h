#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "braid/frontend/graph_builder.h"
#include "braid/graph/graph.h"
#include "braid/plan/plan.h"

#include "plan/heterogeneous_plan.h"

namespace braid::test {

/// A model and a plan that trains it.
struct RandomJob {
  Graph graph;
  Plan plan;
};

/// Layers of one or two products with functions between, each of the sum of one to three results
/// before it; some are fed tokens or numbers, some share a weight, and all that nobody reads is
/// summed for the loss. `chain`: each of the result of the layer before alone.
/// `shares`: whether weights are shared at all.
inline Graph random_branches(std::mt19937_64& random, int layers, bool chain = false,
                             bool shares = true) {
  const std::int64_t rows = draw(random, 1, 3);
  constexpr std::int64_t kWidth = 4;
  GraphBuilder builder("random", rows);
  std::vector<TensorId> results;
  std::vector<bool> is_read;
  TensorId shared = -1;
  TensorId tokens = -1, numbers = -1;
  for (int l = 0; l < layers; ++l) {
    const std::string name = "layer" + std::to_string(l);
    builder.begin_layer(name);
    TensorId x = -1;
    if (l == 0 || (!chain && draw(random, 0, 4) == 0)) {
      if (draw(random, 0, 1) == 0) {
        if (tokens < 0) tokens = builder.input("tokens", {rows}, Dtype::i64);
        const TensorId table = builder.parameter(name + ".table", {7, kWidth});
        x = builder.embedding(name + ".embedding", tokens, table, 7, kWidth, rows);
      } else {
        if (numbers < 0) numbers = builder.input("numbers", {rows, kWidth}, Dtype::bf16);
        x = builder.linear(name + ".in", numbers, {rows, kWidth, kWidth}, true, Split::replicated);
      }
    }
    for (int i = chain ? 1 : draw(random, 1, 3); i > 0 && !results.empty() && (x < 0 || i > 1);
         --i) {
      const auto from = static_cast<std::size_t>(draw(random, chain ? l - 1 : 0, l - 1));
      is_read[from] = true;
      x = x < 0
              ? results[from]
              : builder.residual(name + ".sum" + std::to_string(i), x, results[from], rows, kWidth);
    }
    if (draw(random, 0, 1) == 0) {
      x = builder.norm(name + ".norm", x, rows, kWidth, draw(random, 0, 1) == 0);
    }
    if (shares && draw(random, 0, 2) == 0) {
      if (shared < 0) shared = builder.parameter("shared.weight", {kWidth, kWidth});
      x = builder.add(name + ".shared", MatMul{1, rows, kWidth, kWidth, true, false}, {x, shared},
                      {rows, kWidth}, Split::replicated);
    }
    const double flops = draw(random, 0, 1) == 0 ? 1 : 2;
    x = builder.linear(name + ".linear", x, {rows, kWidth, kWidth}, draw(random, 0, 1) == 0,
                       Split::replicated);
    if (flops == 1) {
      x = builder.add(name + ".relu", Elementwise{rows * kWidth, 1, Elementwise::Keeps::mask}, {x},
                      {rows, kWidth}, Split::replicated);
    }
    results.push_back(x);
    is_read.push_back(false);
  }
  builder.begin_layer("head");
  TensorId sum = -1;
  for (std::size_t l = 0; l < results.size(); ++l) {
    if (is_read[l]) continue;
    sum = sum < 0 ? results[l]
                  : builder.residual("head.sum" + std::to_string(l), sum, results[l], rows, kWidth);
  }
  const TensorId weight = builder.parameter("head.weight", {kWidth, 5});
  return builder.finish({builder.language_loss(sum, weight, rows, kWidth, 5)});
}

/// A layer's options: any recomputation.
inline std::vector<Option> recomputing_options(int micro_batch) {
  std::vector<Option> options(3);
  for (int r = 0; r < 3; ++r) {
    Option& option = options[static_cast<std::size_t>(r)];
    option.name = "option " + std::to_string(r);
    option.how.micro_batch = micro_batch;
    option.how.recompute = static_cast<Recompute>(r);
    option.cost.forward.compute_s = 1;
    option.cost.backward_input.compute_s = 1;
    option.cost.backward_weight.compute_s = 1;
    option.cost.stash_bytes = 8;
    option.cost.model_flops = 1;
  }
  return options;
}

/// A plan without stages for the graph's layers.
inline Plan plan_of(std::mt19937_64& random, const Graph& graph) {
  Plan plan;
  plan.planner = "test";
  plan.model = graph.name;
  plan.seq_len = graph.seq_len;
  for (const Layer& layer : graph.layers) {
    plan.profile.layers.push_back(
        {layer.name, static_cast<std::int32_t>(plan.profile.layers.size())});
    plan.profile.kinds.push_back(recomputing_options(1));
  }
  for (const LayerEdge& edge : layer_edges(graph)) {
    plan.profile.edges.push_back({edge.source, edge.target, edge.bytes});
  }
  plan.system = heterogeneous_system(random, 8, false);
  return plan;
}

/// Stages of consecutive layers, which form a graph, each with micro-batches, replicas, ZeRO stage
/// and perhaps an order of its own.
inline Plan random_plan_for(std::mt19937_64& random, const Graph& graph) {
  constexpr int kRounds[] = {1, 2, 4, 8};
  Plan plan = plan_of(random, graph);
  const auto layers = static_cast<std::int32_t>(graph.layers.size());
  const int stages = draw(random, 1, std::min(5, layers));
  plan.global_batch = 8;
  plan.parallel.pp = stages;
  plan.parallel.schedule =
      draw(random, 0, 3) == 0 ? ScheduleKind::gpipe : ScheduleKind::one_f_one_b;
  std::vector<std::int32_t> cuts;
  for (std::int32_t l = 1; l < layers; ++l) cuts.push_back(l);
  std::shuffle(cuts.begin(), cuts.end(), random);
  cuts.resize(static_cast<std::size_t>(stages - 1));
  cuts.push_back(0);
  cuts.push_back(layers);
  std::sort(cuts.begin(), cuts.end());
  std::int64_t device = draw(random, 0, 3);
  for (int s = 0; s < stages; ++s) {
    Stage& stage = plan.stages.emplace_back();
    stage.own.emplace();
    const int round = kRounds[draw(random, 0, 3)];
    do {
      stage.dp = draw(random, 1, 4);
    } while (round % stage.dp != 0);
    stage.own->micro_batch = round / stage.dp;
    stage.own->zero = static_cast<Zero>(draw(random, 0, 2));
    for (int d = 0; d < stage.dp; ++d) stage.devices.push_back(device++);
    Chunk& chunk = stage.chunks.emplace_back();
    for (std::int32_t l = cuts[static_cast<std::size_t>(s)];
         l < cuts[static_cast<std::size_t>(s) + 1]; ++l) {
      chunk.layers.push_back(l);
      chunk.options.push_back(draw(random, 0, 2));
      plan.profile.kinds[static_cast<std::size_t>(l)] = recomputing_options(stage.own->micro_batch);
    }
  }
  const bool one_f_one_b = plan.parallel.schedule == ScheduleKind::one_f_one_b;
  if (one_f_one_b && draw(random, 0, 1) == 0) draw_passes(random, plan, true);
  return plan;
}

/// Tensor-parallel ranks for the stages of a plan of random_plan_for(), of at most two replicas
/// each: one of `degrees`, with sequence parallelism where it divides the graph's tokens, in any
/// order of the axes.
inline void divide_stages(std::mt19937_64& random, const Graph& graph, Plan& plan,
                          const std::vector<int>& degrees) {
  if (draw(random, 0, 1) == 0) {
    plan.parallel.order = {Axis::dp, Axis::tp, Axis::cp, Axis::pp};
  }
  std::int64_t device = draw(random, 0, 3);
  for (Stage& stage : plan.stages) {
    const int round = stage.dp * stage.own->micro_batch;
    stage.dp = std::min(stage.dp, 2);
    stage.own->micro_batch = round / stage.dp;
    stage.tp =
        degrees[static_cast<std::size_t>(draw(random, 0, static_cast<int>(degrees.size()) - 1))];
    stage.own->sequence_parallel =
        stage.tp > 1 && graph.seq_len % stage.tp == 0 && draw(random, 0, 2) > 0;
    stage.own->passes.clear();
    stage.own->warm_up.reset();
    stage.devices.clear();
    for (int d = 0; d < stage.dp * stage.tp; ++d) stage.devices.push_back(device++);
    for (Chunk& chunk : stage.chunks) {
      for (const std::int32_t l : chunk.layers) {
        for (Option& option : plan.profile.kinds[static_cast<std::size_t>(l)]) {
          option.how.micro_batch = stage.own->micro_batch;
          option.how.tp = stage.tp;
          option.how.sequence_parallel = stage.own->sequence_parallel;
        }
      }
    }
  }
}

/// Uniform: one to three stages of `vp` chunks, one or two replicas.
inline Plan uniform_plan_for(std::mt19937_64& random, const Graph& graph, int vp) {
  Plan plan = plan_of(random, graph);
  const auto layers = static_cast<std::int32_t>(graph.layers.size());
  const int pp = std::min(draw(random, 2, 3), layers / vp);
  Parallelism& form = plan.parallel;
  form.pp = pp;
  form.vp = vp;
  form.dp = draw(random, 1, 2);
  form.micro_batch = draw(random, 1, 2);
  form.num_micro_batches = std::int64_t{2} * pp;
  form.zero = static_cast<Zero>(draw(random, 0, 2));
  form.schedule = vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
  plan.global_batch = form.dp * form.micro_batch * form.num_micro_batches;
  plan.stages.resize(static_cast<std::size_t>(pp));
  for (int s = 0; s < pp; ++s) {
    Stage& stage = plan.stages[static_cast<std::size_t>(s)];
    stage.dp = form.dp;
    for (int d = 0; d < form.dp; ++d) {
      stage.devices.push_back(std::int64_t{s} * form.dp + d);
    }
    stage.chunks.resize(static_cast<std::size_t>(vp));
  }
  for (std::int32_t l = 0; l < layers; ++l) {
    const int block = static_cast<int>(std::int64_t{l} * pp * vp / layers);
    Chunk& chunk = plan.stages[static_cast<std::size_t>(block % pp)]
                       .chunks[static_cast<std::size_t>(block / pp)];
    chunk.layers.push_back(l);
    chunk.options.push_back(0);
  }
  return plan;
}

/// A schedule and the chunks a stage that it is for; no name: the plan's own.
struct ScheduleCase {
  std::string name;
  int vp = 1;
};
inline std::vector<ScheduleCase> schedule_cases() {
  return {{"", 1},      {"", 2},           {"gpipe", 1},       {"gpipe", 2},
          {"1f1b", 1},  {"1f1b-least", 1}, {"interleaved", 2}, {"zb-h1", 1},
          {"zb-h2", 1}, {"zb-v", 2},       {"kfkb", 1},        {"greedy", 1},
          {"search", 1}};
}

}  // namespace braid::test

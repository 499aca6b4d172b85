#include "braid/plan/plan_energy.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "braid/base/index.h"
#include "braid/plan/stage_context.h"
#include "braid/profile/layer_activity.h"
#include "braid/profile/layer_profile.h"
#include "braid/system/collective.h"

namespace braid {
namespace {

/// Elements of parameters on one device of a stage.
struct HeldParameters {
  double dense = 0, expert = 0;
};

/// Bytes that a device sends for the gradients of what it holds, and for parameters that are
/// shared among replicas.
double synchronised_bytes(const HeldParameters& held, double micro_batches,
                          const DataParallelContext& context) {
  const auto sent = [&](Collective collective, double bytes_per_element) {
    return sent_bytes(collective, held.dense * bytes_per_element, context.dense_ranks) +
           sent_bytes(collective, held.expert * bytes_per_element, context.expert_ranks);
  };
  const double gradient = bytes_per_element(context.precision.gradient);
  const double weight = bytes_per_element(context.precision.weight);
  double bytes = 0;
  switch (context.zero) {
    case Zero::none:
      bytes = sent(Collective::all_reduce, gradient);
      break;
    case Zero::optimizer:
      bytes = sent(Collective::reduce_scatter, gradient) + sent(Collective::all_gather, weight);
      break;
    case Zero::gradients:
      bytes = micro_batches * sent(Collective::reduce_scatter, gradient) +
              sent(Collective::all_gather, weight);
      break;
    case Zero::parameters:
      bytes = micro_batches * (sent(Collective::reduce_scatter, gradient) +
                               2 * sent(Collective::all_gather, weight));
      break;
  }
  const double shard = held.dense / context.dense_ranks + held.expert / context.expert_ranks;
  return bytes + sent_bytes(Collective::all_reduce, shard * gradient, context.copies);
}

/// HBM bytes of a device's optimizer step.
double optimizer_bytes(const HeldParameters& held, const DataParallelContext& context) {
  const Precision& precision = context.precision;
  const bool sharded = context.zero >= Zero::optimizer;
  const double elements =
      sharded ? held.dense / context.dense_ranks + held.expert / context.expert_ranks
              : held.dense + held.expert;
  const double state = context.offload_optimizer ? 0 : 2 * precision.optimizer_bytes_per_parameter;
  return elements *
         (state + bytes_per_element(precision.gradient) + bytes_per_element(precision.weight));
}

/// Bytes that all devices send along edges between stages.
double handed_bytes(const Plan& plan) {
  double bytes = 0;
  for (const ChunkEdge& edge : chunk_edges(plan)) {
    if (edge.source_stage == edge.target_stage) continue;
    const auto flows =
        static_cast<double>(std::max(plan.stages[at(edge.source_stage)].devices.size(),
                                     plan.stages[at(edge.target_stage)].devices.size()));
    const auto rounds = [&](std::int32_t stage) {
      return static_cast<double>(form_of(plan, at(stage)).num_micro_batches);
    };
    const double back = edge.backward_bytes < 0 ? edge.bytes : edge.backward_bytes;
    bytes += flows * (rounds(edge.source_stage) * edge.bytes + rounds(edge.target_stage) * back);
  }
  return bytes;
}

/// Bytes that all devices send to sum the gradients of parameters that several stages hold.
double shared_bytes(const Plan& plan) {
  double bytes = 0;
  for (const SharedParameter& shared : plan.profile.shared) {
    std::set<std::size_t> stages;
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      for (const Chunk& chunk : plan.stages[s].chunks) {
        for (const std::int32_t layer : chunk.layers) {
          if (std::binary_search(shared.layers.begin(), shared.layers.end(), layer)) {
            stages.insert(s);
          }
        }
      }
    }
    for (const std::size_t s : stages) {
      const double held = shared.elements / (shared.sharded ? form_of(plan, s).tp : 1);
      bytes += static_cast<double>(plan.stages[s].devices.size()) *
               sent_bytes(Collective::all_reduce, held * bytes_per_element(plan.precision.gradient),
                          static_cast<double>(stages.size()));
    }
  }
  return bytes;
}

/// Activity of layers by kind and option, each worked out once.
class LayerActivities {
 public:
  LayerActivities(const Plan& plan, const Graph& graph, NestMemo& memo)
      : plan_(plan), graph_(graph), memo_(memo), leaving_(leaving_tensors(graph)) {}

  /// All passes of a micro-batch.
  const ChipActivity& of(std::int32_t layer, std::int32_t option) {
    const std::int32_t kind = plan_.profile.layers[at(layer)].kind;
    const auto [place, fresh] = known_.try_emplace({kind, option});
    if (!fresh) return place->second;
    const Option& chosen = options_of(plan_.profile, layer)[at(option)];
    assert(chosen.sharded.empty());
    const std::vector<OperatorWork> works = layer_work(graph_, layer);
    const ActivityOf how{chosen.how, plan_.precision, plan_.system.groups.front().chip};
    const LayerActivity passes =
        layer_activity(graph_, layer, works, leaving_[at(layer)], how, memo_);
    place->second = passes.forward;
    place->second += passes.recompute;
    place->second += passes.backward;
    return place->second;
  }

 private:
  const Plan& plan_;
  const Graph& graph_;
  NestMemo& memo_;
  std::vector<std::vector<TensorId>> leaving_;
  std::map<std::pair<std::int32_t, std::int32_t>, ChipActivity> known_;
};

}  // namespace

bool has_energy(const System& system) {
  return std::all_of(system.groups.begin(), system.groups.end(), [&](const DeviceGroup& group) {
    return group.chip.accelerator && maps_layers(group.chip) &&
           group.chip.accelerator == system.groups.front().chip.accelerator;
  });
}

ChipActivity plan_activity(const Plan& plan, const Graph& graph, NestMemo& memo) {
  assert(has_energy(plan.system));
  LayerActivities layers(plan, graph, memo);
  ChipActivity all;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const auto micro_batches = static_cast<double>(form_of(plan, s).num_micro_batches);
    ChipActivity device;
    HeldParameters held;
    for (const Chunk& chunk : plan.stages[s].chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        device += micro_batches * layers.of(chunk.layers[i], chunk.options[i]);
        const LayerCost& cost =
            options_of(plan.profile, chunk.layers[i])[at(chunk.options[i])].cost;
        held.dense += cost.dense_parameters;
        held.expert += cost.expert_parameters;
      }
    }
    const StageContext context(plan, s);
    device.link_bytes += synchronised_bytes(held, micro_batches, context.data_parallel());
    device.hbm_bytes += optimizer_bytes(held, context.data_parallel());
    all += static_cast<double>(plan.stages[s].devices.size()) * device;
  }
  all.link_bytes += handed_bytes(plan) + shared_bytes(plan);
  return all;
}

ChipEnergy plan_energy(const Plan& plan, const Graph& graph, double time_s, NestMemo& memo) {
  ChipActivity does = plan_activity(plan, graph, memo);
  does.seconds = time_s * static_cast<double>(plan.system.device_count);
  const AcceleratorDesign& design = *plan.system.groups.front().chip.accelerator;
  return chip_energy(design.chip, design.energy, does);
}

ChipActivity least_activity(const Graph& graph, std::int64_t global_batch,
                            const Accelerator& chip) {
  const std::vector<std::vector<TensorId>> leaving = leaving_tensors(graph);
  std::map<std::int32_t, ChipActivity> by_kind;
  ChipActivity least;
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    const std::int32_t kind = graph.layers[i].kind;
    const auto known = by_kind.find(kind);
    if (kind >= 0 && known != by_kind.end()) {
      least += known->second;
      continue;
    }
    const ChipActivity one =
        least_layer_activity(graph, static_cast<LayerId>(i), leaving[i], global_batch, chip);
    if (kind >= 0) by_kind.emplace(kind, one);
    least += one;
  }
  return least;
}

}  // namespace braid

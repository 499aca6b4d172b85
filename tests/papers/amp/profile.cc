#include "papers/amp/profile.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/plan/direct_stages.h"

namespace braid {
namespace {

/// How much longer than a sample's a micro-batch's messages between the shards take.
double message_growth(double sample_bytes, double samples, const NetworkLevel& level) {
  if (sample_bytes <= 0 || level.half_bytes <= 0) return samples;
  return (sample_bytes * samples + level.half_bytes) / (sample_bytes + level.half_bytes);
}

class OptionMaker {
 public:
  OptionMaker(const AmpModel& model, const System& system, std::int32_t tp,
              std::int32_t micro_batch)
      : model_(model), system_(system), tp_(tp), samples_(micro_batch) {}

  Option option(std::size_t layer, std::size_t group) const {
    Option option;
    option.how.micro_batch = static_cast<int>(samples_);
    option.how.tp = tp_;
    option.name = name_of(option.how);
    if (system_.groups.size() > 1) option.device_group = static_cast<std::int32_t>(group);
    set_times(layer, group, option.cost);
    const AmpLayer& values = model_.layers[layer];
    option.cost.dense_parameters = (values.parameters + values.embedding_parameters) / tp_;
    option.cost.stash_bytes =
        samples_ * (values.activation_bytes + values.split_activation_bytes / tp_);
    option.cost.output_bytes = samples_ * edge_bytes(layer);
    return option;
  }

  /// Handed on behind the layer, of a sample.
  double edge_bytes(std::size_t layer) const {
    const AmpLayer& values = model_.layers[layer];
    return output_bytes(layer) / (values.output_split ? tp_ : 1);
  }

 private:
  double output_bytes(std::size_t layer) const {
    return model_.layers[layer].output_elements * bytes_per_element(amp_precision().activation);
  }

  void set_times(std::size_t layer, std::size_t group, LayerCost& cost) const {
    const auto type = static_cast<std::int32_t>(group);
    const DeviceGroup& devices = system_.groups[group];
    const double sample_s = model_.forward_at(type, tp_)[layer];
    double issue_s = std::min(
        sample_s, model_.layers[layer].operators * devices.chip.efficiency.host_operator_s);
    double work_s = sample_s - issue_s;
    double communication_s = 0;
    if (tp_ > 1 && model_.has_degree(1)) {
      const double whole_s = model_.forward_at(type, 1)[layer];
      issue_s = std::min(issue_s, whole_s);
      work_s = std::min(sample_s - issue_s, (whole_s - issue_s) / tp_);
      communication_s = sample_s - issue_s - work_s;
    }
    work_s *= samples_;
    communication_s *= message_growth(output_bytes(layer) / tp_, samples_, devices.intra_node);
    cost.forward.compute_s = issue_s + work_s;
    cost.forward.tp_comm_s = communication_s;
    cost.backward_input.compute_s = issue_s + work_s;
    cost.backward_input.tp_comm_s = communication_s;
    cost.backward_weight.compute_s = work_s;
  }

  const AmpModel& model_;
  const System& system_;
  std::int32_t tp_;
  double samples_;
};

/// The table that the layers with embedding parameters share.
void add_shared_table(const AmpModel& model, Profile& profile) {
  SharedParameter table;
  table.sharded = true;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const double elements = model.layers[l].embedding_parameters;
    if (elements <= 0) continue;
    table.layers.push_back(static_cast<std::int32_t>(l));
    table.elements = std::max(table.elements, elements);
  }
  if (table.layers.size() > 1) profile.shared.push_back(std::move(table));
}

/// A single stage has one copy of the table, with the first layer that reads it.
void count_table_once(const AmpModel& model, std::int32_t tp, Profile& profile) {
  if (profile.shared.empty()) return;
  const std::vector<std::int32_t>& readers = profile.shared.front().layers;
  for (std::size_t i = 1; i < readers.size(); ++i) {
    const auto layer = static_cast<std::size_t>(readers[i]);
    for (Option& option : profile.kinds[layer]) {
      option.cost.dense_parameters = model.layers[layer].parameters / tp;
    }
  }
}

}  // namespace

Profile amp_profile(const AmpModel& model, const System& system, std::int32_t tp,
                    std::int32_t micro_batch) {
  if (model.forward_s.size() < system.groups.size()) {
    throw Error(fmt::format("there are layer times of {} types of devices, and {} has {}",
                            model.forward_s.size(), system.name, system.groups.size()),
                "profile the layers on each type");
  }
  const OptionMaker maker(model, system, tp, micro_batch);
  Profile profile;
  profile.model = "AMP";
  profile.chip = system.groups.front().chip.name;
  profile.provenance = "measured: forward passes of one sample, layer by layer (AMP)";
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const auto layer = static_cast<std::int32_t>(l);
    profile.layers.push_back({fmt::format("layer{}", l), layer});
    std::vector<Option>& options = profile.kinds.emplace_back();
    for (std::size_t g = 0; g < system.groups.size(); ++g) options.push_back(maker.option(l, g));
    if (l > 0) profile.edges.push_back({layer - 1, layer, maker.edge_bytes(l - 1)});
  }
  add_shared_table(model, profile);
  return profile;
}

Precision amp_precision() {
  Precision precision;
  precision.matmul = precision.activation = precision.weight = Dtype::f16;
  precision.gradient = Dtype::f32;
  precision.shared_gradient = precision.weight;
  // Gradients in half precision, a copy of the weights in single precision and two moments.
  precision.optimizer_bytes_per_parameter = 14;
  return precision;
}

Plan amp_plan(const AmpModel& model, const System& system, const AmpStrategy& strategy,
              std::int64_t global_batch, const Ends& ends) {
  Plan plan;
  plan.planner = "direct";
  plan.model = "AMP";
  plan.global_batch = global_batch;
  plan.precision = amp_precision();
  plan.system = system;
  plan.profile = amp_profile(model, system, strategy.tp, strategy.micro_batch);
  if (strategy.pp == 1) count_table_once(model, strategy.tp, plan.profile);
  for (const AmpLayer& layer : model.layers) plan.model_parameters += layer.parameters;
  Parallelism& parallel = plan.parallel;
  parallel.tp = strategy.tp;
  parallel.pp = strategy.pp;
  parallel.dp = strategy.dp;
  parallel.micro_batch = strategy.micro_batch;
  parallel.num_micro_batches = strategy.micro_batches(global_batch);
  plan.trainer.name = "deepspeed";
  plan.trainer.does.overlapped_gradients = false;
  plan.trainer.does.blocking_sends = true;
  if (parallel.devices() > system.device_count) {
    throw Error(fmt::format("the strategy takes {} devices, and {} has {}", parallel.devices(),
                            system.name, system.device_count));
  }
  std::vector<std::int32_t> counts;
  std::int32_t begin = 0;
  for (const std::int32_t end : ends) {
    counts.push_back(end - begin);
    begin = end;
  }
  fill_direct_stages(plan, counts);
  return plan;
}

}  // namespace braid

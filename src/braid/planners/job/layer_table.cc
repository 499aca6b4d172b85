#include "braid/planners/job/layer_table.h"

#include <algorithm>
#include <utility>

#include "braid/base/hash_mix.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/planners/job/job_layers.h"
#include "braid/profile/layer_profile.h"

namespace braid {
namespace {

ChainLayer chain_layer(const LayerCost& cost) {
  ChainLayer layer;
  layer.forward_s = cost.forward.total_s();
  layer.backward_s = cost.backward_s();
  layer.dense_parameters = cost.dense_parameters;
  layer.expert_parameters = cost.expert_parameters;
  layer.stash_bytes = cost.stash_bytes;
  layer.offloaded_bytes = cost.offloaded_bytes;
  layer.working_bytes = cost.working_bytes;
  layer.fixed_bytes = std::max(0.0, cost.fixed_bytes);
  layer.gradient_bytes = std::max(0.0, cost.gradient_bytes);
  layer.weight_shapes = cost.weight_shapes;
  return layer;
}

}  // namespace

LayerTables::LayerTables(const Job& job, const System& system, Stages stages)
    : system_(system),
      does_(job.trainer.does),
      trained_on_(adapted_system(does_, system)),
      precision_(job.precision),
      layers_(layer_options(job)),
      costs_(layers_->on(trained_on_, job.precision)),
      stages_(stages) {
  if (does_.gradient_placeholders && job.graph != nullptr) weight_shapes_.emplace(*job.graph);
  const Profile& layers = layers_->layers();
  if (stages == Stages::as_configured) shared_ = layers.shared;
  kind_of_layer_.reserve(layers.layers.size());
  count_of_kind_.assign(layers.kinds.size(), 0);
  for (const ProfileLayer& layer : layers.layers) {
    kind_of_layer_.push_back(layer.kind);
    ++count_of_kind_[static_cast<std::size_t>(layer.kind)];
  }
}

bool LayerTables::is_last(const Configuration& c) const {
  // vp changes nothing.
  const Configuration& last = last_configuration_;
  return last_ != nullptr && c.tp == last.tp && c.pp == last.pp && c.dp == last.dp &&
         c.micro_batch == last.micro_batch && c.num_micro_batches == last.num_micro_batches &&
         c.cp == last.cp && c.ep == last.ep && c.whole_experts == last.whole_experts &&
         c.recompute == last.recompute && c.offload_activations == last.offload_activations &&
         c.offload_weights == last.offload_weights && c.zero == last.zero &&
         c.order == last.order && c.sequence_parallel == last.sequence_parallel &&
         c.sharding == last.sharding;
}

/// How many devices the groups of a layer lie on; 0 where that makes no difference.
std::int64_t LayerTables::devices_of(const Configuration& configuration, bool spread) {
  if (stages_ == Stages::unknown) return system_.device_count;
  const std::array<int, 5> groups{configuration.tp, configuration.cp, configuration.ep,
                                  static_cast<int>(configuration.whole_experts),
                                  spread ? configuration.pp : 0};
  if (groups != last_groups_) {
    last_groups_ = groups;
    last_lies_evenly_ = layer_groups_lie_evenly(to_parallelism(configuration), system_);
  }
  if (last_lies_evenly_) return 0;
  return std::int64_t{1} * configuration.tp * configuration.cp * configuration.pp *
         configuration.dp;
}

LayerTables::FormKey LayerTables::form_key(const Configuration& configuration) {
  // The groups of a layer's collectives start at the first device; only expert groups that reach
  // past the axes in front of the data-parallel one depend on where the pipeline lies.
  const bool one_stage = configuration.pp == 1 && !shared_.empty();
  const bool spread = configuration.ep > inner_expert_axis(configuration) &&
                      configuration.order == AxisOrder::data_outermost;
  return {configuration.tp,
          configuration.cp,
          configuration.ep,
          configuration.micro_batch,
          spread || one_stage ? configuration.pp : 0,
          devices_of(configuration, spread),
          configuration.whole_experts};
}

LayerTables::Form& LayerTables::form_of(const FormKey& key, const Configuration& configuration) {
  const auto [entry, is_new] = forms_.try_emplace(key);
  if (is_new) {
    entry->second.groups = layer_groups(to_parallelism(configuration), key.devices, system_);
  }
  return entry->second;
}

LayerTables::KindShardings LayerTables::shardings_of_kind(std::size_t kind, const Execution& how,
                                                          const LayerGroups& groups) {
  KindShardings best;
  std::pair<double, double> fastest{kInfinity, 0};
  std::pair<double, double> smallest = fastest;
  for (const KindSharding& sharding : costs_->shardings(kind, how, groups)) {
    const LayerCost cost = costs_->cost(kind, sharding, how, groups);
    const double time_s = cost.time_s();
    const double parameters = cost.dense_parameters + cost.expert_parameters;
    if (std::pair(time_s, parameters) < fastest) {
      fastest = {time_s, parameters};
      best[static_cast<std::size_t>(ShardingKind::fastest)] = sharding;
    }
    if (std::pair(parameters, time_s) < smallest) {
      smallest = {parameters, time_s};
      best[static_cast<std::size_t>(ShardingKind::smallest)] = sharding;
    }
  }
  return best;
}

const std::vector<LayerTables::KindShardings>& LayerTables::shardings_of(
    const Configuration& configuration) {
  Form& form = form_of(form_key(configuration), configuration);
  if (form.shardings.empty()) {
    Configuration plain = configuration;
    plain.recompute = Recompute::none;
    plain.offload_activations = plain.offload_weights = false;
    for (std::size_t kind = 0; kind < count_of_kind_.size(); ++kind) {
      form.shardings.push_back(shardings_of_kind(kind, to_execution(plain), form.groups));
    }
  }
  return form.shardings;
}

bool LayerTables::is_distinct(const Configuration& configuration) {
  if (configuration.sharding == ShardingKind::manual) return true;
  const std::vector<KindShardings>& shardings = shardings_of(configuration);
  const auto differ = [&](ShardingKind a, ShardingKind b) {
    return std::any_of(shardings.begin(), shardings.end(), [&](const KindShardings& kind) {
      return kind[static_cast<std::size_t>(a)] != kind[static_cast<std::size_t>(b)];
    });
  };
  return configuration.sharding == ShardingKind::fastest
             ? differ(ShardingKind::fastest, ShardingKind::manual)
             : differ(ShardingKind::smallest, ShardingKind::manual) &&
                   differ(ShardingKind::smallest, ShardingKind::fastest);
}

Option LayerTables::option(const Configuration& configuration, std::size_t kind) {
  const KindSharding sharding =
      configuration.sharding == ShardingKind::manual
          ? KindSharding()
          : shardings_of(configuration)[kind][static_cast<std::size_t>(configuration.sharding)];
  return costs_->option(kind, sharding, to_execution(configuration));
}

std::int64_t LayerTables::accumulated(const Configuration& configuration) const {
  return separately_accumulated(does_, configuration.zero,
                                std::int64_t{configuration.dp} * configuration.cp,
                                configuration.num_micro_batches);
}

void LayerTables::adapt(const Configuration& configuration, std::span<LayerCost> costs) const {
  const double accumulation_s =
      accumulation_s_per_parameter(accumulated(configuration), precision_, system_);
  const double overlap_loss = system_.groups.front().chip.efficiency.overlap_loss;
  for (std::size_t kind = 0; kind < costs.size(); ++kind) {
    adapt_cost(does_, overlap_loss, accumulation_s, costs[kind]);
    if (weight_shapes_) costs[kind].weight_shapes = weight_shapes_->of_kind()[kind];
  }
}

std::size_t LayerTables::Hash::operator()(const Key& key) const {
  HashMix hash;
  const FormKey& form = key.form;
  hash.add(form.tp, form.cp);
  hash.add(form.ep, form.micro_batch);
  hash.add(static_cast<std::uint64_t>(form.pp));
  hash.add(static_cast<std::uint64_t>(form.devices));
  hash.add(static_cast<std::uint64_t>(key.accumulated));
  hash.add(static_cast<std::uint64_t>(key.sequence_parallel) |
           static_cast<std::uint64_t>(key.offload_activations) << 1U |
           static_cast<std::uint64_t>(key.offload_weights) << 2U |
           static_cast<std::uint64_t>(form.whole_experts) << 3U |
           static_cast<std::uint64_t>(key.sharding) << 8U |
           static_cast<std::uint64_t>(key.recompute) << 16U);
  return hash.value();
}

LayerTable& LayerTables::find(const Configuration& configuration) {
  if (is_last(configuration)) return *last_;
  const FormKey form = form_key(configuration);
  const Key key{form,
                configuration.sequence_parallel,
                configuration.sharding,
                configuration.recompute,
                configuration.offload_activations,
                configuration.offload_weights,
                accumulated(configuration)};
  const auto [entry, is_new] = kept_->tables.try_emplace(key);
  LayerTable& table = entry->second;
  last_configuration_ = configuration;
  last_ = &table;
  if (!is_new) return table;

  const Execution how = to_execution(configuration);
  const LayerGroups& groups = form_of(form, configuration).groups;
  const std::vector<KindShardings>* shardings =
      configuration.sharding == ShardingKind::manual ? nullptr : &shardings_of(configuration);
  table.kinds.reserve(count_of_kind_.size());
  for (std::size_t kind = 0; kind < count_of_kind_.size(); ++kind) {
    const KindSharding none;
    const auto place = static_cast<std::size_t>(configuration.sharding);
    table.kinds.push_back(
        costs_->cost(kind, shardings != nullptr ? (*shardings)[kind][place] : none, how, groups));
  }
  if (configuration.pp == 1 && !shared_.empty())
    count_shared_once(shared_, kind_of_layer_, how, table.kinds);
  adapt(configuration, table.kinds);
  for (const LayerCost& cost : table.kinds) table.layer_of_kind.push_back(chain_layer(cost));
  table.count_of_kind = count_of_kind_;
  table.least_backward_share = 1;
  table.least_stash_bytes = kInfinity;
  for (std::size_t kind = 0; kind < table.layer_of_kind.size(); ++kind) {
    const ChainLayer& cost = table.layer_of_kind[kind];
    const double count = count_of_kind_[kind];
    table.forward_s += count * cost.forward_s;
    table.backward_s += count * cost.backward_s;
    table.dense_parameters += count * cost.dense_parameters;
    table.expert_parameters += count * cost.expert_parameters;
    table.stash_bytes += count * cost.stash_bytes;
    table.offloaded_bytes += count * cost.offloaded_bytes;
    table.least_stash_bytes =
        std::min(table.least_stash_bytes, cost.stash_bytes - cost.offloaded_bytes);
    if (cost.time_s() > 0) {
      table.least_backward_share =
          std::min(table.least_backward_share, cost.backward_s / cost.time_s());
    }
  }
  return table;
}

LayerTable& LayerTables::sums_at(const Configuration& configuration) { return find(configuration); }

LayerTable& LayerTables::dealt_at(const Configuration& configuration) {
  LayerTable& table = find(configuration);
  if (table.even.empty()) table.even = EvenSplits(kind_of_layer_, table.layer_of_kind);
  return table;
}

LayerTable& LayerTables::at(const Configuration& configuration) {
  LayerTable& table = dealt_at(configuration);
  if (table.chain.empty()) {
    table.chain.reserve(kind_of_layer_.size());
    for (const std::int32_t kind : kind_of_layer_) {
      table.chain.push_back(table.layer_of_kind[static_cast<std::size_t>(kind)]);
    }
  }
  return table;
}

double LayerTables::min_max_s(LayerTable& table, int pieces) const {
  const auto at = static_cast<std::size_t>(pieces);
  if (at >= table.min_max_s.size()) table.min_max_s.resize(at + 1, 0);
  if (table.min_max_s[at] == 0) table.min_max_s[at] = table.even.split(pieces, nullptr);
  return table.min_max_s[at];
}

double LayerTables::fullest_stage_s(LayerTable& table, int stages) {
  const auto at = static_cast<std::size_t>(stages);
  if (at >= table.fullest_stage_s.size()) table.fullest_stage_s.resize(at + 1, 0);
  double& fullest_s = table.fullest_stage_s[at];
  if (fullest_s > 0) return fullest_s;
  for (std::size_t k = 0; k < table.layer_of_kind.size(); ++k) {
    const double all_s = table.fullest_count(k, stages) * table.layer_of_kind[k].time_s();
    fullest_s = std::max(fullest_s, all_s * kBelowTolerance);
  }
  return fullest_s;
}

double LayerTables::first_chunks_s(LayerTable& table, int stages) {
  const auto at = static_cast<std::size_t>(stages);
  if (at >= table.first_chunks_s.size()) table.first_chunks_s.resize(at + 1, -1);
  double& all_s = table.first_chunks_s[at];
  if (all_s >= 0) return all_s;
  std::vector<std::pair<double, std::int32_t>> layers;  // Fastest first.
  for (std::size_t k = 0; k < table.layer_of_kind.size(); ++k) {
    layers.emplace_back(table.layer_of_kind[k].time_s(), table.count_of_kind[k]);
  }
  std::sort(layers.begin(), layers.end());
  all_s = 0;
  double before_s = 0;
  auto next = layers.begin();
  for (int s = 1; s < stages; ++s) {
    while (next->second == 0) ++next;
    --next->second;
    before_s += next->first;
    all_s += before_s;
  }
  return all_s *= kBelowTolerance;
}

double LayerTables::longest_way_s(LayerTable& table, std::span<const ProfileEdge> edges) const {
  if (table.longest_way_s >= 0) return table.longest_way_s;
  const auto time_s = [&](std::size_t layer) {
    return table.layer_of_kind[static_cast<std::size_t>(kind_of_layer_[layer])].time_s();
  };
  // Of each layer, from the first one up to its end. Edges come in order of their sources.
  std::vector<double> before_s(kind_of_layer_.size(), 0);
  for (const ProfileEdge& edge : edges) {
    const auto source = static_cast<std::size_t>(edge.source);
    double& before = before_s[static_cast<std::size_t>(edge.target)];
    before = std::max(before, before_s[source] + time_s(source));
  }
  table.longest_way_s = 0;
  for (std::size_t l = 0; l < before_s.size(); ++l) {
    table.longest_way_s = std::max(table.longest_way_s, before_s[l] + time_s(l));
  }
  return table.longest_way_s;
}

}  // namespace braid

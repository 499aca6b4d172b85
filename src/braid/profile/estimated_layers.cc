#include "braid/profile/estimated_layers.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "braid/base/hash_mix.h"
#include "braid/profile/layer_estimate.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/least_mapped_times.h"

namespace braid {
namespace {

class EstimatedCosts : public LayerCosts {
 public:
  EstimatedCosts(const EstimatedLayers& layers, const System& system, const Precision& precision)
      : layers_(layers),
        graph_(layers.graph()),
        system_(system),
        precision_(precision),
        mapped_(graph_, precision, system.groups.front().chip, layers.nests()) {
    const Chip& chip = system.groups.front().chip;
    if (!layers.maps_kernels() && chip.execution == ChipExecution::dataflow) {
      least_.emplace(graph_, precision_, chip);
    }
    if (!layers.searches_shardings()) return;
    sharded_.emplace(graph_, precision_, system);
    closed_ = kinds_closed(graph_);
    manual_ = split_limits(graph_);
  }

  std::vector<KindSharding> shardings(std::size_t kind, const Execution& how,
                                      const LayerGroups& groups) override {
    std::vector<KindSharding> known;
    if (!sharded_ || (divides_manually(manual_, how.tp) && !closed_[kind])) {
      known.emplace_back();
    }
    if (!sharded_) return known;
    for (AutoSharding& one : sharded_->shardings(layers_.first_of_kind(kind),
                                                 layers_.work_of_kind(kind), how, groups)) {
      known.emplace_back(std::move(one));
    }
    return known;
  }

  LayerCost cost(std::size_t kind, const KindSharding& sharding, const Execution& how,
                 const LayerGroups& groups) override {
    const LayerId layer = layers_.first_of_kind(kind);
    const std::vector<OperatorWork>& works = layers_.work_of_kind(kind);
    if (sharding) return sharded_->cost(layer, works, how, groups, *sharding);
    return traded(untraded(kind, how, groups), how, precision_, system_.groups.front().chip);
  }

  Option option(std::size_t kind, const KindSharding& sharding,
                const Execution& how) const override {
    if (sharding) return sharded_->option(layers_.first_of_kind(kind), how, *sharding);
    Option option;
    option.how = how;
    option.name = name_of(how);
    return option;
  }

 private:
  struct Key {
    std::size_t kind = 0;
    std::size_t groups = 0;  ///< In groups_.
    Execution how;           ///< Without trades of time for memory.
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      HashMix hash;
      hash.add(static_cast<std::int32_t>(key.kind), static_cast<std::int32_t>(key.groups));
      hash.add(key.how.micro_batch, key.how.tp);
      hash.add(key.how.cp, key.how.ep);
      hash.add(static_cast<std::uint64_t>(key.how.sequence_parallel) |
               static_cast<std::uint64_t>(key.how.whole_experts) << 1U);
      return hash.value();
    }
  };

  std::size_t place_of(const LayerGroups& groups) {
    if (last_groups_ < groups_.size() && groups_[last_groups_] == groups) return last_groups_;
    const auto known = std::find(groups_.begin(), groups_.end(), groups);
    last_groups_ = static_cast<std::size_t>(known - groups_.begin());
    if (known == groups_.end()) groups_.push_back(groups);
    return last_groups_;
  }

  /// Searches ask for a layer with one trade after the other.
  const LayerEstimate& untraded(std::size_t kind, Execution how, const LayerGroups& groups) {
    how.recompute = Recompute::none;
    how.offload_activations = how.offload_weights = false;
    const auto [known, is_new] = known_.try_emplace({kind, place_of(groups), how});
    if (!is_new) return known->second;
    const LayerInput input{graph_,   layers_.first_of_kind(kind), layers_.work_of_kind(kind), {},
                           &mapped_, layers_.maps_kernels()};
    const MappedTimes* least = least_ ? &least_->times(input.layer, input.works, how) : nullptr;
    known->second = estimate_untraded(input, how, {precision_, groups, system_}, least);
    return known->second;
  }

  const EstimatedLayers& layers_;
  const Graph& graph_;
  const System& system_;
  const Precision precision_;
  MappedLayers mapped_;                    ///< Of a dataflow chip.
  std::optional<LeastMappedTimes> least_;  ///< Of one, where layers are not mapped.
  std::optional<ShardedLayers> sharded_;   ///< Where shardings are searched for.
  std::vector<bool> closed_;               ///< kinds_closed().
  SplitLimits manual_;
  std::vector<LayerGroups> groups_;  ///< Different ones.
  std::size_t last_groups_ = 0;      ///< Searches mostly ask for the same again.
  std::unordered_map<Key, LayerEstimate, Hash> known_;
};

}  // namespace

EstimatedLayers::EstimatedLayers(const Graph& graph, ShardingSource sharding,
                                 std::shared_ptr<NestMemo> nests)
    : graph_(graph),
      sharding_(sharding),
      nests_(std::move(nests)),
      layers_(layer_profile(graph, "", profile_edges(graph))) {
  first_of_kind_.assign(layers_.kinds.size(), -1);
  for (std::size_t l = graph.layers.size(); l-- > 0;) {
    first_of_kind_[static_cast<std::size_t>(graph.layers[l].kind)] = static_cast<LayerId>(l);
  }
  work_of_kind_.reserve(first_of_kind_.size());
  for (const LayerId layer : first_of_kind_) {
    work_of_kind_.push_back(layer < 0 ? std::vector<OperatorWork>() : layer_work(graph, layer));
  }
}

SplitLimits EstimatedLayers::limits(std::int64_t most_tp) const {
  SplitLimits limits = split_limits(graph_);
  if (searches_shardings()) limits.automatic = auto_degrees(graph_, most_tp);
  return limits;
}

std::unique_ptr<LayerOptions> EstimatedLayers::with_rough_times(const System& system) const {
  const bool maps =
      maps_kernels_ && !searches_shardings() && maps_layers(system.groups.front().chip);
  if (!maps) return nullptr;
  auto rough = std::make_unique<EstimatedLayers>(*this);
  rough->maps_kernels_ = false;
  return rough;
}

std::unique_ptr<LayerCosts> EstimatedLayers::on(const System& system,
                                                const Precision& precision) const {
  return std::make_unique<EstimatedCosts>(*this, system, precision);
}

}  // namespace braid

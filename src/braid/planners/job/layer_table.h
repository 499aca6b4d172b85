#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "braid/plan/gradient_placeholders.h"
#include "braid/planners/job/configuration.h"
#include "braid/planners/job/job.h"
#include "braid/planners/job/tried_layouts.h"
#include "braid/profile/layer_options.h"
#include "braid/profile/profile.h"
#include "braid/search/even_splits.h"
#include "braid/search/partition.h"

namespace braid {

/// Costs of all layers of a model run one way, with the sums that bounds need.
struct LayerTable {
  using allocator_type = std::pmr::polymorphic_allocator<>;
  explicit LayerTable(const allocator_type& memory)
      : kinds(memory),
        layer_of_kind(memory),
        chain(memory),
        fullest_stage_s(memory),
        first_chunks_s(memory),
        min_max_s(memory),
        trials(memory),
        dealt_by_time(memory) {}

  std::pmr::vector<LayerCost> kinds;  ///< By kind of layer.
  std::pmr::vector<ChainLayer> layer_of_kind;
  std::span<const std::int32_t> count_of_kind;  ///< Layers of each kind; the tables' own.
  double forward_s = 0, backward_s = 0;         ///< Of all layers.
  double least_backward_share = 0;  ///< Least backward / (forward + backward) of any layer.
  double dense_parameters = 0, expert_parameters = 0;
  double stash_bytes = 0, offloaded_bytes = 0;
  double least_stash_bytes = 0;        ///< Of any layer, what stays on the device.
  std::pmr::vector<ChainLayer> chain;  ///< By layer; empty where only dealt_at() was asked for.
  EvenSplits even;                     ///< Of dealt_at() and at().
  /// Time of the layers on the way through the model that takes longest; negative: not known yet.
  double longest_way_s = -1;
  /// fullest_stage_s() for a number of stages; 0: not computed yet.
  std::pmr::vector<double> fullest_stage_s;
  /// first_chunks_s() for a number of stages; negative: not computed yet.
  std::pmr::vector<double> first_chunks_s;
  /// Least possible largest piece for a number of pieces; 0: not computed yet.
  std::pmr::vector<double> min_max_s;
  /// What tried_layouts() and last_chunks() keep.
  std::pmr::unordered_map<TrialKey, KnownTrials, TrialKey::Hash> trials;
  std::pmr::unordered_map<int, DealtLayers*> dealt_by_time;  ///< By number of chunks.

  double time_s() const { return forward_s + backward_s; }
  /// Of so many parts of the model, the one with most layers of a kind has at least so many.
  std::int32_t fullest_count(std::size_t kind, std::int32_t parts) const {
    return (count_of_kind[kind] + parts - 1) / parts;
  }
};

/// Layer costs of one job, each way of running computed once.
class LayerTables {
 public:
  /// Whether configurations say how many stages there are. If so, those of one stage count what
  /// several layers read once, and groups lie on the devices that the configuration takes, not
  /// anywhere.
  enum class Stages : std::uint8_t { unknown, as_configured };

  /// Keeps a reference to `system`.
  LayerTables(const Job& job, const System& system, Stages stages = Stages::as_configured);

  /// Table for a configuration (which must be one that the model allows). The reference stays
  /// valid.
  LayerTable& at(const Configuration& configuration);
  /// The same, perhaps without its chain: for assignments that are dealt out, not searched for.
  LayerTable& dealt_at(const Configuration& configuration);
  /// The same, perhaps without even splits: most configurations are bounded by sums alone.
  LayerTable& sums_at(const Configuration& configuration);
  /// Least possible largest time of `pieces` runs of the chain, memory ignored.
  double min_max_s(LayerTable& table, int pieces) const;
  /// Least time of a micro-batch on the stage that has most layers of a kind.
  static double fullest_stage_s(LayerTable& table, int stages);
  /// Of the stages of a chain, together: least time of the first layers of all stages before each,
  /// which are different layers whatever the chunks.
  static double first_chunks_s(LayerTable& table, int stages);
  /// The table's longest_way_s, `edges` being between the model's layers.
  double longest_way_s(LayerTable& table, std::span<const ProfileEdge> edges) const;
  /// Whether the configuration divides some kind of layer otherwise than any `sharding` before its
  /// own does, as `manual` always does.
  bool is_distinct(const Configuration& configuration);
  /// An option of a kind of layer that runs so, but for its cost.
  Option option(const Configuration& configuration, std::size_t kind);
  /// Of the layers of all tables.
  KnownDealings& dealings() { return dealings_; }
  std::size_t size() const { return kept_->tables.size(); }
  /// Invalidates all references.
  void clear() {
    kept_ = std::make_unique<Kept>();
    forms_.clear();
    last_ = nullptr;
  }

 private:
  /// What groups and times depend on, whatever trades time for memory.
  struct FormKey {
    int tp = 1, cp = 1, ep = 1, micro_batch = 1;
    std::int64_t pp = 0, devices = 0;  ///< As far as these count; 0: not.
    bool whole_experts = false;

    // NOLINTNEXTLINE(modernize-use-nullptr): misread by clang-tidy 14, there is no pointer here.
    friend auto operator<=>(const FormKey&, const FormKey&) = default;
  };
  struct Key {
    FormKey form;
    bool sequence_parallel = false;
    ShardingKind sharding = ShardingKind::manual;
    Recompute recompute = Recompute::none;
    bool offload_activations = false, offload_weights = false;
    std::int64_t accumulated = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  /// Of a kind of layer, by ShardingKind; none: as the model says.
  using KindShardings = std::array<KindSharding, 3>;

  /// What all tables of a form share.
  struct Form {
    LayerGroups groups;
    /// [kind]: found without recomputation and offload, whatever the configuration has, so that
    /// these only ever trade time for memory. Empty: not looked for yet.
    std::vector<KindShardings> shardings;
  };
  /// Tables and what they hold: nothing of it goes before the end.
  struct Kept {
    std::pmr::monotonic_buffer_resource arena;
    std::pmr::unordered_map<Key, LayerTable, Hash> tables{&arena};
  };

  /// `spread`: how expert groups lie depends on the pipeline.
  std::int64_t devices_of(const Configuration& configuration, bool spread);
  FormKey form_key(const Configuration& configuration);
  LayerTable& find(const Configuration& configuration);
  bool is_last(const Configuration& configuration) const;
  /// Micro-batches whose gradients kernels of their own add up; 0 where that takes no time.
  std::int64_t accumulated(const Configuration& configuration) const;
  /// What layers cost under the trainer.
  void adapt(const Configuration& configuration, std::span<LayerCost> costs) const;
  Form& form_of(const FormKey& key, const Configuration& configuration);
  const std::vector<KindShardings>& shardings_of(const Configuration& configuration);
  KindShardings shardings_of_kind(std::size_t kind, const Execution& how,
                                  const LayerGroups& groups);

  const System& system_;
  const TrainerBehaviour does_;
  const System trained_on_;  ///< The system as its chips do under the trainer.
  const Precision precision_;
  std::optional<WeightShapes> weight_shapes_;  ///< Where the trainer keeps placeholders of them.
  std::shared_ptr<const LayerOptions> layers_;
  std::unique_ptr<LayerCosts> costs_;
  std::vector<std::int32_t> count_of_kind_;
  std::vector<std::int32_t> kind_of_layer_;
  std::vector<SharedParameter> shared_;  ///< Where one stage counts them once.
  const Stages stages_;
  std::map<FormKey, Form> forms_;
  KnownDealings dealings_;  // Outlives the tables, which point into it.
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
  Configuration last_configuration_;  ///< Searches mostly ask for the same table again.
  LayerTable* last_ = nullptr;
  std::array<int, 5> last_groups_{};  ///< Degrees that devices_of() was last asked for.
  bool last_lies_evenly_ = false;
};

}  // namespace braid

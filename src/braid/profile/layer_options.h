#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "braid/profile/estimator.h"
#include "braid/profile/profile.h"
#include "braid/profile/sharded_options.h"
#include "braid/profile/split_limits.h"
#include "braid/system/system.h"

namespace braid {

/// How tensor-parallel ranks share a kind of layer; nullopt: manually, as the model says.
using KindSharding = std::optional<AutoSharding>;

/// What kinds of layers cost on devices of one system. For one thread at a time: what was asked for
/// may be kept.
class LayerCosts {
 public:
  virtual ~LayerCosts() = default;

  /// The shardings over `how.tp` ranks that a planner chooses among where others than the manual
  /// one count, on groups of these devices; the manual one, if it is among them, first.
  virtual std::vector<KindSharding> shardings(std::size_t kind, const Execution& how,
                                              const LayerGroups& groups) = 0;
  /// Of a layer of that kind run one way, with its collectives over these groups.
  virtual LayerCost cost(std::size_t kind, const KindSharding& sharding, const Execution& how,
                         const LayerGroups& groups) = 0;
  /// The option that this is, but for its cost.
  virtual Option option(std::size_t kind, const KindSharding& sharding,
                        const Execution& how) const = 0;
};

/// A layer graph whose layers can be run in ways that cost something: what every planner plans
/// from, whatever says what they cost. Asked lazily and by kind; not changed by being asked.
///
///   EstimatedLayers layers(graph);                       // or ListedLayers(read_profile(file))
///   const auto costs = layers.on(system, precision);
///   const LayerCost cost = costs->cost(kind, {}, how, groups);
class LayerOptions {
 public:
  virtual ~LayerOptions() = default;

  /// Names, kinds, edges, shared parameters and sequence of the layers, with no options.
  virtual const Profile& layers() const = 0;
  /// Elements of all parameters of the layers; 0: not known.
  virtual double parameters() const = 0;
  /// No way to run all layers' passes over a sample takes less device time; 0: not known.
  virtual double least_work_s() const { return 0; }
  /// Which executions layers may have: tensor parallelism up to `most_tp` where shardings are
  /// searched for. A list that it refers to lives as long as this.
  virtual SplitLimits limits(std::int64_t most_tp) const = 0;
  /// Where the options are a finite list: the layers with these; null: otherwise.
  virtual const Profile* listed() const { return nullptr; }
  /// Whether shardings other than the manual one are among the options.
  virtual bool searches_shardings() const = 0;
  /// The same options, which need the same memory, with rough times that are found at once: on a
  /// dataflow chip those that no mapping stays below. Null where that is no faster.
  virtual std::unique_ptr<LayerOptions> with_rough_times(const System& /*system*/) const {
    return nullptr;
  }
  /// Their costs on devices of `system` (homogeneous), in number formats of `precision`. Keeps
  /// references to this and the system.
  virtual std::unique_ptr<LayerCosts> on(const System& system,
                                         const Precision& precision) const = 0;
};

}  // namespace braid

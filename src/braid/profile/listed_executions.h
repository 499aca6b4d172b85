#pragma once

#include <set>
#include <tuple>
#include <vector>

#include "braid/profile/profile.h"

namespace braid {

/// Executions for which a finite list of options has one for every layer.
class ListedExecutions {
 public:
  /// Those for which every kind of layer in use has an option: with its manual sharding, or also
  /// with automatic ones. Cost: the options, sorted.
  explicit ListedExecutions(const Profile& profile);

  /// Whether every layer can run so; `manual`: with its manual sharding.
  bool has(const Execution& how, bool manual = true) const;
  /// Whether one in the list has these degrees tp, cp and ep, and runs with sequence parallelism
  /// where `how` does.
  bool has_degrees(const Execution& how) const;
  /// Whether one in the list has this tp, manual.
  bool has_manual(int tp) const { return manual_tp_.contains(tp); }
  /// Whether no execution goes for all layers.
  bool empty() const { return all_.empty(); }

  const std::vector<Execution>& all() const { return all_; }  ///< In a fixed order.
  std::set<int> micro_batches() const;
  /// Degrees above 1 that only automatic shardings have for some layer, without sequence
  /// parallelism.
  std::vector<int> auto_tp() const;

 private:
  using Key = std::tuple<int, int, bool, int, int, bool, Recompute, bool, bool>;
  static Key key_of(const Execution& how);

  std::vector<Execution> all_;
  std::set<Key> any_, manual_;
  std::set<std::tuple<int, bool, int, int>> degrees_;
  std::set<int> manual_tp_;
};

}  // namespace braid

#include "braid/chip/set_rounding.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <unordered_set>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/chip/set_order.h"
#include "braid/graph/bitset.h"

namespace braid {
namespace {

constexpr std::uint32_t kNoSet = 0xffffffff;

class BeamSearch {
 public:
  BeamSearch(const MapperTables& tables, const std::vector<std::vector<FittingSet>>& sets)
      : tables_(tables),
        count_(tables.kernels.size()),
        place_(count_),
        group_of_(count_, kNoSet),
        seen_(count_, 0),
        straddling_(count_ + 1, 0),
        next_cut_(count_ + 1, 0),
        open_columns_(count_),
        layers_(count_ + 1) {
    for (std::size_t at = 0; at < count_; ++at) {
      place_[tables.order[at]] = static_cast<std::uint32_t>(at);
    }
    first_.push_back(0);
    for (const std::uint32_t root : tables.order) {
      for (const FittingSet& set : sets[root]) {
        Column column{&set, Bitset(count_), 0, 0};
        for (const std::uint32_t kernel : set.kernels) column.places.set(place_[kernel]);
        column.first = place_[set.kernels.front()];
        column.last = place_[set.kernels.back()];
        columns_.push_back(std::move(column));
      }
      first_.push_back(columns_.size());
    }
  }

  /// Columns that cover all kernels, given some that cover part of them; none when those that were
  /// kept on the way lack more than `most` bytes besides.
  std::vector<std::uint32_t> complete(const std::vector<std::uint32_t>& fixed, std::size_t width,
                                      double most) {
    width_ = width;
    states_.assign(1, {Bitset(count_), 0, 0, kNoSet, kNoSet});
    fixed_group_of_.assign(count_, kNoSet);
    fixed_straddling_.assign(count_ + 1, 0);
    for (const std::uint32_t column : fixed) {
      states_[0].covered |= columns_[column].places;
      group(column, fixed_group_of_, fixed_straddling_);
    }
    for (std::size_t at = 0; at < count_; ++at) {
      open_columns_[at].clear();
      if (states_[0].covered.test(at)) continue;
      for (std::size_t c = first_[at]; c < first_[at + 1]; ++c) {
        if (columns_[c].places.intersects(states_[0].covered)) continue;
        open_columns_[at].push_back(static_cast<std::uint32_t>(c));
      }
    }
    for (std::vector<std::uint32_t>& layer : layers_) layer.clear();
    limits_.assign(count_ + 1, most);
    most_ = most;
    layers_[first_open(states_[0].covered, 0)].push_back(0);
    for (std::size_t at = 0; at < count_; ++at) {
      trim(layers_[at], width_);
      for (const std::uint32_t id : layers_[at]) extend(id, at);
    }
    trim(layers_[count_], 1);
    if (layers_[count_].empty()) return {};
    std::vector<std::uint32_t> all = fixed;
    for (std::uint32_t id = layers_[count_][0]; id != 0; id = states_[id].parent) {
      all.push_back(states_[id].column);
    }
    return all;
  }

  double lacking_bytes(const std::vector<std::uint32_t>& columns) const {
    double bytes = 0;
    for (const std::uint32_t column : columns) bytes -= columns_[column].set->excess_bytes;
    return bytes;
  }

  /// Those of the columns that are not nearest to the kernel: without `kernels` or a few more.
  std::vector<std::uint32_t> far_from(const std::vector<std::uint32_t>& columns,
                                      std::uint32_t kernel, std::size_t kernels) {
    for (const std::uint32_t column : columns) {
      for (const std::uint32_t member : columns_[column].set->kernels) group_of_[member] = column;
    }
    ++stamp_;
    open_.assign(1, kernel);
    seen_[kernel] = stamp_;
    const auto visit = [&](const MapperTables::Tensor& tensor) {
      if (seen_[tensor.other] == stamp_) return;
      seen_[tensor.other] = stamp_;
      open_.push_back(tensor.other);
    };
    std::vector<std::uint32_t> near;
    std::size_t freed = 0;
    for (std::size_t next = 0; next < open_.size() && freed < kernels; ++next) {
      const std::uint32_t column = group_of_[open_[next]];
      if (std::find(near.begin(), near.end(), column) != near.end()) continue;
      near.push_back(column);
      freed += columns_[column].set->kernels.size();
      for (const std::uint32_t member : columns_[column].set->kernels) {
        for (const MapperTables::Tensor& tensor : tables_.kernels[member].inputs) visit(tensor);
        for (const MapperTables::Tensor& tensor : tables_.kernels[member].outputs) visit(tensor);
      }
    }
    std::vector<std::uint32_t> far;
    for (const std::uint32_t column : columns) {
      if (std::find(near.begin(), near.end(), column) == near.end()) far.push_back(column);
    }
    return far;
  }

  std::vector<std::uint32_t> order_of(const std::vector<std::uint32_t>& columns) const {
    SetOrder order(tables_);
    for (const std::uint32_t column : columns) order.add(columns_[column].set->kernels);
    return order.order();
  }

 private:
  struct Column {
    const FittingSet* set = nullptr;
    Bitset places;
    std::uint32_t first = 0, last = 0;  ///< Places.
  };
  struct State {
    Bitset covered;  ///< Places.
    std::size_t hash = 0;
    double lacking_bytes = 0;
    std::uint32_t parent = kNoSet, column = kNoSet;
  };

  std::size_t first_open(const Bitset& covered, std::size_t from) const {
    while (from < count_ && covered.test(from)) ++from;
    return from;
  }

  /// Keeps the best, and of those that cover the same the best.
  void trim(std::vector<std::uint32_t>& layer, std::size_t most) {
    std::sort(layer.begin(), layer.end(), [&](std::uint32_t a, std::uint32_t b) {
      const double x = states_[a].lacking_bytes, y = states_[b].lacking_bytes;
      return x != y ? x < y : a < b;
    });
    known_.clear();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < layer.size() && kept < most; ++i) {
      if (known_.insert(states_[layer[i]].hash).second) layer[kept++] = layer[i];
    }
    layer.resize(kept);
  }

  void group(std::uint32_t column, std::vector<std::uint32_t>& group_of,
             std::vector<std::int32_t>& straddling) const {
    for (const std::uint32_t kernel : columns_[column].set->kernels) group_of[kernel] = column;
    ++straddling[columns_[column].first + 1];
    --straddling[columns_[column].last + 1];
  }

  void extend(std::uint32_t id, std::size_t at) {
    group_of_ = fixed_group_of_;
    straddling_ = fixed_straddling_;
    for (std::uint32_t set = id; set != 0; set = states_[set].parent) {
      group(states_[set].column, group_of_, straddling_);
    }
    std::partial_sum(straddling_.begin(), straddling_.end(), straddling_.begin());
    next_cut_[count_] = static_cast<std::uint32_t>(count_);
    for (std::size_t cut = count_; cut-- > 0;) {
      next_cut_[cut] = straddling_[cut] == 0 ? static_cast<std::uint32_t>(cut) : next_cut_[cut + 1];
    }
    for (const std::uint32_t c : open_columns_[at]) {
      const Column& column = columns_[c];
      const double lacking = states_[id].lacking_bytes - column.set->excess_bytes;
      if (lacking > most_) break;  // The others lack more.
      if (column.places.intersects(states_[id].covered)) continue;
      Bitset covered = states_[id].covered | column.places;
      const std::size_t next = first_open(covered, at + 1);
      std::vector<std::uint32_t>& layer = layers_[next];
      if (lacking > limits_[next]) continue;
      if (waits_for_itself(column)) continue;
      layer.push_back(static_cast<std::uint32_t>(states_.size()));
      const std::size_t hash = covered.hash();
      states_.push_back({std::move(covered), hash, lacking, id, c});
      if (layer.size() < 3 * width_) continue;
      trim(layer, width_);
      if (layer.size() == width_) limits_[next] = states_[layer.back()].lacking_bytes;
    }
  }

  /// Whether a path through sets leads out of the column and back. From behind a place that no set
  /// straddles, none leads before it.
  bool waits_for_itself(const Column& column) {
    ++stamp_;
    open_.clear();
    const std::uint32_t end = next_cut_[column.last + 1];
    const auto visit_readers = [&](std::uint32_t kernel, bool inside) {
      for (const MapperTables::Tensor& tensor : tables_.kernels[kernel].outputs) {
        const std::uint32_t place = place_[tensor.other];
        if (column.places.test(place)) {
          if (!inside) return true;
          continue;
        }
        if (place >= end || seen_[tensor.other] == stamp_) continue;
        const std::uint32_t group = group_of_[tensor.other];
        if (group == kNoSet) {
          seen_[tensor.other] = stamp_;
          open_.push_back(tensor.other);
          continue;
        }
        for (const std::uint32_t member : columns_[group].set->kernels) {
          seen_[member] = stamp_;
          open_.push_back(member);
        }
      }
      return false;
    };
    for (const std::uint32_t kernel : column.set->kernels) visit_readers(kernel, true);
    while (!open_.empty()) {
      const std::uint32_t kernel = open_.back();
      open_.pop_back();
      if (visit_readers(kernel, false)) return true;
    }
    return false;
  }

  const MapperTables& tables_;
  std::size_t width_ = 1, count_;
  std::vector<std::uint32_t> place_;
  std::vector<Column> columns_;
  std::vector<std::size_t> first_;  ///< Columns of each root, by its place.
  std::vector<State> states_;
  std::vector<std::uint32_t> group_of_, seen_, open_;
  std::vector<std::int32_t> straddling_;  ///< Sets with kernels before and from a place on.
  std::vector<std::uint32_t> next_cut_;   ///< The first place from one on that no set straddles.
  std::vector<std::vector<std::uint32_t>> open_columns_;  ///< That keep clear of the fixed ones.
  std::vector<std::uint32_t> fixed_group_of_;
  std::vector<std::int32_t> fixed_straddling_;
  std::vector<std::vector<std::uint32_t>> layers_;  ///< By the first place that is not covered.
  double most_ = 0;
  std::vector<double> limits_;  ///< That states of a layer must stay below to be kept.
  std::unordered_set<std::size_t> known_;
  std::uint32_t stamp_ = 0;
};

}  // namespace

std::vector<std::uint32_t> round_sets(const MapperTables& tables,
                                      const std::vector<std::vector<FittingSet>>& sets,
                                      const RoundingBudget& budget) {
  BeamSearch beam(tables, sets);
  std::vector<std::uint32_t> best = beam.complete({}, budget.width, kInfinity);
  if (tables.kernels.size() <= budget.window_kernels) return beam.order_of(best);
  double best_bytes = beam.lacking_bytes(best);
  std::mt19937_64 dice(1);
  for (std::size_t window = 0; window < budget.windows; ++window) {
    const auto kernel = static_cast<std::uint32_t>(dice() % tables.kernels.size());
    const std::vector<std::uint32_t> far = beam.far_from(best, kernel, budget.window_kernels);
    std::vector<std::uint32_t> other =
        beam.complete(far, budget.window_width, best_bytes - beam.lacking_bytes(far));
    const double bytes = beam.lacking_bytes(other);
    if (other.empty() || bytes > best_bytes) continue;
    best = std::move(other);  // Also when no better: it may lead further.
    best_bytes = bytes;
  }
  return beam.order_of(best);
}

}  // namespace braid

#include "braid/chip/fitting_sets.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/graph/bitset.h"

namespace braid {

class FittingSets::Listing {
 public:
  explicit Listing(const MapperTables& tables)
      : tables_(tables),
        count_(tables.kernels.size()),
        above_(count_, Bitset(count_)),
        below_(count_, Bitset(count_)),
        near_(count_),
        capacity_(tables.rules.sram_limit ? tables.chip.sram_bytes * kAboveTolerance : kInfinity),
        state_(count_, State::free),
        readers_inside_(count_, 0),
        levels_(count_ + 1, {Bitset(count_), Bitset(count_), Bitset(count_), {}}) {
    for (const std::uint32_t kernel : tables.order) {
      for (const MapperTables::Tensor& input : tables.kernels[kernel].inputs) {
        above_[kernel] |= above_[input.other];
        above_[kernel].set(input.other);
        meet(kernel, input.other);
      }
    }
    for (auto kernel = tables.order.rbegin(); kernel != tables.order.rend(); ++kernel) {
      const auto& outputs = tables.kernels[*kernel].outputs;
      for (const MapperTables::Tensor& output : outputs) {
        below_[*kernel] |= below_[output.other];
        below_[*kernel].set(output.other);
        if (!tables.rules.share_tensors) continue;
        for (const MapperTables::Tensor& other : outputs) {
          if (other.other != output.other) meet(output.other, other.other);
        }
      }
    }
    for (std::vector<std::uint32_t>& near : near_) {
      std::sort(near.begin(), near.end());
      near.erase(std::unique(near.begin(), near.end()), near.end());
    }
  }

  /// Goes on to the next root in topological order.
  void skip(std::uint32_t root) { state_[root] = State::left; }

  /// Appends up to `most` sets of the next root in topological order; false when there are more.
  bool list(std::uint32_t root, std::size_t most, std::vector<Node>& nodes) {
    nodes_ = &nodes;
    most_ = most;
    complete_ = true;
    grow(root, 0, 0);
    skip(root);
    return complete_;
  }

 private:
  enum class State : std::uint8_t { free, candidate, left, taken };

  struct Level {
    Bitset set, above, below;
    std::vector<std::uint32_t> decided;
  };

  void meet(std::uint32_t a, std::uint32_t b) {
    near_[a].push_back(b);
    near_[b].push_back(a);
  }

  /// What the kernel adds to the SRAM of the taken ones, at least and never negative.
  double added_sram_bytes(std::uint32_t kernel) const {
    const MapperTables::Kernel& entry = tables_.kernels[kernel];
    double bytes = entry.weight_bytes;
    const auto add = [&](const MapperTables::Tensor& tensor) {
      const double crossing = std::min(tensor.crossing_bytes, tensor.inner_bytes);
      const bool inside = state_[tensor.other] == State::taken;
      bytes += inside ? tensor.inner_bytes - crossing : crossing;
    };
    for (const MapperTables::Tensor& tensor : entry.inputs) add(tensor);
    for (const MapperTables::Tensor& tensor : entry.outputs) add(tensor);
    return bytes;
  }

  /// Counts the kernel as a reader; how many bytes more the taken ones move with it.
  double added_traffic_bytes(std::uint32_t kernel) {
    const MapperTables::Kernel& entry = tables_.kernels[kernel];
    double bytes = 0;
    if (!tables_.rules.share_tensors) {
      const auto add = [&](const MapperTables::Tensor& tensor) {
        bytes += state_[tensor.other] == State::taken ? -tensor.bytes : tensor.bytes;
      };
      for (const MapperTables::Tensor& tensor : entry.inputs) add(tensor);
      for (const MapperTables::Tensor& tensor : entry.outputs) add(tensor);
      return bytes;
    }
    for (const MapperTables::Tensor& tensor : entry.inputs) {
      const MapperTables::Kernel& writer = tables_.kernels[tensor.other];
      const std::size_t inside = ++readers_inside_[tensor.other];
      if (state_[tensor.other] == State::taken) {
        if (inside == writer.outputs.size()) bytes -= writer.output_bytes;
      } else if (inside == 1) {
        bytes += writer.output_bytes;
      }
    }
    if (readers_inside_[kernel] < entry.outputs.size()) bytes += entry.output_bytes;
    if (readers_inside_[kernel] > 0) bytes -= entry.output_bytes;
    return bytes;
  }

  void forget_reader(std::uint32_t kernel) {
    if (!tables_.rules.share_tensors) return;
    for (const MapperTables::Tensor& tensor : tables_.kernels[kernel].inputs) {
      --readers_inside_[tensor.other];
    }
  }

  // Takes the kernel, lists the set if it can be a partition, then all larger ones. Depth: the
  // members.
  // NOLINTNEXTLINE(misc-no-recursion)
  void grow(std::uint32_t kernel, double sram_bytes, double traffic_bytes) {
    sram_bytes += added_sram_bytes(kernel);
    const bool alone = depth_ == 0;
    const bool fits = sram_bytes <= capacity_;
    if (!alone && !fits) return;
    if (nodes_->size() >= most_) {
      complete_ = false;
      return;
    }
    const Level& level = levels_[depth_];
    Level& next = levels_[depth_ + 1];
    next.set = level.set;
    next.set.set(kernel);
    next.above = level.above;
    next.above |= above_[kernel];
    next.below = level.below;
    next.below |= below_[kernel];
    // Kernels between members must be members, too, and still be free.
    bool possible = true, closed = true;
    double missing_bytes = 0;
    between_ = next.above;
    between_ &= next.below;
    between_ -= next.set;
    between_.for_each([&](std::size_t i) {
      closed = false;
      possible = possible && state_[i] != State::left;
      missing_bytes += tables_.kernels[i].weight_bytes;
    });
    if (!possible || (!alone && sram_bytes + missing_bytes > capacity_)) return;
    traffic_bytes += added_traffic_bytes(kernel);
    const auto rounded = std::nextafter(static_cast<float>(traffic_bytes), 0.0F);
    nodes_->push_back({closed ? rounded : std::numeric_limits<float>::infinity(),
                       static_cast<std::uint16_t>(kernel), static_cast<std::uint16_t>(depth_)});
    const State before = std::exchange(state_[kernel], State::taken);
    ++depth_;
    const bool room = fits && (!tables_.rules.whole_tiles ||
                               static_cast<std::int64_t>(depth_) < tables_.chip.tiles);
    if (room) grow_by_one(kernel, sram_bytes, traffic_bytes);
    --depth_;
    state_[kernel] = before;
    forget_reader(kernel);
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void grow_by_one(std::uint32_t latest, double sram_bytes, double traffic_bytes) {
    const std::size_t begin = candidates_.size();
    for (const std::uint32_t other : near_[latest]) {
      if (state_[other] != State::free) continue;
      if (tables_.kernels[other].waits != tables_.kernels[latest].waits) continue;
      state_[other] = State::candidate;
      candidates_.push_back(other);
    }
    // Candidates of earlier members that were not decided yet come after this one's.
    std::vector<std::uint32_t>& decided = levels_[depth_].decided;
    decided.clear();
    for (std::size_t at = candidates_.size(); at-- > 0;) {
      const std::uint32_t other = candidates_[at];
      if (state_[other] != State::candidate) continue;
      grow(other, sram_bytes, traffic_bytes);
      state_[other] = State::left;
      decided.push_back(other);
    }
    for (const std::uint32_t other : decided) state_[other] = State::candidate;
    for (std::size_t at = begin; at < candidates_.size(); ++at) {
      state_[candidates_[at]] = State::free;
    }
    candidates_.resize(begin);
  }

  const MapperTables& tables_;
  std::size_t count_;
  std::vector<Bitset> above_, below_;  ///< Kernels that one needs, and that need it.
  std::vector<std::vector<std::uint32_t>> near_;
  double capacity_;
  std::vector<State> state_;
  std::vector<std::size_t> readers_inside_;
  std::vector<std::uint32_t> candidates_;
  std::vector<Level> levels_;  ///< By members.
  Bitset between_;
  std::size_t depth_ = 0;
  std::vector<Node>* nodes_ = nullptr;
  std::size_t most_ = 0;
  bool complete_ = true;
};

/// Whether a few roots all over the order have more than twice their share of `most` sets.
bool FittingSets::are_many(const MapperTables& tables, std::size_t most) {
  constexpr std::size_t kRoots = 16;
  const std::size_t count = tables.order.size();
  if (count < 2 * kRoots) return false;
  Listing listing(tables);
  std::size_t left = 2 * most / count * kRoots;
  std::vector<Node> nodes;
  std::size_t sampled = 0;
  for (std::size_t at = 0; at < count; ++at) {
    if (at != (2 * sampled + 1) * count / (2 * kRoots)) {
      listing.skip(tables.order[at]);
      continue;
    }
    ++sampled;
    nodes.clear();
    if (!listing.list(tables.order[at], left, nodes)) return true;
    left -= nodes.size();
  }
  return false;
}

FittingSets::FittingSets(const MapperTables& tables, std::size_t most)
    : nodes_(tables.kernels.size()), place_(tables.kernels.size()) {
  assert(tables.kernels.size() < 0x10000);
  complete_ = !are_many(tables, most);
  Listing listing(tables);
  for (std::size_t at = 0; at < tables.order.size(); ++at) {
    const std::uint32_t root = tables.order[at];
    place_[root] = static_cast<std::uint32_t>(at);
    if (!complete_) continue;
    complete_ = listing.list(root, most, nodes_[root]);
    most -= std::min(most, nodes_[root].size());
  }
}

FittingSet FittingSets::alone(std::uint32_t root, double price) const {
  const auto traffic = static_cast<double>(nodes_[root].front().traffic_bytes);
  return {{root}, traffic, price - traffic};
}

std::vector<FittingSet> FittingSets::most_excess(std::uint32_t root, std::span<const double> prices,
                                                 double least_excess, std::size_t most) const {
  std::vector<FittingSet> sets;
  const auto better = [](const FittingSet& a, const FittingSet& b) {
    return a.excess_bytes > b.excess_bytes;
  };
  std::vector<std::uint32_t> members;
  std::vector<double> sums = {0};
  for (const Node& node : nodes_[root]) {
    if (members.size() <= node.depth) {
      members.resize(node.depth + 1U);
      sums.resize(node.depth + 2U);
    }
    members[node.depth] = node.kernel;
    sums[node.depth + 1U] = sums[node.depth] + prices[node.kernel];
    const double excess = sums[node.depth + 1U] - static_cast<double>(node.traffic_bytes);
    if (excess <= least_excess) continue;
    if (sets.size() == most) {
      std::pop_heap(sets.begin(), sets.end(), better);
      sets.pop_back();
    }
    sets.push_back({{members.begin(), members.begin() + node.depth + 1},
                    static_cast<double>(node.traffic_bytes),
                    excess});
    std::push_heap(sets.begin(), sets.end(), better);
    if (sets.size() == most) least_excess = std::max(least_excess, sets.front().excess_bytes);
  }
  std::stable_sort(sets.begin(), sets.end(), better);
  for (FittingSet& set : sets) {
    std::sort(set.kernels.begin(), set.kernels.end(),
              [&](std::uint32_t a, std::uint32_t b) { return place_[a] < place_[b]; });
  }
  return sets;
}

}  // namespace braid

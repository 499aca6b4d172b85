#include "braid/chip/linear_cuts.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace braid {
namespace {

constexpr std::size_t kShortestLimit = 64;
constexpr std::size_t kMostAdds = 8'000'000;

/// A topological order that takes, of the kernels that can come next, the one of least rank; those
/// that wait come last. `rank` is told how many kernels could come before this one could.
template <typename Rank>
std::vector<std::uint32_t> greedy_order(const MapperTables& tables, const Rank& rank) {
  using Entry = std::tuple<bool, double, double, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::int64_t met = 0;
  const auto meet = [&](std::uint32_t kernel) {
    const auto [first, then] = rank(kernel, static_cast<double>(met++));
    ready.emplace(tables.kernels[kernel].waits, first, then, kernel);
  };
  std::vector<std::uint32_t> waiting(tables.kernels.size(), 0), order;
  order.reserve(tables.kernels.size());
  for (std::size_t i = 0; i < tables.kernels.size(); ++i) {
    waiting[i] = static_cast<std::uint32_t>(tables.kernels[i].inputs.size());
    if (waiting[i] == 0) meet(static_cast<std::uint32_t>(i));
  }
  while (!ready.empty()) {
    const std::uint32_t kernel = std::get<3>(ready.top());
    ready.pop();
    order.push_back(kernel);
    for (const MapperTables::Tensor& tensor : tables.kernels[kernel].outputs) {
      if (--waiting[tensor.other] == 0) meet(tensor.other);
    }
  }
  return order;
}

double growth_bytes(const MapperTables::Kernel& kernel) {
  double bytes = 0;
  for (const MapperTables::Tensor& tensor : kernel.outputs) bytes += tensor.bytes;
  for (const MapperTables::Tensor& tensor : kernel.inputs) bytes -= tensor.bytes;
  return bytes;
}

// Moves one kernel to another place between its last writer and first reader.
std::vector<std::uint32_t> with_one_moved(const MapperTables& tables,
                                          std::vector<std::uint32_t> order, std::mt19937_64& dice) {
  std::vector<std::size_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  const std::size_t at = dice() % order.size();
  const MapperTables::Kernel& kernel = tables.kernels[order[at]];
  std::size_t first = 0, last = order.size() - 1;
  for (const MapperTables::Tensor& tensor : kernel.inputs) {
    first = std::max(first, place[tensor.other] + 1);
  }
  for (const MapperTables::Tensor& tensor : kernel.outputs) {
    last = std::min(last, place[tensor.other] - 1);
  }
  if (kernel.waits) {
    first = std::max(first, tables.first_to_run);
  } else {
    last = std::min(last, tables.first_to_run - 1);
  }
  const std::size_t to = first + dice() % (last - first + 1);
  const auto begin = order.begin();
  const auto from = static_cast<std::ptrdiff_t>(at), target = static_cast<std::ptrdiff_t>(to);
  if (to < at) std::rotate(begin + target, begin + from, begin + from + 1);
  if (to > at) std::rotate(begin + from, begin + from + 1, begin + target + 1);
  return order;
}

}  // namespace

LinearCuts cut_order(const MapperTables& tables, std::span<const std::uint32_t> order,
                     std::int64_t& looked_at) {
  const std::size_t count = order.size();
  const std::size_t longest = std::max(kShortestLimit, kMostAdds / std::max<std::size_t>(count, 1));
  std::vector<double> best(count + 1, PartitionSums::kImpossible);
  std::vector<std::uint32_t> from(count + 1, 0);
  best[0] = 0;
  PartitionSums sums(tables);
  sums.begin(Bitset(tables.kernels.size()));
  for (std::size_t start = 0; start < count; ++start) {
    if (best[start] < PartitionSums::kImpossible) {
      for (std::size_t end = start;
           end < count && end - start < longest && !sums.is_full() && sums.accepts(order[end]);
           ++end) {
        sums.add(order[end]);
        ++looked_at;
        const double time_s = best[start] + sums.time_s(best[end + 1] - best[start]);
        if (time_s < best[end + 1]) {
          best[end + 1] = time_s;
          from[end + 1] = static_cast<std::uint32_t>(start);
        }
      }
    }
    sums.move_behind(order[start]);
  }
  LinearCuts cuts{{order.begin(), order.end()}, {}, best[count]};
  if (cuts.time_s == PartitionSums::kImpossible) return cuts;
  for (auto end = static_cast<std::uint32_t>(count); end > 0; end = from[end]) {
    cuts.ends.push_back(end);
  }
  std::reverse(cuts.ends.begin(), cuts.ends.end());
  return cuts;
}

LinearCuts find_cuts(const MapperTables& tables, std::int64_t most_runs, double enough_s,
                     std::int64_t& looked_at, std::span<const std::uint32_t> first) {
  const std::int64_t begin = looked_at;
  LinearCuts best = cut_order(tables, tables.order, looked_at);
  const auto consider = [&](std::span<const std::uint32_t> order) {
    if (std::equal(order.begin(), order.end(), best.order.begin(), best.order.end())) {
      looked_at += static_cast<std::int64_t>(order.size());
      return;
    }
    LinearCuts cuts = cut_order(tables, order, looked_at);
    if (cuts.time_s <= best.time_s) best = std::move(cuts);
  };
  // The latest first; the one that lets go of most, of these the latest; as they are numbered.
  consider(greedy_order(tables, [](std::uint32_t, double met) { return std::pair(-met, 0.0); }));
  consider(greedy_order(tables, [&](std::uint32_t kernel, double met) {
    return std::pair(growth_bytes(tables.kernels[kernel]), -met);
  }));
  consider(greedy_order(tables, [](std::uint32_t kernel, double) {
    return std::pair(static_cast<double>(kernel), 0.0);
  }));
  if (!first.empty()) consider(first);
  std::mt19937_64 dice(1);
  while (looked_at - begin < most_runs && best.time_s > enough_s && tables.kernels.size() > 1) {
    consider(with_one_moved(tables, best.order, dice));
  }
  return best;
}

}  // namespace braid

#include "braid/planners/uniform/covered_ranges.h"

#include <algorithm>

#include "braid/base/hash_mix.h"

namespace braid {

std::size_t CoveredRanges::Hash::operator()(const Configuration& c) const {
  HashMix hash;
  hash.add(c.tp, c.cp);
  hash.add(c.ep, c.pp);
  hash.add(c.dp, c.micro_batch);
  hash.add(static_cast<std::uint64_t>(c.recompute) | static_cast<std::uint64_t>(c.zero) << 8U |
           static_cast<std::uint64_t>(c.schedule) << 16U |
           static_cast<std::uint64_t>(c.order) << 24U |
           static_cast<std::uint64_t>(c.sequence_parallel) << 32U |
           static_cast<std::uint64_t>(c.offload_optimizer) << 33U |
           static_cast<std::uint64_t>(c.offload_weights) << 34U |
           static_cast<std::uint64_t>(c.offload_activations) << 35U |
           static_cast<std::uint64_t>(c.whole_experts) << 36U);
  return hash.value();
}

void CoveredRanges::add(const ConfigurationRange& range,
                        const std::function<void(const ConfigurationRange&)>& visit) {
  Configuration key = range.configuration;
  key.vp = 0;
  std::pmr::vector<Interval>& covered = covered_[key];
  Interval joined = {range.configuration.vp, range.most_vp};
  std::int32_t next = range.configuration.vp;  // What is not there yet starts here at the least.
  const auto visit_until = [&](std::int32_t end) {
    if (next >= end) return;
    ConfigurationRange part = range;
    part.configuration.vp = next;
    part.most_vp = end - 1;
    visit(part);
  };
  auto from = std::find_if(covered.begin(), covered.end(),
                           [&](const Interval& i) { return i.last >= joined.first; });
  auto to = from;
  for (; to != covered.end() && to->first <= range.most_vp; ++to) {
    visit_until(to->first);
    next = to->last + 1;
    joined = {std::min(joined.first, to->first), std::max(joined.last, to->last)};
  }
  visit_until(range.most_vp + 1);
  from = covered.erase(from, to);
  // Neighbours grow together, so that ranges taken from in steps of one stay one.
  const bool after = from != covered.begin() && std::prev(from)->last + 1 == joined.first;
  const bool before = from != covered.end() && from->first == joined.last + 1;
  if (after && before) {
    std::prev(from)->last = from->last;
    covered.erase(from);
  } else if (after) {
    std::prev(from)->last = joined.last;
  } else if (before) {
    from->first = joined.first;
  } else {
    covered.insert(from, joined);
  }
}

}  // namespace braid

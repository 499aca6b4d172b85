#include "braid/planners/amp/mixed_links.h"

#include <algorithm>

#include "braid/base/infinity.h"
#include "braid/system/links.h"

namespace braid {

NodeLinks::NodeLinks(const AmpMixedJob& job) : job_(job), system_(job.mixed().system()) {
  const auto& nodes = job.nodes();
  for (std::size_t a = 0; a < nodes.size(); ++a) {
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      double rate = 0;
      for (const std::int64_t to : others(a, b)) {
        rate = std::max(rate, link_bytes_per_s(system_, nodes[a].front(), to));
      }
      rate_.push_back(rate > 0 ? rate : kInfinity);  // A node of one device.
      if (rate <= 0) continue;
      (a == b ? fastest_inside_ : fastest_between_) =
          std::max(a == b ? fastest_inside_ : fastest_between_, rate);
    }
  }
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    std::size_t first = 0;
    while (first < node && (first_alike_[first] != first || !alike(first, node))) ++first;
    first_alike_.push_back(first);
  }
}

std::vector<std::int64_t> NodeLinks::others(std::size_t a, std::size_t b) const {
  const auto& nodes = job_.nodes();
  if (a != b) return {nodes[b].front()};
  return {nodes[a].begin() + 1, nodes[a].end()};
}

const NodeLinks::Messages& NodeLinks::messages(double bytes) {
  const auto [found, fresh] = messages_.try_emplace(bytes);
  Messages& messages = found->second;
  if (!fresh) return messages;
  messages.least_s = kInfinity;
  const auto& nodes = job_.nodes();
  for (std::size_t a = 0; a < nodes.size(); ++a) {
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      double least_s = kInfinity;
      for (const std::int64_t to : others(a, b)) {
        least_s = std::min(least_s,
                           bytes > 0 ? braid::message_s(system_, nodes[a].front(), to, bytes) : 0);
      }
      messages.s.push_back(least_s);
      messages.least_s = std::min(messages.least_s, least_s);
    }
  }
  return messages;
}

/// Whether the two nodes may be swapped.
bool NodeLinks::alike(std::size_t a, std::size_t b) const {
  const auto& nodes = job_.nodes();
  if (nodes[a].size() != nodes[b].size() || group(a) != group(b)) return false;
  if (!system_.bandwidth_matrix.empty() && nodes[a].size() > 1) return false;
  const auto same = [&](std::int64_t x, std::int64_t y, std::int64_t u, std::int64_t v) {
    return link_bytes_per_s(system_, x, y) == link_bytes_per_s(system_, u, v) &&
           link_latency_s(system_, x, y) == link_latency_s(system_, u, v);
  };
  const std::int64_t first = nodes[a].front(), second = nodes[b].front();
  if (!same(first, second, second, first)) return false;
  for (std::size_t c = 0; c < nodes.size(); ++c) {
    const std::int64_t other = nodes[c].front();
    if (c == a || c == b) continue;
    if (!same(first, other, second, other) || !same(other, first, other, second)) return false;
    // Flows to it share the same uplinks.
    if (system_.bandwidth_matrix.empty() &&
        level_between(system_, first, other) != level_between(system_, second, other)) {
      return false;
    }
  }
  return true;
}

std::size_t NodeLinks::group(std::size_t node) const {
  return placement_of(system_, job_.nodes()[node].front()).group;
}

}  // namespace braid

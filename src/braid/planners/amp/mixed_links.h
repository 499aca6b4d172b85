#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "braid/planners/amp/amp_mixed_job.h"

namespace braid {

/// Links between the nodes of a job's system, those of a node to itself being the best inside.
class NodeLinks {
 public:
  /// Keeps a reference. Cubic in the nodes.
  explicit NodeLinks(const AmpMixedJob& job);

  /// Bytes/s.
  double rate(std::size_t a, std::size_t b) const { return rate_[a * job_.nodes().size() + b]; }
  /// The fastest that a ring's slowest link can be.
  double fastest_ring(bool inside) const {
    return inside ? std::max(fastest_inside_, fastest_between_) : fastest_between_;
  }
  /// For each node the first that may be swapped with it.
  const std::vector<std::size_t>& first_alike() const { return first_alike_; }

  /// A message from node to node while nothing else runs, at the least.
  double message_s(double bytes, std::size_t a, std::size_t b) {
    return messages(bytes).s[a * job_.nodes().size() + b];
  }
  double fastest_message_s(double bytes) { return messages(bytes).least_s; }

 private:
  struct Messages {
    std::vector<double> s;
    double least_s = 0;
  };

  std::vector<std::int64_t> others(std::size_t a, std::size_t b) const;
  const Messages& messages(double bytes);
  bool alike(std::size_t a, std::size_t b) const;
  std::size_t group(std::size_t node) const;

  const AmpMixedJob& job_;
  const System& system_;
  std::vector<double> rate_;
  double fastest_inside_ = 0, fastest_between_ = 0;
  std::vector<std::size_t> first_alike_;
  std::map<double, Messages> messages_;
};

}  // namespace braid

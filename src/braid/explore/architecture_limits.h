#pragma once

#include <cstddef>
#include <vector>

#include "braid/explore/system_family.h"

namespace braid {

/// What systems with an architecture have at most of the figure searched for.
class ArchitectureLimits {
 public:
  /// `count` architectures; 0: nothing is noted. The space outlives this.
  ArchitectureLimits(const Space& space, std::size_t count);

  /// No member of the family has more; `is_exact`: all have that.
  void note(const SystemFamily& family, double value, bool is_exact);

  /// [architecture]: of the best over all else that systems have; empty where there are none.
  struct OfArchitectures {
    std::vector<double> at_most;
    std::vector<bool> is_exact;
  };
  OfArchitectures of_architectures() const;

 private:
  struct Most {
    double value = 0;
    bool is_exact = false;
  };

  const Space& space_;
  std::size_t count_ = 0;
  std::vector<Most> most_;  ///< [system]
};

}  // namespace braid

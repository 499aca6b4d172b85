#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid {

/// Which systems of a space are looked for.
enum class SearchFor : std::uint8_t {
  throughput,  ///< Most throughput.
  per_usd,     ///< Most throughput for the system's price.
  per_w,       ///< Most throughput for the system's power, were its devices always busy.
  energy,      ///< Least energy of a sample or token, by what the plan moves (plan_energy.h).
  front        ///< All that are Pareto-optimal in throughput, price and power.
};

/// A search in place of a sweep over all systems.
struct SystemSearch {
  SearchFor what = SearchFor::throughput;
  std::size_t keep = 10;  ///< How many systems are listed; not of a front.
  /// What systems that are left out may be better by, relative to one that is listed.
  double within = 0;
  /// Weights of the workloads in the geometric mean of their throughput; sum 1.
  std::vector<double> weights;
  std::int64_t most_plans = 20'000;  ///< And families bounded: a budget.
};

}  // namespace braid

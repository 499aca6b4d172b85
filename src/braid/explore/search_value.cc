#include "braid/explore/search_value.h"

#include <cmath>
#include <cstddef>

#include "braid/base/infinity.h"

namespace braid {

double units_in(const SystemWorkload& workload) {
  const auto samples = static_cast<double>(workload.global_batch);
  const auto tokens = static_cast<double>(workload.graph.seq_len);
  return tokens > 0 ? samples * tokens : samples;
}

double search_value(const SystemSpace& space, std::span<const double> amounts,
                    const SystemCost& cost) {
  const SystemSearch& search = *space.search;
  double throughput = 1;  // Of a second, or of a joule.
  for (std::size_t w = 0; w < amounts.size(); ++w) {
    if (!(amounts[w] > 0)) return kInfinity;
    if (!(amounts[w] < kInfinity)) return 0;
    // Not of one workload, whose throughput is that of a sweep bit for bit.
    const double one = units_in(space.workloads[w]) / amounts[w];
    throughput *= amounts.size() == 1 ? one : std::pow(one, search.weights[w]);
  }
  if (search.what == SearchFor::per_usd) return throughput / cost.usd;
  if (search.what == SearchFor::per_w) return throughput / cost.watts;
  return throughput;
}

double searched_amount(const SystemSpace& space, const PointResult& result) {
  return space.search->what == SearchFor::energy ? result.joules : searched_time_s(result);
}

double searched_time_s(const PointResult& result) { return result.figures.back(); }
double searched_bound_s(const PointResult& result) { return result.figures.front(); }

}  // namespace braid

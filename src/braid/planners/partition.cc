#include "braid/planners/partition.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace braid {

MemoryForm memory_form(const DataParallelContext& context, double available_bytes) {
  const Precision& precision = context.precision;
  const double weight_bytes = bytes_per_element(precision.weight);
  const double gradient_bytes = bytes_per_element(precision.gradient);
  MemoryForm form;
  form.available_bytes = available_bytes;
  if (context.chip != nullptr && context.chip->host) {
    form.host_available_bytes = context.chip->host->bytes;
  }
  const auto add = [&](double bytes, bool sharded, bool offloaded) {
    const double dense = bytes / (sharded ? context.dense_ranks : 1);
    const double expert = bytes / (sharded ? context.expert_ranks : 1);
    (offloaded ? form.host_per_dense_parameter : form.per_dense_parameter) += dense;
    (offloaded ? form.host_per_expert_parameter : form.per_expert_parameter) += expert;
  };
  add(weight_bytes, context.zero == Zero::parameters, context.offload_weights);
  add(gradient_bytes, context.zero >= Zero::gradients, false);
  add(precision.optimizer_bytes_per_parameter, context.zero >= Zero::optimizer,
      context.offload_optimizer);
  if (context.zero == Zero::parameters) form.per_largest_layer_parameter += 2 * weight_bytes;
  if (context.zero >= Zero::gradients) form.per_largest_layer_parameter += gradient_bytes;
  if (context.offload_weights) form.per_largest_layer_parameter += 2 * weight_bytes;
  return form;
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Fills pieces from the last one backwards up to `bound`; whether all layers were placed, and the
/// least bound at which a piece could take one more.
bool fill_pieces(std::span<const ChainLayer> layers, int pieces, double bound, Ends* ends,
                 double& next_bound) {
  next_bound = kInfinity;
  auto left = static_cast<std::int32_t>(layers.size());
  for (int i = pieces - 1; i >= 0; --i) {
    if (ends != nullptr) (*ends)[static_cast<std::size_t>(i)] = left;
    double time_s = 0;
    const std::int32_t right = left;
    while (left > i) {
      const double larger = time_s + layers[static_cast<std::size_t>(left - 1)].time_s();
      if (larger > bound) {
        next_bound = std::min(next_bound, larger);
        break;
      }
      time_s = larger;
      --left;
    }
    if (left == right) return false;
  }
  return left == 0;
}

double search_min_max(std::span<const ChainLayer> layers, int pieces, Ends* ends) {
  double total_s = 0;
  double slowest_s = 0;
  for (const ChainLayer& layer : layers) {
    total_s += layer.time_s();
    slowest_s = std::max(slowest_s, layer.time_s());
  }
  double bound = std::max(slowest_s, total_s / pieces * (1 - 1e-12));
  double next_bound = kInfinity;
  while (!fill_pieces(layers, pieces, bound, ends, next_bound)) {
    assert(next_bound > bound);
    bound = next_bound;
  }
  return bound;
}

}  // namespace

std::optional<Ends> partition_min_max(std::span<const ChainLayer> layers, int pieces) {
  if (static_cast<std::size_t>(pieces) > layers.size()) return std::nullopt;
  Ends ends(static_cast<std::size_t>(pieces));
  search_min_max(layers, pieces, &ends);
  return ends;
}

double min_max_time_s(std::span<const ChainLayer> layers, int pieces) {
  assert(static_cast<std::size_t>(pieces) <= layers.size());
  return search_min_max(layers, pieces, nullptr);
}

double one_f_one_b_path_s(std::span<const double> forward_s, std::span<const double> backward_s,
                          std::span<const double> handover_s, std::int64_t micro_batches) {
  const auto stages = static_cast<std::int64_t>(forward_s.size());
  const std::int64_t m = micro_batches;
  double all_s = 0;
  for (std::size_t i = 0; i < forward_s.size(); ++i) {
    all_s += forward_s[i] + backward_s[i];
    if (i + 1 < forward_s.size()) all_s += 2 * handover_s[i];
  }
  double longest = 0;
  double dive_s = 0;  // D_i
  for (std::int64_t i = stages - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const double time_s = forward_s[at] + backward_s[at];
    const double below_s = dive_s + (i + 1 < stages ? 2 * handover_s[at] : 0);
    dive_s = time_s + below_s;
    longest =
        std::max(longest, static_cast<double>(m - 1) * std::max(forward_s[at], backward_s[at]));
    const std::int64_t depth = stages - i;
    if (m <= depth) continue;
    longest = std::max(longest, static_cast<double>(m - depth) * time_s + below_s);
    const std::int64_t dives = (m - 1) / depth;
    const std::int64_t rest = (m - 1) % depth;
    longest =
        std::max(longest, static_cast<double>(dives) * dive_s + static_cast<double>(rest) * time_s);
  }
  return all_s + longest;
}

}  // namespace braid

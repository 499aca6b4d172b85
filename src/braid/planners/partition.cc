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

void RunSums::add(const ChainLayer& layer) {
  forward_s += layer.forward_s;
  backward_s += layer.backward_s;
  dense_parameters += layer.dense_parameters;
  expert_parameters += layer.expert_parameters;
  stash_bytes += layer.stash_bytes;
  offloaded_bytes += layer.offloaded_bytes;
  fixed_bytes += layer.fixed_bytes;
  working_bytes = std::max(working_bytes, layer.working_bytes);
  largest_layer_parameters =
      std::max(largest_layer_parameters, layer.dense_parameters + layer.expert_parameters);
}

double device_bytes(const RunSums& sums, double in_flight, const MemoryForm& form) {
  return sums.dense_parameters * form.per_dense_parameter +
         sums.expert_parameters * form.per_expert_parameter +
         sums.largest_layer_parameters * form.per_largest_layer_parameter + sums.working_bytes +
         sums.fixed_bytes + (sums.stash_bytes - sums.offloaded_bytes) * in_flight +
         sums.offloaded_bytes * std::min(in_flight, 2.0);
}

double host_bytes(const RunSums& sums, double in_flight, const MemoryForm& form) {
  return sums.dense_parameters * form.host_per_dense_parameter +
         sums.expert_parameters * form.host_per_expert_parameter + sums.offloaded_bytes * in_flight;
}

bool fits(const RunSums& sums, double in_flight, const MemoryForm& form) {
  return device_bytes(sums, in_flight, form) <= form.available_bytes &&
         host_bytes(sums, in_flight, form) <= form.host_available_bytes;
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Excess of the path over the sum of all stages that stage i would cause, see one_f_one_b_path_s.
/// Falls (or stays) as layers leave the stage at either end, and as its right end moves left.
double excess_s(const RunSums& stage, double below_s, int index, int stages, std::int64_t m) {
  const double time_s = stage.time_s();
  const std::int64_t depth = stages - index;
  double longest = static_cast<double>(m - 1) * std::max(stage.forward_s, stage.backward_s);
  if (m > depth) {
    longest = std::max(longest, static_cast<double>(m - depth) * time_s + below_s);
    const std::int64_t dives = (m - 1) / depth;
    const std::int64_t rest = (m - 1) % depth;
    longest = std::max(longest, static_cast<double>(dives) * (time_s + below_s) +
                                    static_cast<double>(rest) * time_s);
  }
  return longest;
}

/// What all stages of a chain share.
struct Chain {
  std::span<const ChainLayer> layers;
  int stages = 1;
  std::int64_t micro_batches = 1;
  const MemoryForm* memory = nullptr;
  /// Time of all handovers behind each stage, both directions.
  std::vector<double> handover_below_s;
  double layers_s = 0;

  Chain(std::span<const ChainLayer> chain, std::span<const double> handover_s, std::int64_t m,
        const MemoryForm& form)
      : layers(chain),
        stages(static_cast<int>(handover_s.size()) + 1),
        micro_batches(m),
        memory(&form),
        handover_below_s(handover_s.size() + 1) {
    for (std::size_t i = handover_s.size(); i-- > 0;) {
      handover_below_s[i] = handover_below_s[i + 1] + 2 * handover_s[i];
    }
    for (const ChainLayer& layer : chain) layers_s += layer.time_s();
  }
  double handover_below(int index) const {
    return handover_below_s[static_cast<std::size_t>(index)];
  }
  double in_flight(int index) const {
    return static_cast<double>(std::min<std::int64_t>(micro_batches, stages - index));
  }
};

/// One try to split the chain within a bound on every stage's excess.
struct Attempt {
  bool complete = false;
  double next_bound = kInfinity;  ///< At the least, where some stage could take a layer more.
  bool memory_bound = false;
  bool stuck = false;  ///< Some stage could not take any layer.
};

/// Grows stage `index` leftwards from `right` as far as bound and memory allow, leaving a layer for
/// each stage before it. `layers_below_s`: the layers behind it.
struct Growth {
  std::int32_t left = 0;
  RunSums sums;
};
Growth grow_stage(const Chain& chain, int index, std::int32_t right, double layers_below_s,
                  double bound, Attempt& attempt) {
  const double in_flight = chain.in_flight(index);
  const double below_s = layers_below_s + chain.handover_below(index);
  Growth growth{right, {}};
  while (growth.left > index) {
    RunSums larger = growth.sums;
    larger.add(chain.layers[static_cast<std::size_t>(growth.left - 1)]);
    if (!fits(larger, in_flight, *chain.memory)) {
      attempt.memory_bound = true;
      break;
    }
    const double excess = excess_s(larger, below_s, index, chain.stages, chain.micro_batches);
    if (excess > bound) {
      attempt.next_bound = std::min(attempt.next_bound, excess);
      break;
    }
    growth.sums = larger;
    --growth.left;
  }
  return growth;
}

/// Takes as many layers as fit, stage by stage from the last. Conclusive unless `stuck`.
Attempt fill_greedily(const Chain& chain, double bound, Ends& ends) {
  Attempt attempt;
  auto left = static_cast<std::int32_t>(chain.layers.size());
  double layers_below_s = 0;
  for (int i = chain.stages - 1; i >= 0; --i) {
    ends[static_cast<std::size_t>(i)] = left;
    const Growth growth = grow_stage(chain, i, left, layers_below_s, bound, attempt);
    if (growth.left == left) {
      attempt.stuck = true;
      return attempt;
    }
    left = growth.left;
    layers_below_s += growth.sums.time_s();
  }
  attempt.complete = left == 0;
  return attempt;
}

/// All left ends that stages i … p-1 can reach, for each i: conclusive always. O(layers·stages)
/// stages are grown.
Attempt fill_exhaustively(const Chain& chain, double bound, Ends& ends) {
  const std::size_t count = chain.layers.size();
  // right_end[i][left]: where stage i may end when it starts at `left`; -1: cannot start there.
  std::vector<std::vector<std::int32_t>> right_end(static_cast<std::size_t>(chain.stages),
                                                   std::vector<std::int32_t>(count + 1, -1));
  Attempt attempt;
  for (int i = chain.stages - 1; i >= 0; --i) {
    double layers_below_s = 0;
    for (auto right = static_cast<std::int32_t>(count); right > i; --right) {
      const bool last = i + 1 == chain.stages;
      const bool reached =
          last ? right == static_cast<std::int32_t>(count)
               : right_end[static_cast<std::size_t>(i) + 1][static_cast<std::size_t>(right)] >= 0;
      if (reached) {
        const Growth growth = grow_stage(chain, i, right, layers_below_s, bound, attempt);
        for (std::int32_t left = growth.left; left < right; ++left) {
          std::int32_t& end =
              right_end[static_cast<std::size_t>(i)][static_cast<std::size_t>(left)];
          if (end < 0) end = right;
        }
      }
      layers_below_s += chain.layers[static_cast<std::size_t>(right - 1)].time_s();
    }
  }
  attempt.complete = right_end[0][0] >= 0;
  if (!attempt.complete) return attempt;
  std::int32_t left = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    left = right_end[i][static_cast<std::size_t>(left)];
    ends[i] = left;
  }
  return attempt;
}

Attempt fill_from_the_end(const Chain& chain, double bound, Ends& ends) {
  const Attempt greedy = fill_greedily(chain, bound, ends);
  if (greedy.complete || !greedy.stuck) return greedy;
  Attempt attempt = fill_exhaustively(chain, bound, ends);
  attempt.memory_bound |= greedy.memory_bound;
  return attempt;
}

double path_of(std::span<const ChainLayer> layers, std::span<const double> handover_s,
               const Ends& ends, std::int64_t m) {
  std::vector<double> forward_s(ends.size());
  std::vector<double> backward_s(ends.size());
  std::int32_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (std::int32_t l = begin; l < ends[i]; ++l) {
      forward_s[i] += layers[static_cast<std::size_t>(l)].forward_s;
      backward_s[i] += layers[static_cast<std::size_t>(l)].backward_s;
    }
    begin = ends[i];
  }
  return one_f_one_b_path_s(forward_s, backward_s, handover_s, m);
}

}  // namespace

std::optional<Partition> partition_one_f_one_b(std::span<const ChainLayer> layers,
                                               std::span<const double> handover_s,
                                               std::int64_t micro_batches,
                                               const MemoryForm& memory) {
  if (handover_s.size() >= layers.size()) return std::nullopt;
  const Chain chain(layers, handover_s, micro_batches, memory);
  Partition partition;
  partition.ends.resize(static_cast<std::size_t>(chain.stages));

  Ends scratch(partition.ends.size());
  double infeasible = -1;
  double feasible = kInfinity;
  double next_bound = kInfinity;
  const auto attempt_at = [&](double bound) {
    const Attempt attempt = fill_from_the_end(chain, bound, scratch);
    partition.memory_bound |= attempt.memory_bound;
    if (attempt.complete) {
      partition.ends = scratch;
      feasible = bound;
    } else {
      infeasible = bound;
      next_bound = attempt.next_bound;
    }
  };
  // Whether there is any: by sums, then by memory alone.
  double least_bytes = 0;
  for (const ChainLayer& layer : layers) {
    RunSums sums;
    sums.add(layer);
    sums.working_bytes = sums.largest_layer_parameters = 0;
    least_bytes += device_bytes(sums, 1, memory);
  }
  if (least_bytes * (1 - 1e-12) > chain.stages * memory.available_bytes ||
      !fill_from_the_end(chain, kInfinity, scratch).complete) {
    return std::nullopt;
  }
  // From nothing, quickly up to a feasible bound …
  attempt_at(0);
  double guess = static_cast<double>(micro_batches - 1) * chain.layers_s / chain.stages;
  while (feasible == kInfinity) {
    assert(next_bound < kInfinity);
    attempt_at(std::max(next_bound, guess));
    guess *= 1.03;
  }
  // … then in between, and at last through attained values only, from below.
  while (infeasible >= 0 && feasible - infeasible > 1e-3 * feasible) {
    attempt_at(infeasible + (feasible - infeasible) / 2);
  }
  if (infeasible >= 0) {
    attempt_at(infeasible);
    while (next_bound < feasible) attempt_at(next_bound);
  }
  partition.path_s = path_of(layers, handover_s, partition.ends, micro_batches);
  return partition;
}

namespace {

/// Walks all splits whose stages each keep within the bound, never entering a dead end.
class Enumeration {
 public:
  Enumeration(const Chain& chain, double path_below_s, std::int64_t most,
              const std::function<void(const Ends&)>& visit)
      : chain_(chain),
        bound_(path_below_s - chain.layers_s - chain.handover_below(0)),
        left_(most),
        visit_(visit),
        completes_(static_cast<std::size_t>(chain.stages) + 1,
                   std::vector<bool>(chain.layers.size() + 1)),
        ends_(static_cast<std::size_t>(chain.stages)) {}

  bool run() {
    // completes_[i][b]: the first i stages can take the first b layers.
    completes_[0][0] = true;
    double before_s = 0;
    for (std::size_t right = 1; right <= chain_.layers.size(); ++right) {
      before_s += chain_.layers[right - 1].time_s();
      for (int i = 0; i < chain_.stages && i < static_cast<int>(right); ++i) {
        const auto at = static_cast<std::size_t>(i);
        each_stage(i, static_cast<std::int32_t>(right), before_s, [&](std::int32_t left) {
          if (!completes_[at][static_cast<std::size_t>(left)]) return true;
          completes_[at + 1][right] = true;
          return false;
        });
      }
    }
    if (!completes_.back().back()) return true;
    return descend(chain_.stages - 1, chain_.layers.size(), chain_.layers_s);
  }

 private:
  /// Calls body(left) for each stage [left, right) that keeps within bound and memory, shortest
  /// first, until it returns false. `before_s`: the layers up to `right`.
  template <typename Body>
  void each_stage(int index, std::int32_t right, double before_s, const Body& body) {
    const double below_s = chain_.layers_s - before_s + chain_.handover_below(index);
    RunSums sums;
    for (std::int32_t left = right - 1; left >= index; --left) {
      sums.add(chain_.layers[static_cast<std::size_t>(left)]);
      if (!fits(sums, chain_.in_flight(index), *chain_.memory) ||
          excess_s(sums, below_s, index, chain_.stages, chain_.micro_batches) >= bound_ ||
          !body(left)) {
        return;
      }
    }
  }

  bool descend(int index, std::size_t right, double before_s) {
    ends_[static_cast<std::size_t>(index)] = static_cast<std::int32_t>(right);
    bool complete = true;
    double start_s = before_s;
    each_stage(index, static_cast<std::int32_t>(right), before_s, [&](std::int32_t left) {
      const auto at = static_cast<std::size_t>(left);
      start_s -= chain_.layers[at].time_s();
      if (!completes_[static_cast<std::size_t>(index)][at]) return true;
      if (index > 0) {
        complete = descend(index - 1, at, start_s);
      } else if (left_-- > 0) {
        visit_(ends_);
      } else {
        complete = false;
      }
      return complete;
    });
    return complete;
  }

  const Chain& chain_;
  double bound_;
  std::int64_t left_;
  const std::function<void(const Ends&)>& visit_;
  std::vector<std::vector<bool>> completes_;
  Ends ends_;
};

}  // namespace

bool for_each_partition_below(std::span<const ChainLayer> layers,
                              std::span<const double> handover_s, std::int64_t micro_batches,
                              const MemoryForm& memory, double path_below_s, std::int64_t most,
                              const std::function<void(const Ends&)>& visit) {
  if (handover_s.size() >= layers.size()) return true;
  const Chain chain(layers, handover_s, micro_batches, memory);
  return Enumeration(chain, path_below_s, most, visit).run();
}

namespace {

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

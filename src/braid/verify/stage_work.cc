#include "braid/verify/stage_work.h"

#include <algorithm>
#include <cmath>

#include "braid/system/collective.h"
#include "braid/system/links.h"
#include "braid/system/named_groups.h"
#include "braid/verify/checks.h"

namespace braid {
namespace {

double seconds_of(const PassTime& pass) {
  return pass.compute_s + pass.tp_comm_s + pass.cp_comm_s + pass.ep_comm_s + pass.offload_s;
}

std::int64_t degree_of(const Parallelism& p, Axis axis) {
  switch (axis) {
    case Axis::tp:
      return p.tp;
    case Axis::cp:
      return p.cp;
    case Axis::dp:
      return p.dp;
    case Axis::pp:
      break;
  }
  return p.pp;
}

/// Device numbers between neighbouring ranks of an axis.
std::int64_t step_of(const Parallelism& p, Axis axis) {
  std::int64_t step = 1;
  for (std::size_t i = 0; i < p.order.size() && p.order[i] != axis; ++i) {
    step *= degree_of(p, p.order[i]);
  }
  return step;
}

/// The ranks of a stage that hold the same parameters, and how long a collective of theirs takes.
class Replicas {
 public:
  Replicas(const Plan& plan, std::size_t s) : system_(plan.system) {
    const Parallelism p = form_of(plan, s);
    copies_ = p.replicate;
    ranks_ = std::int64_t{p.dp} * p.cp / copies_;
    const bool whole = p.whole_experts && p.tp > 1;
    expert_ranks_ = p.expert_axis() / p.ep / copies_;
    copy_span_ = span_of(system_, p.dp / copies_ * step_of(p, Axis::dp), copies_, p.devices());
    if (plan.stages[s].own || plan.system.groups.size() > 1) {
      list_devices(plan.stages[s].devices, p);
      return;
    }
    const std::int64_t cp_step = step_of(p, Axis::cp);
    const std::int64_t dp_step = step_of(p, Axis::dp);
    std::int64_t step = p.dp == 1 ? cp_step : dp_step;
    if (p.cp > 1 && p.dp > 1) {
      // Even steps over both axes; where the pipeline lies between them, as the cost model takes
      // it.
      const bool cp_inside = cp_step < dp_step;
      const std::int64_t near = cp_inside ? cp_step : dp_step, far = cp_inside ? dp_step : cp_step;
      const std::int64_t many = cp_inside ? p.cp : p.dp;
      step = far == near * many ? near : far / many;
    }
    span_ = span_of(system_, step, ranks_, p.devices());
    const std::int64_t inner = p.cp > 1 ? cp_step : dp_step;
    if (whole) {
      // Even steps over all three axes, or by the widest gap.
      const std::int64_t tp_step = step_of(p, Axis::tp);
      std::int64_t next = tp_step;
      if (ranks_ > 1 && step != tp_step * p.tp) next = std::max<std::int64_t>(1, step / p.tp);
      expert_span_ = span_of(system_, next * p.ep, expert_ranks_, p.devices());
    } else {
      expert_span_ = p.ep == 1 ? span_ : span_of(system_, inner * p.ep, expert_ranks_, p.devices());
    }
  }

  /// Sum of `bytes` over the copies of the state.
  double copies_s(double bytes) const {
    if (copies_ == 1) return 0;
    return collective_time(Collective::all_reduce, bytes, copy_span_, system_).time_s;
  }
  std::int64_t copies() const { return copies_; }
  double ranks() const { return static_cast<double>(ranks_); }
  double expert_ranks() const { return static_cast<double>(expert_ranks_); }

  double time_s(Collective collective, double bytes, double expert_bytes) const {
    double time_s = 0;
    if (bytes > 0 && ranks_ > 1) time_s += time_of(collective, bytes, groups_, span_);
    if (expert_bytes > 0 && expert_ranks_ > 1) {
      time_s += time_of(collective, expert_bytes, expert_groups_, expert_span_);
    }
    return time_s;
  }

 private:
  using Groups = std::vector<std::vector<std::int64_t>>;

  double time_of(Collective collective, double bytes, const Groups& groups,
                 const GroupSpan& span) const {
    return groups.empty() ? collective_time(collective, bytes, span, system_).time_s
                          : named_groups_time_s(collective, bytes, groups, system_);
  }

  /// Reads each device's rank on every axis off its place among the stage's devices.
  void list_devices(const std::vector<std::int64_t>& devices, const Parallelism& p) {
    groups_.resize(static_cast<std::size_t>(p.tp));
    expert_groups_.resize(static_cast<std::size_t>(p.whole_experts ? 1 : p.tp) *
                          static_cast<std::size_t>(p.ep));
    for (std::size_t i = 0; i < devices.size(); ++i) {
      auto rest = static_cast<std::int64_t>(i);
      std::int64_t tp = 0, cp = 0, dp = 0;
      for (const Axis axis : p.order) {
        if (axis == Axis::pp) continue;
        const std::int64_t degree = degree_of(p, axis);
        (axis == Axis::tp ? tp : axis == Axis::cp ? cp : dp) = rest % degree;
        rest /= degree;
      }
      const std::int64_t replica = dp * p.cp + cp;
      const std::int64_t expert =
          p.whole_experts ? (replica * p.tp + tp) % p.ep : tp * p.ep + replica % p.ep;
      groups_[static_cast<std::size_t>(tp)].push_back(devices[i]);
      expert_groups_[static_cast<std::size_t>(expert)].push_back(devices[i]);
    }
  }

  const System& system_;
  std::int64_t ranks_ = 1, expert_ranks_ = 1, copies_ = 1;
  GroupSpan span_, expert_span_, copy_span_;
  Groups groups_, expert_groups_;  ///< Of a stage with a form of its own.
};

/// What the layers of a chunk, or of a stage, have in all.
struct LayerSums {
  double dense = 0, expert = 0, stated_gradient_bytes = 0;
  int layers = 0;
};

/// The stage's chip whose memory is slowest; it has the last word for all.
const Chip& slowest_chip(const Plan& plan, std::size_t s) {
  const std::vector<std::int64_t>& devices = plan.stages[s].devices;
  const Chip* slowest = &chip_at(plan.system, devices.front());
  for (const std::int64_t device : devices) {
    const Chip& here = chip_at(plan.system, device);
    if (here.memory.bytes_per_s * here.efficiency.memory_peak_fraction <
        slowest->memory.bytes_per_s * slowest->efficiency.memory_peak_fraction) {
      slowest = &here;
    }
  }
  return *slowest;
}

/// Reading and writing the optimizer's state, the gradients and the weights of `elements` elements.
double optimizer_s(const Plan& plan, std::size_t s, double elements) {
  if (elements <= 0) return 0;
  const Precision& precision = plan.precision;
  const Chip& chip = slowest_chip(plan, s);
  const double state = elements * precision.optimizer_bytes_per_parameter;
  const double gradient = elements * bytes_per_element(precision.gradient);
  const double weight = elements * bytes_per_element(precision.weight);
  const double achieved = chip.memory.bytes_per_s * chip.efficiency.memory_peak_fraction;
  if (achieved <= 0) return 0;  // Not known.
  const double here_s =
      chip.efficiency.kernel_launch_s + (2 * state + gradient + weight) / achieved;
  if (!form_of(plan, s).offload_optimizer || !chip.host) return here_s;
  return std::max(here_s, (2 * state + std::max(gradient, weight)) / chip.host->bytes_per_s);
}

}  // namespace

double outlasting_s(double transfer_s, double work_s, int pieces) {
  if (transfer_s <= 0) return 0;
  double free_s = 0;
  for (int i = 1; i <= pieces; ++i) {
    free_s = std::max(free_s, work_s * i / pieces) + transfer_s / pieces;
  }
  return std::max(0.0, free_s - work_s);
}

double late_gradients_s(const StageWork& stage, std::int64_t passes_in_a_row) {
  // From the end of the last pass backwards: when each part's last backward pass ends, if the last
  // passes leave no gaps.
  std::vector<double> end_s(stage.parts.size(), 0);
  for (std::size_t c = 1; c < stage.parts.size(); ++c) {
    end_s[c] = end_s[c - 1] - static_cast<double>(passes_in_a_row) * stage.parts[c - 1].backward_s;
  }
  bool sent = false;
  double free_s = 0;
  for (std::size_t c = stage.parts.size(); c-- > 0;) {
    const PartWork& part = stage.parts[c];
    if (part.reduce_s <= 0) continue;
    for (int i = 1; i <= part.buckets; ++i) {
      const double ready_s = end_s[c] - part.backward_s + part.backward_s * i / part.buckets;
      free_s = (sent ? std::max(free_s, ready_s) : ready_s) + part.reduce_s / part.buckets;
      sent = true;
    }
  }
  return std::max(0.0, free_s);
}

double end_of_waiting_work_s(double start_s, double work_s, double transfer_s, int pieces) {
  if (transfer_s <= 0) return start_s + work_s;
  double end_s = start_s;
  for (int i = 1; i <= pieces; ++i) {
    end_s = std::max(end_s, transfer_s * i / pieces) + work_s / pieces;
  }
  return end_s;
}

namespace {

/// Passes and stashes of a chunk; its layers' sums go to `sums`.
PartWork passes_of_part(const Plan& plan, const Chunk& chunk, LayerSums& sums) {
  PartWork part;
  for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
    const LayerCost& cost = option_at(plan, chunk, i).cost;
    part.forward_s += seconds_of(cost.forward);
    part.backward_s += seconds_of(cost.recompute) + seconds_of(cost.backward_input) +
                       seconds_of(cost.backward_weight);
    part.stash_bytes += cost.stash_bytes - cost.offloaded_bytes;
    part.offloaded_bytes += cost.offloaded_bytes;
    sums.dense += cost.dense_parameters;
    sums.expert += cost.expert_parameters;
    if (cost.gradient_bytes > 0) sums.stated_gradient_bytes += cost.gradient_bytes;
    ++sums.layers;
  }
  return part;
}

/// Copies of a stage's state, and what its collectives move.
struct StageCopies {
  const Replicas& replicas;
  Zero zero = Zero::none;
  double weight_bytes = 0;    ///< Of a parameter.
  double gradient_bytes = 0;  ///< Of a parameter.
  double lost_share = 0;  ///< Of a transfer that hides behind a pass, what is lost all the same.

  double gather_s(double dense, double expert) const {
    return replicas.time_s(Collective::all_gather, dense * weight_bytes, expert * weight_bytes);
  }
};

/// Sharded parameters and gradients travel in every pass, an average layer at a time.
void add_sharded_state(const StageCopies& copies, const LayerSums& sums, PartWork& part) {
  const auto added_s = [&](double transfer_s, double pass_s) {
    const double late_s = outlasting_s(transfer_s, pass_s, sums.layers);
    return late_s + copies.lost_share * (transfer_s - late_s);
  };
  const double n = sums.layers;
  double more_forward_s = 0;
  double more_backward_s = 0;
  if (copies.zero == Zero::parameters) {
    const double gathering_s = n * copies.gather_s(sums.dense / n, sums.expert / n);
    more_forward_s += added_s(gathering_s, part.forward_s);
    more_backward_s += added_s(gathering_s, part.backward_s);
  }
  if (copies.zero == Zero::parameters || copies.zero == Zero::gradients) {
    const double scattering_s = n * copies.replicas.time_s(Collective::reduce_scatter,
                                                           sums.dense / n * copies.gradient_bytes,
                                                           sums.expert / n * copies.gradient_bytes);
    more_backward_s += added_s(scattering_s, part.backward_s);
  }
  part.forward_s += more_forward_s;
  part.backward_s += more_backward_s;
}

/// Buckets of a part's gradients and the time to reduce them.
void add_reduction(const StageCopies& copies, const LayerSums& sums, PartWork& part) {
  const Replicas& replicas = copies.replicas;
  part.buckets = replicas.copies() > 1 ? 1 : std::max(1, sums.layers);
  const auto reduced_s = [&](Collective collective, double stated_bytes) {
    return part.buckets *
           replicas.time_s(collective,
                           (sums.dense * copies.gradient_bytes + stated_bytes) / part.buckets,
                           sums.expert * copies.gradient_bytes / part.buckets);
  };
  if (copies.zero == Zero::none) {
    part.reduce_s = reduced_s(Collective::all_reduce, sums.stated_gradient_bytes);
  } else if (copies.zero == Zero::optimizer) {
    part.reduce_s = reduced_s(Collective::reduce_scatter, 0);
  } else if (replicas.copies() > 1) {
    const double shard = sums.dense / replicas.ranks() + sums.expert / replicas.expert_ranks();
    part.reduce_s = replicas.copies_s(shard * copies.gradient_bytes);
  }
}

}  // namespace

StageWork work_of_stage(const Plan& plan, std::size_t s) {
  const Replicas replicas(plan, s);
  const StageCopies copies{
      replicas, form_of(plan, s).zero, bytes_per_element(plan.precision.weight),
      bytes_per_element(plan.precision.gradient), slowest_chip(plan, s).efficiency.overlap_loss};
  const Zero zero = copies.zero;
  StageWork work;
  LayerSums all;
  for (const Chunk& chunk : plan.stages[s].chunks) {
    LayerSums sums;
    PartWork part = passes_of_part(plan, chunk, sums);
    add_sharded_state(copies, sums, part);
    add_reduction(copies, sums, part);
    work.parts.push_back(part);
    all.dense += sums.dense;
    all.expert += sums.expert;
    all.stated_gradient_bytes += sums.stated_gradient_bytes;
    all.layers += sums.layers;
  }
  work.buckets = plan.trainer.does.overlapped_gradients ? std::max(1, all.layers) : 1;
  const double n = work.buckets;
  for (const PartWork& part : work.parts) work.reduce_s += part.reduce_s;
  if (!plan.trainer.does.overlapped_gradients && (zero == Zero::none || zero == Zero::optimizer)) {
    // All at once, when everything else is done.
    const double stated_bytes = zero == Zero::none ? all.stated_gradient_bytes : 0;
    work.reduce_s = replicas.time_s(
        zero == Zero::none ? Collective::all_reduce : Collective::reduce_scatter,
        all.dense * copies.gradient_bytes + stated_bytes, all.expert * copies.gradient_bytes);
  }
  if (zero == Zero::optimizer || zero == Zero::gradients) {
    work.gather_s = n * copies.gather_s(all.dense / n, all.expert / n);
  }
  const double shard = all.dense / replicas.ranks() + all.expert / replicas.expert_ranks();
  work.optimizer_s = optimizer_s(plan, s, zero == Zero::none ? all.dense + all.expert : shard);
  return work;
}

std::vector<double> shared_sums_s(const Plan& plan) {
  std::vector<double> sums_s(plan.stages.size(), 0);
  for (const SharedParameter& parameter : plan.profile.shared) {
    std::vector<bool> reads(plan.profile.layers.size(), false);
    for (const std::int32_t layer : parameter.layers) {
      reads[static_cast<std::size_t>(layer)] = true;
    }
    std::vector<std::size_t> ring;
    double gradient_bytes = 0;
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      bool holds = false;
      for (const Chunk& chunk : plan.stages[s].chunks) {
        for (const std::int32_t layer : chunk.layers) {
          holds = holds || reads[static_cast<std::size_t>(layer)];
        }
      }
      if (!holds) continue;
      ring.push_back(s);
      const Parallelism p = form_of(plan, s);
      const bool sharded = p.zero == Zero::gradients || p.zero == Zero::parameters;
      const double copies =
          (parameter.sharded ? p.tp : 1) * (sharded ? static_cast<double>(p.dp) * p.cp : 1.0);
      gradient_bytes = std::max(
          gradient_bytes,
          parameter.elements / copies *
              bytes_per_element(plan.precision.shared_gradient.value_or(plan.precision.gradient)));
    }
    if (ring.size() < 2 || gradient_bytes <= 0) continue;
    // Around once to add up, once more to hand out; every stage sends a piece in every step.
    const double piece = gradient_bytes / static_cast<double>(ring.size());
    double sum_s = 0;
    for (std::size_t step = 0; step < 2 * (ring.size() - 1); ++step) {
      double step_s = 0;
      for (std::size_t i = 0; i < ring.size(); ++i) {
        step_s = std::max(step_s, handover_s(plan, ring[i], ring[(i + 1) % ring.size()], piece));
      }
      sum_s += step_s;
    }
    for (const std::size_t s : ring) sums_s[s] += sum_s;
  }
  return sums_s;
}

double bytes_of_flow(double edge_bytes, const Parallelism& from, const Parallelism& to) {
  const double samples = static_cast<double>(from.dp) * from.micro_batch;
  const double senders = static_cast<double>(from.dp) * from.cp * from.tp;
  const double receivers = static_cast<double>(to.dp) * to.cp * to.tp;
  // Without sequence parallelism each tensor-parallel rank wants the tensor for itself.
  const double shards = static_cast<double>(to.cp) * (to.sequence_parallel ? to.tp : 1);
  if (receivers >= senders) return edge_bytes * std::ceil(samples / to.dp) / shards;
  return edge_bytes * (samples / to.dp) / shards * receivers / senders;
}

std::int64_t stages_sending_at_once(const Plan& plan) {
  if (!is_uniform(plan) || plan.parallel.schedule == ScheduleKind::gpipe) return 1;
  const Parallelism& p = plan.parallel;
  const std::int64_t step = step_of(p, Axis::pp);
  const std::int64_t per_node = plan.system.groups.front().devices_per_node;
  if (per_node % step != 0) return 1;
  const std::int64_t on_node = per_node / step;
  const bool ring = p.vp > 1 && p.pp > on_node;  // The last stage hands over to the first.
  for (std::int64_t first = 0; first + on_node <= p.pp; first += on_node) {
    const std::int64_t last = first + on_node - 1;
    const bool sends_on = last < p.pp - 1 || ring;
    const bool sends_back = first > 0 || ring;
    // Stages an odd number apart run passes of opposite directions at the same time.
    if (sends_on && sends_back && (last - first) % 2 == 1) return 2;
  }
  return 1;
}

double pass_handover_s(const Plan& plan, std::size_t from, std::size_t to, double bytes) {
  return handover_s(plan, from, to, bytes, stages_sending_at_once(plan));
}

double handover_s(const Plan& plan, std::size_t from, std::size_t to, double bytes,
                  std::int64_t stages_at_once) {
  const System& system = plan.system;
  const std::vector<std::int64_t>& senders = plan.stages[from].devices;
  const std::vector<std::int64_t>& receivers = plan.stages[to].devices;
  if (!is_uniform(plan)) {
    if (bytes <= 0) return 0;
    std::vector<Flow> flows;
    for (std::size_t i = 0; i < senders.size() && senders.size() >= receivers.size(); ++i) {
      flows.push_back({senders[i], receivers[i * receivers.size() / senders.size()]});
    }
    for (std::size_t i = 0; i < receivers.size() && senders.size() < receivers.size(); ++i) {
      flows.push_back({senders[i * senders.size() / receivers.size()], receivers[i]});
    }
    const std::vector<double> rates = flow_rates(system, flows, bytes);
    double last_s = 0;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const double latency_s = link_latency_s(system, flows[i].from, flows[i].to);
      last_s = std::max(last_s, latency_s + bytes / rates[i]);
    }
    return last_s;
  }
  // As many neighbours send beside each device as the pipeline's step, up to a node.
  const std::int64_t beside = stages_at_once * std::min(system.groups.front().devices_per_node,
                                                        step_of(plan.parallel, Axis::pp));
  return std::max(point_to_point_s(system, senders.front(), receivers.front(), bytes, beside),
                  point_to_point_s(system, senders.back(), receivers.back(), bytes, beside));
}

}  // namespace braid

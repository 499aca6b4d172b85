#include "braid/planners/job/space.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <iterator>
#include <set>
#include <span>
#include <utility>

#include "braid/plan/ease.h"
#include "braid/planners/job/space_rules.h"

namespace braid {
namespace {

/// The first stage that shards more, of those that the trainer has.
std::optional<Zero> stage_behind(Zero zero, const SpaceOptions& options, int pp) {
  for (int next = static_cast<int>(zero) + 1; next <= static_cast<int>(Zero::parameters); ++next) {
    if (options.can.allows(static_cast<Zero>(next), pp)) return static_cast<Zero>(next);
  }
  return std::nullopt;
}

/// Stages of ZeRO that are looked at whether memory asks for them or not: without sharding, and
/// the least that shards the optimizer's state, which costs another collective and saves work;
/// where gradients are added up by kernels of their own also the least that shards gradients, which
/// needs none; in pipelines all, as what is summed up with each micro-batch hides behind passes
/// that others come too late for. Of those that the trainer has; behind one that it refuses of some
/// forms also the next.
std::vector<Zero> base_stages(const SpaceLimits& limits, const SpaceOptions& options, int pp) {
  std::vector<Zero> stages;
  const auto add_least_of = [&](std::initializer_list<Zero> ascending) {
    for (const Zero zero : ascending) {
      if (!options.can.allows(zero, pp)) continue;
      if (std::find(stages.begin(), stages.end(), zero) == stages.end()) stages.push_back(zero);
      return;
    }
  };
  add_least_of({Zero::optimizer, Zero::gradients, Zero::parameters});
  add_least_of({Zero::none});
  if (limits.separate_accumulation) add_least_of({Zero::gradients, Zero::parameters});
  if (pp > 1) {
    add_least_of({Zero::gradients});
    add_least_of({Zero::parameters});
  }
  const std::vector<ExcludedForms>& never = options.can.never;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const FormTraits trait = bit_of(FormTrait::zero_0) << static_cast<unsigned>(stages[i]);
    const bool is_refused = std::any_of(never.begin(), never.end(), [&](const ExcludedForms& each) {
      return (each.with & trait) != 0;
    });
    const std::optional<Zero> next = stage_behind(stages[i], options, pp);
    if (is_refused && next) add_least_of({*next});
  }
  return stages;
}

/// The next stage that shards more, of those that the trainer has and that are not looked at
/// anyway.
std::optional<Zero> next_stage(Zero zero, const SpaceLimits& limits, const SpaceOptions& options,
                               int pp) {
  const std::optional<Zero> next = stage_behind(zero, options, pp);
  const std::vector<Zero> base = base_stages(limits, options, pp);
  const bool is_base = next && std::find(base.begin(), base.end(), *next) != base.end();
  return is_base ? std::nullopt : next;
}

bool has_more_dimensions(const Configuration& configuration, const SpaceLimits& limits) {
  return std::popcount(parallel_dimensions(configuration)) > limits.most_dimensions;
}

/// Whether experts can be spread so: whole ones need sequence parallelism.
bool spreads_experts(Execution how, const SpaceLimits& limits, const SpaceOptions& options) {
  how.sequence_parallel = how.whole_experts;
  if (how.whole_experts && (!options.sequence_parallel.value_or(true) ||
                            !options.can.allows_sequence_parallel(true, how.tp))) {
    return false;
  }
  return experts_nest(how) && can_divide(options.can, how) && refusal(limits.split, how).empty();
}

/// Adds the splits with the tp, cp and whole_experts of `how`, pp·dp = replicas and an ep among
/// `ep`.
void add_splits(Execution how, std::int64_t replicas, const Degrees& ep, const SpaceLimits& limits,
                const SpaceOptions& options, std::vector<Configuration>& out) {
  for (const int pp : options.pp.among(divisors(replicas, limits.layers))) {
    if (pp > options.can.most_stages) continue;
    const std::int64_t dp = replicas / pp;
    if (limits.global_batch % dp != 0 || !options.dp.allows(dp)) continue;
    Configuration split;
    split.tp = how.tp;
    split.cp = how.cp;
    split.whole_experts = how.whole_experts;
    split.pp = pp;
    split.dp = static_cast<int>(dp);
    split.recompute = options.recompute.value_or(Recompute::none);
    const std::int64_t most_ep = limits.split.experts > 0 ? limits.split.experts : 1;
    for (const int one : ep.among(divisors(expert_axis(split), most_ep))) {
      how.ep = split.ep = one;
      if (!allows_experts(options, how)) continue;
      if (!options.can.fills_nodes(std::int64_t{how.tp} * how.cp * pp, dp, one)) continue;
      if (!spreads_experts(how, limits, options) || has_more_dimensions(split, limits)) continue;
      if (is_excluded(options.can, split, kDegreeTraits)) continue;
      out.push_back(split);
    }
  }
}

/// Splits of exactly so many devices.
std::vector<Configuration> splits_of_devices(std::int64_t devices, const SpaceLimits& limits,
                                             const SpaceOptions& options) {
  std::vector<Configuration> out;
  for (const int tp : options.tp.among(divisors(devices, devices))) {
    for (const int cp : options.cp.among(divisors(devices / tp, devices))) {
      Execution how;
      how.tp = tp;
      how.cp = cp;
      if (!refusal(limits.split, how).empty() || !can_divide(options.can, how)) continue;
      for (const bool whole : {false, true}) {
        how.whole_experts = whole;
        add_splits(how, devices / tp / cp, options.ep, limits, options, out);
      }
    }
  }
  return out;
}

}  // namespace

namespace {

/// Degrees of tensor parallelism that the devices are enough for, ascending.
std::vector<int> tensor_degrees(const SpaceLimits& limits) {
  const std::vector<int> manual =
      divisors(std::max<std::int64_t>(1, limits.split.heads), limits.devices);
  std::vector<int> degrees;
  std::set_union(manual.begin(), manual.end(), limits.split.automatic.begin(),
                 limits.split.automatic.end(), std::back_inserter(degrees));
  return degrees;
}

}  // namespace

namespace {

/// Adds the families with the tp and cp of `how`.
void add_families(Execution how, std::int64_t most_replicas, const SpaceLimits& limits,
                  const SpaceOptions& options, std::vector<Family>& out) {
  const std::int64_t experts = std::max<std::int64_t>(1, limits.split.experts);
  for (const int ep : options.ep.among(divisors(experts, limits.devices))) {
    for (const bool whole : {false, true}) {
      how.ep = ep;
      how.whole_experts = whole;
      if (!whole && ep > limits.devices / how.tp) continue;
      if (!allows_experts(options, how) || !spreads_experts(how, limits, options)) continue;
      Family family;
      family.configuration.tp = how.tp;
      family.configuration.cp = how.cp;
      family.configuration.ep = ep;
      family.configuration.whole_experts = whole;
      family.configuration.recompute = options.recompute.value_or(Recompute::none);
      family.most_replicas = most_replicas;
      if (has_more_dimensions(family.configuration, limits)) continue;
      out.push_back(family);
    }
  }
}

}  // namespace

std::vector<Family> families(const SpaceLimits& limits, const SpaceOptions& options) {
  std::vector<Family> out;
  for (const int tp : options.tp.among(tensor_degrees(limits))) {
    const std::int64_t room = limits.devices / tp;
    for (const int cp :
         options.cp.among(divisors(std::max<std::int64_t>(1, limits.split.seq_len / 2), room))) {
      const std::int64_t replicas = room / cp;
      if (!takes_devices(replicas * cp * tp, limits, options)) continue;
      Execution how;
      how.tp = tp;
      how.cp = cp;
      add_families(how, replicas, limits, options, out);
    }
  }
  return out;
}

std::vector<int> data_degrees(const SpaceLimits& limits, const SpaceOptions& options) {
  return options.dp.among(divisors(limits.global_batch, limits.devices));
}

std::int64_t most_replicas(std::span<const int> data_degrees, const SpaceLimits& limits,
                           const SpaceOptions& options, std::int64_t most) {
  std::int64_t found = 0;
  for (const int dp : data_degrees) {
    if (dp > most) break;
    const int pp = options.pp.at_most(std::min<std::int64_t>(limits.layers, most / dp));
    found = std::max(found, dp * std::int64_t{pp});
  }
  return found;
}

std::vector<Configuration> splits_of_family(const Configuration& family, std::int64_t replicas,
                                            const SpaceLimits& limits,
                                            const SpaceOptions& options) {
  std::vector<Configuration> out;
  Execution how;
  how.tp = family.tp;
  how.cp = family.cp;
  how.whole_experts = family.whole_experts;
  add_splits(how, replicas, family.ep, limits, options, out);
  return out;
}

std::vector<int> micro_batches_of(std::int64_t samples, const SpaceOptions& options) {
  std::vector<int> sizes = options.micro_batch.among(divisors(samples, samples));
  if (options.listed != nullptr) {
    const std::set<int> listed = options.listed->micro_batches();
    std::erase_if(sizes, [&](int size) { return !listed.contains(size); });
  }
  return sizes;
}

std::vector<int> micro_batches(const Configuration& split, const SpaceLimits& limits,
                               const SpaceOptions& options) {
  return micro_batches_of(limits.global_batch / split.dp, options);
}

Configuration with_form(Configuration configuration, const TensorSharding& form) {
  configuration.sequence_parallel = form.sequence_parallel;
  configuration.sharding = form.sharding;
  return configuration;
}

namespace {

/// `known`: what is decided of the split.
std::vector<TensorSharding> shardings_of(const Configuration& split, const SpaceLimits& limits,
                                         const SpaceOptions& options, FormTraits known) {
  std::vector<TensorSharding> forms;
  const bool manual = divides_manually(limits.split, split.tp);
  Execution how = to_execution(split);
  for (const bool sequence_parallel : {true, false}) {
    if (sequence_parallel && split.tp == 1) continue;
    if (options.sequence_parallel && split.tp > 1 &&
        *options.sequence_parallel != sequence_parallel) {
      continue;
    }
    how.sequence_parallel = sequence_parallel;
    if (!refusal(limits.split, how).empty()) continue;
    if (!options.can.allows_sequence_parallel(sequence_parallel, split.tp)) continue;
    Configuration formed = split;
    formed.sequence_parallel = sequence_parallel;
    if (is_excluded(options.can, formed, known | bit_of(FormTrait::sequence_parallel))) continue;
    if (manual) forms.push_back({sequence_parallel, ShardingKind::manual});
    if (sequence_parallel || !options.can.auto_sharding ||
        !std::binary_search(limits.split.automatic.begin(), limits.split.automatic.end(),
                            split.tp)) {
      continue;
    }
    forms.push_back({false, ShardingKind::fastest});
    forms.push_back({false, ShardingKind::smallest});
  }
  return forms;
}

}  // namespace

std::vector<TensorSharding> tensor_shardings(const Configuration& split, const SpaceLimits& limits,
                                             const SpaceOptions& options) {
  return shardings_of(split, limits, options, kDegreeTraits);
}

std::vector<TensorSharding> shardings_of_family(const Configuration& family,
                                                const SpaceLimits& limits,
                                                const SpaceOptions& options) {
  return shardings_of(family, limits, options, kFamilyTraits);
}

namespace {

/// Adds a range of the space that the trainer does not exclude.
void add_range(const ConfigurationRange& range, const SpaceOptions& options,
               std::vector<ConfigurationRange>& out) {
  if (!is_excluded(options.can, range.configuration)) out.push_back(range);
}

void add_pipelines(Configuration base, std::span<const int> micro_batches,
                   const SpaceLimits& limits, const SpaceOptions& options,
                   std::vector<ConfigurationRange>& out) {
  const auto wanted = [&](ScheduleKind kind) { return allows_schedule(options, kind, base.pp); };
  for (const int micro_batch : micro_batches) {
    base.micro_batch = micro_batch;
    if (!is_listed(options, base)) continue;
    base.num_micro_batches = limits.global_batch / base.dp / micro_batch;
    const auto most_vp = static_cast<std::int32_t>(
        std::min<std::int64_t>(base.pp == 1 ? 1 : limits.layers / base.pp,
                               kMostPlannedPasses / base.pp / base.num_micro_batches));
    base.vp = 1;
    if (most_vp >= 1 && options.vp.allows(1)) {
      if (wanted(ScheduleKind::one_f_one_b)) {
        base.schedule = ScheduleKind::one_f_one_b;
        add_range({base, 1}, options, out);
      }
      if (wanted(ScheduleKind::gpipe) && (base.pp > 1 || options.schedule)) {
        base.schedule = ScheduleKind::gpipe;
        add_range({base, 1}, options, out);
      }
    }
    if (!can_interleave(base.pp, base.num_micro_batches) || !wanted(ScheduleKind::interleaved)) {
      continue;
    }
    base.schedule = ScheduleKind::interleaved;
    for (const auto& [first_vp, last_vp] : options.vp.runs(2, most_vp)) {
      base.vp = first_vp;
      add_range({base, last_vp}, options, out);
    }
  }
}

}  // namespace

std::vector<ConfigurationRange> ranges_of_split(const Configuration& split,
                                                const SpaceLimits& limits,
                                                const SpaceOptions& options) {
  std::vector<ConfigurationRange> out;
  const std::vector<int> sizes = micro_batches(split, limits, options);
  const int shards = split.dp * split.cp;
  for (const TensorSharding& form : tensor_shardings(split, limits, options)) {
    Configuration base = with_form(split, form);
    std::vector<Zero> stages = {options.zero.value_or(Zero::none)};
    if (!options.zero && shards > 1) stages = base_stages(limits, options, split.pp);
    for (const Zero zero : stages) {
      if (!options.can.allows(zero, split.pp)) continue;
      base.zero = zero;
      if (is_excluded(options.can, base, kStateTraits)) continue;
      const bool one_order = split.pp == 1 || split.dp == 1;
      if (one_order || options.can.pipeline_outermost) {
        base.order = AxisOrder::pipeline_outermost;
        add_pipelines(base, sizes, limits, options, out);
      }
      if (!one_order && options.can.data_outermost) {
        base.order = AxisOrder::data_outermost;
        add_pipelines(base, sizes, limits, options, out);
      }
    }
  }
  return out;
}

std::vector<Configuration> base_configurations(const SpaceLimits& limits,
                                               const SpaceOptions& options) {
  std::vector<Configuration> out;
  for (std::int64_t devices = limits.devices; devices >= 1; --devices) {
    for (const Configuration& split : splits_of_devices(devices, limits, options)) {
      for (const ConfigurationRange& range : ranges_of_split(split, limits, options)) {
        Configuration configuration = range.configuration;
        for (; configuration.vp <= range.most_vp; ++configuration.vp) out.push_back(configuration);
      }
    }
    if (options.all_devices) break;
  }
  return out;
}

std::vector<Configuration> relaxations(const Configuration& configuration,
                                       const SpaceLimits& limits, const SpaceOptions& options,
                                       bool has_host) {
  std::vector<Configuration> out;
  for (Configuration next = configuration;
       !options.recompute && next.recompute != Recompute::full;) {
    next.recompute = next.recompute == Recompute::none ? Recompute::selective : Recompute::full;
    if (!is_listed(options, next) || !options.can.allows(next.recompute)) continue;
    if (is_excluded(options.can, next)) continue;
    out.push_back(next);
    break;
  }
  const bool shards = configuration.zero != Zero::none || configuration.dp * configuration.cp > 1;
  Configuration sharded = configuration;
  while (!options.zero && shards) {
    const auto stage = next_stage(sharded.zero, limits, options, configuration.pp);
    if (!stage) break;
    sharded.zero = *stage;
    if (is_excluded(options.can, sharded)) continue;
    out.push_back(sharded);
    break;
  }
  if (has_host && options.allow_offload) {
    const TrainerLimits& can = options.can;
    for (const auto& [offload, allowed] :
         {std::pair{&Configuration::offload_optimizer, can.offload_optimizer},
          std::pair{&Configuration::offload_activations, can.offload_activations},
          std::pair{&Configuration::offload_weights, can.offload_weights}}) {
      if (configuration.*offload || !allowed) continue;
      // A rank that keeps no whole weights has none to offload.
      if (offload == &Configuration::offload_weights && configuration.zero == Zero::parameters) {
        continue;
      }
      Configuration next = configuration;
      next.*offload = true;
      if (!is_listed(options, next)) continue;
      out.push_back(next);
    }
  }
  std::erase_if(out, [&](const Configuration& next) { return is_excluded(options.can, next); });
  return out;
}

}  // namespace braid

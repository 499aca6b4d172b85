#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braid/base/rounding.h"
#include "braid/verify/checks.h"

namespace braid {

const Option& option_at(const Plan& plan, const Chunk& chunk, std::size_t i) {
  const ProfileLayer& layer = plan.profile.layers[static_cast<std::size_t>(chunk.layers[i])];
  return plan.profile
      .kinds[static_cast<std::size_t>(layer.kind)][static_cast<std::size_t>(chunk.options[i])];
}

std::string coverage_fault(const Plan& plan) {
  const auto layers = static_cast<std::int64_t>(plan.profile.layers.size());
  if (layers == 0) return "the plan has no layers";
  if (static_cast<std::int64_t>(plan.stages.size()) != plan.parallel.pp) {
    return fmt::format("{} stages, but pp is {}", plan.stages.size(), plan.parallel.pp);
  }
  std::vector<int> seen(static_cast<std::size_t>(layers), 0);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    if (static_cast<std::int64_t>(stage.chunks.size()) != plan.parallel.vp) {
      return fmt::format("stage {} has {} chunks, but vp is {}", s + 1, stage.chunks.size(),
                         plan.parallel.vp);
    }
    for (const Chunk& chunk : stage.chunks) {
      if (chunk.layers.empty()) return fmt::format("stage {} has a chunk without layers", s + 1);
      for (const std::int32_t layer : chunk.layers) {
        if (layer < 0 || layer >= layers) {
          return fmt::format("stage {} holds layer {} of {}", s + 1, layer, layers);
        }
        if (++seen[static_cast<std::size_t>(layer)] > 1) {
          return fmt::format("layer {} is placed twice, again in stage {}", layer, s + 1);
        }
      }
    }
  }
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if (seen[static_cast<std::size_t>(layer)] == 0) {
      return fmt::format("layer {} is in no stage", layer);
    }
  }
  return "";
}

namespace {

bool is_cost(const LayerCost& cost) {
  double sum = 0;
  for (const PassTime* pass :
       {&cost.forward, &cost.recompute, &cost.backward_input, &cost.backward_weight}) {
    for (const double part :
         {pass->compute_s, pass->tp_comm_s, pass->cp_comm_s, pass->ep_comm_s, pass->offload_s}) {
      if (!(part >= 0)) return false;
      sum += part;
    }
  }
  for (const double part :
       {cost.hidden_tp_s, cost.model_flops, cost.dense_parameters, cost.expert_parameters,
        cost.stash_bytes, cost.offloaded_bytes, cost.working_bytes, cost.output_bytes}) {
    if (!(part >= 0)) return false;
    sum += part;
  }
  return std::isfinite(sum);
}

/// How an option differs from its stage's parallel form; empty when it does not. Layers of a stage
/// with a form of its own may recompute and offload activations each as it likes.
std::string difference(const Execution& how, const Parallelism& p, bool own) {
  if (how.micro_batch != p.micro_batch) {
    return fmt::format("micro-batch {} instead of {}", how.micro_batch, p.micro_batch);
  }
  if (how.tp != p.tp) return fmt::format("tp {} instead of {}", how.tp, p.tp);
  if (how.cp != p.cp) return fmt::format("cp {} instead of {}", how.cp, p.cp);
  if (how.ep != p.ep) return fmt::format("ep {} instead of {}", how.ep, p.ep);
  if (how.sequence_parallel != p.sequence_parallel) return "another sequence parallelism";
  if (how.whole_experts != p.whole_experts) return "another sharding of experts";
  if (!own && how.recompute != p.recompute) return "another recomputation";
  if (!own && how.offload_activations != p.offload_activations) {
    return "another offload of activations";
  }
  if (how.offload_weights != p.offload_weights) return "another offload of weights";
  return "";
}

/// Groups of the system that a stage's devices lie in; of devices that there are.
std::vector<std::int32_t> groups_of(const System& system, const Stage& stage) {
  std::vector<std::int32_t> groups;
  for (const std::int64_t device : stage.devices) {
    if (device < 0 || device >= system.device_count) continue;
    std::int64_t end = 0;
    std::int32_t group = -1;
    while (device >= end && group + 1 < static_cast<std::int32_t>(system.groups.size())) {
      const DeviceGroup& next = system.groups[static_cast<std::size_t>(++group)];
      end += next.nodes * next.devices_per_node;
    }
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

double time_s(const LayerCost& cost) { return cost.forward.total_s() + cost.backward_s(); }

/// Why the option's times are not those of the slowest of these groups; empty when they are, or
/// are of any device.
std::string group_fault(const std::vector<Option>& options, const Option& option,
                        const std::vector<std::int32_t>& groups) {
  if (option.device_group < 0) return "";
  for (const std::int32_t group : groups) {
    const auto own = std::find_if(options.begin(), options.end(), [&](const Option& other) {
      return other.device_group == group && other.how == option.how;
    });
    if (own == options.end()) return fmt::format("has no times for device group {}", group);
    if (time_s(option.cost) < time_s(own->cost) * kBelowTolerance) {
      return fmt::format("takes less than on its devices of group {}", group);
    }
  }
  const bool on_its_own =
      std::find(groups.begin(), groups.end(), option.device_group) != groups.end();
  return on_its_own ? "" : fmt::format("has times of device group {}", option.device_group);
}

/// Whether the stage's form can be looked at.
bool has_degrees(const Stage& stage) {
  return !stage.own ||
         std::min({stage.dp, stage.tp, stage.cp, stage.own->ep, stage.own->micro_batch}) >= 1;
}

std::string chunk_options_fault(const Plan& plan) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    if (!has_degrees(stage)) return fmt::format("stage {} has a degree below 1", s + 1);
    const Parallelism form = form_of(plan, s);
    const std::vector<std::int32_t> groups = groups_of(plan.system, stage);
    for (const Chunk& chunk : stage.chunks) {
      if (chunk.options.size() != chunk.layers.size()) {
        return fmt::format("{} options for {} layers", chunk.options.size(), chunk.layers.size());
      }
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const auto layer = static_cast<std::size_t>(chunk.layers[i]);
        const std::int32_t kind = plan.profile.layers[layer].kind;
        if (kind < 0 || static_cast<std::size_t>(kind) >= plan.profile.kinds.size()) {
          return fmt::format("layer {} is of kind {}, which the profile lacks", layer, kind);
        }
        const auto options =
            static_cast<std::int64_t>(plan.profile.kinds[static_cast<std::size_t>(kind)].size());
        if (chunk.options[i] < 0 || chunk.options[i] >= options) {
          return fmt::format("layer {} has no option {}", layer, chunk.options[i]);
        }
        const Option& option = option_at(plan, chunk, i);
        if (!is_cost(option.cost))
          return fmt::format("layer {} has a cost below zero or infinite", layer);
        const std::string other = difference(option.how, form, stage.own.has_value());
        if (!other.empty()) return fmt::format("layer {} runs with {}", layer, other);
        if (!option.sharded.empty() && (form.tp == 1 || form.sequence_parallel)) {
          return fmt::format("layer {} is sharded by operators {}", layer,
                             form.tp == 1 ? "over one rank" : "under sequence parallelism");
        }
        const std::string elsewhere =
            group_fault(plan.profile.kinds[static_cast<std::size_t>(kind)], option, groups);
        if (!elsewhere.empty()) return fmt::format("layer {} {}", layer, elsewhere);
      }
    }
  }
  return "";
}

}  // namespace

std::string options_fault(const Plan& plan) {
  for (const SharedParameter& parameter : plan.profile.shared) {
    if (!(parameter.elements >= 0) || !std::isfinite(parameter.elements)) {
      return "a shared parameter has a size below zero or infinite";
    }
    for (const std::int32_t layer : parameter.layers) {
      if (layer < 0 || static_cast<std::size_t>(layer) >= plan.profile.layers.size()) {
        return fmt::format("layer {} of a shared parameter does not exist", layer);
      }
    }
  }
  return chunk_options_fault(plan);
}

std::string edges_fault(const Plan& plan) {
  // Position in the pipeline: all stages' first chunks, then all second chunks. Along every edge it
  // must not fall; then the parts form no circle and each is convex.
  const std::size_t layers = plan.profile.layers.size();
  std::vector<std::int64_t> position(layers, 0);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      for (const std::int32_t layer : stage.chunks[c].layers) {
        position[static_cast<std::size_t>(layer)] =
            static_cast<std::int64_t>(c * plan.stages.size() + s);
      }
    }
  }
  for (const ProfileEdge& edge : plan.profile.edges) {
    if (edge.source < 0 || edge.target < 0 || static_cast<std::size_t>(edge.source) >= layers ||
        static_cast<std::size_t>(edge.target) >= layers || edge.source == edge.target ||
        !(edge.bytes >= 0) || !std::isfinite(edge.bytes)) {
      return fmt::format("the edge {} -> {} is not valid", edge.source, edge.target);
    }
    const std::int64_t from = position[static_cast<std::size_t>(edge.source)];
    const std::int64_t to = position[static_cast<std::size_t>(edge.target)];
    if (from > to) {
      const auto stages = static_cast<std::int64_t>(plan.stages.size());
      return fmt::format(
          "stage {} (layer {}) hands over to stage {} (layer {}), which comes earlier in the "
          "pipeline",
          from % stages + 1, edge.source, to % stages + 1, edge.target);
    }
  }
  return "";
}

namespace {

/// For plans with stages of their own form: devices that exist, in rising order, as many as the
/// degrees ask for, none twice.
std::string own_devices_fault(const Plan& plan) {
  std::vector<bool> taken(static_cast<std::size_t>(plan.system.device_count), false);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const Parallelism form = form_of(plan, s);
    std::int64_t needed = 0;
    if (stage.tp != form.tp || stage.cp != form.cp || stage.dp != form.dp) {
      return fmt::format("stage {} has other degrees than the plan, but no form of its own", s + 1);
    }
    if (__builtin_mul_overflow(std::int64_t{form.tp} * form.cp, std::int64_t{form.dp}, &needed) ||
        static_cast<std::int64_t>(stage.devices.size()) != needed) {
      return fmt::format("stage {} has {} devices, its degrees ask for {}", s + 1,
                         stage.devices.size(), needed);
    }
    for (std::size_t i = 0; i < stage.devices.size(); ++i) {
      const std::int64_t device = stage.devices[i];
      if (device < 0 || device >= plan.system.device_count) {
        return fmt::format("stage {} has device {} of {}", s + 1, device, plan.system.device_count);
      }
      if (i > 0 && device <= stage.devices[i - 1]) {
        return fmt::format("the devices of stage {} are not in rising order", s + 1);
      }
      if (taken[static_cast<std::size_t>(device)]) {
        return fmt::format("device {} is used twice, again in stage {}", device, s + 1);
      }
      taken[static_cast<std::size_t>(device)] = true;
    }
  }
  return "";
}

}  // namespace

std::string devices_fault(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  std::vector<Axis> axes = p.order;
  std::sort(axes.begin(), axes.end());
  if (axes != std::vector<Axis>{Axis::tp, Axis::cp, Axis::dp, Axis::pp}) {
    return "the order does not name each axis once";
  }
  if (std::min({p.tp, p.cp, p.dp, p.pp}) < 1) return "a degree is below 1";
  if (!is_uniform(plan)) return own_devices_fault(plan);
  std::int64_t total = p.tp;
  for (const int degree : {p.cp, p.dp, p.pp}) {
    if (__builtin_mul_overflow(total, std::int64_t{degree}, &total)) return "the degrees overflow";
  }
  if (total > plan.system.device_count) {
    return fmt::format("{} devices needed, {} there", total, plan.system.device_count);
  }
  std::vector<bool> taken(static_cast<std::size_t>(total), false);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    if (stage.tp != p.tp || stage.cp != p.cp || stage.dp != p.dp) {
      return fmt::format("stage {} has degrees of its own", s + 1);
    }
    if (static_cast<std::int64_t>(stage.devices.size()) != total / p.pp) {
      return fmt::format("stage {} has {} devices, its degrees ask for {}", s + 1,
                         stage.devices.size(), total / p.pp);
    }
    for (const std::int64_t device : stage.devices) {
      if (device < 0 || device >= total) {
        return fmt::format("stage {} has device {} of {}", s + 1, device, total);
      }
      if (taken[static_cast<std::size_t>(device)]) {
        return fmt::format("device {} is used twice, again in stage {}", device, s + 1);
      }
      taken[static_cast<std::size_t>(device)] = true;
      // The device's place on the pipeline axis, read off its number digit by digit.
      std::int64_t rest = device;
      for (const Axis axis : p.order) {
        const std::int64_t degree = axis == Axis::tp   ? p.tp
                                    : axis == Axis::cp ? p.cp
                                    : axis == Axis::dp ? p.dp
                                                       : p.pp;
        if (axis == Axis::pp && rest % degree != static_cast<std::int64_t>(s)) {
          return fmt::format("device {} belongs to stage {} by the order of axes, not to stage {}",
                             device, rest % degree + 1, s + 1);
        }
        rest /= degree;
      }
    }
  }
  return "";
}

namespace {

/// Why a stage's experts cannot be spread so.
std::string expert_fault(const Parallelism& p) {
  if (p.replicate < 1 || p.dp % p.replicate != 0 || (p.replicate > 1 && !p.may_have_copies())) {
    return fmt::format("{} copies of the state need ZeRO-2 or 3 and must divide dp {}", p.replicate,
                       p.dp);
  }
  if (p.whole_experts && p.tp > 1 && !p.sequence_parallel) {
    return "experts that tp does not divide need sequence parallelism";
  }
  if (p.ep >= 1 && p.expert_axis() % p.ep == 0) return "";
  return fmt::format("ep {} does not divide dp {} x cp {}{}", p.ep, p.dp, p.cp,
                     p.whole_experts ? fmt::format(" x tp {}", p.tp) : "");
}

/// Whether a stage lists each of its passes once; whether each comes after what it needs is for the
/// replay.
std::string own_passes_fault(const StageConfig& own, std::int64_t micro_batches) {
  if (own.warm_up) return "has both a warm-up and an order of passes";
  std::int64_t forwards = 0, backwards = 0;
  for (const PassRun& run : own.passes) {
    std::int64_t ahead = 0, back = 0;
    if (std::min({run.forwards, run.backwards, run.times}) < 1) {
      return "has a run of passes with a count below 1";
    }
    if (__builtin_mul_overflow(run.forwards, run.times, &ahead) ||
        __builtin_mul_overflow(run.backwards, run.times, &back) ||
        __builtin_add_overflow(forwards, ahead, &forwards) ||
        __builtin_add_overflow(backwards, back, &backwards)) {
      return "lists more passes than can be counted";
    }
  }
  if (forwards == micro_batches && backwards == micro_batches) return "";
  return fmt::format("lists {} forward and {} backward passes for {} micro-batches", forwards,
                     backwards, micro_batches);
}

std::string own_batch_fault(const Plan& plan) {
  if (plan.parallel.vp != 1) return "interleaved stages cannot have degrees of their own";
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Parallelism form = form_of(plan, s);
    const std::int64_t round = std::int64_t{form.dp} * form.micro_batch;
    if (form.micro_batch < 1 || form.num_micro_batches < 1 || plan.global_batch % round != 0 ||
        form.num_micro_batches != plan.global_batch / round) {
      return fmt::format("stage {}: dp {} x micro-batch {} does not divide the global batch {}",
                         s + 1, form.dp, form.micro_batch, plan.global_batch);
    }
    if (const std::string fault = expert_fault(form); !fault.empty()) {
      return fmt::format("stage {}: {}", s + 1, fault);
    }
    const std::optional<StageConfig>& own = plan.stages[s].own;
    if (!own) continue;
    const bool passes = !own->passes.empty();
    if ((own->warm_up || passes) && form.schedule == ScheduleKind::gpipe) {
      return fmt::format("stage {} has {}, which GPipe does not know", s + 1,
                         passes ? "passes in an order of its own" : "a warm-up");
    }
    if (passes) {
      const std::string fault = own_passes_fault(*own, form.num_micro_batches);
      if (!fault.empty()) return fmt::format("stage {} {}", s + 1, fault);
    }
    if (!own->warm_up) continue;
    if (*own->warm_up < 1 || *own->warm_up > form.num_micro_batches) {
      return fmt::format("stage {} has {} micro-batches and a warm-up of {}", s + 1,
                         form.num_micro_batches, *own->warm_up);
    }
  }
  return "";
}

}  // namespace

std::string batch_fault(const Plan& plan) {
  if (!is_uniform(plan)) return own_batch_fault(plan);
  const Parallelism& p = plan.parallel;
  if (p.micro_batch < 1 || p.num_micro_batches < 1) return "a micro-batch count is below 1";
  std::int64_t samples = p.num_micro_batches;
  if (__builtin_mul_overflow(samples, std::int64_t{p.micro_batch}, &samples) ||
      __builtin_mul_overflow(samples, std::int64_t{p.dp}, &samples) ||
      samples != plan.global_batch) {
    return fmt::format("dp {} x micro-batch {} x {} micro-batches is not the global batch {}", p.dp,
                       p.micro_batch, p.num_micro_batches, plan.global_batch);
  }
  return expert_fault(p);
}

}  // namespace braid

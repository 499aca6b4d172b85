#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/plan/shared_gradients.h"
#include "braid/plan/stage_context.h"
#include "braid/planners/mixed/mixed_planner.h"
#include "braid/profile/split_limits.h"
#include "braid/system/links.h"

namespace braid {
namespace {

/// The cluster is cut into no more than this many stages.
constexpr std::int64_t kMostParts = 64;

/// Stages that are tried in the time that a message of one device takes to work out.
constexpr std::int64_t kStepsOfDevice = 5;

/// Shard groups of `size` devices that a run has room for: inside nodes, or of whole nodes.
std::int64_t blocks_of(const DeviceRun& run, std::int64_t size) {
  const bool inside = size <= run.devices_per_node && run.devices_per_node % size == 0;
  const bool whole = size > run.devices_per_node && size % run.devices_per_node == 0;
  return inside || whole ? run.count / size : 0;
}

/// Degrees of context parallelism that are tried where none are asked for.
std::vector<int> degrees_inside_nodes(const std::vector<DeviceRun>& runs) {
  std::set<int> degrees = {1};
  for (const DeviceRun& run : runs) {
    for (int degree = 2; degree <= run.devices_per_node; ++degree) {
      if (run.devices_per_node % degree == 0) degrees.insert(degree);
    }
  }
  return {degrees.begin(), degrees.end()};
}

}  // namespace

MixedFamily::MixedFamily(MixedJob& job, const SpaceOptions& space, std::int64_t round_samples,
                         Depth depth, Known& shared, const std::optional<Configuration>& form)
    : job_(job),
      space_(space),
      round_samples_(round_samples),
      depth_(depth),
      form_(form),
      known_(shared),
      places_(shared.places),
      split_(job.chain().layers->limits(job.system().device_count)) {
  const Job& of = job.job();
  const ChainJob& chain = job.chain();
  const auto layers = static_cast<std::int32_t>(chain.kind_of_layer.size());
  problem_.micro_batches = of.global_batch / round_samples;
  for (const DeviceRun& run : job.runs()) {
    problem_.capacity.push_back(static_cast<std::int32_t>(run.count));
  }
  problem_.least_stages = depth.least;
  problem_.most_stages = depth.most;

  // Bytes per sample of what a cut surely hands over.
  problem_.cut_class.assign(at(layers) + 1, 0);
  bytes_of_class_ = {0};
  for (const ProfileEdge& edge : chain.edges) {
    if (edge.target != edge.source + 1) continue;
    const auto known = std::find(bytes_of_class_.begin(), bytes_of_class_.end(), edge.bytes);
    problem_.cut_class[at(edge.target)] =
        static_cast<std::int32_t>(known - bytes_of_class_.begin());
    if (known == bytes_of_class_.end()) bytes_of_class_.push_back(edge.bytes);
  }
  problem_.cut_classes = static_cast<std::int32_t>(bytes_of_class_.size());
  if (chain.branched) {
    problem_.readers.resize(at(layers));
    for (const ProfileEdge& edge : chain.edges) {
      problem_.readers[at(edge.source)].push_back(edge.target);
    }
  }

  if (form) {
    add_forms_of(*form);
  } else {
    add_degrees();
  }
  problem_.costs = this;
  if (!exchanges()) return;
  std::map<std::vector<std::int32_t>, std::vector<double>> least;
  std::vector<double> bytes;
  for (std::size_t config = 0; config < variants_.size(); ++config) {
    std::vector<double>& known = least[problem_.configs[config].takes];
    for (std::size_t variant = 0; variant < variants_[config].size(); ++variant) {
      fill_shared_bytes(static_cast<std::int32_t>(config), static_cast<std::int32_t>(variant),
                        bytes);
      if (known.empty()) known = bytes;
      for (std::size_t i = 0; i < bytes.size(); ++i) known[i] = std::min(known[i], bytes[i]);
    }
  }
  for (const MixedConfig& config : problem_.configs)
    least_shared_bytes_.push_back(least[config.takes]);
}

/// All degrees that the space has.
void MixedFamily::add_degrees() {
  const std::int64_t devices =
      std::accumulate(problem_.capacity.begin(), problem_.capacity.end(), std::int64_t{0});
  const std::vector<int> cps =
      space_.cp.list().empty() ? degrees_inside_nodes(job_.runs()) : space_.cp.list();
  const int most_split = space_.cp.list().empty() ? cps.back() : std::numeric_limits<int>::max();
  for (std::int64_t dp = 1; dp <= std::min(devices, round_samples_); ++dp) {
    if (round_samples_ % dp != 0 || !space_.dp.allows(dp)) continue;
    const std::int64_t micro_batch = round_samples_ / dp;
    if (!space_.micro_batch.allows(micro_batch)) continue;
    for (std::int64_t tp = 1; tp <= devices / dp; ++tp) {
      const bool automatic =
          std::binary_search(split_.automatic.begin(), split_.automatic.end(), tp);
      if (!space_.tp.allows(tp)) continue;
      if (!automatic && !divides_manually(split_, static_cast<int>(tp))) continue;
      Configuration degrees;
      degrees.dp = static_cast<int>(dp);
      degrees.tp = static_cast<int>(tp);
      degrees.micro_batch = static_cast<int>(micro_batch);
      degrees.num_micro_batches = problem_.micro_batches;
      for (const int cp : space_.cp.among(cps)) {
        degrees.cp = cp;
        if (cp > 1 && cp * tp > most_split) continue;
        if (degrees.cp * dp * tp * kMostParts >= devices) add_forms(degrees);
      }
    }
  }
}

void MixedFamily::add_forms(const Configuration& degrees) {
  const std::int64_t replicas = std::int64_t{degrees.dp} * degrees.cp;
  const std::int64_t most_ep = split_.experts > 0 ? std::min(split_.experts, replicas) : 1;
  for (std::int64_t ep = 1; ep <= most_ep; ++ep) {
    if (!space_.ep.allows(ep) || replicas % ep != 0) continue;
    if (ep % degrees.cp != 0 && degrees.cp % ep != 0) continue;
    Configuration config = degrees;
    config.ep = static_cast<int>(ep);
    config.sequence_parallel = config.tp > 1 && space_.sequence_parallel.value_or(true);
    if (!refusal(split_, to_execution(config)).empty() && !space_.sequence_parallel) {
      config.sequence_parallel = false;
    }
    const bool manual = divides_manually(split_, config.tp);
    if (manual && refusal(split_, to_execution(config)).empty()) add_forms_of(config);
    if (!std::binary_search(split_.automatic.begin(), split_.automatic.end(), config.tp)) continue;
    config.sequence_parallel = false;
    if (space_.sequence_parallel.value_or(false) ||
        !refusal(split_, to_execution(config)).empty()) {
      continue;
    }
    for (const ShardingKind sharding : {ShardingKind::fastest, ShardingKind::smallest}) {
      config.sharding = sharding;
      add_forms_of(config);
    }
  }
}

/// The config on devices of every kind that have room for it, and on some of several.
void MixedFamily::add_forms_of(const Configuration& config) {
  const std::vector<DeviceRun>& runs = job_.runs();
  const std::int64_t size = std::int64_t{config.tp} * config.cp;
  const std::int64_t dp = config.dp;
  std::vector<std::int64_t> blocks;
  blocks.reserve(runs.size());
  for (const DeviceRun& run : runs) blocks.push_back(blocks_of(run, size));
  std::vector<std::vector<std::int32_t>> kinds;
  const auto add = [&](const std::vector<std::int64_t>& taken) {
    std::vector<std::int32_t> takes;
    takes.reserve(taken.size());
    for (const std::int64_t n : taken) takes.push_back(static_cast<std::int32_t>(n * size));
    if (std::find(kinds.begin(), kinds.end(), takes) == kinds.end()) kinds.push_back(takes);
  };
  for (std::size_t r = 0; r < runs.size(); ++r) {
    std::vector<std::int64_t> taken(runs.size(), 0);
    if (blocks[r] >= dp) {
      taken[r] = dp;
      add(taken);
    }
    for (std::size_t s = r + 1; s < runs.size(); ++s) {
      if (blocks[r] == 0 || blocks[s] == 0 || blocks[r] + blocks[s] < dp) continue;
      // Any split of a few; of many what whole stages leave over of either kind, or as many of
      // each as there are.
      std::vector<std::int64_t> parts = {blocks[r] % dp, dp - blocks[s] % dp,
                                         dp * blocks[r] / (blocks[r] + blocks[s])};
      for (std::int64_t part = 1; part < std::min<std::int64_t>(dp, 5); ++part) {
        if (dp <= 4) parts.push_back(part);
      }
      for (const std::int64_t part : parts) {
        if (part < 1 || part >= dp || part > blocks[r] || dp - part > blocks[s]) continue;
        taken.assign(runs.size(), 0);
        taken[r] = part;
        taken[s] = dp - part;
        add(taken);
      }
    }
  }
  // And over all kinds, as they come.
  std::vector<std::int64_t> taken(runs.size(), 0);
  std::int64_t left = dp;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    taken[r] = std::min(left, blocks[r]);
    left -= taken[r];
  }
  if (left == 0) add(taken);
  for (const std::vector<std::int32_t>& takes : kinds) add_form(config, takes);
}

bool MixedFamily::saves_memory(const Configuration& variant) const {
  return (!space_.recompute && variant.recompute != Recompute::none) ||
         (!space_.zero && variant.zero >= Zero::gradients) || variant.offload_optimizer;
}

std::vector<Configuration> MixedFamily::variants_of(const Configuration& degrees) const {
  if (form_) return {*form_};
  std::vector<Configuration> variants;
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (space_.recompute && *space_.recompute != recompute) continue;
    for (const Zero zero : {Zero::optimizer, Zero::none, Zero::gradients, Zero::parameters}) {
      if (space_.zero ? *space_.zero != zero : degrees.dp * degrees.cp == 1 && zero != Zero::none) {
        continue;
      }
      for (const bool offload : {false, true}) {
        if (offload && !space_.allow_offload) continue;
        Configuration variant = degrees;
        variant.recompute = recompute;
        variant.zero = zero;
        variant.offload_optimizer = offload;
        variants.push_back(variant);
      }
    }
  }
  return variants;
}

void MixedFamily::add_form(const Configuration& degrees, const std::vector<std::int32_t>& takes) {
  MixedConfig config;
  config.takes = takes;
  const std::vector<std::int32_t> none(takes.size(), 0);
  const std::vector<std::int64_t> on = places_.devices({none, takes});
  const std::vector<std::size_t> groups = groups_of(job_.system(), on);
  // Replicas on other devices would divide their layers otherwise.
  if (degrees.sharding != ShardingKind::manual &&
      (groups.size() > 1 || !job_.is_distinct(degrees, groups.front()))) {
    return;
  }
  double available = kInfinity;
  double host = available;
  for (const std::size_t group : groups) {
    const Chip& chip = job_.system().groups[group].chip;
    if (!matmul_peak(chip, job_.job().precision.matmul)) return;
    available = std::min(available, usable_bytes(chip));
    host = std::min(host, chip.host ? chip.host->bytes : 0);
  }
  std::vector<Configuration> variants;
  for (const Configuration& variant : variants_of(degrees)) {
    if (variant.offload_optimizer && host <= 0) continue;
    MixedVariant& added = config.variants.emplace_back();
    added.layers = job_.layers(variant, groups, depth_.stages == Stages::one);
    added.saves_memory = saves_memory(variant);
    DataParallelContext context;
    context.precision = job_.job().precision;
    context.zero = variant.zero;
    context.offload_optimizer = variant.offload_optimizer;
    context.dense_ranks = static_cast<double>(variant.dp) * variant.cp;
    context.expert_ranks = context.dense_ranks / variant.ep;
    added.memory = memory_form(context, available);
    added.memory.host_available_bytes = host;
    variants.push_back(variant);
  }
  if (variants.empty()) return;
  problem_.configs.push_back(std::move(config));
  variants_.push_back(std::move(variants));
}

bool MixedFamily::allows(std::span<const std::int32_t> used, std::int32_t config) {
  // Shard groups keep to nodes, or to whole ones.
  const Configuration& degrees = variants_[at(config)].front();
  const std::int64_t size = std::int64_t{degrees.tp} * degrees.cp;
  for (std::size_t r = 0; r < used.size(); ++r) {
    if (takes_of(config)[r] == 0) continue;
    const DeviceRun& run = job_.runs()[r];
    const std::int64_t start = run.count - used[r] - takes_of(config)[r];
    if (start % std::min(size, run.devices_per_node) != 0) return false;
  }
  return !form_ || depth_.least != depth_.most || fills_nodes(used, config);
}

/// Whether ranks that follow one another, from the first stage to the last, lie on nodes that
/// follow one another: a kind of device is left and come to between nodes alone.
bool MixedFamily::fills_nodes(Used used, std::int32_t config) const {
  const std::vector<std::int32_t>& takes = takes_of(config);
  const auto kinds = std::count_if(takes.begin(), takes.end(), [](auto n) { return n > 0; });
  const std::int64_t size = std::accumulate(takes.begin(), takes.end(), std::int64_t{0});
  const std::int64_t behind = std::accumulate(used.begin(), used.end(), std::int64_t{0});
  const bool is_first = behind + size == size * depth_.most;
  for (std::size_t r = 0; r < used.size(); ++r) {
    const DeviceRun& run = job_.runs()[r];
    const auto is_between = [&](std::int64_t taken) {
      return taken == 0 || (run.count - taken) % run.devices_per_node == 0;
    };
    const bool is_on = takes[r] > 0;
    if ((!is_on || is_first || kinds > 1) && !is_between(used[r] + takes[r])) return false;
    if (kinds > 1 && !is_between(used[r])) return false;
  }
  return true;
}

std::vector<Configuration> MixedFamily::forms() const {
  std::vector<Configuration> forms;
  for (const std::vector<Configuration>& variants : variants_) {
    forms.insert(forms.end(), variants.begin(), variants.end());
  }
  std::sort(forms.begin(), forms.end());
  forms.erase(std::unique(forms.begin(), forms.end()), forms.end());
  return forms;
}

double MixedFamily::handover_s(std::span<const std::int32_t> used, std::int32_t below,
                               std::int32_t above, std::int32_t cut_class) {
  const double bytes = bytes_of_class_[at(cut_class)];
  if (bytes <= 0) return 0;
  const Parallelism from = to_parallelism(variants_[at(above)].front());
  const Parallelism to = to_parallelism(variants_[at(below)].front());
  const ProfileEdge edge{0, 1, bytes};
  std::vector<std::int32_t> next(used.begin(), used.end());
  for (std::size_t r = 0; r < next.size(); ++r) next[r] += takes_of(below)[r];
  const MixedPlace receivers{used, takes_of(below)}, senders{next, takes_of(above)};
  return (places_.message_s(senders, receivers, handover_bytes(edge, from, to)) +
          places_.message_s(receivers, senders, handover_bytes(edge, to, from))) /
         2;
}

void MixedFamily::fill_shared_bytes(std::int32_t config, std::int32_t variant,
                                    std::vector<double>& bytes) const {
  const std::vector<std::int32_t> ends = {
      0, static_cast<std::int32_t>(job_.chain().kind_of_layer.size()) - 1};
  const Parallelism parallel = to_parallelism(variants_[at(config)][at(variant)]);
  bytes.clear();
  for (const SharedParameter& parameter : job_.chain().shared) {
    // Others may lie in one stage, or in more than two.
    bytes.push_back(parameter.layers == ends
                        ? shared_gradient_bytes(parameter, parallel, job_.job().precision)
                        : 0);
  }
}

double MixedFamily::message_s(Used used, std::int32_t first, std::int32_t last,
                              std::span<const double> bytes) {
  const std::vector<std::int32_t> none(used.size(), 0);
  const MixedPlace at_start{used, takes_of(first)}, at_end{none, takes_of(last)};
  const std::int32_t ends[] = {0, 1};
  double sum_s = 0;
  for (const double of_parameter : bytes) {
    sum_s += ring_of_stages_s(
        ends, of_parameter, [&](std::int32_t from, std::int32_t, double message_bytes) {
          return from == 0 ? places_.message_s(at_start, at_end, message_bytes)
                           : places_.message_s(at_end, at_start, message_bytes);
        });
  }
  return sum_s;
}

double MixedFamily::exchange_s(std::span<const std::int32_t> used, std::int32_t first,
                               std::int32_t variant, std::int32_t last) {
  std::vector<double> bytes;
  fill_shared_bytes(first, variant, bytes);
  return message_s(used, first, last, bytes);
}

bool MixedFamily::exchanges() const {
  return !job_.chain().shared.empty() && depth_.stages != Stages::one;
}

double MixedFamily::least_exchange_s(std::span<const std::int32_t> used, std::int32_t first,
                                     std::int32_t last) {
  return message_s(used, first, last, least_shared_bytes_[at(first)]);
}

SyncRates MixedFamily::rates(std::span<const std::int32_t> used, std::int32_t config,
                             std::int32_t variant) {
  const Configuration& how = variants_[at(config)][at(variant)];
  Known::RateKey key = {how.tp,
                        how.cp,
                        how.ep,
                        how.dp,
                        static_cast<std::int64_t>(how.zero),
                        how.offload_optimizer ? 1 : 0};
  const MixedPlace place{used, takes_of(config)};
  key.insert(key.end(), used.begin(), used.end());
  key.insert(key.end(), takes_of(config).begin(), takes_of(config).end());
  const auto [found, fresh] = known_.rates.try_emplace(std::move(key));
  if (!fresh) return found->second;
  const std::vector<std::int64_t> devices = places_.devices(place);
  places_.meet(std::ssize(devices));
  return found->second = rates_of(how, devices);
}

SyncRates MixedFamily::rates_of(const Configuration& variant,
                                std::span<const std::int64_t> devices) const {
  StageParameters all;
  for (const ChainLayer& layer : job_.layers(variant, groups_of(job_.system(), devices))) {
    all.dense += layer.dense_parameters;
    all.expert += layer.expert_parameters;
  }
  const StageContext context(devices, to_parallelism(variant), job_.job().precision, job_.system());
  return sync_rates(all, context.data_parallel());
}

std::int64_t MixedFamily::work() const { return kStepsOfDevice * places_.devices_met(); }

std::vector<PlacedStage> MixedFamily::stages(const MixedPipeline& pipeline) const {
  std::vector<PlacedStage> stages;
  stages.reserve(pipeline.stages.size());
  for (const MixedStage& stage : pipeline.stages) {
    PlacedStage placed;
    placed.begin = stage.begin;
    placed.end = stage.end;
    placed.config = variants_[at(stage.config)][at(stage.variant)];
    placed.devices = places_.devices({stage.used, takes_of(stage.config)});
    stages.push_back(std::move(placed));
  }
  return stages;
}

}  // namespace braid

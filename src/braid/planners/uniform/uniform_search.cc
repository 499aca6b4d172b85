#include "braid/planners/uniform/uniform_search.h"

#include <bit>
#include <cassert>
#include <numeric>
#include <utility>

#include "braid/base/rounding.h"
#include "braid/planners/job/assignment_bound.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/uniform/lacking_memory.h"
#include "braid/planners/uniform/searched_space.h"
#include "braid/planners/uniform/single_changes.h"

namespace braid {
namespace {

bool offloads(const Configuration& c) {
  return c.offload_optimizer || c.offload_weights || c.offload_activations;
}

/// Layers that move gain less than this share nearly always, and less than that mostly
/// (docs/design.md, "braid").
constexpr double kMayBecomeBest = 1.06, kNearlyBest = 1.02;
/// Plans that are not nearly the best of which layers are moved.
constexpr int kMostOthers = 48;
/// Stages of the assignments that are timed so, all together, fastest plans first: some seconds
/// where there are hundreds of stages, which are timed as a graph.
constexpr std::int64_t kMostMovedStages = 6'000'000;

SpaceLimits with_dimensions(SpaceLimits limits, int most) {
  limits.most_dimensions = most;
  return limits;
}

ChainJob dealt_out(ChainJob chain, const TrainerLimits& can) {
  chain.dealt_evenly = !can.uneven_stages;
  return chain;
}

}  // namespace

UniformSearch::UniformSearch(SearchGround& ground, SpacePart part, const Budget& budget,
                             Progress progress, Aim aim, double below_s)
    : aim_(aim),
      chip_(ground.chain.system->groups.front().chip),
      limits_(with_dimensions(ground.limits, part.most_dimensions)),
      space_(std::move(part)),
      budget_(budget),
      progress_(std::move(progress)),
      data_degrees_(data_degrees(limits_, space_)),
      ground_(ground),
      chain_(dealt_out(ground.chain, space_.can)),
      tables_(ground.tables),
      scratch_(ground.scratch),
      best_(static_cast<std::size_t>(std::max(1, space_.top)), below_s) {}

/// Those of all configurations of the family: ep divides dp·cp, or dp·cp·tp, so that dp is a
/// multiple of what of ep does not divide cp, or cp·tp.
std::vector<int> UniformSearch::micro_batches_of_family(const Configuration& family) const {
  assert(family.ep >= 1);
  const std::int64_t least_dp = space_.dp.single()
                                    ? *space_.dp.single()
                                    : family.ep / std::gcd(family.ep, inner_expert_axis(family));
  if (limits_.global_batch % least_dp != 0) return {};
  return micro_batches_of(limits_.global_batch / least_dp, space_);
}

FamilyBounds UniformSearch::bounds_of(const Configuration& family,
                                      std::span<const int> micro_batches,
                                      const SpaceOptions& without_offload) {
  std::map<Configuration, FamilyBounds>& known = ground_.family_bounds;
  const auto at = ground_.keeps_bounds ? known.end() : known.find(family);
  FamilyBounds bounds = at != known.end() ? at->second
                                          : family_bounds(chain_, ground_.bounding(), family,
                                                          micro_batches, limits_, without_offload);
  if (ground_.keeps_bounds) known.emplace(family, bounds);
  if (chip_.host && space_.allow_offload) bounds.state_bytes = bounds.stash_bytes = 0;
  return bounds;
}

void UniformSearch::push_family(OpenNode family, std::int64_t most) {
  family.replicas = most_replicas(data_degrees_, limits_, space_, most);
  if (family.replicas < 1 || (space_.all_devices && family.replicas < most)) return;
  family.bound_s = families_[family.family].time_s(family.replicas, limits_.global_batch);
  ++work_;
  if (family.bound_s < best_.cutoff_s()) return open_.push(family);
  set_aside(family);
}

void UniformSearch::set_aside(const OpenNode& node) {
  if (ground_.keeps_aside && !offloads(node.range.configuration)) aside_.push_back(node);
}

void UniformSearch::push_split(const Configuration& split) {
  std::map<Configuration, double>& known = ground_.split_bounds_s;
  if (const auto at = known.find(split);
      !ground_.keeps_bounds && at != known.end() && at->second >= best_.cutoff_s()) {
    return;
  }
  const double bound_s = split_bound_s(chain_, ground_.bounding(), split, limits_.global_batch,
                                       micro_batches(split, limits_, space_),
                                       tensor_shardings(split, limits_, space_));
  ++work_;
  if (ground_.keeps_bounds) known.emplace(split, bound_s);
  const OpenNode node = {bound_s, OpenNode::Kind::split, {split, 1}};
  if (bound_s >= best_.cutoff_s()) return set_aside(node);
  open_.push(node);
}

void UniformSearch::push(const ConfigurationRange& range) {
  is_empty_ = false;
  // Of an interleaved configuration the same whatever vp is.
  const Configuration& first = range.configuration;
  if (!ground_.bounding().is_distinct(first) || (leaves_out_offload_ && offloads(first))) return;
  ++work_;
  if (ground_.least == nullptr) return push_priced(range);
  const OpenNode node = {least_time_s(first), OpenNode::Kind::unpriced, range};
  if (node.bound_s >= best_.cutoff_s()) return set_aside(node);
  open_.push(node);
}

double UniformSearch::least_time_s(const Configuration& configuration) {
  const LayerTable& table = ground_.least->sums_at(configuration);
  fill_fullest_syncs(table, configuration.pp,
                     scratch_.evaluator.context(configuration, zero_around(configuration.zero)),
                     scratch_.syncs);
  const double even_s = (static_cast<double>(configuration.num_micro_batches) * table.time_s() +
                         optimizer_share(chain_, table, configuration).all_s) /
                        configuration.pp;
  return std::max(even_s * kBelowRounding, fullest_load_s(table, configuration, scratch_.syncs));
}

void UniformSearch::push_priced(const ConfigurationRange& range) {
  const Configuration& first = range.configuration;
  double bound_s = configuration_bound_s(chain_, tables_, first);
  if (bound_s >= best_.cutoff_s()) return set_aside({bound_s, OpenNode::Kind::range, range});
  const LayerTable& table = tables_.sums_at(first);
  fill_fullest_syncs(table, first.pp, scratch_.evaluator.context(first, zero_around(first.zero)),
                     scratch_.syncs);
  bound_s = std::max(bound_s, fullest_load_s(table, first, scratch_.syncs));
  const OpenNode node = {bound_s, OpenNode::Kind::range, range};
  if (bound_s >= best_.cutoff_s()) return set_aside(node);
  open_.push(node);
}

bool UniformSearch::is_superfluous(const Configuration& configuration, const Configuration& next,
                                   const Assessment& assessment) const {
  // Offload comes after recomputation and sharding, the optimizer's state last: what would be
  // reached by going on from an offload is reached from the same configuration without it, which
  // must not have fit either.
  if (configuration.offload_optimizer) return true;
  const bool moves = configuration.offload_activations || configuration.offload_weights;
  const bool offloads_more = next.offload_optimizer ||
                             next.offload_activations != configuration.offload_activations ||
                             next.offload_weights != configuration.offload_weights;
  if (moves && !offloads_more) return true;
  // The same assignments are tried when the optimizer's state moves.
  return next.offload_optimizer && configuration.schedule != ScheduleKind::one_f_one_b &&
         assessment.needed_without_optimizer_bytes > usable_bytes(chip_) * kAboveTolerance;
}

// Why it is enough to relax what memory bounds. Each trade (recomputation, a ZeRO stage beyond
// those that are looked at anyway, an offload) leaves every pass, synchronisation and optimizer
// step as long as it was or makes it longer, and lengthening anything shortens no iteration. So
// where the fastest of all assignments that are looked at for a configuration fits, the same and
// any other takes no less after a trade, and after any trades that follow it. Configurations of
// 1F1B which the search by path did not see bounded by memory are held against assignments that do
// not fit when gaps are closed, and relaxed then.
//
// Which configurations are superfluous follows from the same: whatever trades make up a
// configuration, it is reached by taking recomputation and ZeRO first, then the offloads of
// activations and weights, the optimizer's last; if one on that way is not bounded by memory, it
// beats all behind it.
void UniformSearch::relax(const ConfigurationRange& range, const Assessment& assessment) {
  const bool has_host = chip_.host.has_value();
  for (const Configuration& next : relaxations(range.configuration, limits_, space_, has_host)) {
    if (is_superfluous(range.configuration, next, assessment)) continue;
    relaxed_.add({next, range.most_vp}, [this](const ConfigurationRange& part) { push(part); });
  }
}

bool UniformSearch::is_hopeless(const ConfigurationRange& range) {
  if (aim_ == Aim::fit) return is_hopeless_at_any_times(range);
  return is_hopeless(range, memory_floor(chain_, tables_, range, scratch_));
}

bool UniformSearch::is_hopeless_at_any_times(const ConfigurationRange& range) {
  return is_hopeless(range, memory_floor_at_any_times(chain_, ground_.bounding(), range, scratch_));
}

bool UniformSearch::is_hopeless(const ConfigurationRange& range, const MemoryFloor& least) {
  if (least.device_bytes <= usable_bytes(chip_) * kAboveTolerance) return false;
  if (best_.found().empty()) hopeless_.push_back({least.device_bytes, least.configuration});
  Assessment assessment;
  assessment.needed_without_optimizer_bytes = least.without_optimizer_bytes;
  relax(range, assessment);
  return true;
}

void UniformSearch::note_without_offload(const FoundPlan& found) {
  if (offloads(found.configuration)) return;
  const bool better =
      !without_offload_ || std::tie(found.time_s, found.configuration) <
                               std::tie(without_offload_->time_s, without_offload_->configuration);
  if (better) without_offload_ = found;
}

double UniformSearch::least_of_interest_s(const Configuration& configuration) const {
  return best_.cutoff_s() * (leaves_assignments_out(chain_, configuration) ? kMayBecomeBest : 1);
}

void UniformSearch::look_at(const Configuration& configuration, double bound_s) {
  const double cutoff_s = best_.cutoff_s();
  Assessment assessment =
      assess(chain_, tables_, configuration, least_of_interest_s(configuration), scratch_);
  // Of other classes of plans the best is wanted too, though the same without a trade is faster.
  if (assessment.memory_bound || best_.keeps_others())
    relax({configuration, configuration.vp}, assessment);
  if (!assessment.feasible) {
    // Once there is a plan, nobody asks what is missing.
    if (best_.found().empty()) {
      keep_nearest(chain_, tables_, configuration, assessment.needed_bytes, scratch_, nearest_);
    }
    return;
  }
  const bool is_faster = assessment.iteration_time_s > 0 && assessment.iteration_time_s < cutoff_s;
  if (!is_faster) set_aside({bound_s, OpenNode::Kind::range, {configuration, configuration.vp}});
  if (assessment.iteration_time_s == 0) return;
  if (configuration.schedule == ScheduleKind::one_f_one_b && configuration.pp > 1 &&
      !chain_.dealt_evenly) {
    unproven_.push_back({assessment.path_s, configuration, assessment.memory_bound});
    if (ground_.keeps_aside && is_faster && !offloads(configuration)) {
      unproven_aside_.push_back(unproven_.back());
    }
  }
  FoundPlan found{assessment.iteration_time_s, configuration, std::move(assessment.ends)};
  if (leaves_assignments_out(chain_, configuration) && !found.ends.empty())
    nearly_best_.push_back(found);
  if (found.time_s >= cutoff_s) return;
  note_without_offload(found);
  best_.add(std::move(found));
}

void UniformSearch::step(const OpenNode& node) {
  if (node.kind == OpenNode::Kind::family) {
    for (const Configuration& split :
         splits_of_family(node.range.configuration, node.replicas, limits_, space_)) {
      push_split(split);
    }
    // Fewer copies hold no less each.
    const double fewer_bytes =
        families_[node.family].device_bytes(node.replicas - 1, limits_.layers);
    if (!space_.all_devices && fewer_bytes <= usable_bytes(chip_) * kAboveTolerance) {
      push_family(node, node.replicas - 1);
    }
    return;
  }
  if (node.kind == OpenNode::Kind::split) {
    for (const ConfigurationRange& range :
         ranges_of_split(node.range.configuration, limits_, space_)) {
      push(range);
    }
    return;
  }
  if (node.kind == OpenNode::Kind::unpriced) {
    // Most of what is not bounded by least times does not fit: then nobody asks for the real ones.
    if (!is_hopeless_at_any_times(node.range)) return push_priced(node.range);
    ++evaluated_;
    return;
  }
  step_range(node);
}

void UniformSearch::step_range(const OpenNode& node) {
  ++evaluated_;
  const Configuration& configuration = node.range.configuration;
  if (leaves_assignments_out(chain_, configuration))
    others_bound_s_ = std::min(others_bound_s_, node.bound_s);
  const auto look = [&] {
    if (has_few_assignments(chain_, configuration) &&
        !may_be_faster(chain_, tables_, configuration, least_of_interest_s(configuration))) {
      return set_aside({node.bound_s, OpenNode::Kind::range, {configuration, configuration.vp}});
    }
    if (is_hopeless({configuration, configuration.vp})) return;
    if (aim_ == Aim::fit && depends_on_times(configuration)) {
      may_fit_ = true;
    } else {
      look_at(configuration, node.bound_s);
    }
  };
  if (node.range.is_single()) return look();
  // What less memory takes of all larger vp changes slowly with the first of them.
  if (std::has_single_bit(static_cast<std::uint32_t>(configuration.vp)) &&
      is_hopeless(node.range)) {
    return;
  }
  OpenNode rest = node;
  ++rest.range.configuration.vp;
  open_.push(rest);
  look();
}

bool UniformSearch::search() {
  while (!open_.empty() && open_.top().bound_s < best_.cutoff_s() && !is_enough()) {
    if (budget_.work > 0 && evaluated_ >= budget_.work) return false;
    const OpenNode node = open_.top();
    open_.pop();
    step(node);
    if (progress_ && evaluated_ % 64 == 0) {
      progress_(best_.best_s(), node.bound_s, evaluated_);
    }
  }
  return true;
}

void UniformSearch::find() {
  SpaceOptions without_offload = space_;
  without_offload.allow_offload = false;
  for (const Family& family : families(limits_, space_)) {
    const std::vector<int> sizes = micro_batches_of_family(family.configuration);
    if (sizes.empty()) continue;
    OpenNode node;
    node.kind = OpenNode::Kind::family;
    node.range.configuration = family.configuration;
    node.family = families_.size();
    families_.push_back(bounds_of(family.configuration, sizes, without_offload));
    push_family(node, family.most_replicas);
    if (progress_) progress_(best_.best_s(), 0, evaluated_);
  }
  look_through(space_);
}

void UniformSearch::find_beside(FoundPlan fastest) {
  best_.keep_first(std::move(fastest));
  find();
}

void UniformSearch::look_through(const SpaceOptions& space) {
  exhausted_ = !search();
  if (is_enough()) return;
  while (!exhausted_ && !unproven_.empty()) {
    const ClosedGap closed =
        close_gap(chain_, tables_, std::exchange(unproven_, {}), best_, evaluated_, scratch_);
    residual_bound_s_ = std::min(residual_bound_s_, closed.residual_bound_s);
    for (const Configuration& configuration : closed.memory_bound) {
      relax({configuration, configuration.vp}, {});
    }
    exhausted_ = !search();
  }
  for (const BoundedConfiguration& node : unproven_) {
    residual_bound_s_ = std::min(residual_bound_s_, node.bound_s);
  }
  if (!exhausted_ && !best_.found().empty()) move_layers(space);
}

void UniformSearch::move_layers(const SpaceOptions& space) {
  std::vector<FoundPlan> nearly_best = std::exchange(nearly_best_, {});
  std::ranges::sort(nearly_best, {}, [](const FoundPlan& plan) {
    return std::tie(plan.time_s, plan.configuration);
  });
  // Changes of these may lead further than those of what is faster with layers moved.
  std::vector<FoundPlan> starts = best_.found();
  int others = 0;
  std::int64_t stages_left = kMostMovedStages;
  for (FoundPlan& plan : nearly_best) {
    if (plan.time_s >= best_.cutoff_s() * kMayBecomeBest) break;
    if (leaves_out_offload_ && offloads(plan.configuration)) continue;
    if (plan.time_s >= best_.cutoff_s() * kNearlyBest && ++others > kMostOthers) break;
    if (stages_left <= 0) break;
    const auto stages = std::ssize(plan.ends);
    const std::int64_t before = evaluated_;
    best_.add(with_moved_layers(chain_, tables_, std::move(plan), evaluated_, scratch_));
    stages_left -= (evaluated_ - before) * stages;
  }
  for (const FoundPlan& plan : best_.found()) {
    const bool is_known = std::any_of(starts.begin(), starts.end(), [&](const FoundPlan& start) {
      return start.configuration == plan.configuration && start.ends == plan.ends;
    });
    if (!is_known) starts.push_back(plan);
  }
  for (const FoundPlan& plan : starts) {
    best_.add(with_single_changes(chain_, tables_, plan, {limits_, space}, evaluated_, scratch_));
  }
}

void UniformSearch::go_on_without_offload() {
  SpaceOptions space = space_;
  space.top = 1;
  space.allow_offload = false;
  leaves_out_offload_ = true;
  ground_.keeps_aside = false;
  best_ = BestPlans(1);
  if (without_offload_) best_.add(*without_offload_);
  residual_bound_s_ = kInfinity;
  unproven_ = std::move(unproven_aside_);
  const OpenNodes open = std::exchange(open_, {});
  for (const OpenNode& node : open.all()) {
    if (!offloads(node.range.configuration)) aside_.push_back(node);
  }
  // Nothing goes to host memory any more.
  const auto hold_more = [&](const Configuration& c, std::int64_t replicas) {
    Configuration family;
    std::tie(family.tp, family.cp, family.ep, family.whole_experts) =
        std::tie(c.tp, c.cp, c.ep, c.whole_experts);
    family.recompute = space.recompute.value_or(Recompute::none);
    const FamilyBounds& bounds = ground_.family_bounds.at(family);
    return bounds.device_bytes(replicas, limits_.layers) > usable_bytes(chip_) * kAboveTolerance;
  };
  const std::vector<OpenNode> aside = std::exchange(aside_, {});
  for (const OpenNode& node : aside) {
    if (node.bound_s >= best_.cutoff_s()) continue;
    const Configuration& c = node.range.configuration;
    const bool is_family = node.kind == OpenNode::Kind::family;
    if (is_family) families_[node.family] = ground_.family_bounds.at(c);
    const std::int64_t replicas = is_family ? node.replicas : std::int64_t{1} * c.pp * c.dp;
    if (!space.all_devices && hold_more(c, replicas)) continue;
    open_.push(node);
  }
  look_through(space);
}

double UniformSearch::bound_s() const {
  const double open_bound_s = exhausted_ ? open_.top().bound_s : kInfinity;
  return std::min({best_.best_s(), residual_bound_s_, open_bound_s});
}

Outcome UniformSearch::finish_without_plan(Outcome outcome) {
  if (is_empty_ && !exhausted_) {
    outcome.infeasibility = empty_space(limits_, space_);
    return outcome;
  }
  std::stable_sort(hopeless_.begin(), hopeless_.end(), [](const Hopeless& a, const Hopeless& b) {
    return a.bound_bytes < b.bound_bytes;
  });
  for (const Hopeless& hopeless : hopeless_) {
    keep_nearest(chain_, tables_, hopeless.configuration, hopeless.bound_bytes, scratch_, nearest_);
  }
  outcome.search_bound_s = 0;
  outcome.status = exhausted_ ? Status::budget_exhausted : Status::infeasible;
  if (nearest_) {
    nearest_->reason = memory_reason(limits_);
    outcome.infeasibility = nearest_;
  } else if (!exhausted_) {
    outcome.infeasibility = uneven_layers();
  }
  return outcome;
}

Outcome UniformSearch::run() {
  check_space(limits_, space_);
  find();
  Outcome outcome = begin_outcome(*chain_.job, *chain_.system);
  outcome.work = work_;
  outcome.evaluated = evaluated_;
  if (is_enough()) {
    outcome.status = Status::feasible;
    return outcome;
  }
  if (best_.found().empty()) return finish_without_plan(std::move(outcome));
  outcome.space = searched_space(limits_, space_);
  if (others_bound_s_ < bound_s()) outcome.assignments_bound_s = others_bound_s_;
  finish_outcome(chain_, tables_, best_, bound_s(), "braid", outcome);
  return outcome;
}

}  // namespace braid

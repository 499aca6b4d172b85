#include "braid/planners/mixed/mixed_planner.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/mixed/bounds.h"
#include "braid/planners/mixed/depth_first.h"
#include "braid/planners/mixed/met_pipelines.h"
#include "braid/planners/mixed/one_form_rounds.h"
#include "braid/planners/mixed/shortage.h"
#include "braid/planners/mixed/solve.h"
#include "braid/profile/sharded_options.h"
#include "braid/schedule/timeline.h"
#include "braid/system/links.h"

namespace braid {
namespace {

/// What is slower than the best by more is no alternative to it.
constexpr double kAlternative = 1.5;
/// Steps by which a round's limit rises while there is no plan: small ones, larger ones, and at
/// last no limit.
constexpr int kSmallSteps = 12, kSteps = 32;
constexpr double kSmallStep = 1.1, kLargeStep = 1.5;
/// What is slower by more is not tried to be improved on.
constexpr double kNear = 1.1;
/// Stages tried in one family, where bounds by path hold and where they do not.
constexpr std::int64_t kMostSteps = 20'000'000;
constexpr std::int64_t kMostBranchedSteps = 1'000'000;
/// Stages tried in all searches together, 5 to 20 s. What is left over then shows in the bound.
/// With fewer, the best plan of DeepSeek-V2 on three racks of GB200 and a DGX H100 is missed.
constexpr std::int64_t kMostStepsInAll = 80'000'000;
/// The same while there is no plan at all.
constexpr std::int64_t kMostStepsToFind = 200'000'000;
/// Stages, and layers of stages, tried in search of what comes nearest to fitting: about 2 s.
constexpr std::int64_t kMostShortageSteps = 150'000'000;
/// A search that was given up is not begun again below a time that is less by no more: it would
/// be given up again.
constexpr double kEasier = 0.8;
/// In all rounds that are gone through pipeline by pipeline.
constexpr MixedDepthFirstLimits kMostWalked = {400'000, 2'000};
/// Devices of the pipelines shown there, all together.
constexpr std::int64_t kMostWalkedDevices = 4'000'000;
/// Of what is left of these, rounds of one form that are searched together have one in so many:
/// others may follow.
constexpr std::int64_t kWalkOfForms = 2;
/// Rounds of one form that are searched together, of those of least bound.
constexpr std::int64_t kFormsAtOnce = 16;
/// How often checking and simulating a pipeline looks through its devices.
constexpr std::int64_t kLookedThrough = 2;

/// Outcome.space.
constexpr const char* kMixedSpace =
    "1F1B pipelines of consecutive stages, each with devices, degrees, recomputation and ZeRO of "
    "its own";
constexpr const char* kOneFormSpace =
    "1F1B pipelines of consecutive stages on whole nodes, all of one form: degrees, micro-batch, "
    "recomputation and ZeRO";
constexpr const char* kUsualSequenceParallelism =
    "; tensor parallelism with sequence parallelism (--sequence-parallel asks for the other)";
constexpr const char* kUsualContextParallelism =
    "; context parallelism together with tensor parallelism inside a node (--cp asks for others)";

void refuse(bool asked, const char* option, const char* what) {
  if (!asked) return;
  throw Error(Where{"", 0, option}, what, "leave it out, or plan on one kind of device");
}

void check_mixed_space(const Job& job, const System& system, const SpaceOptions& space) {
  refuse(!space.vp.allows(1), "--vp", "stages on a mixed cluster are not interleaved");
  refuse(space.schedule.value_or(ScheduleKind::one_f_one_b) != ScheduleKind::one_f_one_b,
         "--schedule", "a mixed cluster runs 1f1b");
  refuse(space.all_devices, "--all-devices", "stages on a mixed cluster take what is fastest");
  SpaceLimits limits = space_limits(job, system);
  // Devices may stay unused, so the degrees need not make up all of them.
  limits.devices = 1;
  for (const Degrees* degrees : {&space.tp, &space.pp, &space.dp, &space.cp}) {
    const std::optional<int> degree = degrees->single();
    if (degree && *degree > 0 &&
        (__builtin_mul_overflow(limits.devices, std::int64_t{*degree}, &limits.devices) ||
         limits.devices > system.device_count)) {
      throw Error("the degrees set multiply to more than the " +
                      std::to_string(system.device_count) + " devices",
                  "change --tp, --pp, --dp or --cp, or leave one of them out");
    }
  }
  check_space(limits, space);
}

class MixedSearch {
 public:
  MixedSearch(const Job& job, const System& system, const BraidSpace& space, const Budget& budget,
              const Progress& progress)
      : space_(space),
        budget_(budget),
        progress_(progress),
        job_(job, system, "braid"),
        known_(system, job_.runs()),
        met_(job_, space),
        outcome_(begin_outcome(job, system)) {
    walk_left_.shown = std::min(walk_left_.shown, kMostWalkedDevices / system.device_count);
  }

  Outcome run();

 private:
  /// Pipelines of one number of samples in a round: what is searched, or bounded, as one.
  struct SearchNode {
    double bound_s = kInfinity;  ///< Of chains; of other graphs what is searched first.
    double walked_s = 0;         ///< A bound for any graph.
    std::vector<std::unique_ptr<MixedFamily>> families;
    double searched_below_s = 0;    ///< The least cutoff so far; 0: none.
    std::int64_t steps = 0;         ///< Stages tried in it.
    double given_up_s = kInfinity;  ///< The cutoff of the last search that was given up.
    double limit_s = 0;             ///< Below which a first plan is looked for,
    int raised = 0;                 ///< and how often that was raised.
  };

  void show() const {
    if (!progress_) return;
    progress_(best_s(), shown_bound_s_, outcome_.evaluated);
  }
  void improve(std::vector<PlacedStage> stages, double time_s);
  SearchNode node_of(std::int64_t samples);
  double best_s() const { return met_.best_s(); }
  /// What is slower is not looked for: than the best, or, while alternatives to it are, than the
  /// last of as many as are asked for.
  double cutoff_s() const {
    if (!for_alternatives_) return best_s();
    return std::min(met_.last_s(), kAlternative * best_s());
  }
  bool spent() const { return budget_.work > 0 && outcome_.evaluated >= budget_.work; }
  /// Of all searches together; a budget that is asked for takes the place of this one.
  std::int64_t steps_left() const {
    if (budget_.work > 0) return kMostSteps;
    return (met_.empty() ? kMostStepsToFind : kMostStepsInAll) - searched_;
  }
  void search(SearchNode& node, double cutoff_s);
  MixedSolution solve(const MixedFamily& family, const MixedProblem& problem, double cutoff_s,
                      std::int64_t most_steps);
  void find_first(std::vector<SearchNode>& nodes);
  void search_all(std::vector<SearchNode>& nodes, bool from_below);
  double search_one_form(std::vector<OneFormRound> rounds, std::vector<SearchNode>& nodes);
  void begin_with_one_form(std::vector<OneFormRound> rounds);
  Outcome found(const std::vector<SearchNode>& nodes);
  void walk(std::vector<SearchNode>& nodes);
  void look_for_alternatives(const std::vector<SearchNode>& nodes);
  double proven_s(const SearchNode& node) const {
    return job_.chain().branched ? node.walked_s : std::max(node.bound_s, node.walked_s);
  }
  Infeasibility nearest(const std::vector<SearchNode>& nodes);

  const BraidSpace& space_;
  const Budget& budget_;
  const Progress& progress_;
  MixedJob job_;
  MixedFamily::Known known_;
  MetPipelines met_;
  bool for_alternatives_ = false;
  double bound_s_ = kInfinity;
  bool exhausted_ = false;     ///< The budget kept something from being searched.
  double shown_bound_s_ = 0;   ///< Of the round that was searched last.
  std::int64_t searched_ = 0;  ///< Stages tried in searches of rounds.
  MixedDepthFirstLimits walk_left_ = kMostWalked;
  Outcome outcome_;
};

/// Moves layers over the cuts for as long as that simulates faster: the bound that layers are
/// assigned by is not quite the time.
void MixedSearch::improve(std::vector<PlacedStage> stages, double time_s) {
  bool better = true;
  while (better && !spent()) {
    better = false;
    for (std::size_t s = 0; s + 1 < stages.size(); ++s) {
      for (const std::int32_t step : {-1, 1}) {
        std::vector<PlacedStage> next = stages;
        next[s].end += step;
        next[s + 1].begin += step;
        if (next[s].end <= next[s].begin || next[s + 1].end <= next[s + 1].begin) continue;
        known_.places.meet(kLookedThrough * job_.system().device_count);
        if (job_.missing_bytes(next) > 0) continue;
        ++outcome_.evaluated;
        const double next_s = job_.time_s(next);
        if (next_s >= time_s) continue;
        time_s = next_s;
        stages = std::move(next);
        better = true;
      }
    }
  }
  met_.add(time_s, std::move(stages));
}

/// Simulates what solve_mixed() finds below the cutoff, in the family's problem or one like it.
MixedSolution MixedSearch::solve(const MixedFamily& family, const MixedProblem& problem,
                                 double cutoff_s, std::int64_t most_steps) {
  const auto limit_s = [&] { return std::min(cutoff_s, this->cutoff_s()); };
  MixedSolution solution =
      solve_mixed(problem, limit_s(), most_steps, [&](const MixedPipeline& pipeline) {
        std::vector<PlacedStage> stages = family.stages(pipeline);
        known_.places.meet(kLookedThrough * job_.system().device_count);
        if (job_.missing_bytes(stages) > 0) return limit_s();
        ++outcome_.evaluated;
        const double time_s = job_.time_s(stages);
        const bool good = time_s < kNear * best_s();
        met_.add(time_s, stages);
        if (good) improve(std::move(stages), time_s);
        show();
        return limit_s();
      });
  outcome_.work += solution.steps;
  return solution;
}

/// All pipelines of the round below the cutoff; its bound rises to what none of them can beat.
void MixedSearch::search(SearchNode& node, double cutoff_s) {
  if (!met_.empty() && cutoff_s > kEasier * node.given_up_s) return;
  double bound_s = kInfinity;
  const std::int64_t most_steps = job_.chain().branched ? kMostBranchedSteps : kMostSteps;
  for (const auto& family : node.families) {
    const std::int64_t left = std::min(most_steps, steps_left());
    if (left <= 0) {
      bound_s = 0;
      break;
    }
    const MixedSolution solution = solve(*family, family->problem(), cutoff_s, left);
    node.steps += solution.steps;
    searched_ += solution.steps;
    bound_s = std::min(bound_s, solution.bound_s);
    if (solution.spent) node.given_up_s = cutoff_s;
  }
  node.searched_below_s = cutoff_s;
  node.bound_s = std::max(node.bound_s, bound_s);
  shown_bound_s_ = node.bound_s;
  show();
}

/// Looks for any plan, or a better one: of one stage; then in each family below a time of its own,
/// raised wherever least was tried so far until there is one. Some family is cheap to search, and
/// far less is tried in the others below what is found there.
void MixedSearch::find_first(std::vector<SearchNode>& nodes) {
  for (SearchNode& node : nodes) {
    for (const auto& family : node.families) {
      if (family->problem().least_stages > 1) continue;
      MixedProblem alone = family->problem();
      alone.most_stages = 1;
      solve(*family, alone, kInfinity, kMostSteps);
    }
  }
  // What paths say of branches is not worth more.
  if (job_.chain().branched && !met_.empty()) return;
  const double alone_s = best_s();
  while (met_.empty() || best_s() >= alone_s) {
    SearchNode* next = nullptr;
    for (SearchNode& node : nodes) {
      if (node.raised >= kSteps || node.limit_s >= alone_s) continue;
      if (next == nullptr || node.steps < next->steps) next = &node;
    }
    if (next == nullptr) return;
    const int step = ++next->raised;
    next->limit_s *= step <= kSmallSteps ? kSmallStep : step < kSteps ? kLargeStep : kInfinity;
    if (next->bound_s < next->limit_s) search(*next, next->limit_s);
  }
}

/// Goes through what may be faster than the best plan one by one, as far as there is not too much:
/// a pipeline's bound is not quite its time, and of layers that do not follow one another not even
/// that.
void MixedSearch::walk(std::vector<SearchNode>& nodes) {
  const std::int64_t part = space_.can.heterogeneous_stages ? 1 : kWalkOfForms;
  MixedDepthFirstLimits left = {walk_left_.steps / part, walk_left_.shown / part};
  if (budget_.work > 0) {
    left.shown = std::clamp<std::int64_t>(budget_.work - outcome_.evaluated, 0, left.shown);
  }
  auto rounds = std::ssize(nodes);
  for (SearchNode& node : nodes) {
    MixedDepthFirstLimits of_round = {left.steps / rounds, left.shown / rounds};
    --rounds;
    if (is_proven(proven_s(node), best_s()) || spent()) continue;
    double bound_s = kInfinity;
    auto families = std::ssize(node.families);
    for (const auto& family : node.families) {
      const MixedDepthFirstLimits share = {of_round.steps / families, of_round.shown / families};
      --families;
      const MixedDepthFirstResult walked = search_depth_first(
          family->problem(), best_s(), share, [&](const MixedPipeline& pipeline) {
            std::vector<PlacedStage> stages = family->stages(pipeline);
            if (job_.missing_bytes(stages) > 0) return best_s();
            ++outcome_.evaluated;
            const double time_s = job_.time_s(stages);
            met_.add(time_s, std::move(stages));
            show();
            return best_s();
          });
      of_round.steps -= walked.steps;
      of_round.shown -= walked.shown;
      left.steps -= walked.steps;
      left.shown -= walked.shown;
      walk_left_.steps -= walked.steps;
      walk_left_.shown -= walked.shown;
      outcome_.work += walked.steps;
      bound_s = std::min(bound_s, walked.bound_s);
    }
    node.walked_s = std::max(node.walked_s, bound_s);
  }
}

/// Pipelines beside the best, for which the search for that does not look.
void MixedSearch::look_for_alternatives(const std::vector<SearchNode>& nodes) {
  if (met_.capacity() < 2 || met_.empty()) return;
  for_alternatives_ = true;
  std::int64_t left = kMostSteps;
  for (const SearchNode& node : nodes) {
    for (const auto& family : node.families) {
      if (left <= 0 || spent()) return;
      if (node.bound_s < cutoff_s()) {
        left -= solve(*family, family->problem(), cutoff_s(), left).steps;
      }
    }
  }
}

/// What would have to be added to some device for the pipeline that comes nearest to fitting.
Infeasibility MixedSearch::nearest(const std::vector<SearchNode>& nodes) {
  Infeasibility why{
      "no assignment of layers to stages on these devices fits in their memory", -1, 0, 0, {}};
  double least_bytes = kInfinity;
  std::vector<const MixedFamily*> families;
  for (const SearchNode& node : nodes) {
    for (const auto& family : node.families) families.push_back(family.get());
  }
  // Rounds of few samples need the least memory.
  std::stable_sort(families.begin(), families.end(), [](const auto* a, const auto* b) {
    return a->problem().micro_batches > b->problem().micro_batches;
  });
  std::int64_t steps_left = kMostShortageSteps;
  for (const MixedFamily* family : families) {
    if (steps_left <= 0) break;
    const auto shortage = least_shortage(family->problem(), least_bytes, steps_left);
    if (!shortage.has_value()) continue;
    least_bytes = shortage->missing_bytes();
    if (least_bytes <= 0) continue;
    const PlacedStage stage = family->stages(shortage->pipeline)[shortage->stage];
    Configuration config = stage.config;
    config.pp = static_cast<int>(shortage->pipeline.stages.size());
    why.parallel = to_parallelism(config);
    why.stage = static_cast<std::int64_t>(shortage->stage);
    why.needed_bytes = shortage->needed_bytes;
    why.available_bytes = shortage->available_bytes;
    const std::string chips = chip_names_of(job_.system(), groups_of(job_.system(), stage.devices));
    why.reason =
        "no assignment of layers to stages on these devices fits in their memory (least is "
        "missing where layers " +
        std::to_string(stage.begin) + "-" + std::to_string(stage.end - 1) + " are on " +
        std::to_string(stage.devices.size()) + " x " + chips + ")";
  }
  if (least_bytes == kInfinity) why.reason = "no pipeline of that many stages on these devices";
  return why;
}

MixedSearch::SearchNode MixedSearch::node_of(std::int64_t samples) {
  SearchNode node;
  const auto add = [&](MixedFamily::Depth depth) {
    auto family = std::make_unique<MixedFamily>(job_, space_, samples, depth, known_);
    if (family->empty()) return;
    node.bound_s = std::min(node.bound_s, quick_bound_s(family->problem()));
    node.walked_s = node.bound_s;
    node.families.push_back(std::move(family));
  };
  using Stages = MixedFamily::Stages;
  const bool any = job_.chain().shared.empty();
  const auto layers = static_cast<int>(job_.chain().kind_of_layer.size());
  for (const auto& [least, most] : space_.pp.runs(any ? 1 : 2, layers)) {
    add({any ? Stages::any : Stages::several, least, most});
  }
  if (!any && space_.pp.allows(1)) add({Stages::one, 1, 1});
  return node;
}

/// Searches rounds for what is faster than the best so far, and proves what none of them beats.
/// `from_below`: first below limits that rise, which proves more where a search is given up.
void MixedSearch::search_all(std::vector<SearchNode>& nodes, bool from_below) {
  const auto first = std::min_element(
      nodes.begin(), nodes.end(),
      [](const SearchNode& a, const SearchNode& b) { return a.bound_s < b.bound_s; });
  const double least_bound_s = first->bound_s;
  for (SearchNode& node : nodes) node.limit_s = least_bound_s;
  if (from_below) find_first(nodes);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const SearchNode& a, const SearchNode& b) { return a.steps < b.steps; });
  for (SearchNode& node : nodes) {
    exhausted_ = exhausted_ || spent();
    if (node.bound_s < cutoff_s() && !exhausted_) search(node, cutoff_s());
  }
  // Below a shorter time more is ruled out.
  for (SearchNode& node : nodes) {
    exhausted_ = exhausted_ || spent();
    if (node.bound_s < best_s() * (1 - kNoGap) && best_s() < node.searched_below_s && !exhausted_) {
      search(node, best_s());
    }
  }
  walk(nodes);
}

/// Goes through the rounds by rising bound until none can hold a faster plan. Returns what none
/// that was not searched beats.
double MixedSearch::search_one_form(std::vector<OneFormRound> rounds,
                                    std::vector<SearchNode>& nodes) {
  std::sort(rounds.begin(), rounds.end());
  for (std::size_t next = 0; next < rounds.size();) {
    if (rounds[next].bound_s >= best_s() || exhausted_) return rounds[next].bound_s;
    std::vector<SearchNode> batch;
    for (; next < rounds.size() && std::ssize(batch) < kFormsAtOnce; ++next) {
      SearchNode& node = batch.emplace_back();
      node.bound_s = node.walked_s = rounds[next].bound_s;
      node.families.push_back(one_form_family(rounds[next].form, job_, space_, known_));
    }
    search_all(batch, met_.empty());
    std::move(batch.begin(), batch.end(), std::back_inserter(nodes));
  }
  return kInfinity;
}

/// Pipelines whose stages all have one form are few, and the best of them is hard to beat: what is
/// slower need not be looked for.
void MixedSearch::begin_with_one_form(std::vector<OneFormRound> rounds) {
  const std::int64_t searched = searched_;
  const MixedDepthFirstLimits walk_left = walk_left_;
  std::vector<SearchNode> nodes;
  search_one_form(std::move(rounds), nodes);
  searched_ = searched;
  walk_left_ = walk_left;
}

Outcome MixedSearch::run() {
  const bool one_form = !space_.can.heterogeneous_stages;
  const std::int64_t batch = job_.job().global_batch;
  std::vector<SearchNode> nodes;
  std::vector<OneFormRound> rounds;
  for (std::int64_t round = 1; round <= batch; ++round) {
    if (batch % round != 0) {
      // Past the square root divisors are found from the other side.
      if (round > batch / round) round = batch / (batch / round);
      if (batch % round != 0) continue;
    }
    if (batch / round > kMostPlannedPasses) continue;
    add_one_form_rounds(job_, space_, round, known_, rounds);
    if (one_form) continue;
    if (SearchNode node = node_of(round); !node.families.empty()) nodes.push_back(std::move(node));
    show();
  }
  if (nodes.empty() && rounds.empty()) {
    outcome_.infeasibility =
        Infeasibility{"no stage's degrees divide the model's heads and the global batch of " +
                          std::to_string(batch),
                      -1,
                      0,
                      0,
                      {}};
    return std::move(outcome_);
  }
  if (one_form) {
    bound_s_ = search_one_form(std::move(rounds), nodes);
  } else {
    if (budget_.work == 0) begin_with_one_form(std::move(rounds));
    search_all(nodes, true);
  }
  look_for_alternatives(nodes);
  return found(nodes);
}

Outcome MixedSearch::found(const std::vector<SearchNode>& nodes) {
  for (const SearchNode& node : nodes) bound_s_ = std::min(bound_s_, proven_s(node));
  if (met_.empty()) {
    const bool gave_up = exhausted_ || bound_s_ < kInfinity;
    outcome_.status = gave_up ? Status::budget_exhausted : Status::infeasible;
    if (!gave_up || job_.chain().branched) outcome_.infeasibility = nearest(nodes);
    return std::move(outcome_);
  }
  outcome_.space = space_.can.heterogeneous_stages ? kMixedSpace : kOneFormSpace;
  if (!space_.sequence_parallel) outcome_.space += kUsualSequenceParallelism;
  if (space_.cp.list().empty()) outcome_.space += kUsualContextParallelism;
  met_.put_into(outcome_);
  outcome_.objective = best_s();
  if (job_.chain().branched) bound_s_ = std::max(bound_s_, outcome_.physical_bound.time_s);
  outcome_.search_bound_s = std::min(bound_s_, outcome_.objective);
  outcome_.status =
      is_proven(outcome_.search_bound_s, outcome_.objective) ? Status::optimal : Status::feasible;
  return std::move(outcome_);
}

}  // namespace

Outcome plan_mixed(const Job& job, const System& system, const BraidSpace& space,
                   const Budget& budget, const Progress& progress) {
  check_mixed_space(job, system, space);
  return MixedSearch(job, system, space, budget, progress).run();
}

}  // namespace braid

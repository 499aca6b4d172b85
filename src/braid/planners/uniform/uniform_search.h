#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/job/assess.h"
#include "braid/planners/job/job.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/job/space.h"
#include "braid/planners/uniform/best_plans.h"
#include "braid/planners/uniform/covered_ranges.h"
#include "braid/planners/uniform/family_bounds.h"
#include "braid/planners/uniform/space_part.h"

namespace braid {

/// What all searches of one job share: nothing of it depends on the part of the space, and searches
/// only add what they find out.
struct SearchGround {
  SearchGround(const Job& job, const System& system)
      : limits(space_limits(job, system)), chain(chain_job(job, system)), tables(job, system) {}

  const SpaceLimits limits;
  const ChainJob chain;  ///< As if layers could be dealt out in any numbers.
  LayerTables tables;
  /// Tables of the same layers with the same memory and times that no real one is less than, which
  /// are found at once where the real ones take long; null: nowhere.
  LayerTables* least = nullptr;
  AssessmentScratch scratch{chain};

  /// What families, degrees and first of all configurations are bounded by.
  LayerTables& bounding() { return least != nullptr ? *least : tables; }
  // Of the families and degrees that a search of the whole space has met: bounds that hold in its
  // parts too.
  std::map<Configuration, FamilyBounds> family_bounds;
  std::map<Configuration, double> split_bounds_s;
  bool keeps_bounds = false;  ///< Whether the search that goes on adds to these.
  /// Whether it keeps what go_on_without_offload() needs.
  bool keeps_aside = false;
};

/// Best-first search by bound over the documented space (docs/design.md, "braid").
class UniformSearch {
 public:
  /// What is looked for: the best, or whether anything may fit. The latter holds whatever the
  /// layers' times are.
  enum class Aim : std::uint8_t { best, fit };

  /// `below_s`: what is not faster is not looked for.
  UniformSearch(SearchGround& ground, SpacePart part, const Budget& budget, Progress progress,
                Aim aim = Aim::best, double below_s = kInfinity);

  /// Finds all that find() does, and says it.
  Outcome run();
  /// Looks through the space.
  void find();
  /// As find(), of plans beside this one, which was found to be the fastest: none that is faster,
  /// or of its class, is kept.
  void find_beside(FoundPlan fastest);
  /// After run(), with SearchGround::keeps_aside: looks through the part of the space without
  /// offload, from where the search stopped; best(), bound_s() are that part's then. What does not
  /// fit and what its trades lead to is not looked at again.
  void go_on_without_offload();
  /// Whether the budget was used up before.
  bool is_exhausted() const { return exhausted_; }
  /// Nothing of the space is faster.
  double bound_s() const;
  const BestPlans& best() const { return best_; }
  /// The fastest without offload that was met, while the fastest of all have some.
  const std::optional<FoundPlan>& without_offload() const { return without_offload_; }
  /// Configurations, or groups of them, that were timed.
  std::int64_t evaluated() const { return evaluated_; }

 private:
  /// Configurations that are not looked at yet, with a bound on what each of them can reach.
  struct OpenNode {
    enum class Kind : std::uint8_t {
      family,    ///< All of a family with `replicas` copies of a stage or fewer.
      split,     ///< All with the same degrees.
      unpriced,  ///< A range whose layers' real times were not asked for yet.
      range,
    };
    double bound_s = 0;
    Kind kind = Kind::range;
    ConfigurationRange range;  ///< Of a family or split: only the degrees that it has.
    // Of a family:
    std::int64_t replicas = 0;
    std::size_t family = 0;
  };

  /// Least bound on top; of equal ones what holds most first, as there may be smaller
  /// configurations in it.
  struct WorseFirst {
    bool operator()(const OpenNode& a, const OpenNode& b) const {
      return std::tie(b.bound_s, b.kind, b.range.configuration) <
             std::tie(a.bound_s, a.kind, a.range.configuration);
    }
  };

  struct OpenNodes : std::priority_queue<OpenNode, std::vector<OpenNode>, WorseFirst> {
    const std::vector<OpenNode>& all() const { return c; }
  };

  std::vector<int> micro_batches_of_family(const Configuration& family) const;
  /// Searches what is open, and other assignments of what was met.
  void look_through(const SpaceOptions& space);
  /// Looks for assignments that differ in a few layers from those tried: of what is nearly as fast
  /// as the best, then, with other changes too, of the best of each class.
  void move_layers(const SpaceOptions& space);
  /// Keeps what is not faster than the best, and may be the fastest without offload.
  void set_aside(const OpenNode& node);
  /// `without_offload`: the space so, whose bounds are kept for searches with and without.
  FamilyBounds bounds_of(const Configuration& family, std::span<const int> micro_batches,
                         const SpaceOptions& without_offload);
  void push_family(OpenNode family, std::int64_t most);
  void push_split(const Configuration& split);
  void push(const ConfigurationRange& range);
  /// With the layers' real times.
  void push_priced(const ConfigurationRange& range);
  /// By least times, as split_bound_s() has it for all configurations of some degrees.
  double least_time_s(const Configuration& configuration);
  /// Looks at what may be faster than the best, least bound first; false when the budget is used
  /// up.
  bool search();
  void step(const OpenNode& node);
  /// Looks into a range.
  void step_range(const OpenNode& node);
  /// Whether sums alone show that none of the range fits; then what less memory takes is pushed.
  bool is_hopeless(const ConfigurationRange& range);
  /// The same, whatever times the layers take.
  bool is_hopeless_at_any_times(const ConfigurationRange& range);
  /// The same by a bound that holds for all of the range.
  bool is_hopeless(const ConfigurationRange& range, const MemoryFloor& least);
  /// `bound_s`: of the configuration.
  void look_at(const Configuration& configuration, double bound_s);
  void note_without_offload(const FoundPlan& found);
  void relax(const ConfigurationRange& range, const Assessment& assessment);
  Outcome finish_without_plan(Outcome outcome);
  /// Whether a relaxation of what memory bounds need not be looked at, because it does not fit
  /// either or is reached in another order.
  bool is_superfluous(const Configuration& configuration, const Configuration& next,
                      const Assessment& assessment) const;

  /// What is not faster is not timed.
  double least_of_interest_s(const Configuration& configuration) const;

  /// Some of the layouts that are tried depend on times.
  bool depends_on_times(const Configuration& configuration) const {
    return configuration.pp > 1 && has_few_assignments(chain_, configuration);
  }
  bool is_enough() const { return aim_ == Aim::fit && (may_fit_ || !best_.found().empty()); }

  const Aim aim_;
  const Chip& chip_;
  const SpaceLimits limits_;
  const SpaceOptions space_;
  const Budget budget_;
  const Progress progress_;
  const std::vector<int> data_degrees_;
  SearchGround& ground_;
  const ChainJob chain_;  ///< As this search may deal layers out.
  LayerTables& tables_;
  AssessmentScratch& scratch_;
  std::vector<FamilyBounds> families_;
  OpenNodes open_;
  std::vector<OpenNode> aside_;
  CoveredRanges relaxed_;
  bool is_empty_ = true;  ///< No split that was looked into allows anything.
  BestPlans best_;
  std::optional<FoundPlan> without_offload_;
  bool may_fit_ = false;  ///< Of Aim::fit: it takes times to see whether something does.
  /// Simulated 1F1B configurations whose other assignments might be faster still, by path bound.
  std::vector<BoundedConfiguration> unproven_;
  std::vector<BoundedConfiguration> unproven_aside_;  ///< Those without offload, kept aside.
  bool leaves_out_offload_ = false;                   ///< go_on_without_offload().
  std::vector<FoundPlan> nearly_best_;  ///< Met with leaves_assignments_out(), when they were.
  /// No assignment that was not looked at is faster than this.
  double residual_bound_s_ = kInfinity;
  /// The same of those that the space leaves out.
  double others_bound_s_ = kInfinity;
  std::optional<Infeasibility> nearest_;
  /// What sums alone show not to fit, for as long as there is no plan.
  struct Hopeless {
    double bound_bytes = 0;
    Configuration configuration;
  };
  std::vector<Hopeless> hopeless_;
  bool exhausted_ = false;
  std::int64_t work_ = 0, evaluated_ = 0;  ///< As in Outcome.
};

}  // namespace braid

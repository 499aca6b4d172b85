#include "braid/explore/system_search.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <mutex>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/base/parallel.h"
#include "braid/base/rounding.h"
#include "braid/explore/architecture_family.h"
#include "braid/explore/kept_systems.h"
#include "braid/explore/memory_groups.h"
#include "braid/plan/plan_energy.h"
#include "braid/profile/layer_activity.h"
#include "braid/report/plan_text.h"

namespace braid {
namespace {

constexpr std::size_t kChipAxis = kMethodAxis + 1;
constexpr std::size_t kMemoryAxis = kChipAxis + 1;  ///< Where the space has memories.
/// Families looked at side by side; part of what the search does, so not the number of threads.
constexpr std::size_t kBatch = 8;

/// Price and power of all but the chips of a system, and how many chips there are; of one that is
/// no architecture, price and power of all.
struct Surroundings {
  double devices = 0, usd = 0, watts = 0;
};

/// Systems that differ in architecture and memory alone. Without architectures, a family is one
/// system.
struct Family {
  SpacePoint place;  ///< Of its first member with its first memory.
  ArchitectureFamily members;
  std::vector<std::size_t> memories;  ///< None has more of anything than the first.
  Surroundings rest;                  ///< No memory's is less.
  std::vector<double> least_s;        ///< [workload]: of a batch, on any member.
  std::vector<ChipActivity> least;    ///< [workload]: likewise; where energy is searched for.
  SystemMerit merit;                  ///< No member has more of value, nor less price and power.
  bool is_bounded = false;
  std::uint64_t order = 0;
};

struct Later {
  bool operator()(const Family& a, const Family& b) const {
    const auto first = rank_of(a.merit), second = rank_of(b.merit);
    return first < second || (first == second && a.order > b.order);
  }
};

/// What looking at a family comes to: smaller ones, itself with a bound, or a system planned.
struct Step {
  std::vector<Family> families;
  std::vector<PointResult> planned;  ///< [workload]
  bool has_bounded = false;
  std::string refusal;
};

/// The place with each of the memories; the place itself where the space has none.
std::vector<SpacePoint> with_each(const SpacePoint& place,
                                  const std::vector<std::size_t>& memories) {
  if (memories.empty()) return {place};
  std::vector<SpacePoint> places(memories.size(), place);
  for (std::size_t m = 0; m < memories.size(); ++m) places[m][kMemoryAxis] = memories[m];
  return places;
}

/// Tokens of a batch, or samples.
double units_in(const SystemWorkload& workload) {
  const auto samples = static_cast<double>(workload.global_batch);
  const auto tokens = static_cast<double>(workload.graph.seq_len);
  return tokens > 0 ? samples * tokens : samples;
}

/// The search by one planner.
class Search {
 public:
  Search(const Space& space, std::size_t planner, std::shared_ptr<NestMemo> nests,
         std::vector<PointResult>& results, std::vector<bool>& is_planned)
      : space_(space),
        systems_(std::get<SystemSpace>(space.points)),
        search_(*systems_.search),
        nests_(std::move(nests)),
        kept_(space),
        results_(results),
        is_planned_(is_planned) {
    found_.planner = planner;
    for (const SystemWorkload& workload : systems_.workloads) units_.push_back(units_in(workload));
    if (systems_.architectures) {
      const SystemArchitectures& every = *systems_.architectures;
      costs_.resize(every.all.size());
      surroundings_ = point_count(space) / (space.axes[kWorkloadAxis].values.size() *
                                            space.axes[kMethodAxis].values.size() * costs_.size());
      most_.assign(surroundings_ * costs_.size(), {kInfinity, false});
      parallel_for(costs_.size(), [&](std::size_t i) {
        const Chip chip = chip_of(every, every.all[i]);
        costs_[i] = {chip.price_usd.value_or(0), chip.power_w.value_or(0)};
      });
    }
  }

  /// `plan(number)`: the result of a point.
  template <typename Plan>
  PlannerSearch run(const Plan& plan, const SystemSearchProgress& progress) {
    open_first_families();
    std::int64_t work = 0;
    while (!open_.empty() && work < search_.most_plans) {
      const std::vector<Family> batch = next_batch();
      if (batch.empty()) break;
      std::vector<Step> steps(batch.size());
      parallel_for(batch.size(), [&](std::size_t i) { steps[i] = step(batch[i], plan); });
      work += static_cast<std::int64_t>(batch.size());
      for (std::size_t i = 0; i < batch.size(); ++i) take(batch[i], std::move(steps[i]));
      if (progress) progress(found_.planned, found_.bounded);
    }
    close();
    return std::move(found_);
  }

 private:
  /// The most promising families that are not settled.
  std::vector<Family> next_batch() {
    std::vector<Family> batch;
    while (!open_.empty() && batch.size() < kBatch) {
      if (!kept_.settles(open_.top().merit)) {
        batch.push_back(open_.top());
      } else if (search_.what != SearchFor::front) {
        break;  // The others have lower bounds. Of a front they may cost less.
      }
      open_.pop();
    }
    return batch;
  }

  std::size_t number_of(const SpacePoint& place, std::size_t workload) const {
    return point_number(space_, place, workload, found_.planner);
  }

  void open_first_families() {
    if (!systems_.architectures) {
      for (SpacePoint& place : places_from(space_, kChipAxis)) {
        ++found_.systems;
        const SystemCost cost = cost_of(systems_, place);
        push({std::move(place),
              {},
              {},
              {0, cost.usd, cost.watts},
              std::vector<double>(units_.size(), 0),
              {},
              {}});
      }
      return;
    }
    const auto families = families_by_array(systems_.architectures->all);
    const auto groups = memory_groups(systems_.memories);
    const std::size_t held = systems_.memories.empty() ? kChipAxis : kMemoryAxis;
    for (const SpacePoint& place : places_from(space_, held + 1)) {
      for (const std::vector<std::size_t>& memories : groups) {
        open_architectures(families, memories, place);
      }
    }
  }

  void open_architectures(std::span<const ArchitectureFamily> families,
                          const std::vector<std::size_t>& memories, const SpacePoint& at) {
    const std::vector<SpacePoint> places = with_each(at, memories);
    Surroundings least = surroundings(places.front());
    for (const SpacePoint& place : places) {
      const Surroundings rest = surroundings(place);
      least.usd = std::min(least.usd, rest.usd);
      least.watts = std::min(least.watts, rest.watts);
    }
    for (const ArchitectureFamily& family : families) {
      found_.systems += family.size() * places.size();
      SpacePoint place = places.front();
      place[kChipAxis] = family.front();
      push({std::move(place),
            family,
            memories,
            least,
            std::vector<double>(units_.size(), 0),
            {},
            {}});
    }
  }

  /// With architectures.
  Surroundings surroundings(const SpacePoint& place) const {
    const SystemCost all = cost_of(systems_, place);
    const SystemCost& chip = costs_[place[kChipAxis]];
    Surroundings rest;
    rest.devices = static_cast<double>(system_of(systems_, place).device_count);
    rest.usd = std::max(0.0, all.usd - rest.devices * chip.usd);
    rest.watts = std::max(0.0, all.watts - rest.devices * chip.watts);
    return rest;
  }

  /// With its merit.
  void push(Family family) {
    family.merit.usd = family.rest.usd;
    family.merit.watts = family.rest.watts;
    if (!family.members.empty()) {
      double usd = kInfinity, watts = kInfinity;
      for (const std::uint32_t member : family.members) {
        usd = std::min(usd, costs_[member].usd);
        watts = std::min(watts, costs_[member].watts);
      }
      family.merit.usd = kBelowRounding * (family.rest.usd + family.rest.devices * usd);
      family.merit.watts = kBelowRounding * (family.rest.watts + family.rest.devices * watts);
    }
    family.merit.value = value_of(family);
    family.order = order_++;
    open_.push(std::move(family));
  }

  double value_of(const Family& family) const {
    const SystemCost cost{family.merit.usd, family.merit.watts};
    if (search_.what != SearchFor::energy) return search_value(systems_, family.least_s, cost);
    return search_value(systems_, least_energies(family), cost);
  }

  /// [workload]: joules of a batch that no plan on any member stays below; 0 where nothing is
  /// known.
  std::vector<double> least_energies(const Family& family) const {
    std::vector<double> joules(units_.size(), 0);
    if (family.members.empty()) return joules;
    const AcceleratorDesign& rest = *systems_.architectures->rest.accelerator;
    for (std::size_t w = 0; w < family.least.size(); ++w) {
      ChipActivity does = family.least[w];
      if (!(family.least_s[w] < kInfinity)) {
        joules[w] = kInfinity;
        continue;
      }
      does.seconds = family.rest.devices * family.least_s[w];
      double least = kInfinity;
      for (const std::uint32_t member : family.members) {
        const Accelerator chip = accelerator_of(systems_.architectures->all[member], rest.chip);
        least = std::min(least, chip_energy(chip, rest.energy, does).total_j());
      }
      const double others = systems_.has_powers ? family.rest.watts * family.least_s[w] : 0;
      joules[w] = kBelowRounding * (least + others);
    }
    return joules;
  }

  template <typename Plan>
  Step step(const Family& family, const Plan& plan) const {
    Step made;
    if (systems_.architectures && !family.is_bounded) {
      bound(family, made);
    } else if (family.members.size() > 1) {
      for (ArchitectureFamily& part : split_family(systems_.architectures->all, family.members)) {
        Family smaller = family;
        smaller.place[kChipAxis] = part.front();
        smaller.members = std::move(part);
        smaller.is_bounded = false;
        made.families.push_back(std::move(smaller));
      }
    } else if (family.memories.size() > 1) {
      split_memories(family, made);
    } else {
      for (std::size_t w = 0; w < units_.size(); ++w) {
        made.planned.push_back(plan(number_of(family.place, w)));
      }
    }
    return made;
  }

  /// Of one architecture, each memory alone. What the family's bound was found with has it still.
  void split_memories(const Family& family, Step& made) const {
    for (const std::size_t memory : family.memories) {
      Family one = family;
      one.place[kMemoryAxis] = memory;
      one.memories = {memory};
      one.rest = surroundings(one.place);
      one.is_bounded = memory == family.memories.front();
      made.families.push_back(std::move(one));
    }
  }

  /// The family with what planning on its envelope shows.
  void bound(const Family& family, Step& made) const {
    const SystemArchitectures& every = *systems_.architectures;
    Chip best = chip_of(every, envelope(every.all, family.members));
    best.execution = ChipExecution::core_bounds;
    const System system = system_of(systems_, family.place, best);
    Family bounded = family;
    bounded.is_bounded = true;
    bounded.least.clear();
    for (std::size_t w = 0; w < units_.size(); ++w) {
      const WorkloadPlan plan = plan_workload(systems_, w, found_.planner, system, nests_);
      const bool is_infeasible = plan.outcome.status == Status::infeasible;
      const bool none = !plan.refusal.empty() || is_infeasible;
      if (none && made.refusal.empty()) {
        made.refusal =
            is_infeasible && plan.refusal.empty() ? infeasibility_text(plan.outcome) : plan.refusal;
      }
      if (search_.what == SearchFor::energy && !none) {
        bounded.least.push_back(least_work(w, plan.graph, *best.accelerator));
      }
      bounded.least_s[w] = std::max(
          bounded.least_s[w], none ? kInfinity : kBelowRounding * plan.outcome.search_bound_s);
      if (none) break;
    }
    made.has_bounded = true;
    made.families.push_back(std::move(bounded));
  }

  ChipActivity least_work(std::size_t workload, const Graph& graph,
                          const AcceleratorDesign& design) const {
    ChipActivity least =
        least_activity(graph, systems_.workloads[workload].global_batch, design.chip);
    least.tensor_l2_bytes += least_l2_bytes(least.macs, design.chip);
    return least;
  }

  /// Of a system of the space with architectures.
  struct Most {
    double value = 0;
    bool is_exact = false;
  };
  Most& most_of(const SpacePoint& place, std::uint32_t architecture) {
    SpacePoint point = place;
    point[kChipAxis] = architecture;
    return most_[point_number(space_, point, 0, 0)];
  }

  /// What no member has more of.
  void note_most(const Family& family, double value, bool is_exact) {
    for (const SpacePoint& place : with_each(family.place, family.memories)) {
      for (const std::uint32_t member : family.members) {
        Most& most = most_of(place, member);
        most = {std::min(most.value, value), is_exact};
      }
    }
  }

  void take(const Family& from, Step made) {
    if (made.has_bounded) ++found_.bounded;
    if (found_.why_none.empty()) found_.why_none = made.refusal;
    for (Family& family : made.families) {
      if (made.has_bounded) note_most(family, value_of(family), false);
      push(std::move(family));
    }
    if (!made.planned.empty()) take_planned(from, made.planned);
  }

  /// What the plan of a system leaves open: with a gap, another one may be better.
  void note_open(Family system, std::span<const PointResult> planned) {
    bool proven = true;
    for (std::size_t w = 0; w < planned.size(); ++w) {
      const PointResult& result = planned[w];
      proven = proven && result.status == Status::optimal;
      double least_s = system.least_s[w];
      if (result.status == Status::infeasible) least_s = kInfinity;
      if (is_found(result)) least_s = std::max(least_s, kBelowRounding * searched_bound_s(result));
      system.least_s[w] = least_s;
    }
    system.merit.value = value_of(system);
    if (!proven && system.merit.value > 0) unproven_.push_back(std::move(system));
  }

  void take_planned(const Family& from, std::span<PointResult> planned) {
    ++found_.planned;
    note_open(from, planned);
    FoundSystem system;
    system.place = from.place;
    std::vector<double> amounts;
    bool complete = true;
    for (std::size_t w = 0; w < planned.size(); ++w) {
      PointResult& result = planned[w];
      complete = complete && is_found(result);
      if (complete) {
        amounts.push_back(searched_amount(systems_, result));
        system.throughput.push_back(units_[w] / searched_time_s(result));
        system.usd = result.usd;
        system.watts = result.watts;
      } else if (found_.why_none.empty()) {
        found_.why_none = result.reason;
      }
      const std::size_t number = number_of(from.place, w);
      results_[number] = std::move(result);
      is_planned_[number] = true;
    }
    if (!complete) {
      note_most(from, 0, true);
      return;
    }
    system.value = search_value(systems_, amounts, {system.usd, system.watts});
    note_most(from, system.value, true);
    kept_.add(std::move(system));
  }

  /// Of each architecture the best over all else that systems have.
  void close_most() {
    if (most_.empty()) return;
    found_.at_most.assign(costs_.size(), 0);
    found_.is_exact.assign(costs_.size(), false);
    // The chip is the first axis of systems.
    for (std::size_t i = 0; i < most_.size(); ++i) {
      const std::size_t architecture = i / surroundings_;
      if (most_[i].value < found_.at_most[architecture]) continue;
      found_.is_exact[architecture] = most_[i].is_exact;
      found_.at_most[architecture] = most_[i].value;
    }
  }

  void close() {
    close_most();
    while (!open_.empty() && kept_.settles(open_.top().merit)) open_.pop();
    if (!open_.empty()) found_.open_value = open_.top().merit.value;
    std::erase_if(unproven_, [&](const Family& system) { return kept_.settles(system.merit); });
    found_.best = kept_.take();
    for (const Family& system : unproven_) {
      const bool is_listed =
          std::any_of(found_.best.begin(), found_.best.end(),
                      [&](const FoundSystem& listed) { return listed.place == system.place; });
      if (!is_listed) found_.open_value = std::max(found_.open_value, system.merit.value);
    }
  }

  const Space& space_;
  const SystemSpace& systems_;
  const SystemSearch& search_;
  std::shared_ptr<NestMemo> nests_;
  KeptSystems kept_;
  std::vector<PointResult>& results_;
  std::vector<bool>& is_planned_;
  std::vector<double> units_;      ///< [workload]: tokens or samples of a batch.
  std::vector<SystemCost> costs_;  ///< [architecture]: of a chip.
  std::size_t surroundings_ = 0;   ///< Systems with one architecture.
  std::vector<Most> most_;         ///< [system], where chips are architectures.
  std::priority_queue<Family, std::vector<Family>, Later> open_;
  std::vector<Family> unproven_;  ///< Systems whose plans have a gap.
  std::uint64_t order_ = 0;
  PlannerSearch found_;
};

}  // namespace

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

SystemSearchResult search_systems(const Space& space, PointStore* store,
                                  const SystemSearchProgress& progress) {
  const SystemSpace& systems = std::get<SystemSpace>(space.points);
  assert(systems.search);
  const auto nests = std::make_shared<NestMemo>();
  SystemSearchResult all;
  all.results.resize(point_count(space));
  std::vector<bool> is_planned(all.results.size(), false);
  std::vector<std::optional<PointResult>> known;
  if (store != nullptr) known = store->load();
  std::mutex mutex;
  const auto plan = [&](std::size_t number) {
    const bool stored = store != nullptr && known[number].has_value();
    PointResult result =
        stored ? *known[number] : plan_point(systems, point_of(space, number), nests).result;
    const std::lock_guard<std::mutex> lock(mutex);
    if (stored) ++all.resumed;
    if (store != nullptr && !stored) {
      store->add(number, result);
      store->commit();
    }
    return result;
  };
  for (std::size_t planner = 0; planner < space.axes[kMethodAxis].values.size(); ++planner) {
    all.searches.push_back(
        Search(space, planner, nests, all.results, is_planned).run(plan, progress));
  }
  for (std::size_t number = 0; number < is_planned.size(); ++number) {
    if (is_planned[number]) all.planned.push_back(number);
  }
  return all;
}

PlannerSearch search_systems_by(const Space& space, std::size_t planner) {
  const SystemSpace& systems = std::get<SystemSpace>(space.points);
  const auto nests = std::make_shared<NestMemo>();
  std::vector<PointResult> results(point_count(space));
  std::vector<bool> is_planned(results.size(), false);
  return Search(space, planner, nests, results, is_planned)
      .run(
          [&](std::size_t number) {
            return plan_point(systems, point_of(space, number), nests).result;
          },
          {});
}

}  // namespace braid

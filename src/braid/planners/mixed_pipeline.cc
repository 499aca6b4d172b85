#include "braid/planners/mixed_pipeline.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>
#include <utility>

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Complete pipelines that a pass shows.
constexpr std::size_t kMostOthers = 24;
/// Rests of pipelines kept in one list.
constexpr int kMostEntries = 4;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

double stage_excess_s(double forward_s, double backward_s, double below_s, double next_s,
                      std::int64_t depth, std::int64_t micro_batches) {
  const double time_s = forward_s + backward_s;
  double longest_s = static_cast<double>(micro_batches - 1) * std::max(forward_s, backward_s);
  if (micro_batches <= depth) return longest_s;
  longest_s = std::max(longest_s, static_cast<double>(micro_batches - depth) * time_s + below_s);
  const std::int64_t dives = (micro_batches - 1) / depth;
  const std::int64_t rest = (micro_batches - 1) % depth;
  longest_s = std::max(longest_s, static_cast<double>(dives) * (time_s + below_s) +
                                      static_cast<double>(rest) * time_s);
  if (depth < 2) return longest_s;
  const std::int64_t pairs = (micro_batches - depth - 1) / 2;
  const std::int64_t alone = micro_batches - depth - 2 * pairs;
  return std::max(longest_s, static_cast<double>(pairs) * (time_s + next_s) +
                                 static_cast<double>(alone) * time_s + below_s);
}

/// One pass: its limits, what it has reached, and the best end so far.
struct MixedPasses::Pass {
  double excess_s = 0, cutoff_s = 0;
  std::int64_t depth = 1;  ///< Of the stage to be added, from the end.
  std::vector<Level> levels;
  MixedPass result;
  /// Complete pipelines, the best for each number of stages, devices used and first form.
  struct End {
    double base_s = kInfinity;
    std::int64_t depth = 0, number = 0;
    std::size_t form = 0;
    friend bool operator<(const End& a, const End& b) {
      return std::tie(a.base_s, a.depth, a.number, a.form) <
             std::tie(b.base_s, b.depth, b.number, b.form);
    }
  };
  std::vector<End> ends;
};

MixedPasses::MixedPasses(const MixedProblem& problem) : problem_(problem) {
  assert(!problem.forms.empty());
  layers_ = problem.forms.front().ways.front().layers.size();
  for (const MixedForm& form : problem.forms) ways_ = std::max(ways_, form.ways.size());
  least_forward_before_s_.assign(layers_ + 1, 0);
  least_time_before_s_.assign(layers_ + 1, 0);
  std::vector<double> least_forward_s(layers_, kInfinity), least_time_s(layers_, kInfinity);
  for (const MixedForm& form : problem.forms) {
    std::vector<Sums>& of_form = sums_.emplace_back();
    for (const MixedWay& way : form.ways) {
      Sums& sums = of_form.emplace_back();
      for (std::vector<double>* values :
           {&sums.forward_s, &sums.backward_s, &sums.dense, &sums.expert}) {
        values->assign(layers_ + 1, 0);
      }
      for (std::size_t l = 0; l < layers_; ++l) {
        const ChainLayer& layer = way.layers[l];
        sums.forward_s[l + 1] = sums.forward_s[l] + layer.forward_s;
        sums.backward_s[l + 1] = sums.backward_s[l] + layer.backward_s;
        sums.dense[l + 1] = sums.dense[l] + layer.dense_parameters;
        sums.expert[l + 1] = sums.expert[l] + layer.expert_parameters;
        least_forward_s[l] = std::min(least_forward_s[l], layer.forward_s);
        least_time_s[l] = std::min(least_time_s[l], layer.time_s());
      }
    }
  }
  for (std::size_t l = 0; l < layers_; ++l) {
    least_forward_before_s_[l + 1] = least_forward_before_s_[l] + least_forward_s[l];
    least_time_before_s_[l + 1] = least_time_before_s_[l] + least_time_s[l];
  }
  fitting_.resize(problem.forms.size() * ways_);
}

std::int64_t MixedPasses::number_of(std::span<const std::int32_t> used) const {
  std::int64_t number = 0;
  for (std::size_t k = 0; k < used.size(); ++k) {
    number = number * (problem_.capacity[k] + std::int64_t{1}) + used[k];
  }
  return number;
}

MixedPasses::Facts& MixedPasses::facts_of(std::span<const std::int32_t> used) {
  const auto [found, fresh] = facts_.try_emplace(number_of(used));
  Facts& facts = found->second;
  if (fresh) {
    const std::size_t forms = problem_.forms.size();
    facts.allowed.assign(forms, -1);
    facts.rates.resize(forms * ways_);
    facts.handover_s.assign(forms * forms * at(problem_.cut_classes), -1);
  }
  return facts;
}

bool MixedPasses::allows(Facts& facts, std::span<const std::int32_t> used, std::size_t form) {
  std::int8_t& known = facts.allowed[form];
  if (known >= 0) return known > 0;
  known = 1;
  const MixedForm& wanted = problem_.forms[form];
  for (std::size_t k = 0; k < used.size(); ++k) {
    if (used[k] + wanted.takes[k] > problem_.capacity[k]) known = 0;
  }
  const auto number = static_cast<std::int32_t>(form);
  if (known > 0 && !problem_.allows(used, number)) known = 0;
  for (std::size_t way = 0; known > 0 && way < wanted.ways.size(); ++way) {
    facts.rates[form * ways_ + way] = problem_.rates(used, number, static_cast<std::int32_t>(way));
  }
  return known > 0;
}

double MixedPasses::handover_s(Facts& facts, std::span<const std::int32_t> used, std::size_t below,
                               std::size_t above, std::int32_t cut) {
  const std::int32_t kind = problem_.cut_class[at(cut)];
  double& known_s =
      facts.handover_s[(below * problem_.forms.size() + above) * at(problem_.cut_classes) +
                       at(kind)];
  if (known_s < 0) {
    known_s = problem_.handover_s(used, static_cast<std::int32_t>(below),
                                  static_cast<std::int32_t>(above), kind);
  }
  return known_s;
}

/// For each right end the least left end that fits memory; the right end itself when nothing does.
const std::vector<std::int32_t>& MixedPasses::first_fitting(std::size_t form, std::size_t way,
                                                            std::int64_t in_flight) {
  auto& by_in_flight = fitting_[form * ways_ + way];
  if (by_in_flight.size() <= at(in_flight)) by_in_flight.resize(at(in_flight) + 1);
  std::vector<std::int32_t>& first = by_in_flight[at(in_flight)];
  if (!first.empty()) return first;
  const MixedWay& run = problem_.forms[form].ways[way];
  first.assign(layers_ + 1, 0);
  for (std::size_t right = 1; right <= layers_; ++right) {
    RunSums sums;
    std::size_t left = right;
    while (left > 0) {
      RunSums larger = sums;
      larger.add(run.layers[left - 1]);
      if (!fits(larger, static_cast<double>(in_flight), run.memory)) break;
      sums = larger;
      --left;
    }
    first[right] = static_cast<std::int32_t>(left);
  }
  return first;
}

MixedPasses::StageTime MixedPasses::time_of(std::size_t form, std::size_t way, std::int32_t left,
                                            std::int32_t right, const MixedRates& rates) const {
  const Sums& of = sums_[form][way];
  const auto sum = [&](const std::vector<double>& before) {
    return before[at(right)] - before[at(left)];
  };
  const double dense = sum(of.dense);
  const double expert = sum(of.expert);
  const int layers = right - left;
  StageTime time;
  time.forward_s = time.plain_forward_s = sum(of.forward_s);
  time.backward_s = time.plain_backward_s = sum(of.backward_s);
  time.forward_s +=
      pass_sync_s(rates.forward.of(dense, expert), time.forward_s, layers, rates.overlap_loss);
  time.backward_s +=
      pass_sync_s(rates.backward.of(dense, expert), time.backward_s, layers, rates.overlap_loss);
  time.tail_s = exposed_gradient_sync_s(rates.reduce.of(dense, expert), time.backward_s, layers) +
                rates.optimizer_s + rates.optimizer.of(dense, expert);
  return time;
}

/// Keeps the list free of what is worse in both; when it grows too long, two become one that is as
/// good as the better in each.
void MixedPasses::insert(State& to, std::size_t cell, Entry entry) {
  int count = 0;
  std::int32_t free = -1, nearest = -1, before = -1;
  for (std::int32_t at_entry = to.heads[cell]; at_entry >= 0;) {
    Entry& known = to.entries[at(at_entry)];
    if (known.below_s <= entry.below_s && known.first_s <= entry.first_s) return;
    const std::int32_t next = known.next;
    if (entry.below_s <= known.below_s && entry.first_s <= known.first_s) {
      (before < 0 ? to.heads[cell] : to.entries[at(before)].next) = next;
      free = at_entry;
    } else {
      const auto away = [&](std::int32_t other) {
        return std::abs(to.entries[at(other)].below_s - entry.below_s);
      };
      if (nearest < 0 || away(at_entry) < away(nearest)) nearest = at_entry;
      before = at_entry;
      ++count;
    }
    at_entry = next;
  }
  if (count >= kMostEntries) {
    Entry& known = to.entries[at(nearest)];
    entry.first_s = std::min(entry.first_s, known.first_s);
    entry.next = known.next;
    if (entry.below_s < known.below_s) known = entry;
    known.first_s = entry.first_s;
    return;
  }
  if (free < 0) {
    free = static_cast<std::int32_t>(to.entries.size());
    to.entries.emplace_back();
  }
  entry.next = to.heads[cell];
  to.heads[cell] = free;
  to.entries[at(free)] = entry;
}

/// All ways to put a stage with layers before `right` in front of `start`, each with `first_left`
/// as its last first layer. Returns the first such layer at which the excess was too long.
std::int32_t MixedPasses::take(std::size_t form, std::size_t way, std::int32_t right,
                               std::int32_t first_left, const Start& start, const MixedRates& rates,
                               State& to, Pass& pass) {
  const std::int64_t m = problem_.micro_batches;
  const std::int32_t least_left = first_fitting(form, way, std::min(m, pass.depth))[at(right)];
  if (least_left > 0 && first_left >= 0) pass.result.memory_bound = true;
  const bool may_end = pass.depth >= problem_.least_stages;
  const bool may_go_on = pass.depth < problem_.most_stages;
  std::int32_t too_long = -1;
  for (std::int32_t left = first_left; left >= least_left; --left) {
    const StageTime time = time_of(form, way, left, right, rates);
    const auto excess_of = [&](double forward_s, double backward_s) {
      return stage_excess_s(forward_s, backward_s, start.below_s, start.next_s, pass.depth, m);
    };
    // More layers take longer, but for what data parallelism adds.
    const double plain_s = excess_of(time.plain_forward_s, time.plain_backward_s);
    if (plain_s > pass.excess_s) {
      pass.result.next_excess_s = std::min(pass.result.next_excess_s, plain_s);
      return std::max(too_long, left);
    }
    ++pass.result.steps;
    if (least_forward_before_s_[at(left)] + start.below_s + time.plain_forward_s +
            time.plain_backward_s + plain_s >
        pass.cutoff_s) {
      return std::max(too_long, left);
    }
    const double excess_s = excess_of(time.forward_s, time.backward_s);
    if (excess_s > pass.excess_s) {
      pass.result.next_excess_s = std::min(pass.result.next_excess_s, excess_s);
      too_long = std::max(too_long, left);
      continue;
    }
    const double below_s = start.below_s + time.forward_s + time.backward_s;
    const double end_s = least_forward_before_s_[at(left)] + below_s + excess_s + time.tail_s;
    if (std::max(end_s, least_time_before_s_[at(left)] + below_s + excess_s) > pass.cutoff_s) {
      too_long = std::max(too_long, left);
      continue;
    }
    if (left == 0 ? !may_end : !may_go_on) continue;
    Entry entry;
    // What has ended is compared with its tail, what goes on without.
    entry.below_s = left == 0 ? below_s + time.tail_s : below_s;
    entry.first_s = left == 0 ? 0 : time.forward_s + time.backward_s;
    entry.right = right;
    entry.below = start.below;
    entry.below_entry = start.below_entry;
    entry.way = static_cast<std::int16_t>(way);
    insert(to, form * (layers_ + 1) + at(left), entry);
  }
  return too_long;
}

/// `starts` by rising length: each is for what is too long with those before it.
void MixedPasses::take_any_way(std::size_t form, std::int32_t right, std::span<const Start> starts,
                               const Facts& facts, State& to, Pass& pass) {
  const std::vector<MixedWay>& ways = problem_.forms[form].ways;
  const std::int64_t in_flight = std::min(problem_.micro_batches, pass.depth);
  const auto take_from = [&](std::size_t way, std::int32_t left) {
    for (const Start& start : starts) {
      if (left < 0) break;
      left = take(form, way, right, left, start, facts.rates[form * ways_ + way], to, pass);
    }
  };
  // Ways that save memory are for stages that fit no other.
  std::int32_t least_left = right;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    if (ways[way].saves_memory) continue;
    least_left = std::min(least_left, first_fitting(form, way, in_flight)[at(right)]);
    take_from(way, right - 1);
  }
  if (least_left == 0) return;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    if (ways[way].saves_memory) take_from(way, std::min(least_left, right) - 1);
  }
}

void MixedPasses::grow(const State& from, std::size_t form, State& to, Pass& pass) {
  const std::size_t row = layers_ + 1;
  const Facts& facts = facts_of(from.used);
  struct Behind {
    std::size_t form;
    std::vector<std::int32_t> used;
    Facts* facts;
  };
  std::vector<Behind> behind;
  for (std::size_t below = 0; below < problem_.forms.size(); ++below) {
    const auto heads = from.heads.begin() + static_cast<std::ptrdiff_t>(below * row);
    if (std::none_of(heads + 1, heads + static_cast<std::ptrdiff_t>(row),
                     [](std::int32_t head) { return head >= 0; })) {
      continue;
    }
    // Devices of the stage behind are those that were taken last.
    Behind& one = behind.emplace_back(Behind{below, from.used, nullptr});
    for (std::size_t k = 0; k < one.used.size(); ++k) {
      one.used[k] -= problem_.forms[below].takes[k];
    }
    one.facts = &facts_of(one.used);
  }
  std::vector<Start> starts;
  for (std::int32_t right = 1; at(right) < row; ++right) {
    starts.clear();
    for (const Behind& one : behind) {
      std::int32_t entry = from.heads[one.form * row + at(right)];
      if (entry < 0) continue;
      const double hops_s = 2 * handover_s(*one.facts, one.used, one.form, form, right);
      for (; entry >= 0; entry = from.entries[at(entry)].next) {
        const Entry& rest = from.entries[at(entry)];
        starts.push_back({rest.below_s + hops_s, rest.first_s + hops_s,
                          static_cast<std::int16_t>(one.form), entry});
      }
    }
    if (starts.empty()) continue;
    std::stable_sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) {
      return std::tie(a.below_s, a.next_s) < std::tie(b.below_s, b.next_s);
    });
    double least_next_s = kInfinity;
    const auto worse = [&](const Start& start) {
      const bool as_long = start.next_s >= least_next_s;
      least_next_s = std::min(least_next_s, start.next_s);
      return as_long;
    };
    starts.erase(std::remove_if(starts.begin(), starts.end(), worse), starts.end());
    take_any_way(form, right, starts, facts, to, pass);
  }
}

void MixedPasses::extend(const State& from, Level& next, Pass& pass) {
  for (std::size_t form = 0; form < problem_.forms.size(); ++form) {
    if (!allows(facts_of(from.used), from.used, form)) continue;
    std::vector<std::int32_t> used = from.used;
    for (std::size_t k = 0; k < used.size(); ++k) used[k] += problem_.forms[form].takes[k];
    const std::int64_t number = number_of(used);
    State& to = next[number];
    if (to.heads.empty()) {
      to.used = used;
      to.heads.assign(problem_.forms.size() * (layers_ + 1), -1);
    }
    if (pass.depth == 1) {
      const Start end[] = {{}};
      take_any_way(form, static_cast<std::int32_t>(layers_), end, facts_of(from.used), to, pass);
    } else {
      grow(from, form, to, pass);
    }
  }
}

MixedPass MixedPasses::run(double excess_s, double cutoff_s, std::int64_t most_steps) {
  Pass pass;
  pass.excess_s = excess_s;
  pass.cutoff_s = cutoff_s;
  State none;
  none.used.assign(problem_.capacity.size(), 0);
  pass.levels.push_back({{0, std::move(none)}});
  const auto most =
      std::min<std::int64_t>(problem_.most_stages, static_cast<std::int64_t>(layers_));
  for (pass.depth = 1; pass.depth <= most; ++pass.depth) {
    Level next;
    for (const auto& [number, state] : pass.levels.back()) {
      extend(state, next, pass);
      if (pass.result.steps > most_steps) return std::move(pass.result);
    }
    for (auto entry = next.begin(); entry != next.end();) {
      const State& state = entry->second;
      for (std::size_t form = 0; form < problem_.forms.size(); ++form) {
        const std::int32_t head = state.heads[form * (layers_ + 1)];
        if (head < 0) continue;
        pass.ends.push_back({state.entries[at(head)].below_s, pass.depth, entry->first, form});
      }
      const bool reached = !state.entries.empty();
      entry = reached ? std::next(entry) : next.erase(entry);
    }
    if (next.empty()) break;
    pass.levels.push_back(std::move(next));
  }
  std::sort(pass.ends.begin(), pass.ends.end());
  for (std::size_t i = 0; i < std::min(pass.ends.size(), kMostOthers); ++i) {
    pass.result.pipelines.push_back(rebuild(pass, i));
  }
  return std::move(pass.result);
}

MixedPipeline MixedPasses::rebuild(const Pass& pass, std::size_t number) const {
  const Pass::End& end = pass.ends[number];
  MixedPipeline pipeline;
  pipeline.base_s = end.base_s;
  std::vector<std::int32_t> used = pass.levels[at(end.depth)].find(end.number)->second.used;
  std::size_t form = end.form;
  std::int32_t left = 0;
  std::int32_t number_in_state = -1;
  for (std::int64_t depth = end.depth; depth > 0; --depth) {
    const State& state = pass.levels[at(depth)].find(number_of(used))->second;
    if (number_in_state < 0) number_in_state = state.heads[form * (layers_ + 1)];
    const Entry& entry = state.entries[at(number_in_state)];
    MixedStage stage;
    stage.form = static_cast<std::int32_t>(form);
    stage.way = entry.way;
    stage.begin = left;
    stage.end = entry.right;
    for (std::size_t k = 0; k < used.size(); ++k) used[k] -= problem_.forms[form].takes[k];
    stage.used = used;
    pipeline.stages.push_back(std::move(stage));
    left = entry.right;
    number_in_state = entry.below_entry;
    form = at(std::max<std::int32_t>(entry.below, 0));
  }
  // The excess that the path really has, stage by stage from the end.
  double below_s = 0, next_s = 0;
  for (std::size_t i = pipeline.stages.size(); i-- > 0;) {
    const MixedStage& stage = pipeline.stages[i];
    if (i + 1 < pipeline.stages.size()) {
      const MixedStage& behind = pipeline.stages[i + 1];
      const double hops_s = 2 * problem_.handover_s(behind.used, behind.form, stage.form,
                                                    problem_.cut_class[at(stage.end)]);
      below_s += hops_s;
      next_s += hops_s;
    }
    const StageTime time = time_of(at(stage.form), at(stage.way), stage.begin, stage.end,
                                   problem_.rates(stage.used, stage.form, stage.way));
    const auto depth = static_cast<std::int64_t>(pipeline.stages.size() - i);
    const double excess_s = stage_excess_s(time.forward_s, time.backward_s, below_s, next_s, depth,
                                           problem_.micro_batches);
    pipeline.excess_s = std::max(pipeline.excess_s, excess_s);
    pipeline.end_s =
        std::max(pipeline.end_s, least_forward_before_s_[at(stage.begin)] + below_s +
                                     time.forward_s + time.backward_s + excess_s + time.tail_s);
    next_s = time.forward_s + time.backward_s;
    below_s += next_s;
  }
  return pipeline;
}

MixedSolution solve_mixed(const MixedProblem& problem, double cutoff_s, std::int64_t most_steps,
                          const std::function<double(const MixedPipeline&)>& visit) {
  constexpr double kFine = 1e-3;
  constexpr int kMostFinePasses = 50;
  int fine_passes = 0;
  MixedPasses passes(problem);
  MixedSolution solution;
  /// Excesses in [low_s, high_s), whose pipelines have at least base_s.
  struct Range {
    double low_s = 0, high_s = 0, base_s = 0;
    double bound_s() const { return base_s + low_s; }
  };
  std::vector<Range> open;
  double closed_s = cutoff_s;  ///< The least bound of what is not looked at any more.
  bool spent = false;
  const auto look = [&](Range range, double excess_s) {
    // All of the range up to excess_s: what is found there splits it.
    const MixedPass pass = passes.run(excess_s, cutoff_s, most_steps - solution.steps);
    solution.steps += pass.steps;
    solution.memory_bound = solution.memory_bound || pass.memory_bound;
    if (solution.steps > most_steps) {
      spent = true;
      closed_s = std::min(closed_s, range.bound_s());
      return;
    }
    const double next_s = std::max(excess_s, pass.next_excess_s);
    if (range.high_s > next_s) open.push_back({next_s, range.high_s, range.base_s});
    for (const MixedPipeline& pipeline : pass.pipelines) {
      const bool known =
          std::any_of(solution.pipelines.begin(), solution.pipelines.end(),
                      [&](const MixedPipeline& other) { return other.stages == pipeline.stages; });
      if (known || pipeline.bound_s() > cutoff_s) continue;
      solution.pipelines.push_back(pipeline);
      cutoff_s = std::min(cutoff_s, visit(pipeline));
    }
    if (pass.pipelines.empty()) return;
    const MixedPipeline& found = pass.pipelines.front();
    // Between its excess and the limit there is none better than itself.
    closed_s = std::min(closed_s, found.base_s + found.excess_s);
    const double found_s = std::min(found.excess_s, excess_s);  // But for rounding.
    if (found_s > range.low_s) open.push_back({range.low_s, found_s, found.base_s});
  };
  const double all_s = cutoff_s == kInfinity ? kInfinity : cutoff_s - passes.least_base_s();
  if (all_s < 0) {
    solution.bound_s = cutoff_s;
    return solution;
  }
  look({0, all_s, passes.least_base_s()}, all_s);
  while (!open.empty()) {
    const auto least =
        std::min_element(open.begin(), open.end(),
                         [](const Range& a, const Range& b) { return a.bound_s() < b.bound_s(); });
    const Range range = *least;
    open.erase(least);
    const double best_s = std::min(closed_s, cutoff_s);
    const bool fine = range.bound_s() >= best_s * (1 - kFine);
    // What is met between bound and time stays open anyway.
    const bool pointless = fine && (closed_s < cutoff_s || ++fine_passes > kMostFinePasses);
    if (spent || pointless || range.bound_s() >= best_s) {
      closed_s = std::min(closed_s, range.bound_s());
      continue;
    }
    // What is above the best cannot be better, however long the range. Halves first, then the
    // excesses that there are, one by one.
    const double high_s = std::min(range.high_s, best_s - range.base_s);
    const double middle_s = fine ? range.low_s : range.low_s + (high_s - range.low_s) / 2;
    look({range.low_s, high_s, range.base_s}, middle_s);
  }
  solution.bound_s = std::min(closed_s, cutoff_s);
  return solution;
}

double quick_bound_s(const MixedProblem& problem) {
  const std::size_t layers = problem.forms.front().ways.front().layers.size();
  const std::size_t kinds = problem.capacity.size();
  // Whatever a second of a device of each kind is worth, the work at its cheapest cannot be worth
  // more than all devices' time. A device is worth what it does of the whole model.
  std::vector<double> worth(kinds, 0);
  double least_sum_s = 0, slowest_s = 0;
  for (std::size_t l = 0; l < layers; ++l) {
    double least_s = kInfinity;
    for (const MixedForm& form : problem.forms) {
      least_s = std::min(least_s, form.ways.front().layers[l].time_s());
    }
    least_sum_s += least_s;
    slowest_s = std::max(slowest_s, least_s);
  }
  for (const MixedForm& form : problem.forms) {
    double devices = 0, sum_s = 0;
    for (const std::int32_t takes : form.takes) devices += takes;
    for (const ChainLayer& layer : form.ways.front().layers) sum_s += layer.time_s();
    for (std::size_t k = 0; k < kinds && sum_s > 0; ++k) {
      if (form.takes[k] > 0) worth[k] = std::max(worth[k], 1 / (devices * sum_s));
    }
  }
  double there = 0;
  for (std::size_t k = 0; k < kinds; ++k) there += problem.capacity[k] * worth[k];
  double needed = 0;
  for (std::size_t l = 0; l < layers; ++l) {
    double least = kInfinity;
    for (const MixedForm& form : problem.forms) {
      double value = 0;
      for (std::size_t k = 0; k < kinds; ++k) value += form.takes[k] * worth[k];
      least = std::min(least, value * form.ways.front().layers[l].time_s());
    }
    needed += least;
  }
  const auto m = static_cast<double>(problem.micro_batches);
  return std::max({least_sum_s, m * slowest_s, there > 0 ? m * needed / there : 0});
}

}  // namespace braid

#include "braid/planners/graphpipe_search.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "braid/planners/graphpipe_shapes.h"
#include "braid/schedule/graph_orders.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kImpossible = std::int64_t{1} << 60;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// How a partial plan came about.
struct Choice {
  enum class Kind : std::uint8_t { stage, block, part, partial, group, rest };
  Kind kind = Kind::stage;
  std::int32_t what = -1;  ///< Shape; block; class of a whole or partial branch; group of
                           ///< the block or the absorption.
  std::int32_t group = 0, samples = 0;  ///< Of a stage: indices in groups and device_samples.
  std::int32_t absorption = -1;         ///< Of a block.
  std::int32_t inner = -1;              ///< Of a block its first part; of a part its own plan.
  std::int32_t next = -1;               ///< What was there before: the stages behind, other parts.
};

/// A partial plan of everything from some place on.
struct Label {
  std::int32_t devices = 0;
  std::int32_t choice = -1;
  double out_s = 0, back_s = 0;  ///< What a stage before it adds to its own passes.
  std::array<std::int64_t, kMostMixedGroups> samples{};  ///< In flight there, for each group.
};
using Frontier = std::vector<Label>;

/// What a stage of a shape is with one group and number of samples per device.
struct Run {
  double time_s = kInfinity;  ///< Infinite: it does not fit at all.
  std::int32_t devices = 0;
};

class Search {
 public:
  Search(const GraphPipeProblem& problem, const GraphPipeShapes& form,
         std::vector<PassGroup> groups)
      : problem_(problem), form_(form), groups_(std::move(groups)) {
    table_ = problem.in_flight == InFlight::table;
    runs_.resize(form.shapes.size() * groups_.size() * problem.device_samples.size());
    for (std::size_t s = 0; s < form.shapes.size(); ++s) {
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        for (std::size_t u = 0; u < problem.device_samples.size(); ++u) fill_run(s, g, u);
      }
    }
    work_s_ = form.series.back().work_s.back();
  }

  /// The least time below `limit_s` at which there is a plan; infinite when there is none.
  double least_time_s(double limit_s) {
    const double least_s = work_s_ / static_cast<double>(problem_.devices) * (1 - 1e-9);
    std::vector<double> times_s;
    for (const Run& run : runs_) {
      if (run.time_s >= least_s && run.time_s < limit_s) times_s.push_back(run.time_s);
    }
    std::sort(times_s.begin(), times_s.end());
    times_s.erase(std::unique(times_s.begin(), times_s.end()), times_s.end());
    if (times_s.empty()) return kInfinity;
    // With no more in flight than a sink has, partial plans differ in devices alone. Mostly that is
    // all there is to it.
    const auto relaxed = first_of(times_s, 0, [&](double time_s) { return has_relaxed(time_s); });
    if (relaxed == times_s.size()) return kInfinity;
    if (plan_at(times_s[relaxed])) return times_s[relaxed];
    const auto full =
        first_of(times_s, relaxed + 1, [&](double time_s) { return plan_at(time_s).has_value(); });
    return full == times_s.size() ? kInfinity : times_s[full];
  }

  /// The plan with the shortest way through the stages and back among those found at that time.
  std::optional<GraphPipeSolution> plan_at(double time_s) {
    relaxed_ = false;
    const Frontier* found = root_front(time_s);
    if (found == nullptr || found->empty()) return std::nullopt;
    const auto best = std::min_element(
        found->begin(), found->end(),
        [](const auto& a, const auto& b) { return a.out_s + a.back_s < b.out_s + b.back_s; });
    GraphPipeSolution solution;
    std::vector<std::int32_t> same(problem_.nodes.size());
    for (std::size_t v = 0; v < same.size(); ++v) same[v] = static_cast<std::int32_t>(v);
    read_plan(best->choice, same, solution.stages);
    return solution;
  }

  /// Whether there would be a plan if a stage never had more in flight than a sink.
  bool has_relaxed(double time_s) {
    relaxed_ = true;
    const Frontier* found = root_front(time_s);
    return found != nullptr && !found->empty();
  }

  std::int64_t work() const { return work_; }

 private:
  /// The first from `first` on of ascending times at which something is possible that stays so.
  template <class Possible>
  static std::size_t first_of(const std::vector<double>& times_s, std::size_t first,
                              const Possible& possible) {
    std::size_t last = times_s.size();
    if (first == last || !possible(times_s.back())) return last;
    for (--last; first < last;) {
      const std::size_t middle = first + (last - first) / 2;
      if (possible(times_s[middle])) {
        last = middle;
      } else {
        first = middle + 1;
      }
    }
    return last;
  }

  const Frontier* root_front(double time_s) {
    time_s_ = time_s;
    choices_.clear();
    known_series_.clear();
    known_blocks_.clear();
    known_groups_.clear();
    slack_ = static_cast<double>(problem_.devices) - work_s_ / time_s_ * (1 - 1e-9);
    if (slack_ < 0) return nullptr;
    find_fewest();
    const GraphPipeSeries& whole = form_.series.back();
    return &front(static_cast<std::int32_t>(form_.series.size()) - 1, 0,
                  static_cast<int>(whole.items.size()), sink());
  }

  void fill_run(std::size_t s, std::size_t g, std::size_t u) {
    const PassGroup& group = groups_[g];
    const std::int64_t samples = problem_.device_samples[u];
    if (group.micro_batch % samples != 0) return;
    const std::int64_t devices = group.micro_batch / samples;
    if (devices > std::min(problem_.devices, problem_.most_stage_devices)) return;
    if (devices < problem_.least_stage_devices) return;
    const GraphPipeShape& shape = form_.shapes[s];
    const std::int64_t least =
        table_ ? std::min(group.k * group.micro_batch, problem_.batch) : group.micro_batch;
    if (memory_bytes(shape, group, devices, least) > problem_.memory_bytes) return;
    const auto d = static_cast<double>(devices);
    const double compute_s =
        (shape.forward_s[u] + shape.backward_s[u]) / static_cast<double>(group.micro_batch) +
        2 * (d - 1) / d * shape.gradient_bytes /
            (graphpipe_sync_bytes_per_s(problem_, devices) * static_cast<double>(problem_.batch));
    const double network_s =
        (shape.in_bytes + shape.out_bytes) / (problem_.bandwidth_bytes_per_s * d);
    runs_[run_index(s, g, u)] = {
        problem_.overlap ? std::max(compute_s, network_s) : compute_s + network_s,
        static_cast<std::int32_t>(devices)};
  }

  static double memory_bytes(const GraphPipeShape& shape, const PassGroup& group,
                             std::int64_t devices, std::int64_t in_flight) {
    return graphpipe_memory_bytes(in_flight, devices, group.micro_batch, shape.fixed_bytes,
                                  shape.stash_bytes, shape.working_bytes);
  }

  std::size_t run_index(std::size_t s, std::size_t g, std::size_t u) const {
    return (s * groups_.size() + g) * problem_.device_samples.size() + u;
  }

  /// For each shape and group how many numbers of samples per device there are up to the largest
  /// that keeps the target time.
  void find_fewest() {
    const std::size_t samples = problem_.device_samples.size();
    fewest_.resize(runs_.size() / samples);
    for (std::size_t i = 0; i < fewest_.size(); ++i) {
      std::size_t u = samples;
      while (u > 0 && runs_[i * samples + u - 1].time_s > time_s_) --u;
      fewest_[i] = u;
    }
  }

  Label sink() const {
    Label label;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      label.samples[g] = groups_[g].k * groups_[g].micro_batch;
    }
    return label;
  }

  bool no_worse(const Label& a, const Label& b) const {
    if (a.devices > b.devices) return false;
    if (!table_) return a.out_s + a.back_s <= b.out_s + b.back_s;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (a.samples[g] > b.samples[g]) return false;
    }
    return true;
  }

  void insert(Frontier& frontier, const Label& label) const {
    for (const Label& other : frontier) {
      if (no_worse(other, label)) return;
    }
    std::erase_if(frontier, [&](const Label& other) { return no_worse(label, other); });
    frontier.push_back(label);
  }

  std::int32_t add(const Choice& choice) {
    choices_.push_back(choice);
    return static_cast<std::int32_t>(choices_.size() - 1);
  }

  /// Fewest devices that could do the work of items [first, last) of a series, as a real number.
  /// Everything else needs its own, so that no part of a plan may use more than `slack_` beyond it.
  double need(const GraphPipeSeries& series, int first, int last) const {
    return (series.work_s[at(last)] - series.work_s[at(first)]) / time_s_;
  }

  /// Puts a stage of this shape in front of `label`, with the fewest devices that keep the target
  /// time and the memory, at most `limit` in all.
  void put_stage(std::int32_t shape_index, const Label& label, double limit, Frontier& frontier) {
    const GraphPipeShape& shape = form_.shapes[at(shape_index)];
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (label.samples[g] >= kImpossible) continue;
      const std::size_t index = at(shape_index) * groups_.size() + g;
      for (std::size_t u = fewest_[index]; u-- > 0;) {
        const Run& run = runs_[index * problem_.device_samples.size() + u];
        if (run.time_s > time_s_) continue;
        if (label.devices + run.devices > limit) break;
        ++work_;
        Label made = label;
        made.devices += run.devices;
        if (!extend(shape, g, u, made)) continue;
        const auto useless = [&](const Label& other) { return no_worse(other, made); };
        if (std::any_of(frontier.begin(), frontier.end(), useless)) break;
        made.choice = add({Choice::Kind::stage, shape_index, static_cast<std::int32_t>(g),
                           static_cast<std::int32_t>(u), -1, -1, label.choice});
        insert(frontier, made);
        break;
      }
    }
  }

  /// Makes of what is behind a stage what a stage before it sees; false when it does not fit.
  bool extend(const GraphPipeShape& shape, std::size_t g, std::size_t u, Label& label) const {
    if (relaxed_) return true;
    const PassGroup& group = groups_[g];
    const std::int64_t devices = group.micro_batch / problem_.device_samples[u];
    label.out_s += shape.forward_s[u];
    label.back_s += shape.backward_s[u];
    std::int64_t in_flight = label.samples[g];
    if (!table_) {
      const double period_s = time_s_ * static_cast<double>(group.micro_batch);
      in_flight = group.micro_batch * least_in_flight(label.out_s, label.back_s,
                                                      shape.forward_s[u] + shape.backward_s[u],
                                                      period_s, problem_.batch / group.micro_batch);
    }
    if (memory_bytes(shape, group, devices, std::min(in_flight, problem_.batch)) >
        problem_.memory_bytes) {
      return false;
    }
    const double hop_s = shape.in_bytes * static_cast<double>(group.micro_batch) /
                         (problem_.bandwidth_bytes_per_s * static_cast<double>(devices));
    label.out_s += hop_s;
    label.back_s += hop_s;
    for (std::size_t f = 0; f < groups_.size(); ++f) {
      const std::int64_t a = groups_[f].micro_batch;
      const std::int64_t b = group.micro_batch;
      label.samples[f] =
          a % b != 0 && b % a != 0 ? kImpossible : table_in_flight(groups_[f], group, in_flight);
    }
    return true;
  }

  using Values = std::tuple<double, double, std::array<std::int64_t, kMostMixedGroups>>;
  Values values_of(const Label& label) const {
    return {table_ ? 0 : label.out_s, table_ ? 0 : label.back_s, label.samples};
  }

  /// Plans of the items [first, last) of a series in front of `start`, which has no devices.
  const Frontier& front(std::int32_t series_index, int first, int last, const Label& start) {
    const auto [known, added] =
        known_series_.try_emplace({series_index, first, last, values_of(start)}, Frontier{});
    if (added) known->second = plan_series(form_.series[at(series_index)], first, last, start);
    return known->second;
  }

  Frontier plan_series(const GraphPipeSeries& series, int first, int last, const Label& start) {
    std::vector<Frontier> cuts(at(std::max(0, last - first)) + 1);
    cuts.back() = {start};
    const auto limit = [&](int cut) { return slack_ + need(series, cut, last); };
    for (int e = last; e > first; --e) {
      const Frontier here = std::move(cuts[at(e - first)]);
      for (const Label& from : here) {
        for (const SeriesStage& stage : series.ending[at(e)]) {
          if (stage.to < first) break;
          put_stage(stage.shape, from, limit(stage.to), cuts[at(stage.to - first)]);
        }
        for (const SeriesStage& stage : series.closing[at(e)]) {
          const int p = stage.to - 1;
          if (p < first) continue;
          Frontier ends;
          put_stage(stage.shape, from, limit(p), ends);
          for (const Label& end : ends) {
            put_block(series.items[at(p)].block, stage.absorption, end, limit(p),
                      cuts[at(p - first)]);
          }
        }
        const std::int32_t block = series.items[at(e - 1)].block;
        if (block < 0) continue;
        put_block(block, -1, from, limit(e - 1), cuts[at(e - 1 - first)]);
        int absorption = -1;
        Frontier rest;
        for (const SeriesStage& stage : series.opening[at(e - 1)]) {
          if (stage.to < first) continue;
          if (stage.absorption != absorption) {
            absorption = stage.absorption;
            rest.clear();
            put_block(block, absorption, from, limit(e - 1), rest);
          }
          for (const Label& before : rest) {
            put_stage(stage.shape, before, limit(stage.to), cuts[at(stage.to - first)]);
          }
        }
      }
    }
    return std::move(cuts.front());
  }

  /// Of plans side by side everything is the most of both, but devices add up.
  Label join(const Label& a, const Label& b) const {
    Label both = a;
    both.devices += b.devices;
    both.out_s = std::max(a.out_s, b.out_s);
    both.back_s = std::max(a.back_s, b.back_s);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      both.samples[g] = std::max(a.samples[g], b.samples[g]);
    }
    return both;
  }

  /// Plans of a block's branches, but for those that are absorbed, all in front of `label`.
  void put_block(std::int32_t block_index, std::int32_t absorption, const Label& label,
                 double limit, Frontier& frontier) {
    Label start = label;
    start.devices = 0;
    start.choice = -1;
    const auto [known, added] =
        known_blocks_.try_emplace({block_index, absorption, 0, values_of(start)}, Frontier{});
    if (added) known->second = plan_block(block_index, absorption, start);
    for (const Label& part : known->second) {
      Label made = part;
      made.devices += label.devices;
      if (made.devices > limit) continue;
      const auto useless = [&](const Label& other) { return no_worse(other, made); };
      if (std::any_of(frontier.begin(), frontier.end(), useless)) continue;
      made.choice =
          add({Choice::Kind::block, block_index, 0, 0, absorption, part.choice, label.choice});
      insert(frontier, made);
    }
  }

  /// Plans for some branches of each class with what is left of a partial one, if there is one.
  using Seed = std::pair<std::vector<int>, Frontier>;

  Frontier plan_block(std::int32_t block_index, std::int32_t absorption, const Label& start) {
    const GraphPipeBlock& block = form_.blocks[at(block_index)];
    const Absorption none;
    const Absorption& absorbed = absorption < 0 ? none : block.absorptions[at(absorption)];
    std::vector<int> counts = block.counts;
    for (std::size_t j = 0; j < absorbed.whole.size(); ++j) counts[j] -= absorbed.whole[j];
    // Without any branch planned yet; those absorbed behind are reached from before directly.
    Label base;
    if (!absorbed.whole.empty()) base = start;
    std::vector<Seed> seeds = {{std::vector<int>(counts.size(), 0), {base}}};
    double partial_need = 0;
    if (absorbed.partial >= 0) {
      const auto j = at(absorbed.partial);
      --counts[j];
      partial_need = need(form_.series[at(block.classes[j])], absorbed.first, absorbed.last);
      for (std::size_t i = 0; i < absorbed.rest.size(); ++i) {
        Frontier rest;
        put_stage(absorbed.rest[i].shape, start,
                  slack_ + partial_need + group_need(block, absorbed.rest[i].counts), rest);
        if (rest.empty()) continue;
        seeds.push_back(
            {absorbed.rest[i].counts,
             with_part({base}, rest, Choice::Kind::rest, static_cast<std::int32_t>(i), kInfinity)});
      }
      seeds[0].second =
          with_part({base}, front(block.classes[j], absorbed.first, absorbed.last, start),
                    Choice::Kind::partial, absorbed.partial, kInfinity);
    }
    return cover(block, counts, parts_of(block_index, start), std::move(seeds),
                 slack_ + partial_need);
  }

  double group_need(const GraphPipeBlock& block, const std::vector<int>& counts) const {
    double needed = 0;
    for (std::size_t j = 0; j < counts.size(); ++j) needed += counts[j] * branch_need(block, j);
    return needed;
  }

  /// Branches planned at once: one by itself, or several whole ones as a stage.
  struct Part {
    std::vector<int> counts;
    Frontier plans;
    Choice::Kind kind = Choice::Kind::part;
    std::int32_t what = 0;
  };

  const std::vector<Part>& parts_of(std::int32_t block_index, const Label& start) {
    const auto [known, added] =
        known_groups_.try_emplace({block_index, 0, 0, values_of(start)}, std::vector<Part>{});
    if (added) known->second = plan_parts(form_.blocks[at(block_index)], start);
    return known->second;
  }

  std::vector<Part> plan_parts(const GraphPipeBlock& block, const Label& start) {
    std::vector<Part> parts;
    for (std::size_t j = 0; j < block.classes.size(); ++j) {
      const GraphPipeSeries& branch = form_.series[at(block.classes[j])];
      std::vector<int> one(block.classes.size(), 0);
      one[j] = 1;
      parts.push_back({std::move(one),
                       front(block.classes[j], 0, static_cast<int>(branch.items.size()), start),
                       Choice::Kind::part, static_cast<std::int32_t>(j)});
    }
    for (std::size_t i = 0; i < block.groups.size(); ++i) {
      const std::vector<int>& taken = block.groups[i].counts;
      Frontier plans;
      put_stage(block.groups[i].shape, start, slack_ + group_need(block, taken), plans);
      if (plans.empty()) continue;
      parts.push_back({taken, std::move(plans), Choice::Kind::group, static_cast<std::int32_t>(i)});
    }
    return parts;
  }

  double branch_need(const GraphPipeBlock& block, std::size_t j) const {
    const GraphPipeSeries& branch = form_.series[at(block.classes[j])];
    return need(branch, 0, static_cast<int>(branch.items.size()));
  }

  Frontier with_part(const Frontier& others, const Frontier& parts, Choice::Kind kind,
                     std::int32_t what, double limit) {
    Frontier result;
    put_parts(others, parts, kind, what, limit, result);
    return result;
  }

  void put_parts(const Frontier& others, const Frontier& parts, Choice::Kind kind,
                 std::int32_t what, double limit, Frontier& result) {
    for (const Label& other : others) {
      for (const Label& part : parts) {
        if (other.devices + part.devices > limit) continue;
        Label both = join(other, part);
        const auto useless = [&](const Label& known) { return no_worse(known, both); };
        if (std::any_of(result.begin(), result.end(), useless)) continue;
        both.choice = add({kind, what, 0, 0, -1, part.choice, other.choice});
        insert(result, both);
      }
    }
  }

  /// Plans for so many branches of each class, beginning with those of the seeds: one at a time,
  /// each on its own or in a stage of several whole ones. `spare`: devices that may be used beyond
  /// what the branches need.
  Frontier cover(const GraphPipeBlock& block, const std::vector<int>& counts,
                 const std::vector<Part>& all_parts, std::vector<Seed> seeds, double spare) {
    const std::size_t classes = counts.size();
    std::vector<std::size_t> stride;
    stride.reserve(classes);
    std::size_t states = 1;
    for (const int count : counts) {
      stride.push_back(states);
      states *= at(count) + 1;
    }
    const auto state_of = [&](const std::vector<int>& some) {
      std::size_t state = 0;
      for (std::size_t j = 0; j < classes; ++j) state += at(some[j]) * stride[j];
      return state;
    };
    std::vector<std::vector<std::pair<std::size_t, const Part*>>> parts(
        classes);  // By the highest class in them.
    for (const Part& part : all_parts) {
      bool inside = true;
      std::size_t last = 0;
      for (std::size_t j = 0; j < classes; ++j) {
        inside = inside && part.counts[j] <= counts[j];
        if (part.counts[j] > 0) last = j;
      }
      if (inside) parts[last].emplace_back(state_of(part.counts), &part);
    }
    std::vector<Frontier> covered;
    covered.resize(states);
    for (Seed& seed : seeds) covered[state_of(seed.first)] = std::move(seed.second);
    std::vector<int> have(classes, 0);
    for (std::size_t state = 1; state < covered.size(); ++state) {
      std::size_t last = 0;  // One branch of the highest class in it is in the part put last.
      for (std::size_t j = 0; j < classes; ++j) {
        have[j] = static_cast<int>(state / stride[j] % (at(counts[j]) + 1));
        if (have[j] > 0) last = j;
      }
      const double limit = spare + group_need(block, have);
      for (const auto& [own, part] : parts[last]) {
        bool inside = true;
        for (std::size_t j = 0; j <= last; ++j) inside = inside && part->counts[j] <= have[j];
        if (!inside) continue;
        put_parts(covered[state - own], part->plans, part->kind, part->what, limit, covered[state]);
      }
    }
    return std::move(covered.back());
  }

  /// Appends the stages of a partial plan; `actual` has the node that each stands for.
  void read_plan(std::int32_t index, const std::vector<std::int32_t>& actual,
                 std::vector<GraphPipeStage>& stages) const {
    for (; index >= 0; index = choices_[at(index)].next) {
      const Choice& choice = choices_[at(index)];
      if (choice.kind == Choice::Kind::stage) {
        add_stage(form_.shapes[at(choice.what)].nodes, choice, actual, stages);
      } else {
        read_block(choice, actual, stages);
      }
    }
  }

  void add_stage(const std::vector<std::int32_t>& nodes, const Choice& choice,
                 const std::vector<std::int32_t>& actual,
                 std::vector<GraphPipeStage>& stages) const {
    GraphPipeStage stage;
    for (const std::int32_t v : nodes) stage.nodes.push_back(actual[at(v)]);
    std::sort(stage.nodes.begin(), stage.nodes.end());
    stage.group = groups_[at(choice.group)];
    stage.devices = stage.group.micro_batch / problem_.device_samples[at(choice.samples)];
    stages.push_back(std::move(stage));
  }

  void read_block(const Choice& choice, const std::vector<std::int32_t>& actual,
                  std::vector<GraphPipeStage>& stages) const {
    const GraphPipeBlock& block = form_.blocks[at(choice.what)];
    std::vector<std::size_t> used(block.counts.size(), 0);  // Copies, [class].
    if (choice.absorption >= 0) {
      const Absorption& absorbed = block.absorptions[at(choice.absorption)];
      for (std::size_t j = 0; j < absorbed.whole.size(); ++j) used[j] = at(absorbed.whole[j]);
      if (absorbed.partial >= 0) used[at(absorbed.partial)] = 1;
    }
    for (std::int32_t index = choice.inner; index >= 0; index = choices_[at(index)].next) {
      const Choice& part = choices_[at(index)];
      if (part.kind == Choice::Kind::group || part.kind == Choice::Kind::rest) {
        const bool rest = part.kind == Choice::Kind::rest;
        std::vector<std::int32_t> nodes;
        if (rest) {
          // The shape lists it before the whole branches.
          const Absorption& absorbed = block.absorptions[at(choice.absorption)];
          nodes = form_.shapes[at(absorbed.rest[at(part.what)].shape)].nodes;
          std::size_t whole = 0;
          for (std::size_t j = 0; j < block.counts.size(); ++j) {
            whole += at(absorbed.rest[at(part.what)].counts[j]) * block.copies[j][0].size();
          }
          nodes.resize(nodes.size() - whole);
        }
        const std::vector<int>& taken =
            rest ? block.absorptions[at(choice.absorption)].rest[at(part.what)].counts
                 : block.groups[at(part.what)].counts;
        for (std::size_t j = 0; j < taken.size(); ++j) {
          for (int i = 0; i < taken[j]; ++i) {
            const std::vector<std::int32_t>& copy = block.copies[j][used[j]++];
            nodes.insert(nodes.end(), copy.begin(), copy.end());
          }
        }
        add_stage(nodes, choices_[at(part.inner)], actual, stages);
        continue;
      }
      const auto j = at(part.what);
      const std::size_t copy = part.kind == Choice::Kind::partial ? 0 : used[j]++;
      const GraphPipeSeries& branch = form_.series[at(block.classes[j])];
      std::vector<std::int32_t> inner = actual;
      for (std::size_t i = 0; i < branch.nodes.size(); ++i) {
        inner[at(branch.nodes[i])] = actual[at(block.copies[j][copy][i])];
      }
      read_plan(part.inner, inner, stages);
    }
  }

  const GraphPipeProblem& problem_;
  const GraphPipeShapes& form_;
  std::vector<PassGroup> groups_;
  bool table_ = false;
  bool relaxed_ = false;  ///< Whatever is in flight, but for what fill_run has seen to.
  std::vector<Run> runs_;
  std::vector<std::size_t> fewest_;
  double work_s_ = 0;  ///< Least device-seconds per sample of everything.
  double time_s_ = 0;  ///< The target.
  double slack_ = 0;
  std::vector<Choice> choices_;
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, Values>;
  std::map<Key, Frontier> known_series_, known_blocks_;
  std::map<Key, std::vector<Part>> known_groups_;
  std::int64_t work_ = 0;
};

/// One search for all groups if they may be mixed, else one for each, the largest first: its plans
/// are mostly the fastest, and the others then only have to be ruled out.
std::vector<Search> searches_of(const GraphPipeProblem& problem, const GraphPipeShapes& form) {
  std::vector<Search> searches;
  if (problem.mixed) {
    searches.emplace_back(problem, form, problem.groups);
    return searches;
  }
  std::vector<PassGroup> groups = problem.groups;
  std::stable_sort(groups.begin(), groups.end(), [](const PassGroup& a, const PassGroup& b) {
    return a.micro_batch > b.micro_batch;
  });
  searches.reserve(groups.size());
  for (const PassGroup& group : groups) searches.emplace_back(problem, form, std::vector{group});
  return searches;
}

std::optional<GraphPipeSolution> priced_plan(const GraphPipeProblem& problem,
                                             const GraphPipeShapes& form, Search& search,
                                             double time_s) {
  std::optional<GraphPipeSolution> found = search.plan_at(time_s);
  if (!found) return found;
  const bool fits = price_graphpipe(problem, *found, time_s);
  found->status = fits ? Status::optimal : Status::feasible;
  found->cuts = form.cuts;
  return found;
}

/// Least and most devices of a stage: any, all the same power of two, or at least that many.
std::vector<std::pair<std::int64_t, std::int64_t>> stage_devices_of(
    const GraphPipeProblem& problem) {
  const std::int64_t most = std::min(problem.most_stage_devices, problem.devices);
  std::vector<std::pair<std::int64_t, std::int64_t>> limits = {{problem.least_stage_devices, most}};
  for (std::int64_t devices = 1; devices <= most; devices *= 2) {
    if (devices < problem.least_stage_devices) continue;
    limits.emplace_back(devices, devices);
    if (devices > problem.least_stage_devices) limits.emplace_back(devices, most);
  }
  return limits;
}

}  // namespace

GraphPipeSolution solve_graphpipe(const GraphPipeProblem& problem) {
  check_graphpipe_problem(problem);
  const GraphPipeShapes form = graphpipe_shapes(problem);
  std::vector<Search> searches = searches_of(problem, form);
  double best_s = kInfinity;
  for (Search& search : searches) best_s = std::min(best_s, search.least_time_s(best_s));
  GraphPipeSolution best;
  best.cuts = form.cuts;
  for (Search& search : searches) {
    if (best_s == kInfinity) break;
    if (!search.has_relaxed(best_s)) continue;
    std::optional<GraphPipeSolution> found = priced_plan(problem, form, search, best_s);
    if (!found) continue;
    if (best.status == Status::infeasible || found->fill_s < best.fill_s) best = std::move(*found);
  }
  best.work = 0;
  for (const Search& search : searches) best.work += search.work();
  return best;
}

double graphpipe_iteration_s(const GraphPipeProblem& problem, const GraphPipeSolution& solution) {
  constexpr std::int64_t kMostSimulated = std::int64_t{1} << 17;
  std::int64_t passes = 0;
  double sync_s = 0;
  const TimedGraph timed = timed_graph_of(problem, solution);
  std::vector<std::int64_t> k, in_flight;
  for (std::size_t s = 0; s < solution.stages.size(); ++s) {
    passes += timed.graph.micro_batches(s);
    sync_s = std::max(sync_s, timed.costs[s].reduce_gradients_s);
    k.push_back(solution.stages[s].group.k);
    in_flight.push_back(solution.stages[s].in_flight);
  }
  if (passes > kMostSimulated) {
    const auto last = static_cast<double>(problem.batch - solution.stages[0].group.micro_batch);
    return last * solution.time_s + solution.fill_s + sync_s;
  }
  const std::vector<std::int64_t> warm_ups = warm_ups_of(timed.graph, k, in_flight);
  return time_order(timed, k_f_k_b_order(timed.graph, k, warm_ups)).time_s;
}

std::int64_t visit_graphpipe_plans(const GraphPipeProblem& problem,
                                   const std::function<double(const GraphPipeSolution&)>& visit) {
  check_graphpipe_problem(problem);
  const std::int64_t cuts = graphpipe_shapes(problem).cuts;
  double limit_s = kInfinity;
  std::int64_t work = 0;
  for (GraphPipeProblem ordered : {problem, linear_graphpipe(problem)}) {
    const GraphPipeShapes form = graphpipe_shapes(ordered);
    for (const auto& [least, most] : stage_devices_of(problem)) {
      ordered.least_stage_devices = least;
      ordered.most_stage_devices = most;
      for (Search& search : searches_of(ordered, form)) {
        const double time_s = search.least_time_s(limit_s);
        work += search.work();
        if (time_s == kInfinity) continue;
        std::optional<GraphPipeSolution> found = priced_plan(problem, form, search, time_s);
        if (!found) continue;
        found->cuts = cuts;
        found->status = Status::feasible;
        limit_s = visit(*found);
      }
    }
  }
  return work;
}

GraphPipeSolution solve_graphpipe_iteration(const GraphPipeProblem& problem) {
  GraphPipeSolution best;
  double best_s = kInfinity;
  const std::int64_t work = visit_graphpipe_plans(problem, [&](const GraphPipeSolution& found) {
    const double iteration_s = graphpipe_iteration_s(problem, found);
    if (iteration_s < best_s) {
      best_s = iteration_s;
      best = found;
    }
    // The slowest stage alone takes its time for every sample of the batch.
    return best_s / static_cast<double>(problem.batch);
  });
  best.work = work;
  return best;
}

}  // namespace braid

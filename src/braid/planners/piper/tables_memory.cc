#include <algorithm>
#include <cmath>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/planners/piper/tables.h"

namespace braid {
namespace {

/// Most stages whose least time within memory is remembered.
constexpr std::size_t kMostKnown = 2'000'000;

}  // namespace

void PiperTables::fill_groups(const PiperStageSums& stage, double share, double sync_factor,
                              std::int64_t in_flight, bool with_nodes) {
  const std::size_t t = at(stage.degree), kinds = kinds_.size();
  const auto inner = at(stage.inner), outer = at(stage.outer);
  groups_.clear();
  group_choices_.clear();
  members_.clear();
  // Layers whose options differ at the border stand alone.
  std::vector<std::pair<std::int32_t, std::size_t>> alone;  // Layer, edge (entering: + edges).
  std::vector<std::int32_t> left(
      kind_counts_.begin() + static_cast<std::ptrdiff_t>(outer * kinds),
      kind_counts_.begin() + static_cast<std::ptrdiff_t>((outer + 1) * kinds));
  for (std::size_t k = 0; k < kinds; ++k) left[k] -= kind_counts_[inner * kinds + k];
  const std::size_t edges = problem_->edges.size();
  if (!simple_[t]) {
    for_each_border_edge(inner, outer, [&](std::size_t e, bool enters) {
      const PiperEdge& edge = problem_->edges[e];
      alone.emplace_back(enters ? edge.target : edge.source, enters ? e + edges : e);
    });
    std::sort(alone.begin(), alone.end());
  }
  const auto choices_of = [&](std::size_t k) {
    for (const Choice& choice : kinds_[k].choices[t]) {
      group_choices_.push_back(
          {share * choice.time + sync_factor * choice.sync_time,
           choice.in_flight_bytes * static_cast<double>(in_flight) + choice.fixed_bytes});
    }
  };
  std::vector<std::pair<std::size_t, std::int32_t>> spans;  // Number of choices, count.
  for (std::size_t i = 0; i < alone.size();) {
    const std::int32_t node = alone[i].first;
    const std::size_t k = at(kind_of_[at(node)]);
    --left[k];
    const std::size_t first = group_choices_.size();
    choices_of(k);
    const PiperDegree& degree = *degree_of(at(node), stage.degree);
    for (; i < alone.size() && alone[i].first == node; ++i) {
      const bool enters = alone[i].second >= edges;
      const std::size_t e = enters ? alone[i].second - edges : alone[i].second;
      const double least = enters ? in_bytes_[t][e] : out_bytes_[t][e];
      for (std::size_t c = 0; c < degree.options.size(); ++c) {
        const PiperOption& option = degree.options[c];
        const std::vector<double>& sync = enters ? option.in_sync_bytes : option.out_sync_bytes;
        const std::size_t place = at(enters ? in_place_[e] : out_place_[e]);
        const double bytes =
            2 * (problem_->edges[e].bytes + (sync.empty() ? 0 : sync[place])) - least;
        group_choices_[first + c].cost += share * bytes / problem_->bandwidth_bytes;
      }
    }
    spans.emplace_back(degree.options.size(), 1);
    members_.push_back({static_cast<std::int32_t>(k), {node}});
  }
  for (std::size_t k = 0; k < kinds; ++k) {
    if (left[k] == 0) continue;
    choices_of(k);
    spans.emplace_back(kinds_[k].choices[t].size(), left[k]);
    members_.push_back({static_cast<std::int32_t>(k), {}});
  }
  std::size_t first = 0;
  for (const auto& [size, count] : spans) {
    groups_.push_back({count, std::span(group_choices_).subspan(first, size)});
    first += size;
  }
  if (!with_nodes) return;
  std::size_t single = 0;
  while (single < members_.size() && !members_[single].nodes.empty()) ++single;
  for (std::size_t v = 0; v < problem_->nodes.size(); ++v) {
    const auto node = static_cast<std::int32_t>(v);
    if (!has(outer, node) || has(inner, node)) continue;
    const auto is_alone = [&](const auto& entry) { return entry.first == node; };
    if (std::any_of(alone.begin(), alone.end(), is_alone)) continue;
    for (std::size_t g = single; g < members_.size(); ++g) {
      if (members_[g].kind == kind_of_[v]) members_[g].nodes.push_back(node);
    }
  }
}

const std::vector<PiperTables::Step>& PiperTables::steps_row(std::int32_t degree,
                                                             std::int64_t in_flight) {
  auto& rows = steps_rows_[at(degree)];
  if (rows.size() <= at(in_flight)) rows.resize(at(in_flight) + 1);
  std::vector<Step>& row = rows[at(in_flight)];
  if (!row.empty()) return row;
  const auto weight = [&](const Choice& choice) {
    return choice.in_flight_bytes * static_cast<double>(in_flight) + choice.fixed_bytes;
  };
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const std::vector<Choice>& choices = kinds_[k].choices[at(degree)];
    if (choices.empty()) continue;
    // The hull of (weight, time) from the fastest choice on, as in Knapsack.
    const Choice* corner = &fastest_of_kind_[at(degree)][k];
    double ratio_before = 0;
    for (;;) {
      const Choice* next = nullptr;
      double best = 0, best_saved = 0;
      for (const Choice& choice : choices) {
        const double saved = weight(*corner) - weight(choice);
        if (!(saved > 0)) continue;
        const double ratio = (choice.time - corner->time) / saved;
        if (next == nullptr || ratio < best || (ratio == best && saved > best_saved)) {
          next = &choice;
          best = ratio;
          best_saved = saved;
        }
      }
      if (next == nullptr) break;
      ratio_before = std::max(ratio_before, best);
      row.push_back(
          {ratio_before, next->time - corner->time, best_saved, static_cast<std::int32_t>(k)});
      corner = next;
    }
  }
  std::stable_sort(row.begin(), row.end(),
                   [](const Step& a, const Step& b) { return a.ratio < b.ratio; });
  if (row.empty()) row.push_back({0, 0, 0, 0});
  return row;
}

PiperTables::Within PiperTables::relax(const PiperStageSums& stage, std::int64_t in_flight) {
  const std::size_t kinds = kinds_.size();
  const std::int32_t* inner = kind_counts_.data() + at(stage.inner) * kinds;
  const std::int32_t* outer = kind_counts_.data() + at(stage.outer) * kinds;
  double time = stage.time - border_time(stage);
  double need = stage.in_flight_bytes * static_cast<double>(in_flight) + stage.fixed_bytes -
                problem_->memory_bytes * kAboveRounding;
  if (need <= 0) return {0, time, time};
  for (const Step& step : steps_row(stage.degree, in_flight)) {
    const std::int32_t count = outer[step.kind] - inner[step.kind];
    if (count == 0) continue;
    if (need > step.saved * count) {
      need -= step.saved * count;
      time += step.time * count;
      continue;
    }
    const double steps = need / step.saved;
    const double whole = std::clamp(std::ceil(steps), 1.0, static_cast<double>(count));
    return {0, time + step.time * steps, time + step.time * whole};
  }
  return {0, kInfinity, kInfinity};
}

void PiperTables::grow_known() {
  std::vector<Within> old(known_.empty() ? 1024 : known_.size() * 2);
  old.swap(known_);
  for (const Within& entry : old) {
    if (entry.key == 0) continue;
    std::size_t at = entry.key * 0x9e3779b97f4a7c15U >> 20 & (known_.size() - 1);
    while (known_[at].key != 0) at = (at + 1) & (known_.size() - 1);
    known_[at] = entry;
  }
}

PiperTables::Within& PiperTables::within(const PiperStageSums& stage, std::int64_t in_flight) {
  if (2 * known_count_ >= known_.size()) {
    if (known_count_ >= kMostKnown) return unknown_ = relax(stage, in_flight);
    grow_known();
  }
  const std::uint64_t pair = at(stage.outer) * suffixes_ + at(stage.inner);
  const std::uint64_t key =
      (pair * degrees_.size() + at(stage.degree)) * (2 * kMostPiperDevices) + at(in_flight);
  std::size_t at = key * 0x9e3779b97f4a7c15U >> 20 & (known_.size() - 1);
  while (known_[at].key != 0) {
    if (known_[at].key == key) return known_[at];
    at = (at + 1) & (known_.size() - 1);
  }
  ++known_count_;
  known_[at] = relax(stage, in_flight);
  known_[at].key = key;
  return known_[at];
}

double PiperTables::border_time(const PiperStageSums& stage) const {
  const Choice& a = fastest_[at(stage.degree)][at(stage.inner)];
  const Choice& b = fastest_[at(stage.degree)][at(stage.outer)];
  return stage.time - std::max(0.0, b.time - a.time);
}

double PiperTables::least_time_within(const PiperStageSums& stage, std::int64_t in_flight) {
  if (!is_simple(stage.degree)) return stage.time;
  return within(stage, in_flight).low + border_time(stage);
}

KnapsackAnswer PiperTables::fits(const PiperStageSums& stage, double share, double sync_factor,
                                 std::int64_t in_flight, double limit) {
  const bool exact = problem_->rules.knapsack == PiperKnapsack::exact;
  const double border = border_time(stage);
  if (is_simple(stage.degree)) {
    // Options differ in time alone, so what the layers may take is the same question for all data-
    // parallel degrees.
    const double most = (limit - sync_factor * stage.sync_time) / share - border;
    Within& known = within(stage, in_flight);
    if (known.low == kInfinity) return KnapsackAnswer::no;
    if (known.high <= most) return KnapsackAnswer::yes;
    if (!exact || known.low > most) return KnapsackAnswer::no;
    fill_groups(stage, 1, 0, in_flight, false);
    const KnapsackAnswer answer = knapsack_.at_most(groups_, problem_->memory_bytes, most);
    if (answer == KnapsackAnswer::yes) known.high = knapsack_.cost();
    if (answer == KnapsackAnswer::no) {
      known.low = std::nextafter(most, kInfinity);
    }
    return answer;
  }
  fill_groups(stage, share, sync_factor, in_flight, false);
  limit -= share * border;
  if (exact) return knapsack_.at_most(groups_, problem_->memory_bytes, limit);
  if (knapsack_.greedy(groups_, problem_->memory_bytes) == KnapsackAnswer::no) {
    return KnapsackAnswer::no;
  }
  return knapsack_.cost() <= limit ? KnapsackAnswer::yes : KnapsackAnswer::no;
}

bool PiperTables::keeps(PiperStageSums& stage, double share, double sync_factor,
                        std::int64_t in_flight, double limit) {
  if (in_flight <= stage.most_in_flight_fast) return true;
  if (in_flight > most_in_flight(stage)) return false;
  const KnapsackAnswer answer = fits(stage, share, sync_factor, in_flight, limit);
  if (answer == KnapsackAnswer::unknown) proven_ = false;
  return answer == KnapsackAnswer::yes;
}

double PiperTables::least_time(const PiperStageSums& stage, std::size_t dp,
                               std::int64_t in_flight) {
  const double border = border_time(stage);
  const auto cheapest = [&] {
    const KnapsackAnswer answer = knapsack_.cheapest(groups_, problem_->memory_bytes);
    if (answer == KnapsackAnswer::unknown) proven_ = false;
    return answer == KnapsackAnswer::no ? kInfinity : knapsack_.cost();
  };
  if (!is_simple(stage.degree)) {
    fill_groups(stage, share_[dp], sync_[dp], in_flight, false);
    return cheapest() + share_[dp] * border;
  }
  Within& known = within(stage, in_flight);
  if (known.low < known.high) {
    fill_groups(stage, 1, 0, in_flight, false);
    known.low = known.high = cheapest();
  }
  return share_[dp] * (known.high + border) + sync_[dp] * stage.sync_time;
}

PiperStage PiperTables::choose(const PiperStageSums& stage, double share, double sync_factor,
                               std::int64_t in_flight) {
  fill_groups(stage, share, sync_factor, in_flight, true);
  if (problem_->rules.knapsack == PiperKnapsack::exact) {
    knapsack_.cheapest(groups_, problem_->memory_bytes);
  } else {
    knapsack_.greedy(groups_, problem_->memory_bytes);
  }
  PiperStage chosen;
  chosen.tp = degrees_[at(stage.degree)];
  std::vector<std::pair<std::int32_t, std::int32_t>> options;
  std::size_t at = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::size_t node = 0;
    for (std::size_t c = 0; c < groups_[g].choices.size(); ++c, ++at) {
      for (std::int32_t i = 0; i < knapsack_.selection()[at]; ++i) {
        options.emplace_back(members_[g].nodes[node++], static_cast<std::int32_t>(c));
      }
    }
  }
  std::sort(options.begin(), options.end());
  for (const auto& [node, option] : options) {
    chosen.nodes.push_back(node);
    chosen.options.push_back(option);
  }
  return chosen;
}

}  // namespace braid

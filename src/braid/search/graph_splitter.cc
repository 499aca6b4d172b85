#include "braid/search/graph_splitter.h"

#include <algorithm>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/search/graph_bound.h"

namespace braid {
namespace {

/// Of each row, the first of the rows that are equal to it and follow one another; `distinct` gets
/// what `make` makes of each such row.
template <typename Make>
std::vector<std::size_t> kinds_of(const std::vector<std::vector<double>>& rows,
                                  std::vector<std::vector<double>>& distinct, Make make) {
  std::vector<std::size_t> kinds;
  kinds.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i] != rows[i - 1]) distinct.push_back(make(rows[i]));
    kinds.push_back(distinct.size() - 1);
  }
  return kinds;
}

std::vector<StagePace> stage_paces(const std::vector<std::vector<double>>& layer_s) {
  std::vector<StagePace> paces;
  for (std::size_t stage = 0; stage < layer_s.size(); ++stage) {
    if (stage > 0 && layer_s[stage] == layer_s[stage - 1]) {
      ++paces.back().count;
    } else {
      paces.push_back({layer_s[stage], 1});
    }
  }
  return paces;
}

/// Column by column.
std::vector<double> least_of_rows(std::span<const std::vector<double>> rows) {
  std::vector<double> least = rows.front();
  for (const std::vector<double>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) least[i] = std::min(least[i], row[i]);
  }
  return least;
}

}  // namespace

GraphSplitter::GraphSplitter(const AssignmentGraph& graph, const GraphCuts& cuts,
                             std::span<const double> crossing_bytes)
    : graph_(graph),
      cuts_(cuts),
      stages_(graph.layer_s.size()),
      layers_(graph.output_bytes.size()),
      repeats_(static_cast<double>(graph.micro_batches - 1)) {
  const auto sums = [&cuts](const std::vector<double>& row) { return cuts.sums(row); };
  kind_ = kinds_of(graph.layer_s, before_s_, sums);
  memory_kind_ = kinds_of(graph.layer_bytes, before_bytes_, sums);
  if (!graph.sync_s.empty()) {
    sync_before_s_ = cuts.sums(graph.sync_s);
    find_least_sync();
  }
  find_handovers(crossing_bytes);

  if (!graph.layer_bytes.empty()) {
    least_bytes_before_ = cuts.sums(least_of_rows(graph.layer_bytes));
    room_behind_bytes_.assign(stages_ + 1, 0);
    for (std::size_t stage = stages_; stage-- > 0;) {
      room_behind_bytes_[stage] = room_behind_bytes_[stage + 1] + graph.available_bytes[stage];
    }
  }

  std::vector<std::vector<double>> least_s = graph.layer_s;  // Of this stage and those behind it.
  for (std::size_t stage = stages_ - 1; stage-- > 0;) {
    least_s[stage] = least_of_rows(std::span(least_s).subspan(stage, 2));
  }
  behind_kind_ = kinds_of(least_s, least_behind_s_, [&](const std::vector<double>& row) {
    std::vector<double> behind_s = cuts.sums(row);
    const double all_s = behind_s.back();
    for (double& of_cut : behind_s) of_cut = all_s - of_cut;
    return behind_s;
  });
  least_bottleneck_s_ = least_pipeline_s(stage_paces(graph.layer_s), 0, 1);

  for (const Bitset& cut : cuts.sets) size_.push_back(cut.count());
  cost_s_.resize(cuts.sets.size() * (stages_ + 1));
  inner_.resize(cost_s_.size());
  seen_for_.resize(cuts.sets.size());
  largest_.resize(cuts.sets.size() * graph.largest_bytes.size());
}

bool GraphSplitter::limit(double sync_below_s, double pipeline_below_s) {
  sync_below_s_ = sync_below_s;
  pipeline_below_s_ = pipeline_below_s;
  most_threshold_s_ = kInfinity;
  handing_on_s_.assign(stages_ + 1, 0);
  if (!has_room(0, 0)) return false;
  if (repeats_ == 0 || !(pipeline_below_s < kInfinity)) return true;
  // What is left for the bottleneck narrows where cuts may be, which takes from what is left.
  for (int round = 0; round < 4; ++round) {
    const double rest_s = least_behind_s(0, 0) + handing_on_s_.front();
    most_threshold_s_ = (pipeline_below_s - rest_s) / repeats_ * kAboveRounding;
    if (!(least_bottleneck_s_ <= most_threshold_s_)) return false;
    bound_handovers(most_threshold_s_);
    if (!(handing_on_s_.front() < kInfinity)) return false;
  }
  return true;
}

void GraphSplitter::find_least_sync() {
  const std::vector<double>& pace = graph_.sync_pace;
  double rate = 0;
  for (const double of_stage : pace) rate += 1 / of_stage;
  const double least_pace = pace.empty() ? 1 : *std::min_element(pace.begin(), pace.end());
  if (pace.empty()) rate = static_cast<double>(stages_);
  const double longest_s = *std::max_element(graph_.sync_s.begin(), graph_.sync_s.end());
  least_sync_s_ = std::max(sync_before_s_.back() / rate, longest_s * least_pace) * kBelowRounding;
}

void GraphSplitter::find_handovers(std::span<const double> crossing_bytes) {
  std::vector<double> of_class(crossing_bytes.begin(), crossing_bytes.end());
  std::sort(of_class.begin(), of_class.end());
  of_class.erase(std::unique(of_class.begin(), of_class.end()), of_class.end());
  hop_classes_ = of_class.size();
  hop_class_.reserve(crossing_bytes.size());
  for (const double bytes : crossing_bytes) {
    const auto known = std::lower_bound(of_class.begin(), of_class.end(), bytes);
    hop_class_.push_back(static_cast<std::size_t>(known - of_class.begin()));
  }
  hop_s_.reserve((stages_ - 1) * hop_classes_);
  for (std::size_t stage = 0; stage + 1 < stages_; ++stage) {
    for (const double bytes : of_class) hop_s_.push_back(braid::handover_s(graph_, stage, bytes));
  }
}

void GraphSplitter::bound_handovers(double threshold_s) {
  const double all_s = least_behind_s(0, 0);
  for (std::size_t stage = stages_; stage-- > 1;) {
    const double most_before_s = static_cast<double>(stage) * threshold_s * kAboveRounding;
    const double most_behind_s =
        static_cast<double>(stages_ - stage) * threshold_s * kAboveRounding;
    double least_s = kInfinity;
    for (std::size_t cut = 0; cut < size_.size(); ++cut) {
      if (size_[cut] < stage || left(cut) < stages_ - stage) continue;
      if (least_behind_s(cut, stage) > most_behind_s ||
          all_s - least_behind_s(cut, 0) > most_before_s) {
        continue;
      }
      least_s = std::min(least_s, handover_s(cut, stage));
    }
    handing_on_s_[stage] = handing_on_s_[stage + 1] + least_s;
  }
  handing_on_s_.front() = handing_on_s_[std::min<std::size_t>(1, stages_)];
}

std::optional<ThresholdAnswer> GraphSplitter::solve(double threshold_s) {
  threshold_s_ = std::min(threshold_s, most_threshold_s_);
  next_threshold_s_ = kInfinity;
  std::fill(cost_s_.begin(), cost_s_.end(), kInfinity);
  std::fill(seen_for_.begin(), seen_for_.end(), 0);
  cost_s_[at(0, 0)] = 0;
  for (std::size_t cut = 0; cut + 1 < size_.size(); ++cut) {
    std::size_t first = stages_, last = 0;
    for (std::size_t stage = 0; stage + 1 < stages_; ++stage) {
      if (!(cost_s_[at(cut, stage)] < kInfinity)) continue;
      first = std::min(first, stage);
      last = stage;
    }
    if (first < stages_) extend(cut, first, last);
    if (cost_s_[at(cut, stages_ - 1)] < kInfinity) finish(cut);
  }
  const double rest_s = cost_s_[at(size_.size() - 1, stages_)];
  if (!(rest_s < kInfinity)) return std::nullopt;
  ThresholdAnswer answer{rest_s, 0};
  for_each_stage([&](std::size_t stage, std::size_t inner, std::size_t outer) {
    const std::vector<double>& before_s = before_s_[kind_[stage]];
    answer.bottleneck = std::max(answer.bottleneck, before_s[outer] - before_s[inner]);
  });
  pipeline_below_s_ = std::min(pipeline_below_s_, repeats_ * answer.bottleneck + rest_s);
  return answer;
}

void GraphSplitter::extend(std::size_t inner, std::size_t first, std::size_t last) {
  const std::size_t purposes = graph_.largest_bytes.size();
  std::fill_n(largest_.begin() + static_cast<std::ptrdiff_t>(inner * purposes), purposes, 0.0);
  open_.assign(1, static_cast<std::uint32_t>(inner));
  while (!open_.empty()) {
    const std::size_t from = open_.back();
    open_.pop_back();
    for (std::size_t s = cuts_.first_step[from]; s < cuts_.first_step[from + 1]; ++s) {
      const auto [layer, outer] = cuts_.steps[s];
      if (seen_for_[outer] == inner + 1) continue;
      seen_for_[outer] = inner + 1;
      ++steps_;
      // Even the last of these places needs a layer for each stage behind it.
      if (left(outer) < stages_ - 1 - last) continue;
      grow_largest(from, outer, layer);
      if (append(inner, outer, first, last)) open_.push_back(outer);
    }
  }
}

bool GraphSplitter::append(std::size_t inner, std::size_t outer, std::size_t first,
                           std::size_t last) {
  bool larger_may_do = false;
  for (std::size_t stage = first; stage <= last; ++stage) {
    if (!(cost_s_[at(inner, stage)] < kInfinity) || !syncs(stage, inner, outer)) continue;
    const std::vector<double>& before_s = before_s_[kind_[stage]];
    const double stage_s = before_s[outer] - before_s[inner];
    if (is_too_long(stage_s) || !fits(stage, inner, outer)) continue;
    larger_may_do = true;
    const std::size_t behind = stages_ - 1 - stage;
    if (left(outer) < behind) continue;
    // The stages behind have no time for more.
    const double share_s = least_behind_s(outer, stage + 1) / static_cast<double>(behind);
    if (is_too_long(share_s * kBelowRounding)) continue;
    take(inner, outer, stage, stage_s);
  }
  return larger_may_do;
}

void GraphSplitter::finish(std::size_t inner) {
  const std::size_t all = size_.size() - 1, stage = stages_ - 1;
  const std::vector<double>& before_s = before_s_[kind_[stage]];
  const double stage_s = before_s[all] - before_s[inner];
  if (!syncs(stage, inner, all)) return;
  if (is_too_long(stage_s)) return;
  std::fill_n(largest_.begin() + static_cast<std::ptrdiff_t>(all * graph_.largest_bytes.size()),
              graph_.largest_bytes.size(), 0.0);
  (cuts_.sets[all] - cuts_.sets[inner]).for_each([&](std::size_t layer) {
    grow_largest(all, all, layer);
  });
  if (fits(stage, inner, all)) take(inner, all, stage, stage_s);
}

void GraphSplitter::take(std::size_t inner, std::size_t outer, std::size_t stage, double stage_s) {
  const double cost_s = cost_s_[at(inner, stage)] + handover_s(inner, stage) + stage_s;
  double& known_s = cost_s_[at(outer, stage + 1)];
  if (!(cost_s < known_s)) return;
  if (stage + 1 < stages_) {
    if (!has_room(outer, stage + 1)) return;
    const double whole_s = cost_s + least_behind_s(outer, stage + 1) +
                           handover_s(outer, stage + 1) + handing_on_s_[stage + 2] +
                           repeats_ * least_bottleneck_s_;
    if (whole_s * kBelowRounding > pipeline_below_s_) return;
  }
  known_s = cost_s;
  inner_[at(outer, stage + 1)] = static_cast<std::uint32_t>(inner);
}

bool GraphSplitter::is_too_long(double stage_s) {
  if (stage_s <= threshold_s_) return false;
  next_threshold_s_ = std::min(next_threshold_s_, stage_s);
  return true;
}

bool GraphSplitter::fits(std::size_t stage, std::size_t inner, std::size_t outer) const {
  if (before_bytes_.empty()) return true;
  const std::vector<double>& before = before_bytes_[memory_kind_[stage]];
  double bytes = before[outer] - before[inner];
  const std::size_t purposes = graph_.largest_bytes.size();
  for (std::size_t i = 0; i < purposes; ++i) bytes += largest_[outer * purposes + i];
  return bytes <= graph_.available_bytes[stage];
}

bool GraphSplitter::has_room(std::size_t cut, std::size_t stage) const {
  if (least_bytes_before_.empty()) return true;
  const double left_bytes = least_bytes_before_.back() - least_bytes_before_[cut];
  return left_bytes * kBelowRounding <= room_behind_bytes_[stage];
}

bool GraphSplitter::syncs(std::size_t stage, std::size_t inner, std::size_t outer) const {
  return sync_before_s_.empty() || sync_s(stage, inner, outer) < sync_below_s_;
}

void GraphSplitter::grow_largest(std::size_t from, std::size_t to, std::size_t layer) {
  const std::size_t purposes = graph_.largest_bytes.size();
  for (std::size_t i = 0; i < purposes; ++i) {
    largest_[to * purposes + i] =
        std::max(largest_[from * purposes + i], graph_.largest_bytes[i][layer]);
  }
}

double GraphSplitter::longest_sync_s() const {
  double longest_s = 0;
  if (sync_before_s_.empty()) return longest_s;
  for_each_stage([&](std::size_t stage, std::size_t inner, std::size_t outer) {
    longest_s = std::max(longest_s, sync_s(stage, inner, outer));
  });
  return longest_s;
}

std::vector<std::vector<std::int32_t>> GraphSplitter::stages() const {
  std::vector<std::vector<std::int32_t>> found(stages_);
  for_each_stage([&](std::size_t stage, std::size_t inner, std::size_t outer) {
    (cuts_.sets[outer] - cuts_.sets[inner]).for_each([&](std::size_t layer) {
      found[stage].push_back(static_cast<std::int32_t>(layer));
    });
  });
  return found;
}

}  // namespace braid

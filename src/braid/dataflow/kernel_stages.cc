#include "braid/dataflow/kernel_stages.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/chip/kernel_graph.h"
#include "braid/chip/partition_time.h"
#include "braid/graph/bitset.h"

namespace braid {
namespace {

// Of more kernels downsets are not searched, only orders cut.
constexpr std::size_t kMostSearched = 4096;
/// By then the ends differ by rounding, whatever they were.
constexpr int kMostHalvings = 60;

struct Load {
  double compute_s = 0, memory_s = 0, network_s = 0;

  Load operator+(const StageKernel& kernel) const {
    return {compute_s + kernel.compute_s, memory_s + kernel.memory_s, network_s + kernel.network_s};
  }
};

double time_of(const Load& load, double message_s, PartitionOverlap overlap) {
  const double own_s = partition_time_s(load.compute_s, load.memory_s, load.network_s, overlap);
  return overlap == PartitionOverlap::all ? std::max(own_s, message_s) : own_s + message_s;
}

/// The graph with who reads and who is read.
struct StageGraph {
  explicit StageGraph(const StageJob& given)
      : job(given),
        halves(stage_halves(given)),
        readers(given.kernels.size()),
        writers(given.kernels.size()),
        touched(given.kernels.size()),
        tensors_of(given.message_s.size()) {
    for (std::size_t t = 0; t < job.tensors.size(); ++t) {
      const StageTensor& tensor = job.tensors[t];
      const auto from = static_cast<std::size_t>(tensor.from);
      const auto to = static_cast<std::size_t>(tensor.to);
      const auto output = static_cast<std::size_t>(tensor.output);
      readers[from].push_back(to);
      writers[to].push_back(from);
      touched[from].push_back(output);
      touched[to].push_back(output);
      tensors_of[output].push_back(t);
    }
    for (auto* lists : {&readers, &writers, &touched}) {
      for (std::vector<std::size_t>& list : *lists) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
      }
    }
  }

  std::size_t size() const { return job.kernels.size(); }
  const StageKernel& kernel(std::size_t i) const { return job.kernels[i]; }
  bool may_run(const StageKernel& kernel, std::int64_t stage) const {
    return kernel.backward ? stage >= halves.backward_begin : stage < halves.forward_end;
  }

  /// What of an output is handed on behind kernels of which `is_in` tells.
  template <typename IsIn>
  double open_s(std::size_t output, const IsIn& is_in) const {
    std::size_t open = 0;
    for (const std::size_t t : tensors_of[output]) {
      const StageTensor& tensor = job.tensors[t];
      const bool crosses = is_in(static_cast<std::size_t>(tensor.from)) &&
                           !is_in(static_cast<std::size_t>(tensor.to));
      if (crosses) ++open;
    }
    if (job.share_messages) open = std::min<std::size_t>(open, 1);
    return job.message_s[output] * static_cast<double>(open);
  }

  /// What is handed on more when kernel `v` has joined those of which `is_in` tells.
  template <typename IsIn>
  double message_change_s(std::size_t v, const IsIn& is_in) const {
    double change_s = 0;
    for (const std::size_t output : touched[v]) {
      change_s +=
          open_s(output, [&](std::size_t u) { return u == v || is_in(u); }) - open_s(output, is_in);
    }
    return change_s;
  }

  const StageJob& job;
  StageHalves halves;
  std::vector<std::vector<std::size_t>> readers, writers;  ///< Of kernels, each once.
  std::vector<std::vector<std::size_t>> touched;           ///< Outputs of a kernel's tensors.
  std::vector<std::vector<std::size_t>> tensors_of;        ///< Of outputs.
};

/// Topological orders with the forward kernels first: the one by `key`, least first, of those that
/// are ready. `key` is asked when a kernel becomes ready.
template <typename Key>
std::vector<std::size_t> order_by(const StageGraph& graph, const Key& key) {
  std::vector<std::size_t> waits(graph.size());
  using Ready = std::pair<std::pair<bool, std::int64_t>, std::size_t>;
  std::vector<Ready> heap;
  const auto add = [&](std::size_t v) {
    heap.push_back({{graph.kernel(v).backward, key(v)}, v});
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  for (std::size_t v = 0; v < graph.size(); ++v) {
    waits[v] = graph.writers[v].size();
    if (waits[v] == 0) add(v);
  }
  std::vector<std::size_t> order;
  order.reserve(graph.size());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const std::size_t v = heap.back().second;
    heap.pop_back();
    order.push_back(v);
    for (const std::size_t reader : graph.readers[v]) {
      if (--waits[reader] == 0) add(reader);
    }
  }
  assert(order.size() == graph.size());
  return order;
}

/// Runs of an order as stages.
class OrderCuts {
 public:
  OrderCuts(const StageGraph& graph, std::vector<std::size_t> order)
      : graph_(graph), order_(std::move(order)) {
    std::vector<bool> in(graph.size(), false);
    sums_.resize(order_.size() + 1);
    messages_s_.resize(order_.size() + 1, 0);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::size_t v = order_[i];
      sums_[i + 1] = sums_[i] + graph.kernel(v);
      const double change_s = graph.message_change_s(v, [&in](std::size_t u) { return in[u]; });
      messages_s_[i + 1] = std::max(0.0, messages_s_[i] + change_s);
      in[v] = true;
      if (!graph.kernel(v).backward) forward_ = i + 1;
    }
  }

  /// Stages of all kernels, none of which takes more than `most_s`; empty when there are none.
  std::vector<std::int32_t> within(double most_s) const {
    const std::size_t count = order_.size();
    const StageHalves& halves = graph_.halves;
    constexpr std::int64_t kNever = std::int64_t{1} << 60;
    std::vector<std::int64_t> done(count + 1, kNever);  // Stages used up to here, the fewest.
    std::vector<std::size_t> before(count + 1, 0);
    std::vector<std::size_t> minima = {0};  // Ascending in place and in `done`.
    done[0] = 0;
    for (std::size_t i = 1; i <= count; ++i) {
      const std::size_t first = first_start(i, most_s);
      const auto at = std::lower_bound(minima.begin(), minima.end(), first);
      if (at != minima.end()) {
        const std::size_t j = *at;
        std::int64_t stage = done[j];
        if (i > forward_) stage = std::max(stage, halves.backward_begin);
        // Forward kernels that are left need a stage of theirs.
        const bool last = i < forward_ && stage + 1 >= halves.forward_end;
        if (!last && stage < graph_.job.stages) {
          done[i] = stage + 1;
          before[i] = j;
        }
      }
      if (done[i] == kNever) continue;
      while (!minima.empty() && done[minima.back()] > done[i]) minima.pop_back();
      minima.push_back(i);
    }
    std::vector<std::int32_t> stage_of;
    if (done[count] == kNever) return stage_of;
    stage_of.resize(count);
    for (std::size_t i = count; i > 0; i = before[i]) {
      for (std::size_t k = before[i]; k < i; ++k) {
        stage_of[order_[k]] = static_cast<std::int32_t>(done[i] - 1);
      }
    }
    return stage_of;
  }

 private:
  /// The least start of a stage that ends before `end` within this time; `end` if there is none.
  std::size_t first_start(std::size_t end, double most_s) const {
    // A run that has both passes has no stage in two halves.
    const bool apart = graph_.halves.backward_begin >= graph_.halves.forward_end;
    return first_where(apart && end > forward_ ? forward_ : 0, end, [&](std::size_t start) {
      const Load load{sums_[end].compute_s - sums_[start].compute_s,
                      sums_[end].memory_s - sums_[start].memory_s,
                      sums_[end].network_s - sums_[start].network_s};
      return time_of(load, messages_s_[end], graph_.job.overlap) <= most_s * kAboveRounding;
    });
  }

  const StageGraph& graph_;
  std::vector<std::size_t> order_;
  std::vector<Load> sums_;
  std::vector<double> messages_s_;
  std::size_t forward_ = 0;  ///< Kernels up to and with the last forward one.
};

/// Downsets that stages within a time lead to.
class StageSearch {
 public:
  StageSearch(const StageGraph& graph, double most_s, std::int64_t& budget)
      : graph_(graph), most_s_(most_s), budget_(budget) {}

  /// Stages of all kernels, none of which takes more than the time; empty when there are none, or
  /// the budget is used up.
  std::vector<std::int32_t> run() {
    Bitset none(graph_.size());
    nodes_.push_back({none, 0, 0});
    known_.emplace(std::move(none), 0);
    std::size_t begin = 0;
    for (std::int64_t stage = 0; stage < graph_.job.stages; ++stage) {
      const std::size_t end = nodes_.size();
      // All that was reached before may wait for the first stage of the backward pass.
      if (stage == graph_.halves.backward_begin) begin = 0;
      for (std::size_t n = begin; n < end; ++n) {
        expand(static_cast<std::uint32_t>(n), stage);
        if (budget_ < 0) return {};
        if (found_) return stages_of(static_cast<std::uint32_t>(nodes_.size() - 1));
      }
      begin = end;
    }
    return {};
  }

  /// The least time above it that a stage would have taken.
  double least_rejected_s() const { return rejected_s_; }

 private:
  struct Node {
    Bitset set;
    std::uint32_t parent;
    std::int64_t stage;  ///< That ends here.
  };

  void expand(std::uint32_t from, std::int64_t stage) {
    from_ = from;
    stage_ = stage;
    set_ = nodes_[from].set;
    std::vector<std::size_t> ready;
    for (std::size_t v = 0; v < graph_.size(); ++v) {
      if (!set_.test(v) && is_ready(v)) ready.push_back(v);
    }
    double messages_s = 0;
    for (std::size_t output = 0; output < graph_.tensors_of.size(); ++output) {
      messages_s += graph_.open_s(output, [this](std::size_t u) { return set_.test(u); });
    }
    grow({}, messages_s, ready, 0);
  }

  // Each larger downset once: those before `begin` of the kernels that are ready stay out.
  void grow(const Load& load, double messages_s, std::vector<std::size_t>& ready,
            std::size_t begin) {
    for (std::size_t i = begin; i < ready.size() && !found_; ++i) {
      const std::size_t v = ready[i];
      if (!graph_.may_run(graph_.kernel(v), stage_)) continue;
      const Load more = load + graph_.kernel(v);
      if (is_rejected(time_of(more, 0, graph_.job.overlap))) continue;
      if (--budget_ < 0) return;
      const double sent_s =
          messages_s + graph_.message_change_s(v, [this](std::size_t u) { return set_.test(u); });
      set_.set(v);
      if (!is_rejected(time_of(more, sent_s, graph_.job.overlap)) &&
          known_.emplace(set_, static_cast<std::uint32_t>(nodes_.size())).second) {
        nodes_.push_back({set_, from_, stage_});
        found_ = set_.count() == graph_.size();
      }
      const std::size_t before = ready.size();
      for (const std::size_t reader : graph_.readers[v]) {
        if (is_ready(reader)) ready.push_back(reader);
      }
      grow(more, sent_s, ready, i + 1);
      ready.resize(before);
      set_.reset(v);
      if (budget_ < 0) return;
    }
  }

  bool is_ready(std::size_t v) const {
    return std::all_of(graph_.writers[v].begin(), graph_.writers[v].end(),
                       [this](std::size_t writer) { return set_.test(writer); });
  }

  bool is_rejected(double time_s) {
    if (time_s <= most_s_ * kAboveRounding) return false;
    rejected_s_ = std::min(rejected_s_, time_s);
    return true;
  }

  std::vector<std::int32_t> stages_of(std::uint32_t last) const {
    std::vector<std::int32_t> stage_of(graph_.size(), 0);
    for (std::uint32_t n = last; n != 0; n = nodes_[n].parent) {
      const Bitset& before = nodes_[nodes_[n].parent].set;
      for (std::size_t v = 0; v < graph_.size(); ++v) {
        if (nodes_[n].set.test(v) && !before.test(v)) {
          stage_of[v] = static_cast<std::int32_t>(nodes_[n].stage);
        }
      }
    }
    return stage_of;
  }

  const StageGraph& graph_;
  const double most_s_;
  std::int64_t& budget_;
  std::vector<Node> nodes_;
  std::unordered_map<Bitset, std::uint32_t, BitsetHash> known_;
  double rejected_s_ = kInfinity;
  bool found_ = false;
  Bitset set_;
  std::uint32_t from_ = 0;
  std::int64_t stage_ = 0;
};

// Each kernel is on some stage, and of each pass some stage has at least an even share.
double even_share_s(const StageGraph& graph) {
  const PartitionOverlap overlap = graph.job.overlap;
  Load all, passes[2];
  double least_s = 0;
  for (const StageKernel& kernel : graph.job.kernels) {
    least_s = std::max(least_s, time_of(Load{} + kernel, 0, overlap));
    all = all + kernel;
    passes[kernel.backward ? 1 : 0] = passes[kernel.backward ? 1 : 0] + kernel;
  }
  const auto share_s = [&](const Load& load, std::int64_t stages) {
    return time_of(load, 0, overlap) / static_cast<double>(stages);
  };
  least_s = std::max({least_s, share_s(all, graph.job.stages),
                      share_s(passes[0], graph.halves.forward_end),
                      share_s(passes[1], graph.job.stages - graph.halves.backward_begin)});
  return least_s * kBelowRounding;  // Sums were rounded.
}

double slowest_s(const StageJob& job, std::span<const std::int32_t> stage_of) {
  double slowest = 0;
  for (const StageTime& stage : stage_times(job, stage_of)) {
    slowest = std::max(slowest, stage.time_s);
  }
  return slowest;
}

void keep_faster(const StageJob& job, std::vector<std::int32_t> stage_of, KernelStages& best) {
  if (stage_of.empty()) return;
  const double time_s = slowest_s(job, stage_of);
  if (!best.stage_of.empty() && time_s >= best.time_s) return;
  best.stage_of = std::move(stage_of);
  best.time_s = time_s;
}

void cut_orders(const StageGraph& graph, KernelStages& best) {
  std::vector<KernelTensor> edges;
  edges.reserve(graph.job.tensors.size());
  for (const StageTensor& tensor : graph.job.tensors) edges.push_back({tensor.from, tensor.to});
  const std::vector<std::int32_t> levels = kernel_levels(graph.size(), edges);
  std::int64_t clock = 0;
  const std::vector<std::size_t> orders[] = {
      order_by(graph, [&](std::size_t v) { return std::int64_t{levels[v]}; }),
      order_by(graph, [](std::size_t v) { return static_cast<std::int64_t>(v); }),
      order_by(graph, [&clock](std::size_t) { return --clock; })};
  for (const std::vector<std::size_t>& order : orders) {
    const OrderCuts cuts(graph, order);
    if (best.stage_of.empty()) keep_faster(graph.job, cuts.within(kInfinity), best);
    const auto attempt = [&](double most_s) -> std::optional<double> {
      std::vector<std::int32_t> stage_of = cuts.within(most_s);
      if (stage_of.empty()) return std::nullopt;
      const double time_s = slowest_s(graph.job, stage_of);
      keep_faster(graph.job, std::move(stage_of), best);
      return time_s;
    };
    int steps = 0;
    const auto next = [&steps](const ThresholdRange& range) -> std::optional<double> {
      if (steps++ == kMostHalvings || !(range.high > range.low * kAboveTolerance))
        return std::nullopt;
      return range.middle();
    };
    const ThresholdRange range{best.lower_bound_s, best.time_s};
    if (!attempt(range.low)) least_threshold(range, next, attempt);
  }
}

}  // namespace

StageHalves stage_halves(const StageJob& job) {
  const bool backward = std::any_of(job.kernels.begin(), job.kernels.end(),
                                    [](const StageKernel& kernel) { return kernel.backward; });
  if (!backward) return {job.stages, 0};
  return {(job.stages + 1) / 2, job.stages / 2};
}

std::vector<StageTime> stage_times(const StageJob& job, std::span<const std::int32_t> stage_of) {
  std::vector<StageTime> times(static_cast<std::size_t>(job.stages));
  const auto hand_on = [&times](std::int32_t from, std::int32_t to, double message_s) {
    for (std::int32_t s = from; s < to; ++s)
      times[static_cast<std::size_t>(s)].message_s += message_s;
  };
  // The stages that each output passes; its tensors share an end.
  std::vector<std::pair<std::int32_t, std::int32_t>> passes(
      job.message_s.size(), {std::numeric_limits<std::int32_t>::max(), 0});
  for (const StageTensor& tensor : job.tensors) {
    const std::int32_t from = stage_of[static_cast<std::size_t>(tensor.from)];
    const std::int32_t to = stage_of[static_cast<std::size_t>(tensor.to)];
    assert(from <= to);
    auto& [first, last] = passes[static_cast<std::size_t>(tensor.output)];
    first = std::min(first, from);
    last = std::max(last, to);
    if (!job.share_messages) {
      hand_on(from, to, job.message_s[static_cast<std::size_t>(tensor.output)]);
    }
  }
  for (std::size_t output = 0; job.share_messages && output < passes.size(); ++output) {
    hand_on(passes[output].first, passes[output].second, job.message_s[output]);
  }
  for (std::size_t i = 0; i < job.kernels.size(); ++i) {
    const StageKernel& kernel = job.kernels[i];
    StageTime& stage = times[static_cast<std::size_t>(stage_of[i])];
    stage.compute_s += kernel.compute_s;
    stage.memory_s += kernel.memory_s;
    stage.network_s += kernel.network_s;
  }
  for (StageTime& stage : times) {
    stage.time_s =
        time_of({stage.compute_s, stage.memory_s, stage.network_s}, stage.message_s, job.overlap);
  }
  return times;
}

KernelStages find_stages(const StageJob& job, std::int64_t most_sets) {
  assert(!job.kernels.empty() && job.stages >= 1);
  const StageGraph graph(job);
  KernelStages best;
  best.lower_bound_s = even_share_s(graph);
  cut_orders(graph, best);
  std::int64_t budget = job.kernels.size() > kMostSearched ? 0 : most_sets;
  const std::int64_t all = budget;
  for (bool first = true; best.time_s > best.lower_bound_s * kAboveTolerance && budget > 0;
       first = false) {
    const double most_s =
        first ? best.lower_bound_s : best.lower_bound_s + (best.time_s - best.lower_bound_s) / 2;
    StageSearch search(graph, most_s, budget);
    std::vector<std::int32_t> stage_of = search.run();
    if (budget < 0) break;
    if (stage_of.empty()) {
      best.lower_bound_s = std::min(best.time_s, search.least_rejected_s());
    } else {
      keep_faster(job, std::move(stage_of), best);
    }
  }
  best.lower_bound_s = std::min(best.lower_bound_s, best.time_s);
  best.optimal = best.time_s <= best.lower_bound_s * kAboveTolerance;
  best.sets = all - std::max<std::int64_t>(budget, 0);
  return best;
}

}  // namespace braid

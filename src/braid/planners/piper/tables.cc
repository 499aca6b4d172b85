#include "braid/planners/piper/tables.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"

namespace braid {

PiperTables::PiperTables(const PiperProblem& problem, const DownsetLattice& prefixes)
    : problem_(&problem), dp_(piper_dp_degrees(problem)) {
  for (const std::int64_t dp : dp_) {
    share_.push_back(piper_share(problem, dp));
    sync_.push_back(piper_sync_factor(problem, dp));
  }
  for (std::size_t i = 0; i < dp_.size(); ++i) {
    first_dp_.resize(at(dp_[i]) + 1, static_cast<std::int32_t>(i));
  }
  for (const PiperNode& node : problem.nodes) {
    for (const PiperDegree& degree : node.degrees) {
      if (degree.tp <= problem.devices) degrees_.push_back(degree.tp);
    }
  }
  std::sort(degrees_.begin(), degrees_.end());
  degrees_.erase(std::unique(degrees_.begin(), degrees_.end()), degrees_.end());
  simple_.assign(degrees_.size(), true);
  read_suffixes(prefixes);
  read_kinds();
  read_edges();
  sum_suffixes();
  bound_layers();
  memory_rows_.resize(degrees_.size());
  steps_rows_.resize(degrees_.size());
}

const PiperDegree* PiperTables::degree_of(std::size_t node, std::int32_t degree) const {
  for (const PiperDegree& candidate : problem_->nodes[node].degrees) {
    if (candidate.tp == degrees_[at(degree)]) return &candidate;
  }
  return nullptr;
}

void PiperTables::read_suffixes(const DownsetLattice& prefixes) {
  const std::size_t nodes = problem_->nodes.size();
  suffixes_ = prefixes.size();
  words_ = (nodes + 63) / 64;
  bits_.assign(suffixes_ * words_, 0);
  for (std::size_t i = 0; i < suffixes_; ++i) {
    const Bitset& prefix = prefixes.sets[suffixes_ - 1 - i];
    for (std::size_t v = 0; v < nodes; ++v) {
      if (!prefix.test(v)) bits_[i * words_ + v / 64] |= std::uint64_t{1} << (v % 64);
    }
  }
}

void PiperTables::read_kinds() {
  using Key = std::vector<std::vector<std::tuple<double, double, double, double>>>;
  std::map<Key, std::int32_t> known;
  for (std::size_t v = 0; v < problem_->nodes.size(); ++v) {
    Key key(degrees_.size());
    Kind kind;
    kind.choices.resize(degrees_.size());
    for (std::size_t t = 0; t < degrees_.size(); ++t) {
      const PiperDegree* degree = degree_of(v, static_cast<std::int32_t>(t));
      if (degree == nullptr) continue;
      for (const PiperOption& option : degree->options) {
        const double sync_time = option.parameter_bytes / problem_->bandwidth_bytes;
        kind.choices[t].push_back(
            {option.time, sync_time, option.in_flight_bytes, option.fixed_bytes});
        key[t].emplace_back(option.time, sync_time, option.in_flight_bytes, option.fixed_bytes);
      }
    }
    const auto [found, is_new] =
        known.try_emplace(std::move(key), static_cast<std::int32_t>(kinds_.size()));
    if (is_new) kinds_.push_back(std::move(kind));
    kind_of_.push_back(found->second);
  }
}

void PiperTables::read_edges() {
  const std::vector<PiperEdge>& edges = problem_->edges;
  std::vector<std::int32_t> ins(problem_->nodes.size(), 0), outs(problem_->nodes.size(), 0);
  std::map<std::pair<std::int32_t, double>, std::int32_t> tensors;
  for (const PiperEdge& edge : edges) {
    in_place_.push_back(ins[at(edge.target)]++);
    out_place_.push_back(outs[at(edge.source)]++);
    tensor_of_.push_back(
        tensors.try_emplace({edge.source, edge.bytes}, static_cast<std::int32_t>(tensors.size()))
            .first->second);
  }
  in_bytes_.assign(degrees_.size(), std::vector<double>(edges.size(), 0));
  out_bytes_ = in_bytes_;
  for (std::size_t t = 0; t < degrees_.size(); ++t) {
    for (std::size_t e = 0; e < edges.size(); ++e) {
      // Least re-layout over the options; where they differ the knapsack has to tell.
      const auto least = [&](std::int32_t node, auto&& sync_of) {
        const PiperDegree* degree = degree_of(at(node), static_cast<std::int32_t>(t));
        if (degree == nullptr) return 0.0;
        double low = kInfinity, high = 0;
        for (const PiperOption& option : degree->options) {
          const double sync = sync_of(option);
          low = std::min(low, sync);
          high = std::max(high, sync);
        }
        if (low != high) simple_[t] = false;
        return low;
      };
      const std::size_t in = at(in_place_[e]), out = at(out_place_[e]);
      in_bytes_[t][e] =
          2 * (edges[e].bytes + least(edges[e].target, [&](const PiperOption& option) {
                 return option.in_sync_bytes.empty() ? 0.0 : option.in_sync_bytes[in];
               }));
      out_bytes_[t][e] =
          2 * (edges[e].bytes + least(edges[e].source, [&](const PiperOption& option) {
                 return option.out_sync_bytes.empty() ? 0.0 : option.out_sync_bytes[out];
               }));
    }
  }
  std::vector<std::int32_t> by_tensor(edges.size());
  std::iota(by_tensor.begin(), by_tensor.end(), 0);
  std::stable_sort(by_tensor.begin(), by_tensor.end(), [&](std::int32_t a, std::int32_t b) {
    return tensor_of_[at(a)] < tensor_of_[at(b)];
  });
  crossing_.resize(suffixes_);
  for (std::size_t i = 0; i < suffixes_; ++i) {
    for (const std::int32_t e : by_tensor) {
      if (!has(i, edges[at(e)].source) && has(i, edges[at(e)].target)) {
        crossing_[i].push_back(e);
      }
    }
  }
}

void PiperTables::sum_suffixes() {
  const std::size_t nodes = problem_->nodes.size(), kinds = kinds_.size();
  kind_counts_.assign(suffixes_ * kinds, 0);
  for (std::size_t i = 0; i < suffixes_; ++i) {
    for (std::size_t v = 0; v < nodes; ++v) {
      if (has(i, static_cast<std::int32_t>(v))) ++kind_counts_[i * kinds + at(kind_of_[v])];
    }
  }
  least_work_.assign(suffixes_, 0);
  least_time_.assign(suffixes_, 0);
  std::vector<double> work(kinds, kInfinity), time = work;
  for (std::size_t t = 0; t < degrees_.size(); ++t) {
    std::vector<Choice> fastest(kinds, Choice{0, 0, 0, 0});
    for (std::size_t k = 0; k < kinds; ++k) {
      const std::vector<Choice>& choices = kinds_[k].choices[t];
      if (choices.empty()) continue;
      const Choice* best = &choices.front();
      double least_sync = best->sync_time;
      for (const Choice& choice : choices) {
        least_sync = std::min(least_sync, choice.sync_time);
        const auto rank = [](const Choice& c) {
          return std::tuple(c.time, c.sync_time, c.in_flight_bytes + c.fixed_bytes);
        };
        if (rank(choice) < rank(*best)) best = &choice;
      }
      const bool alike = std::all_of(choices.begin(), choices.end(), [&](const Choice& choice) {
        return choice.sync_time == least_sync;
      });
      if (!alike) simple_[t] = false;
      fastest[k] = *best;
      fastest[k].sync_time = least_sync;
      time[k] = std::min(time[k], best->time);
      work[k] = std::min(work[k], best->time * degrees_[t]);
    }
    missing_.emplace_back(suffixes_, 0);
    fastest_of_kind_.push_back(fastest);
    fastest_.emplace_back(suffixes_, Choice{0, 0, 0, 0});
    for (std::size_t i = 0; i < suffixes_; ++i) {
      Choice& sum = fastest_[t][i];
      for (std::size_t k = 0; k < kinds; ++k) {
        const std::int32_t count = kind_counts_[i * kinds + k];
        if (kinds_[k].choices[t].empty()) missing_[t][i] += count;
        sum.time += fastest[k].time * count;
        sum.sync_time += fastest[k].sync_time * count;
        sum.in_flight_bytes += fastest[k].in_flight_bytes * count;
        sum.fixed_bytes += fastest[k].fixed_bytes * count;
      }
    }
  }
  for (std::size_t i = 0; i < suffixes_; ++i) {
    for (std::size_t k = 0; k < kinds; ++k) {
      const std::int32_t count = kind_counts_[i * kinds + k];
      if (count == 0) continue;
      least_work_[i] += work[k] * count;
      least_time_[i] += time[k] * count;
    }
  }
}

void PiperTables::bound_layers() {
  for (const Kind& kind : kinds_) {
    double least = kInfinity;
    for (std::size_t t = 0; t < degrees_.size(); ++t) {
      for (const Choice& choice : kind.choices[t]) {
        for (std::size_t d = 0; d < dp_.size() && dp_[d] * degrees_[t] <= problem_->devices; ++d) {
          least = std::min(least, share_[d] * choice.time + sync_[d] * choice.sync_time);
        }
      }
    }
    if (least < kInfinity) {
      least_layer_time_ = std::max(least_layer_time_, least);
    }
  }
}

PiperStageSums PiperTables::sums(std::size_t inner, std::size_t outer, std::int32_t degree) const {
  PiperStageSums stage;
  stage.inner = static_cast<std::int32_t>(inner);
  stage.outer = static_cast<std::int32_t>(outer);
  stage.degree = degree;
  const std::size_t t = at(degree);
  stage.possible = missing_[t][inner] == missing_[t][outer];
  if (!stage.possible) return stage;
  const Choice& a = fastest_[t][inner];
  const Choice& b = fastest_[t][outer];
  double border_bytes = 0;
  for_each_border_edge(inner, outer, [&](std::size_t e, bool enters) {
    border_bytes += enters ? in_bytes_[t][e] : out_bytes_[t][e];
  });
  stage.time = std::max(0.0, b.time - a.time) + border_bytes / problem_->bandwidth_bytes;
  stage.sync_time = std::max(0.0, b.sync_time - a.sync_time);
  stage.in_flight_bytes = std::max(0.0, b.in_flight_bytes - a.in_flight_bytes);
  stage.fixed_bytes = std::max(0.0, b.fixed_bytes - a.fixed_bytes);
  const double room = problem_->memory_bytes * kAboveRounding - stage.fixed_bytes;
  const auto most = static_cast<double>(std::min(problem_->devices, problem_->micro_batches));
  if (!simple_[t] || room < stage.in_flight_bytes) return stage;
  stage.most_in_flight_fast = static_cast<std::int64_t>(
      room >= stage.in_flight_bytes * most ? most : room / stage.in_flight_bytes);
  return stage;
}

const double* PiperTables::memory_row(std::int32_t degree, std::int64_t in_flight) const {
  auto& rows = memory_rows_[at(degree)];
  if (rows.size() <= at(in_flight)) rows.resize(at(in_flight) + 1);
  std::vector<double>& row = rows[at(in_flight)];
  if (!row.empty()) return row.data();
  const std::size_t kinds = kinds_.size();
  std::vector<double> least(kinds, 0);
  for (std::size_t k = 0; k < kinds; ++k) {
    double lightest = kInfinity;
    for (const Choice& choice : kinds_[k].choices[at(degree)]) {
      lightest = std::min(
          lightest, choice.in_flight_bytes * static_cast<double>(in_flight) + choice.fixed_bytes);
    }
    if (lightest < kInfinity) least[k] = lightest;
  }
  row.assign(suffixes_, 0);
  for (std::size_t i = 0; i < suffixes_; ++i) {
    for (std::size_t k = 0; k < kinds; ++k) row[i] += least[k] * kind_counts_[i * kinds + k];
  }
  return row.data();
}

double PiperTables::least_limit(std::int64_t most_sum) const {
  return (1 - kSameTime) * std::max(least_work(size() - 1) / static_cast<double>(problem_->devices),
                                    least_time(size() - 1) / static_cast<double>(most_sum));
}

double PiperTables::least_bytes(const PiperStageSums& stage, std::int64_t in_flight) const {
  const double* row = memory_row(stage.degree, in_flight);
  return row[stage.outer] - row[stage.inner];
}

std::int64_t PiperTables::most_in_flight(PiperStageSums& stage) const {
  if (stage.most_in_flight >= 0) return stage.most_in_flight;
  const std::int64_t most = std::min(problem_->devices, problem_->micro_batches);
  const double fits = problem_->memory_bytes * kAboveRounding * kAboveRounding;
  const auto is_too_much = [&](std::int64_t in_flight) {
    return !(least_bytes(stage, in_flight) <= fits);
  };
  return stage.most_in_flight =
             first_where_near(stage.most_in_flight_fast + 1, most + 1, is_too_much) - 1;
}

}  // namespace braid

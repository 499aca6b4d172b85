#include "run_torch/local_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <thread>

#include "braid/base/index.h"
#include "braid/run/dry_run.h"
#include "braid/run/rank_engine.h"
#include "braid/run/training_state.h"
#include "braid/run/whole_weights.h"
#include "braid/schedule/order_timing.h"

#include "run_torch/local_link.h"
#include "run_torch/observed_math.h"

namespace braid::test {
namespace {

/// Throws where a rank did other passes than the plan's stage, or held other numbers of them.
void check_passes(const ObservedMath& seen, const StagedModel& staged, const OrderedPlan& ordered,
                  std::int64_t iterations) {
  const std::int32_t stage = staged.parts[at(seen.passes.front().stage)].stage;
  std::vector<Work> planned;
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (const Work& work : ordered.order.devices[at(stage)]) {
      const bool passes =
          work.kind != WorkKind::reduce_gradients && work.kind != WorkKind::optimizer;
      if (passes) planned.push_back(work);
    }
  }
  if (seen.passes != planned) throw std::runtime_error("the passes are not in the plan's order");
  const OrderTiming timing = time_order(timeless(ordered.graph), ordered.order);
  for (const auto& [part, most] : seen.most) {
    if (most == timing.peak_in_flight[at(part)]) continue;
    throw std::runtime_error("another number of micro-batches is in flight than the plan has");
  }
}

/// What a run begins with, what it leaves, and what stands between ranks and their links.
struct Around {
  const Checkpoint* from = nullptr;
  Checkpoint* kept = nullptr;
  LinkChange change = {};
};

/// What a rank ends with: losses, and the pieces of all groups that it is in by group.
struct RankEnd {
  std::vector<double> losses;
  std::vector<std::vector<DenseTensor>> pieces;
};

/// What all ranks of a run share.
struct LocalJob {
  OrderedPlan ordered;
  StagedModel staged;
  std::vector<ParameterGroup> groups;
  std::vector<std::vector<Instruction>> ranks;
  TrainingSettings settings;
};

RankEnd train_rank(std::int32_t rank, const LocalJob& job, RankLink& link, const Around& around) {
  const auto& [ordered, staged, groups, ranks, settings] = job;
  const std::vector<Instruction>& instructions = ranks[at(rank)];
  const std::unique_ptr<StageMath> computes =
      torch_stage_math(staged, groups, rank, settings, link);
  ObservedMath math(*computes);
  RankEngine engine(rank, staged, groups, instructions, math, link);
  const RunningRank own{rank, staged, groups, math, link};
  RankEnd result;
  const std::int64_t first = around.from == nullptr ? 0 : around.from->iterations;
  if (around.from != nullptr) restore(own, *around.from);
  for (std::int64_t i = first; i < first + settings.iterations; ++i) {
    result.losses.push_back(engine.run_iteration(i).loss);
  }
  if (around.kept != nullptr) {
    auto checkpoint = collected(own, {"model", first + settings.iterations, settings, {}});
    if (checkpoint) *around.kept = std::move(*checkpoint);
  }
  check_passes(math, staged, ordered, settings.iterations);
  engine.gather_all();
  result.pieces.resize(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!std::binary_search(groups[g].ranks.begin(), groups[g].ranks.end(), rank)) continue;
    for (std::size_t p = 0; p < groups[g].pieces.size(); ++p) {
      result.pieces[g].push_back(math.piece(g, p));
    }
  }
  return result;
}

/// Throws where ranks that hold a piece have different numbers, or losses.
void check_equal(const std::vector<RankEnd>& ends, const std::vector<ParameterGroup>& groups) {
  for (const RankEnd& each : ends) {
    if (each.losses != ends.front().losses) throw std::runtime_error("ranks have different losses");
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::int32_t rank : groups[g].ranks) {
      if (ends[at(rank)].pieces[g] != ends[at(groups[g].ranks.front())].pieces[g]) {
        throw std::runtime_error("ranks have different weights");
      }
    }
  }
}

TrainedModel whole_model(const std::vector<RankEnd>& ends, const StagedModel& staged,
                         const std::vector<ParameterGroup>& groups) {
  std::vector<NamedTensor> pieces;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::vector<DenseTensor>& of = ends[at(groups[g].ranks.front())].pieces[g];
    for (std::size_t p = 0; p < of.size(); ++p) pieces.push_back({piece_name(g, p), of[p]});
  }
  TrainedModel model{ends.front().losses, {}};
  std::map<std::string, DenseTensor> by_name;
  for (NamedTensor& each : whole_weights(staged.model, groups, pieces)) {
    by_name[each.name] = std::move(each.tensor);
  }
  for (const ValueId id : staged.model.parameters) {
    model.parameters.push_back(by_name.at(staged.model.program.values[at(id)].name));
  }
  return model;
}

TrainedModel train(const Graph& graph, const Plan& plan, const std::string& schedule,
                   const TrainingSettings& settings, const Around& around) {
  LocalJob job;
  job.settings = settings;
  job.ordered = ordered_plan(plan, schedule);
  job.staged = staged_model(graph, job.ordered);
  job.groups = parameter_groups(job.staged, job.ordered.plan);
  job.ranks = instructions_of(job.staged, job.ordered.order, job.groups);
  const StagedModel& staged = job.staged;
  const std::vector<ParameterGroup>& groups = job.groups;
  const std::vector<std::vector<Instruction>>& ranks = job.ranks;
  dry_run(staged, groups, ranks);
  LocalExchange exchange(ranks.size(), meeting_ranks(staged, groups), torch_arithmetic());
  std::vector<RankEnd> results(ranks.size());
  std::vector<std::string> failures(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        const auto rank = static_cast<std::int32_t>(r);
        LocalLink own(exchange, rank);
        const std::unique_ptr<RankLink> changed =
            around.change ? around.change(rank, own) : nullptr;
        RankLink& link = changed ? *changed : own;
        results[r] = train_rank(rank, job, link, around);
      } catch (const std::exception& error) {
        failures[r] = error.what();
        exchange.give_up(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) {
    if (!failure.empty()) throw std::runtime_error(failure);
  }
  check_equal(results, groups);
  return whole_model(results, staged, groups);
}

}  // namespace

TrainedModel train_by_threads(const Graph& graph, const Plan& plan, const std::string& schedule,
                              const TrainingSettings& settings, const LinkChange& change) {
  return train(graph, plan, schedule, settings, {nullptr, nullptr, change});
}

TrainedModel train_on(const Graph& graph, const Plan& plan, const TrainingSettings& settings,
                      const Checkpoint* from, Checkpoint& kept) {
  return train(graph, plan, "", settings, {from, &kept, {}});
}

double difference(const TrainedModel& a, const TrainedModel& b) {
  double most = 0;
  const auto compare = [&](double x, double y) {
    const double apart = std::abs(x - y) / std::max(1.0, std::abs(y));
    if (!(apart <= most)) most = apart;
  };
  for (std::size_t i = 0; i < std::max(a.losses.size(), b.losses.size()); ++i) {
    compare(a.losses.at(i), b.losses.at(i));
  }
  for (std::size_t p = 0; p < b.parameters.size(); ++p) {
    const auto x = a.parameters.at(p).as<double>();
    const auto y = b.parameters[p].as<double>();
    if (x.size() != y.size()) return 1e300;
    for (std::size_t i = 0; i < y.size(); ++i) compare(x[i], y[i]);
  }
  return most;
}

}  // namespace braid::test

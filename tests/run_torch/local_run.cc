#include "run_torch/local_run.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "braid/base/index.h"
#include "braid/run/dry_run.h"
#include "braid/run/local_link.h"
#include "braid/run/rank_engine.h"
#include "braid/schedule/order_timing.h"

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

/// What a rank ends with: parameters in the model's order, empty where it does not hold them.
TrainedModel train_rank(std::int32_t rank, const OrderedPlan& ordered, const StagedModel& staged,
                        const std::vector<ParameterGroup>& groups,
                        const std::vector<Instruction>& instructions,
                        const TrainingSettings& settings, RankLink& link) {
  const std::unique_ptr<StageMath> computes = torch_stage_math(staged, groups, rank, settings);
  ObservedMath math(*computes);
  RankEngine engine(rank, staged, groups, instructions, math, link);
  TrainedModel result;
  for (std::int64_t i = 0; i < settings.iterations; ++i) {
    result.losses.push_back(engine.run_iteration(i).loss);
  }
  check_passes(math, staged, ordered, settings.iterations);
  engine.gather_all();
  for (const ValueId id : staged.model.parameters) {
    const bool holds = std::any_of(groups.begin(), groups.end(), [&](const ParameterGroup& group) {
      return std::binary_search(group.ranks.begin(), group.ranks.end(), rank) &&
             std::binary_search(group.parameters.begin(), group.parameters.end(), id);
    });
    result.parameters.push_back(holds ? math.parameter(id) : DenseTensor());
  }
  return result;
}

}  // namespace

TrainedModel train_by_threads(const Graph& graph, const Plan& plan, const std::string& schedule,
                              const TrainingSettings& settings, const LinkChange& change) {
  const OrderedPlan ordered = ordered_plan(plan, schedule);
  const StagedModel staged = staged_model(graph, ordered);
  const std::vector<ParameterGroup> groups = parameter_groups(staged, ordered.plan);
  const auto ranks = instructions_of(staged, ordered.order, groups);
  dry_run(staged, groups, ranks);
  LocalExchange exchange(ranks.size(), groups, torch_arithmetic());
  std::vector<TrainedModel> results(ranks.size());
  std::vector<std::string> failures(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        const auto rank = static_cast<std::int32_t>(r);
        LocalLink own(exchange, rank);
        const std::unique_ptr<RankLink> changed = change ? change(rank, own) : nullptr;
        RankLink& link = changed ? *changed : own;
        results[r] = train_rank(rank, ordered, staged, groups, ranks[r], settings, link);
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
  TrainedModel all = results.front();
  for (const TrainedModel& each : results) {
    if (each.losses != all.losses) throw std::runtime_error("ranks have different losses");
    for (std::size_t p = 0; p < all.parameters.size(); ++p) {
      if (each.parameters[p].data.empty()) continue;
      if (all.parameters[p].data.empty()) all.parameters[p] = each.parameters[p];
      if (all.parameters[p] != each.parameters[p]) {
        throw std::runtime_error("ranks have different weights");
      }
    }
  }
  return all;
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

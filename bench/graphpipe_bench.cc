// GraphPipe's search on the models of Jeon's thesis. Arguments: devices, samples of a mini-batch.

#include <string>

#include <benchmark/benchmark.h>

#include "braid/planners/graphpipe/graphpipe_planner.h"
#include "braid/planners/graphpipe/iteration.h"
#include "braid/planners/graphpipe/search.h"

#include "graphpipe_models.h"
#include "planners/graphpipe_iteration.h"

namespace braid {
namespace {

void search(benchmark::State& state, const GraphPipeProblem& problem) {
  GraphPipeSolution solution;
  for (auto _ : state) {
    solution = solve_graphpipe(problem);
    benchmark::DoNotOptimize(solution);
  }
  state.counters["us_per_sample"] = solution.time_s * 1e6;
  state.counters["stages"] = static_cast<double>(solution.stages.size());
  state.counters["depth"] = solution.depth();
  state.counters["devices"] = static_cast<double>(solution.devices_used());
  state.counters["micro_batch"] =
      solution.stages.empty() ? 0 : static_cast<double>(solution.stages[0].group.micro_batch);
  state.counters["work"] = static_cast<double>(solution.work);
}

void thesis(benchmark::State& state, const char* model, InFlight in_flight,
            StageOptions options = StageOptions::data) {
  GraphPipeProblem problem = thesis_problem(model, state.range(0), state.range(1), options);
  problem.in_flight = in_flight;
  search(state, problem);
}

void iteration(benchmark::State& state, const char* model) {
  const GraphPipeProblem problem =
      thesis_problem(model, state.range(0), state.range(1), StageOptions::all);
  for (auto _ : state) benchmark::DoNotOptimize(test::shortest_iteration(problem));
}

void sizes(benchmark::internal::Benchmark* bench, std::size_t model) {
  for (std::int64_t devices = 4; devices <= 32; devices *= 2) {
    bench->Args({devices, kThesisModels[model].batch * devices / 4});
  }
  bench->Unit(benchmark::kMillisecond);
}
void multi_modal(benchmark::internal::Benchmark* bench) { sizes(bench, 0); }
void dlrm(benchmark::internal::Benchmark* bench) { sizes(bench, 1); }
void candle(benchmark::internal::Benchmark* bench) { sizes(bench, 2); }

BENCHMARK_CAPTURE(thesis, multi_modal, kThesisModels[0].name, InFlight::least)->Apply(multi_modal);
BENCHMARK_CAPTURE(thesis, dlrm, kThesisModels[1].name, InFlight::least)->Apply(dlrm);
BENCHMARK_CAPTURE(thesis, candle, kThesisModels[2].name, InFlight::least)->Apply(candle);
BENCHMARK_CAPTURE(thesis, multi_modal_table, kThesisModels[0].name, InFlight::table)
    ->Apply(multi_modal);
BENCHMARK_CAPTURE(thesis, dlrm_table, kThesisModels[1].name, InFlight::table)->Apply(dlrm);
BENCHMARK_CAPTURE(thesis, candle_table, kThesisModels[2].name, InFlight::table)->Apply(candle);
BENCHMARK_CAPTURE(thesis, multi_modal_options, kThesisModels[0].name, InFlight::least,
                  StageOptions::all)
    ->Apply(multi_modal);
BENCHMARK_CAPTURE(thesis, dlrm_options, kThesisModels[1].name, InFlight::least, StageOptions::all)
    ->Apply(dlrm);
BENCHMARK_CAPTURE(thesis, candle_options, kThesisModels[2].name, InFlight::least, StageOptions::all)
    ->Apply(candle);
BENCHMARK_CAPTURE(iteration, multi_modal, kThesisModels[0].name)->Apply(multi_modal);
BENCHMARK_CAPTURE(iteration, dlrm, kThesisModels[1].name)->Apply(dlrm);
BENCHMARK_CAPTURE(iteration, candle, kThesisModels[2].name)->Apply(candle);

}  // namespace
}  // namespace braid

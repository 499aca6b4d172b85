// GraphPipe's search (Jeon 2024, §3.7) on the models of the thesis: V100 in nodes of four, NVLink
// inside, 100 Gb/s a node between. Arguments: devices, samples of a mini-batch.

#include <string>

#include <benchmark/benchmark.h>

#include "braid/frontend/model.h"
#include "braid/planners/graphpipe_job.h"
#include "braid/planners/graphpipe_search.h"
#include "braid/system/system.h"

namespace braid {
namespace {

GraphPipeProblem problem_of(const std::string& model, std::int64_t devices, std::int64_t batch) {
  System system = load_system("p3.8xlarge:" + std::to_string(devices));
  for (NetworkLevel& level : system.levels) {
    level.unit_bytes_per_s = 100e9 / 8;
    level.bytes_per_s = level.unit_bytes_per_s / 4;
  }
  const Graph graph = load_model(model, {});
  Job job;
  job.graph = &graph;
  job.model_source = model;
  job.precision = parse_precision("fp32");
  job.global_batch = batch;
  return graphpipe_problem(job, system);
}

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

void thesis(benchmark::State& state, const char* model, InFlight in_flight) {
  GraphPipeProblem problem = problem_of(model, state.range(0), state.range(1));
  problem.in_flight = in_flight;
  search(state, problem);
}

void sizes(benchmark::internal::Benchmark* bench, std::int64_t smallest) {
  for (std::int64_t devices = 4; devices <= 32; devices *= 2) {
    bench->Args({devices, smallest * devices / 4});
  }
  bench->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(thesis, multi_modal, "multi-modal-transformer", InFlight::least)
    ->Apply([](auto* bench) { sizes(bench, 64); });
BENCHMARK_CAPTURE(thesis, dlrm, "dlrm-thesis", InFlight::least)->Apply([](auto* bench) {
  sizes(bench, 256);
});
BENCHMARK_CAPTURE(thesis, candle, "candle-uno", InFlight::least)->Apply([](auto* bench) {
  sizes(bench, 4096);
});
BENCHMARK_CAPTURE(thesis, multi_modal_table, "multi-modal-transformer", InFlight::table)
    ->Apply([](auto* bench) { sizes(bench, 64); });
BENCHMARK_CAPTURE(thesis, dlrm_table, "dlrm-thesis", InFlight::table)->Apply([](auto* bench) {
  sizes(bench, 256);
});
BENCHMARK_CAPTURE(thesis, candle_table, "candle-uno", InFlight::table)->Apply([](auto* bench) {
  sizes(bench, 4096);
});

}  // namespace
}  // namespace braid

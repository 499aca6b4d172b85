#include <vector>

#include <benchmark/benchmark.h>

#include "braid/schedule/evaluate.h"
#include "braid/schedule/graph_orders.h"
#include "braid/schedule/order_timing.h"
#include "braid/schedule/pipeline_time.h"

namespace braid {
namespace {

/// A chain whose stages differ a little, with transfers and synchronisation.
Pipeline uneven_chain(ScheduleKind schedule, int pp, int vp, std::int64_t m) {
  Pipeline pipeline;
  pipeline.schedule = schedule;
  pipeline.pp = pp;
  pipeline.vp = vp;
  pipeline.num_micro_batches = m;
  for (int i = 0; i < pp * vp; ++i) {
    pipeline.forward_s.push_back(1e-2 + 1e-4 * (i % 7));
    pipeline.backward_s.push_back(2e-2 + 1e-4 * (i % 5));
  }
  pipeline.sync.assign(static_cast<std::size_t>(pp), {1e-1, 5e-2, 4, 1e-2});
  for (int q = 0; q + 1 < pp * vp; ++q) {
    pipeline.transfers.push_back({q % pp * vp + q / pp, (q + 1) % pp * vp + (q + 1) / pp, 1e-3});
  }
  return pipeline;
}

void count_passes(benchmark::State& state, const Pipeline& pipeline) {
  const std::int64_t passes = 2 * pipeline.num_micro_batches * pipeline.pp * pipeline.vp;
  state.counters["passes"] = benchmark::Counter(static_cast<double>(state.iterations() * passes),
                                                benchmark::Counter::kIsRate);
}

/// Chains that differ a little take turns, so that none finds the passes of one before it.
void time_chain(benchmark::State& state, ScheduleKind schedule) {
  std::vector<Pipeline> pipelines;
  for (int i = 0; i < 64; ++i) {
    pipelines.push_back(uneven_chain(schedule, static_cast<int>(state.range(0)),
                                     static_cast<int>(state.range(1)), state.range(2)));
    pipelines.back().forward_s.front() += 1e-6 * i;
  }
  PipelineWorkspace workspace;
  std::size_t turn = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(pipeline_time_s(pipelines[turn], workspace));
    turn = (turn + 1) % pipelines.size();
  }
  count_passes(state, pipelines.front());
}
BENCHMARK_CAPTURE(time_chain, gpipe, ScheduleKind::gpipe)->Args({16, 1, 128});
BENCHMARK_CAPTURE(time_chain, one_f_one_b, ScheduleKind::one_f_one_b)
    ->Args({4, 1, 16})
    ->Args({16, 1, 128})
    ->Args({16, 1, 2048})
    ->Args({64, 1, 512});
BENCHMARK_CAPTURE(time_chain, interleaved, ScheduleKind::interleaved)
    ->Args({16, 4, 128})
    ->Args({16, 8, 2048});

/// Branches of one stage that join before a chain, as a recommendation model's tables do.
void time_branches(benchmark::State& state) {
  Pipeline pipeline = uneven_chain(ScheduleKind::one_f_one_b, 64, 1, state.range(0));
  for (Transfer& transfer : pipeline.transfers) {
    if (transfer.source < 56) transfer.target = 57;
  }
  PipelineWorkspace workspace;
  for (auto _ : state) benchmark::DoNotOptimize(pipeline_time_s(pipeline, workspace));
  count_passes(state, pipeline);
}
BENCHMARK(time_branches)->Arg(128)->Arg(4096);

void evaluate_any(benchmark::State& state, Record record) {
  const Pipeline pipeline = uneven_chain(ScheduleKind::one_f_one_b, 16, 1, state.range(0));
  const WorkOrder order = schedule_of(pipeline);
  for (auto _ : state) benchmark::DoNotOptimize(evaluate(pipeline, order, record));
  count_passes(state, pipeline);
}
BENCHMARK_CAPTURE(evaluate_any, times, Record::times)->Arg(128)->Arg(4096);
BENCHMARK_CAPTURE(evaluate_any, events, Record::events)->Arg(128)->Arg(4096);

/// Branches of stages that join, with micro-batches of 1 and 2 samples in turn.
TimedGraph branched_graph(std::int32_t branches, std::int32_t length, std::int64_t batch) {
  StageGraph graph;
  graph.batch = batch;
  const std::int32_t join = branches * length;
  for (std::int32_t s = 0; s <= join; ++s) {
    graph.stages.push_back({s, 1 + s % 2});
    if (s < join) graph.edges.push_back({s, s % length == length - 1 ? join : s + 1});
  }
  TimedGraph timed = timeless(graph);
  for (StageCost& cost : timed.costs) cost.forward_s = cost.input_gradient_s = 1e-2;
  for (double& time_s : timed.transfer_s) time_s = 1e-3;
  return timed;
}

void time_graph(benchmark::State& state) {
  const TimedGraph timed = branched_graph(4, 4, state.range(0));
  const WorkOrder order = one_f_one_b_order(timed.graph);
  std::int64_t tasks = 0;
  for (const auto& device : order.devices) tasks += static_cast<std::int64_t>(device.size());
  for (auto _ : state) benchmark::DoNotOptimize(time_order(timed, order));
  state.counters["tasks"] = benchmark::Counter(static_cast<double>(state.iterations() * tasks),
                                               benchmark::Counter::kIsRate);
}
BENCHMARK(time_graph)->Arg(64)->Arg(4096);

}  // namespace
}  // namespace braid

#include "braid/planners/job/evaluator.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "braid/plan/outcome.h"
#include "braid/planners/job/assess.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/job/space.h"
#include "braid/schedule/timeline.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;

/// Makes the layer graph more than a chain: a tensor is read again further on.
void add_skip(std::mt19937_64& random, Graph& graph) {
  const auto layers = static_cast<int>(graph.layers.size());
  if (layers < 3) return;
  const int from = pick(random, 0, layers - 3);
  const int to = pick(random, from + 2, layers - 1);
  const Layer& source = graph.layers[static_cast<std::size_t>(from)];
  const Layer& target = graph.layers[static_cast<std::size_t>(to)];
  const Operator& producer = graph.operators[static_cast<std::size_t>(source.last - 1)];
  graph.operators[static_cast<std::size_t>(target.last - 1)].inputs.push_back(
      producer.outputs.front());
  find_repeated_layers(graph);
}

Ends random_ends(std::mt19937_64& random, int layers, int pieces) {
  std::vector<std::int32_t> cuts;
  for (std::int32_t l = 1; l < layers; ++l) cuts.push_back(l);
  std::shuffle(cuts.begin(), cuts.end(), random);
  Ends ends(cuts.begin(), cuts.begin() + (pieces - 1));
  std::sort(ends.begin(), ends.end());
  ends.push_back(layers);
  return ends;
}

TEST(Evaluator, FindsWhatMeasuringTheWholePlanFinds) {
  std::mt19937_64 random(77);
  int evaluated = 0;
  for (int trial = 0; trial < 150; ++trial) {
    const int layers = pick(random, 1, 9);
    Graph graph = test::tiny_graph(random, layers);
    if (trial % 3 == 0) add_skip(random, graph);
    // Twice in three: a parameter of two layers, of three now and then.
    for (int ties = trial % 3; layers > 1 && ties > 0; --ties) {
      const int from = pick(random, 0, layers - 2);
      test::tie_layers(graph, static_cast<std::size_t>(from),
                       static_cast<std::size_t>(pick(random, from + 1, layers - 1)));
    }
    const System system = test::tiny_system(random, 1 << pick(random, 0, 3), 1e9);
    Job job;
    job.graph = &graph;
    job.global_batch = 8;
    const ChainJob chain = chain_job(job, system);
    LayerTables tables(job, system);
    Evaluator evaluator(chain);
    Layout layout;

    const SpaceLimits limits = space_limits(job, system);
    std::vector<Configuration> configurations = base_configurations(limits, {});
    std::shuffle(configurations.begin(), configurations.end(), random);
    if (configurations.size() > 20) configurations.resize(20);
    for (Configuration configuration : configurations) {
      for (int step = pick(random, 0, 4); step > 0; --step) {
        const auto next =
            relaxations(configuration, limits, {}, system.groups.front().chip.host.has_value());
        if (next.empty()) break;
        configuration =
            next[static_cast<std::size_t>(pick(random, 0, static_cast<int>(next.size()) - 1))];
      }
      const Ends ends = random_ends(random, layers, configuration.pp * configuration.vp);
      const LayerTable& table = tables.at(configuration);
      fill_layout(chain.kind_of_layer, table.kinds, configuration.pp, configuration.vp, ends,
                  layout);
      const Plan plan = build_plan(chain, tables, configuration, ends, "test");
      double needed_bytes = 0;
      for (std::size_t s = 0; s < plan.stages.size(); ++s) {
        needed_bytes = std::max(needed_bytes, memory_of_stages(plan)[s].device_total());
      }
      const Evaluator::Memory memory = evaluator.memory(configuration, layout);
      ASSERT_NEAR(memory.needed_bytes, needed_bytes, 1e-9 * needed_bytes) << "trial " << trial;
      ASSERT_NEAR(
          memory_of_stages(plan)[static_cast<std::size_t>(memory.tightest_stage)].device_total(),
          needed_bytes, 1e-9 * needed_bytes);
      const double time_s = simulate_time_s(plan);
      ASSERT_NEAR(evaluator.time_s(configuration, layout), time_s, 1e-9 * time_s)
          << "trial " << trial;
      ++evaluated;
    }
  }
  EXPECT_GT(evaluated, 1000);
}

TEST(Layout, ListsChunksAndStagesThatAreAlikeOnce) {
  // first, then twelve alike, then last.
  const std::vector<std::int32_t> kinds = {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2};
  std::vector<LayerCost> costs(3);
  for (std::size_t k = 0; k < costs.size(); ++k) {
    costs[k].forward.compute_s = static_cast<double>(k + 1);
    costs[k].dense_parameters = 10.0 * static_cast<double>(k + 1);
    costs[k].stash_bytes = 100.0 * static_cast<double>(k + 1);
  }
  Layout layout;
  const Ends ends = {2, 4, 6, 8, 10, 12, 13, 14};
  fill_layout(kinds, costs, 4, 2, ends, layout);
  EXPECT_EQ(layout.kind_of_chunk, (std::vector<std::int32_t>{0, 1, 1, 1, 1, 1, 2, 3}));
  ASSERT_EQ(layout.chunk_kinds.size(), 4U);
  EXPECT_EQ(layout.chunk_kinds[1].time_s(), 4);
  EXPECT_EQ(layout.kind_of_stage, (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(layout.stage_kinds[0].memory.dense_parameters, 10 + 20 + 40);
  // With four micro-batches the last stage holds four stashes of its first chunk and one of its
  // second; with more, five of the first once those of the second are gone.
  fill_stash_peaks(4, 4, layout);
  EXPECT_EQ(layout.stage_kinds[3].peak.kept_bytes, 4 * 400 + 300);
  fill_stash_peaks(4, 8, layout);
  EXPECT_EQ(layout.stage_kinds[3].peak.kept_bytes, 5 * 400);
  EXPECT_EQ(layout.stage_kinds[2].parameters.layers, 3);

  const Ends even = {3, 5, 7, 9, 11, 14};
  fill_layout(kinds, costs, 6, 1, even, layout);
  EXPECT_EQ(layout.kind_of_stage, (std::vector<std::int32_t>{0, 1, 1, 1, 1, 2}));
  EXPECT_EQ(layout.stage_kinds[1].first_stage, 1);
}

}  // namespace
}  // namespace braid

#include "braid/profile/core_layer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/chip/cores/schedule_cores.h"
#include "braid/frontend/model.h"
#include "braid/graph/training.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/mapped_layer.h"
#include "braid/profile/rank_graph.h"
#include "braid/system/catalogue.h"

#include "base/reference_files.h"
#include "chip/cores/check_core_schedule.h"

namespace braid {
namespace {

Execution samples(int count) {
  Execution how;
  how.micro_batch = count;
  return how;
}

Graph bert_step() {
  const Graph graph = load_model("bert-large", {.seq_len = 128, .dims = {}});
  return training_graph(rank_layer(graph, 1, samples(2), leaving_tensors(graph)[1]));
}

/// The layer has each of its operators in one task, and tasks wait for those that make what they
/// read.
TEST(CoreLayer, TasksAreTheOperatorsAndEdgesTheTensorsOfALayer) {
  const Graph step = bert_step();
  const AcceleratorCores cores = cores_of(load_chip("phaze-tpuv4"));
  NestMemo memo;
  std::size_t fused = 0;
  for (const LayerId id : {kRankLayer, kRankBackwardLayer}) {
    const Layer& layer = step.layers[static_cast<std::size_t>(id)];
    const CoreLayer tasks = core_layer(step, id, cores, memo);
    ASSERT_TRUE(is_valid(tasks.problem));
    std::vector<std::int32_t> task_of(step.operators.size(), -1);
    for (std::size_t task = 0; task < tasks.operators.size(); ++task) {
      for (const OperatorId op : tasks.operators[task]) {
        EXPECT_EQ(task_of[static_cast<std::size_t>(op)], -1);
        task_of[static_cast<std::size_t>(op)] = static_cast<std::int32_t>(task);
      }
      if (tasks.operators[task].size() == 1) continue;
      ++fused;
      EXPECT_EQ(tasks.problem.operators[task].kind, CoreKind::fused);
    }
    std::set<std::pair<std::int32_t, std::int32_t>> edges;
    for (OperatorId op = layer.first; op < layer.last; ++op) {
      const std::int32_t task = task_of[static_cast<std::size_t>(op)];
      ASSERT_GE(task, 0);
      for (const TensorId tensor : step.operators[static_cast<std::size_t>(op)].inputs) {
        const OperatorId writer = step.tensors[static_cast<std::size_t>(tensor)].producer;
        if (writer < layer.first || writer >= layer.last) continue;
        const std::int32_t before = task_of[static_cast<std::size_t>(writer)];
        if (before != task) edges.emplace(before, task);
      }
    }
    EXPECT_EQ(std::set(tasks.problem.edges.begin(), tasks.problem.edges.end()), edges);
    const CoreOutcome outcome = schedule_cores(tasks.problem);
    EXPECT_EQ(check_core_schedule(tasks.problem, outcome.schedule), std::vector<std::string>{});
  }
  EXPECT_GT(fused, 0U);
}

/// What a layer reads of other layers has a gradient; what a model is given has none.
TEST(CoreLayer, GradientsOfWhatOtherLayersWroteAreWanted) {
  const Graph graph = load_model("bert-large", {.seq_len = 128, .dims = {}});
  const auto step_of = [&](LayerId layer) {
    const std::vector<TensorId> leaving = leaving_tensors(graph)[static_cast<std::size_t>(layer)];
    return training_graph(rank_layer(graph, layer, samples(1), leaving));
  };
  const auto wanted = [&](LayerId layer) {
    std::size_t matrices = 0;
    const Layer& range = graph.layers[static_cast<std::size_t>(layer)];
    std::vector<std::string> names;
    for (const Operator& op : step_of(layer).operators) names.push_back(op.name);
    for (OperatorId id = range.first; id < range.last; ++id) {
      const Operator& op = graph.operators[static_cast<std::size_t>(id)];
      if (!std::holds_alternative<MatMul>(op.kind)) continue;
      ++matrices;
      EXPECT_EQ(std::count(names.begin(), names.end(), op.name + ".input_gradient"), 1) << op.name;
    }
    return matrices;
  };
  EXPECT_GE(wanted(1), 4U);
  EXPECT_GE(wanted(static_cast<LayerId>(graph.layers.size() - 1)), 1U);
  for (const Operator& op : step_of(0).operators) {
    EXPECT_FALSE(op.pass == Pass::input_gradient && std::holds_alternative<Embedding>(op.kind));
  }
}

/// Seconds of both passes of a block on a variant of the TPUv4 template.
template <typename Change>
MappedTimes times_on(const Change& change) {
  static const Graph graph = load_model("bert-large", {.seq_len = 128, .dims = {}});
  Chip chip = load_chip("phaze-tpuv4");
  change(chip);
  return mapped_times(graph, 1, layer_work(graph, 1), samples(2), leaving_tensors(graph)[1],
                      {{}, chip});
}

TEST(CoreLayer, MoreOfAnythingIsNeverSlowerAndNothingBeatsTheBound) {
  const MappedTimes base = times_on([](Chip&) {});
  EXPECT_GT(base.backward_s, 1.5 * base.forward_s);
  EXPECT_LE(base.forward_unkept_s, base.forward_s * (1 + 1e-9));
  EXPECT_LE(base.recomputed_s, base.forward_s);
  EXPECT_GT(base.least_s, 0);
  EXPECT_LE(base.least_s, (base.forward_s + base.backward_s) * (1 + 1e-9));
  const auto no_slower = [&](const char* what, const MappedTimes& more) {
    // The least of the larger chip is at most what the smaller one takes, proven or not.
    EXPECT_LE(more.least_s, (base.forward_s + base.backward_s) * (1 + 1e-9)) << what;
    EXPECT_LE(more.forward_s, base.forward_s * 1.001) << what;
    EXPECT_LE(more.backward_s, base.backward_s * 1.001) << what;
  };
  no_slower("cores", times_on([](Chip& c) { c.accelerator->chip.tensor.count *= 2; }));
  no_slower("vector cores", times_on([](Chip& c) { c.accelerator->chip.vector.count *= 2; }));
  no_slower("memory", times_on([](Chip& c) { c.memory.bytes_per_s *= 4; }));
  no_slower("L2", times_on([](Chip& c) { c.accelerator->chip.rates.l2_words *= 4; }));
  EXPECT_LT(times_on([](Chip& c) { c.memory.bytes_per_s *= 4; }).forward_s, base.forward_s);
}

TEST(CoreLayer, AskedTwiceItIsMappedOnce) {
  const Graph graph = load_model("bert-large", {.seq_len = 128, .dims = {}});
  const Chip chip = load_chip("phaze-common");
  MappedLayers mapped(graph, {}, chip);
  const std::vector<OperatorWork> works = layer_work(graph, 1);
  const MappedTimes first = mapped.times(graph, 1, works, samples(2));
  const std::size_t count = mapped.mapped();
  EXPECT_EQ(mapped.times(graph, 1, works, samples(2)), first);
  // A second block does the same work.
  EXPECT_EQ(mapped.times(graph, 2, layer_work(graph, 2), samples(2)), first);
  EXPECT_EQ(mapped.mapped(), count);
}

/// Sums are split among lanes too: no operator takes longer than its operations on half the lanes
/// or its words from HBM.
TEST(CoreLayer, VectorOperatorsUseTheLanes) {
  const Graph graph = load_model("bert-large", {.seq_len = 128, .dims = {}});
  const AcceleratorCores cores = cores_of(load_chip("phaze-tpuv4"));
  NestMemo memo;
  std::size_t looked_at = 0;
  for (const LayerId layer : {0, 1, static_cast<LayerId>(graph.layers.size() - 1)}) {
    const Graph step = training_graph(rank_layer(
        graph, layer, samples(4), leaving_tensors(graph)[static_cast<std::size_t>(layer)]));
    for (const Operator& op : step.operators) {
      const OperatorLatencies latencies = operator_latencies(step, op, cores, memo);
      if (latencies.use != CoreKind::vector || latencies.all.vector_operations < 1e4) continue;
      ++looked_at;
      const double lanes = static_cast<double>(cores.vector_cores * cores.lanes);
      const double moved = latencies.all.hbm_words / cores.tensor.buffers.hbm_words_per_cycle;
      EXPECT_LE(latencies.all.cycles,
                1 + std::max(2 * latencies.all.vector_operations / lanes, moved))
          << op.name;
    }
  }
  EXPECT_GT(looked_at, 10U);
}

/// Latencies of another mapper take the place of ours, shape by shape; a fused tail may take
/// longer.
TEST(CoreLayer, TakesStatedLatencies) {
  Chip chip = load_chip("phaze-tpuv4");
  const Graph step = bert_step();
  NestMemo memo;
  const CoreLayer ours = core_layer(step, kRankLayer, cores_of(chip), memo);
  // The projection of 2 samples of 128 tokens behind attention, on all cores alone.
  chip.accelerator->latencies = {{{1, 256, 1024, 1024}, std::nullopt, 1e9}};
  const CoreLayer stated = core_layer(step, kRankLayer, cores_of(chip), memo);
  ASSERT_EQ(stated.latencies.size(), ours.latencies.size());
  std::size_t changed = 0;
  for (std::size_t task = 0; task < ours.operators.size(); ++task) {
    const Operator& op = step.operators[static_cast<std::size_t>(ours.operators[task].front())];
    const auto* product = std::get_if<MatMul>(&op.kind);
    const bool is_it = product != nullptr && product->batch * product->m == 256 &&
                       product->n == 1024 && product->k == 1024;
    EXPECT_EQ(stated.latencies[task].one.cycles, ours.latencies[task].one.cycles) << op.name;
    if (!is_it) {
      EXPECT_EQ(stated.latencies[task].all.cycles, ours.latencies[task].all.cycles) << op.name;
      continue;
    }
    ++changed;
    // All cores can leave all but one idle.
    EXPECT_EQ(stated.latencies[task].all.cycles, ours.latencies[task].one.cycles);
  }
  EXPECT_EQ(changed, 1U);
  chip.accelerator->latencies = {{{1, 256, 1024, 1024}, 3, 2}};
  const CoreLayer faster = core_layer(step, kRankLayer, cores_of(chip), memo);
  for (std::size_t task = 0; task < ours.operators.size(); ++task) {
    EXPECT_LE(faster.latencies[task].one.cycles, ours.latencies[task].one.cycles);
    EXPECT_LE(faster.latencies[task].all.cycles, ours.latencies[task].all.cycles);
  }
}

/// Sunstone's estimates of BERT-Large as Phaze's artifact has them, on its TPUv4 template: every
/// product of the forward pass takes what they say.
TEST(CoreLayer, TakesPhazesLatencies) {
  const std::string file =
      reference_file("reference/phaze/end_to_end_bertlarge/operator_estimates.json");
  if (file.empty()) GTEST_SKIP() << "reference data not present";
  const Document estimates = Document::parse_file(file);
  // Numbers of the artifact's operators; the first two of four estimates are of this chip.
  const auto cycles = [&](const char* number, std::size_t cores) {
    return estimates.root()["1"]["TC"][number][cores]["fwd"]["latency"].as_double() * 1.05e6;
  };
  const auto stated = [&](std::array<std::int64_t, 4> shape, const char* number, double times = 1) {
    return StatedLatency{shape, times * cycles(number, 1), times * cycles(number, 0)};
  };
  const StatedLatencies table = {
      stated({1, 2048, 1024, 1024}, "25"),   stated({1, 2048, 1024, 4096}, "31"),
      stated({1, 2048, 3072, 1024}, "6", 3), stated({1, 2048, 4096, 1024}, "29"),
      stated({64, 512, 64, 512}, "21"),      stated({64, 512, 512, 64}, "16")};
  Chip chip = load_chip("phaze-tpuv4");
  chip.accelerator->latencies = table;
  const Graph graph = load_model("bert-large", {.seq_len = 512, .dims = {}});
  const Graph step = training_graph(rank_layer(graph, 1, samples(4), leaving_tensors(graph)[1]));
  NestMemo memo;
  double sum = 0;
  for (const OperatorLatencies& one :
       core_layer(step, kRankLayer, cores_of(chip), memo).latencies) {
    sum += one.one.tensor_cycles;
  }
  double expected = 0;
  for (const StatedLatency& one : table) expected += *one.one_core;
  EXPECT_NEAR(sum, expected, 1e-6 * expected);
}

}  // namespace
}  // namespace braid

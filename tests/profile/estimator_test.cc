#include "braid/profile/estimator.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <string_view>
#include <tuple>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/graph/op_work.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/operator_estimate.h"
#include "braid/profile/operator_time.h"
#include "braid/profile/profile_json.h"
#include "braid/profile/split_limits.h"

#include "profile/groups_of.h"

namespace braid {
namespace {

using test::groups_of;

LayerCost cost_of(const Graph& graph, LayerId layer, const Execution& how, const System& system) {
  return estimate_layer(graph, layer, how, {}, groups_of(system, how), system);
}

Execution execution(int micro_batch, int tp, bool sequence_parallel = false, int cp = 1, int ep = 1,
                    Recompute recompute = Recompute::none) {
  Execution how;
  how.micro_batch = micro_batch;
  how.tp = tp;
  how.sequence_parallel = sequence_parallel;
  how.cp = cp;
  how.ep = ep;
  how.recompute = recompute;
  return how;
}

TEST(MatMul, WholeWavesOfTiles) {
  Chip chip;
  chip.compute_units = 10;
  chip.efficiency.matmul_peak_fraction = 1;
  chip.efficiency.tile_m = chip.efficiency.tile_n = 128;
  chip.efficiency.tile_k = 64;
  // 100 tiles over 10 units: ten full waves, no loss.
  const double flops = 2.0 * 1280 * 1280 * 1024;
  EXPECT_NEAR(matmul_compute_s({1, 1280, 1280, 1024}, 1e12, chip), flops / 1e12, 1e-12);
  // One row more needs another row of tiles: no less than before, and no more than 11 waves.
  const double more = matmul_compute_s({1, 1281, 1280, 1024}, 1e12, chip);
  EXPECT_GE(more, flops / 1e12);
  EXPECT_LE(more, 1.1 * flops / 1e12 * (1 + 1e-9));
}

TEST(MatMul, NeverFasterThanPeak) {
  std::mt19937_64 random(1);
  const Chip chip = load_chip("h100-sxm");
  const double peak = *matmul_peak(chip, Dtype::bf16);
  for (int trial = 0; trial < 5000; ++trial) {
    const auto size = [&] { return static_cast<double>(1 + random() % 9000); };
    const MatMulShape shape{static_cast<double>(1 + random() % 4), size(), size(), size()};
    EXPECT_GE(matmul_compute_s(shape, peak, chip),
              2 * shape.batch * shape.m * shape.n * shape.k / peak);
  }
}

TEST(Estimate, WeightGradientsAreWrittenOnceHoweverManySamples) {
  // A dense layer of 4096 × 4096 is bound by its weights for few samples: 64 samples take about as
  // long as one. Looked-up rows grow with the samples.
  const System system = load_system("dgx-a100:8");
  const Graph graph = load_model("dlrm-thesis", {});
  const auto layer = [&](const std::string& name) {
    return static_cast<LayerId>(std::distance(
        graph.layers.begin(), std::find_if(graph.layers.begin(), graph.layers.end(),
                                           [&](const Layer& l) { return l.name == name; })));
  };
  const LayerId dense = layer("bottom0.dense1");
  const double one_s = cost_of(graph, dense, execution(1, 1), system).backward_weight.total_s();
  const double many_s = cost_of(graph, dense, execution(64, 1), system).backward_weight.total_s();
  EXPECT_GE(many_s, one_s);
  EXPECT_LE(many_s, 1.2 * one_s);
  const LayerId table = layer("table0");
  const auto forward_s = [&](int samples) {
    return cost_of(graph, table, execution(samples, 1), system).forward.total_s();
  };
  // 100 rows of 64 in bf16, read and written, for each sample.
  const double bytes = 2 * 100 * 64 * 2;
  const double bandwidth = system.groups.front().chip.memory.bytes_per_s;
  EXPECT_GE(forward_s(200000) - forward_s(100000), 100000 * bytes / bandwidth);
}

TEST(Estimate, ScansOfStateSpaceLayersTakeEightTimesALibrarysProducts) {
  System system = load_system("dgx-h100:8");
  system.groups.front().chip.efficiency.host_operator_s = 0;
  Graph graph = load_model("nemotron-3-nano", {.seq_len = 8192, .dims = {}});
  const Execution how = execution(1, 1);
  const LayerCost scanned = cost_of(graph, 1, how, system);
  for (Operator& op : graph.operators) op.name += "_of_another_name";
  const LayerCost plain = cost_of(graph, 1, how, system);
  const Chip& chip = system.groups.front().chip;
  const OperatorEstimate estimate(graph, how, {}, chip, matmul_peak_in(chip, {}));
  const std::vector<OperatorWork> works = layer_work(graph, 1);
  const Layer& layer = graph.layers[1];
  double forward_s = 0, backward_s = 0;
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    const auto* product = std::get_if<MatMul>(&op.kind);
    if (product == nullptr || product->weight) continue;
    const OperatorTimes times =
        estimate.times(op, works[static_cast<std::size_t>(id - layer.first)]);
    forward_s += times.forward_s;
    backward_s += times.backward_input_s;
  }
  EXPECT_GT(forward_s, 0);
  EXPECT_NEAR(scanned.forward.total_s() - plain.forward.total_s(), 7 * forward_s, 1e-9);
  EXPECT_NEAR(scanned.backward_s() - plain.backward_s(), 7 * backward_s, 1e-9);
}

/// Both passes of a layer and sample at the chip's peak.
double arithmetic_s(const Graph& graph, LayerId id, const Chip& chip) {
  const Layer& layer = graph.layers[static_cast<std::size_t>(id)];
  double flops = 0;
  for (OperatorId op = layer.first; op < layer.last; ++op) {
    flops += forward_model_flops(graph, graph.operators[static_cast<std::size_t>(op)]) +
             backward_model_flops(graph, graph.operators[static_cast<std::size_t>(op)]);
  }
  return flops / matmul_peak_in(chip, {});
}

TEST(Estimate, NeverBelowTheArithmeticAtPeak) {
  std::mt19937_64 random(2);
  for (const char* model : {"llama-3-8b", "gpt2", "mixtral-8x7b", "deepseek-v2", "qwen2-57b-a14b",
                            "opt-350m", "bert-large", "t5-large"}) {
    const Graph graph = load_model(model, {.seq_len = 512, .dims = {}});
    const System system = load_system("dgx-h100:64");
    const SplitLimits limits = split_limits(graph);
    for (int trial = 0; trial < 300; ++trial) {
      const Execution how =
          execution(1 << random() % 4, 1 << random() % 4, random() % 2 == 0, 1 << random() % 3,
                    1 << random() % 3, static_cast<Recompute>(random() % 3));
      if (!refusal(limits, how).empty()) continue;
      for (std::size_t l = 0; l < graph.layers.size(); l += graph.layers.size() / 2) {
        const auto layer = static_cast<LayerId>(l);
        const LayerCost cost = cost_of(graph, layer, how, system);
        const double bound =
            arithmetic_s(graph, layer, system.groups[0].chip) * how.micro_batch / how.tp / how.cp;
        // Experts may also be spread over their group.
        EXPECT_GE(cost.forward.total_s() + cost.backward_s(), bound / how.ep * (1 - 1e-9)) << model;
      }
    }
  }
}

TEST(Estimate, RecomputationTradesTimeForMemory) {
  const Graph graph = load_model("llama-3-8b", {});
  const System system = load_system("dgx-h100");
  for (const int tp : {1, 2, 8}) {
    for (const bool sequence_parallel : {false, true}) {
      if (sequence_parallel && tp == 1) continue;
      LayerCost previous = cost_of(graph, 1, execution(1, tp, sequence_parallel), system);
      for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
        const LayerCost cost =
            cost_of(graph, 1, execution(1, tp, sequence_parallel, 1, 1, recompute), system);
        EXPECT_LT(cost.stash_bytes, previous.stash_bytes);
        EXPECT_GT(cost.backward_s(), previous.backward_s());
        EXPECT_EQ(cost.forward, previous.forward);
        previous = cost;
      }
    }
  }
}

TEST(Estimate, SplittingDividesParametersAndStash) {
  const Graph graph = load_model("llama-3-8b", {});
  const System system = load_system("dgx-h100");
  const LayerCost whole = cost_of(graph, 1, execution(1, 1), system);
  const LayerCost split = cost_of(graph, 1, execution(1, 8, true), system);
  // All but the two norms' scales are sharded.
  EXPECT_NEAR(split.dense_parameters, (whole.dense_parameters - 2 * 4096) / 8 + 2 * 4096, 1);
  EXPECT_NEAR(split.stash_bytes, whole.stash_bytes / 8, 0.02 * whole.stash_bytes);
  EXPECT_NEAR(split.model_flops, whole.model_flops / 8, 1e-6 * whole.model_flops);
  EXPECT_GT(split.forward.tp_comm_s, 0);
  EXPECT_EQ(whole.forward.tp_comm_s, 0);
  const LayerCost context = cost_of(graph, 1, execution(1, 1, false, 4), system);
  EXPECT_NEAR(context.stash_bytes, whole.stash_bytes / 4, 1);
  EXPECT_DOUBLE_EQ(context.dense_parameters, whole.dense_parameters);
}

// Behind the gradient of a column product's weights the gradient of its input is summed, and under
// sequence parallelism the input is gathered again behind the gradient of the input.
TEST(Estimate, ColumnProductsHideTheirCollectives) {
  const Graph graph = load_model("llama-3-8b", {});
  const System system = load_system("dgx-a100:8");
  const double lost = system.groups.front().chip.efficiency.overlap_loss;
  ASSERT_GT(lost, 0);
  const LayerId block = 5;
  const Layer& layer = graph.layers[block];
  const std::vector<OperatorWork> works = layer_work(graph, block);
  const Precision precision;
  const Chip& chip = system.groups.front().chip;
  int hidden_whole = 0, hidden_in_part = 0;
  for (const int micro_batch : {1, 8}) {
    for (const int tp : {2, 8}) {
      for (const bool sequence : {false, true}) {
        const Execution how = execution(micro_batch, tp, sequence);
        const LayerGroups groups = groups_of(system, how);
        const OperatorEstimate estimate(graph, how, precision, chip,
                                        matmul_peak_in(chip, precision));
        const auto collective_s = [&](Collective collective, double bytes) {
          return collective_time(collective, bytes, groups.tp, system).time_s;
        };
        double hidden_s = 0, backward_s = 0;
        for (OperatorId id = layer.first; id < layer.last; ++id) {
          const Operator& op = graph.operators[static_cast<std::size_t>(id)];
          const auto& work = works[static_cast<std::size_t>(id - layer.first)];
          const auto* product = std::get_if<MatMul>(&op.kind);
          if (product == nullptr) continue;
          const OperatorTimes times = estimate.times(op, work);
          const double rows = static_cast<double>(how.micro_batch * graph.seq_len);
          if (op.split == Split::row && sequence) {
            backward_s +=
                collective_s(Collective::all_gather, 2 * rows * static_cast<double>(product->n));
          }
          if (op.split != Split::column) continue;
          const double bytes = 2 * rows * static_cast<double>(product->k);
          const double sum_s =
              collective_s(sequence ? Collective::reduce_scatter : Collective::all_reduce, bytes);
          hidden_s += (1 - lost) * std::min(sum_s, times.backward_weight_s);
          ++(sum_s <= times.backward_weight_s ? hidden_whole : hidden_in_part);
          backward_s += sum_s;
          if (!sequence) continue;
          const double again_s = collective_s(Collective::all_gather, bytes);
          backward_s += again_s - (1 - lost) * std::min(again_s, times.backward_input_s);
        }
        const LayerCost cost =
            estimate_layer({graph, block, works}, how, {precision, groups, system});
        EXPECT_NEAR(cost.hidden_tp_s, hidden_s, 1e-9 * hidden_s);
        EXPECT_NEAR(cost.backward_input.tp_comm_s, backward_s - hidden_s, 1e-9 * backward_s);
      }
    }
  }
  EXPECT_GT(hidden_whole, 0);
  EXPECT_GT(hidden_in_part, 0);
}

TEST(Estimate, DevicesTogetherDoTheModelsArithmetic) {
  const System system = load_system("dgx-h100:64");
  for (const char* model : {"gpt2", "opt-350m", "bert-large", "t5-large", "deepseek-v2"}) {
    const Graph graph = load_model(model, {.seq_len = 256, .dims = {}});
    for (const auto& [tp, sp, cp] :
         {std::tuple{1, false, 1}, {2, false, 1}, {4, true, 1}, {4, false, 2}, {2, true, 4}}) {
      const Execution how = execution(3, tp, sp, cp);
      if (!refusal(split_limits(graph), how).empty()) continue;
      double done = 0;
      double asked = 0;
      for (std::size_t l = 0; l < graph.layers.size(); ++l) {
        done += tp * cp * cost_of(graph, static_cast<LayerId>(l), how, system).model_flops;
      }
      for (const Operator& op : graph.operators) {
        asked += 3 * (forward_model_flops(graph, op) + backward_model_flops(graph, op));
      }
      EXPECT_NEAR(done / asked, 1, 1e-9) << model << " " << name_of(how);
    }
  }
}

TEST(Estimate, ActivationsOfAGptBlock) {
  // Korthikanti et al. 2022, section 4.1, without the score matrices that flash attention never
  // stores: 34·s·b·h, here plus the attention output's statistics and 8·s·b·h less or more by what
  // frameworks keep around GeLU; held to within a tenth.
  const Graph graph = load_model("gpt3-175b", {});
  const System system = load_system("dgx-a100");
  const double sbh = 2048.0 * 12288;
  EXPECT_NEAR(cost_of(graph, 1, execution(1, 1), system).stash_bytes / (34 * sbh), 1, 0.1);
  EXPECT_NEAR(cost_of(graph, 1, execution(1, 1, false, 1, 1, Recompute::full), system).stash_bytes,
              2 * sbh, 1);
}

TEST(Estimate, ExpertsSpreadOverTheirGroup) {
  const Graph graph = load_model("mixtral-8x7b", {.seq_len = 4096, .dims = {}});
  const System system = load_system("dgx-h100");
  const LayerCost alone = cost_of(graph, 1, execution(1, 1), system);
  const LayerCost spread = cost_of(graph, 1, execution(1, 1, false, 1, 8), system);
  EXPECT_DOUBLE_EQ(spread.expert_parameters, alone.expert_parameters / 8);
  EXPECT_DOUBLE_EQ(spread.dense_parameters, alone.dense_parameters);
  EXPECT_GT(spread.forward.ep_comm_s, 0);
}

TEST(Estimate, APrecisionThatTheChipDoesNotListIsRefused) {
  const Graph graph = load_model("gpt2", {});
  const System system = load_system("dgx-a100");
  const Execution how = execution(1, 1);
  EXPECT_THROW(
      estimate_layer(graph, 1, how, parse_precision("fp8"), groups_of(system, how), system), Error);
  EXPECT_THROW(parse_precision("int3"), Error);
}

TEST(Limits, RefusalsSayWhy) {
  const SplitLimits limits = split_limits(load_model("llama-3-70b", {.seq_len = 100, .dims = {}}));
  EXPECT_EQ(refusal(limits, execution(1, 8)), "");
  EXPECT_NE(refusal(limits, execution(1, 3)).find("tp 3"), std::string::npos);
  EXPECT_NE(refusal(limits, execution(1, 1, false, 4)).find("sequence"), std::string::npos);
  EXPECT_NE(refusal(limits, execution(1, 1, false, 1, 2)).find("experts"), std::string::npos);
}

/// What layers count beyond the model's parameters are the copies of those that they share.
TEST(Profile, SharedParametersAreWhatLayersCountTwice) {
  for (const char* model : {"gpt2", "bert-base", "llama-2-7b", "t5-large", "resnet-50"}) {
    const Graph graph = load_model(model, {});
    const System system = load_system("dgx-a100");
    double counted = 0;
    for (LayerId l = 0; l < static_cast<LayerId>(graph.layers.size()); ++l) {
      counted += cost_of(graph, l, execution(1, 1), system).dense_parameters;
    }
    double copies = 0;
    for (const SharedParameter& parameter : shared_parameters(graph)) {
      copies += parameter.elements * static_cast<double>(parameter.layers.size() - 1);
    }
    EXPECT_DOUBLE_EQ(counted - copies, static_cast<double>(parameter_count(graph))) << model;
  }
}

TEST(Profile, OneStageCountsSharedParametersOnce) {
  // T5's blocks of either side share a table of biases, the first of a side and the others alike.
  for (const char* model : {"gpt2", "bert-base", "llama-2-7b", "resnet-50", "t5-large"}) {
    const Graph graph = load_model(model, {});
    const System system = load_system("dgx-a100");
    std::vector<std::int32_t> kind_of_layer;
    std::vector<LayerCost> costs;
    for (LayerId l = 0; l < static_cast<LayerId>(graph.layers.size()); ++l) {
      const std::int32_t kind = graph.layers[static_cast<std::size_t>(l)].kind;
      kind_of_layer.push_back(kind);
      if (kind == std::ssize(costs)) costs.push_back(cost_of(graph, l, execution(1, 1), system));
    }
    const auto all = static_cast<double>(parameter_count(graph));
    const auto counted_by = [&](int tp) {
      std::vector<LayerCost> once = costs;
      count_shared_once(shared_parameters(graph), kind_of_layer, execution(1, tp), once);
      double sum = 0;
      for (const std::int32_t kind : kind_of_layer) {
        sum += once[static_cast<std::size_t>(kind)].dense_parameters;
      }
      return sum;
    };
    EXPECT_DOUBLE_EQ(counted_by(1), all) << model;
    // One of two ranks takes its half of what they divide away.
    double sharded = 0;
    for (const SharedParameter& parameter : shared_parameters(graph)) {
      const auto again = static_cast<double>(parameter.layers.size() - 1);
      if (parameter.sharded) sharded += parameter.elements * again;
    }
    EXPECT_DOUBLE_EQ(counted_by(2), all + sharded / 2) << model;
  }
}

TEST(Profile, BlocksOfOneKindShareWhatTheyShare) {
  // Layers of one kind cost the same, the first of them too.
  const std::vector<SharedParameter> shared = {{{0, 1, 2}, 99, false}, {{0, 3}, 10, false}};
  std::vector<LayerCost> costs(2);
  costs[0].dense_parameters = 100;
  costs[1].dense_parameters = 17;
  count_shared_once(shared, std::vector<std::int32_t>{0, 0, 0, 1}, execution(1, 1), costs);
  EXPECT_DOUBLE_EQ(3 * costs[0].dense_parameters, 3 + 99);
  EXPECT_EQ(costs[1].dense_parameters, 7);
}

TEST(Profile, TiedTablesAreSharedByTheEnds) {
  // Radford et al. 2019: 50,257 tokens, 768 features, 12 blocks, input and output tied.
  const std::vector<SharedParameter> shared = shared_parameters(load_model("gpt2", {}));
  ASSERT_EQ(shared.size(), 1U);
  EXPECT_EQ(shared[0].layers, (std::vector<std::int32_t>{0, 13}));
  EXPECT_EQ(shared[0].elements, 50257.0 * 768);
  EXPECT_TRUE(shared[0].sharded);
  EXPECT_TRUE(shared_parameters(load_model("llama-2-7b", {})).empty());
}

TEST(Profile, ReadsBackEqual) {
  const Graph graph = load_model("gpt2", {});
  const System system = load_system("dgx-a100");
  const Profile profile =
      estimate_profile(graph, {execution(1, 1), execution(2, 4, true)}, {}, system);
  const Document document =
      Document::parse(to_text(to_json(profile)), Document::Syntax::json, "profile.json");
  EXPECT_EQ(profile_from_json(document.root()), profile);
}

TEST(Profile, BadOnesAreRefused) {
  Profile profile;
  Option option;
  option.name = "plain";
  profile.layers = {{"a", 0}, {"b", 0}};
  profile.edges = {{0, 1, 8}};
  profile.kinds = {{option}};
  const auto refused = [](const Profile& bad) {
    try {
      check_profile(bad, "profile.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused(profile), "");
  Profile bad = profile;
  bad.edges = {{1, 0, 8}};
  EXPECT_NE(refused(bad).find("cycle"), std::string::npos);
  bad = profile;
  bad.edges = {{0, 2, 8}};
  EXPECT_NE(refused(bad).find("there is no layer"), std::string::npos);
  bad = profile;
  bad.edges = {{0, 1, 8}, {0, 1, 8}};
  EXPECT_NE(refused(bad).find("twice"), std::string::npos);
  bad = profile;
  bad.kinds[0].clear();
  EXPECT_NE(refused(bad).find("no option"), std::string::npos);
  bad = profile;
  bad.kinds[0][0].cost.stash_bytes = -1;
  EXPECT_NE(refused(bad).find("stash_bytes"), std::string::npos);
  bad = profile;
  bad.kinds[0][0].cost.stash_bytes = bad.kinds[0][0].cost.offloaded_bytes = 8;
  EXPECT_NE(refused(bad).find("offloads bytes, but not its activations"), std::string::npos);
  bad.kinds[0][0].how.offload_activations = true;
  EXPECT_EQ(refused(bad), "");
  bad.kinds[0][0].cost.offloaded_bytes = 9;
  EXPECT_NE(refused(bad).find("more bytes than it stashes"), std::string::npos);
  for (const SharedParameter& shared :
       {SharedParameter{{0}, 1, true}, SharedParameter{{1, 0}, 1, true},
        SharedParameter{{0, 0}, 1, true}, SharedParameter{{0, 2}, 1, true},
        SharedParameter{{0, 1}, -1, true}}) {
    bad = profile;
    bad.shared = {shared};
    EXPECT_NE(refused(bad).find("shared"), std::string::npos);
  }
  bad = profile;
  bad.layers[1].kind = 7;
  EXPECT_NE(refused(bad).find("kind"), std::string::npos);
}

}  // namespace
}  // namespace braid

#include "braid/profile/layer_sharding.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/frontend/graph_builder.h"
#include "braid/frontend/model.h"
#include "braid/profile/profile_json.h"
#include "braid/profile/sharded_options.h"
#include "braid/profile/split_limits.h"

#include "profile/groups_of.h"

namespace braid {
namespace {

using test::groups_of;

/// Kernels that need not wait for the host, which sums of kernels' times leave out.
System patient(const std::string& name) {
  System system = load_system(name);
  for (DeviceGroup& group : system.groups) group.chip.efficiency.host_operator_s = 0;
  return system;
}

Execution tp_execution(int tp, int micro_batch = 1, Recompute recompute = Recompute::none) {
  Execution how;
  how.tp = tp;
  how.micro_batch = micro_batch;
  how.recompute = recompute;
  return how;
}

LayerSharding find(const Graph& graph, LayerId layer, const Execution& how, const System& system,
                   ShardingAim aim = ShardingAim::time) {
  const std::vector<OperatorWork> works = layer_work(graph, layer);
  return find_layer_sharding({graph, layer, works}, sharding_input(graph), how,
                             {{}, groups_of(system, how), system}, aim);
}

LayerCost cost_of(const Graph& graph, LayerId layer, const std::vector<Split>& splits,
                  const Execution& how, const System& system) {
  const ShardingInput input = sharding_input(graph);
  const std::vector<OperatorWork> works = layer_work(graph, layer);
  const LayerGroups groups = groups_of(system, how);
  return estimate_layer({ShardedGraph(graph).with(layer, splits), layer, works,
                         input.leaving[static_cast<std::size_t>(layer)]},
                        how, {{}, groups, system});
}

/// Nothing hidden, as the search has it.
double time_of(const LayerCost& cost) {
  return cost.forward.total_s() + cost.backward_s() + cost.hidden_tp_s;
}

std::vector<Split> splits_of(const Graph& graph, LayerId id) {
  const Layer& layer = graph.layers[static_cast<std::size_t>(id)];
  std::vector<Split> splits;
  for (OperatorId op = layer.first; op < layer.last; ++op) {
    splits.push_back(graph.operators[static_cast<std::size_t>(op)].split);
  }
  return splits;
}

LayerId layer_named(const Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.layers.begin(), graph.layers.end(),
                                  [&](const Layer& layer) { return layer.name == name; });
  return static_cast<LayerId>(found - graph.layers.begin());
}

/// A layer of up to seven random operators between two others, on tensors [rows × width] of a few
/// widths, some odd.
Graph random_graph(std::mt19937_64& dice) {
  constexpr std::int64_t rows = 512;
  GraphBuilder builder("random", rows);
  const auto width = [&] { return std::vector<std::int64_t>{1024, 2048, 1022, 4096}[dice() % 4]; };
  std::vector<std::pair<TensorId, std::int64_t>> tensors;
  builder.begin_layer("before");
  for (int i = 0; i < 2; ++i) {
    const std::string name = "before" + std::to_string(i);
    const std::int64_t n = width();
    const TensorId x = builder.input(name + ".input", {rows, 64}, Dtype::bf16);
    tensors.emplace_back(builder.linear(name, x, {rows, 64, n}, false, Split::replicated), n);
  }
  builder.begin_layer("layer");
  const std::size_t operators = dice() % 6 + 2;
  for (std::size_t i = 0; i < operators; ++i) {
    const std::string name = "op" + std::to_string(i);
    const auto [x, k] = tensors[dice() % tensors.size()];
    const auto other = std::find_if(tensors.rbegin(), tensors.rend(), [&, id = x, w = k](auto& t) {
      return t.second == w && t.first != id;
    });
    const std::uint64_t kind = dice() % 6;
    if (kind == 0) {
      tensors.emplace_back(builder.norm(name, x, rows, k, true), k);
    } else if (kind == 1) {
      tensors.emplace_back(builder.dropout(name, x, rows, k), k);
    } else if (kind == 2 && other != tensors.rend()) {
      tensors.emplace_back(builder.residual(name, x, other->first, rows, k), k);
    } else if (kind == 3 && k % 64 == 0) {
      Attention attention;
      attention.heads = attention.kv_heads = k / 64;
      attention.q_len = attention.kv_len = rows;
      attention.qk_dim = attention.v_dim = 64;
      tensors.emplace_back(builder.add(name, attention, {x, x, x}, {rows, k}, Split::replicated),
                           k);
    } else {
      const std::int64_t n = width();
      tensors.emplace_back(builder.linear(name, x, {rows, k, n}, false, Split::replicated), n);
    }
  }
  builder.begin_layer("after");
  // Reads the last tensor and perhaps one from the middle of the layer.
  const auto middle = tensors[2 + dice() % (tensors.size() - 2)];
  const TensorId a =
      builder.norm("after.a", tensors.back().first, rows, tensors.back().second, true);
  const TensorId b = builder.norm("after.b", middle.first, rows, middle.second, true);
  return builder.finish({a, b});
}

TEST(LayerSharding, AgreesWithTryingAllShardings) {
  std::mt19937_64 dice(7);
  const System systems[] = {patient("dgx-h100:8"), patient("p3.8xlarge:4"),
                            patient("g4dn.12xlarge:4")};
  for (int round = 0; round < 150; ++round) {
    const Graph graph = random_graph(dice);
    const System& system = systems[dice() % 3];
    const Execution how =
        tp_execution(dice() % 2 == 0 ? 2 : 4, 1, static_cast<Recompute>(dice() % 3));
    const Precision precision{Dtype::f16, Dtype::f16, Dtype::f16};
    const LayerId layer = 1;
    const ShardingInput input = sharding_input(graph);
    const std::vector<OperatorWork> works = layer_work(graph, layer);
    const LayerGroups groups = groups_of(system, how);
    const Layer& range = graph.layers[1];
    std::vector<std::vector<Split>> ways;
    for (OperatorId op = range.first; op < range.last; ++op) {
      ways.push_back(operator_splits(graph, graph.operators[static_cast<std::size_t>(op)], layer,
                                     input.features, how.tp, false));
    }
    std::vector<std::size_t> at(ways.size(), 0);
    std::vector<Split> splits(ways.size());
    std::pair<double, double> fastest{1e300, 1e300}, smallest{1e300, 1e300};
    for (bool more = true; more;) {
      for (std::size_t i = 0; i < ways.size(); ++i) splits[i] = ways[i][at[i]];
      const LayerCost cost =
          estimate_layer({ShardedGraph(graph).with(layer, splits), layer, works, input.leaving[1]},
                         how, {precision, groups, system});
      const double time_s = time_of(cost);
      fastest = std::min(fastest, {time_s, cost.dense_parameters});
      smallest = std::min(smallest, {cost.dense_parameters, time_s});
      more = false;
      for (std::size_t i = 0; i < ways.size() && !more; ++i) {
        more = ++at[i] < ways[i].size();
        if (!more) at[i] = 0;
      }
    }
    for (const ShardingAim aim : {ShardingAim::time, ShardingAim::parameters}) {
      const LayerSharding found =
          find_layer_sharding({graph, layer, works}, input, how, {precision, groups, system}, aim);
      ASSERT_TRUE(found.optimal);
      const LayerCost cost = estimate_layer(
          {ShardedGraph(graph).with(layer, found.splits), layer, works, input.leaving[1]}, how,
          {precision, groups, system});
      EXPECT_NEAR(found.time_s, time_of(cost), 1e-9 * found.time_s);
      EXPECT_DOUBLE_EQ(found.parameters, cost.dense_parameters);
      if (aim == ShardingAim::time) {
        EXPECT_NEAR(found.time_s, fastest.first, 1e-9 * fastest.first) << round;
      } else {
        EXPECT_EQ(found.parameters, smallest.first) << round;
        EXPECT_NEAR(found.time_s, smallest.second, 1e-9 * smallest.second) << round;
      }
    }
  }
}

// "four all-reduces per iteration (forward and backward) per layer" (DFModel, section VI-A), with
// every split taken out of the graph beforehand.
TEST(LayerSharding, FourAllReducesOfATransformerLayerComeOutByThemselves) {
  const System system = patient("dgx-h100:8");
  for (const char* model : {"gpt3-1.3b", "gpt3-175b", "llama-3-8b", "llama-3-70b"}) {
    const Graph written = load_model(model, {.seq_len = 2048, .dims = {}});
    Graph graph = written;
    for (Operator& op : graph.operators) op.split = Split::replicated;
    const LayerId layer = layer_named(graph, "block0");
    for (const int tp : {2, 4, 8}) {
      const Execution how = tp_execution(tp, 2);
      const LayerSharding found = find(graph, layer, how, system);
      ASSERT_TRUE(found.optimal);
      const LayerCost cost = cost_of(graph, layer, found.splits, how, system);
      const LayerCost megatron =
          estimate_layer(written, layer, how, {}, groups_of(system, how), system);
      EXPECT_DOUBLE_EQ(time_of(cost), time_of(megatron)) << model;
      EXPECT_EQ(cost.dense_parameters, megatron.dense_parameters);
      EXPECT_DOUBLE_EQ(cost.stash_bytes, megatron.stash_bytes);
      EXPECT_EQ(cost.output_bytes, megatron.output_bytes);
      const double all_reduce_s = collective_time(Collective::all_reduce, cost.output_bytes,
                                                  groups_of(system, how).tp, system)
                                      .time_s;
      EXPECT_DOUBLE_EQ(cost.forward.tp_comm_s, 2 * all_reduce_s);
      EXPECT_DOUBLE_EQ(cost.backward_input.tp_comm_s + cost.hidden_tp_s, 2 * all_reduce_s);
    }
  }
}

// What the model itself says is one of the shardings.
TEST(LayerSharding, NeverSlowerThanWrittenByHand) {
  const System system = patient("dgx-a100:8");
  int compared = 0;
  for (const char* model :
       {"bert-base", "gpt2-xl", "llama-3-8b", "mixtral-8x7b", "deepseek-v2", "t5-large", "vit-base",
        "transgan", "gemma-3-1b", "multi-modal-transformer"}) {
    const Graph graph = load_model(model, {});
    const std::vector<bool> closed = borders_sharded(graph);
    const SplitLimits limits = split_limits(graph);
    std::vector<std::int32_t> seen;
    for (LayerId layer = 0; layer < static_cast<LayerId>(graph.layers.size()); ++layer) {
      const std::int32_t kind = graph.layers[static_cast<std::size_t>(layer)].kind;
      if (std::find(seen.begin(), seen.end(), kind) != seen.end()) continue;
      seen.push_back(kind);
      for (const int tp : {2, 8}) {
        const Execution how = tp_execution(tp, 2);
        if (!refusal(limits, how).empty() || closed[static_cast<std::size_t>(layer)]) continue;
        const LayerSharding found = find(graph, layer, how, system);
        const double written_s =
            time_of(cost_of(graph, layer, splits_of(graph, layer), how, system));
        EXPECT_LE(found.time_s, written_s * (1 + 1e-12)) << model << " layer " << layer;
        EXPECT_LE(
            find(graph, layer, how, system, ShardingAim::parameters).parameters,
            cost_of(graph, layer, splits_of(graph, layer), how, system).dense_parameters +
                cost_of(graph, layer, splits_of(graph, layer), how, system).expert_parameters);
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 30);
}

TEST(LayerSharding, OrderAndNamesOfOperatorsDoNotMatter) {
  // Two towers into a sum, once with the one first, once with the other.
  const System system = patient("dgx-h100:8");
  const auto graph_of = [](const std::vector<std::string>& towers) {
    GraphBuilder builder("towers", 1024);
    builder.begin_layer("before");
    const TensorId input = builder.input("x", {1024, 64}, Dtype::bf16);
    const TensorId x = builder.linear("in", input, {1024, 64, 2048}, false, Split::replicated);
    builder.begin_layer("layer");
    std::vector<TensorId> ends;
    for (const std::string& tower : towers) {
      const std::int64_t width = tower == "wide" ? 8192 : 1536;
      TensorId y = builder.linear(tower + ".up", x, {1024, 2048, width}, false, Split::replicated);
      y = builder.dropout(tower + ".drop", y, 1024, width);
      ends.push_back(
          builder.linear(tower + ".down", y, {1024, width, 2048}, false, Split::replicated));
    }
    return builder.finish({builder.residual("sum", ends[0], ends[1], 1024, 2048)});
  };
  for (const int tp : {2, 4, 8}) {
    const LayerSharding one = find(graph_of({"wide", "narrow"}), 1, tp_execution(tp), system);
    const LayerSharding other = find(graph_of({"narrow", "wide"}), 1, tp_execution(tp), system);
    EXPECT_DOUBLE_EQ(one.time_s, other.time_s);
    EXPECT_EQ(one.parameters, other.parameters);
    // Both towers are column, features, row; two partial sums cost two all-reduces.
    EXPECT_EQ(one.splits[0], Split::column);
    EXPECT_EQ(one.splits[2], Split::row);
  }
}

TEST(LayerSharding, FasterLinksNeverHurt) {
  System system = patient("p3.8xlarge:4");
  const Precision precision{Dtype::f16, Dtype::f16, Dtype::f16};
  const Graph graph = load_model("gpt2-xl", {});
  const LayerId layer = layer_named(graph, "block0");
  double last_s = std::numeric_limits<double>::infinity();
  for (int doubling = 0; doubling < 6; ++doubling) {
    const Execution how = tp_execution(4, 2);
    const std::vector<OperatorWork> works = layer_work(graph, layer);
    const LayerSharding found =
        find_layer_sharding({graph, layer, works}, sharding_input(graph), how,
                            {precision, groups_of(system, how), system}, ShardingAim::time);
    EXPECT_LE(found.time_s, last_s);
    last_s = found.time_s;
    system.groups[0].intra_node.bytes_per_s *= 2;
    system.groups[0].intra_node.unit_bytes_per_s *= 2;
  }
}

// Nobody has written how to divide these.
TEST(ShardedOptions, DivideModelsThatSayNothing) {
  const System system = load_system("dgx-h100:8");
  for (const char* model : {"resnet-50", "gnmt", "gpt2-xl"}) {
    const Graph graph = load_model(model, {});
    const Execution how = tp_execution(8, 8);
    ASSERT_FALSE(refusal(split_limits(graph), how).empty()) << model;
    const Profile none = estimate_profile(graph, {tp_execution(1, 8), how}, {}, system);
    const Profile some =
        estimate_profile(graph, {tp_execution(1, 8), how}, {}, system, ShardingSource::automatic);
    double whole = 0, least = 0;
    for (std::size_t k = 0; k < some.kinds.size(); ++k) {
      ASSERT_EQ(none.kinds[k].size(), 1U);
      ASSERT_GE(some.kinds[k].size(), 2U);
      EXPECT_EQ(some.kinds[k][0], none.kinds[k][0]);
      EXPECT_EQ(some.kinds[k][1].name, "tp8:sharded");
      whole += none.kinds[k][0].cost.dense_parameters;
      least += some.kinds[k].back().cost.dense_parameters;
      for (const Option& option : some.kinds[k]) {
        EXPECT_EQ(option.cost.output_bytes, none.kinds[k][0].cost.output_bytes);
      }
    }
    EXPECT_LE(least, whole / 7) << model;
    EXPECT_EQ(profile_from_json(
                  Document::parse(to_text(to_json(some)), Document::Syntax::json, "p.json").root()),
              some);
  }
}

// DLRM's dense layers pass a sharded tensor from one to the next: that goes with itself alone.
TEST(ShardedOptions, LeaveOutShardingsThatCrossBorders) {
  const System system = load_system("dgx-h100:8");
  const Graph graph = load_model("dlrm-thesis", {});
  const std::vector<bool> closed = borders_sharded(graph);
  const Profile profile = estimate_profile(graph, {tp_execution(1), tp_execution(4)}, {}, system,
                                           ShardingSource::automatic);
  const auto dense = static_cast<std::size_t>(layer_named(graph, "bottom0.dense0"));
  const auto table = static_cast<std::size_t>(layer_named(graph, "table0"));
  EXPECT_TRUE(closed[dense]);
  EXPECT_FALSE(closed[table]);
  const auto has = [&](std::size_t layer, const std::string& name) {
    const std::vector<Option>& options =
        profile.kinds[static_cast<std::size_t>(graph.layers[layer].kind)];
    return std::any_of(options.begin(), options.end(),
                       [&](const Option& option) { return option.name == name; });
  };
  EXPECT_FALSE(has(dense, "tp4"));
  EXPECT_TRUE(has(dense, "tp4:sharded"));
  EXPECT_TRUE(has(table, "tp4"));
  EXPECT_TRUE(has(table, "tp4:sharded-small"));
}

}  // namespace
}  // namespace braid

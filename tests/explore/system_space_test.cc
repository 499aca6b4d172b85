#include "braid/explore/system_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/explore/sweep.h"
#include "braid/frontend/model.h"
#include "braid/graph/working_precision.h"
#include "braid/planners/trainer_choice.h"

#include "explore/small_space.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Models that planners are done with in no time, on both chips of small_systems_text().
std::string two_systems_text() {
  return replaced_in(systems_with("devices: [4, 8]", "devices: 8"),
                     "  uno: {model: candle-uno, global_batch: 1024, precision: bf16}\n", "");
}

std::size_t number_of(const Space& space, const std::vector<std::string>& names) {
  for (std::size_t number = 0; number < point_count(space); ++number) {
    const SpacePoint point = point_of(space, number);
    std::size_t matches = 0;
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      matches +=
          std::count(names.begin(), names.end(), value_name(space, point, axis)) > 0 ? 1U : 0U;
    }
    if (matches == names.size()) return number;
  }
  ADD_FAILURE() << "no such point";
  return 0;
}

TEST(SystemSpace, AxesAndUnits) {
  const Space space = space_from(small_systems_text());
  EXPECT_EQ(point_count(space), 32U);
  std::string names;
  for (const SpaceAxis& axis : space.axes) names += axis.name + " ";
  EXPECT_EQ(names, "workload planner chip network devices ");
  EXPECT_EQ(space.units, (std::vector<std::string>{"token", "sample"}));
  EXPECT_EQ(unit_of(space), "unit");
  EXPECT_TRUE(space.has_prices && space.has_powers);
}

// A catalogue's chip on the network of its own cluster is that cluster.
TEST(SystemSpace, AChipOnItsOwnNetworkIsItsCluster) {
  const Space space = space_from(small_systems_text());
  for (const char* devices : {"4", "8"}) {
    const SpacePoint point = point_of(space, number_of(space, {"gpt", "big", "nodes", devices}));
    System system = system_of(systems_of(space), point);
    System expected = load_system(std::string("dgx-h100:") + devices);
    system.name = expected.name;
    expected.description.clear();
    EXPECT_EQ(system, expected);
  }
}

TEST(SystemSpace, NetworksOfTheSpace) {
  const Space space = space_from(small_systems_text());
  const SpacePoint point = point_of(space, number_of(space, {"gpt", "flow", "pairs", "8"}));
  const System system = system_of(systems_of(space), point);
  ASSERT_EQ(system.groups.size(), 1U);
  EXPECT_EQ(system.groups[0].chip.name, "sn30");
  EXPECT_FALSE(system.groups[0].chip.host.has_value());
  EXPECT_EQ(system.groups[0].nodes, 4);
  EXPECT_EQ(system.groups[0].devices_per_node, 2);
  ASSERT_EQ(system.levels.size(), 1U);
  EXPECT_EQ(system.levels[0].size, 4);
  EXPECT_EQ(system.levels[0].unit_bytes_per_s, 50e9);
}

// By hand: devices, what they send into each network, and memory where it is an axis.
TEST(SystemSpace, PricesAndPowers) {
  const Space space = space_from(small_systems_text());
  const auto cost = [](const Space& of, const std::vector<std::string>& names) {
    return cost_of(systems_of(of), point_of(of, number_of(of, names)));
  };
  const SystemCost nodes = cost(space, {"gpt", "big", "nodes", "8"});
  EXPECT_DOUBLE_EQ(nodes.usd, 8 * (30'000 + 450 * 10 + 50 * 20));
  EXPECT_DOUBLE_EQ(nodes.watts, 8 * (700 + 0.1 * (450 + 50)));
  const SystemCost pairs = cost(space, {"gpt", "flow", "pairs", "4"});
  EXPECT_DOUBLE_EQ(pairs.usd, 4 * (16'522 + 5 * (100 + 25)));
  EXPECT_DOUBLE_EQ(pairs.watts, 4 * (500 + 0.2 * (100 + 25)));
  const Space stacked = space_from(systems_with(
      "networks:\n",
      "memories:\n  fat: {capacity: 2 TB, bandwidth: 2 TB/s, price: 3 USD per GB/s, power: 0.05 W "
      "per GB/s}\nnetworks:\n"));
  EXPECT_DOUBLE_EQ(cost(stacked, {"gpt", "big", "nodes", "8"}).usd, nodes.usd + 8 * 2000 * 3);
  EXPECT_DOUBLE_EQ(cost(stacked, {"gpt", "big", "nodes", "8"}).watts, nodes.watts + 8 * 100);
}

TEST(SystemSpace, MemoriesAndLinksTakeThePlaceOfTheirs) {
  std::string text =
      systems_with(", price: [10 USD per GB/s, 20 USD per GB/s], power: 0.1 W per GB/s}", "}");
  text = replaced_in(text, "    price: 5 USD per GB/s\n    power: 0.2 W per GB/s\n", "");
  text = replaced_in(text, "networks:\n",
                     "memories:\n  fat: {capacity: 2 TB, bandwidth: 2 TB/s}\nlinks:\n  twice: "
                     "{bandwidth: [900 GB/s, 100 GB/s], latency: 1 us, price: 2 USD per GB/s, "
                     "power: [0 W per GB/s, 1 W per GB/s]}\nnetworks:\n");
  const Space space = space_from(text);
  const SpacePoint point = point_of(space, number_of(space, {"gpt", "big", "nodes", "8"}));
  const System system = system_of(systems_of(space), point);
  const System plain = load_system("dgx-h100:8");
  EXPECT_EQ(system.groups[0].chip.memory, (Memory{"fat", 2e12, 2e12}));
  EXPECT_EQ(system.groups[0].intra_node.bytes_per_s, 900e9);
  EXPECT_EQ(system.groups[0].intra_node.unit_bytes_per_s,
            2 * plain.groups[0].intra_node.unit_bytes_per_s);
  EXPECT_EQ(system.levels[0].unit_bytes_per_s, 2 * plain.levels[0].unit_bytes_per_s);
  EXPECT_EQ(system.levels[0].latency_s, 1e-6);
  EXPECT_EQ(system.levels[0].efficiency, plain.levels[0].efficiency);
  const SystemCost cost = cost_of(systems_of(space), point);
  EXPECT_DOUBLE_EQ(cost.usd, 8 * (30'000 + 2 * (900 + 100)));
  EXPECT_DOUBLE_EQ(cost.watts, 8 * (700 + 100));
  std::string said;
  for (const Provenance& source : system.groups[0].chip.provenance) said += source.source + "\n";
  EXPECT_THAT(said, HasSubstr("fat, as the space has it"));
}

// Of clusters each device counts as its own chip has it.
TEST(SystemSpace, ClustersAreWholeSystems) {
  const Space space = space_from(R"(
workloads: {gpt: {model: gpt2, global_batch: 16, seq_len: 256, precision: fp16}}
planners: [braid, exhaustive]
compare: [power]
clusters:
  mixed: {cluster: 'p3.8xlarge:1nodes+g4dn.12xlarge:1nodes'}
  v100: {cluster: 'p3.8xlarge:6'}
)");
  EXPECT_EQ(point_count(space), 4U);
  EXPECT_FALSE(space.has_prices);
  const Sweep sweep = sweep_space(space, nullptr);
  EXPECT_TRUE(is_found(sweep.results[0]));
  EXPECT_DOUBLE_EQ(sweep.results[0].watts, 4 * 300 + 4 * 70);
  EXPECT_DOUBLE_EQ(sweep.results[1].watts, 6 * 300);  // The second node is half filled.
  EXPECT_FALSE(is_found(sweep.results[2]));
  EXPECT_THAT(sweep.results[2].reason, HasSubstr("one kind of device"));
  EXPECT_TRUE(is_found(sweep.results[3]));
}

// What a point has is what the planner says of the job that the space describes.
TEST(SystemSpace, PointsAreOutcomesOfPlanners) {
  const Space space = space_from(two_systems_text());
  for (const char* planner : {"braid", "megatron"}) {
    const std::size_t number = number_of(space, {"gpt", planner, "big", "nodes"});
    const PlannedPoint point = plan_point(space, point_of(space, number));
    ModelOptions options;
    options.seq_len = 512;
    Graph graph = load_model("gpt2", options);
    Job job;
    job.graph = &graph;
    job.precision = parse_precision("bf16");
    set_working_precision(graph, job.precision.activation, job.precision.weight);
    job.global_batch = 16;
    const System system = load_system("dgx-h100:8");
    SpaceOptions within;
    set_trainer(usual_trainer(TrainerNeeds{&job, &system, &within, {&find_planner(planner)}}),
                system, job, within);
    adapt_graph(job.trainer.does, graph);
    const Outcome outcome = find_planner(planner).plan(job, system, within, {}, {});
    ASSERT_FALSE(outcome.candidates.empty());
    const Metrics& metrics = outcome.candidates[0].metrics;
    EXPECT_EQ(point.result.status, outcome.status);
    EXPECT_EQ(point.result.time_s, metrics.iteration_time_s);
    EXPECT_EQ(point.result.lower_bound_s, outcome.physical_bound.time_s);
    EXPECT_EQ(point.result.throughput, metrics.tokens_per_s);
    EXPECT_EQ(point.result.utilisation, metrics.mfu);
    ASSERT_TRUE(point.plan.has_value());
    EXPECT_EQ(point.plan->stages, outcome.candidates[0].plan.stages);
    double parts_s = 0;
    for (const double part : point.result.parts_s) parts_s += part;
    EXPECT_NEAR(parts_s, metrics.iteration_time_s, 1e-9 * metrics.iteration_time_s);
  }
}

// A planner that does not take the job, or has no room for it, leaves the others their points.
TEST(SystemSpace, PointsWithoutAPlanSayWhy) {
  const Space space = space_from(replaced_in(two_systems_text(), "bf16", "fp8"));
  const Sweep sweep = sweep_space(space, nullptr);
  const PointResult& flow = sweep.results[number_of(space, {"gpt", "braid", "flow", "nodes"})];
  EXPECT_EQ(flow.status, Status::infeasible);
  EXPECT_THAT(flow.reason, HasSubstr("sn30"));
  EXPECT_TRUE(is_found(sweep.results[number_of(space, {"gpt", "braid", "big", "nodes"})]));
  const Space large =
      space_from(replaced_in(replaced_in(two_systems_text(), "model: gpt2,", "model: gpt3-175b,"),
                             "[braid, megatron]", "[megatron]"));
  const PlannedPoint point = plan_point(large, point_of(large, 0));
  EXPECT_FALSE(is_found(point.result));
  EXPECT_THAT(point.result.reason, HasSubstr("GiB short"));
  EXPECT_GT(point.result.lower_bound_s, 0);
}

TEST(SystemSpace, CanonicalTextTellsSpacesApart) {
  const std::string text = canonical_text(space_from(small_systems_text()));
  EXPECT_EQ(text, canonical_text(space_from(small_systems_text())));
  EXPECT_EQ(text, canonical_text(space_from(systems_with("name: small", "name: other"))));
  for (const auto& [from, to] : std::vector<std::pair<const char*, const char*>>{
           {"[4, 8]", "[4, 16]"},
           {"planners: [braid, megatron]", "planners: [megatron, braid]"},
           {"model: gpt2", "model: gpt3-125m"},
           {"global_batch: 16", "global_batch: 8"},
           {"seq_len: 512", "seq_len: 256"},
           {"precision: bf16", "precision: fp16"},
           {"chip: h100-sxm", "chip: h200-sxm"},
           {"30 kUSD", "31 kUSD"},
           {"power: 500 W", "power: 501 W"},
           {"cluster: dgx-h100", "cluster: dgx-a100"},
           {"10 USD per", "11 USD per"},
           {"latency: 2 us", "latency: 3 us"},
           {"0.2 W per", "0.3 W per"},
           {"networks:\n", "memories: {fat: {capacity: 2 TB, bandwidth: 2 TB/s}}\nnetworks:\n"},
           {"planners:", "budget: 7\nplanners:"},
           {"planners:", "offload: false\nplanners:"},
           {"planners:", "all_devices: true\nplanners:"},
           {"planners:", "for: megatron\nplanners:"},
           {"planners:", "degrees: {tp: [1, 2]}\nplanners:"},
           {"planners:", "degrees: {max_pp: 2}\nplanners:"},
           {"planners:", "sharding: auto\nplanners:"}}) {
    EXPECT_NE(text, canonical_text(space_from(systems_with(from, to)))) << to;
  }
}

TEST(SystemSpace, DegreesAreListsAndLimits) {
  const Space space = space_from(
      systems_with("planners:", "degrees: {tp: [2, 1], pp: 4, max_pp: 8, max_dp: 2}\nplanners:"));
  const SpaceOptions& options = systems_of(space).options;
  EXPECT_EQ(options.tp, Degrees({1, 2}));
  EXPECT_EQ(options.pp, Degrees({4}, 8));
  EXPECT_EQ(options.dp, Degrees({}, 2));
  EXPECT_TRUE(options.cp.is_any());
}

TEST(SystemSpace, WithoutPricesNoneAreCompared) {
  std::string text = systems_with(", price: 30 kUSD", "");
  text = replaced_in(text, "devices: [4, 8]", "devices: [4, 8]\ncompare: []");
  const Space space = space_from(text);
  EXPECT_FALSE(space.has_prices || space.has_powers);
  EXPECT_EQ(figures_of(space),
            (std::vector<SpaceFigure>{SpaceFigure::utilisation, SpaceFigure::throughput}));
}

struct SystemsMistake {
  const char* from;
  const char* to;
  const char* where;  ///< Of the message.
  const char* what;
};

void PrintTo(const SystemsMistake& mistake, std::ostream* out) { *out << mistake.to; }

class SystemSpaceMistakes : public ::testing::TestWithParam<SystemsMistake> {};

TEST_P(SystemSpaceMistakes, AreOneClearLine) {
  const SystemsMistake& mistake = GetParam();
  const std::string text = systems_with(mistake.from, mistake.to);
  ASSERT_FALSE(text.empty()) << "the text has no " << mistake.from;
  try {
    space_from(text);
    FAIL() << "accepted " << mistake.to;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("space.yaml:"));
    EXPECT_THAT(error.what(), HasSubstr(mistake.where));
    EXPECT_THAT(error.what(), HasSubstr(mistake.what));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
}

using M = SystemsMistake;
INSTANTIATE_TEST_SUITE_P(
    All, SystemSpaceMistakes,
    ::testing::Values(
        M{"planners: [braid, megatron]", "planner: brad", "planner", "did you mean 'braid'"},
        M{"planners: [braid, megatron]", "planners: [brad]", "planners[0]", "did you mean 'braid'"},
        M{"planners: [braid, megatron]", "planners: []", "planners", "no values"},
        M{"planners: [braid, megatron]", "planners: [braid, braid]", "planners[1]", "twice"},
        M{"planners:", "planner: braid\nplanners:", "planners", "exclude each other"},
        M{"planners:", "budget: 0\nplanners:", "budget", "0"},
        M{"planners:", "offload: maybe\nplanners:", "offload", "maybe"},
        M{"planners:", "all_devices: 1\nplanners:", "all_devices", "true"},
        M{"planners:", "for: megatrn\nplanners:", "for: no trainer 'megatrn'", "megatron"},
        M{"planners:", "degrees: {tp: [0]}\nplanners:", "degrees.tp[0]", "0"},
        M{"planners:", "degrees: {tp: []}\nplanners:", "degrees.tp", "the list is empty"},
        M{"planners:", "degrees: {tpp: 2}\nplanners:", "degrees.tpp", "did you mean 'tp'"},
        M{"planners:", "degrees: {tp: 4, max_tp: 2}\nplanners:", "degrees.max_tp",
          "less than all of tp"},
        M{"planners:", "sharding: lost\nplanners:", "sharding", "unknown sharding"},
        M{"planners:", "compare: [speed]\nplanners:", "compare[0]", "unknown figure"},
        M{"planners:", "overlap: all\nplanners:", "overlap", "unknown key"},
        M{"planners:", "parallelism: given\nplanners:", "parallelism", "rules: dfmodel"},
        M{"devices: [4, 8]\n", "", "devices", "devices: 64"},
        M{"devices: [4, 8]", "devices: [4, 4]", "devices[1]", "twice"},
        M{"devices: [4, 8]", "devices: []", "devices", "no values"},
        M{"devices: [4, 8]", "devices: 0", "devices", "0"},
        M{"model: gpt2,", "model: gpt22,", "workloads.gpt.model", "did you mean 'gpt2'"},
        M{"model: gpt2, ", "", "workloads.gpt", "model"},
        M{"global_batch: 16, ", "", "workloads.gpt", "global_batch"},
        M{"global_batch: 16", "global_batch: 0", "workloads.gpt.global_batch", "0"},
        M{"seq_len: 512", "seq_len: -1", "workloads.gpt.seq_len", "-1"},
        M{"seq_len: 512", "seqlen: 512", "workloads.gpt.seqlen", "did you mean 'seq_len'"},
        M{"precision: bf16", "precision: bf61", "workloads.gpt.precision", "bf61"},
        M{"seq_len: 512", "dims: {batch: 0}", "workloads.gpt.dims.batch", "0"},
        M{"chip: h100-sxm", "chip: h101-sxm", "chips.big.chip", "h100-sxm"},
        M{"chip: h100-sxm", "chp: h100-sxm", "chips.big.chp", "did you mean 'chip'"},
        M{"price: 30 kUSD", "price: 30", "chips.big.price", "unit"},
        M{"power: 500 W", "power: 500 USD", "chips.flow.power", "W"},
        M{"cluster: dgx-h100", "cluster: dgx-h101", "networks.nodes.cluster", "dgx-h100"},
        M{"      levels:\n        - {name: fabric, topology: switch, bandwidth: 25 GB/s, latency: "
          "5 us, "
          "efficiency: 0.9}\n",
          "", "networks.pairs.network", "no network between nodes"},
        M{"cluster: dgx-h100,", "cluster: dgx-h100, network: {},", "networks.nodes", "exclude"},
        M{"devices: [4, 8]", "devices: [4, 32]\ncompare: []\nclusters: [sn10-8r]", "chips",
          "whole systems"},
        M{"devices_per_node: 2\n", "devices_per_node: 0\n", "networks.pairs", "0"},
        M{"bandwidth: 25 GB/s", "bandwidth: 25 GB", "networks.pairs.network.levels", "bandwidth"},
        M{"      devices_per_node: 2\n", "      chip: t4\n      devices_per_node: 2\n",
          "networks.pairs.network.chip", "unknown key"},
        M{"10 USD per GB/s", "10 W per GB/s", "networks.nodes.price", "USD per GB/s"},
        M{"    price: 5 USD per GB/s\n", "", "networks.pairs", "the network 'pairs' has no price"},
        M{"chip: h100-sxm, price: 30 kUSD", "chip: h100-sxm", "chips.big",
          "the chip 'big' has no price"},
        M{"chip: h100-sxm, price: 30 kUSD", "chip: h100-sxm", "chips.big", "'compare: []'"},
        M{"planners:",
          "compare: [price, power]\nmemories: {m: {capacity: 1 TB, bandwidth: 1 TB/s, "
          "price: 0 USD per GB/s}, n: {capacity: 1 TB, bandwidth: 1 TB/s}}\nplanners:",
          "memories.n", "'compare: [power]'"},
        M{"chip: h100-sxm,", "chip: tpu-v5p,", "chips.big", "has no power"},
        M{"networks:\n", "memories: {}\nnetworks:\n", "memories", "no values"},
        M{"networks:\n", "memories: {thin: {capacity: 1 GB, bandwidth: 1 TB/s}}\nnetworks:\n",
          "memories.thin.capacity", "reserves"},
        M{"networks:\n", "memories: {thin: {bandwidth: 1 TB/s}}\nnetworks:\n", "memories.thin",
          "capacity"},
        M{"networks:\n", "links: {}\nnetworks:\n", "links", "no values"},
        M{"networks:\n", "links: {all: {bandwidth: 1 GB/s}}\nnetworks:\n", "networks.nodes.price",
          "links"},
        M{"networks:\n", "links: {all: {bandwidth: []}}\nnetworks:\n", "links.all.bandwidth",
          "one to 7"},
        M{"networks:\n", "links: {all: {latency: 1 us}}\nnetworks:\n", "links.all", "bandwidth"},
        M{"{network: nodes}", "{topology: nodes}", "ratios[0].above.topology", "no axis"},
        M{"{network: nodes}", "{network: node}", "ratios[0].above.network", "did you mean"},
        M{"of: throughput", "of: per_joule", "ratios[0].of", "unknown figure"},
        M{"of: throughput", "of: per_w, published: high", "ratios[0].published", "high"}));

TEST(SystemSpace, RatiosNeedTheirPrices) {
  const std::string text = replaced_in(systems_with("of: throughput", "of: per_usd"),
                                       "planners:", "compare: [power]\nplanners:");
  try {
    space_from(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("ratios[0].of"));
    EXPECT_THAT(error.what(), HasSubstr("not compared by price"));
  }
}

TEST(SystemSpace, ClustersMayBeListed) {
  const std::string head = "workloads: {gpt: {model: gpt2, global_batch: 16}}\n";
  const Space space = space_from(head + "devices: 16\nclusters: [dgx-h100, dgx-a100]\n");
  EXPECT_EQ(point_count(space), 2U);
  EXPECT_EQ(system_of(systems_of(space), point_of(space, 1)), load_system("dgx-a100:16"));
  for (const auto& [text, part] : std::vector<std::pair<std::string, const char*>>{
           {"clusters: [dgx-h100, dgx-h100]\n", "twice"},
           {"clusters: ['dgx-h100:16']\n", "file's name"},
           {"devices: 16\nclusters: {a: {cluster: 'dgx-h100:16'}}\n", "leave one of them out"},
           {"clusters: {a: {cluster: 'dgx-h100:x'}}\n", "NAME:64"},
           {"devices: 64\nclusters: [sn10-8r]\n", "network between nodes"},
           {"clusters: {}\n", "no values"}}) {
    try {
      space_from(head + text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(part)) << text;
      EXPECT_THAT(error.what(), HasSubstr("clusters")) << text;
    }
  }
}

}  // namespace
}  // namespace braid

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/backend/placement/cheapest_placement.h"
#include "braid/base/document.h"

#include "base/reference_files.h"

// The partitions that TVM 0.16 expects of its Collage, with the costs of its mock estimator.

namespace braid {
namespace {

using NodeSet = std::uint32_t;  ///< A bit for each node.

bool holds(NodeSet set, std::size_t node) { return (set >> node & 1U) != 0; }

struct PartitionNode {
  std::string operation;
  NodeSet reads = 0;
};

/// A target of the mock estimator: `n` operators fused cost c (1 + 0.9 + … + 0.9^(n-1)).
struct MockTarget {
  std::string name;
  double operation_cost = 0;
  std::int64_t most_depth = 0;
};

struct PartitionCase {
  std::vector<PartitionNode> nodes;  ///< Those that are read come first.
  NodeSet outputs = 0;
  std::vector<MockTarget> targets;
  NodeSet on_hook = 0;  ///< What TVM gives to the library.
  double least_cost = 0;
};

PartitionCase read_partition_case(const Value& value) {
  PartitionCase result;
  for (const Value& each : value["nodes"].elements()) {
    PartitionNode node{std::string(each["op"].as_string())};
    for (const Value& input : each["inputs"].elements()) {
      if (!input.is_string()) node.reads |= 1U << input.as_int();
    }
    result.nodes.push_back(node);
  }
  for (const Value& each : value["outputs"].elements()) result.outputs |= 1U << each.as_int();
  const Value costs = value["target_op_cost"];
  result.targets = {{"llvm", costs["llvm"].as_double(), value["tvm_max_depth"].as_int()},
                    {"hook", costs["hook"].as_double(), value["byoc_max_depth"].as_int()}};
  for (const Value& group : value["expected_byoc_groups"].elements()) {
    for (const Value& each : group.elements()) result.on_hook |= 1U << each.as_int();
  }
  result.least_cost = value["optimal_cost"].as_double();
  return result;
}

/// Whether one node of the set alone is read from outside or is an output. Then all others lead to
/// it within the set, which so is connected, and no path leaves it and comes back.
bool has_one_exit(const PartitionCase& c, NodeSet set) {
  NodeSet exits = set & c.outputs;
  for (std::size_t i = 0; i < c.nodes.size(); ++i) {
    if (!holds(set, i)) exits |= set & c.nodes[i].reads;
  }
  return exits != 0 && (exits & (exits - 1)) == 0;
}

/// Nodes on the longest path within the set.
std::int64_t depth_of(const PartitionCase& c, NodeSet set) {
  std::vector<std::int64_t> depths(c.nodes.size(), 0);
  for (std::size_t i = 0; i < c.nodes.size(); ++i) {
    if (!holds(set, i)) continue;
    for (std::size_t before = 0; before < i; ++before) {
      if (holds(c.nodes[i].reads, before)) depths[i] = std::max(depths[i], depths[before]);
    }
    ++depths[i];
  }
  return *std::max_element(depths.begin(), depths.end());
}

/// The library has kernels for three operations, TVM for all.
bool has_operations(const PartitionCase& c, NodeSet set, const MockTarget& target) {
  for (std::size_t i = 0; i < c.nodes.size(); ++i) {
    const std::string& op = c.nodes[i].operation;
    const bool in_library = op == "nn.relu" || op == "add" || op == "concatenate";
    if (target.name == "hook" && holds(set, i) && !in_library) return false;
  }
  return true;
}

double mock_cost(const PartitionCase& c, NodeSet set, const MockTarget& target) {
  double cost = 0;
  double next = target.operation_cost;
  for (std::size_t i = 0; i < c.nodes.size(); ++i) {
    if (!holds(set, i) || c.nodes[i].operation == "tuple") continue;
    cost += next;
    next *= 0.9;
  }
  return cost;
}

using KernelFilter = std::function<bool(NodeSet set, const MockTarget& target)>;

/// The cost of the cheapest placement with the kernels that the filter lets through.
double placed_cost(const PartitionCase& c, const KernelFilter& may) {
  PlacementProblem problem;
  problem.node_count = static_cast<std::int32_t>(c.nodes.size());
  std::vector<double> costs;
  for (NodeSet set = 1; set < 1U << c.nodes.size(); ++set) {
    if (!has_one_exit(c, set)) continue;
    PlacementCandidate candidate;
    for (std::size_t i = 0; i < c.nodes.size(); ++i) {
      if (holds(set, i)) candidate.nodes.push_back(static_cast<std::int32_t>(i));
    }
    for (const MockTarget& target : c.targets) {
      if (depth_of(c, set) > target.most_depth || !has_operations(c, set, target)) continue;
      if (!may(set, target)) continue;
      problem.candidates.push_back(candidate);
      costs.push_back(mock_cost(c, set, target));
    }
  }
  problem.cost_s = [&](std::size_t candidate) { return costs[candidate]; };
  const auto found = cheapest_placement(problem);
  return found ? found->cost_s : std::numeric_limits<double>::infinity();
}

TEST(TvmPartitions, AreTheCheapestPlacements) {
  const std::string file = reference_file("reference/collage/tvm_collage_oracles.json");
  if (file.empty()) GTEST_SKIP() << "the published partitions are not beside the project";
  const Document document = Document::parse_file(file);
  int cases = 0;
  int dearer_alone = 0;
  for (const Value& each : document.root()["partition_cases"].elements()) {
    SCOPED_TRACE(each["name"].as_string());
    const PartitionCase c = read_partition_case(each);
    const auto all = [](NodeSet, const MockTarget&) { return true; };
    // The published costs have four decimals.
    EXPECT_NEAR(placed_cost(c, all), c.least_cost, 5e-5);
    // As TVM placed it, so that its partition is one of the cheapest.
    const auto as_tvm = [&](NodeSet set, const MockTarget& target) {
      const NodeSet not_its = target.name == "hook" ? ~c.on_hook : c.on_hook;
      return (set & not_its) == 0;
    };
    EXPECT_NEAR(placed_cost(c, as_tvm), c.least_cost, 5e-5);
    // A wrong set of kernels is told apart: none that are fused.
    const auto alone = [](NodeSet set, const MockTarget&) { return (set & (set - 1)) == 0; };
    const double alone_cost = placed_cost(c, alone);
    EXPECT_GT(alone_cost, c.least_cost - 5e-5);
    if (alone_cost > c.least_cost + 5e-5) ++dearer_alone;
    ++cases;
  }
  std::cout << cases << " partitions, " << dearer_alone
            << " of them dearer without fused kernels\n";
  EXPECT_EQ(cases, 15);
  EXPECT_EQ(dearer_alone, 8);
}

}  // namespace
}  // namespace braid

#include <cmath>
#include <iostream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/backend/pattern/pattern.h"
#include "braid/backend/placement/cheapest_placement.h"
#include "braid/base/document.h"

#include "base/reference_files.h"

// The published measured costs of operators (RTX 2070) and the exact placements that follow from
// them.

namespace braid {
namespace {

/// A canonical text of a value: object keys sorted.
std::string text_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::object: {
      std::map<std::string, std::string> members;
      for (const auto& [key, member] : value.members()) members[std::string(key)] = text_of(member);
      std::string text = "{";
      for (const auto& [key, member] : members) text += key + ":" + member + ",";
      return text + "}";
    }
    case Value::Kind::array: {
      std::string text = "[";
      for (const Value& each : value.elements()) text += text_of(each) + ",";
      return text + "]";
    }
    case Value::Kind::string:
      return std::string(value.as_string());
    case Value::Kind::boolean:
      return value.as_bool() ? "true" : "false";
    case Value::Kind::integer:
    case Value::Kind::number:
      return fmt::format("{}", value.as_double());
    default:
      return "null";
  }
}

struct Network {
  OpGraph graph;
  std::vector<std::string> shapes, attributes;  ///< By node.
  std::vector<std::int32_t> operators;          ///< Nodes that are computed.
};

Network read_network(const std::string& path) {
  const Document document = Document::parse_file(path);
  Network network;
  for (const Value& each : document.root()["nodes"].elements()) {
    const std::string op(each["op"].as_string());
    OpNode node{.kind = OpNode::Kind::operation, .operation = op};
    if (op == "input") node.kind = OpNode::Kind::input;
    if (op == "const") node.kind = OpNode::Kind::constant;
    if (op == "tuple") node.kind = OpNode::Kind::tuple;
    for (const Value& input : each["inputs"].elements()) {
      node.args.push_back(static_cast<std::int32_t>(input.as_int()));
    }
    const bool computed = op != "input" && op != "const";
    if (computed) {
      network.operators.push_back(static_cast<std::int32_t>(network.graph.nodes.size()));
    }
    network.graph.nodes.push_back(node);
    // Of a tuple its first field's.
    const Value shape = op == "tuple" ? each["shape"][std::size_t{0}] : each["shape"];
    network.shapes.push_back(text_of(shape));
    network.attributes.push_back(each["attrs"].exists() ? text_of(each["attrs"]) : "{}");
  }
  network.graph.outputs = {static_cast<std::int32_t>(document.root()["output"].as_int())};
  return network;
}

Pattern read_pattern(const Value& value) {
  if (value.is_string()) return value.as_string() == "const" ? constant() : any();
  std::vector<Pattern> args;
  for (std::size_t i = 1; i < value.size(); ++i) args.push_back(read_pattern(value[i]));
  const std::string op(value[std::size_t{0}].as_string());
  return op == "tuple" ? tuple_of(std::move(args)) : pattern(op, std::move(args));
}

/// The attributes of the operators on each way from the root to a leaf, as the tables have them.
void add_paths(const Network& network, const Pattern& pattern, std::int32_t node,
               const std::string& before, std::vector<std::string>& paths) {
  const OpNode& here = network.graph.nodes[static_cast<std::size_t>(node)];
  std::string way = before;  // Tuples are passed over.
  if (here.kind == OpNode::Kind::operation) {
    way += "[" + here.operation + "," + network.attributes[static_cast<std::size_t>(node)] + ",],";
  }
  bool ends = true;
  for (std::size_t i = 0; i < pattern.args.size(); ++i) {
    const Pattern::Kind kind = pattern.args[i].kind;
    if (kind == Pattern::Kind::any || kind == Pattern::Kind::constant) continue;
    add_paths(network, pattern.args[i], here.args[i], way, paths);
    ends = false;
  }
  if (ends) paths.push_back("[" + way + "],");
}

std::string paths_text(const Network& network, const Pattern& pattern, std::int32_t root) {
  std::vector<std::string> paths;
  add_paths(network, pattern, root, "", paths);
  std::string text = "[";
  for (const std::string& each : paths) text += each;
  return text + "]";
}

struct CostRecord {
  std::string backend, first_shape, attributes;
  Pattern pattern;
  double cost_ms = 0;
};

std::vector<CostRecord> records_of_table(const Document& costs, std::string_view blob,
                                         const std::set<std::string>& backends) {
  std::vector<CostRecord> records;
  for (const Value& each : costs.root()["records"].elements()) {
    bool is_there = false;
    for (const Value& source : each["sources"].elements()) {
      is_there = is_there || source.as_string() == blob;
    }
    std::string backend(each["backend"].as_string());
    if (!is_there || !backends.contains(backend)) continue;
    records.push_back({backend, text_of(each["first_input_shape"]), text_of(each["attrs"]),
                       read_pattern(each["pattern"]), each["mean_ms"].as_double()});
  }
  return records;
}

PlacementProblem problem_of(const Network& network, const std::vector<CostRecord>& records,
                            std::vector<double>& costs_ms) {
  std::vector<std::int32_t> number(network.graph.nodes.size(), -1);
  for (std::size_t i = 0; i < network.operators.size(); ++i) {
    number[static_cast<std::size_t>(network.operators[i])] = static_cast<std::int32_t>(i);
  }
  PlacementProblem problem;
  problem.node_count = static_cast<std::int32_t>(network.operators.size());
  const auto add = [&](const std::vector<std::int32_t>& nodes, double cost_ms) {
    PlacementCandidate candidate;
    for (const std::int32_t node : nodes) {
      candidate.nodes.push_back(number[static_cast<std::size_t>(node)]);
    }
    std::sort(candidate.nodes.begin(), candidate.nodes.end());
    problem.candidates.push_back(std::move(candidate));
    costs_ms.push_back(cost_ms);
  };
  const PatternMatcher matcher(network.graph);
  for (const std::int32_t root : network.operators) {
    const auto at = static_cast<std::size_t>(root);
    if (network.graph.nodes[at].kind == OpNode::Kind::tuple) add({root}, 0);
    for (const CostRecord& record : records) {
      if (record.pattern.operation != network.graph.nodes[at].operation) continue;
      for (const PatternMatch& match : matcher.matches(record.pattern, root)) {
        if (network.shapes[static_cast<std::size_t>(match.leaves.front())] != record.first_shape ||
            paths_text(network, record.pattern, root) != record.attributes) {
          continue;
        }
        add(match.nodes, record.cost_ms);
      }
    }
  }
  return problem;
}

std::set<std::string> backends_named(std::string_view name) {
  if (name == "AutoTVM") return {"autotvm"};
  if (name == "TensorRT") return {"tensorrt"};
  if (name == "cuDNN+TVM") return {"autotvm", "cudnn"};
  return {"autotvm", "cudnn", "cublas", "tensorrt"};
}

TEST(CollageCosts, ExactPlacementsOfEveryTableNetworkAndBackends) {
  const std::string folder = "reference/collage/";
  const std::string expected_file = reference_file(folder + "exact_placements.json");
  const std::string costs_file = reference_file(folder + "operator_costs.json");
  if (expected_file.empty() || costs_file.empty()) {
    GTEST_SKIP() << "the published costs are not beside the project";
  }
  const Document expected = Document::parse_file(expected_file);
  const Document costs = Document::parse_file(costs_file);
  int placed = 0;
  for (const Value& each : expected.root().elements()) {
    const std::string name =
        fmt::format("{} {} {} eps {}", each["network"].as_string(), each["table_blob"].as_string(),
                    each["backends"].as_string(), each["eps_ms"].as_double());
    SCOPED_TRACE(name);
    const Network network = read_network(
        reference_file(folder + "networks/" + std::string(each["network"].as_string()) + ".json"));
    std::vector<double> costs_ms;
    PlacementProblem problem =
        problem_of(network,
                   records_of_table(costs, each["table_blob"].as_string(),
                                    backends_named(each["backends"].as_string())),
                   costs_ms);
    problem.cost_s = [&](std::size_t candidate) { return costs_ms[candidate]; };
    problem.cost_per_kernel_s = each["eps_ms"].as_double();
    const auto found = cheapest_placement(problem);
    if (!found) {
      ADD_FAILURE() << "nothing covers the network";
      continue;
    }
    EXPECT_NEAR(found->cost_s, each["optimum_with_eps_ms"].as_double(), 1e-9);
    ++placed;
  }
  std::cout << placed << " placements\n";
  EXPECT_EQ(placed, 62);
}

}  // namespace
}  // namespace braid

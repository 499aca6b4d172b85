#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "braid/planners/graphpipe/problem.h"

namespace braid::test {

/// A random problem of at most `most_nodes` nodes with small whole numbers for sizes; its graph is
/// series-parallel, or any if `any_graph`.
GraphPipeProblem random_graphpipe(std::mt19937_64& random, int most_nodes, bool any_graph);

/// Gives its stages one to three more strategies to run, with replicas of up to three devices.
void add_random_strategies(std::mt19937_64& random, GraphPipeProblem& problem);

/// Gives its nodes weights of experts, which some strategies spread over two replicas.
void add_random_experts(std::mt19937_64& random, GraphPipeProblem& problem);

/// Gives it a further kind of devices, one to four of them with memory and bandwidth of their own,
/// and for each of its ways one on them that takes other times.
void add_random_pool(std::mt19937_64& random, GraphPipeProblem& problem);

/// Devices of each kind that stages take.
std::vector<std::int64_t> devices_of_pools(const GraphPipeProblem& problem,
                                           const std::vector<GraphPipeStage>& stages);

/// Identical branches of `length` nodes that meet in one.
GraphPipeProblem branched_graphpipe(int branches, int length, std::int64_t devices);

/// Stages as sets of nodes.
using StageSets = std::vector<std::vector<std::int32_t>>;

/// All partitions of the nodes whose stages form a directed acyclic graph.
std::vector<StageSets> all_partitions(const GraphPipeProblem& problem);

/// All partitions into series-parallel stages as planners/graphpipe/shapes.h describes them, with
/// every branch by itself; the graph must be series-parallel.
std::vector<StageSets> series_parallel_partitions(const GraphPipeProblem& problem);

/// Least rate of the given partitions with any devices, strategies and groups, by price_graphpipe
/// alone: with the least counts any at which all stages fit. Infinite when none fits.
double best_of(const GraphPipeProblem& problem, const std::vector<StageSets>& partitions);

}  // namespace braid::test

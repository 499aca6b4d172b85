#include "braid/planners/job/alternatives.h"

#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/frontend/model.h"
#include "braid/graph/working_precision.h"
#include "braid/planners/registry.h"

namespace braid {
namespace {

auto class_of(const Plan& plan) {
  const Parallelism form = form_of(plan, 0);
  return std::make_tuple(form.tp, form.cp, form.ep, form.whole_experts, form.pp, form.dp,
                         form.recompute, form.zero == Zero::parameters, form.offload_optimizer,
                         form.offload_weights, form.offload_activations);
}

void expect_alternatives(const std::string& cluster, const std::string& planner,
                         std::size_t least) {
  Graph graph = load_model("gpt2-xl", {.seq_len = 1024, .dims = {}});
  Job job;
  set_working_precision(graph, job.precision.activation, job.precision.weight);
  job.graph = &graph;
  job.global_batch = 64;
  PlannerOptions options;
  options.top = 4;
  const Outcome outcome = find_planner(planner).plan(job, load_system(cluster), options, {}, {});
  std::set<decltype(class_of(Plan()))> classes;
  for (const Candidate& candidate : outcome.candidates) classes.insert(class_of(candidate.plan));
  EXPECT_EQ(classes.size(), outcome.candidates.size()) << planner << " on " << cluster;
  EXPECT_GE(classes.size(), least) << planner << " on " << cluster;
}

TEST(Alternatives, DifferInWhatPeopleTellPlansApartBy) {
  for (const char* planner : {"braid", "exhaustive", "amp", "amp-sa", "random", "phaze"}) {
    expect_alternatives("dgx-h100:8", planner, 3);
  }
  for (const char* planner : {"amp", "amp-sa", "random"}) {
    expect_alternatives("dgx-h100:1nodes+dgx-a100:1nodes", planner, 2);
  }
}

TEST(Alternatives, OfAClassTheCheapestCounts) {
  Configuration two, other;
  two.tp = 2;
  other.tp = 4;
  ClassCosts costs;
  costs.add(two, 5);
  EXPECT_EQ(costs.kth_least_s(2), kInfinity);
  two.micro_batch = 8;
  two.zero = Zero::optimizer;
  costs.add(two, 3);
  EXPECT_EQ(costs.kth_least_s(2), kInfinity);
  costs.add(other, 4);
  EXPECT_EQ(costs.kth_least_s(1), 3);
  EXPECT_EQ(costs.kth_least_s(2), 4);
  two.zero = Zero::parameters;
  EXPECT_FALSE(is_same_class(two, other));
  costs.add(two, 1);
  EXPECT_EQ(costs.kth_least_s(3), 4);
}

}  // namespace
}  // namespace braid

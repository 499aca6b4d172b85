#include "braid/run/instructions.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/run/dry_run.h"
#include "braid/schedule/order_timing.h"
#include "braid/schedule/plan_orders.h"

#include "run/random_job.h"

namespace braid::test {
namespace {

struct Written {
  OrderedPlan ordered;
  StagedModel staged;
  std::vector<ParameterGroup> groups;
  std::vector<std::vector<Instruction>> ranks;
};

Written written(const Graph& graph, const Plan& plan, const std::string& schedule = "") {
  Written result;
  result.ordered = ordered_plan(plan, schedule);
  result.staged = staged_model(graph, result.ordered);
  result.groups = parameter_groups(result.staged, result.ordered.plan);
  result.ranks = instructions_of(result.staged, result.ordered.order, result.groups);
  return result;
}

TEST(Instructions, OfRandomPlansMatchAndKeepTheOrder) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    const Graph graph = random_branches(random, draw(random, 2, 8));
    const Written run = written(graph, random_plan_for(random, graph));
    const DryRun dry = dry_run(run.staged, run.groups, run.ranks);
    const OrderTiming timing = time_order(timeless(run.ordered.graph), run.ordered.order);
    for (std::size_t p = 0; p < run.staged.parts.size(); ++p) {
      for (const std::int64_t most : dry.in_flight[p]) {
        EXPECT_EQ(most, timing.peak_in_flight[p]) << "trial " << trial;
      }
    }
    for (std::size_t r = 0; r < run.ranks.size(); ++r) {
      std::vector<Work> passes;
      std::int32_t stage = -1;
      for (const Instruction& each : run.ranks[r]) {
        if (each.kind != InstructionKind::forward && each.kind != InstructionKind::backward) {
          continue;
        }
        stage = run.staged.parts[static_cast<std::size_t>(each.part)].stage;
        passes.push_back(
            {each.kind == InstructionKind::forward ? WorkKind::forward : WorkKind::backward,
             each.part, each.micro_batch});
      }
      ASSERT_GE(stage, 0);
      EXPECT_EQ(passes, run.ordered.order.devices[static_cast<std::size_t>(stage)]);
    }
  }
}

TEST(Instructions, EverySampleCrossesEveryEdgeOnceEachWay) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 30; ++trial) {
    const Graph graph = random_branches(random, draw(random, 2, 8));
    const Written run = written(graph, random_plan_for(random, graph));
    std::map<std::pair<std::int32_t, bool>, std::multiset<std::int64_t>> crossed;
    for (const std::vector<Instruction>& rank : run.ranks) {
      for (const Instruction& each : rank) {
        if (each.kind != InstructionKind::send) continue;
        for (std::int64_t s = 0; s < each.samples; ++s) {
          crossed[{each.handover, each.gradient}].insert(each.first_sample + s);
        }
      }
    }
    EXPECT_EQ(crossed.size(), 2 * run.staged.handovers.size());
    for (const auto& [edge, samples] : crossed) {
      std::multiset<std::int64_t> all;
      for (std::int64_t s = 0; s < run.staged.batch; ++s) all.insert(s);
      EXPECT_EQ(samples, all);
    }
  }
}

TEST(Instructions, DryRunFindsWhatIsMissingOrTurnedRound) {
  std::mt19937_64 random(3);
  int turned = 0;
  for (int trial = 0; trial < 30; ++trial) {
    const Graph graph = random_branches(random, draw(random, 4, 8));
    Written run = written(graph, random_plan_for(random, graph));
    for (std::size_t r = 0; r < run.ranks.size(); ++r) {
      std::vector<Instruction>& rank = run.ranks[r];
      const auto send = std::find_if(rank.begin(), rank.end(), [&](const Instruction& each) {
        return each.kind == InstructionKind::send;
      });
      if (send == rank.end()) continue;
      const Instruction kept = *send;
      const auto place = send - rank.begin();
      rank.erase(send);
      EXPECT_THROW(dry_run(run.staged, run.groups, run.ranks), Error);
      rank.insert(rank.begin() + place, kept);
      rank[static_cast<std::size_t>(place)].samples += 1;
      EXPECT_THROW(dry_run(run.staged, run.groups, run.ranks), Error);
      rank[static_cast<std::size_t>(place)] = kept;
      ++turned;
    }
  }
  EXPECT_GT(turned, 20);
}

TEST(Instructions, OfChunksAndOfEverySchedule) {
  std::mt19937_64 random(4);
  for (const ScheduleCase& each : schedule_cases()) {
    const Graph graph = random_branches(random, 7, true);
    const Written run = written(graph, uniform_plan_for(random, graph, each.vp), each.name);
    EXPECT_NO_THROW(dry_run(run.staged, run.groups, run.ranks)) << each.name;
  }
}

/// What run refuses of a plan, after a change.
template <typename Change>
std::string refusal(const Change& change) {
  std::mt19937_64 random(5);
  const Graph graph = random_branches(random, 5);
  Plan plan = random_plan_for(random, graph);
  while (plan.stages.size() < 2) plan = random_plan_for(random, graph);
  change(plan);
  try {
    check_runnable(plan);
    staged_model(graph, ordered_plan(plan));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Instructions, OfKnownModels) {
  std::mt19937_64 random(9);
  const std::pair<std::string, std::int64_t> models[] = {
      {"bert-base", 16},  {"vit-base", 0},  {"resnet-50", 0}, {"multi-modal-transformer", 0},
      {"dlrm-thesis", 0}, {"candle-uno", 0}};
  for (const auto& [name, seq_len] : models) {
    const Graph graph = load_model(name, {.seq_len = seq_len, .dims = {}});
    const Written run = written(graph, random_plan_for(random, graph));
    EXPECT_NO_THROW(dry_run(run.staged, run.groups, run.ranks)) << name;
    EXPECT_FALSE(run.staged.model.logits.empty()) << name;
  }
}

TEST(Instructions, WhatCannotBeRunIsRefusedByStage) {
  EXPECT_EQ(refusal([](Plan&) {}), "");
  EXPECT_THAT(refusal([](Plan& p) { p.stages[1].tp = 2; }),
              testing::HasSubstr("stage 2 has a layer that is sharded otherwise than the stage"));
  EXPECT_THAT(refusal([](Plan& p) { p.stages[1].tp = p.stages[1].cp = 2; }),
              testing::HasSubstr("stage 2 has tensor parallelism 2 and context parallelism 2"));
  EXPECT_THAT(refusal([](Plan& p) { p.stages[0].own->offload_optimizer = true; }),
              testing::HasSubstr("stage 1 has something in host memory"));
  EXPECT_THAT(refusal([](Plan& p) { p.profile.layers[0].name = "another"; }),
              testing::HasSubstr("layers are not"));
}

TEST(Instructions, ParametersAreThereInEveryPassAndNotBetween) {
  std::mt19937_64 random(7);
  int gathered = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const Graph graph = random_branches(random, 6, true, false);
    Plan plan = uniform_plan_for(random, graph, 2);
    plan.parallel.zero = Zero::parameters;
    const Written run = written(graph, plan);
    dry_run(run.staged, run.groups, run.ranks);
    for (const std::vector<Instruction>& rank : run.ranks) {
      std::set<std::int32_t> whole;
      for (const Instruction& each : rank) {
        if (each.kind == InstructionKind::gather) {
          EXPECT_TRUE(whole.insert(each.group).second);
          ++gathered;
        } else if (each.kind == InstructionKind::release) {
          EXPECT_EQ(whole.erase(each.group), 1U);
        } else if (each.kind == InstructionKind::forward ||
                   each.kind == InstructionKind::backward) {
          for (std::size_t g = 0; g < run.groups.size(); ++g) {
            if (!is_gathered(run.groups[g])) continue;
            const bool needs = run.groups[g].has_any(
                run.staged.parts[static_cast<std::size_t>(each.part)].parameters);
            EXPECT_EQ(whole.contains(static_cast<std::int32_t>(g)), needs);
          }
        } else {
          EXPECT_TRUE(whole.empty());
        }
      }
    }
  }
  EXPECT_GT(gathered, 50);
}

TEST(Instructions, ShardedParametersOfSeveralStagesAreRefused) {
  std::mt19937_64 random(8);
  std::string refused;
  for (int trial = 0; trial < 40 && refused.empty(); ++trial) {
    const Graph graph = random_branches(random, 6);
    Plan plan = random_plan_for(random, graph);
    for (Stage& stage : plan.stages) stage.own->zero = Zero::parameters;
    try {
      written(graph, plan);
    } catch (const Error& error) {
      refused = error.what();
    }
  }
  EXPECT_THAT(refused, testing::HasSubstr("shards shared.weight (ZeRO-3)"));
}

TEST(Instructions, ParametersOfSeveralStagesAreOneGroup) {
  std::mt19937_64 random(6);
  int shared = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const Graph graph = random_branches(random, 6);
    const Written run = written(graph, random_plan_for(random, graph));
    // By brute force: who reads it.
    for (const ValueId parameter : run.staged.model.parameters) {
      std::set<std::int32_t> holders;
      for (const StagePart& part : run.staged.parts) {
        for (const RunSegment& segment : part.segments) {
          for (const NodeId n : segment.nodes) {
            const auto& inputs = run.staged.model.program.nodes[static_cast<std::size_t>(n)].inputs;
            if (std::find(inputs.begin(), inputs.end(), parameter) == inputs.end()) continue;
            holders.insert(part.ranks.begin(), part.ranks.end());
            if (part.ranks.front() != *holders.begin()) ++shared;
          }
        }
      }
      int found = 0;
      for (const ParameterGroup& group : run.groups) {
        if (!group.has_any(std::vector{parameter})) continue;
        ++found;
        EXPECT_EQ(std::set<std::int32_t>(group.ranks.begin(), group.ranks.end()), holders);
      }
      EXPECT_EQ(found, 1);
    }
  }
  EXPECT_GT(shared, 0);
}

}  // namespace
}  // namespace braid::test

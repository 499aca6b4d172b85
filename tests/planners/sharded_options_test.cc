#include "braid/profile/sharded_options.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/planners/piper/from_profile.h"
#include "braid/planners/piper/search.h"

namespace braid {
namespace {

Profile profile_of(const char* model, ShardingSource sharding) {
  const Graph graph = load_model(model, {});
  const System system = load_system("dgx-h100:8");
  std::vector<Execution> executions;
  for (const int tp : {1, 4}) {
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      Execution how;
      how.tp = tp;
      how.recompute = recompute;
      executions.push_back(how);
    }
  }
  return estimate_profile(graph, executions, {}, system, sharding);
}

PiperSolution plan(const Profile& profile, double memory_bytes) {
  PiperProblem problem = piper_from_profile(profile, 1);
  problem.devices = 16;
  problem.micro_batches = 16;
  problem.memory_bytes = memory_bytes;
  problem.bandwidth_bytes = 100e9;
  return solve_piper(problem);
}

// Found shardings come on top of the written ones.
TEST(ShardedOptions, NeverMakePipersPlanSlower) {
  int better = 0;
  for (const char* model : {"bert-base", "gpt2-xl", "vit-base", "gnmt"}) {
    const Profile written = profile_of(model, ShardingSource::manual);
    const Profile found = profile_of(model, ShardingSource::automatic);
    for (const double memory_bytes : {0.4e9, 3e9, 64e9}) {
      const PiperSolution without = plan(written, memory_bytes);
      const PiperSolution with = plan(found, memory_bytes);
      if (without.status != Status::optimal) {
        better += with.status == Status::optimal ? 1 : 0;
        continue;
      }
      ASSERT_EQ(with.status, Status::optimal);
      EXPECT_LE(with.time, without.time * (1 + 1e-9)) << model << " " << memory_bytes;
      better += with.time < 0.999 * without.time ? 1 : 0;
    }
  }
  EXPECT_GE(better, 1);
}

// GPT-2 XL's 25 heads cannot be sharded by 4, so its 56 GB of state fit no written option of a
// single stage; the found ones divide everything but the heads.
TEST(ShardedOptions, DivideAModelThatDoesNotFitOtherwise) {
  PiperProblem problem = piper_from_profile(profile_of("gpt2-xl", ShardingSource::manual), 1);
  problem.devices = 4;
  problem.micro_batches = 16;
  problem.memory_bytes = 12e9;
  problem.bandwidth_bytes = 100e9;
  problem.one_stage = true;
  EXPECT_EQ(solve_piper(problem).status, Status::infeasible);
  problem.nodes = piper_from_profile(profile_of("gpt2-xl", ShardingSource::automatic), 1).nodes;
  const PiperSolution solution = solve_piper(problem);
  EXPECT_EQ(solution.status, Status::optimal);
  EXPECT_EQ(solution.stages.size(), 1U);
}

}  // namespace
}  // namespace braid

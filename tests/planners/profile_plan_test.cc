#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/planners/piper/from_profile.h"
#include "braid/planners/piper/plain_system.h"
#include "braid/planners/profile_outcome.h"
#include "braid/planners/registry.h"
#include "braid/profile/listed_layers.h"
#include "braid/profile/pass_split.h"
#include "braid/profile/piper_profile.h"
#include "braid/verify/verify.h"

#include "base/pick.h"
#include "base/reference_files.h"

namespace braid {
namespace {

using test::pick;

/// A chain of layers of a few kinds, with times and sizes at random; some options are missing.
Profile random_profile(std::mt19937_64& random) {
  Profile profile;
  profile.model = "random";
  profile.kinds.resize(static_cast<std::size_t>(pick(random, 1, 3)));
  const bool stated = pick(random, 0, 1) == 0;
  const bool selective = pick(random, 0, 1) == 0;
  for (std::vector<Option>& options : profile.kinds) {
    const double time_s = pick(random, 1, 40);
    for (const int tp : {1, 2, 4}) {
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        if (recompute == Recompute::selective && !selective) continue;
        if (tp == 4 && pick(random, 0, 3) == 0) continue;
        Option option;
        option.name = "option";
        option.how.tp = tp;
        option.how.recompute = recompute;
        option.cost.forward.compute_s = time_s / tp * pick(random, 10, 14) / 10;
        option.cost.backward_input.compute_s = 2 * option.cost.forward.compute_s;
        if (recompute != Recompute::none) option.cost.recompute = option.cost.forward;
        option.cost.stash_bytes = recompute == Recompute::none ? pick(random, 5, 20) : 4;
        if (stated) {
          option.cost.fixed_bytes = 90.0 / tp;
          option.cost.gradient_bytes = 20.0 / tp;
        } else {
          option.cost.dense_parameters = 5.0 / tp;
        }
        options.push_back(std::move(option));
      }
    }
  }
  const int layers = pick(random, 2, 6);
  for (int l = 0; l < layers; ++l) {
    const auto kind = pick(random, 0, static_cast<int>(profile.kinds.size()) - 1);
    profile.layers.push_back({"layer" + std::to_string(l), kind});
    if (l > 0) profile.edges.push_back({l - 1, l, static_cast<double>(pick(random, 0, 9))});
  }
  return profile;
}

void expect_holds(const Candidate& candidate, const std::string& planner) {
  const Verification verification = verify(
      candidate.plan,
      Claims{candidate.metrics.iteration_time_s, candidate.metrics.peak_memory_bytes, 0, 0, 0});
  for (const Check& check : verification.checks) {
    EXPECT_TRUE(check.holds) << planner << ": " << check.name << ": " << check.detail;
  }
}

/// Each planner's plan holds, none beats the bound, and none of planner braid's space beats braid
/// where it proves its own.
TEST(ProfilePlans, EveryPlannerPlansRandomProfiles) {
  std::mt19937_64 random(20261123);
  int plans = 0;
  for (int i = 0; i < 40; ++i) {
    const ListedLayers layers(random_profile(random));
    const System system =
        plain_system(pick(random, 1, 2) * 4, pick(random, 150, 900), pick(random, 5, 50));
    Job job;
    job.layers = &layers;
    job.global_batch = 8;
    double braid_s = 0;
    bool proven = false;
    for (const PlannerEntry& planner : planners()) {
      SpaceOptions space;
      Outcome outcome;
      try {
        outcome = planner.plan(job, system, space, {}, {});
      } catch (const Error& error) {
        // Only the rule of thumb starts from what a profile may lack.
        EXPECT_EQ(planner.name, "megatron") << error.what();
        continue;
      }
      if (outcome.candidates.empty()) continue;
      ++plans;
      const Candidate& best = outcome.candidates.front();
      expect_holds(best, std::string(planner.name));
      EXPECT_GE(best.metrics.iteration_time_s, outcome.physical_bound.time_s);
      if (planner.name == "braid") {
        braid_s = best.metrics.iteration_time_s;
        proven = outcome.status == Status::optimal;
      }
      if (planner.name == "exhaustive" && proven) {
        EXPECT_GE(best.metrics.iteration_time_s, braid_s * (1 - 1e-9));
      }
    }
  }
  EXPECT_GT(plans, 200);
}

/// The same plan, however the profile's layers are named, and in the same time from any copy.
TEST(ProfilePlans, FollowTheUnitOfTimes) {
  std::mt19937_64 random(7);
  const Profile profile = random_profile(random);
  const ListedLayers layers(profile);
  const ListedLayers faster(in_seconds(profile, 0.25));
  const System system = plain_system(4, 900, 1e12);
  Job job;
  job.layers = &layers;
  job.global_batch = 8;
  const Outcome slow = find_planner("braid").plan(job, system, {}, {}, {});
  job.layers = &faster;
  const Outcome fast = find_planner("braid").plan(job, system, {}, {}, {});
  ASSERT_FALSE(slow.candidates.empty());
  ASSERT_FALSE(fast.candidates.empty());
  EXPECT_NEAR(fast.candidates.front().metrics.iteration_time_s,
              slow.candidates.front().metrics.iteration_time_s / 4, 1e-6);
}

TEST(ProfilePlans, SayWhichLayerLacksWhatAPlannerStartsFrom) {
  std::mt19937_64 random(3);
  Profile profile = random_profile(random);
  std::erase_if(profile.kinds[static_cast<std::size_t>(profile.layers[1].kind)],
                [](const Option& option) { return option.how.recompute == Recompute::none; });
  const ListedLayers layers(profile);
  Job job;
  job.layers = &layers;
  job.global_batch = 8;
  const auto message = [&](const SpaceOptions& space) {
    try {
      find_planner("braid").plan(job, plain_system(4, 900, 10), space, {}, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message({}).find("planner braid needs options of micro-batch 1 without recomputation "
                             "for every layer; the profile has none for layer layer"),
            std::string::npos)
      << message({});
  SpaceOptions full;
  full.recompute = Recompute::full;
  EXPECT_EQ(message(full), "");
  full.tp = 8;
  EXPECT_NE(message(full).find("of tp 8, micro-batch 1 with full recomputation"),
            std::string::npos);
}

TEST(ProfilePlans, AnswersOfPipersPlannersArePlans) {
  for (const char* name : {"bert32a100", "gnmt", "resnet"}) {
    const std::string file = reference_file("reference/piper/" + std::string(name) + ".json");
    if (file.empty()) GTEST_SKIP() << "reference data not present";
    const Document document = Document::parse_file(file);
    const PiperProfile read = piper_profile_from_json(document.root());
    const Profile profile = with_passes_apart(read.profile);
    for (const std::int64_t devices : {8, 10}) {
      PiperProblem problem = piper_from_profile(read.profile, 1);
      problem.devices = devices;
      problem.micro_batches = 80;
      problem.memory_bytes = read.memory_bytes / 5;
      problem.bandwidth_bytes = read.bandwidth_bytes;
      const System system = plain_system(devices, problem.memory_bytes, problem.bandwidth_bytes);
      const ProfileTarget target{&profile, 1, {}, &system, "piper", file};
      for (const PiperVariant& variant : kPiperVariants) {
        const PiperSolution solution = variant.solve(problem, {});
        const ProfileOutcome made = outcome_of_solution(target, variant, problem, solution, 1, {});
        if (solution.stages.empty()) continue;
        ASSERT_FALSE(made.outcome.candidates.empty()) << variant.name << ": " << made.no_plan;
        EXPECT_EQ(made.outcome.objective, solution.time);
        expect_holds(made.outcome.candidates.front(), std::string(variant.name));
      }
    }
  }
}

TEST(ProfilePlans, AnswersOfPhazeArePlans) {
  const std::string folder = reference_file("reference/phaze/device_placement");
  if (folder.empty()) GTEST_SKIP() << "reference data not present";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().string();
    if (!file.ends_with("_ar0.in.json") && !file.ends_with("_ar1.in.json")) continue;
    const PhazeProblem problem = read_phaze(Document::parse_file(file).root(), {});
    const auto placement = place_phaze(problem, {});
    ASSERT_TRUE(placement.has_value()) << file;
    const Profile profile = profile_of_phaze(problem);
    const System system = plain_system(problem.devices, problem.memory_bytes, problem.bytes_per_s);
    const ProfileTarget target{&profile, 1, {}, &system, "phaze", file};
    const ProfileOutcome made =
        outcome_of_placement(target, problem, *placement, placement->flush_s, {});
    ASSERT_FALSE(made.outcome.candidates.empty()) << file << made.no_plan;
    expect_holds(made.outcome.candidates.front(), file);
    // Gradients hide behind passes in the simulator, and transfers behind others' passes.
    if (made.outcome.assumptions.empty()) {
      EXPECT_LE(made.outcome.candidates.front().metrics.iteration_time_s,
                placement->flush_s * (1 + 1e-9));
    }
  }
}

}  // namespace
}  // namespace braid

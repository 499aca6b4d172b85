#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/planners/phaze/placement.h"

#include "base/reference_files.h"

namespace braid {
namespace {

struct Published {
  std::string name;
  PhazeProblem as_program_reads, as_meant;
  PhazePlacement program_plan;  ///< Layers only.
  double time_s = 0, expert_s = 0;
};

std::vector<std::string> inputs() {
  std::vector<std::string> files;
  for (const char* folder : {"device_placement", "end_to_end_bertlarge"}) {
    const std::string path = reference_file(std::string("reference/phaze/") + folder);
    if (path.empty()) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const std::string file = entry.path().string();
      if (file.ends_with(".in.json")) files.push_back(file);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Published load(const std::string& file) {
  Published run;
  run.name = std::filesystem::path(file).filename().string();
  const Document input = Document::parse_file(file);
  run.as_program_reads = read_phaze(input.root(), {.latency_unit_s = 1, .last_tensor_only = true});
  run.as_meant = read_phaze(input.root(), {});
  const Document output = Document::parse_file(
      file.substr(0, file.size() - std::string("in.json").size()) + "out.json");
  const Value root = output.root();
  run.program_plan.tp = static_cast<std::int32_t>(root["tensorParallelDegree"].as_int());
  run.program_plan.dp = root["dataParallelDegree"].as_int();
  const auto& names = run.as_program_reads.names;
  for (const Value& stage : root["stages"].elements()) {
    PhazeStage layers;
    for (const Value& id : stage["nodes"].elements()) {
      const auto at = std::find(names.begin(), names.end(), std::to_string(id.as_int()));
      layers.layers.push_back(static_cast<std::int32_t>(at - names.begin()));
    }
    std::sort(layers.layers.begin(), layers.layers.end());
    layers.devices = stage["devicesForStage"].as_int();
    run.program_plan.stages.push_back(layers);
  }
  run.time_s = root["finalTimePerBatch"].as_double();
  run.expert_s = root["fixedStrategyTimePerBatch"].as_double();
  return run;
}

const PhazeOptions kProgramsOptions{.objective = PhazeObjective::program, .branches = false};

/// Answers of the published device_placement program (Adnan et al. 2024).
TEST(PhazeReference, GivesTheProgramsAnswers) {
  const std::vector<std::string> files = inputs();
  if (files.empty()) GTEST_SKIP() << "reference data not present";
  for (const std::string& file : files) {
    const Published run = load(file);
    const auto found = place_phaze(run.as_program_reads, kProgramsOptions);
    ASSERT_TRUE(found.has_value()) << run.name;
    EXPECT_NEAR(found->program_s, run.time_s, 1e-9 * run.time_s) << run.name;
    EXPECT_EQ(found->tp, run.program_plan.tp) << run.name;
    EXPECT_EQ(found->dp, run.program_plan.dp) << run.name;
    ASSERT_EQ(found->stages.size(), run.program_plan.stages.size()) << run.name;
    for (std::size_t i = 0; i < found->stages.size(); ++i) {
      EXPECT_EQ(found->stages[i].layers, run.program_plan.stages[i].layers) << run.name;
      EXPECT_EQ(found->stages[i].devices, run.program_plan.stages[i].devices) << run.name;
    }
    const auto expert = phaze_expert_placement(run.as_program_reads);
    ASSERT_TRUE(expert.has_value());
    EXPECT_NEAR(expert->program_s, run.expert_s, 1e-9 * run.expert_s) << run.name;
  }
}

/// In the right units and by the right flush time, no plan of the program is better.
TEST(PhazeReference, BeatsTheProgramsPlansInTheRightUnits) {
  const std::vector<std::string> files = inputs();
  if (files.empty()) GTEST_SKIP() << "reference data not present";
  for (const std::string& file : files) {
    const Published run = load(file);
    const auto found = place_phaze(run.as_meant, {});
    ASSERT_TRUE(found.has_value()) << run.name;
    EXPECT_TRUE(found->fits(run.as_meant));
    const auto width = std::find_if(
        run.as_meant.widths.begin(), run.as_meant.widths.end(),
        [&](const PhazeWidth& candidate) { return candidate.tp == run.program_plan.tp; });
    const PhazePlacement theirs =
        phaze_placement(run.as_meant, *width, run.program_plan.dp, run.program_plan.stages);
    EXPECT_LE(found->flush_s, theirs.flush_s * (1 + 1e-12)) << run.name;
  }
}

}  // namespace
}  // namespace braid

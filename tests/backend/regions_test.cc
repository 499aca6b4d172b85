#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/backend/executor.h"
#include "braid/backend/place/candidates.h"
#include "braid/backend/place/place_network.h"
#include "braid/backend/place/placed_program.h"
#include "braid/backend/place/region_answers.h"
#include "braid/backend/place/region_search.h"
#include "braid/base/error.h"

#include "backend/program_builder.h"
#include "backend/quick_measure.h"

namespace braid {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Three residual blocks of two products, with a second output in the middle of the last.
Program residual_blocks() {
  TestProgramBuilder b;
  ValueId x = b.input({4, 16});
  ValueId inner = -1;
  for (int block = 0; block < 3; ++block) {
    inner = b.node("Relu", {b.node("MatMul", {x, b.weight({16, 16})})});
    x = b.node("Add", {x, b.node("MatMul", {inner, b.weight({16, 16})})});
  }
  Program program = b.finish({x, inner});
  fill_missing_weights(program, 3);
  return program;
}

/// A backend that runs any nodes together by the reference kernels, and adds `error` to the last
/// element of what comes out first.
FoundBackend compiler(float error = 0) {
  class RegionKernel : public ComputeKernel {
   public:
    RegionKernel(KernelJob job, float error) : job_(std::move(job)), error_(error) {}
    void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
      DenseTensor* const outputs[] = {&output};
      run_all(inputs, outputs);
    }
    void run_all(std::span<const DenseTensor* const> inputs,
                 std::span<DenseTensor* const> outputs) override {
      std::vector<DenseTensor> fed;
      for (const DenseTensor* each : inputs) fed.push_back(*each);
      std::vector<DenseTensor> results = braid::run(job_.region, fed);
      for (std::size_t i = 0; i < outputs.size(); ++i) *outputs[i] = std::move(results[i]);
      outputs.front()->as<float>().back() += error_;
    }

   private:
    KernelJob job_;
    float error_;
  };
  FoundBackend found{"compiler", Backend{"compiler", "1", {}, {}}, {}};
  found.backend->regions.push_back(
      {"all", any(), [](const KernelJob&) { return true; },
       [error](const KernelJob& job) -> std::unique_ptr<ComputeKernel> {
         return std::make_unique<RegionKernel>(job, error);
       }});
  return found;
}

FixedProgram slow_by_reference(const Program& program) {
  FixedProgram fixed = fixed_program(program, random_inputs(program, 1));
  fixed.reference_s.assign(fixed.program.nodes.size(), 100);
  return fixed;
}

std::vector<KernelCandidate> regions_of(const FixedProgram& fixed, const FoundBackend& backend,
                                        std::int64_t parts) {
  return region_candidates(fixed, {backend}, cut_places(fixed.program, parts));
}

TEST(Regions, BordersAreWhatOthersReadAndWrite) {
  const Program program = residual_blocks();
  // The second block: product, Relu, product, sum.
  const RegionBorder block = region_border(program, {4, 5, 6, 7});
  EXPECT_THAT(block.reads, ElementsAre(program.nodes[3].outputs[0]));
  EXPECT_THAT(block.writes, ElementsAre(program.nodes[7].outputs[0]));
  // From the middle of one to the middle of the next, and both of the program's outputs.
  const RegionBorder across = region_border(program, {6, 7, 8, 9});
  EXPECT_THAT(across.reads, ElementsAre(program.nodes[5].outputs[0], program.nodes[3].outputs[0]));
  EXPECT_THAT(across.writes, ElementsAre(program.nodes[7].outputs[0], program.nodes[9].outputs[0]));
  // Jobs of equal blocks are equal, those with other outputs are not.
  const std::vector<TensorForm> forms = forms_of(program, random_inputs(program, 1));
  const auto text = [&](const std::vector<NodeId>& nodes) {
    return job_text(region_job(program, nodes, forms));
  };
  EXPECT_EQ(text({0, 1, 2, 3}), text({4, 5, 6, 7}));
  EXPECT_NE(text({4, 5, 6, 7}), text({8, 9, 10, 11}));
}

TEST(Regions, LieBetweenPlacesWithOneTensor) {
  const FixedProgram fixed = slow_by_reference(residual_blocks());
  const std::vector<KernelCandidate> candidates = regions_of(fixed, compiler(), 3);
  std::vector<std::pair<NodeId, NodeId>> ends;
  for (const KernelCandidate& each : candidates) {
    ends.emplace_back(each.nodes.front(), each.nodes.back());
    EXPECT_EQ(each.nodes.back() - each.nodes.front() + 1, static_cast<NodeId>(each.nodes.size()));
  }
  using Ends = std::pair<NodeId, NodeId>;
  EXPECT_THAT(
      ends, ElementsAre(Ends(0, 3), Ends(0, 7), Ends(0, 11), Ends(4, 7), Ends(4, 11), Ends(8, 11)));
  EXPECT_THAT(regions_of(fixed, compiler(), 100), SizeIs(6));
  FoundBackend whole = compiler();
  whole.backend->regions.front().is_whole_alone = true;
  EXPECT_THAT(regions_of(fixed, whole, 3), IsEmpty());
}

TEST(Regions, AnswersAreThoseOfARun) {
  const Program program = residual_blocks();
  const FixedProgram fixed = slow_by_reference(program);
  const std::vector<KernelCandidate> candidates = regions_of(fixed, compiler(), 3);
  const RegionAnswers answers(fixed, candidates);
  for (const KernelCandidate& each : candidates) {
    const KnownAnswer answer = answers.of(each);
    EXPECT_EQ(run(region_job(fixed.program, each.nodes, fixed.forms).region, answer.inputs),
              answer.outputs);
  }
}

TEST(Regions, AreTakenWhereTheyAreFaster) {
  const Program program = residual_blocks();
  const FixedProgram fixed = slow_by_reference(program);
  const std::vector<FoundBackend> backends{compiler()};
  const ProgramPlacement kernels = place_program(fixed, backends, nullptr, {.measure = quick});
  EXPECT_THAT(kernels.groups, SizeIs(12));
  const PlaceOptions options{.measure = quick, .region_parts = 3};
  const ProgramPlacement placed = place_program(fixed, backends, nullptr, options);
  EXPECT_LT(placed.predicted_s, kernels.predicted_s);
  // The first two blocks are equal; the last one has one more output.
  EXPECT_EQ(placed.measured, 5);
  std::vector<int> times(12, 0);
  for (const PlacedGroup& group : placed.groups) {
    EXPECT_EQ(group.pattern, "all");
    for (const NodeId node : group.nodes) ++times[static_cast<std::size_t>(node)];
  }
  EXPECT_THAT(times, Each(1));
  PlacedProgram ready(fixed, placed, backends);
  EXPECT_EQ(ready.run(fixed.inputs), fixed.expected);
  // Parts of a placement of kernels, and a region in between.
  ProgramPlacement mixed = kernels;
  mixed.groups.erase(mixed.groups.begin() + 6, mixed.groups.begin() + 10);
  mixed.groups.insert(mixed.groups.begin() + 6, {"compiler", "all", {6, 7, 8, 9}, 1, {}});
  PlacedProgram parts(fixed, mixed, backends);
  EXPECT_EQ(parts.run(fixed.inputs), fixed.expected);
  // Nodes that do not follow each other are no region.
  mixed.groups[6].nodes = {6, 8};
  EXPECT_THROW(PlacedProgram(fixed, mixed, backends), Error);
}

TEST(Regions, OfSmallerPartsAreFoundByEvolution) {
  const Program program = residual_blocks();
  FixedProgram fixed = slow_by_reference(program);
  const std::vector<FoundBackend> backends{compiler()};
  PlaceOptions options{.measure = quick, .evolved_regions = 4};
  const ProgramPlacement kernels = place_program(fixed, backends, nullptr, options);
  const ProgramPlacement placed = evolved_placement(fixed, backends, nullptr, options, kernels);
  EXPECT_LT(placed.predicted_s, kernels.predicted_s);
  EXPECT_LE(placed.measured, 4);
  PlacedProgram ready(fixed, placed, backends);
  EXPECT_EQ(ready.run(fixed.inputs), fixed.expected);
  options.evolved_regions = 0;
  EXPECT_EQ(evolved_placement(fixed, backends, nullptr, options, kernels).predicted_s,
            kernels.predicted_s);
  // Never slower than what it begins with.
  options.evolved_regions = 4;
  fixed.reference_s.assign(fixed.program.nodes.size(), 1e-12);
  const ProgramPlacement fast = place_program(fixed, backends, nullptr, options);
  EXPECT_EQ(evolved_placement(fixed, backends, nullptr, options, fast).predicted_s,
            fast.predicted_s);
}

TEST(Regions, ThatAreWrongAreLeftOut) {
  const FixedProgram fixed = slow_by_reference(residual_blocks());
  const std::vector<FoundBackend> backends{compiler(1)};
  const ProgramPlacement placed =
      place_program(fixed, backends, nullptr, {.measure = quick, .region_parts = 1});
  ASSERT_THAT(placed.wrong, SizeIs(1));
  EXPECT_THAT(placed.wrong[0], testing::HasSubstr("compiler: all: 12 operators from "));
  EXPECT_THAT(placed.groups, SizeIs(12));
  const NetworkAnswer answer =
      place_network(fixed, fixed.inputs, backends, nullptr, {.measure = quick});
  ASSERT_THAT(answer.left_out, SizeIs(1));
  EXPECT_THAT(answer.left_out[0], testing::HasSubstr("compiler all of the whole network: "));
  EXPECT_THAT(answer.ways, SizeIs(1));
}

TEST(Regions, WholeNetworksAreWaysToRunIt) {
  const FixedProgram fixed = slow_by_reference(residual_blocks());
  const NetworkAnswer answer = place_network(fixed, fixed.inputs, {compiler()}, nullptr,
                                             {.measure = quick, .region_parts = 3});
  std::vector<std::string> names;
  for (const NetworkWay& way : answer.ways) names.push_back(way.name);
  std::sort(names.begin() + 1, names.end());
  EXPECT_THAT(names, ElementsAre("mix", "compiler all", "mix with regions"));
  const NetworkWay& chosen = answer.ways[answer.chosen];
  for (const NetworkWay& way : answer.ways) {
    EXPECT_TRUE(!way.measured || chosen.measured->median_s <= way.measured->median_s);
  }
}

}  // namespace
}  // namespace braid

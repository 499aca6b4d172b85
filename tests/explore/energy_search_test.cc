#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/explore/sweep.h"
#include "braid/explore/system_search.h"
#include "braid/plan/plan_energy.h"
#include "braid/profile/layer_activity.h"

#include "explore/small_space.h"

namespace braid {
namespace {

/// Some small accelerators for a small model, with sizes of work that divide evenly.
std::string text_of(const std::string& more, const std::string& degrees = "{tp: [1, 2]}",
                    const std::string& least_share = "0.5") {
  return "name: energy\nplanner: phaze\n" + more + "\ndegrees: " + degrees + R"(
workloads:
  gpt: {model: gpt3-125m, global_batch: 16, seq_len: 64}
networks: [phaze-tpuv4-1024]
devices: 4
architectures:
  area: 30 mm2
  tensor_cores: [1, 4]
  vector_cores: [2, 8]
  width: [16, 128]
  depth: [64, 64]
  global_buffer: [4 MiB, 8 MiB]
  least_share: )" +
         least_share + "\n  least_share_of_single: 0.6\n";
}

/// A planned point with what its plan does.
struct PlannedActivity {
  PointResult result;
  Plan plan;
  ChipActivity does, least;
};

PlannedActivity activity_at(const SystemSpace& systems, std::size_t architecture) {
  SpacePoint point(axes_of(systems).size(), 0);
  point[2] = architecture;
  WorkloadPlan of = plan_workload(systems, 0, 0, system_of(systems, point));
  NestMemo memo;
  PlannedActivity planned;
  planned.result = plan_point(systems, point).result;
  planned.plan = of.outcome.candidates.front().plan;
  planned.does = plan_activity(planned.plan, of.graph, memo);
  planned.least = least_activity(of.graph, 16, systems.architectures->rest.accelerator->chip);
  const Accelerator& chip = planned.plan.system.groups.front().chip.accelerator->chip;
  planned.least.tensor_l2_bytes += least_l2_bytes(planned.least.macs, chip);
  return planned;
}

TEST(EnergySearch, FindsWhatASweepFinds) {
  const Space swept = space_from(text_of("energy: true", "{tp: 1, micro_batch: 4}", "0.1"));
  const Sweep all = sweep_space(swept, nullptr);
  std::vector<double> most;
  for (const PointResult& result : all.results) {
    ASSERT_TRUE(is_found(result));
    most.push_back(16 * 64 / result.joules);
  }
  std::sort(most.rbegin(), most.rend());
  const PlannerSearch search =
      search_systems(
          space_from(text_of("search: {for: energy, keep: 3}", "{tp: 1, micro_batch: 4}", "0.1")),
          nullptr)
          .searches[0];
  EXPECT_EQ(search.open_value, 0);
  EXPECT_LT(search.planned, search.systems);
  ASSERT_EQ(search.best.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(search.best[i].value, most[i]);
}

/// The bounds of a family hold for what a plan does, amount by amount, and no plan does more than
/// chips that are busy all the time.
TEST(EnergySearch, PlansDoAtLeastWhatBoundsSayAndAtMostWhatChipsCan) {
  for (const char* degrees : {"{tp: 1, micro_batch: 4}", "{tp: 2}", "{pp: 2, micro_batch: 1}"}) {
    const Space space = space_from(text_of("energy: true", degrees));
    const SystemSpace& systems = systems_of(space);
    for (std::size_t i = 0; i < systems.architectures->all.size(); i += 7) {
      const auto [result, plan, does, least] = activity_at(systems, i);
      const double above = 1 - 1e-12;
      EXPECT_GE(does.macs, least.macs * above);
      EXPECT_GE(does.vector_operations, least.vector_operations * above);
      EXPECT_GE(does.register_bytes, least.register_bytes * above);
      EXPECT_GE(does.tensor_l2_bytes, least.tensor_l2_bytes * above);
      EXPECT_GE(does.vector_l2_bytes, least.vector_l2_bytes * above);
      EXPECT_GE(does.global_buffer_bytes, least.global_buffer_bytes * above);
      EXPECT_GE(does.hbm_bytes, least.hbm_bytes * above);
      const AcceleratorDesign& design = *plan.system.groups.front().chip.accelerator;
      EXPECT_LE(result.joules,
                4 * result.figures.back() * peak_power_w(design.chip, design.energy));
    }
  }
}

/// Without recomputation, and where all sizes divide evenly, a plan multiplies what the model does;
/// on a line of replicas with ZeRO-1 each sends its gradients and parameters three quarters around.
TEST(EnergySearch, CountsWhatAPlanOfReplicasMultipliesAndSends) {
  const Space space = space_from(text_of("energy: true", "{tp: 1, pp: 1, micro_batch: 4}"));
  const auto [result, plan, does, least] = activity_at(systems_of(space), 0);
  ASSERT_EQ(plan.parallel.dp, 4);
  ASSERT_EQ(plan.parallel.recompute, Recompute::none);
  ASSERT_EQ(plan.parallel.zero, Zero::optimizer);
  EXPECT_DOUBLE_EQ(does.macs, least.macs);
  double parameters = 0;
  for (const std::int32_t layer : plan.stages[0].chunks[0].layers) {
    const auto index = static_cast<std::size_t>(layer);
    const auto option = static_cast<std::size_t>(plan.stages[0].chunks[0].options[index]);
    parameters += options_of(plan.profile, layer)[option].cost.dense_parameters;
  }
  const double bytes =
      bytes_per_element(plan.precision.gradient) + bytes_per_element(plan.precision.weight);
  EXPECT_DOUBLE_EQ(does.link_bytes, 4 * 0.75 * parameters * bytes);
}

/// Lower figures never raise the least energy of any system.
TEST(EnergySearch, LowerFiguresNeverRaiseTheLeastEnergy) {
  const auto least_j = [](const auto& change) {
    Space space =
        space_from(text_of("search: {for: energy, keep: 1}", "{tp: 2, micro_batch: 4}", "0.85"));
    change(std::get<SystemSpace>(space.points).architectures->rest.accelerator->energy);
    const PlannerSearch search = search_systems(space, nullptr).searches[0];
    EXPECT_EQ(search.open_value, 0);
    return 16 * 64 / search.best.front().value;
  };
  const double stated = least_j([](EnergyFigures&) {});
  for (double EnergyFigures::*figure :
       {&EnergyFigures::mac_j, &EnergyFigures::vector_operation_j, &EnergyFigures::register_byte_j,
        &EnergyFigures::sram_factor, &EnergyFigures::hbm_byte_j, &EnergyFigures::link_byte_j,
        &EnergyFigures::static_w_per_um2}) {
    EXPECT_LT(least_j([&](EnergyFigures& energy) { energy.*figure *= 0.5; }), stated);
    EXPECT_GT(least_j([&](EnergyFigures& energy) { energy.*figure *= 2; }), stated);
  }
}

}  // namespace
}  // namespace braid

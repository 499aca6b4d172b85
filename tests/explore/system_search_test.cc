#include "braid/explore/system_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/explore/architecture_family.h"
#include "braid/explore/memory_groups.h"
#include "braid/explore/pareto.h"
#include "braid/explore/search_value.h"
#include "braid/explore/sweep.h"

#include "explore/small_space.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

/// A memory that has most of everything and two others; and two that have more of one thing each.
constexpr const char* kMemoriesWithLeader = R"(memories:
  small: {capacity: 1 GiB, bandwidth: 60 GB/s, price: 1 USD per GB/s, power: 0.1 W per GB/s}
  large: {capacity: 16 GiB, bandwidth: 300 GB/s, price: 2 USD per GB/s, power: 0.1 W per GB/s}
  middle: {capacity: 8 GiB, bandwidth: 300 GB/s, price: 1 USD per GB/s, power: 0.05 W per GB/s}
)";
constexpr const char* kMemoriesWithout = R"(memories:
  roomy: {capacity: 16 GiB, bandwidth: 80 GB/s, price: 1 USD per GB/s, power: 0.1 W per GB/s}
  quick: {capacity: 2 GiB, bandwidth: 800 GB/s, price: 1 USD per GB/s, power: 0.1 W per GB/s}
)";

/// Some twenty small accelerators on two networks, for a small model.
std::string accelerators_text(const std::string& search) {
  return "name: small accelerators\nplanner: phaze\n" + search + R"(
degrees: {tp: 1, micro_batch: 4}
workloads:
  gpt: {model: gpt3-125m, global_batch: 16, seq_len: 64}
architectures:
  area: 30 mm2
  least_share: 0.6
  least_share_of_single: 0.6
  tensor_cores: [2, 4]
  vector_cores: [4, 8]
  width: [64, 128]
  depth: [64, 64]
  global_buffer: [4 MiB, 8 MiB]
networks:
  slow: {cluster: phaze-tpuv4-1024}
  fast: {cluster: phaze-tpuv4-1024-as-charged}
devices: 4
)";
}

/// By the objective of the planner.
double throughput_of(const Space& space, const PointResult& result, std::size_t workload) {
  const SystemWorkload& of = systems_of(space).workloads[workload];
  return static_cast<double>(of.global_batch * of.graph.seq_len) / result.figures.back();
}

/// With the memories of the parameter.
class SystemSearchAndSweep : public ::testing::TestWithParam<const char*> {
 protected:
  static Space space_of(const std::string& search) {
    return space_from(accelerators_text(search) + GetParam());
  }
  static PlannerSearch searched(const std::string& search) {
    return search_systems(space_of(search), nullptr).searches.front();
  }

  /// By falling figure: throughput over what `cost` gives of a result.
  template <typename Cost>
  std::vector<double> swept(const Cost& cost) const {
    std::vector<double> values;
    for (const PointResult& result : all_.results) {
      if (is_found(result)) values.push_back(throughput_of(space_, result, 0) / cost(result));
    }
    std::sort(values.rbegin(), values.rend());
    return values;
  }

  static void expect_values(const PlannerSearch& search, const std::vector<double>& values) {
    for (std::size_t i = 0; i < search.best.size(); ++i) {
      EXPECT_DOUBLE_EQ(search.best[i].value, values[i]);
    }
  }

  const Space space_ = space_of("compare: [price, power]");
  const Sweep all_ = sweep_space(space_, nullptr);
};

INSTANTIATE_TEST_SUITE_P(Memories, SystemSearchAndSweep,
                         ::testing::Values("", kMemoriesWithLeader, kMemoriesWithout));

TEST_P(SystemSearchAndSweep, FindTheSame) {
  ASSERT_GT(point_count(space_), 15U);
  const PlannerSearch most = searched("search: {for: throughput, keep: 4}");
  EXPECT_EQ(most.systems, point_count(space_));
  EXPECT_LT(most.planned, most.systems);
  EXPECT_EQ(most.open_value, 0);
  EXPECT_EQ(most.best.size(), 4U);
  expect_values(most, swept([](const PointResult&) { return 1.0; }));
  expect_values(searched("search: {for: per_w, keep: 3}"),
                swept([](const PointResult& result) { return result.watts; }));
  expect_values(searched("search: {for: per_usd, keep: 3}"),
                swept([](const PointResult& result) { return result.usd; }));
}

/// And nothing that is left out of one within a share is better by more.
TEST_P(SystemSearchAndSweep, HaveTheSameFront) {
  std::vector<ParetoPoint> points;
  for (const PointResult& result : all_.results) {
    if (is_found(result)) points.push_back({throughput_of(space_, result, 0), 0, result.watts});
  }
  std::map<double, double> expected;  // By power.
  for (const std::size_t i : pareto_set(points)) expected[points[i].watts] = points[i].throughput;
  std::map<double, double> front;
  const PlannerSearch exact = searched("search: front\ncompare: [power]");
  for (const FoundSystem& system : exact.best) front[system.watts] = system.value;
  EXPECT_EQ(front, expected);
  EXPECT_GT(front.size(), 2U);
  const PlannerSearch near = searched("search: {for: front, within: 0.2}\ncompare: [power]");
  EXPECT_LT(near.planned, exact.planned);
  for (const FoundSystem& one : exact.best) {
    EXPECT_TRUE(std::any_of(near.best.begin(), near.best.end(), [&](const FoundSystem& known) {
      return known.watts <= one.watts && known.value * 1.2 >= one.value;
    }));
  }
}

/// A budget ends a search, which then says what may be left.
TEST_P(SystemSearchAndSweep, ABudgetLeavesABound) {
  const PlannerSearch search = searched("search: {for: throughput, keep: 1, budget: 8}");
  const double best = swept([](const PointResult&) { return 1.0; }).front();
  EXPECT_GE(search.open_value, best);
  EXPECT_EQ(searched("search: {for: throughput, keep: 1, budget: 1000}").open_value, 0);
}

TEST(SystemSearch, GroupsMemoriesBehindTheOneWithMostOfEverything) {
  using Groups = std::vector<std::vector<std::size_t>>;
  const PricedMemory small{"small", 1, 10, 0, 0}, large{"large", 3, 10, 0, 0};
  const PricedMemory quick{"quick", 2, 20, 0, 0};
  EXPECT_EQ(memory_groups({}), Groups{{}});
  EXPECT_EQ(memory_groups(std::array{small, large, small}), (Groups{{1, 0, 2}}));
  EXPECT_EQ(memory_groups(std::array{small, large, quick}), (Groups{{0}, {1}, {2}}));
}

/// A system whose plan has a gap may be better than it is known to be: nothing is proven then.
TEST(SystemSearch, IsNotProvenWhereAPlanThatIsLeftOutIsNot) {
  std::string text = small_systems_text();
  for (const auto& [from, to] :
       {std::pair{"planners: [braid, megatron]",
                  "planner: braid\nbudget: 1\nsearch: {for: throughput, keep: 1}"},
        std::pair{"devices: [4, 8]", "devices: 8"},
        std::pair{"  uno: {model: candle-uno, global_batch: 1024, precision: bf16}\n", ""},
        std::pair{"{chip: sn30, power: 500 W}", "{chip: h100-sxm, price: 31 kUSD}"}}) {
    text = replaced_in(text, from, to);
  }
  const Space space = space_from(text);
  const PlannerSearch search = search_systems(space, nullptr).searches.front();
  const Sweep all = sweep_space(space, nullptr);
  double most = 0;
  std::size_t with_gap = 0;
  for (std::size_t i = 0; i < all.results.size(); ++i) {
    const PointResult& result = all.results[i];
    if (result.status == Status::optimal || !is_found(result)) continue;
    ++with_gap;
    SpacePoint place = point_of(space, i);
    if (place == search.best.front().place) continue;
    const SystemWorkload& of = systems_of(space).workloads.front();
    most = std::max(
        most, static_cast<double>(of.global_batch * of.graph.seq_len) / searched_bound_s(result));
  }
  ASSERT_GT(with_gap, 1U);
  ASSERT_GT(most, search.best.front().value);
  EXPECT_GE(search.open_value, most);
}

/// No member is planned faster than its family's envelope with the bounds of its schedules.
TEST(SystemSearch, EnvelopesBoundTheirMembers) {
  const Space space = space_from(accelerators_text(""));
  const SystemSpace& systems = systems_of(space);
  const SystemArchitectures& every = *systems.architectures;
  const Sweep all = sweep_space(space, nullptr);
  for (std::size_t network = 0; network < 2; ++network) {
    std::vector<ArchitectureFamily> open = families_by_array(every.all);
    while (!open.empty()) {
      const ArchitectureFamily family = std::move(open.back());
      open.pop_back();
      Chip chip = chip_of(every, envelope(every.all, family));
      chip.execution = ChipExecution::core_bounds;
      const System system = system_of(systems, {0, 0, family.front(), network, 0}, chip);
      const WorkloadPlan plan = plan_workload(systems, 0, 0, system);
      ASSERT_EQ(plan.refusal, "");
      for (const std::uint32_t member : family) {
        const PointResult& result = all.results[member * 2 + network];
        ASSERT_LE(plan.outcome.search_bound_s, result.figures.back() * (1 + 1e-12));
      }
      if (family.size() == 1) continue;
      for (ArchitectureFamily& part : split_family(every.all, family)) {
        open.push_back(std::move(part));
      }
    }
  }
}

TEST(SystemSearch, SeveralWorkloadsByTheirWeightedMean) {
  const Space space = space_from(replaced_in(
      accelerators_text("search: {for: throughput, keep: 1, weights: {gpt: 3, more: 1}}"),
      "architectures:",
      "  more: {model: gpt3-125m, global_batch: 64, seq_len: 32}\narchitectures:"));
  const PlannerSearch search = search_systems(space, nullptr).searches.front();
  const Sweep all = sweep_space(space, nullptr);
  double best = 0;
  const std::size_t systems = point_count(space) / 2;
  for (std::size_t i = 0; i < systems; ++i) {
    if (!is_found(all.results[i]) || !is_found(all.results[systems + i])) continue;
    best = std::max(best,
                    std::exp(0.75 * std::log(throughput_of(space, all.results[i], 0)) +
                             0.25 * std::log(throughput_of(space, all.results[systems + i], 1))));
  }
  EXPECT_NEAR(search.best.front().value, best, 1e-9 * best);
}

/// Listed chips have no envelopes: all are planned.
TEST(SystemSearch, OfListedChips) {
  const Space space = space_from(replaced_in(
      replaced_in(small_systems_text(), "planners: [braid, megatron]",
                  "planner: braid\nsearch: {for: throughput, keep: 1, weights: {gpt: 1, uno: 1}}"),
      "devices: [4, 8]", "devices: 4"));
  const SystemSearchResult found = search_systems(space, nullptr);
  EXPECT_EQ(found.searches.front().best.size(), 1U);
  EXPECT_EQ(found.searches.front().planned, found.searches.front().systems);
}

TEST(SystemSearch, SplitsEveryFamilyIntoItsMembers) {
  const std::vector<Architecture> all = architectures(ArchitectureSpace{});
  std::size_t members = 0;
  std::vector<ArchitectureFamily> open = families_by_array(all);
  EXPECT_EQ(open.size(), 64U);
  while (!open.empty()) {
    const ArchitectureFamily family = std::move(open.back());
    open.pop_back();
    ASSERT_FALSE(family.empty());
    if (family.size() == 1) {
      ++members;
      continue;
    }
    const Architecture best = envelope(all, family);
    for (const std::uint32_t member : family) {
      ASSERT_EQ(all[member].width, best.width);
      ASSERT_EQ(all[member].depth, best.depth);
      ASSERT_LE(all[member].tensor_cores, best.tensor_cores);
      ASSERT_LE(all[member].vector_cores, best.vector_cores);
      ASSERT_LE(all[member].global_buffer_mib, best.global_buffer_mib);
    }
    for (ArchitectureFamily& part : split_family(all, family)) open.push_back(std::move(part));
  }
  EXPECT_EQ(members, all.size());
}

std::string fault_of(const std::string& text) {
  try {
    space_from(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SystemSearch, SaysWhatIsWrong) {
  EXPECT_THAT(fault_of(accelerators_text("search: speed")), HasSubstr("throughput"));
  EXPECT_THAT(fault_of(accelerators_text("search: {for: front}\ncompare: []")),
              HasSubstr("throughput alone"));
  EXPECT_THAT(fault_of(accelerators_text("search: {for: throughput, weights: {gtp: 1}}")),
              HasSubstr("gpt"));
  EXPECT_THAT(fault_of(replaced_in(accelerators_text("search: throughput"), "planner: phaze",
                                   "planner: amp")),
              HasSubstr("no bounds"));
  EXPECT_THAT(fault_of(replaced_in(accelerators_text(""), "  area: 30 mm2",
                                   "  of: h100-sxm\n  area: 30 mm2")),
              HasSubstr("no accelerator"));
}

}  // namespace
}  // namespace braid

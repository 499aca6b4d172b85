// DFModel's published inputs against the results in its logs.
#include <gtest/gtest.h>

#include "braid/dataflow/dataflow_job.h"

#include "dataflow/reference_setup.h"

namespace braid {
namespace {

constexpr double kTight = 1e-5;

void expect_close(double value, double logged, double tolerance = kTight) {
  EXPECT_NEAR(value, logged, tolerance * logged);
}

struct Answer {
  MappingCost cost;
  JobTime time;
};

Answer evaluate(const DataflowSetup& setup, const Mapping* given = nullptr) {
  const JobRules rules = published_job_rules(setup);
  const ChipWork work = chip_work(setup, choose_sharding(setup, rules), rules);
  MappingRules mapping_rules = setup.rules;
  const Mapping mapping = given != nullptr ? *given : kernel_by_kernel(work);
  Answer run;
  run.cost = evaluate_mapping(work, setup.chip, mapping, mapping_rules);
  run.time = job_time(setup, run.cost.time_s, rules);
  return run;
}

DataflowSetup with_links(DataflowSetup setup, double dram_gb, double x_gb, double y_gb) {
  setup.chip.dram_bytes_per_s = dram_gb * 1e9;
  setup.fabric.dimensions[0].bytes_per_s = x_gb * 1e9;
  setup.fabric.dimensions[1].bytes_per_s = y_gb * 1e9;
  return setup;
}

constexpr const char* kTrillion = "gpt3_1t_h100_2dtorus_hbm_nvlink";

TEST(PublishedRuns, TrillionOnH100) {
  const auto setup = reference_setup(kTrillion);
  if (!setup) GTEST_SKIP() << "reference data not present";
  const Answer run = evaluate(*setup);
  EXPECT_FALSE(run.cost.violation) << *run.cost.violation;
  expect_close(run.time.time_s, 58.47419947930241);
  expect_close(run.time.utilisation, 0.6474927825595755);
  expect_close(run.time.flops, 3.85072240461978e19, 1e-4);
  expect_close(run.cost.time_s, 18111074.88818456e-9);
  expect_close(run.time.bubble, 0.0413411458333335);
  const MachineCost cost = machine_cost(*setup);
  expect_close(cost.usd, 40745728.0);
  expect_close(cost.watts, 958402.4623799324);
  const Answer slow = evaluate(with_links(*setup, 300, 50, 50));
  expect_close(slow.time.time_s, 182.54916149133868, 2e-5);
}

TEST(PublishedRuns, TrillionOnH100InOtherNetworks) {
  const auto setup = reference_setup(kTrillion);
  if (!setup) GTEST_SKIP() << "reference data not present";
  DataflowSetup torus = *setup;
  torus.fabric.dimensions[1].size = 64;
  torus.fabric.dimensions.push_back({FabricShape::ring, 2, 50e9, FabricRole::data});
  expect_close(evaluate(torus).time.time_s, 58.53833234395011);
  expect_close(machine_cost(torus).usd, 42096128);
  DataflowSetup dragonfly = with_links(*setup, 3072, 50, 50);
  for (FabricDimension& dimension : dragonfly.fabric.dimensions) {
    dimension.shape = FabricShape::fully_connected;
  }
  expect_close(evaluate(dragonfly).time.time_s, 59.96504153441428);
  expect_close(machine_cost(dragonfly).usd, 58940928);
  DataflowSetup dgx = with_links(*setup, 3072, 50, 50);
  for (FabricDimension& dimension : dgx.fabric.dimensions) {
    dimension.shape = FabricShape::switched;
  }
  expect_close(evaluate(dgx).time.time_s, 100.21782821374337, 2e-5);
}

// "1T" row of Megatron-LM's table 1 (Narayanan et al. 2021): 3072 A100.
TEST(PublishedRuns, MegatronTrillion) {
  const auto setup = reference_setup(kTrillion);
  if (!setup) GTEST_SKIP() << "reference data not present";
  DataflowSetup megatron = *setup;
  megatron.chip.tiles = 432;
  megatron.chip.clock_hz = 1.41e9;
  megatron.chip.dram_bytes_per_s = 2039e9;
  megatron.chips = 3072;
  megatron.fabric.dimensions = {{FabricShape::ring, 8, 600e9, FabricRole::tensor},
                                {FabricShape::ring, 64, 25e9, FabricRole::pipeline},
                                {FabricShape::ring, 6, 25e9, FabricRole::data}};
  const Answer run = evaluate(megatron);
  expect_close(run.time.time_s, 57.75644515125196);
  expect_close(run.time.utilisation, 0.69590144);
}

TEST(PublishedRuns, RailOnly) {
  const auto setup = reference_setup(kTrillion);
  if (!setup) GTEST_SKIP() << "reference data not present";
  DataflowSetup rail = *setup;
  rail.rules.compute_fraction = 1;
  rail.all_reduce_passes = 1;
  rail.chips = 16384;
  rail.job.global_batch = 4096;
  rail.fabric.dimensions = {{FabricShape::switched, 8, 900e9, FabricRole::tensor},
                            {FabricShape::switched, 2, 50e9, FabricRole::pipeline},
                            {FabricShape::switched, 1024, 50e9, FabricRole::data}};
  const std::pair<double, double> logged[] = {
      {1, 8.831112568}, {8, 4.961485239}, {256, 4.672530860}};
  for (const auto& [domain, seconds] : logged) {
    rail.fabric.domain_size = domain;
    expect_close(evaluate(rail).time.time_s, seconds);
  }
}

/// The case study's mappings by the first kernel of each partition.
Mapping cut_before(const KernelGraph& graph, const std::vector<std::string>& names) {
  Mapping mapping;
  std::int32_t partition = 0;
  for (const Kernel& kernel : graph.kernels) {
    if (static_cast<std::size_t>(partition) < names.size() &&
        kernel.name == names[static_cast<std::size_t>(partition)]) {
      ++partition;
    }
    mapping.partition_of.push_back(partition);
  }
  return mapping;
}

// DFModel, section VII: GPT3-175B on eight SN10; the paper's speedups are 4.05, 4.81 and 6.13.
TEST(PublishedRuns, SambaNovaMappings) {
  const auto setup = reference_setup("gpt3_175b_sn10");
  if (!setup) GTEST_SKIP() << "reference data not present";
  const Answer alone = evaluate(*setup);
  expect_close(alone.time.time_s, 4909.147625881573);
  expect_close(alone.time.utilisation, 0.13986235832706723, 1e-4);
  expect_close(machine_cost(*setup).usd, 136178);
  expect_close(machine_cost(*setup).watts, 3713.6336560845375);

  const Mapping vendor = cut_before(setup->graph, {"MHA_GEMM_1", "FFN0", "GeLU"});
  const Answer given = evaluate(*setup, &vendor);
  EXPECT_FALSE(given.cost.violation) << *given.cost.violation;
  expect_close(given.time.time_s, 1212.251846411307);
  expect_close(given.cost.partitions[0].time_s, 839042.8666714898e-9);
  expect_close(given.cost.partitions[1].time_s, 1761607.68e-9);
  expect_close(given.cost.partitions[2].time_s, 1118481.0962962972e-9);
  EXPECT_EQ(given.cost.partitions[0].bound, PartitionBound::compute);
  EXPECT_EQ(given.cost.partitions[1].bound, PartitionBound::network);
  EXPECT_NEAR(alone.time.time_s / given.time.time_s, 4.05, 0.005);

  const Mapping fused = cut_before(setup->graph, {"MHA_GEMM_1", "PROJ_GEMM", "FFN1"});
  const Answer better = evaluate(*setup, &fused);
  EXPECT_FALSE(better.cost.violation) << *better.cost.violation;
  expect_close(better.time.time_s, 1020.5244997642667);
  expect_close(better.cost.partitions[2].compute_s, 1398419.95e-9);
  expect_close(better.cost.partitions[2].memory_s, 1321205.76e-9);
  EXPECT_NEAR(alone.time.time_s / better.time.time_s, 4.81, 0.005);
}

TEST(PublishedRuns, RecommendationOnZionEx) {
  const auto setup = reference_setup("dlrm_zionex_A");
  if (!setup) GTEST_SKIP() << "reference data not present";
  const Answer run = evaluate(*setup);
  expect_close(run.cost.time_s, 38217967.64790911e-9);
  expect_close(run.time.time_s, 38217.96764790844);
  expect_close(run.time.utilisation, 0.0587162570035742);
  expect_close(run.time.flops, 8.957952e19);
  expect_close(machine_cost(*setup).usd, 3539040);
  expect_close(machine_cost(*setup).watts, 98932.60964179039);
}

TEST(PublishedRuns, LinpackOnSelene) {
  const auto setup = reference_setup("hpl_selene");
  if (!setup) GTEST_SKIP() << "reference data not present";
  const Answer run = evaluate(*setup);
  expect_close(run.time.time_s, 0.18253588986326588);
  expect_close(run.time.utilisation, 0.8530716552638549);
  expect_close(run.cost.partitions[16].time_s, 4458897.576504469e-9);
  expect_close(run.cost.partitions[33].time_s, 1859424.8955405024e-9);
  expect_close(run.cost.partitions[34].time_s, 1789569.7066666668e-9);
  EXPECT_EQ(run.cost.partitions[33].bound, PartitionBound::compute);
  EXPECT_EQ(run.cost.partitions[34].bound, PartitionBound::network);
  expect_close(machine_cost(*setup).usd, 285219000);
  expect_close(machine_cost(*setup).watts, 8134293.198423693);
}

TEST(PublishedRuns, FourierTransform) {
  const auto setup = reference_setup("fft_fp32_1024");
  if (!setup) GTEST_SKIP() << "reference data not present";
  const Answer run = evaluate(*setup);
  expect_close(run.time.time_s, 1.3611834399540257);
  expect_close(run.time.utilisation, 0.02513544543192796);
  expect_close(run.cost.partitions[0].memory_s, 2057182.0853359492e-9);
  expect_close(machine_cost(*setup).usd, 43950336);
}

// Llama3-8B decoding on 16 SN40L, from the figures in the log: per layer 31,505,284 operations,
// 27,262,976 bytes and two all-reduces of 8,192 bytes over a ring of 16 with 150 ns a hop.
TEST(PublishedRuns, DecodingOnSn40l) {
  DataflowSetup setup;
  setup.chip = {1040, 32, 6, 1.6e9, 545259520, 1e12, 1638.4e9, 0, 0};
  setup.chips = 16;
  setup.fabric.dimensions = {{FabricShape::ring, 16, 50e9, FabricRole::tensor}};
  setup.fabric.latency_s = 150e-9;
  setup.job.layers = 32;
  setup.job.global_batch = 16384;
  setup.graph.kernels.push_back({});
  const JobRules rules = published_job_rules(setup);
  ChipWork work;
  ChipKernel layer;
  layer.flops = 31505284;
  layer.dram_bytes = 4 * 2097152 + 2 * 2097152 + 2 * 7340032;
  layer.network_s = 2 * all_reduce_s(8192, FabricRole::tensor, setup.fabric, rules.collectives);
  work.kernels.push_back(layer);
  const MappingCost cost = evaluate_mapping(work, setup.chip, kernel_by_kernel(work),
                                            dfmodel_rules(PartitionOverlap::none));
  expect_close(cost.partitions[0].compute_s, 54.78432917170895e-9);
  expect_close(cost.partitions[0].memory_s, 16639.99975204468e-9);
  expect_close(cost.partitions[0].network_s, 9614.4e-9);
  const JobTime time = job_time(setup, cost.time_s, rules);
  expect_close(time.time_s, 13.793589503572779);
  EXPECT_NEAR(16384 / time.time_s, 1187.8, 0.05);
  // The same with pipelines of 4 and 16 stages, from the logged times of a layer.
  setup.fabric.dimensions = {{FabricShape::ring, 4, 50e9, FabricRole::tensor},
                             {FabricShape::ring, 4, 50e9, FabricRole::pipeline}};
  expect_close(job_time(setup, 69070.5067522362e-9, rules).time_s, 9.053446274192236);
  setup.fabric.dimensions = {{FabricShape::ring, 16, 50e9, FabricRole::pipeline}};
  expect_close(job_time(setup, 267115.7974362057e-9, rules).time_s, 8.760863924312675);
}

}  // namespace
}  // namespace braid

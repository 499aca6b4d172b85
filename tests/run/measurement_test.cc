#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/temporary_folder.h"
#include "braid/frontend/model.h"
#include "braid/plan/plan_json.h"
#include "braid/run/parity.h"
#include "braid/run/rank_record.h"
#include "braid/run/run_job.h"
#include "braid/run/run_measurement.h"
#include "braid/run/safetensors.h"
#include "braid/run/trained_times.h"

#include "run/random_job.h"

namespace braid::test {
namespace {

/// Records of iterations in which each instruction takes a millisecond, the i-th iteration i times.
std::vector<RankRecord> even_records(const std::vector<std::vector<Instruction>>& ranks,
                                     int iterations) {
  std::vector<RankRecord> records(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (int i = 0; i < iterations; ++i) {
      RankIteration iteration;
      iteration.start_s = 100 + i;
      double at_s = 0;
      for (std::size_t k = 0; k < ranks[r].size(); ++k) {
        iteration.times.push_back({at_s, at_s + 1e-3 * (i + 1)});
        at_s += 1e-3 * (i + 1);
      }
      iteration.end_s = iteration.start_s + at_s;
      records[r].losses.push_back(1);
      records[r].iterations.push_back(iteration);
    }
    records[r].peak_memory_bytes = static_cast<double>(r);
  }
  return records;
}

TEST(RunMeasurement, HasEveryPassInThePlansOrderAndSumsUp) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 10; ++trial) {
    const Graph graph = random_branches(random, 6);
    const OrderedPlan ordered = ordered_plan(random_plan_for(random, graph));
    const StagedModel staged = staged_model(graph, ordered);
    const auto groups = parameter_groups(staged, ordered.plan);
    const auto ranks = instructions_of(staged, ordered.order, groups);
    // The first is left out; of the three after it the middle one counts.
    const RunMeasurement measured = measurement_of(staged, ranks, even_records(ranks, 4));
    std::size_t longest = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      longest = std::max(longest, ranks[r].size());
      const RankTimes& times = measured.ranks[r];
      EXPECT_NEAR(
          times.passes_s + times.handover_s + times.gradients_s + times.optimizer_s + times.rest_s,
          3e-3 * static_cast<double>(ranks[r].size()), 1e-9);
    }
    EXPECT_NEAR(measured.iteration_time_s, 3e-3 * static_cast<double>(longest), 1e-9);
    EXPECT_EQ(measured.peak_memory_bytes, static_cast<double>(ranks.size() - 1));
    for (std::size_t s = 0; s < ordered.plan.stages.size(); ++s) {
      std::vector<Work> passes;
      for (const Event& event : measured.timeline.events) {
        const bool forward = event.kind == EventKind::forward;
        if (event.stage != static_cast<int>(s) || (!forward && event.kind != EventKind::backward)) {
          continue;
        }
        passes.push_back(
            {forward ? WorkKind::forward : WorkKind::backward, event.stage, event.micro_batch});
      }
      EXPECT_EQ(passes, ordered.order.devices[s]);
    }
  }
}

TEST(RunRecord, ReadsBackWhatWasWritten) {
  const TemporaryFolder folder;
  RankRecord record;
  record.losses = {1.5, 0.1};
  record.peak_memory_bytes = 12345;
  record.iterations.push_back({0, 7.25, 9.5, {{0.1, 0.2}, {0.3, 0.7}}});
  write_file(folder / "rank.json", rank_record_text(record));
  EXPECT_EQ(rank_record_text(read_rank_record(folder / "rank.json")), rank_record_text(record));
  RunJob job;
  job.plan = "a plan";
  job.settings.learning_rate = 0.125;
  job.settings.optimizer = OptimizerRule::adam;
  job.settings.type = ElementType::bf16;
  write_file(folder / "job.json", run_job_text(job));
  EXPECT_EQ(run_job_text(read_run_job(folder / "job.json")), run_job_text(job));
}

TEST(RunJob, PlansOfModelsOfImagesAreLoaded) {
  const TemporaryFolder folder;
  const std::string model = folder / "config.json";
  write_file(model, R"({"model_type": "vit", "hidden_size": 8, "num_hidden_layers": 2,
                        "num_attention_heads": 2, "intermediate_size": 12, "image_size": 8,
                        "patch_size": 4, "num_labels": 5})");
  const Graph graph = load_model(model, {});
  EXPECT_GT(graph.seq_len, 0);
  std::mt19937_64 random(1);
  Plan plan = random_plan_for(random, graph);
  plan.model_source = model;
  RunJob job;
  job.plan = folder / "plan.json";
  write_file(job.plan, to_text(to_json(plan)));
  EXPECT_EQ(load_run(job).staged.batch, plan.global_batch);
}

TEST(TrainedTimes, ReadBackAsWrittenAndAreAveraged) {
  const TemporaryFolder folder;
  std::mt19937_64 random(1);
  TrainedTimesJob job;
  job.graphs = {random_branches(random, 3), random_branches(random, 4)};
  job.batches = {1, 4};
  job.devices = 1;
  job.threads = 2;
  job.samples = 5;
  job.cache_bytes = 1e6;
  write_file(folder / "job.json", trained_times_job_text(job));
  const TrainedTimesJob read = read_trained_times_job(folder / "job.json");
  EXPECT_EQ(read.graphs, job.graphs);
  EXPECT_EQ(read.batches, job.batches);
  EXPECT_EQ(trained_times_job_text(read), trained_times_job_text(job));
  const TrainedTimes first{{{1, 2}, {3, 4}}, {{4, 1}}, {{4, 3}}, "OpenBLAS"};
  const TrainedTimes second{{{3, 4}, {5, 8}}, {{4, 2}}, {{4, 5}}, "OpenBLAS"};
  const TrainedTimes none{{}, {{4, 3}}, {{4, 7}}, "OpenBLAS"};
  write_file(folder / "times.json", trained_times_text(first));
  EXPECT_EQ(read_trained_times(folder / "times.json"), first);
  const TrainedTimes mean = mean_of({first, second, none});
  EXPECT_EQ(mean, (TrainedTimes{{{2, 3}, {4, 6}}, {{4, 2}}, {{4, 5}}, "OpenBLAS"}));
}

TEST(Safetensors, ReadBackEqualAndLieAsTheFormatSays) {
  const TemporaryFolder folder;
  const std::string file = folder / "weights.safetensors";
  DenseTensor numbers(ElementType::f32, {1, 2});
  numbers.as<float>()[0] = 1;
  numbers.as<float>()[1] = -2;
  write_safetensors(file, {{"a", numbers}, {"b", DenseTensor(ElementType::i64, {})}});
  const std::vector<NamedTensor> read = read_safetensors(file);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].tensor, numbers);
  EXPECT_EQ(read[1].name, "b");
  const std::string text = read_file(file);
  const auto header = static_cast<unsigned char>(text[0]);
  EXPECT_EQ(text.substr(8, header).substr(0, 66),
            R"({"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtyp)");
  EXPECT_EQ(text.size(), 8U + header + 16U);
  EXPECT_EQ(text.substr(8U + header, 8), std::string("\0\0\x80\x3f\0\0\0\xc0", 8));
  write_safetensors(file, {{"none", DenseTensor(ElementType::f64, {0, 2})}});
  EXPECT_EQ(read_safetensors(file).at(0).tensor, DenseTensor(ElementType::f64, {0, 2}));
}

TEST(Safetensors, WhatIsNoneIsRefused) {
  const TemporaryFolder folder;
  const std::string file = folder / "bad.safetensors";
  const auto refused = [&](const std::string& content) {
    write_file(file, content);
    try {
      read_safetensors(file);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused("abc"), testing::HasSubstr("cut off"));
  EXPECT_THAT(refused(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)),
              testing::HasSubstr("cut off"));
  const auto with = [](const std::string& header, const std::string& data) {
    return static_cast<char>(header.size()) + std::string(7, '\0') + header + data;
  };
  EXPECT_THAT(refused(with(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234")),
              testing::HasSubstr("data_offsets"));
  EXPECT_THAT(refused(with(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234")),
              testing::HasSubstr("other bytes"));
  EXPECT_THAT(refused(with(R"({"a":{"dtype":"X9","shape":[1],"data_offsets":[0,4]}})", "1234")),
              testing::HasSubstr("type is not known"));
  const char* const huge =
      R"({"a":{"dtype":"I8","shape":[1099511627776,1099511627776,0],"data_offsets":[0,0]}})";
  EXPECT_THAT(refused(with(huge, "")), testing::HasSubstr("its shape is too large"));
}

TEST(Parity, FindsTheWorstDifferenceAndWhatIsMissing) {
  DenseTensor ones(ElementType::f64, {2});
  ones.as<double>()[0] = ones.as<double>()[1] = 1;
  DenseTensor other = ones;
  other.as<double>()[1] += 1e-9;
  const TrainedWeights whole{{2, 4}, {{"a", ones}, {"b", ones}}};
  EXPECT_TRUE(parity_of(whole, whole, 0).holds());
  const Parity off = parity_of({{2, 4.4}, {{"b", other}, {"a", ones}}}, whole, 1e-12);
  EXPECT_FALSE(off.holds());
  EXPECT_NEAR(off.loss, 0.1, 1e-12);
  EXPECT_NEAR(off.weight, 1e-9, 1e-12);
  EXPECT_EQ(off.worst, "b");
  EXPECT_FALSE(parity_of({{2, 4}, {{"a", ones}}}, whole, 1).holds());
  EXPECT_FALSE(parity_of({{2}, {{"a", ones}, {"b", ones}}}, whole, 1).holds());
  other.as<double>()[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(parity_of({{2, 4}, {{"a", ones}, {"b", other}}}, whole, 1e9).holds());
}

}  // namespace
}  // namespace braid::test

#include <algorithm>
#include <atomic>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/run/torch/torch_training.h"

#include "run/random_job.h"
#include "run_torch/exact_settings.h"
#include "run_torch/local_run.h"
#include "run_torch/tiny_models.h"
#include "run_torch/trials.h"

namespace braid::test {
namespace {

/// Decoders whose heads, keys, vocabulary and widths divide evenly, unevenly and not at all.
std::vector<TinyModel> divisible_models() {
  std::vector<TinyModel> models;
  for (const TinyModel& each : tiny_models()) {
    for (const char* name : {"gpt2", "llama", "mixtral", "t5", "bert", "multi-modal"}) {
      if (each.name == name) models.push_back(each);
    }
  }
  models.push_back({"uneven", R"({"model_type": "llama", "vocab_size": 23,
      "max_position_embeddings": 4, "hidden_size": 8, "intermediate_size": 12,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1,
      "tie_word_embeddings": true})"});
  models.push_back({"gated-t5", R"({"model_type": "t5", "vocab_size": 22, "n_positions": 4,
      "d_model": 8, "d_kv": 4, "d_ff": 12, "num_layers": 1, "num_heads": 2,
      "feed_forward_proj": "gated-silu", "relative_attention_num_buckets": 8})"});
  return models;
}

TinyModel divisible_model(const std::string& name) {
  const std::vector<TinyModel> models = divisible_models();
  return *std::find_if(models.begin(), models.end(),
                       [&](const TinyModel& each) { return each.name == name; });
}

TEST(TensorParallel, RandomPlansTrainAsOneProcessDoes) {
  std::mt19937_64 random(11);
  int divided = 0;
  for (int trial = 0; trial < trials("BRAID_RUN_DIVIDED_PLANS", 1); ++trial) {
    for (const TinyModel& model : divisible_models()) {
      const Graph graph = graph_of(model);
      Plan plan = random_plan_for(random, graph);
      divide_stages(random, graph, plan, {1, 2, 2});
      TrainingSettings settings = exact_settings(2);
      settings.learning_rate = 0.0001;
      const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
      const TrainedModel parts = train_by_threads(graph, plan, "", settings);
      EXPECT_LE(difference(parts, whole), kExact) << model.name << trial;
      for (const Stage& stage : plan.stages) divided += stage.tp > 1;
    }
  }
  EXPECT_GT(divided, 4);
}

/// One stage, or two, of so many ranks a replica.
Plan divided_plan(const Graph& graph, int tp, bool sequence_parallel, int stages = 1, int dp = 1,
                  Zero zero = Zero::none) {
  std::mt19937_64 random(1);
  Plan plan = plan_of(random, graph);
  const auto layers = static_cast<std::int32_t>(graph.layers.size());
  plan.parallel.pp = stages;
  plan.parallel.tp = tp;
  plan.parallel.dp = dp;
  plan.parallel.sequence_parallel = sequence_parallel;
  plan.parallel.zero = zero;
  plan.parallel.num_micro_batches = 2;
  plan.global_batch = std::int64_t{2} * dp;
  plan.stages.resize(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    Stage& stage = plan.stages[static_cast<std::size_t>(s)];
    stage.tp = tp;
    stage.dp = dp;
    for (int d = 0; d < tp * dp; ++d) stage.devices.push_back(std::int64_t{s} * tp * dp + d);
    Chunk& chunk = stage.chunks.emplace_back();
    for (std::int32_t l = s * layers / stages; l < (s + 1) * layers / stages; ++l) {
      chunk.layers.push_back(l);
      chunk.options.push_back(l % 3);
    }
  }
  for (std::vector<Option>& kind : plan.profile.kinds) {
    for (Option& option : kind) {
      option.how.tp = tp;
      option.how.sequence_parallel = sequence_parallel;
    }
  }
  return plan;
}

TEST(TensorParallel, HeadsOfKeysThatSeveralRanksHold) {
  for (const auto& [name, zero] : {std::pair("llama", Zero::parameters),
                                   {"uneven", Zero::optimizer},
                                   {"mixtral", Zero::none}}) {
    const Graph graph = graph_of(divisible_model(name));
    const bool sequence_parallel = graph.seq_len % 4 == 0;
    const Plan plan = divided_plan(graph, 4, sequence_parallel, 2, 2, zero);
    const TrainingSettings settings = exact_settings(2);
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    EXPECT_LE(difference(train_by_threads(graph, plan, "", settings), whole), kExact) << name;
  }
}

TEST(TensorParallel, WithAdamAndEveryZeroStage) {
  for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters}) {
    const bool is_odd = static_cast<int>(zero) % 2 == 1;
    const Graph graph = graph_of(divisible_model(is_odd ? "gpt2" : "mixtral"));
    const Plan plan = divided_plan(graph, 2, zero >= Zero::gradients, 1, 2, zero);
    TrainingSettings settings = exact_settings(3);
    settings.optimizer = OptimizerRule::adam;
    settings.learning_rate = 0.01;
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    // Adam divides by gradients, however small.
    EXPECT_LE(difference(train_by_threads(graph, plan, "", settings), whole), 1e-9)
        << static_cast<int>(zero);
  }
}

TEST(TensorParallel, LowerPrecisionsAreAsNearAsTheyCanBe) {
  const Graph graph = graph_of(tiny_models()[1]);
  for (const auto& [type, most] : {std::pair(ElementType::f32, 1e-5), {ElementType::bf16, 5e-2}}) {
    const Plan plan = divided_plan(graph, 2, true);
    TrainingSettings settings = exact_settings(3);
    settings.learning_rate = 0.01;
    settings.type = type;
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    EXPECT_LE(difference(train_by_threads(graph, plan, "", settings), whole), most);
  }
}

/// Leaves out or doubles one collective of an iteration, counted from 0, on every rank.
class FaultyCollective : public RankLink {
 public:
  FaultyCollective(RankLink& link, std::int64_t fault, bool doubles,
                   std::atomic<std::int64_t>* most)
      : link_(link), fault_(fault), doubles_(doubles), most_(most) {}
  void send(const TensorHandle& tensor, std::int32_t peer, std::int32_t tag) override {
    link_.send(tensor, peer, tag);
  }
  TensorHandle receive(TensorHandle room, std::int32_t peer, std::int32_t tag) override {
    return link_.receive(std::move(room), peer, tag);
  }
  void finish_sends() override { link_.finish_sends(); }
  TensorHandle sum(std::size_t group, TensorHandle row) override {
    if (!is_faulty()) return link_.sum(group, std::move(row));
    if (doubles_) return link_.sum(group, torch_arithmetic().sum(row, row));
    link_.sum(group, row);
    return row;
  }
  TensorHandle sum_part(std::size_t group, TensorHandle row) override {
    if (!is_faulty()) return link_.sum_part(group, std::move(row));
    const TensorHandle twice = torch_arithmetic().sum(row, row);
    return link_.sum_part(group, twice);
  }
  TensorHandle gather(std::size_t group, TensorHandle part) override {
    return link_.gather(group, std::move(part));
  }
  double sum_of_all(double number) override { return link_.sum_of_all(number); }

 private:
  bool is_faulty() {
    most_->store(std::max(most_->load(), calls_ + 1));
    return calls_++ == fault_;
  }
  RankLink& link_;
  std::int64_t fault_;
  bool doubles_;
  std::atomic<std::int64_t>* most_;
  std::int64_t calls_ = 0;
};

/// Without recomputation, which also repeats sums of which nothing is read.
Plan unrepeated(Plan plan) {
  for (Stage& stage : plan.stages) {
    for (Chunk& chunk : stage.chunks) std::fill(chunk.options.begin(), chunk.options.end(), 0);
  }
  return plan;
}

TEST(TensorParallel, EveryCollectiveThatIsMissingOrScaledWronglyIsFound) {
  const Graph graph = graph_of(tiny_models()[1]);
  for (const bool sequence_parallel : {false, true}) {
    Plan plan = unrepeated(divided_plan(graph, 2, sequence_parallel));
    plan.parallel.num_micro_batches = 1;
    plan.global_batch = 1;
    const TrainingSettings settings = exact_settings(1);
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    std::atomic<std::int64_t> calls{1};
    int found = 0;
    for (std::int64_t fault = 0; fault < calls; ++fault) {
      const TrainedModel parts =
          train_by_threads(graph, plan, "", settings, [&](std::int32_t, RankLink& link) {
            return std::make_unique<FaultyCollective>(link, fault, true, &calls);
          });
      EXPECT_GT(difference(parts, whole), 1e3 * kExact) << "collective " << fault;
      ++found;
    }
    EXPECT_GT(found, 10);
  }
}

TEST(TensorParallel, AMissingSumIsFound) {
  const Graph graph = graph_of(tiny_models()[0]);
  const Plan plan = unrepeated(divided_plan(graph, 2, false));
  const TrainingSettings settings = exact_settings(1);
  const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
  std::atomic<std::int64_t> calls{1};
  for (std::int64_t fault = 0; fault < calls; ++fault) {
    bool is_found = false;
    try {
      const TrainedModel parts =
          train_by_threads(graph, plan, "", settings, [&](std::int32_t, RankLink& link) {
            return std::make_unique<FaultyCollective>(link, fault, false, &calls);
          });
      is_found = difference(parts, whole) > 1e3 * kExact;
    } catch (const std::runtime_error& error) {
      is_found = std::string(error.what()).find("ranks have different") == 0;
    }
    EXPECT_TRUE(is_found) << "collective " << fault;
  }
  EXPECT_GT(calls, 20);
}

TEST(TensorParallel, WhatCannotBeDividedIsRefusedByStage) {
  const auto refused = [](const Graph& graph, const Plan& plan) {
    try {
      staged_model(graph, ordered_plan(plan));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Graph gpt = graph_of(tiny_models()[0]);
  EXPECT_EQ(refused(gpt, divided_plan(gpt, 2, false)), "");
  EXPECT_THAT(refused(gpt, divided_plan(gpt, 3, false)),
              testing::HasSubstr("stage 1 divides block0.attention.qkv by 3 ranks"));
  Plan sharded = divided_plan(gpt, 2, false);
  sharded.profile.kinds[1][1].divided = {{"block0.attention.qkv", Split::row}};
  EXPECT_THAT(refused(gpt, sharded), testing::HasSubstr("in a sharding that a search found"));
}

}  // namespace
}  // namespace braid::test

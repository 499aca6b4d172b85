#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/run/rank_link.h"
#include "braid/run/torch/torch_training.h"

#include "run/random_job.h"
#include "run_torch/tiny_models.h"

namespace braid::test {

/// Decoders whose heads, keys, vocabulary and widths divide evenly, unevenly and not at all.
inline std::vector<TinyModel> divisible_models() {
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

inline TinyModel divisible_model(const std::string& name) {
  const std::vector<TinyModel> models = divisible_models();
  return *std::find_if(models.begin(), models.end(),
                       [&](const TinyModel& each) { return each.name == name; });
}

/// How the ranks of each stage share its work.
struct Degrees {
  int tp = 1, cp = 1, ep = 1, dp = 1, stages = 1;
  bool sequence_parallel = false, whole_experts = false;
  Zero zero = Zero::none;
  std::int64_t micro_batches = 2;
};

/// A plan of stages of equal degrees, with any recomputation.
inline Plan sharded_plan(const Graph& graph, const Degrees& of) {
  std::mt19937_64 random(1);
  Plan plan = plan_of(random, graph);
  const auto layers = static_cast<std::int32_t>(graph.layers.size());
  Parallelism& form = plan.parallel;
  form.pp = of.stages;
  form.tp = of.tp;
  form.cp = of.cp;
  form.ep = of.ep;
  form.dp = of.dp;
  form.sequence_parallel = of.sequence_parallel;
  form.whole_experts = of.whole_experts;
  form.zero = of.zero;
  form.num_micro_batches = of.micro_batches;
  plan.global_batch = of.micro_batches * of.dp;
  plan.stages.resize(static_cast<std::size_t>(of.stages));
  const int ranks = of.tp * of.cp * of.dp;
  for (int s = 0; s < of.stages; ++s) {
    Stage& stage = plan.stages[static_cast<std::size_t>(s)];
    stage.tp = of.tp;
    stage.cp = of.cp;
    stage.dp = of.dp;
    for (int d = 0; d < ranks; ++d) stage.devices.push_back(std::int64_t{s} * ranks + d);
    Chunk& chunk = stage.chunks.emplace_back();
    for (std::int32_t l = s * layers / of.stages; l < (s + 1) * layers / of.stages; ++l) {
      chunk.layers.push_back(l);
      chunk.options.push_back(l % 3);
    }
  }
  for (std::vector<Option>& kind : plan.profile.kinds) {
    for (Option& option : kind) {
      option.how.tp = of.tp;
      option.how.cp = of.cp;
      option.how.ep = of.ep;
      option.how.sequence_parallel = of.sequence_parallel;
      option.how.whole_experts = of.whole_experts;
    }
  }
  return plan;
}

/// Without recomputation, which also repeats sums of which nothing is read.
inline Plan unrepeated(Plan plan) {
  for (Stage& stage : plan.stages) {
    for (Chunk& chunk : stage.chunks) std::fill(chunk.options.begin(), chunk.options.end(), 0);
  }
  return plan;
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
  TensorHandle gather(std::size_t group, TensorHandle part, TensorHandle room) override {
    return link_.gather(group, std::move(part), std::move(room));
  }
  std::vector<TensorHandle> all_to_all(std::size_t group, std::span<const TensorHandle> parts,
                                       std::span<const TensorHandle> rooms) override {
    std::vector<TensorHandle> sent(parts.begin(), parts.end());
    const bool faulty = is_faulty();
    for (TensorHandle& each : sent) each = faulty ? torch_arithmetic().sum(each, each) : each;
    return link_.all_to_all(group, sent, rooms);
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

}  // namespace braid::test

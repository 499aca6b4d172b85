#include "braid/trainers/deepspeed/export.h"

#include <cctype>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/profile/precision.h"
#include "braid/trainers/megatron/export.h"
#include "braid/trainers/registry.h"

#include "gpt_plan.h"
#include "report/plan_maker.h"

namespace braid {
namespace {

using test::gpt_plan;
using test::made_plan;
using test::megatron_refuses;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Parallelism piped() {
  Parallelism p;
  p.tp = 2;
  p.pp = 2;
  p.dp = 2;
  p.num_micro_batches = 8;
  p.sequence_parallel = true;
  p.zero = Zero::optimizer;
  return p;
}

TEST(Export, UnknownTargetNamesTheKnownOnes) {
  try {
    export_plan(made_plan(piped(), 8), "horovod");
    FAIL();
  } catch (const Error& error) {
    for (const std::string& target : export_targets()) {
      EXPECT_THAT(error.what(), HasSubstr(target));
    }
  }
}

TEST(Export, MegatronHasTheDegreesAndBatch) {
  const Export out = export_plan(gpt_plan(piped(), 8), "megatron");
  for (const char* part :
       {"torchrun --nproc-per-node 4 --nnodes 2", "--num-layers 8 ",
        "--tensor-model-parallel-size 2", "--sequence-parallel", "--pipeline-model-parallel-size 2",
        "--micro-batch-size 1", "--global-batch-size 16", "--use-distributed-optimizer",
        "--overlap-param-gather", "--bf16", "--seq-length 128"}) {
    EXPECT_THAT(out.text, HasSubstr(part));
  }
  EXPECT_THAT(out.text, Not(HasSubstr("recompute")));
  EXPECT_THAT(out.text, Not(HasSubstr("decoder-first")));
  // Every line but the last of the command goes on.
  EXPECT_THAT(out.text, Not(HasSubstr("\\\n\n")));
}

TEST(Export, MegatronSaysHowUnevenStagesAreLaidOut) {
  const Export two = export_megatron(gpt_plan(piped(), 9));
  EXPECT_THAT(two.text, HasSubstr("--decoder-first-pipeline-num-layers 5"));
  EXPECT_THAT(two.text, HasSubstr("--decoder-last-pipeline-num-layers 4"));
  Parallelism p = piped();
  p.pp = 4;
  const Export four = export_megatron(gpt_plan(p, 10));  // 3, 3, 2, 2
  EXPECT_THAT(four.text, HasSubstr("--pipeline-model-parallel-layout 'Et*3|t*3|t*2|t*2L'"));
}

/// Blocks by virtual stage that a layout stands for.
std::vector<std::int64_t> blocks_of_layout(std::string layout) {
  for (std::size_t open = layout.find('('); open != std::string::npos; open = layout.find('(')) {
    const std::size_t close = layout.find(")*", open);
    std::size_t end = close + 2;
    while (end < layout.size() && std::isdigit(static_cast<unsigned char>(layout[end])) != 0) ++end;
    const std::string part = layout.substr(open + 1, close - open - 1);
    std::string many;
    for (int i = std::stoi(layout.substr(close + 2)); i > 0; --i) many += part;
    layout = layout.substr(0, open) + many + layout.substr(end);
  }
  std::vector<std::int64_t> blocks = {0};
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (layout[i] == '|') blocks.push_back(0);
    if (layout[i] != 't') continue;
    const bool many = layout.compare(i + 1, 1, "*") == 0;
    blocks.back() += many ? std::stoi(layout.substr(i + 2)) : 1;
  }
  return blocks;
}

TEST(Export, MegatronLayoutStandsForTheStagesBlocks) {
  for (int blocks = 1; blocks < 30; ++blocks) {
    for (const int pp : {2, 3, 4, 7}) {
      for (const int vp : {1, 2, 3}) {
        Parallelism p = piped();
        p.pp = pp;
        p.vp = vp;
        p.num_micro_batches = pp;
        if (vp > 1) p.schedule = ScheduleKind::interleaved;
        const Plan plan = gpt_plan(p, blocks);
        const std::string text = export_megatron(plan).text;
        const std::string option = "--pipeline-model-parallel-layout '";
        const std::size_t at = text.find(option);
        if (at == std::string::npos) continue;
        const std::size_t begin = at + option.size();
        const std::string layout = text.substr(begin, text.find('\'', begin) - begin);
        EXPECT_EQ(blocks_of_layout(layout), count_blocks(plan).per_chunk) << layout;
        EXPECT_EQ(layout.front(), 'E');
        EXPECT_EQ(layout.back(), 'L');
      }
    }
  }
}

/// A plan for a zoo model's shape.
Plan shaped_plan(const std::string& model, const Parallelism& parallel) {
  const auto shape = model_shape(load_model(model, {}));
  EXPECT_TRUE(shape) << model;
  Plan plan = made_plan(parallel, static_cast<int>(shape->blocks));
  plan.shape = shape;
  return plan;
}

TEST(Export, MegatronTellsTheModelsShape) {
  const std::string llama = export_megatron(shaped_plan("llama-3-70b", piped())).text;
  for (const char* part :
       {"--num-layers 80 ", "--hidden-size 8192 ", "--ffn-hidden-size 28672 ",
        "--num-attention-heads 64 ", "--group-query-attention ", "--num-query-groups 8 ",
        "--swiglu ", "--normalization RMSNorm ", "--disable-bias-linear ",
        "--untie-embeddings-and-output-weights ", "--position-embedding-type rope ",
        "--attention-dropout 0.0 ", "--vocab-size 128256 "}) {
    EXPECT_THAT(llama, HasSubstr(part));
  }
  const std::string gpt = export_megatron(shaped_plan("gpt2-xl", {})).text;
  for (const char* part : {"--num-layers 48 ", "--hidden-size 1600 ", "--ffn-hidden-size 6400 ",
                           "--num-attention-heads 25 ", "--vocab-size 50257 ",
                           "--position-embedding-type learned_absolute "}) {
    EXPECT_THAT(gpt, HasSubstr(part));
  }
  for (const char* part :
       {"--swiglu", "RMSNorm", "--disable-bias-linear", "--group-query-attention",
        "--untie-embeddings", "--attention-dropout", "--num-experts"}) {
    EXPECT_THAT(gpt, Not(HasSubstr(part)));
  }
  Parallelism experts;
  experts.dp = 8;
  experts.ep = 4;
  const std::string mixtral = export_megatron(shaped_plan("mixtral-8x7b", experts)).text;
  for (const char* part : {"--num-experts 8 ", "--moe-router-topk 2 ",
                           "--moe-ffn-hidden-size 14336 ", "--expert-model-parallel-size 4 "}) {
    EXPECT_THAT(mixtral, HasSubstr(part));
  }
  experts.tp = 2;
  experts.dp = 4;
  experts.ep = 8;
  experts.sequence_parallel = experts.whole_experts = true;
  const std::string whole = export_megatron(shaped_plan("mixtral-8x7b", experts)).text;
  EXPECT_THAT(whole, HasSubstr("--expert-model-parallel-size 8 "));
  EXPECT_THAT(whole, HasSubstr("--expert-tensor-parallel-size 1 "));
}

TEST(Export, MegatronPadsTheVocabularyAsLittleAsTheDegreeAllows) {
  const auto multiple = [](int tp) {
    Parallelism p;
    p.tp = tp;
    const std::string text = export_megatron(shaped_plan("llama-3-8b", p)).text;
    const std::string option = "--make-vocab-size-divisible-by ";
    return std::stoll(text.substr(text.find(option) + option.size()));
  };
  // 128256 = 2^8 * 501
  EXPECT_EQ(multiple(1), 128);
  EXPECT_EQ(multiple(2), 128);
  EXPECT_EQ(multiple(4), 64);
  EXPECT_EQ(multiple(8), 32);
}

TEST(Export, MegatronRefusesWhatItHasNoScriptFor) {
  EXPECT_THAT(megatron_refuses(made_plan(piped(), 8)), HasSubstr("sizes the plan must hold"));
  Plan plan = gpt_plan(piped(), 8);
  plan.seq_len = 0;
  EXPECT_THAT(megatron_refuses(plan), HasSubstr("decoders of text"));
  plan = gpt_plan(piped(), 8);
  plan.shape->causal = false;
  EXPECT_THAT(megatron_refuses(plan), HasSubstr("not causal"));
}

TEST(Export, MegatronShardsByItsOwnFsdp) {
  Parallelism p;
  p.dp = 8;
  p.zero = Zero::parameters;
  const std::string text = export_megatron(gpt_plan(p, 4)).text;
  for (const char* part :
       {"--use-megatron-fsdp", "optim_grads_params", "--ckpt-format fsdp_dtensor",
        "--no-gradient-accumulation-fusion", "unset CUDA_DEVICE_MAX_CONNECTIONS"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

/// Megatron-LM refuses to gather parameters where there is no distributed optimizer.
TEST(Export, MegatronShardsNothingOnOneReplica) {
  for (const char* precision : {"bf16", "fp8"}) {
    Parallelism p;
    p.tp = 8;
    p.zero = Zero::parameters;
    Plan plan = gpt_plan(p, 4);
    plan.precision = parse_precision(precision);
    const std::string text = export_megatron(plan).text;
    EXPECT_THAT(text, HasSubstr("--overlap-grad-reduce"));
    for (const char* part :
         {"distributed-optimizer", "overlap-param-gather", "\n    --fp8-param-gather", "fsdp"}) {
      EXPECT_THAT(text, Not(HasSubstr(part))) << precision;
    }
  }
}

TEST(Export, MegatronMindsOnlyTheOrderOfAxesThatAreThere) {
  Parallelism p;
  p.dp = 4;
  p.order = {Axis::pp, Axis::dp, Axis::tp, Axis::cp};
  EXPECT_THAT(export_megatron(gpt_plan(p, 4)).warnings, Not(Contains(HasSubstr("order of ranks"))));
  p.pp = 2;
  EXPECT_THAT(export_megatron(gpt_plan(p, 4)).text, HasSubstr("--use-tp-pp-dp-mapping"));
  p.tp = 2;
  EXPECT_THAT(export_megatron(gpt_plan(p, 4)).warnings, Contains(HasSubstr("order of ranks")));
}

TEST(Export, MegatronInterleavesAndRecomputes) {
  Parallelism p = piped();
  p.vp = 2;
  p.schedule = ScheduleKind::interleaved;
  p.recompute = Recompute::full;
  const Export out = export_megatron(gpt_plan(p, 8));
  EXPECT_THAT(out.text, HasSubstr("--num-layers-per-virtual-pipeline-stage 2"));
  EXPECT_THAT(out.text, HasSubstr("--recompute-granularity full"));
  EXPECT_THAT(out.text, HasSubstr("--recompute-method uniform"));
  EXPECT_THAT(out.text, HasSubstr("--recompute-num-layers 1"));
}

TEST(Export, EachThingThatATargetLacksIsAWarning) {
  Parallelism p = piped();
  const auto warnings = [](const Parallelism& parallel, const std::string& target) {
    return export_plan(gpt_plan(parallel, 8), target).warnings.size();
  };
  for (const char* target : {"megatron", "deepspeed"}) {
    const std::size_t before = warnings(p, target);
    Parallelism other = p;
    other.offload_activations = true;
    EXPECT_GT(warnings(other, target), before) << target;
  }
  Parallelism gpipe = p;
  gpipe.schedule = ScheduleKind::gpipe;
  EXPECT_THAT(megatron_refuses(gpt_plan(gpipe, 8)), HasSubstr("GPipe"));
  EXPECT_GT(warnings(gpipe, "deepspeed"), warnings(p, "deepspeed"));
  Parallelism sharded = p;
  sharded.zero = Zero::parameters;
  EXPECT_THROW(export_deepspeed(made_plan(sharded, 8)), Error);
  Parallelism turned = p;
  turned.order = {Axis::dp, Axis::tp, Axis::cp, Axis::pp};
  EXPECT_GT(warnings(turned, "megatron"), warnings(p, "megatron"));
}

TEST(Export, DeepspeedIsJsonWhoseBatchAddsUp) {
  Parallelism p;
  p.dp = 4;
  p.num_micro_batches = 3;
  p.micro_batch = 2;
  p.zero = Zero::parameters;
  p.offload_optimizer = true;
  const Export out = export_deepspeed(made_plan(p, 4));
  const Document document = Document::parse(out.text, Document::Syntax::json, "ds.json");
  const Value root = document.root();
  // What counts tensor-parallel ranks as replicas.
  EXPECT_FALSE(root["train_batch_size"].exists());
  EXPECT_EQ(root["optimizer"]["type"].as_string(), "AdamW");
  EXPECT_EQ(root["train_micro_batch_size_per_gpu"].as_int() *
                root["gradient_accumulation_steps"].as_int() * p.dp,
            24);
  EXPECT_EQ(root["zero_optimization"]["stage"].as_int(), 3);
  EXPECT_EQ(root["zero_optimization"]["offload_optimizer"]["device"].as_string(), "cpu");
}

TEST(Export, NamesCannotBreakOutOfTheirComment) {
  Plan plan = shaped_plan("llama-3-8b", piped());
  plan.model = "x\nrm -rf /";
  plan.system.name = "y\r\nz";
  for (const char* target : {"megatron", "torchtitan", "torchtitan-recipe"}) {
    EXPECT_THAT(export_plan(plan, target).text, Not(HasSubstr("\nrm")));
    EXPECT_THAT(export_plan(plan, target).text, Not(HasSubstr("\nz")));
  }
}

TEST(Export, CountsOnlyRepeatedLayersAsBlocks) {
  const BlockCounts counts = count_blocks(made_plan(piped(), 9));
  EXPECT_EQ(counts.total, 9);
  EXPECT_EQ(counts.per_chunk, (std::vector<std::int64_t>{5, 4}));
  EXPECT_FALSE(counts.even);
  EXPECT_TRUE(count_blocks(made_plan(piped(), 8)).even);
}

}  // namespace
}  // namespace braid

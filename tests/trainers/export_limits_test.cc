#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/system/system.h"
#include "braid/trainers/deepspeed/export.h"
#include "braid/trainers/megatron/export.h"
#include "braid/trainers/registry.h"
#include "braid/trainers/torchtitan/export.h"

#include "report/plan_maker.h"

// What trainers refuse or take otherwise than the plan means it, as their sources say:
// Megatron-LM's megatron/training/arguments.py (validate_args) and
// megatron/core/transformer/transformer_config.py (__post_init__), Transformer Engine's
// context_parallel.py, DeepSpeed's deepspeed/runtime/engine.py (_do_optimizer_sanity_check) and
// torchtitan's config/job_config.py and distributed/parallel_dims.py.

namespace braid {
namespace {

using test::made_plan;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// Llama's shape in small: 8 heads, 4 of them for keys and values.
Plan llama_like(const Parallelism& parallel, int blocks = 4) {
  Plan plan = made_plan(parallel, blocks);
  ModelShape shape;
  shape.first_block = 1;
  shape.blocks = blocks;
  shape.hidden = 1024;
  shape.heads = 8;
  shape.kv_heads = 4;
  shape.head_dim = 128;
  shape.inner = 4096;
  shape.vocab = 32000;
  shape.rotary = shape.gated = shape.rms = true;
  plan.shape = shape;
  return plan;
}

Plan with_experts(const Parallelism& parallel) {
  Plan plan = llama_like(parallel);
  plan.shape->experts = 8;
  plan.shape->top_k = 2;
  plan.shape->expert_inner = 2048;
  return plan;
}

Parallelism degrees(int tp, int cp, int dp) {
  Parallelism p;
  p.tp = tp;
  p.cp = cp;
  p.dp = dp;
  p.sequence_parallel = tp > 1;
  return p;
}

void set_chip(Plan& plan, const std::string& name) {
  plan.system.groups.front().chip = load_chip(name);
}

TEST(ExportLimits, MegatronWantsTwoPiecesOfASequenceForEachContextRank) {
  Plan plan = llama_like(degrees(1, 4, 1));
  plan.seq_len = 1024;
  EXPECT_THAT(export_megatron(plan).warnings, Not(Contains(HasSubstr("multiple of"))));
  plan.seq_len = 1020;  // A multiple of 4, not of 8.
  EXPECT_THAT(export_megatron(plan).warnings, Contains(HasSubstr("multiple of 8")));
}

TEST(ExportLimits, MegatronWantsWholeHeadsOnEachTensorRank) {
  EXPECT_THAT(export_megatron(llama_like(degrees(4, 1, 1))).warnings,
              Not(Contains(HasSubstr("refuses"))));
  EXPECT_THAT(export_megatron(llama_like(degrees(8, 1, 1))).warnings,
              Contains(HasSubstr("4 key and value heads over 8")));
  EXPECT_THAT(export_megatron(llama_like(degrees(16, 1, 1))).warnings,
              Contains(HasSubstr("8 attention heads over 16")));
}

TEST(ExportLimits, MegatronHasWindowsOverContextRanksByGatheringAlone) {
  Plan plan = llama_like(degrees(1, 2, 1));
  EXPECT_THAT(export_megatron(plan).text, Not(HasSubstr("--cp-comm-type")));
  plan.shape->window = 512;
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--cp-comm-type all_gather"));
  EXPECT_THAT(export_megatron(plan).warnings, Contains(HasSubstr("windowed")));
}

TEST(ExportLimits, MegatronIsToldToKeepGradientsInBf16) {
  Plan plan = llama_like(degrees(1, 1, 2));
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--accumulate-allreduce-grads-in-fp32"));
  plan.precision.gradient = Dtype::bf16;
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--grad-reduce-in-bf16"));
  EXPECT_THAT(export_megatron(plan).text, Not(HasSubstr("--accumulate-allreduce")));
}

TEST(ExportLimits, MegatronRecomputesLayerNormsInFp8ByAnotherRecipe) {
  Parallelism p;
  p.recompute = Recompute::selective;
  Plan plan = llama_like(p);
  EXPECT_THAT(export_megatron(plan).text, Not(HasSubstr("--fp8-recipe")));
  plan.precision.matmul = Dtype::f8;
  const std::string text = export_megatron(plan).text;
  EXPECT_THAT(text, HasSubstr("--fp8-format hybrid"));
  EXPECT_THAT(text, HasSubstr("--fp8-recipe tensorwise"));
}

TEST(ExportLimits, MegatronRoutesToOneExpertBeforeItsSoftmax) {
  Plan plan = with_experts(degrees(1, 1, 8));
  EXPECT_THAT(export_megatron(plan).text, Not(HasSubstr("--moe-router-pre-softmax")));
  plan.shape->top_k = 1;
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--moe-router-pre-softmax"));
}

TEST(ExportLimits, MegatronHasNoBiasesInExpertsThatAreSplit) {
  Plan plan = with_experts(degrees(2, 1, 4));
  EXPECT_THAT(export_megatron(plan).warnings, Not(Contains(HasSubstr("biases"))));
  plan.shape->linear_bias = true;
  EXPECT_THAT(export_megatron(plan).warnings, Contains(HasSubstr("biases")));
  plan.parallel.whole_experts = true;
  EXPECT_THAT(export_megatron(plan).warnings, Not(Contains(HasSubstr("biases"))));
}

TEST(ExportLimits, MegatronDoesWithoutTransformerEngineOnOldChips) {
  Parallelism p = degrees(1, 1, 4);
  p.recompute = Recompute::selective;
  Plan plan = with_experts(p);
  set_chip(plan, "a100-sxm-80gb");
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--moe-grouped-gemm"));
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("moe_act"));
  EXPECT_THAT(export_megatron(plan).text, Not(HasSubstr("--transformer-impl")));
  for (const char* old : {"v100-sxm-16gb", "t4"}) {
    set_chip(plan, old);
    const Export out = export_megatron(plan);
    EXPECT_THAT(out.text, HasSubstr("--transformer-impl local")) << old;
    EXPECT_THAT(out.text, Not(HasSubstr("--moe-grouped-gemm"))) << old;
    EXPECT_THAT(out.text, Not(HasSubstr("moe_act"))) << old;
    EXPECT_THAT(out.warnings, Contains(HasSubstr("compute capability"))) << old;
  }
}

TEST(ExportLimits, TrainersAreRefusedOnChipsTheyDoNotRunOn) {
  for (const char* name : {"tpu-v5p", "sn40l", "wse-2"}) {
    Plan plan = llama_like(degrees(1, 1, 4));
    plan.model_source = "llama-3-8b";
    set_chip(plan, name);
    for (const std::string& target : export_targets()) {
      if (target == "maxtext" && std::string(name) == "tpu-v5p") {
        EXPECT_THAT(export_plan(plan, target).text, HasSubstr("hardware: tpu"));
        continue;
      }
      try {
        export_plan(plan, target);
        ADD_FAILURE() << target << " on " << name;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(target + " does not run on " + name));
      }
    }
  }
  Plan plan = llama_like(degrees(1, 1, 4));
  set_chip(plan, "mi300x");
  EXPECT_THAT(export_megatron(plan).warnings, Contains(HasSubstr("AMD")));
  set_chip(plan, "h100-sxm");
  plan.model_source = "llama-3-8b";
  for (const std::string& target : export_targets()) {
    EXPECT_THAT(export_plan(plan, target).warnings, Not(Contains(HasSubstr("GPUs")))) << target;
  }
}

TEST(ExportLimits, MegatronsMadeUpDataAreNotEvaluated) {
  // Its default is a hundred iterations of evaluation behind the ten of training.
  EXPECT_THAT(export_megatron(llama_like({})).text, HasSubstr("--eval-iters 0"));
}

/// data_types.grad_accum_dtype, "" where there is none.
std::string gradient_type(const Plan& plan) {
  const Export out = export_deepspeed(plan);
  const Document document = Document::parse(out.text, Document::Syntax::json, "ds.json");
  const Value types = document.root()["data_types"];
  return types.exists() ? std::string(types["grad_accum_dtype"].as_string()) : "";
}

TEST(ExportLimits, DeepspeedTakesNoOtherGradientsWithoutZero) {
  for (const Zero zero : {Zero::none, Zero::optimizer, Zero::parameters}) {
    Parallelism p = degrees(1, 1, 4);
    p.zero = zero;
    Plan plan = made_plan(p, 4);
    const bool none = zero == Zero::none;
    EXPECT_EQ(gradient_type(plan), "fp32");
    plan.precision.gradient = Dtype::bf16;
    EXPECT_EQ(gradient_type(plan), none ? "fp32" : "");
    plan.precision.matmul = plan.precision.weight = Dtype::f16;
    plan.precision.gradient = Dtype::f32;
    EXPECT_EQ(gradient_type(plan), none ? "" : "fp32");
    EXPECT_EQ(export_deepspeed(plan).warnings.size(), none ? 1U : 0U);
    plan.precision.gradient = Dtype::f16;
    EXPECT_EQ(gradient_type(plan), "");
    plan.precision.matmul = plan.precision.weight = plan.precision.gradient = Dtype::f32;
    EXPECT_EQ(gradient_type(plan), "");
  }
}

TEST(ExportLimits, TorchtitanSplitsExpertsAsThePlanDoes) {
  Parallelism p = degrees(2, 1, 4);
  p.ep = 4;
  p.zero = Zero::optimizer;
  const std::string text = export_torchtitan(with_experts(p)).text;
  EXPECT_THAT(text, HasSubstr("expert_parallel_degree = 4\nexpert_tensor_parallel_degree = 2\n"));
  Parallelism whole = p;
  whole.whole_experts = true;
  EXPECT_THAT(export_torchtitan(with_experts(whole)).text,
              HasSubstr("expert_parallel_degree = 4\nexpert_tensor_parallel_degree = 1\n"));
  p.cp = 8;
  EXPECT_THAT(export_torchtitan(with_experts(p)).warnings, Contains(HasSubstr("must divide it")));
}

TEST(ExportLimits, TorchtitanComputesInWhatItShards) {
  Plan plan = llama_like(degrees(1, 1, 4));
  EXPECT_THAT(export_torchtitan(plan).text, HasSubstr("mixed_precision_param = \"bfloat16\""));
  plan.precision.matmul = Dtype::f32;
  EXPECT_THAT(export_torchtitan(plan).text, HasSubstr("mixed_precision_param = \"float32\""));
  plan.precision.matmul = Dtype::f16;
  EXPECT_THAT(export_torchtitan(plan).warnings, Contains(HasSubstr("no float16")));
  plan = llama_like(degrees(4, 1, 1));
  EXPECT_THAT(export_torchtitan(plan).warnings, Contains(HasSubstr("training.dtype")));
  plan = llama_like(degrees(4, 2, 1));
  EXPECT_THAT(export_torchtitan(plan).warnings, Not(Contains(HasSubstr("training.dtype"))));
}

TEST(ExportLimits, TorchtitanWantsTwoPiecesOfASequenceForEachRankThatHoldsSome) {
  Plan plan = llama_like(degrees(2, 4, 1));
  plan.seq_len = 1024;
  EXPECT_THAT(export_torchtitan(plan).warnings, Not(Contains(HasSubstr("multiple of"))));
  plan.seq_len = 1032;  // A multiple of 8, not of 16.
  EXPECT_THAT(export_torchtitan(plan).warnings, Contains(HasSubstr("multiple of 16")));
}

TEST(ExportLimits, MegatronIsWarnedOfWhatRoutesTokens) {
  EXPECT_THAT(export_megatron(with_experts({})).warnings,
              Contains(HasSubstr("--moe-router-score-function")));
  EXPECT_THAT(export_megatron(llama_like({})).warnings, Not(Contains(HasSubstr("router"))));
}

TEST(ExportLimits, TorchtitanHasOneTableForTheModel) {
  Plan plan = llama_like({});
  plan.precision.matmul = Dtype::f8;
  const std::string text = export_torchtitan(plan).text;
  const std::size_t table = text.find("\n[model]\n");
  ASSERT_NE(table, std::string::npos);
  EXPECT_EQ(text.find("[model]", table + 2), std::string::npos);
  EXPECT_LT(table, text.find("converters = "));
  EXPECT_LT(text.find("converters = "), text.find("[training]"));
  plan.shape->blocks = 80;
  plan.shape->hidden = 8192;
  plan.shape->vocab = 128256;
  EXPECT_THAT(export_torchtitan(plan).text, HasSubstr("name = \"llama3\"\nflavor = \"70B\"\n"));
}

}  // namespace
}  // namespace braid

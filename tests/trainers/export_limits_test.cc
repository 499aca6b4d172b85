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

#include "gpt_plan.h"
#include "report/plan_maker.h"

// What trainers refuse or take otherwise than the plan means it, as their sources say:
// Megatron-LM's megatron/training/arguments.py (validate_args) and
// megatron/core/transformer/transformer_config.py (__post_init__), Transformer Engine's
// context_parallel.py and DeepSpeed's deepspeed/runtime/engine.py (_do_optimizer_sanity_check).

namespace braid {
namespace {

using test::made_plan;
using test::megatron_refuses;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Plan llama_like(const Parallelism& parallel) { return test::gpt_plan(parallel); }

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
  EXPECT_EQ(megatron_refuses(plan), "");
  plan.seq_len = 1020;  // A multiple of 4, not of 8.
  EXPECT_THAT(megatron_refuses(plan), HasSubstr("multiple of 8"));
}

TEST(ExportLimits, MegatronWantsWholeHeadsOnEachTensorRank) {
  EXPECT_EQ(megatron_refuses(llama_like(degrees(4, 1, 1))), "");
  EXPECT_THAT(export_megatron(llama_like(degrees(8, 1, 1))).warnings,
              Contains(HasSubstr("4 key and value heads over 8")));
  EXPECT_THAT(megatron_refuses(llama_like(degrees(16, 1, 1))),
              HasSubstr("8 attention heads over 16"));
  Plan plan = llama_like(degrees(4, 1, 1));
  plan.shape->kv_heads = 6;
  plan.shape->heads = 12;
  EXPECT_THAT(megatron_refuses(plan), HasSubstr("6 key and value heads over 4"));
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
  // Norms are Transformer Engine's own, computed with the GEMM behind them, but before experts.
  EXPECT_THAT(text, Not(HasSubstr("layernorm")));
  plan = with_experts(p);
  plan.precision.matmul = Dtype::f8;
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--fp8-recipe tensorwise"));
  EXPECT_THAT(export_megatron(plan).text,
              HasSubstr("--recompute-modules core_attn layernorm moe_act"));
}

TEST(ExportLimits, MegatronRoutesToOneExpertBeforeItsSoftmax) {
  Plan plan = with_experts(degrees(1, 1, 8));
  EXPECT_THAT(export_megatron(plan).text, Not(HasSubstr("--moe-router-pre-softmax")));
  plan.shape->top_k = 1;
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--moe-router-pre-softmax"));
}

TEST(ExportLimits, MegatronHasNoBiasesInExpertsThatAreSplit) {
  Plan plan = with_experts(degrees(2, 1, 4));
  EXPECT_EQ(megatron_refuses(plan), "");
  plan.shape->expert_bias = true;
  EXPECT_THAT(megatron_refuses(plan), HasSubstr("biases"));
  plan.parallel.whole_experts = true;
  EXPECT_EQ(megatron_refuses(plan), "");
}

TEST(ExportLimits, MegatronTrainsShardedExpertsWithSequenceParallelismAlone) {
  Plan plan = with_experts(degrees(2, 1, 4));
  plan.parallel.sequence_parallel = false;
  EXPECT_THAT(megatron_refuses(plan), HasSubstr("--sequence-parallel on"));
}

TEST(ExportLimits, MegatronKeepsNoWeightsOnTheHost) {
  Plan plan = llama_like(degrees(1, 1, 4));
  plan.parallel.offload_weights = true;
  EXPECT_THAT(megatron_refuses(plan), HasSubstr("host memory"));
  plan.parallel.offload_weights = false;
  plan.parallel.offload_optimizer = true;
  EXPECT_THAT(megatron_refuses(plan), HasSubstr("--zero 1"));
  plan.parallel.zero = Zero::optimizer;
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--optimizer-cpu-offload"));
  plan.parallel.offload_activations = true;
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--fine-grained-activation-offloading"));
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("export NVTE_CPU_OFFLOAD_V1=1"));
}

TEST(ExportLimits, MegatronOverlapsGradientsWhereThePlanDoes) {
  Plan plan = llama_like(degrees(1, 1, 4));
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--overlap-grad-reduce"));
  plan.trainer.does.overlapped_gradients = false;
  EXPECT_THAT(export_megatron(plan).text, Not(HasSubstr("--overlap-grad-reduce")));
}

TEST(ExportLimits, MegatronPutsDataOutermostWhereExpertsGroupsAreAsLarge) {
  Parallelism p = degrees(2, 2, 2);
  p.pp = 2;
  p.order = {Axis::tp, Axis::cp, Axis::pp, Axis::dp};
  // Without experts their tensor-parallel ranks are those of tp and cp.
  const std::string dense = export_megatron(llama_like(p)).text;
  EXPECT_THAT(dense, HasSubstr("--use-tp-pp-dp-mapping"));
  EXPECT_THAT(dense, HasSubstr("--expert-tensor-parallel-size 4"));
  p.ep = 4;
  EXPECT_THAT(export_megatron(with_experts(p)).text, Not(HasSubstr("--use-tp-pp-dp-mapping")));
  EXPECT_THAT(export_megatron(with_experts(p)).warnings, Contains(HasSubstr("order of ranks")));
  p.ep = 2;
  EXPECT_THAT(export_megatron(with_experts(p)).text, HasSubstr("--use-tp-pp-dp-mapping"));
}

TEST(ExportLimits, MegatronStartsAsManyProcessesOnEveryNode) {
  const auto line = [](Parallelism p, std::int64_t per_node, std::int64_t per_host = 0) {
    Plan plan = llama_like(p);
    plan.system.groups.front().devices_per_node = per_node;
    plan.system.groups.front().devices_per_host = per_host;
    const std::string text = export_megatron(plan).text;
    return text.substr(text.find("--nproc-per-node"), 30);
  };
  EXPECT_THAT(line(degrees(1, 1, 12), 8), HasSubstr("--nproc-per-node 6 --nnodes 2"));
  EXPECT_THAT(line(degrees(4, 1, 3), 8), HasSubstr("--nproc-per-node 4 --nnodes 3"));
  EXPECT_THAT(line(degrees(1, 1, 15), 4), HasSubstr("--nproc-per-node 3 --nnodes 5"));
  EXPECT_THAT(line(degrees(2, 1, 72), 72, 4), HasSubstr("--nproc-per-node 4 --nnodes 36"));
  EXPECT_THAT(line(degrees(1, 1, 3), 8), HasSubstr("--nproc-per-node 3 --nnodes 1"));
}

TEST(ExportLimits, MegatronsGemmsAreInThePlansPrecision) {
  Plan plan = llama_like({});
  plan.precision.matmul = Dtype::f32;
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("export NVIDIA_TF32_OVERRIDE=0"));
  plan.precision.matmul = Dtype::tf32;
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1"));
  plan.precision.matmul = Dtype::f8;
  EXPECT_THAT(export_megatron(plan).warnings, Contains(HasSubstr("2 bytes a parameter")));
  plan.parallel.zero = Zero::optimizer;
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--fp8-param-gather"));
}

TEST(ExportLimits, MegatronIsShownADryRun) {
  EXPECT_THAT(export_megatron(llama_like({})).text, HasSubstr("--fake-process-group"));
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
    EXPECT_THAT(out.text, HasSubstr("--no-persist-layer-norm")) << old;
    EXPECT_THAT(out.text, HasSubstr("--no-rope-fusion")) << old;
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
  for (const std::string& target : exported_trainers()) {
    if (target.starts_with("torchtitan")) continue;  // It has no model of these sizes.
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
    // The engine refuses other gradients than the weights' without ZeRO.
    EXPECT_EQ(gradient_type(plan), none ? "" : "fp32");
    EXPECT_EQ(export_deepspeed(plan).warnings.size(), none ? 1U : 0U);
    plan.precision.gradient = Dtype::bf16;
    EXPECT_EQ(gradient_type(plan), "");
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

TEST(ExportLimits, DeepspeedRefusesInOneLineWhatItWouldNotRun) {
  struct Case {
    const char* says;
    Parallelism parallel;
  };
  std::vector<Case> cases;
  const auto add = [&](const char* says, const auto& change) {
    change(cases.emplace_back(Case{says, degrees(1, 1, 4)}).parallel);
  };
  add("pipelines exclude ZeRO-2", [](Parallelism& p) { p.pp = 2, p.zero = Zero::gradients; });
  add("no sequence parallel groups", [](Parallelism& p) { p.pp = p.cp = 2; });
  add("only under ZeRO", [](Parallelism& p) { p.offload_optimizer = true; });
  add("only under ZeRO-3", [](Parallelism& p) {
    p.zero = Zero::gradients;
    p.offload_weights = true;
  });
  add("expert parallelism under ZeRO-3", [](Parallelism& p) {
    p.ep = p.tp = 2;
    p.zero = Zero::parameters;
  });
  add("excludes offload", [](Parallelism& p) {
    p.ep = p.tp = 2;
    p.zero = Zero::optimizer;
    p.offload_optimizer = true;
  });
  add("tensor beside sequence", [](Parallelism& p) { p.ep = p.tp = p.cp = 2; });
  for (const Case& each : cases) {
    try {
      export_deepspeed(made_plan(each.parallel, 16));
      ADD_FAILURE() << each.says;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(each.says));
    }
  }
}

TEST(ExportLimits, DeepspeedIsToldTheAxesThatItHas) {
  Parallelism p = degrees(2, 1, 4);
  p.ep = 4;
  p.zero = Zero::optimizer;
  const Document folded =
      Document::parse(export_deepspeed(made_plan(p, 8)).text, Document::Syntax::json, "ds.json");
  EXPECT_EQ(folded.root()["tensor_parallel"]["autotp_size"].as_int(), 2);
  EXPECT_EQ(folded.root()["expert_parallel"]["autoep_size"].as_int(), 4);
  const Document ulysses = Document::parse(export_deepspeed(made_plan(degrees(1, 2, 4), 8)).text,
                                           Document::Syntax::json, "ds.json");
  EXPECT_EQ(ulysses.root()["sequence_parallel_size"].as_int(), 2);
}

TEST(ExportLimits, DeepspeedStartsOneProcessForEachDevice) {
  Parallelism p = degrees(1, 1, 4);
  Plan plan = made_plan(p, 4);
  plan.system.groups.front().devices_per_node = 8;
  EXPECT_THAT(export_deepspeed(plan).launch, HasSubstr("deepspeed --num_gpus=4 train.py"));
  plan.parallel.dp = 20;
  EXPECT_THAT(export_deepspeed(plan).launch,
              HasSubstr("2 lines \"HOST slots=8\", then \"HOST slots=4\""));
  // Of a rack, each tray is a computer.
  plan.system.groups.front().devices_per_host = 4;
  plan.parallel.dp = 8;
  EXPECT_THAT(export_deepspeed(plan).launch, HasSubstr("hostfile: 2 lines \"HOST slots=4\""));
  plan.parallel.dp = 6;
  EXPECT_THAT(export_deepspeed(plan).launch,
              HasSubstr("hostfile: a line \"HOST slots=4\", then \"HOST slots=2\""));
}

TEST(ExportLimits, DeepspeedRunsWhatItsFileSays) {
  Plan plan = made_plan(degrees(1, 1, 4), 4);
  plan.system.groups.front().devices_per_node = 8;
  plan.precision = parse_precision("tf32");
  EXPECT_THAT(export_deepspeed(plan).launch,
              testing::StartsWith("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 deepspeed --num_gpus=4"));
  plan.parallel.dp = 16;
  EXPECT_THAT(export_deepspeed(plan).launch,
              HasSubstr(".deepspeed_env: TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1"));
  plan.precision = parse_precision("fp8");
  EXPECT_THAT([&] { export_deepspeed(plan); },
              testing::ThrowsMessage<Error>(HasSubstr("DeepSpeed has no precision fp8")));
}

TEST(ExportLimits, MegatronIsWarnedOfWhatRoutesTokens) {
  Plan plan = with_experts({});
  EXPECT_THAT(export_megatron(plan).warnings, Contains(HasSubstr("--moe-router-score-function")));
  plan.shape->router_score = "sigmoid";
  EXPECT_THAT(export_megatron(plan).warnings, Not(Contains(HasSubstr("router"))));
  EXPECT_THAT(export_megatron(plan).text, HasSubstr("--moe-router-score-function sigmoid"));
  EXPECT_THAT(export_megatron(llama_like({})).warnings, Not(Contains(HasSubstr("router"))));
}

}  // namespace
}  // namespace braid

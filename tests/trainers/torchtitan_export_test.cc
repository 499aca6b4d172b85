#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/trainers/torchtitan/export.h"
#include "braid/trainers/torchtitan/models.h"
#include "braid/trainers/torchtitan/recipe.h"

#include "report/plan_maker.h"

// What torchtitan 0.2.2 (config/job_config.py, distributed/parallel_dims.py,
// models/*/infra/parallelize.py) and its later versions (trainer.py, models/common/decoder.py)
// refuse or take otherwise than the plan means it.

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Parallelism titan_format(int tp, int pp, int dp, int cp = 1, int ep = 1) {
  Parallelism p;
  p.tp = tp;
  p.pp = pp;
  p.dp = dp;
  p.cp = cp;
  p.ep = ep;
  p.num_micro_batches = 8;
  p.sequence_parallel = tp > 1;
  p.zero = Zero::parameters;
  return p;
}

/// A plan of made-up costs for a model of the zoo.
Plan titan_plan(const std::string& model, const Parallelism& parallel) {
  const auto shape = model_shape(load_model(model, {}));
  EXPECT_TRUE(shape) << model;
  Plan plan = test::made_plan(parallel, static_cast<int>(shape->blocks));
  plan.model = plan.model_source = model;
  plan.shape = shape;
  return plan;
}

std::string refusal_of(const auto& write, const Plan& plan) {
  try {
    write(plan, "");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string toml_refuses(const Plan& plan) { return refusal_of(export_torchtitan, plan); }
std::string recipe_refuses(const Plan& plan) { return refusal_of(export_torchtitan_recipe, plan); }

TEST(TorchtitanExport, NamesTheFlavorOfEveryModelThatItHas) {
  const std::vector<std::pair<std::string, std::string>> known = {
      {"llama-3-8b", "llama3/8B"},         {"llama-3-70b", "llama3/70B"},
      {"llama-3-405b", "llama3/405B"},     {"qwen3-8b", "qwen3/8B"},
      {"qwen3-30b-a3b", "qwen3/30B-A3B"},  {"qwen3-235b-a22b", "qwen3/235B-A22B"},
      {"deepseek-v2", "deepseek_v3/236B"}, {"deepseek-v3", "deepseek_v3/671B"},
      {"gpt-oss-120b", "gpt_oss/120b"}};
  std::set<std::string> named;
  for (const ZooEntry& entry : zoo_models()) {
    const auto shape = model_shape(load_model(entry.name, {}));
    const TorchtitanModel* model = shape ? torchtitan_model_of(*shape) : nullptr;
    if (model == nullptr) continue;
    named.insert(entry.name + " " + std::string(model->name) + "/" + std::string(model->flavor));
  }
  std::set<std::string> expected;
  for (const auto& [ours, theirs] : known) expected.insert(ours + " " + theirs);
  EXPECT_EQ(named, expected);
}

TEST(TorchtitanExport, EverySizeDecidesOnTheFlavor) {
  using Change = void (*)(ModelShape&);
  const ModelShape shape = *titan_plan("llama-3-8b", {}).shape;
  EXPECT_NE(torchtitan_model_of(shape), nullptr);
  for (const Change change : std::vector<Change>{
           [](ModelShape& s) { s.blocks = 31; }, [](ModelShape& s) { s.hidden = 8192; },
           [](ModelShape& s) { s.heads = 16; }, [](ModelShape& s) { s.kv_heads = 32; },
           [](ModelShape& s) { s.head_dim = 64; }, [](ModelShape& s) { s.inner = 11008; },
           [](ModelShape& s) { s.vocab = 32000; }, [](ModelShape& s) { s.qk_norm = true; },
           [](ModelShape& s) { s.qkv_bias = true; },
           [](ModelShape& s) { s.tied_embeddings = true; }, [](ModelShape& s) { s.window = 4096; },
           [](ModelShape& s) { s.experts = 8; }, [](ModelShape& s) { s.mtp_modules = 1; },
           [](ModelShape& s) { s.rms = false; }, [](ModelShape& s) { s.norms = "around"; },
           [](ModelShape& s) { s.positions = 2048; }}) {
    ModelShape other = shape;
    change(other);
    EXPECT_EQ(torchtitan_model_of(other), nullptr);
  }
  // What costs no time decides nothing, and is said.
  ModelShape other = shape;
  other.rotary_base = 10000;
  ASSERT_NE(torchtitan_model_of(other), nullptr);
  EXPECT_THAT(torchtitan_differences(*torchtitan_model_of(other), other),
              Contains(HasSubstr("rotary base of 500000")));
  EXPECT_THAT(torchtitan_differences(*torchtitan_model_of(shape), shape),
              Not(Contains(HasSubstr("rotary base"))));
}

TEST(TorchtitanExport, RefusesModelsThatItHasNot) {
  EXPECT_THAT(toml_refuses(titan_plan("gpt2-xl", {})),
              AllOf(HasSubstr("has no model of gpt2-xl's sizes"), HasSubstr("llama3 (8B")));
  EXPECT_THAT(toml_refuses(titan_plan("deepseek-v3-mtp", {})), HasSubstr("without mtp_num_layers"));
  EXPECT_THAT(toml_refuses(titan_plan("bert-large", {})), HasSubstr("not causal"));
  Plan plan = titan_plan("llama-3-8b", {});
  plan.shape.reset();
  EXPECT_THAT(toml_refuses(plan), HasSubstr("has no model of"));
  plan.seq_len = 0;
  EXPECT_THAT(toml_refuses(plan), HasSubstr("no sequence"));
}

TEST(TorchtitanExport, ShardsOrReplicates) {
  Parallelism p = titan_format(1, 1, 4);
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-8b", p)).text,
              AllOf(HasSubstr("data_parallel_shard_degree = 4"),
                    HasSubstr("fsdp_reshard_after_forward = \"always\"")));
  p.replicate = 2;
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-8b", p)).text,
              AllOf(HasSubstr("data_parallel_replicate_degree = 2"),
                    HasSubstr("data_parallel_shard_degree = 2")));
  p.replicate = 1;
  for (const Zero zero : {Zero::optimizer, Zero::gradients}) {
    p.zero = zero;
    const Export kept = export_torchtitan(titan_plan("llama-3-8b", p));
    EXPECT_THAT(kept.text, AllOf(HasSubstr("data_parallel_shard_degree = 4"),
                                 HasSubstr("fsdp_reshard_after_forward = \"never\"")));
    EXPECT_THAT(kept.warnings, Contains(HasSubstr("keeps gathered parameters")));
  }
  p.zero = Zero::none;
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-8b", p)).text,
              HasSubstr("data_parallel_replicate_degree = 4"));
  p.tp = 2;
  p.sequence_parallel = true;
  EXPECT_THAT(toml_refuses(titan_plan("llama-3-8b", p)), HasSubstr("--zero 2"));
  // Context-parallel ranks share the state, and their groups may be copied.
  p.cp = 2;
  EXPECT_EQ(toml_refuses(titan_plan("llama-3-8b", p)), "");
  // Later versions replicate beside anything.
  p.cp = 1;
  EXPECT_EQ(recipe_refuses(titan_plan("llama-3-8b", p)), "");
}

TEST(TorchtitanExport, NamesTheModulesOfEachStage) {
  Parallelism p = titan_format(1, 4, 2);
  Plan plan = titan_plan("llama-3-8b", p);
  const std::string text = export_torchtitan(plan).text;
  EXPECT_THAT(text, HasSubstr("module_fqns_per_model_part = [\n  [\"tok_embeddings\", "
                              "\"layers.0\", "));
  EXPECT_THAT(text, HasSubstr("  [\"layers.8\", \"layers.9\", "));
  EXPECT_THAT(text, HasSubstr("\"layers.31\", \"norm\", \"output\"],\n]\n"));
  EXPECT_THAT(export_torchtitan_recipe(plan).text, HasSubstr("\"norm\", \"lm_head\"],\n"));
  p.pp = 2;
  p.vp = 2;
  p.schedule = ScheduleKind::interleaved;
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-8b", p)).text,
              AllOf(HasSubstr("\"Interleaved1F1B\""), HasSubstr("  [\"layers.16\", ")));
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-8b", titan_format(1, 1, 2))).text,
              Not(HasSubstr("module_fqns")));
}

TEST(TorchtitanExport, PassesKeysAndValuesRoundAsThePlanDoes) {
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-8b", titan_format(1, 1, 2, 2))).text,
              HasSubstr("context_parallel_rotate_method = \"alltoall\""));
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-8b", titan_format(1, 1, 2))).text,
              Not(HasSubstr("rotate")));
}

TEST(TorchtitanExport, ComputesInThePlansPrecision) {
  Plan plan = titan_plan("llama-3-8b", titan_format(1, 1, 4));
  EXPECT_THAT(export_torchtitan(plan).text, HasSubstr("mixed_precision_param = \"bfloat16\""));
  plan.precision.matmul = Dtype::f32;
  EXPECT_THAT(export_torchtitan(plan).text, HasSubstr("mixed_precision_param = \"float32\""));
  EXPECT_THAT(export_torchtitan(plan).launch, Not(HasSubstr("TF32")));
  plan.precision.matmul = Dtype::tf32;
  EXPECT_THAT(export_torchtitan(plan).launch,
              HasSubstr("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 torch"));
  plan.precision.matmul = Dtype::f16;
  EXPECT_THAT(toml_refuses(plan), HasSubstr("has no precision"));
  plan.precision.matmul = Dtype::f8;
  EXPECT_THAT(export_torchtitan(plan).text,
              AllOf(HasSubstr("converters = [\"quantize.linear.float8\"]\n"),
                    HasSubstr("[compile]\nenable = true\n")));
  EXPECT_THAT(export_torchtitan_recipe(plan).text, HasSubstr("Float8LinearConverter.Config("));
  // Without FSDP nothing mixes precisions where layers or stages are parallel.
  plan = titan_plan("llama-3-8b", titan_format(4, 1, 1));
  EXPECT_THAT(export_torchtitan(plan).text, HasSubstr("\ndtype = \"bfloat16\"\n"));
  EXPECT_THAT(export_torchtitan(plan).warnings, Contains(HasSubstr("training.dtype")));
  plan = titan_plan("llama-3-8b", titan_format(4, 1, 1, 2));
  EXPECT_THAT(export_torchtitan(plan).text, Not(HasSubstr("\ndtype = ")));
}

TEST(TorchtitanExport, SplitsExpertsAsThePlanDoes) {
  Parallelism p = titan_format(2, 1, 4, 1, 4);
  EXPECT_THAT(export_torchtitan(titan_plan("qwen3-30b-a3b", p)).text,
              HasSubstr("expert_parallel_degree = 4\nexpert_tensor_parallel_degree = 2\n"));
  EXPECT_THAT(recipe_refuses(titan_plan("qwen3-30b-a3b", p)), HasSubstr("whole experts"));
  p.whole_experts = true;
  p.ep = 8;
  EXPECT_THAT(export_torchtitan(titan_plan("qwen3-30b-a3b", p)).text,
              HasSubstr("expert_parallel_degree = 8\nexpert_tensor_parallel_degree = 1\n"));
  EXPECT_EQ(recipe_refuses(titan_plan("qwen3-30b-a3b", p)), "");
}

/// A plan that torchtitan refuses, why, and whether its later versions do.
struct TitanRefusal {
  const char* model;
  Parallelism form;
  const char* says;
  bool later = false;
};

TEST(TorchtitanExport, RefusesInOneLineWhatItWouldNotStart) {
  Parallelism few = titan_format(1, 4, 2);
  few.num_micro_batches = 3;
  Parallelism replicated = titan_format(1, 1, 4, 1, 2);
  replicated.zero = Zero::none;
  Parallelism moved = titan_format(1, 1, 1);
  moved.offload_optimizer = true;
  Parallelism activations = titan_format(1, 1, 2);
  activations.offload_activations = true;
  Parallelism whole = titan_format(2, 1, 1, 1, 2);
  whole.whole_experts = true;
  Parallelism unsharded = titan_format(2, 1, 2);
  unsharded.whole_experts = true;
  const std::vector<TitanRefusal> all = {
      {"qwen3-30b-a3b", unsharded, "divides experts that are not spread", true},
      {"qwen3-8b", titan_format(1, 2, 2), "no pipelines for qwen3"},
      {"gpt-oss-120b", titan_format(1, 2, 2), "no pipelines for gpt_oss"},
      {"deepseek-v3", titan_format(1, 1, 4, 2), "no context parallelism for deepseek_v3"},
      {"gpt-oss-120b", titan_format(1, 1, 4, 2), "no context parallelism for gpt_oss"},
      {"llama-3-8b", titan_format(16, 1, 1), "8 of keys and values", true},
      {"llama-3-8b", few, "3 for 4 stages", true},
      {"qwen3-30b-a3b", replicated, "spreads experts over the 1 ranks", true},
      {"deepseek-v3", whole, "only where it shards the state"},
      {"llama-3-8b", moved, "only where it shards it"},
      {"llama-3-8b", activations, "keeps activations on the device", true}};
  for (const TitanRefusal& one : all) {
    const Plan plan = titan_plan(one.model, one.form);
    EXPECT_THAT(toml_refuses(plan), AllOf(HasSubstr("torchtitan 0.2.2 "), HasSubstr(one.says)));
    EXPECT_EQ(recipe_refuses(plan).empty(), !one.later) << one.says << ": " << recipe_refuses(plan);
  }
}

TEST(TorchtitanExport, WantsWholePiecesOfASequence) {
  Plan plan = titan_plan("llama-3-8b", titan_format(2, 1, 1, 4));
  plan.seq_len = 1024;
  EXPECT_EQ(toml_refuses(plan), "");
  plan.seq_len = 1032;  // A multiple of 8, not of 16.
  EXPECT_THAT(toml_refuses(plan), HasSubstr("multiple of 16"));
  EXPECT_THAT(recipe_refuses(plan), HasSubstr("multiple of 16"));
  plan.seq_len = 131072 * 2;
  EXPECT_EQ(toml_refuses(plan), "");
  EXPECT_THAT(recipe_refuses(plan), HasSubstr("up to 131072 tokens"));
}

TEST(TorchtitanExport, SaysWhatRunsInAnotherWay) {
  Parallelism p = titan_format(2, 2, 2);
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-405b", p)).warnings,
              Not(Contains(HasSubstr("order of ranks"))));
  p.order = {Axis::dp, Axis::tp, Axis::cp, Axis::pp};
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-405b", p)).warnings,
              Contains(HasSubstr("order of ranks")));
  p = titan_format(2, 1, 2);
  p.sequence_parallel = false;
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-405b", p)).warnings,
              Contains(HasSubstr("always comes with sequence")));
  EXPECT_THAT(export_torchtitan_recipe(titan_plan("llama-3-405b", p)).text,
              HasSubstr("enable_sequence_parallel=False"));
  Plan plan = titan_plan("deepseek-v3", titan_format(1, 1, 8, 1, 8));
  EXPECT_THAT(export_torchtitan(plan).warnings,
              Contains(AllOf(HasSubstr("deepseek_v3/671B has"), HasSubstr("epsilon of 1e-05"))));
  EXPECT_THAT(export_torchtitan(plan).warnings,
              Contains(HasSubstr("below compute capability 9.0")));
  plan.system.groups.front().chip = load_chip("h100-sxm");
  EXPECT_THAT(export_torchtitan(plan).warnings, Not(Contains(HasSubstr("below compute"))));
  plan.precision.matmul = Dtype::f8;
  EXPECT_THAT(export_torchtitan(plan).warnings, Contains(HasSubstr("only linear layers are FP8")));
}

TEST(TorchtitanExport, HasOneTableForTheModel) {
  Plan plan = titan_plan("llama-3-8b", titan_format(1, 1, 2));
  plan.precision.matmul = Dtype::f8;
  const std::string text = export_torchtitan(plan).text;
  const std::size_t table = text.find("\n[model]\n");
  ASSERT_NE(table, std::string::npos);
  EXPECT_EQ(text.find("[model]", table + 2), std::string::npos);
  EXPECT_LT(table, text.find("converters = "));
  EXPECT_LT(text.find("converters = "), text.find("[training]"));
}

TEST(TorchtitanExport, StartsAsManyProcessesAsThePlanHasDevices) {
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-8b", titan_format(1, 1, 8))).launch,
              HasSubstr("torchrun --nproc-per-node 4 --nnodes 2 "));
  EXPECT_THAT(export_torchtitan(titan_plan("llama-3-8b", titan_format(1, 1, 8))).text,
              HasSubstr("NGPU=8 LOCAL_RANK=0 python3 -m torchtitan.train"));
}

TEST(TorchtitanRecipe, CompilesAsPython) {
  if (std::system("python3 -c pass") != 0) GTEST_SKIP() << "there is no python3";
  const auto file = std::filesystem::path(testing::TempDir()) / "braid_torchtitan_recipe.py";
  for (const Dtype matmul : {Dtype::bf16, Dtype::f8}) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      Parallelism p = titan_format(2, 2, 2);
      p.recompute = recompute;
      Plan plan = titan_plan("llama-3-8b", p);
      plan.precision.matmul = matmul;
      std::ofstream(file) << export_torchtitan_recipe(plan).text;
      EXPECT_EQ(std::system(("python3 -m py_compile " + file.string()).c_str()), 0);
    }
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace braid

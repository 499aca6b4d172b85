#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/trainers/accelerate/export.h"
#include "braid/trainers/accelerate/import.h"
#include "braid/trainers/exchange/settings.h"
#include "braid/trainers/maxtext/export.h"
#include "braid/trainers/maxtext/import.h"
#include "braid/trainers/megatron-bridge/export.h"
#include "braid/trainers/megatron-bridge/import.h"
#include "braid/trainers/registry.h"

#include "report/plan_maker.h"

// What is written for Megatron-Bridge, MaxText and Accelerate reads back as the form of the plan.

namespace braid {
namespace {

using test::made_plan;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Plan named_plan(const Parallelism& form, int blocks = 8) {
  Plan plan = made_plan(form, blocks);
  plan.model_source = "llama-3-8b";
  plan.shape.emplace();
  plan.shape->first_block = 1;
  plan.shape->blocks = blocks;
  return plan;
}

/// Runs do not say the micro-batches, which the batch makes, nor the degree of data parallelism
/// where the devices give it.
void expect_same(const Import& run, const Plan& plan) {
  Parallelism read = run.parallel;
  if (read.dp == 0) read.dp = plan.parallel.dp;
  read.num_micro_batches = plan.parallel.num_micro_batches;
  EXPECT_EQ(read, plan.parallel);
  EXPECT_THAT(run.unknown, IsEmpty());
  EXPECT_THAT(run.notes, IsEmpty());
  EXPECT_EQ(name_of(*run.precision), name_of(plan.precision));
}

std::string message_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Settings, OfPythonYamlAndCommandLinesAreRead) {
  const auto all = settings_of(
      "a.b = 4  # c = 5\nd: 'x y'\nf(g=3, h=True)\nrun.py i.j=2 \"k=7\"\nif l == 2:\nm:\n  n: 1\n");
  std::vector<std::string> names;
  for (const Setting& each : all) names.push_back(each.name + "=" + each.value);
  EXPECT_THAT(names, ElementsAre("a.b=4", "d=x y", "g=3", "h=True", "i.j=2", "n=1"));
}

TEST(Settings, TypesOfPythonAreNoValues) {
  const auto all = settings_of(
      "A: int = 16384\nB: Optional[dict[str, int]] = None\nC: int | None = 3\n"
      "def f(d: torch.dtype = torch.bfloat16, e: float = 1.5): pass\n"
      "g: one == two\nh: [1, 2]\ni: some words = x\n");
  std::vector<std::string> names;
  for (const Setting& each : all) names.push_back(each.name + "=" + each.value);
  EXPECT_THAT(names, ElementsAre("A=16384", "B=None", "C=3", "d=torch.bfloat16", "e=1.5",
                                 "g=one == two", "h=[1, 2]", "i=some words = x"));
}

TEST(BridgeImport, ConstantsWithATypeCount) {
  const Import run = import_run(
      "SEQ: int = 16384\nfrom megatron.bridge.training.config import ConfigContainer\n"
      "def llama3_8b_16k() -> ConfigContainer:\n  cfg.model.seq_length = SEQ\n  return cfg\n",
      "llama3.py");
  EXPECT_EQ(run.seq_len, 16384);
}

TEST(BridgeImport, ModelIsWhatTheLastCallNames) {
  const auto model = [](const std::string& text) {
    return import_megatron_bridge("cfg.model.seq_length = 2048\n" + text, "x.py").model;
  };
  EXPECT_EQ(model("a = AutoBridge.from_hf_pretrained('org/One', trust_remote_code=True)\n"),
            "org/One");
  EXPECT_EQ(model("HF: str = \"org/Two\"\nHF2 = HF\nAutoBridge.from_hf_pretrained(\n    HF2)\n"),
            "org/Two");
  EXPECT_EQ(model("HF_MODEL = os.environ.get(\"HF_MODEL\", \"org/Three\")\n"
                  "# from_hf_pretrained(\"org/Four\")\nAutoBridge.from_hf_pretrained(HF_MODEL)\n"),
            "org/Three");
  EXPECT_EQ(model("HF_MODEL = os.environ[\"HF_MODEL\"]\nAutoBridge.from_hf_pretrained(HF_MODEL)\n"),
            "");
  EXPECT_EQ(model("x = x\nAutoBridge.from_hf_pretrained(x)\n"), "");
}

TEST(BridgeRoundTrip, EveryFormReadsBack) {
  for (const int pp : {1, 2, 4}) {
    for (const int tp : {1, 2}) {
      for (const int vp : {1, 2}) {
        for (const Zero zero : {Zero::none, Zero::optimizer, Zero::parameters}) {
          for (const Recompute recompute :
               {Recompute::none, Recompute::selective, Recompute::full}) {
            if ((vp > 1 && pp == 1) || (zero == Zero::parameters && pp > 1)) continue;
            Parallelism p;
            p.pp = pp;
            p.tp = tp;
            p.vp = vp;
            p.dp = 2;
            p.micro_batch = 2;
            p.num_micro_batches = 8;
            p.sequence_parallel = tp > 1;
            p.zero = zero;
            p.recompute = recompute;
            if (vp > 1) p.schedule = ScheduleKind::interleaved;
            for (const int blocks : {8, 11}) {
              const Plan plan = named_plan(p, blocks);
              const Import run = import_run(export_plan(plan, "megatron-bridge").text, "x.py");
              EXPECT_EQ(run.trainer, "megatron-bridge");
              EXPECT_EQ(run.global_batch, plan.global_batch);
              EXPECT_EQ(run.seq_len, plan.seq_len);
              expect_same(run, plan);
              if (!run.chunk_blocks.empty()) {
                EXPECT_EQ(run.chunk_blocks, count_blocks(plan).per_chunk);
              }
            }
          }
        }
      }
    }
  }
}

TEST(BridgeImport, CommandLinesListWhatIsUnknownAndNameWhatIsWrong) {
  const Import run = import_run(
      "torchrun run_recipe.py --model x model.tensor_model_parallel_size=4 model.bogus=3", "x");
  EXPECT_EQ(run.parallel.tp, 4);
  EXPECT_THAT(run.unknown, ElementsAre("model.bogus=3"));
  EXPECT_THAT(message_of([] { import_run("cfg.model.tensor_model_parallel_size = many", "x.py"); }),
              HasSubstr("'many' is not a whole number"));
}

TEST(BridgeExport, CompilesAsPython) {
  if (std::system("python3 -c pass") != 0) GTEST_SKIP() << "there is no python3";
  const auto file = std::filesystem::path(testing::TempDir()) / "braid_megatron_bridge.py";
  for (const char* model : {"llama-3-8b", "of-ones-own.json"}) {
    Plan plan = named_plan({});
    plan.model_source = model;
    std::ofstream(file) << export_megatron_bridge(plan).text;
    EXPECT_EQ(std::system(("python3 -m py_compile " + file.string()).c_str()), 0) << model;
  }
  std::filesystem::remove(file);
}

TEST(MaxtextRoundTrip, EveryFormReadsBack) {
  for (const int tp : {1, 2}) {
    for (const int dp : {1, 2, 4, 8}) {
      for (const int ep : {1, 2}) {
        for (const Zero zero : {Zero::none, Zero::parameters}) {
          for (const Recompute recompute :
               {Recompute::none, Recompute::selective, Recompute::full}) {
            // Of one rank nothing is sharded; experts' ranks always share the state.
            const bool sharded = zero == Zero::parameters;
            if (dp % ep != 0 || (sharded && dp < 2) || (!sharded && ep > 1)) continue;
            Parallelism p;
            p.tp = tp;
            p.dp = dp;
            p.ep = ep;
            p.micro_batch = 3;
            p.num_micro_batches = 4;
            p.sequence_parallel = tp > 1;
            p.zero = zero;
            p.recompute = recompute;
            p.offload_optimizer = recompute == Recompute::full;
            const Plan plan = named_plan(p);
            const Import run = import_run(export_plan(plan, "maxtext").text, "x.yml");
            EXPECT_EQ(run.trainer, "maxtext");
            EXPECT_EQ(run.global_batch, plan.global_batch);
            EXPECT_EQ(run.devices, p.devices());
            Plan read = plan;
            // Slices without sharding over them hold copies.
            if (zero == Zero::parameters) read.parallel.replicate = run.parallel.replicate;
            expect_same(run, read);
          }
        }
      }
    }
  }
}

TEST(MaxtextExport, RefusesInOneLineWhatItCannotRun) {
  Parallelism p;
  p.pp = 2;
  p.num_micro_batches = 4;
  EXPECT_THAT(message_of([&] { export_plan(named_plan(p), "maxtext"); }), HasSubstr("maxtext "));
  Plan other = named_plan({});
  other.model_source = "mine.json";
  EXPECT_THAT(message_of([&] { export_plan(other, "maxtext"); }), HasSubstr("no model"));
  EXPECT_THAT(message_of([] { import_run("ici_fsdp_parallelism: 0", "x.yml"); }),
              HasSubstr("'0' is not a whole number"));
  EXPECT_THAT(import_run("ici_fsdp_parallelism: 4\nbogus: 1", "x.yml").unknown,
              ElementsAre("bogus=1"));
}

TEST(AccelerateRoundTrip, EveryFormReadsBack) {
  for (const int tp : {1, 2}) {
    for (const int dp : {2, 4, 8}) {
      for (const int replicate : {1, 2}) {
        for (const Zero zero : {Zero::none, Zero::gradients, Zero::parameters}) {
          if ((zero == Zero::none && (tp > 1 || replicate > 1)) || replicate >= dp) continue;
          Parallelism p;
          p.tp = tp;
          p.dp = dp;
          p.replicate = replicate;
          p.zero = zero;
          p.recompute = dp == 4 ? Recompute::full : Recompute::none;
          if (zero == Zero::none) p.recompute = Recompute::none;
          const Plan plan = named_plan(p);
          const Import run = import_run(export_plan(plan, "accelerate").text, "x.yaml");
          EXPECT_EQ(run.trainer, "accelerate");
          EXPECT_EQ(run.devices, p.devices());
          expect_same(run, plan);
        }
      }
    }
  }
}

TEST(AccelerateImport, PythonIsReadWithinItsBrackets) {
  const Import run = import_run(
      "x = 3\npc = ParallelismConfig(dp_replicate_size=2, dp_shard_size=4,\n  tp_size=8, odd=1)\n"
      "a = Accelerator(mixed_precision=\"bf16\", parallelism_config=pc)\n",
      "train.py");
  EXPECT_EQ(run.parallel.dp, 8);
  EXPECT_EQ(run.parallel.replicate, 2);
  EXPECT_EQ(run.parallel.tp, 8);
  EXPECT_THAT(run.unknown, ElementsAre("odd=1"));
  EXPECT_THAT(message_of([] { import_run("ParallelismConfig(tp_size=0)", "x.py"); }),
              HasSubstr("'0' is not a whole number"));
}

TEST(AccelerateImport, FirstFsdpAndDeepSpeedSayHowTheyShard) {
  const auto read = [](const std::string& settings) {
    return import_accelerate("compute_environment: LOCAL_MACHINE\n" + settings +
                                 "mixed_precision: bf16\nnum_processes: 8\n",
                             "config.yaml");
  };
  const auto zero = [&](const std::string& settings) { return read(settings).parallel.zero; };
  const std::string fsdp = "distributed_type: FSDP\nfsdp_config:\n  fsdp_use_orig_params: true\n";
  EXPECT_EQ(zero(fsdp), Zero::parameters);
  EXPECT_EQ(zero(fsdp + "  fsdp_sharding_strategy: FULL_SHARD\n"), Zero::parameters);
  EXPECT_EQ(zero(fsdp + "  fsdp_sharding_strategy: SHARD_GRAD_OP\n"), Zero::gradients);
  EXPECT_EQ(zero(fsdp + "  fsdp_sharding_strategy: 3\n"), Zero::none);
  EXPECT_EQ(zero("distributed_type: MULTI_GPU\ngpu_ids: all\n"), Zero::none);
  const Import run = read(
      "deepspeed_config:\n  deepspeed_multinode_launcher: standard\n  zero_stage: 3\n"
      "  offload_optimizer_device: cpu\n  offload_param_device: none\ndistributed_type: "
      "DEEPSPEED\n");
  EXPECT_EQ(run.parallel.zero, Zero::parameters);
  EXPECT_TRUE(run.parallel.offload_optimizer);
  EXPECT_TRUE(run.unknown.empty());
}

TEST(AccelerateImport, OneRankShardsNothing) {
  const auto zero = [](const std::string& mesh) {
    return import_accelerate(
               "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"
               "  fsdp_reshard_after_forward: false\n" +
                   mesh,
               "x.yaml")
        .parallel.zero;
  };
  const std::string one = "parallelism_config:\n  parallelism_config_dp_shard_size: 1\n";
  EXPECT_EQ(zero(one + "  parallelism_config_tp_size: 4\nnum_processes: 4\n"), Zero::none);
  EXPECT_EQ(zero(one + "  parallelism_config_cp_size: 4\nnum_processes: 4\n"), Zero::gradients);
  EXPECT_EQ(zero("num_processes: 1\n"), Zero::none);
  EXPECT_EQ(zero("num_processes: 4\n"), Zero::gradients);
}

TEST(AccelerateImport, ReadsMegatronLm) {
  const Import run = import_run(
      "compute_environment: LOCAL_MACHINE\ndistributed_type: MEGATRON_LM\nmegatron_lm_config:\n"
      "  megatron_lm_gradient_clipping: 1.0\n  megatron_lm_num_micro_batches: 4\n"
      "  megatron_lm_pp_degree: 2\n  megatron_lm_recompute_activations: true\n"
      "  megatron_lm_sequence_parallelism: true\n  megatron_lm_tp_degree: 2\n"
      "  megatron_lm_use_distributed_optimizer: true\nmixed_precision: bf16\nnum_processes: 8\n",
      "x.yaml");
  EXPECT_EQ(run.trainer, "megatron");
  EXPECT_EQ(run.parallel.tp, 2);
  EXPECT_EQ(run.parallel.pp, 2);
  EXPECT_TRUE(run.parallel.sequence_parallel);
  EXPECT_EQ(run.parallel.zero, Zero::optimizer);
  EXPECT_EQ(run.parallel.recompute, Recompute::selective);
  EXPECT_EQ(run.accumulation, 4);
  EXPECT_EQ(run.devices, 8);
  EXPECT_TRUE(run.unknown.empty());
}

TEST(AccelerateImport, ReadsItsOwnTemplates) {
  const Import ddp = import_run(
      "distributed_type: \"MULTI_GPU\"\nmixed_precision: \"bf16\"\nnum_processes: 2", "m.yaml");
  EXPECT_EQ(ddp.trainer, "accelerate");
  EXPECT_EQ(ddp.parallel.zero, Zero::none);
  EXPECT_EQ(ddp.devices, 2);
  EXPECT_FALSE(ddp.says_micro_batch);
  const Import fp8 = import_run(
      "distributed_type: \"NO\"\nmixed_precision: \"fp8\"\nfp8_config:\n  backend: TE # or MS-AMP\n"
      "  amax_history_len: 1024\n  fp8_format: E4M3\n  interval: 1\n  margin: 0\n"
      "  override_linear_precision: [false, false, false]\n  use_autocast_during_eval: false\n",
      "f.yaml");
  EXPECT_EQ(fp8.precision->matmul, Dtype::f8);
  EXPECT_TRUE(fp8.unknown.empty());
}

TEST(AccelerateImport, CopiesOfShardsAreOfNodes) {
  const std::string hybrid =
      "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n";
  const Import four = import_run(hybrid + "num_machines: 4\nnum_processes: 32\n", "x.yaml");
  EXPECT_EQ(four.parallel.replicate, 4);
  EXPECT_TRUE(four.notes.empty());
  const Import unknown = import_run(hybrid, "x.yaml");
  EXPECT_EQ(unknown.parallel.replicate, 1);
  EXPECT_EQ(unknown.notes.size(), 1U);
}

const char* const kBridgeRecipes =
    "from megatron.bridge import AutoBridge\n"
    "from megatron.bridge.recipes.common import _pretrain_common\n"
    "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config as base_config\n"
    "def _small() -> ConfigContainer:\n    cfg = _pretrain_common()\n"
    "    cfg.model = AutoBridge.from_hf_pretrained(\"meta-llama/Meta-Llama-3-8B\").get()\n"
    "    cfg.model.tensor_model_parallel_size = 2\n    cfg.model.sequence_parallel = True\n"
    "    cfg.train.global_batch_size = 64\n    cfg.train.manual_gc = True\n"
    "    cfg.train.manual_gc_interval = 100\n    cfg.model.transformer_impl = "
    "\"transformer_engine\"\n"
    "    cfg.model.cross_entropy_fusion_impl = \"te\"\n    cfg.ddp.grad_reduce_in_fp32 = True\n"
    "    cfg.env_vars = {\"A\": 1}\n    return cfg\n"
    "def small_config() -> ConfigContainer:\n    return _small()\n"
    "def wide_config() -> ConfigContainer:\n    cfg = _small()\n    degree = 4\n"
    "    cfg.model.tensor_model_parallel_size = degree\n    cfg.model.odd = 3\n"
    "    cfg.comm_overlap = CommOverlapConfig(\n        tp_comm_overlap=True,\n"
    "        tp_comm_overlap_cfg=buffers(a, b), overlap_grad_reduce=False)\n    return cfg\n"
    "def other_config() -> ConfigContainer:\n    return base_config()\n";

TEST(BridgeImport, ReadsTheRecipeThatIsChosen) {
  EXPECT_THAT(
      message_of([] { import_run(kBridgeRecipes, "r.py"); }),
      HasSubstr("3 recipes are in it: small_config, wide_config, other_config; choose one"));
  const Import small = import_run(kBridgeRecipes, "r.py", {0, "small_config"});
  EXPECT_EQ(small.parallel.tp, 2);
  EXPECT_EQ(small.global_batch, 64);
  EXPECT_EQ(small.model, "meta-llama/Meta-Llama-3-8B");
  EXPECT_TRUE(small.unknown.empty());
  EXPECT_TRUE(small.notes.empty());
  const Import wide = import_run(kBridgeRecipes, "r.py", {0, "wide_config"});
  EXPECT_EQ(wide.parallel.tp, 4);
  EXPECT_THAT(wide.unknown, ElementsAre("model.odd=3"));
  EXPECT_THAT(wide.notes, ElementsAre(HasSubstr("tp_comm_overlap")));
  EXPECT_EQ(wide.does.size(), 1U);
  EXPECT_THAT(import_run(kBridgeRecipes, "r.py", {0, "other_config"}).notes,
              ElementsAre(HasSubstr("base_config() of megatron.bridge.recipes.llama")));
}

TEST(BridgeImport, KnowsTheOptionsOfItsRunner) {
  const Import run = import_run(
      "torchrun scripts/training/run_recipe.py --recipe r --mode lora -ms 100 --lr 1e-4 "
      "--save_dir /x --dataset mock -tp 2 --odd-option 3 model.sequence_parallel=true",
      "x.sh");
  EXPECT_EQ(run.parallel.tp, 2);
  EXPECT_TRUE(run.parallel.sequence_parallel);
  EXPECT_THAT(run.unknown, ElementsAre("--odd_option 3"));
  EXPECT_THAT(run.notes,
              ElementsAre(HasSubstr("--recipe r"), HasSubstr("adapters alone are trained")));
}

TEST(MaxtextImport, TakesTheBatchOfADeviceWhereTheDevicesAreNotSaid) {
  const Import run = import_maxtext(
      "per_device_batch_size=4 ici_fsdp_parallelism=-1 ici_tensor_parallelism=4 "
      "gradient_accumulation_steps=2",
      "run.sh");
  EXPECT_EQ(run.global_batch, 0);
  EXPECT_EQ(run.parallel.micro_batch, 16);
  EXPECT_EQ(run.accumulation, 2);
}

TEST(AccelerateExport, RefusesReplicasBesideTensorParallelism) {
  Parallelism p;
  p.tp = 2;
  p.dp = 2;
  EXPECT_THAT(
      message_of([&] { export_plan(named_plan(p), "accelerate"); }),
      HasSubstr("accelerate does not combine tensor parallelism, data parallelism and ZeRO-0"));
}

}  // namespace
}  // namespace braid

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/trainers/registry.h"

// What a run says, changes its time or memory, and is not modelled is said in a note; what only
// repeats a default is not, and what changes nothing is neither noted nor listed as unknown.

namespace braid {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Said {
  std::vector<std::string> notes, unknown;
};

Said of(const std::string& text, const std::string& file) {
  const Import run = import_run(text, file);
  return {run.notes, run.unknown};
}

/// Both empty.
void expect_silent(const Said& said) {
  EXPECT_THAT(said.notes, IsEmpty());
  EXPECT_THAT(said.unknown, IsEmpty());
}

TEST(Unmodelled, OfMegatron) {
  const auto said = [](const std::string& arguments) {
    return of(
        "pretrain_gpt.py --micro-batch-size 1 --global-batch-size 8 --seq-length 128 --bf16 " +
            arguments,
        "m.sh");
  };
  expect_silent(said("--empty-unused-memory-level 0 --lr 1e-4"));
  EXPECT_THAT(said("--empty-unused-memory-level 2").notes,
              ElementsAre("--empty-unused-memory-level 2: here freed memory is kept for the next "
                          "iteration"));
  EXPECT_THAT(said("--use-nccl-ub").notes,
              ElementsAre(HasSubstr("--use-nccl-ub: here collectives have the rates")));
  EXPECT_THAT(said("--fp8-format hybrid").notes,
              ElementsAre(HasSubstr("without --fp8-param-gather weights")));
  expect_silent(said("--fp8-format hybrid --fp8-param-gather"));
}

TEST(Unmodelled, OfDeepspeed) {
  const auto said = [](const std::string& members) {
    return of(
        "{\"train_micro_batch_size_per_gpu\": 1, \"bf16\": {\"enabled\": true}, " + members + "}",
        "ds.json");
  };
  // "auto" is of Hugging Face's Trainer; numbers count however they are written.
  expect_silent(
      said("\"zero_optimization\": {\"stage\": 3, \"overlap_comm\": true, "
           "\"stage3_max_live_parameters\": 1000000000, \"stage3_prefetch_bucket_size\": \"auto\", "
           "\"stage3_param_persistence_threshold\": 1e5, \"reduce_bucket_size\": 5e8}"));
  EXPECT_THAT(said("\"zero_optimization\": {\"stage\": 3, \"overlap_comm\": false, "
                   "\"stage3_prefetch_bucket_size\": 0}")
                  .notes,
              ElementsAre(HasSubstr("without overlap_comm the passes wait"),
                          HasSubstr("zero_optimization.stage3_prefetch_bucket_size 0: here the "
                                    "weights of one layer are gathered ahead")));
  EXPECT_THAT(
      said("\"communication_data_type\": \"fp32\", \"elasticity\": {\"enabled\": true}").notes,
      ElementsAre(HasSubstr("communication_data_type fp32"), HasSubstr("elasticity.enabled true")));
}

TEST(Unmodelled, OverlapOfDeepspeedIsModelledWhereGradientsAreWhole) {
  const auto does = [](int stage, bool overlaps) {
    const std::string yes = overlaps ? "true" : "false";
    return import_run(
        "{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {\"stage\": " +
            std::to_string(stage) + ", \"overlap_comm\": " + yes + "}}",
        "ds.json");
  };
  ASSERT_EQ(does(1, true).does.size(), 1U);
  EXPECT_EQ(does(1, true).does.front().flag, &TrainerBehaviour::overlapped_gradients);
  EXPECT_TRUE(does(1, true).does.front().value);
  EXPECT_THAT(does(1, false).does, IsEmpty());
  EXPECT_THAT(does(2, true).does, IsEmpty());
  EXPECT_THAT(does(2, true).notes, IsEmpty());
  EXPECT_THAT(does(2, false).notes, ElementsAre(HasSubstr("without overlap_comm")));
}

TEST(Unmodelled, JsonOfDeepspeedMayHaveCommentsAndLastCommas) {
  const Import run = import_run(
      "{ // of a run, with }\n"
      "  \"bf16\": {\"enabled\": true, # so,\n },\n"
      "  \"train_batch_size\": 64, /* , */\n"
      "  \"zero_optimization\": {\"stage\": 2, \"overlap_comm\": true,}, \"steps_per_print\": 1,\n"
      "}\n",
      "ds.json");
  EXPECT_EQ(run.global_batch, 64);
  EXPECT_EQ(run.parallel.zero, Zero::gradients);
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST(Unmodelled, OfTorchtitan) {
  const auto said = [](const std::string& lines) {
    return of(
        "[training]\nlocal_batch_size = 1\n[activation_checkpoint]\nmode = \"full\"\n" + lines,
        "t.toml");
  };
  expect_silent(
      said("[fault_tolerance]\nenable = false\ngroup_size = 0\n[debug]\ndeterministic = false\n"
           "[optimizer]\nimplementation = \"fused\"\nlr = 1e-4\n"));
  EXPECT_THAT(said("[fault_tolerance]\nenable = true\ngroup_size = 2\n").notes,
              ElementsAre(HasSubstr("fault_tolerance.enable true: here the devices are one group"),
                          HasSubstr("fault_tolerance.group_size 2")));
  EXPECT_THAT(said("[parallelism]\npipeline_parallel_schedule_csv = \"s.csv\"\n").notes,
              ElementsAre("parallelism.pipeline_parallel_schedule_csv s.csv: here "
                          "pipeline_parallel_schedule counts"));
}

TEST(Unmodelled, OfBridge) {
  const auto said = [](const std::string& lines) {
    return of("import megatron.bridge\ncfg.train.global_batch_size = 8\n" + lines, "b.py");
  };
  expect_silent(said("cfg.model.apply_rope_fusion = True\ncfg.ddp.bucket_size = None\n"));
  EXPECT_THAT(said("cfg.model.apply_rope_fusion = False\n").notes,
              ElementsAre("model.apply_rope_fusion False: here these kernels are fused"));
  EXPECT_THAT(said("cfg.ddp.overlap_param_gather = False\n").notes,
              ElementsAre(HasSubstr("overlap_param_gather: updated weights")));
  EXPECT_THAT(said("cfg.model.recompute_granularity = \"full\"\n"
                   "cfg.model.recompute_method = \"block\"\ncfg.model.recompute_num_layers = 2\n")
                  .notes,
              ElementsAre(HasSubstr("recompute_method 'block' of 2 layers")));
  const Import plain = import_run(
      "import megatron.bridge\ncfg.model.attention_backend = AttnBackend.unfused\n", "b.py");
  ASSERT_EQ(plain.does.size(), 1U);
  EXPECT_EQ(plain.does.front().flag, &TrainerBehaviour::flash_attention);
}

TEST(Unmodelled, OfAccelerate) {
  const auto said = [](const std::string& lines) {
    return of(
        "distributed_type: FSDP\nnum_processes: 8\nmixed_precision: bf16\nfsdp_config:\n"
        "  fsdp_version: 2\n" +
            lines,
        "a.yaml");
  };
  expect_silent(
      said("  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
           "  fsdp_backward_prefetch: BACKWARD_PRE\n"));
  EXPECT_THAT(said("  fsdp_backward_prefetch: NO_PREFETCH\n").notes,
              ElementsAre(HasSubstr("backward_prefetch NO_PREFETCH: here the weights of the next "
                                    "layer are gathered ahead")));
  EXPECT_THAT(said("  fsdp_auto_wrap_policy: NO_WRAP\n").notes,
              ElementsAre(HasSubstr("auto_wrap_policy NO_WRAP")));
}

TEST(Unmodelled, OfMaxtext) {
  const auto notes = [](const std::string& numbers) {
    return of("model_name: llama2-7b\nper_device_batch_size: 4\nquantization: \"" + numbers +
                  "\"\n",
              "m.yml")
        .notes;
  };
  EXPECT_THAT(notes("int8"),
              Contains(HasSubstr("quantization 'int8': here GEMMs have the format")));
  EXPECT_THAT(notes("fp8"), Not(Contains(HasSubstr("quantization"))));
}

TEST(Unmodelled, SelectiveRecomputationOfTorchtitanRepeatsGemms) {
  const auto notes = [](const std::string& option) {
    return of("[training]\nlocal_batch_size = 1\n[activation_checkpoint]\nmode = \"selective\"\n"
              "selective_ac_option = \"" +
                  option + "\"\n",
              "t.toml")
        .notes;
  };
  EXPECT_THAT(notes("op"), ElementsAre(HasSubstr("repeats every second GEMM as well")));
  EXPECT_THAT(notes("2"), ElementsAre(HasSubstr("selective_ac_option '2'")));
}

TEST(Formats, TorchtitanMixesPrecisionsInFsdpAlone) {
  const auto run = [](const std::string& degrees) {
    return import_run(
        "[training]\nlocal_batch_size = 1\n[activation_checkpoint]\nmode = \"full\"\n"
        "[parallelism]\n" +
            degrees,
        "t.toml");
  };
  EXPECT_EQ(run("tensor_parallel_degree = 8\ndata_parallel_shard_degree = 1\n").precision->matmul,
            Dtype::f32);
  EXPECT_EQ(run("tensor_parallel_degree = 8\ndata_parallel_shard_degree = 2\n").precision->matmul,
            Dtype::bf16);
  EXPECT_EQ(
      run("data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n").precision->matmul,
      Dtype::bf16);
  const Import open = run("tensor_parallel_degree = 8\n");
  EXPECT_EQ(open.precision->matmul, Dtype::bf16);
  ASSERT_TRUE(open.precision_of_one_shard);
  EXPECT_EQ(open.precision_of_one_shard->matmul, Dtype::f32);
}

TEST(Formats, GradientsOfDeepspeedFollowTheWeights) {
  const auto run = [](const std::string& members) {
    return import_run(
        "{\"train_micro_batch_size_per_gpu\": 1, \"bf16\": {\"enabled\": \"auto\"}" + members + "}",
        "ds.json");
  };
  EXPECT_FALSE(run("").precision);
  EXPECT_TRUE(run("").gradients_like_weights);
  EXPECT_FALSE(run(", \"data_types\": {\"grad_accum_dtype\": \"fp32\"}").gradients_like_weights);
}

TEST(Formats, GradientsOfAcceleratesDeepspeedFollowTheWeights) {
  const Import run = import_run(
      "accelerate launch --use_deepspeed --zero_stage 2 --mixed_precision bf16 --num_processes 8 "
      "train.py\n",
      "a.sh");
  EXPECT_EQ(run.precision->gradient, Dtype::bf16);
}

TEST(Formats, GradientsOfMegatronFsdpFollowTheWeights) {
  const auto gradient = [](const std::string& arguments) {
    return import_run(
               "pretrain_gpt.py --micro-batch-size 1 --bf16 --use-megatron-fsdp "
               "--accumulate-allreduce-grads-in-fp32 " +
                   arguments,
               "m.sh")
        .precision->gradient;
  };
  EXPECT_EQ(gradient(""), Dtype::bf16);
  EXPECT_EQ(gradient("--megatron-fsdp-main-grads-dtype fp32"), Dtype::f32);
}

TEST(DeepspeedBatch, OfTheTrainerIsEightSamplesWhereNothingIsSaid) {
  const Import alone = import_run(
      "{\"gradient_accumulation_steps\": 4, \"train_micro_batch_size_per_gpu\": \"auto\"}",
      "ds.json");
  EXPECT_FALSE(alone.says_micro_batch);
  EXPECT_EQ(alone.accumulation, 4);
}

TEST(BridgeCommandLine, OptionsOfRecomputationSayWhichItIs) {
  const auto run = [](const std::string& options) {
    return import_run("python setup_experiment.py -tp 2 " + options + "\n", "r.sh");
  };
  EXPECT_EQ(run("-rl 20").parallel.recompute, Recompute::full);
  EXPECT_THAT(run("-rl 20").notes, Contains(HasSubstr("recompute_method 'block' of 20 layers")));
  EXPECT_EQ(run("--recompute_modules core_attn").parallel.recompute, Recompute::selective);
}

TEST(BridgeRecipe, BeginsWithTheBatchOfTheCommonOne) {
  const std::string common =
      "from megatron.bridge.recipes.common import _pretrain_common\n"
      "def r_config() -> ConfigContainer:\n    cfg = _pretrain_common()\n";
  const Import run = import_run(common + "    return cfg\n", "r.py");
  EXPECT_EQ(run.global_batch, 32);
  EXPECT_EQ(run.parallel.micro_batch, 2);
  EXPECT_EQ(run.seq_len, 4096);
  const Import other =
      import_run(common + "    cfg.train.global_batch_size = 64\n    return cfg\n", "r.py");
  EXPECT_EQ(other.global_batch, 64);
  EXPECT_EQ(other.parallel.micro_batch, 2);
}

TEST(BridgeCommandLine, TakesOverridesOfAnySection) {
  const Import run = import_run(
      "python run_recipe.py -tp 2 ++model.sequence_parallel=true peft=lora zoo.bar=2 "
      "logger.log_interval=1 model.attention_backend=unfused\n",
      "r.sh");
  EXPECT_TRUE(run.parallel.sequence_parallel);
  EXPECT_THAT(run.unknown, ElementsAre("zoo.bar=2"));
  EXPECT_THAT(run.notes, Contains(HasSubstr("peft: adapters alone are trained")));
  EXPECT_EQ(run.does.size(), 1U);
}

TEST(BridgeCommandLine, SaysHowManyDevicesItStarts) {
  const Import started = import_run(
      "torchrun --nproc-per-node 8 --nnodes 4 scripts/training/run_recipe.py --recipe r -tp 4\n",
      "r.sh");
  EXPECT_EQ(started.devices, 32);
  const Import submitted = import_run(
      "uv run python scripts/performance/setup_experiment.py --account a -i nemo:26.04 "
      "--partition p -m deepseek -mr deepseek_v3 -ng 256 -gn 4 -t 00:15:00 -g gb300 -c fp8_cs "
      "-pp 4 -hf TOKEN --use_tokendrop true\n",
      "e.sh");
  EXPECT_EQ(submitted.trainer, "megatron-bridge");
  EXPECT_EQ(submitted.devices, 256);
  EXPECT_EQ(submitted.parallel.pp, 4);
  EXPECT_EQ(submitted.precision->matmul, Dtype::f8);
  EXPECT_THAT(submitted.unknown, ElementsAre("--use_tokendrop true"));
  EXPECT_THAT(submitted.notes, Contains(HasSubstr("--mr deepseek_v3: the recipe's own settings")));
}

}  // namespace
}  // namespace braid

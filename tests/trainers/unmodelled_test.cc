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

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/trainers/exchange/stage_layout.h"
#include "braid/trainers/megatron/import.h"
#include "braid/trainers/megatron/layer_marks.h"

#include "base/error_text.h"

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Import import(const std::string& arguments) {
  return import_megatron("pretrain_gpt.py --micro-batch-size 1 " + arguments, "train.sh");
}

std::string import_error(const std::string& arguments) {
  return error_text([&] { import(arguments); });
}

TEST(MegatronImport, ReadsDegreesAndPrecision) {
  const Import run = import_megatron(
      "torchrun --nproc_per_node 8 --nnodes=4 pretrain_gpt.py --tensor-model-parallel-size 4 "
      "--pipeline-model-parallel-size=2 --context-parallel-size 2 --expert_model_parallel_size 4 "
      "--sequence-parallel --micro-batch-size 2 --global-batch-size 256 --seq-length 4096 --bf16 "
      "--use-distributed-optimizer --recompute-granularity full --grad-reduce-in-bf16",
      "train.sh");
  EXPECT_EQ(run.devices, 32);
  EXPECT_EQ(run.global_batch, 256);
  EXPECT_EQ(run.seq_len, 4096);
  EXPECT_EQ(run.parallel.tp, 4);
  EXPECT_EQ(run.parallel.pp, 2);
  EXPECT_EQ(run.parallel.cp, 2);
  EXPECT_EQ(run.parallel.ep, 4);
  EXPECT_EQ(run.parallel.micro_batch, 2);
  EXPECT_TRUE(run.parallel.sequence_parallel);
  EXPECT_EQ(run.parallel.zero, Zero::optimizer);
  EXPECT_EQ(run.parallel.recompute, Recompute::full);
  EXPECT_EQ(run.precision->gradient, Dtype::bf16);
  EXPECT_FALSE(run.shape.has_value());
  EXPECT_THAT(run.unknown, IsEmpty());
}

TEST(MegatronImport, TakesTheDefaultsOfItsParser) {
  const Import run = import("");
  EXPECT_EQ(run.parallel.tp, 1);
  EXPECT_EQ(run.parallel.zero, Zero::none);
  EXPECT_EQ(run.precision->matmul, Dtype::f32);
  EXPECT_EQ(run.parallel.recompute, Recompute::none);
}

TEST(MegatronImport, RedirectionsAreNoArguments) {
  for (const char* end : {" 2>&1 | tee log", " > log 2>&1 &", " 2> err", " >> log", " &> log"}) {
    const Import run = import(std::string("--recompute-granularity full") + end);
    EXPECT_EQ(run.parallel.recompute, Recompute::full) << end;
    EXPECT_THAT(run.unknown, IsEmpty()) << end;
  }
  const Import evaluated = import_megatron(
      "A='pretrain_gpt.py --micro-batch-size 1 --tensor-model-parallel-size 2 &> log'\neval $A",
      "train.sh");
  EXPECT_EQ(evaluated.parallel.tp, 2);
}

TEST(MegatronImport, ReadsTheArgumentsOfAFunctionalTest) {
  const Import run = import_megatron(
      "ENV_VARS:\n  A: 1\nMODEL_ARGS:\n  # parallel\n  --tensor-model-parallel-size: 2\n"
      "  --micro-batch-size: 1\n  --global-batch-size: 256 # samples\n  --bf16: true\n"
      "  --sequence-parallel: true\n  --swiglu: false\n"
      "  --moe-layer-freq: ([0]*3+[1]*5)\n  --num-layers: 8\nMETRICS:\n  - lm loss\n",
      "model_config.yaml");
  EXPECT_EQ(run.parallel.tp, 2);
  EXPECT_TRUE(run.parallel.sequence_parallel);
  EXPECT_EQ(run.global_batch, 256);
  EXPECT_EQ(run.precision->matmul, Dtype::bf16);
  EXPECT_THAT(run.unknown, IsEmpty());
}

TEST(MegatronImport, WithoutABatchARankHasOneMicroBatch) {
  EXPECT_EQ(import("").accumulation, 1);
  EXPECT_EQ(import("--global-batch-size 64").accumulation, 0);
}

TEST(MegatronImport, SaysWhatItTakesOtherwise) {
  const auto notes = [](const std::string& arguments) { return import(arguments).notes; };
  EXPECT_THAT(notes("--recompute-granularity selective --recompute-modules core_attn layernorm"),
              IsEmpty());
  EXPECT_THAT(notes("--recompute-granularity selective --recompute-modules core_attn moe_act mlp"),
              ElementsAre("--recompute-modules: not recomputed here: moe_act, mlp"));
  EXPECT_THAT(
      notes("--tensor-model-parallel-size 4 --num-experts 8 --expert-tensor-parallel-size 2"),
      ElementsAre(::testing::HasSubstr("--expert-tensor-parallel-size 2")));
}

/// What the run does of what selective recomputation repeats: attention, norms, those before
/// experts.
std::vector<bool> repeats(const std::string& arguments) {
  TrainerBehaviour does;
  take_behaviour(import(arguments), does);
  return {does.selective_attention, does.selective_norms, does.selective_expert_norms};
}

TEST(MegatronImport, ReadsWhichModulesAreRecomputed) {
  const std::string selective = "--recompute-granularity selective ";
  EXPECT_EQ(repeats("--recompute-activations"), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(repeats(selective), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(repeats(selective + "--recompute-modules core_attn layernorm"),
            (std::vector<bool>{true, true, true}));
  EXPECT_EQ(repeats(selective + "--recompute-modules layernorm"),
            (std::vector<bool>{false, true, true}));
  EXPECT_EQ(repeats("--recompute-granularity full"), (std::vector<bool>{true, true, true}));
}

TEST(MegatronImport, ReadsWhetherThereIsDropout) {
  EXPECT_EQ(import("").dropout, std::nullopt);
  EXPECT_EQ(import("--hidden-size 64").dropout, true);  // 0.1 by default.
  EXPECT_EQ(import("--hidden-dropout 0").dropout, true);
  EXPECT_EQ(import("--hidden-dropout 0 --attention-dropout 0.0").dropout, false);
}

TEST(MegatronImport, ReadsGatedActivationsAndWindowsOfEveryFewBlocks) {
  const std::string sizes =
      "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --vocab-size 128 --seq-length 32 ";
  const Import gated = import(sizes + "--quick-geglu --ffn-hidden-size 128");
  ASSERT_TRUE(gated.shape.has_value());
  EXPECT_TRUE(gated.shape->gated);
  const Import windows = import(sizes + "--window-size (16,0) --window-attn-skip-freq 2");
  ASSERT_TRUE(windows.shape.has_value());
  EXPECT_EQ(windows.shape->windowed_blocks, "1010");
}

TEST(MegatronImport, ExpertsAreWholeWhereTheirTensorParallelSizeIsOne) {
  const std::string four = "--tensor-model-parallel-size 4 --sequence-parallel ";
  const std::string whole = four + "--expert-tensor-parallel-size 1 ";
  EXPECT_TRUE(import(whole + "--num-experts 8").parallel.whole_experts);
  EXPECT_TRUE(import(whole + "--expert-model-parallel-size 2").parallel.whole_experts);
  EXPECT_FALSE(import(whole).parallel.whole_experts);
  EXPECT_FALSE(import(four + "--num-experts 8").parallel.whole_experts);
}

TEST(MegatronImport, ExpertsOverSomeTensorParallelRanksAreSpreadOverFewer) {
  const Import run = import(
      "--tensor-model-parallel-size 4 --expert-model-parallel-size 16 "
      "--expert-tensor-parallel-size 2");
  EXPECT_EQ(run.parallel.ep, 8);
  EXPECT_FALSE(run.parallel.whole_experts);
  EXPECT_THAT(run.notes, ::testing::Contains(::testing::HasSubstr(
                             "--expert-tensor-parallel-size 2: here experts are "
                             "sharded over all 4 tensor-parallel ranks, and "
                             "spread over 8 in place of 16")));
  EXPECT_THAT(import_error("--tensor-model-parallel-size 4 --expert-model-parallel-size 3 "
                           "--expert-tensor-parallel-size 2"),
              ::testing::HasSubstr("are neither whole nor sharded over all; use 1 or 4"));
}

TEST(MegatronImport, PadsTheVocabulary) {
  const auto vocab = [](const std::string& arguments) {
    return import("--num-layers 4 --hidden-size 64 --num-attention-heads 4 --vocab-size 50257 " +
                  arguments)
        .shape->vocab;
  };
  EXPECT_EQ(vocab(""), 50304);
  EXPECT_EQ(vocab("--tensor-model-parallel-size 8"), 51200);
  EXPECT_EQ(vocab("--make-vocab-size-divisible-by 1 --tensor-model-parallel-size 8"), 50257);
  EXPECT_EQ(vocab("--padded-vocab-size 60000"), 60000);
}

TEST(MegatronImport, RefusesChunksThatAreSaidTwice) {
  const std::string twelve =
      "--num-layers 12 --hidden-size 64 --num-attention-heads 4 --vocab-size 128 "
      "--pipeline-model-parallel-size 2 ";
  EXPECT_THAT(import_error(twelve + "--num-layers-per-virtual-pipeline-stage 2 "
                                    "--num-virtual-stages-per-pipeline-rank 3"),
              ::testing::HasSubstr("--num-virtual-stages-per-pipeline-rank: is not taken beside "
                                   "--num-layers-per-virtual-pipeline-stage"));
  EXPECT_THAT(import_error(twelve + "--num-layers-per-virtual-pipeline-stage 2 "
                                    "--decoder-first-pipeline-num-layers 4"),
              ::testing::HasSubstr("--num-layers-per-virtual-pipeline-stage: is not taken beside "
                                   "--decoder-first-pipeline-num-layers"));
}

TEST(MegatronImport, ReadsWhichBlocksHaveExperts) {
  for (const auto& [text, marks] : {std::pair{"[0]*3+[1]*5", "00011111"},
                                    {"([0]*3+[1]*5)", "00011111"},
                                    {"([1]*3+[0]*1)*2", "11101110"},
                                    {"[0,0,0,1,1,1,1,1]", "00011111"},
                                    {"2*([1,0,]+[1]*2)", "10111011"},
                                    {"2", "10101010"},
                                    {"1", "11111111"}}) {
    EXPECT_EQ(marks_of_blocks(text, 8), std::string(marks)) << text;
  }
  for (const char* text : {"[1]*7", "[1]*8)", "([1]*8", "[2]*8", "0", "", "8*8", "[1]*[8]",
                           "[1]*99999999", "[1]*8+1", "range(8)", "[1 0]"}) {
    EXPECT_EQ(marks_of_blocks(text, 8), std::nullopt) << text;
  }
}

TEST(MegatronImport, DealsTheBlocksOfTheModelThatIsNamed) {
  const auto of = [](const std::string& arguments, std::int64_t blocks) {
    return import_megatron("pretrain_gpt.py --micro-batch-size 1 " + arguments, "train.sh",
                           {blocks, ""});
  };
  const std::string two = "--pipeline-model-parallel-size 2 ";
  EXPECT_THAT(of(two + "--decoder-first-pipeline-num-layers 14", 32).chunk_blocks,
              ElementsAre(14, 18));
  EXPECT_EQ(of(two + "--num-layers 80 --num-layers-per-virtual-pipeline-stage 4", 32).parallel.vp,
            4);
  EXPECT_THAT(of(two + "--decoder-first-pipeline-num-layers 14 "
                       "--num-virtual-stages-per-pipeline-rank 2",
                 32)
                  .chunk_blocks,
              ElementsAre(7, 9, 7, 9));
  const std::string four = "--pipeline-model-parallel-size 4 ";
  EXPECT_EQ(of(four + "--account-for-loss-in-pipeline-split "
                      "--num-layers-per-virtual-pipeline-stage 4",
               31)
                .parallel.vp,
            2);
  EXPECT_THAT(of(four, 61).notes, ElementsAre(::testing::HasSubstr("61 layers do not go evenly")));
  EXPECT_THAT(of(four, 64).notes, IsEmpty());
  EXPECT_THROW(of(two + "--num-layers-per-virtual-pipeline-stage 4", 0), Error);
  EXPECT_THROW(of(four + "--decoder-first-pipeline-num-layers 7", 32), Error);
  EXPECT_THROW(
      of(two + "--decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7", 32),
      Error);
}

TEST(MegatronImport, ReadsWhatTheTrainerDoes) {
  const auto behaviour = [](const std::string& arguments) {
    TrainerBehaviour does;
    does.gradient_placeholders = true;
    take_behaviour(import(arguments), does);
    return does;
  };
  EXPECT_FALSE(behaviour("").overlapped_gradients);
  EXPECT_TRUE(behaviour("--overlap-grad-reduce").overlapped_gradients);
  EXPECT_TRUE(behaviour("--use-megatron-fsdp").overlapped_gradients);
  EXPECT_FALSE(behaviour("--use-megatron-fsdp --data-parallel-sharding-strategy optim")
                   .overlapped_gradients);
  EXPECT_TRUE(behaviour("").flash_attention && behaviour("").fused_accumulation);
  EXPECT_TRUE(behaviour("--attention-backend fused").flash_attention);
  EXPECT_FALSE(behaviour("--attention-backend unfused").flash_attention);
  EXPECT_FALSE(behaviour("--transformer-impl local").flash_attention);
  EXPECT_FALSE(behaviour("--transformer-impl local").gradient_placeholders);
  EXPECT_FALSE(behaviour("--no-gradient-accumulation-fusion").fused_accumulation);
  EXPECT_FALSE(behaviour("--cross-entropy-loss-fusion").fused_loss);
  EXPECT_TRUE(behaviour("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te").fused_loss);
  EXPECT_TRUE(behaviour("--cuda-graph-impl local").captured_graphs);
  EXPECT_FALSE(behaviour("--cuda-graph-impl none").captured_graphs);
  EXPECT_TRUE(behaviour("--overlap-moe-expert-parallel-comm").overlapped_dispatch);
}

TEST(MegatronImport, NotesWhatItDoesNotModel) {
  const auto notes = [](const std::string& arguments) {
    return import("--overlap-grad-reduce --overlap-param-gather " + arguments).notes;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(notes(""), IsEmpty());
  EXPECT_THAT(notes("--tp-comm-overlap --tensor-model-parallel-size 2"),
              ElementsAre(HasSubstr("--tp-comm-overlap")));
  EXPECT_THAT(notes("--cp-comm-type a2a --context-parallel-size 2"), ElementsAre(HasSubstr("a2a")));
  EXPECT_THAT(notes("--cp-comm-type p2p --context-parallel-size 2"), IsEmpty());
  EXPECT_THAT(notes("--optimizer muon"), ElementsAre(HasSubstr("--optimizer muon")));
  EXPECT_THAT(notes("--optimizer sgd"), IsEmpty());
  EXPECT_THAT(notes("--expert-model-parallel-size 2"), ElementsAre(HasSubstr("allgather")));
  EXPECT_THAT(notes("--no-rope-fusion --no-bias-dropout-fusion"),
              ElementsAre(HasSubstr("--no-bias-dropout-fusion, --no-rope-fusion")));
  EXPECT_EQ(import("--bf16 --optimizer sgd").precision->optimizer_bytes_per_parameter, 8);
}

TEST(MegatronImport, ListsOfWhatIsNotSetWhatFiguresDependOn) {
  const auto notes = [](const std::string& script) {
    return import_megatron(script, "train.sh").notes;
  };
  const std::string run =
      "torchrun --nproc-per-node 8 --node-rank $RANK pretrain_gpt.py --micro-batch-size 1 ";
  EXPECT_THAT(notes(run + "--data-path $PWD/x --save $(dirname $0)"), IsEmpty());
  EXPECT_THAT(notes(run + "--data-path $PWD/x --save $(dirname $0) $MORE --bf16"),
              ElementsAre(::testing::EndsWith("left out: $MORE")));
  EXPECT_THAT(notes("torchrun --nnodes $N pretrain_gpt.py --micro-batch-size 1"),
              ElementsAre(::testing::EndsWith("left out: $N")));
  try {
    notes(run + "--expert-model-parallel-size $EP");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("$EP is not set in the script"));
  }
}

TEST(MegatronImport, ReadsInterleavingAndLayouts) {
  EXPECT_EQ(import("--num-layers 32 --pipeline-model-parallel-size 4 "
                   "--num-layers-per-virtual-pipeline-stage 2")
                .parallel.vp,
            4);
  const Import ends = import(
      "--num-layers 32 --pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 7 "
      "--decoder-last-pipeline-num-layers 5");
  EXPECT_THAT(ends.chunk_blocks, ElementsAre(7, 10, 10, 5));
  const Import layout =
      import("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|(tt|)*2tmL'");
  EXPECT_EQ(layout.parallel.vp, 2);
  EXPECT_EQ(layout.parallel.schedule, ScheduleKind::interleaved);
  EXPECT_THAT(layout.chunk_blocks, ElementsAre(4, 2, 2, 3));  // With embedding, MTP and loss.
  const Import blocks =
      import("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|(tt|)*2tL'");
  EXPECT_THAT(blocks.chunk_blocks, ElementsAre(3, 2, 2, 1));
}

TEST(MegatronImport, ReadsWhatElseExportWrites) {
  EXPECT_THAT(import("--pipeline-model-parallel-size 2 --hybrid-layer-pattern 'MEM*|EME/*E/*E'")
                  .chunk_blocks,
              ElementsAre(4, 3));
  EXPECT_TRUE(import("--fine-grained-activation-offloading").parallel.offload_activations);
  EXPECT_EQ(import("--fp16").precision->gradient, Dtype::f16);
  EXPECT_EQ(import_megatron("export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1\npretrain_gpt.py "
                            "--micro-batch-size 1",
                            "train.sh")
                .precision->matmul,
            Dtype::tf32);
  EXPECT_THROW(import("--pipeline-model-parallel-size 3 --hybrid-layer-pattern 'M*|ME'"), Error);
}

TEST(MegatronImport, ReadsTheSizesOfTheModel) {
  const Import run = import(
      "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention "
      "--num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear "
      "--position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 32000 "
      "--attention-dropout 0.0 --hidden-dropout 0 --seq-length 4096 --num-experts 8 "
      "--moe-router-topk 2 --moe-ffn-hidden-size 14336 --moe-layer-freq '([0]*1+[1]*31)'");
  ASSERT_TRUE(run.shape.has_value());
  const ModelShape& shape = *run.shape;
  EXPECT_EQ(shape.blocks, 32);
  EXPECT_EQ(shape.kv_heads, 8);
  EXPECT_EQ(shape.head_dim, 128);
  EXPECT_EQ(shape.inner, 4096 * 8 / 3 / 64 * 64);  // arguments.py, where nothing is said
  EXPECT_TRUE(shape.gated && shape.rms && shape.rotary);
  EXPECT_FALSE(shape.linear_bias || shape.qkv_bias || shape.tied_embeddings || shape.dropout);
  EXPECT_EQ(shape.experts, 8);
  EXPECT_EQ(shape.expert_inner, 14336);
  EXPECT_EQ(shape.dense_blocks, 1);
}

TEST(MegatronImport, FindsTheLineThatAnotherShellIsGiven) {
  const Import run = import_megatron(
      "options=\" --micro-batch-size 2 --tensor-model-parallel-size 4\"\n"
      "run_cmd=\"python -u pretrain_gpt.py ${options}\"\n"
      "srun -l --output=%x.log sh -c \"${run_cmd}\"\n",
      "train.sh");
  EXPECT_EQ(run.parallel.tp, 4);
  EXPECT_EQ(run.parallel.micro_batch, 2);
  EXPECT_EQ(run.devices, 0);
}

TEST(MegatronImport, TakesNoLineThatIsOnlyPrinted) {
  const Import run = import_megatron(
      "A='--tensor-model-parallel-size 2 --micro-batch-size 1'\necho $A\ntorchrun --nproc-per-node "
      "8 "
      "pretrain_gpt.py $A --bf16 --other '<image>'",
      "t.sh");
  EXPECT_EQ(run.devices, 8);
  EXPECT_EQ(run.precision->matmul, Dtype::bf16);
  EXPECT_THAT(run.unknown, ElementsAre("--other <image>"));
}

TEST(MegatronImport, DoesNotGuessHowManyNodesThereAre) {
  for (const char* nodes : {"$SLURM_NNODES", "1:4"}) {
    EXPECT_EQ(import_megatron("torchrun --nproc-per-node 8 --nnodes " + std::string(nodes) +
                                  " pretrain_gpt.py --micro-batch-size 1",
                              "train.sh")
                  .devices,
              0);
  }
}

TEST(MegatronImport, ReadsLatentAttentionAndFurtherPredictions) {
  const std::string sizes =
      "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --multi-latent-attention "
      "--qk-layernorm --position-embedding-type rope ";
  const ModelShape usual = *import(sizes).shape;
  EXPECT_TRUE(usual.latent_attention);
  EXPECT_FALSE(usual.qk_norm);
  EXPECT_EQ(usual.q_rank, 0);
  EXPECT_EQ(usual.kv_rank, 32);
  EXPECT_EQ(usual.qk_dim, 128 + 64);
  EXPECT_EQ(usual.head_dim, 128);
  EXPECT_EQ(usual.mtp_modules, 0);
  const ModelShape shape =
      *import(sizes +
              "--q-lora-rank 48 --kv-lora-rank 24 --qk-head-dim 16 --qk-pos-emb-head-dim 8 "
              "--v-head-dim 12 --mtp-num-layers 2 --mtp-use-repeated-layer")
           .shape;
  EXPECT_EQ(shape.q_rank, 48);
  EXPECT_EQ(shape.kv_rank, 24);
  EXPECT_EQ(shape.qk_dim, 24);
  EXPECT_EQ(shape.rotary_dim, 8);
  EXPECT_EQ(shape.head_dim, 12);
  EXPECT_EQ(shape.mtp_modules, 2);
  EXPECT_TRUE(shape.mtp_shared);
}

TEST(MegatronImport, SaysWhyTheSizesAreNotAllOfTheModel) {
  const std::string sizes = "--num-layers 8 --hidden-size 64 --num-attention-heads 4 ";
  EXPECT_TRUE(import(sizes).no_shape.empty());
  const Import run = import(sizes + "--hybrid-attention-ratio 0.1");
  EXPECT_FALSE(run.shape.has_value());
  EXPECT_FALSE(run.no_shape.empty());
}

TEST(MegatronImport, ReadsTheLayersOfAHybrid) {
  const std::string sizes = "--num-layers 99 --hidden-size 64 --num-attention-heads 4 ";
  const ModelShape shape =
      *import(sizes +
              "--pipeline-model-parallel-size 2 --hybrid-layer-pattern 'MEM*|EM-/*E/*E' "
              "--mamba-num-heads 6 --mamba-state-dim 32 --moe-latent-size 24 --num-experts 4")
           .shape;
  EXPECT_EQ(shape.layer_pattern, "MEM*EM-");
  EXPECT_EQ(shape.blocks, 7);
  EXPECT_EQ(shape.mtp_pattern, "*E");
  EXPECT_EQ(shape.mtp_modules, 2);
  EXPECT_EQ(shape.state_heads, 6);
  EXPECT_EQ(shape.state_head_dim, 64);
  EXPECT_EQ(shape.state_size, 32);
  EXPECT_EQ(shape.state_groups, 8);
  EXPECT_EQ(shape.expert_latent, 24);
  const ModelShape earlier = *import(sizes +
                                     "--hybrid-override-pattern M* --mtp-num-layers 1 "
                                     "--mtp-hybrid-override-pattern M- --mamba-head-dim 16")
                                  .shape;
  EXPECT_EQ(earlier.layer_pattern, "M*");
  EXPECT_EQ(earlier.mtp_pattern, "M-");
  EXPECT_EQ(earlier.mtp_modules, 1);
  EXPECT_EQ(earlier.state_heads, 8);
}

TEST(MegatronImport, ReadsFormatsOfTheOptimizerState) {
  const std::string formats =
      "--bf16 --main-grads-dtype bf16 --exp-avg-dtype bf16 --exp-avg-sq-dtype fp8 ";
  EXPECT_EQ(import(formats).precision->optimizer_bytes_per_parameter, 12);
  const Precision aware = *import(formats + "--use-precision-aware-optimizer").precision;
  EXPECT_EQ(aware.optimizer_bytes_per_parameter, 4 + 2 + 1);
  EXPECT_EQ(aware.gradient, Dtype::bf16);
  EXPECT_EQ(import("--use-precision-aware-optimizer").precision->optimizer_bytes_per_parameter, 8);
}

TEST(MegatronImport, CountsEmbeddingAndLossAsBlocks) {
  const std::string form =
      "--num-layers 30 --pipeline-model-parallel-size 4 --account-for-loss-in-pipeline-split ";
  EXPECT_THAT(import(form + "--account-for-embedding-in-pipeline-split").chunk_blocks,
              ElementsAre(7, 8, 8, 7));
}

TEST(MegatronImport, KnowsWhatChangesNeitherTimeNorMemory) {
  EXPECT_THAT(
      import("--wandb-entity me --use-persistent-ckpt-worker --ckpt-fully-parallel-save "
             "--no-ckpt-fully-parallel-save --ckpt-assume-constant-structure "
             "--save-retain-interval 5 --lr-wsd-decay-samples 9 --lr-wsd-decay-style cosine "
             "--te-rng-tracker --log-energy --disable-gloo-process-groups --data-impl mmap "
             "--no-query-key-layer-scaling --otel-enabled --inprocess-restart --eval-iters 3 "
             "--spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec")
          .unknown,
      IsEmpty());
  EXPECT_THAT(import("--spec mine my_spec").notes,
              ElementsAre(::testing::HasSubstr("--spec mine my_spec: not read")));
}

TEST(MegatronImport, SaysThatBatchesGrow) {
  for (const char* ramp : {"--rampup-batch-size 32 32 1000", "--step-batch-size-schedule 0:64"}) {
    EXPECT_THAT(import(ramp).notes,
                ElementsAre(::testing::HasSubstr("here every iteration has the whole batch")))
        << ramp;
  }
}

TEST(MegatronImport, ReadsMegatronDeepSpeed) {
  const Import run = import_megatron(
      "deepspeed --num_gpus 8 --num_nodes 2 pretrain_gpt.py --tensor-model-parallel-size 2 "
      "--micro-batch-size 4 --num-layers 24 --hidden-size 2048 --num-attention-heads 16 "
      "--seq-length 2048 --fp16 --deepspeed --deepspeed_config ds.json --zero-stage 2 "
      "--no-pipeline-parallel --checkpoint-activations --deepspeed-activation-checkpointing "
      "--ds-sequence-parallel-size 4 --num-key-value-heads 4 --use-flash-attn-v2 --cpu-optimizer "
      "--train-tokens 300 --lr-decay-tokens 3 --num-experts 1",
      "ds.sh");
  EXPECT_EQ(run.trainer, "deepspeed");
  EXPECT_EQ(run.devices, 16);
  EXPECT_EQ(run.parallel.zero, Zero::gradients);
  EXPECT_EQ(run.parallel.recompute, Recompute::full);
  EXPECT_EQ(run.parallel.cp, 4);
  EXPECT_TRUE(run.parallel.offload_optimizer);
  ASSERT_TRUE(run.shape.has_value());
  EXPECT_EQ(run.shape->kv_heads, 4);
  EXPECT_EQ(run.shape->experts, 0);
  EXPECT_THAT(run.unknown, IsEmpty());
  EXPECT_THAT(run.notes, ::testing::Contains(::testing::HasSubstr("--deepspeed_config ds.json")));
  EXPECT_EQ(import("--deepspeed").parallel.zero, Zero::optimizer);
  EXPECT_EQ(import("--zero-stage 3").parallel.zero, Zero::none);
}

TEST(MegatronImport, ReadsTheNamesOfEarlierYears) {
  const Import run = import_megatron(
      "pretrain_gpt2.py --model-parallel-size 8 --batch-size 4 --num-layers 24 --hidden-size 1024 "
      "--num-attention-heads 16 --checkpoint-activations --checkpoint-num-layers 2 --fp16",
      "old.sh");
  EXPECT_EQ(run.parallel.tp, 8);
  EXPECT_EQ(run.parallel.micro_batch, 4);
  EXPECT_EQ(run.parallel.recompute, Recompute::full);
  EXPECT_THAT(run.notes, ElementsAre(::testing::HasSubstr("--checkpoint-num-layers 2")));
  EXPECT_THAT(run.unknown, IsEmpty());
}

TEST(MegatronImport, DoesNotTakeOtherModelsForDecoders) {
  const std::string sizes =
      " --micro-batch-size 1 --hidden-size 768 --num-attention-heads 12 --kv-channels 64";
  const Import t5 = import_megatron("pretrain_t5.py" + sizes +
                                        " --encoder-num-layers 12 --decoder-num-layers 12 "
                                        "--encoder-seq-length 512 --decoder-seq-length 128",
                                    "t5.sh");
  EXPECT_FALSE(t5.shape.has_value());
  EXPECT_EQ(t5.no_shape, "the model has an encoder beside the decoder");
  EXPECT_EQ(t5.seq_len, 512);
  EXPECT_THAT(t5.unknown, IsEmpty());
  EXPECT_FALSE(import_megatron("pretrain_bert.py --num-layers 24" + sizes, "b.sh").shape);
  EXPECT_TRUE(import_megatron("pretrain_gpt.py --num-layers 24" + sizes, "g.sh").shape);
}

TEST(MegatronImport, ReadsExpertsOfMegatronDeepSpeed) {
  const std::string sizes =
      "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --moe-expert-parallel-size 2 ";
  const Import every = import(sizes + "--deepspeed --num-experts 8 --topk 1");
  EXPECT_EQ(every.parallel.ep, 2);
  ASSERT_TRUE(every.shape.has_value());
  EXPECT_EQ(every.shape->expert_blocks, "0101");
  EXPECT_EQ(every.shape->top_k, 1);
  const Import mixed = import(sizes + "--deepspeed --num-experts 8 16");
  EXPECT_FALSE(mixed.shape.has_value());
  EXPECT_EQ(mixed.no_shape, "the model has layers with different numbers of experts");
}

TEST(MegatronImport, NamesFilesThatMaySetWhatIsNotSet) {
  const auto notes = [](const std::string& end) {
    return import_megatron("source conf.sh\npretrain_gpt.py --micro-batch-size 1 " + end, "t.sh")
        .notes;
  };
  EXPECT_THAT(notes("$MORE"), ElementsAre(::testing::EndsWith("left out: $MORE"),
                                          ::testing::EndsWith("not read: conf.sh")));
  EXPECT_THAT(notes(""), IsEmpty());
}

TEST(MegatronImport, ListsWhatItDoesNotKnow) {
  EXPECT_THAT(import("--lr 1e-4 --my-flag 1 2 --other --bf16 --weight-decay -0.1").unknown,
              ElementsAre("--my-flag 1 2", "--other"));
}

TEST(MegatronImport, RefusesWhatIsNoNumber) {
  for (const char* arguments :
       {"--tensor-model-parallel-size two", "--tensor-model-parallel-size 0",
        "--tensor-model-parallel-size", "--num-layers 1e99",
        "--num-layers 30 --pipeline-model-parallel-size 4 "
        "--num-layers-per-virtual-pipeline-stage 4",
        "--pipeline-model-parallel-layout 'E|t*99999999|L'",
        "--pipeline-model-parallel-layout '((((t)L'", "--pipeline-model-parallel-layout 'x|y'"}) {
    EXPECT_THROW(import(arguments), Error) << arguments;
  }
  EXPECT_THROW(import_megatron("echo hello", "train.sh"), Error);
}

}  // namespace
}  // namespace braid

#include "braid/validate/predict.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "braid/frontend/model.h"
#include "braid/graph/graph.h"
#include "braid/graph/op_work.h"
#include "braid/plan/dealt_layers.h"
#include "braid/plan/direct_plan.h"
#include "braid/plan/gradient_placeholders.h"
#include "braid/schedule/timeline.h"
#include "braid/validate/hardware.h"
#include "braid/validate/measured_time.h"
#include "braid/validate/run_model.h"
#include "braid/validate/run_trainer.h"
#include "braid/verify/verify.h"

#include "base/reference_files.h"
#include "support/source_path.h"
#include "validate/read_runs.h"

namespace braid {
namespace {

/// A run of GPT-3 22B as Korthikanti et al. 2022, table 4 and 5, describe it.
MeasuredRun gpt_22b() {
  MeasuredRun run;
  run.framework = "Megatron-LM";
  run.hardware = "A100-SXM4-80GB (Selene)";
  run.devices = 8;
  run.model = "megatron-22B";
  run.layers = 48;
  run.hidden = 6144;
  run.ffn = 24576;
  run.heads = 64;
  run.vocab = 51200;
  run.seq_len = 2048;
  run.global_batch = run.micro_batch = 4;
  run.precision = "fp16";
  run.tp = 8;
  run.recompute = "full";
  run.iteration_time_s = 1.42;
  return run;
}

TEST(Predict, PlansWhatTheRowSays) {
  const Prediction prediction = predict(gpt_22b());
  ASSERT_TRUE(prediction.predicted()) << prediction.reason;
  EXPECT_EQ(prediction.parallel.tp, 8);
  EXPECT_EQ(prediction.parallel.dp, 1);
  EXPECT_EQ(prediction.parallel.num_micro_batches, 1);
  EXPECT_EQ(prediction.parallel.recompute, Recompute::full);
  EXPECT_FALSE(prediction.parallel.sequence_parallel);
  EXPECT_GT(prediction.metrics.iteration_time_s, prediction.bound_s);
  EXPECT_NEAR(prediction.ratio(), 1, 0.25);
}

TEST(Predict, HasIntervalsAroundItsTime) {
  const Prediction prediction = predict(gpt_22b());
  ASSERT_TRUE(prediction.interval);
  EXPECT_LT(prediction.interval->low, 1);
  EXPECT_GT(prediction.interval->high, 1);
  EXPECT_LT(prediction.interval->width(), 1);
  // No peak of memory was measured with this trainer.
  EXPECT_FALSE(prediction.memory_interval);
}

TEST(Predict, RecomputationOfEverySecondOperatorIsHalfwayToFull) {
  const auto of = [](const char* words) {
    MeasuredRun run = gpt_22b();
    run.recompute = words;
    return predict(run).metrics;
  };
  const Metrics none = of("none"), half = of("selective per-op"), full = of("full");
  EXPECT_NEAR(half.iteration_time_s, (none.iteration_time_s + full.iteration_time_s) / 2, 1e-9);
  EXPECT_NEAR(half.peak_memory_bytes, (none.peak_memory_bytes + full.peak_memory_bytes) / 2, 1);
  EXPECT_NEAR(half.tokens_per_s * half.iteration_time_s, full.tokens_per_s * full.iteration_time_s,
              1);
}

TEST(Predict, AsynchronousTensorParallelismHidesSums) {
  const auto of = [](const char* sharding) {
    MeasuredRun run = gpt_22b();
    run.framework = "torchtitan";
    run.hardware = "H100";
    run.precision = "bf16";
    run.sharding = sharding;
    return predict(run);
  };
  const Prediction plain = of("FSDP"), asynchronous = of("FSDP + async TP");
  ASSERT_TRUE(asynchronous.predicted()) << asynchronous.reason;
  EXPECT_LT(asynchronous.metrics.tp_comm_s, plain.metrics.tp_comm_s);
}

TEST(Predict, ReadsModelsFromTheirConfigurations) {
  MeasuredRun run = gpt_22b();
  run.file = test::source_path("examples/runs.csv");
  run.model = "llama-3-70b/config.json";
  run.layers = run.hidden = run.ffn = run.heads = run.vocab = 0;
  const RunModel model = model_of(run);
  ASSERT_TRUE(model.graph) << model.reason;
  EXPECT_NEAR(parameter_count(*model.graph), 70.6e9, 0.1e9);
  run.model = "nowhere/config.json";
  EXPECT_FALSE(predict(run).predicted());
}

TEST(Predict, CardsHeldBelowTheirPowerAreSlower) {
  const auto of = [](const char* hardware) {
    MeasuredRun run = gpt_22b();
    run.hardware = hardware;
    return predict(run).metrics.iteration_time_s;
  };
  const double usual_s = of("A100-SXM4-80GB");
  EXPECT_EQ(of("A100-SXM4-80GB (400 W)"), usual_s);
  EXPECT_EQ(of("A100-SXM4-80GB, 1.5 kW node"), usual_s);
  EXPECT_GT(of("A100-SXM4-80GB (250W)"), usual_s);
  EXPECT_LT(of("A100-SXM4-80GB (250W)"), usual_s * std::cbrt(400.0 / 250));
}

TEST(Predict, SaysWhyNot) {
  const auto reason = [](auto change) {
    MeasuredRun run = gpt_22b();
    change(run);
    return predict(run).reason;
  };
  EXPECT_EQ(reason([](MeasuredRun& r) { r.hardware = "abacus"; }),
            "hardware 'abacus' is not in the catalogue");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.hardware = ""; }), "the hardware is not said");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.devices = 0; }), "the number of devices is not said");
  EXPECT_EQ(reason([](MeasuredRun& r) {
              r.heads = 0;
              r.model = "who";
            }),
            "model 'who' is not in the zoo, and layers, hidden and heads are not given");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.heads = 7; }), "heads do not divide the hidden size");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.seq_len = 0; }), "the sequence length is not said");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.lists = {"tp"}; }), "tp differs from stage to stage");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.pp = 3; }),
            "tp x pp x cp x dp = 24 x dp is not 8 devices");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.dp = 2; }), "tp x pp x cp x dp = 8 x 2 is not 8 devices");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.micro_batch = 3; }),
            "dp x mbs does not divide the global batch");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.global_batch = 0; }), "the global batch is not said");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.recompute = "per-op"; }),
            "recomputation 'per-op' is not known");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.sharding = "half"; }), "sharding 'half' is not known");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.precision = "int3"; }), "precision 'int3' is not known");
  EXPECT_EQ(reason([](MeasuredRun& r) {
              r.hardware = "H100";
              r.precision = "";
            }),
            "the precision is not said, and the chip has 8-bit units");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.notes = "plan in best.yaml; 3 runs"; }),
            "the plan is in a file that the notes only name");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.tp = 0; }), "how the model was split is not said");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.iteration_time_s = 0; }),
            "no figure says how long an iteration took");
  EXPECT_EQ(reason([](MeasuredRun& r) { r.precision = "fp8"; }),
            "chip a100-sxm-80gb lists no fp8 peak; choose a --precision that it has: bf16, fp16, "
            "tf32, fp32");
}

TEST(Predict, UnknownSchedulesAreRefusedWhereThereIsAPipeline) {
  MeasuredRun run = gpt_22b();
  run.schedule = "ZB-1p";
  EXPECT_EQ(predict(run).reason, "");
  run.tp = run.pp = 2;
  run.dp = 2;
  run.micro_batch = 1;
  EXPECT_EQ(predict(run).reason, "schedule 'ZB-1p' is not known");
  run.schedule = "1F1B-I";
  EXPECT_EQ(predict(run).parallel.vp, 2);
  run.layers = 22;  // With embedding and head 24: three to a chunk.
  run.pp = 4;
  run.dp = 1;
  EXPECT_EQ(predict(run).parallel.vp, 2);
  run.schedule = "GPipe";
  EXPECT_EQ(predict(run).parallel.schedule, ScheduleKind::gpipe);
}

TEST(Predict, MegatronOnLaterChipsKeepsNoScores) {
  MeasuredRun run = gpt_22b();
  run.recompute = "none";
  const double old_bytes = predict(run).metrics.peak_memory_bytes;
  run.hardware = "H100 SXM5 80GB (Eos)";
  const Prediction later = predict(run);
  EXPECT_LT(later.metrics.peak_memory_bytes, 0.7 * old_bytes);
  EXPECT_TRUE(later.parallel.sequence_parallel);
  EXPECT_EQ(later.parallel.zero, Zero::optimizer);
}

/// Twice the micro-batch would need more than the chip has.
TEST(Predict, MicroBatchesThatAreNotSaidAreTheLargestThatFit) {
  MeasuredRun run = gpt_22b();
  run.global_batch = 96;
  run.micro_batch = 0;
  const PreparedRun prepared = prepare(run);
  const Prediction prediction = predict(run);
  ASSERT_TRUE(prediction.predicted()) << prediction.reason;
  const double room = usable_bytes(prepared.system.groups.front().chip);
  EXPECT_LE(prediction.metrics.peak_memory_bytes, room);
  const int micro_batch = prediction.parallel.micro_batch;
  EXPECT_GT(micro_batch, 1);
  EXPECT_LT(micro_batch, 96);
  EXPECT_EQ(micro_batch * prediction.parallel.num_micro_batches, 96);
  run.micro_batch = 2 * micro_batch;
  EXPECT_GT(predict(run).metrics.peak_memory_bytes, room);
  run.micro_batch = 0;
  run.global_batch = 2;
  EXPECT_EQ(predict(run).parallel.micro_batch, 2);
}

TEST(Predict, SamplesPerSecondInTheNotesTellTheTime) {
  MeasuredRun run = gpt_22b();
  run.iteration_time_s = 0;
  run.notes = "46.91 samples/s as printed";
  EXPECT_DOUBLE_EQ(predict(run).measured_s, 4 / 46.91);
  run.notes = "0.5 samples/s/GPU";
  EXPECT_DOUBLE_EQ(predict(run).measured_s, 1);
}

TEST(Predict, PrecisionThatIsNotSaidIsOneOfTheChips) {
  MeasuredRun run = gpt_22b();
  run.hardware = "V100";
  run.precision = "";
  EXPECT_EQ(prepare(run).precision.matmul, Dtype::f16);
}

/// Llama 3 report, table 4: 16,384 devices, and section 3.3.2: the first chunk holds the embedding
/// alone, so each of the 126 blocks is a chunk of its own; sharded state, but gradients summed over
/// micro-batches before they are reduced.
TEST(Predict, OneLayerChunksWhereTheTrainerHasThem) {
  MeasuredRun run;
  run.framework = "Meta internal";
  run.precision = "bf16";
  run.hardware = "H100 80GB";
  run.model = "Llama3.1-405B";
  run.devices = 16384;
  run.seq_len = 8192;
  run.global_batch = 2048;
  run.tp = 8;
  run.pp = 16;
  run.schedule = "modified interleaved 1F1B";
  run.sharding = "FSDP (ZeRO-2-like)";
  run.model_tflops_per_device = 400;
  const Prediction prediction = predict(run);
  ASSERT_TRUE(prediction.predicted()) << prediction.reason;
  EXPECT_EQ(prediction.parallel.vp, 8);
  EXPECT_EQ(prediction.parallel.zero, Zero::optimizer);
  EXPECT_NEAR(prediction.ratio(), 1, 0.2);
}

TEST(Predict, AdaptersNeedNoWeightGradients) {
  MeasuredRun run = gpt_22b();
  run.recompute = "none";
  const Prediction whole = predict(run);
  run.notes = "LoRA; eight of them";
  const Prediction adapters = predict(run);
  ASSERT_TRUE(adapters.predicted()) << adapters.reason;
  EXPECT_DOUBLE_EQ(adapters.bound_s, whole.bound_s * 2 / 3);
  EXPECT_GE(adapters.metrics.iteration_time_s, adapters.bound_s);
  // One of three products of every weight is gone; attention keeps all of its.
  EXPECT_LT(adapters.metrics.compute_s, 0.85 * whole.metrics.compute_s);
  EXPECT_GT(adapters.metrics.compute_s, 2.0 / 3 * whole.metrics.compute_s);
  EXPECT_LT(adapters.metrics.peak_memory_bytes, whole.metrics.peak_memory_bytes);
  EXPECT_GT(adapters.metrics.peak_memory_bytes, 0.1 * whole.metrics.peak_memory_bytes);
}

TEST(Predict, GradientsAreAddedUpAndSummedAsTheTrainerOfTheTimeDoes) {
  MeasuredRun run = gpt_22b();
  run.global_batch = 3 * run.micro_batch;
  const auto time_s = [&](const std::string& source) {
    run.source = source;
    return predict(run).metrics.iteration_time_s;
  };
  const double fused_s = time_s("arXiv 2205.05198 Table 5");
  PreparedRun prepared = prepare(run);
  prepared.trainer = {};
  const Plan plan = plan_of(prepared, prepared.system);
  double parameters = 0, hidden_s = 0;
  for (const ProfileLayer& layer : plan.profile.layers) {
    const LayerCost& cost = plan.profile.kinds[static_cast<std::size_t>(layer.kind)][0].cost;
    parameters += cost.dense_parameters;
    hidden_s += cost.hidden_tp_s;
  }
  EXPECT_GT(hidden_s, 0);
  const Chip& chip = prepared.system.groups.front().chip;
  // Two of the three micro-batches read two gradients in fp16 and write their sum; the sums over
  // tensor-parallel ranks hide behind nothing.
  const double apart_s =
      fused_s + 3 * hidden_s +
      2 * 6 * parameters / (chip.memory.bytes_per_s * chip.efficiency.memory_peak_fraction);
  for (const char* source :
       {"", "arXiv", "arXiv:2104.04473 table 1", "arXiv 20a5.05198", "2205."}) {
    EXPECT_NEAR(time_s(source), apart_s, 1e-9 * apart_s) << source;
  }
  run.global_batch = run.micro_batch;
  EXPECT_NEAR(time_s(""), time_s("arxiv.org/abs/2205.05198") + hidden_s, 1e-9 * apart_s);
}

TEST(Predict, OldAttentionKernelsAreSlowerWhereNewOnesExist) {
  MeasuredRun run = gpt_22b();
  run.precision = "bf16";
  run.seq_len = 32768;
  const auto time_s = [&](const char* hardware, const char* framework) {
    run.hardware = hardware;
    run.framework = framework;
    const Prediction prediction = predict(run);
    EXPECT_EQ(prediction.reason, "");
    return prediction.metrics.iteration_time_s;
  };
  EXPECT_GT(time_s("H100", "Composer"), 1.1 * time_s("H100", "another"));
  EXPECT_DOUBLE_EQ(time_s("A100", "Composer"), time_s("A100", "another"));
}

/// A run of an MoE by Megatron-Bridge.
MeasuredRun bridge_run(const char* model) {
  MeasuredRun run;
  run.framework = "Megatron-Bridge/Megatron-Core 25.11";
  run.hardware = "GB200";
  run.devices = 8;
  run.model = model;
  run.seq_len = 4096;
  run.global_batch = 32;
  run.micro_batch = 1;
  run.ep = 8;
  run.tp = run.pp = 1;
  run.precision = "BF16";
  run.iteration_time_s = 1;
  return run;
}

TEST(Predict, LaterTrainersCaptureGraphsAndHideDispatch) {
  MeasuredRun run = bridge_run("Qwen3_30B_a3B");
  run.micro_batch = 4;
  const auto metrics = [&](const char* version, const char* precision) {
    MeasuredRun other = run;
    other.framework = std::string("Megatron-Bridge/Megatron-Core ") + version;
    other.precision = precision;
    const Prediction prediction = predict(other);
    EXPECT_TRUE(prediction.predicted()) << prediction.reason;
    return prediction.metrics;
  };
  const Metrics before = metrics("26.04.01", "MXFP8");
  const Metrics after = metrics("26.06", "MXFP8");
  EXPECT_LT(after.iteration_time_s, before.iteration_time_s);
  EXPECT_DOUBLE_EQ(metrics("25.11", "MXFP8").iteration_time_s, before.iteration_time_s);
  // Formats without scales for blocks are not captured.
  EXPECT_DOUBLE_EQ(metrics("26.06", "BF16").iteration_time_s,
                   metrics("26.04", "BF16").iteration_time_s);
  // What is hidden costs the kernels its share.
  const System system = load_system("gb200-nvl72:72");
  const double loss = system.groups.front().chip.efficiency.overlap_loss;
  EXPECT_NEAR(after.ep_comm_s, loss * before.ep_comm_s, 1e-6 * before.ep_comm_s);
}

TEST(Predict, DroppedTokensLetARecipeCaptureWholeIterations) {
  const auto trainer = [](const char* model, const char* hardware) {
    MeasuredRun run = bridge_run(model);
    run.hardware = hardware;
    return trainer_of_run(subject_of(run)).trainer(subject_of(run)).does;
  };
  EXPECT_TRUE(trainer("Qwen3_30B_a3B (tokendrop)", "B200").captured_graphs);
  EXPECT_FALSE(trainer("Qwen3_30B_a3B", "B200").captured_graphs);
  EXPECT_FALSE(trainer("Qwen3_30B_a3B (tokendrop)", "H100").captured_graphs);
  EXPECT_FALSE(trainer("Qwen3_235B_a22B (tokendrop)", "B200").captured_graphs);
  EXPECT_FALSE(trainer("DeepSeekV3 (tokendrop)", "B200").captured_graphs);
  for (const char* model : {"Qwen3_30B_a3B", "Qwen3_235B_a22B", "DeepSeekV3"}) {
    EXPECT_FALSE(trainer(model, "H100").padded_experts);
    EXPECT_TRUE(trainer((std::string(model) + " (tokendrop)").c_str(), "H100").padded_experts);
  }
  // The host that issues 16 experts one by one decides.
  const auto time_s = [](const char* model) {
    MeasuredRun run = bridge_run(model);
    run.hardware = "B200";
    return predict(run).metrics.iteration_time_s;
  };
  EXPECT_LT(time_s("Qwen3_30B_a3B (tokendrop)"), 0.85 * time_s("Qwen3_30B_a3B"));
}

TEST(Predict, TokensAreSentForEachOfTheirExpertsWhereSomeAreDropped) {
  const auto ep_comm_s = [](const char* model) {
    return predict(bridge_run(model)).metrics.ep_comm_s;
  };
  // Of 128 experts on 8 ranks, 8 of a token: copies cross for each of 8, 7 in 8 of them to other
  // ranks, in place of once for each rank.
  double none = 1;
  for (int i = 0; i < 8; ++i) none *= (112.0 - i) / (128.0 - i);
  const double ratio = 1 / (1 - none);
  const double dropped = ep_comm_s("Qwen3_30B_a3B (tokendrop)");
  const double all = ep_comm_s("Qwen3_30B_a3B");
  EXPECT_GT(dropped, 0.9 * ratio * all);
  EXPECT_LT(dropped, ratio * all);
}

TEST(Predict, LaterTrainersFuseBiasesOfExperts) {
  const auto experts = [](const char* framework, const char* precision) {
    MeasuredRun run = bridge_run("GPT OSS 120B");
    run.framework = framework;
    run.precision = precision;
    run.sharding = "FSDP";
    const Graph graph = prepare(run).graph;
    for (const Operator& op : graph.operators) {
      if (const auto* found = std::get_if<MoeExperts>(&op.kind)) return *found;
    }
    return MoeExperts{};
  };
  EXPECT_TRUE(experts("Megatron-Bridge 26.06", "BF16").biased);
  EXPECT_TRUE(experts("Megatron-Bridge 26.04", "MXFP8").clamped);
  EXPECT_FALSE(experts("Megatron-Bridge 26.06", "MXFP8").biased);
  EXPECT_FALSE(experts("MaxText", "BF16").clamped);
}

TEST(Predict, ExpertsMayLieOnTensorParallelRanks) {
  MeasuredRun run = bridge_run("Qwen3_30B_a3B");
  run.devices = run.ep = 16;
  run.tp = 4;
  run.dp = 4;
  EXPECT_EQ(prepare(run).reason, "");
  run.ep = 8;
  const PreparedRun prepared = prepare(run);
  ASSERT_EQ(prepared.reason, "");
  EXPECT_TRUE(prepared.parallel.whole_experts);
  Plan plan = plan_of(prepared, prepared.system);
  for (const Check& check : verify(plan).checks) {
    EXPECT_TRUE(check.holds) << check.name << ": " << check.detail;
  }
  // Plans read back and stages that are said one by one take as long.
  plan.parallel.zero = Zero::none;
  const Metrics metrics = measure(plan);
  plan.stages.front().own = StageConfig{};
  plan.stages.front().own->ep = 8;
  plan.stages.front().own->sequence_parallel = true;
  EXPECT_NEAR(measure(plan).iteration_time_s, metrics.iteration_time_s,
              1e-6 * metrics.iteration_time_s);
  run.framework = "another";
  EXPECT_EQ(predict(run).reason,
            "ep 8 does not divide dp x cp = 4, and experts are not spread over tensor-parallel "
            "ranks");
  // Where they are sharded already, nothing changes with one rank.
  run = bridge_run("Qwen3_30B_a3B");
  EXPECT_FALSE(prepare(run).parallel.whole_experts);
}

TEST(Predict, MtpIsWhatTheTrainerAndTheRowSay) {
  const auto layers = [](const char* model, const char* framework) {
    MeasuredRun run = bridge_run(model);
    run.framework = framework;
    return model_of(run).graph->layers.size();
  };
  EXPECT_EQ(layers("DeepSeekV3", "Megatron-Bridge 26.02"), 64U);
  EXPECT_EQ(layers("DeepSeekV3 (w/o MTP)", "Megatron-Bridge 25.11"), 63U);
  EXPECT_EQ(layers("DeepSeekV3", "another"), 63U);
  EXPECT_EQ(layers("DeepSeekV3 (w/ MTP)", "another"), 64U);
  EXPECT_EQ(layers("Kimi_K2", "Megatron-Bridge 26.02"), 63U);
  MeasuredRun run = bridge_run("DeepSeekV3");
  run.devices = 64;
  run.pp = 4;
  run.vp = 4;
  run.dp = 16;
  run.global_batch = 64;
  const PreparedRun prepared = prepare(run);
  ASSERT_EQ(prepared.reason, "");
  const Plan plan = plan_of(prepared, prepared.system);
  // The last chunk has one block beside the two ends.
  EXPECT_EQ(plan.stages.back().chunks.back().layers.size(), 3U);
  for (const Check& check : verify(plan).checks) {
    if (check.name == "memory") continue;
    EXPECT_TRUE(check.holds) << check.name << ": " << check.detail;
  }
}

TEST(Predict, FrozenLayersHideNoSums) {
  MeasuredRun run = gpt_22b();
  run.source = "arXiv 2205.05198 Table 5";
  const double hidden_s = [&] {
    const PreparedRun prepared = prepare(run);
    const Plan plan = plan_of(prepared, prepared.system);
    double sum_s = 0;
    for (const ProfileLayer& layer : plan.profile.layers) {
      sum_s += plan.profile.kinds[static_cast<std::size_t>(layer.kind)][0].cost.hidden_tp_s;
    }
    return sum_s;
  }();
  const Metrics trained = predict(run).metrics;
  run.notes = "LoRA";
  EXPECT_GT(hidden_s, 0);
  EXPECT_NEAR(predict(run).metrics.tp_comm_s, trained.tp_comm_s + hidden_s, 1e-9);
}

TEST(Predict, HybridsAreCapturedInPart) {
  const auto time_s = [](const char* model, const char* framework) {
    MeasuredRun run = bridge_run(model);
    run.precision = "MXFP8";
    run.framework = std::string("Megatron-Bridge/Megatron-Core ") + framework;
    return predict(run).metrics.iteration_time_s;
  };
  EXPECT_LT(time_s("Qwen3_30B_a3B", "26.06"), time_s("Qwen3_30B_a3B", "26.04"));
  EXPECT_DOUBLE_EQ(time_s("Nemotron_3_Nano", "26.06"), time_s("Nemotron_3_Nano", "26.04"));
}

TEST(Predict, ModelsOfTheZooMayBeCut) {
  MeasuredRun run = gpt_22b();
  run.layers = run.hidden = run.heads = 0;
  run.model = "deepseekv2_truncated_layers";
  run.layers = 4;
  // The first block is dense, three have experts.
  EXPECT_EQ(model_of(run).graph->layers.size(), 6U);
  run.layers = 61;
  EXPECT_EQ(model_of(run).reason, "model 'deepseekv2_truncated_layers' has 60 layers, not 61");
  // DeepSeek-V3's three dense blocks are one where it is cut.
  run.model = "deepseekv3_truncated_layers";
  run.layers = 4;
  const Graph cut = *model_of(run).graph;
  EXPECT_EQ(cut.layers.size(), 6U);
  const auto experts =
      std::count_if(cut.operators.begin(), cut.operators.end(),
                    [](const Operator& op) { return std::holds_alternative<MoeExperts>(op.kind); });
  EXPECT_EQ(experts, 3);
}

TEST(Predict, FusedCrossEntropyKeepsNoCopyOfTheLogits) {
  MeasuredRun run = gpt_22b();
  run.hardware = "H100 SXM5 80GB (Eos)";
  run.recompute = "none";
  run.layers = 1;
  const Metrics chain = predict(run).metrics;
  run.notes = "case gpt_l1_tp8_mbc1_cef";
  const Metrics fused = predict(run).metrics;
  // 4 bytes kept and 16 at work for a logit, against another layer's work.
  const double logits = 4.0 * 2048 * 51200 / 8;
  EXPECT_LT(fused.peak_memory_bytes, chain.peak_memory_bytes - 4 * logits);
  EXPECT_GT(fused.peak_memory_bytes, chain.peak_memory_bytes - 20 * logits - 1);
  EXPECT_LT(fused.iteration_time_s, chain.iteration_time_s);
}

TEST(Predict, PlaceholdersOfGradientsAreOneForEachShape) {
  MeasuredRun run = gpt_22b();
  run.hardware = "H100 SXM5 80GB (Eos)";
  PreparedRun prepared = prepare(run);
  ASSERT_TRUE(prepared.trainer.does.gradient_placeholders);
  const double with = metrics_of(prepared, prepared.system).peak_memory_bytes;
  prepared.trainer.does.gradient_placeholders = false;
  const double without = metrics_of(prepared, prepared.system).peak_memory_bytes;
  // Of 48 blocks and the projection to the vocabulary, on eight ranks, two bytes each.
  const double block = 12.0 * 6144 * 6144, head = 6144.0 * 51200;
  EXPECT_NEAR(with - without, 2 * (block + head) / 8, 1);
  run.model = "deepseekv2_truncated_layers";
  run.layers = 4;
  run.hidden = run.ffn = run.heads = run.vocab = 0;
  run.tp = 1;
  run.ep = 8;
  run.dp = 8;
  run.global_batch = 8;
  run.micro_batch = 1;
  prepared = prepare(run);
  ASSERT_EQ(prepared.reason, "");
  prepared.trainer.does.gradient_placeholders = false;
  Plan plan = plan_of(prepared, prepared.system);
  const double before = measure(plan).peak_memory_bytes;
  add_gradient_placeholders(prepared.graph, plan);
  const double attention =
      5120.0 * 1536 + 1536.0 * 128 * 192 + 5120.0 * 576 + 512.0 * 128 * 256 + 128.0 * 128 * 5120;
  const double dense = 3.0 * 5120 * 12288, expert = 3.0 * 5120 * 1536, shared = 3.0 * 5120 * 3072;
  EXPECT_NEAR(measure(plan).peak_memory_bytes - before,
              2 * (attention + dense + expert + shared + 5120.0 * 102400), 1);
}

TEST(Predict, UsesACalibration) {
  const MeasuredRun run = gpt_22b();
  Achieved slower;
  slower.matmul = 0.35;
  const Calibration calibration = {"f", {{"a100-sxm-80gb", 3, slower}}};
  EXPECT_GT(predict(run, calibration).metrics.iteration_time_s,
            1.3 * predict(run).metrics.iteration_time_s);
  EXPECT_DOUBLE_EQ(predict(run, calibration).bound_s, predict(run).bound_s);
}

TEST(Predict, ReadsNodeLinksFromText) {
  MeasuredRun run = gpt_22b();
  run.devices = 64;
  const auto uplink = [&](const std::string& text) {
    run.interconnect = text;
    const RunSystem found = system_of(run);
    EXPECT_EQ(found.reason, "");
    return std::pair{found.system.levels.front().unit_bytes_per_s,
                     found.system.levels.front().bytes_per_s};
  };
  EXPECT_EQ(uplink("4x100Gb RoCE per node"), (std::pair{50e9, 6.25e9}));
  EXPECT_EQ(uplink("NVLink + 8x200Gb HDR IB per node"), (std::pair{200e9, 25e9}));
  EXPECT_EQ(uplink("400Gbps/node"), (std::pair{50e9, 6.25e9}));
  EXPECT_EQ(uplink("NVLink + 400Gb/s RoCE per GPU"), (std::pair{400e9, 50e9}));
  EXPECT_EQ(uplink("NVLink + 4x OmniPath 100"), (std::pair{50e9, 6.25e9}));
  EXPECT_EQ(uplink("NVSwitch"), uplink(""));
}

TEST(Predict, SixtyFourOfARackOf72RunAJob) {
  MeasuredRun run = gpt_22b();
  run.hardware = "GB200";
  run.interconnect.clear();
  const auto nodes = [&](std::int64_t devices) {
    run.devices = devices;
    const System system = system_of(run).system;
    EXPECT_EQ(system.device_count, devices);
    return std::pair{system.groups[0].nodes, system.groups[0].devices_per_node};
  };
  using Nodes = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(nodes(256), Nodes(4, 64));
  EXPECT_EQ(nodes(64), Nodes(1, 64));
  EXPECT_EQ(nodes(72), Nodes(1, 72));
  EXPECT_EQ(nodes(144), Nodes(2, 72));
  run.devices = 256;
  const System system = system_of(run).system;
  EXPECT_EQ(system.levels[0].rails, 64);
  EXPECT_DOUBLE_EQ(system.levels[0].unit_bytes_per_s, 64 * 50e9);
}

TEST(Predict, ModelFollowsFromDimensionsOrName) {
  MeasuredRun run = gpt_22b();
  // Twelve h² a block with biases and norms, the table and the positions.
  const double h = 6144;
  const double blocks = 48 * (12 * h * h + 13 * h);
  EXPECT_NEAR(static_cast<double>(parameter_count(*model_of(run).graph)),
              blocks + (51200 + 2048) * h + 2 * h, 1);
  run.layers = run.hidden = run.heads = 0;
  run.model = "LLAMA3.1_405B";
  EXPECT_NEAR(static_cast<double>(parameter_count(*model_of(run).graph)), 405.9e9, 0.1e9);
}

TEST(Predict, ReportedFlopsAreThePublishedFormula) {
  // Narayanan et al. 2021, appendix: 96 B s l h² (1 + s/(6h) + V/(16 l h)) with all blocks computed
  // again.
  const MeasuredRun run = gpt_22b();
  const Graph graph = *model_of(run).graph;
  const double b = 4, s = 2048, l = 48, h = 6144, v = 51200;
  EXPECT_NEAR(reported_flops(graph, 4, Recompute::full, true) /
                  (96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h))),
              1, 1e-9);
  // And 72 … V/(12 l h) without.
  EXPECT_NEAR(reported_flops(graph, 4, Recompute::full, false) /
                  (72 * b * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h))),
              1, 1e-9);
}

TEST(Predict, TakesTheTimeFromWhateverFigureThereIs) {
  MeasuredRun run = gpt_22b();
  const Graph graph = *model_of(run).graph;
  const System system = system_of(run).system;
  const Precision precision = parse_precision("fp16");
  const auto time_s = [&] {
    return measured_time_s(run, graph, precision, Recompute::full, system);
  };
  EXPECT_DOUBLE_EQ(time_s(), 1.42);
  run.iteration_time_s = 0;
  EXPECT_EQ(time_s(), 0);
  run.tokens_per_s_per_device = 512;
  EXPECT_DOUBLE_EQ(time_s(), 2);
  run.tokens_per_s_per_device = 0;
  run.notes = "reported TFLOP/s/GPU=142 counts recompute FLOPs";
  const double hardware = reported_flops(graph, 4, Recompute::full, true);
  EXPECT_DOUBLE_EQ(time_s(), hardware / (8 * 142e12));
  run.notes = "149.02 TFLOPs logged (hardware FLOPs formula)";
  EXPECT_DOUBLE_EQ(time_s(), hardware / (8 * 149.02e12));
  run.notes = "";
  run.hfu = 0.5;
  EXPECT_DOUBLE_EQ(time_s(), hardware / (8 * 156e12));
}

TEST(DirectPlan, DealsBlocksEvenly) {
  using Counts = std::vector<std::int32_t>;
  EXPECT_EQ(layers_of_chunks(14, 1), Counts{14});
  EXPECT_EQ(layers_of_chunks(14, 4), (Counts{4, 3, 3, 4}));
  // Embedding and head count where that comes out even (126 blocks over 8 stages of 16).
  EXPECT_EQ(layers_of_chunks(128, 8), Counts(8, 16));
  EXPECT_EQ(layers_of_chunks(12, 4), (Counts{3, 3, 3, 3}));
  EXPECT_EQ(layers_of_chunks(13, 4), (Counts{4, 3, 3, 3}));
  EXPECT_EQ(layers_of_chunks(6, 5), (Counts{2, 1, 1, 1, 1}));
  // DeepSeek-V3 with its MTP layer: fifteen chunks of four blocks, one with both ends.
  EXPECT_EQ(layers_of_chunks(64, 16, true),
            (Counts{5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3}));
  EXPECT_EQ(layers_of_chunks(14, 1, true), Counts{14});
}

TEST(DirectPlan, PassesTheIndependentChecks) {
  const Graph graph = load_model("gpt3-1.3b", {.seq_len = 1024, .dims = {}});
  const System system = load_system("dgx-a100:16");
  for (const int vp : {1, 3}) {
    Parallelism parallel;
    parallel.tp = 2;
    parallel.pp = 4;
    parallel.dp = 2;
    parallel.vp = vp;
    parallel.num_micro_batches = 8;
    parallel.schedule = vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
    const Plan plan = direct_plan(graph, {parallel, parse_precision("bf16"), {}, 16}, system);
    for (const Check& check : verify(plan).checks) {
      EXPECT_TRUE(check.holds) << check.name << ": " << check.detail;
    }
  }
}

TEST(DirectPlan, OneStageKeepsTiedEmbeddingsOnce) {
  const Graph graph = load_model("gpt2", {});
  Parallelism parallel;
  parallel.num_micro_batches = 4;
  const Plan plan =
      direct_plan(graph, {parallel, parse_precision("bf16"), {}, 4}, load_system("dgx-a100:1"));
  EXPECT_DOUBLE_EQ(memory_of_stages(plan)[0].weights,
                   2 * static_cast<double>(parameter_count(graph)));
  for (const Check& check : verify(plan).checks) {
    EXPECT_TRUE(check.holds) << check.name << ": " << check.detail;
  }
}

TEST(Predict, NothingBeatsTheBoundOnManyMeasuredRuns) {
  const std::string file = reference_file("data/measured_training_runs.csv");
  if (file.empty()) GTEST_SKIP() << "reference data not present";
  const std::vector<MeasuredRun> runs = test::read_runs(file).runs;
  std::size_t predicted = 0;
  for (std::size_t i = 0; i < runs.size(); i += 5) {
    const Prediction prediction = predict(runs[i]);
    if (!prediction.predicted()) continue;
    ++predicted;
    EXPECT_GE(prediction.metrics.iteration_time_s, prediction.bound_s) << runs[i].line;
  }
  EXPECT_GT(predicted, 150U);
}

}  // namespace
}  // namespace braid

#include "braid/serve/served_rows.h"

#include <cmath>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/serve/engine_fit.h"

namespace braid {
namespace {

constexpr const char* kHead =
    "id,silicon_data_source,backend,model_path,system,precision,mode,isl,osl,batch_size,tp_size,"
    "attention_dp_size,moe_tp_size,moe_ep_size,silicon_ttft_ms,silicon_tpot_ms\n";

std::vector<ServedRow> parsed(const std::string& rows) {
  return parse_served_rows(kHead + rows, "runs.csv");
}

TEST(ServedRows, AreRead) {
  const std::vector<ServedRow> rows = parsed(
      "a,x; silicon_concurrency=32; y,vllm,meta-llama/Llama-3.1-8B,h100_sxm,fp8,agg,1024,128,32,2,,"
      "1,1,100,10\n");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].concurrency, 32);
  EXPECT_EQ(rows[0].worker.layout, (ServingLayout{2, 1, 1, 2, 1}));
  EXPECT_DOUBLE_EQ(rows[0].ttft_s, 0.1);
  EXPECT_DOUBLE_EQ(rows[0].tpot_s, 0.01);
}

TEST(ServedRows, DegreesThatAreWrittenTwiceCountOnce) {
  const std::string run = "a,,sglang,deepseek-ai/DeepSeek-R1,b200_sxm,fp8,agg,1024,128,4,";
  const std::vector<ServedRow> rows =
      parsed(run + "64,1,8,8,100,10\n" + run + "1,64,8,8,100,10\n" + run + "4,1,2,2,100,10\n" +
             run + "4,4,1,16,100,10\n" + run + "8,1,2,4,100,10\n" + run + "4,2,1,8,100,10\n");
  EXPECT_EQ(rows[0].worker.once_counted, (ServingLayout{8, 1, 1, 1, 8}));
  EXPECT_EQ(rows[1].worker.once_counted, (ServingLayout{1, 1, 8, 1, 8}));
  EXPECT_EQ(rows[2].worker.once_counted, (ServingLayout{2, 1, 1, 1, 2}));
  EXPECT_EQ(rows[3].worker.once_counted, (ServingLayout{1, 1, 4, 1, 4}));
  // Neither is written twice.
  EXPECT_EQ(rows[4].worker.once_counted, (ServingLayout{8, 1, 1, 2, 4}));
  EXPECT_EQ(rows[5].worker.once_counted, (ServingLayout{4, 1, 2, 1, 8}));
}

TEST(ServedRows, DecodingWorkersHaveExpertParallelismOfTheirOwn) {
  const std::string head =
      "backend,model_path,system,precision,mode,isl,osl,prefill_tp_size,prefill_moe_tp_size,"
      "prefill_moe_ep_size,decode_tp_size,decode_moe_tp_size,decode_moe_ep_size,silicon_ttft_ms,"
      "silicon_tpot_ms\n";
  const std::string run = "trtllm,deepseek-ai/DeepSeek-R1,gb200,fp8,disagg,1024,128,";
  const std::vector<ServedRow> rows = parse_served_rows(
      head + run + "4,1,4,16,4,4,100,10\n" + run + "4,4,1,16,4,4,100,10\n", "runs.csv");
  EXPECT_EQ(rows[0].decode.layout, (ServingLayout{16, 1, 1, 1, 16}));
  EXPECT_EQ(rows[1].decode.layout, (ServingLayout{16, 1, 1, 4, 4}));
}

/// 235 GB of weights fit four H100, not two.
TEST(ServedRuns, WhatDoesNotFitCountsAsWritten) {
  const ServedRuns runs(
      parsed("a,,trtllm,Qwen/Qwen3-235B-A22B-FP8,h100_sxm,fp8,agg,128,128,32,4,,2,2,100,10\n"));
  EXPECT_EQ(runs.predict(0).reason, "");
}

/// TensorRT-LLM's decoding workers have slots for a power of two each: of 39 requests on four
/// workers 32 decode, and 7 wait until others end.
TEST(ServedRuns, RequestsBeyondFixedSlotsWaitForOthersToEnd) {
  const std::string head =
      "silicon_data_source,backend,model_path,system,precision,mode,isl,osl,prefill_num_workers,"
      "prefill_tp_size,decode_num_workers,decode_tp_size,silicon_ttft_ms,silicon_tpot_ms\n";
  const auto times_of = [&](const std::string& engine, int under_way) {
    const std::string row = "silicon_concurrency=" + std::to_string(under_way) + "," + engine +
                            ",meta-llama/Llama-3.1-70B,h200_sxm,fp8,disagg,1024,1024,1,4,4,4,1,1\n";
    return ServedRuns(parse_served_rows(head + row, "runs.csv")).predict(0, {}, {}).times;
  };
  const ServingTimes waits = times_of("trtllm", 39), fits = times_of("trtllm", 32);
  EXPECT_NEAR(waits.sequences, 32, 1e-9);
  EXPECT_NEAR(waits.requests_per_s * (waits.ttft_s + 1024 * waits.tpot_s), 39, 0.5);
  EXPECT_GT(waits.room_s, 0.9 * 7 / 32 * 1024 * waits.tpot_s);
  EXPECT_EQ(fits.room_s, 0);
  // Other engines take all, and so does a service of many more slots than a power of two of them.
  EXPECT_EQ(times_of("sglang", 39).room_s, 0);
  EXPECT_EQ(times_of("trtllm", 60).room_s, 0);
}

TEST(ServedRows, BadFieldsAreNamed) {
  EXPECT_THROW(parsed("a,,vllm,m,h100_sxm,fp8,agg,-5,128,32,2,,1,1,100,10\n"), Error);
  EXPECT_THROW(parsed("a,,vllm,m,h100_sxm,fp8,agg,5,128,32,1.5,,1,1,100,10\n"), Error);
  EXPECT_THROW(parse_served_rows("backend,silicon_tpot_ms\n", "runs.csv"), Error);
  EXPECT_TRUE(is_served_rows(kHead));
  EXPECT_FALSE(is_served_rows("hardware,tp\n"));
}

TEST(ServedRuns, WhatIsUnknownIsSaid) {
  const ServedRuns runs(
      parsed("a,,vllm,someone/else-7b,h100_sxm,fp8,agg,1024,128,32,2,,1,1,100,10\n"
             "a,,other,meta-llama/Llama-3.1-8B,h100_sxm,fp8,agg,1024,128,32,2,,1,1,100,10\n"
             "a,,vllm,meta-llama/Llama-3.1-8B,h100_sxm,fp8,agg,1024,128,32,2,,1,1,100,10\n"));
  EXPECT_NE(runs.predict(0).reason.find("model"), std::string::npos);
  EXPECT_NE(runs.predict(1).reason.find("engine"), std::string::npos);
  EXPECT_EQ(runs.predict(2).reason, "");
}

TEST(EngineFit, FindsFiguresThatMadeTheRows) {
  std::string text;
  for (const int batch : {1, 4, 16, 64, 128}) {
    for (const int input : {256, 1024, 4096}) {
      text += "a,,vllm,meta-llama/Llama-3.1-8B,h100_sxm,fp8,agg," + std::to_string(input) +
              ",256," + std::to_string(batch) + ",1,,1,1,1,1\n";
    }
  }
  std::vector<ServedRow> rows = parsed(text);
  const ServedRuns made(rows);
  EngineFigures truth = load_engine("vllm").figures;
  truth.step_s = 3e-3;
  truth.request_s = 0.1;
  std::vector<std::size_t> every;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ServingTimes times = made.predict(i, truth, {}).times;
    rows[i].ttft_s = times.ttft_s;
    rows[i].tpot_s = times.tpot_s;
    every.push_back(i);
  }
  const ServedRuns runs(rows);
  EngineFigures start;
  for (const EngineFigureField& field : engine_figure_fields()) start.*field.field = field.start;
  const auto errors_of = [&](const FittedEngine& fitted) {
    std::vector<ServedPrediction> predictions;
    for (const std::size_t i : every) {
      predictions.push_back(runs.predict(i, fitted.figures, fitted.corrections));
    }
    return served_errors(rows, predictions, every);
  };
  const ServedErrors before = errors_of({start, {}}), after = errors_of(fitted_engine(runs, every));
  EXPECT_LT(after.tpot_mean, before.tpot_mean / 2);
  EXPECT_LT(after.ttft_mean, before.ttft_mean / 2);
}

TEST(EngineFit, CorrectsWhatIsOffAsAWhole) {
  std::string text;
  for (const int batch : {1, 4, 16, 64}) {
    for (const char* of :
         {"meta-llama/Llama-3.1-8B,h100_sxm", "meta-llama/Llama-3.1-70B,h200_sxm"}) {
      text += "a,,vllm," + std::string(of) + ",fp8,agg,1024,256," + std::to_string(batch) +
              ",2,,1,1,1,1\n";
    }
  }
  std::vector<ServedRow> rows = parsed(text);
  const ServedRuns made(rows);
  EngineFigures start;
  for (const EngineFigureField& field : engine_figure_fields()) start.*field.field = field.start;
  std::vector<std::size_t> every;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ServingTimes times = made.predict(i, start, {}).times;
    const double slow = rows[i].system == "h200_sxm" ? 3 : 1;
    rows[i].ttft_s = slow * times.ttft_s;
    rows[i].tpot_s = slow * times.tpot_s;
    every.push_back(i);
  }
  const FittedEngine fitted = fitted_engine(ServedRuns(rows), every);
  const auto of = [&](const std::string& chip, const std::string& model) {
    return factors_of(fitted.corrections, {false, chip, model, "fp8"});
  };
  EXPECT_GT(of("h200-sxm", "llama-3-70b").tpot, 1.5 * of("h100-sxm", "llama-3-8b").tpot);
  // Fewer runs, less of a correction: nothing is known of the model on another chip.
  EXPECT_LT(of("b200", "llama-3-70b").tpot, of("h200-sxm", "llama-3-70b").tpot);
}

TEST(EngineFit, PartsHaveWholeConfigurations) {
  const std::vector<ServedRow> rows = parsed(
      "a,x; "
      "silicon_concurrency=32,vllm,meta-llama/Llama-3.1-8B,h100_sxm,fp8,agg,1024,128,32,2,,1,1,"
      "100,10\n"
      "b,y; "
      "silicon_concurrency=64,vllm,meta-llama/Llama-3.1-8B,h100_sxm,fp8,agg,1024,128,64,2,,1,1,"
      "200,20\n"
      "c,,vllm,meta-llama/Llama-3.1-8B,h100_sxm,fp8,agg,1024,256,32,2,,1,1,100,10\n");
  EXPECT_EQ(configuration_fold(rows[0], 1000), configuration_fold(rows[1], 1000));
  EXPECT_NE(configuration_fold(rows[0], 1000), configuration_fold(rows[2], 1000));
}

TEST(ServedRuns, PredictOneRowAsManyTimesAsAsked) {
  std::string text;
  for (int i = 0; i < 6; ++i) {
    text += "a,,sglang,deepseek-ai/DeepSeek-R1,h200_sxm,fp8,agg,1024,1024," +
            std::to_string(1 << i) + ",8,1,8,1,100,10\n";
  }
  const ServedRuns together(parsed(text));
  for (std::size_t i = 0; i < together.rows().size(); ++i) {
    const ServedRuns alone({together.rows()[i]});
    EXPECT_EQ(alone.predict(0).times.tpot_s, together.predict(i).times.tpot_s);
    EXPECT_EQ(alone.predict(0).times.ttft_s, together.predict(i).times.ttft_s);
  }
}

TEST(EngineFiles, CorrectionsHoldForWhatTheySay) {
  const std::vector<EngineCorrection> corrections = {{{false, "", "", ""}, {2, 3}},
                                                     {{false, "h100-sxm", "", ""}, {5, 7}},
                                                     {{true, "", "", ""}, {11, 13}},
                                                     {{false, "h100-sxm", "m", "fp8"}, {17, 19}}};
  EXPECT_EQ(factors_of(corrections, {false, "b200", "m", "fp8"}).tpot, 2);
  EXPECT_EQ(factors_of(corrections, {false, "h100-sxm", "m", "fp4"}).ttft, 21);
  EXPECT_EQ(factors_of(corrections, {false, "h100-sxm", "m", "fp8"}).tpot, 170);
  EXPECT_EQ(factors_of(corrections, {true, "h100-sxm", "m", "fp8"}).ttft, 13);
}

TEST(EngineFiles, HaveASourceForEveryEntry) {
  ASSERT_EQ(engine_catalogue().size(), 3U);
  for (const Engine& engine : engine_catalogue()) {
    EXPECT_GE(engine.entries.size(), 20U);
    EXPECT_FALSE(engine.corrections.empty());
    for (const EngineEntry& entry : engine.entries) EXPECT_FALSE(entry.source.empty()) << entry.key;
    const std::string text = engine_file_text(engine.name);
    const std::string with = text.substr(0, text.find("figures:\n")) +
                             fitted_text({engine.figures, engine.corrections}, "somebody");
    const Document document = Document::parse(with, Document::Syntax::yaml, "engine.yaml");
    const Engine again = read_engine(document.root());
    EXPECT_NEAR(again.figures.step_s / engine.figures.step_s, 1, 1e-3);
    ASSERT_EQ(again.corrections.size(), engine.corrections.size());
    for (std::size_t i = 0; i < again.corrections.size(); ++i) {
      EXPECT_EQ(again.corrections[i].of, engine.corrections[i].of);
      EXPECT_NEAR(again.corrections[i].factors.ttft / engine.corrections[i].factors.ttft, 1, 1e-2);
    }
  }
}

TEST(EngineFiles, MistakesAreNamed) {
  const std::string good = engine_file_text("vllm");
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const Document document = Document::parse(text, Document::Syntax::yaml, "engine.yaml");
    EXPECT_THROW(read_engine(document.root()), Error) << to;
  };
  refused("memory_share: {is: 0.9", "memory_share: {is: 1.9");
  refused("joins_prompts: {is: true", "joins_prompts: {is: 3");
  refused("  block_tokens:", "  blocks_tokens:");
  refused("title:", "titel:");
  refused("mode: aggregated, tpot", "mode: together, tpot");
  refused("corrections:\n  source: '", "corrections:\n  source: ''\n  sources: '");
}

}  // namespace
}  // namespace braid

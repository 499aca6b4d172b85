#include "braid/serve/launch/launch_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"

namespace braid {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LaunchedWorker worker_of(const std::string& line) {
  const LaunchedService service = read_launch_lines(line, "run.sh");
  EXPECT_EQ(service.workers.size(), 1);
  return service.workers.front();
}

std::string refusal_of(const std::string& text) {
  try {
    read_launch_lines(text, "run.sh");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LaunchReader, ReadsVllm) {
  const LaunchedService service = read_launch_lines(
      "export VLLM_USE_V1=1\n"
      "vllm serve deepseek-ai/DeepSeek-R1 \\\n  -tp=2 --data_parallel_size 4 -ep -dcp 2 \\\n"
      "  --max-num-seqs 24 --max-num-batched-tokens 4k --max-model-len 16K \\\n"
      "  --gpu-memory-utilization 0.95 --kv-cache-dtype fp8_e4m3 --port 8000 --fancy 3 \\\n"
      "  --enforce-eager --kv-transfer-config '{\"kv_role\":\"kv_consumer\"}'\n"
      "# 3 workers of prompts in int4\n"
      "vllm serve deepseek-ai/DeepSeek-R1 --speculative-config "
      "'{\"model\": \"d\", \"num_speculative_tokens\": 3}'\n",
      "run.sh");
  const LaunchedWorker& decode = service.workers.front();
  EXPECT_EQ(decode.engine, "vllm");
  EXPECT_EQ(decode.model, "deepseek-ai/DeepSeek-R1");
  EXPECT_EQ(decode.role, WorkerRole::decoding);
  EXPECT_EQ(decode.tp, 2);
  EXPECT_EQ(decode.dp, 4);
  EXPECT_EQ(decode.cp, 2);
  EXPECT_TRUE(decode.all_ranks_have_experts);
  EXPECT_EQ(decode.sequences, 24);
  EXPECT_EQ(decode.chunk_tokens, 4000);
  EXPECT_EQ(decode.context, 16384);
  EXPECT_EQ(decode.memory_share, 0.95);
  EXPECT_EQ(decode.cache, "fp8");
  EXPECT_EQ(decode.workers, 0);
  const LaunchedWorker& prompts = service.workers.back();
  EXPECT_EQ(prompts.role, WorkerRole::prompts);
  EXPECT_EQ(prompts.workers, 3);
  EXPECT_EQ(prompts.precision, "int4");
  EXPECT_EQ(prompts.draft, "d");
  EXPECT_EQ(prompts.draft_tokens, 3);
  EXPECT_THAT(service.unknown, ElementsAre("--fancy 3"));
  EXPECT_THAT(service.notes, ElementsAre(HasSubstr("--enforce-eager")));
}

TEST(LaunchReader, ReadsSglang) {
  const LaunchedService two = read_launch_lines(
      "python3 -m sglang.launch_server --model-path m --tp 8 --dp 4 --enable-dp-attention --ep 8 "
      "--max-running-requests 64 --chunked-prefill-size 32768 --mem-fraction-static 0.8 "
      "--quantization fp8 --disaggregation-mode prefill\n"
      "sglang serve --model-path m --disaggregation-mode decode",
      "run.sh");
  EXPECT_EQ(two.workers.back().role, WorkerRole::decoding);
  const LaunchedWorker& groups = two.workers.front();
  EXPECT_EQ(groups.engine, "sglang");
  EXPECT_EQ(groups.tp, 2);
  EXPECT_EQ(groups.dp, 4);
  EXPECT_FALSE(groups.data_is_copies);
  EXPECT_EQ(groups.ep, 8);
  EXPECT_EQ(groups.sequences, 16);
  EXPECT_EQ(groups.chunk_tokens, 8192);
  EXPECT_EQ(groups.memory_share, 0.8);
  EXPECT_EQ(groups.precision, "fp8");
  EXPECT_EQ(groups.role, WorkerRole::prompts);
  const LaunchedWorker copies = worker_of(
      "python -m sglang.launch_server --model m --tp-size 2 --dp-size 2 --moe-a2a-backend deepep "
      "--speculative-algorithm STANDALONE --speculative-draft-model-path d "
      "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4");
  EXPECT_EQ(copies.model, "m");
  EXPECT_EQ(copies.tp, 2);
  EXPECT_TRUE(copies.data_is_copies);
  EXPECT_TRUE(copies.all_ranks_have_experts);
  EXPECT_EQ(copies.draft, "d");
  EXPECT_EQ(copies.draft_tokens, 3);
}

/// As launch_lines() writes it.
TEST(LaunchReader, ReadsWhatWorkersAreFor) {
  const LaunchedService service = read_launch_lines(
      "# 12 prefill workers in fp8, 1 GPU each\nvllm serve m\n"
      "# 1 decode worker in int4, 8 GPUs each\nvllm serve m -tp 8\n",
      "run.sh");
  ASSERT_EQ(service.workers.size(), 2U);
  EXPECT_EQ(service.workers[0].role, WorkerRole::prompts);
  EXPECT_EQ(service.workers[0].workers, 12);
  EXPECT_EQ(service.workers[0].precision, "fp8");
  EXPECT_EQ(service.workers[1].role, WorkerRole::decoding);
  EXPECT_EQ(service.workers[1].workers, 1);
  EXPECT_EQ(service.workers[1].precision, "int4");
}

TEST(LaunchReader, ReadsTensorRtLlmAndItsFile) {
  const std::string here =
      "cat > ./extra.yml <<EOF\n"
      "enable_attention_dp: true\nkv_cache_config:\n  dtype: fp8\n"
      "  free_gpu_memory_fraction: 0.85\nmax_batch_size: 64\nodd: 1\nprint_iter_log: true\n"
      "EOF\n"
      "trtllm-serve m --tp_size 8 --ep_size 4 --max_batch_size 32 --extra_llm_api_options "
      "./extra.yml\n";
  const LaunchedService service = read_launch_lines(here, "run.sh");
  const LaunchedWorker& worker = service.workers.front();
  EXPECT_EQ(worker.engine, "trtllm");
  EXPECT_EQ(worker.tp, 1);
  EXPECT_EQ(worker.dp, 8);
  EXPECT_EQ(worker.ep, 4);
  EXPECT_EQ(worker.sequences, 64);  // The file's, whatever the flag says.
  EXPECT_EQ(worker.cache, "fp8");
  EXPECT_EQ(worker.memory_share, 0.85);
  EXPECT_THAT(service.unknown, ElementsAre("odd"));
  EXPECT_THAT(service.notes, IsEmpty());
  const LaunchedService named = read_launch_lines(
      "trtllm-serve serve m --config more.yaml", "run.sh", [](const std::string& name) {
        return name == "more.yaml" ? std::string("tensor_parallel_size: 4\n") : std::string();
      });
  EXPECT_EQ(named.workers.front().tp, 4);
}

TEST(LaunchReader, KnowsEnginesFromOtherPrograms) {
  EXPECT_TRUE(is_launch_text("CUDA_VISIBLE_DEVICES=0 vllm serve m"));
  EXPECT_TRUE(is_launch_text("python3 -m vllm.entrypoints.openai.api_server --model m"));
  EXPECT_TRUE(is_launch_text("mpirun -n 8 /usr/bin/trtllm-serve m"));
  EXPECT_FALSE(is_launch_text("torchrun pretrain_gpt.py --data vllm"));
  EXPECT_FALSE(is_launch_text("# vllm serve m"));
}

TEST(LaunchReader, SaysWhatIsWrong) {
  EXPECT_THAT(refusal_of("vllm serve m -tp 0"), HasSubstr("run.sh: --tensor-parallel-size"));
  EXPECT_THAT(refusal_of("vllm serve m --max-model-len 8.5"), HasSubstr("--max-model-len"));
  EXPECT_THAT(refusal_of("vllm serve m --max-num-seqs 0k"), HasSubstr("--max-num-seqs"));
  EXPECT_THAT(refusal_of("vllm serve m --gpu-memory-utilization 1.2"),
              HasSubstr("'1.2' is no share above 0 and up to 1"));
  EXPECT_THAT(refusal_of("vllm serve m --kv-cache-dtype int3"), HasSubstr("'int3'"));
  EXPECT_THAT(refusal_of("vllm serve m --speculative-config '{'"),
              HasSubstr("--speculative-config"));
  EXPECT_THAT(refusal_of("vllm serve m --speculative-config '[1]'"),
              HasSubstr("--speculative-config"));
  EXPECT_THAT(refusal_of("vllm serve m --speculative-config "
                         "'{\"model\":\"d\",\"num_speculative_tokens\":0}'"),
              HasSubstr("num_speculative_tokens"));
  EXPECT_THAT(refusal_of("python3 -m sglang.launch_server --model-path m --tp 4 --dp 3 "
                         "--enable-dp-attention"),
              HasSubstr("3 attention groups do not divide 4 ranks"));
  EXPECT_THAT(refusal_of("python3 -m sglang.launch_server --disaggregation-mode both"),
              HasSubstr("'both' is no kind of worker"));
  EXPECT_THAT(refusal_of("trtllm-serve m --config none.yaml"), HasSubstr("none.yaml"));
  EXPECT_THAT(refusal_of("cat >a <<EOF\nx: [\nEOF\ntrtllm-serve m --config a"), HasSubstr("a:"));
  EXPECT_THAT(refusal_of("vllm serve m\nvllm serve n"), HasSubstr("one command for each kind"));
  EXPECT_THAT(refusal_of("python3 -m sglang.launch_server --disaggregation-mode prefill"),
              HasSubstr("one command for each kind"));
  EXPECT_THAT(refusal_of("echo"), HasSubstr("nothing here starts vLLM"));
}

}  // namespace
}  // namespace braid

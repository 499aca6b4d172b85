#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"
#include "braid/kernels/measured_kernels.h"

namespace braid {
namespace {

constexpr const char* kHead = "system,backend,version,dtype,m,n,k,latency_us\n";

std::string error_of(const std::string& file, const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder / file, text);
  try {
    read_kernel_tables(folder.path());
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(KernelTables, RowsAreGroupedByChipBackendAndFormat) {
  const TemporaryFolder folder;
  write_file(folder / "gemm.csv", std::string(kHead) +
                                      "h100_sxm,trtllm,1,fp8,64,4096,4096,12.5\n"
                                      "h100_sxm,trtllm,1,bf16,64,4096,4096,10\n"
                                      "h100_sxm,trtllm,1,bf16,1,64,64,2\n"
                                      "b200,vllm,1,bf16,64,4096,4096,8\n");
  write_file(folder / "attention_decode.csv",
             "system,backend,kv_dtype,heads,kv_heads,head_dim,window,batch,past_len,latency_us\n"
             "b200_sxm,vllm,fp8,32,8,128,0,4,1023,9\n");
  write_file(folder / "moe.csv",
             "system,backend,dtype,kernel,tokens,hidden,inter,topk,experts,tp,ep,distribution,"
             "latency_us\n"
             "b200,trtllm,bf16,cutlass,64,4096,1024,8,64,1,4,pl1.2,30\n");
  const std::vector<MeasuredKernels> measured = read_kernel_tables(folder.path());
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_EQ(measured[0].chip.name, "b200");
  EXPECT_EQ(measured[1].chip.name, "h100-sxm");
  const auto& gemm = measured[1].operations.gemm;
  ASSERT_EQ(gemm.size(), 2U);
  EXPECT_EQ(gemm[0]->format, "bf16");
  ASSERT_EQ(gemm[0]->shapes.size(), 2U);
  EXPECT_EQ(gemm[0]->shapes[1].n, 64);
  EXPECT_DOUBLE_EQ(gemm[0]->measured_s[1], 2e-6);
  const auto& decode = measured[0].operations.attention_decode;
  ASSERT_EQ(decode.size(), 1U);
  EXPECT_EQ(decode[0]->format, "bf16/fp8");
  EXPECT_EQ(decode[0]->shapes[0].tokens, 1024);
  EXPECT_EQ(measured[0].operations.experts[0]->shapes[0].of.skew, 1.2);
}

TEST(KernelTables, MistakesAreNamedWithTheirLine) {
  const std::string head = kHead;
  EXPECT_NE(error_of("readme.md", "").find("no tables of kernels"), std::string::npos);
  EXPECT_NE(error_of("gemm.csv", "system,m\n").find("no column backend"), std::string::npos);
  EXPECT_NE(error_of("gemm.csv", head + "h900,a,1,bf16,1,1,1,1\n").find("gemm.csv:2: "),
            std::string::npos);
  EXPECT_NE(error_of("gemm.csv", head + "h100_sxm,a,1,bf16,1,1,1,1\nh100_sxm,a,1,nvfp4,1,1,1,1\n")
                .find("gemm.csv:3: h100-sxm does not compute in nvfp4"),
            std::string::npos);
  EXPECT_NE(error_of("gemm.csv", head + "b200,a,1,bf16,0,1,1,1\n").find("a size of less than 1"),
            std::string::npos);
  EXPECT_NE(error_of("gemm.csv", head + "b200,a,1,bf16,1,1,x,1\n").find("not a number: 'x'"),
            std::string::npos);
  EXPECT_NE(error_of("gemm.csv", head + "b200,a,1,bf16,1,1,1,0\n").find("a time of 0"),
            std::string::npos);
  EXPECT_NE(error_of("nccl.csv",
                     "system,backend,op,dtype,gpus,bytes,latency_us\nb200,n,swap,fp16,2,8,1\n")
                .find("does not compute in swap/fp16"),
            std::string::npos);
}

}  // namespace
}  // namespace braid

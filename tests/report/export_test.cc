#include "braid/report/export.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/error.h"

#include "report/plan_maker.h"

namespace braid {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::made_plan;
using ::testing::Not;

Parallelism piped() {
  Parallelism p;
  p.tp = 2;
  p.pp = 2;
  p.dp = 2;
  p.num_micro_batches = 8;
  p.sequence_parallel = true;
  p.zero = Zero::optimizer;
  return p;
}

TEST(Export, UnknownTargetNamesTheKnownOnes) {
  try {
    export_plan(made_plan(piped(), 8), "horovod");
    FAIL();
  } catch (const Error& error) {
    for (const std::string& target : export_targets()) {
      EXPECT_THAT(error.what(), HasSubstr(target));
    }
  }
}

TEST(Export, MegatronHasTheDegreesAndBatch) {
  const Export out = export_plan(made_plan(piped(), 8), "megatron");
  for (const char* part :
       {"torchrun --nproc-per-node 4 --nnodes 2", "--num-layers 8 ",
        "--tensor-model-parallel-size 2", "--sequence-parallel", "--pipeline-model-parallel-size 2",
        "--micro-batch-size 1", "--global-batch-size 16", "--use-distributed-optimizer",
        "--overlap-param-gather", "--bf16", "--seq-length 128"}) {
    EXPECT_THAT(out.text, HasSubstr(part));
  }
  EXPECT_THAT(out.text, Not(HasSubstr("recompute")));
  EXPECT_THAT(out.text, Not(HasSubstr("decoder-first")));
  // Every line but the last of the command goes on.
  EXPECT_THAT(out.text, Not(HasSubstr("\\\n\n")));
}

TEST(Export, MegatronSaysHowUnevenStagesAreLaidOut) {
  const Export two = export_megatron(made_plan(piped(), 9));
  EXPECT_THAT(two.text, HasSubstr("--decoder-first-pipeline-num-layers 5"));
  EXPECT_THAT(two.text, HasSubstr("--decoder-last-pipeline-num-layers 4"));
  Parallelism p = piped();
  p.pp = 4;
  const Export four = export_megatron(made_plan(p, 10));  // 3, 3, 2, 2
  EXPECT_THAT(four.text, HasSubstr("--pipeline-model-parallel-layout \"Ettt|ttt|tt|ttL\""));
  EXPECT_THAT(four.warnings, Contains(HasSubstr("uneven")));
}

TEST(Export, MegatronInterleavesAndRecomputes) {
  Parallelism p = piped();
  p.vp = 2;
  p.schedule = ScheduleKind::interleaved;
  p.recompute = Recompute::full;
  const Export out = export_megatron(made_plan(p, 8));
  EXPECT_THAT(out.text, HasSubstr("--num-layers-per-virtual-pipeline-stage 2"));
  EXPECT_THAT(out.text, HasSubstr("--recompute-granularity full"));
  EXPECT_THAT(out.text, HasSubstr("--recompute-method uniform"));
  EXPECT_THAT(out.text, HasSubstr("--recompute-num-layers 1"));
}

TEST(Export, EachThingThatATargetLacksIsAWarning) {
  Parallelism p = piped();
  const auto warnings = [](const Parallelism& parallel, const std::string& target) {
    return export_plan(made_plan(parallel, 8), target).warnings.size();
  };
  for (const std::string& target : export_targets()) {
    const std::size_t before = warnings(p, target);
    Parallelism other = p;
    other.offload_activations = true;
    EXPECT_GT(warnings(other, target), before) << target;
  }
  Parallelism gpipe = p;
  gpipe.schedule = ScheduleKind::gpipe;
  EXPECT_GT(warnings(gpipe, "megatron"), warnings(p, "megatron"));
  EXPECT_GT(warnings(gpipe, "deepspeed"), warnings(p, "deepspeed"));
  Parallelism turned = p;
  turned.order = {Axis::dp, Axis::tp, Axis::cp, Axis::pp};
  EXPECT_GT(warnings(turned, "megatron"), warnings(p, "megatron"));
  EXPECT_GT(warnings(turned, "torchtitan"), warnings(p, "torchtitan"));
}

TEST(Export, DeepspeedIsJsonWhoseBatchAddsUp) {
  Parallelism p;
  p.dp = 4;
  p.num_micro_batches = 3;
  p.micro_batch = 2;
  p.zero = Zero::parameters;
  p.offload_optimizer = true;
  const Export out = export_deepspeed(made_plan(p, 4));
  const Document document = Document::parse(out.text, Document::Syntax::json, "ds.json");
  const Value root = document.root();
  EXPECT_EQ(root["train_batch_size"].as_int(), 24);
  EXPECT_EQ(root["train_micro_batch_size_per_gpu"].as_int() *
                root["gradient_accumulation_steps"].as_int() * p.dp,
            24);
  EXPECT_EQ(root["zero_optimization"]["stage"].as_int(), 3);
  EXPECT_EQ(root["zero_optimization"]["offload_optimizer"]["device"].as_string(), "cpu");
}

TEST(Export, TorchtitanShardsOrReplicates) {
  Parallelism p;
  p.dp = 4;
  p.zero = Zero::parameters;
  EXPECT_THAT(export_torchtitan(made_plan(p, 4)).text, HasSubstr("data_parallel_shard_degree = 4"));
  p.zero = Zero::none;
  EXPECT_THAT(export_torchtitan(made_plan(p, 4)).text,
              HasSubstr("data_parallel_replicate_degree = 4"));
}

TEST(Export, NamesCannotBreakOutOfTheirComment) {
  Plan plan = made_plan(piped(), 8);
  plan.model = "x\nrm -rf /";
  plan.system.name = "y\r\nz";
  for (const char* target : {"megatron", "torchtitan"}) {
    EXPECT_THAT(export_plan(plan, target).text, Not(HasSubstr("\nrm")));
    EXPECT_THAT(export_plan(plan, target).text, Not(HasSubstr("\nz")));
  }
}

TEST(Export, CountsOnlyRepeatedLayersAsBlocks) {
  const BlockCounts counts = count_blocks(made_plan(piped(), 9));
  EXPECT_EQ(counts.total, 9);
  EXPECT_EQ(counts.per_chunk, (std::vector<std::int64_t>{5, 4}));
  EXPECT_FALSE(counts.even);
  EXPECT_TRUE(count_blocks(made_plan(piped(), 8)).even);
}

}  // namespace
}  // namespace braid

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/trainers/exchange/nested_settings.h"
#include "braid/trainers/registry.h"
#include "braid/trainers/torchtitan/recipe_settings.h"

// Files of torchtitan and DeepSpeed as people write them.

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string import_error(const std::string& text, const std::string& file) {
  try {
    import_run(text, file);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NestedSettings, OfTomlHaveTheirTableAndLine) {
  const auto all =
      settings_of_toml("a = 1\n[b.c]\nd = true\ne = [[\"x\"], [2]]\n[b]\nf = 'y'\n", "t");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].name + all[0].value, "a1");
  EXPECT_EQ(all[1].name + all[1].value, "b.c.dtrue");
  EXPECT_EQ(all[2].value, "[[\"x\"], [2]]");
  EXPECT_EQ(all[2].line, 4);
  EXPECT_EQ(all[3].name + all[3].value, "b.fy");
}

TEST(NestedSettings, OfTomlMayHaveLinesThatLookLikeTables) {
  const auto all = settings_of_toml(
      "a = [\n[\n1],\n[[[2]]], # [\n]\nb = \"\"\"\n[[[\n\\\"\"\"\"\"\nc = '''\n[ '''''\n[d]\n"
      "e = { f = '[' }\n",
      "t");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].value, "[[1], [[[2]]]]");
  EXPECT_EQ(all[3].name, "d.e.f");
}

TEST(NestedSettings, OfTomlMayHaveAnyTextInQuotesAndComments) {
  const auto all = settings_of_toml("\xEF\xBB\xBF# \u00e9\na = \"\u041c\"\n", "t");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].value, "??");
  EXPECT_THROW(settings_of_toml("\u041c", "t"), Error);
}

TEST(NestedSettings, OfJsonAreNamedAlike) {
  const auto all = settings_of_json("{\"a\": {\"b\": 1,\n\"c\": [1, \"x\"]}, \"d\": null}", "j");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].name + all[0].value, "a.b1");
  EXPECT_EQ(all[1].name + all[1].value, "a.c[1, \"x\"]");
  EXPECT_EQ(all[1].line, 2);
  EXPECT_EQ(all[2].value, "null");
}

TEST(TorchtitanImport, ReadsAToml) {
  const Import run = import_run(
      "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nlocal_batch_size = 8\n"
      "seq_len = 8192\n[parallelism]\ndata_parallel_shard_degree = -1\ntensor_parallel_degree = 8\n"
      "pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
      "[activation_checkpoint]\nmode = \"full\"\n[metrics]\nlog_freq = 10\n[training.odd]\nkey = "
      "3\n",
      "t.toml");
  EXPECT_EQ(run.trainer, "torchtitan");
  EXPECT_EQ(run.model, "llama3/70B");
  EXPECT_EQ(run.seq_len, 8192);
  EXPECT_EQ(run.parallel.tp, 8);
  EXPECT_EQ(run.parallel.pp, 4);
  EXPECT_EQ(run.parallel.vp, 2);
  EXPECT_EQ(run.parallel.dp, 0);
  EXPECT_EQ(run.parallel.micro_batch, 1);
  // Pipelines sum gradients once, at the end.
  EXPECT_EQ(run.parallel.zero, Zero::optimizer);
  EXPECT_EQ(run.parallel.recompute, Recompute::full);
  EXPECT_TRUE(run.parallel.sequence_parallel);
  // 80 blocks and the two ends over 8 parts, the first two of which have one more.
  EXPECT_THAT(run.chunk_blocks, ElementsAre(10, 11, 10, 10, 10, 10, 10, 9));
  EXPECT_THAT(run.unknown, ElementsAre("training.odd.key=3"));
  EXPECT_EQ(run.global_batch, 0);
  EXPECT_EQ(run.accumulation, 8);
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST(TorchtitanImport, TakesTheBatchOfARankWhereTheRanksAreThoseLeft) {
  const std::string form =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\ndata_parallel_shard_degree = "
      "-1\n";
  const Import flat = import_run(form + "[training]\nlocal_batch_size = 4\n", "a.toml");
  EXPECT_EQ(flat.global_batch, 0);
  EXPECT_EQ(flat.parallel.micro_batch, 4);
  EXPECT_EQ(flat.accumulation, 1);
  const Import piped = import_run(
      form +
          "pipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 2\n[training]\n"
          "local_batch_size = 8\n",
      "a.toml");
  EXPECT_EQ(piped.parallel.micro_batch, 2);
  EXPECT_EQ(piped.accumulation, 4);
}

TEST(TorchtitanImport, ReadsTheKeysOfItsFirstVersions) {
  const Import run = import_run(
      "[model]\nname = \"llama3\"\nflavor = \"70B\"\nnorm_type = \"rmsnorm\"\n[training]\n"
      "batch_size = 8\ndata_parallel_degree = -1\ntensor_parallel_degree = 8\ncompile = false\n"
      "[experimental]\npipeline_parallel_degree = 4\n[float8]\nenable_float8_linear = true\n",
      "a.toml");
  EXPECT_EQ(run.parallel.tp, 8);
  EXPECT_EQ(run.parallel.pp, 4);
  EXPECT_EQ(run.parallel.dp, 0);
  EXPECT_EQ(run.accumulation, 8);
  EXPECT_EQ(run.precision->matmul, Dtype::f8);
  EXPECT_TRUE(run.unknown.empty());
}

TEST(TorchtitanImport, ReadsARecipe) {
  const Import run = import_run(
      "from torchtitan.config import ParallelismConfig, TrainingConfig\n"
      "from torchtitan.models.llama3 import model_registry\n"
      "def mine() -> Trainer.Config:\n"
      "    \"\"\"tensor_parallel_degree=64\"\"\"\n"
      "    config = Trainer.Config(\n"
      "        model_spec=model_registry(\"8B\"),  # tensor_parallel_degree=32\n"
      "        training=TrainingConfig(\n"
      "            num_tokens_per_microbatch_per_dp_rank=2 * 4_096, max_context_length=4096,\n"
      "            num_tokens_per_train_step=64 * 4096, odd=1),\n"
      "        parallelism=ParallelismConfig(data_parallel_shard_degree=4,\n"
      "            tensor_parallel_degree=2),\n"
      "        activation_checkpoint=None)\n"
      "    config.parallelism.context_parallel_degree = 2\n"
      "    return config\n",
      "mine.py");
  EXPECT_EQ(run.model, "llama3/8B");
  EXPECT_EQ(run.devices, 16);
  EXPECT_EQ(run.parallel.tp, 2);
  EXPECT_EQ(run.parallel.cp, 2);
  EXPECT_EQ(run.parallel.dp, 4);
  EXPECT_EQ(run.parallel.micro_batch, 2);
  EXPECT_EQ(run.global_batch, 64);
  EXPECT_EQ(run.seq_len, 4096);
  EXPECT_EQ(run.parallel.recompute, Recompute::none);
  EXPECT_EQ(run.parallel.zero, Zero::parameters);
  EXPECT_THAT(run.unknown, ElementsAre("training.odd=1"));
}

const char* const kRecipes =
    "from torchtitan.trainer import Trainer\n"
    "from . import model_registry\n"
    "STEPS = 64\n"
    "def _training(seq_len=8192):\n"
    "    return TrainingConfig(num_tokens_per_microbatch_per_dp_rank=2 * 8192,\n"
    "                          max_context_length=8192)\n"
    "def llama3_8b() -> Trainer.Config:\n"
    "    return Trainer.Config(model_spec=model_registry(\"8B\"), training=_training(),\n"
    "                          activation_checkpoint=SelectiveAC.Config())\n"
    "def llama3_70b() -> Trainer.Config:\n"
    "    degree = 8\n"
    "    return Trainer.Config(model_spec=model_registry(\"70B\"), training=_training(),\n"
    "        parallelism=ParallelismConfig(tensor_parallel_degree=degree),\n"
    "        activation_checkpoint=FullAC.Config())\n"
    "def llama3_70b_long():\n"
    "    config = llama3_70b()\n"
    "    config.parallelism.context_parallel_degree = 2\n"
    "    config.training.num_tokens_per_train_step = STEPS * 8192\n"
    "    return config\n";

TEST(TorchtitanImport, TellsTheRecipesOfAFileApart) {
  EXPECT_THAT(import_error(kRecipes, "r.py"),
              HasSubstr("r.py: 3 recipes are in it: llama3_8b, llama3_70b, llama3_70b_long; choose "
                        "one with --recipe"));
  const Import small = import_run(kRecipes, "r.py", {0, "llama3_8b"});
  EXPECT_EQ(small.model, "llama3/8B");
  EXPECT_EQ(small.parallel.tp, 1);
  EXPECT_EQ(small.parallel.recompute, Recompute::selective);
  const Import large = import_run(kRecipes, "r.py", {0, "llama3_70b"});
  EXPECT_EQ(large.model, "llama3/70B");
  ASSERT_TRUE(large.shape.has_value());
  EXPECT_EQ(large.shape->hidden, 8192);
  EXPECT_EQ(large.parallel.tp, 8);
  EXPECT_EQ(large.parallel.micro_batch, 2);
  EXPECT_EQ(large.parallel.recompute, Recompute::full);
  const Import longer = import_run(kRecipes, "r.py", {0, "llama3_70b_long"});
  EXPECT_EQ(longer.parallel.tp, 8);
  EXPECT_EQ(longer.parallel.cp, 2);
  EXPECT_EQ(longer.global_batch, 64);
  EXPECT_THAT(longer.notes, Contains(HasSubstr("taken as that of llama3")));
}

TEST(TorchtitanImport, SaysWhatRecipesItCannotChoose) {
  const auto error_of = [](const std::string& text, const std::string& recipe) {
    try {
      import_run(text, "x", {0, recipe});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_of(kRecipes, "other"), HasSubstr("no recipe in it is called 'other'"));
  for (const char* text : {"[parallelism]\ntensor_parallel_degree = 2\n", "{\"bf16\": {}}",
                           "pretrain_gpt.py --micro-batch-size 1"}) {
    EXPECT_THAT(error_of(text, "a"), HasSubstr("there are no recipes in it to choose from"))
        << text;
  }
}

TEST(TorchtitanImport, NamesRecipesOfOtherFilesThatItDoesNotRead) {
  const Import run = import_run(
      "from torchtitan.models.llama3.config_registry import (\n    llama3_8b,\n    llama3_70b,\n)\n"
      "def mine() -> GraphTrainer.Config:\n"
      "    config = wrap(llama3_70b())\n    config.parallelism.tensor_parallel_degree = 4\n"
      "    return config\n",
      "r.py");
  EXPECT_EQ(run.parallel.tp, 4);
  EXPECT_THAT(run.notes,
              Contains(HasSubstr("llama3_70b() of torchtitan.models.llama3.config_registry")));
}

TEST(TorchtitanImport, ReadsTheFileThatACommandLineNames) {
  const std::string folder = ::testing::TempDir() + "braid_titan_import/";
  std::filesystem::create_directories(folder);
  write_file(folder + "run.toml",
             "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[parallelism]\n"
             "tensor_parallel_degree = 8\n[compile]\nenable = true\n");
  const std::string line =
      "NGPU=8\ntorchrun --nproc_per_node=${NGPU} --nnodes 4 -m torchtitan.train --job.config_file "
      "run.toml --parallelism.tensor_parallel_degree 4 --training.local-batch-size=2 "
      "--compile.no-enable --training.odd 3\n";
  const Import run = import_run(line, folder + "train.sh");
  EXPECT_EQ(run.model, "llama3/70B");
  EXPECT_EQ(run.parallel.tp, 4);
  EXPECT_EQ(run.parallel.micro_batch, 2);
  EXPECT_EQ(run.devices, 32);
  EXPECT_THAT(run.unknown, ElementsAre("training.odd=3"));
  EXPECT_THAT(import_error(line, "elsewhere.sh"),
              HasSubstr("--job.config_file: 'run.toml': there is no such file"));
  write_file(folder + "mine.py", kRecipes);
  const Import recipe = import_run("torchrun -m torchtitan.train --module mine --config llama3_70b",
                                   folder + "train.sh");
  EXPECT_EQ(recipe.parallel.tp, 8);
  EXPECT_THAT(
      import_error("torchrun -m torchtitan.train --module llama3 --config llama3_8b", "t.sh"),
      HasSubstr("torchtitan/models/llama3/config_registry.py, and --recipe llama3_8b"));
}

TEST(TorchtitanImport, NamesWhatIsWrongAndWhere) {
  EXPECT_THAT(import_error("[parallelism]\ntensor_parallel_degree = \n", "t.toml"),
              HasSubstr("t.toml:2: this is no TOML"));
  for (const char* header : {"[[[a]]]", "[", "[ ", "[=", "[[", "[\u00a0a]"}) {
    EXPECT_THAT(
        import_error("[parallelism]\ntensor_parallel_degree = 1\n" + std::string(header), "t.toml"),
        HasSubstr("t.toml:3: this is no TOML"))
        << header;
  }
  EXPECT_THAT(import_error("[parallelism]\n\ntensor_parallel_degree = \"many\"\n", "t.toml"),
              AllOf(HasSubstr("t.toml:3: parallelism.tensor_parallel_degree: 'many'"),
                    HasSubstr("whole number")));
  EXPECT_THAT(import_error("[parallelism]\ntensor_parallel_degree = 1\n"
                           "fsdp_reshard_after_forward = \"often\"\n",
                           "t.toml"),
              HasSubstr("t.toml:3: parallelism.fsdp_reshard_after_forward: 'often' is no policy"));
  EXPECT_THAT(import_error("from torchtitan.config import TrainingConfig\n"
                           "TrainingConfig(num_tokens_per_microbatch_per_dp_rank=tokens())\n",
                           "r.py"),
              HasSubstr("r.py:2: training.num_tokens_per_microbatch_per_dp_rank: 'tokens()'"));
  EXPECT_THAT(import_error("[parallelism]\ndata_parallel_replicate_degree = 1048576\n"
                           "data_parallel_shard_degree = 1048576\ntensor_parallel_degree = 2\n",
                           "t.toml"),
              HasSubstr("more than 2^30 devices"));
  EXPECT_THAT(import_error("[parallelism]\npipeline_parallel_degree = 2\n"
                           "module_fqns_per_model_part = [[\"layers.0\"], [], []]\n",
                           "t.toml"),
              HasSubstr("3 parts do not go over 2 stages"));
}

TEST(DeepspeedImport, ReadsAConfiguration) {
  const Import run = import_run(
      "{\n \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 8,\n"
      " \"bf16\": {\"enabled\": true}, \"gradient_clipping\": 1.0,\n"
      " \"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"},\n"
      "   \"stage3_prefetch_bucket_size\": 5e7, \"odd\": 1},\n"
      " \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-4}},\n"
      " \"tensor_parallel\": {\"autotp_size\": 2}}\n",
      "ds.json");
  EXPECT_EQ(run.trainer, "deepspeed");
  EXPECT_EQ(run.accumulation, 8);
  EXPECT_EQ(run.global_batch, 0);
  EXPECT_EQ(run.parallel.micro_batch, 4);
  EXPECT_EQ(run.parallel.tp, 2);
  EXPECT_EQ(run.parallel.zero, Zero::parameters);
  EXPECT_TRUE(run.parallel.offload_optimizer);
  EXPECT_FALSE(run.parallel.offload_weights);
  EXPECT_EQ(run.precision->gradient, Dtype::bf16);
  EXPECT_THAT(run.unknown, ElementsAre("zero_optimization.odd=1"));
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST(DeepspeedImport, TakesWhatItDoesNotSayAsNotGiven) {
  const Import run = import_run(
      "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": \"auto\","
      " \"gradient_accumulation_steps\": \"auto\", \"fp16\": {\"enabled\": \"auto\"}}",
      "ds.json");
  EXPECT_EQ(run.global_batch, 256);
  EXPECT_EQ(run.accumulation, 0);
  EXPECT_EQ(run.parallel.micro_batch, 1);
  EXPECT_FALSE(run.says_micro_batch);
  EXPECT_THAT(run.unknown, IsEmpty());
}

TEST(DeepspeedImport, LeavesWhatTheTrainerFillsInToTheUser) {
  const Import run = import_run(
      R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}, "train_batch_size": "auto",
          "train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3,
          "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"}}})",
      "ds.json");
  EXPECT_FALSE(run.precision.has_value());
  EXPECT_EQ(run.parallel.zero, Zero::parameters);
  EXPECT_TRUE(run.parallel.offload_optimizer);
  EXPECT_FALSE(run.parallel.offload_weights);  // Unless it turns out that one rank has all.
  EXPECT_TRUE(run.host_shards);
  EXPECT_FALSE(run.says_micro_batch);
  EXPECT_TRUE(run.notes.empty());
  EXPECT_TRUE(run.unknown.empty());
}

TEST(DeepspeedImport, NamesWhatIsWrongAndWhere) {
  EXPECT_THAT(import_error("{\"bf16\": {\"enabled\": true},\n,}", "ds.json"),
              HasSubstr("ds.json:2"));
  EXPECT_THAT(import_error("{\"zero_optimization\":\n {\"stage\": 4}}", "ds.json"),
              HasSubstr("ds.json:2: zero_optimization.stage: there is no ZeRO-4"));
  EXPECT_THAT(import_error("{\"train_micro_batch_size_per_gpu\": 0}", "ds.json"),
              HasSubstr("'0' is not a whole number"));
  EXPECT_THAT(
      import_error("{\"fp16\": {},\n\"data_types\": {\"grad_accum_dtype\": \"int8\"}}", "ds.json"),
      HasSubstr("ds.json:2: data_types.grad_accum_dtype: 'int8'"));
}

}  // namespace
}  // namespace braid

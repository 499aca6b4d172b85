#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"
#include "braid/frontend/model.h"
#include "braid/graph/graph_json.h"
#include "braid/plan/direct_plan.h"
#include "braid/system/catalogue.h"
#include "braid/trainers/pytorch/export.h"
#include "braid/trainers/pytorch/python_text.h"
#include "braid/trainers/registry.h"

#include "run/random_job.h"
#include "support/source_path.h"

namespace braid::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTinyGpt = test::source_path("examples/tiny-gpt/config.json");

/// A uniform plan of the tiny GPT of the examples.
Plan tiny_plan(const Parallelism& parallel, std::int64_t batch = 16) {
  const Graph graph = load_model(kTinyGpt, {});
  Plan plan = direct_plan(graph, {parallel, parse_precision("bf16"), {}, batch},
                          load_system("dgx-h100:8"), {});
  plan.model_source = kTinyGpt;
  return plan;
}

Parallelism form(int pp, int dp, std::int64_t micro_batches, int micro_batch = 1) {
  Parallelism p;
  p.pp = pp;
  p.dp = dp;
  p.micro_batch = micro_batch;
  p.num_micro_batches = micro_batches;
  return p;
}

std::string refusal_of(const Plan& plan) {
  try {
    export_pytorch(plan);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// "a b a b c" of terms such as `2 * "a b "` and `"c "`, and of brackets.
class TermReader {
 public:
  explicit TermReader(const std::string& text) : text_(text) {}
  std::string sum() {
    std::string result = term();
    while (text_.compare(at_, 3, " + ") == 0) {
      at_ += 3;
      result += term();
    }
    return result;
  }

 private:
  std::string term() {
    std::size_t times = 1;
    if (text_[at_] >= '0' && text_[at_] <= '9') {
      times = std::stoul(text_.substr(at_));
      at_ = text_.find('*', at_) + 2;
    }
    std::string once;
    if (text_[at_] == '(') {
      ++at_;
      once = sum();
      ++at_;
    } else {
      const std::size_t end = text_.find('"', at_ + 1);
      once = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
    }
    std::string result;
    for (std::size_t i = 0; i < times; ++i) result += once;
    return result;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

TEST(PytorchText, RepeatedWordsAreTheWords) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::string> words;
    const int kinds = draw(random, 1, 4);
    for (int block = draw(random, 1, 5); block > 0; --block) {
      std::vector<std::string> pattern;
      for (int w = draw(random, 1, 4); w > 0; --w) {
        pattern.push_back(fmt::format("F{}", draw(random, 1, kinds)));
      }
      for (int times = draw(random, 1, 9); times > 0; --times) {
        words.insert(words.end(), pattern.begin(), pattern.end());
      }
    }
    std::string expected;
    for (const std::string& word : words) expected += word + " ";
    const std::string text = joined(repeated_words(words), " + ");
    EXPECT_EQ(TermReader(text).sum(), expected) << text;
  }
  const std::vector<std::string> words = {"F1", "F1", "F1", "F1", "B1", "F1", "B1", "B1", "B1"};
  EXPECT_EQ(joined(repeated_words(words), " + "), R"(4 * "F1 " + "B1 F1 " + 3 * "B1 ")");
}

TEST(PytorchText, NamesAreIdentifiers) {
  EXPECT_EQ(python_name("encoder.block0"), "encoder_block0");
  EXPECT_EQ(python_name("0/x y"), "_0_x_y");
  EXPECT_EQ(python_name("lambda"), "lambda_");
  EXPECT_EQ(python_name(""), "_");
  EXPECT_EQ(class_name("encoder.block12"), "EncoderBlock");
  EXPECT_EQ(class_name("12"), "Layer");
  PythonNames names;
  EXPECT_EQ(names.unique("Block"), "Block");
  EXPECT_EQ(names.unique("Block"), "Block2");
  EXPECT_EQ(names.unique("block1"), "block1");
  EXPECT_EQ(names.unique("block1"), "block1_2");
}

TEST(PytorchText, LongStatementsAreBrokenInBrackets) {
  const std::string text =
      "x = torch.cat((" + std::string(60, 'a') + ", " + std::string(60, 'b') + "), dim=-1)";
  EXPECT_EQ(python_statement(text, 8), "        x = torch.cat((" + std::string(60, 'a') +
                                           ",\n            " + std::string(60, 'b') +
                                           "), dim=-1)\n");
  EXPECT_EQ(python_statement("x = y", 4), "    x = y\n");
  const std::vector<std::string> items = {
      "a=1", "b=(" + std::string(50, 'b') + ", " + std::string(50, 'c') + ")"};
  EXPECT_EQ(python_call("1: Stage", items, "", 4), "1: Stage(\n        a=1,\n        b=(" +
                                                       std::string(50, 'b') + ",\n            " +
                                                       std::string(50, 'c') + "),\n    )");
  EXPECT_EQ(python_call("f", std::vector<std::string>{"x", "y"}, ":", 4), "f(x, y):");
}

TEST(PytorchText, RanksAreRangesWhereTheyCanBe) {
  EXPECT_EQ(python_ranks(std::vector<std::int32_t>{3}), "[3]");
  EXPECT_EQ(python_ranks(std::vector<std::int32_t>{0, 1}), "[0, 1]");
  EXPECT_EQ(python_ranks(std::vector<std::int32_t>{4, 5, 6}), "range(4, 7)");
  EXPECT_EQ(python_ranks(std::vector<std::int32_t>{0, 8, 16}), "range(0, 17, 8)");
  EXPECT_EQ(python_ranks(std::vector<std::int32_t>{0, 8, 9}), "[0, 8, 9]");
}

TEST(PytorchExport, LayersOfAKindShareAClass) {
  const std::string text = export_pytorch(tiny_plan(form(2, 2, 4, 2))).text;
  EXPECT_THAT(text, HasSubstr("class Block(nn.Module):"));
  EXPECT_THAT(text, Not(HasSubstr("class Block2")));
  EXPECT_THAT(text, HasSubstr("class Stage2(nn.Module):"));
  EXPECT_THAT(text, Not(HasSubstr("class Stage3")));
  EXPECT_THAT(text, HasSubstr("attention(q, k, v, heads=4, kv_heads=4, causal=True)"));
  EXPECT_THAT(text, HasSubstr("BATCH = 16 "));
  EXPECT_THAT(text, HasSubstr("ranks=[2, 3], micro_batch=2"));
  EXPECT_THAT(text, HasSubstr("torchrun --nproc_per_node 4 train.py"));
  EXPECT_THAT(text, HasSubstr(R"("embedding.embedding.weight": (1, 2))"));  // Tied to the head.
  EXPECT_THAT(text, Not(HasSubstr("checkpoint")));
  EXPECT_THAT(text, Not(HasSubstr("def experts")));
}

TEST(PytorchExport, PassesAreThoseOfTheSchedule) {
  Parallelism p = form(2, 1, 16);
  EXPECT_THAT(export_pytorch(tiny_plan(p)).text,
              HasSubstr("    1: 2 * \"F1 \" + 14 * \"B1 F1 \" + 2 * \"B1 \",\n"
                        "    2: 16 * \"F2 B2 \",\n"));
  p.schedule = ScheduleKind::gpipe;
  EXPECT_THAT(export_pytorch(tiny_plan(p)).text,
              HasSubstr("    1: 16 * \"F1 \" + 16 * \"B1 \",\n"
                        "    2: 16 * \"F2 \" + 16 * \"B2 \",\n"));
}

TEST(PytorchExport, RecomputationAndZeroAreWritten) {
  Parallelism p = form(1, 2, 8);
  p.zero = Zero::gradients;
  p.recompute = Recompute::full;
  const std::string full = export_pytorch(tiny_plan(p)).text;
  EXPECT_THAT(full, HasSubstr("zero=2"));
  EXPECT_THAT(full, HasSubstr("x = recomputed(self.get_submodule(f\"block{n}\"))(x)"));
  EXPECT_THAT(full, HasSubstr("from torch.utils.checkpoint import checkpoint"));
  p.recompute = Recompute::selective;
  const std::string selective = export_pytorch(tiny_plan(p)).text;
  EXPECT_THAT(selective, HasSubstr("Block(recomputes_attention=True)"));
  EXPECT_THAT(selective, HasSubstr("y = self.attend(q, k, v"));
}

TEST(PytorchExport, WhatTheFileDoesNotDoIsRefusedByStage) {
  Parallelism p = form(1, 1, 16);
  p.tp = 2;
  EXPECT_THAT(refusal_of(tiny_plan(p)), HasSubstr("stage 1 has tensor parallelism 2, which"));
  p = form(1, 1, 16);
  p.cp = 2;
  EXPECT_THAT(refusal_of(tiny_plan(p)), HasSubstr("stage 1 has context parallelism 2"));
  p = form(1, 2, 8);
  p.zero = Zero::parameters;
  EXPECT_THAT(refusal_of(tiny_plan(p)), HasSubstr("ZeRO-3"));
  p = form(1, 1, 16);
  p.offload_optimizer = true;
  EXPECT_THAT(refusal_of(tiny_plan(p)), HasSubstr("something in host memory"));
  Plan plan = tiny_plan(form(1, 1, 16));
  plan.stages.front().own.emplace().ep = 2;
  plan.stages.front().dp = 2;
  EXPECT_THAT(refusal_of(plan), HasSubstr("expert parallelism 2"));
  plan = tiny_plan(form(1, 1, 16));
  plan.model_source.clear();
  EXPECT_THAT(refusal_of(plan), HasSubstr("does not say which model it is for"));
  plan.model_source = "model.onnx";
  EXPECT_THAT(refusal_of(plan), HasSubstr("ONNX"));
  plan.model_source = "gpt2";
  EXPECT_THAT(refusal_of(plan), HasSubstr("layers are not the"));
}

TEST(PytorchExport, NamesCannotBreakOutOfTheirDocstring) {
  Plan plan = tiny_plan(form(1, 1, 16));
  plan.model = "x\"\"\"\nimport this\\";
  plan.system.name = "y\r\nz";
  const std::string text = export_pytorch(plan).text;
  EXPECT_THAT(text, HasSubstr("x''' import this/ on y  z"));
  EXPECT_THAT(text, Not(HasSubstr("\nimport this")));
}

TEST(PytorchExport, LongSequencesAreWrittenToo) {
  // Their scores would not fit memory when they are written out.
  const Graph graph = load_model("llama-3-8b", {.seq_len = 32768, .dims = {}});
  Parallelism p = form(4, 8, 4);
  Plan plan =
      direct_plan(graph, {p, parse_precision("bf16"), {}, 32}, load_system("dgx-h100:32"), {});
  plan.model_source = "llama-3-8b";
  const Export out = export_pytorch(plan);
  EXPECT_THAT(out.text, HasSubstr("heads=32, kv_heads=8, causal=True"));
  EXPECT_THAT(out.text, HasSubstr("ranks=range(0, 8)"));
  EXPECT_THAT(out.text, HasSubstr("torchrun --nnodes 4 --node_rank N --nproc_per_node 8"));
  EXPECT_LT(out.text.size(), 40000U);
}

TEST(PytorchExport, ComputersWithDifferentNumbersOfRanksAreStartedEachByItself) {
  Plan plan = tiny_plan(form(1, 3, 8));
  plan.global_batch = 24;
  plan.system.groups.front().devices_per_node = 2;
  plan.system.groups.front().nodes = 4;
  const Export out = export_pytorch(plan);
  EXPECT_THAT(out.text, HasSubstr("torchrun --nnodes 2 --node_rank 1 --nproc_per_node 1"));
  EXPECT_THAT(out.warnings, ::testing::Contains(HasSubstr("different numbers of ranks")));
}

TEST(PytorchExport, IsTheSameEveryTime) {
  const Plan plan = tiny_plan(form(2, 2, 4, 2));
  EXPECT_EQ(export_pytorch(plan, "a.py").text, export_plan(plan, "pytorch", "a.py").text);
}

/// Gives layers and operators names that Python has other uses for, or that become the same.
void rename_badly(Graph& graph) {
  constexpr const char* kNames[] = {"stage", "forward", "a.b", "a_b", "0", "Worker", "nn", "x"};
  for (std::size_t l = 0; l < std::min(graph.layers.size(), std::size(kNames)); ++l) {
    graph.layers[l].name = kNames[l];
    graph.operators[static_cast<std::size_t>(graph.layers[l].last) - 1].name = kNames[l];
  }
}

/// Random graphs of stages with micro-batches, replicas, recomputation, ZeRO stages and orders of
/// their own are written as what Python can compile. Where BRAID_PYTORCH_EXPORTS names a folder,
/// they are left there, for scripts/check-pytorch-export.sh to run.
TEST(PytorchExport, RandomPlansAreWritten) {
  const TemporaryFolder temporary;
  const char* kept = std::getenv("BRAID_PYTORCH_EXPORTS");
  const std::string folder = kept == nullptr ? temporary.path() : kept;
  std::mt19937_64 random(11);
  int written = 0;
  while (written < 24) {
    const int vp = draw(random, 0, 3) == 0 ? 2 : 1;
    Graph graph = random_branches(random, draw(random, 2 * vp, 8), vp > 1);
    if (written % 2 == 0) rename_badly(graph);
    Plan plan = vp > 1 ? uniform_plan_for(random, graph, vp) : random_plan_for(random, graph);
    if (devices_used(plan) > 8) continue;
    const std::string name = fmt::format("{}/plan{}", folder, ++written);
    write_file(name + ".json", to_json_text(graph));
    plan.model_source = name + ".json";
    const Export out = export_pytorch(plan);
    write_file(name + ".py", out.text);
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      EXPECT_THAT(out.text, HasSubstr(fmt::format("micro_batch={}", form_of(plan, s).micro_batch)));
    }
  }
  if (std::system("python3 -c 'import ast'") != 0) GTEST_SKIP() << "python3 is not here";
  const std::string command =
      "python3 -c 'import ast, glob, sys\nfor file in glob.glob(sys.argv[1] + \"/*.py\"):\n"
      "    ast.parse(open(file).read(), file)' " +
      folder;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace braid::test

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/graph/predicts_mtp.h"
#include "braid/plan/gradient_placeholders.h"
#include "braid/plan/trainer_file.h"
#include "braid/plan/trainer_fit.h"
#include "braid/profile/trainer_behaviour.h"
#include "braid/system/system.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TrainerFile read(const std::string& text) {
  return read_trainer(Document::parse(text, Document::Syntax::yaml, "t.yaml").root());
}

std::string message(const std::string& text) {
  try {
    static_cast<void>(read(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Trainer, EveryEntryOfTheCatalogueHasASource) {
  ASSERT_GT(trainer_catalogue().size(), 8U);
  for (const TrainerFile& trainer : trainer_catalogue()) {
    EXPECT_FALSE(trainer.title.empty()) << trainer.name;
    for (const TrainerEntry& entry : trainer.entries) {
      EXPECT_FALSE(entry.source.empty()) << trainer.name << entry.key;
    }
  }
}

TEST(Trainer, OfTheCatalogueIsNoFasterThanTheIdealOne) {
  const TrainerBehaviour ideal = load_trainer("ideal").trainer({}).does;
  for (const TrainerFile& file : trainer_catalogue()) {
    const TrainerBehaviour does = file.trainer({}).does;
    EXPECT_TRUE(does.blocking_sends || !ideal.blocking_sends);
    EXPECT_LE(does.attention_rate, ideal.attention_rate);
    for (bool TrainerBehaviour::*flag :
         {&TrainerBehaviour::flash_attention, &TrainerBehaviour::captured_graphs,
          &TrainerBehaviour::fused_loss, &TrainerBehaviour::fused_experts,
          &TrainerBehaviour::overlapped_tensor_parallel, &TrainerBehaviour::overlapped_dispatch,
          &TrainerBehaviour::fused_accumulation, &TrainerBehaviour::overlapped_gradients}) {
      EXPECT_TRUE(ideal.*flag || !(does.*flag)) << file.name;
    }
    EXPECT_TRUE(ideal.gradient_placeholders <= does.gradient_placeholders);
  }
}

TEST(Trainer, IsTheDefaultOnChipsByTheLongestBeginningsOfTheirNames) {
  const auto on = [](const std::vector<std::string>& chips) {
    System system;
    for (const std::string& chip : chips) system.groups.emplace_back().chip = load_chip(chip);
    return default_trainer(system).name;
  };
  EXPECT_EQ(on({"h100-sxm"}), "megatron");
  EXPECT_EQ(on({"sn40l"}), "megatron");
  EXPECT_EQ(on({"tpu-v5p"}), "maxtext");
  EXPECT_EQ(on({"tpu-v5p", "tpu-v4"}), "maxtext");
  EXPECT_EQ(on({"tpu-v5p", "h100-sxm"}), "megatron");
  EXPECT_EQ(on({"h100-sxm", "tpu-v5p"}), "megatron");
}

TEST(Trainer, NoTwoAreTheDefaultOnTheSameChips) {
  std::set<ChipKind> kinds;
  int others = 0;
  for (const TrainerFile& trainer : trainer_catalogue()) {
    for (const ChipKind kind : trainer.default_on) {
      EXPECT_TRUE(kinds.insert(kind).second) << trainer.name;
      Chip chip;
      chip.kind = kind;
      EXPECT_EQ(refusal(trainer.can, chip), "") << trainer.name;
    }
    if (trainer.default_on_others) ++others;
  }
  EXPECT_EQ(others, 1);
}

TEST(Trainer, ConditionsDecideWhichEntryCounts) {
  const TrainerFile file = read(
      "name: t\n"
      "title: T\n"
      "does:\n"
      "  captured_graphs:\n"
      "    - {is: true, when: {version_from: '26.06', precision: [mx]}, source: s}\n"
      "    - {is: true, when: {model: [big], hardware_other_than: [old]}, source: s}\n"
      "  attention_rate: {is: 0.5, when: {hardware: [old]}, source: s}\n");
  TrainerSubject subject;
  EXPECT_FALSE(file.trainer(subject).does.captured_graphs);
  subject.precision = "mxfp8";
  EXPECT_TRUE(file.trainer(subject).does.captured_graphs);
  subject.version = 2604;
  EXPECT_FALSE(file.trainer(subject).does.captured_graphs);
  subject.model = "big-7b";
  EXPECT_TRUE(file.trainer(subject).does.captured_graphs);
  subject.hardware = "an old chip";
  EXPECT_FALSE(file.trainer(subject).does.captured_graphs);
  EXPECT_EQ(file.trainer(subject).does.attention_rate, 0.5);
}

/// Of a mixed cluster the least counts; where none is known, no condition on it holds.
TEST(Trainer, ConditionsAskForTheComputeCapability) {
  const TrainerFile file = read(
      "name: t\n"
      "title: T\n"
      "can:\n"
      "  never: [{is: [context_parallel], when: {compute_capability_below: 8.0}, source: s}]\n"
      "does:\n"
      "  captured_graphs: {is: true, when: {compute_capability_below: 8.0}, source: s}\n");
  const auto subject = [&](const std::vector<const char*>& chips) {
    System system;
    for (const char* chip : chips) system.groups.emplace_back().chip = load_chip(chip);
    return subject_of(file, system, Precision{});
  };
  const std::pair<std::vector<const char*>, bool> cases[] = {{{"v100-sxm-16gb"}, true},
                                                             {{"t4"}, true},
                                                             {{"a100-sxm-80gb"}, false},
                                                             {{"a100-sxm-80gb", "t4"}, true},
                                                             {{"mi300x"}, false},
                                                             {{"tpu-v5p"}, false},
                                                             {{"mi300x", "rtx-2080"}, true},
                                                             {{"b300", "h100-sxm"}, false}};
  for (const auto& [chips, holds] : cases) {
    EXPECT_EQ(file.trainer(subject(chips)).does.captured_graphs, holds) << chips.front();
    EXPECT_EQ(file.limits(subject(chips)).never.size(), holds ? 1u : 0u) << chips.front();
  }
  EXPECT_THAT(file.never.front().forms.models, " below compute capability 8.0");
}

TEST(Trainer, MayNeedAComputeCapability) {
  const TrainerLimits can = trainer_of_catalogue("megatron-bridge").can;
  EXPECT_EQ(refusal(can, load_chip("v100-sxm-32gb")),
            "does not run on v100-sxm-32gb, of compute capability 7.0: it needs 8.0");
  EXPECT_EQ(refusal(can, load_chip("a100-sxm-40gb")), "");
  EXPECT_EQ(refusal(can, load_chip("gb300")), "");
  // A chip of one's own, whose file does not say it.
  Chip own = load_chip("v100-sxm-16gb");
  own.compute_capability.reset();
  EXPECT_NE(refusal(can, own), "");
  own.peaks.push_back({Dtype::bf16, 1e14});
  EXPECT_EQ(refusal(can, own), "");
}

TEST(Trainer, OfARunIsTheOneThatSaysMostOfIt) {
  const auto name = [](const char* framework, const char* hardware, int published) {
    TrainerSubject subject;
    subject.framework = framework;
    subject.hardware = hardware;
    subject.version = subject.published = published;
    return trainer_of_run(subject).name;
  };
  EXPECT_EQ(name("megatron-lm", "a100", 2104), "megatron-2021");
  EXPECT_EQ(name("megatron-lm", "a100", 2205), "megatron-2022");
  EXPECT_EQ(name("megatron-lm", "h100", 2205), "megatron");
  EXPECT_EQ(name("megatron-bridge/megatron-core 26.04", "h100", 0), "megatron-bridge");
  EXPECT_EQ(name("deepspeed zero-3 (megatron-deepspeed)", "a100", 0), "megatron-2021");
  EXPECT_EQ(name("megatron-lm 0.14 / te", "b200", 0), "megatron");
  EXPECT_EQ(name("maxtext/jax", "tpu v5p", 0), "maxtext");
  EXPECT_EQ(name("something else", "h100", 0), "pytorch");
}

TEST(Trainer, MistakesInFilesAreSaidWhereTheyAre) {
  const std::string head = "name: t\ntitle: T\n";
  EXPECT_THAT(message(head + "does:\n  captured_graph: {is: true, source: s}\n"),
              HasSubstr("t.yaml:4: does.captured_graph: a trainer does nothing called "
                        "'captured_graph'; did you mean 'captured_graphs'?"));
  EXPECT_THAT(message(head + "does:\n  blocking_sends: {is: true}\n"),
              HasSubstr("t.yaml:4: does.blocking_sends: has no source"));
  EXPECT_THAT(message(head + "does:\n  blocking_sends: true\n"), HasSubstr("has no source"));
  EXPECT_THAT(message(head + "can:\n  zero: {is: [0, 4], source: s}\n"), HasSubstr("t.yaml:4"));
  for (const char* key : {"schedules", "recompute", "zero", "sequence_parallel", "orders"}) {
    EXPECT_THAT(message(head + "can:\n  " + key + ": {is: [], source: s}\n"),
                HasSubstr("has no value; name at least one"));
  }
  EXPECT_THAT(message(head + "can:\n  flying: {is: true, source: s}\n"),
              HasSubstr("a trainer has no capability called 'flying'"));
  EXPECT_THAT(message(head + "can:\n  offload: {is: [optimiser], source: s}\n"),
              HasSubstr("did you mean 'optimizer'?"));
  EXPECT_THAT(message(head + "can:\n  never: [{is: [pipeline], source: s}]\n"),
              HasSubstr("unknown value 'pipeline'; did you mean 'pipelines'?"));
  EXPECT_THAT(message(head + "can:\n  never: [{is: [no pipelines], source: s}]\n"),
              HasSubstr("names nothing that a form has"));
  EXPECT_THAT(message(head + "can:\n  never: [{is: [pipelines]}]\n"), HasSubstr("has no source"));
  EXPECT_THAT(
      message(head + "can:\n  never: [{is: [zero_0], when: {model_has: [wings]}, source: s}]\n"),
      HasSubstr("unknown value 'wings'"));
  EXPECT_THAT(message(head + "can:\n  key_value_heads: {is: some, source: s}\n"),
              HasSubstr("unknown value 'some'"));
  EXPECT_THAT(message(head + "does:\n  fused_loss: {is: true, when: {moon: [full]}, source: s}\n"),
              HasSubstr("unknown key"));
  EXPECT_THAT(message("title: T\n"), HasSubstr("name: required key is missing"));
}

TEST(TrainerLimits, NameWhatAFormHasThatCannotBeTold) {
  TrainerLimits can;
  Parallelism p;
  EXPECT_THAT(refusal(can, p), IsEmpty());
  can.schedules = {ScheduleKind::one_f_one_b};
  p.pp = 2;
  p.schedule = ScheduleKind::gpipe;
  EXPECT_EQ(refusal(can, p), "has no schedule gpipe");
  p.schedule = ScheduleKind::one_f_one_b;
  can.pipelined_zero = {Zero::none, Zero::optimizer};
  p.zero = Zero::parameters;
  EXPECT_EQ(refusal(can, p), "has no ZeRO-3 with several stages");
  p.pp = 1;
  EXPECT_THAT(refusal(can, p), IsEmpty());
  can.sequence_parallel = {true};
  p.tp = 2;
  EXPECT_THAT(refusal(can, p), HasSubstr("only with sequence parallelism"));
  p.sequence_parallel = true;
  can.offload_optimizer = false;
  p.offload_optimizer = true;
  EXPECT_EQ(refusal(can, p), "moves no optimizer state to host memory");
}

TEST(TrainerLimits, OfAModelExcludeCombinationsThatItsFileNames) {
  const TrainerFile file = read(
      "name: t\n"
      "title: T\n"
      "can:\n"
      "  key_value_heads: {is: whole, source: s}\n"
      "  whole_sequence_pieces: {is: true, source: s}\n"
      "  never:\n"
      "    - {is: [pipelines], when: {model_type: [qwen3, gpt_oss]}, source: s}\n"
      "    - {is: [tensor_parallel, no sequence_parallel], when: {model_has: [experts]}, source: "
      "s}\n"
      "    - {is: [zero_0, data_parallel, offloaded_optimizer], source: s}\n");
  TrainerSubject subject;
  Parallelism staged;
  staged.pp = 2;
  EXPECT_THAT(refusal(file.limits(subject), staged), IsEmpty());
  subject.model_type = "qwen3_moe";
  EXPECT_EQ(refusal(file.limits(subject), staged),
            "has no pipelines for models of type qwen3 or gpt_oss");
  Parallelism divided;
  divided.tp = 2;
  EXPECT_THAT(refusal(file.limits(subject), divided), IsEmpty());
  subject.model_has = {"experts"};
  EXPECT_EQ(refusal(file.limits(subject), divided),
            "has no tensor parallelism without sequence parallelism for models with experts");
  divided.sequence_parallel = true;
  EXPECT_THAT(refusal(file.limits(subject), divided), IsEmpty());
  Parallelism moved;
  moved.offload_optimizer = true;
  EXPECT_THAT(refusal(file.limits(subject), moved), IsEmpty());
  moved.dp = 2;
  EXPECT_EQ(refusal(file.limits(subject), moved),
            "does not combine data parallelism, ZeRO-0 and optimizer state in host memory");
  moved.zero = Zero::optimizer;
  EXPECT_THAT(refusal(file.limits(subject), moved), IsEmpty());
}

TEST(TrainerLimits, OfHeadsAndTokensAreThoseOfTheModel) {
  const std::string head = "name: t\ntitle: T\ncan:\n";
  TrainerSubject subject;
  subject.kv_heads = 4;
  subject.seq_len = 1000;
  Parallelism p;
  p.tp = 8;
  p.sequence_parallel = true;
  const auto refused = [&](const std::string& entry) {
    return refusal(read(head + "  " + entry + "\n").limits(subject), p);
  };
  EXPECT_EQ(refused("key_value_heads: {is: whole, source: s}"),
            "divides whole heads, and 4 of keys and values do not go over 8 tensor-parallel ranks");
  EXPECT_THAT(refused("key_value_heads: {is: shared, source: s}"), IsEmpty());
  subject.kv_heads = 3;
  EXPECT_THAT(refused("key_value_heads: {is: shared, source: s}"), HasSubstr("3 of keys"));
  EXPECT_EQ(refused("whole_sequence_pieces: {is: true, source: s}"),
            "wants sequences of a multiple of 16 tokens, twice the tensor- and context-parallel "
            "ranks");
  EXPECT_THAT(refused("whole_sequence_pieces: {is: false, source: s}"), IsEmpty());
}

TEST(TrainerLimits, OfNodesThatAreAlikeAreThoseOfTheCluster) {
  const TrainerFile file = read("name: t\ntitle: T\ncan:\n  alike_nodes: {is: true, source: s}\n");
  TrainerSubject subject;
  subject.devices_per_node = 8;
  const auto allows = [&](int tp, int dp, int ep) {
    Parallelism p;
    p.tp = tp;
    p.dp = dp;
    p.ep = ep;
    p.sequence_parallel = true;
    return refusal(file.limits(subject), p).empty();
  };
  EXPECT_TRUE(allows(1, 3, 1));  // Part of a node.
  EXPECT_TRUE(allows(1, 4, 4));
  EXPECT_TRUE(allows(2, 8, 4));   // Two nodes of four replicas.
  EXPECT_FALSE(allows(2, 8, 8));  // A group of experts on both.
  EXPECT_FALSE(allows(1, 12, 1));
  EXPECT_FALSE(allows(16, 1, 1));  // A replica on both.
  EXPECT_FALSE(allows(16, 2, 1));
  subject.devices_per_node = 0;  // Not known.
  EXPECT_TRUE(allows(1, 12, 1));
}

TEST(TrainerLimits, OfAFormThatIsNotDecidedYetExcludeNothing) {
  ExcludedForms forms;
  forms.with = traits(FormTrait::tensor_parallel, FormTrait::zero_0);
  forms.without = bit_of(FormTrait::context_parallel);
  Parallelism p;
  p.tp = 2;
  const FormTraits form = traits_of(p, false);
  EXPECT_TRUE(forms.has(form));
  EXPECT_FALSE(forms.has(form, kAllFormTraits & ~bit_of(FormTrait::context_parallel)));
  p.cp = 2;
  EXPECT_FALSE(forms.has(traits_of(p, false)));
}

TEST(TrainerLimits, FormsHaveSeveralMicroBatchesAndTheirRecomputation) {
  Parallelism p;
  const auto has = [&p](FormTrait trait) { return (traits_of(p, false) & bit_of(trait)) != 0; };
  EXPECT_FALSE(has(FormTrait::several_micro_batches));
  EXPECT_FALSE(has(FormTrait::selective_recomputation));
  p.num_micro_batches = 2;
  p.recompute = Recompute::selective;
  EXPECT_TRUE(has(FormTrait::several_micro_batches));
  EXPECT_TRUE(has(FormTrait::selective_recomputation));
  p.recompute = Recompute::full;
  EXPECT_FALSE(has(FormTrait::selective_recomputation));
}

/// torchtitan reduces the gradients of every micro-batch, but for pipelines.
TEST(TrainerLimits, ZeroOfTorchtitanIsWhatItsStepsDo) {
  for (const char* name : {"torchtitan", "torchtitan-recipe"}) {
    const TrainerLimits can = load_trainer(name).limits({});
    const auto allows = [&can](Zero zero, int pp, int micro_batches) {
      Parallelism p;
      p.dp = 2;
      p.pp = pp;
      p.zero = zero;
      p.num_micro_batches = micro_batches;
      p.schedule = ScheduleKind::gpipe;
      return refusal(can, p).empty();
    };
    for (const int micro_batches : {1, 4}) {
      EXPECT_EQ(allows(Zero::none, 1, micro_batches), micro_batches == 1) << name;
      EXPECT_FALSE(allows(Zero::optimizer, 1, micro_batches)) << name;
      EXPECT_TRUE(allows(Zero::optimizer, 2, micro_batches)) << name;
      for (const Zero zero : {Zero::gradients, Zero::parameters}) {
        EXPECT_TRUE(allows(zero, 1, micro_batches)) << name;
        EXPECT_FALSE(allows(zero, 2, micro_batches)) << name;
      }
    }
  }
}

/// Of MTP modules and the head one layer is made, of the same operators.
TEST(Trainer, JoinsPredictionsOfHybridsAndTheHead) {
  for (const auto& [model, joins] :
       {std::pair{"nemotron-3-super-mtp", true}, std::pair{"nemotron-3-super", false},
        std::pair{"deepseek-v3-mtp", false}}) {
    const Graph before = load_model(model, {.seq_len = 512, .dims = {}});
    TrainerSubject subject;
    describe_model(*before.shape, subject);
    Graph after = before;
    adapt_graph(load_trainer("megatron").trainer(subject).does, after);
    ASSERT_EQ(after.layers.size(), before.layers.size() - (joins ? 1 : 0)) << model;
    ASSERT_EQ(after.operators.size(), before.operators.size()) << model;
    EXPECT_EQ(after.layers.back().last, before.layers.back().last) << model;
    for (std::size_t i = 0; i < after.operators.size(); ++i) {
      const auto& [now, was] = std::pair{after.operators[i].layer, before.operators[i].layer};
      EXPECT_EQ(now, std::min<LayerId>(was, static_cast<LayerId>(after.layers.size()) - 1));
    }
    EXPECT_NO_THROW(check_graph(after, model));
    EXPECT_EQ(predicts_mtp(after), model == std::string("deepseek-v3-mtp")) << model;
    EXPECT_EQ(parameter_count(after), parameter_count(before)) << model;
  }
}

TEST(TrainerLimits, EvenLayoutsAreThoseOfTrainers) {
  const auto even = [](std::vector<std::int32_t> counts) { return is_dealt_evenly(counts); };
  EXPECT_TRUE(even({7, 6, 6, 7}));
  EXPECT_TRUE(even({26}));
  EXPECT_FALSE(even({6, 7, 6, 7}));
  EXPECT_FALSE(even({8, 6, 6, 6}));
  EXPECT_TRUE(even({3, 3}));
  EXPECT_FALSE(even({2, 4}));
}

}  // namespace
}  // namespace braid

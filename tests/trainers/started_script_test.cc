#include "braid/trainers/exchange/started_script.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/trainers/registry.h"

#include "base/error_text.h"

namespace braid {
namespace {

using testing::HasSubstr;

const std::string kTrain =
    "#!/bin/bash\npretrain_gpt.py --micro-batch-size 2 --tensor-model-parallel-size $TP\n";

ImportChoice with(std::map<std::string, std::string> files) {
  ImportChoice choice;
  choice.text_of_file = [files](const std::string& name) -> std::optional<std::string> {
    const auto found = files.find(name);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
  return choice;
}

TEST(StartedScript, SeesWhatIsSetBeforeIt) {
  const ImportChoice choice = with({{"train.sh", kTrain}, {"./train.sh", kTrain}});
  for (const char* line : {"TP=4 bash train.sh", "TP=4 sh ./train.sh",
                           "export TP='4'\nsbatch --nodes 2 train.sh\n", "srun bash -x train.sh"}) {
    const std::string text = line;
    const bool sets = text.find("TP") != std::string::npos;
    if (sets) {
      EXPECT_EQ(import_run(text, "run.sh", choice).parallel.tp, 4) << line;
    } else {
      EXPECT_THAT(error_text([&] { import_run(text, "run.sh", choice); }),
                  HasSubstr("train.sh: --tensor-model-parallel-size: has no value: $TP is not set"))
          << line;
    }
  }
}

TEST(StartedScript, SeesOfAnotherScriptWhatIsExported) {
  const ImportChoice choice = with({{"train.sh", kTrain}});
  EXPECT_EQ(
      import_run("MBS=1\nexport TP=8\necho start\nbash train.sh\n", "a.sh", choice).parallel.tp, 8);
  EXPECT_THAT(error_text([&] { import_run("TP=8\necho start\nbash train.sh\n", "a.sh", choice); }),
              HasSubstr("$TP is not set"));
}

TEST(StartedScript, KeepsQuotesOfValues) {
  const auto script =
      started_script("A=\"it's so\" bash train.sh", "", with({{"train.sh", "run $A\n"}}));
  ASSERT_TRUE(script);
  EXPECT_EQ(script->text, "export A='it'\\''s so'; run $A\n");
}

TEST(StartedScript, MayLeadToAnother) {
  const ImportChoice choice =
      with({{"a.sh", "export TP=2\nbash train.sh\n"}, {"train.sh", kTrain}});
  EXPECT_EQ(import_run("bash a.sh", "", choice).parallel.tp, 2);
}

TEST(StartedScript, ThatStartsItselfStartsNoTrainer) {
  const ImportChoice choice = with({{"a.sh", "bash a.sh\n"}});
  EXPECT_THAT(error_text([&] { import_run("bash a.sh", "", choice); }),
              HasSubstr("this says nothing of the run but a.sh"));
  EXPECT_THAT(error_text([&] { import_run("bash b.sh", "", choice); }),
              HasSubstr("this says nothing of the run but b.sh"));
}

}  // namespace
}  // namespace braid

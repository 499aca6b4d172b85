#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program.h"
#include "support/source_path.h"

namespace braid {
namespace {

using test::Ran;
using test::run_program;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

/// What bash offers for the last of the words behind "braid".
Words completions(const Words& words) {
  const std::string script =
      "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); cd /; _braid; "
      "printf '%s\\n' \"${COMPREPLY[@]}\"";
  Words line = {
      "/bin/bash",  "-c", script, "bash", test::source_path("scripts/completion/braid.bash"),
      BRAID_PROGRAM};
  line.insert(line.end(), words.begin(), words.end());
  const Ran ran = run_program(line);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  Words offered;
  std::istringstream lines(ran.out);
  for (std::string text; std::getline(lines, text);) {
    if (!text.empty()) offered.push_back(text);
  }
  return offered;
}

TEST(Completion, OffersCommands) {
  EXPECT_THAT(
      completions({""}),
      UnorderedElementsAre("plan", "evaluate", "compare", "profile", "simulate", "verify", "export",
                           "report", "validate", "calibrate", "map", "explore", "tune", "place",
                           "measure", "run", "serve-plan", "decode", "list", "show", "--help"));
  EXPECT_THAT(completions({"pl"}), UnorderedElementsAre("plan", "place"));
}

TEST(Completion, OffersNamesOfTheCatalogue) {
  EXPECT_THAT(completions({"plan", "llama-3-"}), Contains("llama-3-70b"));
  EXPECT_THAT(completions({"plan", "gpt2", "--cluster", "dgx-h"}),
              ElementsAre("dgx-h100", "dgx-h200"));
  EXPECT_THAT(completions({"show", "h1"}),
              ElementsAre("h100-pcie", "h100-sxm", "h100-pcie-server"));
  EXPECT_THAT(completions({"compare", "gpt2", "--planners", "bra"}), ElementsAre("braid"));
  // Of the heading of a list, nothing.
  EXPECT_THAT(completions({"show", "nam"}), IsEmpty());
}

TEST(Completion, OffersOptionsAndTheirValues) {
  EXPECT_THAT(completions({"plan", "gpt2", "--"}), Each(StartsWith("--")));
  EXPECT_THAT(completions({"plan", "gpt2", "--"}), Contains("--global-batch"));
  EXPECT_THAT(completions({"compare", "gpt2", "--"}), Not(Contains("--top")));
  EXPECT_THAT(completions({"plan", "gpt2", "--recompute", ""}),
              ElementsAre("none", "selective", "full"));
  EXPECT_THAT(completions({"plan", "gpt2", "--sharding", ""}), ElementsAre("manual", "auto"));
  EXPECT_THAT(completions({"map", "gpt2", "--sharding", ""}), ElementsAre("joint", "grid"));
  EXPECT_THAT(completions({"export", "p.json", "--to", "me"}),
              ElementsAre("megatron", "megatron-bridge"));
}

}  // namespace
}  // namespace braid

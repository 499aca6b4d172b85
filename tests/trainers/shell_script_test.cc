#include "braid/trainers/exchange/shell_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"

namespace braid {
namespace {

using ::testing::ElementsAre;

ShellCommand first(std::string_view text) {
  const ShellScript script = read_shell_script(text, "train.sh");
  return script.commands.empty() ? ShellCommand{} : script.commands.front();
}

TEST(ShellScript, SplitsWordsAsShellsDo) {
  EXPECT_THAT(first("run a  'b c' \"d e\" f\\ g \"\" # h"),
              ElementsAre("run", "a", "b c", "d e", "f g", ""));
  EXPECT_THAT(first("run a \\\n  b \\\r\n c\nother"), ElementsAre("run", "a", "b", "c"));
  EXPECT_THAT(first("x=1 run \"$x\"'$x'"), ElementsAre("run", "1$x"));
}

TEST(ShellScript, ExpandsVariables) {
  EXPECT_THAT(first("A=\"--tp 8\"\nrun $A \"$A\""), ElementsAre("run", "--tp", "8", "--tp 8"));
  EXPECT_THAT(first("N=2\nrun ${N}x ${M:-4} ${N:-5} ${M-\"6 7\"}"),
              ElementsAre("run", "2x", "4", "2", "6", "7"));
  EXPECT_THAT(first("A=a\nA+=b\nexport B=$A\nrun $B"), ElementsAre("run", "ab"));
}

TEST(ShellScript, ExpandsArrays) {
  EXPECT_THAT(first("A=(\n --tp 8 # eight\n --name \"x y\"\n)\nA+=(--pp 2)\nrun \"${A[@]}\""),
              ElementsAre("run", "--tp", "8", "--name", "x y", "--pp", "2"));
}

TEST(ShellScript, DoesArithmetic) {
  EXPECT_THAT(first("G=8\nrun $((G * 4)) $(($G+2*(3-1))) $((${G}/3))"),
              ElementsAre("run", "32", "12", "2"));
}

TEST(ShellScript, ListsWhatItCannotKnow) {
  const ShellScript script =
      read_shell_script("run $HOSTS $(date +%s) $((1/0)) --tp ${TP} \"${TP}\"", "train.sh");
  EXPECT_THAT(script.undefined, ElementsAre("HOSTS", "$(date +%s)", "$((1/0))", "TP"));
  EXPECT_THAT(script.commands.front(), ElementsAre("run", "--tp", ""));
}

TEST(ShellScript, SaysWhereSomethingIsNotClosed) {
  for (const char* text : {"run 'a", "x\nrun \"a", "A=(a b", "run ${A", "run $(a"}) {
    EXPECT_THROW(read_shell_script(text, "train.sh"), Error) << text;
  }
  try {
    read_shell_script("one\ntwo 'a", "train.sh");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where().line, 2);
  }
}

TEST(ShellScript, DoesNotExpandWithoutEnd) {
  std::string text = "A=aaaaaaaaaaaaaaaa\n";
  for (int i = 0; i < 64; ++i) text += "A=\"$A$A\"\n";
  EXPECT_THROW(read_shell_script(text, "train.sh"), Error);
}

}  // namespace
}  // namespace braid

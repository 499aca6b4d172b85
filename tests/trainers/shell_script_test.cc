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
  EXPECT_THAT(script.undefined, ElementsAre("$HOSTS", "$(date +%s)", "$((1/0))", "$TP"));
  EXPECT_THAT(script.commands.front(), ElementsAre("run", "--tp", ""));
}

TEST(ShellScript, TakesTheBranchThatTheVariablesChoose) {
  const char* const sizes =
      "case \"${SCALE}\" in\n  \"800M\"|small)\n    TP=1\n    ;;\n  8B) TP=4;;\n  *)\n    exit 1\n"
      "    ;;\nesac\nrun $TP";
  EXPECT_THAT(first("SCALE=800M\n" + std::string(sizes)), ElementsAre("run", "1"));
  EXPECT_THAT(first("SCALE=small\n" + std::string(sizes)), ElementsAre("run", "1"));
  EXPECT_THAT(first("SCALE=8B\n" + std::string(sizes)), ElementsAre("run", "4"));
  EXPECT_THAT(first("SCALE=70B\n" + std::string(sizes)), ElementsAre("exit", "1"));
  const char* const tests =
      "if [[ $T == fp8 ]]; then\n  A=8\nelif [ \"$T\" = bf16 ]; then A=16\nelse\n  A=32\nfi\nrun "
      "$A";
  EXPECT_THAT(first("T=fp8\n" + std::string(tests)), ElementsAre("run", "8"));
  EXPECT_THAT(first("T=bf16\n" + std::string(tests)), ElementsAre("run", "16"));
  EXPECT_THAT(first("T=fp16\n" + std::string(tests)), ElementsAre("run", "32"));
  EXPECT_THAT(
      first("N=4\nif [ $N -gt 1 ]; then if [ $N -le 2 ]; then A=2; else A=3; fi; fi\nrun $A"),
      ElementsAre("run", "3"));
  EXPECT_THAT(first("N=4\nA=1\n[ $N -eq 4 ] && A=2\n[ $N -ne 4 ] && A=3\nrun $A"),
              ElementsAre("run", "2"));
  EXPECT_THAT(first("N=4\nA=1\n[ $N -eq 4 ] || [ $N -eq 5 ] || A=2; run $A"),
              ElementsAre("run", "1"));
}

TEST(ShellScript, SaysWhatItTookFromAConditionThatItDoesNotKnow) {
  const ShellScript script = read_shell_script(
      "A=1\nB=2\nC=3\nif [ -n \"$KEY\" ]; then A=1; B=4; fi\nfor x in a b; do C+=5; done < file\n"
      "D=`date +%s`\n[[ -f x ]] && E=6\nrun $A $B $C $D",
      "train.sh");
  EXPECT_THAT(script.commands.back(), ElementsAre("run", "1", "4", "35"));
  EXPECT_THAT(script.uncertain, ElementsAre("B", "C", "E"));
  EXPECT_THAT(script.undefined, ElementsAre("$KEY", "`date +%s`"));
}

TEST(ShellScript, RefusesBranchesThatDoNotEnd) {
  for (const char* text : {"x\ncase x in", "x\ncase x in a)", "x\ncase x in a) b ;;",
                           "x\nif [ 1 ; then", "x\nfor i in 1 2; do y", "x\nif"}) {
    try {
      read_shell_script(text, "train.sh");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.where().line, 2) << text;
    }
  }
  for (const char* text :
       {"esac", "fi", "done", "else", "elif [ 1 ]", "a &&", "|| b", ";;", "echo if"}) {
    read_shell_script(text, "train.sh");
  }
}

TEST(ShellScript, TakesWhatIsThereWhereAVariableIsNotSet) {
  EXPECT_THAT(first(": \"${EP:=32}\" ${TP=2}\nrun $EP $TP"), ElementsAre(":", "32", "2"));
  const auto last = [](std::string_view text) {
    return read_shell_script(text, "train.sh").commands.back();
  };
  EXPECT_THAT(last(": \"${EP:=32}\" ${TP=2}\nrun $EP $TP"), ElementsAre("run", "32", "2"));
  EXPECT_THAT(last("A=\nrun \"${A:-1}\" \"${A-1}\" \"${A:+2}\" \"${A+2}\""),
              ElementsAre("run", "1", "", "", "2"));
  EXPECT_THAT(last("B=5\nrun ${A:-$((B*2))} ${A:-${C:-\"$B\"}}"), ElementsAre("run", "10", "5"));
}

TEST(ShellScript, SkipsTextThatACommandIsGiven) {
  EXPECT_THAT(first("cat <<EOF > note\nif you read this\nEOF\nrun 1").front(), "cat");
  const ShellScript script =
      read_shell_script("cat << 'END'\nfor all\nEND\nsbatch <<-X\n\trun a.py --b\n\tX\nz", "s");
  EXPECT_THAT(script.commands[1].front(), "sbatch");
  EXPECT_THAT(script.commands[2], ElementsAre("run", "a.py", "--b"));
  EXPECT_THAT(script.commands.back(), ElementsAre("z"));
}

TEST(ShellScript, SaysInWhichWordWhatItCannotKnowIs) {
  const ShellScript script = read_shell_script(
      "D=$ROOT/data\nA=(--tp $TP)\nB=\"$(date)\"\nrun --data $D \"${A[@]}\" x$B $E", "train.sh");
  EXPECT_THAT(script.commands.front(), ElementsAre("run", "--data", "/data", "--tp", "x"));
  std::vector<std::string> parts;
  for (const UnknownPart& part : script.unknown_parts) {
    parts.push_back(part.name + (part.is_left_out ? " before " : " in ") +
                    std::to_string(part.word));
  }
  EXPECT_THAT(parts, ElementsAre("$ROOT in 2", "$TP before 4", "$(date) in 4", "$E before 5"));
  EXPECT_THAT(read_shell_script("A=$X\n[ -n \"$A\" ] && run\nrun $Y", "s").of_conditions,
              ElementsAre("$X"));
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

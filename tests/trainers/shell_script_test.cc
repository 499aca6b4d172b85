#include "braid/trainers/exchange/shell_script.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>

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

TEST(ShellScript, SetsWhatItReadsInWhereItReadsIt) {
  const auto sourced = [](const std::string& name) -> std::optional<std::string> {
    if (name == "two.sh") return "N=2\nM=$N$N\n";
    if (name == "outer.sh") return "N=5\nsource two.sh\nM=$M$K\n";
    if (name == "itself.sh") return ". itself.sh\nN=7\n";
    return std::nullopt;
  };
  const auto last = [&](std::string_view text) {
    return read_shell_script(text, "train.sh", {}, sourced).commands.back();
  };
  EXPECT_THAT(last("N=4; source two.sh\nrun $N $M"), ElementsAre("run", "2", "22"));
  EXPECT_THAT(last("source two.sh; N=4\nrun $N $M"), ElementsAre("run", "4", "22"));
  EXPECT_THAT(last(". two.sh\nN=4\n. two.sh\nrun $N"), ElementsAre("run", "2"));
  EXPECT_THAT(last("K=8\nsource outer.sh\nrun $N $M"), ElementsAre("run", "2", "228"));
  EXPECT_THAT(last("if false; then source two.sh; fi\nN=${N:-1}\nrun $N"), ElementsAre("run", "1"));
  EXPECT_THAT(last("source itself.sh\nrun $N"), ElementsAre("run", "7"));
  const ShellScript unsure =
      read_shell_script("[ -f x ] && source two.sh\nsource gone.sh", "s", {}, sourced);
  EXPECT_THAT(unsure.uncertain, ElementsAre("N", "M"));
  EXPECT_THAT(unsure.missing_files, ElementsAre("gone.sh"));
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
      "A=1\nB=2\nC=3\nif [ -f key ]; then A=1; B=4; else B=5; fi\nfor x in a b; do C+=5; done < "
      "file\n"
      "D=`date +%s`\n[[ -f x ]] && E=6\nrun $A $B $C $D",
      "train.sh");
  EXPECT_THAT(script.commands.back(), ElementsAre("run", "1", "4", "35"));
  EXPECT_THAT(script.uncertain, ElementsAre("B", "C", "E"));
  EXPECT_THAT(script.undefined, ElementsAre("`date +%s`"));
}

TEST(ShellScript, TestsOfVariablesThatNothingSetsAreThoseOfEmptyOnes) {
  const ShellScript script = read_shell_script(
      "if [ -z \"$LONG\" ]; then A=1; else A=2; fi\n"
      "if [ -z ${VP} ]; then B=; else B=\"--vp ${VP}\"; fi\nrun $A $B",
      "train.sh");
  EXPECT_THAT(script.commands.back(), ElementsAre("run", "1"));
  EXPECT_THAT(script.uncertain, IsEmpty());
  EXPECT_THAT(script.of_conditions, ElementsAre("$LONG", "$VP"));
  EXPECT_THAT(
      first("if [ $X -eq 1 ]; then A=1; elif [ \"$X\" -eq 0 ]; then A=2; else A=3; fi\nrun $A"),
      ElementsAre("run", "3"));
  // What a command gives is not known: the first branch, and none beside it.
  const ShellScript open = read_shell_script(
      "if [ \"$(hostname)\" = a ]; then A=1; elif [ -f b ]; then B=2; else B=3; fi\nrun $A $B",
      "train.sh");
  EXPECT_THAT(open.commands.back(), ElementsAre("run", "1"));
  EXPECT_THAT(open.uncertain, ElementsAre("A"));
}

TEST(ShellScript, LooksForWhatItReadsInBesideItWhereTheFolderIsNotKnown) {
  const auto sourced = [](const std::string& name) -> std::optional<std::string> {
    return name == "env.sh" ? std::optional<std::string>("N=4\n") : std::nullopt;
  };
  for (const char* folder :
       {"$( cd \"$( dirname \"${BASH_SOURCE[0]}\" )\" && pwd )", "$(dirname $(realpath $0))",
        "$(dirname -- \"$(readlink -f -- \"$0\")\")"}) {
    const ShellScript script = read_shell_script(
        "DIR=" + std::string(folder) + "\nsource \"${DIR}/env.sh\"\nrun $N", "s", {}, sourced);
    EXPECT_THAT(script.commands.back(), ElementsAre("run", "4")) << folder;
    EXPECT_THAT(script.missing_files, IsEmpty()) << folder;
  }
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
  for (const char* text : {"declare )", "A=\nexport $A", "esac", "fi", "done", "else", "elif [ 1 ]",
                           "a &&", "|| b", ";;", "echo if"}) {
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

TEST(ShellScript, PutsWhatFormsOfVariablesStandForInTheirPlace) {
  EXPECT_THAT(
      first("A=tp4.4x\nrun ${A/4/8} ${A//4/8} ${A#tp} ${A%x} ${#A} ${A:0:2} ${A: -1} ${A^^}"),
      ElementsAre("run", "tp8.4x", "tp8.8x", "4.4x", "tp4.4", "6", "tp", "x", "TP4.4X"));
  EXPECT_THAT(first("M=/models/8B.json\nB=${M##*/}\nrun ${B%.json} ${M%/*}"),
              ElementsAre("run", "8B", "/models"));
  EXPECT_THAT(first("A=(a b c)\nrun ${A[1]} ${#A[@]} \"${A[@]:1}\" ${A[-1]} \"$@\" $#"),
              ElementsAre("run", "b", "3", "b", "c", "c", "0"));
  EXPECT_THAT(first("declare -A S=([8B]=4 [70B]=8)\nS[405B]=16\nM=70B\nrun ${S[$M]} ${S[405B]}"),
              ElementsAre("run", "8", "16"));
  EXPECT_THAT(first("E=()\nrun \"${E[@]}\" ${E[@]}"), ElementsAre("run"));
}

TEST(ShellScript, DoesArithmeticThatSetsVariables) {
  EXPECT_THAT(first("TP=8\n((TP/=4))\n((N = TP ** 3, N += 2))\nlet M=N%4\nrun $TP $N $M"),
              ElementsAre("run", "2", "10", "2"));
  EXPECT_THAT(first("if ((8 > 4)); then A=1; else A=2; fi\nrun $A"), ElementsAre("run", "1"));
  EXPECT_THAT(first("N=3\nif (( N % 2 == 0 && N > 1 )); then A=1; else A=2; fi\nrun $A"),
              ElementsAre("run", "2"));
  EXPECT_THAT(first("run $((010)) $((0x10)) $((7 % 4 ? 5 : 1/0)) $((-7 / 2)) $((1 << 4 | 3))"),
              ElementsAre("run", "8", "16", "5", "-3", "19"));
}

TEST(ShellScript, ReadsDeclarations) {
  EXPECT_THAT(first("declare -a A=(--tp 4)\nreadonly B=2 C=3\nf() {\n  local D=5\n  local -r E=6\n"
                    "}\ndeclare -i F\nexport B C G=7\nrun \"${A[@]}\" $B$C $D $E $G"),
              ElementsAre("run", "--tp", "4", "23", "5", "6", "7"));
}

TEST(ShellScript, RunsTheCommandThatIsATest) {
  const ShellScript script = read_shell_script(
      "if ! torchrun train.py --tp 4; then\n  echo failed\n  X=1\nfi\nwhile ! ready; do wait; done",
      "train.sh");
  EXPECT_THAT(script.commands.front(), ElementsAre("torchrun", "train.py", "--tp", "4"));
  EXPECT_THAT(script.uncertain, ElementsAre("X"));
}

TEST(ShellScript, TakesTestsApart) {
  const auto chosen = [](const std::string& test) {
    return first("A=fp8-e4m3\nB=\nif " + test + "; then C=1; else C=2; fi\nrun $C")[1];
  };
  for (const char* test :
       {"[[ $A == fp8* && -z $B ]]", "[[ ( $A != fp8* ) || -z $B ]]", "[ $A = x ] || [ -z \"$B\" ]",
        "[ -n \"$A\" -a -z \"$B\" ]", "! [ $A = x ]", "[[ $A < g ]]", "true && [ 2 -gt 1 ]"}) {
    EXPECT_EQ(chosen(test), "1") << test;
  }
  for (const char* test :
       {"[[ $A == fp8 ]]", "[ $A = fp8* ]", "[[ -n $B && -n $UNSET ]]", "false"}) {
    EXPECT_EQ(chosen(test), "2") << test;
  }
}

TEST(ShellScript, BracketsRunAsTheirListSays) {
  EXPECT_THAT(first("N=1\n[ $N -eq 2 ] && { A=1; B=2; }\n[ $N -eq 1 ] || ( A=3 )\nA=${A:-4}\n"
                    "run $A ${B:-5}"),
              ElementsAre("run", "4", "5"));
}

TEST(ShellScript, LoopsTakeTheFirstOfTheirValues) {
  const ShellScript script = read_shell_script(
      "for TP in 4 8; do\n  run --tp $TP\ndone\nfor PP in 2; do A=$PP; done\n"
      "while [ $# -gt 0 ]; do shift; D=1; done\nrun $A",
      "train.sh");
  EXPECT_THAT(script.commands.front(), ElementsAre("run", "--tp", "4"));
  EXPECT_THAT(script.uncertain, ElementsAre("TP"));
  EXPECT_THAT(script.commands.back(), ElementsAre("run", "2"));
}

TEST(ShellScript, ReadsTheLinesThatOtherShellsAreGiven) {
  const ShellScript script = read_shell_script(
      "export TP=4\nPP=2\nsrun bash -c 'torchrun train.py --tp $TP --pp $PP'", "train.sh");
  const auto inner = inner_commands(script.commands.back(), script, "train.sh");
  ASSERT_EQ(inner.size(), 1U);
  EXPECT_THAT(inner[0], ElementsAre("torchrun", "train.py", "--tp", "4", "--pp"));
}

/// What bash hands to `run` in a script, each word behind a tab; nullopt where there is no bash.
std::optional<std::string> words_of_bash(const std::string& script) {
  if (std::system("bash -c true > /dev/null 2>&1") != 0) return std::nullopt;
  const std::string path = ::testing::TempDir() + "braid_shell_script_test.sh";
  std::ofstream(path) << "run() { printf '\\t%s' \"$@\"; echo; }\n" << script << "\n";
  FILE* pipe = popen(("bash " + path + " 2>&1").c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

TEST(ShellScript, GivesTheWordsThatBashGives) {
  for (const char* script :
       {"A='x y'; run $A \"$A\" '$A' \"${A}z\"", "A=(1 '2 3'); run ${A[@]} \"${A[@]}\" \"${A[*]}\"",
        "A=8B-v2-8; run ${A/8/x} ${A//8/x} ${A/#8/x} ${A/%8/x} ${A//[0-9]/n} ${A/-*/}",
        "P=/a/b.c.d; run ${P##*/} ${P#*/} ${P%.*} ${P%%.*} ${P:1:3} ${P: -2} ${#P}",
        "((A=3, B=A*2)); ((B-=1)); run $A $B $((A>B?A:B)) $((A++)) $A $((--B)) $((2**5%7))",
        "A=4; [ $A -ge 4 ] && B=y || B=n; run $B; [[ $A == [1-3] ]] && B=p; run $B",
        "E=; A=fp8; [[ -n $E ]] && run 1; [[ $E ]] && run 2; [[ $E == x ]] && run 3; [[ $E != x ]] "
        "&& "
        "run 4; [[ $E == $E ]] && run 5; [[ ! $E && -z $E ]] && run 6; [[ a == $E ]] || run 7",
        "E=; A=fp8; [ -n $E ] && run 1; test $A = fp8 -a -n x && run 2; test \"$A\" = x && run 3; "
        "if test "
        "-z \"$E\"; then run 4; fi; [ \"$E\" ] || run 5; [ ] && run 6; test $E || run 7",
        "case 70B in 7?) run a;; 7*B|x) run b;; *) run c;; esac",
        "if [ -z \"$L\" ]; then run a; else run b; fi; if [ \"$L\" = 1 ]; then run c; elif [ -n "
        "\"$L\" "
        "]; then run d; else run e; fi; case $L in 1) run f;; *) run g;; esac; [[ $L -lt 1 ]] && "
        "run "
        "h; [ -z $L ] && run i; [[ -z ${L} && $L != x ]] && run j; [[ $L == x ]] || run k",
        "for i in 5; do run $i; done; if [[ -z ${X-} && 1 -lt 2 ]]; then run yes; fi",
        "X=; run \"${X:-d}\" \"${X-e}\" ${X:+f} ${Y=g} $Y; run \"\" a\"\"b ''",
        "declare -A M=([a]=1 [b]='2 3'); K=b; run \"${M[$K]}\" ${M[a]}",
        "readonly R=5; declare -a L=(p q); L+=(r); run ${#L[@]} ${L[-1]} \"${L[@]:1:1}\" $R",
        "{ run in; }; (A=1; run sub $A); ! false && run not; true || run never; run a\\ b "
        "c\\\nd"}) {
    const auto expected = words_of_bash(script);
    if (!expected) GTEST_SKIP() << "there is no bash";
    std::string ours;
    for (const ShellCommand& command : read_shell_script(script, "s").commands) {
      if (command[0] != "run") continue;
      for (std::size_t i = 1; i < command.size(); ++i) ours += "\t" + command[i];
      ours += "\n";
    }
    EXPECT_EQ(ours, *expected) << script;
  }
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

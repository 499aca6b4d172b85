#include "cases/case_file.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"

#include "cases/case_run.h"

namespace braid::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Case> parsed(const std::string& cases) {
  return parse_cases("cases:\n" + cases, "c.yaml");
}

std::string refusal(const std::string& cases) {
  try {
    parsed(cases);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CaseFile, RefusesWhatItDoesNotUnderstand) {
  EXPECT_THAT(refusal("  - {name: A, args: list, stauts: 0}\n"), HasSubstr("stauts"));
  EXPECT_THAT(refusal("  - {name: A, runs: [{args: list, error: x}]}\n"), HasSubstr("error"));
  EXPECT_THAT(refusal("  - {name: A, args: list, json: {/a: {over: 1}}}\n"), HasSubstr("over"));
  EXPECT_THAT(refusal("  - {name: A, args: list}\n"), HasSubstr("c.yaml:2: cases[0]: the run exp"));
  EXPECT_THAT(refusal("  - {name: A, runs: []}\n"), HasSubstr("no runs"));
  EXPECT_THAT(refusal("  - {name: A, status: 0}\n  - {name: A, status: 1}\n"),
              HasSubstr("c.yaml:3: cases[1].name: a second case has the name A"));
  EXPECT_THAT(refusal("  - {name: A b, status: 0}\n"), HasSubstr("letters and digits"));
  EXPECT_THAT(refusal("  - {name: A, args: list 'x, status: 0}\n"), HasSubstr("a quote that"));
  EXPECT_THAT(refusal("  - {name: A, edit: [a, b], status: 0}\n"), HasSubstr("[FILE, FROM, TO]"));
  EXPECT_THAT(refusal("  - {name: A, each: {x: [a]}, status: 0}\n"), HasSubstr("nothing uses {x}"));
}

TEST(CaseFile, FillsInEveryChoice) {
  const auto cases = parsed(
      "  - name: A\n    command: plan\n    each: {x: [\"1\", a b]}\n"
      "    runs: [{args: \"'' '{x}' {y}\", each: {y: [c, d e]}, refused: \"{x}\"}]\n");
  ASSERT_EQ(cases.at(0).runs.size(), 4U);
  EXPECT_THAT(cases[0].runs[3].words, ElementsAre("plan", "", "a b", "d", "e"));
  EXPECT_EQ(cases[0].runs[0].err.has.at(0), "1");
}

/// What a case that must fail says.
void expect_fault(const std::string& run, const std::string& part) {
  static Case tested;
  tested = parsed("  - {name: A, " + run + "}\n").at(0);
  ::testing::TestPartResultArray results;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    run_case(tested);
  }
  std::string said;
  for (int i = 0; i < results.size(); ++i) said += results.GetTestPartResult(i).message();
  EXPECT_THAT(said, HasSubstr(part)) << run;
}

TEST(CaseRun, FailsWhereWhatIsExpectedIsNotSo) {
  expect_fault("args: --version, status: 1", "run.status");
  expect_fault("args: --version, out: braidd", "braidd");
  expect_fault("args: --version, out_lacks: braid", "braid");
  expect_fault("args: --version, err_is: x", "expected.is");
  expect_fault("args: --version, out: a, json: {/a: 1}", "not JSON");
  expect_fault("args: --version, refused: braid", "starts_with");
  expect_fault("args: plam, refused: nothing of this", "nothing of this");
  const std::string job = "args: show dgx-h100 --json, json: ";
  for (const char* fact : {"{/devices_per_node: 9}", "{/devices_per_node: {at_most: 7}}",
                           "{/no: 1}", "{/name: {has: x100}}", "{/devices_per_node: {near: 8.1}}",
                           "{/levels: {size: 9}}", "{/name: {absent: true}}"}) {
    expect_fault(job + fact, "/");
  }
  expect_fault("files: {a.txt: b}, edit: [a.txt, c, d], args: --version, status: 0",
               "a.txt does not hold c");
}

}  // namespace
}  // namespace braid::test

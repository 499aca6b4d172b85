#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/plan/outcome.h"
#include "braid/report/html.h"
#include "braid/report/html_timeline.h"
#include "braid/report/plan_text.h"
#include "braid/report/table.h"
#include "braid/schedule/plan_orders.h"
#include "braid/schedule/timeline.h"

#include "report/plan_maker.h"

namespace braid {
namespace {

using test::made_plan;
using ::testing::HasSubstr;
using ::testing::Not;

Parallelism on_four_devices() {
  Parallelism p;
  p.pp = 2;
  p.dp = 2;
  p.num_micro_batches = 4;
  return p;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

/// Widest line, in characters.
std::size_t width_of(const std::string& text) {
  std::size_t widest = 0;
  std::size_t width = 0;
  for (const char c : text) {
    if (c == '\n')
      width = 0;
    else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80)
      widest = std::max(widest, ++width);
  }
  return widest;
}

TEST(Reports, ModelsWithoutASequenceCountSamples) {
  Plan plan = made_plan(on_four_devices(), 6);
  Outcome outcome;
  outcome.candidates = {{plan, measure(plan)}};
  EXPECT_THAT(plans_table(outcome), HasSubstr("tok/s/GPU"));
  EXPECT_THAT(html_report(plan), HasSubstr("tokens per second"));
  plan.seq_len = plan.profile.seq_len = 0;
  outcome.candidates = {{plan, measure(plan)}};
  EXPECT_THAT(plans_table(outcome), HasSubstr("samples/s/GPU"));
  EXPECT_THAT(plans_table(outcome), Not(HasSubstr("tok/s")));
  EXPECT_THAT(html_report(plan), HasSubstr("samples per second"));
  EXPECT_THAT(html_report(plan), Not(HasSubstr("tokens per second")));
}

TEST(Html, SaysWhatARunCostsWhereOneIsAskedFor) {
  const Plan plan = made_plan(on_four_devices(), 6);
  EXPECT_THAT(html_report(plan), Not(HasSubstr("A run of")));
  RunQuestion question;
  question.tokens = 3e12;
  const std::string page = html_report(plan, run_costs({plan, measure(plan)}, question));
  EXPECT_THAT(page, HasSubstr("A run of 3.00 T tokens"));
  for (const char* part : {"goodput", "device-hours", "Daly 2006", "restarts: "}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

TEST(Html, DrawsEveryPassAndNeedsNothingElse) {
  const Plan plan = made_plan(on_four_devices(), 6);
  const std::string page = html_report(plan);
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0U);
  // Two stages, four micro-batches, forward and backward; transfers; memory of each stage, and the
  // line from one to the other in their graph.
  EXPECT_EQ(count(page, "<title>forward"), 8U);
  EXPECT_EQ(count(page, "<title>backward"), 8U);
  EXPECT_EQ(count(page, "<title>send"), 8U);
  EXPECT_GE(count(page, "<title>gradients"), 2U);
  EXPECT_EQ(count(page, "<path "), 2U + 1U);
  for (const char* outside : {"http://", "https://", "src=", "href=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
  EXPECT_EQ(count(page, "<div"), count(page, "</div>"));
  EXPECT_EQ(count(page, "<tr>"), count(page, "</tr>"));
}

TEST(Html, DrawsEveryKindOfScheduleWithItsLegend) {
  Parallelism p = on_four_devices();
  p.num_micro_batches = 8;
  const auto made = [&] {
    Plan plan = made_plan(p, 6);
    for (auto& options : plan.profile.kinds) {
      for (Option& option : options) option.cost.backward_weight.compute_s = 1e-3;
    }
    return plan;
  };
  const Plan plan = made();
  const auto page_of = [](const Plan& of, const std::string& name) {
    return timeline_page(draw_order(of, name), name);
  };
  const std::string whole = page_of(plan, "1f1b");
  EXPECT_EQ(count(whole, "<title>backward"), 16U);
  EXPECT_THAT(whole, HasSubstr("</i>backward<"));
  EXPECT_THAT(whole, Not(HasSubstr("weight gradient")));
  EXPECT_THAT(whole, Not(HasSubstr("lighter")));
  const std::string halves = page_of(plan, "zb-h1");
  EXPECT_EQ(count(halves, "<title>input gradient"), 16U);
  EXPECT_EQ(count(halves, "<title>weight gradient"), 16U);
  EXPECT_EQ(count(halves, "<title>backward"), 0U);
  EXPECT_THAT(halves, HasSubstr("</i>weight gradients<"));
  EXPECT_THAT(halves, Not(HasSubstr("</i>backward<")));
  const std::string rounds = page_of(plan, "2bw");
  EXPECT_EQ(count(rounds, "<title>forward"), 64U);
  EXPECT_EQ(count(rounds, ", round 4, "), count(rounds, ", round 3, "));
  EXPECT_THAT(rounds, HasSubstr("4 rounds that follow each other without a flush"));
  EXPECT_THAT(rounds, HasSubstr("lighter: every second round"));
  p.vp = 2;
  p.schedule = ScheduleKind::interleaved;
  const Plan chunks = made();
  for (const char* name : {"interleaved", "zb-v"}) {
    const std::string page = page_of(chunks, name);
    EXPECT_EQ(count(page, "<title>forward"), 32U) << name;
    EXPECT_THAT(page, HasSubstr(" of chunk 1, ")) << name;
    EXPECT_THAT(page, HasSubstr("lighter: every second chunk")) << name;
    EXPECT_THAT(page, HasSubstr(name));
  }
  // Passes bear the numbers of their micro-batches where there is room, and memory its peak.
  EXPECT_GE(count(whole, "<text class=\"number\""), 16U);
  EXPECT_EQ(count(whole, ">at most "), 2U);
  for (const std::string& page : {whole, halves, rounds}) {
    EXPECT_EQ(count(page, "<text"), count(page, "</text>"));
    EXPECT_EQ(count(page, "<rect"), count(page, "</rect>"));
  }
}

TEST(Html, DrawsTheGraphOfStagesBesideTheirRows) {
  Parallelism p = on_four_devices();
  p.pp = 4;
  Plan plan = made_plan(p, 6);
  // Stage 2 of the chain becomes a branch beside stage 3: both come from stage 1 and go to stage 4.
  const std::string chain = html_report(plan);
  EXPECT_EQ(count(chain, "<circle class=\"stage\""), 4U);
  EXPECT_THAT(chain, HasSubstr("stage 2: "));
  EXPECT_THAT(chain, HasSubstr("hands over to 3<"));
  const auto first = plan.stages[0].chunks[0].layers.back();
  const auto second = plan.stages[1].chunks[0].layers;
  const auto third = plan.stages[2].chunks[0].layers;
  const auto fourth = plan.stages[3].chunks[0].layers.front();
  for (ProfileEdge& edge : plan.profile.edges) {
    if (edge.source == second.back()) edge.target = fourth;
  }
  plan.profile.edges.push_back({first, third.front(), 1e4});
  const std::string branched = html_report(plan);
  EXPECT_THAT(branched, HasSubstr("hands over to 2, 3<"));
  EXPECT_EQ(count(branched, "hands over to 4<"), 2U);
  // The chain takes one lane, the branches two.
  EXPECT_THAT(chain, HasSubstr("viewBox=\"-32 0 "));
  EXPECT_THAT(branched, HasSubstr("viewBox=\"-48 0 "));
  Parallelism single = on_four_devices();
  single.pp = 1;
  EXPECT_EQ(count(html_report(made_plan(single, 6)), "<circle"), 0U);
}

TEST(Html, ShowsTheLowerBoundThatThePlanCarries) {
  Plan plan = made_plan(on_four_devices(), 6);
  EXPECT_THAT(html_report(plan), Not(HasSubstr("Lower bound")));
  const double time_s = measure(plan).iteration_time_s;
  plan.claims = Claims{time_s, 0, time_s / 4, time_s / 100, 0};
  const std::string page = html_report(plan);
  EXPECT_THAT(page, HasSubstr("Lower bound"));
  EXPECT_THAT(page, HasSubstr("a gap of 75.0 %"));
}

TEST(Html, SummarisesManyStages) {
  Parallelism p = on_four_devices();
  p.pp = 100;
  const std::string page = html_report(made_plan(p, 100));
  EXPECT_LT(page.size(), 2000000U);
  EXPECT_THAT(page, HasSubstr("of 100 stages"));
  // Memory of 32 stages; lines between neighbours among the first and among the last 16.
  EXPECT_EQ(count(page, "<path "), 32U + 30U);
}

TEST(Html, EscapesWhatComesFromThePlan) {
  Plan plan = made_plan(on_four_devices(), 6);
  plan.model = "<script>alert(1)</script>";
  plan.planner = "\"&";
  plan.system.provenance.push_back({"<b>", "<i>", false});
  const std::string page = html_report(plan);
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, Not(HasSubstr("<i>")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, HasSubstr("&quot;&amp;"));
}

TEST(Html, StaysSmallForLongIterations) {
  Parallelism p = on_four_devices();
  p.num_micro_batches = 100000;
  const std::string page = html_report(made_plan(p, 6));
  EXPECT_LT(page.size(), 2000000U);
  EXPECT_THAT(page, HasSubstr("the first"));
}

TEST(Table, AlignsByCharactersNotBytes) {
  const std::string text = text_table({{"name", "n"}, {"é", "1"}, {"abcd", "22"}});
  EXPECT_THAT(text, HasSubstr("é      1\n"));
  EXPECT_THAT(text, HasSubstr("abcd  22\n"));
}

TEST(Table, RuleIsAsWideAsTheColumnsButForFreeText) {
  EXPECT_EQ(text_table({{"n", "name"}, {"1", "abcdefgh"}, {"22", "x"}}),
            " n  name\n────────\n 1  abcdefgh\n22  x\n");
  EXPECT_EQ(text_table({{"name", "n"}, {"abcdefgh", "123"}}),
            "name        n\n─────────────\nabcdefgh  123\n");
}

TEST(PlanText, PartsOfTheTimeAreShownAndLinesFit) {
  Outcome outcome;
  outcome.status = Status::optimal;
  Plan plan = made_plan(on_four_devices(), 6);
  plan.global_batch = 100000;
  const Metrics metrics = measure(plan);
  outcome.candidates = {{plan, metrics}, {plan, metrics}};
  outcome.physical_bound.time_s = metrics.iteration_time_s / 2;
  outcome.physical_bound.binding = "arithmetic at peak";
  const std::string text = plan_text(outcome);
  EXPECT_THAT(text, HasSubstr("50.0%"));  // the gap
  EXPECT_THAT(text, HasSubstr("compute"));
  EXPECT_THAT(text, HasSubstr("pipeline bubble"));
  EXPECT_LE(width_of(text), 140U);
}

TEST(PlanText, SaysWhichStageMissesHowMuch) {
  Outcome outcome;
  outcome.infeasibility = Infeasibility{"nothing fits", 2, 2e9, 1e9, on_four_devices()};
  const std::string text = infeasibility_text(outcome);
  EXPECT_THAT(text, HasSubstr("2000000000"));
  EXPECT_THAT(text, HasSubstr("1000000000"));
  EXPECT_EQ(count(text, "\n"), 0U);
}

}  // namespace
}  // namespace braid

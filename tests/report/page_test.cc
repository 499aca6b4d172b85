#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/quantity.h"
#include "braid/plan/outcome.h"
#include "braid/plan/stage_context.h"
#include "braid/report/confidence_text.h"
#include "braid/report/heading.h"
#include "braid/report/html.h"
#include "braid/report/html_parts.h"
#include "braid/report/html_timeline.h"
#include "braid/report/plan_text.h"
#include "braid/report/table.h"
#include "braid/report/terms.h"
#include "braid/schedule/plan_orders.h"
#include "braid/schedule/timeline.h"

#include "report/chart_data.h"
#include "report/plan_maker.h"

namespace braid {
namespace {

using test::charts_of;
using test::DrawnEvent;
using test::events_of;
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
  EXPECT_THAT(html_report(plan), HasSubstr("tokens a second"));
  plan.seq_len = plan.profile.seq_len = 0;
  outcome.candidates = {{plan, measure(plan)}};
  EXPECT_THAT(plans_table(outcome), HasSubstr("samples/s/GPU"));
  EXPECT_THAT(plans_table(outcome), Not(HasSubstr("tok/s")));
  EXPECT_THAT(html_report(plan), HasSubstr("samples a second"));
  EXPECT_THAT(html_report(plan), Not(HasSubstr("tokens a second")));
}

TEST(Html, SaysWhatARunCostsWhereOneIsAskedFor) {
  const Plan plan = made_plan(on_four_devices(), 6);
  EXPECT_THAT(html_report(plan), Not(HasSubstr("A run of")));
  RunQuestion question;
  question.tokens = 3e12;
  const std::string page = html_report(plan, {}, run_costs({plan, measure(plan)}, question));
  EXPECT_THAT(page, HasSubstr("A run of 3.00 T tokens"));
  for (const char* part : {"goodput", "device-hours", "Daly 2006", "restarts: "}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

TEST(Html, LeavesOutWhatIsNotKnownOfARun) {
  Plan plan = made_plan(on_four_devices(), 6);
  RunQuestion question;
  question.tokens = 3e12;
  const RunCosts costs = run_costs({plan, measure(plan)}, question);
  ASSERT_FALSE(costs.usd.has_value());
  EXPECT_THAT(html_report(plan, {}, costs), Not(HasSubstr("<td>USD</td>")));
}

// "16 × 4 samples" of a batch of 1024 are those of a replica.
TEST(Html, SaysWhoseMicroBatchesItCounts) {
  Parallelism p = on_four_devices();
  p.micro_batch = 3;
  EXPECT_THAT(html_report(made_plan(p, 6)), HasSubstr(">4 × 3 samples in each of 2 replicas<"));
  p.dp = 1;
  EXPECT_THAT(html_report(made_plan(p, 6)), HasSubstr(">4 × 3 samples<"));
}

TEST(ConfidenceText, EndsOfMemoryDiffer) {
  EXPECT_EQ(memory_range_text(74.7 * kGiB, 76.5 * kGiB), "74.7 to 76.5 GiB");
  EXPECT_EQ(memory_range_text(2.79 * kGiB, 2.84 * kGiB), "2.79 to 2.84 GiB");
  EXPECT_EQ(memory_range_text(2.8 * kGiB, 2.8 * kGiB), "2.800 GiB");
}

TEST(Html, SaysThatAConfigurationWasGiven) {
  Plan plan = made_plan(on_four_devices(), 6);
  EXPECT_THAT(html_report(plan), HasSubstr(", planner test"));
  plan.planner = kStatedPlanner;
  for (const std::string& page : {html_report(plan), timeline_page(plan, {})}) {
    EXPECT_THAT(page, HasSubstr(", as given to braid evaluate"));
    EXPECT_THAT(page, Not(HasSubstr("stated")));
  }
}

/// Events of a kind in the passes or transfers of all stages.
std::size_t drawn(const std::string& page, EventKind kind) {
  std::size_t found = 0;
  for (const nlohmann::json& chart : charts_of(page, "timeline")) {
    for (const nlohmann::json& stage : chart["stages"]) {
      for (const char* lane : {"passes", "transfers"}) {
        for (const DrawnEvent& event : events_of(stage[lane], chart["tick_s"])) {
          found += event.kind == static_cast<int>(kind) ? 1 : 0;
        }
      }
    }
  }
  return found;
}

/// The page without the library that it carries.
std::string own_part(const std::string& page) { return page.substr(0, page.find("<footer>")); }

TEST(Html, DrawsEveryPassAndNeedsNothingElse) {
  const Plan plan = made_plan(on_four_devices(), 6);
  const std::string page = html_report(plan);
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0U);
  // Two stages, four micro-batches, forward and backward; transfers; memory of each stage, and the
  // line from one to the other in their graph.
  EXPECT_EQ(drawn(page, EventKind::forward), 8U);
  EXPECT_EQ(drawn(page, EventKind::backward), 8U);
  EXPECT_EQ(drawn(page, EventKind::send), 8U);
  EXPECT_GE(drawn(page, EventKind::gradient_sync), 2U);
  EXPECT_EQ(charts_of(page, "memory").at(0)["stages"].size(), 2U);
  EXPECT_EQ(charts_of(page, "timeline").at(0)["edges"], nlohmann::json::parse("[[0, 1]]"));
  for (const char* outside : {"src=", "href=", "@import", "url(", "http://"}) {
    EXPECT_THAT(own_part(page), Not(HasSubstr(outside)));
  }
  EXPECT_THAT(page, HasSubstr("https://d3js.org/d3-zoom/ v"));
  EXPECT_THAT(page, HasSubstr("BSD 3-Clause License"));
  EXPECT_EQ(count(own_part(page), "<div"), count(own_part(page), "</div>"));
  EXPECT_EQ(count(own_part(page), "<tr>"), count(own_part(page), "</tr>"));
}

// The short form of a lane is that of the simulator's events, to four digits and two ticks.
TEST(Html, PassesAreWhereTheSimulatorHasThem) {
  for (const int vp : {1, 2}) {
    Parallelism p = on_four_devices();
    p.num_micro_batches = 16;
    p.vp = vp;
    if (vp > 1) p.schedule = ScheduleKind::interleaved;
    const Plan plan = made_plan(p, 8);
    const Timeline timeline = simulate(plan);
    const nlohmann::json chart = charts_of(html_report(plan), "timeline").at(0);
    const double tick_s = chart["tick_s"];
    for (std::size_t s = 0; s < 2; ++s) {
      for (const bool passes : {true, false}) {
        std::vector<DrawnEvent> events =
            events_of(chart["stages"][s][passes ? "passes" : "transfers"], tick_s);
        std::size_t at = 0;
        for (const Event& event : timeline.events) {
          const bool is_transfer =
              event.kind >= EventKind::send && event.kind != EventKind::optimizer;
          if (static_cast<std::size_t>(event.stage) != s || is_transfer == passes) continue;
          if (event.end_s <= event.start_s) continue;
          ASSERT_LT(at, events.size());
          const DrawnEvent& drawn_event = events[at++];
          EXPECT_EQ(drawn_event.kind, static_cast<int>(event.kind));
          EXPECT_EQ(drawn_event.chunk, event.chunk);
          EXPECT_EQ(drawn_event.batch, event.micro_batch);
          EXPECT_NEAR(drawn_event.begin_s, event.start_s, 2.6 * tick_s);
          EXPECT_NEAR(drawn_event.end_s - drawn_event.begin_s, event.end_s - event.start_s,
                      6e-4 * (event.end_s - event.start_s));
        }
        EXPECT_EQ(at, events.size());
      }
    }
  }
}

// The peak of every stage, and the kinds that it is made of.
TEST(Html, MemoryOverTimeHasThePeakOfTheTable) {
  const Plan plan = made_plan(on_four_devices(), 6);
  const std::vector<MemoryBreakdown> memories = memory_of_stages(plan);
  const nlohmann::json chart = charts_of(html_report(plan), "memory").at(0);
  EXPECT_EQ(chart["shown"], measure(plan).tightest_stage + 1);
  for (std::size_t s = 0; s < memories.size(); ++s) {
    const nlohmann::json& stage = chart["stages"][s];
    double most = 0;
    const nlohmann::json& steps = stage["samples"]["steps"];
    for (std::size_t i = 1; i < steps.size(); i += 2) {
      most = std::max(most, stage["samples"]["levels"][steps[i].get<std::size_t>()].get<double>());
    }
    double sum = 0;
    for (const nlohmann::json& kind : stage["kinds"]) sum += kind[2].get<double>();
    EXPECT_DOUBLE_EQ(most, memories[s].device_total());
    EXPECT_DOUBLE_EQ(stage["peak_bytes"], memories[s].device_total());
    EXPECT_DOUBLE_EQ(sum, memories[s].device_total());
  }
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
    return timeline_page(draw_order(of, name), name, {});
  };
  const std::string whole = page_of(plan, "1f1b");
  EXPECT_EQ(drawn(whole, EventKind::backward), 16U);
  EXPECT_THAT(whole, HasSubstr("</i>backward<"));
  EXPECT_THAT(own_part(whole), Not(HasSubstr("weight gradient")));
  EXPECT_THAT(own_part(whole), Not(HasSubstr("lighter")));
  const std::string halves = page_of(plan, "zb-h1");
  EXPECT_EQ(drawn(halves, EventKind::input_gradient), 16U);
  EXPECT_EQ(drawn(halves, EventKind::weight_gradient), 16U);
  EXPECT_EQ(drawn(halves, EventKind::backward), 0U);
  EXPECT_THAT(halves, HasSubstr("</i>weight gradients<"));
  EXPECT_THAT(halves, Not(HasSubstr("</i>backward<")));
  const std::string rounds = page_of(plan, "2bw");
  EXPECT_EQ(drawn(rounds, EventKind::forward), 64U);
  EXPECT_EQ(charts_of(rounds, "timeline").at(0)["rounds"], 4);
  EXPECT_THAT(rounds, HasSubstr("4 rounds that follow each other without a flush"));
  EXPECT_THAT(rounds, HasSubstr("lighter: every second round"));
  p.vp = 2;
  p.schedule = ScheduleKind::interleaved;
  const Plan chunks = made();
  for (const char* name : {"interleaved", "zb-v"}) {
    const std::string page = page_of(chunks, name);
    EXPECT_EQ(drawn(page, EventKind::forward), 32U) << name;
    EXPECT_EQ(charts_of(page, "timeline").at(0)["chunks"], 2) << name;
    EXPECT_THAT(page, HasSubstr("lighter: every second chunk")) << name;
    EXPECT_THAT(page, HasSubstr(name));
  }
}

TEST(Html, PassesAreMadeOfTheirLayers) {
  Parallelism p = on_four_devices();
  const Plan plan = made_plan(p, 6);
  const nlohmann::json layers = charts_of(html_report(plan), "timeline").at(0)["layers"];
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Chunk& chunk = plan.stages[s].chunks.front();
    std::vector<std::int32_t> numbers;
    double forward_s = 0;
    for (const nlohmann::json& run : layers["stages"][s][0]) {
      for (int i = 0; i < run[1].get<int>(); ++i) {
        numbers.push_back(run[0].get<std::int32_t>() + i);
        for (const nlohmann::json& part : layers["costs"][run[2].get<std::size_t>()][0]) {
          forward_s += part.get<double>();
        }
      }
    }
    EXPECT_EQ(numbers, chunk.layers);
    double expected_s = 0;
    for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
      expected_s +=
          options_of(plan.profile, chunk.layers[i])[static_cast<std::size_t>(chunk.options[i])]
              .cost.forward.total_s();
    }
    EXPECT_NEAR(forward_s, expected_s, 1e-12 * expected_s);
  }
  EXPECT_EQ(layers["names"].size(), plan.profile.layers.size());
}

TEST(Html, DrawsTheGraphOfStagesBesideTheirRows) {
  Parallelism p = on_four_devices();
  p.pp = 4;
  Plan plan = made_plan(p, 6);
  // Stage 2 of the chain becomes a branch beside stage 3: both come from stage 1 and go to stage 4.
  const auto graph_of = [](const std::string& page) {
    const nlohmann::json chart = charts_of(page, "timeline").at(0);
    nlohmann::json lanes = nlohmann::json::array();
    for (const nlohmann::json& stage : chart["stages"]) lanes.push_back(stage["lane"]);
    return nlohmann::json::array({chart["edges"], lanes});
  };
  const std::string chain = html_report(plan);
  EXPECT_EQ(graph_of(chain), nlohmann::json::parse("[[[0,1],[1,2],[2,3]], [0,0,0,0]]"));
  EXPECT_THAT(chain, HasSubstr("stage 2: "));
  EXPECT_THAT(chain, HasSubstr("hands over to 3\""));
  const auto first = plan.stages[0].chunks[0].layers.back();
  const auto second = plan.stages[1].chunks[0].layers;
  const auto third = plan.stages[2].chunks[0].layers;
  const auto fourth = plan.stages[3].chunks[0].layers.front();
  for (ProfileEdge& edge : plan.profile.edges) {
    if (edge.source == second.back()) edge.target = fourth;
  }
  plan.profile.edges.push_back({first, third.front(), 1e4});
  const std::string branched = html_report(plan);
  EXPECT_THAT(branched, HasSubstr("hands over to 2, 3\""));
  EXPECT_EQ(count(branched, "hands over to 4\""), 2U);
  // The chain takes one lane, the branches two.
  EXPECT_EQ(graph_of(branched), nlohmann::json::parse("[[[0,1],[0,2],[1,3],[2,3]], [0,0,1,0]]"));
}

TEST(Html, ShowsTheLowerBoundThatThePlanCarries) {
  Plan plan = made_plan(on_four_devices(), 6);
  EXPECT_THAT(html_report(plan), Not(HasSubstr("Lower bound")));
  const double time_s = measure(plan).iteration_time_s;
  plan.claims = Claims{time_s, 0, time_s / 4, time_s / 100, 0};
  const std::string page = html_report(plan);
  EXPECT_THAT(page, HasSubstr("Lower bound"));
  EXPECT_THAT(page, HasSubstr("25.0 % of this one's time"));
}

// Bars are of what is usable; where a stage needs more, of the most that any needs, with a line at
// what is usable.
TEST(Html, BarsOfStagesThatDoNotFitGoBeyondALine) {
  Plan plan = made_plan(on_four_devices(), 6);
  EXPECT_THAT(own_part(html_report(plan)), Not(HasSubstr("class=\"end\"")));
  const std::vector<MemoryBreakdown> memories = memory_of_stages(plan);
  const double first = memories[0].device_total(), second = memories[1].device_total();
  const double most = std::max(first, second);
  Chip& chip = plan.system.groups.front().chip;
  chip.reserved_bytes = 0;
  chip.memory.bytes = 0.4 * most;
  const std::string page = own_part(html_report(plan));
  EXPECT_EQ(count(page, "<i class=\"end\" style=\"left:40.000%\" title=\"usable\">"), 2U);
  EXPECT_THAT(page, HasSubstr("The line in each bar is at what is usable"));
  // The parts of each bar.
  const std::string stages = page.substr(page.find("<h2>Stages</h2>"));
  std::vector<double> widths;
  for (std::size_t at = stages.find("<div class=\"bar\">"); at != std::string::npos;
       at = stages.find("<div class=\"bar\">", at + 1)) {
    const std::string one = stages.substr(at, stages.find("</td>", at) - at);
    double width = 0;
    for (std::size_t w = one.find("width:"); w != std::string::npos;
         w = one.find("width:", w + 1)) {
      width += std::stod(one.substr(w + 6));
    }
    widths.push_back(width);
  }
  ASSERT_EQ(widths.size(), 2U);
  EXPECT_NEAR(widths[0], 100 * first / most, 0.01);
  EXPECT_NEAR(widths[1], 100 * second / most, 0.01);
}

TEST(Html, SummarisesManyStages) {
  Parallelism p = on_four_devices();
  p.pp = 100;
  const std::string page = html_report(made_plan(p, 100));
  EXPECT_LT(page.size(), 2000000U);
  EXPECT_THAT(page, HasSubstr("of 100 stages"));
  // 32 stages; lines between neighbours among the first and among the last 16.
  EXPECT_EQ(charts_of(page, "memory").at(0)["stages"].size(), 32U);
  EXPECT_EQ(charts_of(page, "timeline").at(0)["edges"].size(), 30U);
}

TEST(Html, EscapesWhatComesFromThePlan) {
  Plan plan = made_plan(on_four_devices(), 6);
  plan.model = "<script>alert(1)</script>";
  plan.planner = "\"&";
  plan.profile.layers[0].name = "</script><img onerror=alert(1)>\xff";
  plan.system.provenance.push_back({"<b>", "<i>", false});
  const std::string page = html_report(plan);
  EXPECT_THAT(own_part(page), Not(HasSubstr("<script>")));
  EXPECT_THAT(page, Not(HasSubstr("<i>")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  // The charts' data reads back: the name, with what is no UTF-8 replaced.
  EXPECT_EQ(charts_of(page, "timeline").at(0)["layers"]["names"][0],
            "</script><img onerror=alert(1)>\xef\xbf\xbd");
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, HasSubstr("&quot;&amp;"));
}

TEST(Html, StaysSmallForLongIterations) {
  Parallelism p = on_four_devices();
  p.num_micro_batches = 100000;
  const std::string page = html_report(made_plan(p, 6));
  EXPECT_LT(page.size(), 1000000U);
  EXPECT_THAT(page, HasSubstr("the first"));
  EXPECT_TRUE(charts_of(page, "timeline").at(0).contains("omitted_s"));
  // Some tens of thousands of passes are all there.
  p.num_micro_batches = 10000;
  const std::string whole = html_report(made_plan(p, 6));
  EXPECT_EQ(drawn(whole, EventKind::forward), 20000U);
  EXPECT_EQ(drawn(whole, EventKind::send), 20000U);
  EXPECT_LT(whole.size(), 800000U);
}

// What is not drawn has no place in the legend.
TEST(Html, LegendHasTransfersWhereTheyAreDrawn) {
  Parallelism p = on_four_devices();
  const std::string sending = "</i>sending</span>";
  EXPECT_THAT(own_part(html_report(made_plan(p, 6))), HasSubstr(sending));
  // Of a chain no more is sent than there are passes.
  p.pp = 4;
  p.dp = 1;
  p.num_micro_batches = 7000;
  Plan plan = made_plan(p, 6);
  for (const auto& [from, to] : {std::pair(0, 5), {0, 6}, {3, 6}}) {
    plan.profile.edges.push_back({from, to, 1e4});
  }
  const std::string page = html_report(plan);
  EXPECT_EQ(drawn(page, EventKind::send), 0U);
  EXPECT_GT(charts_of(page, "timeline").at(0)["sends_left_out"], 60000);
  EXPECT_THAT(own_part(page), Not(HasSubstr(sending)));
}

// The figures are those of the terminal, to the letter.
TEST(Html, FiguresAreThoseOfTheTerminal) {
  const Plan plan = made_plan(on_four_devices(), 6);
  Outcome outcome;
  outcome.candidates = {{plan, measure(plan)}};
  const std::string text = plan_text(outcome);
  const std::string page = html_report(plan);
  const Metrics metrics = measure(plan);
  const std::string time = four_figures(metrics.iteration_time_s) + " s";
  const std::string heading =
      fmt::format("Where the time goes in the busiest stage, {} of 2", metrics.busiest_stage + 1);
  EXPECT_THAT(text, HasSubstr(heading + " (" + time + ")"));
  EXPECT_THAT(page, HasSubstr("<h2>" + heading + "</h2>"));
  Parallelism alone = on_four_devices();
  alone.pp = 1;
  const Plan whole = made_plan(alone, 6);
  EXPECT_EQ(time_heading(whole, measure(whole)), "Where the time goes");
  EXPECT_THAT(page, HasSubstr("<b>" + time + "</b><span>an iteration"));
  EXPECT_THAT(page, HasSubstr("the whole iteration of " + time));
  for (const auto& [name, value] : time_terms(metrics)) {
    if (value <= 1e-12 * metrics.iteration_time_s) continue;
    EXPECT_THAT(text, HasSubstr(name));
    EXPECT_THAT(page, HasSubstr(fmt::format("</i>{} {} s, {:.1f} %", name, four_figures(value),
                                            100 * value / metrics.iteration_time_s)));
  }
}

TEST(Html, ShowsTheAlternativesThatTheFileHas) {
  const Plan plan = made_plan(on_four_devices(), 6);
  EXPECT_THAT(html_report(plan), HasSubstr("--top 5"));
  Outcome outcome;
  outcome.candidates = {{plan, measure(plan)}};
  EXPECT_TRUE(alternatives_of(outcome).rows.empty());
  Plan other = plan;
  other.global_batch = 77777;
  other.planner = "x";
  outcome.candidates.push_back({other, measure(plan)});
  Alternatives found = alternatives_of(outcome);
  ASSERT_EQ(found.rows.size(), 2U);
  EXPECT_EQ(found.rows[0].size(), found.titles.size());
  found.titles[0] = "<GPUs>";
  const std::string page = html_report(plan, found);
  EXPECT_THAT(page, HasSubstr("<td><b>77777</b></td>"));
  // What is alike is said once, and not in the table.
  EXPECT_THAT(page, HasSubstr("All: &lt;GPUs&gt; 4, "));
  EXPECT_THAT(page, Not(HasSubstr("<th>&lt;GPUs&gt;</th>")));
  EXPECT_THAT(page, HasSubstr("<th>GBS</th>"));
  EXPECT_THAT(page, Not(HasSubstr("--top 5")));
}

TEST(Html, HasTheNotesOnTheTrainerThatTheTerminalHas) {
  const Plan plan = made_plan(on_four_devices(), 6);
  Outcome outcome;
  outcome.candidates = {{plan, measure(plan)}};
  outcome.trainer_notes = {"As it comes, <it> lacks this.", "Not to be compared."};
  const Alternatives found = alternatives_of(outcome);
  const std::string page = html_report(plan, found), text = plan_text(outcome);
  EXPECT_THAT(text, HasSubstr("As it comes, <it> lacks this.\nNot to be compared.\n"));
  EXPECT_THAT(page, HasSubstr("<p class=\"warning\">As it comes, &lt;it&gt; lacks this.</p>\n"
                              "<p class=\"warning\">Not to be compared.</p>"));
  EXPECT_THAT(html_report(plan), Not(HasSubstr("class=\"warning\"")));
}

TEST(Html, SaysWhyItsPlanIsNotTheFastestAsTheTerminalDoes) {
  const Plan plan = made_plan(on_four_devices(), 6);
  Outcome outcome;
  outcome.candidates = {{plan, measure(plan)}};
  EXPECT_EQ(alternatives_of(outcome).why, "");
  outcome.recommendation = Recommendation{};
  outcome.recommendation->fastest = outcome.candidates.front();
  outcome.recommendation->fastest->metrics.iteration_time_s *= 0.99;
  outcome.recommendation->ease_of_fastest.offload = true;
  outcome.objective = outcome.recommendation->fastest->metrics.iteration_time_s;
  outcome.evaluated = 2;
  const Alternatives found = alternatives_of(outcome);
  EXPECT_TRUE(found.rows.empty());
  EXPECT_THAT(plan_text(outcome), HasSubstr(found.why));
  EXPECT_THAT(found.why, HasSubstr("easiest to run"));
  EXPECT_THAT(html_report(plan, found), HasSubstr("<p>" + found.why + "</p>"));
  EXPECT_THAT(plan_text(outcome), HasSubstr(found.proof));
  EXPECT_THAT(found.proof, HasSubstr("The fastest is"));
  EXPECT_THAT(html_report(plan, found), HasSubstr("<p>" + found.proof + "</p>"));
}

TEST(Html, TimelinesHaveTheNotesOfThePlan) {
  const Plan plan = made_plan(on_four_devices(), 6);
  const std::vector<std::string> notes = {"As it comes, <it> lacks this."};
  const std::string note = "<p class=\"warning\">As it comes, &lt;it&gt; lacks this.</p>";
  EXPECT_THAT(timeline_page(plan, notes), HasSubstr(note));
  EXPECT_THAT(timeline_page(draw_order(plan, "gpipe"), "gpipe", notes), HasSubstr(note));
  EXPECT_THAT(measured_page(plan, simulate(plan), simulate(plan), notes), HasSubstr(note));
  EXPECT_THAT(timeline_page(plan, {}), Not(HasSubstr("class=\"warning\"")));
}

// What a stage with nothing to do after its passes waits for is nothing, and not what is left of a
// difference of equal times. The stage with most to do is the one whose times are given.
TEST(Metrics, HaveNoResidueOfRounding) {
  for (int pp = 1; pp <= 5; ++pp) {
    for (int micro_batches = 1; micro_batches <= 40; ++micro_batches) {
      Parallelism p;
      p.pp = pp;
      p.num_micro_batches = micro_batches;
      Plan plan = made_plan(p, 7);
      plan.profile.kinds[1][0].cost.forward.compute_s = 1e-3 / 3;
      const Metrics metrics = measure(plan);
      EXPECT_EQ(metrics.dp_comm_s, 0) << pp << " " << micro_batches;
      const auto layers = [&](std::size_t s) { return plan.stages[s].chunks[0].layers.size(); };
      for (std::size_t s = 0; s < plan.stages.size(); ++s) {
        EXPECT_GE(layers(metrics.busiest_stage) + 1, layers(s));
      }
    }
  }
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
  EXPECT_THAT(text, HasSubstr("50.0 %"));  // the gap
  EXPECT_THAT(text, HasSubstr("compute"));
  EXPECT_THAT(text, HasSubstr("pipeline bubble"));
  EXPECT_LE(width_of(text), 150U);
}

TEST(PlanText, SaysWhichStageMissesHowMuch) {
  Outcome outcome;
  outcome.infeasibility = Infeasibility{"nothing fits", 2, 2e9, 1e9, on_four_devices()};
  const std::string text = infeasibility_text(outcome);
  EXPECT_THAT(
      text, HasSubstr("needs 1.86 GiB in stage 3, and a device has 954 MiB usable: 954 MiB short"));
  EXPECT_EQ(count(text, "\n"), 0U);
  EXPECT_EQ(count(text, "host"), 0U);
}

TEST(PlanText, SaysWhatHostMemoryIsShortOf) {
  Outcome outcome;
  outcome.infeasibility = Infeasibility{"nothing fits", 2, 0.5e9, 1e9, on_four_devices(), 3e9, 1e9};
  const std::string kept =
      "keeps 2.79 GiB of a device in host memory, which has 954 MiB for each: 1.86 GiB short";
  EXPECT_THAT(infeasibility_text(outcome), HasSubstr(") " + kept));
  EXPECT_EQ(count(infeasibility_text(outcome), "usable"), 0U);
  outcome.infeasibility->needed_bytes = 2e9;
  EXPECT_THAT(infeasibility_text(outcome), HasSubstr(": 954 MiB short; it also " + kept));
}

TEST(Reports, MeasuredPassesAreDrawnBelowThePredictedOnesOnTheirScale) {
  const Plan plan = made_plan(on_four_devices(), 4);
  const Timeline predicted = simulate(plan);
  Timeline measured = predicted;
  std::erase_if(measured.events, [](const Event& event) { return event.kind == EventKind::send; });
  for (Event& event : measured.events) {
    event.start_s *= 3;
    event.end_s *= 3;
  }
  measured.iteration_time_s = measured.end_s = 3 * predicted.end_s;
  const std::string page = measured_page(plan, predicted, measured, {});
  const auto charts = charts_of(page, "timeline");
  ASSERT_EQ(charts.size(), 2U);
  EXPECT_EQ(charts[0]["end_s"], charts[1]["end_s"]);
  EXPECT_EQ(charts[0]["end_s"], measured.end_s);
  EXPECT_EQ(charts[1]["stages"].size(), 2U);
  EXPECT_THAT(page, HasSubstr(seconds_text(predicted.end_s) + " an iteration predicted, " +
                              seconds_text(measured.end_s) + " measured"));
  EXPECT_LT(page.find(">Predicted</h2>"), page.find(">Measured</h2>"));
}

}  // namespace
}  // namespace braid

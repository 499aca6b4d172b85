#include "braid/schedule/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/plan/stage_load.h"

#include "schedule/plans.h"

namespace braid {
namespace {

double sum_of_times(const Metrics& m) {
  return m.compute_s + m.tp_comm_s + m.cp_comm_s + m.ep_comm_s + m.pp_comm_s + m.dp_comm_s +
         m.bubble_s + m.recompute_s + m.optimizer_s + m.offload_s;
}

std::vector<Plan> varied_plans() {
  std::vector<Plan> plans;
  for (const auto kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved}) {
    for (int pp = 1; pp <= 4; ++pp) {
      for (int vp = 1; vp <= (kind == ScheduleKind::one_f_one_b ? 1 : 3); ++vp) {
        for (const auto zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters}) {
          Plan plan = small_plan(kind, pp, vp, std::int64_t{2} * pp);
          plan.parallel.zero = zero;
          set_parameters(plan, 2e8);
          set_boundary_bytes(plan, 3e8);
          plans.push_back(plan);
        }
      }
    }
  }
  return plans;
}

TEST(Simulate, SmallPlanTakesTheClosedForm) {
  EXPECT_DOUBLE_EQ(simulate_time_s(small_plan(ScheduleKind::one_f_one_b, 4, 1, 8)), 11 * 3.5);
  EXPECT_DOUBLE_EQ(simulate_time_s(small_plan(ScheduleKind::gpipe, 4, 1, 8)), 11 * 3.5);
  EXPECT_DOUBLE_EQ(simulate_time_s(small_plan(ScheduleKind::interleaved, 4, 2, 8)),
                   8 * 2 * 3.5 + 3 * 3.5);
}

TEST(Simulate, TimelineEndsWhenTheFastTimerSays) {
  for (const Plan& plan : varied_plans()) {
    const Timeline timeline = simulate(plan);
    EXPECT_NEAR(timeline.iteration_time_s, simulate_time_s(plan),
                1e-12 * timeline.iteration_time_s);
    double end_s = 0;
    for (const Event& event : timeline.events) end_s = std::max(end_s, event.end_s);
    EXPECT_EQ(end_s, timeline.iteration_time_s);
  }
}

TEST(Simulate, TransfersAndSynchronisationsTakeTheirTime) {
  for (const Plan& plan : varied_plans()) {
    const std::vector<StageLoad> loads = stage_loads(plan);
    std::vector<double> gradients(loads.size(), 0);
    std::vector<double> parameters(loads.size(), 0);
    double sends_s = 0;
    for (const Event& event : simulate(plan).events) {
      const double length_s = event.end_s - event.start_s;
      const auto stage = static_cast<std::size_t>(event.stage);
      if (event.kind == EventKind::gradient_sync) gradients[stage] += length_s;
      if (event.kind == EventKind::parameter_sync) parameters[stage] += length_s;
      if (event.kind == EventKind::send) sends_s += length_s;
    }
    double expected_s = 0;
    for (const EdgeLoad& edge : edge_loads(plan)) {
      expected_s += 2 * edge.transfer_s * static_cast<double>(plan.parallel.num_micro_batches);
    }
    EXPECT_NEAR(sends_s, expected_s, 1e-9);
    for (std::size_t s = 0; s < loads.size(); ++s) {
      EXPECT_NEAR(gradients[s], loads[s].sync.gradient_sync_s, 1e-9);
      EXPECT_NEAR(parameters[s], loads[s].sync.parameter_sync_s, 1e-9);
    }
  }
}

/// The rule hides no more than could be hidden behind the real passes, were each chunk's gradients
/// there when its last one starts.
TEST(Simulate, GradientsOfChunksHideNoMoreThanTheRealPassesHide) {
  int interleaved = 0;
  for (const Plan& plan : varied_plans()) {
    if (plan.parallel.vp == 1) continue;
    const std::vector<StageLoad> loads = stage_loads(plan);
    const Timeline timeline = simulate(plan);
    for (std::size_t s = 0; s < loads.size(); ++s) {
      const StageSync& sync = loads[s].sync;
      if (sync.gradient_sync_s <= 0) continue;
      std::vector<double> ends_s(loads[s].chunks.size(), 0);
      for (const Event& event : timeline.events) {
        if (event.kind != EventKind::backward || event.stage != static_cast<int>(s)) continue;
        double& end_s = ends_s[static_cast<std::size_t>(event.chunk)];
        end_s = std::max(end_s, event.end_s);
      }
      // As if all of it were there when the pass begins.
      double earliest_s = 0;
      for (std::size_t c = ends_s.size(); c-- > 0;) {
        const double share_s =
            c > 0 ? sync.earlier_gradient_sync_s / static_cast<double>(ends_s.size() - 1)
                  : sync.gradient_sync_s - sync.earlier_gradient_sync_s;
        earliest_s = std::max(earliest_s, ends_s[c] - loads[s].chunks[c].backward_s()) + share_s;
      }
      const double tail_s = exposed_gradient_sync_s(sync, loads[s].chunks.front().backward_s());
      EXPECT_LE(tail_s, sync.gradient_sync_s * (1 + 1e-12));
      EXPECT_GE(tail_s, std::max(0.0, earliest_s - ends_s.front()) - 1e-12);
      ++interleaved;
    }
  }
  EXPECT_GT(interleaved, 10);
}

TEST(Simulate, MemoryPeaksWhereTheMemoryModelSaysAndReturnsToItsStart) {
  for (const Plan& plan : varied_plans()) {
    const Timeline timeline = simulate(plan);
    ASSERT_EQ(timeline.memory.size(), plan.stages.size());
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      const std::vector<MemorySample>& samples = timeline.memory[s];
      double most = 0;
      for (std::size_t i = 0; i < samples.size(); ++i) {
        most = std::max(most, samples[i].bytes);
        if (i > 0) {
          EXPECT_GT(samples[i].time_s, samples[i - 1].time_s);
        }
      }
      EXPECT_DOUBLE_EQ(most, memory_of_stages(plan)[s].device_total());
      const MemoryBreakdown memory = memory_of_stages(plan)[s];
      EXPECT_DOUBLE_EQ(samples.back().bytes, memory.device_total() - memory.activations);
    }
  }
}

TEST(Simulate, OffloadedStashesTakeTwoSlotsOnTheDevice) {
  Plan plan = small_plan(ScheduleKind::gpipe, 2, 1, 5);
  plan.profile.kinds[0][0].cost.offloaded_bytes = 6;
  double most = 0;
  const Timeline timeline = simulate(plan);
  for (const MemorySample& sample : timeline.memory[0]) most = std::max(most, sample.bytes);
  EXPECT_EQ(most, 5 * 2 + 2 * 6);
  EXPECT_EQ(most, memory_of_stages(plan)[0].device_total());
}

TEST(Simulate, RefusesPlansWithoutASchedule) {
  Plan plan = small_plan(ScheduleKind::interleaved, 4, 2, 6);
  EXPECT_THROW(simulate(plan), Error);
  EXPECT_THROW(simulate_time_s(plan), Error);
  EXPECT_THROW(measure(plan), Error);
  plan = small_plan(ScheduleKind::one_f_one_b, 2, 1, 4);
  plan.profile.edges.push_back({1, 0, 0});
  EXPECT_THROW(simulate(plan), Error);
  EXPECT_THROW(simulate(Plan{}), Error);
  plan = small_plan(ScheduleKind::one_f_one_b, 2, 1, 4);
  plan.stages[1].chunks.clear();
  EXPECT_THROW(simulate(plan), Error);
  plan = small_plan(ScheduleKind::one_f_one_b, 2, 1, std::int64_t{1} << 40);
  EXPECT_THROW(simulate(plan), Error);
  EXPECT_THROW(simulate_time_s(plan), Error);
  plan = small_plan(ScheduleKind::one_f_one_b, 2, 1, 4);
  plan.profile.kinds[0][0].cost.forward.compute_s = std::numeric_limits<double>::max();
  EXPECT_THROW(simulate(plan), Error);
  EXPECT_THROW(simulate_time_s(plan), Error);
}

TEST(Measure, TimesOfTheBusiestStageSumToTheIteration) {
  for (const Plan& plan : varied_plans()) {
    const Metrics metrics = measure(plan);
    EXPECT_EQ(metrics.iteration_time_s, simulate_time_s(plan));
    EXPECT_NEAR(sum_of_times(metrics), metrics.iteration_time_s, 1e-12 * metrics.iteration_time_s);
    for (const double part : {metrics.pp_comm_s, metrics.dp_comm_s, metrics.bubble_s}) {
      EXPECT_GE(part, 0);
    }
  }
}

TEST(Measure, AttributesAnEvenPipeline) {
  const Metrics metrics = measure(small_plan(ScheduleKind::one_f_one_b, 4, 1, 8));
  EXPECT_DOUBLE_EQ(metrics.iteration_time_s, 11 * 3.5);
  EXPECT_DOUBLE_EQ(metrics.compute_s, 8 * 2.75);
  EXPECT_DOUBLE_EQ(metrics.tp_comm_s, 8 * 0.25);
  EXPECT_DOUBLE_EQ(metrics.recompute_s, 8 * 0.5);
  EXPECT_DOUBLE_EQ(metrics.bubble_s, 3 * 3.5);
  EXPECT_EQ(metrics.pp_comm_s, 0);
  EXPECT_EQ(metrics.dp_comm_s, 0);
  EXPECT_EQ(metrics.optimizer_s, 0);
  // 16 samples of 10 tokens.
  EXPECT_DOUBLE_EQ(metrics.tokens_per_s, 160 / (11 * 3.5));
  // Each of the 8 devices does 3e11 for each of its 8 micro-batches, at a peak of 1e12 per second.
  EXPECT_DOUBLE_EQ(metrics.model_flops_per_s_per_device, 8 * 3e11 / (11 * 3.5));
  EXPECT_DOUBLE_EQ(metrics.mfu, 8 * 0.3 / (11 * 3.5));
  EXPECT_EQ(metrics.tightest_stage, 0U);
  EXPECT_EQ(metrics.peak_memory_bytes, 4 * 8);
}

TEST(Measure, TransfersAreWhatTheIterationLosesToThem) {
  Plan plan = small_plan(ScheduleKind::gpipe, 3, 1, 6);
  const double without_s = simulate_time_s(plan);
  set_boundary_bytes(plan, 1e8);
  const Metrics metrics = measure(plan);
  EXPECT_GT(metrics.pp_comm_s, 0);
  EXPECT_NEAR(metrics.pp_comm_s, metrics.iteration_time_s - without_s, 1e-9);
  EXPECT_NEAR(metrics.bubble_s, 2 * 3.5, 1e-9);
}

TEST(Measure, SamplesStandForTokensWithoutSequence) {
  Plan plan = small_plan(ScheduleKind::gpipe, 1, 1, 2);
  plan.seq_len = 0;
  EXPECT_DOUBLE_EQ(measure(plan).tokens_per_s, 4 / 7.0);
}

TEST(Measure, UnknownPeakLeavesUtilisationAtZero) {
  Plan plan = small_plan(ScheduleKind::gpipe, 2, 1, 2);
  plan.precision.matmul = Dtype::f8;
  const Metrics metrics = measure(plan);
  EXPECT_EQ(metrics.mfu, 0);
  EXPECT_GT(metrics.model_flops_per_s_per_device, 0);
}

TEST(Trace, IsWellFormedAndTracksDoNotOverlap) {
  for (const Plan& plan : varied_plans()) {
    const Timeline timeline = simulate(plan);
    const std::string text = to_trace(plan, timeline);
    EXPECT_EQ(text, to_trace(plan, simulate(plan)));
    const Document document = Document::parse(text, Document::Syntax::json, "trace.json");
    EXPECT_EQ(document.root()["otherData"]["model"].as_string(), plan.model);
    std::map<std::pair<std::int64_t, std::int64_t>, double> free;
    std::map<std::pair<std::int64_t, std::int64_t>, int> named;
    std::map<std::int64_t, std::int64_t> process_of;
    std::size_t slices = 0;
    std::size_t counters = 0;
    double end = 0;
    for (const Value& event : document.root()["traceEvents"].elements()) {
      const std::string_view phase = event["ph"].as_string();
      const std::int64_t pid =
          event["pid"].as_int_in(1, static_cast<std::int64_t>(plan.stages.size()));
      const std::pair track{pid, event["tid"].as_int()};
      // Perfetto once looked threads up by their number alone.
      EXPECT_EQ(process_of.try_emplace(track.second, pid).first->second, pid);
      if (phase == "M") {
        if (event["name"].as_string() == "thread_name") ++named[track];
      } else if (phase == "C") {
        ++counters;
        EXPECT_GE(event["args"]["GiB"].as_double(), 0);
      } else {
        ASSERT_EQ(phase, "X");
        ++slices;
        EXPECT_EQ(named[track], 1);
        const double start = event["ts"].as_double();
        const double duration = event["dur"].as_double();
        EXPECT_GE(duration, 0);
        EXPECT_GE(start, free[track] - 1e-6);  // Microseconds; the text is exact to a thousandth.
        free[track] = start + duration;
        end = std::max(end, free[track]);
      }
    }
    std::size_t samples = 0;
    for (const auto& memory : timeline.memory) samples += memory.size();
    EXPECT_EQ(slices, timeline.events.size());
    EXPECT_EQ(counters, samples);
    EXPECT_NEAR(end, timeline.iteration_time_s * 1e6, 1e-2);
  }
}

/// An arrow joins a transfer and the pass that it is for: with transfers that take time, every
/// forward pass but those of the first chunk and every backward pass but those of the last has one.
TEST(Trace, ArrowsLeadFromTransfersToThePassesThatWaitForThem) {
  for (const int stages : {2, 3, 4}) {
    const int chunks = stages == 3 ? 1 : 2;
    const int micro_batches = 2 * stages;
    const ScheduleKind kind = chunks > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
    Plan plan = small_plan(kind, stages, chunks, micro_batches);
    set_boundary_bytes(plan, 1e8);
    const Timeline timeline = simulate(plan);
    const Document document =
        Document::parse(to_trace(plan, timeline), Document::Syntax::json, "trace.json");
    std::map<std::int64_t, std::pair<double, std::string>> tails;  // End and name, by number.
    std::set<std::int64_t> heads;
    std::size_t passes = 0;
    for (const Value& event : document.root()["traceEvents"].elements()) {
      if (event["ph"].as_string() != "X") continue;
      const std::string category(event["cat"].as_string());
      if (category == "forward" || category == "backward") ++passes;
      if (!event["bind_id"].exists()) continue;
      const std::int64_t number = event["bind_id"].as_int();
      const double start = event["ts"].as_double();
      if (category == "send") {
        EXPECT_TRUE(event["flow_out"].as_bool());
        const double end = start + event["dur"].as_double();
        EXPECT_TRUE(tails.try_emplace(number, end, event["name"].as_string()).second);
        continue;
      }
      EXPECT_TRUE(event["flow_in"].as_bool());
      EXPECT_TRUE(heads.insert(number).second);
      ASSERT_TRUE(tails.contains(number));
      const auto& [end, name] = tails[number];
      EXPECT_GE(start, end - 2e-3);
      EXPECT_EQ(name.substr(0, 9), category == "forward" ? "activatio" : "gradients");
      const auto micro_batch = fmt::format(" {}", event["args"]["micro_batch"].as_int());
      EXPECT_EQ(name.substr(name.find(' ')).substr(0, micro_batch.size()), micro_batch);
    }
    EXPECT_EQ(heads.size(), tails.size());
    EXPECT_EQ(passes, 2U * stages * chunks * micro_batches);
    EXPECT_EQ(heads.size(), passes - 2U * micro_batches);
  }
}

TEST(Trace, PredictedAndMeasuredAreUnderEachOther) {
  Plan plan = small_plan(ScheduleKind::one_f_one_b, 3, 1, 6);
  set_boundary_bytes(plan, 1e8);
  const Timeline predicted = simulate(plan);
  Timeline measured = predicted;
  measured.iteration_time_s *= 2;
  for (Event& event : measured.events) {
    event.start_s *= 2;
    event.end_s *= 2;
  }
  const std::string text = to_trace(plan, predicted, measured);
  const Document document = Document::parse(text, Document::Syntax::json, "trace.json");
  EXPECT_DOUBLE_EQ(document.root()["otherData"]["iteration_time_s"].as_double(),
                   predicted.iteration_time_s);
  EXPECT_DOUBLE_EQ(document.root()["otherData"]["measured_iteration_time_s"].as_double(),
                   measured.iteration_time_s);
  std::map<std::int64_t, std::string> names;  // Of processes, in their order.
  std::map<std::int64_t, std::int64_t> process_of_thread;
  std::map<std::int64_t, double> last_us;                    // By process.
  std::map<std::int64_t, std::vector<std::string>> passes;   // By process.
  std::map<std::int64_t, std::set<bool>> timeline_of_arrow;  // Whether measured.
  for (const Value& event : document.root()["traceEvents"].elements()) {
    const std::int64_t process = event["pid"].as_int();
    const auto [thread, is_new] = process_of_thread.try_emplace(event["tid"].as_int(), process);
    EXPECT_EQ(thread->second, process);
    if (event["ph"].as_string() == "M" && event["name"].as_string() == "process_name") {
      names[process] = event["args"]["name"].as_string();
    }
    if (event["ph"].as_string() != "X") continue;
    passes[process].emplace_back(event["name"].as_string());
    last_us[process] =
        std::max(last_us[process], event["ts"].as_double() + event["dur"].as_double());
    if (event["bind_id"].exists()) {
      timeline_of_arrow[event["bind_id"].as_int()].insert(process % 2 == 0);
    }
  }
  ASSERT_EQ(names.size(), 6U);
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    EXPECT_EQ(names[2 * stage - 1].substr(0, 18), fmt::format("predicted, stage {}", stage));
    EXPECT_EQ(names[2 * stage].substr(0, 17), fmt::format("measured, stage {}", stage));
    EXPECT_EQ(passes[2 * stage - 1], passes[2 * stage]);
    EXPECT_NEAR(last_us[2 * stage], 2 * last_us[2 * stage - 1], 2e-3);
  }
  EXPECT_FALSE(timeline_of_arrow.empty());
  for (const auto& [arrow, timelines] : timeline_of_arrow) EXPECT_EQ(timelines.size(), 1U) << arrow;
}

}  // namespace
}  // namespace braid

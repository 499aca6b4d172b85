#include "braid/serve/service_simulation.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/serve/disaggregated.h"
#include "braid/serve/queueing.h"
#include "braid/serve/simulated_worker.h"
#include "braid/serve/stated_times.h"

#include "serve/serving_fixture.h"

namespace braid {
namespace {

using test::ServingFixture;
using testing::HasSubstr;

double mean_of(const std::vector<RequestTimes>& times, std::size_t from,
               double RequestTimes::*time) {
  double sum = 0;
  for (std::size_t i = from; i < times.size(); ++i) sum += times[i].*time;
  return sum / static_cast<double>(times.size() - from);
}

ServingPlan plan_of(const ServingFixture& with, const ServingLayout& layout, double sequences) {
  ServingPlan plan;
  plan.decode = {&with.engine, serving_format(with.model, "fp8"), layout, 1, {8192, sequences}, 0};
  return plan;
}

/// A request alone takes what its steps take, by the step model itself.
TEST(ServiceSimulation, OneRequestIsTheSumOfItsSteps) {
  const ServingFixture with("llama-3-8b", "dgx-h100:1", "vllm");
  const ServingJob job = with.job(4096, 200);
  const ServingPlan plan = plan_of(with, {1, 1, 1, 1, 1, 1}, 64);
  const std::vector<RequestTimes> times = simulate_service(plan, job, {{3.0, 4096, 200}});
  const Worker worker = with.worker("fp8", plan.decode.layout);
  const StepModel step(worker);
  const TimeFactors factors = factors_of(with.engine.corrections, corrected_runs_of(worker, false));
  const double prompt_s = step.time({0, 0, 1, 4096, 0});
  EXPECT_NEAR(times.front().ttft_s, factors.ttft * (with.engine.figures.request_s + prompt_s),
              1e-9);
  double decode_s = 0;
  for (int i = 0; i < 199; ++i) decode_s += factors.tpot * step.time({1, 4096.0 + i, 0, 0, 0});
  EXPECT_NEAR(times.front().tpot_s * 199, decode_s, 0.005 * decode_s);
  EXPECT_EQ(times.front().waiting_s, 0);
}

/// Who comes while another decodes waits for the steps that are to end before its prompt's.
TEST(ServiceSimulation, StepsEndBeforeThePromptOfWhoComesLater) {
  ServingFixture with("llama-3-8b", "dgx-h100:1", "vllm");
  const auto later_ttft_s = [&](double wait_steps) {
    with.engine.figures.wait_steps = wait_steps;
    const ServingPlan plan = plan_of(with, {1, 1, 1, 1, 1, 1}, 64);
    return simulate_service(plan, with.job(1024, 2000), {{0, 1024, 2000}, {1, 1024, 2000}})[1]
        .ttft_s;
  };
  const Worker worker = with.worker("fp8", {1, 1, 1, 1, 1, 1});
  const TimeFactors factors = factors_of(with.engine.corrections, corrected_runs_of(worker, false));
  const double step_s = StepModel(worker).time({1, 1100, 0, 0, 0});
  const double later_s = later_ttft_s(20.5) - later_ttft_s(0.5);
  EXPECT_NEAR(later_s / (20 * factors.ttft * step_s), 1, 0.02);
}

/// Requests that come at random at the rates of the mean field.
TEST(ServiceSimulation, AgreesWithTheSteadyState) {
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    SCOPED_TRACE(engine);
    const ServingFixture with("llama-3-8b", "dgx-h100:1", engine);
    ServingJob job = with.job(1024, 256);
    const ServingPlan plan = plan_of(with, {1, 1, 1, 1, 1, 1}, 256);
    for (const double batch : {4.0, 16.0, 48.0}) {
      ServingPlan limited = plan;
      limited.decode.limits.sequences = batch;
      job.ttft_s = job.tpot_s = 100;
      const StatedTimes field = stated_times(limited, job);
      const double rate = field.plan.requests_per_s;
      const std::vector<TracedRequest> requests = poisson_requests(rate, 4000, {0, 1024, 256}, 5);
      const std::vector<RequestTimes> times = simulate_service(plan, job, requests);
      const double tpot_s = mean_of(times, 500, &RequestTimes::tpot_s);
      EXPECT_NEAR(tpot_s, field.plan.tpot_s, 0.06 * field.plan.tpot_s) << batch;
    }
  }
}

/// Attention groups begin their prompts together in both.
TEST(ServiceSimulation, AgreesWithTheSteadyStateOfAttentionGroups) {
  const ServingFixture with("gpt-oss-120b", "dgx-h100:8", "vllm");
  ServingJob job = with.job(1024, 512);
  job.ttft_s = job.tpot_s = 100;
  const ServingPlan plan = plan_of(with, {1, 1, 8, 1, 8, 1}, 2048);
  for (const double batch : {64.0, 256.0, 768.0}) {
    ServingPlan limited = plan;
    limited.decode.limits.sequences = batch;
    const StatedTimes field = stated_times(limited, job);
    const double rate = field.plan.requests_per_s;
    const std::vector<TracedRequest> requests = poisson_requests(rate, 8000, {0, 1024, 512}, 5);
    const std::vector<RequestTimes> times = simulate_service(plan, job, requests);
    const double tpot_s =
        mean_of({times.begin() + 3000, times.begin() + 6000}, 0, &RequestTimes::tpot_s);
    EXPECT_NEAR(tpot_s, field.plan.tpot_s, 0.12 * field.plan.tpot_s) << batch;
  }
}

/// Prefill workers with requests alike are queues with fixed times of service.
TEST(ServiceSimulation, PromptsWaitAsQueuesDo) {
  ServingFixture with("llama-3-8b", "dgx-h100:8", "vllm");
  ServingJob job = with.job(8192, 1);
  job.model = &with.model;
  for (const std::int64_t workers : {1, 4}) {
    for (const double busy : {0.5, 0.8}) {
      ServingPlan plan = plan_of(with, {1, 1, 1, 1, 1, 1}, 64);
      plan.disaggregated = true;
      plan.prefill = plan.decode;
      plan.prefill.workers = workers;
      plan.decode.workers = 8;
      SimulatedSteps steps(plan.prefill, job, true);
      const double service_s = steps.prompts_s({8192, 0}, 1);
      const double rate = busy * static_cast<double>(workers) / service_s;
      const std::vector<RequestTimes> times =
          simulate_service(plan, job, poisson_requests(rate, 40'000, {0, 8192, 1}, 11));
      const double waited_s = mean_of(times, 1000, &RequestTimes::waiting_s);
      const double expected_s = mean_wait_s(rate, static_cast<int>(workers), service_s, 0);
      // Of several workers each has a queue of its own, which is a little longer than one of all.
      const double most = workers == 1 ? 1.05 : 2;
      EXPECT_GT(waited_s, 0.93 * expected_s) << workers << " " << busy;
      EXPECT_LT(waited_s, most * expected_s) << workers << " " << busy;
    }
  }
}

/// D/D/1: requests at even distances wait for nobody below capacity, and above it each one waits
/// by as much longer as they come too early.
TEST(ServiceSimulation, EvenArrivalsWaitAboveCapacityAlone) {
  const ServingFixture with("llama-3-8b", "dgx-h100:2", "vllm");
  const ServingJob job = with.job(8192, 1);
  ServingPlan plan = plan_of(with, {1, 1, 1, 1, 1, 1}, 64);
  plan.disaggregated = true;
  plan.prefill = plan.decode;
  SimulatedSteps steps(plan.prefill, job, true);
  const double service_s = steps.prompts_s({8192, 0}, 1);
  for (const double distance : {1.01, 0.8}) {
    std::vector<TracedRequest> requests;
    for (int i = 0; i < 200; ++i) requests.push_back({i * distance * service_s, 8192, 1});
    const std::vector<RequestTimes> times = simulate_service(plan, job, requests);
    const double late_s = std::max(0.0, 1 - distance) * service_s;
    for (std::size_t i = 0; i < times.size(); ++i) {
      EXPECT_NEAR(times[i].waiting_s, static_cast<double>(i) * late_s, 1e-6 * service_s)
          << distance << ' ' << i;
    }
  }
}

TEST(ServiceSimulation, MoreWorkersNeverHurt) {
  const ServingFixture with("llama-3-8b", "dgx-h100:8", "sglang");
  const ServingJob job = with.job(2048, 128);
  const std::vector<TracedRequest> requests = poisson_requests(20, 1500, {0, 2048, 128}, 3);
  double before = 1e9;
  for (const std::int64_t workers : {1, 2, 4, 8}) {
    ServingPlan plan = plan_of(with, {1, 1, 1, 1, 1, 1}, 128);
    plan.decode.workers = workers;
    const double ttft_s = mean_of(simulate_service(plan, job, requests), 0, &RequestTimes::ttft_s);
    EXPECT_LE(ttft_s, before * 1.001);
    before = ttft_s;
  }
}

TEST(ServiceSimulation, SmallestServiceHoldsTheTargetsAndOneLessDoesNot) {
  for (const bool disaggregated : {false, true}) {
    const ServingFixture with("llama-3-8b", "dgx-h100:8", "vllm");
    ServingJob job = with.job(2048, 256);
    job.tpot_s = 0.015;
    job.ttft_s = 0.6;
    job.aggregated = !disaggregated;
    job.disaggregated = disaggregated;
    const ServingPlan plan = *plan_serving(job).plan;
    const double rate = 60;
    const auto found = smallest_service(plan, job, rate);
    ASSERT_TRUE(found);
    EXPECT_LE(found->plan.ttft_s, job.ttft_s);
    EXPECT_LE(found->plan.tpot_s, job.tpot_s);
    const auto holds = [&](const ServingPlan& of) {
      const double answers = std::ceil(rate * (job.ttft_s + job.output_tokens * job.tpot_s));
      const auto early = static_cast<std::size_t>(kAnswersBefore * answers);
      const auto all = early + kSimulatedRequests + static_cast<std::size_t>(answers);
      auto times = simulate_service(of, job, poisson_requests(rate, all, {0, 2048, 256}, 1));
      times.resize(early + kSimulatedRequests);
      times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(early));
      const TraceOutcome outcome = trace_outcome(times, job);
      return outcome.ttft_s.mean <= job.ttft_s && outcome.tpot_s.mean <= job.tpot_s;
    };
    EXPECT_TRUE(holds(found->plan));
    for (WorkerPlan ServingPlan::*kind : {&ServingPlan::decode, &ServingPlan::prefill}) {
      ServingPlan less = found->plan;
      if ((!disaggregated && kind == &ServingPlan::prefill) || (less.*kind).workers == 1) continue;
      --(less.*kind).workers;
      EXPECT_FALSE(holds(less));
    }
  }
}

/// Where one answer takes so long that a queue is not seen in the time of a few: fewer workers than
/// have the sequences under way that the rate makes (Little's law) are not enough.
TEST(ServiceSimulation, NoServiceIsTakenThatFallsBehind) {
  const ServingFixture with("llama-3-8b", "dgx-h100:8", "vllm");
  for (const bool disaggregated : {false, true}) {
    ServingJob job = with.job(512, 2000);
    job.tpot_s = 0.02;
    job.aggregated = !disaggregated;
    job.disaggregated = disaggregated;
    const ServingPlan plan = *plan_serving(job).plan;
    const double rate = 20 * plan.decode.requests_per_s;
    const auto found = smallest_service(plan, job, rate);
    ASSERT_TRUE(found);
    const WorkerPlan& decode = found->plan.decode;
    // Each of them has so many of a request's tokens made in its time, and no more at once than the
    // limit.
    const double under_way = rate * (job.output_tokens - 1) * found->plan.tpot_s;
    EXPECT_LE(under_way, 1.02 * static_cast<double>(decode.workers) * decode.limits.sequences);
    // The capacity is what a worker does that always has work: all requests at once.
    ServingPlan one = plan;
    one.decode.workers = one.prefill.workers = 1;
    if (disaggregated) one.prefill.workers = 64;
    std::vector<TracedRequest> burst(4 * static_cast<std::size_t>(decode.limits.sequences),
                                     TracedRequest{0, 512, 2000});
    double last_s = 0;
    for (const RequestTimes& each : simulate_service(one, job, burst)) {
      last_s = std::max(last_s, each.ttft_s + each.tpot_s * (job.output_tokens - 1));
    }
    SimulatedSteps steps(plan.decode, job, disaggregated);
    const double most = steps.most_requests_per_s(
        disaggregated ? SimulatedWork::decoding : SimulatedWork::all, {0, 512, 2000});
    EXPECT_LE(static_cast<double>(burst.size()) / last_s, 1.03 * most);
    EXPECT_GE(static_cast<double>(decode.workers) * most, rate);
  }
}

TEST(ServiceSimulation, SharesAndPercentilesAreCounted) {
  ServingJob job;
  job.ttft_s = 1;
  job.tpot_s = 0.1;
  std::vector<RequestTimes> times;
  for (int i = 1; i <= 100; ++i) times.push_back({0.02 * i, i > 90 ? 0.2 : 0.05, 0});
  const TraceOutcome outcome = trace_outcome(times, job);
  EXPECT_DOUBLE_EQ(outcome.within, 0.5);
  EXPECT_DOUBLE_EQ(outcome.ttft_s.median, 1);
  EXPECT_DOUBLE_EQ(outcome.ttft_s.p90, 1.8);
  EXPECT_DOUBLE_EQ(outcome.ttft_s.p99, 1.98);
  EXPECT_NEAR(outcome.ttft_s.mean, 1.01, 1e-12);
  EXPECT_DOUBLE_EQ(outcome.tpot_s.p90, 0.05);
}

std::string refusal_of(const std::string& text) {
  try {
    parse_request_trace(text, "t.jsonl");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RequestTrace, ReadsMooncakesLines) {
  const auto requests = parse_request_trace(
      "{\"timestamp\": 0, \"input_length\": 6755, \"output_length\": 500, \"hash_ids\": [0, 1]}\n\n"
      "{\"timestamp\": 1500, \"input_length\": 100, \"output_length\": 20}\r\n",
      "t.jsonl");
  ASSERT_EQ(requests.size(), 2);
  EXPECT_EQ(requests[1].arrival_s, 1.5);
  EXPECT_EQ(requests[0].input_tokens, 6755);
  EXPECT_EQ(requests[0].blocks, (std::vector<std::int64_t>{0, 1}));
  EXPECT_TRUE(requests[1].blocks.empty());
  const TraceSummary summary = summary_of(requests);
  EXPECT_EQ(summary.longest, 7255);
  EXPECT_EQ(summary.output_tokens, 260);
  EXPECT_NEAR(summary.requests_per_s(), 1 / 1.5, 1e-12);
  EXPECT_EQ(
      parse_request_trace("{\"arrival_s\": 2.5, \"input_length\": 1, \"output_length\": 1}", "t")[0]
          .arrival_s,
      2.5);
}

TEST(RequestTrace, SaysWhatIsWrongAndWhere) {
  const std::string good = "{\"timestamp\": 5, \"input_length\": 1, \"output_length\": 1}\n";
  EXPECT_THAT(refusal_of(good + "{\"timestamp\": 4, \"input_length\": 1, \"output_length\": 1}"),
              HasSubstr("t.jsonl:2: [1]: it arrives before the request above it"));
  EXPECT_THAT(refusal_of("\n" + good +
                         "{\"timestamp\": 6, \"input_length\": -3, "
                         "\"output_length\": 1}"),
              HasSubstr("t.jsonl:3: [1].input_length"));
  EXPECT_THAT(refusal_of(good + "{\"timestamp\": 6, \"input_length\": 3}"),
              HasSubstr("output_length"));
  EXPECT_THAT(refusal_of("{\"timestamp\": -1, \"input_length\": 3, \"output_length\": 1}"),
              HasSubstr("timestamp"));
  EXPECT_THAT(refusal_of(good + "nonsense\n"), HasSubstr("t.jsonl:2"));
  EXPECT_THAT(refusal_of("[1]\n"), HasSubstr("t.jsonl:1"));
  EXPECT_THAT(refusal_of(""), HasSubstr("no requests"));
}

/// What the cache has is attended to and not computed: a prompt takes what its last chunk would
/// take after the others.
TEST(ServiceSimulation, CachedTokensAreAttendedToAndNotComputed) {
  const ServingFixture with("llama-3-8b", "dgx-h100:1", "vllm");
  ServingJob job = with.job(65536, 8);
  const ServingPlan plan = plan_of(with, {1, 1, 1, 1, 1, 1}, 4);
  const Worker worker = with.worker("fp8", plan.decode.layout);
  const StepModel step(worker);
  const TimeFactors factors = factors_of(with.engine.corrections, corrected_runs_of(worker, false));
  const double prompt_s = step.time({0, 0, 1, 4096, 61440});
  EXPECT_GT(prompt_s, 1.2 * step.time({0, 0, 1, 4096, 0}));
  TracedRequest request{0, 65536, 8};
  request.cached_tokens = 61440;
  const double ttft_s = simulate_service(plan, job, {request}).front().ttft_s;
  EXPECT_NEAR(ttft_s, factors.ttft * (with.engine.figures.request_s + prompt_s), 1e-9);
  // So does a share of the job, in the steady state too.
  job.cached_share = 61440.0 / 65536;
  EXPECT_NEAR(simulate_service(plan, job, {{0, 65536, 8}}).front().ttft_s, ttft_s, 1e-9);
  const WorkerSteps steps(&step, {65536, 8, job.cached_share}, plan.decode.limits);
  EXPECT_NEAR(steps.prompts_s(1, with.engine.figures), prompt_s, 1e-9);
  // A request's own count goes before the share.
  request.cached_tokens = 0;
  EXPECT_GT(simulate_service(plan, job, {request}).front().ttft_s, 2 * ttft_s);
}

TEST(ServiceSimulation, RefusesRequestsWithoutRoom) {
  const ServingFixture with("llama-3-70b", "dgx-h100:1", "vllm");
  const ServingJob job = with.job(1024, 8);
  const ServingPlan plan = plan_of(with, {1, 1, 1, 1, 1, 1}, 4);
  try {
    simulate_service(plan, job, {{0, 1024, 8}, {0, 1e6, 8}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("request 2 of 1000000 input and 8 output tokens has no room"));
  }
}

}  // namespace
}  // namespace braid

#include "braid/schedule/evaluate.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/schedule/pipeline_time.h"

#include "schedule/instances.h"
#include "schedule/relaxation.h"

namespace braid {
namespace {

constexpr double kClose = 1e-9;

void expect_same(const Pipeline& pipeline, const WorkOrder& order) {
  const auto relaxed = relax(pipeline, order);
  ASSERT_TRUE(relaxed);
  const Evaluation evaluation = evaluate(pipeline, order, Record::events);
  EXPECT_NEAR(evaluation.iteration_time_s, relaxed->time_s, kClose);
  std::vector<std::size_t> next(relaxed->passes.size(), 0);
  for (const Event& event : evaluation.events) {
    if (event.kind != EventKind::forward && event.kind != EventKind::backward) continue;
    const auto s = static_cast<std::size_t>(event.stage);
    const Relaxed::Pass& pass = relaxed->passes[s][next[s]++];
    EXPECT_EQ(event.micro_batch, pass.work.index);
    EXPECT_EQ(event.stage * pipeline.vp + event.chunk, pass.work.stage);
    EXPECT_NEAR(event.start_s, pass.start_s, kClose);
    EXPECT_NEAR(event.end_s, pass.end_s, kClose);
  }
  for (std::size_t s = 0; s < next.size(); ++s) {
    EXPECT_EQ(next[s], relaxed->passes[s].size());
    EXPECT_NEAR(evaluation.stages[s].end_s, relaxed->stage_end_s[s], kClose);
  }
}

TEST(Evaluate, AgreesWithRelaxationOnRandomGraphsAndSchedules) {
  Random random(5);
  for (int trial = 0; trial < 4000; ++trial) {
    const Pipeline pipeline =
        random_graph(random, static_cast<int>(pick(random, 1, 4)),
                     static_cast<int>(pick(random, 1, 3)), pick(random, 1, 5));
    expect_same(pipeline, random_schedule(random, pipeline));
    if (HasFailure()) FAIL() << "trial " << trial;
  }
}

TEST(Evaluate, AgreesWithRelaxationOnGraphsOfStages) {
  Random random(6);
  for (int trial = 0; trial < 2000; ++trial) {
    Pipeline pipeline =
        random_graph(random, static_cast<int>(pick(random, 1, 6)), 1, pick(random, 1, 8));
    if (trial % 2 == 0) pipeline.schedule = ScheduleKind::gpipe;
    expect_same(pipeline, schedule_of(pipeline));
    PipelineWorkspace workspace;
    const double time_s = evaluate(pipeline, schedule_of(pipeline), Record::times).iteration_time_s;
    EXPECT_NEAR(pipeline_time_s(pipeline, workspace), time_s, 1e-12 * time_s);
    if (HasFailure()) FAIL() << "trial " << trial;
  }
}

TEST(Evaluate, RefusesExactlyTheSchedulesThatCannotBeKept) {
  Random random(9);
  int refused = 0;
  int kept = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Pipeline pipeline =
        random_graph(random, static_cast<int>(pick(random, 1, 3)), 1, pick(random, 1, 3));
    WorkOrder order = random_schedule(random, pipeline);
    auto& works = order.devices[static_cast<std::size_t>(pick(random, 0, pipeline.pp - 1))];
    const auto last = static_cast<std::int64_t>(works.size()) - 1;
    std::swap(works[static_cast<std::size_t>(pick(random, 0, last))],
              works[static_cast<std::size_t>(pick(random, 0, last))]);
    if (relax(pipeline, order)) {
      ++kept;
      EXPECT_NO_THROW(evaluate(pipeline, order, Record::times));
    } else {
      ++refused;
      EXPECT_THROW(evaluate(pipeline, order, Record::times), Error);
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(kept, 300);
}

TEST(Evaluate, NamesTheStageThatWaitsForEver) {
  const Pipeline pipeline = even_chain(ScheduleKind::gpipe, 2, 1, 2, {1, 1});
  WorkOrder order = make_schedule(ScheduleKind::gpipe, 2, 1, 2);
  // Stage 1 takes its backward pass of micro-batch 0 before its forward pass.
  std::swap(order.devices[1][0], order.devices[1][2]);
  try {
    evaluate(pipeline, order, Record::times);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("stage 1"));
  }
}

TEST(Evaluate, CircleOfStagesIsAnError) {
  Pipeline pipeline = even_chain(ScheduleKind::one_f_one_b, 3, 1, 2, {1, 1});
  pipeline.transfers.push_back({2, 1, 0});
  PipelineWorkspace workspace;
  EXPECT_THROW(pipeline_time_s(pipeline, workspace), Error);
  // With several chunks, the same is found when it is run.
  pipeline = even_chain(ScheduleKind::interleaved, 2, 2, 2, {1, 1});
  pipeline.transfers.push_back({3, 0, 0});
  EXPECT_THROW(pipeline_time_s(pipeline, workspace), Error);
}

TEST(Evaluate, LinksCarryOneTransferAtATimeAndDevicesOnePass) {
  Random random(10);
  for (int trial = 0; trial < 500; ++trial) {
    const Pipeline pipeline = random_graph(random, static_cast<int>(pick(random, 1, 5)),
                                           static_cast<int>(pick(random, 1, 2)), 4);
    const Evaluation evaluation =
        evaluate(pipeline, random_schedule(random, pipeline), Record::events);
    std::map<std::tuple<int, int, int>, double> free_s;
    for (const Event& event : evaluation.events) {
      const int track =
          event.kind == EventKind::send                                                       ? 2
          : event.kind == EventKind::gradient_sync || event.kind == EventKind::parameter_sync ? 1
                                                                                              : 0;
      double& free = free_s[{event.stage, track, event.peer_stage}];
      EXPECT_GE(event.start_s, free);
      EXPECT_GE(event.end_s, event.start_s);
      EXPECT_LE(event.end_s, evaluation.iteration_time_s);
      free = event.end_s;
    }
    EXPECT_TRUE(std::is_sorted(evaluation.events.begin(), evaluation.events.end(),
                               [](const Event& a, const Event& b) {
                                 return std::tie(a.start_s, a.stage) < std::tie(b.start_s, b.stage);
                               }));
  }
}

TEST(Evaluate, RelabellingStagesChangesNothing) {
  Random random(11);
  for (int trial = 0; trial < 500; ++trial) {
    const int pp = static_cast<int>(pick(random, 2, 6));
    const Pipeline pipeline = random_graph(random, pp, 1, pick(random, 1, 6));
    std::vector<std::int32_t> name(static_cast<std::size_t>(pp));
    for (std::size_t i = 0; i < name.size(); ++i) name[i] = static_cast<std::int32_t>(i);
    std::shuffle(name.begin(), name.end(), random);
    Pipeline other = pipeline;
    for (std::size_t s = 0; s < name.size(); ++s) {
      const auto to = static_cast<std::size_t>(name[s]);
      other.forward_s[to] = pipeline.forward_s[s];
      other.backward_s[to] = pipeline.backward_s[s];
      other.sync[to] = pipeline.sync[s];
    }
    for (Transfer& transfer : other.transfers) {
      transfer.source = name[static_cast<std::size_t>(transfer.source)];
      transfer.target = name[static_cast<std::size_t>(transfer.target)];
    }
    EXPECT_EQ(evaluate(pipeline, schedule_of(pipeline), Record::times).iteration_time_s,
              evaluate(other, schedule_of(other), Record::times).iteration_time_s);
  }
}

}  // namespace
}  // namespace braid

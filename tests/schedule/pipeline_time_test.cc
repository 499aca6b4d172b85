#include "braid/schedule/pipeline_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/schedule/evaluate.h"

#include "schedule/instances.h"
#include "schedule/relaxation.h"

namespace braid {
namespace {

constexpr double kNear = 1e-9;
/// Leaping over repeated rounds multiplies where the pass-by-pass evaluation adds.
constexpr double kTimeRounding = 1e-12;

double time_of(const Pipeline& pipeline) {
  PipelineWorkspace workspace;
  return pipeline_time_s(pipeline, workspace);
}

TEST(PipelineTime, EqualStagesTakeTheClosedForm) {
  // Huang et al. 2019 §2.3; Narayanan et al. 2021 §2.2.1.
  for (int pp = 1; pp <= 9; ++pp) {
    for (std::int64_t m = 1; m <= 20; ++m) {
      const double expected = static_cast<double>(m + pp - 1) * (1 + 2.5);
      EXPECT_EQ(time_of(even_chain(ScheduleKind::gpipe, pp, 1, m, {1, 2.5})), expected);
      EXPECT_EQ(time_of(even_chain(ScheduleKind::one_f_one_b, pp, 1, m, {1, 2.5})), expected);
    }
  }
}

TEST(PipelineTime, InterleavingDividesTheBubbleByTheChunks) {
  // Narayanan et al. 2021 §2.2.2: the bubble is (p - 1)(f + b)/v, for whole-stage times f and b.
  for (int pp = 2; pp <= 8; ++pp) {
    for (int vp = 1; vp <= 4; ++vp) {
      for (int groups = 1; groups <= 4; ++groups) {
        const std::int64_t m = std::int64_t{pp} * groups;
        const double busy = static_cast<double>(m) * vp * 3;
        EXPECT_EQ(time_of(even_chain(ScheduleKind::interleaved, pp, vp, m, {1, 2})),
                  busy + (pp - 1) * 3.0)
            << pp << " stages, " << vp << " chunks, " << m << " micro-batches";
      }
    }
  }
}

TEST(PipelineTime, TransfersBetweenEqualStagesLengthenRampUpAndDown) {
  // GPipe: the last micro-batch crosses p - 1 hops each way; passes longer than transfers hide the
  // others.
  for (int pp = 1; pp <= 6; ++pp) {
    const std::int64_t m = 8;
    EXPECT_EQ(time_of(even_chain(ScheduleKind::gpipe, pp, 1, m, {1, 2, 0.5})),
              static_cast<double>(m + pp - 1) * 3 + (pp - 1) * 2 * 0.5);
  }
  // Transfers longer than passes set the pace: ten of them one after another each way.
  EXPECT_EQ(time_of(even_chain(ScheduleKind::gpipe, 2, 1, 10, {1, 1, 4})), 2 * (1 + 10 * 4 + 1));
}

TEST(PipelineTime, UnevenStagesLieBetweenTheirBounds) {
  Random random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    const int pp = static_cast<int>(pick(random, 1, 8));
    const std::int64_t m = pick(random, pp, pp + 20);
    Pipeline pipeline = random_chain(random, ScheduleKind::one_f_one_b, pp, 1, m);
    for (Transfer& transfer : pipeline.transfers) transfer.time_s = 0;
    pipeline.sync.assign(static_cast<std::size_t>(pp), {});
    const bool same_ratio = trial % 2 == 0;
    std::vector<double> t;
    for (std::size_t i = 0; i < static_cast<std::size_t>(pp); ++i) {
      if (same_ratio) pipeline.backward_s[i] = 2 * pipeline.forward_s[i];
      t.push_back(pipeline.forward_s[i] + pipeline.backward_s[i]);
    }
    const double time_s = time_of(pipeline);
    const double sum = std::accumulate(t.begin(), t.end(), 0.0);
    // From above: one micro-batch through all stages, the others at the slowest stage's pace. When
    // backward passes are not everywhere the same multiple of forward passes, the slowest of each
    // kind may meet while the pipeline fills.
    const double slowest =
        same_ratio ? *std::max_element(t.begin(), t.end())
                   : *std::max_element(pipeline.forward_s.begin(), pipeline.forward_s.end()) +
                         *std::max_element(pipeline.backward_s.begin(), pipeline.backward_s.end());
    EXPECT_LE(time_s, sum + static_cast<double>(m - 1) * slowest + kNear);
    // From below, for each stage i: it is idle while the first micro-batch comes to it and the last
    // one leaves it, and m - p + i of its micro-batches run between those that fill the later
    // stages.
    double later = 0;
    for (std::size_t i = t.size(); i-- > 0;) {
      const auto between = static_cast<double>(m - pp + static_cast<std::int64_t>(i));
      EXPECT_GE(time_s, sum + between * t[i] + later - kNear);
      later += t[i];
    }
  }
}

TEST(PipelineTime, SteadyStateRunsAtTheSlowestStagesPace) {
  Random random(8);
  for (int trial = 0; trial < 300; ++trial) {
    const int pp = static_cast<int>(pick(random, 1, 6));
    Pipeline pipeline = random_chain(random, ScheduleKind::one_f_one_b, pp, 1, 1);
    for (Transfer& transfer : pipeline.transfers) transfer.time_s = 0;
    double slowest = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(pp); ++i) {
      slowest = std::max(slowest, pipeline.forward_s[i] + pipeline.backward_s[i]);
    }
    pipeline.num_micro_batches = 400;
    const double early_s = time_of(pipeline);
    pipeline.num_micro_batches = 500;
    EXPECT_NEAR((time_of(pipeline) - early_s) / 100, slowest, kNear);
  }
}

TEST(PipelineTime, AgreesWithRelaxationAndTheGeneralEvaluatorOnChains) {
  Random random(1);
  PipelineWorkspace workspace;  // Shared by all: what a call leaves in it must not matter.
  for (int trial = 0; trial < 3000; ++trial) {
    const auto kind = static_cast<ScheduleKind>(pick(random, 0, 2));
    const int pp = static_cast<int>(pick(random, 1, 5));
    const int vp = kind == ScheduleKind::one_f_one_b ? 1 : static_cast<int>(pick(random, 1, 3));
    const bool grouped = kind == ScheduleKind::interleaved && vp > 1;
    const std::int64_t m = grouped ? pp * pick(random, 1, 3) : pick(random, 1, 9);
    const Pipeline pipeline = random_chain(random, kind, pp, vp, m);
    ASSERT_TRUE(is_chain(pipeline));
    const double time_s = pipeline_time_s(pipeline, workspace);
    const WorkOrder order = make_schedule(kind, pp, vp, m);
    EXPECT_EQ(order, schedule_of(pipeline));
    const Evaluation evaluation = evaluate(pipeline, order, Record::times);
    EXPECT_NEAR(time_s, evaluation.iteration_time_s, kTimeRounding * time_s);
    for (std::size_t s = 0; s < static_cast<std::size_t>(pp); ++s) {
      EXPECT_NEAR(workspace.stages()[s].passes_end_s, evaluation.stages[s].passes_end_s,
                  kTimeRounding * time_s);
      EXPECT_NEAR(workspace.stages()[s].end_s, evaluation.stages[s].end_s, kTimeRounding * time_s);
      EXPECT_EQ(workspace.stages()[s].parameter_wait_s, evaluation.stages[s].parameter_wait_s);
    }
    const auto relaxed = relax(pipeline, order);
    ASSERT_TRUE(relaxed);
    EXPECT_NEAR(time_s, relaxed->time_s, kNear)
        << "kind " << static_cast<int>(kind) << " pp " << pp << " vp " << vp << " m " << m;
  }
}

TEST(PipelineTime, LeapingOverRepeatedRoundsChangesNothing) {
  Random random(12);
  PipelineWorkspace workspace;
  for (int trial = 0; trial < 400; ++trial) {
    const auto kind = static_cast<ScheduleKind>(pick(random, 0, 2));
    const int pp = static_cast<int>(pick(random, 1, 8));
    const int vp = kind == ScheduleKind::interleaved ? static_cast<int>(pick(random, 1, 4)) : 1;
    Pipeline pipeline = random_chain(random, kind, pp, vp, pp * pick(random, 1, 120));
    // Near ties take longest to settle.
    if (trial % 3 == 0) {
      for (double& time_s : pipeline.forward_s) time_s = 1 + time_s * 1e-4;
      for (double& time_s : pipeline.backward_s) time_s = 2 + time_s * 1e-4;
    }
    // No handovers, small ones, or such as make the links the bottleneck.
    const double scale = trial % 5 == 0 ? 0 : trial % 5 == 1 ? 3 : 0.05;
    for (Transfer& transfer : pipeline.transfers) transfer.time_s *= scale;
    const double time_s = pipeline_time_s(pipeline, workspace);
    const Evaluation evaluation = evaluate(pipeline, schedule_of(pipeline), Record::times);
    ASSERT_NEAR(time_s, evaluation.iteration_time_s, 1e-11 * time_s) << "trial " << trial;
    for (std::size_t s = 0; s < evaluation.stages.size(); ++s) {
      EXPECT_NEAR(workspace.stages()[s].passes_end_s, evaluation.stages[s].passes_end_s,
                  1e-11 * time_s);
    }
  }
}

TEST(PipelineTime, LeapingOverAlikeTurnsChangesNothing) {
  Random random(77);
  PipelineWorkspace workspace;
  for (int trial = 0; trial < 500; ++trial) {
    const int pp = static_cast<int>(pick(random, 2, trial % 10 == 0 ? 17 : 6));
    const int vp = static_cast<int>(pick(random, 4, trial % 4 == 0 ? 40 : 14));
    Pipeline pipeline =
        random_chain(random, ScheduleKind::interleaved, pp, vp, pp * pick(random, 1, 5));
    if (trial % 3 == 0) {
      for (double& time_s : pipeline.forward_s) time_s = 1 + time_s * 1e-4;
      for (double& time_s : pipeline.backward_s) time_s = 2 + time_s * 1e-4;
    }
    const double scale = trial % 5 == 0 ? 0 : trial % 5 == 1 ? 3 : 0.05;
    for (Transfer& transfer : pipeline.transfers) transfer.time_s *= scale;
    // Up to a random chunk all are like one, after it like another; first and last as they were,
    // and sometimes one in between.
    const int border = static_cast<int>(pick(random, 1, vp - 1));
    const int odd_one = trial % 6 == 0 ? static_cast<int>(pick(random, 1, vp - 1)) : -1;
    const auto model_of = [&](int chunk) {
      if (chunk == 0 || chunk == vp - 1 || chunk == odd_one) return chunk;
      return chunk < border ? 1 : vp - 2;
    };
    for (int s = 0; s < pp; ++s) {
      for (int c = 0; c < vp; ++c) {
        const auto to = static_cast<std::size_t>(s * vp + c);
        const auto from = static_cast<std::size_t>(s * vp + model_of(c));
        pipeline.forward_s[to] = pipeline.forward_s[from];
        pipeline.backward_s[to] = pipeline.backward_s[from];
      }
    }
    // A handover is that of the first one over the same link, but for some.
    for (Transfer& transfer : pipeline.transfers) {
      const auto same = std::find_if(
          pipeline.transfers.begin(), pipeline.transfers.end(), [&](const Transfer& other) {
            return other.source / vp == transfer.source / vp &&
                   other.target / vp == transfer.target / vp && pick(random, 0, 19) > 0;
          });
      if (same != pipeline.transfers.end()) transfer.time_s = same->time_s;
    }
    ASSERT_TRUE(is_chain(pipeline));
    const double time_s = pipeline_time_s(pipeline, workspace);
    const Evaluation evaluation = evaluate(pipeline, schedule_of(pipeline), Record::times);
    ASSERT_NEAR(time_s, evaluation.iteration_time_s, kTimeRounding * time_s)
        << "trial " << trial << " pp " << pp << " vp " << vp;
    for (std::size_t s = 0; s < static_cast<std::size_t>(pp); ++s) {
      ASSERT_NEAR(workspace.stages()[s].passes_end_s, evaluation.stages[s].passes_end_s,
                  kTimeRounding * time_s);
    }
  }
}

TEST(PipelineTime, LongerPassesOrTransfersNeverShortenTheIteration) {
  Random random(3);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto kind = static_cast<ScheduleKind>(pick(random, 0, 2));
    const int pp = static_cast<int>(pick(random, 1, 6));
    const int vp = kind == ScheduleKind::interleaved ? static_cast<int>(pick(random, 1, 3)) : 1;
    Pipeline pipeline = random_chain(random, kind, pp, vp, pp * pick(random, 1, 3));
    const double time_s = time_of(pipeline);
    const auto chunk = static_cast<std::size_t>(pick(random, 0, pp * vp - 1));
    switch (pick(random, 0, 3)) {
      case 0:
        pipeline.forward_s[chunk] += 1;
        break;
      case 1:
        pipeline.backward_s[chunk] += 1;
        break;
      case 2:
        pipeline.sync[chunk / static_cast<std::size_t>(vp)].gradient_sync_s += 1;
        break;
      default:
        if (!pipeline.transfers.empty()) pipeline.transfers.back().time_s += 1;
    }
    EXPECT_GE(time_of(pipeline), time_s - kNear);
  }
}

TEST(PipelineTime, ScalesWithAllTimes) {
  Random random(4);
  for (int trial = 0; trial < 500; ++trial) {
    const int pp = static_cast<int>(pick(random, 1, 6));
    Pipeline pipeline =
        random_chain(random, ScheduleKind::interleaved, pp, 2, std::int64_t{2} * pp);
    const double time_s = time_of(pipeline);
    for (double& t : pipeline.forward_s) t *= 4;
    for (double& t : pipeline.backward_s) t *= 4;
    for (Transfer& transfer : pipeline.transfers) transfer.time_s *= 4;
    for (StageSync& sync : pipeline.sync) {
      sync.gradient_sync_s *= 4;
      sync.parameter_sync_s *= 4;
      sync.optimizer_s *= 4;
      sync.shared_gradient_sync_s *= 4;
    }
    EXPECT_EQ(time_of(pipeline), 4 * time_s);
  }
}

TEST(PipelineTime, IdleStagesHideTheSynchronisation) {
  // The last stage is done with its passes while the first still has a backward pass of each of the
  // others' micro-batches to wait for.
  Pipeline pipeline = even_chain(ScheduleKind::one_f_one_b, 4, 1, 8, {1, 2});
  const double time_s = time_of(pipeline);
  pipeline.sync[3] = {6, 0, 1, 0};
  EXPECT_EQ(time_of(pipeline), time_s);
  pipeline.sync[3] = {6.5, 0, 1, 0};
  EXPECT_EQ(time_of(pipeline), time_s + 0.5);
  // In the same way the last stage has 3 s before its first forward pass.
  pipeline.sync[3] = {0, 3, 1, 0};
  EXPECT_EQ(time_of(pipeline), time_s);
  pipeline.sync[3] = {0, 3.5, 1, 0};
  EXPECT_EQ(time_of(pipeline), time_s + 0.5);
  // In two buckets, the second is hidden behind the first half of the pass.
  pipeline.sync[3] = {0, 3.5, 2, 0};
  EXPECT_EQ(time_of(pipeline), time_s);
}

TEST(PipelineTime, LoadsAndFlatPipelineAgree) {
  StageLoad load;
  ChunkLoad chunk;
  chunk.forward.compute_s = 1;
  chunk.forward.tp_comm_s = 0.25;
  chunk.recompute.compute_s = 1;
  chunk.backward_input.compute_s = 1;
  chunk.backward_weight.compute_s = 0.5;
  chunk.dp_forward_s = 0.25;
  chunk.dp_backward_s = 0.5;
  load.chunks = {chunk};
  load.sync.optimizer_s = 0.125;
  const std::vector<StageLoad> loads(3, load);
  const std::vector<EdgeLoad> edges = {{{0, 0, 1, 0, 8}, 0.5}, {{1, 0, 2, 0, 8}, 0.5}};
  PipelineWorkspace workspace;
  const double time_s = pipeline_time_s(ScheduleKind::gpipe, loads, edges, 5, workspace);
  EXPECT_EQ(time_s, (5 + 3 - 1) * (1.5 + 3.0) + 4 * 0.5 + 0.125);
}

TEST(CheckPipeline, RefusesWhatHasNoSchedule) {
  const Pipeline good = even_chain(ScheduleKind::interleaved, 4, 2, 8, {1, 2});
  EXPECT_NO_THROW(check_pipeline(good, 1000));
  Pipeline bad = good;
  bad.num_micro_batches = 6;
  EXPECT_THROW(check_pipeline(bad, 1000), Error);
  bad = good;
  bad.schedule = ScheduleKind::one_f_one_b;
  EXPECT_THROW(check_pipeline(bad, 1000), Error);
  bad = good;
  bad.num_micro_batches = 0;
  EXPECT_THROW(check_pipeline(bad, 1000), Error);
  bad = good;
  bad.num_micro_batches = std::numeric_limits<std::int64_t>::max() / 4 * 4;
  EXPECT_THROW(check_pipeline(bad, 1000), Error);
  EXPECT_THROW(check_pipeline(good, 63), Error);
  EXPECT_NO_THROW(check_pipeline(good, 64));
  bad = good;
  bad.forward_s[3] = std::nan("");
  EXPECT_THROW(check_pipeline(bad, 1000), Error);
  bad = good;
  bad.backward_s[3] = -1;
  EXPECT_THROW(check_pipeline(bad, 1000), Error);
  bad = good;
  bad.transfers[0].time_s = std::numeric_limits<double>::infinity();
  EXPECT_THROW(check_pipeline(bad, 1000), Error);
}

}  // namespace
}  // namespace braid

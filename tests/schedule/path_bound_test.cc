#include "braid/schedule/path_bound.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "braid/schedule/evaluate.h"
#include "braid/schedule/pipeline_time.h"

#include "schedule/instances.h"

namespace braid {
namespace {

TEST(PathBound, NoOrderOfPassesEndsBefore) {
  Random random(811);
  PathBoundWorkspace workspace;
  PipelineWorkspace timing;
  int tight = 0;
  int close = 0;
  for (int i = 0; i < 3000; ++i) {
    const int pp = static_cast<int>(pick(random, 1, 7));
    Pipeline pipeline = random_graph(random, pp, 1, pick(random, 1, 9));
    std::sort(pipeline.transfers.begin(), pipeline.transfers.end(),
              [](const Transfer& a, const Transfer& b) { return a.source < b.source; });
    if (i % 3 == 0) hold_for_sends(pipeline);
    const double bound_s = pipeline_path_bound_s(pipeline, workspace);
    const WorkOrder order = random_schedule(random, pipeline);
    ASSERT_LE(bound_s, evaluate(pipeline, order, Record::times).iteration_time_s) << i;
    const double time_s = pipeline_time_s(pipeline, timing);
    ASSERT_LE(bound_s, time_s) << i;
    tight += bound_s > time_s * (1 - 1e-8) ? 1 : 0;
    close += bound_s > time_s * 0.8 ? 1 : 0;
  }
  EXPECT_GT(tight, 500);
  EXPECT_GT(close, 1500);
}

}  // namespace
}  // namespace braid

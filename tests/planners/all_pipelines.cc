#include "planners/all_pipelines.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "braid/base/index.h"
#include "braid/plan/shared_gradients.h"
#include "braid/profile/sharded_options.h"
#include "braid/system/links.h"

namespace braid::test {

AllPipelines::AllPipelines(const Job& job, const System& system, const SpaceOptions& space)
    : job_(job),
      space_(space),
      costs_(job, system, "all"),
      split_(split_limits(*job.graph)),
      layers_(static_cast<std::int32_t>(job.graph->layers.size())) {
  if (job.sharding == ShardingSource::automatic) {
    split_.automatic = auto_degrees(*job.graph, system.device_count);
  }
  assert(costs_.runs().size() <= 2 && layers_ < 15 && !space.allow_offload);
}

double AllPipelines::least_s() {
  prune_ = true;
  run();
  return best_s_;
}

void AllPipelines::for_each(const Visit& visit) {
  prune_ = false;
  visit_ = visit;
  run();
}

void AllPipelines::run() {
  for (round_ = 1; round_ <= job_.global_batch; ++round_) {
    if (job_.global_batch % round_ == 0) add(layers_);
  }
}

std::vector<Configuration> AllPipelines::ways_of(const Configuration& form) const {
  std::vector<Configuration> ways;
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (space_.recompute.value_or(recompute) != recompute) continue;
    for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters}) {
      if (space_.zero ? *space_.zero != zero : form.dp * form.cp == 1 && zero != Zero::none)
        continue;
      Configuration way = form;
      way.recompute = recompute;
      way.zero = zero;
      ways.push_back(way);
    }
  }
  return ways;
}

/// `first` of its shard groups on the first kind of devices, the others on the second; null where
/// they do not lie within nodes or fill them.
std::unique_ptr<AllPipelines::Site> AllPipelines::make_site(const Configuration& form,
                                                            std::int64_t first) const {
  const std::vector<DeviceRun>& runs = costs_.runs();
  const std::array<std::int64_t, 2> counts = {first, form.dp - first};
  const std::int64_t size = std::int64_t{form.tp} * form.cp;
  auto site = std::make_unique<Site>();
  for (std::size_t r = 0; r < 2; ++r) {
    const std::int64_t takes = counts[r] * size;
    site->takes[r] = takes;
    if (takes == 0) continue;
    if (runs.size() <= r || used_[r] + takes > runs[r].count) return nullptr;
    const std::int64_t per_node = runs[r].devices_per_node;
    const std::int64_t start = runs[r].count - used_[r] - takes;
    if (start % std::min(size, per_node) != 0) return nullptr;
    if (size > per_node ? size % per_node != 0 : per_node % size != 0) return nullptr;
    for (std::int64_t d = 0; d < takes; ++d) site->devices.push_back(runs[r].first + start + d);
  }
  for (const Configuration& run : ways_of(form)) {
    Way& way = site->ways.emplace_back();
    way.form = run;
    way.saves_memory = (!space_.recompute && run.recompute != Recompute::none) ||
                       (!space_.zero && run.zero >= Zero::gradients);
  }
  return site;
}

void AllPipelines::make_sites(Configuration form, std::vector<Site*>& made) {
  for (const ShardingKind sharding :
       {ShardingKind::manual, ShardingKind::fastest, ShardingKind::smallest}) {
    const bool manual = sharding == ShardingKind::manual;
    form.sharding = sharding;
    form.sequence_parallel = form.tp > 1 && manual;
    if (form.tp == 1 && !manual) continue;
    if (manual && !divides_manually(split_, form.tp)) continue;
    if (!manual && std::count(split_.automatic.begin(), split_.automatic.end(), form.tp) == 0)
      continue;
    if (!refusal(split_, to_execution(form)).empty()) continue;
    for (std::int64_t first = 0; first <= form.dp; ++first) {
      if (!manual && first != 0 && first != form.dp) continue;
      std::unique_ptr<Site> site = make_site(form, first);
      if (site == nullptr) continue;
      const std::size_t group = groups_of(costs_.system(), site->devices).front();
      if (!manual && !costs_.is_distinct(form, group)) continue;
      site->number = all_sites_.size();
      made.push_back(site.get());
      all_sites_.push_back(std::move(site));
    }
  }
}

/// Context parallelism is as asked for, or inside a node together with tensor parallelism.
bool AllPipelines::is_tried(const Configuration& form) const {
  if (!space_.cp.list().empty() || form.cp == 1) return space_.cp.allows(form.cp);
  const std::vector<DeviceRun>& runs = costs_.runs();
  return space_.cp.allows(form.cp) &&
         std::any_of(runs.begin(), runs.end(),
                     [&](const DeviceRun& run) { return run.devices_per_node % form.cp == 0; }) &&
         std::any_of(runs.begin(), runs.end(), [&](const DeviceRun& run) {
           return form.cp * form.tp <= run.devices_per_node;
         });
}

const std::vector<AllPipelines::Site*>& AllPipelines::sites() {
  const auto [found, fresh] = sites_.try_emplace({round_, used_[0], used_[1]});
  for (int dp = 1; fresh && dp <= round_ && dp <= 4; ++dp) {
    if (round_ % dp != 0 || !space_.dp.allows(dp)) continue;
    for (int tp = 1; tp <= 4; ++tp) {
      if (!space_.tp.allows(tp)) continue;
      Configuration form;
      form.dp = dp;
      form.tp = tp;
      form.micro_batch = static_cast<int>(round_ / dp);
      for (form.cp = 1; form.cp * tp <= 4; ++form.cp) {
        if (is_tried(form)) make_sites(form, found->second);
      }
    }
  }
  return found->second;
}

AllPipelines::Piece& AllPipelines::piece(Site& site, std::size_t way, std::int32_t begin,
                                         std::int32_t end, bool only) {
  Way& run = site.ways[way];
  const std::size_t which = only ? 1 : 0;
  if (run.plan[which] == nullptr) {
    std::vector<PlacedStage> alone(only ? 1 : 2);
    for (PlacedStage& stage : alone) stage = {0, layers_, run.form, site.devices};
    run.plan[which] = std::make_unique<const Plan>(costs_.plan(alone));
    run.context[which] = std::make_unique<const StageContext>(*run.plan[which], 0);
    run.pieces[which].resize(at((layers_ + 1) * (layers_ + 1)));
  }
  Piece& piece = run.pieces[which][at(begin * (layers_ + 1) + end)];
  if (piece.known) return piece;
  piece.known = true;
  const Chunk& all = run.plan[which]->stages.front().chunks.front();
  Chunk chunk;
  chunk.layers.assign(all.layers.begin() + begin, all.layers.begin() + end);
  chunk.options.assign(all.options.begin() + begin, all.options.begin() + end);
  piece.totals = totals_of(run.plan[which]->profile, chunk);
  piece.load = load_of({&piece.totals, 1}, run.context[which]->data_parallel());
  return piece;
}

bool AllPipelines::fits(Site& site, std::size_t way, const Chosen& stage, bool only) {
  Piece& of = piece(site, way, stage.begin, stage.end, only);
  const std::int64_t in_flight = std::min(job_.global_batch / round_, stage.depth);
  if (of.fits.size() <= at(in_flight)) of.fits.resize(at(in_flight) + 1, -1);
  std::int8_t& known = of.fits[at(in_flight)];
  if (known < 0) {
    const Way& run = site.ways[way];
    const std::size_t which = only ? 1 : 0;
    const MemoryBreakdown memory =
        memory_of(of.totals, in_flight, run.context[which]->data_parallel());
    known = memory.device_total() <= usable_bytes_of_stage(*run.plan[which], 0) ? 1 : 0;
  }
  return known > 0;
}

/// Stages on the longest way from `stage` to the end, itself included.
std::int64_t AllPipelines::depth_of(const Chosen& stage) const {
  std::int64_t depth = 1;
  for (const Chosen& behind : stages_) {
    if (leads(stage, behind)) depth = std::max(depth, behind.depth + 1);
  }
  return depth;
}

bool AllPipelines::leads(const Chosen& from, const Chosen& to) const {
  return std::any_of(costs_.chain().edges.begin(), costs_.chain().edges.end(),
                     [&](const ProfileEdge& edge) {
                       return edge.source >= from.begin && edge.source < from.end &&
                              edge.target >= to.begin && edge.target < to.end;
                     });
}

PlacedStage AllPipelines::placed(const Chosen& stage) const {
  return {stage.begin, stage.end, stage.site->ways[stage.way].form, stage.site->devices};
}

EdgeLoad AllPipelines::handover(const Chosen& from, const Chosen& to) {
  std::uint64_t key = from.site->number << 16 | to.site->number;
  for (const std::int32_t layer : {from.begin, from.end, to.begin, to.end}) {
    key = key * 16 + static_cast<std::uint64_t>(layer);
  }
  const auto [found, fresh] = handovers_.try_emplace(key);
  if (fresh) {
    const std::array<PlacedStage, 2> both = {placed(from), placed(to)};
    const std::vector<EdgeLoad> loads = edge_loads(costs_.plan(both));
    assert(loads.size() == 1);
    found->second = loads.front();
  }
  return found->second;
}

/// Of shared parameters, which only the first and the last layer hold.
double AllPipelines::exchange_s(const Chosen& first, const Chosen& last) {
  const std::uint64_t key =
      (first.site->number * 64 + first.way) << 32 | (last.site->number * 64 + last.way);
  const auto [found, fresh] = exchanges_.try_emplace(key, 0);
  if (fresh) {
    std::array<PlacedStage, 2> ends = {placed(first), placed(last)};
    ends[0].begin = 0;
    ends[0].end = 1;
    ends[1].begin = layers_ - 1;
    ends[1].end = layers_;
    found->second = shared_gradient_sync_s(costs_.plan(ends)).front();
  }
  return found->second;
}

void AllPipelines::finish() {
  if (!space_.pp.allows(std::ssize(stages_))) return;
  pipeline_.schedule = ScheduleKind::one_f_one_b;
  pipeline_.pp = static_cast<int>(stages_.size());
  pipeline_.num_micro_batches = job_.global_batch / round_;
  pipeline_.forward_s.clear();
  pipeline_.backward_s.clear();
  pipeline_.sync.clear();
  pipeline_.transfers.clear();
  const std::size_t n = stages_.size();
  for (std::size_t s = 0; s < n; ++s) {
    const Chosen& stage = stages_[n - 1 - s];
    pipeline_.forward_s.push_back(stage.piece->load.chunks.front().forward_s());
    pipeline_.backward_s.push_back(stage.piece->load.chunks.front().backward_s());
    pipeline_.sync.push_back(stage.piece->load.sync);
    for (std::size_t t = s + 1; t < n; ++t) {
      const Chosen& behind = stages_[n - 1 - t];
      if (!leads(stage, behind)) continue;
      const EdgeLoad load = handover(stage, behind);
      pipeline_.transfers.push_back({static_cast<std::int32_t>(s), static_cast<std::int32_t>(t),
                                     load.transfer_s, load.backward_transfer_s});
    }
  }
  if (n > 1 && !costs_.chain().shared.empty()) {
    const double sum_s = exchange_s(stages_.back(), stages_.front());
    pipeline_.sync.front().shared_gradient_sync_s = sum_s;
    pipeline_.sync.back().shared_gradient_sync_s = sum_s;
  }
  const double time_s = pipeline_time_s(pipeline_, workspace_);
  ++simulated_;
  best_s_ = std::min(best_s_, time_s);
  if (!visit_) return;
  std::vector<PlacedStage> stages;
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) {
    stages.push_back(placed(*stage));
  }
  visit_(stages, time_s);
}

/// `stage` in front of the others, in all ways.
void AllPipelines::add_stage(Chosen& stage) {
  Site& site = *stage.site;
  const bool only = stage.begin == 0 && stage.end == layers_;
  bool fast = false;
  for (const bool saves_memory : {false, true}) {
    if (saves_memory && fast) break;
    for (stage.way = 0; stage.way < site.ways.size(); ++stage.way) {
      if (site.ways[stage.way].saves_memory != saves_memory) continue;
      if (!fits(site, stage.way, stage, only)) continue;
      fast = true;
      stage.piece = &piece(site, stage.way, stage.begin, stage.end, only);
      const ChunkLoad& load = stage.piece->load.chunks.front();
      const auto m = static_cast<double>(job_.global_batch / round_);
      if (prune_ && m * (load.forward_s() + load.backward_s()) >= best_s_) continue;
      stages_.push_back(stage);
      add(stage.begin);
      stages_.pop_back();
    }
  }
}

void AllPipelines::add(std::int32_t right) {
  if (right == 0) {
    finish();
    return;
  }
  for (Site* site : sites()) {
    for (std::size_t r = 0; r < 2; ++r) used_[r] += site->takes[r];
    Chosen stage;
    stage.site = site;
    stage.end = right;
    for (stage.begin = right - 1; stage.begin >= 0; --stage.begin) {
      stage.depth = depth_of(stage);
      add_stage(stage);
    }
    for (std::size_t r = 0; r < 2; ++r) used_[r] -= site->takes[r];
  }
}

}  // namespace braid::test

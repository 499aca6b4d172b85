#include "schedule/instances.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace braid {
namespace {

std::int32_t chunk_at(int position, int pp, int vp) { return position % pp * vp + position / pp; }

void join_chain(Pipeline& pipeline) {
  for (int q = 0; q + 1 < pipeline.pp * pipeline.vp; ++q) {
    pipeline.transfers.push_back(
        {chunk_at(q, pipeline.pp, pipeline.vp), chunk_at(q + 1, pipeline.pp, pipeline.vp), 0});
  }
}

Pipeline random_times(Random& random, ScheduleKind schedule, int pp, int vp, std::int64_t m) {
  Pipeline pipeline;
  pipeline.schedule = schedule;
  pipeline.pp = pp;
  pipeline.vp = vp;
  pipeline.num_micro_batches = m;
  for (int i = 0; i < pp * vp; ++i) {
    pipeline.forward_s.push_back(pick_time(random, 1, 24));
    pipeline.backward_s.push_back(pick_time(random, 1, 40));
  }
  const bool synced = pick(random, 0, 2) > 0;
  for (int s = 0; s < pp; ++s) {
    StageSync sync;
    if (synced) {
      sync.gradient_sync_s = pick_time(random, 0, 100);
      sync.parameter_sync_s = pick_time(random, 0, 100);
      sync.optimizer_s = pick_time(random, 0, 10);
      sync.buckets = static_cast<int>(pick(random, 1, 5));
      if (sync.buckets % 2 == 0) sync.shared_gradient_sync_s = 3 * sync.optimizer_s;
    }
    pipeline.sync.push_back(sync);
  }
  return pipeline;
}

void random_transfers(Random& random, Pipeline& pipeline) {
  const std::int64_t most = pick(random, 0, 30);
  for (Transfer& transfer : pipeline.transfers) transfer.time_s = pick_time(random, 0, most);
}

}  // namespace

Pipeline even_chain(ScheduleKind schedule, int pp, int vp, std::int64_t m, const EvenTimes& each) {
  Pipeline pipeline;
  pipeline.schedule = schedule;
  pipeline.pp = pp;
  pipeline.vp = vp;
  pipeline.num_micro_batches = m;
  pipeline.forward_s.assign(static_cast<std::size_t>(pp) * static_cast<std::size_t>(vp),
                            each.forward_s);
  pipeline.backward_s.assign(pipeline.forward_s.size(), each.backward_s);
  pipeline.sync.assign(static_cast<std::size_t>(pp), {});
  join_chain(pipeline);
  for (Transfer& transfer : pipeline.transfers) transfer.time_s = each.transfer_s;
  return pipeline;
}

Pipeline random_chain(Random& random, ScheduleKind schedule, int pp, int vp, std::int64_t m) {
  Pipeline pipeline = random_times(random, schedule, pp, vp, m);
  join_chain(pipeline);
  random_transfers(random, pipeline);
  return pipeline;
}

Pipeline random_graph(Random& random, int pp, int vp, std::int64_t m) {
  Pipeline pipeline = random_times(random, ScheduleKind::one_f_one_b, pp, vp, m);
  for (int to = 1; to < pp * vp; ++to) {
    for (int from = 0; from < to; ++from) {
      if (pick(random, 0, to) > 1) continue;
      pipeline.transfers.push_back({chunk_at(from, pp, vp), chunk_at(to, pp, vp), 0});
    }
  }
  std::shuffle(pipeline.transfers.begin(), pipeline.transfers.end(), random);
  random_transfers(random, pipeline);
  return pipeline;
}

WorkOrder random_schedule(Random& random, const Pipeline& pipeline) {
  using Key = std::tuple<WorkKind, std::int32_t, std::int64_t>;
  std::map<Key, int> missing;
  const auto chunks = static_cast<std::int32_t>(pipeline.forward_s.size());
  for (std::int64_t k = 0; k < pipeline.num_micro_batches; ++k) {
    for (std::int32_t c = 0; c < chunks; ++c) {
      missing[{WorkKind::forward, c, k}];
      missing[{WorkKind::backward, c, k}] = 1;
    }
    for (const Transfer& transfer : pipeline.transfers) {
      ++missing[{WorkKind::forward, transfer.target, k}];
      ++missing[{WorkKind::backward, transfer.source, k}];
    }
  }
  std::vector<Key> ready;
  for (const auto& [key, count] : missing) {
    if (count == 0) ready.push_back(key);
  }
  WorkOrder order;
  order.devices.resize(static_cast<std::size_t>(pipeline.pp));
  const auto release = [&](const Key& key) {
    if (--missing[key] == 0) ready.push_back(key);
  };
  while (!ready.empty()) {
    const auto index =
        static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(ready.size()) - 1));
    const auto [kind, chunk, k] = ready[index];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(index));
    order.devices[static_cast<std::size_t>(chunk / pipeline.vp)].push_back({kind, chunk, k});
    if (kind == WorkKind::forward) release({WorkKind::backward, chunk, k});
    for (const Transfer& transfer : pipeline.transfers) {
      if (kind == WorkKind::forward && transfer.source == chunk) {
        release({kind, transfer.target, k});
      }
      if (kind == WorkKind::backward && transfer.target == chunk) {
        release({kind, transfer.source, k});
      }
    }
  }
  return order;
}

}  // namespace braid

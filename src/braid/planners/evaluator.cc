#include "braid/planners/evaluator.h"

#include <algorithm>
#include <utility>

#include "braid/system/links.h"

namespace braid {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Levels at which the first and the last devices of two stages meet: what transfer_time_s depends
/// on beside the bytes.
std::pair<std::size_t, std::size_t> crossing(const Parallelism& parallel, const System& system,
                                             int source, int target) {
  const std::int64_t distance = (target - source) * stride_of(parallel, Axis::pp);
  const std::int64_t first = first_device(parallel, source);
  const std::int64_t last = first + (parallel.tp - 1) * stride_of(parallel, Axis::tp) +
                            (parallel.cp - 1) * stride_of(parallel, Axis::cp) +
                            (parallel.dp - 1) * stride_of(parallel, Axis::dp);
  return {level_between(system, first, first + distance),
          level_between(system, last, last + distance)};
}

}  // namespace

Evaluator::Form& Evaluator::form_of(const Configuration& c) {
  const FormKey key{c.tp, c.cp, c.ep, c.pp, c.dp, c.order};
  if (last_ == nullptr || key != last_key_) {
    const auto [entry, is_new] = forms_.try_emplace(key);
    Form& form = entry->second;
    if (is_new) {
      form.parallel = to_parallelism(c);
      form.context = data_parallel_context(form.parallel, chain_.job->precision, *chain_.system);
      form.context.memo = &form.memo;
      std::vector<std::pair<std::size_t, std::size_t>> kinds;
      for (int s = 0; c.pp > 1 && s < c.pp; ++s) {
        const auto levels = crossing(form.parallel, *chain_.system, s, (s + 1) % c.pp);
        const auto same = std::find(kinds.begin(), kinds.end(), levels);
        form.handover_kind.push_back(static_cast<std::uint8_t>(same - kinds.begin()));
        if (same == kinds.end()) {
          kinds.push_back(levels);
          form.handovers.push_back(s);
        }
      }
    }
    last_key_ = key;
    last_ = &form;
  }
  last_->context.zero = c.zero;
  last_->context.offload_optimizer = c.offload_optimizer;
  last_->context.offload_weights = c.offload_weights;
  return *last_;
}

const DataParallelContext& Evaluator::context(const Configuration& configuration) {
  return form_of(configuration).context;
}

double Evaluator::handover_s(const Form& form, std::size_t kind, double bytes) const {
  const int source = form.handovers[kind];
  return transfer_time_s(form.parallel, *chain_.system, source, (source + 1) % form.parallel.pp,
                         bytes);
}

void Evaluator::fill_handovers(const Configuration& configuration, double bytes,
                               std::vector<double>& handovers_s) {
  const Form& form = form_of(configuration);
  handovers_s.assign(at(configuration.pp - 1), 0);
  hop_s_.resize(form.handovers.size());
  for (std::size_t k = 0; k < hop_s_.size(); ++k) hop_s_[k] = handover_s(form, k, bytes);
  for (std::size_t s = 0; s < handovers_s.size(); ++s) {
    handovers_s[s] = hop_s_[form.handover_kind[s]];
  }
}

Evaluator::Memory Evaluator::memory(const Configuration& configuration, const Layout& layout) {
  DataParallelContext& context = form_of(configuration).context;
  const MemoryForm form = memory_form(context, 0);
  context.offload_optimizer = true;
  const MemoryForm without_optimizer = memory_form(context, 0);
  context.offload_optimizer = configuration.offload_optimizer;
  Memory memory;
  // Of stages that are alike, the first has most micro-batches in flight.
  for (const Layout::StageKind& kind : layout.stage_kinds) {
    const std::int64_t in_flight =
        in_flight_chunks(configuration.schedule, configuration.pp, kind.first_stage,
                         configuration.vp, configuration.num_micro_batches);
    const double bytes = device_bytes(kind.memory, static_cast<double>(in_flight), form);
    if (bytes > memory.needed_bytes) {
      memory.tightest_stage = kind.first_stage;
      memory.needed_bytes = bytes;
    }
    memory.needed_without_optimizer_bytes =
        std::max(memory.needed_without_optimizer_bytes,
                 device_bytes(kind.memory, static_cast<double>(in_flight), without_optimizer));
    memory.host_fits = memory.host_fits && host_bytes(kind.memory, static_cast<double>(in_flight),
                                                      form) <= form.host_available_bytes;
  }
  return memory;
}

double Evaluator::time_s(const Configuration& configuration, const Layout& layout) {
  Form& form = form_of(configuration);
  if (configuration.pp > 1 && chain_.hop_bytes.empty()) {
    return time_graph_s(configuration, layout, form);
  }
  fill_chain(configuration, layout, form);
  return chain_time_s(times_, workspace_);
}

void Evaluator::fill_chain(const Configuration& configuration, const Layout& layout, Form& form) {
  passes_.clear();
  for (const ChunkTotals& totals : layout.chunk_kinds) {
    const ChunkLoad load = chunk_load(totals, form.context);
    passes_.push_back({load.forward_s(), load.backward_s()});
  }
  syncs_.clear();
  for (const Layout::StageKind& kind : layout.stage_kinds) {
    syncs_.push_back(stage_sync(kind.parameters, form.context));
  }
  times_.schedule = configuration.schedule;
  times_.pp = configuration.pp;
  times_.vp = configuration.vp;
  times_.num_micro_batches = configuration.num_micro_batches;
  const std::size_t chunks = layout.kind_of_chunk.size();
  times_.forward_s.resize(chunks);
  times_.backward_s.resize(chunks);
  times_.hop_s.resize(chunks);
  for (std::size_t i = 0; i < chunks; ++i) {
    const Pass& pass = passes_[at(layout.kind_of_chunk[i])];
    times_.forward_s[i] = pass.forward_s;
    times_.backward_s[i] = pass.backward_s;
  }
  times_.sync.resize(at(configuration.pp));
  for (std::size_t s = 0; s < times_.sync.size(); ++s) {
    times_.sync[s] = syncs_[at(layout.kind_of_stage[s])];
  }

  // Cuts are mostly alike, so that each kind of handover is timed once.
  hop_bytes_.assign(form.handovers.size(), -1);
  hop_s_.resize(form.handovers.size());
  form.parallel.micro_batch = configuration.micro_batch;
  form.parallel.sequence_parallel = configuration.sequence_parallel;
  std::size_t stage = 0;
  for (std::size_t i = 0; i + 1 < chunks; ++i) {
    const double bytes =
        boundary_bytes({0, 0, chain_.hop_bytes[at(layout.ends[i] - 1)]}, form.parallel);
    const std::size_t kind = form.handover_kind[stage];
    if (hop_bytes_[kind] != bytes) {
      hop_bytes_[kind] = bytes;
      hop_s_[kind] = handover_s(form, kind, bytes);
    }
    times_.hop_s[i] = hop_s_[kind];
    if (++stage == times_.sync.size()) stage = 0;
  }
  times_.hop_s[chunks - 1] = 0;
}

namespace {

/// Chunk of a layer, for edges that skip stages.
std::size_t chunk_of(const Ends& ends, std::int32_t layer) {
  return at(std::upper_bound(ends.begin(), ends.end(), layer) - ends.begin());
}

/// What passes between chunks, for each micro-batch, in order of source and target.
void fill_transfers(const ChainJob& chain, const Parallelism& parallel, const Ends& ends,
                    std::vector<EdgeLoad>& transfers) {
  transfers.clear();
  for (const ProfileEdge& edge : chain.edges) {
    const std::size_t from = chunk_of(ends, edge.source);
    const std::size_t to = chunk_of(ends, edge.target);
    if (from == to) continue;
    ChunkEdge part;
    part.source_stage = static_cast<std::int32_t>(from) % parallel.pp;
    part.source_chunk = static_cast<std::int32_t>(from) / parallel.pp;
    part.target_stage = static_cast<std::int32_t>(to) % parallel.pp;
    part.target_chunk = static_cast<std::int32_t>(to) / parallel.pp;
    part.bytes = boundary_bytes(edge, parallel);
    transfers.push_back({part, 0});
  }
  const auto ids = [](const EdgeLoad& load) {
    return std::tie(load.edge.source_stage, load.edge.source_chunk, load.edge.target_stage,
                    load.edge.target_chunk);
  };
  std::stable_sort(transfers.begin(), transfers.end(),
                   [&](const EdgeLoad& a, const EdgeLoad& b) { return ids(a) < ids(b); });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (kept > 0 && ids(transfers[kept - 1]) == ids(transfers[i])) {
      transfers[kept - 1].edge.bytes += transfers[i].edge.bytes;
    } else {
      transfers[kept++] = transfers[i];
    }
  }
  transfers.resize(kept);
  for (EdgeLoad& load : transfers) {
    if (load.edge.source_stage != load.edge.target_stage) {
      load.transfer_s = transfer_time_s(parallel, *chain.system, load.edge.source_stage,
                                        load.edge.target_stage, load.edge.bytes);
    }
  }
}

}  // namespace

double Evaluator::time_graph_s(const Configuration& configuration, const Layout& layout,
                               Form& form) {
  loads_.resize(at(configuration.pp));
  for (int s = 0; s < configuration.pp; ++s) {
    StageLoad& load = loads_[at(s)];
    load.chunks.clear();
    for (int c = 0; c < configuration.vp; ++c) {
      const auto kind = layout.kind_of_chunk[at(std::int64_t{c} * configuration.pp + s)];
      load.chunks.push_back(chunk_load(layout.chunk_kinds[at(kind)], form.context));
    }
    load.sync =
        stage_sync(layout.stage_kinds[at(layout.kind_of_stage[at(s)])].parameters, form.context);
  }
  form.parallel.micro_batch = configuration.micro_batch;
  form.parallel.sequence_parallel = configuration.sequence_parallel;
  fill_transfers(chain_, form.parallel, layout.ends, transfers_);
  return pipeline_time_s(configuration.schedule, loads_, transfers_,
                         configuration.num_micro_batches, pipeline_);
}

}  // namespace braid

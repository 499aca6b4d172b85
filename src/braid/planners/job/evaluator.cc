#include "braid/planners/job/evaluator.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/plan/node_replicas.h"
#include "braid/plan/shared_gradients.h"
#include "braid/system/links.h"

namespace braid {
namespace {

/// Levels at which the first and the last devices of two stages meet: what handing over
/// depends on beside the bytes.
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

int Evaluator::replicas_of(const Configuration& configuration) const {
  if (!chain_.job->trainer.does.node_replicas) return 1;
  return node_replicas(*chain_.system, to_parallelism(configuration));
}

Evaluator::Form& Evaluator::form_of(const Configuration& c) {
  const FormKey key{c.tp, c.cp, c.ep, c.whole_experts, c.pp, c.dp, c.order, replicas_of(c)};
  if (last_ == nullptr || key != last_key_) {
    const auto [entry, is_new] = forms_.try_emplace(key);
    Form& form = entry->second;
    if (is_new) {
      form.parallel = to_parallelism(c);
      form.parallel.replicate = replicas_of(c);
      form.context = data_parallel_context(form.parallel, chain_.job->precision, *chain_.system,
                                           chain_.job->trainer.does);
      form.context.memo = &form.memo;
      if (chain_.weight_shapes != nullptr) {
        form.placeholder_bytes =
            chain_.weight_shapes->bytes(to_execution(c), chain_.job->precision.weight);
        form.context.placeholder_bytes = &form.placeholder_bytes;
      }
      std::vector<std::pair<std::size_t, std::size_t>> kinds;
      for (int s = 0; c.pp > 1 && s < c.pp; ++s) {
        const auto levels = crossing(form.parallel, *chain_.system, s, (s + 1) % c.pp);
        const auto same = std::find(kinds.begin(), kinds.end(), levels);
        form.handover_kind.push_back(static_cast<std::uint8_t>(same - kinds.begin()));
        if (same == kinds.end()) {
          kinds.push_back(levels);
          form.handovers.push_back({s});
        }
      }
    }
    last_key_ = key;
    last_ = &form;
  }
  if (last_->senders == 0 || last_->parallel.schedule != c.schedule || last_->parallel.vp != c.vp) {
    last_->parallel.schedule = c.schedule;
    last_->parallel.vp = c.vp;
    const int senders = stages_sending(last_->parallel, *chain_.system);
    if (senders != last_->senders) {
      for (Form::Handover& handover : last_->handovers) handover.bytes = -1;
    }
    last_->senders = senders;
  }
  last_->context.zero = c.zero;
  last_->context.offload_optimizer = c.offload_optimizer;
  last_->context.offload_weights = c.offload_weights;
  return *last_;
}

const DataParallelContext& Evaluator::context(const Configuration& configuration) {
  return form_of(configuration).context;
}

const DataParallelContext& Evaluator::context(const Configuration& configuration, Zero zero) {
  DataParallelContext& context = form_of(configuration).context;
  context.zero = zero;
  return context;
}

double Evaluator::handover_s(Form& form, std::size_t kind, double bytes) const {
  Form::Handover& handover = form.handovers[kind];
  if (handover.bytes != bytes) {
    handover.bytes = bytes;
    handover.time_s =
        transfer_time_s(form.parallel, *chain_.system, handover.source,
                        (handover.source + 1) % form.parallel.pp, bytes, form.senders);
  }
  return handover.time_s;
}

void Evaluator::fill_handovers(const Configuration& configuration, double bytes,
                               std::vector<double>& handovers_s) {
  Form& form = form_of(configuration);
  handovers_s.resize(at(configuration.pp - 1));
  for (std::size_t s = 0; s < handovers_s.size(); ++s) {
    handovers_s[s] = handover_s(form, form.handover_kind[s], bytes);
  }
}

Evaluator::Memory Evaluator::memory(const Configuration& configuration, Layout& layout) {
  if (configuration.vp > 1) {
    fill_stash_peaks(configuration.pp, configuration.num_micro_batches, layout);
  }
  return memory(configuration, std::span<const Layout::StageKind>(layout.stage_kinds));
}

Evaluator::Memory Evaluator::memory(const Configuration& configuration,
                                    std::span<const Layout::StageKind> stages) {
  DataParallelContext& context = form_of(configuration).context;
  const MemoryForm form = memory_form(context, 0);
  context.offload_optimizer = true;
  const MemoryForm without_optimizer = memory_form(context, 0);
  context.offload_optimizer = configuration.offload_optimizer;
  Memory memory;
  memory.host_available_bytes = form.host_available_bytes;
  // Of stages that are alike, the first has most micro-batches in flight.
  for (const Layout::StageKind& kind : stages) {
    StashPeak peak = kind.peak;
    if (configuration.vp == 1) {
      peak = stash_peak(
          {kind.memory.stash_bytes - kind.memory.offloaded_bytes, kind.memory.offloaded_bytes},
          in_flight_chunks(configuration.schedule, configuration.pp, kind.first_stage, 1,
                           configuration.num_micro_batches));
    }
    const double bytes = standing_bytes(kind.memory, form) + peak.device_bytes();
    if (bytes > memory.needed_bytes) {
      memory.tightest_stage = kind.first_stage;
      memory.needed_bytes = bytes;
    }
    memory.needed_without_optimizer_bytes =
        std::max(memory.needed_without_optimizer_bytes,
                 standing_bytes(kind.memory, without_optimizer) + peak.device_bytes());
    const double host_bytes = standing_host_bytes(kind.memory, form) + peak.offloaded_bytes;
    if (host_bytes > memory.host_needed_bytes) {
      memory.host_stage = kind.first_stage;
      memory.host_needed_bytes = host_bytes;
    }
  }
  return memory;
}

double Evaluator::time_s(const Configuration& configuration, const Layout& layout) {
  Form& form = form_of(configuration);
  fill_kinds(configuration, layout, form);
  return filled_time_s(configuration, layout, form, kInfinity);
}

double Evaluator::time_s(const Configuration& configuration, const Layout& layout,
                         std::span<const double> handover_s, double cutoff_s) {
  Form& form = form_of(configuration);
  fill_kinds(configuration, layout, form);
  if (busy_path_s(configuration, layout, handover_s) >= cutoff_s) return kInfinity;
  return filled_time_s(configuration, layout, form, cutoff_s);
}

double Evaluator::filled_time_s(const Configuration& configuration, const Layout& layout,
                                Form& form, double cutoff_s) {
  if (is_graph(configuration)) return time_graph_s(configuration, layout, form, cutoff_s);
  return chain_time_s(chain_of(configuration, layout, form), workspace_);
}

double Evaluator::busy_path_s(const Configuration& configuration, const Layout& layout,
                              std::span<const double> handover_s) const {
  const auto first_chunk_of = [&](int s) { return passes_[at(layout.kind_of_chunk[at(s)])]; };
  const auto tail_of = [&](int s) {
    return tail_s(syncs_[at(layout.kind_of_stage[at(s)])], first_chunk_of(s).backward_s);
  };
  const Pass& first = first_chunk_of(0);
  const double first_tail_s = tail_of(0);
  double up_s =
      std::max(0.0, parameters_ready_s(syncs_[at(layout.kind_of_stage[0])], first.forward_s) -
                        first.forward_s);
  double down_s = 0;
  double longest_s = 0;
  std::int32_t kind = -1;
  double work_s = 0;  // Of a stage of this kind.
  for (int s = 0; s < configuration.pp; ++s) {
    if (kind != layout.kind_of_stage[at(s)]) {
      kind = layout.kind_of_stage[at(s)];
      work_s = 0;
      for (const auto& [chunk_kind, chunks] : layout.chunk_runs_of(at(kind))) {
        const Pass& pass = passes_[at(chunk_kind)];
        work_s += chunks * (pass.forward_s + pass.backward_s);
      }
      work_s *= static_cast<double>(configuration.num_micro_batches);
    }
    longest_s = std::max(longest_s, up_s + work_s + std::max(tail_of(s), down_s + first_tail_s));
    if (is_graph(configuration) || s + 1 == configuration.pp) continue;
    up_s += first_chunk_of(s).forward_s + handover_s[at(s)];
    down_s += first_chunk_of(s).backward_s + handover_s[at(s)];
  }
  return longest_s * kBelowTolerance;
}

void Evaluator::fill_kinds(const Configuration& configuration, const Layout& layout,
                           const Form& form) {
  passes_.clear();
  for (const ChunkTotals& totals : layout.chunk_kinds) {
    const ChunkLoad load = chunk_load(totals, form.context);
    passes_.push_back({load.forward_s(), load.backward_s()});
  }
  syncs_.clear();
  for (std::size_t k = 0; k < layout.stage_kinds.size(); ++k) {
    syncs_.push_back(stage_sync(layout.stage_kinds[k].parameters, form.context));
    if (configuration.vp == 1) continue;
    gradients_.clear();
    for (const auto& [chunk, chunks] : layout.chunk_runs_of(k)) {
      gradients_.push_back({{}, passes_[at(chunk)].backward_s, chunks});
      gradients_.back().parameters.add(layout.chunk_kinds[at(chunk)]);
    }
    sync_by_chunk(
        gradients_,
        last_passes_of(configuration.schedule, configuration.pp, configuration.num_micro_batches),
        form.context, syncs_.back());
  }
}

double Evaluator::shared_s(const SharedParameter& parameter, const Form& form) const {
  const double bytes = shared_gradient_bytes(parameter, form.parallel, form.context.precision);
  return ring_of_stages_s(holders_, bytes, [&](std::int32_t from, std::int32_t to, double message) {
    return transfer_time_s(form.parallel, *chain_.system, from, to, message);
  });
}

void Evaluator::fill_shared(const Configuration& configuration, const Layout& layout, Form& form,
                            std::vector<double>& stage_s) {
  stage_s.assign(at(configuration.pp), 0);
  if (configuration.pp == 1) return;
  form.parallel.zero = configuration.zero;
  for (const SharedParameter& parameter : chain_.shared) {
    holders_.clear();
    auto chunk = layout.ends.begin();
    for (const std::int32_t layer : parameter.layers) {
      chunk = std::upper_bound(chunk, layout.ends.end(), layer);
      holders_.push_back(
          static_cast<std::int32_t>((chunk - layout.ends.begin()) % configuration.pp));
    }
    std::sort(holders_.begin(), holders_.end());
    holders_.erase(std::unique(holders_.begin(), holders_.end()), holders_.end());
    const double sum_s = shared_s(parameter, form);
    for (const std::int32_t stage : holders_) stage_s[at(stage)] += sum_s;
  }
}

double Evaluator::least_shared_gradient_sync_s(const Configuration& configuration) {
  if (configuration.pp == 1) return 0;
  Form& form = form_of(configuration);
  form.parallel.zero = configuration.zero;
  holders_ = {0, configuration.pp - 1};
  const std::array ends = {0, static_cast<std::int32_t>(chain_.kind_of_layer.size()) - 1};
  double sum_s = 0;
  for (const SharedParameter& parameter : chain_.shared) {
    // The first and the last layer are in the first and the last stage whatever the others do.
    if (std::ranges::equal(parameter.layers, ends)) sum_s += shared_s(parameter, form);
  }
  return sum_s;
}

const ChainTimes& Evaluator::chain_of(const Configuration& configuration, const Layout& layout,
                                      Form& form) {
  const auto has_same_passes = [&](const FilledChain& filled) {
    return filled.form == &form && filled.times.schedule == configuration.schedule &&
           filled.times.num_micro_batches == configuration.num_micro_batches &&
           filled.micro_batch == configuration.micro_batch &&
           filled.sequence_parallel == configuration.sequence_parallel &&
           filled.passes == passes_ && filled.ends == layout.ends;
  };
  std::size_t age = 0;
  const auto aged = [&](std::size_t by) -> FilledChain& {
    return filled_[(newest_ + filled_.size() - by) % filled_.size()];
  };
  while (age < filled_.size() && !has_same_passes(aged(age))) ++age;
  if (age == filled_.size()) {
    newest_ = (newest_ + 1) % filled_.size();
    fill_chain(configuration, layout, form, filled_[newest_]);
    age = 0;
  }
  FilledChain& filled = aged(age);
  std::vector<double>& shared_s = filled.shared_s[static_cast<std::size_t>(configuration.zero)];
  if (shared_s.empty()) fill_shared(configuration, layout, form, shared_s);
  std::vector<StageSync>& sync = filled.times.sync;
  for (std::size_t s = 0; s < sync.size(); ++s) {
    sync[s] = syncs_[at(layout.kind_of_stage[s])];
    sync[s].shared_gradient_sync_s += shared_s[s];
  }
  return filled.times;
}

void Evaluator::fill_chain(const Configuration& configuration, const Layout& layout, Form& form,
                           FilledChain& filled) {
  filled.form = &form;
  for (std::vector<double>& stage_s : filled.shared_s) stage_s.clear();
  filled.micro_batch = configuration.micro_batch;
  filled.sequence_parallel = configuration.sequence_parallel;
  filled.ends.assign(layout.ends.begin(), layout.ends.end());
  filled.passes.assign(passes_.begin(), passes_.end());
  ChainTimes& times = filled.times;
  times.passes_id = ++fills_;
  times.schedule = configuration.schedule;
  times.pp = configuration.pp;
  times.vp = configuration.vp;
  times.num_micro_batches = configuration.num_micro_batches;
  const std::size_t chunks = layout.kind_of_chunk.size();
  times.forward_s.resize(chunks);
  times.backward_s.resize(chunks);
  times.hop_s.resize(chunks);
  for (std::size_t i = 0; i < chunks; ++i) {
    const Pass& pass = passes_[at(layout.kind_of_chunk[i])];
    times.forward_s[i] = pass.forward_s;
    times.backward_s[i] = pass.backward_s;
  }
  times.sync.resize(at(configuration.pp));

  form.parallel.micro_batch = configuration.micro_batch;
  form.parallel.sequence_parallel = configuration.sequence_parallel;
  std::size_t stage = 0;
  for (std::size_t i = 0; i + 1 < chunks; ++i) {
    const double bytes =
        boundary_bytes({0, 0, chain_.hop_bytes[at(layout.ends[i] - 1)]}, form.parallel);
    times.hop_s[i] = handover_s(form, form.handover_kind[stage], bytes);
    if (++stage == times.sync.size()) stage = 0;
  }
  times.hop_s[chunks - 1] = 0;
  if (configuration.vp > 1 || !chain_.job->trainer.does.blocking_sends) return;
  for (std::size_t i = 0; i + 1 < chunks; ++i) {
    times.forward_s[i] += times.hop_s[i];
    times.backward_s[i + 1] += times.hop_s[i];
    times.hop_s[i] = 0;
  }
}

void Evaluator::fill_transfers(const Layout& layout, const Parallelism& parallel) {
  // In order of source and target; edges come in order of their sources.
  std::int32_t to_layer = 0;
  chunk_of_layer_.resize(at(layout.ends.back()));
  for (std::size_t chunk = 0; chunk < layout.ends.size(); ++chunk) {
    for (; to_layer < layout.ends[chunk]; ++to_layer) {
      chunk_of_layer_[at(to_layer)] = static_cast<std::int32_t>(chunk);
    }
  }
  cuts_.clear();
  newest_cut_.assign(layout.ends.size(), -1);
  for (const ProfileEdge& edge : chain_.edges) {
    const std::int32_t from = chunk_of_layer_[at(edge.source)];
    const std::int32_t to = chunk_of_layer_[at(edge.target)];
    if (from == to) continue;
    const double bytes = boundary_bytes(edge, parallel);
    std::int32_t& newest = newest_cut_[at(to)];
    if (newest >= 0 && cuts_[at(newest)].from == from) {
      cuts_[at(newest)].bytes += bytes;
    } else {
      newest = static_cast<std::int32_t>(cuts_.size());
      cuts_.push_back({from, to, bytes});
    }
  }
  std::sort(cuts_.begin(), cuts_.end(), [](const Cut& a, const Cut& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  });
}

double Evaluator::time_graph_s(const Configuration& configuration, const Layout& layout, Form& form,
                               double cutoff_s) {
  form.parallel.micro_batch = configuration.micro_batch;
  form.parallel.sequence_parallel = configuration.sequence_parallel;
  fill_transfers(layout, form.parallel);
  Pipeline& pipeline = pipeline_.pipeline;
  pipeline.schedule = configuration.schedule;
  pipeline.pp = configuration.pp;
  pipeline.vp = configuration.vp;
  pipeline.num_micro_batches = configuration.num_micro_batches;
  pipeline.forward_s.clear();
  pipeline.backward_s.clear();
  pipeline.sync.clear();
  for (int s = 0; s < configuration.pp; ++s) {
    for (int c = 0; c < configuration.vp; ++c) {
      const auto kind = layout.kind_of_chunk[at(std::int64_t{c} * configuration.pp + s)];
      pipeline.forward_s.push_back(passes_[at(kind)].forward_s);
      pipeline.backward_s.push_back(passes_[at(kind)].backward_s);
    }
    pipeline.sync.push_back(syncs_[at(layout.kind_of_stage[at(s)])]);
  }
  fill_shared(configuration, layout, form, shared_s_);
  for (std::size_t s = 0; s < shared_s_.size(); ++s) {
    pipeline.sync[s].shared_gradient_sync_s += shared_s_[s];
  }
  pipeline.transfers.clear();
  for (const Cut& cut : cuts_) {
    const std::int32_t source = cut.from % configuration.pp;
    const std::int32_t target = cut.to % configuration.pp;
    Transfer transfer;
    transfer.source = source * configuration.vp + cut.from / configuration.pp;
    transfer.target = target * configuration.vp + cut.to / configuration.pp;
    if (source != target) {
      transfer.time_s =
          transfer_time_s(form.parallel, *chain_.system, source, target, cut.bytes, form.senders);
    }
    pipeline.transfers.push_back(transfer);
  }
  if (chain_.job->trainer.does.blocking_sends) hold_for_sends(pipeline);
  if (cutoff_s < kInfinity && configuration.vp == 1 &&
      pipeline_path_bound_s(pipeline, path_bound_) >= cutoff_s) {
    return kInfinity;
  }
  return pipeline_time_s(pipeline, pipeline_);
}

}  // namespace braid

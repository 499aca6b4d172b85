#include "braid/schedule/chain_time.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <tuple>

#include "braid/base/index.h"
#include "braid/schedule/chain_waves.h"
#include "braid/schedule/interleaved_pair.h"

namespace braid {
namespace {

/// With fewer stages of one chunk, waves are slower than one pass after another.
constexpr int kFewestForWaves = 12;

/// Times a chain of few stages with one chunk each pass by pass. When a pass ends its result goes
/// over the stage's link in that direction, and what arrives is used by the neighbour's next pass
/// that way: the time at which the link falls free is the time of arrival.
class ChainTimer {
 public:
  ChainTimer(TimedPasses& timed, ChainWorkspace& w)
      : timed_(timed),
        c_(timed.chain),
        w_(w),
        pp_(timed.chain.pp),
        m_(timed.chain.num_micro_batches) {
    const std::size_t pp = at(pp_);
    timed_.first_forward_end_s.assign(pp, 0);
    w_.state.assign(3 * pp, 0);
    forward_link_ = w_.state.data();
    device_ = forward_link_ + pp_;
    backward_link_ = device_ + pp_;
    w_.steady.restart();
  }

  void run_gpipe() {
    for (std::int64_t k = 0; k < m_; ++k) {
      forward_sweep(k == 0);
      k += w_.steady.leap({forward_link_, at(2 * pp_)}, m_ - 1 - k);
    }
    w_.steady.restart();
    for (std::int64_t k = 0; k < m_; ++k) {
      double arrived = 0;
      for (std::int64_t s = pp_ - 1; s >= 0; --s) arrived = backward(s, arrived);
      k += w_.steady.leap({device_, at(2 * pp_)}, m_ - 1 - k);
    }
  }

  /// Round r runs forward pass r of all stages, and before it the backward pass r - pp + s of each
  /// stage s: the one that precedes it on the device. What a backward pass hands on is used in the
  /// next round.
  void run_1f1b() {
    for (std::int64_t round = 0; round < m_ + pp_; ++round) {
      const std::int64_t first = std::max<std::int64_t>(0, pp_ - round);
      const std::int64_t last = std::min<std::int64_t>(pp_, m_ + pp_ - round);
      for (std::int64_t s = first; s < last; ++s) {
        backward(s, s + 1 < pp_ ? backward_link_[s + 1] : 0);
      }
      if (round < m_) forward_sweep(round == 0);
      if (round > pp_ && round < m_) round += leap(m_ - 1 - round);
    }
  }

  void run() {
    if (c_.schedule == ScheduleKind::gpipe) {
      run_gpipe();
    } else {
      run_1f1b();
    }
    timed_.passes_end_s.assign(device_, device_ + pp_);
  }

 private:
  std::int64_t leap(std::int64_t remaining) {
    return w_.steady.leap({forward_link_, at(3 * pp_)}, remaining);
  }

  // With one chunk per stage, stage and chunk have one number.

  void forward_sweep(bool first) {
    double arrived = 0;
    for (std::int64_t s = 0; s < pp_; ++s) {
      double end = later(device_[s], arrived) + c_.forward_s[at(s)];
      if (first) end = hold_for_parameters(s, end);
      device_[s] = end;
      double& link = forward_link_[s];
      link = later(link, end) + (s + 1 < pp_ ? c_.hop_s[at(s)] : 0);
      arrived = link;
    }
  }

  double backward(std::int64_t s, double arrived) {
    const double end = later(device_[s], arrived) + c_.backward_s[at(s)];
    device_[s] = end;
    double& link = backward_link_[s];
    link = later(link, end) + (s > 0 ? c_.hop_s[at(s - 1)] : 0);
    return link;
  }

  /// The parameters' arrival can only delay a stage's first pass: later ones end after it.
  double hold_for_parameters(std::int64_t s, double end) {
    timed_.first_forward_end_s[at(s)] = end;
    return timed_.ready_s.empty() ? end : later(end, timed_.ready_s[at(s)]);
  }

  TimedPasses& timed_;
  const ChainTimes& c_;
  ChainWorkspace& w_;
  const std::int64_t pp_;
  const std::int64_t m_;
  double* device_;
  double* forward_link_;
  double* backward_link_;
};

/// A stage that waits for nothing but its parameters.
void time_single_stage(TimedPasses& timed) {
  const ChainTimes& c = timed.chain;
  double round_s = 0;
  for (const double pass_s : c.forward_s) round_s += pass_s;
  for (const double pass_s : c.backward_s) round_s += pass_s;
  const double first_s = c.forward_s[0];
  const double held_s = timed.ready_s.empty() ? first_s : later(first_s, timed.ready_s[0]);
  timed.first_forward_end_s.assign(1, first_s);
  timed.passes_end_s.assign(
      1, static_cast<double>(c.num_micro_batches) * round_s + (held_s - first_s));
}

bool same_passes(const ChainTimes& a, const ChainTimes& b) {
  if (a.passes_id != 0 && a.passes_id == b.passes_id) return true;
  return a.num_micro_batches == b.num_micro_batches && a.pp == b.pp && a.vp == b.vp &&
         a.schedule == b.schedule && a.forward_s == b.forward_s && a.backward_s == b.backward_s &&
         a.hop_s == b.hop_s;
}

void copy_passes(const ChainTimes& from, ChainTimes& to) {
  to.schedule = from.schedule;
  to.pp = from.pp;
  to.vp = from.vp;
  to.num_micro_batches = from.num_micro_batches;
  to.forward_s = from.forward_s;
  to.backward_s = from.backward_s;
  to.hop_s = from.hop_s;
  to.passes_id = from.passes_id;
}

/// Ends of all stages' first forward and last backward passes, no first pass ending before
/// `ready_s`. Valid until the next call.
const TimedPasses& timed_passes(const ChainTimes& chain, std::span<const double> ready_s,
                                ChainWorkspace& workspace) {
  constexpr std::size_t slots = std::tuple_size_v<decltype(ChainWorkspace::timed)>;
  for (std::size_t age = 0; age < slots; ++age) {
    const TimedPasses& timed = workspace.timed[(workspace.newest + slots - age) % slots];
    if (std::ranges::equal(timed.ready_s, ready_s) && same_passes(timed.chain, chain)) return timed;
  }
  workspace.newest = (workspace.newest + 1) % slots;
  TimedPasses& timed = workspace.timed[workspace.newest];
  copy_passes(chain, timed.chain);
  timed.ready_s.assign(ready_s.begin(), ready_s.end());
  const Lanes lanes = widest_lanes();
  if (chain.pp == 1) {
    time_single_stage(timed);
  } else if (chain.vp > 1 && chain.pp == 2) {
    time_interleaved_pair(timed, workspace);
  } else if (chain.vp > 1 || (chain.pp >= kFewestForWaves && lanes > Lanes::two)) {
    // Half empty vectors are slower than whole ones of half the length.
    time_in_waves(timed, chain.pp <= 4 ? std::min(lanes, Lanes::four) : lanes, workspace);
  } else {
    ChainTimer(timed, workspace).run();
  }
  return timed;
}

}  // namespace

double chain_time_s(const ChainTimes& chain, ChainWorkspace& workspace) {
  assert(chain.forward_s.size() == at(std::int64_t{chain.pp} * chain.vp));
  assert(chain.backward_s.size() == chain.forward_s.size());
  assert(chain.hop_s.size() == chain.forward_s.size());
  assert(chain.sync.size() == at(chain.pp));
  assert(chain.vp == 1 ||
         (chain.schedule == ScheduleKind::interleaved && chain.num_micro_batches % chain.pp == 0));
  const std::size_t pp = at(chain.pp);
  workspace.stages.assign(pp, {});
  workspace.ready_s.resize(pp);
  for (std::size_t s = 0; s < pp; ++s) {
    workspace.ready_s[s] = parameters_ready_s(chain.sync[s], chain.forward_s[s]);
  }
  const TimedPasses* timed = &timed_passes(chain, {}, workspace);
  // All passes follow the first stage's first one. When it waits for its parameters everything is
  // late by as much, and that may be all.
  double late_s = std::max(0.0, workspace.ready_s[0] - timed->first_forward_end_s[0]);
  bool only_late = true;
  for (std::size_t s = 1; s < pp; ++s) {
    only_late = only_late && workspace.ready_s[s] <= timed->first_forward_end_s[s] + late_s;
  }
  if (only_late) {
    workspace.stages[0].parameter_wait_s = late_s;
  } else {
    timed = &timed_passes(chain, workspace.ready_s, workspace);
    late_s = 0;
    for (std::size_t s = 0; s < pp; ++s) {
      workspace.stages[s].parameter_wait_s =
          std::max(0.0, workspace.ready_s[s] - timed->first_forward_end_s[s]);
    }
  }
  double time_s = 0;
  for (std::size_t s = 0; s < pp; ++s) {
    StageTiming& stage = workspace.stages[s];
    stage.passes_end_s = timed->passes_end_s[s] + late_s;
    stage.end_s = stage.passes_end_s + tail_s(chain.sync[s], chain.backward_s[s]);
    time_s = std::max(time_s, stage.end_s);
  }
  return time_s;
}

}  // namespace braid

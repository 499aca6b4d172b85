#include "braid/schedule/graph_time.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "braid/schedule/graph_timer.h"

namespace braid {
namespace {

/// Stages of one chunk. The state: when the links forward, the devices and the links back fall
/// free, which is when what they carry arrives, then earlier arrivals of links back.
class SingleChunkTimer : GraphTimer {
 public:
  using GraphTimer::GraphTimer;

  /// False for a circle of stages, and for warm-ups that take passes in another order.
  bool prepare() {
    const std::span<const Transfer> transfers = p_.transfers;
    w_.senders.resize(transfers.size());
    w_.receivers.resize(transfers.size());
    for (std::size_t e = 0; e < transfers.size(); ++e) {
      w_.senders[e] = transfers[e].source;
      w_.receivers[e] = transfers[e].target;
    }
    links_ = number_links();
    group(w_.receivers, at(pp_), w_.in);
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const auto e = at(w_.grouped[i]);
      w_.in.ways[i] = {w_.link[e], links_ + pp_ + w_.link[e], transfers[e].source, false,
                       transfers[e].back_s()};
    }
    group(w_.senders, at(pp_), w_.out);
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const auto e = at(w_.grouped[i]);
      w_.out.ways[i] = {links_ + pp_ + w_.link[e], w_.link[e], transfers[e].target, false,
                        transfers[e].time_s};
    }
    if (!order_stages()) return false;
    if (!keep_history()) return false;
    start_stages();
    return true;
  }

  double run() {
    if (p_.schedule == ScheduleKind::gpipe) {
      run_gpipe();
    } else {
      run_1f1b();
    }
    return finish(device_);
  }

 private:
  /// Warm-ups (or depths, see stage_depths), the stages with sources before targets, and in the
  /// order of their backward passes. False for what a round cannot be run by.
  bool order_stages() {
    w_.depth.assign(at(pp_), 1);
    w_.waiting.resize(at(pp_));
    w_.order.clear();
    for (std::int32_t s = pp_ - 1; s >= 0; --s) {
      w_.waiting[at(s)] = narrow(of(w_.out, s).size());
      if (w_.waiting[at(s)] == 0) w_.order.push_back(s);
    }
    for (std::size_t next = 0; next < w_.order.size(); ++next) {
      const std::int32_t target = w_.order[next];
      for (const Way& way : of(w_.in, target)) {
        std::int32_t& depth = w_.depth[at(way.target)];
        depth = std::max(depth, w_.depth[at(target)] + 1);
        if (--w_.waiting[at(way.target)] == 0) w_.order.push_back(way.target);
      }
    }
    std::reverse(w_.order.begin(), w_.order.end());
    if (w_.order.size() != at(pp_)) return false;
    w_.back_order.assign(w_.order.begin(), w_.order.end());
    if (p_.warm_ups.empty()) return true;
    for (std::int32_t s = 0; s < pp_; ++s) {
      w_.depth[at(s)] = static_cast<std::int32_t>(std::min(p_.warm_ups[at(s)], m_));
    }
    // A stage with fewer than a successor waits for ever.
    for (std::int32_t s = 0; s < pp_; ++s) {
      for (const Way& way : of(w_.out, s)) {
        if (w_.depth[at(s)] < w_.depth[at(way.target)]) return false;
      }
    }
    // One with as many takes its gradients up in the round in which the successor hands them over.
    for (std::int32_t i = 0; i < pp_; ++i) w_.waiting[at(w_.order[at(i)])] = i;
    std::sort(w_.back_order.begin(), w_.back_order.end(), [&](std::int32_t a, std::int32_t b) {
      return w_.depth[at(a)] != w_.depth[at(b)] ? w_.depth[at(a)] > w_.depth[at(b)]
                                                : w_.waiting[at(a)] > w_.waiting[at(b)];
    });
    return true;
  }

  /// Gradients that arrive more than one round before they are waited for. False when warm-ups make
  /// them so many that going through every pass is cheaper.
  bool keep_history() {
    constexpr std::int32_t kMostHistory = 4096;
    const std::int32_t newest = 2 * links_ + pp_;
    std::int32_t size = newest;
    w_.history.assign(at(links_), -1);
    for (std::int32_t s = 0; s < pp_; ++s) {
      deepest_ = std::max(deepest_, w_.depth[at(s)]);
      for (std::int32_t i = w_.out.first[at(s)]; i < w_.out.first[at(s) + 1]; ++i) {
        Way& way = w_.out.ways[at(i)];
        const std::int32_t rounds = w_.depth[at(s)] - w_.depth[at(way.target)];
        if (rounds <= 1) continue;
        std::int32_t& history = w_.history[at(way.write)];
        if (history < 0) {
          history = size;
          size += rounds;
        }
        if (!p_.warm_ups.empty() && size - newest > kMostHistory) return false;
        way.read = history + rounds - 1;
      }
    }
    w_.state.assign(at(size), 0);
    state_ = w_.state.data();
    device_ = state_ + links_;
    history_ = state_ + newest;
    histories_ = at(size - newest);
    return true;
  }

  void run_gpipe() {
    for (std::int64_t k = 0; k < m_; ++k) {
      forward_sweep(k == 0);
      k += w_.steady.leap({state_, at(links_ + pp_)}, m_ - 1 - k);
    }
    w_.steady.restart();
    // Each reads its gradients as they have just arrived.
    for (Way& way : w_.out.ways) way.read = links_ + pp_ + way.write;
    for (std::int64_t k = 0; k < m_; ++k) {
      for (std::int32_t i = pp_ - 1; i >= 0; --i) backward(w_.order[at(i)]);
      k += w_.steady.leap({device_, at(links_ + pp_)}, m_ - 1 - k);
    }
  }

  /// Round r runs forward pass r of all stages, and before it the backward pass r - warm-up of each
  /// stage: the one that precedes it on the device. A stage takes up the gradients of the round
  /// before ahead of those of its successors that hand over the next ones.
  void run_1f1b() {
    for (std::int64_t round = 0; round < m_ + deepest_; ++round) {
      for (const std::int32_t s : w_.back_order) {
        const std::int64_t k = round - w_.depth[at(s)];
        if (k >= 0 && k < m_) backward(s);
      }
      if (histories_ > 0) remember();
      if (round < m_) forward_sweep(round == 0);
      if (round > deepest_ && round < m_) round += w_.steady.leap(w_.state, m_ - 1 - round);
    }
  }

  void remember() {
    std::memmove(history_ + 1, history_, (histories_ - 1) * sizeof(double));
    for (std::int32_t link = 0; link < links_; ++link) {
      const std::int32_t history = w_.history[at(link)];
      if (history >= 0) state_[history] = state_[links_ + pp_ + link];
    }
  }

  void forward_sweep(bool first) {
    for (const std::int32_t s : w_.order) {
      double start_s = device_[s];
      for (const Way& way : of(w_.in, s)) start_s = later(start_s, state_[way.read]);
      double end_s = start_s + p_.forward_s[at(s)];
      if (first) end_s = hold_for_parameters(s, end_s);
      send(s, end_s, w_.out);
    }
  }

  void backward(std::int32_t s) {
    double start_s = device_[s];
    for (const Way& way : of(w_.out, s)) start_s = later(start_s, state_[way.read]);
    send(s, start_s + p_.backward_s[at(s)], w_.in);
  }

  void send(std::int32_t s, double end_s, const Ways& ways) {
    device_[s] = end_s;
    for (const Way& way : of(ways, s)) {
      double& link = state_[way.write];
      link = later(link, end_s) + way.time_s;
    }
  }

  std::int32_t links_ = 0;
  std::int32_t deepest_ = 1;
  std::size_t histories_ = 0;
  double* state_ = nullptr;
  double* device_ = nullptr;
  double* history_ = nullptr;
};

}  // namespace

double graph_time_s(const Pipeline& pipeline, GraphWorkspace& workspace) {
  if (!pipeline.rounds.empty() || !pipeline.passes.empty()) return -1;
  if (pipeline.vp > 1) {
    return pipeline.schedule == ScheduleKind::interleaved
               ? interleaved_graph_time_s(pipeline, workspace)
               : -1;
  }
  SingleChunkTimer timer(pipeline, workspace);
  return timer.prepare() ? timer.run() : -1;
}

}  // namespace braid

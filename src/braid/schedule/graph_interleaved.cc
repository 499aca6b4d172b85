#include <algorithm>
#include <span>

#include "braid/schedule/graph_timer.h"

namespace braid {
namespace {

/// Stages of several chunks. The state: when devices and links fall free, then for each chunk that
/// waits for transfers, when all of them have arrived, [micro-batch of its group], forward and
/// back.
class InterleavedTimer : GraphTimer {
 public:
  using GraphTimer::GraphTimer;

  /// False when a transfer leads back in the pipeline.
  bool prepare() {
    w_.sources.clear();
    w_.targets.clear();
    w_.senders.clear();
    w_.receivers.clear();
    for (const Transfer& transfer : p_.transfers) {
      const std::int32_t source = position_of(transfer.source);
      const std::int32_t target = position_of(transfer.target);
      if (source >= target) return false;
      // Within a stage the order of its passes says enough.
      if (source % pp_ == target % pp_) continue;
      w_.sources.push_back(source);
      w_.targets.push_back(target);
      w_.senders.push_back(source % pp_);
      w_.receivers.push_back(target % pp_);
    }
    const std::size_t crossing = w_.senders.size();
    w_.senders.insert(w_.senders.end(), w_.receivers.begin(), w_.receivers.end());
    w_.receivers.insert(w_.receivers.end(), w_.senders.begin(),
                        w_.senders.begin() + static_cast<std::ptrdiff_t>(crossing));
    links_ = number_links();
    place_cells();
    fill_ways();
    start_stages();
    w_.forward_turn.assign(at(pp_), {});
    w_.backward_turn.assign(at(pp_), {p_.vp - 1, 0});
    return true;
  }

  /// Round r runs forward pass r - s of each stage s and then the backward pass that follows it
  /// there, r - (vp + 1)·pp + 2 + s. What goes from position q to q' is then waited for q' - q
  /// rounds after it started: never in the round itself, and before the next group's.
  double run() {
    const std::int64_t passes = m_ * p_.vp;
    const std::int64_t lag = std::int64_t{p_.vp + 1} * pp_ - 2;
    const std::int64_t cycle = std::int64_t{p_.vp} * pp_;
    for (std::int64_t round = 0; round < passes + lag; ++round) {
      for (std::int32_t s = 0; s < pp_; ++s) {
        const std::int64_t step = round - s;
        if (step >= 0 && step < passes) forward(s, step == 0);
      }
      for (std::int32_t s = 0; s < pp_; ++s) {
        const std::int64_t step = round - lag + s;
        if (step >= 0 && step < passes) backward(s);
      }
      if (round >= lag + pp_ && (round + 1) % cycle == 0 && round < passes) {
        round +=
            cycle * w_.steady.leap({w_.state.data(), repeating_}, (passes - 1 - round) / cycle);
      }
    }
    return finish(w_.state.data());
  }

 private:
  using Turn = GraphWorkspace::Turn;

  std::int32_t position_of(std::int32_t chunk) const { return chunk % p_.vp * pp_ + chunk / p_.vp; }

  /// Places for arrivals; chunks that wait for none share one where it is always zero.
  void place_cells() {
    const std::int32_t first = pp_ + links_;
    std::int32_t next = first;
    const auto place = [&](std::span<const std::int32_t> receivers,
                           std::vector<std::int32_t>& cells) {
      cells.assign(at(pp_) * at(p_.vp), -1);
      for (const std::int32_t q : receivers) {
        if (cells[at(q)] >= 0) continue;
        cells[at(q)] = next;
        next += pp_;
      }
    };
    place(w_.targets, w_.forward_cell);
    place(w_.sources, w_.backward_cell);
    std::replace(w_.forward_cell.begin(), w_.forward_cell.end(), -1, next);
    std::replace(w_.backward_cell.begin(), w_.backward_cell.end(), -1, next);
    repeating_ = at(next);
    w_.state.assign(at(next + pp_), 0);
  }

  /// Of all that arrives, what starts first sets the time: from the nearest to the start forward,
  /// from the nearest to the end back.
  void fill_ways() {
    const std::size_t crossing = w_.sources.size();
    std::vector<std::int32_t>& first = w_.order;
    const auto find_first = [&](std::span<const std::int32_t> from,
                                std::span<const std::int32_t> to, std::int32_t sign) {
      first.assign(at(pp_) * at(p_.vp), -1);
      for (std::size_t e = 0; e < crossing; ++e) {
        std::int32_t& best = first[at(to[e])];
        if (best < 0 || sign * from[e] < sign * from[at(best)]) best = narrow(e);
      }
    };
    // Times in the order of the crossing transfers.
    const auto fill = [&](Ways& ways, std::span<const std::int32_t> to,
                          std::span<const std::int32_t> cells, std::size_t first_link,
                          std::span<const double> times_s) {
      for (std::size_t i = 0; i < crossing; ++i) {
        const auto e = at(w_.grouped[i]);
        ways.ways[i] = {0, pp_ + w_.link[first_link + e], cells[at(to[e])],
                        first[at(to[e])] == w_.grouped[i], times_s[e]};
      }
    };
    w_.times_s.clear();
    w_.back_times_s.clear();
    for (const Transfer& transfer : p_.transfers) {
      if (transfer.source / p_.vp == transfer.target / p_.vp) continue;
      w_.times_s.push_back(transfer.time_s);
      w_.back_times_s.push_back(transfer.back_s());
    }
    const std::size_t chunks = at(pp_) * at(p_.vp);
    find_first(w_.sources, w_.targets, 1);
    group(w_.sources, chunks, w_.out);
    fill(w_.out, w_.targets, w_.forward_cell, 0, w_.times_s);
    find_first(w_.targets, w_.sources, -1);
    group(w_.targets, chunks, w_.in);
    fill(w_.in, w_.sources, w_.backward_cell, crossing, w_.back_times_s);
  }

  void forward(std::int32_t s, bool first) {
    Turn& turn = w_.forward_turn[at(s)];
    const std::int32_t q = turn.chunk * pp_ + s;
    double end_s = later(w_.state[at(s)], w_.state[at(w_.forward_cell[at(q)] + turn.slot)]) +
                   p_.forward_s[at(s) * at(p_.vp) + at(turn.chunk)];
    if (first) end_s = hold_for_parameters(s, end_s);
    send(s, end_s, of(w_.out, q), turn.slot);
    if (++turn.slot == pp_) {
      turn.slot = 0;
      if (++turn.chunk == p_.vp) turn.chunk = 0;
    }
  }

  void backward(std::int32_t s) {
    Turn& turn = w_.backward_turn[at(s)];
    const std::int32_t q = turn.chunk * pp_ + s;
    const double end_s = later(w_.state[at(s)], w_.state[at(w_.backward_cell[at(q)] + turn.slot)]) +
                         p_.backward_s[at(s) * at(p_.vp) + at(turn.chunk)];
    send(s, end_s, of(w_.in, q), turn.slot);
    if (++turn.slot == pp_) {
      turn.slot = 0;
      if (--turn.chunk < 0) turn.chunk = p_.vp - 1;
    }
  }

  void send(std::int32_t s, double end_s, std::span<const Way> ways, std::int32_t slot) {
    w_.state[at(s)] = end_s;
    for (const Way& way : ways) {
      double& link = w_.state[at(way.write)];
      link = later(link, end_s) + way.time_s;
      double& arrived = w_.state[at(way.target + slot)];
      arrived = way.first ? link : later(arrived, link);
    }
  }

  std::int32_t links_ = 0;
  std::size_t repeating_ = 0;
};

}  // namespace

double interleaved_graph_time_s(const Pipeline& pipeline, GraphWorkspace& workspace) {
  // Places in the state are 32 bits wide.
  constexpr std::int64_t kMostPlaces = std::int64_t{1} << 30;
  const std::int64_t cells = std::int64_t{pipeline.pp} * pipeline.pp * pipeline.vp;
  if (pipeline.num_micro_batches % pipeline.pp != 0 || cells > kMostPlaces / 4) return -1;
  InterleavedTimer timer(pipeline, workspace);
  return timer.prepare() ? timer.run() : -1;
}

}  // namespace braid

#include "braid/schedule/graph_timer.h"

namespace braid {

void GraphTimer::group(std::span<const std::int32_t> chunk_of, std::size_t chunks, Ways& ways) {
  ways.first.assign(chunks + 2, 0);
  for (const std::int32_t chunk : chunk_of) ++ways.first[at(chunk) + 2];
  for (std::size_t c = 2; c < ways.first.size(); ++c) ways.first[c] += ways.first[c - 1];
  w_.grouped.resize(chunk_of.size());
  for (std::size_t e = 0; e < chunk_of.size(); ++e) {
    w_.grouped[at(ways.first[at(chunk_of[e]) + 1]++)] = narrow(e);
  }
  ways.first.pop_back();
  ways.ways.resize(chunk_of.size());
}

std::int32_t GraphTimer::number_links() {
  // Sender by sender, the newest link to each receiver is the sender's if there is one.
  group(w_.senders, at(pp_), w_.by_sender);
  w_.newest.assign(at(pp_), -1);
  w_.sender_of_link.clear();
  w_.link.resize(w_.senders.size());
  for (const std::int32_t e : w_.grouped) {
    std::int32_t& newest = w_.newest[at(w_.receivers[at(e)])];
    if (newest < 0 || w_.sender_of_link[at(newest)] != w_.senders[at(e)]) {
      newest = narrow(w_.sender_of_link.size());
      w_.sender_of_link.push_back(w_.senders[at(e)]);
    }
    w_.link[at(e)] = newest;
  }
  return narrow(w_.sender_of_link.size());
}

void GraphTimer::start_stages() {
  w_.stages.assign(at(pp_), {});
  w_.ready_s.resize(at(pp_));
  for (std::int32_t s = 0; s < pp_; ++s) {
    w_.ready_s[at(s)] = parameters_ready_s(p_.sync[at(s)], p_.forward_s[at(s) * at(p_.vp)]);
  }
  w_.steady.restart();
}

double GraphTimer::finish(const double* device) {
  double time_s = 0;
  for (std::int32_t s = 0; s < pp_; ++s) {
    StageTiming& stage = w_.stages[at(s)];
    stage.passes_end_s = device[s];
    stage.end_s = device[s] + tail_s(p_.sync[at(s)], p_.backward_s[at(s) * at(p_.vp)]);
    time_s = std::max(time_s, stage.end_s);
  }
  return time_s;
}

}  // namespace braid

#include "braid/report/html_lane.h"

#include <cmath>

namespace braid {
namespace {

double with_four_digits(double value) {
  if (!(value > 0)) return 0;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

}  // namespace

void LaneWriter::add(const Event& event) {
  constexpr double kMostTicksOff = 2;
  const double duration_s = with_four_digits(event.end_s - event.start_s);
  const Class key{event.kind,       event.chunk,     event.round,
                  event.peer_stage, event.gradients, duration_s};
  const auto [found, is_new] = numbers_.try_emplace(key, numbers_.size());
  if (is_new) {
    classes_.push_back({static_cast<int>(event.kind), event.chunk, event.round, event.peer_stage,
                        event.gradients ? 1 : 0, duration_s});
  }
  const double gap = std::round((event.start_s - end_s_) / tick_s_);
  const double skipped = std::abs(gap) > kMostTicksOff ? gap : 0;
  end_s_ += skipped * tick_s_ + duration_s;
  std::int64_t& next = next_[{event.kind, event.chunk, event.peer_stage, event.gradients}];
  if (event.micro_batch != next) {
    events_.push_back({found->second, static_cast<std::int64_t>(skipped), event.micro_batch});
  } else if (skipped != 0) {
    events_.push_back({found->second, static_cast<std::int64_t>(skipped)});
  } else {
    events_.push_back(found->second);
  }
  next = event.micro_batch + 1;
}

}  // namespace braid

#include "braid/chip/cores/ready_operators.h"

#include <algorithm>
#include <cstddef>

namespace braid {

const std::vector<ReadyOperator>& ReadyFinder::find(const Bitset& begun, const BlockState& state) {
  for (const RunningOperator& running : state.running) {
    end_s_[static_cast<std::size_t>(running.op)] = running.end_s;
  }
  ready_.clear();
  for (std::size_t i = 0; i < block_.operators.size(); ++i) {
    const BlockOperator& op = block_.operators[i];
    if (begun.test(i) || !op.before.is_subset_of(begun)) continue;
    if (op.twin >= 0 && !begun.test(static_cast<std::size_t>(op.twin))) continue;
    double ready_s = state.begun_s;
    for (const std::int32_t earlier : op.earlier) {
      ready_s = std::max(ready_s, end_s_[static_cast<std::size_t>(earlier)]);
    }
    ready_.push_back({static_cast<std::int32_t>(i), ready_s});
  }
  for (const RunningOperator& running : state.running) {
    end_s_[static_cast<std::size_t>(running.op)] = 0;
  }
  return ready_;
}

}  // namespace braid

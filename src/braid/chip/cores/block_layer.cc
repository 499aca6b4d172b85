#include "braid/chip/cores/block_layer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "braid/base/infinity.h"

namespace braid {
namespace {

/// Can whatever goes on from `b` go on from `a`, as far as what is owed is concerned?
bool owes_no_more(const BlockLabel& a, const BlockLabel& b) {
  if (a.owed.size() == 0) return true;
  if (b.owed.size() == 0 || (a.together && !b.together)) return false;
  return a.owed.is_subset_of(b.owed);
}

}  // namespace

// A state is stored as rest_s, how many operators run, begun_s, latest_s, tensor_s, vector_s, the
// cores, and the running operators with their ends.

BlockLayer::BlockLayer(const CoreBlock& block)
    : block_(&block),
      fixed_(block.bounds.size() + 5 + block.cores.tensor + block.cores.vector),
      table_(64, -1) {}

void BlockLayer::clear() {
  labels_.clear();
  next_.clear();
  dead_.clear();
  states_.clear();
  std::fill(table_.begin(), table_.end(), -1);
}

void BlockLayer::read(const BlockLabel& label, BlockState& state,
                      std::vector<double>& rest_s) const {
  const double* at = states_.data() + label.state;
  rest_s.assign(at, at + block_->bounds.size());
  at += block_->bounds.size();
  const auto running = static_cast<std::size_t>(*at++);
  state.begun_s = *at++;
  state.latest_s = *at++;
  state.tensor_s = *at++;
  state.vector_s = *at++;
  state.tensors.assign(at, at + block_->cores.tensor);
  at += block_->cores.tensor;
  state.vectors.assign(at, at + block_->cores.vector);
  at += block_->cores.vector;
  state.running.clear();
  for (std::size_t i = 0; i < running; ++i, at += 2) {
    state.running.push_back({static_cast<std::int32_t>(at[0]), at[1]});
  }
}

/// Is the state at `a` behind that at `b` in nothing? Both have begun the same operators.
bool BlockLayer::no_later(std::size_t a, std::size_t b) const {
  const double* first = states_.data() + a + block_->bounds.size();
  const double* second = states_.data() + b + block_->bounds.size();
  const auto running_a = static_cast<std::size_t>(*first);
  const auto running_b = static_cast<std::size_t>(*second);
  const double begun_s = second[1];
  const std::size_t fixed = fixed_ - block_->bounds.size();
  for (std::size_t i = 1; i < fixed; ++i) {
    if (first[i] > second[i]) return false;
  }
  first += fixed;
  second += fixed;
  const double* const end = second + 2 * running_b;
  for (std::size_t i = 0; i < running_a; ++i, first += 2) {
    while (second != end && second[0] < first[0]) second += 2;
    const double other_s = second != end && second[0] == first[0] ? second[1] : begun_s;
    if (first[1] > other_s) return false;
  }
  return true;
}

/// Where the table has the last label with the same operators as this one, or -1.
std::int32_t& BlockLayer::slot_of(const BlockLabel& label) {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = label.hash & mask;
  while (table_[at] >= 0) {
    const BlockLabel& other = labels_[static_cast<std::size_t>(table_[at])];
    if (other.hash == label.hash && other.begun == label.begun) break;
    at = (at + 1) & mask;
  }
  return table_[at];
}

void BlockLayer::grow() {
  table_.assign(2 * table_.size(), -1);
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    slot_of(labels_[i]) = static_cast<std::int32_t>(i);
  }
}

void BlockLayer::add(BlockLabel label, const BlockState& state, std::span<const double> rest_s) {
  label.state = states_.size();
  states_.insert(states_.end(), rest_s.begin(), rest_s.end());
  states_.insert(states_.end(), {static_cast<double>(state.running.size()), state.begun_s,
                                 state.latest_s, state.tensor_s, state.vector_s});
  states_.insert(states_.end(), state.tensors.begin(), state.tensors.end());
  states_.insert(states_.end(), state.vectors.begin(), state.vectors.end());
  for (const RunningOperator& running : state.running) {
    states_.push_back(static_cast<double>(running.op));
    states_.push_back(running.end_s);
  }
  std::int32_t& slot = slot_of(label);
  for (std::int32_t other = slot; other >= 0; other = next_[static_cast<std::size_t>(other)]) {
    const auto i = static_cast<std::size_t>(other);
    if (!dead_[i] && owes_no_more(labels_[i], label) && no_later(labels_[i].state, label.state)) {
      states_.resize(label.state);
      return;
    }
  }
  for (std::int32_t other = slot; other >= 0; other = next_[static_cast<std::size_t>(other)]) {
    const auto i = static_cast<std::size_t>(other);
    if (!dead_[i] && owes_no_more(label, labels_[i]) && no_later(label.state, labels_[i].state)) {
      dead_[i] = true;
    }
  }
  next_.push_back(slot);
  slot = static_cast<std::int32_t>(labels_.size());
  labels_.push_back(std::move(label));
  dead_.push_back(false);
  if (2 * labels_.size() > table_.size()) grow();
}

double BlockLayer::cut_to(std::size_t width) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    if (!dead_[i]) kept.push_back(i);
  }
  std::stable_sort(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) {
    return labels_[a].bound_s < labels_[b].bound_s;
  });
  double cut_s = kInfinity;
  if (kept.size() > width) {
    cut_s = labels_[kept[width]].bound_s;
    kept.resize(width);
  }
  std::vector<BlockLabel> labels;
  labels.reserve(kept.size());
  for (const std::size_t i : kept) labels.push_back(std::move(labels_[i]));
  labels_ = std::move(labels);
  return cut_s;
}

}  // namespace braid

#include "braid/run/rank_engine.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

std::size_t place_in(const std::vector<ValueId>& values, ValueId value) {
  return at(std::lower_bound(values.begin(), values.end(), value) - values.begin());
}

}  // namespace

RankEngine::RankEngine(std::int32_t rank, const StagedModel& staged,
                       std::span<const ParameterGroup> groups,
                       std::span<const Instruction> instructions, StageMath& math, RankLink& link)
    : rank_(rank),
      staged_(staged),
      groups_(groups),
      instructions_(instructions),
      math_(math),
      link_(link) {
  for (const Handover& handover : staged.handovers) {
    most_values_ = std::max(most_values_, std::ssize(handover.values));
  }
  const double tags = 2.0 * static_cast<double>(staged.handovers.size()) *
                      static_cast<double>(most_values_) * static_cast<double>(staged.batch);
  if (tags > std::numeric_limits<std::int32_t>::max()) {
    throw Error("an iteration has more messages than can be told apart", "take a smaller batch");
  }
}

RankIteration RankEngine::run_iteration(std::int64_t iteration) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto now_s = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  iteration_ = iteration;
  RankIteration result;
  result.start_s = std::chrono::duration<double>(start.time_since_epoch()).count();
  result.times.reserve(instructions_.size());
  for (const Instruction& each : instructions_) {
    const double start_s = now_s();
    carry_out(each);
    result.times.push_back({start_s, now_s()});
  }
  link_.finish_sends();
  made_.clear();
  math_.clear_gradients();
  result.end_s = result.start_s + now_s();
  result.loss = link_.sum_of_all(math_.take_loss());
  return result;
}

void RankEngine::carry_out(const Instruction& instruction) {
  switch (instruction.kind) {
    case InstructionKind::receive:
      return receive(instruction);
    case InstructionKind::send:
      return send(instruction);
    case InstructionKind::forward:
      return forward(instruction);
    case InstructionKind::backward:
      return backward(instruction, PassHalf::both);
    case InstructionKind::input_gradient:
      return backward(instruction, PassHalf::inputs);
    case InstructionKind::weight_gradient:
      return backward(instruction, PassHalf::weights);
    case InstructionKind::gather:
      return gather(at(instruction.group));
    case InstructionKind::release:
      return math_.release_weights(at(instruction.group));
    case InstructionKind::reduce:
      return reduce(at(instruction.group));
    case InstructionKind::step:
      return step(at(instruction.group));
  }
}

std::int32_t RankEngine::tag_of(const Instruction& of, std::size_t value) const {
  const std::int64_t kind = std::int64_t{2} * of.handover + (of.gradient ? 1 : 0);
  return static_cast<std::int32_t>(
      (kind * most_values_ + static_cast<std::int64_t>(value)) * staged_.batch + of.first_sample);
}

std::int64_t RankEngine::first_sample(const Instruction& of) const {
  return staged_.first_sample(at(of.part), staged_.places[at(rank_)].replica, of.micro_batch);
}

PassOf RankEngine::pass_of(const Instruction& of) const {
  return {of.part, of.micro_batch, iteration_ * staged_.batch + first_sample(of)};
}

void RankEngine::receive(const Instruction& of) {
  if (of.peer == rank_) return;  // send() has put it there.
  const std::vector<ValueId>& values = staged_.handovers[at(of.handover)].values;
  Block block(values.size());
  for (std::size_t v = 0; v < values.size(); ++v) {
    const std::int64_t rows = rows_of_message(staged_, rank_, of, values[v]).length();
    if (rows == 0) continue;
    block[v] = link_.receive(math_.room_for(values[v], of.samples, rows), of.peer, tag_of(of, v));
  }
  received_[{of.handover, of.gradient, of.first_sample, staged_.places[at(of.peer)].of_replica}] =
      std::move(block);
}

void RankEngine::send(const Instruction& of) {
  const StagePart& part = staged_.parts[at(of.part)];
  const std::vector<ValueId>& made = of.gradient ? part.received : part.handed;
  const std::vector<ValueId>& values = staged_.handovers[at(of.handover)].values;
  const int own = staged_.places[at(rank_)].of_replica;
  Block block(values.size());
  for (std::size_t v = 0; v < values.size(); ++v) {
    const Interval rows = rows_of_message(staged_, rank_, of, values[v]);
    if (rows.length() == 0) continue;
    block[v] = math_.arithmetic().slice(made_[place_in(made, values[v])], 0,
                                        of.first_sample - first_sample(of), of.samples);
    const Interval held = staged_.rows_of(of.part, values[v], own);
    if (rows == held) continue;
    block[v] = math_.arithmetic().slice(block[v], 1, rows.first - held.first, rows.length());
  }
  if (of.peer == rank_) {
    received_[{of.handover, of.gradient, of.first_sample, own}] = std::move(block);
    return;
  }
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (block[v]) link_.send(block[v], of.peer, tag_of(of, v));
  }
}

std::vector<TensorHandle> RankEngine::joined(const Instruction& pass, bool gradients,
                                             std::size_t handover) {
  const auto number = static_cast<std::int32_t>(handover);
  const std::int64_t first = first_sample(pass);
  const std::int64_t last = first + staged_.parts[at(pass.part)].micro_batch;
  const auto join = [&](std::vector<TensorHandle>& parts, int dimension) {
    return parts.size() == 1 ? parts.front() : math_.arithmetic().join(parts, dimension);
  };
  // By value: what came of each block of samples; what came of a block from its senders.
  const std::size_t values = staged_.handovers[handover].values.size();
  std::vector<std::vector<TensorHandle>> samples(values);
  auto next = received_.lower_bound({number, gradients, first, 0});
  const auto is_next = [&] {
    return next != received_.end() && std::get<0>(next->first) == number &&
           std::get<1>(next->first) == gradients && std::get<2>(next->first) < last;
  };
  while (is_next()) {
    const std::int64_t block = std::get<2>(next->first);
    std::vector<std::vector<TensorHandle>> rows(values);
    for (; is_next() && std::get<2>(next->first) == block; next = received_.erase(next)) {
      for (std::size_t v = 0; v < values; ++v) {
        if (next->second[v]) rows[v].push_back(std::move(next->second[v]));
      }
    }
    for (std::size_t v = 0; v < values; ++v) samples[v].push_back(join(rows[v], 1));
  }
  std::vector<TensorHandle> result;
  result.reserve(values);
  for (std::vector<TensorHandle>& each : samples) result.push_back(join(each, 0));
  return result;
}

std::vector<TensorHandle> RankEngine::assembled(const Instruction& pass, bool gradients) {
  const StagePart& part = staged_.parts[at(pass.part)];
  const std::vector<ValueId>& wanted = gradients ? part.handed : part.received;
  std::vector<TensorHandle> result(wanted.size());
  for (std::size_t h = 0; h < staged_.handovers.size(); ++h) {
    const Handover& handover = staged_.handovers[h];
    if ((gradients ? handover.source : handover.target) != pass.part) continue;
    const std::vector<TensorHandle> whole = joined(pass, gradients, h);
    for (std::size_t v = 0; v < handover.values.size(); ++v) {
      TensorHandle& sum = result[place_in(wanted, handover.values[v])];
      sum = sum ? math_.arithmetic().sum(sum, whole[v]) : whole[v];
    }
  }
  return result;
}

void RankEngine::forward(const Instruction& of) {
  made_ = math_.forward(pass_of(of), assembled(of, false));
}

void RankEngine::backward(const Instruction& of, PassHalf half) {
  std::vector<TensorHandle> gradients;
  if (half != PassHalf::weights) gradients = assembled(of, true);
  made_ = math_.backward(pass_of(of), gradients, half);
}

void RankEngine::reduce(std::size_t group) {
  TensorHandle row = math_.gradients(group);
  const ParameterGroup& of = groups_[group];
  if (of.ranks.size() > 1) {
    row = of.zero == Zero::none ? link_.sum(group, std::move(row))
                                : link_.sum_part(group, std::move(row));
  }
  reduced_[group] = std::move(row);
}

void RankEngine::gather(std::size_t group) {
  math_.gather_weights(group, link_.gather(group, math_.weights(group), {}));
}

void RankEngine::gather_all() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const std::vector<std::int32_t>& ranks = groups_[g].ranks;
    if (is_gathered(groups_[g]) && std::binary_search(ranks.begin(), ranks.end(), rank_)) gather(g);
  }
}

void RankEngine::step(std::size_t group) {
  const ParameterGroup& of = groups_[group];
  const auto found = reduced_.find(group);
  TensorHandle row = std::move(found->second);
  reduced_.erase(found);
  if (of.zero == Zero::none || of.ranks.size() == 1) return math_.step(group, row, 0);
  const auto place = std::find(of.ranks.begin(), of.ranks.end(), rank_) - of.ranks.begin();
  const std::int64_t length = math_.row_length(group) / std::ssize(of.ranks);
  math_.step(group, row, place * length);
  if (is_gathered(of)) return;
  math_.set_weights(group, link_.gather(group, {}, math_.weights(group)));
}

}  // namespace braid

#include "braid/run/instructions.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "braid/base/index.h"

namespace braid {
namespace {

InstructionKind kind_of(WorkKind kind) {
  switch (kind) {
    case WorkKind::forward:
      return InstructionKind::forward;
    case WorkKind::input_gradient:
      return InstructionKind::input_gradient;
    case WorkKind::weight_gradient:
      return InstructionKind::weight_gradient;
    case WorkKind::backward:
    case WorkKind::reduce_gradients:
    case WorkKind::optimizer:
      break;
  }
  return InstructionKind::backward;
}

class InstructionWriter {
 public:
  InstructionWriter(const StagedModel& staged, std::span<const ParameterGroup> groups)
      : staged_(staged), result_(staged.rank_device.size()), gathered_(staged.rank_device.size()) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (!is_gathered(groups[g])) continue;
      for (std::size_t p = 0; p < staged.parts.size(); ++p) {
        if (!groups[g].has_any(staged.parts[p].parameters)) continue;
        for (const std::int32_t rank : groups[g].ranks) {
          gathered_[at(rank)][static_cast<std::int32_t>(p)].push_back(static_cast<std::int32_t>(g));
        }
      }
    }
  }

  /// A pass of a part by one rank, with what comes before and after.
  void add_pass(const Work& work, std::int32_t rank) {
    const InstructionKind kind = kind_of(work.kind);
    const bool is_forward = kind == InstructionKind::forward;
    std::vector<Instruction>& list = result_[at(rank)];
    const Instruction pass{.kind = kind, .part = work.stage, .micro_batch = work.index};
    const bool crosses = kind != InstructionKind::weight_gradient;
    if (crosses) exchange(rank, pass, {InstructionKind::receive, !is_forward});
    for (const std::int32_t group : gathered_[at(rank)][work.stage]) {
      list.push_back({.kind = InstructionKind::gather, .part = work.stage, .group = group});
    }
    list.push_back(pass);
    for (const std::int32_t group : gathered_[at(rank)][work.stage]) {
      list.push_back({.kind = InstructionKind::release, .part = work.stage, .group = group});
    }
    if (crosses) exchange(rank, pass, {InstructionKind::send, !is_forward});
  }

  void add_groups(std::span<const ParameterGroup> groups) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto group = static_cast<std::int32_t>(g);
      for (const std::int32_t rank : groups[g].ranks) {
        result_[at(rank)].push_back({.kind = InstructionKind::reduce, .group = group});
        result_[at(rank)].push_back({.kind = InstructionKind::step, .group = group});
      }
    }
  }

  std::vector<std::vector<Instruction>> take() { return std::move(result_); }

 private:
  struct Crossing {
    InstructionKind kind;
    bool gradient;
  };

  /// Sends of a pass's results, or receives of what it needs: activations come along handovers to
  /// the part and leave along those from it, gradients the other way round.
  void exchange(std::int32_t rank, const Instruction& pass, Crossing crossing) {
    const bool by_target = (crossing.kind == InstructionKind::receive) != crossing.gradient;
    const StagePart& own = staged_.parts[at(pass.part)];
    const std::int64_t first =
        staged_.first_sample(at(pass.part), staged_.places[at(rank)].replica, pass.micro_batch);
    const std::int64_t last = first + own.micro_batch;
    for (std::size_t h = 0; h < staged_.handovers.size(); ++h) {
      const Handover& handover = staged_.handovers[h];
      if ((by_target ? handover.target : handover.source) != pass.part) continue;
      const StagePart& other = staged_.parts[at(by_target ? handover.source : handover.target)];
      for (std::int64_t s = first; s < last;) {
        // Samples up to the end of the other side's micro-batch that holds s.
        const std::int64_t block = s / other.micro_batch;
        const std::int64_t end = std::min(last, (block + 1) * other.micro_batch);
        Instruction each = pass;
        each.kind = crossing.kind;
        each.gradient = crossing.gradient;
        each.handover = static_cast<std::int32_t>(h);
        each.first_sample = s;
        each.samples = end - s;
        for (int r = 0; r < other.sharers; ++r) {
          each.peer = other.rank_of(block % other.replicas(), r);
          if (crosses(handover, rank, each)) result_[at(rank)].push_back(each);
        }
        s = end;
      }
    }
  }

  bool crosses(const Handover& handover, std::int32_t rank, const Instruction& each) const {
    return std::any_of(handover.values.begin(), handover.values.end(), [&](ValueId value) {
      return rows_of_message(staged_, rank, each, value).length() > 0;
    });
  }

  const StagedModel& staged_;
  std::vector<std::vector<Instruction>> result_;
  std::vector<std::map<std::int32_t, std::vector<std::int32_t>>> gathered_;  ///< [rank], by part.
};

}  // namespace

Interval rows_of_message(const StagedModel& staged, std::int32_t rank, const Instruction& message,
                         ValueId value) {
  const Handover& handover = staged.handovers[at(message.handover)];
  const bool sends = message.kind == InstructionKind::send;
  const int sender = staged.places[at(sends ? rank : message.peer)].of_replica;
  const int receiver = staged.places[at(sends ? message.peer : rank)].of_replica;
  const std::int32_t from = message.gradient ? handover.target : handover.source;
  const std::int32_t to = message.gradient ? handover.source : handover.target;
  return crossing_rows(staged, value, from, sender, to, receiver);
}

std::vector<std::vector<Instruction>> instructions_of(const StagedModel& staged,
                                                      const WorkOrder& order,
                                                      std::span<const ParameterGroup> groups) {
  InstructionWriter writer(staged, groups);
  for (const std::vector<Work>& works : order.devices) {
    for (const Work& work : works) {
      if (work.kind == WorkKind::reduce_gradients || work.kind == WorkKind::optimizer) continue;
      for (const std::int32_t rank : staged.parts[at(work.stage)].ranks) {
        writer.add_pass(work, rank);
      }
    }
  }
  writer.add_groups(groups);
  return writer.take();
}

std::string describe(std::int32_t rank, const Instruction& instruction) {
  const auto samples = [&] {
    return fmt::format("{} of samples {} to {}", instruction.gradient ? "gradients" : "activations",
                       instruction.first_sample,
                       instruction.first_sample + instruction.samples - 1);
  };
  const auto pass = [&](const char* name) {
    return fmt::format("rank {} runs the {} of micro-batch {} of part {}", rank, name,
                       instruction.micro_batch, instruction.part);
  };
  switch (instruction.kind) {
    case InstructionKind::receive:
      return fmt::format("rank {} receives {} from rank {}", rank, samples(), instruction.peer);
    case InstructionKind::send:
      return fmt::format("rank {} sends {} to rank {}", rank, samples(), instruction.peer);
    case InstructionKind::forward:
      return pass("forward pass");
    case InstructionKind::backward:
      return pass("backward pass");
    case InstructionKind::input_gradient:
      return pass("input gradients");
    case InstructionKind::weight_gradient:
      return pass("weight gradients");
    case InstructionKind::gather:
      return fmt::format("rank {} gathers the parameters of group {}", rank, instruction.group);
    case InstructionKind::release:
      return fmt::format("rank {} lets go of the parameters of group {}", rank, instruction.group);
    case InstructionKind::reduce:
      return fmt::format("rank {} sums the gradients of group {}", rank, instruction.group);
    case InstructionKind::step:
      return fmt::format("rank {} updates the parameters of group {}", rank, instruction.group);
  }
  return {};
}

}  // namespace braid

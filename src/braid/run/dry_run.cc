#include "braid/run/dry_run.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// Sender, receiver, handover, whether a gradient, first sample.
using MessageKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, bool, std::int64_t>;

class DryRunner {
 public:
  DryRunner(const StagedModel& staged, std::span<const ParameterGroup> groups,
            std::span<const std::vector<Instruction>> ranks)
      : staged_(staged), ranks_(ranks), next_(ranks.size(), 0) {
    for (const StagePart& part : staged.parts) {
      held_.emplace_back(part.ranks.size(), 0);
      result_.in_flight.emplace_back(part.ranks.size(), 0);
    }
    meeting_ranks_ = meeting_ranks(staged, groups);
    met_in_passes_.resize(ranks.size());
    for (std::size_t g = groups.size(); g < meeting_ranks_.size(); ++g) {
      for (const std::int32_t rank : meeting_ranks_[g]) met_in_passes_[at(rank)].push_back(g);
    }
  }

  DryRun run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        while (next_[r] < ranks_[r].size() && take(static_cast<std::int32_t>(r))) moves = true;
      }
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (next_[r] == ranks_[r].size()) continue;
      throw Error(describe(static_cast<std::int32_t>(r), ranks_[r][next_[r]]) +
                  ", which it would wait for for ever");
    }
    if (!messages_.empty()) {
      const auto& [key, samples] = *messages_.begin();
      throw Error("rank " + std::to_string(std::get<1>(key)) + " never receives what rank " +
                  std::to_string(std::get<0>(key)) + " sends");
    }
    return std::move(result_);
  }

 private:
  /// Of a rank with a group: that it has come to, and that it has left.
  struct Meetings {
    std::int64_t come = 0, left = 0;
  };

  /// Does the rank's next instruction; false when it has to wait.
  bool take(std::int32_t rank) {
    const Instruction& next = ranks_[at(rank)][next_[at(rank)]];
    switch (next.kind) {
      case InstructionKind::send:
        messages_[{rank, next.peer, next.handover, next.gradient, next.first_sample}] =
            next.samples;
        if (rank != next.peer) ++result_.messages;
        break;
      case InstructionKind::receive: {
        const auto found =
            messages_.find({next.peer, rank, next.handover, next.gradient, next.first_sample});
        if (found == messages_.end()) return false;
        if (found->second != next.samples) {
          throw Error(describe(rank, next) + ", and " + std::to_string(found->second) +
                      " samples are sent");
        }
        messages_.erase(found);
        break;
      }
      case InstructionKind::gather:
      case InstructionKind::reduce:
        if (!joined(rank, {at(next.group)})) return false;
        break;
      case InstructionKind::forward:
      case InstructionKind::backward:
      case InstructionKind::input_gradient:
      case InstructionKind::weight_gradient:
        if (!joined(rank, met_in_passes_[at(rank)])) return false;
        count(rank, next);
        break;
      case InstructionKind::step:
      case InstructionKind::release:
        break;
    }
    ++next_[at(rank)];
    return true;
  }

  /// Whether all members of these groups have come to where this one is: as many meetings.
  bool joined(std::int32_t rank, const std::vector<std::size_t>& groups) {
    bool all = true;
    for (const std::size_t group : groups) {
      Meetings& own = meetings_[{rank, group}];
      own.come = own.left + 1;
      for (const std::int32_t member : meeting_ranks_[group]) {
        all = all && meetings_[{member, group}].come > own.left;
      }
    }
    if (!all) return false;
    for (const std::size_t group : groups) ++meetings_[{rank, group}].left;
    return true;
  }

  void count(std::int32_t rank, const Instruction& pass) {
    const std::vector<std::int32_t>& ranks = staged_.parts[at(pass.part)].ranks;
    const auto replica = at(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
    std::int64_t& held = held_[at(pass.part)][replica];
    if (pass.kind == InstructionKind::forward) {
      ++held;
      std::int64_t& most = result_.in_flight[at(pass.part)][replica];
      most = std::max(most, held);
    } else if (pass.kind != InstructionKind::weight_gradient) {
      --held;
    }
  }

  const StagedModel& staged_;
  std::span<const std::vector<Instruction>> ranks_;
  std::vector<std::vector<std::int32_t>> meeting_ranks_;
  std::vector<std::vector<std::size_t>> met_in_passes_;  ///< [rank]: groups.
  std::vector<std::size_t> next_;
  std::map<std::pair<std::int32_t, std::size_t>, Meetings> meetings_;  ///< By rank and group.
  std::map<MessageKey, std::int64_t> messages_;  ///< Samples of what is under way.
  std::vector<std::vector<std::int64_t>> held_;
  DryRun result_;
};

}  // namespace

DryRun dry_run(const StagedModel& staged, std::span<const ParameterGroup> groups,
               std::span<const std::vector<Instruction>> ranks) {
  return DryRunner(staged, groups, ranks).run();
}

}  // namespace braid

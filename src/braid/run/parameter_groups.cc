#include "braid/run/parameter_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

using Ranks = std::vector<std::int32_t>;

/// Who holds which part of a parameter.
struct Holder {
  std::int32_t rank = 0, stage = 0;
  const StoredPart* part = nullptr;  ///< Null: all of it.
};

struct Holders {
  std::vector<Holder> list;
  Zero zero = Zero::parameters;
};

bool has(const Holder& holder, std::int64_t index) {
  return holder.part == nullptr ||
         std::any_of(holder.part->held.begin(), holder.part->held.end(), [&](const Interval& each) {
           return each.first <= index && index < each.last;
         });
}

/// The pieces that a parameter falls into, by the ranks that hold them.
std::map<Ranks, ParameterPiece> pieces_of(ValueId value, const Holders& holders,
                                          const StagedModel& staged) {
  std::int32_t axis = -1;
  std::set<std::int64_t> bounds;
  for (const Holder& each : holders.list) {
    if (each.part == nullptr) continue;
    if (axis >= 0 && axis != each.part->axis) {
      throw Error(fmt::format("stage {} divides {} along another dimension than a stage before it",
                              each.stage + 1, staged.model.program.values[at(value)].name),
                  "plan both with the same --tp");
    }
    axis = each.part->axis;
    for (const Interval& held : each.part->held) {
      bounds.insert(held.first);
      bounds.insert(held.last);
    }
  }
  std::map<Ranks, ParameterPiece> pieces;
  if (axis < 0) {
    Ranks all;
    for (const Holder& each : holders.list) all.push_back(each.rank);
    pieces[all] = {value, -1, {}};
    return pieces;
  }
  for (auto next = bounds.begin(); std::next(next) != bounds.end(); ++next) {
    const Interval interval{*next, *std::next(next)};
    Ranks ranks;
    for (const Holder& each : holders.list) {
      if (has(each, interval.first)) ranks.push_back(each.rank);
    }
    if (ranks.empty()) continue;
    ParameterPiece& piece = pieces[ranks];
    piece.value = value;
    piece.axis = axis;
    if (!piece.held.empty() && piece.held.back().last == interval.first) {
      piece.held.back().last = interval.last;
    } else {
      piece.held.push_back(interval);
    }
  }
  return pieces;
}

void refuse_shared(const StagedModel& staged, const std::vector<ParameterGroup>& groups) {
  for (const StagePart& part : staged.parts) {
    for (const ParameterGroup& group : groups) {
      if (!is_gathered(group) || !group.has_any(part.parameters)) continue;
      const bool is_own = std::all_of(
          group.ranks.begin(), group.ranks.end(),
          [&](std::int32_t rank) { return staged.places[at(rank)].stage == part.stage; });
      if (is_own) continue;
      const auto shared =
          std::find_if(group.pieces.begin(), group.pieces.end(), [&](const ParameterPiece& piece) {
            return std::binary_search(part.parameters.begin(), part.parameters.end(), piece.value);
          });
      throw Error(fmt::format("stage {} shards {} (ZeRO-3), which another stage holds too",
                              part.stage + 1, staged.model.program.values[at(shared->value)].name),
                  "plan with --zero 2 or less");
    }
  }
}

}  // namespace

bool ParameterGroup::has_any(std::span<const ValueId> parameters) const {
  return std::any_of(pieces.begin(), pieces.end(), [&](const ParameterPiece& piece) {
    return std::find(parameters.begin(), parameters.end(), piece.value) != parameters.end();
  });
}

std::vector<ParameterGroup> parameter_groups(const StagedModel& staged, const Plan& plan) {
  std::map<ValueId, std::map<std::int32_t, Holder>> by_rank;
  std::map<ValueId, Holders> holders;
  for (const StagePart& part : staged.parts) {
    const Zero zero = form_of(plan, at(part.stage)).zero;
    for (const ValueId parameter : part.parameters) {
      Holders& of = holders[parameter];
      of.zero = std::min(of.zero, zero);
      for (const std::int32_t rank : part.ranks) {
        const auto& parts = staged.program_of(rank).parts;
        const auto found = parts.find(parameter);
        by_rank[parameter][rank] = {rank, part.stage,
                                    found == parts.end() ? nullptr : &found->second};
      }
    }
  }
  std::map<std::pair<Ranks, Zero>, std::vector<ParameterPiece>> by_ranks;
  for (auto& [parameter, of] : holders) {
    for (const auto& [rank, holder] : by_rank[parameter]) of.list.push_back(holder);
    for (auto& [ranks, piece] : pieces_of(parameter, of, staged)) {
      by_ranks[{ranks, of.zero}].push_back(std::move(piece));
    }
  }
  std::vector<ParameterGroup> groups;
  groups.reserve(by_ranks.size());
  for (auto& [key, pieces] : by_ranks) groups.push_back({key.first, std::move(pieces), key.second});
  refuse_shared(staged, groups);
  return groups;
}

std::vector<std::vector<std::int32_t>> meeting_ranks(const StagedModel& staged,
                                                     std::span<const ParameterGroup> groups) {
  std::vector<std::vector<std::int32_t>> all;
  for (const ParameterGroup& group : groups) all.push_back(group.ranks);
  all.insert(all.end(), staged.sharers.begin(), staged.sharers.end());
  all.insert(all.end(), staged.expert_sharers.begin(), staged.expert_sharers.end());
  return all;
}

std::vector<Interval> places_in_part(const ParameterPiece& piece, const StoredPart* part) {
  if (part == nullptr) return piece.held;
  std::vector<Interval> places;
  std::int64_t before = 0;
  for (const Interval& own : part->held) {
    for (const Interval& each : piece.held) {
      const std::int64_t first = std::max(own.first, each.first);
      const std::int64_t last = std::min(own.last, each.last);
      if (first < last) places.push_back({before + first - own.first, before + last - own.first});
    }
    before += own.length();
  }
  return places;
}

void put_piece(DenseTensor& whole, const PieceOfTensor& of) {
  if (of.piece.axis < 0) {
    whole = of.tensor;
    return;
  }
  const std::size_t axis = at(of.piece.axis);
  const std::span<const std::int64_t> sizes = whole.shape;
  const std::int64_t after = element_count(sizes.subspan(axis + 1));
  std::vector<std::int64_t> places;
  places.reserve(at(of.tensor.count()));
  for (std::int64_t b = 0; b < element_count(sizes.first(axis)); ++b) {
    for (const Interval& each : of.piece.held) {
      for (std::int64_t k = each.first * after; k < each.last * after; ++k) {
        places.push_back(b * whole.shape[axis] * after + k);
      }
    }
  }
  put(whole, of.tensor, places);
}

}  // namespace braid

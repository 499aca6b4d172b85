#include "braid/run/training_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "braid/base/index.h"

namespace braid {
namespace {

bool is_in(const ParameterGroup& group, std::int32_t rank) {
  return std::binary_search(group.ranks.begin(), group.ranks.end(), rank);
}

/// Whether each rank of a group has a part of a row alone.
bool is_sharded(const ParameterGroup& group, std::size_t row) {
  if (group.ranks.size() == 1) return false;
  return row == 0 ? group.zero == Zero::parameters : group.zero != Zero::none;
}

}  // namespace

std::optional<Checkpoint> collected(const RunningRank& own, Checkpoint checkpoint) {
  const LayeredProgram& model = own.staged.model;
  const TrainingSettings& settings = checkpoint.settings;
  if (own.rank == 0) {
    checkpoint.tensors = empty_tensors(model, settings.type, settings.optimizer);
  }
  const std::size_t rows = checkpoint_rows(settings.optimizer);
  for (std::size_t g = 0; g < own.groups.size(); ++g) {
    const ParameterGroup& group = own.groups[g];
    const std::int32_t first = group.ranks.front();
    for (std::size_t row = 0; row < rows; ++row) {
      const auto tag = static_cast<std::int32_t>(g * rows + row);
      TensorHandle whole;
      if (is_in(group, own.rank)) {
        whole = row == 0 ? own.math.weights(g) : own.math.moment(g, row - 1);
        if (is_sharded(group, row)) whole = own.link.gather(g, std::move(whole), {});
      }
      if (own.rank == 0 && first != 0) {
        whole = own.link.receive(own.math.row_room(row_length(model, group)), first, tag);
      } else if (own.rank != 0 && first == own.rank) {
        // A copy: the next iteration may come before it is read.
        const std::int64_t length = own.math.arithmetic().length(whole);
        own.link.send(own.math.arithmetic().slice(whole, 0, 0, length), 0, tag);
      }
      if (own.rank == 0) {
        put_row(checkpoint.tensors, model, group, row, own.math.numbers(whole));
      }
    }
  }
  own.link.finish_sends();
  if (own.rank != 0) return std::nullopt;
  return checkpoint;
}

void restore(const RunningRank& own, const Checkpoint& checkpoint) {
  const LayeredProgram& model = own.staged.model;
  for (std::size_t g = 0; g < own.groups.size(); ++g) {
    const ParameterGroup& group = own.groups[g];
    if (!is_in(group, own.rank)) continue;
    std::vector<TensorHandle> rows;
    for (std::size_t row = 0; row < checkpoint_rows(checkpoint.settings.optimizer); ++row) {
      rows.push_back(own.math.row_of_numbers(row_of(checkpoint, model, group, row)));
      if (!is_sharded(group, row)) continue;
      const auto place =
          std::find(group.ranks.begin(), group.ranks.end(), own.rank) - group.ranks.begin();
      const std::int64_t length = own.math.row_length(g) / std::ssize(group.ranks);
      rows.back() = own.math.arithmetic().slice(rows.back(), 0, place * length, length);
    }
    own.math.restore(g, rows, checkpoint.iterations);
  }
}

}  // namespace braid

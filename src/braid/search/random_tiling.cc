#include "braid/search/random_tiling.h"

namespace braid {
namespace {

/// Lays one rectangle after the other.
class Tiler {
 public:
  Tiler(const std::vector<std::vector<std::int32_t>>& mesh, std::int32_t shards,
        std::int32_t replicas, RandomNumbers& random)
      : mesh_(mesh),
        shards_(static_cast<std::size_t>(shards)),
        replicas_(static_cast<std::size_t>(replicas)),
        random_(random),
        taken_(mesh.size(), std::vector<bool>(mesh.front().size(), false)) {}

  /// Devices in the order of ranks; empty when no tiling was found in a fair number of steps.
  std::vector<std::int32_t> tile() {
    if (!fill()) device_.clear();
    return device_;
  }

 private:
  bool fill() {
    for (std::size_t column = 0; column < mesh_.size(); ++column) {
      for (std::size_t row = 0; row < mesh_[column].size(); ++row) {
        if (!taken_[column][row]) return lay(column, row);
      }
    }
    return true;
  }

  bool lay(std::size_t column, std::size_t row) {
    const bool upright_first = random_.below(2) == 0;
    for (const bool upright : {upright_first, !upright_first}) {
      if (--steps_ < 0) return false;
      const std::size_t rows = upright ? shards_ : replicas_;
      const std::size_t columns = upright ? replicas_ : shards_;
      if (!free(column, row, columns, rows)) continue;
      mark(column, row, columns, rows, true);
      for (std::size_t replica = 0; replica < replicas_; ++replica) {
        for (std::size_t shard = 0; shard < shards_; ++shard) {
          device_.push_back(upright ? mesh_[column + replica][row + shard]
                                    : mesh_[column + shard][row + replica]);
        }
      }
      if (fill()) return true;
      mark(column, row, columns, rows, false);
      device_.resize(device_.size() - shards_ * replicas_);
    }
    return false;
  }

  bool free(std::size_t column, std::size_t row, std::size_t columns, std::size_t rows) const {
    if (column + columns > mesh_.size() || row + rows > mesh_.front().size()) return false;
    for (std::size_t c = column; c < column + columns; ++c) {
      for (std::size_t r = row; r < row + rows; ++r) {
        if (taken_[c][r]) return false;
      }
    }
    return true;
  }
  void mark(std::size_t column, std::size_t row, std::size_t columns, std::size_t rows, bool as) {
    for (std::size_t c = column; c < column + columns; ++c) {
      for (std::size_t r = row; r < row + rows; ++r) taken_[c][r] = as;
    }
  }

  const std::vector<std::vector<std::int32_t>>& mesh_;
  std::size_t shards_, replicas_;
  RandomNumbers& random_;
  std::vector<std::vector<bool>> taken_;
  std::vector<std::int32_t> device_;
  int steps_ = 2000;
};

}  // namespace

std::vector<std::int32_t> random_tiling(const std::vector<std::vector<std::int32_t>>& mesh,
                                        std::int32_t shards, std::int32_t replicas,
                                        RandomNumbers& random) {
  return Tiler(mesh, shards, replicas, random).tile();
}

}  // namespace braid

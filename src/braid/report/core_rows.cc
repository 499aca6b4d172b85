#include "braid/report/core_rows.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <variant>

#include <fmt/format.h>

namespace braid {
namespace {

constexpr std::size_t kMostCoreRows = 8;  ///< Cores of a kind that are shown by themselves.

/// Rows of the cores of one kind.
class KindRows {
 public:
  KindRows(const CoreProblem& problem, const CoreSchedule& schedule, CoreKind kind, CoreRows& rows)
      : problem_(problem), schedule_(schedule), kind_(kind), rows_(rows) {}

  void add() {
    bool needed = false;
    for (std::size_t i = 0; i < problem_.operators.size(); ++i) {
      if (!is_on(i)) continue;
      needed = true;
      if (const std::int32_t core = core_of(i); core >= 0) by_core_[core].push_back(i);
    }
    if (!needed) return;
    first_row_ = rows_.rows.size();
    std::size_t shown = 0;
    std::vector<std::size_t> others;
    for (const auto& [core, operators] : by_core_) {
      if (by_core_.size() > kMostCoreRows && shown + 1 >= kMostCoreRows) {
        others.insert(others.end(), operators.begin(), operators.end());
        continue;
      }
      ++shown;
      rows_.rows.push_back({kind_, 1, fmt::format("{} {}", name_of(kind_), core), {}});
      for (const std::size_t i : operators) add_box(i, rows_.rows.size() - 1);
    }
    if (!others.empty()) add_crowd(others, static_cast<std::int64_t>(by_core_.size() - shown));
    add_idle();
    for (std::size_t i = 0; i < problem_.operators.size(); ++i) {
      if (!is_on(i) || !schedule_.operators[i].all_cores) continue;
      rows_.boxes.push_back({i, first_row_, rows_.rows.size() - 1});
    }
  }

 private:
  bool is_on(std::size_t i) const {
    const CoreKind kind = problem_.operators[i].kind;
    return kind_ == CoreKind::tensor ? needs_tensor_core(kind) : needs_vector_core(kind);
  }
  std::int32_t core_of(std::size_t i) const {
    const PlacedOperator& placed = schedule_.operators[i];
    return kind_ == CoreKind::tensor ? placed.tensor_core : placed.vector_core;
  }
  void add_box(std::size_t op, std::size_t row) { rows_.boxes.push_back({op, row, row}); }

  void add_crowd(const std::vector<std::size_t>& operators, std::int64_t cores) {
    std::map<double, std::int64_t> changes;
    for (const std::size_t i : operators) {
      ++changes[schedule_.operators[i].start_s];
      --changes[schedule_.operators[i].end_s];
    }
    CoreRow row{kind_, cores, fmt::format("{} others", cores), {}};
    std::int64_t busy = 0;
    for (const auto& [time_s, change] : changes) {
      busy += change;
      row.busy.emplace_back(time_s, busy);
    }
    rows_.rows.push_back(std::move(row));
  }

  void add_idle() {
    const std::int64_t all =
        kind_ == CoreKind::tensor ? problem_.cores.tensor : problem_.cores.vector;
    const std::int64_t idle = all - static_cast<std::int64_t>(by_core_.size());
    if (idle == 0) return;
    const bool any = !by_core_.empty();
    rows_.rows.push_back(
        {kind_,
         idle,
         any ? fmt::format("{} more", idle) : fmt::format("{} {}", idle, name_of(kind_)),
         {}});
  }

  const CoreProblem& problem_;
  const CoreSchedule& schedule_;
  CoreKind kind_;
  CoreRows& rows_;
  std::map<std::int32_t, std::vector<std::size_t>> by_core_;
  std::size_t first_row_ = 0;
};

}  // namespace

CoreName core_name(const Operator& op, const std::string& layer) {
  CoreName name{op.name, CorePart::forward};
  const auto is_part = [&](CorePart part, std::string_view ending) {
    name.part = part;
    if (name.name.ends_with(ending)) name.name.resize(name.name.size() - ending.size());
  };
  if (name.name.rfind(layer + ".", 0) == 0) name.name.erase(0, layer.size() + 1);
  if (op.pass == Pass::input_gradient) is_part(CorePart::input_gradient, ".input_gradient");
  if (op.pass == Pass::weight_gradient) is_part(CorePart::weight_gradient, ".weight_gradient");
  if (std::holds_alternative<OptimizerStep>(op.kind)) is_part(CorePart::optimizer, ".step");
  return name;
}

CoreRows core_rows(const CoreProblem& problem, const CoreSchedule& schedule) {
  CoreRows rows;
  KindRows(problem, schedule, CoreKind::tensor, rows).add();
  KindRows(problem, schedule, CoreKind::vector, rows).add();
  return rows;
}

}  // namespace braid

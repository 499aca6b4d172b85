#include "braid/plan/names.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace braid {
namespace {

template <typename T, std::size_t N>
using Names = std::array<std::pair<T, std::string_view>, N>;

constexpr Names<ScheduleKind, 3> kSchedules{{{ScheduleKind::gpipe, "gpipe"},
                                             {ScheduleKind::one_f_one_b, "1f1b"},
                                             {ScheduleKind::interleaved, "interleaved"}}};
constexpr Names<Recompute, 3> kRecomputes{
    {{Recompute::none, "none"}, {Recompute::selective, "selective"}, {Recompute::full, "full"}}};
constexpr Names<Zero, 4> kZeros{
    {{Zero::none, "0"}, {Zero::optimizer, "1"}, {Zero::gradients, "2"}, {Zero::parameters, "3"}}};
constexpr Names<Axis, 4> kAxes{
    {{Axis::tp, "tp"}, {Axis::cp, "cp"}, {Axis::dp, "dp"}, {Axis::pp, "pp"}}};

template <typename T, std::size_t N>
std::string_view find_name(const Names<T, N>& names, T value) {
  for (const auto& [entry, name] : names) {
    if (entry == value) return name;
  }
  return "";
}

template <typename T, std::size_t N>
std::optional<T> find_value(const Names<T, N>& names, std::string_view text) {
  for (const auto& [entry, name] : names) {
    if (name == text) return entry;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(ScheduleKind schedule) { return find_name(kSchedules, schedule); }
std::string_view name_of(Recompute recompute) { return find_name(kRecomputes, recompute); }
std::string_view name_of(Zero zero) { return find_name(kZeros, zero); }
std::string_view name_of(Axis axis) { return find_name(kAxes, axis); }

std::optional<ScheduleKind> parse_schedule(std::string_view name) {
  return find_value(kSchedules, name);
}
std::optional<Recompute> parse_recompute(std::string_view name) {
  return find_value(kRecomputes, name);
}
std::optional<Axis> parse_axis(std::string_view name) { return find_value(kAxes, name); }

namespace {

/// Whether a stage begins with more samples than 1F1B needs where transfers take no time, which is
/// a micro-batch for each stage from it on.
bool has_deep_warm_ups(const Plan& plan) {
  std::int64_t largest = 1;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    largest = std::max<std::int64_t>(largest, form_of(plan, s).micro_batch);
  }
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const auto& own = plan.stages[s].own;
    if (!own || !own->warm_up) continue;
    const auto from_it_on = static_cast<std::int64_t>(plan.stages.size() - s);
    if (*own->warm_up * form_of(plan, s).micro_batch > from_it_on * largest) return true;
  }
  return false;
}

}  // namespace

std::string schedule_text(const Plan& plan) {
  const bool own = std::any_of(plan.stages.begin(), plan.stages.end(), [](const Stage& stage) {
    return stage.own.has_value() && !stage.own->passes.empty();
  });
  if (own) return "own order";
  if (plan.stages.size() == 1) return "one stage";
  return std::string(name_of(plan.parallel.schedule)) + (has_deep_warm_ups(plan) ? "+" : "");
}

std::string own_order_text(const Stage& stage) {
  if (!stage.own) return "";
  if (!stage.own->passes.empty()) {
    return fmt::format("{} in flight ({})", most_in_flight(stage.own->passes),
                       passes_text(stage.own->passes));
  }
  return stage.own->warm_up ? fmt::format("{} in flight", *stage.own->warm_up) : "";
}

}  // namespace braid

#include "braid/evaluate/service_changes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/evaluate/steepest_steps.h"

namespace braid {
namespace {

/// Something that a kind of worker has for itself.
struct WorkerField {
  const char* name;
  std::string (*text)(const WorkerPlan& of);
  void (*take)(WorkerPlan& of, const WorkerPlan& from);
};

std::string whole(double number) { return fmt::format("{:.0f}", number); }
std::string whole(std::int64_t number) { return std::to_string(number); }

/// Experts stay dealt out, or stay sharded, when the ranks change.
void set_ranks(ServingLayout& layout, std::int64_t tp, std::int64_t dp) {
  const bool dealt = layout.moe_ep > 1 && layout.moe_tp == 1;
  layout.tp = tp;
  layout.dp = dp;
  const std::int64_t ranks = layout.stage_devices();
  if (dealt) layout.moe_ep = ranks;
  if (layout.moe_ep > ranks || ranks % layout.moe_ep != 0) layout.moe_ep = 1;
  layout.moe_tp = ranks / layout.moe_ep;
  if (tp % layout.cp != 0) layout.cp = 1;
}

constexpr std::array kWorkerFields{
    WorkerField{"TP", [](const WorkerPlan& w) { return whole(w.layout.tp); },
                [](WorkerPlan& w, const WorkerPlan& from) {
                  set_ranks(w.layout, from.layout.tp, w.layout.dp);
                }},
    WorkerField{"attention DP", [](const WorkerPlan& w) { return whole(w.layout.dp); },
                [](WorkerPlan& w, const WorkerPlan& from) {
                  set_ranks(w.layout, w.layout.tp, from.layout.dp);
                }},
    WorkerField{"EP", [](const WorkerPlan& w) { return whole(w.layout.moe_ep); },
                [](WorkerPlan& w, const WorkerPlan& from) {
                  const std::int64_t ranks = w.layout.stage_devices();
                  const bool all = from.layout.moe_tp == 1 && from.layout.moe_ep > 1;
                  const std::int64_t ep = all ? ranks : from.layout.moe_ep;
                  if (ranks % ep != 0) return;
                  w.layout.moe_ep = ep;
                  w.layout.moe_tp = ranks / ep;
                }},
    WorkerField{"PP", [](const WorkerPlan& w) { return whole(w.layout.pp); },
                [](WorkerPlan& w, const WorkerPlan& from) { w.layout.pp = from.layout.pp; }},
    WorkerField{"DCP", [](const WorkerPlan& w) { return whole(w.layout.cp); },
                [](WorkerPlan& w, const WorkerPlan& from) {
                  if (w.layout.tp % from.layout.cp == 0) w.layout.cp = from.layout.cp;
                }},
    WorkerField{
        "sequences at once", [](const WorkerPlan& w) { return whole(w.limits.sequences); },
        [](WorkerPlan& w, const WorkerPlan& from) { w.limits.sequences = from.limits.sequences; }},
    WorkerField{"chunk", [](const WorkerPlan& w) { return whole(w.limits.chunk_tokens); },
                [](WorkerPlan& w, const WorkerPlan& from) {
                  w.limits.chunk_tokens = from.limits.chunk_tokens;
                }},
    WorkerField{"cache", [](const WorkerPlan& w) { return w.format.cache; },
                [](WorkerPlan& w, const WorkerPlan& from) { w.format.cache = from.format.cache; }},
    WorkerField{"share of memory",
                [](const WorkerPlan& w) { return fmt::format("{:g}", w.engine->memory_share); },
                [](WorkerPlan& w, const WorkerPlan& from) { w.engine = from.engine; }},
    WorkerField{"drafted tokens", [](const WorkerPlan& w) { return whole(w.draft_tokens); },
                [](WorkerPlan& w, const WorkerPlan& from) { w.draft_tokens = from.draft_tokens; }},
    WorkerField{"workers", [](const WorkerPlan& w) { return whole(w.workers); },
                [](WorkerPlan& w, const WorkerPlan& from) { w.workers = from.workers; }}};

constexpr std::size_t kWorkerChoices =
    2 * kWorkerFields.size();  ///< Of decode workers, then of prefill ones.

class ServiceChain {
 public:
  ServiceChain(const ServingPlan& from, const ServingPlan& to, const ServingJob& job)
      : from_(from), to_(to), job_(job) {
    for (std::size_t c = 0; c < (to.disaggregated ? kWorkerChoices : kWorkerFields.size()); ++c) {
      const auto text = [c](const ServingPlan& plan) {
        return kWorkerFields[c % kWorkerFields.size()].text(of(plan, c));
      };
      if (text(from) != text(to)) left_ |= choice_bit(c);
    }
    // Of aggregated workers there are as many as there is room for.
    if (!to.disaggregated) left_ &= ~choice_bit(kWorkerFields.size() - 1);
  }

  // For SteepestSteps: a state is the service with some fields as in `to`.
  using State = StatedTimes;

  std::optional<State> after(Choices taken) const {
    const ServingPlan plan = plan_with(taken);
    if (plan.decode.layout.devices() > job_.system->device_count) return std::nullopt;
    try {
      return stated_times(plan, job_);
    } catch (const Error&) {
      return std::nullopt;  // The model cannot be sharded so.
    }
  }

  bool is_better(const State& a, const State& b) const { return score(a) > score(b); }

  static bool may_be_next(Choices /*taken*/, Choices /*next*/) { return true; }

  std::vector<ServiceChange> changes() const {
    std::vector<ServiceChange> all;
    ServingPlan before = from_;
    for (Step<State>& step : SteepestSteps(*this).steps(left_)) {
      const std::string what = what_changes(before, step.after.plan);
      before = step.after.plan;
      if (!what.empty()) all.push_back({what, std::move(step.after)});
    }
    return all;
  }

 private:
  static const WorkerPlan& of(const ServingPlan& plan, std::size_t choice) {
    return choice < kWorkerFields.size() ? plan.decode : plan.prefill;
  }

  ServingPlan plan_with(Choices taken) const {
    ServingPlan plan = from_;
    for (std::size_t c = 0; c < kWorkerChoices; ++c) {
      if ((taken & choice_bit(c)) == 0) continue;
      kWorkerFields[c % kWorkerFields.size()].take(
          c < kWorkerFields.size() ? plan.decode : plan.prefill, of(to_, c));
    }
    if (!plan.disaggregated) {
      plan.decode.workers =
          std::max<std::int64_t>(1, job_.system->device_count / plan.decode.layout.devices());
    }
    return plan;
  }

  /// What is better is greater.
  std::tuple<bool, double, double> score(const StatedTimes& times) const {
    if (!times.fits()) return {false, 0, -times.decode.missing_bytes - times.prefill.missing_bytes};
    const double over =
        std::max(times.alone.ttft_s / job_.ttft_s, times.alone.tpot_s / job_.tpot_s);
    return {true, times.plan.requests_per_s_per_device(), times.holds_targets() ? 0 : -over};
  }

  static std::string what_changes(const ServingPlan& before, const ServingPlan& after) {
    std::string text;
    for (std::size_t c = 0; c < (after.disaggregated ? kWorkerChoices : kWorkerFields.size() - 1);
         ++c) {
      const WorkerField& field = kWorkerFields[c % kWorkerFields.size()];
      const std::string was = field.text(of(before, c)), is = field.text(of(after, c));
      if (was == is) continue;
      const char* where = !after.disaggregated       ? ""
                          : c < kWorkerFields.size() ? "decode: "
                                                     : "prefill: ";
      text += fmt::format("{}{}{} {} -> {}", text.empty() ? "" : ", ", where, field.name, was, is);
    }
    return text;
  }

  const ServingPlan& from_;
  const ServingPlan& to_;
  const ServingJob& job_;
  Choices left_ = 0;
};

}  // namespace

std::vector<ServiceChange> service_changes(const ServingPlan& from, const ServingPlan& to,
                                           const ServingJob& job) {
  return ServiceChain(from, to, job).changes();
}

}  // namespace braid

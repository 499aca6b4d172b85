#include "braid/evaluate/change_chain.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/evaluate/steepest_steps.h"
#include "braid/graph/predicts_mtp.h"
#include "braid/plan/dealt_layers.h"
#include "braid/plan/names.h"

namespace braid {
namespace {

std::string on_off(bool on) { return on ? "on" : "off"; }

std::string offload_text(const Parallelism& p) {
  std::string text;
  const auto add = [&](bool on, const char* name) {
    if (on) text += (text.empty() ? "" : "+") + std::string(name);
  };
  add(p.offload_optimizer, "optimizer");
  add(p.offload_weights, "weights");
  add(p.offload_activations, "activations");
  return text.empty() ? "none" : text;
}

std::string order_text(const Parallelism& p) {
  std::string text;
  for (const Axis axis : p.order) text += (text.empty() ? "" : "-") + std::string(name_of(axis));
  return text;
}

std::string schedule_words(const Parallelism& p) {
  return p.vp > 1 ? fmt::format("{} vp {}", name_of(p.schedule), p.vp)
                  : std::string(name_of(p.schedule));
}

std::string ep_text(const Parallelism& p) {
  return std::to_string(p.ep) + (p.whole_experts ? " whole" : "");
}

/// Of what ZeRO-3 divides.
std::string copies_text(const Parallelism& p) {
  return std::to_string(p.may_have_copies() ? p.replicate : 1);
}

/// Something that a configuration says for itself.
struct Field {
  const char* name;
  std::string (*text)(const Parallelism& p);
  void (*take)(Parallelism& p, const Parallelism& from);
};

constexpr const char* kSchedule = "schedule";

constexpr std::array kFields{
    Field{"tp", [](const Parallelism& p) { return std::to_string(p.tp); },
          [](Parallelism& p, const Parallelism& from) { p.tp = from.tp; }},
    Field{"sequence parallelism", [](const Parallelism& p) { return on_off(p.sequence_parallel); },
          [](Parallelism& p, const Parallelism& from) {
            p.sequence_parallel = from.sequence_parallel;
          }},
    Field{"pp", [](const Parallelism& p) { return std::to_string(p.pp); },
          [](Parallelism& p, const Parallelism& from) { p.pp = from.pp; }},
    Field{"cp", [](const Parallelism& p) { return std::to_string(p.cp); },
          [](Parallelism& p, const Parallelism& from) { p.cp = from.cp; }},
    Field{"ep", ep_text,
          [](Parallelism& p, const Parallelism& from) {
            p.ep = from.ep;
            p.whole_experts = from.whole_experts;
          }},
    Field{kSchedule, schedule_words,
          [](Parallelism& p, const Parallelism& from) {
            p.schedule = from.schedule;
            p.vp = from.vp;
          }},
    Field{"micro-batch", [](const Parallelism& p) { return std::to_string(p.micro_batch); },
          [](Parallelism& p, const Parallelism& from) { p.micro_batch = from.micro_batch; }},
    Field{"recompute", [](const Parallelism& p) { return std::string(name_of(p.recompute)); },
          [](Parallelism& p, const Parallelism& from) { p.recompute = from.recompute; }},
    Field{"ZeRO", [](const Parallelism& p) { return std::string(name_of(p.zero)); },
          [](Parallelism& p, const Parallelism& from) { p.zero = from.zero; }},
    Field{"copies of the state", copies_text,
          [](Parallelism& p, const Parallelism& from) { p.replicate = from.replicate; }},
    Field{"offload", offload_text,
          [](Parallelism& p, const Parallelism& from) {
            p.offload_optimizer = from.offload_optimizer;
            p.offload_weights = from.offload_weights;
            p.offload_activations = from.offload_activations;
          }},
    Field{"order", order_text,
          [](Parallelism& p, const Parallelism& from) { p.order = from.order; }},
};
/// As people read it: a single stage has nothing to order, whatever its schedule is called.
std::string text_shown(const Field& field, const Parallelism& p) {
  return std::string_view(field.name) == kSchedule && p.pp == 1 ? "one stage" : field.text(p);
}

// Behind the fields of the form: the devices used, stated layers given up for those that the
// trainer deals, and the layers of the other configuration.
constexpr std::size_t kDevices = kFields.size();
constexpr std::size_t kDealt = kDevices + 1;
constexpr std::size_t kLayout = kDealt + 1;

/// Of so many choices all orders are looked at, of which sets there are 256 at most.
constexpr int kMostOrdered = 8;
/// Rises that another order need not save, in millionths of the first time: a hundredth.
constexpr std::int64_t kLittleRise = 10'000;

class Chain {
 public:
  Chain(const StatedConfiguration& from, const StatedConfiguration& to, const ChangeRules& rules)
      : from_(from), to_(to), rules_(rules) {
    for (std::size_t f = 0; f < kFields.size(); ++f) {
      if (kFields[f].text(from.parallel) != kFields[f].text(to.parallel)) left_ |= choice_bit(f);
    }
    if (from.parallel.devices() != to.parallel.devices()) left_ |= choice_bit(kDevices);
    if (chunks_of(from.parallel) == chunks_of(to.parallel)) {
      if (layers_of(from) != layers_of(to)) left_ |= choice_bit(kLayout);
      return;
    }
    if (!is_dealt(from)) left_ |= choice_bit(kDealt);
    if (!is_dealt(to)) left_ |= choice_bit(kLayout);
  }

  // For SteepestSteps: a state is the configuration with some choices as in `to`.
  using State = ConfigurationChange;

  std::optional<State> after(Choices taken) const {
    std::optional<StatedConfiguration> after = configuration(taken);
    if (!after) return std::nullopt;
    try {
      const StatedPlan plan =
          stated_plan(rules_.job, rules_.system, rules_.can, *after, /*checked=*/false);
      return ConfigurationChange{"", std::move(*after), plan.candidate.metrics.iteration_time_s,
                                 plan.candidate.metrics.peak_memory_bytes, plan.fits()};
    } catch (const Error&) {
      return std::nullopt;  // No configuration of this job.
    }
  }

  static bool is_better(const State& a, const State& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.time_s < b.time_s : a.peak_memory_bytes < b.peak_memory_bytes;
  }

  /// In millionths of the time that the chain begins with, which rounding does not touch.
  std::int64_t rise(const State& a, const State& b) const {
    return std::llround(1e6 * std::max(0.0, b.time_s - a.time_s) / start_s_);
  }
  static bool fits(const State& state) { return state.fits; }

  /// A layout for another number of chunks waits until there are so many.
  bool may_be_next(Choices taken, Choices next) const {
    const auto before = configuration(taken);
    const auto after = configuration(taken | next);
    return !before || !after || before->parallel != after->parallel ||
           before->layers != after->layers;
  }

  std::vector<ConfigurationChange> changes() {
    std::vector<ConfigurationChange> all;
    StatedConfiguration before = from_;
    for (Step<State>& step : steps()) {
      step.after.what = what_changes(step.next, before, step.after.after);
      before = step.after.after;
      // Without words, another change has brought it along.
      if (!step.after.what.empty()) all.push_back(std::move(step.after));
    }
    return all;
  }

 private:
  std::vector<Step<State>> steps() {
    const RememberingWalk walk(*this);
    std::vector<Step<State>> steepest = SteepestSteps(walk).steps(left_);
    const std::optional<State>& start = walk.after(0);
    if (!start || std::popcount(left_) > kMostOrdered) return steepest;
    start_s_ = start->time_s;
    const auto rises = [&](const std::vector<Step<State>>& steps) {
      std::int64_t sum = 0;
      for (std::size_t s = 0; s < steps.size(); ++s) {
        sum += rise(s == 0 ? *start : steps[s - 1].after, steps[s].after);
      }
      return sum;
    };
    const std::int64_t now = rises(steepest);
    if (now <= kLittleRise) return steepest;
    std::vector<Step<State>> least = LeastRises(walk).steps(left_);
    return least.empty() || rises(least) + kLittleRise >= now ? steepest : least;
  }

  static int chunks_of(const Parallelism& p) { return p.pp * p.vp; }

  std::vector<std::int32_t> dealt_layers(const Parallelism& p) const {
    return layers_of_chunks(static_cast<std::int32_t>(rules_.job.graph->layers.size()),
                            chunks_of(p), predicts_mtp(*rules_.job.graph));
  }
  /// Layers of each chunk, dealt out as trainers do where nothing else is said.
  std::vector<std::int32_t> layers_of(const StatedConfiguration& stated) const {
    return stated.layers.empty() ? dealt_layers(stated.parallel) : stated.layers;
  }
  bool is_dealt(const StatedConfiguration& stated) const {
    return layers_of(stated) == dealt_layers(stated.parallel);
  }

  /// The layers with these choices in this form, empty where the trainer deals them. nullopt where
  /// they are those of another number of chunks: that would change the layout along with the form.
  std::optional<std::vector<std::int32_t>> layers_in(const Parallelism& p, Choices taken) const {
    const auto has = [&](std::size_t choice) { return (taken & choice_bit(choice)) != 0; };
    const StatedConfiguration& source = has(kLayout) ? to_ : from_;
    if (is_dealt(source) || (has(kDealt) && !has(kLayout))) return std::vector<std::int32_t>{};
    if (chunks_of(p) != chunks_of(source.parallel)) return std::nullopt;
    return source.layers;
  }

  /// nullopt where the degrees do not make up the devices or the batch, and where the layers are of
  /// another number of chunks.
  std::optional<StatedConfiguration> configuration(Choices taken) const {
    Parallelism p = from_.parallel;
    for (std::size_t f = 0; f < kFields.size(); ++f) {
      if ((taken & choice_bit(f)) != 0) kFields[f].take(p, to_.parallel);
    }
    const Parallelism& count = (taken & choice_bit(kDevices)) != 0 ? to_.parallel : from_.parallel;
    const std::int64_t shards = std::int64_t{p.tp} * p.pp * p.cp;
    if (count.devices() % shards != 0) return std::nullopt;
    p.dp = static_cast<int>(count.devices() / shards);
    const std::int64_t step = std::int64_t{p.dp} * p.micro_batch;
    if (rules_.job.global_batch % step != 0) return std::nullopt;
    p.num_micro_batches = rules_.job.global_batch / step;
    p.sequence_parallel = p.sequence_parallel && p.tp > 1;
    if (p.pp == 1) p.vp = 1;
    if (p.vp == 1 && p.schedule == ScheduleKind::interleaved)
      p.schedule = ScheduleKind::one_f_one_b;
    std::optional<std::vector<std::int32_t>> layers = layers_in(p, taken);
    if (!layers) return std::nullopt;
    return StatedConfiguration{p, *std::move(layers)};
  }

  std::string layout_change(const StatedConfiguration& before,
                            const StatedConfiguration& after) const {
    constexpr std::size_t kMost = 40;  // Of a column that stays readable.
    const std::vector<std::int32_t> from = layers_of(before), to = layers_of(after);
    const std::string now =
        is_dealt(after) ? "as the trainer deals" : abbreviated(layout_text(to), kMost);
    return from.size() == to.size()
               ? fmt::format("layout {} -> {}", abbreviated(layout_text(from), kMost), now)
               : "layout " + now;
  }

  std::string what_changes(Choices next, const StatedConfiguration& stated_before,
                           const StatedConfiguration& stated_after) const {
    const Parallelism& before = stated_before.parallel;
    const Parallelism& after = stated_after.parallel;
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    for (const Field& field : kFields) {
      if (field.text(before) == field.text(after)) continue;
      add(fmt::format("{} {} -> {}", field.name, text_shown(field, before),
                      text_shown(field, after)));
    }
    if (before.dp != after.dp) add(fmt::format("dp {} -> {}", before.dp, after.dp));
    const bool is_laid_out = (next & (choice_bit(kDealt) | choice_bit(kLayout))) != 0;
    if (is_laid_out) add(layout_change(stated_before, stated_after));
    return text;
  }

  const StatedConfiguration& from_;
  const StatedConfiguration& to_;
  const ChangeRules& rules_;
  Choices left_ = 0;
  double start_s_ = 1;
};

}  // namespace

std::vector<ConfigurationChange> change_chain(const StatedConfiguration& from,
                                              const StatedConfiguration& to,
                                              const ChangeRules& rules) {
  return Chain(from, to, rules).changes();
}

}  // namespace braid

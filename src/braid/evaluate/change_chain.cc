#include "braid/evaluate/change_chain.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
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

/// Something that a configuration says for itself.
struct Field {
  const char* name;
  std::string (*text)(const Parallelism& p);
  void (*take)(Parallelism& p, const Parallelism& from);
};

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
    Field{"schedule", schedule_words,
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
    Field{"offload", offload_text,
          [](Parallelism& p, const Parallelism& from) {
            p.offload_optimizer = from.offload_optimizer;
            p.offload_weights = from.offload_weights;
            p.offload_activations = from.offload_activations;
          }},
    Field{"order", order_text,
          [](Parallelism& p, const Parallelism& from) { p.order = from.order; }},
};
// Behind the fields of the form: the devices used, and how layers are dealt out.
constexpr std::size_t kDevices = kFields.size();
constexpr std::size_t kLayout = kDevices + 1;
constexpr std::size_t kChoices = kLayout + 1;

using Taken = std::uint32_t;  ///< A bit for each choice that is as in `to`.
constexpr Taken bit(std::size_t choice) { return Taken{1} << choice; }

class Chain {
 public:
  Chain(const StatedConfiguration& from, const StatedConfiguration& to, const ChangeRules& rules)
      : from_(from), to_(to), rules_(rules) {
    for (std::size_t f = 0; f < kFields.size(); ++f) {
      if (kFields[f].text(from.parallel) != kFields[f].text(to.parallel)) left_ |= bit(f);
    }
    if (from.parallel.devices() != to.parallel.devices()) left_ |= bit(kDevices);
    if (!same_layout()) left_ |= bit(kLayout);
  }

  std::vector<ConfigurationChange> changes() {
    std::vector<ConfigurationChange> all;
    StatedConfiguration before = from_;
    while (left_ != 0) {
      const Taken next = best_next();
      std::optional<ConfigurationChange> change = change_with(taken_ | next);
      if (!change) break;  // `to` is no configuration of this job.
      left_ &= ~next;
      taken_ |= next;
      change->what = what_changes(next, before.parallel, change->after.parallel);
      before = change->after;
      if (change->what.empty()) continue;  // Another change has brought it along.
      all.push_back(std::move(*change));
    }
    return all;
  }

 private:
  /// Layers of each chunk, dealt out as trainers do where nothing else is said.
  std::vector<std::int32_t> layers_of(const StatedConfiguration& stated) const {
    if (!stated.layers.empty()) return stated.layers;
    const Parallelism& p = stated.parallel;
    return layers_of_chunks(static_cast<std::int32_t>(rules_.job.graph->layers.size()), p.pp * p.vp,
                            predicts_mtp(*rules_.job.graph));
  }

  bool same_layout() const {
    const StatedConfiguration dealt{to_.parallel, {}};
    const bool same_chunks =
        from_.parallel.pp * from_.parallel.vp == to_.parallel.pp * to_.parallel.vp;
    return layers_of(to_) == layers_of(same_chunks ? from_ : dealt);
  }

  /// nullopt where the degrees do not make up the devices or the batch.
  std::optional<StatedConfiguration> configuration(Taken taken) const {
    Parallelism p = from_.parallel;
    for (std::size_t f = 0; f < kFields.size(); ++f) {
      if ((taken & bit(f)) != 0) kFields[f].take(p, to_.parallel);
    }
    const Parallelism& count = (taken & bit(kDevices)) != 0 ? to_.parallel : from_.parallel;
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
    StatedConfiguration stated{p, {}};
    const auto chunks_of = [](const Parallelism& q) { return q.pp * q.vp; };
    if ((taken & bit(kLayout)) != 0 && chunks_of(p) == chunks_of(to_.parallel)) {
      stated.layers = layers_of(to_);
    } else if (chunks_of(p) == chunks_of(from_.parallel)) {
      stated.layers = layers_of(from_);
    }
    return stated;
  }

  std::optional<ConfigurationChange> change_with(Taken taken) const {
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

  static bool is_better(const ConfigurationChange& a, const ConfigurationChange& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.time_s < b.time_s : a.peak_memory_bytes < b.peak_memory_bytes;
  }

  /// The single change to make next; else a pair; else all that is left.
  Taken best_next() const {
    Taken best = 0;
    std::optional<ConfigurationChange> found;
    const auto look_at = [&](Taken next) {
      std::optional<ConfigurationChange> change = change_with(taken_ | next);
      if (!change || (found && !is_better(*change, *found))) return;
      found = std::move(change);
      best = next;
    };
    for (std::size_t c = 0; c < kChoices; ++c) {
      if ((left_ & bit(c)) != 0 && changes_something(bit(c))) look_at(bit(c));
    }
    for (std::size_t c = 0; c < kChoices && best == 0; ++c) {
      for (std::size_t d = c + 1; d < kChoices && (left_ & bit(c)) != 0; ++d) {
        if ((left_ & bit(d)) != 0) look_at(bit(c) | bit(d));
      }
    }
    return best != 0 ? best : left_;
  }

  /// A layout for another number of chunks waits until there are so many.
  bool changes_something(Taken next) const {
    const auto before = configuration(taken_);
    const auto after = configuration(taken_ | next);
    return !before || !after || before->parallel != after->parallel ||
           before->layers != after->layers || left_ == next;
  }

  static std::string what_changes(Taken next, const Parallelism& before, const Parallelism& after) {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    for (const Field& field : kFields) {
      if (field.text(before) != field.text(after)) {
        add(fmt::format("{} {} -> {}", field.name, field.text(before), field.text(after)));
      }
    }
    if (before.dp != after.dp) add(fmt::format("dp {} -> {}", before.dp, after.dp));
    if ((next & bit(kLayout)) != 0) add("layers of the stages");
    return text;
  }

  const StatedConfiguration& from_;
  const StatedConfiguration& to_;
  const ChangeRules& rules_;
  Taken left_ = 0, taken_ = 0;
};

}  // namespace

std::vector<ConfigurationChange> change_chain(const StatedConfiguration& from,
                                              const StatedConfiguration& to,
                                              const ChangeRules& rules) {
  return Chain(from, to, rules).changes();
}

}  // namespace braid

#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/planners/job/space.h"

namespace braid {
namespace {

std::string text(std::int64_t value) { return std::to_string(value); }

void check_divides(const char* option, const Degrees& degrees, std::int64_t number,
                   const std::string& what) {
  const std::optional<int> degree = degrees.single();
  if (degree && number % *degree != 0) {
    throw Error(Where{"", 0, option}, text(*degree) + " does not divide " + what,
                "choose a divisor of " + text(number));
  }
}

/// Whether the degrees set make up the devices, or a part of them.
void check_devices(std::int64_t devices, const SpaceOptions& options) {
  const std::string all = text(devices) + (devices == 1 ? " device" : " devices");
  const std::pair<const char*, const Degrees&> degrees[] = {
      {"--tp", options.tp}, {"--pp", options.pp}, {"--dp", options.dp}, {"--cp", options.cp}};
  std::int64_t fixed = 1;
  bool all_fixed = true;
  std::string names;
  for (const auto& [option, allowed] : degrees) {
    const std::optional<int> degree = allowed.single();
    all_fixed &= degree.has_value();
    if (!degree) continue;
    if (*degree > 1) names += (names.empty() ? "" : " or ") + std::string(option);
    if (options.all_devices) check_divides(option, allowed, devices, all);
    if (*degree > devices) {
      throw Error(Where{"", 0, option}, text(*degree) + " is more than the " + all,
                  "choose at most " + text(devices));
    }
    if (__builtin_mul_overflow(fixed, std::int64_t{*degree}, &fixed)) {
      fixed = std::numeric_limits<std::int64_t>::max();
    }
  }
  if (fixed > devices ||
      (options.all_devices && (devices % fixed != 0 || (all_fixed && fixed != devices)))) {
    throw Error("the degrees set multiply to " + text(fixed) +
                    (fixed > devices ? ", more than the " : ", which does not make ") + all,
                names.empty() ? "leave --all-devices out" : "change " + names);
  }
}

/// Whether the model can be split by each degree that is set, then by all of them.
void check_split(const SpaceLimits& limits, const SpaceOptions& options) {
  Execution all;
  const auto check = [&](const char* option, const Execution& how, const std::string& remedy) {
    const std::string reason = refusal(limits.split, how);
    if (!reason.empty()) throw Error(Where{"", 0, option}, reason, remedy);
  };
  const std::pair<const char*, int Execution::*> degrees[] = {
      {"--tp", &Execution::tp}, {"--cp", &Execution::cp}, {"--ep", &Execution::ep}};
  const Degrees* const set[] = {&options.tp, &options.cp, &options.ep};
  for (std::size_t d = 0; d < std::size(degrees); ++d) {
    const auto [option, degree] = degrees[d];
    all.*degree = set[d]->single().value_or(1);
    Execution alone;
    alone.*degree = all.*degree;
    if (limits.split.listed == nullptr) check(option, alone, "change it or leave it out");
  }
  const bool whole = options.whole_experts.value_or(false) && all.tp > 1 && all.ep > 1;
  if (whole && !options.sequence_parallel.value_or(true)) {
    throw Error(Where{"", 0, "--whole-experts"},
                "experts that tp does not divide need sequence parallelism",
                "leave one of --whole-experts and --sequence-parallel out");
  }
  all.sequence_parallel = all.tp > 1 && options.sequence_parallel.value_or(whole);
  check(all.sequence_parallel && limits.split.listed == nullptr ? "--sequence-parallel" : "", all,
        "change --tp, --cp, --ep or --seq-len");
}

}  // namespace

void check_space(const SpaceLimits& limits, const SpaceOptions& options) {
  const auto has_values = [](const char* option, const Degrees& degrees) {
    const std::vector<int>& list = degrees.list();
    if (!list.empty() && list.front() < 1) {
      throw Error(Where{"", 0, option}, text(list.front()) + " is not a degree",
                  "choose 1 or more");
    }
    if (!degrees.at_least(1)) {
      const std::string limit = "--max-" + std::string(option).substr(2);
      throw Error(Where{"", 0, limit},
                  list.empty() ? text(degrees.limit()) + " is not a degree"
                               : text(degrees.limit()) + " is less than all of " + option + " " +
                                     Degrees(list).text(),
                  "choose " + text(list.empty() ? 1 : list.front()) + " or more");
    }
  };
  has_values("--tp", options.tp);
  has_values("--pp", options.pp);
  has_values("--dp", options.dp);
  has_values("--cp", options.cp);
  has_values("--ep", options.ep);
  has_values("--vp", options.vp);
  has_values("--micro-batch", options.micro_batch);

  check_devices(limits.devices, options);
  check_split(limits, options);
  const std::int64_t pieces = std::int64_t{options.pp.least()} * options.vp.least();
  if (pieces > limits.layers) {
    const bool chunks = options.vp.least() > 1;
    const bool both = chunks && options.pp.least() > 1;
    throw Error(Where{"", 0, chunks ? "--vp" : "--pp"},
                (both ? "pp times vp is " + text(pieces) + " and each chunk needs a layer"
                      : text(pieces) + (chunks ? " chunks" : " stages") + " need as many layers") +
                    "; the model has " + text(limits.layers),
                both ? "change --pp or --vp" : "choose at most " + text(limits.layers));
  }
  check_divides("--dp", options.dp, limits.global_batch,
                "the global batch of " + text(limits.global_batch));
  check_divides("--micro-batch", options.micro_batch, limits.global_batch,
                "the global batch of " + text(limits.global_batch));
  const std::int64_t per_step =
      std::int64_t{options.dp.single().value_or(1)} * options.micro_batch.single().value_or(1);
  if (limits.global_batch % per_step != 0) {
    throw Error(Where{"", 0, "--micro-batch"},
                "dp times micro-batch is " + text(per_step) +
                    ", which does not divide the global batch of " + text(limits.global_batch),
                "change --dp, --micro-batch or --global-batch");
  }
  if (options.schedule && *options.schedule != ScheduleKind::interleaved &&
      options.vp.least() > 1) {
    throw Error(Where{"", 0, "--vp"}, "only the interleaved schedule has several chunks per stage",
                "use --schedule interleaved, or leave --vp out");
  }
  if (options.vp.least() > 1 && options.pp.single() == 1) {
    throw Error(Where{"", 0, "--vp"}, "several chunks on a stage need several stages",
                "give --pp more than 1, or leave --vp out");
  }
  if (options.schedule == ScheduleKind::interleaved &&
      (options.vp.single() == 1 || options.pp.single() == 1)) {
    throw Error(Where{"", 0, "--schedule"},
                "interleaving needs several stages and several chunks on each",
                "use --schedule 1f1b, or give --pp and --vp more than 1");
  }
  if (options.sequence_parallel == true && options.tp.single() == 1) {
    throw Error(Where{"", 0, "--sequence-parallel"}, "it divides work among tensor parallel ranks",
                "give --tp more than 1, or leave --sequence-parallel out");
  }
}

}  // namespace braid

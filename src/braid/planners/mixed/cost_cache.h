#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "braid/planners/mixed/problem.h"

namespace braid {

/// What of a problem depends on the devices that are used already, asked for once.
class MixedCostCache {
 public:
  /// `problem` outlives this.
  explicit MixedCostCache(const MixedProblem& problem);

  struct At {
    std::vector<std::int32_t> used;
    std::vector<std::int8_t> allowed;  ///< [config]; -1: not asked yet.
    std::vector<std::int32_t>
        rates_at;  ///< [config · variants + variant], in `rates`; -1: not asked yet.
    std::vector<SyncRates> rates;
    std::vector<double>
        exchange_s;  ///< [config · variants + variant], the least with any last stage; -1.
    /// [below][above · classes + class]; -1. Empty: of that config behind none was asked for.
    std::vector<std::vector<double>> handover_s;
  };
  /// The reference stays valid.
  At& at(std::span<const std::int32_t> used);
  /// One for each number of devices of each kind.
  std::int64_t number_of(std::span<const std::int32_t> used) const;

  /// Whether a stage of the config may lie there and has room. `at` is that of `used`, here and
  /// below.
  bool allows(At& at, std::span<const std::int32_t> used, std::size_t config) const;
  /// Where it may. Until the next time.
  const SyncRates& rates(At& at, std::size_t config, std::size_t variant) const {
    std::int32_t& known = at.rates_at[config * variants_ + variant];
    if (known < 0) {
      known = static_cast<std::int32_t>(at.rates.size());
      at.rates.push_back(problem_.costs->rates(at.used, static_cast<std::int32_t>(config),
                                               static_cast<std::int32_t>(variant)));
    }
    return at.rates[static_cast<std::size_t>(known)];
  }
  /// One direction over the cut before layer `cut`, see MixedCosts::handover_s.
  double handover_s(At& at, std::span<const std::int32_t> used, std::size_t below,
                    std::size_t above, std::int32_t cut) const;

 private:
  const MixedProblem& problem_;
  std::size_t variants_ = 1;  ///< The most of any config.
  std::map<std::int64_t, At> known_;
};

}  // namespace braid

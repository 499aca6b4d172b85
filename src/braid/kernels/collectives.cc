#include "braid/kernels/collectives.h"

#include <cmath>

namespace braid {
namespace {

constexpr int kProtocols = 3;

double collective_time(const CollectiveFigures& f, double passes, const CollectiveShape& s,
                       int protocol) {
  const double n = s.devices;
  const double steps = f.steps == 1 ? std::log2(n) : n - 1;
  const double share = protocol == 0 ? f.first_share : protocol == 1 ? f.second_share : 1;
  const double delay = protocol == 0 ? 0 : protocol == 1 ? f.second_delay : f.third_delay;
  const bool whole = protocol == 0 && f.whole_first != 0;
  const double bytes = (whole ? n - 1 : passes * (n - 1) / n) * s.bytes;
  return f.floor + f.hop * steps + delay * (f.steps == 2 ? steps : 1) +
         bytes * std::pow(n / 2, f.fan - 1) / (f.bandwidth * share);
}

}  // namespace

std::optional<CollectiveForm::Setting> CollectiveForm::setting(const Chip& /*chip*/,
                                                               std::string_view format) {
  const std::string_view name = format.substr(0, format.find('/'));
  if (name == "all_reduce") return Setting{2};
  if (name == "all_gather" || name == "reduce_scatter" || name == "alltoall") return Setting{1};
  return std::nullopt;
}

KernelTime CollectiveForm::time(const Figures& figures, const Setting& setting,
                                const Shape& shape) {
  return least_time(kProtocols, [&](int protocol) {
    return collective_time(figures, setting.passes, shape, protocol);
  });
}

double CollectiveForm::time_of(const Figures& figures, const Setting& setting, const Shape& shape,
                               int variant) {
  return collective_time(figures, setting.passes, shape, variant);
}

}  // namespace braid

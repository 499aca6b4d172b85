#include "braid/serve/cache/decode_traffic.h"

#include <cassert>

namespace braid {

std::string_view name_of(DecodeScheme scheme) {
  switch (scheme) {
    case DecodeScheme::data:
      return "data";
    case DecodeScheme::tensor:
      return "tensor";
    case DecodeScheme::cache:
      return "cache";
    case DecodeScheme::cache_queries:
      return "cache-queries";
    case DecodeScheme::cache_newest:
      return "cache-newest";
  }
  return "";
}

bool splits_cache(DecodeScheme scheme) {
  return scheme != DecodeScheme::data && scheme != DecodeScheme::tensor;
}

DecodeTraffic decode_traffic(const DecodeLayer& layer, DecodeScheme scheme, double devices,
                             double batch, DeviceJoint joint, double moved_share) {
  DecodeTraffic traffic;
  if (devices <= 1 || scheme == DecodeScheme::data) return traffic;
  const double others = (devices - 1) / devices;
  if (scheme == DecodeScheme::tensor) {
    traffic.reduced = 4 * others * batch * layer.hidden * layer.value_bytes;
    return traffic;
  }
  const double queries = layer.heads * layer.head_dim * layer.value_bytes;
  const double keys_values = 2 * layer.kv_heads * layer.head_dim * layer.value_bytes;
  const double hops = joint == DeviceJoint::ring ? devices / 2 : 1;
  const bool all = scheme == DecodeScheme::cache;
  traffic.gathered = others * batch * (queries + (all ? keys_values : 0));
  traffic.partials = hops * others * batch * (queries + 2 * layer.heads * layer.statistic_bytes);
  if (scheme == DecodeScheme::cache_queries) {
    traffic.moved = hops * moved_share * batch / devices * keys_values;
  }
  return traffic;
}

double printed_decode_traffic(const DecodeLayer& layer, DecodeScheme scheme, double devices,
                              double batch) {
  if (scheme == DecodeScheme::data) return 0;
  assert(scheme == DecodeScheme::tensor || scheme == DecodeScheme::cache);
  const double width = layer.hidden;
  if (scheme == DecodeScheme::tensor) return 4 * (devices - 1) * batch * width;
  return 3 * (devices - 1) / devices * batch * width +
         (devices - 1) * batch * (width + 2 * layer.heads) / 2;
}

}  // namespace braid

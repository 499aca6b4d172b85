#include "braid/serve/cache_split.h"

#include <algorithm>
#include <string_view>

namespace braid {
namespace {

/// Ranks of `tp` that keep the same part of a layer's cache; 1: it is not sharded.
std::int64_t duplicates(const ServedLayer& layer, const Engine& engine, std::int64_t tp) {
  const auto divides = [&](std::string_view kind) {
    return std::find(engine.splits_caches.begin(), engine.splits_caches.end(), kind) !=
           engine.splits_caches.end();
  };
  if (layer.mixing == TokenMixing::latent) return divides("latent") ? tp : 1;
  if (layer.mixing != TokenMixing::attention || layer.window > 0 || !divides("attention")) return 1;
  const auto heads = static_cast<std::int64_t>(layer.kv_heads);
  return heads > 0 && tp % heads == 0 ? tp / heads : 1;
}

}  // namespace

std::vector<std::int64_t> cache_splits(const ServedModel& model, const Engine& engine,
                                       std::int64_t tp) {
  std::int64_t most = tp;
  for (const ServedLayer& layer : model.layers) {
    if (layer.mixing == TokenMixing::none) continue;
    most = std::min(most, duplicates(layer, engine, tp));
  }
  std::vector<std::int64_t> degrees;
  for (std::int64_t cp = 1; cp <= most; cp *= 2) {
    if (most % cp == 0) degrees.push_back(cp);
  }
  return degrees;
}

}  // namespace braid

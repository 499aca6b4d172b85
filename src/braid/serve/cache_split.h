#pragma once

#include <cstdint>
#include <vector>

#include "braid/serve/engine.h"
#include "braid/serve/served_model.h"

namespace braid {

/// The degrees of decode context parallelism that an engine takes for a model with `tp` ranks of
/// tensor parallelism: 1, and powers of two that divide the ranks which would keep the same heads'
/// caches, tp over the heads of keys and values (latent attention has one). Only 1 where some layer
/// has a window, a state, or attention whose cache the engine does not divide.
std::vector<std::int64_t> cache_splits(const ServedModel& model, const Engine& engine,
                                       std::int64_t tp);

}  // namespace braid

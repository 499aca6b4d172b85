#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braid/schedule/stage_graph.h"
#include "braid/schedule/work_order.h"

namespace braid {

// What schedules ask of a stage graph. Each throws Error naming the first stage that is in the way,
// and the schedule `name`.
void require_own_devices(const StageGraph& graph, const std::string& name);
void require_one_size(const StageGraph& graph, const std::string& name);
void require_one_round(const StageGraph& graph, const std::string& name);
/// Each stage hands over to the next number and to no other, and stage q is on device_of(q).
void require_chain(const StageGraph& graph, const std::string& name,
                   const std::function<std::size_t(std::size_t)>& device_of);

/// Appends a round's reduction and optimizer step.
void append_update(std::vector<Work>& order, std::int32_t stage, std::int64_t round = 0);

}  // namespace braid

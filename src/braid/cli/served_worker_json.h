#pragma once

#include "braid/base/json.h"
#include "braid/serve/serving_plan.h"

namespace braid {

Json to_json(const WorkerPlan& of);

}  // namespace braid

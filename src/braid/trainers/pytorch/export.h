#pragma once

#include <string>

#include "braid/plan/plan.h"
#include "braid/trainers/exchange/export.h"

namespace braid {

/// A plan of any form as one Python file that runs it by torchrun, with torch.distributed alone:
/// the model's layers as modules, the stages with their ranks and passes, and what runs them. The
/// file also trains the model in one process. Throws Error in one line, naming the stage or the
/// operation, for what it does not do: tensor, context and expert parallelism, ZeRO-3, anything in
/// host memory, ONNX files, and what staged_model() refuses.
Export export_pytorch(const Plan& plan, const std::string& file = "");

}  // namespace braid

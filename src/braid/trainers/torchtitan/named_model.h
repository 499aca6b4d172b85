#pragma once

#include <string>

#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/import.h"
#include "braid/trainers/torchtitan/models.h"
#include "braid/trainers/torchtitan/run_source.h"

namespace braid {

/// The model that a run of torchtitan names, whose name and sizes the run gets; nullptr where braid
/// has none, or it is not said which. A recipe that imports model_registry from its own package is
/// of the model whose folder it is in; elsewhere the flavor decides where one model alone has it,
/// or else the model that the recipe's name begins with. A note says so.
const TorchtitanModel* read_torchtitan_model(const TorchtitanSource& source, GivenArguments& given,
                                             Import& run);

}  // namespace braid

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "braid/cli/job_options.h"
#include "braid/graph/graph.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// Transformer blocks of the model whose config.json is beside a file; 0: there is none. Throws
/// Error where it is no model.
std::int64_t blocks_beside(const std::string& file);

/// Finds the model that a run names in the catalogue, for Import::catalogue_model, and takes its
/// layers and width where the run says none.
void name_in_catalogue(Import& run);

/// The model where MODEL is not given: the sizes that the run `from` says, or else the config.json
/// beside its file, or else the catalogue's model that it names, whose name goes into the options.
/// nullopt: the options name it, or nothing does. After take_job(). Throws Error for sizes that
/// make no model.
std::optional<Graph> take_model(const Import& run, const std::string& from, JobOptions& options);

/// Throws the Error that MODEL is missing; `run` may be null, and is of `from`.
[[noreturn]] void refuse_without_model(const Import* run, const std::string& from);

/// In a sentence, that the run is of another model than the one that is evaluated; empty where
/// their sizes do not differ, or are not known.
std::string model_difference(const Import& run, const Graph& model);

}  // namespace braid

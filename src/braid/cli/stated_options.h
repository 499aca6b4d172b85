#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/cli/job_options.h"
#include "braid/evaluate/stated_plan.h"
#include "braid/plan/trainer_file.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// What says of a configuration what the options of a job (its degrees, …) do not.
struct StatedOptions {
  std::string layout, offload, order;
  std::string from;    ///< A trainer's command line, or its file.
  std::string recipe;  ///< Which of the file's recipes; empty: it has one.
};

void add_stated_options(Verb& verb, StatedOptions& options);

/// What `--from` says: a file's text, or a command line itself; nullopt where it is not given.
/// `blocks` are those of the model that is named beside it; nullopt: none is. Throws Error.
std::optional<Import> read_from(const StatedOptions& options, std::optional<std::int64_t> blocks);

/// In a sentence, that the run has dropout and the model has none, or the reverse; or empty.
std::string dropout_difference(const Import& run, const Graph& model);

/// Fills in what the options leave out and the trainer's command line or file says: batch, tokens,
/// precision, trainer. Degrees are for stated_configuration().
void take_job(const Import& run, JobOptions& options);

/// Sets the precision that a run has where one rank turns out to have all of the state.
void take_precision_of_one_shard(const Import& run, const JobOptions& options, LoadedJob& loaded);

/// Makes the batch of a job of the micro-batches of each data-parallel rank, where the trainer's
/// file says these in place of it, and options leave it out. Throws Error for too many samples, and
/// where the file says a batch as well that they do not make.
void take_accumulation(const Import& run, const JobOptions& options, LoadedJob& loaded);

/// Stages of the configuration that the options and the run, if there is one, state.
int stated_stages(const JobOptions& job, const Import* run);

/// What a configuration is where the options do not say.
struct StatedDefaults {
  const Import* run = nullptr;  ///< Read from a trainer's command line or file.
  const TrainerUsual& usual;    ///< Where that is null.
  const TrainerLimits& can;
  const Graph& graph;
  std::int64_t devices = 0, global_batch = 0;
};

/// The configuration that the options state. `not_given` gets a line for everything that is as the
/// trainer usually has it; sequence parallelism is otherwise where that is refused. Throws Error
/// naming the option.
StatedConfiguration stated_configuration(const JobOptions& job, const StatedOptions& options,
                                         const StatedDefaults& defaults,
                                         std::vector<std::string>& not_given);

}  // namespace braid

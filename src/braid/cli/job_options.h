#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/cli/verb.h"
#include "braid/plan/trainer_file.h"
#include "braid/planners/registry.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// The heading of options that --help leaves out.
inline constexpr const char* kSeldom = "Seldom needed";

/// What the verbs that plan have in common on their command line.
struct JobOptions {
  std::string model, cluster, chip, precision, max_memory, calibration;
  std::string trainer;  ///< That will run the plan; empty: the usual one.
  std::int64_t global_batch = 0, seq_len = 0, budget = 0;
  std::vector<std::string> dims;
  Degrees tp, pp, dp, cp, ep, vp, micro_batch;
  int zero = -1, top = 1, threads = 0;
  std::string sequence_parallel, whole_experts, recompute, schedule, sharding = "manual";
  FamilyWords own;  ///< Of single planners.
  bool all_devices = false, no_offload = false, json = false, progress = false;
};

/// Global batch per device where none is given.
inline constexpr std::int64_t kSamplesPerDevice = 16;

/// The heading of limits of degrees, such as --max-tp.
inline constexpr const char* kLimits = "Limits of degrees";

/// `states_one`: degrees are those of one configuration, not what to choose from.
void add_job_options(Verb& app, JobOptions& options, bool states_one = false);

/// Options of single planners.
void add_planner_options(Verb& app, JobOptions& options);

/// Adds `option`, which takes degrees with commas between, and keeps them as the list of `degrees`;
/// its limit stays.
VerbOption add_degrees(Verb& verb, const std::string& option, Degrees& degrees,
                       const std::string& description);

/// Whether --help lists options under this heading: those of most jobs, those of `planners`, those
/// of profiles with `from_profile`.
bool is_shown(const std::string& heading, const std::vector<std::string>& planners,
              bool from_profile);

/// A job with all that it refers to.
struct LoadedJob {
  Graph graph;
  System system;
  Job job;  ///< Refers to `graph`: not to be moved apart.
  PlannerOptions space;
  Budget budget;
  std::vector<std::string> assumptions;    ///< For what was not given.
  std::vector<std::string> trainer_notes;  ///< See trainer_notes() of planners/trainer_choice.h.
  std::optional<System> unlimited;  ///< The system without --max-memory, where that is given.
  std::string max_memory;           ///< As it is given.
  bool longest_samples = false;     ///< As long as the model allows, since no length is given.
  bool unusual_trainer = false;     ///< By what is read, it does not do what it usually does.
};

/// A cluster by its name, or a single device by its chip's. Throws Error unless one is given.
System load_devices(const std::string& cluster, const std::string& chip);

/// The precision of that name, or without one the usual one of `system`.
Precision job_precision(const std::string& name, const System& system);

/// Puts the figures of a calibration file in place of the catalogue's. Throws Error when the file
/// has none for the system's chips.
void calibrate_system(const std::string& path, System& system);

/// Lets plans use no more device memory than that, with its unit; empty: all. Throws Error, also
/// for more than any device has.
void limit_memory(const std::string& text, System& system);

/// The restrictions that the options say.
PlannerOptions space_of(const JobOptions& options);

/// What a job is of where the options do not say it; without, they have to.
struct JobBasis {
  const System* system = nullptr;
  const Graph* model = nullptr;  ///< JobOptions::model is then where it is from.
};

/// The model that the options name. Throws Error.
Graph named_model(const JobOptions& options);

/// Loads model and system and checks the restrictions' form. Throws Error.
void load_job(const JobOptions& options, LoadedJob& loaded, const JobBasis& basis = {});

/// What is known of a trainer beside its file.
struct TrainerBasis {
  bool own_code = false;        ///< TrainerNeeds.
  const Import* run = nullptr;  ///< A run of it: it behaves as that says.
  bool of_run = false;          ///< Nobody named it but that run.
};

/// Lets the trainer that was asked for, or the usual one of these planners, run the job; returns
/// it. Throws Error when it cannot.
TrainerFile set_job_trainer(const JobOptions& options,
                            const std::vector<const PlannerEntry*>& planners, LoadedJob& loaded,
                            const TrainerBasis& basis = {});

/// Throws Error when an option or word of single planners is given and none of `planners` takes it.
void check_planner_options(const JobOptions& options,
                           const std::vector<const PlannerEntry*>& planners);

/// The source of shardings of that name, "manual" or "auto".
ShardingSource parse_sharding(const std::string& name);

/// Progress line on stderr like a MIP solver's, or nothing unless wanted or on a terminal. With
/// `planner`, the line begins with that name.
Progress progress_line(const JobOptions& options, const std::string& planner = "");

}  // namespace braid

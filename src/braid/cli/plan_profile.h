#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "braid/base/document.h"
#include "braid/cli/verb.h"
#include "braid/planners/search_progress.h"

namespace braid {

/// What planning from a profile, without model and cluster, takes from the command line.
struct ProfileOptions {
  std::vector<std::string> profiles;  ///< Empty: not asked for.
  std::int64_t devices = 0, micro_batches = 0;
  std::vector<std::string> memory;
  std::string time_unit_of_phaze;  ///< Of an input of Phaze's that is planned in seconds.
  std::string bandwidth, levels, time_unit, rules;  ///< Empty: the planner's default.
  std::string knapsack = "exact", tensors = "per-edge", sum = "at-most";
  std::string objective;  ///< Empty: the planner's default.
  std::vector<std::string> activations;
  bool uneven = false;
  bool unit_is_given = true;  ///< Else times count as seconds, whatever they are.
  std::vector<VerbOption> options_of_models, own_options, shared_options;
  std::string table;  ///< Where to write the table; empty: nowhere.
};

/// To be called after the options of models have been added: those, but for --json, --budget,
/// --progress and --objective, do not go together with a profile.
void add_profile_options(Verb& app, ProfileOptions& options);

/// Throws Error for an option of models given with a profile, or one of profiles without.
void check_profile_options(const ProfileOptions& options);

/// Throws Error naming the first of these options that was given: they are for `planner` only.
void refuse_options(const ProfileOptions& options, std::initializer_list<const char*> names,
                    const char* planner);

/// A quantity from the command line; `otherwise`, what the file says, when it was not given. Throws
/// Error when neither says anything.
double quantity_of(const char* option, const std::string& text, Unit unit, double otherwise);

/// A count from the command line, or what the file says; 0: nothing. Throws Error when neither
/// does.
std::int64_t count_of(const char* option, std::int64_t given, std::int64_t otherwise);

/// Seconds that "s", "ms" or "us" stands for.
double time_unit_s(const std::string& name);

/// Plans from a profile with the planner of that name (empty: Phaze's for its own inputs, else
/// Piper's) and prints the solution, as text or as one JSON object, and the table to its file.
/// `progress` is told times in seconds. Returns the exit status. Throws Error.
int plan_profile(const ProfileOptions& options, const std::string& planner, std::int64_t budget,
                 bool json, const SearchProgress& progress = {});

}  // namespace braid

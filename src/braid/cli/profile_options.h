#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "braid/base/quantity.h"
#include "braid/cli/verb.h"
#include "braid/planners/piper/problem.h"

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

/// The heading of what goes with --profile.
inline constexpr const char* kOfProfiles = "With --profile";

/// To be called after the options of models have been added.
void add_profile_options(Verb& app, ProfileOptions& options);

/// Throws Error for an option that only a model has given with a profile, or one of profiles
/// without.
void check_profile_options(const ProfileOptions& options);

/// Whether that planner (empty: the profile's own, Phaze's for its inputs, else Piper's) plans from
/// the profile by its published rules: Piper, its relatives and Phaze do, where no option is given
/// that says how models are planned. Throws Error.
bool plans_by_own_rules(const ProfileOptions& options, const std::string& planner);

/// Throws Error with the message for the first of these options that was given.
void refuse_given(const ProfileOptions& options, std::initializer_list<const char*> names,
                  const std::string& message);

/// Throws Error naming the first of these options that was given: they are for `planner` only.
void refuse_options(const ProfileOptions& options, std::initializer_list<const char*> names,
                    const char* planner);

/// A quantity from the command line; `otherwise`, what the file says, when it was not given. Throws
/// Error when neither says anything.
double quantity_of(const char* option, const std::string& text, Unit unit, double otherwise);

/// A count from the command line, or what the file says; 0: nothing. Throws Error when neither
/// does.
std::int64_t count_of(const char* option, std::int64_t given, std::int64_t otherwise);

/// Levels written like 8@300GB/s,64@25GB/s, lowest first; rates per second. Throws Error.
std::vector<PiperLevel> parse_levels(const std::string& text);

/// Seconds that "s", "ms" or "us" stands for.
double time_unit_s(const std::string& name);

}  // namespace braid

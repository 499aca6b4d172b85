#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace braid {

/// What planning from a profile, without model and cluster, takes from the command line.
struct ProfileOptions {
  std::string profile;  ///< Empty: not asked for.
  std::int64_t devices = 0, micro_batches = 0;
  std::string memory, bandwidth, time_unit = "s";
  std::string rules = "program", knapsack = "exact", tensors = "per-edge";
  bool uneven = false;
  std::vector<const CLI::Option*> options_of_models, own_options;
  std::string table;  ///< Where to write the table; empty: nowhere.
};

/// To be called after the options of models have been added: those, but for --json and --budget,
/// do not go together with a profile.
void add_profile_options(CLI::App& app, ProfileOptions& options);

/// Throws Error for an option of models given with a profile, or one of profiles without.
void check_profile_options(const ProfileOptions& options);

/// Plans from a profile and prints the solution, as text or as one JSON object, and the table
/// to its file. Returns the exit
/// status. Throws Error.
int plan_profile(const ProfileOptions& options, const std::string& planner, std::int64_t budget,
                 bool json);

}  // namespace braid

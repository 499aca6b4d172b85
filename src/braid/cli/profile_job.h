#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/cli/job_options.h"
#include "braid/cli/profile_options.h"
#include "braid/profile/listed_layers.h"

namespace braid {

/// What a profile's file says, of braid's, Piper's or Phaze's format.
struct ReadProfile {
  Profile profile;                              ///< In seconds, passes apart.
  std::int64_t devices = 0, micro_batches = 0;  ///< 0: not said, here and below.
  double memory_bytes = 0, bytes_per_s = 0;
  std::vector<std::string> assumptions;
};

/// Reads it, times in the unit that the options say, else the file, else seconds (Phaze's:
/// milliseconds). Throws Error.
ReadProfile read_profile_file(const ProfileOptions& options, const std::string& file);
/// The same of a file that has been parsed: standard input can be read but once.
ReadProfile read_profile_document(const ProfileOptions& options, const Document& document,
                                  const std::string& file);

/// Says what reading took for granted of an outcome's plan.
inline void add_assumptions(const ReadProfile& read, Outcome& outcome) {
  outcome.assumptions.insert(outcome.assumptions.end(), read.assumptions.begin(),
                             read.assumptions.end());
}

/// The devices that the options or the file say: plain ones (plain_system.h). Throws Error.
System plain_system_of(const ProfileOptions& options, const ReadProfile& read);

/// The one micro-batch size that a profile's options have; 0: several.
int only_micro_batch(const Profile& profile);

/// A job with the layers of a profile, on a cluster or on plain devices, or with those of a model.
struct ProfileJob {
  LoadedJob loaded;  ///< Its graph is empty where the job's layers are these:
  std::unique_ptr<const ListedLayers> layers;  ///< Null: a model's.
};

/// Loads the profile and what it is to run on, as load_job() does a model. Throws Error.
ProfileJob load_profile_job(const ProfileOptions& options, const JobOptions& job);

/// Loads the profile where one is given, else the model, and lets the trainer that was asked for,
/// or the usual one of `planners`, run it. Throws Error.
void load_job_or_profile(const ProfileOptions& options, const JobOptions& job,
                         const std::vector<const PlannerEntry*>& planners, ProfileJob& into);

}  // namespace braid

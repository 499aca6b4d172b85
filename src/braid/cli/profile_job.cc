#include "braid/cli/profile_job.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/parallel.h"
#include "braid/planners/phaze/problem.h"
#include "braid/planners/piper/from_profile.h"
#include "braid/planners/piper/plain_system.h"
#include "braid/planners/profile_plan.h"
#include "braid/profile/pass_split.h"
#include "braid/profile/piper_profile.h"
#include "braid/profile/profile_json.h"

namespace braid {
namespace {

/// Whether some option adds re-layouts to edges that cross stages' borders.
bool has_layouts(const Profile& profile) {
  for (const std::vector<Option>& options : profile.kinds) {
    for (const Option& option : options) {
      if (!option.edge_syncs.empty()) return true;
    }
  }
  return false;
}

/// Whether some option has both its passes in one figure.
bool has_passes_in_one(const Profile& profile) {
  for (const std::vector<Option>& options : profile.kinds) {
    for (const Option& option : options) {
      if (option.cost.backward_s() <= 0 && option.cost.forward.total_s() > 0) return true;
    }
  }
  return false;
}

ReadProfile read_of_phaze(const ProfileOptions& o, const Value& root) {
  PhazeReading reading;
  if (!o.time_unit.empty()) reading.latency_unit_s = time_unit_s(o.time_unit);
  const PhazeProblem input = read_phaze(root, reading);
  ReadProfile read{profile_of_phaze(input), input.devices,     input.micro_batches,
                   input.memory_bytes,      input.bytes_per_s, {}};
  read.assumptions.push_back(
      fmt::format("Phaze's latencies are in units of {} s; a layer that is recomputed repeats its "
                  "forward pass and keeps its inputs",
                  reading.latency_unit_s));
  return read;
}

ReadProfile read_of_piper(const ProfileOptions& o, const Value& root) {
  PiperProfile piper = piper_profile_from_json(root);
  const double unit_s = o.time_unit.empty() ? 1 : time_unit_s(o.time_unit);
  ReadProfile read{in_seconds(std::move(piper.profile), unit_s),
                   piper.devices,
                   piper.micro_batches,
                   piper.memory_bytes,
                   piper.bandwidth_bytes / unit_s,
                   {}};
  if (o.time_unit.empty()) {
    read.assumptions.emplace_back(
        "the profile's times count as seconds, whatever they are in (no --time-unit given)");
  }
  return read;
}

}  // namespace

ReadProfile read_profile_file(const ProfileOptions& o, const std::string& file) {
  return read_profile_document(o, Document::parse_file(file), file);
}

ReadProfile read_profile_document(const ProfileOptions& o, const Document& document,
                                  const std::string& file) {
  ReadProfile read;
  if (is_phaze_input(document.root())) {
    read = read_of_phaze(o, document.root());
  } else if (is_piper_profile(document.root())) {
    read = read_of_piper(o, document.root());
  } else {
    Profile profile = profile_from_json(document.root());
    const double unit_s = o.time_unit.empty() ? profile.time_unit_s : time_unit_s(o.time_unit);
    read.profile = in_seconds(std::move(profile), unit_s);
  }
  check_profile(read.profile, file);
  if (read.profile.model.empty()) read.profile.model = std::filesystem::path(file).stem().string();
  if (has_layouts(read.profile)) {
    read.assumptions.emplace_back(
        "simulated times leave out re-layouts of tensors that cross stages' borders; Piper's and "
        "Phaze's own times have them");
  }
  if (has_passes_in_one(read.profile)) {
    read.assumptions.emplace_back(
        "passes that the profile has in one figure are told apart by what recomputation adds, or "
        "as one to two");
    read.profile = with_passes_apart(std::move(read.profile));
  }
  return read;
}

System plain_system_of(const ProfileOptions& o, const ReadProfile& read) {
  const double memory_bytes = quantity_of("--memory", o.memory.empty() ? "" : o.memory.front(),
                                          Unit::bytes, read.memory_bytes);
  if (!o.levels.empty()) return plain_system(parse_levels(o.levels), memory_bytes);
  return plain_system(count_of("--devices", o.devices, read.devices), memory_bytes,
                      quantity_of("--bandwidth", o.bandwidth, Unit::bytes_per_s, read.bytes_per_s));
}

int only_micro_batch(const Profile& profile) {
  std::set<int> sizes;
  for (const std::vector<Option>& options : profile.kinds) {
    for (const Option& option : options) sizes.insert(option.how.micro_batch);
  }
  return sizes.size() == 1 ? *sizes.begin() : 0;
}

namespace {

/// The devices of --cluster or --chip, checked against what the profile is for.
System cluster_of(const ProfileOptions& o, const JobOptions& job, ProfileJob& into) {
  refuse_given(o, {"devices", "memory", "bandwidth", "levels"}, "does not go with --cluster");
  System system = load_devices(job.cluster, job.chip);
  if (!is_homogeneous(system)) {
    throw Error("a profile is of one kind of device, and " + system.name +
                    " mixes them or gives a bandwidth matrix",
                "plan on one of its groups");
  }
  const std::string& chip = into.layers->listed()->chip;
  const std::string& here = system.groups.front().chip.name;
  if (!chip.empty() && chip != here) {
    into.loaded.assumptions.push_back("the profile's times, of " + chip +
                                      ", are taken for those of " + here);
  }
  limit_memory(job.max_memory, system);
  return system;
}

std::int64_t batch_of(const ProfileOptions& o, const JobOptions& job, const ReadProfile& read,
                      ProfileJob& into) {
  if (job.global_batch > 0 && o.micro_batches > 0) {
    throw Error(Where{"", 0, "--max-microbatches"}, "does not go with --global-batch",
                "give one of them");
  }
  if (job.global_batch > 0) return job.global_batch;
  const bool cluster = !job.cluster.empty() || !job.chip.empty();
  if (cluster && o.micro_batches == 0 && read.micro_batches == 0) {
    into.loaded.assumptions.emplace_back(
        "global batch: 16 samples per device (no --global-batch given)");
    return kSamplesPerDevice * into.loaded.system.device_count;
  }
  const int samples =
      job.micro_batch.single().value_or(std::max(1, only_micro_batch(read.profile)));
  return samples * count_of("--max-microbatches", o.micro_batches, read.micro_batches);
}

}  // namespace

ProfileJob load_profile_job(const ProfileOptions& o, const JobOptions& job) {
  if (job.threads > 0) set_thread_count(job.threads);
  if (o.profiles.size() > 1 || o.memory.size() > 1) {
    throw Error(Where{"", 0, o.profiles.size() > 1 ? "--profile" : "--memory"},
                "is given more than once", "only the planner phaze takes several");
  }
  refuse_given(
      o,
      {"rules", "knapsack", "tensors", "sum-of-dp", "uneven-microbatches", "activations", "table"},
      "is for piper, its relatives and phaze by their own rules: without --cluster and "
      "other options of models");
  ProfileJob made;
  const std::string& file = o.profiles.front();
  ReadProfile read = read_profile_file(o, file);
  LoadedJob& loaded = made.loaded;
  made.layers = std::make_unique<ListedLayers>(read.profile);
  if (job.cluster.empty() && job.chip.empty()) {
    loaded.system = plain_system_of(o, read);
    limit_memory(job.max_memory, loaded.system);
    loaded.job.precision = job.precision.empty() ? Precision{} : parse_precision(job.precision);
    loaded.assumptions.emplace_back(
        "devices have the memory and network given; nothing is known of their arithmetic and their "
        "memory's rate, so that there is no MFU and the optimizer takes no time");
  } else {
    loaded.system = cluster_of(o, job, made);
    loaded.job.precision = job_precision(job.precision, loaded.system);
  }
  loaded.assumptions.insert(loaded.assumptions.end(), read.assumptions.begin(),
                            read.assumptions.end());
  if (!states_memory(read.profile)) {
    loaded.assumptions.push_back(
        fmt::format("memory that the profile does not state follows from its parameters: weights, "
                    "gradients and Adam's state of {} training",
                    name_of(loaded.job.precision)));
  }
  if (states_some_memory(read.profile)) {
    loaded.assumptions.emplace_back(
        "memory and gradients that the profile states are not sharded, and what needs no "
        "parameters has no optimizer step");
  }
  loaded.job.layers = made.layers.get();
  loaded.job.model_source = file;
  loaded.job.global_batch = batch_of(o, job, read, made);
  loaded.space = space_of(job);
  loaded.budget.work = job.budget;
  return made;
}

void load_job_or_profile(const ProfileOptions& options, const JobOptions& job,
                         const std::vector<const PlannerEntry*>& planners, ProfileJob& into) {
  if (options.profiles.empty()) {
    load_job(job, into.loaded);
  } else {
    into = load_profile_job(options, job);
  }
  set_job_trainer(job, planners, into.loaded);
}

}  // namespace braid

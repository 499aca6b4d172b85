#include "braid/cli/profile_options.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/cli/count_option.h"
#include "braid/cli/job_options.h"
#include "braid/cli/text_option.h"
#include "braid/planners/piper/variants.h"

namespace braid {

void add_profile_options(Verb& app, ProfileOptions& o) {
  for (const VerbOption& option : app.options()) {
    const bool shared =
        option.is("json") || option.is("budget") || option.is("objective") || option.is("progress");
    (shared ? o.shared_options : o.options_of_models).push_back(option);
  }
  add_texts(app, "--profile", o.profiles,
            "Plan from this profile (braid's, Piper's or Phaze's format) instead of a model; one "
            "for each micro-batch size in Phaze's")
      .group(kSeldom);
  const std::size_t before = app.options().size();
  add_count(app, "--devices", o.devices, 1, kMostPiperDevices, "Devices (default: the file's)");
  add_count(app, "--max-microbatches", o.micro_batches, 1, kMostPiperDevices,
            "Micro-batches in a batch (default: the file's)");
  add_texts(app, "--memory", o.memory,
            "Memory of a device (default: the file's); phaze takes several")
      .delimiter(',');
  add_text(app, "--bandwidth", o.bandwidth, "Of a device's link (default: the file's)");
  add_text(app, "--levels", o.levels,
           "A hierarchical network instead of --devices and --bandwidth, lowest "
           "level first: 8@300GB/s,64@25GB/s is 64 nodes of 8 devices");
  app.add_option("--time-unit", o.time_unit,
                 "What its times are in, s, ms or us (default: s; Phaze's are ms)")
      .one_of({"s", "ms", "us"});
  app.add_option("--rules", o.rules,
                 "Costs as the published program has them (piper's default), as "
                 "Piper's paper has them, or Phaze's program corrected (phaze's default)")
      .one_of({"program", "paper", "corrected"});
  app.add_option("--knapsack", o.knapsack, "Choice of options within memory")
      .one_of({"exact", "heuristic"});
  app.add_option("--tensors", o.tensors,
                 "Charge tensors that cross stages once a stage, or per reader")
      .one_of({"once", "per-edge"});
  app.add_option("--sum-of-dp", o.sum,
                 "Whether data-parallel degrees sum to at most the micro-batches")
      .one_of({"at-most", "exact"});
  app.add_flag("--uneven-microbatches", o.uneven,
               "Data-parallel degrees need not divide the micro-batches");
  app.add_option("--activations", o.activations,
                 "Of phaze: stash, recompute or both (default: the file's)")
      .delimiter(',')
      .one_of({"stash", "recompute"});
  add_output_file(app, "--table", o.table,
                  "Write the best time for every number of devices as CSV");
  const std::vector<VerbOption> all = app.options();
  o.own_options.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
  for (const VerbOption& option : o.own_options) option.group(kOfProfiles);
}

namespace {

/// What only a model can be asked for.
bool is_of_models_alone(const VerbOption& option) {
  const std::string name = option.name();
  return name == "MODEL" || option.is("seq-len") || option.is("dim") || option.is("sharding") ||
         option.is("calibration");
}

}  // namespace

void check_profile_options(const ProfileOptions& o) {
  const bool from_profile = !o.profiles.empty();
  for (const VerbOption& option : from_profile ? o.options_of_models : o.own_options) {
    if (!option.given()) continue;
    if (from_profile && !is_of_models_alone(option)) continue;
    throw Error(Where{"", 0, option.name()},
                from_profile ? "does not go with --profile" : "goes with --profile only",
                !from_profile && option.is("memory")
                    ? "--max-memory limits what plans may use of a device's"
                    : "see braid plan --help");
  }
}

void refuse_given(const ProfileOptions& o, std::initializer_list<const char*> names,
                  const std::string& message) {
  for (const auto* options : {&o.own_options, &o.shared_options}) {
    for (const VerbOption& option : *options) {
      if (!option.given()) continue;
      for (const char* name : names) {
        if (!option.is(name)) continue;
        throw Error(Where{"", 0, option.name()}, message, "leave it out");
      }
    }
  }
}

void refuse_options(const ProfileOptions& o, std::initializer_list<const char*> names,
                    const char* planner) {
  refuse_given(o, names, std::string("is for the planner ") + planner);
}

double quantity_of(const char* option, const std::string& text, Unit unit, double otherwise) {
  if (text.empty()) {
    if (otherwise > 0) return otherwise;
    throw Error(Where{"", 0, option}, "is not given, and the profile does not say",
                "add " + std::string(option) + " '" + std::string(quantity_example(unit)) + "'");
  }
  const auto value = parse_quantity(text, unit);
  if (value && *value > 0) {
    if (const auto fault = implausible(*value, unit)) {
      throw Error(Where{"", 0, option}, fault->message, fault->remedy);
    }
    return *value;
  }
  throw Error(Where{"", 0, option}, "\"" + text + "\" is not understood",
              "write it like '" + std::string(quantity_example(unit)) + "'");
}

double time_unit_s(const std::string& name) { return name == "s" ? 1 : name == "ms" ? 1e-3 : 1e-6; }

std::int64_t count_of(const char* option, std::int64_t given, std::int64_t otherwise) {
  if (given > 0) return given;
  if (otherwise > 0) return otherwise;
  throw Error(Where{"", 0, option}, "is not given, and the profile does not say",
              "add " + std::string(option) + " N");
}

std::vector<PiperLevel> parse_levels(const std::string& text) {
  std::vector<PiperLevel> levels;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const std::size_t sign = part.find('@');
    const std::string_view rate =
        sign == std::string::npos ? "" : std::string_view(part).substr(sign + 1);
    const double bytes_per_s = parse_quantity(rate, Unit::bytes_per_s).value_or(0);
    std::int64_t devices = 0;
    const char* const count_end = part.data() + std::min(sign, part.size());
    const auto [read_to, fault] = std::from_chars(part.data(), count_end, devices);
    if (bytes_per_s <= 0 || fault != std::errc() || read_to != count_end || devices < 1) {
      throw Error(Where{"", 0, "--levels"}, "\"" + part + "\" is not understood",
                  "write each level like 8@300GB/s, the lowest first");
    }
    if (const auto out = implausible(bytes_per_s, Unit::bytes_per_s)) {
      throw Error(Where{"", 0, "--levels"}, out->message, out->remedy);
    }
    levels.push_back({devices, bytes_per_s});
    at = end + 1;
  }
  return levels;
}

bool plans_by_own_rules(const ProfileOptions& o, const std::string& planner) {
  const bool asks_as_of_models =
      std::any_of(o.options_of_models.begin(), o.options_of_models.end(),
                  [](const VerbOption& option) { return option.given() && !option.is("out"); });
  if (asks_as_of_models) return false;
  if (planner.empty() || planner == "phaze") return true;
  return std::any_of(kPiperVariants.begin(), kPiperVariants.end(),
                     [&](const PiperVariant& variant) { return variant.name == planner; });
}

}  // namespace braid

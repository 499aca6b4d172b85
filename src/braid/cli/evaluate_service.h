#pragma once

#include <string>
#include <vector>

#include "braid/cli/job_options.h"
#include "braid/cli/serving_options.h"
#include "braid/cli/verb.h"

namespace braid {

/// The heading of options for services.
inline constexpr const char* kServices = "Services, with a serving engine's command line in --from";

/// What `braid evaluate` does with a serving engine's command line.
struct ServiceCommand {
  std::string from;                 ///< A file, or the command line itself.
  const JobOptions* job = nullptr;  ///< Model, cluster, precision, output.
  ServingOptions asked;
  bool alone = false;
};

/// Whether `from` names a file of engines' command lines, or is one.
bool is_service(const std::string& from);

/// Throws Error for options of training beside a service, or of services without one; `serving` are
/// the latter.
void check_service_options(const Verb& verb, const std::vector<VerbOption>& serving,
                           bool is_service);

/// Prints the evaluation. 0: it holds its targets, 1: it does not. Throws Error.
int evaluate_service_command(const ServiceCommand& command);

}  // namespace braid

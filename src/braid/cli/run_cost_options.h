#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/base/json.h"
#include "braid/cli/verb.h"
#include "braid/plan/run_costs.h"

namespace braid {

/// What asks for days, price and energy of a whole run.
struct RunCostOptions {
  std::string tokens, price_per_hour, mtbf, save_time, load_time, restart_time, pue;
  std::vector<VerbOption> others;  ///< All but --tokens.
};

/// The heading of all but --tokens, which is under "Output".
inline constexpr const char* kRunCosts = "Run costs";

void add_run_cost_options(Verb& verb, RunCostOptions& options);

/// "15T", "300B", "2e12", "1.5 T" as a number. Throws Error naming `option`.
double parse_amount(const std::string& option, const std::string& text);

/// What the options ask; nullopt without --tokens. Throws Error.
std::optional<RunQuestion> run_question(const RunCostOptions& options);

/// Lets all nodes of the system cost what --price-per-hour says, if it is given. Throws Error.
void set_price(const RunCostOptions& options, System& system);

/// Throws Error where failures leave no time for progress.
RunCosts costs_of_run(const Candidate& candidate, const RunQuestion& question);

Json to_json(const RunCosts& costs);

}  // namespace braid

#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace braid {

/// Exit statuses of the program.
enum ExitStatus : int {
  kFound = 0,       ///< A plan was found, or the check holds.
  kInfeasible = 1,  ///< Proven infeasible, or the check fails.
  kBadInput = 2,
  kExhausted = 3,  ///< Budget used up with nothing found.
  kInternal = 70,  ///< A result of braid's own that contradicts itself; it is never printed.
};

/// Runs a verb whose command line has been parsed; returns the exit status.
using Run = std::function<int()>;

// Each adds a verb to the command line and returns what runs it.
Run add_plan(CLI::App& app);
Run add_evaluate(CLI::App& app);
Run add_compare(CLI::App& app);
Run add_profile(CLI::App& app);
Run add_simulate(CLI::App& app);
Run add_verify(CLI::App& app);
Run add_export(CLI::App& app);
Run add_report(CLI::App& app);
Run add_list(CLI::App& app);
Run add_show(CLI::App& app);
Run add_validate(CLI::App& app);
Run add_map(CLI::App& app);
Run add_explore(CLI::App& app);
Run add_tune(CLI::App& app);
Run add_place(CLI::App& app);
Run add_measure(CLI::App& app);
Run add_serve_plan(CLI::App& app);
Run add_decode(CLI::App& app);
Run add_calibrate(CLI::App& app);
Run add_run(CLI::App& app);

}  // namespace braid

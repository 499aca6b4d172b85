// Holds the schedules of random graphs against CBC's answer to Phaze's own integer program:
//   core_programs [graphs] [seed] [seconds] [operators]
// With `operators`, all graphs have that many and CBC may run out of time: then its best schedule
// is compared. Exits with 1 where CBC has a shorter one, or proves another.
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

#include <fmt/format.h>

#include "braid/chip/cores/schedule_cores.h"

#include "chip/cores/core_problems.h"
#include "chip/cores/core_program.h"

int main(int argc, char** argv) {
  const auto argument = [&](int at, int otherwise) {
    return argc > at ? std::atoi(argv[at]) : otherwise;
  };
  const int graphs = argument(1, 1000), seed = argument(2, 1), seconds = argument(3, 30);
  const int operators = argument(4, 0);
  std::mt19937_64 dice(static_cast<std::uint64_t>(seed));
  int equal = 0, shorter = 0, unanswered = 0, wrong = 0, unproven = 0;
  for (int graph = 0; graph < graphs; ++graph) {
    braid::CoreDice like;
    like.operators = operators > 0 ? operators : 2 + static_cast<int>(dice() % 13);
    like.most_cores = 4;
    like.most_time = 30;
    // CBC takes very long for wide graphs.
    like.density = (like.operators > 9 ? 0.4 : 0.15) + 0.1 * static_cast<double>(dice() % 4);
    if (operators > 14) like.density = 3.0 / operators;
    const braid::CoreProblem problem = braid::random_core_problem(dice, like);
    const braid::CoreOutcome outcome = braid::schedule_cores(problem);
    const braid::ProgramAnswer answer =
        braid::answer_of_core_program(problem, fmt::format("core_programs_{}", seed), seconds);
    if (outcome.status != braid::CoreStatus::optimal) ++unproven;
    const double off = answer.makespan.value_or(0) - outcome.schedule.makespan_s;
    if (!answer.makespan) {
      ++unanswered;
    } else if (off < -1e-5 || (answer.proven && off > 1e-5)) {
      ++wrong;
      fmt::print("graph {}: {} here, {} by CBC\n", graph, outcome.schedule.makespan_s,
                 *answer.makespan);
    } else if (off > 1e-5) {
      ++shorter;
    } else {
      ++equal;
    }
  }
  fmt::print(
      "{} graphs: {} equal to CBC, {} shorter than what CBC has after {} s, {} without an "
      "answer of CBC, {} wrong; {} not proven here\n",
      graphs, equal, shorter, seconds, unanswered, wrong, unproven);
  return wrong > 0 ? 1 : 0;
}

#pragma once

#include <string>

#include "braid/serve/serving_plan.h"

namespace braid {

/// What a worker is for.
enum class WorkerRole { all, prompts, decoding };

/// As the engine is to find them, and for how long sequences.
struct LaunchNames {
  std::string model;
  std::string draft;  ///< Empty: none.
  double context = 0;
};

/// Sequences of one attention group, for which engines with a scheduler in each count.
double group_sequences(const WorkerPlan& of);

/// The command line of one worker's engine.
std::string launch_line(const WorkerPlan& of, const LaunchNames& names, WorkerRole role);

/// The plan as command lines of its engine, one for each kind of worker, below a comment that says
/// how many there are, what for, and in which precision. read_launch_lines() reads it.
std::string launch_lines(const ServingPlan& plan, const LaunchNames& names);

}  // namespace braid

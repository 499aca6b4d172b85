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
  ServingFormat published = {};  ///< In what numbers `model` is; none: in those of the plan.
};

/// Whether the weights of a plan's worker are in other numbers than the model's.
bool changes_weights(const WorkerPlan& of, const LaunchNames& names);

/// What stands for the model in a worker's command line: its own name, or where neither its weights
/// are those of the plan nor the engine makes them so as it loads them, the name of a checkpoint
/// that has them, "llama-3-70b-int4".
std::string checkpoint_name(const WorkerPlan& of, const LaunchNames& names);

/// Sequences of one attention group, for which engines with a scheduler in each count.
double group_sequences(const WorkerPlan& of);

/// The command line of one worker's engine, which says in what numbers its weights and caches are
/// where the model's are in others.
std::string launch_line(const WorkerPlan& of, const LaunchNames& names, WorkerRole role);

/// The plan as command lines of its engine, one for each kind of worker, below comments that say
/// how many there are, what for, in which precision, and what stands for a checkpoint of one's own.
/// read_launch_lines() reads it.
std::string launch_lines(const ServingPlan& plan, const LaunchNames& names);

}  // namespace braid

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/run/parameter_groups.h"
#include "braid/run/safetensors.h"
#include "braid/run/training_settings.h"

namespace braid {

/// A training after some iterations, whatever plan did them: weights and the optimizer's state of
/// whole parameters. A safetensors file has it: parameters under their names, Adam's moments under
/// "exp_avg." and "exp_avg_sq." and the name, and what is said of the run as metadata.
struct Checkpoint {
  std::string model;
  std::int64_t iterations = 0;  ///< That were done.
  TrainingSettings settings;    ///< But for `iterations`.
  std::vector<NamedTensor> tensors;
};

/// A whole file or none; one that was there stays until the new one is complete. Throws Error.
void write_checkpoint(const std::string& file, const Checkpoint& checkpoint);
/// Throws Error for a file that is no checkpoint.
Checkpoint read_checkpoint(const std::string& file);

/// Throws Error, naming the file, where a run of `model` with `settings` cannot go on from it: of
/// another model, optimizer, type, seed or learning rate.
void check_resumable(const Checkpoint& checkpoint, const std::string& file,
                     const std::string& model, const TrainingSettings& settings);

/// Rows that a checkpoint has of each group: weights, and Adam's moments behind them.
std::size_t checkpoint_rows(OptimizerRule rule);

/// Room for the tensors of a checkpoint: of zeros.
std::vector<NamedTensor> empty_tensors(const LayeredProgram& model, ElementType type,
                                       OptimizerRule rule);
/// Puts the numbers of a group's row into the tensors of empty_tensors(). `row`: 0 for weights, 1
/// and 2 for moments.
void put_row(std::vector<NamedTensor>& tensors, const LayeredProgram& model,
             const ParameterGroup& group, std::size_t row, const DenseTensor& numbers);
/// The row that put_row() has put, filled up with zeros. Throws Error where the
/// checkpoint lacks a parameter or has it in another size.
DenseTensor row_of(const Checkpoint& checkpoint, const LayeredProgram& model,
                   const ParameterGroup& group, std::size_t row);

/// Numbers of a group's row: those of its pieces, filled up to a multiple of its ranks.
std::int64_t row_length(const LayeredProgram& model, const ParameterGroup& group);

}  // namespace braid

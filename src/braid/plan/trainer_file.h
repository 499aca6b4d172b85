#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/document.h"
#include "braid/plan/trainer.h"
#include "braid/plan/trainer_condition.h"
#include "braid/system/system.h"

namespace braid {

/// What a trainer does where a run does not say.
struct TrainerUsual {
  Zero zero = Zero::none;
  Recompute recompute = Recompute::none;
  bool sequence_parallel = true;        ///< With tensor parallelism.
  bool dropout = false;                 ///< GPT-like models are trained with it.
  bool one_layer_chunks = false;        ///< Interleaved pipelines have a chunk for every layer.
  bool multi_token_prediction = false;  ///< Its layers are trained where the model has them.
  bool whole_batches = false;           ///< A step is one micro-batch, whatever else would fit.
  bool whole_experts = false;           ///< Tensor parallelism does not divide experts.
};

/// One entry of a file: a value under a condition, and where that is known from.
struct TrainerEntry {
  std::string section;  ///< "can", "does" or "usually".
  std::string key;
  double value = 0;  ///< Flags are 0 or 1; of "can" not used.
  std::string text;  ///< The value as the file has it.
  TrainerCondition when;
  std::string source;
};

/// A combination that a trainer refuses, of some models or on some chips.
struct ConditionalExclusion {
  ExcludedForms forms;
  TrainerCondition when;
};

/// A trainer as its YAML file has it (docs/adding-a-trainer.md).
struct TrainerFile {
  std::string name, title;
  TrainerLimits can;  ///< What holds of every model; the rest is in limits().
  std::vector<ConditionalExclusion> never;
  bool divides_heads = false, shares_heads = false;  ///< TrainerLimits::divided_heads.
  bool divides_tokens = false;                       ///< TrainerLimits::divided_tokens.
  bool alike_nodes = false;                          ///< TrainerLimits::alike_nodes.
  std::vector<TrainerEntry> entries;                 ///< In the file's order.
  std::vector<TrainerCondition> runs;                ///< Measured runs that are by it.
  std::vector<ChipKind> default_on;                  ///< Where it is taken when none is named …
  bool default_on_others = false;  ///< … and on chips that are on no other trainer's list.

  /// Of several entries of a key the first whose condition holds counts.
  Trainer trainer(const TrainerSubject& subject) const;
  TrainerLimits limits(const TrainerSubject& subject) const;
  TrainerUsual usual(const TrainerSubject& subject) const;
};

/// A run that is planned, its model aside.
TrainerSubject subject_of(const TrainerFile& trainer, const System& system,
                          const Precision& precision);

/// Reads a trainer's file. Throws Error with file, line and key: an unknown behaviour, an entry
/// without a source, a value of the wrong kind.
TrainerFile read_trainer(const Value& value);

/// The trainer of that name in the catalogue, or of a YAML file. Throws Error naming near ones.
/// `named` is where the name stands.
TrainerFile load_trainer(const std::string& name_or_path, const Where& named = {"", 0, "--for"});

/// One of the catalogue, without reading the others.
TrainerFile trainer_of_catalogue(std::string_view name);

/// All trainers of the catalogue, by name.
const std::vector<TrainerFile>& trainer_catalogue();

/// Does all that braid can say: runs what no other can.
inline constexpr std::string_view kIdealTrainer = "ideal";

/// The trainer of the catalogue that is taken on these chips where none is named: the one whose
/// default_on has the kinds of all, else the one for all others. Does not read the others.
const TrainerFile& default_trainer(const System& system);

/// The trainer of the catalogue whose measured run this is: of all whose conditions hold, the one
/// that says most words of the framework's name, then most conditions.
const TrainerFile& trainer_of_run(const TrainerSubject& subject);

}  // namespace braid

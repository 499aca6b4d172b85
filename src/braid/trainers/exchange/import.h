#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/plan/model_shape.h"
#include "braid/plan/parallelism.h"
#include "braid/profile/precision.h"
#include "braid/profile/trainer_behaviour.h"
#include "braid/system/system.h"
#include "braid/trainers/exchange/own_options.h"

namespace braid {

struct Plan;

/// A flag of the trainer's behaviour that a run has otherwise than the catalogue may say.
struct BehaviourChange {
  bool TrainerBehaviour::*flag = nullptr;
  bool value = false;
};

/// What a run leaves to the trainer's default.
struct LeftOpen {
  std::string text;  ///< "ARGUMENT: what that means".
  std::string
      option;  ///< Of braid, which says it in its place: "--global-batch"; empty: none does.
};

/// What a trainer's command line or configuration file says of a run, in braid's terms. What it
/// does not say has the trainer's own default.
struct Import {
  std::string trainer;                     ///< Its name in the catalogue.
  std::span<const OwnOption> own_options;  ///< For messages; static.
  std::string
      model;  ///< What it calls the model ("llama3/70B", a Hugging Face name); may be empty.
  std::string catalogue_model;      ///< The catalogue's name of that model; empty: not known.
  bool predicts_further = false;    ///< That model has modules for MTP, said beside its name.
  std::optional<ModelShape> shape;  ///< Where it says the model's sizes.
  /// Why there is no shape though sizes are given, as "the model has latent attention"; or empty.
  std::string no_shape;
  std::int64_t blocks = 0, hidden = 0;  ///< Where it says these sizes alone; 0: not said.
  std::int64_t devices = 0, global_batch = 0, seq_len = 0;  ///< 0: not said.
  /// Micro-batches of a step on each data-parallel rank, where it says these in place of the batch,
  /// or beside it, which must then be what they make; 0: it does not.
  std::int64_t accumulation = 0;
  /// dp 0: what the other degrees leave of the devices. num_micro_batches does not count.
  Parallelism parallel;
  /// The shards of the weights (ZeRO-3) are in host memory; modelled of one rank, which has all.
  bool host_shards = false;
  bool says_micro_batch = true;  ///< Otherwise that is 1, or follows from:
  /// Micro-batches that the batch of a data-parallel rank is split into; 0: not said.
  std::int64_t steps_of_batch = 0;
  std::optional<Precision> precision;
  /// In its place where it turns out that one rank has all of the state; nullopt: none is.
  std::optional<Precision> precision_of_one_shard;
  /// Where nothing says the precision: gradients have the weights' format, whichever that is.
  bool gradients_like_weights = false;
  std::vector<BehaviourChange> does;
  /// Transformer blocks, or all layers, of each chunk in model order, [pp · vp]; empty: as the
  /// trainer deals them.
  std::vector<std::int64_t> chunk_blocks;
  /// Arguments or keys that the reader knows nothing of, as they are written, in their order.
  std::vector<std::string> unknown;
  /// Of what figures depend on.
  std::vector<LeftOpen> not_given;
  /// What it says and braid does not model, one sentence each.
  std::vector<std::string> notes;
  std::optional<bool> dropout;   ///< Whether the model has some; nullopt: not known.
  std::string needs_fp4_units;   ///< What starts on chips with FP4 alone; empty: nothing does.
  std::optional<System> system;  ///< Where it says the devices with all their figures.
  /// A plan whose stages have forms of their own, of which the rest has what all share; or null.
  std::shared_ptr<const Plan> as_planned;
};

/// A setting of which nothing is said, and what it then is: "1".
struct UsualSetting {
  std::string_view name;  ///< As GivenArguments has it, "--model.pipeline_model_parallel_size".
  std::string_view text;
  std::string_view option;  ///< As that of LeftOpen.
};

/// What is said beside a trainer's command line or file.
struct ImportChoice {
  std::int64_t blocks = 0;  ///< Of the model that is named; 0: none is.
  std::string recipe;       ///< Which of a file's recipes; empty: it has one.
  /// The text of a file that the trainer's own names, where its user has it; nullopt: it is not
  /// there. Left out, none is.
  std::function<std::optional<std::string>(const std::string& name)> text_of_file = {};

  /// What another trainer's file says that this one names; nullopt: it is not there. Left out, none
  /// is.
  std::function<std::optional<Import>(const std::string& name)> run_of_file = {};

  /// Blocks of the model that is found beside the file, 0: none is; it counts where the file says
  /// no sizes itself. Left out, none is.
  std::function<std::int64_t()> blocks_beside = {};

  /// Blocks of a model by the trainer's name of it, 0: not known. Left out, none is.
  std::function<std::int64_t(const std::string& model)> blocks_by_name = {};

  /// Blocks of the model that is named or found beside the file; 0: none is.
  std::int64_t blocks_of_model() const {
    return blocks == 0 && blocks_beside ? blocks_beside() : blocks;
  }
  /// The same, or of that which a file names itself.
  std::int64_t blocks_of(const std::string& model) const {
    const std::int64_t known = blocks_of_model();
    return known == 0 && blocks_by_name ? blocks_by_name(model) : known;
  }
  std::optional<std::string> text_of(const std::string& name) const {
    return text_of_file ? text_of_file(name) : std::nullopt;
  }
  std::optional<Import> run_of(const std::string& name) const {
    return run_of_file ? run_of_file(name) : std::nullopt;
  }
};

/// Makes the trainer behave as the run says.
inline void take_behaviour(const Import& run, TrainerBehaviour& does) {
  for (const BehaviourChange& change : run.does) does.*change.flag = change.value;
}

}  // namespace braid

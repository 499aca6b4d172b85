#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/trainers/exchange/import.h"
#include "braid/trainers/exchange/settings.h"
#include "braid/trainers/exchange/shell_script.h"

namespace braid {

/// Whether a text is the line, or the script, that starts a run of DeepSpeed, and no arguments of
/// Megatron-DeepSpeed say more of it.
bool is_deepspeed_start(std::string_view text);

/// The command of a text that starts a run.
struct DeepspeedStart {
  std::string settings_file;  ///< With its folder; it is there.
  ShellCommand launcher;      ///< Words before the training script.
  ShellCommand arguments;     ///< Words behind it.
};

/// The first command that names a file of settings: by --deepspeed_config, or by --deepspeed as
/// Hugging Face's Trainer does. Throws Error where none does, or the file is not there. Cost: that
/// of reading the script.
DeepspeedStart deepspeed_start(std::string_view text, const std::string& file,
                               const ImportChoice& choice);

/// Puts the arguments of Hugging Face's Trainer in place of settings that are "auto", as it does
/// itself (trainer_config_process in transformers/integrations/deepspeed.py), and says what else
/// of the run they tell: model, tokens of a sample, recomputation, and which arguments nobody
/// knows. What no argument says stays "auto", since a script may set it itself. Throws Error for a
/// value that cannot be.
void take_trainer_arguments(const ShellCommand& arguments, const std::string& file,
                            std::vector<Setting>& settings, Import& run);

}  // namespace braid

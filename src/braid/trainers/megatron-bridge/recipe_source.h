#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/trainers/exchange/import.h"
#include "braid/trainers/exchange/settings.h"

namespace braid {

/// What a run of Megatron-Bridge sets, by "section.field", whatever it calls its configuration.
struct BridgeSource {
  std::vector<Setting> settings;
  std::string text;  ///< Of the part of the file that is carried out.
  std::vector<std::string> notes;
  bool leaves_recipe = false;        ///< It begins with a recipe of which nothing is read.
  std::int64_t devices = 0;          ///< That the command line starts; 0: it does not say.
  std::vector<std::string> unknown;  ///< Options of the command line that are not read.
};

/// Reads a recipe (a function that gives a ConfigContainer), which `choice` names where the file
/// has several; a script; or a command line of run_recipe.py or setup_experiment.py with its
/// options and overrides. Throws Error where several recipes remain, or none that is called so.
BridgeSource bridge_source(std::string_view text, const std::string& file,
                           const ImportChoice& choice);

}  // namespace braid

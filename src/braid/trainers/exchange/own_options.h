#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "braid/base/error.h"

namespace braid {

/// What a trainer calls what braid has an option for.
struct OwnOption {
  std::string_view option;  ///< "--tp".
  std::string_view own;     ///< "--tensor-model-parallel-size", or a key of its file.
};

/// Where a trainer's command line or file says what braid's option does: its own name for that, of
/// which there may be several, and the line where it stands last. nullopt: it does not say it in
/// this text. `file` is its name. Cost: linear in the text.
std::optional<Where> where_said(std::string_view text, const std::string& file,
                                std::span<const OwnOption> own, std::string_view option);

}  // namespace braid

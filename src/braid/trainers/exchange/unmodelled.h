#pragma once

#include <span>
#include <string_view>

#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// A setting that changes the time or the memory of a run and that braid does not model.
struct Unmodelled {
  std::string_view name;  ///< As GivenArguments has it; of keys of a file, without dashes.
  /// Values that say what braid has, in lower case, between bars: "|none|0|"; numbers count however
  /// they are written. Empty: none does.
  std::string_view usual;
  std::string_view here;  ///< What braid has in its place, "gradients are reduced layer by layer".
};

/// Says in a note of each that is given with another value: "NAME VALUE: here …". Takes note of all
/// of them.
void note_unmodelled(GivenArguments& given, std::span<const Unmodelled> all, Import& run);

}  // namespace braid

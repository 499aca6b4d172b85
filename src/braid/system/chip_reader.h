#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "braid/base/document.h"
#include "braid/system/defaults.h"
#include "braid/system/system.h"

namespace braid {

/// Reads a chip from its YAML (or JSON) form, docs/file-formats.md. What may be left out and is, is
/// recorded in Chip::provenance as assumed. Throws Error.
Chip read_chip(const Value& value);

/// "kernels", "dataflow", "cores".
std::string_view name_of(ChipExecution execution);
std::string_view name_of(ChipKind kind);

/// Reads such a name; `dataflow` needs the chip to have on-chip memory, `cores` an accelerator.
/// Throws Error.
ChipExecution read_execution(const Value& value, const Chip& chip);

/// What chips are that run kernels, unless they are designs: GPUs; others are of another kind.
ChipKind usual_kind(const Chip& chip);

/// "gpu", "tpu" or "other". Throws Error otherwise.
ChipKind read_kind(const Value& value);

/// Throws Error naming all of these keys that a mapping lacks, where it lacks several: readers of
/// each say of a single one that it is missing.
void expect_all(const Value& value, std::initializer_list<std::string_view> keys);

/// Reads a network level from its YAML form. Without a name it is called "link". `size` of its
/// units is left to the caller.
NetworkLevel read_level(const Value& value, const LinkSource& source,
                        std::vector<Provenance>& provenance);

/// Reads the `sources:` and `assumed:` maps of a file into `provenance`.
void read_sources(const Value& value, std::vector<Provenance>& provenance);

}  // namespace braid

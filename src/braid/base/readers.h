#pragma once

#include "braid/base/document_data.h"

namespace braid {

/// Fills `data` from `data.text`, which holds a JSON text (RFC 8259) and is rewritten in place.
/// Linear time. Throws Error.
void read_json(DocumentData& data);

/// Fills `data` from a YAML text: one document, without aliases and tags; plain scalars by the core
/// schema of YAML 1.2. Throws Error.
void read_yaml(std::string_view text, DocumentData& data);

}  // namespace braid

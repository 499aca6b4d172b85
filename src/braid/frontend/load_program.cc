#include "braid/frontend/load_program.h"

#include <unistd.h>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/frontend/graph_program.h"
#include "braid/frontend/onnx_program.h"

namespace braid {

Program load_program(const std::string& source, const ModelOptions& options) {
  if (source.ends_with(".onnx")) {
    if (options.seq_len > 0 || options.layers > 0) {
      throw Error("--seq-len and --layers are for models that are built to measure",
                  "an ONNX file has --dim NAME=N for its symbolic sizes");
    }
    return program_from_onnx(source, options.dims);
  }
  return program_from_graph(load_model(source, options));
}

void check_weights_fit(const Program& program, const std::string& source) {
  const double memory_bytes = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                              static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  // The original, and what libraries keep in their own order.
  const double needed_bytes = 2 * weight_bytes(program);
  if (needed_bytes <= memory_bytes) return;
  throw Error(source + ": its weights need " + format_bytes(needed_bytes) + ", twice over, of " +
                  format_bytes(memory_bytes) + " of memory",
              "run some of its layers, with --layers N");
}

}  // namespace braid

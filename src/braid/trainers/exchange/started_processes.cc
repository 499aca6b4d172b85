#include "braid/trainers/exchange/started_processes.h"

#include "braid/base/error.h"
#include "braid/trainers/exchange/given_arguments.h"

namespace braid {

std::int64_t processes_started(std::span<const std::string> words, const std::string& file) {
  GivenArguments given(words, file);
  const auto count = [&](const char* name, std::int64_t otherwise) -> std::int64_t {
    if (!given.has(name)) return otherwise;
    try {
      return given.count_or(name, otherwise);
    } catch (const Error&) {  // Said by a variable or as a range.
      return 0;
    }
  };
  const std::int64_t of_node = count("--nproc-per-node", count("--num-gpus", 0));
  return of_node * count("--nnodes", count("--num-nodes", 1));
}

}  // namespace braid

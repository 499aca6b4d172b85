#include "braid/trainers/accelerate/import.h"
#include "braid/trainers/maxtext/import.h"
#include "braid/trainers/megatron-bridge/import.h"

#include "fuzz/read_input.h"

// What Megatron-Bridge, MaxText and Accelerate are started with: every text is read or refused in
// one line, and what is read has degrees of 1 or more.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  for (const auto read : {import_megatron_bridge, import_maxtext, import_accelerate}) {
    fuzz::read_text(bytes, size, [&](std::string_view text) {
      const Import run = read(text, "input", {});
      fuzz::expect(run.parallel.tp >= 1 && run.parallel.pp >= 1 && run.parallel.dp >= 0);
      fuzz::expect(run.global_batch >= 0 && run.devices >= 0);
    });
  }
  return 0;
}

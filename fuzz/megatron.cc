#include "braid/trainers/megatron/import.h"

#include "fuzz/read_input.h"

// Command lines and launch scripts of Megatron-LM, the shell's words in them too.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    const Import run = import_megatron(text, "input");
    fuzz::expect(run.parallel.tp >= 1 && run.parallel.pp >= 1 && run.parallel.dp >= 0);
    fuzz::expect(run.global_batch >= 0 && run.seq_len >= 0 && run.devices >= 0);
  });
}

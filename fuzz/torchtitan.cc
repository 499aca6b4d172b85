#include "braid/trainers/torchtitan/import.h"

#include "fuzz/read_input.h"

// torchtitan's TOML and recipes: every text is read or refused in one line, and what is read has
// degrees of 1 or more and as many chunks as it says.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    const Import run = import_torchtitan(text, "input");
    const Parallelism& p = run.parallel;
    fuzz::expect(p.tp >= 1 && p.pp >= 1 && p.dp >= 0 && p.vp >= 1 && p.micro_batch >= 1);
    fuzz::expect(run.global_batch >= 0 && run.devices >= 0 && run.seq_len >= 1);
    fuzz::expect(run.chunk_blocks.empty() ||
                 std::ssize(run.chunk_blocks) == std::int64_t{p.pp} * p.vp);
  });
}

#include "braid/trainers/deepspeed/import.h"

#include "fuzz/read_input.h"

// DeepSpeed's JSON: every text is read or refused in one line, and what is read has degrees of 1 or
// more.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    const Import run = import_deepspeed(text, "input");
    const Parallelism& p = run.parallel;
    fuzz::expect(p.tp >= 1 && p.pp >= 1 && p.dp >= 0 && p.cp >= 1 && p.micro_batch >= 1);
    fuzz::expect(run.global_batch >= 0 && run.accumulation >= 0);
  });
}

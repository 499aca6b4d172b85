#include "braid/plan/trainer_file.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_document(bytes, size, Document::Syntax::yaml, [](const Value& root) {
    const TrainerFile file = read_trainer(root);
    const TrainerSubject subject{"megatron-lm", "h100", 9.0, "bf16", "llama-3-70b", ""};
    static_cast<void>(file.trainer(subject));
    static_cast<void>(file.usual(subject));
  });
}

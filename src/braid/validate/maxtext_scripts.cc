#include "braid/validate/maxtext_scripts.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "braid/base/text.h"

namespace braid {
namespace {

/// base.yml of MaxText's repository.
constexpr KnownModel kBase = {.family = "maxtext",
                              .size = "",
                              .layers = 16,
                              .hidden = 2048,
                              .heads = 16,
                              .kv_heads = 16,
                              .ffn = 7168,
                              .vocab = 32000,
                              .gated = true,
                              .head_dim = 128};
constexpr std::int64_t kSequence = 2048;

struct Script {
  std::string_view chip, model;
  std::int64_t samples;  ///< per_device_batch_size
  std::int64_t tp;       ///< ici_tensor_parallelism
  /// remat_policy: "minimal" keeps the results of all GEMMs, "full" the layer's input.
  std::string_view recompute;
};

constexpr auto kScripts = std::to_array<Script>({
    {"v5e", "maxtext16b", 6, 1, "full"},
    {"v5e", "maxtext32b", 4, 1, "full"},
    {"v5e", "maxtext64b", 2, 1, "full"},
    {"v5e", "maxtext128b", 1, 16, "selective"},
    {"v5p", "maxtext32b", 7, 4, "selective"},
    {"v5p", "maxtext64b", 3, 4, "selective"},
    {"v5p", "maxtext128b", 1, 8, "selective"},
    {"v5p", "maxtext256b", 1, 8, "selective"},
    {"v5p", "maxtext512b", 2, 8, "full"},
    {"v5p", "maxtext1024b", 2, 8, "full"},
});

}  // namespace

KnownModel scaled_maxtext(std::int64_t scale) {
  KnownModel model = kBase;
  for (int doubling = 0; scale > 1; ++doubling, scale /= 2) {
    if (doubling % 3 == 0) {
      model.heads *= 2;
      model.kv_heads *= 2;
      model.ffn *= 2;
    } else if (doubling % 3 == 1) {
      model.hidden *= 2;
    } else {
      model.layers *= 2;
    }
  }
  return model;
}

MeasuredRun with_maxtext_script(const MeasuredRun& run) {
  const std::string model = plain_name(run.model);
  const std::string hardware = lowered(run.hardware);
  const auto* const script = std::find_if(kScripts.begin(), kScripts.end(), [&](const Script& s) {
    return s.model == model && contains(hardware, s.chip);
  });
  if (script == kScripts.end() || run.layers > 0 || run.devices % script->tp != 0) return run;
  MeasuredRun filled = run;
  if (filled.seq_len == 0) filled.seq_len = kSequence;
  if (filled.global_batch == 0) filled.global_batch = script->samples * run.devices;
  if (filled.tp == 0 && filled.dp == 0) filled.tp = script->tp;
  if (filled.recompute.empty()) filled.recompute = script->recompute;
  return filled;
}

}  // namespace braid

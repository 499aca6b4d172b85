#include "braid/kernels/attention.h"

#include "braid/kernels/number_format.h"

namespace braid {

AttentionShape attention_shape(double heads, double kv_heads, double head_dim, double batch,
                               double tokens) {
  return {heads, kv_heads, head_dim, head_dim, 2 * head_dim, 0, batch, tokens};
}

AttentionShape mla_prefill_shape(double heads, double batch, double tokens) {
  return {heads, heads, 192, 128, 192 + 128, 0, batch, tokens};
}

AttentionShape mla_decode_shape(double heads, double batch, double tokens) {
  return {heads, 1, 576, 512, 576, 0, batch, tokens};
}

std::optional<AttentionSetting> attention_setting(const Chip& chip, std::string_view format) {
  const std::size_t slash = format.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::optional<KernelFormat> products = kernel_format(format.substr(0, slash));
  const std::optional<KernelFormat> cache = kernel_format(format.substr(slash + 1));
  if (!products || !cache) return std::nullopt;
  const std::optional<KernelMachine> machine = kernel_machine(chip, products->multiplied);
  if (!machine) return std::nullopt;
  return AttentionSetting{*machine, cache->activation_bytes};
}

}  // namespace braid

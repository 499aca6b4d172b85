#pragma once

#include <array>
#include <span>
#include <string_view>

#include "braid/base/document.h"
#include "braid/frontend/decoder.h"

namespace braid {

/// One `model_type` of a decoder-only model and the reader of its config.json, which leaves the
/// name empty and throws Error naming the field.
struct DecoderType {
  std::string_view model_type;
  DecoderSpec (*read)(const Value& config);
};

/// What a family's own file has.
using DecoderFamily = std::span<const DecoderType>;

extern const DecoderFamily kDeepseekFamily, kGemmaFamily, kGptFamily, kGptOssFamily, kLlamaFamily,
    kMistralFamily, kNemotronFamily, kPhiFamily, kQwenFamily;

/// All of these.
inline constexpr std::array kDecoderFamilies = {&kDeepseekFamily, &kGemmaFamily, &kGptFamily,
                                                &kGptOssFamily,   &kLlamaFamily, &kMistralFamily,
                                                &kNemotronFamily, &kPhiFamily,   &kQwenFamily};

}  // namespace braid

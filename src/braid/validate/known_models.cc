#include "braid/validate/known_models.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "braid/validate/maxtext_scripts.h"

namespace braid {
namespace {

constexpr std::int64_t kGpt = 50304, kLlama = 32000, kLlama3 = 128256, kQwen = 151936;
constexpr std::int64_t kQwenLarge = 152064, kOpt = 50272, kBloom = 250880, kMpt = 50368;
constexpr std::int64_t kFalcon = 65024, kNemotron = 256000;

constexpr auto kModels = std::to_array<KnownModel>({
    // Brown et al. 2020, table 2.1, with heads that divide the hidden size.
    {"gpt", "125m", 12, 768, 12, 12, 3072, kGpt},
    {"gpt", "350m", 24, 1024, 16, 16, 4096, kGpt},
    {"gpt", "760m", 24, 1536, 16, 16, 6144, kGpt},
    {"gpt", "1.3b", 24, 2048, 16, 16, 8192, kGpt},
    {"gpt", "2.7b", 32, 2560, 32, 32, 10240, kGpt},
    {"gpt", "6.7b", 32, 4096, 32, 32, 16384, kGpt},
    {"gpt", "13b", 40, 5120, 40, 40, 20480, kGpt},
    {"gpt", "175b", 96, 12288, 96, 96, 49152, kGpt},
    {"gpt2", "1.5b", 48, 1600, 25, 25, 6400, kGpt},
    {"gpt2", "xl", 48, 1600, 25, 25, 6400, kGpt},
    // Narayanan et al. 2021, table 1; Korthikanti et al. 2022, table 3.
    {"gpt", "1.7b", 24, 2304, 24, 24, 9216, 51200},
    {"gpt", "3.6b", 30, 3072, 32, 32, 12288, 51200},
    {"gpt", "7.5b", 36, 4096, 32, 32, 16384, 51200},
    {"gpt", "18.4b", 40, 6144, 48, 48, 24576, 51200},
    {"gpt", "18b", 40, 6144, 48, 48, 24576, 51200},
    {"gpt", "39.1b", 48, 8192, 64, 64, 32768, 51200},
    {"gpt", "39b", 48, 8192, 64, 64, 32768, 51200},
    {"gpt", "76.1b", 60, 10240, 80, 80, 40960, 51200},
    {"gpt", "76b", 60, 10240, 80, 80, 40960, 51200},
    {"gpt", "145.6b", 80, 12288, 96, 96, 49152, 51200},
    {"gpt", "145b", 80, 12288, 96, 96, 49152, 51200},
    {"gpt", "310.1b", 96, 16384, 128, 128, 65536, 51200},
    {"gpt", "310b", 96, 16384, 128, 128, 65536, 51200},
    {"gpt", "529.6b", 105, 20480, 128, 128, 81920, 51200},
    {"gpt", "530b", 105, 20480, 128, 128, 81920, 51200},
    {"gpt", "1008b", 128, 25600, 160, 160, 102400, 51200},
    {"gpt", "1t", 128, 25600, 160, 160, 102400, 51200},
    {"gpt", "1000b", 128, 25600, 160, 160, 102400, 51200},
    {"gpt", "22b", 48, 6144, 64, 64, 24576, 51200},
    // NVIDIA NeMo's recipes.
    {"gpt", "5b", 24, 4096, 32, 32, 16384, kGpt},
    {"gpt", "20b", 44, 6144, 48, 48, 24576, kGpt},
    {"gpt", "40b", 48, 8192, 64, 64, 32768, kGpt},
    {"gptj", "6b", 28, 4096, 16, 16, 16384, 50400},
    {"pythia", "6.9b", 32, 4096, 32, 32, 16384, 50432},
    {"pythia", "12b", 36, 5120, 40, 40, 20480, 50688},
    // Zhang et al. 2022, table 1.
    {"opt", "125m", 12, 768, 12, 12, 3072, kOpt},
    {"opt", "1.3b", 24, 2048, 32, 32, 8192, kOpt},
    {"opt", "2.7b", 32, 2560, 32, 32, 10240, kOpt},
    {"opt", "6.7b", 32, 4096, 32, 32, 16384, kOpt},
    {"opt", "13b", 40, 5120, 40, 40, 20480, kOpt},
    {"opt", "30b", 48, 7168, 56, 56, 28672, kOpt},
    {"opt", "66b", 64, 9216, 72, 72, 36864, kOpt},
    {"opt", "175b", 96, 12288, 96, 96, 49152, kOpt},
    // Le Scao et al. 2022, table 3.
    {"bloom", "560m", 24, 1024, 16, 16, 4096, kBloom},
    {"bloom", "1b7", 24, 2048, 16, 16, 8192, kBloom},
    {"bloom", "3b", 30, 2560, 32, 32, 10240, kBloom},
    {"bloom", "7b1", 30, 4096, 32, 32, 16384, kBloom},
    {"bloom", "176b", 70, 14336, 112, 112, 57344, kBloom},
    // MosaicML llm-foundry's configurations.
    {"mpt", "7b", 32, 4096, 32, 32, 16384, kMpt},
    {"mpt", "13b", 40, 5120, 40, 40, 20480, kMpt},
    {"mpt", "30b", 48, 7168, 56, 56, 28672, kMpt},
    {"mpt", "70b", 80, 8192, 64, 64, 32768, kMpt},
    // Almazrouei et al. 2023, table 14; Parmar et al. 2024; Adler et al. 2024, table 1.
    {"falcon", "7b", 32, 4544, 71, 1, 18176, kFalcon},
    {"falcon", "40b", 60, 8192, 128, 8, 32768, kFalcon},
    {"falcon", "180b", 80, 14848, 232, 8, 59392, kFalcon},
    {"nemotron4", "15b", 32, 6144, 48, 8, 24576, kNemotron},
    {"nemotron4", "340b", 96, 18432, 96, 8, 73728, kNemotron},
    // Touvron et al. 2023, table 2; Rozière et al. 2023; Meta's model cards.
    {"llama", "7b", 32, 4096, 32, 32, 11008, kLlama, true},
    {"llama", "13b", 40, 5120, 40, 40, 13824, kLlama, true},
    {"llama", "30b", 60, 6656, 52, 52, 17920, kLlama, true},
    {"llama", "33b", 60, 6656, 52, 52, 17920, kLlama, true},
    {"llama", "65b", 80, 8192, 64, 64, 22016, kLlama, true},
    {"llama2", "34b", 48, 8192, 64, 8, 22016, kLlama, true},
    {"codellama", "34b", 48, 8192, 64, 8, 22016, kLlama, true},
    {"llama3.2", "1b", 16, 2048, 32, 8, 8192, kLlama3, true},
    {"llama3.2", "3b", 28, 3072, 24, 8, 8192, kLlama3, true},
    {"llama3.3", "70b", 80, 8192, 64, 8, 28672, kLlama3, true},
    // Config files of Qwen, 01-ai, InternLM and Baichuan.
    {"qwen2.5", "0.5b", 24, 896, 14, 2, 4864, kQwen, true},
    {"qwen2.5", "1.5b", 28, 1536, 12, 2, 8960, kQwen, true},
    {"qwen2.5", "3b", 36, 2048, 16, 2, 11008, kQwen, true},
    {"qwen2.5", "7b", 28, 3584, 28, 4, 18944, kQwenLarge, true},
    {"qwen2.5", "14b", 48, 5120, 40, 8, 13824, kQwenLarge, true},
    {"qwen2.5", "32b", 64, 5120, 40, 8, 27648, kQwenLarge, true},
    {"qwen2.5", "72b", 80, 8192, 64, 8, 29568, kQwenLarge, true},
    {"qwen2", "72b", 80, 8192, 64, 8, 29568, kQwenLarge, true},
    {"qwen1.5", "7b", 32, 4096, 32, 32, 11008, kQwen, true},
    {"qwen3", "14b", 40, 5120, 40, 8, 17408, kQwen, true},
    {"yi", "6b", 32, 4096, 32, 4, 11008, 64000, true},
    {"yi", "34b", 60, 7168, 56, 8, 20480, 64000, true},
    {"internlm", "7b", 32, 4096, 32, 32, 11008, 103168, true},
    {"internlm", "20b", 60, 5120, 40, 40, 13824, 103168, true},
    {"internlm2", "7b", 32, 4096, 32, 8, 14336, 92544, true},
    {"internlm2", "20b", 48, 6144, 48, 8, 16384, 92544, true},
    {"baichuan2", "7b", 32, 4096, 32, 32, 11008, 125696, true},
    {"baichuan2", "13b", 40, 5120, 40, 40, 13696, 125696, true},
});

/// Families by other names.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kAliases = {
    {{"gpt3", "gpt"},
     {"megatron", "gpt"},
     {"megatrongpt", "gpt"},
     {"turing", "gpt"},
     {"turingnlg", "gpt"},
     {"mtnlg", "gpt"}}};

/// Of MaxText's models, in billions of parameters.
constexpr std::int64_t kLargestScale = 4096;

constexpr std::array<std::string_view, 6> kSuffixes = {"maxtext", "instruct", "base",
                                                       "chat",    "hf",       "truncatedlayers"};

}  // namespace

std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name.substr(0, name.find('('))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.') {
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  for (const std::string_view suffix : kSuffixes) {
    if (plain.ends_with(suffix)) plain.resize(plain.size() - suffix.size());
  }
  return plain;
}

std::optional<KnownModel> known_model(std::string_view name) {
  const std::string plain = plain_name(name);
  const auto is = [&plain](std::string_view family, std::string_view size) {
    return plain.size() == family.size() + size.size() && plain.starts_with(family) &&
           plain.ends_with(size);
  };
  for (const KnownModel& model : kModels) {
    const bool named = is(model.family, model.size) ||
                       std::any_of(kAliases.begin(), kAliases.end(), [&](const auto& alias) {
                         return alias.second == model.family && is(alias.first, model.size);
                       });
    // "22B" alone is how NVIDIA's papers speak of GPT.
    if (named || (model.family == "gpt" && plain == model.size)) return model;
  }
  for (std::int64_t scale = 1; scale <= kLargestScale; scale *= 2) {
    if (is("maxtext", std::to_string(scale) + "b")) return scaled_maxtext(scale);
  }
  return std::nullopt;
}

}  // namespace braid

#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/document.h"
#include "braid/frontend/model.h"

namespace braid {

// Reads of a model's config.json. All throw Error naming the file, line and field. The bounds keep
// products of three sizes (rows, width, width) within 64 bits.

inline constexpr std::int64_t kMostWidth = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 28;
inline constexpr std::int64_t kMostMtpLayers = 16;  ///< Of multi-token prediction.
inline constexpr std::int64_t kMostLayers = 10000;

/// Whether the field is there and not null.
bool has(const Value& config, std::string_view key);

/// A size from 1 to `most`.
std::int64_t size_of(const Value& config, std::string_view key, std::int64_t most = kMostWidth);

/// As size_of, but `otherwise` when the field is missing or null.
std::int64_t size_or(const Value& config, std::string_view key, std::int64_t otherwise,
                     std::int64_t most = kMostWidth);

/// A count from 0 to `most`; `otherwise` when the field is missing or null.
std::int64_t count_or(const Value& config, std::string_view key, std::int64_t otherwise,
                      std::int64_t most = kMostWidth);

/// A number in [0, 1]; `otherwise` when the field is missing or null.
double share_or(const Value& config, std::string_view key, double otherwise);

/// Whether any of these dropout rates is above zero; `otherwise` is the rate of a field that is
/// missing or null.
bool any_dropout(const Value& config, std::initializer_list<std::string_view> keys,
                 double otherwise);

/// True or false; `otherwise` when the field is missing or null.
bool flag_or(const Value& config, std::string_view key, bool otherwise);

/// A list of sizes from 1 to `most`, at least `least_count` of them.
std::vector<std::int64_t> sizes_of(const Value& config, std::string_view key,
                                   std::size_t least_count = 1, std::int64_t most = kMostWidth);

/// Fails, at `key`, when that field makes more than kMostLayers layers.
void check_layer_count(const Value& config, std::string_view key, std::int64_t layers);

/// Fails unless `part`, the value of `key`, divides `whole`.
void check_divides(const Value& config, std::string_view key, std::int64_t part, std::int64_t whole,
                   std::string_view what);

/// Fails, at `key`, when heads of `dim` features are together wider than kMostWidth.
void check_head_width(const Value& config, std::string_view key, std::int64_t heads,
                      std::int64_t dim);

/// Tokens of a sample: those asked for, else `longest`. With `learned` positions no sample may be
/// longer than that.
std::int64_t sample_tokens(const ModelOptions& options, std::int64_t longest, bool learned);

/// Throws Error when the options set a sequence length, for models without one.
void refuse_seq_len(const std::string& model, const ModelOptions& options);

}  // namespace braid

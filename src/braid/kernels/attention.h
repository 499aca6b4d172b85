#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "braid/kernels/form.h"
#include "braid/kernels/machine.h"

namespace braid {

/// Softmax attention of one layer, the part that one device computes.
struct AttentionShape {
  double heads = 0, kv_heads = 0;  ///< Of queries; of keys and values, which divides it.
  double key_dim = 0, value_dim = 0;
  double cached_elements = 0;  ///< Of one token and kv head: key and value, or the latent of both.
  double window = 0;           ///< Tokens that are looked back at; 0: all.
  double batch = 0;            ///< Sequences.
  double tokens = 0;           ///< Of a sequence: new ones (prefill), in the cache in all (decode).
};

/// As in most models: keys and values of `head_dim`, both cached.
AttentionShape attention_shape(double heads, double kv_heads, double head_dim, double batch,
                               double tokens);
/// Multi-head latent attention (DeepSeek-V2 and later), without projections: 192 and 128 wide heads
/// for new tokens; for cached ones the absorbed form on a latent of 576 that all heads share.
AttentionShape mla_prefill_shape(double heads, double batch, double tokens);
AttentionShape mla_decode_shape(double heads, double batch, double tokens);

/// What is known before a call: formats of GEMMs and of the cache.
struct AttentionSetting {
  KernelMachine machine;
  double cache_bytes = 2;  ///< Of an element of the cache.
};

/// `format`: "bf16/fp8" for GEMMs in bf16 and a cache in fp8. nullopt for other formats, and for
/// a chip without a peak for GEMMs or a last-level cache.
std::optional<AttentionSetting> attention_setting(const Chip& chip, std::string_view format);

/// What the time of causal attention of new tokens depends on, writing them to the cache included.
///
/// A block is `rows` queries (16, 64, 128 or 256) of one head, or of all heads that share keys. It
/// goes through the keys before its last query, `key tile` at a time; `pairs` are those of a query
/// and a key that it sees:
///
///     waves   = batch · heads / shared · ⌈tokens · shared / rows⌉ / SMs
///     keys    = pairs / tokens + rows / shared / 2      at most tokens; a block's mean
///     compute = 2 rows · key tile (key_dim + value_dim) SMs / (peak · chip's peak)
///     exp     = rows · key tile · pair
///     work    = (compute⁴ + exp⁴)^¼ · [a slow width] slow
///     all     = turns(waves) ((keys / key tile + ½) work + block (0.2 + 0.8 rows / 256))
///     one     = ⌈longest / key tile⌉ max(work, step) + epilogue
///     tiles   = (all² + one²)^½ (1 + clock_loss u³)
///     memory  = V missed(V) / (memory · bandwidth)      V: bytes of q, output and cache
///     append  = new keys and values, read and written / append
///     time    = (tiles^overlap + memory^overlap)^(1 / overlap) + append + floor
///
/// turns, missed and u as in gemm.h. The time is the least over rows and sharing.
struct PrefillFigures {
  double peak = 0;         ///< Of the dense peak of the GEMMs' format.
  double pair = 0;         ///< Seconds of one SM for the exponential of one query and key.
  double step = 0;         ///< The least seconds for a tile of keys.
  double epilogue = 0;     ///< Seconds, latency of a block.
  double block = 0;        ///< Seconds of one SM for a block of 256 queries.
  double whole_waves = 0;  ///< Share that waits for the slowest SM.
  double memory = 0;       ///< Of the specified bandwidth.
  double l2_gain = 0;      ///< Bandwidth of L2 over that of memory.
  double cache = 0;        ///< Of L2, what keeps data until they are read again.
  double clock_loss = 0;   ///< By how much tiles take longer where tensor cores are always busy.
  double overlap = 0;      ///< 1: computing and memory one after the other; large: the longer.
  double slow = 0;         ///< By how much tiles of heads of a slow width take longer.
  double append = 0;       ///< Bytes/s, keys and values into the cache.
  double floor = 0;        ///< Seconds.
  /// Blocks of all heads that share keys: 0 never, 1 may be, 2 of one new token, 3 of several.
  int shares_keys = 0;
  int whole_window = 0;  ///< 1: what is outside a window is computed too.
  int key_tile = 0;      ///< 128, 64 or 32 keys.
  int slow_width = 0;    ///< Slow are: 0 more than 128, 1 what is no power of two.
};

struct PrefillForm {
  using Figures = PrefillFigures;
  using Shape = AttentionShape;
  using Setting = AttentionSetting;
  static constexpr std::array kFields = {
      FigureField<Figures>{"peak", "", &Figures::peak, 0.7, 0.05, 1.1},
      FigureField<Figures>{"pair", "s", &Figures::pair, 5e-11, 1e-13, 1e-8},
      FigureField<Figures>{"step", "s", &Figures::step, 3e-7, 1e-9, 1e-4},
      FigureField<Figures>{"epilogue", "s", &Figures::epilogue, 2e-6, 1e-8, 1e-3},
      FigureField<Figures>{"block", "s", &Figures::block, 1e-6, 1e-8, 1e-3},
      FigureField<Figures>{"whole_waves", "", &Figures::whole_waves, 0.5, 0.05, 1},
      FigureField<Figures>{"memory", "", &Figures::memory, 0.8, 0.05, 1},
      FigureField<Figures>{"l2_gain", "", &Figures::l2_gain, 2, 1, 20},
      FigureField<Figures>{"cache", "", &Figures::cache, 0.7, 0.1, 1.1},
      FigureField<Figures>{"clock_loss", "", &Figures::clock_loss, 0.2, 0.01, 2},
      FigureField<Figures>{"overlap", "", &Figures::overlap, 2, 1, 12},
      FigureField<Figures>{"slow", "", &Figures::slow, 1, 0.3, 30},
      FigureField<Figures>{"append", "B/s", &Figures::append, 3e12, 1e10, 1e14},
      FigureField<Figures>{"floor", "s", &Figures::floor, 8e-6, 1e-7, 1e-3},
  };
  static constexpr std::array kOptions = {
      OptionField<Figures>{"shares_keys", &Figures::shares_keys, 4},
      OptionField<Figures>{"whole_window", &Figures::whole_window},
      OptionField<Figures>{"key_tile", &Figures::key_tile, 3},
      OptionField<Figures>{"slow_width", &Figures::slow_width},
  };
  static std::optional<Setting> setting(const Chip& chip, std::string_view format) {
    return attention_setting(chip, format);
  }
  static bool applies(std::string_view /*field*/, const Setting& /*setting*/) { return true; }
  /// Sizes of at least 1. Cost: 8 variants.
  static KernelTime time(const Figures& figures, const Setting& setting, const Shape& shape);
  static double time_of(const Figures& figures, const Setting& setting, const Shape& shape,
                        int variant);
};

/// What the time of attention of one new token a sequence depends on.
///
/// A block goes through a part of the keys of one sequence and kv head for `rows` (16 to 128) of
/// the heads that share it, or for one head:
///
///     waves   = batch · kv_heads ⌈heads / kv_heads / rows⌉ split / SMs
///     compute = 2 rows (key_dim + value_dim) SMs / (peak · chip's peak)      for one key
///     loads   = cached_elements · bytes of one / feed
///     work    = (compute⁴ + loads⁴)^¼
///     part    = keys / split, up to a multiple of 64
///     blocks  = ((turns(waves) (part · work + block))² + (part · max(work, step) + epilogue)²)^½
///     memory  = bytes of cache, q and output · missed(bytes) / (memory · bandwidth)
///     time    = (blocks^overlap + memory^overlap)^(1 / overlap)
///               + [split > 1] (reduce + partial / (l2_gain · memory · bandwidth))
///               + batch · sequence + floor
///     partial = 8 split · batch · heads · value_dim
///
/// with head_block and head_step in place of block and step where a block is of one head. The time
/// is the least over rows and 1, 2, 4 … 256 parts of at least 64 keys.
struct DecodeFigures {
  double peak = 0;         ///< Of the dense peak in bf16.
  double feed = 0;         ///< Bytes/s into one SM.
  double step = 0;         ///< The least seconds for one key.
  double head_step = 0;    ///< The same where blocks are of one head.
  double epilogue = 0;     ///< Seconds, latency of a block.
  double block = 0;        ///< Seconds of one SM for a block.
  double head_block = 0;   ///< The same where blocks are of one head.
  double whole_waves = 0;  ///< Share that waits for the slowest SM.
  double memory = 0;       ///< Of the specified bandwidth.
  double l2_gain = 0;      ///< Bandwidth of L2 over that of memory.
  double cache = 0;        ///< Of L2, what keeps data until they are read again.
  double overlap = 0;      ///< 1: computing and memory one after the other; large: the longer.
  double reduce = 0;       ///< Seconds, for adding up the parts.
  double sequence = 0;     ///< Seconds for each sequence.
  double floor = 0;        ///< Seconds.
  /// Heads share keys if not more of them do than: 0 any number, 1 32, 2 8, 3 never.
  int shares_keys = 0;
  /// Blocks of one head where otherwise they are of several: 0 nowhere; 1 where one head has the
  /// keys for itself, 2 with windows, 3 both; 4 to 6 the same, and these do not split keys.
  int apart = 0;
  int whole_keys = 0;  ///< 1: blocks of several heads do not split keys.
};

struct DecodeForm {
  using Figures = DecodeFigures;
  using Shape = AttentionShape;
  using Setting = AttentionSetting;
  static constexpr std::array kFields = {
      FigureField<Figures>{"peak", "", &Figures::peak, 0.5, 0.02, 1.1},
      FigureField<Figures>{"feed", "B/s", &Figures::feed, 80e9, 1e9, 1e13},
      FigureField<Figures>{"step", "s", &Figures::step, 5e-9, 1e-11, 1e-6},
      FigureField<Figures>{"head_step", "s", &Figures::head_step, 5e-9, 1e-11, 1e-6},
      FigureField<Figures>{"epilogue", "s", &Figures::epilogue, 2e-6, 1e-8, 1e-3},
      FigureField<Figures>{"block", "s", &Figures::block, 1e-6, 1e-8, 1e-3},
      FigureField<Figures>{"head_block", "s", &Figures::head_block, 5e-7, 1e-8, 1e-3},
      FigureField<Figures>{"whole_waves", "", &Figures::whole_waves, 0.5, 0.05, 1},
      FigureField<Figures>{"memory", "", &Figures::memory, 0.85, 0.1, 1},
      FigureField<Figures>{"l2_gain", "", &Figures::l2_gain, 2, 1, 20},
      FigureField<Figures>{"cache", "", &Figures::cache, 0.7, 0.1, 1.1},
      FigureField<Figures>{"overlap", "", &Figures::overlap, 2, 1, 12},
      FigureField<Figures>{"reduce", "s", &Figures::reduce, 2e-6, 1e-8, 1e-3},
      FigureField<Figures>{"sequence", "s", &Figures::sequence, 1e-9, 1e-12, 1e-5},
      FigureField<Figures>{"floor", "s", &Figures::floor, 6e-6, 1e-7, 1e-3},
  };
  static constexpr std::array kOptions = {
      OptionField<Figures>{"apart", &Figures::apart, 7},
      OptionField<Figures>{"shares_keys", &Figures::shares_keys, 4},
      OptionField<Figures>{"whole_keys", &Figures::whole_keys},
  };
  static std::optional<Setting> setting(const Chip& chip, std::string_view format) {
    return attention_setting(chip, format);
  }
  static bool applies(std::string_view /*field*/, const Setting& /*setting*/) { return true; }
  /// Sizes of at least 1. Cost: 45 variants, of which few are possible at once.
  static KernelTime time(const Figures& figures, const Setting& setting, const Shape& shape);
  static double time_of(const Figures& figures, const Setting& setting, const Shape& shape,
                        int variant);
};

}  // namespace braid

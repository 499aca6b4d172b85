#pragma once

#include <cstdint>
#include <string_view>

namespace braid {

/// How N devices divide one layer that decodes, a token for each of B sequences.
enum class DecodeScheme : std::uint8_t {
  data,           ///< Each device has its own sequences, whole.
  tensor,         ///< Each device has some heads of all sequences; two all-reduces.
  cache,          ///< Caches are split by tokens; all devices gather queries, keys and values.
  cache_queries,  ///< The same, but a new key and value go only to the device that keeps them.
  cache_newest    ///< The same, but they stay on the device that has the sequence.
};
inline constexpr DecodeScheme kDecodeSchemes[] = {DecodeScheme::data, DecodeScheme::tensor,
                                                  DecodeScheme::cache, DecodeScheme::cache_queries,
                                                  DecodeScheme::cache_newest};
std::string_view name_of(DecodeScheme scheme);
/// Whether caches are split by tokens. Projections and feed-forward networks are then data
/// parallel.
bool splits_cache(DecodeScheme scheme);

/// A layer of attention, in what it exchanges.
struct DecodeLayer {
  double hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  double value_bytes = 2;      ///< Of an element of activations.
  double statistic_bytes = 4;  ///< Of the maximum and of the sum of a partial result, each.
};

/// Bytes that one device sends for one layer and step, in the mean over devices.
struct DecodeTraffic {
  double gathered = 0;  ///< Queries, and keys and values of scheme `cache`: all-gather.
  double moved = 0;     ///< New keys and values to the device that keeps them.
  double partials = 0;  ///< Partial results, back to the device of the sequence: all-to-all.
  double reduced = 0;   ///< Two all-reduces of the activations.
  double total() const { return gathered + moved + partials + reduced; }
};

/// What joins the devices. Through a switch every message is sent once. Around a ring in one
/// direction devices pass on what is not for them: a message to each of the others costs N/2 hops
/// in the mean, which all-gather and all-reduce do not pay.
enum class DeviceJoint : std::uint8_t { switched, ring };

/// With `batch` = B sequences on all N devices together, E the width of all query heads, K that of
/// a key and a value, H heads:
///
///     data           0
///     tensor         4 (N-1)/N B hidden
///     cache          (N-1)/N B (E + K) + (N-1)/N B (E + 2H)
///     cache_queries  (N-1)/N B E       + (N-1)/N B (E + 2H) + moved B/N K
///     cache_newest   (N-1)/N B E       + (N-1)/N B (E + 2H)
///
/// times the bytes of an element; on a ring the partial results and what moves times N/2.
/// `moved_share`: of the new tokens, those that another device keeps; 1 at most, (N-1)/N where
/// tokens go to devices in turn. Jeon, CMU-CS-24-122, section 4.4, in one convention of the batch.
DecodeTraffic decode_traffic(const DecodeLayer& layer, DecodeScheme scheme, double devices,
                             double batch, DeviceJoint joint, double moved_share = 1);

/// The thesis' own figures (figure 4.1), which take `batch` for all devices together in scheme
/// `cache`, on a ring, and for each device in scheme `tensor`:
///
///     cache   3 (N-1)/N B E + (N-1) B (E + 2H) / 2,     tensor   4 (N-1) B E
///
/// with one byte a value. Zero for `data`; the further schemes are not in it.
double printed_decode_traffic(const DecodeLayer& layer, DecodeScheme scheme, double devices,
                              double batch);

}  // namespace braid

#include "braid/serve/cache/decode_step.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"

namespace braid {
namespace {

using Messages = std::vector<std::vector<double>>;

std::span<const double> row(const std::vector<double>& rows, std::size_t index, std::size_t size) {
  return std::span(rows).subspan(index * size, size);
}

void append(std::vector<double>& to, std::span<const double> numbers) {
  to.insert(to.end(), numbers.begin(), numbers.end());
}

/// Takes numbers from the front of each rank's message.
class MessageReader {
 public:
  explicit MessageReader(const Messages& messages) : messages_(messages), at_(messages.size(), 0) {}
  std::span<const double> next(std::int32_t rank, std::size_t size) {
    const std::span<const double> numbers =
        std::span(messages_[at(rank)]).subspan(at_[at(rank)], size);
    at_[at(rank)] += size;
    return numbers;
  }

 private:
  const Messages& messages_;
  std::vector<std::size_t> at_;
};

/// One rank's part of a step in which caches are split by tokens.
class SplitStep {
 public:
  SplitStep(const DecodeStep& step, const NewTokens& own, RankCache& cache, DecodeLink& link)
      : step_(step), own_(own), cache_(cache), link_(link), heads_(cache.heads()) {}

  std::vector<double> run() {
    const std::vector<double> queries = gather_queries();
    if (step_.scheme != DecodeScheme::cache) keep_new_tokens();
    return merge(attend(queries));
  }

 private:
  std::size_t sequences() const { return step_.home.size(); }
  std::int32_t ranks() const { return link_.ranks(); }
  std::size_t at_home(std::int32_t rank) const {
    return static_cast<std::size_t>(std::count(step_.home.begin(), step_.home.end(), rank));
  }
  std::int32_t keeper(std::size_t sequence) const { return keeper_of(step_, sequence, ranks()); }

  /// All sequences' queries; with scheme `cache` keys and values come along, and their keeper keeps
  /// them.
  std::vector<double> gather_queries() {
    const bool all = step_.scheme == DecodeScheme::cache;
    const std::size_t query = heads_.query_size(), key = heads_.key_size();
    std::vector<double> mine = own_.queries;
    if (all) append(mine, own_.keys), append(mine, own_.values);
    const Messages out(at(ranks()), mine);
    Messages in(at(ranks()));
    for (std::int32_t r = 0; r < ranks(); ++r) {
      in[at(r)].resize(at_home(r) * (query + (all ? 2 * key : 0)));
    }
    link_.exchange(out, in);
    std::vector<double> queries;
    std::vector<std::size_t> seen(at(ranks()), 0);
    for (std::size_t b = 0; b < sequences(); ++b) {
      const std::int32_t home = step_.home[b];
      const std::span<const double> from = in[at(home)];
      const std::size_t i = seen[at(home)]++;
      append(queries, from.subspan(i * query, query));
      if (!all || keeper(b) != link_.rank()) continue;
      const std::size_t keys = at_home(home) * query, values = keys + at_home(home) * key;
      cache_.append(b, step_.places[b], from.subspan(keys + i * key, key),
                    from.subspan(values + i * key, key));
    }
    return queries;
  }

  /// Sends new keys and values to their keepers.
  void keep_new_tokens() {
    const std::size_t key = heads_.key_size();
    Messages out(at(ranks())), in(at(ranks()));
    std::size_t i = 0;
    for (std::size_t b = 0; b < sequences(); ++b) {
      if (keeper(b) == link_.rank()) {
        std::vector<double>& from = in[at(step_.home[b])];
        from.resize(from.size() + 2 * key);
      }
      if (step_.home[b] != link_.rank()) continue;
      append(out[at(keeper(b))], row(own_.keys, i, key));
      append(out[at(keeper(b))], row(own_.values, i, key));
      ++i;
    }
    link_.exchange(out, in);
    MessageReader reader(in);
    for (std::size_t b = 0; b < sequences(); ++b) {
      if (keeper(b) != link_.rank()) continue;
      const std::span<const double> token = reader.next(step_.home[b], 2 * key);
      cache_.append(b, step_.places[b], token.first(key), token.last(key));
    }
  }

  /// Partial results of all sequences over this rank's tokens, for the ranks that they are at home.
  Messages attend(const std::vector<double>& queries) const {
    Messages partials(at(ranks()));
    const std::size_t size = heads_.partial_size();
    for (std::size_t b = 0; b < sequences(); ++b) {
      std::vector<double>& to = partials[at(step_.home[b])];
      to.resize(to.size() + size);
      partial_attention(heads_, row(queries, b, heads_.query_size()), step_.places[b], cache_.of(b),
                        std::span(to).last(size));
    }
    return partials;
  }

  std::vector<double> merge(const Messages& partials) {
    const std::size_t size = heads_.partial_size();
    const std::size_t own = at_home(link_.rank());
    Messages in(at(ranks()), std::vector<double>(own * size));
    link_.exchange(partials, in);
    std::vector<double> output(own * heads_.query_size());
    std::vector<double> merged(size);
    for (std::size_t i = 0; i < own; ++i) {
      clear_partial(heads_, merged);
      for (const std::vector<double>& from : in) {
        merge_partials(heads_, row(from, i, size), merged);
      }
      attention_output(heads_, merged,
                       std::span(output).subspan(i * heads_.query_size(), heads_.query_size()));
    }
    return output;
  }

  const DecodeStep& step_;
  const NewTokens& own_;
  RankCache& cache_;
  DecodeLink& link_;
  const AttentionHeads& heads_;
};

/// Attention of whole heads and whole sequences, those that `computed` says, by this rank alone.
template <typename Computed>
std::vector<double> attend_whole(const DecodeStep& step, const NewTokens& own, RankCache& cache,
                                 const Computed& computed) {
  const AttentionHeads& heads = cache.heads();
  std::vector<double> output, partial(heads.partial_size());
  std::size_t i = 0;
  for (std::size_t b = 0; b < step.home.size(); ++b) {
    if (!computed(b)) continue;
    cache.append(b, step.places[b], row(own.keys, i, heads.key_size()),
                 row(own.values, i, heads.key_size()));
    partial_attention(heads, row(own.queries, i, heads.query_size()), step.places[b], cache.of(b),
                      partial);
    output.resize(output.size() + heads.query_size());
    attention_output(heads, partial, std::span(output).last(heads.query_size()));
    ++i;
  }
  return output;
}

/// The projection that follows is taken to be the identity: its all-reduce joins the heads.
std::vector<double> tensor_step(const DecodeStep& step, const NewTokens& own, RankCache& cache,
                                DecodeLink& link) {
  const std::vector<double> mine = attend_whole(step, own, cache, [](std::size_t) { return true; });
  const std::size_t part = cache.heads().query_size(), hidden = part * at(link.ranks());
  std::vector<double> all(step.home.size() * hidden, 0);
  for (std::size_t b = 0; b < step.home.size(); ++b) {
    const std::span<const double> from = row(mine, b, part);
    std::copy(from.begin(), from.end(),
              all.begin() + static_cast<std::ptrdiff_t>(b * hidden + at(link.rank()) * part));
  }
  link.sum(all);
  // The feed-forward network ends with another; it is not computed here.
  std::vector<double> next(all.size(), 0);
  link.sum(next);
  return all;
}

}  // namespace

RankCache::RankCache(const AttentionHeads& heads, std::size_t sequences)
    : heads_(heads), sequences_(sequences) {}

void RankCache::append(std::size_t sequence, std::int64_t place, std::span<const double> key,
                       std::span<const double> value) {
  assert(key.size() == heads_.key_size() && value.size() == heads_.key_size());
  Tokens& tokens = sequences_[sequence];
  braid::append(tokens.keys, key);
  braid::append(tokens.values, value);
  tokens.places.push_back(place);
}

CacheShard RankCache::of(std::size_t sequence) const {
  const Tokens& tokens = sequences_[sequence];
  return {tokens.keys, tokens.values, tokens.places};
}

std::int32_t keeper_of(const DecodeStep& step, std::size_t sequence, std::int32_t ranks) {
  if (step.scheme == DecodeScheme::cache_newest) return step.home[sequence];
  return static_cast<std::int32_t>(step.places[sequence] % ranks);
}

std::vector<double> decode_step(const DecodeStep& step, const NewTokens& own, RankCache& cache,
                                DecodeLink& link) {
  if (step.scheme == DecodeScheme::tensor) return tensor_step(step, own, cache, link);
  if (step.scheme != DecodeScheme::data) return SplitStep(step, own, cache, link).run();
  return attend_whole(step, own, cache, [&](std::size_t b) { return step.home[b] == link.rank(); });
}

}  // namespace braid

#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "braid/base/json.h"
#include "braid/schedule/timeline.h"

namespace braid {

/// Writes events of a stage, by start, in a few letters each, for the script of a page: passes of a
/// stage are alike and mostly follow each other.
///   {"classes": [[kind, chunk, round, peer, gradients, seconds], …],
///    "events": [0, 1, [0, 17], [2, 0, 5], …]}
/// An event is its class when it starts where the one before it ends, and has the next number of
/// its kind and chunk; else its class, the ticks between them, and its number if it is another.
/// Durations have four digits; starts are off by two ticks at most.
class LaneWriter {
 public:
  explicit LaneWriter(double tick_s) : tick_s_(tick_s) {}
  void add(const Event& event);
  Json json() const { return {{"classes", classes_}, {"events", events_}}; }

 private:
  using Class = std::tuple<EventKind, std::int32_t, std::int64_t, std::int32_t, bool, double>;
  using Series = std::tuple<EventKind, std::int32_t, std::int32_t, bool>;

  double tick_s_;
  double end_s_ = 0;  ///< As the script computes it.
  std::map<Class, std::size_t> numbers_;
  std::map<Series, std::int64_t> next_;
  Json classes_ = Json::array(), events_ = Json::array();
};

}  // namespace braid

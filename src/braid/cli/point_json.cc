#include "braid/cli/point_json.h"

#include "braid/base/text.h"
#include "braid/explore/sweep.h"

namespace braid {

Json point_json(const Space& space, const PointResult& result, std::size_t number, bool plans) {
  const SpacePoint point = point_of(space, number);
  const ResultColumns& columns = columns_of(space);
  Json json = Json::object();
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    json[space.axes[axis].name] = value_name(space, point, axis);
  }
  json["status"] = name_of(result.status);
  if (!result.reason.empty()) json["reason"] = result.reason;
  if (!is_found(result)) return json;
  if (plans) json["plan"] = "plans/" + plan_file_name(space, number);
  json["time_s"] = result.time_s;
  json["lower_bound_s"] = result.lower_bound_s;
  json["utilisation"] = result.utilisation;
  json[lowered(space.units[point[kWorkloadAxis]]) + "s_per_s"] = result.throughput;
  if (space.has_prices) json["price_usd"] = result.usd;
  if (space.has_powers) json["power_w"] = result.watts;
  if (space.has_energies) json["energy_j"] = result.joules;
  for (std::size_t i = 0; i < columns.words.size(); ++i) json[columns.words[i]] = result.words[i];
  for (std::size_t i = 0; i < columns.counts.size(); ++i) {
    json[columns.counts[i]] = result.counts[i];
  }
  for (std::size_t i = 0; i < columns.figures.size(); ++i) {
    json[columns.figures[i]] = result.figures[i];
  }
  json["time"] = Json::object();
  for (std::size_t i = 0; i < columns.parts.size(); ++i) {
    json["time"][columns.parts[i] + "_s"] = result.parts_s[i];
  }
  return json;
}

}  // namespace braid

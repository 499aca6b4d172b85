#include "braid/run/rank_record.h"

#include "braid/base/document.h"
#include "braid/base/json.h"

namespace braid {

std::string rank_record_text(const RankRecord& record) {
  Json json = Json::object();
  json["losses"] = record.losses;
  json["peak_memory_bytes"] = record.peak_memory_bytes;
  json["iterations"] = Json::array();
  for (const RankIteration& each : record.iterations) {
    Json one = Json::object();
    one["start_s"] = each.start_s;
    one["end_s"] = each.end_s;
    Json starts = Json::array(), ends = Json::array();
    for (const InstructionTime& time : each.times) {
      starts.push_back(time.start_s);
      ends.push_back(time.end_s);
    }
    one["starts_s"] = std::move(starts);
    one["ends_s"] = std::move(ends);
    json["iterations"].push_back(std::move(one));
  }
  return to_text(json);
}

RankRecord read_rank_record(const std::string& file) {
  const Document document = Document::parse_file(file);
  const Value root = document.root();
  RankRecord record;
  for (const Value& loss : root["losses"].elements()) record.losses.push_back(loss.as_double());
  record.peak_memory_bytes = root["peak_memory_bytes"].as_double();
  for (const Value& value : root["iterations"].elements()) {
    RankIteration iteration;
    iteration.start_s = value["start_s"].as_double();
    iteration.end_s = value["end_s"].as_double();
    const std::vector<Value> starts = value["starts_s"].elements();
    const std::vector<Value> ends = value["ends_s"].elements();
    for (std::size_t i = 0; i < starts.size() && i < ends.size(); ++i) {
      iteration.times.push_back({starts[i].as_double(), ends[i].as_double()});
    }
    record.iterations.push_back(std::move(iteration));
  }
  return record;
}

}  // namespace braid

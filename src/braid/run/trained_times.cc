#include "braid/run/trained_times.h"

#include <cassert>

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/graph/graph_json.h"

namespace braid {
namespace {

Json to_json(const std::vector<BytesTime>& times) {
  Json json = Json::array();
  for (const BytesTime& each : times) json.push_back({each.bytes, each.time_s});
  return json;
}

std::vector<BytesTime> bytes_times(const Value& list) {
  std::vector<BytesTime> times;
  for (const Value& each : list.elements()) {
    times.push_back({each[0].as_int(), each[1].as_double()});
  }
  return times;
}

void add(std::vector<BytesTime>& sums, const std::vector<BytesTime>& times, double share) {
  assert(sums.size() == times.size());
  for (std::size_t i = 0; i < times.size(); ++i) sums[i].time_s += share * times[i].time_s;
}

}  // namespace

std::string trained_times_job_file(const std::string& folder) { return folder + "/measure.json"; }
std::string trained_times_file(const std::string& folder, std::int64_t process) {
  return folder + "/times" + std::to_string(process) + ".json";
}

std::string trained_times_job_text(const TrainedTimesJob& job) {
  Json json = Json::object();
  json["processes"] = job.processes;
  json["devices"] = job.devices;
  json["threads"] = job.threads;
  json["samples"] = job.samples;
  json["cache_bytes"] = job.cache_bytes;
  json["largest_bytes"] = job.largest_bytes;
  json["timeout_s"] = job.timeout_s;
  json["graphs"] = Json::array();
  for (const Graph& each : job.graphs) json["graphs"].push_back(to_json(each));
  json["batches"] = job.batches;
  return to_text(json);
}

TrainedTimesJob read_trained_times_job(const std::string& file) {
  const Document document = Document::parse_file(file);
  const Value root = document.root();
  TrainedTimesJob job;
  job.processes = root["processes"].as_int_in(2, 1024);
  job.devices = root["devices"].as_int_in(1, job.processes);
  job.threads = root["threads"].as_int_in(1, 1024);
  job.samples = root["samples"].as_int_in(1, 1000);
  job.cache_bytes = root["cache_bytes"].as_double();
  job.largest_bytes = root["largest_bytes"].as_int_in(4, std::int64_t{1} << 32);
  job.timeout_s = root["timeout_s"].as_double();
  for (const Value& each : root["graphs"].elements()) job.graphs.push_back(graph_from_json(each));
  for (const Value& each : root["batches"].elements()) {
    job.batches.push_back(each.as_int_in(1, std::int64_t{1} << 30));
  }
  return job;
}

std::string trained_times_text(const TrainedTimes& times) {
  Json json = Json::object();
  json["graphs"] = Json::array();
  for (const TrainedTime& each : times.graphs) {
    json["graphs"].push_back({each.forward_s, each.backward_s});
  }
  json["blas"] = times.blas;
  json["messages"] = to_json(times.messages);
  json["sums"] = to_json(times.sums);
  return to_text(json);
}

TrainedTimes read_trained_times(const std::string& file) {
  const Document document = Document::parse_file(file);
  TrainedTimes times;
  for (const Value& each : document.root()["graphs"].elements()) {
    times.graphs.push_back({each[0].as_double(), each[1].as_double()});
  }
  times.blas = document.root()["blas"].as_string();
  times.messages = bytes_times(document.root()["messages"]);
  times.sums = bytes_times(document.root()["sums"]);
  return times;
}

TrainedTimes mean_of(const std::vector<TrainedTimes>& times) {
  TrainedTimes mean = times.front();
  double measured = 0;
  for (const TrainedTimes& each : times) measured += each.graphs.empty() ? 0 : 1;
  const double share = 1 / static_cast<double>(times.size());
  for (TrainedTime& each : mean.graphs) each = {};
  for (auto* list : {&mean.messages, &mean.sums}) {
    for (BytesTime& each : *list) each.time_s = 0;
  }
  for (const TrainedTimes& each : times) {
    for (std::size_t i = 0; i < each.graphs.size(); ++i) {
      mean.graphs[i].forward_s += each.graphs[i].forward_s / measured;
      mean.graphs[i].backward_s += each.graphs[i].backward_s / measured;
    }
    add(mean.messages, each.messages, share);
    add(mean.sums, each.sums, share);
  }
  return mean;
}

}  // namespace braid

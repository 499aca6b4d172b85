#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/error.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/cli/count_option.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/report/table.h"
#include "braid/serve/decode_comparison.h"

namespace braid {
namespace {

constexpr std::int64_t kMostCached = std::int64_t{1} << 24;

struct DecodeOptions {
  std::string model, cluster, engine = "vllm", precision = "bf16", host_link = "32 GB/s";
  std::string joint = "switched", count = "one-batch";
  std::vector<std::string> batches{"32", "128", "512"}, prefixes{"10000", "30000", "100000"};
  std::int64_t layers = 0, spread = 0, output_len = 512;
  bool json = false;
};

std::vector<std::int64_t> counts_of(const std::string& option,
                                    const std::vector<std::string>& words, std::int64_t most) {
  std::vector<std::int64_t> counts;
  counts.reserve(words.size());
  for (const std::string& word : words) counts.push_back(parse_count(option, word, 1, most));
  return counts;
}

/// The model's first so many layers.
void keep_layers(ServedModel& model, std::int64_t layers) {
  if (layers == 0) return;
  if (layers > model.layer_count()) {
    throw Error(Where{"", 0, "--layers"},
                fmt::format("{} has {} layers", model.name, model.layer_count()));
  }
  std::vector<ServedLayer> kept;
  for (ServedLayer layer : model.layers) {
    layer.count = std::min(layer.count, layers);
    layers -= layer.count;
    if (layer.count > 0) kept.push_back(layer);
  }
  model.layers = kept;
}

/// One batch of sequences of one length.
struct DecodeCase {
  std::int64_t batch = 0, prefix = 0;
  std::vector<DecodeEstimate> estimates;
};

std::size_t fastest_of(const DecodeCase& of) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < of.estimates.size(); ++i) {
    if (of.estimates[i].tokens_per_s > of.estimates[best].tokens_per_s) best = i;
  }
  return best;
}

void print_cases(const std::vector<DecodeCase>& cases) {
  std::vector<std::vector<std::string>> table = {{"batch", "prefix", "sharded by", "step ms",
                                                  "kernels", "exchange", "host", "KiB sent/layer",
                                                  "fullest", "waiting", "tokens/s", ""}};
  for (const DecodeCase& of : cases) {
    for (std::size_t i = 0; i < of.estimates.size(); ++i) {
      const DecodeEstimate& each = of.estimates[i];
      table.push_back(
          {std::to_string(of.batch), std::to_string(of.prefix), std::string(name_of(each.scheme)),
           fmt::format("{:.3f}", 1e3 * each.step_s()), fmt::format("{:.3f}", 1e3 * each.compute_s),
           fmt::format("{:.3f}", 1e3 * each.exchange_s), fmt::format("{:.3f}", 1e3 * each.host_s),
           fmt::format("{:.1f}", each.layer.total() / 1024), fmt::format("{:.2f}", each.imbalance),
           fmt::format("{:.0f}", each.waiting), fmt::format("{:.0f}", each.tokens_per_s),
           i == fastest_of(of) ? "fastest" : ""});
    }
  }
  fmt::print(
      "{}\nbatch: sequences on all devices; prefix: cached tokens of each\n"
      "sharded by: data (each device has its own sequences), tensor (some heads of all), cache "
      "(some "
      "tokens of all; -queries: new keys go to one device only, -newest: to none)\n"
      "step: kernels, exchange between devices, and host (the engine's own time, and caches that "
      "do "
      "not fit, there and back), all in ms\n"
      "fullest: cached tokens of the fullest device over their mean; waiting: sequences that fit "
      "on "
      "no device, in the mean; fastest: most tokens/s of its batch and prefix\n",
      text_table(table));
}

Json cases_json(const std::vector<DecodeCase>& cases) {
  Json list = Json::array();
  for (const DecodeCase& of : cases) {
    for (const DecodeEstimate& each : of.estimates) {
      list.push_back({{"batch", of.batch},
                      {"prefix_tokens", of.prefix},
                      {"scheme", name_of(each.scheme)},
                      {"gathered_bytes", each.layer.gathered},
                      {"moved_bytes", each.layer.moved},
                      {"partial_bytes", each.layer.partials},
                      {"reduced_bytes", each.layer.reduced},
                      {"compute_s", each.compute_s},
                      {"exchange_s", each.exchange_s},
                      {"host_s", each.host_s},
                      {"imbalance", each.imbalance},
                      {"waiting_sequences", each.waiting},
                      {"tokens_per_s", each.tokens_per_s}});
    }
  }
  return list;
}

/// The bytes of the thesis' figure 4.1, which counts the batch of tensor parallelism for each
/// device and that of cache parallelism for all.
int print_as_printed(const ServedModel& model, double devices,
                     const std::vector<std::int64_t>& batches) {
  const DecodeLayer layer = decode_layer(model);
  std::vector<std::vector<std::string>> table = {{"batch", "tensor", "cache", "tensor/cache"}};
  for (const std::int64_t batch : batches) {
    const auto sequences = static_cast<double>(batch);
    const double tensor = printed_decode_traffic(layer, DecodeScheme::tensor, devices, sequences);
    const double cache = printed_decode_traffic(layer, DecodeScheme::cache, devices, sequences);
    table.push_back({std::to_string(batch), fmt::format("{:.1f} KiB", tensor / 1024),
                     fmt::format("{:.1f} KiB", cache / 1024),
                     fmt::format("{:.2f}", tensor / cache)});
  }
  fmt::print(
      "{}\nSent for one layer, a byte a value, as printed: the batch is each device's with "
      "tensor, all devices' with cache.\n",
      text_table(table));
  return kFound;
}

int run(const DecodeOptions& options) {
  constexpr std::int64_t kMostSequences = 1 << 16;
  const auto batches = counts_of("--batch", options.batches, kMostSequences);
  const auto prefixes = counts_of("--prefix", options.prefixes, kMostCached);
  ServedModel model = load_served_model(options.model);
  keep_layers(model, options.layers);
  const System system = load_system(options.cluster);
  if (options.count == "as-printed") {
    return print_as_printed(model, static_cast<double>(system.device_count), batches);
  }
  if (!is_homogeneous(system)) {
    throw Error(Where{"", 0, "--cluster"}, "decoding is split among devices of one kind");
  }
  const Chip& chip = system.groups.front().chip;
  const std::optional<ChipKernels> kernels = load_kernels(chip);
  if (!kernels) {
    throw Error(Where{"", 0, "--cluster"}, "no kernels of " + chip.name + " were measured",
                "docs/kernels.md lists the chips whose kernels were");
  }
  const Engine engine = load_engine(options.engine);
  const std::optional<double> host = parse_quantity(options.host_link, Unit::bytes_per_s);
  if (!host || !(*host > 0)) {
    throw Error(Where{"", 0, "--host-link"}, "'" + options.host_link + "' is no rate above zero",
                "such as 32GB/s");
  }
  DecodeJob job{&model,
                &engine,
                &system,
                &*kernels,
                serving_format(model, options.precision),
                {},
                static_cast<double>(options.output_len),
                *host,
                options.joint == "ring" ? DeviceJoint::ring : DeviceJoint::switched};
  std::vector<DecodeCase> cases;
  for (const std::int64_t prefix : prefixes) {
    for (const std::int64_t batch : batches) {
      job.lengths = spread_lengths(static_cast<double>(prefix),
                                   static_cast<double>(options.spread) / 100, batch);
      cases.push_back({batch, prefix, compare_decoding(job)});
    }
  }
  if (cases.front().estimates.empty()) {
    fmt::print(stderr,
               "braid: nothing to compare: the weights of {} do not fit on one device, where all "
               "ways but tensor keep them whole\n",
               model.name);
    return kInfeasible;
  }
  if (options.json) {
    fmt::print("{}", to_text(cases_json(cases)));
  } else {
    print_cases(cases);
  }
  return kFound;
}

}  // namespace

Run add_decode(CLI::App& app) {
  auto options = std::make_shared<DecodeOptions>();
  Verb verb(app, "decode", "Compare how devices may shard decoding: data, tensor, cache");
  verb.footer(
      "Example:\n  braid decode llama-2-7b --cluster dgx-a100:4 --layers 1 --spread 50\n\nWhat is "
      "compared: docs/cache-parallelism.md.");
  verb.add_option("MODEL", options->model, "Served or zoo model, or config.json").required();
  verb.add_option("--cluster,-c", options->cluster, "Cluster and devices, such as dgx-a100:4")
      .required();
  verb.add_option("--batch", options->batches, "Sequences of all devices together")
      .delimiter(',')
      .show_default(fmt::format("{}", fmt::join(options->batches, ",")));
  verb.add_option("--prefix", options->prefixes, "Tokens of a sequence in the cache")
      .delimiter(',')
      .show_default(fmt::format("{}", fmt::join(options->prefixes, ",")));
  add_count(verb, "--spread", options->spread, 0, 100,
            "By how many percent sequences are shorter or longer at most");
  add_count(verb, "--output-len", options->output_len, 1, kMostCached,
            "Tokens that a sequence decodes in its life")
      .show_default(std::to_string(options->output_len));
  add_count(verb, "--layers", options->layers, 1, 1000, "Only the model's first layers");
  add_text(verb, "--engine", options->engine, "Engine, of the catalogue or a file")
      .show_default(options->engine);
  add_text(verb, "--precision", options->precision, "bf16, fp8, fp4 or int4")
      .show_default(options->precision);
  add_text(verb, "--host-link", options->host_link, "Between a device and its host's memory")
      .show_default(options->host_link);
  verb.add_option("--joint", options->joint, "What joins the devices")
      .one_of({"switched", "ring"})
      .show_default(options->joint);
  verb.add_option("--count", options->count, "One batch for all, or the thesis' two")
      .one_of({"one-batch", "as-printed"})
      .show_default(options->count);
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run(*options); };
}

}  // namespace braid

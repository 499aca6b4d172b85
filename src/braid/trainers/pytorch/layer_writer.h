#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "braid/trainers/pytorch/model_facts.h"

namespace braid {

/// A layer as the class of a module.
struct WrittenLayer {
  std::string name;                   ///< For its class.
  std::string body;                   ///< Of its class: equal layers have equal ones.
  std::vector<ValueId> takes, gives;  ///< Of its forward pass, in order.
  bool attends = false;
  std::map<std::string, ValueId> parameters;  ///< By their names in it: "norm1.weight".
  std::set<std::string> helpers;              ///< Names of files of the folder `program`.
};

/// Without a body where the layer computes nothing. `recomputes_attention`: its constructor is told
/// whether to. Throws Error, naming the operation, for what is not written.
WrittenLayer written_layer(const ModelFacts& facts, LayerId layer, bool recomputes_attention);

/// A layer's or operator's name within the layer, as an identifier: "norm1" of "block0.norm1".
std::string name_within(const std::string& layer, const std::string& name);

}  // namespace braid

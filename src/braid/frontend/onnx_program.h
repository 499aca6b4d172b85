#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "braid/program/program.h"

namespace braid {

/// The program of an ONNX file: all of its nodes in order, with attributes and weights, those in
/// other files of its folder too. `dims` gives sizes to symbolic dimensions of its inputs; inputs
/// with others left are taken as they are fed. Initializers without data are missing weights.
///
///   Program program = program_from_onnx("resnet50.onnx", {{"batch", 1}});
///   fill_missing_weights(program, 0);                           // random_tensor.h
///   const std::vector<DenseTensor> out = run(program, inputs);  // executor.h
///
/// Nodes keep the names that operators of graph_from_onnx() have, which leaves out those that cost
/// nothing, and puts others together when it fuses.
///
/// Throws Error, naming the node or value: no ONNX file, nodes out of order or on a cycle, values
/// defined twice or never, weights without numbers (strings, complex ones, fewer than 8 bits),
/// weights whose file is missing or short. Operations are not looked at before the program runs.
Program program_from_onnx(const std::string& path, const std::map<std::string, std::int64_t>& dims);

/// The same for the bytes of a file; `file` is for messages, and its folder for weights.
Program program_from_onnx_bytes(std::string_view bytes, const std::string& file,
                                const std::map<std::string, std::int64_t>& dims);

/// A tensor that is alone in a file (onnx.TensorProto), as ONNX's test data are. Throws Error.
DenseTensor tensor_from_onnx(const std::string& path);

/// The bytes of such a file.
std::string onnx_of_tensor(const DenseTensor& tensor);

}  // namespace braid

#include <fmt/format.h>

#include <algorithm>

#include "scenario/workload/chakra.h"
#include "scenario/workload/chakra/protobuf_wire.h"
#include "scenario/workload/unpack_gzip.h"

namespace espalier::scenario {
namespace {

tl::unexpected<Error> broken(const std::string& name, std::size_t position) {
  return fail(ErrorCode::invalid_input, fmt::format("{}: not a Chakra trace from byte {} on", name, position),
              "give the .et files of ASTRA-sim or of chakra_converter, one for each rank, packed by gzip or not");
}

/// A value of an attribute: whichever of the numbers, texts and lists of AttributeProto it is.
struct Attribute {
  std::string_view name;
  std::optional<std::uint64_t> number;
  std::optional<std::string_view> text;
  std::optional<std::string_view> booleans;  ///< A BoolList.
};

std::optional<Attribute> read_attribute(std::string_view bytes) {
  constexpr std::uint32_t name_field = 1, signed_first = 15, text_field = 29, booleans_field = 28;
  Attribute attribute;
  WireReader reader(bytes);
  while (!reader.at_end()) {
    const auto field = reader.field();
    if (!field) return std::nullopt;
    if (field->kind == WireField::Kind::bytes) {
      if (field->number == name_field) attribute.name = field->bytes;
      if (field->number == text_field) attribute.text = field->bytes;
      if (field->number == booleans_field) attribute.booleans = field->bytes;
      continue;
    }
    const bool is_zigzag = field->number == signed_first || field->number == signed_first + 2;
    attribute.number = is_zigzag ? (field->value >> 1U) ^ (0 - (field->value & 1U)) : field->value;
  }
  return attribute;
}

/// Whether all of a BoolList, packed or not, are true.
bool all_true(std::string_view list) {
  WireReader reader(list);
  while (!reader.at_end()) {
    const auto field = reader.field();
    if (!field) return false;
    if (field->kind == WireField::Kind::varint && field->value == 0) return false;
    if (field->kind == WireField::Kind::bytes && std::ranges::find(field->bytes, '\0') != field->bytes.end())
      return false;
  }
  return true;
}

void take_attribute(ChakraNode& node, const Attribute& attribute) {
  if (attribute.text && (attribute.name == "pg_name" || attribute.name == "comm_group")) node.group = *attribute.text;
  if (attribute.booleans && attribute.name == "involved_dim") node.has_all_dimensions = all_true(*attribute.booleans);
  if (!attribute.number) return;
  const auto number = static_cast<std::int64_t>(*attribute.number);
  if (attribute.name == "is_cpu_op") node.on_cpu = number != 0;
  if (attribute.name == "num_ops") node.operations = *attribute.number;
  if (attribute.name == "comm_type") node.comm_type = number;
  if (attribute.name == "comm_size") node.comm_size = number;
  if (attribute.name == "comm_src") node.comm_src = number;
  if (attribute.name == "comm_dst") node.comm_dst = number;
  if (attribute.name == "comm_tag") node.comm_tag = number;
  if (attribute.name == "root" || attribute.name == "comm_root") node.root = number;
  if (attribute.name == "pg_name" || attribute.name == "comm_group") node.group = std::to_string(number);
}

/// Dependencies are a packed list or one number a field.
bool take_dependencies(ChakraNode& node, const WireField& field) {
  if (field.kind == WireField::Kind::varint) {
    node.after.push_back(field.value);
    return true;
  }
  if (field.kind != WireField::Kind::bytes) return false;
  WireReader reader(field.bytes);
  while (!reader.at_end()) {
    const auto id = reader.varint();
    if (!id) return false;
    node.after.push_back(*id);
  }
  return true;
}

std::optional<ChakraNode> read_node(std::string_view bytes, std::uint64_t& type) {
  constexpr std::uint32_t id = 1, name = 2, node_type = 3, control = 4, data = 5, duration = 7, attribute_field = 10;
  ChakraNode node;
  type = 0;
  WireReader reader(bytes);
  while (!reader.at_end()) {
    const auto field = reader.field();
    if (!field) return std::nullopt;
    if (field->number == control || field->number == data) {
      if (!take_dependencies(node, *field)) return std::nullopt;
    } else if (field->kind == WireField::Kind::varint) {
      if (field->number == id) node.id = field->value;
      if (field->number == node_type) type = field->value;
      if (field->number == duration) node.duration_us = field->value;
    } else if (field->kind == WireField::Kind::bytes && field->number == name) {
      node.name = field->bytes;
    } else if (field->kind == WireField::Kind::bytes && field->number == attribute_field) {
      const auto attribute = read_attribute(field->bytes);
      if (!attribute) return std::nullopt;
      take_attribute(node, *attribute);
    }
  }
  return node;
}

Result<std::vector<ChakraNode>> read_messages(std::string_view bytes, const std::string& name) {
  WireReader reader(bytes);
  if (!reader.message()) return broken(name, 0);  // GlobalMetadata
  std::vector<ChakraNode> nodes;
  while (!reader.at_end()) {
    const std::size_t position = reader.position();
    const auto message = reader.message();
    std::uint64_t type = 0;
    auto node = message ? read_node(*message, type) : std::nullopt;
    if (!node) return broken(name, position);
    if (type < 1 || type > static_cast<std::uint64_t>(ChakraType::collective)) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: node {} '{}' is of type {}, which is not simulated", name, node->id,
                              node->name.substr(0, 60), type),
                  "compute, memory, send, receive and collective nodes are");
    }
    node->type = static_cast<ChakraType>(type);
    if (nodes.size() == max_tasks) return fail(ErrorCode::too_large, name + " has more than 2^26 nodes");
    nodes.push_back(*std::move(node));
  }
  return nodes;
}

}  // namespace

Result<std::vector<ChakraNode>> read_chakra(std::string_view bytes, const std::string& name, std::size_t max_unpacked) {
  if (is_gzip(bytes)) {
    const auto unpacked = unpack_gzip(bytes, max_unpacked);
    if (unpacked) return read_messages(*unpacked, name + ", unpacked");
    return fail(unpacked.error().code, name + ": " + unpacked.error().message, unpacked.error().help);
  }
  return read_messages(bytes, name);
}

}  // namespace espalier::scenario

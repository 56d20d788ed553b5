#include "python/bind/call_arrays.h"

namespace espalier::python {
namespace {

[[noreturn]] void refuse(const std::string& message, const std::string& help) {
  throw ErrorRaised({ErrorCode::invalid_input, message, help});
}

/// Which of the buffers has the part of one rank, not all of them.
struct Parts {
  bool send_is_shard = false;
  bool receive_is_shard = false;
};

Parts parts_of(CollectiveKind kind) {
  return {kind == CollectiveKind::all_gather || kind == CollectiveKind::gather,
          kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::scatter};
}

}  // namespace

ElementType checked_type(const py::array& array) {
  if ((array.flags() & py::array::c_style) == 0) {
    refuse("the array is not contiguous", "numpy.ascontiguousarray makes it so");
  }
  const py::dtype type = array.dtype();
  const bool is_native = type.attr("isnative").cast<bool>();
  for (const ElementType element : all_element_types) {
    if (element == ElementType::bfloat16) continue;  // numpy has none
    const bool is_float = element >= ElementType::float16;
    const bool is_signed =
        element == ElementType::int8 || element == ElementType::int32 || element == ElementType::int64;
    const char kind = is_float ? 'f' : is_signed ? 'i' : 'u';
    if (is_native && type.kind() == kind && type.itemsize() == size_of(element)) return element;
  }
  throw ErrorRaised({ErrorCode::unsupported, "elements of type " + py::str(py::handle(type)).cast<std::string>(),
                     "int8, uint8, int32, uint32, int64, uint64, float16, float32 and float64 can be"});
}

CallArguments CallArrays::arguments(const Communicator& ranks) const {
  CallArguments call;
  call.kind = value_of(parse_collective(kind));
  call.operation = value_of(parse_reduce_operation(operation));
  call.root = root;
  if (root >= ranks.size()) {
    refuse("root " + std::to_string(root) + " of " + std::to_string(ranks.size()) + " ranks", "ranks count from 0");
  }
  const bool is_root = ranks.rank() == root;
  const bool needs_send = call.kind != CollectiveKind::scatter || is_root;
  const bool needs_receive = (call.kind != CollectiveKind::gather && call.kind != CollectiveKind::reduce) || is_root;
  if ((needs_send && send.is_none()) || (needs_receive && receive.is_none())) {
    refuse(kind + ": this rank needs an array to " + (needs_send && send.is_none() ? "send" : "receive into"),
           "give one");
  }
  const Parts parts = parts_of(call.kind);
  std::size_t share = 0;
  std::size_t all_shares = 0;
  if (!shares.is_none()) {
    const auto given = shares.cast<py::array_t<std::int64_t, py::array::c_style>>();
    call.shares = {given.data(), static_cast<std::size_t>(given.size())};
    Collective checked{call.kind, ranks.size(), Rank(), {call.shares.begin(), call.shares.end()}};
    if (const auto wrong = why_bad_shares(checked)) refuse(kind + ": " + *wrong, "give the elements of each rank");
    share = static_cast<std::size_t>(call.shares[ranks.rank()]);
    all_shares = static_cast<std::size_t>(checked.share_sum());
  }
  std::optional<std::size_t> count;
  std::optional<ElementType> type;
  const auto take = [&](const py::array& array, bool is_shard) {
    auto elements = static_cast<std::size_t>(array.size()) * (is_shard ? ranks.size() : 1);
    if (!call.shares.empty()) {
      const auto expected = is_shard ? share : all_shares;
      if (static_cast<std::size_t>(array.size()) != expected) {
        refuse(kind + ": an array of " + std::to_string(array.size()) + " elements, and the shares say " +
                   std::to_string(expected),
               "shares are the elements of each rank");
      }
      elements = all_shares;
    }
    const ElementType its = checked_type(array);
    if ((count && *count != elements) || (type && *type != its)) {
      refuse(kind + ": the arrays do not fit each other: " + std::to_string(*count) + " elements of " +
                 std::string(to_string(*type)) + " and " + std::to_string(elements) + " of " +
                 std::string(to_string(its)),
             "the larger one has room for a part of every rank");
    }
    count = elements;
    type = its;
  };
  if (needs_send) {
    const auto array = send.cast<py::array>();
    take(array, parts.send_is_shard);
    call.send = array.data();
  }
  if (needs_receive) {
    auto array = receive.cast<py::array>();
    if (!array.writeable()) refuse(kind + ": the array to receive into is read-only", "give one of your own");
    take(array, parts.receive_is_shard);
    call.receive = array.mutable_data();
  }
  if (call.kind == CollectiveKind::all_to_all && *count % ranks.size() != 0) {
    refuse("all_to_all: " + std::to_string(*count) + " elements for " + std::to_string(ranks.size()) + " ranks",
           "as many for each");
  }
  call.count = *count;
  call.type = *type;
  return call;
}

}  // namespace espalier::python

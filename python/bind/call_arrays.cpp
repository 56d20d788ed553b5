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

/// One of the two sides of an all_to_all with counts.
struct CountedSide {
  const char* name;
  const py::array& array;
  std::size_t first;  ///< Of CountArrays::numbers, and of the tuple.
};

void take_counts(const CountedSide& side, const py::tuple& given, std::uint32_t ranks, CountArrays& into) {
  const bool is_scalar = side.array.ndim() == 0;
  const std::int64_t rows = is_scalar ? 1 : static_cast<std::int64_t>(side.array.shape(0));
  const std::int64_t row = rows == 0 ? 0 : static_cast<std::int64_t>(side.array.size()) / rows;
  std::int64_t sum = 0;
  std::vector<std::int64_t>& counts = into.numbers[side.first];
  std::vector<std::int64_t>& displacements = into.numbers[side.first + 1];
  const auto numbers = given[side.first].cast<py::array_t<std::int64_t, py::array::c_style>>();
  const bool are_packed = given[side.first + 1].is_none();
  const auto places =
      are_packed ? numbers : given[side.first + 1].cast<py::array_t<std::int64_t, py::array::c_style>>();
  if (numbers.size() != ranks || places.size() != ranks) {
    refuse(std::string("all_to_all: ") + std::to_string(std::min(numbers.size(), places.size())) +
               " numbers of what is " + side.name + " among " + std::to_string(ranks) + " ranks",
           "give one for each rank");
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t count = numbers.data()[rank];
    const std::int64_t begin = are_packed ? sum : places.data()[rank];
    if (count < 0 || begin < 0 || count > rows || begin > rows - count) {
      refuse("all_to_all: " + std::to_string(count) + " entries at " + std::to_string(begin) + " for rank " +
                 std::to_string(rank) + " are not within the " + std::to_string(rows) + " of the array that is " +
                 side.name,
             "counts and displacements are of entries along the first axis");
    }
    sum += count;
    counts.push_back(count * row);
    if (!are_packed) displacements.push_back(begin * row);
  }
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

std::shared_ptr<const CountArrays> CallArrays::count_arrays(const Communicator& ranks) const {
  if (counts.is_none()) return nullptr;
  auto found = std::make_shared<CountArrays>();
  const auto given = counts.cast<py::tuple>();
  take_counts({"sent", send.cast<py::array>(), 0}, given, ranks.size(), *found);
  take_counts({"received into", receive.cast<py::array>(), 2}, given, ranks.size(), *found);
  return found;
}

CallArguments CallArrays::counted(const CountArrays& counts) const {
  CallArguments call;
  call.kind = value_of(parse_collective(kind));
  const auto from = send.cast<py::array>();
  auto into = receive.cast<py::array>();
  if (!into.writeable()) refuse(kind + ": the array to receive into is read-only", "give one of your own");
  call.type = checked_type(from);
  if (checked_type(into) != call.type) {
    refuse(kind + ": the arrays have elements of different types", "give arrays of one type");
  }
  call.send = from.data();
  call.receive = into.mutable_data();
  call.send_blocks = {counts.numbers[0], counts.numbers[1]};
  call.receive_blocks = {counts.numbers[2], counts.numbers[3]};
  return call;
}

CallArguments CallArrays::arguments(const Communicator& ranks, const CountArrays* counts) const {
  if (counts != nullptr) return counted(*counts);
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
